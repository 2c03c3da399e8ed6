//! Scheduler events in the order of time become what each thread did.
//!
//! A thread uses CPU from the switch to it until the switch away from it; the slices between two of its events, each
//! weighted by the speed of its core, are summed. It is blocked from a switch away in a state that is not ready until
//! the wake-up of it; from there on it waits for a core, which is the scheduler's doing and not part of the recording.
//! Events that do not fit together (a thread that runs twice, or leaves a core that it was not on) are counted.

use std::collections::HashMap;

use super::Window;
use super::clocks::Clocks;
use super::event::{Ask, Context, Left, Name, Names, Raw, WHOEVER_RUNS, What};
use super::missing::Seen;
use super::track::{Call, Track};
use crate::{Kind, UNKNOWN_CORE, Wake};

/// Units of a speed: millionths of the fastest core's.
pub const SPEED_UNITS: u64 = 1_000_000;
/// Longest from the end of a block to the end of a call of which the begin was not recorded (ours): a return takes
/// some 5 us, and more than this where a virtual machine is slow.
const RETURN_NS: u64 = 100_000;
/// Most cores of a trace (ours): as many as a recording can name.
const CPUS_MAX: usize = UNKNOWN_CORE as usize;

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    current: Option<u32>,
    is_known: bool,
    is_in_timer: bool,
    /// The last event here.
    last_ns: u64,
}

/// Builds tracks of events that come in the order of time.
#[derive(Debug)]
pub struct Builder<'a> {
    names: &'a Names,
    clocks: &'a Clocks,
    /// Speed of each core at its clock of the moment, in millionths.
    rates: Vec<u64>,
    tracks: Vec<Track>,
    by_tid: HashMap<u32, u32>,
    cpus: Vec<Cpu>,
    begin_ns: Option<u64>,
    until_ns: Option<u64>,
    seen: Seen,
}

/// What a builder has made.
#[derive(Debug)]
pub struct Built {
    /// The threads, in the order in which they were seen first.
    pub tracks: Vec<Track>,
    /// Kinds of events.
    pub seen: Seen,
    /// The highest core that was seen, and one.
    pub cores: usize,
}

impl<'a> Builder<'a> {
    /// A builder that knows nobody yet. `clocks`: how fast cores are. `window`: what is known of those who were there
    /// before the trace.
    pub fn new(names: &'a Names, clocks: &'a Clocks, window: Option<&Window>) -> Self {
        let mut found = Self {
            names,
            clocks,
            rates: Vec::new(),
            tracks: Vec::new(),
            by_tid: HashMap::new(),
            cpus: Vec::new(),
            begin_ns: window.map(|window| window.since_ns),
            until_ns: window.and_then(|window| window.until_ns),
            seen: Seen::default(),
        };
        if let Some(window) = window {
            for &(tid, process) in &window.threads {
                let index = found.add(tid) as usize;
                found.tracks[index].since_ns = Some(window.since_ns);
                found.tracks[index].process = Some(process);
            }
        }
        found
    }

    /// Takes the next event. One at an earlier time than that before it is taken as if it were at that time.
    pub fn tell(&mut self, raw: &Raw) {
        if usize::from(raw.cpu) >= CPUS_MAX {
            return;
        }
        self.begin_ns.get_or_insert(raw.at_ns);
        let cpu = usize::from(raw.cpu);
        self.know(cpu);
        if raw.what.is_remark() {
            return self.remark(raw);
        }
        let tid = if raw.tid == WHOEVER_RUNS { self.tid_on(cpu) } else { raw.tid };
        if !matches!(raw.what, What::Switch { .. } | What::Rename { .. } | What::Lost { .. }) {
            match self.track(tid) {
                Some(track) => self.run_until(track, raw.at_ns, raw.cpu),
                None => self.put_off_other(None, raw.cpu),
            }
        }
        self.tell_what(raw, tid);
        self.cpus[cpu].last_ns = raw.at_ns;
    }

    /// There is a core of that number.
    fn know(&mut self, cpu: usize) {
        if self.cpus.len() <= cpu {
            self.cpus.resize(cpu + 1, Cpu::default());
            let known = self.rates.len()..=cpu;
            self.rates.extend(known.map(|core| self.clocks.begin_speed(core)));
        }
    }

    /// Takes an event that says nothing of who runs where it was told.
    fn remark(&mut self, raw: &Raw) {
        match raw.what {
            What::Frequency { cpu, khz } if usize::from(cpu) < CPUS_MAX => {
                let clocks = self.clocks;
                for &core in clocks.cores_with(&cpu) {
                    self.settle(core, raw.at_ns);
                    self.rates[usize::from(core)] = clocks.speed(usize::from(core), khz);
                }
            }
            What::Asks { tid, ask } => {
                let Some(index) = self.track(tid) else { return };
                if let Some((_, core)) = self.tracks[index as usize].running {
                    self.settle(core, raw.at_ns);
                }
                self.tracks[index as usize].asks(ask);
            }
            What::BlockedReason { tid, is_storage } => {
                if let Some(track) = self.track(tid) {
                    self.tracks[track as usize].blocked_because(is_storage);
                }
            }
            _ => {}
        }
    }

    /// Adds the CPU time of who runs on a core up to now, for it goes on at another speed or priority.
    fn settle(&mut self, core: u16, at_ns: u64) {
        self.know(usize::from(core));
        let Some(index) = self.cpus[usize::from(core)].current else { return };
        let runs = self.tracks[index as usize].running.is_some_and(|(_, on)| on == core);
        if runs {
            self.run_until(index, at_ns, core);
        }
    }

    fn tell_what(&mut self, raw: &Raw, tid: u32) {
        let cpu = usize::from(raw.cpu);
        match raw.what {
            What::Switch { from, from_name, left, to, to_name, prios } => {
                self.seen.switches += 1;
                let from = if from == WHOEVER_RUNS { tid } else { from };
                self.leave(raw, (from, from_name, prios[0]), left);
                self.enter(raw, (to, to_name, prios[1]));
            }
            What::Waking { woken, name, is_late } => self.waking(raw, tid, woken, name, is_late),
            What::New { parent, child, name, is_thread } => {
                self.seen.creations += 1;
                self.create(raw, parent.unwrap_or(tid), child, name, is_thread);
            }
            What::Exec { tid, old_tid, file } => self.exec(tid, old_tid, file),
            What::Rename { tid, name } => {
                if let Some(track) = self.track(tid) {
                    self.rename(track, name);
                }
            }
            What::Exit { tid } => {
                if let Some(track) = self.track(tid) {
                    let track = &mut self.tracks[track as usize];
                    track.is_exiting = true;
                    track.woke_before = std::mem::take(&mut track.woke);
                }
            }
            What::CallEnter { futex } => {
                self.seen.futexes += u64::from(futex.is_some());
                if let Some(index) = self.track(tid) {
                    let track = &mut self.tracks[index as usize];
                    track.call = Some(Call { futex, first: track.events.len() });
                }
            }
            What::CallExit => {
                self.leave_call(tid);
            }
            What::TimedOut => self.timed_out(tid, raw.at_ns),
            What::TimerBegin => {
                self.seen.timers += 1;
                self.cpus[cpu].is_in_timer = true;
            }
            What::TimerEnd => self.cpus[cpu].is_in_timer = false,
            What::Lost { events } => self.lose(raw, events),
            What::Frequency { .. }
            | What::FrequencyLimits { .. }
            | What::Idle { .. }
            | What::Asks { .. }
            | What::Away { .. }
            | What::Isolated { .. }
            | What::BlockedReason { .. }
            | What::InterruptBegin
            | What::InterruptEnd
            | What::SliceBegin { .. }
            | What::SliceEnd => {}
        }
    }

    /// Ends the building: who runs at the end of the window has run up to there.
    pub fn finish(mut self) -> Built {
        for cpu in 0..self.cpus.len() {
            if let (Some(index), Some(until_ns)) = (self.cpus[cpu].current, self.until_ns) {
                self.run_until(index, until_ns.max(self.cpus[cpu].last_ns), cpu as u16);
            }
        }
        for index in 0..self.tracks.len() {
            if self.tracks[index].is_exiting && !self.tracks[index].has_ended {
                let at_ns = self.tracks[index].last_ns;
                self.end(index as u32, at_ns);
            }
        }
        Built { tracks: self.tracks, seen: self.seen, cores: self.cpus.len() }
    }

    fn tid_on(&self, cpu: usize) -> u32 {
        self.cpus[cpu].current.map_or(0, |track| self.tracks[track as usize].tid)
    }

    /// The track of a thread, a new one if it was never seen; none for the idle thread.
    fn track(&mut self, tid: u32) -> Option<u32> {
        if tid == 0 || tid == WHOEVER_RUNS {
            return None;
        }
        Some(match self.by_tid.get(&tid) {
            Some(&track) => track,
            None => self.add(tid),
        })
    }

    fn add(&mut self, tid: u32) -> u32 {
        let index = self.tracks.len() as u32;
        self.tracks.push(Track { tid, ..Track::default() });
        if let Some(before) = self.by_tid.insert(tid, index) {
            // Its number was free: it was not there at the begin, or has ended.
            self.tracks[before as usize].since_ns = None;
        }
        index
    }

    fn rename(&mut self, track: u32, name: Name) {
        let track = &mut self.tracks[track as usize];
        let text = self.names.text(name);
        if track.name == name || text.is_empty() || text.starts_with("<...>") {
            return;
        }
        track.name = name;
        if !track.names.contains(&name) {
            track.names.push(name);
        }
    }

    /// Adds the CPU time that a running thread has used up to an event.
    fn run_until(&mut self, index: u32, at_ns: u64, core: u16) {
        let speed = self.rates[usize::from(core)];
        let cpu = self.cpus[usize::from(core)];
        self.put_off_other(Some(index), core);
        let track = &mut self.tracks[index as usize];
        track.last_ns = track.last_ns.max(at_ns);
        if track.has_ended {
            return;
        }
        if track.running.is_none_or(|(_, on)| on != core) {
            // Nobody has told that it came here. On a core of which nothing is known it has run since the
            // trace's begin, or since events were lost; else since it was woken.
            let is_new = track.events.is_empty() && track.parent.is_none();
            let woken_ns = track.waker.map_or(0, |(_, at_ns)| at_ns);
            let since_ns = match cpu.is_known {
                false if is_new => self.begin_ns.unwrap_or(at_ns).max(cpu.last_ns),
                _ => cpu.last_ns.max(woken_ns).max(track.blocked.map_or(0, |(at_ns, _)| at_ns)),
            };
            let was_idle =
                cpu.is_known && cpu.current.is_none() && track.running.is_none() && !is_new;
            track.unseen += u64::from(was_idle);
            track.misfits += u64::from(!was_idle && (cpu.is_known || !is_new));
            track.arrive(since_ns.min(at_ns), core);
        }
        if let Some((since_ns, _)) = track.running {
            track.use_cpu(at_ns.saturating_sub(since_ns), speed);
            track.running = Some((at_ns.max(since_ns), core));
        }
        let cpu = &mut self.cpus[usize::from(core)];
        cpu.current = Some(index);
        cpu.is_known = true;
    }

    /// Whoever else was on a core has left it, untold.
    fn put_off_other(&mut self, index: Option<u32>, core: u16) {
        let current = &mut self.cpus[usize::from(core)].current;
        if let Some(other) = current.take_if(|other| Some(*other) != index) {
            let other = &mut self.tracks[other as usize];
            if other.running.is_some_and(|(_, at)| at == core) {
                other.running = None;
                other.misfits += 1;
            }
        }
    }

    fn leave(&mut self, raw: &Raw, (from, name, prio): (u32, Name, u8), left: Left) {
        let cpu = usize::from(raw.cpu);
        let index = self.track(from);
        self.put_off_other(index, raw.cpu);
        if let Some(index) = index {
            self.rename(index, name);
            self.tracks[index as usize].asks(Ask::Priority(prio));
            self.run_until(index, raw.at_ns, raw.cpu);
            let track = &mut self.tracks[index as usize];
            track.running = None;
            match left {
                Left::Ready => track.is_preempted = true,
                Left::Sleeps
                | Left::WaitsForDevice
                | Left::WaitsForStorage
                | Left::WaitsInKernel => {
                    track.blocked = Some((raw.at_ns, left));
                    track.woke.clear();
                }
                Left::Dead => self.end(index, raw.at_ns),
            }
        }
        self.cpus[cpu] =
            Cpu { current: None, is_known: true, is_in_timer: false, last_ns: raw.at_ns };
    }

    fn enter(&mut self, raw: &Raw, (to, name, prio): (u32, Name, u8)) {
        let Some(index) = self.track(to) else { return };
        self.rename(index, name);
        self.cpus[usize::from(raw.cpu)].current = Some(index);
        let track = &mut self.tracks[index as usize];
        track.asks(Ask::Priority(prio));
        if track.has_ended {
            return;
        }
        track.last_ns = track.last_ns.max(raw.at_ns);
        if track.running.is_some_and(|(_, core)| core != raw.cpu) {
            track.misfits += 1;
        }
        track.arrive(raw.at_ns, raw.cpu);
    }

    fn waking(&mut self, raw: &Raw, tid: u32, woken: u32, name: Name, is_late: bool) {
        let Some(target) = self.track(woken) else { return };
        self.rename(target, name);
        if is_late && self.tracks[target as usize].waker.is_some() {
            return;
        }
        self.seen.wakings += 1;
        let is_unclear = raw.context == Context::Unknown && tid != 0;
        self.seen.unclear_wakings += u64::from(is_unclear);
        let waker = (raw.context != Context::Interrupt).then(|| self.track(tid)).flatten();
        let wake = match waker {
            Some(waker) => {
                let call = self.tracks[waker as usize].call;
                let woken_in_call = call.is_some_and(|call| call.futex.is_some());
                let waker_track = &mut self.tracks[waker as usize];
                waker_track.note(Kind::Wake, raw.at_ns, raw.cpu).object = target;
                if !woken_in_call && !waker_track.woke.contains(&target) {
                    waker_track.woke.push(target);
                }
                Wake::Thread(waker)
            }
            None if is_late => Wake::Unknown,
            None if self.cpus[usize::from(raw.cpu)].is_in_timer => Wake::Timer,
            None => Wake::Outside,
        };
        self.tracks[target as usize].wake(wake, raw.at_ns);
    }

    fn create(&mut self, raw: &Raw, parent: u32, child: u32, name: Name, is_thread: Option<bool>) {
        let parent = self.track(parent);
        let is_known = self.by_tid.get(&child).is_some_and(|&track| {
            let track = &self.tracks[track as usize];
            !track.has_ended && track.parent.is_some() && track.parent == parent
        });
        if child == 0 || child == WHOEVER_RUNS || parent.is_none() {
            return;
        }
        // Two events may tell the same creation.
        if !is_known || is_thread.is_some() && self.is_settled(child) {
            let index = self.add(child);
            self.tracks[index as usize].parent = parent;
            if let Some(parent) = parent {
                let track = &mut self.tracks[parent as usize];
                track.note(Kind::Create, raw.at_ns, raw.cpu).object = index;
            }
        }
        let index = self.by_tid[&child];
        self.rename(index, name);
        let track = &mut self.tracks[index as usize];
        track.last_ns = raw.at_ns;
        track.is_thread = track.is_thread.or(is_thread);
    }

    /// Whether a thread's creation has been told in full: its number is that of another thread by now.
    fn is_settled(&self, tid: u32) -> bool {
        self.tracks[self.by_tid[&tid] as usize].is_thread.is_some()
    }

    fn exec(&mut self, tid: u32, old_tid: u32, file: Name) {
        if old_tid != tid && old_tid != 0 {
            // The thread that executes takes the number of its process; the others end.
            if let Some(index) = self.by_tid.remove(&old_tid) {
                self.tracks[index as usize].tid = tid;
                self.by_tid.insert(tid, index);
            }
        }
        if let Some(index) = self.track(tid) {
            let track = &mut self.tracks[index as usize];
            track.has_executed = true;
            track.executed = Some(file);
            if !track.names.contains(&file) {
                track.names.push(file);
            }
        }
    }

    fn end(&mut self, index: u32, at_ns: u64) {
        let track = &mut self.tracks[index as usize];
        if track.has_ended {
            return;
        }
        let core = track.core.unwrap_or(UNKNOWN_CORE);
        track.start(at_ns, core);
        track.note(Kind::Exit, at_ns, core);
        track.has_ended = true;
        track.running = None;
        let before = std::mem::take(&mut track.woke_before);
        let woke = std::mem::take(&mut track.woke);
        for target in if woke.is_empty() { before } else { woke } {
            self.join(target, index);
        }
    }

    /// A thread was woken by one that ended with it: the block was waiting for its end.
    fn join(&mut self, waiting: u32, ended: u32) {
        let is_child = self.tracks[ended as usize].parent == Some(waiting);
        let track = &mut self.tracks[waiting as usize];
        let by_it = Wake::Thread(ended).to_aux();
        let last = track.events.iter_mut().rev().take(4).find(|event| event.kind == Kind::Block);
        match last {
            Some(block) if is_child && block.aux == by_it => {
                block.kind = Kind::Join;
                block.object = ended;
                block.aux = 0;
            }
            _ if is_child && track.blocked.is_some() => track.joins = Some(ended),
            _ => {}
        }
    }

    /// Its track, and the call that it leaves, if that was seen to begin.
    fn leave_call(&mut self, tid: u32) -> Option<(&mut Track, Option<Call>)> {
        let index = self.track(tid)?;
        let track = &mut self.tracks[index as usize];
        let call = track.call.take();
        Some((track, call))
    }

    /// A call ends because its time was over: so did the block in it, or the one that has just ended if nobody saw the
    /// call begin.
    fn timed_out(&mut self, tid: u32, at_ns: u64) {
        self.seen.timers += 1;
        let Some((track, call)) = self.leave_call(tid) else { return };
        let count = track.events.len();
        if let Some(event) = track.events.last_mut() {
            let is_open = matches!(Wake::from_aux(event.aux), Wake::Outside | Wake::Unknown);
            let is_of_call = match call {
                Some(call) => count > call.first,
                None => at_ns.saturating_sub(event.at_ns) < RETURN_NS,
            };
            if event.kind == Kind::Block && is_open && is_of_call {
                event.aux = Wake::Timer.to_aux();
            }
        }
    }

    fn lose(&mut self, raw: &Raw, events: u64) {
        self.seen.lost = self.seen.lost.saturating_add(events);
        let cpu = &mut self.cpus[usize::from(raw.cpu)];
        let current = cpu.current.take();
        *cpu = Cpu { last_ns: raw.at_ns, ..Cpu::default() };
        if let Some(index) = current {
            self.tracks[index as usize].running = None;
        }
    }
}
