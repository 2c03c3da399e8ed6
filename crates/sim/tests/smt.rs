//! Cores with two threads (SMT): policies fill those first whose threads are both idle.

mod common;

use ampsched_model::{CoreId, Sharing};
use ampsched_policy::{Needs, Pick, Policy, REGISTRY, Rules, Topology, View, build_policy};
use ampsched_sim::{Outcome, simulate};
use common::{Host, workload};

/// Big cores of two threads each, which have 0.6 of their speed while both are busy, and little ones at half the speed.
fn host(big: usize, little: usize) -> Host {
    let mut host = Host::unequal(2 * big, little, 2.0);
    host.machine.clusters[0].sharing = Sharing { smt_speed: Some(0.6), ..Sharing::NONE };
    host
}

/// Threads of 100 ms on a big core alone.
fn hogs(host: &Host, count: usize, policy: &str) -> Outcome {
    let text =
        format!("[[threads]]\nname='h'\ncount={count}\nbody=[{{run_us=100000,profile='unit'}}]");
    let built = build_policy(policy, &[]).unwrap();
    simulate(&host.machine, &workload(&[&text]), policy, built, &host.options)
        .unwrap_or_else(|error| panic!("{policy}: {error}"))
}

/// Policies that do not take two threads of a core for two cores.
fn that_know_siblings() -> impl Iterator<Item = &'static str> {
    let names = REGISTRY.iter().map(|info| info.name);
    names.filter(|name| build_policy(name, &[]).unwrap().knows_siblings())
}

/// How many times as long as alone on a big core the last of so many threads takes.
fn stretch(host: &Host, count: usize, policy: &str) -> f64 {
    hogs(host, count, policy).makespan_ns as f64 / 1e8
}

#[test]
fn a_thread_per_physical_core_as_long_as_there_are_enough() {
    for (big, little) in [(4, 8), (8, 16)] {
        let host = host(big, little);
        for policy in that_know_siblings() {
            let stretch = stretch(&host, big, policy);
            assert!(stretch < 1.03, "{big} threads under {policy}: {stretch}");
        }
    }
}

#[test]
fn who_takes_siblings_for_cores_says_so() {
    let topology = Topology::new(&host(2, 2).machine);
    let said = |name: &str| build_policy(name, &[]).unwrap().caveats(&topology, true);
    let blind = "takes the two threads of a core (SMT) for two cores";
    assert_eq!(said("iks").as_deref(), Some(blind));
    assert_eq!(said("hpm").as_deref(), Some(blind));
    assert_eq!(said("colab"), None);
    let plain = Topology::new(&Host::unequal(2, 2, 2.0).machine);
    assert_eq!(build_policy("iks", &[]).unwrap().caveats(&plain, true), None);
}

/// With as many threads as physical cores none has to share one: under policies that bind or seat threads, too.
#[test]
fn little_cores_come_before_second_threads() {
    let host = host(2, 4);
    for policy in that_know_siblings() {
        let outcome = hogs(&host, 6, policy);
        // On a little core alone: twice as long. Two halves of a big core together do as much as 1.2, so whoever shares
        // and stays takes 1.67 times as long as alone, and the little core that idles meanwhile shows.
        let idle_ns = outcome.cores[4..].iter().map(|core| core.idle_ns).max().unwrap();
        assert!(idle_ns < outcome.makespan_ns, "{policy}: a little core is never used");
        let little_ns: u64 = outcome.cores[4..].iter().map(|core| core.busy_ns).sum();
        assert!(little_ns > 420_000_000, "{policy}: little cores work for {little_ns} ns");
    }
}

#[test]
fn all_threads_of_all_cores_are_used_if_there_is_enough_to_do() {
    let host = host(2, 4);
    for policy in that_know_siblings() {
        let outcome = hogs(&host, 16, policy);
        for (core, found) in outcome.cores.iter().enumerate() {
            let part = found.busy_ns as f64 / outcome.makespan_ns as f64;
            assert!(part > 0.4, "core {core} is busy for {part} under {policy}");
        }
    }
}

/// A thread that may use a little core and the second thread of a big one goes up when the first thread idles: the
/// second has waited for nothing else.
#[test]
fn an_idle_thread_hears_that_its_sibling_idles() {
    let text = "[[threads]]\nname='h'\ncores=[0]\nbody=[{run_us=10000,profile='unit'}]\n\
        [[threads]]\nname='x'\nbody=[{set_cores=[4]},{run_us=3000,profile='unit'},{set_cores=[1,4]},\
        {run_us=60000,profile='unit'}]\n";
    let host = host(2, 2);
    for policy in ["gts", "colab", "camp"] {
        let built = build_policy(policy, &[]).unwrap();
        let outcome = simulate(&host.machine, &workload(&[text]), policy, built, &host.options);
        // 10 ms on the little core, at half the speed: 58 ms are left of 63.
        let end_ns = outcome.unwrap().makespan_ns;
        assert!(end_ns < 70_000_000, "{policy}: {end_ns}");
    }
}

/// Two threads that share a physical core are parted when another one idles, 4 ms later.
#[test]
fn threads_that_share_a_core_are_parted() {
    let text = "[[threads]]\nname='short'\ncores=[2]\nbody=[{run_us=10000,profile='unit'}]\n\
        [[threads]]\nname='long'\ncount=2\nbody=[{set_cores=[0,1]},{run_us=1000,profile='unit'},\
        {set_cores=[0,1,2,3]},{run_us=60000,profile='unit'}]\n";
    let host = host(2, 0);
    for policy in that_know_siblings().filter(|&name| !["rr", "static", "linux"].contains(&name)) {
        let built = build_policy(policy, &[]).unwrap();
        let outcome = simulate(&host.machine, &workload(&[text]), policy, built, &host.options);
        // Together at 0.6 for 10 to 14 ms, then alone: 61 + 14 x 0.4 = 66.6 ms; 101 ms if they stay.
        let end_ns = outcome.unwrap().makespan_ns;
        assert!(end_ns < 68_000_000, "{policy}: {end_ns}");
    }
}

/// A policy that takes no running thread, whatever its rules say.
struct PullsNothing(Box<dyn Policy>);

impl Policy for PullsNothing {
    fn needs(&self) -> Needs {
        let mut needs = self.0.needs();
        needs.hooks.pick = true;
        needs
    }

    fn rules(&self, topology: &Topology) -> Rules {
        self.0.rules(topology)
    }

    fn pick(&mut self, view: &View, core: CoreId) -> Pick {
        match self.0.pick(view, core) {
            Pick::Pull(_) => Pick::Idle { recheck_ns: None },
            pick => pick,
        }
    }
}

#[test]
fn siblings_that_take_nothing_do_not_wake_each_other_for_ever() {
    let host = host(2, 2);
    let text = "[[threads]]\nname='h'\ncount=5\nbody=[{loop=9,body=[{run_us=900,profile='unit'},{sleep_us=300}]}]";
    for policy in ["gts", "camp", "amps"] {
        let built = Box::new(PullsNothing(build_policy(policy, &[]).unwrap()));
        let outcome = simulate(&host.machine, &workload(&[text]), policy, built, &host.options);
        assert_eq!(outcome.unwrap().threads.len(), 5, "{policy}");
    }
}

#[test]
fn results_say_how_siblings_are_modelled() {
    let expected = "each of two busy threads of a core (SMT) has a part of its speed, whatever they run: big 0.60";
    assert_eq!(hogs(&host(1, 1), 1, "cfs").smt.as_deref(), Some(expected));
    assert_eq!(hogs(&Host::unequal(1, 1, 2.0), 1, "cfs").smt, None);
}
