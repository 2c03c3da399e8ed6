//! Steps that use time: work for the core, sleep, timers, devices.

use ampsched_model::{Amount, Ns, ObjectId, ThreadId};

use super::{Engine, Next, Step};
use crate::engine::contention::rate_on;
use crate::engine::events::SimEvent;
use crate::engine::threads::{WaitsFor, Work};

impl Engine<'_> {
    pub(super) fn draw_work(
        &mut self,
        thread: ThreadId,
        work: Work,
        amount: &Amount,
        profile: u32,
    ) -> Step {
        let amount = amount.draw(&mut self.threads[thread].draw);
        self.begin_work(thread, work, amount, profile)
    }

    /// Work that is stated as time on the machine's fastest core.
    pub(super) fn draw_reference_work(
        &mut self,
        thread: ThreadId,
        amount: &Amount,
        profile: u32,
    ) -> Step {
        let ns = amount.draw(&mut self.threads[thread].draw);
        let amount = (ns as f64 * self.speeds.reference(profile)).round() as u64;
        self.begin_work(thread, Work::Instructions, amount, profile)
    }

    /// Starts work for the core; behind it stands the next step.
    pub(in crate::engine) fn begin_work(
        &mut self,
        thread: ThreadId,
        work: Work,
        amount: u64,
        profile: u32,
    ) -> Step {
        let core = self.sched.thread(thread).core;
        if profile != self.threads[thread].profile {
            self.meter_running(core, thread, profile);
        }
        let entry = &mut self.threads[thread];
        entry.next_step();
        if amount == 0 {
            return Step::Go;
        }
        entry.begin(work, amount, profile);
        let state = &mut self.cores[core];
        let rate = rate_on(&mut self.contention, &self.speeds, core, state.cluster, profile);
        state.set_work(entry, rate);
        Step::Stop(Next::Work)
    }

    pub(super) fn sleep(&mut self, thread: ThreadId, amount: &Amount) -> Step {
        let sleep_ns = amount.draw(&mut self.threads[thread].draw);
        self.sleep_until(thread, self.events.now_ns() + sleep_ns)
    }

    pub(super) fn wait_for_timer(
        &mut self,
        thread: ThreadId,
        timer: ObjectId,
        period_ns: Ns,
        rebase: bool,
    ) -> Step {
        let now_ns = self.events.now_ns();
        let expiry_ns = self.objects.next_expiry(thread, timer, period_ns, rebase, now_ns);
        let next_ns = if rebase { expiry_ns.max(now_ns) } else { expiry_ns };
        self.end_period(thread, next_ns, period_ns);
        self.sleep_until(thread, expiry_ns)
    }

    /// Sleeps until a time since the application's begin.
    pub(super) fn sleep_until_own(&mut self, thread: ThreadId, at_ns: Ns) -> Step {
        let began_ns = self.apps[self.threads[thread].app].began_ns;
        self.sleep_until(thread, began_ns.saturating_add(at_ns))
    }

    /// Goes on to the next step at that time, at once if it has passed.
    fn sleep_until(&mut self, thread: ThreadId, until_ns: Ns) -> Step {
        self.threads[thread].next_step();
        if until_ns <= self.events.now_ns() {
            return Step::Go;
        }
        self.events.schedule(until_ns, SimEvent::Wake(thread));
        self.block(thread, WaitsFor::Time)
    }

    /// Asks a device for service; the thread blocks until it is done.
    pub(super) fn request_io(
        &mut self,
        thread: ThreadId,
        device: ObjectId,
        service_ns: &Amount,
    ) -> Step {
        let core = self.sched.thread(thread).core;
        let entry = &mut self.threads[thread];
        let service_ns = service_ns.draw(&mut entry.draw);
        entry.next_step();
        entry.io_core = Some(core);
        self.cores[core].waiting_io += 1;
        if self.objects.request(thread, device, service_ns) {
            self.serve(device, thread, service_ns);
        }
        self.block(thread, WaitsFor::Object(device))
    }
}
