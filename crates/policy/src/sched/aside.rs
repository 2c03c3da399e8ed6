//! For hosts that replay what a kernel has done: there, other things happen while a thread is in no queue, and choices
//! are made one by one.

use ampsched_model::{CoreId, CoreSet, Ns, ThreadId};

use super::{Pick, RunState, Sched, ThreadState, ThreadStats};
use crate::{Activity, AffinityId, NoWitness, ThreadAttrs, ThreadPlan};

impl Sched {
    /// Adds a thread like [`Sched::add`], with a number: of a thread that has ended, or one that nobody has had. A
    /// kernel gives slots to threads, again and again, and where all else is equal the lower number decides.
    pub fn add_as(&mut self, thread: ThreadId, weight: u32, cores: Option<&CoreSet>) {
        let ended = ThreadState { state: RunState::Exited, ..ThreadState::default() };
        let (at, count) = (thread.index(), self.threads.len().max(thread.index() + 1));
        self.plans.resize_with(count, ThreadPlan::default);
        self.attrs.resize_with(count, ThreadAttrs::default);
        self.threads.resize_with(count, || ended.clone());
        self.stats.resize_with(count, ThreadStats::default);
        let affinity = cores.map_or(AffinityId::ALL, |set| self.affinities.intern(set));
        self.present.retain(|present| self.threads[present.index()].state != RunState::Exited);
        let place = self.present.partition_point(|&present| present < thread);
        self.present.insert(place, thread);
        self.gone = 0;
        self.plans[at] =
            ThreadPlan { affinity, user_affinity: affinity, weight, ..ThreadPlan::default() };
        self.attrs[at] = ThreadAttrs::default();
        self.threads[at] = ThreadState::default();
        self.stats[at] = ThreadStats::default();
        for core in &mut self.cores {
            core.last = core.last.filter(|&last| last != thread);
        }
        if let Some(load) = self.load.as_deref_mut() {
            load.forget(thread);
        }
    }

    /// A thread that is ready, in no queue and on no core, waits outside for a moment in which other things happen; as
    /// far as its load goes it waits where it was.
    pub fn set_aside(&mut self, thread: ThreadId, now_ns: Ns) {
        self.leave_state(thread, now_ns);
        let state = &mut self.threads[thread.index()];
        state.is_aside = true;
        state.state = RunState::Ready;
        state.since_ns = now_ns;
        let core = state.core;
        self.track(thread, core, Activity::WAITING, now_ns);
    }

    /// A thread that is in no queue and on no core goes to sleep.
    pub fn block(&mut self, thread: ThreadId, now_ns: Ns) {
        self.rest(thread, RunState::Blocked, now_ns);
    }

    /// The first waiting thread of its queue that a core may run.
    pub fn first_waiting(&self, core: CoreId, now_ns: Ns) -> Option<ThreadId> {
        self.first_of(self.queue(core), core, None, now_ns, NoWitness)
    }

    /// What the steal steps yield for a core; with rounds, what is more urgent than the thread `instead_of`.
    pub fn pick_from_others(&self, core: CoreId, instead_of: Option<ThreadId>, now_ns: Ns) -> Pick {
        self.pick_elsewhere(core, instead_of, now_ns, NoWitness)
    }

    /// A core runs at a share `part / whole` of its highest frequency from now on.
    pub fn set_pace(&mut self, core: CoreId, part: u32, whole: u32, now_ns: Ns) {
        if let Some(load) = self.load.as_deref_mut() {
            load.set_frequency(core, part, whole, now_ns);
        }
    }
}
