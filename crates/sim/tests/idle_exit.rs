//! Leaving idle states takes time where a machine says so.

mod common;

use ampsched_model::{ClusterPower, IdleState, PowerPoint, Remaining};
use common::{Host, ns};
use proptest::prelude::*;

fn state(name: &str, exit_ns: u64, min_residency_ns: u64) -> IdleState {
    let left = Remaining { constant_mw: 1.0, share: 0.0 };
    let (name, core, uncore) = (name.into(), left, left);
    IdleState { name, core, uncore, entry_ns: 0, exit_ns, min_residency_ns }
}

/// Cores at 2 GHz that leave a shallow idle state in 1 us, and a deep one, after 500 us, in 100 us.
fn host(cores: usize) -> Host {
    exiting(Host::symmetric(cores))
}

fn exiting(mut host: Host) -> Host {
    for cluster in &mut host.machine.clusters {
        cluster.power = ClusterPower {
            points: vec![PowerPoint { volt: 1.0, core_mw: 100.0, uncore_mw: 0.0 }],
            idle_states: vec![state("wfi", 1_000, 0), state("off", 100_000, 500_000)],
            ..ClusterPower::default()
        };
    }
    host.machine.costs.idle_exit = true;
    host
}

const SLEEPER: &str = "[[threads]]\nname='s'\nbody=[{compute=2000000,profile='unit'},{sleep_us=200},\
    {compute=2000000,profile='unit'},{sleep_us=1000},{compute=2000000,profile='unit'}]";

#[test]
fn a_core_leaves_the_state_that_it_has_reached() {
    // 3 ms of work, 1.2 ms of sleep; 1 us at the start and after 200 us, 100 us after 1 ms.
    let mut host = host(1);
    let outcome = host.run(SLEEPER, "cfs");
    assert_eq!((outcome.makespan_ns, outcome.threads[0].ready_ns), (ns(4.302), ns(0.102)));
    // Whether energy is asked for or not.
    host.options.energy = true;
    assert_eq!(host.run(SLEEPER, "cfs").makespan_ns, ns(4.302));
    host.machine.costs.idle_exit = false;
    assert_eq!(host.run(SLEEPER, "cfs").makespan_ns, ns(4.2));
}

#[test]
fn the_latency_of_wake_ups_comes_on_top() {
    // 0.3 ms each time: the core idles for 0.5 ms before it is told of the second wake-up.
    let mut host = host(1);
    host.machine.costs.wakeup_latency_ns = 300_000;
    assert_eq!(host.run(SLEEPER, "cfs").makespan_ns, ns(4.2 + 0.9 + 0.001 + 0.1 + 0.1));
}

#[test]
fn a_busy_core_has_nothing_to_leave() {
    let hogs = "[[threads]]\nname='h'\ncount=2\nbody=[{compute=20000000,profile='unit'}]";
    assert_eq!(host(1).run(hogs, "cfs").makespan_ns, ns(20.001));
}

proptest! {
    /// Nothing gets lost, under policies of rules and under Linux's; and a thread alone waits for nothing but exits.
    #[test]
    fn work_gets_done(threads in 1u64..5, work in 1u64..3_000_000, pause_us in 0u64..2000, cores in 1usize..4) {
        let program = |count| format!(
            "[[threads]]\nname='t'\ncount={count}\nbody=[{{loop=9,body=[\
             {{compute={work},profile='unit'}},{{sleep_us={pause_us}}}]}}]"
        );
        for policy in ["linux", "cfs", "colab", "gts"] {
            let outcome = host(cores).run(&program(threads), policy);
            let retired: u64 = outcome.threads.iter().map(|thread| thread.instructions).sum();
            prop_assert_eq!(retired, 9 * threads * work);
            let alone = host(cores).run(&program(1), policy);
            let mut unequal = exiting(Host::unequal(1, cores, 2.0));
            unequal.options.energy = true;
            for cluster in unequal.run(&program(threads), policy).clusters {
                let running_uj = cluster.energy.unwrap().running_uj;
                prop_assert!((running_uj - cluster.busy_ns as f64 / 1e4).abs() < 1e-6, "{:?}", cluster);
            }
            prop_assert!(alone.threads[0].ready_ns <= 10 * 100_000, "{:?}", alone.threads);
        }
    }
}
