//! Where threads of classes above run: at which core one aims that becomes ready.
//!
//! Linux 6.12: kernel/sched/rt.c, `select_task_rq_rt`, `find_lowest_rq`, `rt_task_fits_capacity`; deadline.c,
//! `select_task_rq_dl`, `find_later_rq`; include/linux/sched/deadline.h, `dl_task_fits_capacity`.

use ampsched_model::{CLAMP_MAX, CoreId, SchedClass, ThreadId};

use super::super::Engine;
use super::{FAIR, IDLE, RESERVED, RealTime, Urgency};

impl Engine<'_> {
    /// How urgent what a core does is: what runs there, or is about to.
    pub(in crate::engine) fn urgency_on(&self, realtime: &RealTime, core: CoreId) -> Urgency {
        if realtime.is_reserved(core) || self.sched.is_taken(core) {
            return RESERVED;
        }
        let state = self.sched.core(core);
        let present = match (state.above, state.running) {
            (Some(thread), _) => realtime.urgency(thread),
            (None, Some(_)) => FAIR,
            (None, None) => IDLE,
        };
        realtime.coming[core.index()].map_or(present, |coming| coming.min(present))
    }

    /// Whether a core is fast enough for a thread. Where all cores are equal, each is.
    fn suits(&self, realtime: &RealTime, thread: ThreadId, core: CoreId) -> bool {
        let topology = self.sched.topology();
        if topology.class_count() == 1 {
            return true;
        }
        let capacity = u64::from(topology.core(core).capacity);
        match realtime.entity(thread).class {
            SchedClass::Deadline { runtime_ns, deadline_ns, .. } => {
                deadline_ns * capacity / u64::from(CLAMP_MAX) >= runtime_ns
            }
            _ => {
                let (min, max) = self.sched.uclamp(thread);
                capacity >= u64::from(min.min(max))
            }
        }
    }

    /// The core at which a thread that is ready aims: one that does something less urgent, if there is any that it may
    /// use. Its previous core, unless somebody runs there whom it would only push on, or another one suits it better;
    /// else the core that does the least urgent things.
    fn target(&self, realtime: &RealTime, thread: ThreadId) -> Option<CoreId> {
        let own = realtime.urgency(thread);
        let allowed = |&core: &CoreId| self.sched.user_allows(thread, core);
        let open = |&core: &CoreId| own < self.urgency_on(realtime, core);
        let previous = self.sched.thread(thread).ran_on.filter(allowed).filter(open);
        if let Some(core) = previous.filter(|&core| self.suits(realtime, thread, core)) {
            return Some(core);
        }
        let home = self.sched.thread(thread).ran_on.map(|core| self.cores[core].cluster);
        let cores = self.sched.topology().cores().filter(allowed).filter(open);
        cores.min_by_key(|&core| {
            let suits = self.suits(realtime, thread, core);
            let (class, level) = self.urgency_on(realtime, core);
            let is_far = home != Some(self.cores[core].cluster);
            (!suits, u8::MAX - class, u64::MAX - level, is_far, core)
        })
    }

    /// A thread that is ready aims at a core, if there is one for it: the core is to switch.
    pub(super) fn aim(&mut self, thread: ThreadId) {
        let Some(realtime) = self.realtime.take() else { return };
        let target = self.target(&realtime, thread);
        self.realtime = Some(realtime);
        if let (Some(core), Some(realtime)) = (target, self.realtime.as_deref_mut()) {
            realtime.set_aim(thread, core);
            self.sched.look_above(thread, core);
            self.interrupt(core);
        }
    }

    /// The same for all that are ready and do not aim at a core yet, the most urgent first. Whoever aimed at a core
    /// that turned out to be more urgent looks again.
    pub(super) fn aim_all(&mut self) {
        let count = self.realtime.as_deref().map_or(0, |realtime| realtime.ready.len());
        for index in 0..count {
            let Some(realtime) = self.realtime.as_deref() else { return };
            let thread = realtime.ready[index];
            if realtime.aim(thread).is_some() {
                continue;
            }
            let own = realtime.urgency(thread);
            let mut cores = self.sched.topology().cores();
            if !cores.any(|core| own < self.urgency_on(realtime, core)) {
                // Nor is there a core for those that are less urgent.
                return;
            }
            self.aim(thread);
        }
    }

    /// The system has taken a core at which threads may have aimed.
    pub(in crate::engine) fn aim_elsewhere(&mut self, core: CoreId) {
        if self.has_realtime() {
            self.give_up_on(core);
            self.aim_all();
        }
    }

    /// Whoever aims at a core, which others have got, looks for another one.
    pub(super) fn give_up_on(&mut self, core: CoreId) {
        if let Some(realtime) = self.realtime.as_deref_mut() {
            realtime.give_up_on(core);
        }
    }

    /// A core has been given to a thread of the policy's meanwhile: if somebody aims at it, it is to switch.
    pub(in crate::engine) fn insist(&mut self, core: CoreId) {
        let Some(realtime) = self.realtime.as_deref() else { return };
        if realtime.coming[core.index()].is_some() {
            self.interrupt(core);
        }
    }

    /// A core is to switch to a thread of a class above.
    pub(super) fn interrupt(&mut self, core: CoreId) {
        if self.sched.current(core).is_some() {
            if let Some(watch) = &mut self.record.watch {
                watch.cut_above(core);
            }
        }
        self.switch_soon(core);
    }
}
