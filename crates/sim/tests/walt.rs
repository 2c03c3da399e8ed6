//! `linux:kernel=android-4.14`, which goes by the work of windows, on a phone of its time.

mod common;

use ampsched_model::{ThreadId, Workload};
use ampsched_policy::build_policy;
use ampsched_sim::{GovernorSpec, Options, Outcome, simulate};
use common::{ns, shipped_catalog, split_policy, workload};

const WALT: &str = "linux:kernel=android-4.14:hz=100";

/// On a Snapdragon 855 (silver, gold, prime), with every invariant checked.
fn run_on(machine: &str, workload: &Workload, governor: &str, limit_ms: f64) -> Outcome {
    let (name, params) = split_policy(WALT);
    let governors = vec![GovernorSpec { cluster: None, name: governor.into(), params: Vec::new() }];
    let until_ns = Some(ns(limit_ms));
    let options = Options { check: true, governors, until_ns, ..Options::default() };
    let machine = shipped_catalog().machine(machine).unwrap();
    let policy = build_policy(name, &params).unwrap();
    simulate(&machine, workload, name, policy, &options).unwrap()
}

fn run(program: &str, governor: &str) -> Outcome {
    run_on("snapdragon-855", &workload(&[program]), governor, 2_000.0)
}

/// Run time of a thread in ms on cores of each kind, the slowest first.
fn run_ms(outcome: &Outcome, thread: usize) -> Vec<u64> {
    outcome.threads[ThreadId::from(thread).index()]
        .class_ns
        .iter()
        .map(|ns| ns / 1_000_000)
        .collect()
}

#[test]
fn a_heavy_thread_goes_up_within_two_windows_and_a_light_one_stays() {
    let program = "[[threads]]\nname='heavy'\nbody=[{run_us=1e6,profile='unit'}]\n\
                   [[threads]]\nname='light'\nbody=[{loop=100,body=[{run_us=500,profile='unit'},{sleep_us=15e3}]}]";
    for governor in ["performance", "schedutil"] {
        let outcome = run(program, governor);
        let (heavy, light) = (run_ms(&outcome, 0), run_ms(&outcome, 1));
        // Its first window may begin before it does; at low clocks a window is less work.
        assert!(
            heavy[0] <= if governor == "performance" { 50 } else { 250 },
            "{governor}: {heavy:?}"
        );
        assert!(heavy[1] + heavy[2] > 200, "{governor}: {heavy:?}");
        assert_eq!([light[1], light[2]], [0, 0], "{governor}: {light:?}");
    }
}

#[test]
fn clocks_follow_the_work_of_windows() {
    // 2 of 20 ms at the highest clock of a silver core, a tenth of a window: 1.25 x 0.1 of 1785 MHz is below 300 MHz.
    let light = "[[threads]]\nname='light'\nbody=[{loop=90,body=[{run_us=100,profile='unit'},{sleep_us=20e3}]}]";
    let outcome = run(light, "schedutil");
    let silver = &outcome.clusters[0].residency;
    let total: u64 = silver.iter().map(|&(_, ns)| ns).sum();
    assert!(silver[0].0 == 300 && silver[0].1 > total * 9 / 10, "{silver:?}");
    let heavy = "[[threads]]\nname='hog'\ncores=[0]\nbody=[{run_us=1e6,profile='unit'}]";
    let outcome = run(heavy, "schedutil");
    let silver = &outcome.clusters[0].residency;
    let most = silver.iter().max_by_key(|&&(_, ns)| ns).unwrap();
    assert_eq!(most.0, 1785, "{silver:?}");
}

#[test]
fn many_threads_use_all_cores() {
    // Ten hogs on eight cores: no core idles while one waits, and the fast ones do most.
    let hogs = "[[threads]]\nname='hog'\ncount=10\nbody=[{run_us=5e6,profile='unit'}]";
    let outcome = run(hogs, "performance");
    for core in &outcome.cores {
        assert!(core.busy_ns > ns(1_900.0), "{core:?}");
    }
}

#[test]
fn a_clamp_keeps_a_thread_off_the_smallest_cores() {
    let program = "[[threads]]\nname='light'\nuclamp_min=100\n\
                   body=[{loop=50,body=[{run_us=500,profile='unit'},{sleep_us=15e3}]}]";
    let outcome = run(program, "performance");
    let light = run_ms(&outcome, 0);
    assert!(light[0] == 0 && light[1] + light[2] > 20, "{light:?}");
}

#[test]
fn books_hold_on_other_machines() {
    let catalog = shipped_catalog();
    for (machine, mix) in
        [("exynos5422", "sync-2"), ("juno", "rand-10"), ("snapdragon-845", "nsync-4")]
    {
        let outcome = run_on(machine, &catalog.workload(mix).unwrap(), "schedutil", 400.0);
        assert!(outcome.counts.dispatches > 0, "{machine}");
    }
}
