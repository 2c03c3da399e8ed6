//! Time that this process has had on a CPU; on a shared computer far steadier than the wall clock.

use std::time::Instant;

/// A moment.
pub struct CpuTime {
    wall: Instant,
    cpu_ns: Option<u64>,
}

impl CpuTime {
    pub fn now() -> Self {
        Self { wall: Instant::now(), cpu_ns: cpu_ns() }
    }

    /// CPU time since then; wall time where the kernel does not tell.
    pub fn elapsed_s(&self) -> f64 {
        match (self.cpu_ns, cpu_ns()) {
            (Some(start_ns), Some(end_ns)) => (end_ns - start_ns) as f64 / 1e9,
            _ => self.wall.elapsed().as_secs_f64(),
        }
    }
}

/// Linux: the first number of `/proc/thread-self/schedstat` is the thread's CPU time in ns.
fn cpu_ns() -> Option<u64> {
    // The kernel brings it up to date at ticks and when the thread is rescheduled.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().filter(|&ns| ns > 0)
}
