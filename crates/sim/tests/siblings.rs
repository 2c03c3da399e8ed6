//! Which cores threads run on under `linux` where cores have two threads (SMT).

mod common;

use ampsched_model::{Cluster, CoreId, KernelView, LastLevelCache, Sees, Sharing};
use ampsched_sim::Outcome;
use common::{Host, ns};

/// So many P-cores of two threads, which have 0.62 of the speed while both are busy, as cores 0, 1, 2 and so on; then
/// E-cores in modules of four, which are half as fast.
fn hybrid(fast: usize, modules: usize, sees: Sees) -> Host {
    let mut host = Host::unequal(2 * fast, 4 * modules, 2.0);
    let mut clusters = host.machine.clusters.clone();
    clusters[0].sharing = Sharing { smt_speed: Some(0.62), ..Sharing::NONE };
    let module = |number: usize| {
        let first = 2 * fast + 4 * number;
        let cores = (first..first + 4).map(CoreId::from).collect();
        Cluster { name: format!("e{number}"), cores, shares_l2: true, ..clusters[1].clone() }
    };
    let modules: Vec<Cluster> = (0..modules).map(module).collect();
    clusters.truncate(1);
    clusters.extend(modules);
    host.machine.clusters = clusters;
    host.machine.kernel_view = KernelView { sees, last_level_cache: LastLevelCache::Machine };
    host
}

/// So many threads that start at once, of 400 ms on a P-core.
fn hogs(host: &Host, count: usize, kernel: f64) -> Outcome {
    let text =
        format!("[[threads]]\nname='h'\ncount={count}\nbody=[{{run_us=400e3,profile='unit'}}]");
    host.run(&text, &format!("linux:kernel={kernel}"))
}

/// Cores that had a thread for most of the time up to when P-cores are done with theirs.
fn used(outcome: &Outcome) -> Vec<usize> {
    let cores = outcome.cores.iter().enumerate();
    cores.filter(|(_, core)| core.busy_ns > ns(200.0)).map(|(core, _)| core).collect()
}

const HYBRID_KERNELS: [f64; 4] = [6.1, 6.6, 6.18, 7.3];

#[test]
fn up_to_as_many_threads_as_p_cores_each_has_one() {
    // New threads go to modules, which have most idle cores, until the domain of 16 is first balanced, after 16 ms.
    for kernel in HYBRID_KERNELS {
        for count in 1..=4 {
            let outcome = hogs(&hybrid(4, 2, Sees::Priorities), count, kernel);
            // P-cores' second threads are idle, so it is 400 ms, and half of the first 16.
            let span = outcome.makespan_ns;
            assert!(ns(400.0) <= span && span <= ns(408.0), "{kernel} {count}: {span}");
            let used: Vec<usize> = used(&outcome).iter().map(|core| core / 2).collect();
            assert_eq!(used.len(), count, "{kernel}: {used:?}");
            assert!(used.iter().all(|&core| core < 4), "{kernel}: {used:?}");
            assert!(used.windows(2).all(|pair| pair[0] < pair[1]), "{kernel}: {used:?}");
        }
    }
}

#[test]
fn then_come_e_cores_and_last_second_threads() {
    // P-core, E-core, second thread: 4 P-cores and all E-cores take 12 threads, and no P-core two of them.
    for kernel in HYBRID_KERNELS {
        for (count, p_cores) in [(8, 4), (12, 4)] {
            let outcome = hogs(&hybrid(4, 2, Sees::Priorities), count, kernel);
            let early = outcome.threads.iter().filter(|thread| thread.end_ns <= ns(408.0)).count();
            assert_eq!(early, p_cores, "{kernel} {count}");
            // The others were on E-cores until then, at half the speed. Four of them go on on P-cores, which balance
            // every 16 to 32 ms when they idle.
            let of_four = ns(408.0 + 200.0 + 16.0);
            let ended = outcome.threads.iter().filter(|thread| thread.end_ns <= of_four).count();
            assert_eq!(ended, 8, "{kernel} {count}: {:?}", outcome.makespan_ns);
        }
        let outcome = hogs(&hybrid(4, 2, Sees::Priorities), 16, kernel);
        assert_eq!(used(&outcome), (0..16).collect::<Vec<_>>(), "{kernel}");
    }
}

#[test]
fn eight_threads_have_eight_p_cores_of_sixteen_threads() {
    for kernel in HYBRID_KERNELS {
        let outcome = hogs(&hybrid(8, 4, Sees::Priorities), 8, kernel);
        let cores: Vec<usize> = used(&outcome).iter().map(|core| core / 2).collect();
        assert_eq!(cores, (0..8).collect::<Vec<_>>(), "{kernel}");
        assert!(outcome.makespan_ns <= ns(416.0), "{kernel}: {}", outcome.makespan_ns);
    }
}

#[test]
fn without_e_cores_threads_spread_over_physical_cores() {
    // 3.16 balances a single cache only for idle cores that are told to, and new threads go where load is least: by
    // groups of siblings as well.
    for kernel in [3.16, 4.14, 6.1, 6.6, 6.18, 7.3] {
        let outcome = hogs(&hybrid(4, 0, Sees::Nothing), 4, kernel);
        let cores: Vec<usize> = used(&outcome).iter().map(|core| core / 2).collect();
        assert_eq!(cores, [0, 1, 2, 3], "{kernel}");
        assert_eq!(outcome.makespan_ns, ns(400.0), "{kernel}");
    }
}

#[test]
fn sleepers_wake_on_a_physical_core_that_is_idle() {
    // Three hogs and a thread that runs for 2 of 10 ms: it never shares a P-core of four.
    let text = "[[threads]]\nname='h'\ncount=3\nbody=[{run_us=400e3,profile='unit'}]\n\
                [[threads]]\nname='s'\nbody=[{loop=20,body=[{sleep_us=8000},{run_us=2000,profile='unit'}]}]";
    for kernel in [4.14, 6.1, 6.6, 6.18, 7.3] {
        let outcome = hybrid(4, 0, Sees::Nothing).run(text, &format!("linux:kernel={kernel}"));
        let sleeper = outcome.threads.iter().find(|thread| thread.name == "s").unwrap();
        assert_eq!(sleeper.end_ns, ns(200.0), "{kernel}");
    }
}
