//! What a means of running policies has to do for a session.

use std::collections::BTreeSet;
use std::process::Command;

use ampsched_computer::ThreadKey;
use ampsched_live_driver::{Decision, Driver, Observation};
use ampsched_model::{InputError, Ns};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Journal, Observed, Session, Setup};

/// A means of running policies.
///
/// A session calls [`start`](Self::start) once, then [`look`](Self::look) and [`carry_out`](Self::carry_out) again and
/// again, and [`finish`](Self::finish) at the end. What it touches of the system it writes to its journal first; from
/// that it is [put back](Self::put_back) in the end, in another process if this one is killed.
pub trait Backend: Observed + Sized {
    /// What status and results call it.
    const NAME: &'static str;
    /// The program that runs it, whose subcommand `guardian` restores from its journals.
    const PROGRAM: &'static str;
    /// The greatest share of a CPU that a session uses, 0 to 1: where threads are so many that looks take long, looks
    /// become rarer.
    const CPU_SHARE_MAX: f64;
    /// What it says at the end.
    type Outcome: Outcome;
    /// What it touches, and what that was before. It names nothing but what a session can touch: a journal is read by
    /// root.
    type Touch: Serialize + DeserializeOwned;

    /// Refuses what it cannot do. Nothing has been touched yet, and nothing is.
    ///
    /// # Errors
    ///
    /// The settings ask for something that only another back end does.
    fn check(setup: &Setup) -> Result<(), InputError>;

    /// Begins. What it writes to the journal may be touched, and nothing else.
    ///
    /// # Errors
    ///
    /// The system does not let it.
    fn start(session: &mut Session, journal: Journal<Self::Touch>) -> Result<Self, InputError>;

    /// Sees to it that a command is scheduled, which is about to be started.
    ///
    /// # Errors
    ///
    /// The system does not let it.
    fn prepare(&self, command: &mut Command) -> Result<(), InputError>;

    /// Says that the session is alive; called between the parts of a step.
    fn sign_of_life(&mut self) {}

    /// What the threads have done since the last look. New ones are made known to the session
    /// ([`Session::find`], [`Session::add`]); those that have ended are told once.
    fn look(&mut self, session: &mut Session, now_ns: Ns) -> Vec<Observation>;

    /// Tells the policy's mirror what sensors of the machine show.
    fn read_sensors(&mut self, _driver: &mut Driver, _now_ns: Ns) {}

    /// Carries out what the policy has decided.
    ///
    /// # Errors
    ///
    /// Nothing can be carried out any more. What fails for single threads is noted ([`Session::note`]).
    fn carry_out(
        &mut self,
        session: &mut Session,
        decisions: &[Decision],
    ) -> Result<(), InputError>;

    /// How long to wait between two looks, in real ns.
    fn period_ns(&self, session: &Session) -> Ns {
        session.driver.look_period_ns()
    }

    /// Whether there is anybody to schedule.
    fn has_threads(&self) -> bool;

    /// Why it has ended by itself; none while it works.
    fn end(&self) -> Option<End> {
        None
    }

    /// Begins anew after an [`End`] that allows it. What the session and its policy know holds, and what has been
    /// decided, too.
    ///
    /// # Errors
    ///
    /// The system does not let it.
    fn restart(&mut self, _session: &mut Session) -> Result<(), InputError> {
        Ok(())
    }

    /// Its journal, if it still writes one.
    fn journal(&mut self) -> Option<&mut Journal<Self::Touch>>;

    /// What of a journal still has to be put back in the end: all but what has ended, or will end by itself.
    fn outstanding(touches: Vec<Self::Touch>) -> Vec<Self::Touch>;

    /// Ends; what it has touched is put back afterwards.
    fn finish(self, session: &mut Session) -> Self::Outcome;

    /// Whether what a journal names concerns any of these threads, so that a session of them has to put it back first.
    fn concerns(touches: &[Self::Touch], threads: &BTreeSet<ThreadKey>) -> bool;

    /// Puts back what a journal names. It can be done twice, and in another process.
    fn put_back(touches: &[Self::Touch]) -> PutBack;
}

/// Why a back end has ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// In a sentence.
    pub why: String,
    /// Whether it only has to begin anew.
    pub can_restart: bool,
}

/// What a back end has done, for the results.
pub trait Outcome: Serialize {
    /// In some words, within a sentence about the session; none if there is nothing to say.
    fn words(&self) -> Option<String>;
}

/// What has been put back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PutBack {
    /// In some words.
    pub what: String,
    /// What could not be put back, and why.
    pub failures: Vec<String>,
}
