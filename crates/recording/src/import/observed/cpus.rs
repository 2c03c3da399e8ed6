//! What each CPU is at, and what all CPUs together are.

use std::collections::BTreeMap;

use super::{AtClock, CpuSeen};

/// What a CPU is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum At {
    /// Nobody knows.
    #[default]
    Unknown,
    /// Nothing.
    Idle,
    /// A thread, by its place.
    Thread(u32),
}

/// One CPU.
#[derive(Clone, Debug, Default)]
pub struct Cpu {
    /// What it is at.
    pub at: At,
    /// Up to when its time is booked, in ns since the begin.
    pub mark_ns: u64,
    /// Whether any switch was on it.
    pub is_seen: bool,
    /// Its clock.
    pub khz: Option<u32>,
    /// Its idle state.
    pub idle_state: Option<u32>,
    /// Time at each clock, and how long of it busy.
    clocks: BTreeMap<Option<u32>, (u64, u64)>,
    /// Time in each idle state.
    idle_states: BTreeMap<u32, u64>,
    /// Times with an idle CPU up to `mark_ns`: any, and a greater one.
    idle_mark_ns: [u64; 2],
    /// Time in which it ran a thread and another CPU was idle: any, and a greater one.
    beside_ns: [u64; 2],
    /// What is told of it.
    pub seen: CpuSeen,
}

impl Cpu {
    /// Books its time up to now. `idle_ns`: time with any idle CPU, and with a greater one, up to now.
    pub fn settle(&mut self, now_ns: u64, idle_ns: [u64; 2]) {
        let ns = now_ns - self.mark_ns;
        let is_busy = matches!(self.at, At::Thread(_));
        if is_busy {
            self.beside_ns = self.beside(idle_ns);
        }
        self.mark_ns = now_ns;
        self.idle_mark_ns = idle_ns;
        match self.at {
            At::Unknown => self.seen.unknown_ns += ns,
            At::Idle => self.seen.idle_ns += ns,
            At::Thread(_) => self.seen.busy_ns += ns,
        }
        if ns > 0 {
            let (time_ns, busy_ns) = self.clocks.entry(self.khz).or_default();
            *time_ns += ns;
            *busy_ns += if is_busy { ns } else { 0 };
            if let Some(state) = self.idle_state {
                *self.idle_states.entry(state).or_default() += ns;
            }
        }
    }

    /// It is at something else from where its time is booked on; what others waited behind it up to now stays.
    /// Returns what it was at; `idle_ns` as for `settle`.
    pub fn turn(&mut self, at: At, idle_ns: [u64; 2]) -> At {
        self.beside_ns = self.beside(idle_ns);
        self.idle_mark_ns = idle_ns;
        std::mem::replace(&mut self.at, at)
    }

    /// Time so far in which it ran a thread and another CPU was idle: any, and a greater one.
    pub fn beside(&self, idle_ns: [u64; 2]) -> [u64; 2] {
        let [any, greater] = self.beside_ns;
        match self.at {
            At::Thread(_) => [
                any + (idle_ns[0] - self.idle_mark_ns[0]),
                greater + (idle_ns[1] - self.idle_mark_ns[1]),
            ],
            _ => self.beside_ns,
        }
    }

    /// What is told of it in the end.
    pub fn into_seen(self) -> CpuSeen {
        let clock = |(khz, (ns, busy_ns))| AtClock { khz, ns, busy_ns };
        CpuSeen {
            clocks: self.clocks.into_iter().map(clock).collect(),
            idle_states: self.idle_states.into_iter().collect(),
            ..self.seen
        }
    }
}

/// How many CPUs are idle, and how long some have been.
#[derive(Clone, Debug)]
pub struct Idle {
    now_ns: u64,
    /// Idle CPUs of each rank or a greater one.
    from_rank: Vec<u64>,
    /// Time in which there was one.
    ns: Vec<u64>,
}

impl Idle {
    /// None is, yet.
    pub fn new(ranks: usize) -> Self {
        Self { now_ns: 0, from_rank: vec![0; ranks + 1], ns: vec![0; ranks + 1] }
    }

    /// Time passes.
    pub fn advance(&mut self, now_ns: u64) {
        let passed_ns = now_ns - self.now_ns;
        self.now_ns = now_ns;
        for (ns, _) in self.ns.iter_mut().zip(&self.from_rank).filter(|(_, count)| **count > 0) {
            *ns += passed_ns;
        }
    }

    /// Time so far with any idle CPU, and with one that is greater than those of a rank.
    pub fn beside(&self, rank: usize) -> [u64; 2] {
        [self.ns[0], self.ns[rank + 1]]
    }

    /// A CPU of a rank becomes idle, or ends to be.
    pub fn change(&mut self, rank: usize, is_idle: bool) {
        for count in &mut self.from_rank[..=rank] {
            *count = if is_idle { *count + 1 } else { count.saturating_sub(1) };
        }
    }
}

/// How many threads are runnable.
#[derive(Clone, Debug, Default)]
pub struct Crowd {
    now_ns: u64,
    count: u64,
    /// Threads times ns.
    sum: u128,
    /// The most at a time.
    pub max: u64,
}

impl Crowd {
    /// One thread more or less from now on.
    pub fn change(&mut self, now_ns: u64, is_more: bool) {
        self.advance(now_ns);
        self.count = if is_more { self.count + 1 } else { self.count.saturating_sub(1) };
    }

    /// Time passes; a moment of no length does not count.
    pub fn advance(&mut self, now_ns: u64) {
        let passed_ns = now_ns.saturating_sub(self.now_ns);
        if passed_ns > 0 {
            self.max = self.max.max(self.count);
        }
        self.sum += u128::from(self.count) * u128::from(passed_ns);
        self.now_ns = now_ns;
    }

    /// On average.
    pub fn mean(&self, duration_ns: u64) -> f64 {
        self.sum as f64 / duration_ns.max(1) as f64
    }
}
