//! HFEE's pre-processing on line: every program has an epoch on either kind of core before it is ranked.

use ampsched_model::{Ns, ThreadId};

use super::ranking::Chosen;
use crate::policies::support::window::PerThread;
use crate::{FactorKind, Prefer, View};

/// What a program has done on either kind of core: big, little.
#[derive(Clone, Copy, Debug, Default)]
struct Trial {
    before: [Done; 2],
    per_joule: [Option<f64>; 2],
}

/// Instructions and time on cores of a kind since the start.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    instructions: u64,
    run_ns: Ns,
}

const BIG: usize = 0;
const LITTLE: usize = 1;

/// Instructions per joule of each program on either kind of core, as far as they have been tried there.
#[derive(Clone, Debug, Default)]
pub struct Trials {
    programs: PerThread<Trial>,
}

impl Trials {
    /// Takes down what an epoch has shown of a program that spent it on one kind of core; the first epoch
    /// on each kind counts.
    pub fn note(&mut self, view: &View, thread: ThreadId) {
        let trial = self.programs.slot(thread);
        let now = [BIG, LITTLE].map(|kind| done(view, thread, kind));
        let before = std::mem::replace(&mut trial.before, now);
        let epoch = [BIG, LITTLE].map(|kind| Done {
            instructions: now[kind].instructions - before[kind].instructions,
            run_ns: now[kind].run_ns - before[kind].run_ns,
        });
        let kind = match epoch.map(|done| done.run_ns > 0) {
            [true, false] => BIG,
            [false, true] => LITTLE,
            _ => return,
        };
        let power_mw = view.factors(thread).power_mw;
        if power_mw.kind != FactorKind::Missing && power_mw.value > 0.0 {
            let per_s = epoch[kind].instructions as f64 * 1e9 / epoch[kind].run_ns as f64;
            trial.per_joule[kind].get_or_insert(per_s * 1e3 / power_mw.value);
        }
    }

    /// The energy-efficiency ratio of a program that has been tried on both kinds.
    pub fn eer(&mut self, thread: ThreadId) -> Option<f64> {
        let [big, little] = self.programs.slot(thread).per_joule;
        big.zip(little).map(|(big, little)| big / little)
    }

    /// Who of those not fully tried is tried where in the next epoch, in order; the others of them wait.
    pub fn next(&mut self, threads: &[ThreadId], big: usize, little: usize) -> Chosen {
        let mut chosen = Chosen::default();
        for &thread in threads {
            let [on_big, on_little] = self.programs.slot(thread).per_joule;
            if on_big.is_none() && chosen.count(Prefer::Big) < big {
                chosen.put(thread, Prefer::Big);
            } else if on_little.is_none() && chosen.count(Prefer::Little) < little {
                chosen.put(thread, Prefer::Little);
            }
        }
        chosen
    }
}

fn done(view: &View, thread: ThreadId, kind: usize) -> Done {
    let run_ns = view.stats(thread).run_ns;
    // Class 0 is the slowest.
    let classes = if kind == LITTLE { 0..1 } else { 1..run_ns.len() };
    Done {
        instructions: view.instructions(thread)[classes.clone()].iter().sum(),
        run_ns: run_ns[classes].iter().sum(),
    }
}
