//! What must have happened between two looks at a system, in an order that a scheduler could have produced.
//!
//! Of each thread is known how long it ran, how long it waited for a core and what it does at the end, not when.
//! On each core the run times are laid one after another; a thread waits before and after its own, as long as
//! it did wait, and is blocked for the rest. So times add up, nobody runs in two places and no core runs two threads.

use ampsched_model::{CoreId, Ns};
use ampsched_policy::RunState;

/// What a thread has done between two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Where it ran, and is now.
    pub core: CoreId,
    /// How long it ran.
    pub ran_ns: Ns,
    /// How long it waited for a core.
    pub waited_ns: Ns,
    /// Whether it runs or waits now (else it is blocked).
    pub is_runnable: bool,
}

/// A change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When.
    pub at_ns: Ns,
    /// Of which entry of the given list.
    pub index: usize,
    /// What it does from then on.
    pub state: RunState,
}

/// The changes of state between `from_ns` and `to_ns`, in the order of time.
///
/// On a core those that are blocked now have run first, and of the others the one that ran longest runs last
/// and still does.
pub fn play(done: &[Done], from_ns: Ns, to_ns: Ns) -> Vec<Step> {
    let mut order: Vec<usize> = (0..done.len()).collect();
    order.sort_by_key(|&index| {
        (done[index].core, done[index].is_runnable, done[index].ran_ns, index)
    });
    let mut steps = Vec::new();
    for turn in order.chunk_by(|&a, &b| done[a].core == done[b].core) {
        let ran_ns: Ns = turn.iter().map(|&index| done[index].ran_ns).sum();
        let last = turn[turn.len() - 1];
        let runs_still = done[last].is_runnable && done[last].ran_ns > 0;
        // The core idles before its first turn if a thread runs at the end, else after its last.
        let idle_ns = (to_ns - from_ns).saturating_sub(ran_ns);
        let mut free_ns = if runs_still { from_ns + idle_ns } else { from_ns };
        for &index in turn {
            let end_ns = (free_ns + done[index].ran_ns).min(to_ns);
            let times = Times { from_ns, start_ns: free_ns.min(to_ns), end_ns, to_ns };
            times.lay(index, &done[index], runs_still && index == last, &mut steps);
            free_ns = end_ns;
        }
    }
    // Stable: on a core who stops at some moment does so before who starts then.
    steps.sort_by_key(|step| step.at_ns);
    steps
}

/// When a thread ran.
struct Times {
    from_ns: Ns,
    start_ns: Ns,
    end_ns: Ns,
    to_ns: Ns,
}

impl Times {
    fn lay(&self, index: usize, done: &Done, runs_still: bool, steps: &mut Vec<Step>) {
        let mut add = |at_ns, state| steps.push(Step { at_ns, index, state });
        let before_ns = done.waited_ns.min(self.start_ns - self.from_ns);
        let after_ns = (done.waited_ns - before_ns).min(self.to_ns - self.end_ns);
        if self.from_ns < self.start_ns - before_ns {
            add(self.from_ns, RunState::Blocked);
        }
        if before_ns > 0 {
            add(self.start_ns - before_ns, RunState::Ready);
        }
        if done.ran_ns > 0 {
            add(self.start_ns, RunState::Running);
        }
        if runs_still {
            return;
        }
        let waits_ns = if done.is_runnable { self.to_ns - after_ns } else { self.end_ns };
        if self.end_ns < waits_ns {
            add(self.end_ns, RunState::Blocked);
        }
        if after_ns > 0 || done.is_runnable {
            add(waits_ns, RunState::Ready);
        }
        if !done.is_runnable {
            add(self.end_ns + after_ns, RunState::Blocked);
        }
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::{AppId, ThreadId};
    use ampsched_policy::{Sched, build_policy};
    use proptest::prelude::*;

    use super::*;
    use ampsched_computer::{CoreMap, Domain};

    fn done(core: u16, ran_ns: Ns, waited_ns: Ns, is_runnable: bool) -> Done {
        Done { core: CoreId(core), ran_ns, waited_ns, is_runnable }
    }

    fn played(done: &[Done]) -> Vec<(Ns, usize, RunState)> {
        play(done, 100, 110).into_iter().map(|step| (step.at_ns, step.index, step.state)).collect()
    }

    #[test]
    fn one_that_runs_on_was_blocked_before() {
        use RunState::{Blocked, Ready, Running};
        assert_eq!(
            played(&[done(0, 6, 3, true)]),
            [(100, 0, Blocked), (101, 0, Ready), (104, 0, Running)]
        );
        assert_eq!(played(&[done(0, 6, 0, false)]), [(100, 0, Running), (106, 0, Blocked)]);
        assert_eq!(played(&[done(0, 0, 10, true)]), [(100, 0, Ready)]);
    }

    #[test]
    fn two_on_one_core_take_turns() {
        use RunState::{Ready, Running};
        assert_eq!(
            played(&[done(0, 6, 4, true), done(0, 4, 6, true)]),
            [(100, 1, Running), (100, 0, Ready), (104, 1, Ready), (104, 0, Running)]
        );
    }

    proptest! {
        /// Whatever happened, an interpreter that is told the steps counts the same times.
        #[test]
        fn times_add_up(
            seen in prop::collection::vec(
                (0..2u16, 0..100u64, 0..100u64, any::<bool>()), 1..6),
        ) {
            // Run times that fit the core, waits that fit beside them.
            let mut left = [100_u64, 100];
            let seen: Vec<Done> = seen.into_iter().map(|(core, ran, waited, runnable)| {
                let ran = ran.min(left[usize::from(core)]);
                left[usize::from(core)] -= ran;
                done(core, ran, waited.min(100 - ran), runnable)
            }).collect();
            let domain = |class, cpu| Domain {
                class, cpus: vec![cpu], freqs_mhz: vec![], cpufreq: vec![], relative_speed: None,
                power: vec![],
            };
            let map = CoreMap::new(vec![domain(1, 0), domain(0, 1)]);
            let rules = build_policy("cfs", &[]).unwrap().rules(map.topology());
            let mut sched = Sched::new(map.topology().clone(), rules);
            for entry in &seen {
                let thread = sched.add(AppId(0), 1024, None);
                sched.observe(thread, RunState::Blocked, entry.core, 0);
            }
            let mut ran = vec![0; seen.len()];
            let mut since = vec![None; seen.len()];
            let steps = play(&seen, 0, 100);
            prop_assert!(steps.is_sorted_by_key(|step| step.at_ns));
            for step in steps {
                if let Some(start) = since[step.index].take() {
                    ran[step.index] += step.at_ns - start;
                }
                if step.state == RunState::Running {
                    since[step.index] = Some(step.at_ns);
                    let running = sched.core(seen[step.index].core).running;
                    prop_assert_eq!(running, None, "nobody is displaced");
                }
                let thread = ThreadId::from(step.index);
                sched.observe(thread, step.state, seen[step.index].core, step.at_ns);
            }
            for (index, entry) in seen.iter().enumerate() {
                let state = sched.thread(ThreadId::from(index)).clone();
                ran[index] += since[index].map_or(0, |start| 100 - start);
                prop_assert_eq!(ran[index], entry.ran_ns);
                prop_assert_eq!(state.state.is_runnable(), entry.is_runnable);
                let waits = if state.state == RunState::Ready { 100 - state.since_ns } else { 0 };
                let waited = sched.stats(ThreadId::from(index)).ready_ns + waits;
                prop_assert!(waited <= entry.waited_ns);
                let after = seen.iter().filter(|other| other.core == entry.core).count() == 1;
                prop_assert!(!after || waited == entry.waited_ns, "{} {}", waited, entry.waited_ns);
            }
        }
    }
}
