//! Power of a board, and clusters that share a regulator.

mod common;

use ampsched_model::{
    BoardPower, ClusterPower, IdleState, Leakage, Opp, PowerLimit, PowerPoint, Remaining,
};
use ampsched_sim::{ClusterEnergy, GovernorSpec};
use common::{Host, ns};
use proptest::prelude::*;

const HOG: &str = "[[threads]]\nname='hog'\ncores=[1]\nbody=[{occupy_us=10000,profile='unit'}]";

/// 300 mW dynamic power and 20 mW leakage of a core, 30 and 10 of the uncore, at its cluster's voltage; idle ones leak.
fn power(volt: f64) -> ClusterPower {
    let leakage =
        |reference_mw| Leakage { reference_mw, reference_volt: volt, ..Leakage::default() };
    let everything = Remaining { constant_mw: 0.0, share: 1.0 };
    ClusterPower {
        points: vec![PowerPoint { volt, core_mw: 300.0, uncore_mw: 30.0 }],
        core_leakage: leakage(20.0),
        uncore_leakage: leakage(10.0),
        idle_states: vec![IdleState {
            name: "wfi".into(),
            core: everything,
            uncore: everything,
            entry_ns: 0,
            exit_ns: 0,
            min_residency_ns: 0,
        }],
        ..ClusterPower::default()
    }
}

/// A big core at 1.2 V and a little one at 0.8 V.
fn host(shared: bool, board_mw: f64) -> Host {
    let mut host = Host::unequal(1, 1, 2.0);
    for (cluster, volt) in host.machine.clusters.iter_mut().zip([1.2, 0.8]) {
        cluster.opps = vec![Opp { mhz: cluster.max_mhz(), volt }];
        cluster.power = power(volt);
    }
    let shared_rail = if shared { vec!["big".to_owned(), "little".to_owned()] } else { vec![] };
    host.machine.board = BoardPower { board_mw, shared_rail, ..BoardPower::default() };
    host.options.energy = true;
    host
}

fn energies(host: &Host) -> Vec<ClusterEnergy> {
    host.run(HOG, "cfs").clusters.iter().map(|cluster| cluster.energy.unwrap()).collect()
}

fn is_close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

#[test]
fn a_shared_rail_has_the_highest_voltage() {
    // 10 ms on the little core: 320 mW of it, 40 of its uncore; the big one idles.
    let own = energies(&host(false, 0.0));
    assert!(is_close(own[1].running_uj, 3200.0) && is_close(own[1].uncore_uj, 400.0), "{own:?}");
    // At 1.2 instead of 0.8 V: 2.25 times the dynamic power, 1.5 times the leakage.
    let shared = energies(&host(true, 0.0));
    assert!(is_close(shared[1].running_uj, 10.0 * (300.0 * 2.25 + 20.0 * 1.5)), "{shared:?}");
    assert!(is_close(shared[1].uncore_uj, 10.0 * (30.0 * 2.25 + 10.0 * 1.5)), "{shared:?}");
    assert_eq!(shared[0], own[0]);
}

#[test]
fn uncores_of_one_clock_have_the_highest() {
    let mut host = host(true, 0.0);
    host.machine.board.shared_clock = true;
    let [big, little] = [0, 1].map(|cluster| f64::from(host.machine.clusters[cluster].max_mhz()));
    assert!(big > little);
    let found = energies(&host);
    let uncore_uj = 10.0 * (30.0 * 2.25 * big / little + 10.0 * 1.5);
    assert!(is_close(found[1].uncore_uj, uncore_uj), "{found:?}");
    assert!(is_close(found[1].running_uj, 10.0 * (300.0 * 2.25 + 20.0 * 1.5)), "{found:?}");
    // A limit foresees what it will draw: with less than that in sum it takes the only points that there are.
    host.machine.board.limit = Some(PowerLimit { pl1_mw: 1.0, pl2_mw: 1.0, tau_ns: 1_000_000 });
    assert_eq!(energies(&host), found);
}

#[test]
fn a_slower_neighbour_lowers_the_rail() {
    let mut host = host(true, 0.0);
    let big = &mut host.machine.clusters[0];
    big.opps.insert(0, Opp { mhz: 1000, volt: 0.9 });
    big.power.points.insert(0, PowerPoint { volt: 0.9, core_mw: 300.0, uncore_mw: 30.0 });
    host.options.governors =
        vec![GovernorSpec { cluster: None, name: "powersave".to_owned(), params: Vec::new() }];
    let found = energies(&host);
    let (dynamic, leakage) = ((0.9f64 / 0.8).powi(2), 0.9 / 0.8);
    let expected_uj = 10.0 * (300.0 * dynamic + 20.0 * leakage);
    assert!((found[1].running_uj / expected_uj - 1.0).abs() < 1e-3, "{found:?} {expected_uj}");
}

#[test]
fn a_board_uses_constant_power() {
    let outcome = host(false, 1500.0).run(HOG, "cfs");
    assert_eq!((outcome.makespan_ns, outcome.board_uj), (ns(10.0), Some(15_000.0)));
    assert_eq!(host(false, 0.0).run(HOG, "cfs").board_uj, None);
    let mut without = host(false, 1500.0);
    without.options.energy = false;
    assert_eq!(without.run(HOG, "cfs").board_uj, None);
}

#[test]
fn a_rail_without_a_second_cluster_changes_nothing() {
    let mut lonely = host(true, 0.0);
    lonely.machine.board.shared_rail[0] = "left out".to_owned();
    assert_eq!(energies(&lonely), energies(&host(false, 0.0)));
}

proptest! {
    /// Sharing never saves energy, sums stay what sensors integrate, and nothing runs differently.
    #[test]
    fn sharing_costs_energy_and_no_time(threads in 1u64..5, work in 1u64..3_000_000, pause_us in 0u64..900) {
        let program = format!(
            "[[threads]]\nname='t'\ncount={threads}\nbody=[{{loop=5,body=[\
             {{compute={work},profile='unit'}},{{sleep_us={pause_us}}}]}}]"
        );
        let (own, shared) = (host(false, 0.0).run(&program, "cfs"), host(true, 0.0).run(&program, "cfs"));
        prop_assert_eq!(own.makespan_ns, shared.makespan_ns);
        for (one, other) in own.clusters.iter().zip(&shared.clusters) {
            let (one, other) = (one.energy.unwrap(), other.energy.unwrap());
            let sum = |energy: &ClusterEnergy| energy.running_uj + energy.idle_uj + energy.uncore_uj;
            prop_assert!(sum(&other) >= sum(&one) * (1.0 - 1e-12));
            prop_assert!(is_close(sum(&other), other.sensor_uj), "{:?}", other);
        }
    }
}
