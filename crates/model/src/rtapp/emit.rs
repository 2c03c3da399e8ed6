//! Turns tasks into threads, objects and code.

use std::collections::{BTreeMap, BTreeSet};

use super::ast::{Change, Event, EventKind, Global, Phase, Repeat, Task};
use super::profiles::{INSTRUCTIONS_PER_BYTE, memory_writer};
use super::survey::Survey;
use crate::{
    Amount, CodePtr, CoreId, CoreSet, Ns, Object, ObjectId, ObjectKind, Op, Profile, ProfileId,
    SchedAttrs, TaskGroup, ThreadSpec, TimerMode,
};

/// Nanoseconds per microsecond.
const NS_PER_US: u64 = 1000;
/// CPU time of one `write` call on the core of the calibration: the order of magnitude of a system call.
pub(super) const WRITE_NS: u64 = 300;
/// Time that the I/O device needs for a byte: 100 MB/s, an embedded flash card's sequential writes.
pub(super) const DEVICE_NS_PER_BYTE: u64 = 10;
/// Devices that discard what is written to them at once.
const SINKS: [&str; 2] = ["/dev/null", "/dev/zero"];
/// More cores than a machine may have: the set of all cores, whatever the machine.
const ALL_CORES: usize = 4096;

/// Code, threads, objects and profiles of a program in the making.
pub(super) struct Generator<'a> {
    global: &'a Global,
    survey: &'a Survey,
    ids: BTreeMap<(&'static str, String), ObjectId>,
    /// Names of the file that objects have.
    names: BTreeSet<String>,
    /// Profile of the run loop is number 0; others by name.
    profile_ids: BTreeMap<String, ProfileId>,
    pub objects: Vec<Object>,
    pub profiles: Vec<Profile>,
    pub threads: Vec<ThreadSpec>,
    pub groups: Vec<TaskGroup>,
    pub code: Vec<Op>,
}

/// Profile of `run` and `runtime`.
const RUN: ProfileId = ProfileId(0);

/// Whether a device needs no time.
pub(super) fn is_sink(device: &str) -> bool {
    SINKS.contains(&device)
}

impl<'a> Generator<'a> {
    /// A generator for tasks that were surveyed.
    pub fn new(global: &'a Global, survey: &'a Survey, run_loop: Profile) -> Self {
        Self {
            global,
            survey,
            ids: BTreeMap::new(),
            names: BTreeSet::new(),
            profile_ids: BTreeMap::new(),
            objects: Vec::new(),
            profiles: vec![run_loop],
            threads: Vec::new(),
            groups: Vec::new(),
            code: Vec::new(),
        }
    }

    /// Adds a task.
    pub fn task(&mut self, index: usize, task: &Task) {
        let cores: Vec<Option<&CoreSet>> =
            task.phases.iter().map(|phase| phase.cpus.as_ref().or(task.cpus.as_ref())).collect();
        let [uclamp_min, uclamp_max] = task.attrs.uclamp;
        let group = task.attrs.group.as_deref().and_then(|path| self.group(path));
        let (class, slice_ns) = (task.attrs.class, task.attrs.slice_ns);
        let attrs = SchedAttrs { class, slice_ns, uclamp_min, uclamp_max, group };
        self.threads.push(ThreadSpec {
            name: task.name.clone(),
            entry: self.here(),
            count: task.instances,
            nice: task.attrs.nice,
            affinity: cores[0].cloned(),
            start_ns: task.delay.as_ref().map_or(0, |(us, _)| nanoseconds(*us)),
            attrs,
            is_daemon: false,
            process: 0,
        });
        self.start_timers(index, task);
        self.repeated(task.repeat, |generator| {
            let mut before = if task.repeat.is_loop() { cores[cores.len() - 1] } else { cores[0] };
            for (phase, cores) in task.phases.iter().zip(&cores) {
                if *cores != before {
                    generator.code.push(Op::SetAffinity(cores.cloned().unwrap_or_else(all_cores)));
                }
                before = *cores;
                generator.phase(index, task, phase);
            }
        });
        self.code.push(Op::Exit);
    }

    /// rt-app counts a timer's first period from the start of the thread, not from its first use: a
    /// period of no length at the start makes the timer begin there.
    fn start_timers(&mut self, index: usize, task: &Task) {
        let mut names = BTreeSet::new();
        for event in task.events() {
            if let EventKind::Timer { name, .. } = &event.kind {
                if !self.survey.is_shared(index, name) && names.insert(name) {
                    let timer = self.timer(index, name);
                    self.code.push(Op::TimerWait {
                        timer,
                        period_ns: 0,
                        mode: TimerMode::Absolute,
                    });
                }
            }
        }
    }

    /// What a phase changes about the scheduling of its thread; nothing for what no phase of the thread ever changes.
    fn change(&mut self, task: &Task, change: &Change) {
        if let Some(nice) = change.nice {
            self.code.push(Op::SetNice(nice));
        }
        if let Some(class) = change.class.filter(|_| task.has_classes()) {
            self.code.push(Op::SetClass(class));
        }
        if let Some(slice_ns) = change.slice_ns.filter(|_| task.has_slices()) {
            self.code.push(Op::SetSlice(slice_ns));
        }
        let [min, max] = change.uclamp;
        if min.is_some() || max.is_some() {
            self.code.push(Op::SetUclamp { min, max });
        }
        if let Some(path) = &change.group {
            let group = self.group(path);
            self.code.push(Op::SetGroup(group));
        }
    }

    /// The number of a group, made when it is first named as rt-app does; none for the root group.
    fn group(&mut self, path: &str) -> Option<u16> {
        if path == "/" {
            return None;
        }
        let found = self.groups.iter().position(|group| group.path == path);
        let index = found.unwrap_or_else(|| {
            self.groups.push(TaskGroup::new(path));
            self.groups.len() - 1
        });
        Some(index as u16)
    }

    fn phase(&mut self, index: usize, task: &Task, phase: &Phase) {
        self.change(task, &phase.change);
        self.repeated(phase.repeat, |generator| {
            for event in &phase.events {
                generator.event(index, event);
            }
        });
    }

    /// A body in a loop, or by itself if it is executed once.
    fn repeated(&mut self, repeat: Repeat, body: impl FnOnce(&mut Self)) {
        let count = match repeat {
            Repeat::Times(1) => return body(self),
            Repeat::Times(times) => Amount::constant(f64::from(times)),
            // 2^64, which a draw turns into u64::MAX: for ever.
            Repeat::Forever => Amount::constant(u64::MAX as f64),
        };
        let head = self.code.len();
        self.code.push(Op::Loop { count: count.clone(), end: CodePtr(0) });
        let start = self.here();
        body(self);
        self.code.push(Op::LoopEnd { start });
        self.code[head] = Op::Loop { count, end: self.here() };
    }

    fn event(&mut self, index: usize, event: &Event) {
        match &event.kind {
            EventKind::Run(us) => self.run(nanoseconds(*us)),
            EventKind::Runtime(us) => {
                self.code.push(Op::Occupy { cpu_ns: amount(nanoseconds(*us)), profile: RUN });
            }
            EventKind::Sleep(us) => self.code.push(Op::Sleep(amount(nanoseconds(*us)))),
            EventKind::Mem(bytes) => self.write_memory(*bytes),
            EventKind::IoRun(bytes) => self.write_device(*bytes),
            EventKind::Timer { name, period_us, .. } => self.wait_timer(index, name, *period_us),
            EventKind::Lock(name) => self.with_mutex(name, Op::Lock),
            EventKind::Unlock(name) => self.with_mutex(name, Op::Unlock),
            EventKind::Wait { condition, mutex } => self.wait(condition, mutex),
            EventKind::Sync { condition, mutex, holds } => self.sync(condition, mutex, *holds),
            EventKind::Signal(name) => self.with_condition(name, Op::Signal),
            EventKind::Broadcast(name) => self.with_condition(name, Op::Broadcast),
            EventKind::Barrier(name) => {
                let kind = ObjectKind::Barrier { parties: self.survey.parties(name) };
                let barrier = self.object("barrier", name, kind);
                self.code.push(Op::Barrier(barrier));
            }
            EventKind::SemPost(name) => {
                let semaphore = self.semaphore(name);
                self.code.push(Op::SemPost(semaphore));
            }
            EventKind::SemWait(name) => {
                let semaphore = self.semaphore(name);
                self.code.push(Op::SemWait(semaphore));
            }
            EventKind::Suspend(name) => {
                self.with_mutex(name, Op::Lock);
                self.wait(name, name);
                self.with_mutex(name, Op::Unlock);
            }
            EventKind::Resume(name) => {
                self.with_mutex(name, Op::Lock);
                self.with_condition(name, Op::Broadcast);
                self.with_mutex(name, Op::Unlock);
            }
            EventKind::Yield => self.code.push(Op::Yield),
            EventKind::Fork(name) => {
                self.code.push(Op::Fork { thread: self.survey.task(name) as u32 });
            }
        }
    }

    fn run(&mut self, reference_ns: Ns) {
        self.code.push(Op::Run { reference_ns: amount(reference_ns), profile: RUN });
    }

    fn write_memory(&mut self, bytes: u32) {
        let profile = memory_writer(bytes.min(self.global.mem_buffer_bytes));
        let next = ProfileId::from(self.profiles.len());
        let id = *self.profile_ids.entry(profile.name.clone()).or_insert(next);
        if id == next {
            self.profiles.push(profile);
        }
        let instructions = (f64::from(bytes) * INSTRUCTIONS_PER_BYTE).ceil();
        let instructions = Amount::constant(instructions);
        self.code.push(Op::Compute { instructions, profile: id });
    }

    fn write_device(&mut self, bytes: u32) {
        let calls = bytes.div_ceil(self.global.mem_buffer_bytes);
        self.run(u64::from(calls) * WRITE_NS);
        if !is_sink(&self.global.io_device) {
            let kind = ObjectKind::Device { depth: 1, latency_ns: 0 };
            let device = self.object("device", &self.global.io_device, kind);
            let service_ns = amount(u64::from(bytes) * DEVICE_NS_PER_BYTE);
            self.code.push(Op::Io { device, service_ns });
        }
    }

    fn wait_timer(&mut self, index: usize, name: &str, period_us: u32) {
        let timer = self.timer(index, name);
        let mode = match self.survey.is_absolute(index, name) {
            true => TimerMode::Absolute,
            false => TimerMode::Relative,
        };
        self.code.push(Op::TimerWait { timer, period_ns: nanoseconds(period_us), mode });
    }

    fn wait(&mut self, condition: &str, mutex: &str) {
        let (condition, mutex) = (self.condition(condition), self.mutex(mutex));
        self.code.push(Op::Wait { condition, mutex });
    }

    /// The tutorial's `sync` locks and unlocks; rt-app's own leaves that to events around it.
    fn sync(&mut self, condition: &str, mutex: &str, holds: bool) {
        if holds {
            self.with_condition(condition, Op::Signal);
            return self.wait(condition, mutex);
        }
        let (condition, mutex) = (self.condition(condition), self.mutex(mutex));
        self.code.push(Op::SignalAndWait { condition, mutex });
    }

    fn with_mutex(&mut self, name: &str, op: fn(ObjectId) -> Op) {
        let mutex = self.mutex(name);
        self.code.push(op(mutex));
    }

    fn with_condition(&mut self, name: &str, op: fn(ObjectId) -> Op) {
        let condition = self.condition(name);
        self.code.push(op(condition));
    }

    fn mutex(&mut self, name: &str) -> ObjectId {
        self.object("mutex", name, ObjectKind::Mutex)
    }

    fn condition(&mut self, name: &str) -> ObjectId {
        self.object("condition", name, ObjectKind::Condition)
    }

    fn semaphore(&mut self, name: &str) -> ObjectId {
        self.object("semaphore", name, ObjectKind::Semaphore { initial: 0 })
    }

    fn timer(&mut self, index: usize, name: &str) -> ObjectId {
        let shared = self.survey.is_shared(index, name);
        self.object("timer", name, ObjectKind::Timer { shared })
    }

    /// The object of a class and name, made at its first use: a mutex and a condition of one name
    /// are two objects, as in rt-app. Only the first has the plain name.
    fn object(&mut self, class: &'static str, name: &str, kind: ObjectKind) -> ObjectId {
        let next = ObjectId::from(self.objects.len());
        let id = *self.ids.entry((class, name.to_owned())).or_insert(next);
        if id == next {
            let is_new = self.names.insert(name.to_owned());
            let name = if is_new { name.to_owned() } else { format!("{name} ({class})") };
            self.objects.push(Object::new(name, kind));
        }
        id
    }

    fn here(&self) -> CodePtr {
        CodePtr::from(self.code.len())
    }
}

fn nanoseconds(us: u32) -> Ns {
    u64::from(us) * NS_PER_US
}

fn amount(value: u64) -> Amount {
    Amount::constant(value as f64)
}

fn all_cores() -> CoreSet {
    (0..ALL_CORES).map(CoreId::from).collect()
}
