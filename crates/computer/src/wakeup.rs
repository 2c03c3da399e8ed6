//! How long a woken thread takes until it runs.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use ampsched_model::Ns;

/// Wake-ups that are measured (ours): their median moves by a few per cent from one measurement to the next.
const ROUNDS: usize = 100;
/// How long the sleeper sleeps before it is woken, so that its CPU idles as it does in programs that wait.
const PAUSE: Duration = Duration::from_micros(500);

/// From the return of the call that wakes a thread on an idle CPU until that thread runs: the median of many, 0 if it
/// runs before the call returns. Takes a tenth of a second. Errors: no thread can be had.
///
/// This is what a program's threads wait for beside each other; the call itself is CPU time of its caller.
pub fn wakeup_ns() -> io::Result<Ns> {
    let epoch = Instant::now();
    let now_ns = move || epoch.elapsed().as_nanos() as u64;
    let (ran_ns, ready) = (Arc::new(AtomicU64::new(0)), Arc::new(Barrier::new(2)));
    let go = Arc::new(AtomicBool::new(false));
    let sleeper = thread::Builder::new().spawn({
        let (ran_ns, ready, go) = (Arc::clone(&ran_ns), Arc::clone(&ready), Arc::clone(&go));
        move || {
            for _ in 0..ROUNDS {
                ready.wait();
                while !go.swap(false, Ordering::Acquire) {
                    thread::park();
                }
                ran_ns.store(now_ns(), Ordering::Release);
                ready.wait();
            }
        }
    })?;
    let mut latencies: Vec<Ns> = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        ready.wait();
        thread::sleep(PAUSE);
        go.store(true, Ordering::Release);
        sleeper.thread().unpark();
        let called_ns = now_ns();
        ready.wait();
        latencies.push(ran_ns.load(Ordering::Acquire).saturating_sub(called_ns));
    }
    sleeper.join().expect("the sleeper does nothing that can fail");
    latencies.sort_unstable();
    Ok(latencies[ROUNDS / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_woken_thread_runs_soon() {
        let found_ns = wakeup_ns().unwrap();
        assert!(found_ns < 10_000_000, "{found_ns}");
    }
}
