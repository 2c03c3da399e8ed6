//! A policy that does what a script says: a fast plane whose every decision is a choice among assignments.
//!
//! It decides anew when a core has to pick after something has changed (a thread has started, woken, waited or ended),
//! and at each tick. Between decisions every core keeps to the plan.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ampsched_model::{CoreId, Ns, ThreadId};
use ampsched_policy::{
    Act, EnqueueKind, FastPlane, Honours, Hooks, Needs, Order, Pick, Policy, Rules, RunState,
    Sched, Slice, Topology, Turn,
};

use super::assign::{assignments, cores, runnable};
use super::search::Course;

/// The course of one run, shared with the search.
pub(super) type Shared = Arc<Mutex<Course>>;

fn lock(course: &Shared) -> MutexGuard<'_, Course> {
    course.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The policy.
pub(super) struct Scripted {
    pub course: Shared,
    pub quantum_ns: Ns,
}

impl Policy for Scripted {
    fn needs(&self) -> Needs {
        Needs { hooks: Hooks { fair: true, ..Hooks::default() }, ..Needs::default() }
    }

    fn rules(&self, _topology: &Topology) -> Rules {
        Rules {
            order: Order::Fifo,
            steal: Vec::new(),
            kick_idle: false,
            slice: Slice::Fixed { slice_ns: Ns::MAX / 4 },
            ..Rules::default()
        }
    }

    fn fast_plane(&self, topology: &Topology, _seed: u64) -> Option<Box<dyn FastPlane>> {
        Some(Box::new(Plane {
            course: Arc::clone(&self.course),
            quantum_ns: self.quantum_ns,
            plan: vec![None; topology.core_count()],
            is_stale: true,
        }))
    }
}

/// Its fast plane.
struct Plane {
    course: Shared,
    quantum_ns: Ns,
    /// Who is to run on each core.
    plan: Vec<Option<ThreadId>>,
    /// Something has changed since it was made.
    is_stale: bool,
}

impl Plane {
    /// Chooses who runs where from now on; what cores other than `here` have to do for it stands in `acts`.
    fn decide(&mut self, sched: &Sched, here: Option<CoreId>, now_ns: Ns, acts: &mut Vec<Act>) {
        self.is_stale = false;
        let mut course = lock(&self.course);
        let threads =
            runnable(sched, &|thread| (course.group(thread), course.run_ns(thread, now_ns)));
        let options = assignments(sched, &threads);
        let chosen = course.choose(sched, &threads, options, now_ns);
        drop(course);
        self.plan = cores(sched, &threads, &chosen);
        let others = sched.topology().cores().filter(|core| Some(*core) != here);
        acts.extend(others.filter(|core| self.differs(sched, *core)).map(Act::Resched));
    }

    fn differs(&self, sched: &Sched, core: CoreId) -> bool {
        let wanted = self.plan[core.index()];
        wanted.is_some() && wanted != sched.current(core)
            || wanted.is_none() && sched.current(core).is_some()
    }

    /// What the plan says that a core does; none if that cannot be.
    fn planned(&self, sched: &Sched, core: CoreId) -> Option<Pick> {
        let Some(thread) = self.plan[core.index()] else {
            return Some(Pick::Idle { recheck_ns: None });
        };
        match sched.thread(thread).state {
            RunState::Ready => Some(Pick::Run(thread)),
            RunState::Running => Some(Pick::Pull(thread)),
            _ => None,
        }
    }
}

impl FastPlane for Plane {
    fn tick_ns(&self) -> Ns {
        self.quantum_ns
    }

    fn honours(&self) -> Honours {
        Honours::default()
    }

    fn added(&mut self, sched: &Sched, thread: ThreadId, _now_ns: Ns) {
        lock(&self.course).add(sched.app(thread), thread);
    }

    /// Where it is announced: on an idle core of the fastest kind, else where it ran before, or on the first core.
    fn place(
        &mut self,
        sched: &Sched,
        thread: ThreadId,
        _kind: EnqueueKind,
        _waker: Option<CoreId>,
        _now_ns: Ns,
    ) -> CoreId {
        let topology = sched.topology();
        let allowed = || topology.cores().filter(|core| sched.allows(thread, *core));
        let idle = allowed().filter(|core| sched.is_free(*core) && sched.queue_len(*core) == 0);
        let best = idle.max_by_key(|core| (topology.core(*core).class, std::cmp::Reverse(core.0)));
        let last = sched.thread(thread).ran_on.filter(|core| sched.allows(thread, *core));
        best.or(last).or_else(|| allowed().next()).expect("a thread may use some core")
    }

    fn enqueued(
        &mut self,
        sched: &Sched,
        _thread: ThreadId,
        core: CoreId,
        _kind: EnqueueKind,
        _now_ns: Ns,
    ) -> bool {
        self.is_stale = true;
        sched.current(core).is_some()
    }

    fn dequeued(&mut self, _sched: &Sched, _thread: ThreadId, _now_ns: Ns) {
        self.is_stale = true;
    }

    fn left(
        &mut self,
        _sched: &Sched,
        _thread: ThreadId,
        core: CoreId,
        state: RunState,
        now_ns: Ns,
    ) {
        lock(&self.course).leave(core, now_ns);
        // One that can still run is taken by another core, or has to go elsewhere and is enqueued.
        self.is_stale |= state != RunState::Ready;
    }

    fn pick(&mut self, sched: &Sched, core: CoreId, now_ns: Ns, acts: &mut Vec<Act>) -> Pick {
        if !self.is_stale {
            if let Some(pick) = self.planned(sched, core) {
                return pick;
            }
        }
        self.decide(sched, Some(core), now_ns, acts);
        self.planned(sched, core).unwrap_or(Pick::Idle { recheck_ns: None })
    }

    fn started(&mut self, _sched: &Sched, core: CoreId, turn: Turn, now_ns: Ns) {
        lock(&self.course).start(turn.thread, core, now_ns);
    }

    fn yields(&mut self, _sched: &Sched, _core: CoreId, _now_ns: Ns) {
        self.is_stale = true;
    }

    fn expiry_ns(&mut self, _sched: &Sched, _core: CoreId, _now_ns: Ns) -> Option<Ns> {
        None
    }

    fn tick(&mut self, sched: &Sched, now_ns: Ns, acts: &mut Vec<Act>) {
        self.decide(sched, None, now_ns, acts);
    }

    fn changed(&mut self, _sched: &Sched, _thread: ThreadId, _now_ns: Ns) {
        self.is_stale = true;
    }

    fn occupied(&mut self, _sched: &Sched, _core: CoreId, _is_taken: bool, _now_ns: Ns) {
        self.is_stale = true;
    }

    fn clocked(&mut self, _sched: &Sched, _core: CoreId, _now_ns: Ns) {}

    fn because(&self) -> &'static str {
        "the script says so"
    }
}
