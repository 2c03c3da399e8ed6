//! What a session has done: said in the end, and written for programs.

use ampsched_model::InputError;
use serde::Serialize;

use crate::run::failed;
use crate::{Backend, Outcome, PutBack, RecordSettings, Session, Status, tell, whole_file};

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
    /// What has been put back, and what could not be.
    pub restored: PutBack,
    /// What the back end adds.
    #[serde(flatten)]
    pub outcome: O,
}

impl<O: Outcome> Summary<O> {
    /// Ends a session; `put_back` puts back what its back end has touched.
    pub fn finish<B: Backend<Outcome = O>>(
        backend: B,
        session: &mut Session,
        put_back: impl FnOnce() -> PutBack,
    ) -> Self {
        let mut status = session.status(&backend);
        (status.threads, status.on_cores) = (Vec::new(), Vec::new());
        let counts = session.counts;
        let looks = counts.looks.max(1) as f64;
        let outcome = backend.finish(session);
        Self {
            status,
            threads: counts.threads,
            epoch_us: counts.cpu_ns as f64 / 1e3 / looks,
            epoch_threads: counts.seen as f64 / looks,
            // ns per thread.
            epoch_us_per_1000_threads: counts.cpu_ns as f64 / counts.seen.max(1) as f64,
            restored: put_back(),
            outcome,
        }
    }

    /// Says it, and writes it where it is wanted.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(crate) fn conclude<B: Backend>(&self, settings: &RecordSettings) -> Result<(), InputError> {
        let (program, status) = (B::PROGRAM, &self.status);
        self.tell_failures::<B>();
        if !settings.quiet {
            tell(program, self.sentence());
            for energy in &status.energy {
                tell(program, energy.in_words());
            }
        }
        let Some(file) = &settings.result else { return Ok(()) };
        let text = serde_json::to_string_pretty(self).expect("a summary is plain data");
        whole_file::write(file, &(text + "\n"))
            .map_err(|error| failed(&file.display().to_string(), &error))
    }

    /// Says what could not be carried out or put back.
    pub(crate) fn tell_failures<B: Backend>(&self) {
        let not_carried_out = self.status.failures.iter().map(|failure| ("carried out", failure));
        let not_put_back = self.restored.failures.iter().map(|failure| ("put back", failure));
        for (what, failure) in not_carried_out.chain(not_put_back) {
            tell(B::PROGRAM, format_args!("not {what}: {failure}"));
        }
    }

    fn sentence(&self) -> String {
        let Self { status, threads, epoch_us, epoch_threads, outcome, .. } = self;
        let end = match self.restored.failures.len() {
            0 => "all put back".to_owned(),
            count => format!("{count} things could not be put back"),
        };
        let end: Vec<String> = outcome.words().into_iter().chain([end]).collect();
        format!(
            "{} {} for {:.1} s: {threads} threads, {} epochs, {} decisions, {:.1} % of a CPU, {epoch_us:.0} us per look at \
             {epoch_threads:.0} threads; {}",
            status.policy,
            status.mode,
            status.age_s,
            status.epochs,
            status.decisions,
            100.0 * status.overhead,
            end.join("; ")
        )
    }
}
