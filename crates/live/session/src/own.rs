//! The process of a session, and what it uses itself.

use std::time::Duration;

use ampsched_computer::{Proc, ThreadKey};
use ampsched_model::{InputError, Ns};
use rustix::time::{ClockId, clock_gettime};

/// The process of a session.
#[derive(Clone, Debug)]
pub struct Own {
    /// Which.
    pub key: ThreadKey,
    /// CPU time that it had used when the session began.
    used_before_ns: Ns,
}

impl Own {
    /// This process. Errors: `/proc` does not show it.
    pub fn process(proc: &Proc) -> Result<Self, InputError> {
        let pid = std::process::id();
        let shown =
            std::fs::read_link("/proc/self").is_ok_and(|to| to.as_os_str() == &*pid.to_string());
        if !shown {
            let hint = "mount the /proc of this PID namespace";
            return Err(InputError::new("/proc", "", "this process is not in it").with_hint(hint));
        }
        let wrong = |error: std::io::Error| InputError::new("/proc", "", error.to_string());
        let own = proc.process(pid as i32).map_err(wrong)?;
        Ok(Self { key: own.key, used_before_ns: used_ns(proc, own.key.tid) })
    }

    /// The session begins: what was used to get ready, such as to load a scheduler, is no overhead of its policy.
    pub fn begins(&mut self, proc: &Proc) {
        self.used_before_ns = used_ns(proc, self.key.tid);
    }

    /// Share of one CPU that it has used since the session began, which is so long ago.
    pub fn overhead(&self, proc: &Proc, elapsed_ns: Ns) -> f64 {
        let used = used_ns(proc, self.key.tid).saturating_sub(self.used_before_ns);
        if elapsed_ns > 0 { (used as f64 / elapsed_ns as f64).min(1.0) } else { 0.0 }
    }
}

/// CPU time of a process's first thread (a session has no other).
fn used_ns(proc: &Proc, pid: i32) -> Ns {
    proc.run_and_wait_ns(pid, pid).map_or(0, |(run_ns, _)| run_ns)
}

/// CPU time of this process so far.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
