//! Governors in the simulation: who is asked when, and what becomes of the answers.

mod common;

use ampsched_model::{ActivityLaw, ClusterPower, IdleState, Leakage, Opp, PowerPoint, Remaining};
use ampsched_policy::GOVERNORS;
use ampsched_sim::{GovernorSpec, Options, Outcome, simulate};
use common::{Host, ns, shipped_catalog, split_policy, workload};
use proptest::prelude::*;

const MHZ: [u32; 4] = [500, 1000, 1500, 2000];

/// Big cores of 500 to 2000 MHz, little ones of 250 to 1000.
fn host(big: usize, little: usize, governors: &[&str]) -> Host {
    let mut host = Host::unequal(big, little, 2.0);
    for (cluster, divisor) in host.machine.clusters.iter_mut().zip([1, 2]) {
        cluster.opps = MHZ.map(|mhz| Opp { mhz: mhz / divisor, volt: 1.0 }).to_vec();
    }
    host.options.governors = governors.iter().map(|text| spec(text)).collect();
    host
}

/// `name:param=value` or `cluster=name:param=value`.
fn spec(text: &str) -> GovernorSpec {
    let head = text.split(':').next().unwrap();
    let (cluster, text) = match head.split_once('=') {
        Some((cluster, _)) => (Some(cluster.to_owned()), &text[cluster.len() + 1..]),
        None => (None, text),
    };
    let (name, params) = split_policy(text);
    GovernorSpec { cluster, name: name.to_owned(), params }
}

/// Residency of the clusters in ms by MHz.
fn residency_ms(outcome: &Outcome) -> Vec<Vec<(u32, f64)>> {
    let ms = |&(mhz, ns): &(u32, u64)| (mhz, ns as f64 / 1e6);
    outcome.clusters.iter().map(|cluster| cluster.residency.iter().map(ms).collect()).collect()
}

/// 100 ms at 2000 MHz.
const HOG: &str = "[[threads]]\nname='hog'\nbody=[{compute=200e6,profile='unit'}]";

/// The same after 50 ms.
const LATE_HOG: &str =
    "[[threads]]\nname='hog'\nbody=[{sleep_us=50e3},{compute=200e6,profile='unit'}]";

/// 1 ms at 2000 MHz in about 20.
const LIGHT: &str = "[[threads]]\nname='light'\nbody=[{loop=50,body=[{compute=2e6,profile='unit'},{sleep_us=19e3}]}]";

#[test]
fn frequencies_follow_fixed_governors() {
    for (governor, ms) in
        [("performance", 100.0), ("powersave", 400.0), ("userspace:mhz=900", 200.0)]
    {
        let outcome = host(1, 0, &[governor]).run(HOG, "cfs");
        assert_eq!(outcome.makespan_ns, ns(ms), "{governor}");
    }
}

#[test]
fn clusters_may_have_governors_of_their_own() {
    let pinned = "[[threads]]\nname='b'\ncores=[0]\nbody=[{compute=20e6,profile='unit'}]\n\
                  [[threads]]\nname='l'\ncores=[1]\nbody=[{compute=20e6,profile='unit'}]";
    let outcome = host(1, 1, &["big=performance", "powersave"]).run(pinned, "cfs");
    assert_eq!(residency_ms(&outcome), [[(2000, 80.0)], [(250, 80.0)]]);
    let outcome = host(1, 1, &["little=userspace:mhz=500"]).run(pinned, "cfs");
    assert_eq!(residency_ms(&outcome), [[(2000, 40.0)], [(500, 40.0)]]);
}

#[test]
fn ondemand_looks_at_its_sampling_rate() {
    // Idle for 50 ms, it goes to the lowest frequency when the thread wakes up; busy since then, it goes to the
    // highest at the first tick of 4 ms that is at least 10 ms later, at 60 ms: a fortieth of the work is done.
    let outcome = host(1, 0, &["ondemand:sampling_rate_us=10000"]).run(LATE_HOG, "cfs");
    assert_eq!(outcome.clusters[0].residency, [(500, ns(10.0)), (2000, ns(50.0 + 97.5))]);
    assert_eq!(outcome.clusters[0].frequency_changes, 2);
}

#[test]
fn schedutil_serves_hogs_at_full_and_light_threads_at_low_speed() {
    let hog = host(2, 0, &["schedutil"]).run(HOG, "cfs");
    // Utilisation rises from 0 at 500 MHz: 0.8 x 2000 MHz is asked for at 1024 x 0.6 = 614 ... full speed
    // within some 80 ms, whatever the steps between.
    let full_ns = hog.clusters[0].residency.last().unwrap();
    assert_eq!(full_ns.0, 2000);
    assert!(full_ns.1 > hog.makespan_ns / 3, "{:?}", hog.clusters[0]);
    // 1.25 x 5 % of 2000 MHz = 125: the lowest frequency does after the start.
    let light = host(2, 0, &["schedutil"]).run(LIGHT, "cfs");
    let (mhz, low_ns) = light.clusters[0].residency[0];
    assert!(mhz == 500 && low_ns > light.makespan_ns * 9 / 10, "{:?}", light.clusters[0]);
}

#[test]
fn threads_that_wait_for_devices_are_boosted() {
    let program = |wait: &str| {
        format!(
            "[devices.d]\n[[threads]]\nname='t'\nbody=[{{loop=400,body=[{{compute=1e5,profile='unit'}},{wait}]}}]"
        )
    };
    let high_ns = |wait: &str| {
        let outcome = host(2, 0, &["schedutil"]).run(&program(wait), "cfs");
        let residency = outcome.clusters[0].residency.clone();
        residency.iter().filter(|(mhz, _)| *mhz >= 1500).map(|(_, ns)| ns).sum::<u64>()
    };
    let (io_ns, sleep_ns) = (high_ns("{io_us=1000,device='d'}"), high_ns("{sleep_us=1000}"));
    assert!(io_ns > ns(200.0) && sleep_ns < ns(20.0), "{io_ns} {sleep_ns}");
}

#[test]
fn ondemand_may_count_waiting_for_devices_as_load() {
    let program = "[devices.d]\n[[threads]]\nname='t'\nbody=[{loop=200,body=[{compute=1e5,profile='unit'},{io_us=1000,device='d'}]}]";
    let top_ns = |governor: &str| {
        let outcome = host(1, 0, &[governor]).run(program, "cfs");
        outcome.clusters[0].residency.iter().filter(|it| it.0 == 2000).map(|it| it.1).sum::<u64>()
    };
    assert!(top_ns("ondemand:io_is_busy=1") > ns(150.0));
    // It begins at the highest frequency.
    assert!(top_ns("ondemand:io_is_busy=0") < ns(15.0));
}

#[test]
fn nice_threads_may_not_count() {
    let nice = LATE_HOG.replace("body", "nice=5\nbody");
    let slow_ms = |governor: &str| {
        let outcome = host(1, 0, &[governor]).run(&nice, "cfs");
        outcome.clusters[0].residency[0].1 / 1_000_000
    };
    assert_eq!(slow_ms("ondemand:sampling_rate_us=10000:ignore_nice_load=0"), 10);
    assert_eq!(slow_ms("ondemand:sampling_rate_us=10000:ignore_nice_load=1"), 400);
}

#[test]
fn a_policy_that_sets_frequencies_retires_the_governor() {
    let catalog = shipped_catalog();
    let machine = catalog.machine("exynos5422-2B2S").unwrap();
    let mix = catalog.workload("sync-1").unwrap();
    let run = |policy: &str, governors: &[&str]| {
        let governors = governors.iter().map(|text| spec(text)).collect();
        let options = Options { governors, until_ns: Some(ns(1500.0)), ..Options::default() };
        let built = ampsched_policy::build_policy(policy, &[]).unwrap();
        residency_ms(&simulate(&machine, &mix, policy, built, &options).unwrap())
    };
    let (with, without) = (run("hfee", &["powersave"]), run("hfee", &[]));
    // HFEE sets the clock of the big cluster once per second; the little one's stays with its governor.
    // A transition takes a fraction of a ms.
    assert!(with[0][0].0 == 200 && with[0][0].1 > 1499.0, "{with:?}");
    assert_eq!(without[0], [(1400, 1500.0)]);
    assert!(with[1][0].0 == 200 && with[1][0].1.round() == 1000.0, "{with:?}");
    assert!(with[1].len() > 1, "{with:?}");
}

#[test]
fn errors_name_governor_cluster_and_machine() {
    let error =
        |governors: &[&str]| host(1, 1, governors).try_run(HOG, "cfs").unwrap_err().to_string();
    assert_eq!(
        error(&["bigg=powersave"]),
        "governor powersave: machine test has no cluster \"bigg\" (did you mean \"big\"?)"
    );
    assert_eq!(error(&["powersave", "ondemand"]), "two governors are given for all clusters");
    assert_eq!(error(&["ondeman"]), "unknown governor \"ondeman\" (did you mean \"ondemand\"?)");
}

/// 1000 mW per core at 2000 MHz and 50 mW leakage; idle cores draw 20 mW.
fn power(divisor: u32) -> ClusterPower {
    let point = |mhz: u32| {
        let share = f64::from(mhz) / 2000.0 / f64::from(divisor);
        PowerPoint { volt: 1.0, core_mw: 1000.0 * share, uncore_mw: 100.0 * share }
    };
    ClusterPower {
        points: MHZ.map(point).to_vec(),
        core_leakage: Leakage { reference_mw: 50.0, ..Leakage::default() },
        activity: ActivityLaw::default(),
        idle_states: vec![IdleState {
            name: "wfi".into(),
            core: Remaining { constant_mw: 20.0, share: 0.0 },
            uncore: Remaining { constant_mw: 0.0, share: 1.0 },
            entry_ns: 0,
            exit_ns: 0,
            min_residency_ns: 0,
        }],
        ..ClusterPower::default()
    }
}

fn governor() -> impl Strategy<Value = &'static str> {
    (0..GOVERNORS.len()).prop_map(|index| GOVERNORS[index].name)
}

fn is_close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The engine's own checks run in debug builds: time adds up, work is done, nobody is in two places.
    #[test]
    fn any_governors_conserve_energy_and_work_and_are_deterministic(
        on_big in governor(), on_little in governor(),
        policy in prop_oneof![Just("cfs"), Just("eevdf"), Just("colab"), Just("gts"), Just("eas")],
        latency_ns in prop_oneof![Just(0u64), 1u64..3_000_000],
        threads in 1u32..6, nice in -5i32..6,
    ) {
        let program = format!(
            "[mutexes.m]\n[devices.d]\n[[threads]]\nname='t'\ncount={threads}\nnice={nice}\nbody=[{{loop=20,body=[\
             {{compute=1e6,profile='unit'}},{{lock='m'}},{{compute=2e5,profile='unit'}},{{unlock='m'}},\
             {{sleep_us={{mean=900,dist='exponential'}}}},{{io_us=300,device='d'}}]}}]"
        );
        let governors = [format!("big={on_big}"), format!("little={on_little}")];
        let mut host = host(2, 2, &[&governors[0], &governors[1]]);
        for (cluster, divisor) in host.machine.clusters.iter_mut().zip([1, 4]) {
            cluster.power = power(divisor);
        }
        host.machine.costs.frequency_switch_ns = latency_ns;
        host.options.energy = true;
        let outcome = host.run(&program, policy);
        prop_assert_eq!(&outcome, &host.run(&program, policy));
        let mut running_uj = 0.0;
        for cluster in &outcome.clusters {
            let energy = cluster.energy.unwrap();
            let parts = energy.running_uj + energy.idle_uj + energy.uncore_uj;
            prop_assert!(is_close(parts, energy.sensor_uj), "{:?}", energy);
            running_uj += energy.running_uj;
            let residency: u64 = cluster.residency.iter().map(|(_, ns)| ns).sum();
            prop_assert_eq!(residency, outcome.makespan_ns);
        }
        let threads: f64 = outcome.threads.iter().map(|thread| thread.energy_uj.unwrap()).sum();
        prop_assert!(is_close(threads, running_uj), "{} {}", threads, running_uj);
    }
}

/// A little core needs half the energy of a big one for the same work, at any frequency.
#[test]
fn eas_under_schedutil_saves_energy() {
    let running_uj = |policy: &str| {
        let mut host = host(2, 2, &["schedutil"]);
        for (cluster, divisor) in host.machine.clusters.iter_mut().zip([1, 4]) {
            cluster.power = power(divisor);
        }
        host.options.energy = true;
        let outcome = host.run(LIGHT, policy);
        outcome.clusters.iter().map(|cluster| cluster.energy.unwrap().running_uj).sum::<f64>()
    };
    let (eas, cfs) = (running_uj("eas"), running_uj("cfs"));
    assert!(eas < 0.8 * cfs, "{eas} {cfs}");
}

/// What a thread has left decays while its cluster idles, and the frequency with it.
#[test]
fn schedutil_goes_down_while_a_cluster_idles() {
    let program = "[[threads]]\nname='t'\nbody=[{compute=200e6,profile='unit'},{sleep_us=1e6},{compute=2,profile='unit'}]";
    let outcome = host(2, 0, &["schedutil"]).run(program, "cfs");
    let (mhz, low_ns) = outcome.clusters[0].residency[0];
    assert!(mhz == 500 && low_ns > ns(850.0), "{:?}", outcome.clusters[0]);
}

/// A machine that heats up caps what governors ask for.
#[test]
fn throttling_limits_governors() {
    let catalog = shipped_catalog();
    let mut machine = catalog.machine("exynos5422").unwrap();
    let thermal = std::sync::Arc::make_mut(machine.thermal.as_mut().unwrap());
    for trip in &mut thermal.trips {
        trip.celsius -= 47.0;
    }
    let hogs = "[[threads]]\nname='t'\ncount=8\nbody=[{compute=20e9,profile='unit'}]";
    let mut options = Host::symmetric(1).options;
    options.energy = true;
    options.until_ns = Some(ns(2000.0));
    let mut throttled = |governor: &str| {
        options.governors = vec![spec(governor)];
        let policy = ampsched_policy::build_policy("cfs", &[]).unwrap();
        simulate(&machine, &workload(&[hogs]), "cfs", policy, &options).unwrap().clusters.remove(1)
    };
    for governor in ["performance", "schedutil", "ondemand"] {
        let big = throttled(governor);
        let top_ns: u64 = big.residency.iter().filter(|it| it.0 == 2000).map(|it| it.1).sum();
        let throttled_ns = big.energy.unwrap().throttled_ns;
        assert!(throttled_ns > ns(500.0), "{governor}: {big:?}");
        // A cap holds from the next look on at the latest.
        assert!(top_ns <= ns(2000.0) - throttled_ns + ns(20.0), "{governor}: {big:?}");
    }
}
