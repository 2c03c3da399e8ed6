//! Next event of every core: a winner tree, so that the engine never holds stale events.

use ampsched_model::{CoreId, Ns};

/// No event.
pub const NEVER: Ns = Ns::MAX;

/// One timer per core, and the core whose timer is due first (ties: lowest core).
#[derive(Debug)]
pub struct CoreTimers {
    due_ns: Vec<Ns>,
    /// `winners[i]` is the leaf that wins the subtree of inner node i; node 1 is the root.
    winners: Vec<u32>,
}

impl CoreTimers {
    pub fn new(cores: usize) -> Self {
        let leaves = cores.next_power_of_two().max(2);
        let mut timers = Self { due_ns: vec![NEVER; leaves], winners: vec![0; leaves] };
        for node in (1..leaves).rev() {
            timers.winners[node] = timers.child(2 * node);
        }
        timers
    }

    fn child(&self, node: usize) -> u32 {
        let leaves = self.due_ns.len();
        if node >= leaves { (node - leaves) as u32 } else { self.winners[node] }
    }

    /// The core that is due first and when.
    #[inline]
    pub fn first(&self) -> (CoreId, Ns) {
        let winner = self.winners[1] as usize;
        (CoreId::from(winner), self.due_ns[winner])
    }

    #[inline]
    pub fn get(&self, core: CoreId) -> Ns {
        self.due_ns[core.index()]
    }

    #[inline]
    pub fn set(&mut self, core: CoreId, due_ns: Ns) {
        self.due_ns[core.index()] = due_ns;
        let mut node = (core.index() + self.due_ns.len()) / 2;
        while node >= 1 {
            let (left, right) = (self.child(2 * node), self.child(2 * node + 1));
            let winner =
                if self.due_ns[right as usize] < self.due_ns[left as usize] { right } else { left };
            // The winner's own timer is unchanged and so is everything above.
            if self.winners[node] == winner && winner as usize != core.index() {
                return;
            }
            self.winners[node] = winner;
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
