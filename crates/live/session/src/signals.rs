//! Signals that wake the session up: the end of a child, and requests to stop.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ampsched_model::InputError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::pipe;

/// Asks a session to end its policy, and to let its command go on.
pub const END_POLICY: Signal = Signal::USR1;

/// What the session has been asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// To end the policy; the command goes on ([`END_POLICY`]).
    EndPolicy,
    /// To end, by this signal, and to end the command.
    End(Signal),
}

/// What signals have asked for, and pipes into which a byte is written for each.
pub struct Signals {
    stop: UnixStream,
    child: UnixStream,
    ends_policy: Arc<AtomicBool>,
    /// Number of the last signal that has asked to end; 0: none.
    end: Arc<AtomicUsize>,
}

impl Signals {
    /// From now on.
    pub fn new() -> Result<Self, InputError> {
        Self::register().map_err(|error| InputError::new("signals", "", error.to_string()))
    }

    fn register() -> std::io::Result<Self> {
        let (stop, to_stop) = UnixStream::pair()?;
        let (child, to_child) = UnixStream::pair()?;
        stop.set_nonblocking(true)?;
        child.set_nonblocking(true)?;
        let signals = Self { stop, child, ends_policy: Arc::default(), end: Arc::default() };
        // What is asked is known before anybody wakes up.
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            flag::register_usize(signal, Arc::clone(&signals.end), signal as usize)?;
            pipe::register(signal, to_stop.try_clone()?)?;
        }
        flag::register(END_POLICY.as_raw(), Arc::clone(&signals.ends_policy))?;
        pipe::register(END_POLICY.as_raw(), to_stop)?;
        pipe::register(SIGCHLD, to_child)?;
        Ok(signals)
    }

    /// What the session has been asked for so far; to end counts more than to end the policy.
    pub fn asked(&self) -> Option<Asked> {
        let end = Signal::from_named_raw(self.end.load(Ordering::Acquire) as i32);
        let ends_policy = self.ends_policy.load(Ordering::Acquire);
        end.map(Asked::End).or(ends_policy.then_some(Asked::EndPolicy))
    }

    /// Sleeps, or until a signal comes.
    pub fn sleep(&mut self, time: Duration) {
        let timeout =
            Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let mut fds = [&self.stop, &self.child].map(|fd| PollFd::new(fd, PollFlags::IN));
        // An interruption is a signal, too.
        let _ = poll(&mut fds, Some(&timeout));
        drain(&mut self.stop);
        drain(&mut self.child);
    }
}

/// Takes what is in a pipe.
fn drain(pipe: &mut UnixStream) {
    let mut bytes = [0; 64];
    while let Ok(1..) = pipe.read(&mut bytes) {}
}
