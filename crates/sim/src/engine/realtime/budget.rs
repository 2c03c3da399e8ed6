//! The budget of a deadline thread: a constant bandwidth server, as Linux has one for each (6.12).
//!
//! Rules of Documentation/scheduler/sched-deadline.rst, section 2, and kernel/sched/deadline.c: `update_dl_entity`,
//! `replenish_dl_entity`, `dl_next_period`, `update_dl_revised_wakeup`, `dl_check_constrained_dl`.

use ampsched_model::Ns;

/// Budget and absolute deadline of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct Budget {
    runtime_ns: Ns,
    relative_ns: Ns,
    period_ns: Ns,
    /// What is left of the runtime; less than 0: so much has been overrun.
    left_ns: i64,
    /// The present absolute deadline; none: it has not been ready yet.
    deadline_ns: Option<Ns>,
}

impl Budget {
    /// A thread that has not been ready yet: budget `runtime_ns` within `deadline_ns` of each `period_ns`.
    pub fn new(runtime_ns: Ns, deadline_ns: Ns, period_ns: Ns) -> Self {
        Self { runtime_ns, relative_ns: deadline_ns, period_ns, left_ns: 0, deadline_ns: None }
    }

    /// The present absolute deadline.
    pub fn deadline_ns(&self) -> Ns {
        self.deadline_ns.unwrap_or(Ns::MAX)
    }

    /// What is left, at least 0.
    pub fn left_ns(&self) -> Ns {
        self.left_ns.max(0) as Ns
    }

    /// Whether nothing is left.
    pub fn is_used_up(&self) -> bool {
        self.left_ns <= 0
    }

    /// Share of a core, in 2^-20 (`to_ratio`).
    pub fn bandwidth(&self) -> u64 {
        (u128::from(self.runtime_ns) << 20).div_euclid(u128::from(self.period_ns.max(1))) as u64
    }

    /// The thread becomes ready. Returns until when it is throttled instead, if it is: a thread whose deadline is
    /// shorter than its period that wakes between the two.
    pub fn wake(&mut self, now_ns: Ns) -> Option<Ns> {
        let is_implicit = self.relative_ns == self.period_ns;
        let Some(deadline_ns) = self.deadline_ns else {
            self.begin_period(now_ns);
            return None;
        };
        let has_passed = deadline_ns < now_ns;
        if !is_implicit && has_passed && now_ns < self.next_period_ns() {
            self.give_up();
            return Some(self.next_period_ns());
        }
        if has_passed {
            self.begin_period(now_ns);
        } else if self.overflows(deadline_ns - now_ns) {
            if is_implicit {
                self.begin_period(now_ns);
            } else {
                // No more than the density lets it use until its deadline.
                let laxity_ns = u128::from(deadline_ns - now_ns);
                let share = laxity_ns * u128::from(self.runtime_ns) / u128::from(self.relative_ns);
                self.left_ns = share as i64;
            }
        }
        None
    }

    /// Whether what is left until the deadline is more than the thread's bandwidth (`dl_entity_overflow`):
    /// left / laxity > runtime / relative deadline.
    fn overflows(&self, laxity_ns: Ns) -> bool {
        let left = u128::from(self.left_ns()) * u128::from(self.relative_ns);
        left > u128::from(laxity_ns) * u128::from(self.runtime_ns)
    }

    fn begin_period(&mut self, now_ns: Ns) {
        self.deadline_ns = Some(now_ns + self.relative_ns);
        self.left_ns = self.runtime_ns as i64;
    }

    /// The thread has run so long, in time of the fastest core.
    pub fn spend(&mut self, ran_ns: Ns) {
        self.left_ns -= ran_ns as i64;
    }

    /// The thread does not want the rest of its budget (`sched_yield`).
    pub fn give_up(&mut self) {
        self.left_ns = self.left_ns.min(0);
    }

    /// When a thread that has used its budget up gets a new one: at the begin of its next period.
    pub fn next_period_ns(&self) -> Ns {
        self.deadline_ns.map_or(0, |deadline_ns| deadline_ns - self.relative_ns + self.period_ns)
    }

    /// The thread gets a new budget, and a later deadline with it.
    pub fn replenish(&mut self, now_ns: Ns) {
        let Some(mut deadline_ns) = self.deadline_ns else { return self.begin_period(now_ns) };
        while self.left_ns <= 0 {
            deadline_ns += self.period_ns;
            self.left_ns += self.runtime_ns as i64;
        }
        self.deadline_ns = Some(deadline_ns);
        if deadline_ns < now_ns {
            self.begin_period(now_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules of sched-deadline.rst, section 2.1, in units of ms.
    #[test]
    fn a_thread_that_uses_its_budget_up_gets_the_next_one_a_period_later() {
        let mut budget = Budget::new(10, 100, 100);
        assert_eq!(budget.wake(1000), None);
        assert_eq!((budget.deadline_ns(), budget.left_ns()), (1100, 10));
        budget.spend(10);
        assert!(budget.is_used_up());
        assert_eq!(budget.next_period_ns(), 1100);
        budget.replenish(1100);
        assert_eq!((budget.deadline_ns(), budget.left_ns()), (1200, 10));
        // An overrun is paid for by the next budget, a long one by several.
        budget.spend(13);
        budget.replenish(1200);
        assert_eq!((budget.deadline_ns(), budget.left_ns()), (1300, 7));
        budget.spend(27);
        budget.replenish(1300);
        assert_eq!((budget.deadline_ns(), budget.left_ns()), (1600, 10));
    }

    /// remaining runtime / (scheduling deadline - current time) > runtime / period: a new deadline; else the old one.
    #[test]
    fn a_waking_thread_keeps_what_its_bandwidth_allows() {
        let mut budget = Budget::new(10, 100, 100);
        budget.wake(0);
        budget.spend(4);
        // 6 of 10 left, 61 of 100 to go: 6 / 61 < 10 / 100.
        let mut early = budget;
        assert_eq!(early.wake(39), None);
        assert_eq!((early.deadline_ns(), early.left_ns()), (100, 6));
        // 6 / 59 > 10 / 100.
        let mut late = budget;
        assert_eq!(late.wake(41), None);
        assert_eq!((late.deadline_ns(), late.left_ns()), (141, 10));
        // The deadline has passed.
        assert_eq!(budget.wake(150), None);
        assert_eq!((budget.deadline_ns(), budget.left_ns()), (250, 10));
    }

    /// A deadline that is shorter than the period: the revised wake-up rule, and throttling between the two.
    #[test]
    fn a_constrained_thread_never_uses_more_than_its_density() {
        let mut budget = Budget::new(10, 20, 100);
        budget.wake(0);
        budget.spend(2);
        // 8 left, 10 to go: more than 10 / 20. It gets 10 / 20 of the 10.
        let mut soon = budget;
        assert_eq!(soon.wake(10), None);
        assert_eq!((soon.deadline_ns(), soon.left_ns()), (20, 5));
        // Between deadline and next period it has to wait.
        assert_eq!(budget.wake(30), Some(100));
        assert!(budget.is_used_up());
        budget.replenish(100);
        assert_eq!((budget.deadline_ns(), budget.left_ns()), (120, 10));
        assert_eq!(budget.wake(500), None);
        assert_eq!((budget.deadline_ns(), budget.left_ns()), (520, 10));
    }

    #[test]
    fn who_yields_waits_for_the_next_period() {
        let mut budget = Budget::new(10, 100, 100);
        budget.wake(0);
        budget.spend(3);
        budget.give_up();
        assert!(budget.is_used_up());
        budget.replenish(100);
        assert_eq!((budget.deadline_ns(), budget.left_ns()), (200, 10));
    }

    #[test]
    fn bandwidths_are_shares_of_a_core() {
        assert_eq!(Budget::new(10, 100, 100).bandwidth(), (1 << 20) / 10);
        assert_eq!(Budget::new(7, 7, 7).bandwidth(), 1 << 20);
    }
}
