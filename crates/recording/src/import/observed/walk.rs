//! The events of a trace, one after the other.

mod views;

use std::collections::{HashMap, HashSet};

use super::CpuSeen;
use super::around::Lens;
use super::cpus::{At, Cpu, Crowd, Idle};
use super::layout::Layout;
use super::threads::{State, Thread};
use super::worst::Bad;
use crate::import::event::{Left, Name, Names, Raw, WHOEVER_RUNS, What};

/// Longest from a wake-up of a thread that still runs to its leaving, so that the wake-up counts for its block (ours):
/// the kernel waits until it has left.
const RACE_NS: u64 = 100_000;

/// What has happened so far.
#[derive(Debug)]
pub struct Walk<'a> {
    layout: Layout,
    names: &'a Names,
    begin_ns: u64,
    now_ns: u64,
    cpus: Vec<Cpu>,
    threads: Vec<Thread>,
    by_tid: HashMap<u32, u32>,
    idle: Idle,
    crowd: Crowd,
    counts: Counts,
    lens: Option<Lens>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    switches: u64,
    wakeups: u64,
    clock_events: u64,
    misfits: u64,
    untold: u64,
    lost: u64,
    losses: u64,
}

/// What has happened.
#[derive(Debug)]
pub struct Walked {
    /// Where CPUs belong.
    pub layout: Layout,
    /// The CPUs that were seen.
    pub cpus: Vec<CpuSeen>,
    /// All threads, those before their children.
    pub threads: Vec<Thread>,
    /// Runnable threads.
    pub crowd: Crowd,
    /// From the first event to the last one.
    duration_ns: u64,
    /// Switches.
    pub switches: u64,
    /// Wake-ups.
    pub wakeups: u64,
    /// Changes of clocks.
    pub clock_events: u64,
    /// Events that did not fit those before.
    pub misfits: u64,
    /// Switches from an idle CPU to a thread that were not told.
    pub untold: u64,
    /// Events that were lost.
    pub lost: u64,
    /// What has looked at one thread.
    pub lens: Option<Lens>,
}

impl Walked {
    /// From the first event to the last one.
    pub fn duration_ns(&self) -> u64 {
        self.duration_ns
    }
}

impl<'a> Walk<'a> {
    /// Nothing has happened.
    pub fn new(layout: Layout, names: &'a Names) -> Self {
        let ranks = layout.rank_count();
        Self {
            cpus: vec![Cpu::default(); layout.cpus()],
            layout,
            names,
            begin_ns: 0,
            now_ns: 0,
            threads: Vec::new(),
            by_tid: HashMap::new(),
            idle: Idle::new(ranks),
            crowd: Crowd::default(),
            counts: Counts::default(),
            lens: None,
        }
    }

    /// The same, while a lens looks at one thread.
    pub fn with_lens(self, lens: Lens) -> Self {
        Self { lens: Some(lens), ..self }
    }

    /// All events, which come in the order of time.
    pub fn through(mut self, events: &[Raw]) -> Walked {
        self.begin_ns = events.first().map_or(0, |raw| raw.at_ns);
        self.begin(events);
        for raw in events {
            self.see(raw);
        }
        for cpu in 0..self.cpus.len() {
            self.settle(cpu as u16, self.now_ns);
        }
        self.crowd.advance(self.now_ns);
        for thread in &mut self.threads {
            if let State::Ready { since_ns, losses, .. } = thread.state
                && losses == self.counts.losses
            {
                let ns = self.now_ns - since_ns;
                thread.seen.longest_wait_ns = thread.seen.longest_wait_ns.max(ns);
                thread.worst.note(Bad::Wait, ns, self.now_ns);
            }
            thread.load.finish(&self.layout, self.now_ns);
        }
        let seen = |(cpu, found): (usize, Cpu)| CpuSeen {
            cpu: cpu as u16,
            cluster: self.layout.cluster(cpu as u16),
            ..found.into_seen()
        };
        let cpus = self.cpus.into_iter().enumerate().filter(|(_, cpu)| cpu.is_seen).map(seen);
        let Counts { switches, wakeups, clock_events, misfits, untold, lost, .. } = self.counts;
        Walked {
            cpus: cpus.collect(),
            layout: self.layout,
            threads: self.threads,
            crowd: self.crowd,
            duration_ns: self.now_ns,
            switches,
            wakeups,
            clock_events,
            misfits,
            untold,
            lost,
            lens: self.lens,
        }
    }

    /// Each CPU is at the begin at what its first switch takes off, unless that thread was elsewhere meanwhile.
    fn begin(&mut self, events: &[Raw]) {
        let mut is_over = vec![false; self.cpus.len()];
        let mut met = HashSet::new();
        for raw in events {
            let is_first = |is_over: &mut Vec<bool>| {
                !std::mem::replace(&mut is_over[usize::from(raw.cpu)], true)
            };
            match raw.what {
                What::Switch { from, to, .. } => {
                    let is_new = from != WHOEVER_RUNS && (from == 0 || met.insert(from));
                    met.insert(to);
                    if is_first(&mut is_over) && is_new {
                        let place = self.thread(from);
                        self.turn(raw.cpu, place.map_or(At::Idle, At::Thread));
                        if let Some(place) = place {
                            self.change(place, State::Running(raw.cpu));
                            self.threads[place as usize].cpu = Some(raw.cpu);
                        }
                    }
                }
                What::New { child, .. } => {
                    met.insert(child);
                }
                What::Lost { .. } => is_over[usize::from(raw.cpu)] = true,
                _ => {}
            }
        }
    }

    /// Takes an event, and lets the lens look at it.
    fn see(&mut self, raw: &Raw) {
        self.now_ns = raw.at_ns - self.begin_ns;
        let Some(mut lens) = self.lens.take() else { return self.tell(raw) };
        let thread = self.thread_at(lens.place());
        lens.before(self.now_ns, thread);
        let was = thread.map_or((State::Unknown, None), |thread| (thread.state, thread.cpu));
        self.tell(raw);
        lens.after(self, raw, was, self.now_ns);
        self.lens = Some(lens);
    }

    fn tell(&mut self, raw: &Raw) {
        self.idle.advance(self.now_ns);
        match raw.what {
            What::Switch { from, from_name, left, to, to_name, .. } => {
                self.counts.switches += 1;
                self.leave(raw.cpu, (from, from_name), left);
                self.enter(raw.cpu, to, to_name);
            }
            What::Waking { woken, name, is_late } => self.waking(woken, name, is_late),
            What::New { parent, child, name, is_thread } => {
                let creator = parent.or(Some(raw.tid).filter(|tid| *tid != WHOEVER_RUNS));
                self.create(creator, child, name, is_thread);
            }
            What::Exec { tid, old_tid, file } => self.exec(tid, old_tid, file),
            What::Rename { tid, name } => self.rename(tid, name),
            What::Lost { events } => self.lose(raw.cpu, events),
            What::Frequency { cpu, khz } => {
                self.counts.clock_events += 1;
                for index in 0..=self.layout.followers(cpu).len() {
                    let of =
                        index.checked_sub(1).map_or(cpu, |place| self.layout.followers(cpu)[place]);
                    self.settle(of, self.now_ns);
                    self.cpus[usize::from(of)].khz = Some(khz);
                }
            }
            What::Idle { cpu, state } => {
                self.settle(cpu, self.now_ns);
                self.cpus[usize::from(cpu)].idle_state = state;
            }
            _ => {}
        }
    }

    /// The place of a thread, a new one if it was never seen; none for the idle thread.
    fn thread(&mut self, tid: u32) -> Option<u32> {
        if tid == 0 || tid == WHOEVER_RUNS {
            return None;
        }
        Some(match self.by_tid.get(&tid) {
            Some(&place) => place,
            None => self.add(tid),
        })
    }

    fn add(&mut self, tid: u32) -> u32 {
        let place = self.threads.len() as u32;
        self.threads.push(Thread { tid, ..Thread::default() });
        self.by_tid.insert(tid, place);
        place
    }

    fn rename(&mut self, tid: u32, name: Name) {
        if let Some(place) = self.thread(tid) {
            self.threads[place as usize].rename(name, self.names.text(name));
        }
    }

    /// The thread that executes takes the number of its process.
    fn exec(&mut self, tid: u32, old_tid: u32, file: Name) {
        if old_tid != tid && old_tid != 0 {
            if let Some(place) = self.by_tid.remove(&old_tid) {
                self.threads[place as usize].tid = tid;
                self.by_tid.insert(tid, place);
            }
        }
        self.rename(tid, file);
    }

    /// Books a CPU's time up to a moment, and that of its thread.
    fn settle(&mut self, cpu: u16, until_ns: u64) {
        let rank = self.layout.rank(cpu);
        let found = &mut self.cpus[usize::from(cpu)];
        if let At::Thread(place) = found.at {
            let capacity = self.layout.capacity(cpu, found.khz);
            let times_ns = (found.mark_ns, until_ns);
            self.threads[place as usize].run(&self.layout, cpu, times_ns, capacity);
        }
        found.settle(until_ns, self.idle.beside(rank));
    }

    /// A CPU is at something else from where its time is booked on.
    fn turn(&mut self, cpu: u16, at: At) {
        let rank = self.layout.rank(cpu);
        let before = self.cpus[usize::from(cpu)].turn(at, self.idle.beside(rank));
        if (before == At::Idle) != (at == At::Idle) {
            self.idle.change(rank, at == At::Idle);
        }
    }

    fn change(&mut self, place: u32, state: State) {
        let before = std::mem::replace(&mut self.threads[place as usize].state, state);
        if before.is_runnable() != state.is_runnable() {
            self.crowd.change(self.now_ns, state.is_runnable());
        }
        if matches!(state, State::Ready { .. }) {
            let (cpus, idle, layout) = (&self.cpus, &self.idle, &self.layout);
            let beside = &mut self.threads[place as usize].beside;
            beside.clear();
            beside.extend(
                (0..).zip(cpus).map(|(cpu, found)| found.beside(idle.beside(layout.rank(cpu)))),
            );
        }
    }

    /// A thread leaves a CPU, or nothing does.
    fn leave(&mut self, cpu: u16, from: (u32, Name), left: Left) {
        let now_ns = self.now_ns;
        let was = self.cpus[usize::from(cpu)].at;
        let told = match from.0 {
            WHOEVER_RUNS => was,
            tid => self.thread(tid).map_or(At::Idle, At::Thread),
        };
        if was != told {
            self.fit(cpu, was, told);
        }
        self.settle(cpu, now_ns);
        self.cpus[usize::from(cpu)].is_seen = true;
        let At::Thread(place) = told else { return };
        let thread = &mut self.threads[place as usize];
        thread.rename(from.1, self.names.text(from.1));
        thread.cpu = Some(cpu);
        let woken_ns = thread.woken_running_ns.take();
        let mut state = State::after(left, now_ns, self.counts.losses);
        if left == Left::Ready {
            thread.seen.preemptions += 1;
            thread.worst.note(Bad::Preemption, 1, now_ns);
        } else if state == State::Blocked && woken_ns.is_some_and(|at_ns| now_ns - at_ns < RACE_NS)
        {
            state = State::Ready { since_ns: now_ns, is_woken: true, losses: self.counts.losses };
        }
        self.change(place, state);
    }

    /// What was there is not what leaves.
    fn fit(&mut self, cpu: u16, was: At, told: At) {
        if let At::Thread(place) = told {
            self.evict(place, cpu);
        }
        match (was, told) {
            (At::Unknown, _) => {}
            (At::Idle, At::Thread(place)) => {
                self.counts.untold += 1;
                let mark_ns = self.cpus[usize::from(cpu)].mark_ns;
                let since_ns = match self.threads[place as usize].state {
                    State::Ready { since_ns, .. } => since_ns.max(mark_ns),
                    _ => mark_ns,
                };
                self.settle(cpu, since_ns);
                self.turn(cpu, told);
                self.arrive(place, cpu);
            }
            _ => {
                self.counts.misfits += 1;
                if let At::Thread(other) = was {
                    self.change(other, State::Unknown);
                }
                self.turn(cpu, At::Unknown);
            }
        }
    }

    /// A thread is elsewhere: its CPU is at something that nobody has told.
    fn evict(&mut self, place: u32, cpu: u16) {
        if let State::Running(other) = self.threads[place as usize].state
            && other != cpu
        {
            self.counts.misfits += 1;
            self.turn(other, At::Unknown);
        }
    }

    fn enter(&mut self, cpu: u16, to: u32, name: Name) {
        let Some(place) = self.thread(to) else { return self.turn(cpu, At::Idle) };
        self.evict(place, cpu);
        let rank = self.layout.rank(cpu);
        let beside = self.cpus[usize::from(cpu)].beside(self.idle.beside(rank));
        self.turn(cpu, At::Thread(place));
        let thread = &mut self.threads[place as usize];
        thread.rename(name, self.names.text(name));
        if let State::Ready { since_ns, is_woken, losses } = thread.state
            && losses == self.counts.losses
        {
            let before = thread.beside.get(usize::from(cpu)).copied().unwrap_or(beside);
            let beside = [beside[0] - before[0], beside[1] - before[1]];
            thread.wait((since_ns, self.now_ns), is_woken, beside);
        }
        self.arrive(place, cpu);
    }

    /// A thread has a CPU.
    fn arrive(&mut self, place: u32, cpu: u16) {
        let cluster = self.layout.cluster(cpu);
        let thread = &mut self.threads[place as usize];
        if let Some(last) = thread.cpu.filter(|last| *last != cpu) {
            let is_far = u64::from(self.layout.cluster(last) != cluster);
            thread.seen.migrations += 1;
            thread.seen.cluster_migrations += is_far;
            thread.worst.note(Bad::Migration, 1, self.now_ns);
            thread.worst.note(Bad::ClusterMigration, is_far, self.now_ns);
        }
        thread.arrive(cpu, self.now_ns);
        self.change(place, State::Running(cpu));
    }

    fn waking(&mut self, woken: u32, name: Name, is_late: bool) {
        let Some(place) = self.thread(woken) else { return };
        let thread = &mut self.threads[place as usize];
        thread.rename(name, self.names.text(name));
        match thread.state {
            State::Running(_) => thread.woken_running_ns = Some(self.now_ns),
            State::Ready { .. } if is_late => {}
            State::Ready { is_woken: false, .. } => {}
            _ => {
                self.counts.wakeups += 1;
                let losses = self.counts.losses;
                let since_ns = self.now_ns;
                self.change(place, State::Ready { since_ns, is_woken: true, losses });
            }
        }
    }

    fn create(&mut self, parent: Option<u32>, child: u32, name: Name, is_thread: Option<bool>) {
        let parent = parent.and_then(|tid| self.thread(tid));
        if child == 0 || child == WHOEVER_RUNS {
            return;
        }
        let known = self.by_tid.get(&child).copied();
        // Two events may tell the same creation.
        let same = known.filter(|place| {
            let thread = &self.threads[*place as usize];
            thread.parent.is_some() && thread.parent == parent && thread.cpu.is_none()
        });
        let place = same.unwrap_or_else(|| self.add(child));
        let of_parent = parent.map(|parent| {
            let thread = &self.threads[parent as usize];
            thread.of_parent.filter(|_| thread.is_thread == Some(true)).unwrap_or(thread.tid)
        });
        let thread = &mut self.threads[place as usize];
        (thread.parent, thread.of_parent) = (parent, of_parent);
        thread.is_thread = thread.is_thread.or(is_thread);
        thread.rename(name, self.names.text(name));
        if same.is_none() {
            let (since_ns, losses) = (self.now_ns, self.counts.losses);
            self.change(place, State::Ready { since_ns, is_woken: false, losses });
        }
    }

    fn lose(&mut self, cpu: u16, events: u64) {
        self.counts.lost = self.counts.lost.saturating_add(events);
        self.counts.losses += 1;
        if let At::Thread(place) = self.cpus[usize::from(cpu)].at {
            self.change(place, State::Unknown);
        }
        self.turn(cpu, At::Unknown);
        self.settle(cpu, self.now_ns);
    }
}
