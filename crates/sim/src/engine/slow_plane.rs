//! The slow plane: when the policy looks and hears, and how its plan is carried out.

use ampsched_model::{CoreId, ThreadId};
use ampsched_policy::{Change, Event, Refusal};

use super::events::SimEvent;
use super::{Engine, Fallible};

impl Engine<'_> {
    /// Schedules the first epoch and the first balancing.
    pub(super) fn schedule_periodic(&mut self) {
        if let Some(epoch_ns) = self.supervisor.needs.epoch_ns {
            self.events.schedule(epoch_ns, SimEvent::Epoch);
        }
        if let Some(fast) = &self.supervisor.fast {
            self.events.schedule(fast.tick_ns(), SimEvent::Tick);
        }
        if let Some(balance) = self.sched.rules().balance {
            let first_ns = self.setup.machine.costs.at_tick(balance.period_ns);
            self.events.schedule(first_ns, SimEvent::Balance);
        }
    }

    /// Brings the books up to date, refreshes the factors, lets the policy look.
    pub(super) fn epoch(&mut self) -> Fallible {
        self.account_all();
        self.refresh_factors();
        let now_ns = self.events.now_ns();
        if let Some(watch) = &mut self.record.watch {
            watch.epoch();
        }
        self.supervisor.epoch(&self.sched, now_ns);
        self.apply_plan(None)?;
        self.charge_epoch();
        let epoch_ns = self.supervisor.needs.epoch_ns.expect("an epoch has a cadence");
        self.events.schedule(now_ns + epoch_ns, SimEvent::Epoch);
        Ok(())
    }

    /// The slow plane's work delays whoever runs on the first core.
    fn charge_epoch(&mut self) {
        let (core, epoch_ns) = (CoreId(0), self.setup.options.overhead.epoch_ns);
        if epoch_ns == 0 {
            return;
        }
        if let Some(thread) = self.sched.current(core) {
            self.account(core);
            self.cores[core].delay(&self.threads[thread], epoch_ns);
            self.arm(core);
        }
    }

    fn refresh_factors(&mut self) {
        if self.supervisor.needs.power {
            let threads: Vec<ThreadId> = self.sched.live_threads().collect();
            return threads.into_iter().for_each(|thread| self.refresh_factor(thread));
        }
        let now_ns = self.events.now_ns();
        for thread in self.sched.live_threads() {
            let profile = self.threads[thread].profile;
            self.supervisor.refresh(&self.sched, &self.speeds, thread, profile, None, now_ns);
        }
    }

    pub(super) fn refresh_factor(&mut self, thread: ThreadId) {
        let now_ns = self.events.now_ns();
        let mut power_mw = None;
        if self.supervisor.needs.power {
            power_mw = self.thread_power_mw(thread);
        }
        let profile = self.threads[thread].profile;
        self.supervisor.refresh(&self.sched, &self.speeds, thread, profile, power_mw, now_ns);
    }

    /// Carries out what the policy has asked for, because of an event or in an epoch.
    fn apply_plan(&mut self, event: Option<Event>) -> Fallible {
        if self.supervisor.plan.is_empty() {
            return Ok(());
        }
        let refused = |refusal: Refusal| self.setup.bad_policy(refusal.to_string());
        self.sched.check(&self.supervisor.plan).map_err(refused)?;
        let mut opens = false;
        let changes: Vec<(ThreadId, Change)> = self.supervisor.plan.drain().collect();
        for (thread, change) in changes {
            if !self.threads.has(thread) {
                let what = format!("plans for thread {}, which does not exist", thread.0);
                return Err(self.setup.bad_policy(what));
            }
            match change {
                Change::Slice(slice_ns @ 1..) => {
                    self.setup.check_slice(self.sched.rules(), slice_ns)?;
                }
                Change::Weight(weight) => self.setup.check_turns(weight, &self.sched)?,
                _ => {}
            }
            let before = self.record.watch.as_ref().map(|_| *self.sched.plan(thread));
            let effect = self.sched.apply(thread, &change);
            self.fast_changed(thread);
            opens |= effect.opens;
            if let Some(watch) = &mut self.record.watch {
                if effect.moves || before.is_some_and(|before| before != *self.sched.plan(thread)) {
                    let factors = self.supervisor.factors(thread);
                    watch.planned(thread, &change, event, factors, self.events.now_ns());
                }
            }
            if effect.moves {
                self.relocate(thread)?;
            }
        }
        self.apply_frequencies()?;
        if opens {
            self.offer_to_idle_cores();
        }
        Ok(())
    }

    /// Tells the policy of an event that it wants to hear of, and carries out what it asks for then.
    #[inline]
    pub(super) fn tell(&mut self, event: Event) -> Fallible {
        if !self.supervisor.wants(event) {
            return Ok(());
        }
        self.supervisor.hear(&self.sched, event, self.events.now_ns());
        self.apply_plan(Some(event))
    }

    /// Balances the run queues.
    pub(super) fn balance(&mut self) {
        let balance = self.sched.rules().balance.expect("balancing has a period");
        self.account_all();
        let now_ns = self.events.now_ns();
        let receivers = match &mut self.record.watch {
            None => self.sched.balance(balance, now_ns),
            Some(watch) => watch.balance(&mut self.sched, balance, now_ns),
        };
        for core in receivers {
            self.after_enqueue(core, now_ns);
        }
        let next_ns = self.setup.machine.costs.at_tick(now_ns + balance.period_ns);
        self.events.schedule(next_ns, SimEvent::Balance);
    }
}
