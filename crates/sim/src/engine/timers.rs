//! Next event of every core: a winner tree, so that the engine never holds stale events.

use ampsched_model::{CoreId, Ns};

/// No event.
pub const NEVER: Ns = Ns::MAX;

/// A core's timer. Ordered by (time, core), so the lowest core wins a tie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Timer {
    due_ns: Ns,
    core: u32,
}

/// One timer per core, and the core whose timer is due first (ties: lowest core).
#[derive(Debug)]
pub struct CoreTimers {
    /// A complete binary tree: node 1 is the root, nodes `leaves..` are the cores' timers, and every
    /// inner node is a copy of its earlier child, so that a comparison reads one place.
    nodes: Vec<Timer>,
    leaves: usize,
}

impl CoreTimers {
    pub fn new(cores: usize) -> Self {
        let leaves = cores.next_power_of_two();
        let mut nodes = vec![Timer { due_ns: NEVER, core: 0 }; 2 * leaves];
        for (core, timer) in nodes[leaves..].iter_mut().enumerate() {
            timer.core = core as u32;
        }
        for node in (1..leaves).rev() {
            nodes[node] = nodes[2 * node].min(nodes[2 * node + 1]);
        }
        Self { nodes, leaves }
    }

    /// The core that is due first and when.
    #[inline]
    pub fn first(&self) -> (CoreId, Ns) {
        let Timer { due_ns, core } = self.nodes[1];
        (CoreId(core as u16), due_ns)
    }

    #[inline]
    pub fn get(&self, core: CoreId) -> Ns {
        self.nodes[self.leaves + core.index()].due_ns
    }

    #[inline]
    pub fn set(&mut self, core: CoreId, due_ns: Ns) {
        let mut node = self.leaves + core.index();
        let mut winner = Timer { due_ns, core: core.0.into() };
        self.nodes[node] = winner;
        while node > 1 {
            winner = winner.min(self.nodes[node ^ 1]);
            node /= 2;
            // Someone else wins here as before: everything above stands.
            if self.nodes[node] == winner && winner.core != core.0.into() {
                return;
            }
            self.nodes[node] = winner;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampsched_model::Draw;

    #[test]
    fn first_is_the_least_with_the_lowest_core() {
        for cores in [1, 2, 3, 8, 13, 1024] {
            let mut timers = CoreTimers::new(cores);
            let mut reference = vec![NEVER; cores];
            let mut random = Draw::new(cores as u64);
            assert_eq!(timers.first().1, NEVER);
            for _ in 0..2000 {
                let core = (random.bits() % cores as u64) as usize;
                let due = if random.bits() % 5 == 0 { NEVER } else { random.bits() % 50 };
                timers.set(CoreId::from(core), due);
                reference[core] = due;
                let least = (0..cores).min_by_key(|&core| (reference[core], core)).unwrap();
                assert_eq!(
                    timers.first(),
                    (CoreId::from(least), reference[least]),
                    "{cores} cores"
                );
            }
        }
    }
}
