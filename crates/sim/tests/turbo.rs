//! Clocks by the number of active cores, power limits, and energy of cores with two threads.

mod common;

use ampsched_model::{
    ActivityLaw, ClusterPower, IdleState, Leakage, Opp, PowerLimit, PowerPoint, Remaining, Sharing,
};
use ampsched_sim::Outcome;
use common::{Host, ns};
use proptest::prelude::*;

/// Equal cores at 1 or 2 GHz: so many instructions per ns.
fn host(cores: usize) -> Host {
    let mut host = Host::symmetric(cores);
    host.machine.clusters[0].opps =
        vec![Opp { mhz: 1000, volt: 0.8 }, Opp { mhz: 2000, volt: 1.0 }];
    host
}

fn with_ladder(cores: usize, turbo_mhz: &[u32]) -> Host {
    let mut host = host(cores);
    host.machine.clusters[0].turbo_mhz = turbo_mhz.to_vec();
    host
}

/// 1 and 3 W of a busy core, and as many mW of leakage.
fn with_power(mut host: Host, leakage_mw: f64) -> Host {
    let none = Remaining { constant_mw: 0.0, share: 1.0 };
    let point = |volt, core_mw| PowerPoint { volt, core_mw, uncore_mw: 0.0 };
    host.machine.clusters[0].power = ClusterPower {
        points: vec![point(0.8, 1000.0), point(1.0, 3000.0)],
        core_leakage: Leakage { reference_mw: leakage_mw, ..Leakage::default() },
        idle_states: vec![IdleState {
            name: "wfi".into(),
            core: none,
            uncore: none,
            entry_ns: 0,
            exit_ns: 0,
            min_residency_ns: 0,
        }],
        ..ClusterPower::default()
    };
    host
}

fn with_limit(mut host: Host, pl1_mw: f64, pl2_mw: f64, tau_ns: u64) -> Host {
    host.machine.board.limit = Some(PowerLimit { pl1_mw, pl2_mw, tau_ns });
    host
}

fn computes(instructions: &[u64]) -> String {
    let thread = |(number, amount): (usize, &u64)| {
        format!("[[threads]]\nname='t{number}'\nbody=[{{compute={amount},profile='unit'}}]\n")
    };
    instructions.iter().enumerate().map(thread).collect()
}

/// Time at 1 GHz.
fn slow_ns(outcome: &Outcome) -> u64 {
    let residency = &outcome.clusters[0].residency;
    residency.iter().filter(|(mhz, _)| *mhz == 1000).map(|(_, ns)| ns).sum()
}

fn energy_uj(outcome: &Outcome) -> f64 {
    outcome.clusters.iter().map(|cluster| cluster.energy.unwrap().total_uj()).sum()
}

#[test]
fn the_clock_follows_the_number_of_active_cores() {
    // Both at 1 GHz for 10 ms; then the second one has 20 million instructions left, at 2 GHz.
    let program = computes(&[10_000_000, 30_000_000]);
    let outcome = with_ladder(2, &[2000, 1000]).run(&program, "cfs");
    assert_eq!((outcome.makespan_ns, slow_ns(&outcome)), (ns(20.0), ns(10.0)));
    // A shorter ladder ends with what holds for all further cores.
    assert_eq!(with_ladder(2, &[2000]).run(&program, "cfs").makespan_ns, ns(15.0));
    assert_eq!(with_ladder(2, &[2000, 1000, 1000]).run(&program, "cfs"), outcome);
}

#[test]
fn the_clock_follows_within_the_transition_latency() {
    // 1 ms at 2 GHz, 8 ms at 1 GHz until the first one is done, 1 ms more, 9.5 ms at 2 GHz.
    let mut host = with_ladder(2, &[2000, 1000]);
    host.machine.costs.frequency_switch_ns = 1_000_000;
    let outcome = host.run(&computes(&[10_000_000, 30_000_000]), "cfs");
    assert_eq!((outcome.makespan_ns, slow_ns(&outcome)), (ns(19.5), ns(9.0)));
}

#[test]
fn cores_of_all_clusters_of_a_class_count() {
    let mut host = with_ladder(1, &[2000, 1000]);
    let mut twin = host.machine.clusters[0].clone();
    (twin.name, twin.cores[0].0) = ("twin".into(), 1);
    host.machine.clusters.push(twin);
    let program = computes(&[10_000_000, 30_000_000]);
    assert_eq!(host.run(&program, "cfs").makespan_ns, ns(20.0));
    (host.machine.clusters[0].class.0, host.machine.clusters[1].turbo_mhz) = (1, vec![]);
    assert_eq!(host.run(&program, "cfs").makespan_ns, ns(15.0));
}

#[test]
fn two_threads_of_a_core_count_once() {
    let mut host = with_ladder(2, &[2000, 1000]);
    host.machine.clusters[0].sharing = Sharing { smt_speed: Some(0.5), ..Sharing::NONE };
    // Each at half of 2 GHz for 10 ms; then the second one alone.
    let outcome = host.run(&computes(&[10_000_000, 30_000_000]), "cfs");
    assert_eq!((outcome.makespan_ns, slow_ns(&outcome)), (ns(20.0), 0));
}

#[test]
fn a_core_of_two_threads_leaks_once() {
    let mut host = with_power(host(2), 20.0);
    host.options.energy = true;
    host.machine.clusters[0].power.activity = ActivityLaw { stalled: 0.4, l2: 0.0 };
    host.machine.clusters[0].sharing = Sharing { smt_speed: Some(0.6), ..Sharing::NONE };
    let hog = |core: u32| {
        format!(
            "[[threads]]\nname='h{core}'\ncores=[{core}]\nbody=[{{occupy_us=10000,profile='unit'}}]\n"
        )
    };
    let alone = host.run(&hog(1), "cfs");
    let energy = alone.clusters[0].energy.unwrap();
    // The idle thread draws nothing; this profile only clocks, and both threads do that together.
    assert!((energy.running_uj - 10.0 * (3000.0 * 0.4 + 20.0)).abs() < 1e-6, "{energy:?}");
    let both = energy_uj(&host.run(&(hog(0) + &hog(1)), "cfs"));
    assert!((both / energy.running_uj - 1.0).abs() < 1e-9, "{both} {energy:?}");
    // Two cores of one thread each.
    host.machine.clusters[0].sharing = Sharing::NONE;
    let apart = energy_uj(&host.run(&(hog(0) + &hog(1)), "cfs"));
    assert!((apart / (2.0 * energy.running_uj) - 1.0).abs() < 1e-9, "{apart}");
    // A core idles as one.
    host.machine.clusters[0].sharing = Sharing { smt_speed: Some(0.6), ..Sharing::NONE };
    let idle = host.run("[[threads]]\nname='s'\nbody=[{sleep_us=10000}]", "cfs");
    assert!((energy_uj(&idle) - 200.0).abs() < 1e-9, "{}", energy_uj(&idle));
}

#[test]
fn the_average_is_held_to_pl1() {
    // 3 W until the average has grown from 0 to 2: 100 ms x ln 3 = 109.86 ms. Then 1 W until it is below 1.96 W,
    // 4.08 ms, and 3 W until it is 2 again, 3.92 ms.
    let limited = with_limit(with_power(host(1), 0.0), 2000.0, 4000.0, ns(100.0));
    let run = |instructions| limited.run(&computes(&[instructions]), "cfs");
    assert_eq!(slow_ns(&run(2 * ns(109.0))), 0);
    let held = run(2 * ns(109.0) + 5_000_000);
    assert!((ns(3.0)..=ns(4.0)).contains(&slow_ns(&held)), "{:?}", held.clusters);
    let long = run(2 * ns(2000.0));
    // Since then it draws between 1.96 and 2 W.
    let after_ms = long.makespan_ns as f64 / 1e6 - 109.86;
    let mean_mw = (energy_uj(&long) - 3000.0 * 109.86) / after_ms;
    assert!((1960.0..=2001.0).contains(&mean_mw), "{mean_mw}");
}

#[test]
fn the_moment_is_held_to_pl2() {
    // Two busy cores would draw 6 W; no average is ever near 10 W.
    let program = computes(&[20_000_000, 20_000_000]);
    let limited = with_limit(with_power(host(2), 0.0), 5000.0, 5000.0, ns(1e5));
    // 1 ms passes before the first look.
    assert_eq!(limited.run(&program, "cfs").makespan_ns, ns(1.0) + ns(18.0));
    let enough = with_limit(with_power(host(2), 0.0), 6000.0, 6000.0, ns(1e5));
    assert_eq!(enough.run(&program, "cfs").makespan_ns, ns(10.0));
}

#[test]
fn a_limit_acts_whether_energy_is_asked_for_or_not() {
    let mut limited = with_limit(with_power(host(2), 5.0), 2000.0, 4000.0, ns(10.0));
    let program = computes(&[20_000_000, 90_000_000]);
    let one = limited.run(&program, "cfs");
    limited.options.energy = true;
    assert_eq!(limited.run(&program, "cfs"), one);
}

proptest! {
    /// No more than PL1 on average: as `A' = (P - A) / tau`, energy is the integral of A, and tau times what A has
    /// grown by. A may pass PL1 by what a few periods add.
    #[test]
    fn no_program_draws_more_than_the_limit(
        threads in 1u64..4, work in 10_000u64..9_000_000, pause_us in 0u64..5000, tau_ms in 5.0..200.0_f64,
        pl1_mw in 3100.0..5000.0_f64, more_mw in 0.0..5000.0_f64, latency_ns in 0u64..500_000, smt in any::<bool>(),
    ) {
        let mut host = with_limit(with_power(host(4), 20.0), pl1_mw, pl1_mw + more_mw, ns(tau_ms));
        host.machine.costs.frequency_switch_ns = latency_ns;
        host.machine.clusters[0].turbo_mhz = vec![2000, 2000, 1000];
        if smt {
            host.machine.clusters[0].sharing = Sharing { smt_speed: Some(0.7), ..Sharing::NONE };
        }
        let program = format!(
            "[[threads]]\nname='t'\ncount={threads}\nbody=[{{loop=20,body=[\
             {{compute={work},profile='unit'}},{{sleep_us={pause_us}}}]}}]"
        );
        let outcome = host.run(&program, "linux");
        let time_ms = outcome.makespan_ns as f64 / 1e6;
        let average_mw = pl1_mw + 4.0 * 12_000.0 / tau_ms;
        let most_uj = average_mw * (time_ms + tau_ms) + 12_000.0;
        prop_assert!(energy_uj(&outcome) <= most_uj, "{} > {most_uj}", energy_uj(&outcome));
        let energy = outcome.clusters[0].energy.unwrap();
        prop_assert!((energy.total_uj() / energy.sensor_uj - 1.0).abs() < 1e-9);
        prop_assert_eq!(host.run(&program, "linux"), outcome);
    }

    /// A ladder never makes work without pauses faster than the same one with higher steps.
    #[test]
    fn lower_ladders_are_slower(work in prop::collection::vec(1u64..20_000_000, 1..4), steps in 0usize..4) {
        let ladder: Vec<u32> = (0..4).map(|count| if count < steps.max(1) { 2000 } else { 1000 }).collect();
        let higher: Vec<u32> = (0..4).map(|count| if count <= steps { 2000 } else { 1000 }).collect();
        let run = |ladder: &[u32]| with_ladder(4, ladder).run(&computes(&work), "cfs").makespan_ns;
        prop_assert!(run(&ladder) >= run(&higher));
        prop_assert_eq!(run(&[2000]), host(4).run(&computes(&work), "cfs").makespan_ns);
    }
}
