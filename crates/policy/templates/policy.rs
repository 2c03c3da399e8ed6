//! My policy: the threads that gain most from big cores run there.

use ampsched_model::{CoreSet, Ns, ThreadId};

use super::cfs::CfsRules;
use crate::{Change, Needs, ParamInfo, Params, Plan, Policy, PolicyInfo, Rules, Topology, View};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "my-policy",
    summary: "the threads that gain most from big cores run there, one per big core",
    source: "ours: a first idea, not yet published anywhere",
    documentation: "\
**Purpose.** Big cores for those that make the most of them.

**When to use.** Where throughput alone counts and threads are few. It needs speed-ups. Not where every thread has \
to get on: who gains little stays on the little cores.

**Algorithm.** At every epoch the runnable threads are ordered by their speed-up on a big core, the greatest first. As many as \
there are big cores may run only there; the others may run anywhere. Who runs when, and for how long, is decided as CFS does, \
but idle cores look for work as soon as a thread has to wait.

**Constants.** `epoch_ms` = 10, a first choice: ten to a hundred wake-ups of a busy program.

**Example.** One big core and two little ones, threads that run 1.2, 2.5 and 1.6 times as fast on it: the second has to use it.

**Limits.** Progress is not shared: who gains little waits. A thread whose speed-up is not known counts as gaining nothing.",
    params: &[ParamInfo::number("epoch_ms", 10.0, 0.1, 10_000.0, "period of the decision (ours)")],
    build: |params| Box::new(MyPolicy::new(params)),
};

/// The policy and what it remembers between epochs.
pub struct MyPolicy {
    epoch_ns: Ns,
}

impl MyPolicy {
    fn new(params: &Params) -> Self {
        Self { epoch_ns: params.ms("epoch_ms") }
    }
}

impl Policy for MyPolicy {
    /// What is not stated here is not delivered.
    fn needs(&self) -> Needs {
        Needs { speedup: true, epoch_ns: Some(self.epoch_ns), ..Needs::default() }
    }

    /// Only what is special; the rest is that of CFS.
    fn rules(&self, topology: &Topology) -> Rules {
        Rules { kick_idle: true, ..CfsRules::default().on(topology) }
    }

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        let big: CoreSet = view.topology().big_cores().collect();
        let all = CoreSet::first(view.topology().core_count());
        let gain = |thread: ThreadId| view.factors(thread).speedup.or(1.0);
        let mut threads: Vec<ThreadId> = view.runnable().collect();
        // Equal inputs must give equal decisions: ties go to the lower number.
        threads.sort_by(|&a, &b| gain(b).total_cmp(&gain(a)).then(a.cmp(&b)));
        for (position, thread) in threads.into_iter().enumerate() {
            let cores = if position < big.len() { &big } else { &all };
            plan.set(thread, Change::Affinity(cores.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::CoreId;

    use super::*;
    use crate::testing::PolicyHost;

    #[test]
    fn who_gains_most_has_to_use_the_big_core() {
        const LITTLE: CoreId = CoreId(1);
        let policy = MyPolicy::new(&Params::defaults(INFO.params));
        let mut host = PolicyHost::new(&[(1, 1), (0, 2)], Box::new(policy));
        let threads = [1.2, 2.5, 1.6].map(|speedup| host.add(Some(speedup)));
        host.run_epoch();
        assert_eq!(threads.map(|thread| host.view().may_run(thread, LITTLE)), [true, false, true]);
        // Its gain has fallen: the next one takes its place.
        host.factors[threads[1].index()].speedup.value = 1.1;
        host.run_epoch();
        assert_eq!(threads.map(|thread| host.view().may_run(thread, LITTLE)), [true, true, false]);
    }
}
