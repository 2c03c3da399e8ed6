//! Wake-up latencies of threads in the kernel: single ones come from `bpf/scheduler/latency.h`, which says when, and
//! are counted here as the simulator counts its own.

use std::collections::BTreeMap;

use ampsched_live_session::Scheduled;
use ampsched_model::{Distribution, Histogram};
use serde::Serialize;

use crate::KernelPlane;

/// A wake-up of a thread: `struct latency` in `bpf/scheduler/latency.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// The latency.
    pub ns: u64,
    /// The thread's process.
    pub process: u32,
    /// The thread's number.
    pub thread: u32,
}

/// Process and number of a thread.
type Key = (u32, u32);

/// All wake-up latencies of a session.
#[derive(Debug, Default)]
pub struct Latencies {
    of: BTreeMap<Key, Histogram>,
    names: BTreeMap<Key, String>,
    /// By process.
    programs: BTreeMap<u32, String>,
    /// Missing in schedulers that have been left.
    lost: u64,
    /// Room for those that are read at a time.
    read: Vec<Latency>,
}

/// Wake-up latencies of a session, for the results.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LatencyOutcome {
    /// Of all threads.
    pub all: Distribution,
    /// By program; what ended before anybody could look at it has no name.
    pub programs: Vec<ProgramLatency>,
    /// By thread.
    pub threads: Vec<ThreadLatency>,
    /// Wake-ups that are missing here, as they found no room on their way.
    pub lost: u64,
}

/// Wake-up latencies of all processes of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProgramLatency {
    /// The program.
    pub program: String,
    /// The latencies.
    pub latency: Distribution,
}

/// Wake-up latencies of a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ThreadLatency {
    /// The program.
    pub program: String,
    /// The thread's name.
    pub thread: String,
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// The latencies.
    pub latency: Distribution,
}

impl Latencies {
    /// Takes what the kernel has measured since the last time.
    pub fn take(&mut self, kernel: &mut impl KernelPlane) {
        kernel.read_latencies(&mut self.read);
        for one in &self.read {
            self.of.entry((one.process, one.thread)).or_default().count(one.ns);
        }
    }

    /// The same, and nothing will come from that scheduler any more.
    pub fn leave(&mut self, kernel: &mut impl KernelPlane) {
        self.take(kernel);
        self.lost += kernel.latencies_lost();
    }

    /// Learns what threads are called.
    pub fn name<'a>(&mut self, threads: impl Iterator<Item = Scheduled<'a>>) {
        for one in threads {
            let (process, thread) = (one.pid as u32, one.tid as u32);
            put(&mut self.names, (process, thread), one.name);
            put(&mut self.programs, process, one.program);
        }
    }

    /// For the results.
    pub fn summary(&self) -> LatencyOutcome {
        let (mut all, mut programs) = (Histogram::default(), BTreeMap::new());
        let name = |process: u32| self.programs.get(&process).map_or("", String::as_str);
        for ((process, _), own) in &self.of {
            all += own;
            *programs.entry(name(*process)).or_insert_with(Histogram::default) += own;
        }
        let thread = |(key, own): (&Key, &Histogram)| ThreadLatency {
            program: name(key.0).to_owned(),
            thread: self.names.get(key).cloned().unwrap_or_default(),
            pid: key.0,
            tid: key.1,
            latency: own.into(),
        };
        LatencyOutcome {
            all: (&all).into(),
            programs: programs
                .into_iter()
                .map(|(program, own)| ProgramLatency {
                    program: program.to_owned(),
                    latency: (&own).into(),
                })
                .collect(),
            threads: self.of.iter().map(thread).collect(),
            lost: self.lost,
        }
    }
}

/// Puts a name down, if it is another one than before.
fn put<K: Ord>(names: &mut BTreeMap<K, String>, key: K, name: &str) {
    let noted = names.entry(key).or_default();
    if noted != name && !name.is_empty() {
        noted.replace_range(.., name);
    }
}

impl LatencyOutcome {
    /// In words.
    pub fn in_words(&self) -> String {
        let us = |ns: u64| ns as f64 / 1e3;
        let Distribution { count, p50_ns, p99_ns, max_ns, .. } = self.all;
        let lost = match self.lost {
            0 => String::new(),
            lost => format!(", {lost} more not measured"),
        };
        format!(
            "{count} wake-ups{lost}, latency p50 {:.1} us, p99 {:.1} us, at most {:.1} us",
            us(p50_ns),
            us(p99_ns),
            us(max_ns)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_threads_of_a_program_wait_is_its_own_and_strangers_have_no_name() {
        let mut all = Latencies::default();
        for (process, thread, ns) in [(1, 1, 100), (1, 2, 300), (1, 2, 50), (9, 9, 7)] {
            all.of.entry((process, thread)).or_default().count(ns);
        }
        put(&mut all.programs, 1, "sh");
        put(&mut all.programs, 1, "ferret");
        put(&mut all.names, (1, 2), "worker");
        let summary = all.summary();
        let programs: Vec<(&str, u64, u64)> = summary
            .programs
            .iter()
            .map(|one| (one.program.as_str(), one.latency.count, one.latency.max_ns))
            .collect();
        assert_eq!(programs, [("", 1, 7), ("ferret", 3, 300)]);
        let names: Vec<&str> = summary.threads.iter().map(|one| one.thread.as_str()).collect();
        assert_eq!((names, summary.all.count), (vec!["", "worker", ""], 4));
    }
}
