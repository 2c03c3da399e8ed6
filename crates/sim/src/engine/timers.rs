//! Next event of every core: a winner tree, so that the engine never holds stale events.

use ampsched_model::{CoreId, Ns};

/// No event.
pub const NEVER: Ns = Ns::MAX;

/// One timer per core, and the core whose timer is due first (ties: lowest core).
///
/// A timer is one number, the time above the core, so that the lowest core wins a tie and a comparison needs no branch.
/// What is due later than fits beside the number of a core (2^54 ns, half a year, with 1024 cores) never is.
#[derive(Debug)]
pub struct CoreTimers {
    /// A complete binary tree: node 1 is the root, nodes `leaves..` are the cores' timers, and every
    /// inner node is a copy of its earlier child.
    nodes: Vec<u64>,
    leaves: usize,
    /// Bits of a timer that hold the core.
    core_bits: u32,
}

impl CoreTimers {
    pub fn new(cores: usize) -> Self {
        let leaves = cores.next_power_of_two();
        let core_bits = leaves.trailing_zeros();
        let mut nodes = vec![0; 2 * leaves];
        for (core, node) in nodes[leaves..].iter_mut().enumerate() {
            *node = NEVER >> core_bits << core_bits | core as u64;
        }
        for node in (1..leaves).rev() {
            nodes[node] = nodes[2 * node].min(nodes[2 * node + 1]);
        }
        Self { nodes, leaves, core_bits }
    }

    /// The core that is due first and when.
    #[inline]
    pub fn first(&self) -> (CoreId, Ns) {
        let first = self.nodes[1];
        let core = first & (self.leaves as u64 - 1);
        (CoreId(core as u16), self.due_ns(first))
    }

    #[inline]
    pub fn get(&self, core: CoreId) -> Ns {
        self.due_ns(self.nodes[self.leaves + core.index()])
    }

    #[inline]
    fn due_ns(&self, timer: u64) -> Ns {
        let due_ns = timer >> self.core_bits;
        if due_ns == NEVER >> self.core_bits { NEVER } else { due_ns }
    }

    #[inline]
    pub fn set(&mut self, core: CoreId, due_ns: Ns) {
        let due_ns = due_ns.min(NEVER >> self.core_bits);
        let mut first = due_ns << self.core_bits | u64::from(core.0);
        let mut node = self.leaves + core.index();
        let nodes = self.nodes.as_mut_slice();
        // A node that keeps its value leaves everything above as it is.
        while nodes[node] != first {
            nodes[node] = first;
            if node == 1 {
                return;
            }
            first = first.min(nodes[node ^ 1]);
            node /= 2;
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
