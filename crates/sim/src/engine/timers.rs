//! Next event of every core: a winner tree, so that the engine never holds stale events.

use ampsched_model::{CoreId, Ns};

/// No event.
pub const NEVER: Ns = Ns::MAX;

/// Bits of a timer that hold the core.
const CORE_BITS: u32 = u16::BITS;

/// One timer per core, and the core whose timer is due first (ties: lowest core).
#[derive(Debug)]
pub struct CoreTimers {
    /// A complete binary tree: node 1 is the root, nodes `leaves..` are the cores' timers, and every
    /// inner node is a copy of its earlier child. A timer is one number, the time above the core, so
    /// that the lowest core wins a tie and a comparison needs no branch.
    nodes: Vec<u128>,
    leaves: usize,
}

impl CoreTimers {
    pub fn new(cores: usize) -> Self {
        let leaves = cores.next_power_of_two();
        let mut nodes = vec![0; 2 * leaves];
        for (core, node) in nodes[leaves..].iter_mut().enumerate() {
            *node = timer(core as u16, NEVER);
        }
        for node in (1..leaves).rev() {
            nodes[node] = nodes[2 * node].min(nodes[2 * node + 1]);
        }
        Self { nodes, leaves }
    }

    /// The core that is due first and when.
    #[inline]
    pub fn first(&self) -> (CoreId, Ns) {
        let first = self.nodes[1];
        (CoreId(first as u16), (first >> CORE_BITS) as Ns)
    }

    #[inline]
    pub fn get(&self, core: CoreId) -> Ns {
        (self.nodes[self.leaves + core.index()] >> CORE_BITS) as Ns
    }

    #[inline]
    pub fn set(&mut self, core: CoreId, due_ns: Ns) {
        let mut node = self.leaves + core.index();
        let mut first = timer(core.0, due_ns);
        // A node that keeps its value leaves everything above as it is.
        while self.nodes[node] != first {
            self.nodes[node] = first;
            if node == 1 {
                return;
            }
            first = first.min(self.nodes[node ^ 1]);
            node /= 2;
        }
    }
}

#[inline]
fn timer(core: u16, due_ns: Ns) -> u128 {
    u128::from(due_ns) << CORE_BITS | u128::from(core)
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
