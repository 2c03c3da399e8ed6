//! The schedulers of phones on whole runs.

mod common;

use ampsched_policy::build_policy;
use ampsched_sim::{GovernorSpec, Options, Outcome, simulate};
use common::{Host, ns, shipped_catalog, split_policy, workload};

/// An endless thread after a long sleep.
const SLEEPER: &str = "[[threads]]\nname='t'\nbody=[{sleep_us=1e6},{run_us=400e3,profile='unit'}]";

#[test]
fn gts_lets_a_sleeper_go_down_and_pulls_it_up_when_it_has_become_heavy() {
    let outcome = Host::unequal(1, 1, 2.0).run(SLEEPER, "gts");
    // It wakes up light on the big core, and is heavy after 54 periods of 1.024 us x 1024; the idle big core looks
    // every 4 ms.
    let little_ns = outcome.threads[0].little_ns();
    let heavy_ns = 54 * 1_048_576;
    assert!((heavy_ns - 2_000_000..=heavy_ns + 4_000_000).contains(&little_ns), "{little_ns}");
    assert_eq!(outcome.threads[0].migrations, 2);
}

#[test]
fn gts_leaves_waiting_threads_to_their_kind_of_core_until_they_starve() {
    // Four endless threads begin on the only big core; little ones take those that have starved.
    let hogs = "[[threads]]\nname='t'\ncount=3\nbody=[{run_us=300e3,profile='unit'}]";
    let with = Host::unequal(1, 2, 2.0).run(hogs, "gts");
    let without = Host::unequal(1, 2, 2.0).run(hogs, "gts:offload=0");
    assert!(with.makespan_ns < ns(650.0), "{}", with.makespan_ns);
    assert_eq!(without.makespan_ns, ns(900.0));
}

#[test]
fn cluster_switching_uses_one_cluster_at_a_time() {
    let hog = "[[threads]]\nname='t'\nbody=[{run_us=100e3,profile='unit'}]";
    let outcome = Host::unequal(2, 2, 2.0).run(hog, "cluster-switching");
    let thread = &outcome.threads[0];
    // 10 ms on a little core do the work of 5.
    assert_eq!((thread.little_ns(), thread.big_ns()), (ns(10.0), ns(95.0)));
    // Light: it comes back.
    let light = "[[threads]]\nname='t'\nbody=[{run_us=50e3,profile='unit'},{loop=20,body=[{sleep_us=9e3},{run_us=500,profile='unit'}]}]";
    let outcome = Host::unequal(2, 2, 2.0).run(light, "cluster-switching");
    let thread = &outcome.threads[0];
    assert_eq!((thread.migrations, thread.little_ns() > ns(25.0)), (2, true), "{thread:?}");
}

/// Two Cortex-A7 and two Cortex-A15, in that order or the other way round.
fn on_exynos(big_first: bool, program: &str, policy: &str, governor: Option<&str>) -> Outcome {
    let machine = shipped_catalog().machine("exynos5422-2B2S").unwrap().ordered(big_first);
    let spec = |name: &str| GovernorSpec { cluster: None, name: name.into(), params: vec![] };
    let governors = governor.map(spec).into_iter().collect();
    let options = Options { energy: true, check: true, governors, ..Options::default() };
    let (name, params) = split_policy(policy);
    let built = build_policy(name, &params).unwrap();
    simulate(&machine, &workload(&[program]), name, built, &options).unwrap()
}

const LIGHT: &str = "[[threads]]\nname='t'\ncount=2\nbody=[{loop=100,body=[{run_us=500,profile='unit'},{sleep_us=19e3}]}]";

#[test]
fn iks_runs_light_threads_on_little_cores_and_hogs_on_big_ones() {
    let light = on_exynos(false, LIGHT, "iks", None);
    for thread in &light.threads {
        assert!(thread.little_ns() > 9 * thread.big_ns(), "{thread:?}");
    }
    assert!(light.clusters[0].residency[0].0 < 600, "{:?}", light.clusters[0]);
    let hogs = "[[threads]]\nname='t'\ncount=4\nbody=[{run_us=200e3,profile='unit'}]";
    let heavy = on_exynos(false, hogs, "iks", None);
    assert!(heavy.threads.iter().all(|thread| thread.little_ns() == 0), "{:?}", heavy.threads);
    assert_eq!(heavy.clusters[1].residency, [(2000, heavy.makespan_ns)]);
}

#[test]
fn eas_keeps_light_threads_on_little_cores_and_lets_misfits_go_up() {
    let light = on_exynos(true, LIGHT, "eas", Some("schedutil"));
    for thread in &light.threads {
        assert!(thread.little_ns() > 5 * thread.big_ns(), "{thread:?}");
    }
    // A hog starts on a little core, as under CFS, but goes up when it does not fit there.
    let hog = "[[threads]]\nname='t'\nbody=[{run_us=500e3,profile='unit'}]";
    let thread = &on_exynos(false, hog, "eas", None).threads[0];
    assert!(thread.little_ns() > 0 && thread.big_ns() > 5 * thread.little_ns(), "{thread:?}");
    // Over-utilised all the time: not worse than CFS at the same frequencies.
    let hogs = "[[threads]]\nname='t'\ncount=6\nbody=[{loop=50,body=[{run_us=9e3,profile='unit'},{sleep_us=100}]}]";
    let (eas, cfs) = (on_exynos(false, hogs, "eas", None), on_exynos(false, hogs, "cfs", None));
    assert!(eas.makespan_ns < cfs.makespan_ns * 11 / 10, "{} {}", eas.makespan_ns, cfs.makespan_ns);
}

#[test]
fn without_an_energy_model_eas_is_cfs() {
    let outcome = |policy: &str| {
        let mut outcome = Host::unequal(2, 2, 2.0).run(LIGHT, policy);
        outcome.policy.clear();
        let caveat = outcome.caveat.take();
        (outcome, caveat)
    };
    let ((eas, caveat), (cfs, none)) = (outcome("eas"), outcome("cfs"));
    assert_eq!(eas, cfs);
    assert_eq!(none, None);
    let said = "the machine has no energy model (no power is known of its clusters): it schedules as cfs does";
    assert_eq!(caveat.as_deref(), Some(said));
}

#[test]
fn utilisation_aware_runs_light_threads_slowly_and_hogs_fast() {
    let light = on_exynos(false, LIGHT, "utilisation-aware", None);
    assert!(light.threads.iter().all(|thread| thread.little_ns() > thread.big_ns()), "{light:?}");
    let hogs = "[[threads]]\nname='t'\ncount=2\nbody=[{run_us=3e6,profile='unit'}]";
    let heavy = on_exynos(false, hogs, "utilisation-aware", None);
    assert!(heavy.makespan_ns < ns(5000.0), "{}", heavy.makespan_ns);
    assert!(heavy.threads.iter().all(|thread| thread.big_ns() > thread.little_ns()));
}
