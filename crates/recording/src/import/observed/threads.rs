//! What each thread is at.

use ampsched_model::Histogram;

use super::layout::Layout;
use super::load::Load;
use super::worst::{Bad, Worst};
use super::{ThreadSeen, percentiles};
use crate::import::event::{Left, Name, Story};

/// Most names of a thread that are kept (ours).
const NAMES_MAX: usize = 64;

/// What a thread is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nobody knows, or it is blocked since before the trace.
    #[default]
    Unknown,
    /// It runs there.
    Running(u16),
    /// It waits for a CPU.
    Ready {
        /// Since when.
        since_ns: u64,
        /// Whether something has woken it.
        is_woken: bool,
        /// How often events had been lost by then.
        losses: u64,
    },
    /// It waits for something else.
    Blocked,
    /// It has ended.
    Dead,
}

impl State {
    /// Whether it wants a CPU.
    pub fn is_runnable(self) -> bool {
        matches!(self, Self::Running(_) | Self::Ready { .. })
    }

    /// That of a thread that leaves its CPU.
    pub fn after(left: Left, now_ns: u64, losses: u64) -> Self {
        match left {
            Left::Ready => Self::Ready { since_ns: now_ns, is_woken: false, losses },
            Left::Sleeps | Left::WaitsForDevice | Left::WaitsForStorage | Left::WaitsInKernel => {
                Self::Blocked
            }
            Left::Dead => Self::Dead,
        }
    }
}

/// One thread.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// The kernel's number.
    pub tid: u32,
    /// What it is at.
    pub state: State,
    /// The thread that created it, by place.
    pub parent: Option<u32>,
    /// Whether it is of its creator's process, if told.
    pub is_thread: Option<bool>,
    /// The process of its creator.
    pub of_parent: Option<u32>,
    /// Its names, the last one last.
    pub texts: Vec<Name>,
    /// The CPU where it was last.
    pub cpu: Option<u16>,
    /// When something woke it while it ran.
    pub woken_running_ns: Option<u64>,
    /// Of each CPU how long it had run threads beside idle CPUs when this thread began to wait.
    pub beside: Vec<[u64; 2]>,
    /// CPU time on each CPU.
    pub cpu_ns: Vec<(u16, u64)>,
    /// When it began to run on each of these for the last time.
    pub ran_at_ns: Vec<(u16, u64)>,
    /// When something was worst.
    pub worst: Worst,
    /// From wake-up to a CPU.
    pub latency: Histogram,
    /// Its load.
    pub load: Load,
    /// What is counted of it.
    pub seen: ThreadSeen,
}

impl Thread {
    /// It has another name, if that is one.
    pub fn rename(&mut self, name: Name, text: &str) {
        if self.texts.last() == Some(&name) || text.is_empty() || text.starts_with("<...>") {
            return;
        }
        self.texts.retain(|other| *other != name);
        if self.texts.len() == NAMES_MAX {
            self.texts.remove(0);
        }
        self.texts.push(name);
    }

    /// It begins to run on a CPU.
    pub fn arrive(&mut self, cpu: u16, now_ns: u64) {
        self.seen.switches += 1;
        self.cpu = Some(cpu);
        self.woken_running_ns = None;
        match self.ran_at_ns.iter_mut().find(|(other, _)| *other == cpu) {
            Some((_, at_ns)) => *at_ns = now_ns,
            None => self.ran_at_ns.push((cpu, now_ns)),
        }
    }

    /// It has run on a CPU, from one time since the begin to another one.
    pub fn run(&mut self, layout: &Layout, cpu: u16, times_ns: (u64, u64), capacity: f64) {
        let ns = times_ns.1 - times_ns.0;
        match self.cpu_ns.iter_mut().find(|(other, _)| *other == cpu) {
            Some((_, time_ns)) => *time_ns += ns,
            None => self.cpu_ns.push((cpu, ns)),
        }
        if let Some(cluster) = layout.cluster(cpu) {
            self.load.run(layout, cluster, times_ns, capacity);
        }
    }

    /// It has waited for a CPU, from one time since the begin to another one; `beside`: while another thread had that
    /// one and any other, or a greater one, was idle.
    pub fn wait(&mut self, (since_ns, now_ns): (u64, u64), is_woken: bool, beside: [u64; 2]) {
        let ns = now_ns - since_ns;
        self.seen.wait_ns += ns;
        self.seen.longest_wait_ns = self.seen.longest_wait_ns.max(ns);
        self.seen.beside_idle_ns += beside[0];
        self.seen.beside_greater_ns += beside[1];
        self.worst.note(Bad::Wait, ns, now_ns);
        self.worst.note(Bad::BesideIdle, beside[0], now_ns);
        self.worst.note(Bad::BesideGreater, beside[1], now_ns);
        if is_woken {
            self.latency.count(ns);
            self.worst.note(Bad::Latency, ns, now_ns);
        }
    }

    /// Its process: as the form states it, that of its creator, or none.
    pub fn process(&self, story: &Story) -> Option<u32> {
        let of_parent = self.of_parent.filter(|_| self.is_thread == Some(true));
        story.processes.get(&self.tid).copied().or(of_parent)
    }

    /// All its names, the last one last.
    pub fn names<'a>(&'a self, story: &'a Story) -> impl Iterator<Item = &'a str> {
        let stated = story.thread_names.get(&self.tid).filter(|_| self.texts.is_empty());
        stated.into_iter().chain(&self.texts).map(|&name| story.names.text(name))
    }

    /// Whether it ran or waited for a CPU.
    pub fn did_something(&self) -> bool {
        self.seen.switches > 0 || self.seen.longest_wait_ns > 0 || !self.cpu_ns.is_empty()
    }

    /// What is told of it.
    pub fn seen(&self, story: &Story, layout: &Layout) -> ThreadSeen {
        let mut cpu_ns = self.cpu_ns.clone();
        cpu_ns.retain(|(_, ns)| *ns > 0);
        cpu_ns.sort_unstable();
        let mut ran_at_ns = self.ran_at_ns.clone();
        ran_at_ns.sort_unstable();
        let has_sizes = layout.rank_count() > 1;
        let load = if has_sizes { self.load.clone() } else { Load::default() };
        ThreadSeen {
            tid: self.tid,
            name: self.names(story).last().unwrap_or_default().to_owned(),
            process: self.process(story),
            cpu_ns,
            latency: percentiles(&self.latency),
            too_small_ns: load.too_small.ns,
            too_big_ns: load.too_big.ns,
            worst_at_ns: self.worst.moments([load.too_small, load.too_big]),
            ran_at_ns,
            ..self.seen.clone()
        }
    }
}
