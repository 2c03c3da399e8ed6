//! What Linux's fair class makes of a cluster that is throttled.

mod common;

use ampsched_model::{Cooling, Machine, Trip};
use ampsched_policy::build_policy;
use ampsched_sim::{Options, Outcome, simulate};
use common::{ns, shipped_catalog, split_policy, workload};

/// When the machine looks at its temperature first, in ms.
const LOOK_MS: f64 = 250.0;
/// A busy core balances its cluster of four every 16 x 8 ms at the latest, and finds out what is left of it. Then its
/// next tick has an idle core balance for all that are due, which is each of eight after 16 ms at the latest; that they
/// have found out, and then take a thread, takes two rounds.
const BALANCE_MS: f64 = 128.0 + 2.0 * (4.0 + 16.0);

/// An Exynos 5422 that is always too hot: from its first look on, the big cores have 2000 MHz less so many hundreds.
fn too_hot(steps: usize) -> Machine {
    let mut machine = shipped_catalog().machine("exynos5422").unwrap();
    let thermal = std::sync::Arc::make_mut(machine.thermal.as_mut().unwrap());
    let cooling = Cooling { cluster: "big".into(), first_step: steps, last_step: steps };
    thermal.trips = vec![Trip { celsius: 0.0, hysteresis_c: 1.0, cooling: vec![cooling] }];
    if steps == 0 {
        thermal.trips.clear();
    }
    machine
}

fn run(machine: &Machine, program: &str, policy: &str, ms: f64) -> Outcome {
    let (name, params) = split_policy(policy);
    let until_ns = Some(ns(ms));
    let options = Options { energy: true, check: true, until_ns, ..Options::default() };
    let built = build_policy(name, &params).unwrap();
    simulate(machine, &workload(&[program]), name, built, &options).unwrap()
}

/// Time of its only thread on big cores, in ms, and on little ones.
fn times_ms(outcome: &Outcome) -> [f64; 2] {
    let thread = &outcome.threads[0];
    [thread.big_ns(), thread.little_ns()].map(|ns| ns as f64 / 1e6)
}

const HOG: &str = "[[threads]]\nname='hog'\nbody=[{compute=1e12,profile='unit'}]";

#[test]
fn a_running_thread_leaves_a_throttled_core_up_to_6_9() {
    // 300 of 2000 MHz: 1024 - 153 = 871 are taken. A little core of 377 is better by 5 % if less than 377 x 1024 / 1078
    // = 358 are left, so 666 are missing: their average is there after 32 x log2(871 / (871 - 666)) = 66.8 periods of
    // 1.049 ms.
    let average_ms = 32.0 * (871.0_f64 / (871.0 - 666.0)).log2() * 1.048_576;
    assert!((average_ms - 70.0).abs() < 0.1);
    for kernel in ["6.1", "6.6"] {
        let outcome = run(&too_hot(17), HOG, &format!("linux:kernel={kernel}"), 2000.0);
        let [big_ms, little_ms] = times_ms(&outcome);
        let span = LOOK_MS + average_ms..LOOK_MS + average_ms + BALANCE_MS;
        assert!(span.contains(&big_ms), "{kernel}: {big_ms} on big cores, not {span:?}");
        assert!(big_ms + little_ms > 1999.0, "it never waits");
    }
}

#[test]
fn a_running_thread_stays_on_a_throttled_core_since_6_10() {
    // No thread of a greatest core is a misfit (`max_allowed_capacity`).
    for kernel in ["6.18", "7.3"] {
        let outcome = run(&too_hot(17), HOG, &format!("linux:kernel={kernel}"), 1000.0);
        assert_eq!(outcome.threads[0].little_ns(), 0, "{kernel}");
    }
}

/// Works for 10 ms on a cool big core, where it is used to 2/3, more than 377 take.
const NAPS: &str = "[[threads]]\nname='t'\nbody=[{loop=100000,body=[{compute=20e6,profile='unit'},{sleep_us=5e3}]}]";

/// What it does between 1 s and 3 s.
fn later_ms(steps: usize, kernel: &str) -> [f64; 2] {
    let at = |ms| times_ms(&run(&too_hot(steps), NAPS, &format!("linux:kernel={kernel}"), ms));
    let ([big, little], [big_then, little_then]) = (at(1000.0), at(3000.0));
    [big_then - big, little_then - little]
}

#[test]
fn a_thread_that_wakes_up_goes_where_most_is_left() {
    // At 300 MHz 153 are left. A little core takes 20e6 / 1400 MHz = 14.29 ms, and the nap 5: 2 s x 14.29 / 19.29.
    // There it stays: throttled cores do not take it for a misfit.
    for kernel in ["6.1", "6.6", "6.18", "7.3"] {
        let [big_ms, little_ms] = later_ms(17, kernel);
        assert_eq!(big_ms, 0.0, "{kernel}");
        assert!((little_ms - 2000.0 * 14.29 / 19.29).abs() < 14.3, "{kernel}: {little_ms}");
    }
}

#[test]
fn a_thread_stays_where_big_cores_have_more_left_or_the_kernel_does_not_hear_of_heat() {
    // At 1000 MHz 512 are left, more than 377; 4.14 hears of nothing. Work takes 20 and 66.67 ms.
    for (steps, kernel, work_ms) in
        [(0, "7.3", 10.0), (10, "6.6", 20.0), (10, "7.3", 20.0), (17, "4.14", 66.67)]
    {
        let [big_ms, little_ms] = later_ms(steps, kernel);
        assert_eq!(little_ms, 0.0, "{kernel}");
        let expected_ms = 2000.0 * work_ms / (work_ms + 5.0);
        assert!((big_ms - expected_ms).abs() < work_ms, "{kernel}: {big_ms}, not {expected_ms}");
    }
}

#[test]
fn a_bound_of_the_clock_is_heard_as_heat_from_the_begin_on() {
    let bounded = shipped_catalog().machine("exynos5422").unwrap().part(&["big@-300"]).unwrap();
    // As above, without the first look.
    let average_ms = 32.0 * (871.0_f64 / (871.0 - 666.0)).log2() * 1.048_576;
    let [big_ms, little_ms] = times_ms(&run(&bounded, HOG, "linux:kernel=6.6", 1000.0));
    let span = average_ms..average_ms + BALANCE_MS;
    assert!(span.contains(&big_ms), "{big_ms} on big cores, not {span:?}");
    assert!(big_ms + little_ms > 999.0, "it never waits");
    assert_eq!(times_ms(&run(&bounded, HOG, "linux:kernel=6.18", 500.0))[1], 0.0);
}
