//! How far programs and threads have come, compared with programs that have a fast core for each of their threads.

use ampsched_model::{Ns, ThreadId};

use super::super::support::class_speeds;
use super::super::support::progress::Seen;
use super::super::support::window::PerThread;
use crate::View;

/// A new program's, or thread's, slowdown counts less until it has been there for about as long.
const PRIOR_NS: f64 = 100e6;
/// How far back a thread's own slowdown reaches.
const MEMORY_NS: f64 = 200e6;
/// Who could run for less than this share of a window has slept in it; counters are read one after the other.
const AWAKE: f64 = 0.9;

/// What a program or thread has done, and what it could have done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Account {
    /// Time in which it could run.
    wanted_ns: f64,
    /// Time that it would have needed for what it did.
    alone_ns: f64,
}

impl Account {
    /// How much slower it was; about 1 as long as little is known.
    pub fn slowdown(&self) -> f64 {
        (self.wanted_ns + PRIOR_NS) / (self.alone_ns + PRIOR_NS)
    }

    fn add(&mut self, wanted_ns: f64, alone_ns: f64) {
        self.wanted_ns += wanted_ns;
        self.alone_ns += alone_ns;
    }

    fn fade(&mut self, keep: f64) {
        self.wanted_ns *= keep;
        self.alone_ns *= keep;
    }
}

/// A program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Program {
    account: Account,
    /// Cores that it could use, 1 to all.
    demand: f64,
    /// Work that it has done, and all that it will do, in time on a fast core; 0: not known.
    done_ns: f64,
    whole_ns: f64,
    /// Of its threads in the present window, in ns.
    runnable_ns: f64,
    work_ns: f64,
}

impl Program {
    /// How much slower it was since it began than alone with a fast core for each of its threads.
    pub fn slowdown(&self) -> f64 {
        self.account.slowdown()
    }

    /// How many cores it could have used in the last window in which it could run: threads, 1 to the number of cores.
    pub fn demand(&self) -> f64 {
        self.demand.max(1.0)
    }

    /// How much more it counts as its length is known; 1 if it is not.
    ///
    /// Of programs whose lengths L are known, mean slowdown is least if the least L x R comes first, R being what is
    /// left (Gittins' index; with equal L it is the shortest remaining time). Of others, which took the time A for what
    /// they have done, it is the least A^2. A, L and R are times alone.
    pub fn urgency(&self) -> f64 {
        if self.whole_ns == 0.0 {
            return 1.0;
        }
        let left_ns = (self.whole_ns - self.done_ns % self.whole_ns) / self.demand();
        let past_ns = self.account.alone_ns + PRIOR_NS;
        past_ns * past_ns / ((past_ns + left_ns) * (PRIOR_NS + left_ns))
    }

    fn end_window(&mut self, window_ns: f64, cores: f64) {
        let runnable = self.runnable_ns / window_ns;
        self.demand = runnable.clamp(1.0, cores);
        self.account.add(window_ns * runnable.min(1.0), self.work_ns / self.demand);
        self.done_ns += self.work_ns;
        (self.runnable_ns, self.work_ns) = (0.0, 0.0);
    }
}

/// A thread.
#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    account: Account,
    at_ns: Ns,
    slept_ns: Ns,
    seen: Seen,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    began_ns: Ns,
    /// A time, mostly the length of a window, and what accounts keep after it.
    keep: Option<(Ns, f64)>,
    threads: PerThread<Thread>,
    programs: Vec<Program>,
}

impl Accounts {
    /// Counts what has happened since the last call; threads of which no speed-up is known have `unknown`.
    ///
    /// Who could not run in the window is left alone, whether it is among [`View::recent`] or not.
    pub fn end_window(&mut self, view: &View, unknown: f64) {
        let now_ns = view.now_ns();
        let window_ns = (now_ns - std::mem::replace(&mut self.began_ns, now_ns)) as f64;
        if window_ns == 0.0 {
            return;
        }
        for &thread in view.recent().iter() {
            self.count(view, thread, unknown, window_ns);
        }
        let cores = view.topology().core_count() as f64;
        for program in self.programs.iter_mut().filter(|program| program.runnable_ns > 0.0) {
            program.end_window(window_ns, cores);
        }
    }

    fn count(&mut self, view: &View, thread: ThreadId, unknown: f64, window_ns: f64) {
        let classes = view.topology().class_count();
        let speeds = class_speeds(view.factors(thread).speedup.or(unknown).max(1.0), classes);
        let (run_ns, ready_ns) = (&view.stats(thread).run_ns, view.ready_ns(thread));
        let known = self.threads.slot(thread);
        let done = known.seen.since_last(run_ns, ready_ns, &speeds, classes);
        if done.wanted_ns == 0.0 {
            return;
        }
        let work_ns: f64 = done.alone_ns.iter().sum();
        let before_ns = std::mem::replace(&mut known.at_ns, view.now_ns());
        let passed_ns = view.now_ns() - before_ns;
        let keep = match self.keep {
            Some((ns, keep)) if ns == passed_ns => keep,
            _ => (-(passed_ns as f64) / MEMORY_NS).exp(),
        };
        self.keep = Some((passed_ns, keep));
        known.account.fade(keep);
        known.account.add(done.wanted_ns, work_ns);
        if before_ns == 0 || done.wanted_ns < AWAKE * window_ns {
            known.slept_ns = view.now_ns();
        }
        let app = usize::from(view.app(thread).0);
        if self.programs.len() <= app {
            self.programs.resize(app + 1, Program::default());
        }
        self.programs[app].runnable_ns += done.wanted_ns;
        self.programs[app].work_ns += work_ns;
        self.programs[app].whole_ns = view.factors(thread).work_ns.or(0.0);
    }

    /// The programs by their numbers, up to the last of which something is known.
    pub fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// A thread's account of the last 200 ms in which it could run.
    pub fn thread(&mut self, thread: ThreadId) -> Account {
        self.threads.slot(thread).account
    }

    /// Whether a thread has slept in the last 200 ms, or has begun in them.
    pub fn has_slept(&self, thread: ThreadId, now_ns: Ns) -> bool {
        let awake_ns = self.threads.get(thread).map_or(0, |known| now_ns - known.slept_ns);
        (awake_ns as f64) < MEMORY_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that has run alone on a fast core for 0.5 s.
    fn program(whole_ns: f64) -> Program {
        let mut program = Program { whole_ns, ..Program::default() };
        (program.runnable_ns, program.work_ns) = (0.5e9, 0.5e9);
        program.end_window(0.5e9, 4.0);
        program
    }

    #[test]
    fn a_program_is_the_more_urgent_the_less_is_left() {
        assert_eq!(program(0.0).urgency(), 1.0);
        // 0.6^2 / ((0.6 + R) (0.1 + R)) with R = 0.1, 0.5 and 4.5 s.
        for (whole_ns, expected) in [(0.6e9, 2.571), (1e9, 0.545), (5e9, 0.0153)] {
            let urgency = program(whole_ns).urgency();
            assert!((urgency / expected - 1.0).abs() < 0.01, "{urgency} {expected}");
        }
    }

    #[test]
    fn a_program_that_has_done_more_than_is_known_begins_anew() {
        assert_eq!(program(0.4e9).urgency(), {
            let left_ns = 0.3e9;
            0.6e9 * 0.6e9 / ((0.6e9 + left_ns) * (0.1e9 + left_ns))
        });
    }
}
