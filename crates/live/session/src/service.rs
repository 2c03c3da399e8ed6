//! What a session tells the service manager that runs it (sd_notify(3)): that it has begun, that it is alive, that it
//! ends. Without a service manager nobody is told.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::Command;
use std::time::{Duration, Instant};

/// Where messages go, and what is expected of whom; a command is nobody of whom anything is expected.
const SOCKET: &str = "NOTIFY_SOCKET";
const WATCHDOG_US: &str = "WATCHDOG_USEC";
const WATCHDOG_PID: &str = "WATCHDOG_PID";

/// The service manager.
#[derive(Debug, Default)]
pub struct Service {
    to: Option<(UnixDatagram, SocketAddr)>,
    /// How often a sign of life is given: twice as often as it is expected; never if it is not.
    period: Option<Duration>,
    last: Option<Instant>,
}

impl Service {
    /// As the environment names it.
    pub fn from_environment() -> Self {
        let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
        let is_meant = number(WATCHDOG_PID).is_none_or(|pid| pid == u64::from(std::process::id()));
        let limit_us = number(WATCHDOG_US).filter(|&limit_us| is_meant && limit_us > 0);
        Self {
            to: std::env::var_os(SOCKET).and_then(|name| connect(&name)),
            period: limit_us.map(|limit_us| Duration::from_micros(limit_us / 2)),
            last: None,
        }
    }

    /// The session has begun.
    pub fn begun(&self) {
        self.tell("READY=1");
    }

    /// The session has taken a step.
    pub fn is_alive(&mut self) {
        let Some(period) = self.period else { return };
        if self.last.is_none_or(|last| last.elapsed() >= period) {
            self.last = Some(Instant::now());
            self.tell("WATCHDOG=1");
        }
    }

    /// The session puts back what it has touched; that may take as long as services are given to stop.
    pub fn ends(&self) {
        self.tell("STOPPING=1");
    }

    /// A manager that does not listen changes nothing.
    fn tell(&self, message: &str) {
        if let Some((socket, to)) = &self.to {
            let _ = socket.send_to_addr(message.as_bytes(), to);
        }
    }
}

/// A socket's name as the environment has it: `@` stands for the zero byte of names that are in no folder.
fn connect(name: &OsStr) -> Option<(UnixDatagram, SocketAddr)> {
    let to = match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest),
        _ => SocketAddr::from_pathname(name),
    };
    let socket = UnixDatagram::unbound().ok()?;
    socket.set_nonblocking(true).ok()?;
    Some((socket, to.ok()?))
}

/// Lets a command know nothing of the service manager.
pub fn keep_from(command: &mut Command) {
    for name in [SOCKET, WATCHDOG_US, WATCHDOG_PID] {
        command.env_remove(name);
    }
}
