//! Simulations whose results are known beforehand: from textbook schedulers of a few dozen lines that share nothing
//! with the simulator, and from how results must change when what is simulated does.
//!
//! Times are compared exactly, in ns. Where a tolerance is needed, the kind says why. Parameters are drawn so that no
//! two events happen at one moment if it is not said in which order they do; where that cannot be arranged beforehand
//! the reference finds such ties, and other parameters are drawn.

mod barriers;
mod deadlines;
mod devices;
mod eevdf;
mod energy;
mod fair;
mod graphs;
mod heft;
mod locks;
mod metamorphic;
mod pipeline;
mod pools;
mod priorities;
mod round_robin;
mod scenes;
mod setup;
mod shares;
mod siblings;
mod speeds;
mod timers;
mod traces;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ampsched_sim::{Outcome, ThreadOutcome};

use self::setup::Setup;
use crate::dice::Dice;
use crate::panics;

/// What one case comes to: an error is what does not hold.
type Verdict = Result<(), String>;

/// What is compared.
#[derive(Debug)]
pub struct Kind {
    /// Name, for people.
    pub name: &'static str,
    run: fn(&mut Case) -> Verdict,
}

/// All kinds, those with a reference first.
pub const KINDS: &[Kind] = &[
    Kind { name: "round robin on one core", run: round_robin::run },
    Kind { name: "real-time priorities on one core", run: priorities::run },
    Kind { name: "shares of fair threads on one core", run: shares::run },
    Kind { name: "CFS on one core", run: fair::run },
    Kind { name: "EEVDF on one core", run: eevdf::run },
    Kind { name: "pipelines of bounded queues", run: pipeline::run },
    Kind { name: "devices that serve in order", run: devices::run },
    Kind { name: "a mutex handed over in order", run: locks::run },
    Kind { name: "barriers with unequal work", run: barriers::run },
    Kind { name: "periods of timers", run: timers::run },
    Kind { name: "deadlines and budgets on one core", run: deadlines::run },
    Kind { name: "work over speed", run: speeds::run },
    Kind { name: "power times residency", run: energy::run },
    Kind { name: "task graphs from one queue", run: graphs::run },
    Kind { name: "task graphs by bottom levels (HEFT)", run: heft::run },
    Kind { name: "pools of iterations", run: pools::run },
    Kind { name: "siblings of a core", run: siblings::run },
    Kind { name: "twice the work at twice the speed", run: metamorphic::doubled },
    Kind { name: "other names", run: metamorphic::renamed },
    Kind { name: "all times longer", run: metamorphic::scaled },
    Kind { name: "a core that nobody may use", run: metamorphic::another_core },
    Kind { name: "work in two pieces", run: metamorphic::split },
    Kind { name: "seeds of nothing random", run: metamorphic::reseeded },
    Kind { name: "traces written twice", run: traces::twice },
    Kind { name: "the beginning of a longer run", run: traces::beginning },
];

/// A case at work.
#[derive(Debug)]
pub struct Case {
    dice: Dice,
    /// What only the expectation is made of and is made wrong on purpose, by name: the comparison has to notice.
    bent: Option<String>,
    bendable: BTreeSet<&'static str>,
    compared: u64,
    /// What was simulated.
    texts: Vec<String>,
}

impl Case {
    /// A number that only the expectation is made of: another one if that is to be wrong.
    fn bend(&mut self, name: &'static str, number: u64, by: u64) -> u64 {
        if self.is_bent(name) { number + by } else { number }
    }

    /// Whether that is to be wrong.
    fn is_bent(&mut self, name: &'static str) -> bool {
        self.bendable.insert(name);
        self.bent.as_deref() == Some(name)
    }

    /// What somebody needs who repeats it.
    fn note(&mut self, text: String) {
        self.texts.push(text);
    }

    /// Simulates something.
    fn simulate(&mut self, setup: &Setup) -> Result<Outcome, String> {
        self.note(setup.describe());
        setup.run(None)
    }

    /// Two numbers that have to be equal.
    fn equal<T: PartialEq + Display>(&mut self, what: &str, found: T, expected: T) -> Verdict {
        self.compared += 1;
        if found == expected {
            return Ok(());
        }
        Err(format!("{what}: {found}, expected {expected}"))
    }

    /// Two numbers that may differ by so much.
    fn near(&mut self, what: &str, found: f64, expected: f64, within: f64) -> Verdict {
        self.compared += 1;
        if (found - expected).abs() <= within {
            return Ok(());
        }
        Err(format!("{what}: {found}, expected {expected} within {within}"))
    }

    /// Something of all threads, in the order of the program.
    fn each_thread(
        &mut self,
        what: &str,
        outcome: &Outcome,
        found: impl Fn(&ThreadOutcome) -> u64,
        expected: &[u64],
    ) -> Verdict {
        self.equal("threads", outcome.threads.len(), expected.len())?;
        for (thread, expected) in outcome.threads.iter().zip(expected) {
            self.equal(&format!("{what} of thread {}", thread.name), found(thread), *expected)?;
        }
        Ok(())
    }
}

/// A wrong expectation may depend on who comes first of two who come at once; a right one does not.
const TIE: &str = "what is expected is ambiguous";

/// A policy for threads that do not share cores with others that it schedules: all do the same. Under `rr` any thread
/// that is woken wakes all idle cores, so the next one may find its core awake, and wake-ups must not take time.
fn any_policy(dice: &mut Dice, wakeup: u64) -> &'static str {
    let policies = ["cfs", "eevdf", "linux", "rr"];
    policies[dice.index(if wakeup > 0 { 3 } else { 4 })]
}

/// What a case has come to.
#[derive(Debug)]
pub struct Report {
    /// Index of its kind in [`KINDS`].
    pub kind: usize,
    /// How many values were compared.
    pub compared: u64,
    /// What the expectation is made of that can be made wrong.
    pub bendable: BTreeSet<&'static str>,
    /// What does not hold.
    pub flaw: Option<String>,
    texts: Vec<String>,
}

impl Report {
    /// Files and settings of what was simulated.
    pub fn describe(&self) -> String {
        let head = format!("== {}\n", KINDS[self.kind].name);
        self.texts.iter().fold(head, |all, text| all + text)
    }
}

/// Runs the case of that number: kinds take turns. If something of what the expectation is made of is `bent`, by its
/// name in [`Report::bendable`], the case is expected to fail.
pub fn run(seed: u64, number: u64, bent: Option<&str>) -> Report {
    let kind = (number % KINDS.len() as u64) as usize;
    let mut case = Case {
        dice: Dice::new(seed, number),
        bent: bent.map(str::to_owned),
        bendable: BTreeSet::new(),
        compared: 0,
        texts: Vec::new(),
    };
    let verdict = catch_unwind(AssertUnwindSafe(|| (KINDS[kind].run)(&mut case)));
    let flaw = match verdict {
        Ok(Ok(())) if case.compared == 0 => Some("nothing was compared".to_owned()),
        Ok(verdict) => verdict.err(),
        Err(_) => Some(panics::last()),
    };
    let flaw = flaw.map(|what| {
        format!("{}: {}", KINDS[kind].name, what.split_whitespace().collect::<Vec<_>>().join(" "))
    });
    let Case { bendable, compared, texts, .. } = case;
    Report { kind, compared, bendable, flaw, texts }
}
