//! Spinning: a thread that has to wait for an object uses its core for a while before it blocks.
//!
//! Who waits is in the object's list, as if it were blocked; only it is not. If its turn comes while it spins, it goes
//! on with its next step: at once if it has a core, else when it gets one. Nobody sends it a wake-up then, and no
//! policy hears of a wait. It may lose its core meanwhile, as any thread may.

use ampsched_model::{Ns, ObjectId, ThreadId};
use ampsched_policy::RunState;

use super::{Engine, Next, Step};
use crate::engine::threads::{WaitsFor, Work};

impl Engine<'_> {
    /// A thread that has to wait begins to spin.
    pub(super) fn begin_spinning(&mut self, thread: ThreadId, object: ObjectId) -> Step {
        let spin_ns = self.objects.spin_ns(object);
        let step = self.begin_work(thread, Work::CpuTime, spin_ns, self.spin_profile);
        debug_assert!(matches!(step, Step::Stop(Next::Work)));
        let entry = &mut self.threads[thread];
        // What is to be tried again stays where it is; the rest has been passed already.
        entry.pc.0 -= 1;
        entry.spins = true;
        step
    }

    /// The turn of a thread that waits has come: if it spins, it goes on.
    pub(in crate::engine) fn end_spinning(&mut self, thread: ThreadId) {
        if !self.threads[thread].spins {
            return;
        }
        let core = self.sched.thread(thread).core;
        let has_core = self.sched.current(core) == Some(thread);
        if has_core {
            self.account(core);
        }
        let left_ns = self.threads[thread].remaining;
        self.count_spin(thread, left_ns);
        let entry = &mut self.threads[thread];
        // Its time may just be up: then it goes on instead of blocking.
        entry.drop_work();
        entry.waits_for = WaitsFor::Nothing;
        if has_core {
            let state = &mut self.cores[core];
            state.set_work(entry, self.speeds.rate(entry.profile, state.cluster));
            self.arm(core);
        }
    }

    /// A thread has spun for as long as it may: it blocks.
    #[cold]
    pub(super) fn end_spin_in_vain(&mut self, thread: ThreadId) -> Next {
        self.count_spin(thread, 0);
        self.threads[thread].spins = false;
        Next::Blocked
    }

    fn count_spin(&mut self, thread: ThreadId, left_ns: Ns) {
        let entry = &mut self.threads[thread];
        if let WaitsFor::Object(object) = entry.waits_for {
            entry.spun_ns += self.objects.spin_ns(object) - left_ns;
        }
    }

    /// Before an object is given on: a thread that spins on a core now gets it before all others, as it looks all the
    /// time.
    #[inline]
    pub(super) fn prefer_spinners(&mut self, object: ObjectId) {
        if self.objects.spin_ns(object) == 0 {
            return;
        }
        let (threads, sched) = (&self.threads, &self.sched);
        self.objects.prefer(object, |thread| {
            threads[thread].spins && sched.thread(thread).state == RunState::Running
        });
    }
}
