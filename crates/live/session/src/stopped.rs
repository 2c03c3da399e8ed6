//! What a guardian does for a session that is stopped (SIGSTOP, a terminal's Ctrl-Z, a debugger): it can put nothing
//! back as long as it is, and what it holds would wait for it.

use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use ampsched_computer::{Proc, ThreadKey};
use ampsched_model::{InputError, Ns};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, getppid, kill_process};

use crate::journal::JournalFile;
use crate::restore::report;
use crate::{Backend, END_POLICY, tell};

/// How long a session may be stopped before what it holds runs on (ours).
const STOPPED_MAX: Duration = Duration::from_secs(2);
/// How often a guardian looks (ours).
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

/// Waits until nobody can write to standard input any more, which is the end of the session that has started this
/// process; meanwhile puts back what the session has touched if it is stopped for too long.
pub fn wait_for_end<B: Backend>(journal: &Path) {
    let proc = Proc::default();
    let session = getppid().and_then(|parent| proc.process(parent.as_raw_nonzero().get()).ok());
    let mut stopped =
        Stopped { session: session.map(|stat| stat.key), since: None, is_done: false };
    loop {
        let mut input = [PollFd::from_borrowed_fd(rustix::stdio::stdin(), PollFlags::IN)];
        match poll(&mut input, Some(&LOOK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => stopped.look::<B>(&proc, journal),
            // Nothing is ever written; an error means that the other end is gone, too.
            _ if !matches!(io::stdin().read(&mut [0; 64]), Ok(1..)) => return,
            _ => {}
        }
    }
}

/// A session that may be stopped.
struct Stopped {
    session: Option<ThreadKey>,
    /// Since when, and how long it had run before, in ns.
    since: Option<(Instant, Ns)>,
    /// What it held runs on; when it goes on itself, it ends its policy.
    is_done: bool,
}

impl Stopped {
    fn look<B: Backend>(&mut self, proc: &Proc, journal: &Path) {
        let Some(session) = self.session.filter(|_| !self.is_done) else { return };
        let stat = proc.process(session.tid).ok().filter(|stat| stat.key == session);
        let stat = stat.filter(|stat| matches!(stat.state, 'T' | 't'));
        let ran_ns = stat.map(|stat| {
            let times = proc.run_and_wait_ns(stat.pid, stat.key.tid);
            times.map_or(stat.cpu_ns(), |(ran_ns, _)| ran_ns)
        });
        if !self.is_for_long(ran_ns, Instant::now()) {
            return;
        }
        self.is_done = true;
        let words =
            format!("the session (process {}) is stopped; its policy is ended", session.tid);
        tell(B::PROGRAM, words);
        // It waits for the session to go on, which ends the policy and puts back once more what it touches until then.
        let pid = Pid::from_raw(session.tid).expect("a session has a process");
        let _ = kill_process(pid, END_POLICY);
        if let Err(error) = put_back::<B>(journal) {
            tell(B::PROGRAM, format_args!("not put back: {error}"));
        }
    }

    /// Whether it has been stopped for too long; `ran_ns`: how long it has run so far, if it is stopped now.
    fn is_for_long(&mut self, ran_ns: Option<Ns>, now: Instant) -> bool {
        // One that has run since the last look was stopped anew.
        let stopped_still = self.since.filter(|&(_, before_ns)| Some(before_ns) == ran_ns);
        self.since = stopped_still.or(ran_ns.map(|ran_ns| (now, ran_ns)));
        self.since.is_some_and(|(since, _)| now - since >= STOPPED_MAX)
    }
}

/// Puts back what a journal names, and leaves the journal: its session has not ended.
fn put_back<B: Backend>(journal: &Path) -> Result<(), InputError> {
    let entries = JournalFile::at(journal)?.map(|place| place.entries()).transpose()?;
    report::<B>(&B::put_back(&entries.unwrap_or_default()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_goes_on_in_between_is_not_stopped_for_long() {
        let begun = Instant::now();
        let long_after = |looks: &[(u64, Option<Ns>)]| {
            let mut stopped = Stopped { session: None, since: None, is_done: false };
            let mut look =
                |&(ms, ran_ns)| stopped.is_for_long(ran_ns, begun + Duration::from_millis(ms));
            looks.iter().position(&mut look)
        };
        assert_eq!(
            long_after(&[(0, Some(5)), (1000, Some(5)), (1999, Some(5)), (2000, Some(5))]),
            Some(3)
        );
        assert_eq!(
            long_after(&[(0, Some(5)), (1000, None), (2000, Some(5)), (3999, Some(5))]),
            None
        );
        // It was stopped at each look, and has run between them.
        assert_eq!(
            long_after(&[(0, Some(5)), (1000, Some(6)), (2999, Some(6)), (3000, Some(6))]),
            Some(3)
        );
    }
}
