//! Random things happen to random tasks; then everything comes to rest.

use ampsched_model::{CoreId, Draw, MAX_CLASSES};
use ampsched_policy::{Change, ChangeKind, Prefer, nice_to_weight};
use ampsched_scx::layout::{CALL_OF_PLAN, NONE, Set};
use ampsched_scx::lower;

use crate::check::Found;
use crate::machine::{Machine, Place, Task};
use crate::watch::Watch;

/// Most threads at a time.
const THREADS: u32 = 24;
/// Most tasks in a trace.
const TASKS: usize = 64;
/// Time between two ticks, and two looks (250 Hz).
pub const TICK_NS: u64 = 4_000_000;
/// A look of the slow plane comes after so many events.
const LOOK: usize = 5;
/// Ticks in which all must come to rest.
const REST: usize = 12;
/// Ticks in which all threads that are left must have run, each core one at a time: twice as many as there are tasks.
const DRAIN: usize = 2 * TASKS;

pub struct Events {
    pub machine: Machine,
    draw: Draw,
    /// Changes of the plan that have yet to be carried out before anybody is told.
    plan_left: usize,
    balances: bool,
    watch: Watch,
}

impl Events {
    pub fn new(machine: Machine, balances: bool, seed: u64) -> Self {
        Self { machine, draw: Draw::new(seed), plan_left: 0, balances, watch: Watch::default() }
    }

    /// Lets `steps` things happen.
    pub fn run(&mut self, steps: usize) -> Found {
        for step in 0..steps {
            let longest_ns = [1, 100_000, 3_000_000, 30_000_000][self.below(4)];
            self.machine.now_ns += 1 + self.draw.bits() % longest_ns;
            self.step();
            self.machine.check()?;
            self.react()?;
            if step % LOOK == 0 {
                self.watch.look(&mut self.machine.c)?;
            }
        }
        self.come_to_rest()?;
        self.watch.rest(&mut self.machine.c)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.draw.bits() % limit as u64) as usize
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    fn some_cpu(&mut self) -> usize {
        self.below(self.machine.cpus.len())
    }

    fn some_online_cpu(&mut self) -> usize {
        loop {
            let cpu = self.some_cpu();
            if !self.machine.cpus[cpu].offline {
                return cpu;
            }
        }
    }

    fn some_cores(&mut self) -> Set {
        let all = 0..self.machine.cpus.len();
        let mut some: Vec<usize> = all.filter(|_| self.draw.bits() & 1 == 0).collect();
        some.push(self.some_cpu());
        some.into_iter().map(CoreId::from).collect()
    }

    fn some_task(&mut self, fits: impl Fn(&Task) -> bool) -> Option<usize> {
        let all = 0..self.machine.tasks.len();
        let found: Vec<usize> = all.filter(|&task| fits(&self.machine.tasks[task])).collect();
        (!found.is_empty()).then(|| found[self.below(found.len())])
    }

    fn step(&mut self) {
        if self.plan_left > 0 && self.chance(2) {
            return self.go_on_with_plan();
        }
        match self.below(27) {
            0..=2 => self.fork(),
            3..=7 => self.wake(),
            8..=10 => self.block(),
            11..=13 => self.tick(),
            14 => self.wake_other(),
            15..=17 => self.begin_plan(),
            18 => self.change_weight(),
            19 => self.change_cores(),
            20 => self.hijack(),
            21 => self.machine.on_timer(self.balances),
            22 if self.chance(4) => self.exit(),
            23 if self.chance(2) => self.hotplug(),
            _ => self.end_wake(),
        }
    }

    /// Some of the kicks arrive, and some CPUs choose.
    fn react(&mut self) -> Found {
        let (count, first) = (self.machine.cpus.len(), self.some_cpu());
        for cpu in (first..count).chain(0..first) {
            if self.chance(2) {
                self.machine.deliver(cpu);
            }
            if self.machine.cpus[cpu].resched && !self.chance(3) {
                self.machine.schedule(cpu);
                self.machine.check()?;
            }
        }
        Ok(())
    }

    fn fork(&mut self) {
        let ours = self.machine.tasks.iter().filter(|task| task.thread != NONE).count();
        if ours as u32 == THREADS || self.machine.tasks.len() == TASKS {
            return;
        }
        let nice = if self.chance(2) { 0 } else { self.below(40) as i32 - 20 };
        let allowed = if self.chance(4) { self.some_cores() } else { Set::ALL };
        let weight = nice_to_weight(nice);
        let thread = self.machine.c.init_thread(weight, &allowed);
        self.machine.c.thread_mut(thread).since_ns = self.machine.now_ns;
        self.add_task(thread, allowed, false);
    }

    fn add_task(&mut self, thread: u32, allowed: Set, wakeup: bool) {
        let cpu = self.some_cpu();
        let task = self.machine.tasks.len();
        let place = Place::Asleep;
        self.machine.tasks.push(Task { thread, place, cpu, slice: 0, allowed, exiting: false });
        self.machine.begin_wake(task, Some(cpu), wakeup);
    }

    fn wake(&mut self) {
        let Some(task) = self.some_task(|task| task.place == Place::Asleep) else { return };
        let waker = if self.chance(2) { None } else { Some(self.some_cpu()) };
        self.machine.begin_wake(task, waker, true);
        if self.chance(2) {
            self.machine.end_wake(task);
        }
    }

    fn end_wake(&mut self) {
        if let Some(task) = self.some_task(|task| matches!(task.place, Place::Waking { .. })) {
            self.machine.end_wake(task);
        }
    }

    /// A task that is not ours, on the only CPU that it may use.
    fn wake_other(&mut self) {
        let offline: Vec<bool> = self.machine.cpus.iter().map(|cpu| cpu.offline).collect();
        let asleep =
            |task: &Task| task.thread == NONE && task.place == Place::Asleep && !offline[task.cpu];
        match self.some_task(asleep) {
            Some(task) => self.machine.begin_wake(task, None, true),
            None if self.machine.tasks.len() < TASKS => {
                let cpu = self.some_online_cpu();
                self.add_task(NONE, [CoreId::from(cpu)].into_iter().collect(), true);
            }
            None => {}
        }
    }

    fn block(&mut self) {
        if let Some(task) = self.some_task(|task| task.place == Place::Running) {
            self.machine.block(self.machine.tasks[task].cpu);
        }
    }

    fn exit(&mut self) {
        let ours = |task: &Task| task.place == Place::Running && task.thread != NONE;
        if let Some(task) = self.some_task(ours) {
            self.machine.tasks[task].exiting = true;
        }
    }

    fn tick(&mut self) {
        for cpu in 0..self.machine.cpus.len() {
            self.machine.tick(cpu, TICK_NS);
        }
    }

    /// A task of a higher class comes, or goes.
    fn hijack(&mut self) {
        let cpu = self.some_online_cpu();
        if self.machine.cpus[cpu].hijacked {
            self.release(cpu);
        } else {
            self.machine.hijack(cpu);
        }
    }

    /// A CPU goes, unless it is the last one, or comes back when it is gone; one after the other.
    fn hotplug(&mut self) {
        let cpu = self.some_cpu();
        let is_going = |cpu: usize| self.machine.cpus[cpu].offline && !self.machine.is_gone(cpu);
        if (0..self.machine.cpus.len()).any(is_going) {
            return;
        }
        if self.machine.is_gone(cpu) {
            self.machine.come_online(cpu);
        } else if self.machine.cpus.iter().filter(|cpu| !cpu.offline).count() > 1 {
            self.machine.go_offline(cpu);
        }
    }

    fn release(&mut self, cpu: usize) {
        self.machine.cpus[cpu].hijacked = false;
        self.machine.schedule(cpu);
    }

    fn some_settled_task(&mut self) -> Option<usize> {
        let waking = |task: &Task| matches!(task.place, Place::Waking { .. });
        self.some_task(|task| task.thread != NONE && !waking(task))
    }

    fn change_weight(&mut self) {
        let Some(task) = self.some_settled_task() else { return };
        let weight = nice_to_weight(self.below(40) as i32 - 20);
        self.machine.change(task, |machine| machine.ops_set_weight(task, weight));
    }

    fn change_cores(&mut self) {
        let Some(task) = self.some_settled_task() else { return };
        let cores = self.some_cores();
        self.machine.change(task, |machine| {
            machine.tasks[task].allowed = cores;
            machine.ops_set_cpumask(task, &cores);
        });
        self.machine.move_away(task);
    }

    fn begin_plan(&mut self) {
        self.plan_left = self.plan_left.max(1 + self.below(6));
        self.go_on_with_plan();
    }

    fn go_on_with_plan(&mut self) {
        self.change_plan();
        self.plan_left -= 1;
        if self.plan_left == 0 {
            self.machine.tell(CALL_OF_PLAN);
        }
    }

    fn change_plan(&mut self) {
        let Some(task) = self.some_task(|task| task.thread != NONE) else { return };
        let thread = self.machine.tasks[task].thread;
        let change = self.some_change(self.machine.c.thread(thread).held != 0);
        self.apply(thread, &change);
    }

    fn apply(&mut self, thread: u32, change: &Change) {
        let generation = self.machine.c.thread(thread).generation;
        for operation in lower::change(thread, change) {
            let now_ns = self.machine.now_ns;
            let operation = ampsched_scx::layout::Operation { generation, now_ns, ..operation };
            self.machine.apply(operation);
        }
    }

    fn some_change(&mut self, is_held: bool) -> Change {
        let kind = [Prefer::Any, Prefer::Big, Prefer::Little][self.below(3)];
        match ChangeKind::ALL[self.below(ChangeKind::ALL.len())] {
            ChangeKind::Affinity => Change::Affinity(self.some_cores().cores().collect()),
            ChangeKind::Prefer => Change::Prefer(kind),
            ChangeKind::Move => Change::Move(kind),
            ChangeKind::Rank => Change::Rank(self.draw.bits() % 10),
            ChangeKind::Weight => Change::Weight(nice_to_weight(self.below(40) as i32 - 20)),
            ChangeKind::Speed => {
                Change::Speed([(); MAX_CLASSES].map(|()| 0.5 + 4.0 * self.draw.uniform()))
            }
            ChangeKind::Slice => Change::Slice([0, 1_000_000, 20_000_000][self.below(3)]),
            ChangeKind::Hold => Change::Hold(!is_held),
        }
    }

    /// Nothing new happens: what is under way ends, idle cores take what waits there, and all that are runnable get to
    /// run, one after the other, and sleep.
    fn come_to_rest(&mut self) -> Found {
        self.end_all()?;
        for _ in 0..REST {
            self.end_others();
            self.pass()?;
        }
        self.machine.check_work()?;
        for _ in 0..DRAIN {
            for cpu in 0..self.machine.cpus.len() {
                self.machine.block(cpu);
                self.machine.check()?;
            }
            self.pass()?;
            self.pass()?;
        }
        self.machine.check_drained()
    }

    /// Tasks that are not ours run and sleep, as nobody else gets their CPU; so do threads that are about to end.
    fn end_others(&mut self) {
        for cpu in 0..self.machine.cpus.len() {
            while self.machine.cpus[cpu].current.is_some_and(|task| {
                self.machine.tasks[task].exiting || self.machine.thread_of(task).is_none()
            }) {
                self.machine.block(cpu);
            }
        }
    }

    fn end_all(&mut self) -> Found {
        while self.plan_left > 0 {
            self.go_on_with_plan();
        }
        for thread in 0..self.machine.c.state().thread_count {
            let own = self.machine.c.thread(thread);
            if own.in_use != 0 && own.held != 0 {
                self.apply(thread, &Change::Hold(false));
            }
        }
        self.machine.tell(CALL_OF_PLAN);
        for task in 0..self.machine.tasks.len() {
            self.machine.end_wake(task);
        }
        for cpu in 0..self.machine.cpus.len() {
            if self.machine.cpus[cpu].hijacked {
                self.release(cpu);
            }
        }
        self.machine.check()
    }

    /// A tick, and a look, everywhere; all kicks arrive.
    fn pass(&mut self) -> Found {
        self.machine.now_ns += TICK_NS;
        self.tick();
        self.machine.on_timer(self.balances);
        let (count, first) = (self.machine.cpus.len(), self.some_cpu());
        for cpu in (first..count).chain(0..first) {
            self.machine.deliver(cpu);
            if self.machine.cpus[cpu].resched {
                self.machine.schedule(cpu);
                self.machine.check()?;
            }
        }
        Ok(())
    }
}
