//! The classes above the policy's: deadline threads first, then real-time threads by priority.
//!
//! They are Linux's of 6.12, whatever policy is simulated: the earliest deadline first, each within its budget
//! (`budget.rs`, kernel/sched/deadline.c); then FIFO and round robin by priority (kernel/sched/rt.c). Linux keeps a
//! queue per core and pushes and pulls threads between them, so that the most urgent threads run on the cores that
//! they may use. Here one list holds all that wait, and the choice is made for all cores at each event: a thread that
//! becomes ready *aims* at the core where it will run (`place.rs`), and a core that becomes free takes the most urgent
//! thread that may run there and aims at no other. So that fair threads do not starve, each core has a server that
//! gives them 5 % of the time (`server.rs`).

mod budget;
mod place;
mod run;
mod server;

use ampsched_model::{CoreId, Ns, SchedClass, ThreadId};

use budget::Budget;
use server::Server;

/// How long a round-robin thread runs before another one of its priority (`RR_TIMESLICE`, 100 ms).
const QUANTUM_NS: Ns = 100_000_000;
/// The share of the machine's capacity that deadline threads may reserve together, in 2^-20: `sched_rt_runtime_us` /
/// `sched_rt_period_us`, 0.95 s of each second (kernel/sched/deadline.c, `__dl_overflow`).
const DL_SHARE: u64 = (95 << 20) / 100;

/// How urgent something is: class, then deadline or 99 - priority. The least is the most urgent.
pub(super) type Urgency = (u8, Ns);

/// A core that runs a fair thread.
const FAIR: Urgency = (2, 0);
/// A core that runs nothing.
const IDLE: Urgency = (3, 0);
/// A core that belongs to the fair threads, or to the system, for a while.
const RESERVED: Urgency = (0, 0);

/// A thread of a class above.
#[derive(Clone, Copy, Debug)]
struct Entity {
    class: SchedClass,
    /// Of equally urgent threads the least comes first.
    serial: i64,
    /// Deadline threads: what they may use.
    budget: Budget,
    /// Round robin: what is left of the quantum.
    quantum_ns: Ns,
    /// Since when what it runs has not been taken from budget or quantum.
    from_ns: Ns,
    /// How fast its budget is used, in 1/1024: the core's capacity at the present frequency.
    pace: u64,
    /// It will run on that core, as soon as that has switched.
    aim: Option<CoreId>,
    /// Counts its throttlings: a replenishment that was planned for an earlier one is void.
    throttlings: u32,
}

impl Entity {
    fn urgency(&self) -> Urgency {
        match self.class {
            SchedClass::Deadline { .. } => (0, self.budget.deadline_ns()),
            SchedClass::Fifo { priority } | SchedClass::RoundRobin { priority } => {
                (1, Ns::from(99 - priority.min(99)))
            }
            SchedClass::Fair | SchedClass::Batch | SchedClass::Idle => FAIR,
        }
    }

    /// Its share of a core in 2^-20, if it has reserved one.
    fn bandwidth(&self) -> u64 {
        if matches!(self.class, SchedClass::Deadline { .. }) { self.budget.bandwidth() } else { 0 }
    }

    /// Takes what it has run up to now from its budget and quantum.
    fn settle(&mut self, now_ns: Ns) {
        let ran_ns = now_ns.saturating_sub(self.from_ns);
        self.from_ns = now_ns;
        self.budget.spend((ran_ns * self.pace) >> 10);
        self.quantum_ns = self.quantum_ns.saturating_sub(ran_ns);
    }

    /// How long it may go on from when it was settled.
    fn rest_ns(&self) -> Option<Ns> {
        match self.class {
            SchedClass::Deadline { .. } => {
                Some((self.budget.left_ns() << 10).div_ceil(self.pace.max(1)))
            }
            SchedClass::RoundRobin { .. } => Some(self.quantum_ns),
            _ => None,
        }
    }
}

/// All threads of classes above.
pub(super) struct RealTime {
    /// By thread; none if it is not of such a class.
    entities: Vec<Option<Entity>>,
    /// Those that wait for a core, the most urgent first.
    ready: Vec<ThreadId>,
    /// Deadline threads that wait for a new budget.
    throttled: Vec<ThreadId>,
    /// Serial numbers given out at the two ends.
    head: i64,
    tail: i64,
    /// What deadline threads have reserved, in 2^-20 of a core of capacity 1024.
    reserved: u64,
    servers: Vec<Server>,
    /// By core: how urgent the most urgent thread is that aims there.
    coming: Vec<Option<Urgency>>,
}

impl RealTime {
    /// No thread yet, on so many cores.
    pub fn new(cores: usize) -> Self {
        Self {
            entities: Vec::new(),
            ready: Vec::new(),
            throttled: Vec::new(),
            head: 0,
            tail: 0,
            reserved: 0,
            servers: vec![Server::default(); cores],
            coming: vec![None; cores],
        }
    }

    /// All that are ready and on no core.
    pub fn waiting(&self) -> impl Iterator<Item = ThreadId> + '_ {
        self.ready.iter().chain(&self.throttled).copied()
    }

    /// Those that are ready to run, the most urgent first.
    pub fn ready(&self) -> impl Iterator<Item = ThreadId> + '_ {
        self.ready.iter().copied()
    }

    /// The core on which a thread is about to run.
    pub fn aim(&self, thread: ThreadId) -> Option<CoreId> {
        self.entity(thread).aim
    }

    /// How urgent a thread is.
    pub fn urgency(&self, thread: ThreadId) -> Urgency {
        self.entity(thread).urgency()
    }

    fn entity(&self, thread: ThreadId) -> &Entity {
        self.entities[thread.index()].as_ref().expect("a thread of a class above")
    }

    fn entity_mut(&mut self, thread: ThreadId) -> &mut Entity {
        self.entities[thread.index()].as_mut().expect("a thread of a class above")
    }

    /// A thread is of that class from now on.
    fn enter(&mut self, thread: ThreadId, class: SchedClass) {
        if self.entities.len() <= thread.index() {
            self.entities.resize(thread.index() + 1, None);
        }
        let budget = match class {
            SchedClass::Deadline { runtime_ns, deadline_ns, period_ns } => {
                Budget::new(runtime_ns, deadline_ns, period_ns)
            }
            _ => Budget::new(0, 0, 1),
        };
        let entity = Entity {
            class,
            serial: 0,
            budget,
            quantum_ns: QUANTUM_NS,
            from_ns: 0,
            pace: 0,
            aim: None,
            throttlings: 0,
        };
        self.reserved += entity.bandwidth();
        self.entities[thread.index()] = Some(entity);
    }

    /// A thread is of no such class any more, or has ended.
    fn leave(&mut self, thread: ThreadId) {
        self.take(thread);
        if let Some(entity) = self.entities[thread.index()].take() {
            self.reserved -= entity.bandwidth();
        }
    }

    /// A thread waits no longer.
    fn take(&mut self, thread: ThreadId) {
        self.ready.retain(|&other| other != thread);
        self.throttled.retain(|&other| other != thread);
        let entity = self.entities[thread.index()].as_mut();
        if let Some(core) = entity.and_then(|entity| entity.aim.take()) {
            self.see_coming(core);
        }
    }

    /// A thread aims at a core.
    fn set_aim(&mut self, thread: ThreadId, core: CoreId) {
        self.entity_mut(thread).aim = Some(core);
        let (own, coming) = (self.urgency(thread), &mut self.coming[core.index()]);
        *coming = Some(coming.map_or(own, |other| other.min(own)));
    }

    /// Nobody aims at a core any more.
    fn give_up_on(&mut self, core: CoreId) {
        if self.coming[core.index()].take().is_none() {
            return;
        }
        for index in 0..self.ready.len() {
            let entity = self.entity_mut(self.ready[index]);
            entity.aim = entity.aim.filter(|&aim| aim != core);
        }
    }

    /// Those that aim at a core have changed: who is the most urgent one.
    fn see_coming(&mut self, core: CoreId) {
        let first = self.ready.iter().find(|&&thread| self.entity(thread).aim == Some(core));
        self.coming[core.index()] = first.map(|&thread| self.urgency(thread));
    }

    /// A thread waits for a core: behind equally urgent ones, or before them.
    fn push(&mut self, thread: ThreadId, before_equals: bool) {
        let serial = if before_equals { self.head - 1 } else { self.tail + 1 };
        (self.head, self.tail) = (self.head.min(serial), self.tail.max(serial));
        self.entity_mut(thread).serial = serial;
        let key = |thread: ThreadId| (self.entity(thread).urgency(), self.entity(thread).serial);
        let place = self.ready.partition_point(|&other| key(other) < key(thread));
        self.ready.insert(place, thread);
    }

    /// Whether a core belongs to the fair threads for a while.
    fn is_reserved(&self, core: CoreId) -> bool {
        self.servers[core.index()].is_active()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREADS: [ThreadId; 4] = [ThreadId(0), ThreadId(1), ThreadId(2), ThreadId(3)];

    /// Documentation/scheduler/sched-rt-group.rst and sched(7), "SCHED_FIFO": a woken thread goes to the end of its
    /// priority's list, one that was interrupted stays at its head.
    #[test]
    fn threads_of_one_priority_come_in_order() {
        let mut all = RealTime::new(1);
        let [one, two, three, high] = THREADS;
        for thread in [one, two, three] {
            all.enter(thread, SchedClass::Fifo { priority: 10 });
        }
        all.enter(high, SchedClass::RoundRobin { priority: 11 });
        for thread in [one, two, high] {
            all.push(thread, false);
        }
        assert_eq!(all.ready, [high, one, two]);
        all.push(three, true);
        assert_eq!(all.ready, [high, three, one, two]);
        all.leave(one);
        assert_eq!(all.ready, [high, three, two]);
    }

    #[test]
    fn deadlines_come_before_priorities_and_the_earliest_first() {
        let mut all = RealTime::new(1);
        let [late, soon, top, _] = THREADS;
        let class = |ns| SchedClass::Deadline { runtime_ns: 1, deadline_ns: ns, period_ns: ns };
        all.enter(late, class(4 << 20));
        all.enter(soon, class(2 << 20));
        all.enter(top, SchedClass::Fifo { priority: 99 });
        assert_eq!(all.reserved, 0, "less than a millionth");
        for thread in [top, late, soon] {
            all.entity_mut(thread).budget.wake(0);
            all.push(thread, false);
        }
        assert_eq!(all.ready, [soon, late, top]);
    }

    #[test]
    fn budgets_last_longer_on_slow_cores() {
        let mut all = RealTime::new(1);
        let ns = 10_000;
        let class =
            SchedClass::Deadline { runtime_ns: ns, deadline_ns: 10 * ns, period_ns: 10 * ns };
        all.enter(THREADS[0], class);
        assert_eq!(all.reserved, (1 << 20) / 10);
        let entity = all.entity_mut(THREADS[0]);
        entity.budget.wake(0);
        entity.pace = 512;
        assert_eq!(entity.rest_ns(), Some(2 * ns));
        entity.settle(ns);
        assert_eq!((entity.budget.left_ns(), entity.rest_ns()), (ns / 2, Some(ns)));
    }
}
