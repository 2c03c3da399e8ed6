//! How threads on different cores slow each other down, from arithmetic done by hand.

mod common;

use std::sync::Arc;

use ampsched_model::{ClusterId, Memory, Profile, Sharing, ThreadId, Workload, parse_noise};
use ampsched_policy::{
    Change, Needs, Plan, Policy, REGISTRY, Rules, RunState, Topology, View, build_policy,
};
use ampsched_sim::{GovernorSpec, Outcome, simulate};
use common::{Host, unit_profile, workload};
use proptest::prelude::*;

/// Cores of 2 GHz on which a miss costs 100 ns, whatever comes before it.
fn host(cores: usize) -> Host {
    let mut host = Host::symmetric(cores);
    host.machine.clusters[0].params.memory_ns = 100.0;
    host
}

fn sharing(mut host: Host, sharing: Sharing) -> Host {
    host.machine.clusters[0].sharing = sharing;
    host
}

fn with_memory(mut host: Host, mb_s: f64) -> Host {
    host.machine.memory = Some(Memory { mb_s, channels: 1 });
    host
}

/// Loads that miss an L2 of 512 KiB and of 2 MiB per 1,000 instructions.
fn missing(small: f64, large: f64) -> Profile {
    Profile { l1d_mpki: 100.0, l2_512k_mpki: small, l2_2m_mpki: large, ..unit_profile() }
}

/// One thread per profile and number of million instructions.
fn threads(all: &[(Profile, f64)]) -> Workload {
    let text = |million: f64| {
        format!("[[threads]]\nname='t'\nbody=[{{compute={million}e6,profile='unit'}}]")
    };
    let texts: Vec<String> = all.iter().map(|(_, million)| text(*million)).collect();
    let mut workload = workload(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    for (app, (profile, _)) in workload.apps.iter_mut().zip(all) {
        let program = Arc::get_mut(&mut app.program).unwrap();
        program.profiles = vec![profile.clone()];
    }
    workload
}

fn run(host: &Host, workload: &Workload, policy: &str) -> Outcome {
    let built = build_policy(policy, &[]).unwrap();
    simulate(&host.machine, workload, policy, built, &host.options)
        .unwrap_or_else(|error| panic!("{policy}: {error}"))
}

/// ns per instruction of each thread, if each has a core and 1 million instructions.
fn ns_each(host: &Host, profiles: &[Profile]) -> Vec<f64> {
    let all: Vec<(Profile, f64)> = profiles.iter().map(|it| (it.clone(), 1.0)).collect();
    let outcome = run(host, &threads(&all), "cfs");
    outcome.apps.iter().map(|app| app.turnaround_ns as f64 / 1e6).collect()
}

fn assert_near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.006, "{found} instead of {expected}");
}

#[test]
fn siblings_have_part_of_their_speed_while_both_are_busy() {
    let host = sharing(host(2), Sharing { smt_speed: Some(0.6), ..Sharing::NONE });
    // 4 of 10 ms until the shorter one ends after 4 / 0.6 ms, the other 6 ms alone.
    let work = [(unit_profile(), 20.0), (unit_profile(), 8.0)];
    let outcome = run(&host, &threads(&work), "cfs");
    assert_near(outcome.apps[1].turnaround_ns as f64, 4e6 / 0.6);
    assert_near(outcome.apps[0].turnaround_ns as f64, 4e6 / 0.6 + 6e6);
}

#[test]
fn a_core_without_a_sibling_is_not_slowed_down() {
    let host = sharing(host(3), Sharing { smt_speed: Some(0.5), ..Sharing::NONE });
    let each = ns_each(&host, &[unit_profile(), unit_profile(), unit_profile()]);
    let mut sorted = each.clone();
    sorted.sort_by(f64::total_cmp);
    assert_near(sorted[0], 0.5);
    assert_near(sorted[1], 1.0);
    assert_near(sorted[2], 1.0);
}

#[test]
fn lines_wait_for_each_other() {
    // A line per 100 instructions, which take 0.5 ns and 1 ns of waiting for memory, served in 50 ns. At utilisation u,
    // n threads: u (1.5 + 0.01 w) = 0.5 n, w = 25 u / (1 - u); so 1.25 u² - (1.5 + 0.5 n) u + 0.5 n = 0.
    let host = with_memory(host(4), 1280.0);
    for (n, used) in [(1, 0.310_102), (2, 0.552_786), (4, 0.8)] {
        for found in ns_each(&host, &vec![missing(10.0, 10.0); n]) {
            // Who begins or ends last is alone for a moment; they all begin and end together.
            assert_near(found, 0.5 * n as f64 / used);
        }
    }
}

#[test]
fn who_does_not_use_memory_is_not_slowed_down() {
    let host = with_memory(host(2), 640.0);
    let each = ns_each(&host, &[missing(10.0, 10.0), unit_profile()]);
    assert_near(each[1], 0.5);
    assert!(each[0] > 1.6);
}

#[test]
fn a_port_is_a_memory_of_its_own() {
    let port = Sharing { port_mb_s: Some(1280.0), ..Sharing::NONE };
    let two = vec![missing(10.0, 10.0); 2];
    for found in ns_each(&sharing(host(2), port), &two) {
        assert_near(found, 1.0 / 0.552_786);
    }
    // Behind a wide memory it is still what limits; behind a narrow one both wait.
    let wide = ns_each(&with_memory(sharing(host(2), port), 1e6), &two);
    assert_near(wide[0], 1.0 / 0.552_786);
    let narrow = ns_each(&with_memory(sharing(host(2), port), 1280.0), &two);
    assert!(narrow[0] > 1.9, "{narrow:?}");
    // Two groups of two cores have a port each.
    let halves = Sharing { cores: 2, ..port };
    for found in ns_each(&sharing(host(4), halves), &vec![missing(10.0, 10.0); 4]) {
        assert_near(found, 1.0 / 0.552_786);
    }
}

#[test]
fn equal_threads_have_equal_shares_of_an_l2() {
    let host = sharing(host(4), Sharing { l2: true, ..Sharing::NONE });
    // 2 MiB: 10 misses; 1 MiB: 15, half way between; 512 KiB: 20. Each costs 100 ns, the rest is 0.5 ns.
    for (n, mpki) in [(1, 10.0), (2, 15.0), (4, 20.0)] {
        for found in ns_each(&host, &vec![missing(20.0, 10.0); n]) {
            // Windows are a table, so up to 1 %.
            let expected = 0.5 + mpki / 10.0;
            assert!((found / expected - 1.0).abs() < 0.01, "{found} instead of {expected}");
        }
    }
}

#[test]
fn shares_follow_footprints() {
    let host = sharing(host(2), Sharing { l2: true, ..Sharing::NONE });
    // Who has nothing in the L2 takes nothing from others.
    let each = ns_each(&host, &[missing(20.0, 10.0), unit_profile()]);
    assert_near(each[0], 1.5);
    assert_near(each[1], 0.5);
    // Who brings in ten times as many lines has most of it.
    let each = ns_each(&host, &[missing(20.0, 10.0), missing(2.0, 1.0)]);
    let miss = |ns: f64| (ns - 0.5) * 10.0;
    assert!(miss(each[0]) < 12.0, "{each:?}");
    assert!(miss(each[1]) > 1.5, "{each:?}");
}

#[test]
fn nothing_stated_changes_nothing() {
    let work = [(missing(20.0, 10.0), 3.0), (missing(2.0, 1.0), 2.0), (unit_profile(), 1.0)];
    let plain = run(&host(2), &threads(&work), "cfs");
    let wide =
        with_memory(sharing(host(2), Sharing { smt_speed: Some(1.0), ..Sharing::NONE }), 1e7);
    let contended = run(&wide, &threads(&work), "cfs");
    assert_near(contended.makespan_ns as f64, plain.makespan_ns as f64);
}

#[test]
fn a_change_of_frequency_changes_what_memory_takes() {
    let mut host = with_memory(host(2), 1280.0);
    host.machine.clusters[0].opps.insert(0, ampsched_model::Opp { mhz: 1000, volt: 1.0 });
    host.options.governors =
        vec![GovernorSpec { cluster: None, name: "powersave".into(), params: vec![] }];
    // 1 ns and 1 ns of waiting: 2 u + 0.25 u² / (1 - u) = 1, so 1.75 u² - 3 u + 1 = 0.
    let used = (3.0 - 2.0_f64.sqrt()) / 3.5;
    for found in ns_each(&host, &vec![missing(10.0, 10.0); 2]) {
        assert_near(found, 1.0 / used);
    }
}

/// Stops a thread at 1 ms and lowers the clock of its cluster at the same moment.
struct StopsAndSlows;

impl Policy for StopsAndSlows {
    fn needs(&self) -> Needs {
        Needs { epoch_ns: Some(1_000_000), frequencies: true, holds: true, ..Needs::default() }
    }

    fn rules(&self, _: &Topology) -> Rules {
        Rules::default()
    }

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        let is_over = view.state(ThreadId(0)) == RunState::Exited;
        plan.set(ThreadId(1), Change::Hold(!is_over));
        plan.set_frequency(ClusterId(1), 1000);
    }
}

#[test]
fn a_thread_that_stops_as_the_clock_changes_asks_for_no_memory() {
    let mut host = with_memory(Host::unequal(1, 1, 1.0), 1280.0);
    for cluster in &mut host.machine.clusters {
        cluster.params.memory_ns = 100.0;
        cluster.opps.insert(0, ampsched_model::Opp { mhz: 1000, volt: 1.0 });
    }
    let work = threads(&vec![(missing(10.0, 10.0), 4.0); 2]);
    let outcome =
        simulate(&host.machine, &work, "stops", Box::new(StopsAndSlows), &host.options).unwrap();
    // Per ns, both together carry out 0.552 786 instructions each, and one alone 0.620 204, as above.
    let rest = 4e6 - 0.552_786e6;
    assert_near(outcome.apps[0].turnaround_ns as f64, 1e6 + rest / 0.620_204);
}

/// Threads of all classes that wait for each other, sleep and end, while kernel threads and governors interfere.
#[test]
fn it_holds_beside_everything_else() {
    let text = "[mutexes.m]\n\
        [[threads]]\nname='fair'\ncount=4\nbody=[{loop=30,body=[{compute={mean=9e5,cv=0.6},profile='unit'},\
        {lock='m'},{compute=1e5,profile='unit'},{unlock='m'},{sleep_us={mean=300,cv=0.5}}]}]\n\
        [[threads]]\nname='above'\nclass='fifo'\npriority=9\nbody=[{loop=50,body=[{compute=2e5,profile='unit'},\
        {sleep_us=700}]}]\n\
        [[threads]]\nname='busy'\ncount=2\nbody=[{occupy_us=40000,profile='unit'}]\n";
    let noise = "[[sources]]\nname='i'\nkind='interrupt'\npause_us=[10,900]\nduration_us=[1,20]\n\
        [[sources]]\nname='k'\nkind='thread'\npause_us=[100,1900]\nduration_us=[3,400]";
    let mut host = Host::unequal(2, 4, 2.0);
    for cluster in &mut host.machine.clusters {
        cluster.params.memory_ns = 90.0;
        cluster.opps.insert(0, ampsched_model::Opp { mhz: 400, volt: 0.8 });
        cluster.sharing =
            Sharing { cores: 0, l2: true, port_mb_s: Some(900.0), smt_speed: Some(0.6) };
    }
    host.machine.memory = Some(Memory { mb_s: 1500.0, channels: 2 });
    host.options.noise = Some(Arc::new(parse_noise("n.toml", noise).unwrap()));
    let governor = |name: &str| GovernorSpec { cluster: None, name: name.into(), params: vec![] };
    for name in ["performance", "schedutil", "ondemand"] {
        host.options.governors = vec![governor(name)];
        for info in REGISTRY {
            let mut workload = workload(&[text]);
            let program = Arc::get_mut(&mut workload.apps[0].program).unwrap();
            program.profiles = vec![missing(30.0, 9.0)];
            let outcome = run(&host, &workload, info.name);
            let fair = outcome.threads.iter().filter(|thread| thread.name.starts_with("fair"));
            assert!(fair.clone().count() == 4 && fair.clone().all(|it| it.end_ns > 0));
            for thread in fair {
                assert_eq!(thread.instructions, thread.instructions_demanded, "{}", info.name);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Under every policy the same work is done, whatever is shared, nobody is faster than alone, and the engine's
    /// own checks hold: above all, that no memory carries more than it can.
    #[test]
    fn work_is_conserved(
        mpki in prop::collection::vec((0.0_f64..60.0, 0.0_f64..1.0, 1_u32..30), 1..7),
        mb_s in 200.0_f64..20_000.0,
        port_mb_s in prop::option::of(200.0_f64..20_000.0),
        smt_speed in prop::option::of(0.5_f64..=1.0),
        l2: bool,
        channels in 1_u32..9,
    ) {
        let mut host = Host::unequal(2, 3, 2.0);
        for cluster in &mut host.machine.clusters {
            cluster.params.memory_ns = 90.0;
            cluster.params.mlp_max = 3.0;
            cluster.sharing = Sharing { cores: 0, l2, port_mb_s, smt_speed };
        }
        host.machine.memory = Some(Memory { mb_s, channels });
        let work: Vec<(Profile, f64)> = mpki
            .iter()
            .map(|&(small, part, million)| (missing(small, small * part), f64::from(million)))
            .collect();
        let workload = threads(&work);
        for info in REGISTRY {
            let outcome = run(&host, &workload, info.name);
            for (thread, (profile, million)) in outcome.threads.iter().zip(&work) {
                prop_assert_eq!(thread.instructions, (million * 1e6) as u64);
                let big = &host.machine.clusters[0];
                let ips = ampsched_model::speed_ips(profile, &big.params, 2000.0);
                let alone_ns = million * 1e15 / ips;
                prop_assert!((thread.run_ns()) as f64 >= alone_ns * 0.99, "{}", info.name);
            }
            prop_assert_eq!(&run(&host, &workload, info.name), &outcome);
        }
    }
}
