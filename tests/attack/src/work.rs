//! Numbered work that may crash or hang: what is at work is written down, so that whoever started it can tell.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Exit code of work that was given up because one piece took too long.
pub const EXIT_HUNG: i32 = 75;
/// Looks at the piece at work in the time that it may take.
const LOOKS: u32 = 20;
/// How many times its limit of CPU time a piece may take by the clock: on a busy computer little takes long.
const WAITS_MAX: u32 = 5;

/// How a program ends that has found so many failures, or could not work.
pub fn ending(failed: Result<u64, String>) -> ExitCode {
    match failed {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// What a program has done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// All pieces that are counted.
    pub done: u64,
    /// Of these, what was refused with good reason.
    pub refused: u64,
    /// What does not hold.
    pub failed: u64,
}

impl Tally {
    /// Says that the work has ended; how much failed.
    pub fn end(self) -> u64 {
        println!("DONE\t{}\t{}", self.done, self.refused);
        self.failed
    }
}

/// The number of the piece at work and what was done before, in a file and in memory.
#[derive(Debug)]
pub struct Progress {
    file: Option<File>,
    now: Arc<AtomicU64>,
}

impl Progress {
    /// Writes the number into a file, if one is named, and ends the process if a piece takes longer than `limit` of
    /// CPU time.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn watched(file: Option<&Path>, limit: Duration) -> io::Result<Self> {
        let file = file.map(File::create).transpose()?;
        let now = Arc::new(AtomicU64::new(u64::MAX));
        let seen = Arc::clone(&now);
        std::thread::spawn(move || watch(&seen, limit));
        Ok(Self { file, now })
    }

    /// A piece begins; so much has been done before it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn begin(&self, number: u64, before: &Tally) -> io::Result<()> {
        self.now.store(number, Ordering::Relaxed);
        let Tally { done, refused, .. } = before;
        match &self.file {
            Some(file) => {
                file.write_all_at(format!("{number:20} {done:20} {refused:20}\n").as_bytes(), 0)
            }
            None => Ok(()),
        }
    }
}

/// Ends the process if a piece takes longer than `limit` of CPU time, or waits for [`WAITS_MAX`] times that. A process
/// that was stopped for a while has not hung: it looks once when it goes on, and has most looks before it.
fn watch(now: &AtomicU64, limit: Duration) {
    let (mut before, mut looks, mut began) = (u64::MAX, 0, cpu_time());
    while looks < LOOKS * WAITS_MAX && cpu_time() - began < limit {
        std::thread::sleep(limit / LOOKS);
        let number = now.load(Ordering::Relaxed);
        if number == before && number != u64::MAX {
            looks += 1;
        } else {
            (before, looks, began) = (number, 0, cpu_time());
        }
    }
    let used_s = (cpu_time() - began).as_secs();
    eprintln!("number {before} has not ended after {used_s} s of CPU time");
    std::process::exit(EXIT_HUNG);
}

/// CPU time of this process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
