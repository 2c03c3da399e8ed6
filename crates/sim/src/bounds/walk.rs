//! Walks through the code of an application's threads as if each had a core of its own, of the fastest kind that it may
//! use, that costs nothing, and nobody ever had to wait but where that is certain: for the end of a queue, for
//! children, and at a barrier that only so many threads use as it waits for. Times are then the earliest possible ones,
//! and work and times under locks are what every schedule has to spend.

use ampsched_model::{Amount, CodePtr, Draw, Machine, ObjectKind, Op, Program};

use super::Work;
use super::items::ItemCost;
use super::scan::Scan;
use super::speeds::Speeds;
use crate::streams;

/// Steps that are walked at most: what is left out makes the bound looser, not wrong.
const STEP_LIMIT: u32 = 4_000_000;
/// Threads that are walked at most.
const THREAD_LIMIT: usize = 10_000;

/// Which random amounts are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amounts {
    /// Those of the run.
    Drawn,
    /// The least that may come.
    Least,
}

impl Amounts {
    pub fn of(self, amount: &Amount, draw: &mut Draw) -> u64 {
        match self {
            Self::Drawn => amount.draw(draw),
            Self::Least => amount.least(),
        }
    }
}

/// Where a thread's walk stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Goes,
    AtBarrier(usize),
    AtJoin,
    AtEndOf(usize),
    Done,
}

/// A thread on its walk.
pub(super) struct Walker {
    pub spec: usize,
    pc: CodePtr,
    /// Iterations left of the loops that it is in.
    loops: Vec<u64>,
    draw: Draw,
    amounts: Amounts,
    /// Its start, and now.
    start_ns: f64,
    now_ns: f64,
    /// What it has spent itself, waiting aside.
    own_ns: f64,
    pub work: Work,
    pub may_use: Vec<bool>,
    /// Mutexes that it holds, and `own_ns` when it took them.
    held: Vec<(usize, f64)>,
    children: Vec<usize>,
    standing: Standing,
    /// Times that it has worked at each pool and region.
    uses: Vec<u32>,
}

impl Walker {
    fn spend(&mut self, ns: f64) {
        self.now_ns += ns;
        self.own_ns += ns;
    }

    fn next(&mut self) {
        self.pc = CodePtr(self.pc.0 + 1);
    }

    /// It goes on behind the step at which it has waited.
    fn pass(&mut self, program: &Program) {
        self.standing = Standing::Goes;
        match &program.code[self.pc.index()] {
            Op::Pop { end, .. } => self.pc = *end,
            _ => self.next(),
        }
    }

    /// It does all items of a queue or pool itself.
    pub fn take_over(&mut self, cost: &ItemCost) {
        super::demand::add(&mut self.work, &cost.work);
        self.own_ns += cost.span_ns;
    }
}

/// All threads of an application, and what they do to its objects.
pub(super) struct Walk<'a> {
    program: &'a Program,
    speeds: &'a Speeds,
    machine: &'a Machine,
    stream: Draw,
    pub scan: Scan,
    pub threads: Vec<Walker>,
    /// By object: time for which mutexes are held, devices serve.
    pub held_ns: Vec<f64>,
    pub served_ns: Vec<f64>,
    /// By object: items that threads push into queues outside of work on items.
    pub pushed: Vec<u64>,
    /// By object: how often pools and regions are used at least.
    pub uses: Vec<u32>,
    /// By object: who has arrived at a barrier.
    arrived: Vec<Vec<usize>>,
    /// By object: how often a queue was closed, and when last.
    closed: Vec<(u32, f64)>,
    steps: u32,
}

impl<'a> Walk<'a> {
    /// The threads that start with the application.
    pub fn new(
        machine: &'a Machine,
        program: &'a Program,
        speeds: &'a Speeds,
        stream: Draw,
        amounts: Amounts,
    ) -> Self {
        let objects = program.objects.len();
        let mut walk = Self {
            program,
            speeds,
            machine,
            stream,
            scan: Scan::of(program),
            threads: Vec::new(),
            held_ns: vec![0.0; objects],
            served_ns: vec![0.0; objects],
            pushed: vec![0; objects],
            uses: vec![0; objects],
            arrived: vec![Vec::new(); objects],
            closed: vec![(0, 0.0); objects],
            steps: 0,
        };
        for (spec, thread) in program.threads.iter().enumerate() {
            for instance in 0..thread.count {
                let draw = streams::of_thread(&walk.stream, spec as u32, instance);
                walk.add(spec, draw, amounts, thread.start_ns as f64);
            }
        }
        walk
    }

    fn add(&mut self, spec: usize, draw: Draw, amounts: Amounts, now_ns: f64) {
        let stated = &self.program.threads[spec];
        // What daemon threads do need not be done, and nobody waits for their end.
        if self.threads.len() >= THREAD_LIMIT || stated.is_daemon {
            return;
        }
        let may_use = |cluster: &ampsched_model::Cluster| match &stated.affinity {
            Some(cores) if !self.scan.changes_cores => {
                cluster.cores.iter().any(|core| cores.contains(*core))
            }
            _ => true,
        };
        self.threads.push(Walker {
            spec,
            pc: stated.entry,
            loops: Vec::new(),
            draw,
            amounts,
            start_ns: now_ns,
            now_ns,
            own_ns: 0.0,
            work: self.speeds.nothing(),
            may_use: self.machine.clusters.iter().map(may_use).collect(),
            held: Vec::new(),
            children: Vec::new(),
            standing: Standing::Goes,
            uses: vec![0; self.program.objects.len()],
        });
    }

    /// Walks until all threads have ended or the limit is reached.
    pub fn run(&mut self) {
        loop {
            let mut thread = 0;
            let mut moved = false;
            while thread < self.threads.len() {
                moved |= self.go_on(thread);
                thread += 1;
            }
            if self.steps >= STEP_LIMIT {
                break;
            }
            if !moved && !self.let_through() {
                break;
            }
        }
        for thread in &self.threads {
            for (most, uses) in self.uses.iter_mut().zip(&thread.uses) {
                *most = (*most).max(*uses);
            }
        }
    }

    /// Nobody gets on: whoever waits goes on as if it need not.
    fn let_through(&mut self) -> bool {
        self.arrived.iter_mut().for_each(Vec::clear);
        let mut any = false;
        for thread in &mut self.threads {
            if !matches!(thread.standing, Standing::Goes | Standing::Done) {
                thread.pass(self.program);
                any = true;
            }
        }
        any
    }

    /// Lets a thread walk as far as it comes. Returns whether it has moved.
    fn go_on(&mut self, thread: usize) -> bool {
        self.end_wait(thread);
        let mut moved = false;
        while self.threads[thread].standing == Standing::Goes && self.steps < STEP_LIMIT {
            self.steps += 1;
            moved = true;
            self.step(thread);
        }
        moved
    }

    /// Whether what a thread waits for has happened, and when.
    fn end_wait(&mut self, thread: usize) {
        let over_ns = match self.threads[thread].standing {
            Standing::AtJoin => {
                let mut children =
                    self.threads[thread].children.iter().map(|&id| &self.threads[id]);
                let done = children.clone().all(|child| child.standing == Standing::Done);
                done.then(|| children.by_ref().map(|child| child.now_ns).fold(0.0, f64::max))
            }
            Standing::AtEndOf(queue) => {
                let (count, at_ns) = self.closed[queue];
                (count >= self.scan.producers(queue)).then_some(at_ns)
            }
            _ => None,
        };
        if let Some(over_ns) = over_ns {
            let walker = &mut self.threads[thread];
            walker.now_ns = walker.now_ns.max(over_ns);
            walker.pass(self.program);
        }
    }

    fn step(&mut self, thread: usize) {
        let walker = &mut self.threads[thread];
        let op = &self.program.code[walker.pc.index()];
        match op {
            Op::Compute { instructions: amount, profile } => {
                let amount = walker.amounts.of(amount, &mut walker.draw) as f64;
                self.compute(thread, usize::from(profile.0), amount);
            }
            Op::Run { reference_ns: amount, profile } => {
                let ns = walker.amounts.of(amount, &mut walker.draw) as f64;
                let amount = self.speeds.instructions(usize::from(profile.0), ns).round();
                self.compute(thread, usize::from(profile.0), amount);
            }
            Op::Occupy { cpu_ns, .. } => {
                let ns = walker.amounts.of(cpu_ns, &mut walker.draw) as f64;
                self.compute(thread, self.speeds.cpu_time(), ns);
            }
            Op::Sleep(amount) => {
                let ns = walker.amounts.of(amount, &mut walker.draw) as f64;
                walker.spend(ns);
            }
            Op::SleepUntil { at_ns } => walker.now_ns = walker.now_ns.max(*at_ns as f64),
            Op::Io { device, service_ns } => {
                let ns = walker.amounts.of(service_ns, &mut walker.draw) as f64;
                self.served_ns[device.index()] += ns;
                walker.spend(ns + latency_ns(self.program, device.index()));
            }
            Op::LockOneOf { .. } => drop(walker.draw.bits()),
            Op::Lock(mutex) => walker.held.push((mutex.index(), walker.own_ns)),
            Op::Unlock(mutex) => self.unlock(thread, mutex.index(), false),
            Op::Wait { mutex, .. } => self.unlock(thread, mutex.index(), true),
            Op::Barrier(barrier) if self.scan.is_exact(barrier.index()) => {
                return self.arrive(thread, barrier.index());
            }
            Op::Push(queue) => self.pushed[queue.index()] += 1,
            Op::Close(queue) => {
                let now_ns = walker.now_ns;
                let closed = &mut self.closed[queue.index()];
                *closed = (closed.0 + 1, closed.1.max(now_ns));
            }
            Op::Pop { queue, .. } => {
                walker.standing = Standing::AtEndOf(queue.index());
                return;
            }
            Op::Take { pool, end } => {
                walker.uses[pool.index()] += 1;
                walker.pc = *end;
                return;
            }
            Op::Tasks { region, .. } => walker.uses[region.index()] += 1,
            Op::Loop { count, end } => {
                let left = walker.amounts.of(count, &mut walker.draw);
                if left == 0 {
                    walker.pc = *end;
                    return;
                }
                walker.loops.push(left);
            }
            Op::LoopEnd { start } => {
                let left = walker.loops.last_mut().expect("loops are balanced");
                *left -= 1;
                if *left > 0 {
                    walker.pc = *start;
                    return;
                }
                walker.loops.pop();
            }
            Op::Fork { thread: spec } => self.fork(thread, *spec as usize),
            Op::Join => {
                walker.standing = Standing::AtJoin;
                return;
            }
            Op::Exit => {
                walker.standing = Standing::Done;
                return;
            }
            // They take no time of their own, or may take none.
            Op::UnlockOneOf { .. }
            | Op::Signal(_)
            | Op::Broadcast(_)
            | Op::SignalAndWait { .. }
            | Op::Barrier(_)
            | Op::SemWait(_)
            | Op::SemPost(_)
            | Op::ItemEnd { .. }
            | Op::Create { .. }
            | Op::TimerWait { .. }
            | Op::Period { .. }
            | Op::Yield
            | Op::Suspend
            | Op::Resume { .. }
            | Op::SetAffinity(_)
            | Op::SetNice(_)
            | Op::SetClass(_)
            | Op::SetSlice(_)
            | Op::SetUclamp { .. }
            | Op::SetGroup(_) => {}
        }
        self.threads[thread].next();
    }

    fn compute(&mut self, thread: usize, kind: usize, amount: f64) {
        let walker = &mut self.threads[thread];
        walker.work[kind] += amount;
        if amount > 0.0 {
            let ns = amount * self.speeds.best_ns(kind, &walker.may_use);
            walker.spend(ns);
        }
    }

    /// A mutex is released, and perhaps taken again at once.
    fn unlock(&mut self, thread: usize, mutex: usize, again: bool) {
        let walker = &mut self.threads[thread];
        let Some(place) = walker.held.iter().rposition(|held| held.0 == mutex) else { return };
        let (_, since_ns) = walker.held.remove(place);
        self.held_ns[mutex] += walker.own_ns - since_ns;
        if again {
            walker.held.push((mutex, walker.own_ns));
        }
    }

    /// At a barrier whose generations are certain: all go on when the last one has come.
    fn arrive(&mut self, thread: usize, barrier: usize) {
        self.threads[thread].standing = Standing::AtBarrier(barrier);
        self.arrived[barrier].push(thread);
        if self.arrived[barrier].len() < self.scan.parties(barrier) {
            return;
        }
        let all = std::mem::take(&mut self.arrived[barrier]);
        let last_ns = all.iter().map(|&id| self.threads[id].now_ns).fold(0.0, f64::max);
        for id in all {
            let walker = &mut self.threads[id];
            walker.now_ns = last_ns;
            walker.pass(self.program);
        }
    }

    /// Which number a child has, and so what it draws, may depend on who runs when: then it does the least.
    fn fork(&mut self, parent: usize, spec: usize) {
        let child = self.threads.len();
        let (now_ns, mut amounts) = (self.threads[parent].now_ns, self.threads[parent].amounts);
        if !self.scan.has_one_parent(spec) {
            amounts = Amounts::Least;
        }
        let number = self.threads.iter().filter(|thread| thread.spec == spec).count();
        let draw = streams::of_thread(&self.stream, spec as u32, number as u32);
        self.add(spec, draw, amounts, now_ns);
        if self.threads.len() > child {
            self.threads[parent].children.push(child);
        }
    }

    /// When the last thread ends.
    pub fn longest_ns(&self) -> f64 {
        self.threads.iter().map(|thread| thread.now_ns).fold(0.0, f64::max)
    }

    /// When the last thread ends if none ever waits, but does what only it can do.
    pub fn longest_own_ns(&self) -> f64 {
        let ends = self.threads.iter().map(|thread| thread.start_ns + thread.own_ns);
        ends.fold(0.0, f64::max)
    }

    /// Threads that may work on a queue's or pool's items, if that is certain.
    pub fn crew(&self, object: usize) -> Option<u32> {
        match &self.program.objects[object].kind {
            ObjectKind::Pool { participants, .. } => Some(*participants),
            _ => self.scan.crew(object),
        }
    }

    /// The only thread that may work on an object's items.
    pub fn only_consumer(&self, object: usize) -> Option<usize> {
        let spec = self.scan.only_consumer(object)?;
        self.threads.iter().position(|thread| thread.spec == spec)
    }

    /// Whether its threads are all there from the start, so that their order is that of their creation.
    pub fn knows_threads(&self) -> bool {
        let mut threads = self.program.threads.iter();
        !self.scan.forks && threads.all(|thread| thread.start_ns == 0 && !thread.is_daemon)
    }
}

/// What each request at a device takes beside its service.
pub(super) fn latency_ns(program: &Program, device: usize) -> f64 {
    match program.objects[device].kind {
        ObjectKind::Device { latency_ns, .. } => latency_ns as f64,
        _ => 0.0,
    }
}
