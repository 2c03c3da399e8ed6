//! What using a lock, a queue, a pool or a semaphore costs that another core used last.

mod common;

use ampsched_model::Costs;
use common::{Host, ns};
use proptest::prelude::*;

const SAME_NS: u64 = 100;
const CROSS_NS: u64 = 300;

fn host(big: usize, little: usize) -> Host {
    let mut host = Host::unequal(big, little, 1.0);
    host.machine.costs.handover_same_cluster_ns = SAME_NS;
    host.machine.costs.handover_cross_cluster_ns = CROSS_NS;
    host
}

/// One thread does something at once, another one 2 ms later; both then compute for 1 ms.
fn one_after_other(declared: &str, first: &str, second: &str, cores: [usize; 2]) -> String {
    let thread = |name: &str, core: usize, wait: &str, steps: &str| {
        format!(
            "[[threads]]\nname = '{name}'\ncores = [{core}]\nbody = [{wait}{steps}, \
             {{ compute = 2e6, profile = 'unit' }}{}]\n",
            if steps.contains("lock") { ", { unlock = 'o' }" } else { "" }
        )
    };
    format!(
        "{declared}\n{}{}",
        thread("one", cores[0], "", first),
        thread("other", cores[1], "{ sleep_us = 2000 }, ", second)
    )
}

#[test]
fn the_second_core_pays_for_the_line() {
    let objects = [
        ("[mutexes.o]", "{ lock = 'o' }", "{ lock = 'o' }"),
        ("[semaphores.o]\ninitial = 2", "{ sem_wait = 'o' }", "{ sem_wait = 'o' }"),
        ("[semaphores.o]", "{ sem_post = 'o' }", "{ sem_wait = 'o' }"),
        (
            "[pools.o]\ntotal = 1\nparticipants = 2",
            "{ dynamic = 'o', body = [{ compute = 0, profile = 'unit' }] }",
            "{ dynamic = 'o', body = [{ compute = 0, profile = 'unit' }] }",
        ),
    ];
    for (declared, first, second) in objects {
        let end_ns = |host: &Host, cores: [usize; 2]| {
            host.run(&one_after_other(declared, first, second, cores), "cfs").makespan_ns
        };
        let host = host(2, 2);
        assert_eq!(end_ns(&host, [0, 0]), ns(3.0), "{declared}: same core");
        assert_eq!(end_ns(&host, [0, 1]), ns(3.0) + SAME_NS, "{declared}: same cluster");
        assert_eq!(end_ns(&host, [0, 2]), ns(3.0) + CROSS_NS, "{declared}: another cluster");
        assert_eq!(end_ns(&Host::unequal(2, 2, 1.0), [0, 2]), ns(3.0), "{declared}: free");
    }
}

#[test]
fn an_item_of_a_queue_comes_with_its_line() {
    let program = "[queues.o]\ncapacity = 4\n\
        [[threads]]\nname = 'one'\ncores = [0]\nbody = [{ push = 'o' }, { close = 'o' }]\n\
        [[threads]]\nname = 'other'\ncores = [1]\n\
        body = [{ sleep_us = 10 }, { each = 'o', body = [{ compute = 2e6, profile = 'unit' }] }]\n";
    // The end of the queue is found by the core that has its line already.
    assert_eq!(host(2, 0).run(program, "cfs").makespan_ns, ns(1.01) + SAME_NS);
}

#[test]
fn a_cluster_has_handovers_of_its_own() {
    let mut host = host(2, 2);
    let slow = Costs { handover_cross_cluster_ns: 900, ..host.machine.costs };
    host.machine.clusters[1].costs = Some(slow);
    let lock = "{ lock = 'o' }";
    let end_ns =
        |cores| host.run(&one_after_other("[mutexes.o]", lock, lock, cores), "cfs").makespan_ns;
    assert_eq!(end_ns([0, 2]), ns(3.0) + 900);
    assert_eq!(end_ns([2, 0]), ns(3.0) + CROSS_NS);
}

#[test]
fn a_counter_goes_up_once_per_transfer_however_many_cores_want_it() {
    let took_ns = |cores: usize| {
        let program = format!(
            "[pools.o]\ntotal = 1000\n[[threads]]\nname = 't'\ncount = {cores}\ncores = ['index']\n\
             body = [{{ dynamic = 'o', body = [{{ compute = 2, profile = 'unit' }}] }}]\n"
        );
        host(8, 0).run(&program, "cfs").makespan_ns as f64
    };
    for cores in [2, 4, 8] {
        let per_iteration_ns = took_ns(cores) / 1000.0;
        assert!((per_iteration_ns - SAME_NS as f64).abs() < 3.0, "{cores}: {per_iteration_ns}");
    }
    assert_eq!(took_ns(1), 1000.0);
}

proptest! {
    /// Lines cost time of cores, never work; and without contention at most one transfer for each use.
    #[test]
    fn handovers_cost_time_and_no_work(
        threads in 1u64..7, rounds in 1u64..60, inside in 1u64..4000, outside in 1u64..4000
    ) {
        let program = format!(
            "[mutexes.o]\n[[threads]]\nname = 't'\ncount = {threads}\nbody = [{{ loop = {rounds}, body = [\
             {{ lock = 'o' }}, {{ compute = {inside}, profile = 'unit' }}, {{ unlock = 'o' }}, \
             {{ compute = {outside}, profile = 'unit' }}] }}]\n"
        );
        let (free, paid) = (Host::unequal(2, 2, 1.0).run(&program, "cfs"), host(2, 2).run(&program, "cfs"));
        let work = |outcome: &ampsched_sim::Outcome| -> u64 {
            outcome.threads.iter().map(|thread| thread.instructions).sum()
        };
        prop_assert_eq!(work(&free), work(&paid));
        prop_assert_eq!(work(&paid), threads * rounds * (inside + outside));
        let all_ns = (work(&paid) / 2 + threads * rounds * (CROSS_NS + 2)) as f64;
        prop_assert!(paid.makespan_ns as f64 <= all_ns, "{} {}", paid.makespan_ns, all_ns);
    }
}
