//! Threads move by load: kernels before 5.5
//! (fair.c 3.16 and 4.14: `load_balance`, `move_tasks` and `detach_tasks`, `can_migrate_task`, `need_active_balance`,
//! `active_load_balance_cpu_stop`, `idle_balance`, `nohz_kick_needed`).

use ampsched_model::CoreId;

use super::Fair;
use super::balance::{LOOKED_AT_MAX, MIGRATION_COST_NS};
use super::by_load::Busy;
use super::state::EntityId;
use super::stats::When;
use crate::{Act, Sched};

/// What is being balanced (`struct lb_env`).
#[derive(Clone, Copy, Debug)]
struct Pull {
    core: usize,
    level: usize,
    when: When,
    source: usize,
    found: Busy,
    /// Load that is still to be moved.
    imbalance: i64,
    moved: u32,
    /// No thread may come, and some may not (`LBF_ALL_PINNED`, `LBF_SOME_PINNED`).
    all_are_bound: bool,
    some_are_bound: bool,
}

impl Fair {
    /// Balances one domain of a core if it is its turn. Returns whether a thread has come (`load_balance`).
    pub(super) fn balance_by_load(
        &mut self,
        sched: &Sched,
        core: usize,
        level: usize,
        when: When,
        acts: &mut Vec<Act>,
    ) -> bool {
        if !self.is_to_balance(core, level, when) {
            self.flag_imbalance(core, level, false);
            return self.is_even(core, level, false);
        }
        let domain = self.domains.of_core[core][level].domain;
        let mut without: Vec<usize> = Vec::new();
        loop {
            let Some(found) = self.find_busiest_by_load(core, level, when, &without) else {
                self.flag_imbalance(core, level, false);
                return self.is_even(core, level, !without.is_empty());
            };
            let Some(source) = self.busiest_core_by_load((domain, core), &found, &without) else {
                self.flag_imbalance(core, level, false);
                return self.is_even(core, level, !without.is_empty());
            };
            let mut pull = Pull {
                core,
                level,
                when,
                source,
                found,
                imbalance: found.imbalance as i64,
                moved: 0,
                all_are_bound: self.threads_on(source) > 1,
                some_are_bound: false,
            };
            if self.threads_on(source) > 1 {
                self.pull_by_load(sched, &mut pull, acts);
                if pull.some_are_bound && pull.imbalance > 0 {
                    self.flag_imbalance(core, level, true);
                }
            }
            if !pull.all_are_bound {
                return self.is_pulled(sched, &pull, acts);
            }
            // Its threads may not come, or nothing is to be moved: look at the other cores.
            without.push(source);
            if without.len() >= self.cores.len() {
                return self.is_even(core, level, true);
            }
        }
    }

    /// There is nothing to do: look again later (`out_balanced`, `out_one_pinned`).
    fn is_even(&mut self, core: usize, level: usize, are_bound: bool) -> bool {
        self.domains.of_core[core][level].failures = 0;
        self.look_later(core, level, are_bound);
        false
    }

    /// Tells the domain above that affinities keep balancing in a group from working, or that they do not.
    fn flag_imbalance(&mut self, core: usize, level: usize, is_imbalanced: bool) {
        if let Some(above) = self.domains.of_core[core].get(level + 1) {
            self.domains.all[above.domain].groups[above.own_group].is_imbalanced = is_imbalanced;
        }
    }

    /// Some threads, or none, have come: if none often, a running one is stopped and taken (end of `load_balance`).
    fn is_pulled(&mut self, sched: &Sched, pull: &Pull, acts: &mut Vec<Act>) -> bool {
        let &Pull { core, level, when, source, .. } = pull;
        let domain = self.domains.of_core[core][level].domain;
        let (tries, interval_min) =
            (self.domains.all[domain].cache_nice_tries, self.domains.all[domain].interval_min);
        if pull.moved == 0 {
            let is_taken = self.is_taken_at_once((core, source), when, &pull.found);
            let own = &mut self.domains.of_core[core][level];
            own.failures += u32::from(when != When::NewlyIdle);
            // `need_active_balance`.
            if own.failures > tries + 2 || is_taken {
                let current = self.cores[source].current;
                if current.is_some_and(|current| !self.may_move(sched, current, core)) {
                    self.look_later(core, level, true);
                    return false;
                }
                self.domains.of_core[core][level].failures = tries + 1;
                self.push_by_load(sched, source, core, acts);
                self.look_later(core, level, false);
                return false;
            }
        } else {
            self.domains.of_core[core][level].failures = 0;
        }
        self.domains.of_core[core][level].interval = interval_min;
        pull.moved > 0
    }

    /// Takes waiting threads from a core, those first that came last (3.16 `move_tasks`, 4.14 `detach_tasks`).
    fn pull_by_load(&mut self, sched: &Sched, pull: &mut Pull, acts: &mut Vec<Act>) {
        if pull.imbalance <= 0 {
            return;
        }
        self.charge(pull.source);
        let mut candidates = std::mem::take(&mut self.candidates);
        self.collect_threads(pull.source, &mut candidates);
        self.pull_some(sched, pull, &candidates, true, acts);
        if self.goes_by_demand() && pull.moved == 0 {
            self.pull_some(sched, pull, &candidates, false, acts);
        }
        self.candidates = candidates;
    }

    /// Looks at a core's threads once; `keeps_big`: with WALT, not at those that do not fit on a weaker core.
    fn pull_some(
        &mut self,
        sched: &Sched,
        pull: &mut Pull,
        candidates: &[EntityId],
        keeps_big: bool,
        acts: &mut Vec<Act>,
    ) {
        let cores = (pull.core, pull.source);
        let shrinks = self.cores[pull.core].capacity_max < self.cores[pull.source].capacity_max;
        let domain = self.domains.of_core[pull.core][pull.level].domain;
        for &id in candidates.iter().take(LOOKED_AT_MAX) {
            // Since 4.3, the last one is left.
            let is_last = self.threads_on(pull.source) <= 1;
            if !self.kernel.counts_threads() && pull.when != When::Busy && is_last {
                break;
            }
            if !self.can_be_pulled(sched, pull, id)
                || self.is_better_left(cores, domain, pull.when, id, keeps_big && shrinks)
            {
                self.look_at_last(id);
                continue;
            }
            let load = self.load_of(id) as i64;
            // With WALT, the only one that waits is taken however much it is.
            let is_only = self.goes_by_demand()
                && self.threads_on(pull.source) <= 2
                && !(keeps_big && shrinks);
            if load / 2 > pull.imbalance && !is_only {
                self.look_at_last(id);
                continue;
            }
            self.migrate(id, pull.core, acts);
            self.settle_in(id, pull.core, acts);
            pull.moved += 1;
            pull.imbalance -= load;
            // Kernels that can be interrupted (`CONFIG_PREEMPT`) take one at a time here.
            if pull.when == When::NewlyIdle || pull.imbalance <= 0 {
                break;
            }
        }
    }

    /// Whether a thread may be taken now (`can_migrate_task`).
    fn can_be_pulled(&self, sched: &Sched, pull: &mut Pull, id: EntityId) -> bool {
        if !self.may_move(sched, id, pull.core) {
            pull.some_are_bound = true;
            return false;
        }
        pull.all_are_bound = false;
        if self.is_running(id) {
            return false;
        }
        let own = &self.domains.of_core[pull.core][pull.level];
        let tries = self.domains.all[own.domain].cache_nice_tries;
        let is_eager = self.goes_by_demand() && pull.when != When::Busy;
        is_eager || own.failures > tries || !self.is_warm(id, pull.core)
    }

    /// Whether a thread has run shortly ago, or is to run next on its core and the other has something else
    /// (`task_hot`, `CACHE_HOT_BUDDY`).
    fn is_warm(&self, id: EntityId, core: usize) -> bool {
        let buddies = self.queues[self.entities[id as usize].queue as usize].buddies;
        let is_buddy = [buddies.next, buddies.last].contains(&Some(id));
        (is_buddy && self.threads_on(core) > 0) || self.is_hot(id)
    }

    /// It is the last that balancing looks at.
    fn look_at_last(&mut self, id: EntityId) {
        self.last_stamp -= 1;
        self.entities[id as usize].stamp = self.last_stamp;
    }

    /// A thread has come to a core, where it is no longer warm, and the core looks at it (`attach_task`,
    /// `migrate_task_rq_fair`, `check_preempt_curr`).
    fn settle_in(&mut self, id: EntityId, core: usize, acts: &mut Vec<Act>) {
        self.entities[id as usize].charged_ns = 0;
        if self.cores[core].current.is_none() || self.interrupts(core, id) {
            acts.push(Act::Resched(CoreId::from(core)));
        }
    }

    /// Stops a core and takes a thread, that which came last if it may, where it is no longer warm.
    fn push_by_load(&mut self, sched: &Sched, source: usize, core: usize, acts: &mut Vec<Act>) {
        if let Some(id) = self.stop_and_take(sched, source, core, acts) {
            self.settle_in(id, core, acts);
        }
    }

    /// A core that has nothing more to run looks for something, if it is idle for long enough on average; since 3.17
    /// only if some core has more than one thread (`idle_balance`). Returns whether something has come.
    pub(super) fn pull_newly_idle(
        &mut self,
        sched: &Sched,
        core: usize,
        acts: &mut Vec<Act>,
    ) -> bool {
        let idle_ns = self.cores[core].idle_mean_ns;
        let is_worth_it = self.kernel.counts_threads() || self.root.is_overloaded;
        let is_forced = self.is_forced_to_look(core);
        if !is_forced && (idle_ns < MIGRATION_COST_NS || !is_worth_it) {
            return false;
        }
        self.settle_core(core);
        let mut cost_ns = 0;
        for level in 0..self.domains.of_core[core].len() {
            cost_ns += self.domains.all[self.domains.of_core[core][level].domain].newidle_cost_ns;
            if !is_forced && idle_ns < cost_ns {
                break;
            }
            if self.balance(sched, core, level, When::NewlyIdle, acts) {
                return true;
            }
        }
        false
    }

    /// Whether a core with one thread has an idle core balance: if others of its cache are busy; up to 4.0 only if
    /// there is a domain beyond its cache (`nohz_kick_needed`).
    pub(super) fn shares_cache_with_busy(&self, core: usize) -> bool {
        let Some(cache) = self.domains.cache[core] else { return false };
        let is_top = self.domains.of_core[core].last().is_some_and(|level| level.domain == cache);
        if self.kernel.counts_threads() && is_top {
            return false;
        }
        let busy = self.domains.all[cache].cores.iter().filter(|&&other| !self.is_idle(other));
        busy.count() > 1
    }
}
