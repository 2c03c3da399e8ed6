//! When it was worst for a thread.

use super::load::Misplaced;

/// What can be bad for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    /// From wake-up to a CPU.
    Latency,
    /// A wait for a CPU, also after losing one.
    Wait,
    /// Part of a wait beside an idle CPU.
    BesideIdle,
    /// The same beside an idle CPU of a greater cluster.
    BesideGreater,
    /// Another CPU.
    Migration,
    /// Another cluster.
    ClusterMigration,
    /// Loss of the CPU.
    Preemption,
}

/// All of them, with the words by which they are told.
const WORDS: [(Bad, &str); 7] = [
    (Bad::Latency, "latency"),
    (Bad::Wait, "wait"),
    (Bad::BesideIdle, "beside_idle"),
    (Bad::BesideGreater, "beside_greater"),
    (Bad::Migration, "migration"),
    (Bad::ClusterMigration, "cluster_migration"),
    (Bad::Preemption, "preemption"),
];

/// How bad each was at most, and when; the first time of equals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Worst([(u64, u64); WORDS.len()]);

impl Worst {
    /// Something so bad has happened; 0 is not bad.
    pub fn note(&mut self, bad: Bad, amount: u64, at_ns: u64) {
        let worst = &mut self.0[bad as usize];
        if amount > worst.0 {
            *worst = (amount, at_ns);
        }
    }

    /// What has happened, each with when it was worst; `misplaced`: on clusters too small, and too big.
    pub fn moments(&self, misplaced: [Misplaced; 2]) -> Vec<(&'static str, u64)> {
        let own = WORDS.iter().map(|&(bad, word)| (word, self.0[bad as usize]));
        let placed = ["too_small", "too_big"].into_iter().zip(misplaced);
        let placed = placed.map(|(word, found)| (word, (found.most_ns, found.at_ns)));
        own.chain(placed)
            .filter(|(_, (amount, _))| *amount > 0)
            .map(|(word, (_, at_ns))| (word, at_ns))
            .collect()
    }
}
