//! What a session has done: said in the end, and written for programs.

use std::fs;

use ampsched_model::InputError;
use serde::Serialize;

use crate::run::failed;
use crate::{Backend, Outcome, RecordSettings, Session, Status};

/// What a session has done, for the results.
#[derive(Clone, Debug, Serialize)]
pub struct Summary<O> {
    /// How it was at the end, without its threads.
    pub status: Status,
    /// Threads that were scheduled.
    pub threads: usize,
    /// CPU time of one look at the threads with the epoch and the changes that follow, in us.
    pub epoch_us: f64,
    /// Threads that there were at a look, on average.
    pub epoch_threads: f64,
    /// `epoch_us` per 1,000 threads; with few threads it is mostly what a look costs anyway.
    pub epoch_us_per_1000_threads: f64,
    /// What the back end adds.
    #[serde(flatten)]
    pub outcome: O,
}

impl<O: Outcome> Summary<O> {
    /// Ends a session: everything is put back.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    pub fn finish<B: Backend<Outcome = O>>(
        backend: B,
        session: &mut Session,
    ) -> Result<Self, InputError> {
        let mut status = session.status(&backend);
        (status.threads, status.on_cores) = (Vec::new(), Vec::new());
        let counts = session.counts;
        let looks = counts.looks.max(1) as f64;
        Ok(Self {
            status,
            threads: counts.threads,
            epoch_us: counts.cpu_ns as f64 / 1e3 / looks,
            epoch_threads: counts.seen as f64 / looks,
            // ns per thread.
            epoch_us_per_1000_threads: counts.cpu_ns as f64 / counts.seen.max(1) as f64,
            outcome: backend.finish(session)?,
        })
    }

    /// Says it, and writes it where it is wanted.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(crate) fn conclude<B: Backend>(&self, settings: &RecordSettings) -> Result<(), InputError> {
        let (program, status) = (B::PROGRAM, &self.status);
        for failure in &status.failures {
            eprintln!("{program}: not carried out: {failure}");
        }
        for failure in self.outcome.failures() {
            eprintln!("{program}: not put back: {failure}");
        }
        if !settings.quiet {
            eprintln!("{program}: {}", self.sentence());
            for energy in &status.energy {
                eprintln!("{program}: {}", energy.in_words());
            }
        }
        let Some(file) = &settings.result else { return Ok(()) };
        let text = serde_json::to_string_pretty(self).expect("a summary is plain data");
        fs::write(file, text + "\n").map_err(|error| failed(&file.display().to_string(), &error))
    }

    fn sentence(&self) -> String {
        let Self { status, threads, epoch_us, epoch_threads, outcome, .. } = self;
        format!(
            "{} {} for {:.1} s: {threads} threads, {} epochs, {} decisions, {:.1} % of a CPU, {epoch_us:.0} us per look at \
             {epoch_threads:.0} threads; {}",
            status.policy,
            status.mode,
            status.age_s,
            status.epochs,
            status.decisions,
            100.0 * status.overhead,
            outcome.words()
        )
    }
}
