//! Signals that wake the session up: the end of a child, and requests to stop.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use ampsched_model::InputError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

/// Pipes into which a byte is written for each signal.
pub struct Signals {
    stop: UnixStream,
    child: UnixStream,
    stops: usize,
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
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            pipe::register(signal, to_stop.try_clone()?)?;
        }
        pipe::register(SIGCHLD, to_child)?;
        Ok(Self { stop, child, stops: 0 })
    }

    /// How often the session has been asked to stop.
    pub fn stops(&mut self) -> usize {
        self.stops += drain(&mut self.stop);
        self.stops
    }

    /// Sleeps, or until a signal comes.
    pub fn sleep(&mut self, time: Duration) {
        let timeout =
            Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let mut fds = [&self.stop, &self.child].map(|fd| PollFd::new(fd, PollFlags::IN));
        // An interruption is a signal, too.
        let _ = poll(&mut fds, Some(&timeout));
        drain(&mut self.child);
    }
}

/// Number of bytes that were in a pipe.
fn drain(pipe: &mut UnixStream) -> usize {
    let (mut bytes, mut count) = ([0; 64], 0);
    while let Ok(read @ 1..) = pipe.read(&mut bytes) {
        count += read;
    }
    count
}
