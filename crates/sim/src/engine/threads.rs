//! Threads: what each one executes, waits for and has done.

use std::ops::{Index, IndexMut};

use super::timeliness::Timeliness;
use ampsched_model::{AppId, CodePtr, CoreId, Draw, Ns, ObjectId, ThreadId};

/// What a thread is doing with the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Nothing: its next step is to be executed.
    Steps,
    /// Retiring instructions.
    Instructions,
    /// Using CPU time.
    CpuTime,
}

/// Loop or item that a thread is in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Frame {
    /// A counted loop with iterations left, the present one included.
    Loop { left: u64 },
    /// Work on an item of a queue; the thread's own stream of random numbers is put aside.
    Item { outer: Draw },
    /// Work on an iteration of a pool; `next..end` is the rest of the chunk.
    Iteration { pool: ObjectId, outer: Draw, use_number: u32, next: u64, end: u64 },
}

/// What a blocked thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitsFor {
    Nothing,
    Object(ObjectId),
    Children,
    Time,
    Resume,
}

/// Execution state of a thread.
#[derive(Debug)]
pub(super) struct Thread {
    pub work: Work,
    /// Profile of the present or last work, in the run's table.
    pub profile: u32,
    /// Instructions or ns left of the present work.
    pub remaining: u64,
    /// Instructions that its program has demanded so far.
    pub demanded: u64,
    pub app: AppId,
    pub spec: u32,
    /// The repetition of its application that it belongs to.
    pub repetition: u32,
    pub name: String,
    pub pc: CodePtr,
    pub draw: Draw,
    pub frames: Vec<Frame>,
    /// Mutexes that it holds.
    pub held: Vec<ObjectId>,
    /// Times that the thread has used up each pool.
    pool_uses: Vec<(ObjectId, u32)>,
    /// What it waits for, for reports.
    pub waits_for: WaitsFor,
    /// The core on which it ran before it began to wait for a device.
    pub io_core: Option<CoreId>,
    /// It uses its core while it waits; when that work is done, it blocks.
    pub spins: bool,
    /// Time on cores for which it has spun.
    pub spun_ns: Ns,
    /// A woken waiter of a condition still has to acquire the mutex.
    pub reacquiring: bool,
    pub parent: Option<ThreadId>,
    pub children: u32,
    /// Nice value, without its application's.
    pub nice: i8,
    /// Whether the policy has heard of it.
    pub is_known: bool,
    /// Times that it left a core to wait for something.
    pub voluntary: u64,
    /// Times that it lost a core to another thread while it could have gone on.
    pub involuntary: u64,
    pub start_ns: Ns,
    pub end_ns: Ns,
    pub timeliness: Timeliness,
}

/// What a new thread is told.
pub(super) struct NewThread {
    pub app: AppId,
    pub spec: u32,
    pub repetition: u32,
    pub name: String,
    pub entry: CodePtr,
    pub profile: u32,
    pub draw: Draw,
    pub parent: Option<ThreadId>,
    pub nice: i8,
}

impl Thread {
    /// A thread that has executed nothing yet.
    fn new(new: NewThread, now_ns: Ns) -> Self {
        Self {
            work: Work::Steps,
            profile: new.profile,
            remaining: 0,
            demanded: 0,
            app: new.app,
            spec: new.spec,
            repetition: new.repetition,
            name: new.name,
            pc: new.entry,
            draw: new.draw,
            frames: Vec::new(),
            held: Vec::new(),
            pool_uses: Vec::new(),
            waits_for: WaitsFor::Nothing,
            io_core: None,
            spins: false,
            spun_ns: 0,
            reacquiring: false,
            parent: new.parent,
            children: 0,
            nice: new.nice,
            is_known: false,
            voluntary: 0,
            involuntary: 0,
            start_ns: now_ns,
            end_ns: now_ns,
            timeliness: Timeliness::default(),
        }
    }

    /// Goes on to the next step.
    #[inline]
    pub fn next_step(&mut self) {
        self.pc.0 += 1;
    }

    /// Begins work; nothing if there is none to do.
    pub fn begin(&mut self, work: Work, amount: u64, profile: u32) {
        self.work = work;
        self.remaining = amount;
        self.profile = profile;
        if work == Work::Instructions {
            self.demanded += amount;
        }
    }

    /// Ends where it is: what it was told to do and did not is not demanded any more.
    pub fn end_by_force(&mut self, now_ns: Ns) {
        self.end_ns = now_ns;
        self.timeliness.stops(now_ns);
        if self.work == Work::Instructions {
            self.demanded -= self.remaining;
        }
        self.drop_work();
    }

    /// What is left of its work is not done any more.
    pub fn drop_work(&mut self) {
        self.remaining = 0;
        self.work = Work::Steps;
        self.spins = false;
    }

    /// Times that the thread has seen the end of a pool.
    pub fn uses_of(&self, pool: ObjectId) -> u32 {
        self.pool_uses.iter().find(|(known, _)| *known == pool).map_or(0, |&(_, uses)| uses)
    }

    /// The thread has seen the end of a pool once more.
    pub fn finish_use(&mut self, pool: ObjectId) {
        match self.pool_uses.iter_mut().find(|(known, _)| *known == pool) {
            Some((_, uses)) => *uses += 1,
            None => self.pool_uses.push((pool, 1)),
        }
    }
}

/// All threads, by number.
#[derive(Default)]
pub(super) struct Threads {
    all: Vec<Thread>,
    /// Threads that run or wait for a core.
    pub runnable: usize,
    /// Threads that the plan holds back.
    pub held: usize,
}

impl Threads {
    /// Adds a thread with the next number.
    pub fn add(&mut self, new: NewThread, now_ns: Ns) {
        self.all.push(Thread::new(new, now_ns));
    }

    /// All, by number.
    pub fn iter(&self) -> std::slice::Iter<'_, Thread> {
        self.all.iter()
    }

    /// Number of threads so far.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is a thread of that number.
    pub fn has(&self, thread: ThreadId) -> bool {
        thread.index() < self.all.len()
    }
}

impl Index<ThreadId> for Threads {
    type Output = Thread;

    #[inline]
    fn index(&self, thread: ThreadId) -> &Thread {
        &self.all[thread.index()]
    }
}

impl IndexMut<ThreadId> for Threads {
    #[inline]
    fn index_mut(&mut self, thread: ThreadId) -> &mut Thread {
        &mut self.all[thread.index()]
    }
}
