//! A host that runs threads by the rules alone: nobody blocks unless told so.

use ampsched_model::{AppId, CoreId, CoreSet, Ns, ThreadId};

use crate::testing::{build, topology};
use crate::{EnqueueKind, Pick, Reason, Rules, RunState, Sched, Testimony};

pub const MS: Ns = 1_000_000;

/// The rules of a policy on clusters of (class, cores).
pub fn rules(policy: &str, params: &[(&str, f64)], clusters: &[(u8, usize)]) -> Rules {
    build(policy, params).rules(&topology(clusters))
}

pub struct Host {
    pub sched: Sched,
    pub now_ns: Ns,
}

impl Host {
    pub fn new(policy: &str, clusters: &[(u8, usize)]) -> Self {
        Self::with(rules(policy, &[], clusters), clusters)
    }

    pub fn with(rules: Rules, clusters: &[(u8, usize)]) -> Self {
        Self { sched: Sched::new(topology(clusters), rules), now_ns: 0 }
    }

    /// A new thread that is nowhere yet.
    pub fn add(&mut self, weight: u32, cores: Option<&[usize]>) -> ThreadId {
        let set: Option<CoreSet> =
            cores.map(|cores| cores.iter().map(|&core| CoreId::from(core)).collect());
        self.sched.add(AppId(0), weight, set.as_ref())
    }

    /// A new thread in the queue of a core.
    pub fn fork_on(&mut self, core: usize, weight: u32) -> ThreadId {
        let thread = self.add(weight, None);
        self.sched.enqueue(thread, core.into(), EnqueueKind::Fork, self.now_ns);
        thread
    }

    /// A new thread where the rules put it.
    pub fn fork(&mut self, weight: u32) -> ThreadId {
        let thread = self.add(weight, None);
        let core = self.sched.place_by_rules(thread, self.now_ns);
        self.sched.enqueue(thread, core, EnqueueKind::Fork, self.now_ns);
        thread
    }

    /// What a core does next; a witness changes nothing and hears why.
    pub fn pick(&self, core: usize) -> Pick {
        let pick = self.sched.pick_by_rules(core.into(), self.now_ns);
        let told = Testimony::default();
        assert_eq!(self.sched.pick_watched(core.into(), self.now_ns, &told), pick);
        assert!(
            told.why().is_some() || matches!(pick, Pick::Idle { .. }),
            "no reason for {pick:?}"
        );
        pick
    }

    /// Why a core does what it does next.
    pub fn why_picked(&self, core: usize) -> Reason {
        let told = Testimony::default();
        self.sched.pick_watched(core.into(), self.now_ns, &told);
        told.why().expect("it picks a thread")
    }

    /// Why a core that looks for work does not take a thread.
    pub fn why_passed(&self, core: usize, thread: ThreadId) -> Reason {
        let told = Testimony::about(Some(thread));
        self.sched.pick_watched(core.into(), self.now_ns, &told);
        told.passed().expect("it was considered")
    }

    /// Why a thread is put where it is put, and where.
    pub fn why_placed(&self, thread: ThreadId, waker: Option<usize>) -> (CoreId, Reason) {
        let told = Testimony::default();
        let waker = waker.map(CoreId::from);
        let core = self.sched.place_watched(thread, waker, self.now_ns, &told);
        (core, told.why().expect("a placement has a reason"))
    }

    pub fn start(&mut self, core: usize, thread: ThreadId) {
        self.sched.start(core.into(), thread, self.now_ns);
    }

    pub fn running(&self, core: usize) -> Option<ThreadId> {
        self.sched.core(core.into()).running
    }

    /// Lets time pass; running threads are charged.
    pub fn advance(&mut self, ns: Ns) {
        self.now_ns += ns;
        for core in self.sched.topology().cores() {
            if self.sched.core(core).running.is_some() {
                self.sched.charge(core, ns, ns);
            }
        }
    }

    /// The running thread goes back into its core's queue; the short way must equal the two steps.
    pub fn requeue(&mut self, core: usize) {
        let core = CoreId::from(core);
        let thread = self.sched.core(core).running.unwrap();
        let mut in_steps = self.sched.clone();
        in_steps.stop(core, RunState::Ready, self.now_ns);
        in_steps.enqueue(thread, core, EnqueueKind::Requeue, self.now_ns);
        self.sched.requeue(core, self.now_ns);
        let trace = |sched: &Sched| {
            let (queue, state) = (&sched.queues[sched.queue_index(core)], sched.thread(thread));
            let counts = (sched.idle_cores, sched.waiting, sched.serial, queue.running);
            let sums = (queue.load, queue.least(), queue.min_vruntime, queue.weighted_vruntime);
            let cpu = (sched.core(core).running, sched.core(core).since_ns);
            (counts, sums, cpu, queue.len(), format!("{state:?}"))
        };
        assert_eq!(trace(&self.sched), trace(&in_steps));
    }

    pub fn block(&mut self, core: usize) -> ThreadId {
        let thread = self.running(core).unwrap();
        self.sched.stop(core.into(), RunState::Blocked, self.now_ns);
        thread
    }

    pub fn wake_on(&mut self, core: usize, thread: ThreadId) {
        self.sched.enqueue(thread, core.into(), EnqueueKind::Wake, self.now_ns);
    }

    pub fn move_to(&mut self, core: usize, thread: ThreadId) {
        self.sched.dequeue(thread);
        self.sched.enqueue(thread, core.into(), EnqueueKind::Requeue, self.now_ns);
    }

    /// Lets a core take what it picks.
    pub fn dispatch(&mut self, core: usize) {
        match self.pick(core) {
            Pick::Run(thread) => self.start(core, thread),
            Pick::Pull(thread) => {
                self.requeue(self.sched.thread(thread).core.index());
                self.start(core, thread);
            }
            Pick::Idle { .. } => {}
        }
    }

    /// Runs by slices until a time; idle cores look for work after every slice.
    pub fn run_until(&mut self, end_ns: Ns) {
        let cores = self.sched.topology().core_count();
        while self.now_ns < end_ns {
            for core in 0..cores {
                if self.running(core).is_none() {
                    self.dispatch(core);
                }
            }
            let expiry = |core: usize| self.sched.expiry_ns(core.into(), None, self.now_ns);
            let next_ns = (0..cores).filter_map(expiry).min().map_or(end_ns, |ns| ns.min(end_ns));
            let due: Vec<usize> =
                (0..cores).filter(|&core| expiry(core) == Some(next_ns)).collect();
            self.advance(next_ns - self.now_ns);
            for core in due {
                // A faster core may just have pulled its thread.
                if self.running(core).is_some() {
                    self.requeue(core);
                }
                self.dispatch(core);
            }
        }
    }

    pub fn run_ns(&self, thread: ThreadId) -> Ns {
        self.sched.stats(thread).run_ns_total()
    }

    pub fn vruntime(&self, thread: ThreadId) -> Ns {
        self.sched.thread(thread).vruntime
    }

    pub fn core_of(&self, thread: ThreadId) -> usize {
        self.sched.thread(thread).core.index()
    }
}
