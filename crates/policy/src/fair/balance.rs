//! Threads move to where there is less to do
//! (fair.c 6.18: `sched_balance_domains`, `sched_balance_rq`, `detach_tasks`, `can_migrate_task`,
//! `need_active_balance`, `sched_balance_newidle`).

use ampsched_model::{CoreId, Ns};

use super::run::{Comes, Leaves};
use super::state::EntityId;
use super::stats::{Busiest, Moves, When};
use super::{Fair, QueueId};
use crate::{Act, Sched};

/// A thread that ran on a core that shortly ago is still warm there (`sysctl_sched_migration_cost`).
pub(super) const MIGRATION_COST_NS: Ns = 500_000;
/// Threads that are looked at at most (`sysctl_sched_nr_migrate`).
pub(super) const LOOKED_AT_MAX: usize = 32;
/// Longest interval of a domain whose threads are bound, in ms (`MAX_PINNED_INTERVAL`).
const PINNED_INTERVAL: u64 = 512;

/// What a search for threads has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pulled {
    /// A number of threads have come.
    Threads(u64),
    /// None could come.
    Nothing { all_are_bound: bool },
}

impl Fair {
    /// Balances the domains of a core that are due (`sched_balance_domains`).
    pub(super) fn balance_domains(
        &mut self,
        sched: &Sched,
        core: usize,
        when: When,
        acts: &mut Vec<Act>,
    ) {
        let now = self.ticks();
        let mut when = when;
        let mut next = now + 60_000_000_000 / self.tick_ns;
        for level in 0..self.domains.of_core[core].len() {
            if !self.may_balance(core, level) {
                continue;
            }
            let interval = self.interval(core, level, when == When::Busy);
            if now >= self.domains.of_core[core][level].last_balance + interval {
                if self.balance(sched, core, level, when, acts) {
                    when = if self.is_idle(core) { When::Idle } else { When::Busy };
                }
                self.domains.of_core[core][level].last_balance = now;
            }
            let interval = self.interval(core, level, when == When::Busy);
            next = next.min(self.domains.of_core[core][level].last_balance + interval);
        }
        self.cores[core].balance_due = next;
    }

    /// How often a core balances a domain, in ticks (`get_sd_balance_interval`).
    pub(super) fn interval(&self, core: usize, level: usize, is_busy: bool) -> u64 {
        if self.is_urgent(core, level) {
            return 1;
        }
        let mut ms = self.domains.of_core[core][level].interval;
        let is_busy = is_busy && !self.has_only_idlers(core);
        if is_busy {
            ms *= self.kernel.busy_factor;
        }
        // A tick less, lest all cores balance at once (since 5.10).
        let sooner = is_busy && !self.kernel.is_by_load();
        let ticks = (ms * 1_000_000).div_ceil(self.tick_ns).max(1) - u64::from(sooner);
        let longest = 1_000_000_000 / self.tick_ns * self.cores.len() as u64 / 10;
        ticks.clamp(1, longest.max(1))
    }

    /// Balances one domain of a core. Returns whether a thread has come (`sched_balance_rq`).
    pub(super) fn balance(
        &mut self,
        sched: &Sched,
        core: usize,
        level: usize,
        when: When,
        acts: &mut Vec<Act>,
    ) -> bool {
        if self.kernel.is_by_load() {
            return self.balance_by_load(sched, core, level, when, acts);
        }
        if !self.is_to_balance(core, level, when) {
            self.is_balanced(core, level, when, false);
            return false;
        }
        let domain = self.domains.of_core[core][level].domain;
        let tries = self.domains.all[domain].cache_nice_tries;
        let Some(found) = self.find_busiest(core, level, when) else {
            self.is_balanced(core, level, when, false);
            return false;
        };
        let Some(source) = self.busiest_core(core, level, &found).filter(|&source| source != core)
        else {
            self.is_balanced(core, level, when, false);
            return false;
        };
        let pulled = if self.threads_on(source) > 1 {
            self.pull(sched, core, source, level, when, found, acts)
        } else {
            Pulled::Nothing { all_are_bound: false }
        };
        let own = &self.domains.all[domain];
        let (interval_min, asymmetric) = (own.interval_min, own.is_asymmetric);
        let mut pushes = false;
        match pulled {
            Pulled::Threads(_) => self.domains.of_core[core][level].failures = 0,
            Pulled::Nothing { all_are_bound: true } => {
                self.is_balanced(core, level, when, true);
                return false;
            }
            Pulled::Nothing { .. } => {
                // What is too big for its core is no failure of balancing.
                if when != When::NewlyIdle && !(asymmetric && found.moves == Moves::Misfit) {
                    self.domains.of_core[core][level].failures += 1;
                }
                if self.needs_push(core, source, level, when, &found, tries) {
                    pushes = true;
                    if self.push(sched, source, core, acts) {
                        self.domains.of_core[core][level].failures = 0;
                    }
                }
            }
        }
        if !pushes || self.needs_push(core, source, level, when, &found, tries) {
            self.domains.of_core[core][level].interval = interval_min;
        }
        matches!(pulled, Pulled::Threads(_))
    }

    /// There is nothing to do: look again later (`out_balanced`, `out_one_pinned`).
    fn is_balanced(&mut self, core: usize, level: usize, when: When, all_are_bound: bool) {
        self.domains.of_core[core][level].failures = 0;
        if when != When::NewlyIdle {
            self.look_later(core, level, all_are_bound);
        }
    }

    /// The domain is balanced half as often from now on, down to a limit.
    pub(super) fn look_later(&mut self, core: usize, level: usize, are_bound: bool) {
        let domain = self.domains.of_core[core][level].domain;
        let interval_max = self.domains.all[domain].interval_max;
        let own = &mut self.domains.of_core[core][level];
        if (are_bound && own.interval < PINNED_INTERVAL) || own.interval < interval_max {
            own.interval *= 2;
        }
    }

    /// Whether it is this core's turn to balance for its group: the first idle one's, else the first one's
    /// (`should_we_balance`).
    pub(super) fn is_to_balance(&self, core: usize, level: usize, when: When) -> bool {
        if when == When::NewlyIdle {
            return self.threads_on(core) == 0;
        }
        let own = &self.domains.of_core[core][level];
        let domain = &self.domains.all[own.domain];
        let cores = &domain.groups[own.own_group].cores;
        self.first_idle_of(domain, cores).unwrap_or(cores[0]) == core
    }

    /// Takes waiting threads from another core, those first that have not run for longest (`detach_tasks`).
    #[allow(clippy::too_many_arguments)]
    pub(super) fn pull(
        &mut self,
        sched: &Sched,
        core: usize,
        source: usize,
        level: usize,
        when: When,
        found: Busiest,
        acts: &mut Vec<Act>,
    ) -> Pulled {
        let failures = self.domains.of_core[core][level].failures;
        let domain = &self.domains.all[self.domains.of_core[core][level].domain];
        let tries = domain.cache_nice_tries;
        // Siblings share all caches (`task_hot`, since 5.10).
        let is_near = domain.are_siblings;
        self.charge(source);
        let mut candidates = std::mem::take(&mut self.candidates);
        self.collect_threads(source, &mut candidates);
        let mut imbalance = found.imbalance;
        let mut moved = 0;
        let mut all_are_bound = true;
        for &id in candidates.iter().take(LOOKED_AT_MAX) {
            // The last one of a core that has something to do is not taken.
            if when != When::Busy && self.threads_on(source) <= 1 {
                break;
            }
            if !self.may_move(sched, id, core) {
                self.stamp(id);
                continue;
            }
            all_are_bound = false;
            let is_last_resort = failures > tries;
            if self.is_running(id)
                || (self.entities[id as usize].is_delayed && found.moves != Moves::Load)
                || (!is_near && self.is_hot(id) && !is_last_resort)
            {
                self.stamp(id);
                continue;
            }
            match found.moves {
                Moves::Load => {
                    let load = self.load_of(id).max(1);
                    if load >> failures.min(63) > imbalance {
                        self.stamp(id);
                        continue;
                    }
                    imbalance = imbalance.saturating_sub(load);
                }
                Moves::Util => {
                    let util = self.util_of(id);
                    if util >> failures.min(63) > imbalance {
                        self.stamp(id);
                        continue;
                    }
                    imbalance = imbalance.saturating_sub(util);
                }
                Moves::Threads => imbalance -= 1,
                Moves::Misfit => {
                    if self.fits_on(id, source) {
                        self.stamp(id);
                        continue;
                    }
                    imbalance = 0;
                }
            }
            self.migrate(id, core, acts);
            moved += 1;
            if when == When::NewlyIdle || imbalance == 0 {
                break;
            }
        }
        self.candidates = candidates;
        if moved > 0 {
            if self.is_to_resched_after_move(core) {
                acts.push(Act::Resched(CoreId::from(core)));
            }
            Pulled::Threads(moved)
        } else {
            Pulled::Nothing { all_are_bound }
        }
    }

    /// The threads of a core, the running one included, those first that have not been taken or looked at for longest.
    pub(super) fn collect_threads(&self, core: usize, into: &mut Vec<EntityId>) {
        into.clear();
        let queues =
            std::iter::once(core as QueueId).chain(self.queues_of_groups[core].iter().copied());
        for queue in queues {
            let queue = &self.queues[queue as usize];
            let all = queue.entries.iter().map(|entry| entry.entity).chain(queue.current);
            into.extend(all.filter(|&id| self.entities[id as usize].thread.is_some()));
        }
        into.sort_unstable_by_key(|&id| self.entities[id as usize].stamp);
        if self.kernel.is_by_load() {
            // Up to 4.14, those that came last stand first.
            into.reverse();
        }
    }

    /// Whether a thread may use a core.
    pub(super) fn may_move(&self, sched: &Sched, id: EntityId, core: usize) -> bool {
        let thread = self.entities[id as usize].thread;
        thread.is_some_and(|thread| sched.allows(thread, CoreId::from(core)))
    }

    pub(super) fn is_running(&self, id: EntityId) -> bool {
        let queue = self.entities[id as usize].queue;
        self.queues[queue as usize].current == Some(id)
    }

    /// Whether a thread has run shortly ago, which of class idle does not matter (`task_hot`).
    pub(super) fn is_hot(&self, id: EntityId) -> bool {
        let entity = &self.entities[id as usize];
        !entity.is_idler && self.now_ns - entity.charged_ns < MIGRATION_COST_NS
    }

    /// A waiting thread, or one whose departure is delayed, goes to another core (`detach_task`, `attach_task`).
    pub(super) fn migrate(&mut self, id: EntityId, core: usize, acts: &mut Vec<Act>) {
        let was_delayed = self.entities[id as usize].is_delayed;
        self.shift(id, core);
        if was_delayed {
            // It sleeps: its host need not know where.
            return;
        }
        acts.push(Act::Move { thread: self.thread_of(id), to: CoreId::from(core) });
    }

    /// A queued thread that does not run changes queues.
    pub(super) fn shift(&mut self, id: EntityId, core: usize) {
        let was_delayed = self.entities[id as usize].is_delayed;
        self.leave_by_demand(id, false);
        self.dequeue(id, Leaves::Moves);
        self.detach(id);
        self.set_core(id, core);
        self.charge(core);
        self.enqueue(id, Comes::Moved);
        self.enter_by_demand(id, false);
        if was_delayed {
            self.entities[id as usize].is_delayed = true;
            self.uncount_delayed(id);
        }
    }

    /// Whether a running thread is to be stopped and taken (`need_active_balance`).
    fn needs_push(
        &self,
        core: usize,
        source: usize,
        level: usize,
        when: When,
        found: &Busiest,
        tries: u32,
    ) -> bool {
        let own = &self.domains.of_core[core][level];
        let domain = &self.domains.all[own.domain];
        let is_better_off = || {
            self.packs_at_once(domain, core, source)
                || self.spares(domain.imbalance_pct, core, source)
        };
        (when != When::Busy && is_better_off())
            || (found.moves == Moves::Threads && own.failures > tries + 2)
            || found.moves == Moves::Misfit
    }

    /// Stops a core, and takes the thread that has not been taken or looked at for longest. Returns whether there was
    /// one.
    fn push(&mut self, sched: &Sched, source: usize, core: usize, acts: &mut Vec<Act>) -> bool {
        if self.stop_and_take(sched, source, core, acts).is_none() {
            return false;
        }
        self.cores[source].misfit_load = 0;
        if self.is_to_resched_after_move(core) {
            acts.push(Act::Resched(CoreId::from(core)));
        }
        true
    }

    /// Stops a core, and takes the first of its threads that may go to another one, be it the one that ran
    /// (`active_load_balance_cpu_stop`).
    pub(super) fn stop_and_take(
        &mut self,
        sched: &Sched,
        source: usize,
        core: usize,
        acts: &mut Vec<Act>,
    ) -> Option<EntityId> {
        self.charge(source);
        let mut candidates = std::mem::take(&mut self.candidates);
        self.collect_threads(source, &mut candidates);
        let found = candidates.iter().copied().find(|&id| self.may_move(sched, id, core));
        self.candidates = candidates;
        let id = found?;
        if self.is_running(id) {
            self.put_back(source);
            self.shift(id, core);
            acts.push(Act::Push { thread: self.thread_of(id), to: CoreId::from(core) });
        } else {
            self.migrate(id, core, acts);
        }
        Some(id)
    }

    /// Whether what has just come to a core is to be looked at at once (`attach_task`, `wakeup_preempt`).
    fn is_to_resched_after_move(&mut self, core: usize) -> bool {
        match self.cores[core].current {
            None => true,
            Some(current) => {
                self.first_of(self.entities[current as usize].queue, true) != Some(current)
            }
        }
    }

    /// A core that has nothing more to run looks for something (`sched_balance_newidle`). Returns whether something has
    /// come.
    pub(super) fn balance_newly_idle(
        &mut self,
        sched: &Sched,
        core: usize,
        acts: &mut Vec<Act>,
    ) -> bool {
        self.note_workers();
        let idle_mean_ns = self.cores[core].idle_mean_ns;
        let first_cost_ns = self.domains.of_core[core]
            .first()
            .map(|level| self.domains.all[level.domain].newidle_cost_ns);
        let mut pulled = false;
        if self.kernel.is_by_load() {
            pulled = self.pull_newly_idle(sched, core, acts);
        } else if self.root.is_overloaded
            && first_cost_ns.is_some_and(|cost_ns| idle_mean_ns >= cost_ns)
        {
            self.settle_core(core);
            let mut cost_ns = 0;
            for level in 0..self.domains.of_core[core].len() {
                let own =
                    self.domains.all[self.domains.of_core[core][level].domain].newidle_cost_ns;
                if idle_mean_ns < cost_ns + own {
                    break;
                }
                cost_ns += own;
                let Some(worth) = self.newidle_draw(core, level) else {
                    self.count_newidle(core, level, 0);
                    continue;
                };
                pulled = self.balance(sched, core, level, When::NewlyIdle, acts);
                self.count_newidle(core, level, if pulled { worth } else { 0 });
                if pulled {
                    break;
                }
            }
        }
        let due = (0..self.domains.of_core[core].len())
            .map(|level| {
                self.domains.of_core[core][level].last_balance + self.interval(core, level, false)
            })
            .min();
        if let Some(due) = due {
            self.cores[core].balance_due = self.cores[core].balance_due.min(due);
        }
        if !pulled && idle_mean_ns >= MIGRATION_COST_NS {
            self.note_blocked();
        }
        pulled
    }

    /// Searches of newly idle cores that have seldom been worth it are made as seldom (`NI_RANDOM`, since 6.18.3 and
    /// 7.0). Returns how much a success counts; none: not this time.
    pub(super) fn newidle_draw(&mut self, core: usize, level: usize) -> Option<u32> {
        if !self.kernel.draws_newidle {
            return Some(1);
        }
        let weight = 1 + self.domains.of_core[core][level].newidle_ratio;
        let draw = (self.draw() % 1024) as u32;
        (draw <= weight).then(|| (1024 + weight / 2) / weight)
    }

    /// `update_newidle_stats`.
    pub(super) fn count_newidle(&mut self, core: usize, level: usize, success: u32) {
        let own = &mut self.domains.of_core[core][level];
        own.newidle_calls += 1;
        own.newidle_successes += success;
        if own.newidle_calls >= 1024 {
            own.newidle_ratio = own.newidle_successes;
            own.newidle_calls /= 2;
            own.newidle_successes /= 2;
        }
    }
}
