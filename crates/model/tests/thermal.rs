//! The thermal network against the matrix exponential, and throttling against Linux's rules.

use ampsched_model::{
    Catalog, ClusterId, CoreId, Draw, FileKind, HeatSource, Leakage, Machine, Thermal, ThermalLink,
    ThermalNetwork, ThermalNode, Throttle,
};
use proptest::prelude::*;

const CORE: &str = include_str!("../../../python/ampsched/data/core_types/cortex-a7.toml");
const MACHINE: &str = r#"
[[clusters]]
name = "big"
core_type = "c"
cores = 2
class = 1
opps = [{ mhz = 500, volt = 0.9 }, { mhz = 1000, volt = 1.0 }, { mhz = 1500, volt = 1.1 }]
[[clusters]]
name = "little"
core_type = "c"
cores = 3
class = 0
opps = [{ mhz = 400, volt = 0.9 }, { mhz = 800, volt = 1.0 }]
[costs]
context_switch_ns = 1
migrate_same_cluster_ns = 1
migrate_cross_cluster_ns = 1
wakeup_latency_ns = 1
[thermal]
ambient_c = 25
period_ms = 10
throttle_period_ms = 100
nodes = [
  { name = "big-core", cores = "big", j_per_k = 0.2 },
  { name = "big", cluster = "big", j_per_k = 1 },
  { name = "little", cluster = "little", j_per_k = 0.5 },
  { name = "case", j_per_k = 20, background_mw = 500 },
]
links = [
  { from = "big-core", to = "big", k_per_w = 4 },
  { from = "big", to = "case", k_per_w = 3 },
  { from = "little", to = "case", k_per_w = 5 },
  { from = "case", to = "ambient", k_per_w = 8 },
]
sensors = [{ name = "tmu", node = "big-core", resolution_c = 1, period_ms = 100 }]
trips = [
  { celsius = 70, hysteresis_c = 10, cooling = { big = [1, 1] } },
  { celsius = 85, hysteresis_c = 10, cooling = { big = [2, 2], little = [0, 1] } },
]
"#;

fn read() -> (Machine, Thermal) {
    let mut catalog = Catalog::new();
    catalog.add(FileKind::CoreType, "c", "c.toml", CORE).unwrap();
    catalog.add(FileKind::Machine, "m", "m.toml", MACHINE).unwrap();
    let thermal = catalog.thermal("m").unwrap().unwrap().clone();
    (catalog.machine("m").unwrap(), thermal)
}

/// Powers by node that are different everywhere, in mW.
fn powers(network: &ThermalNetwork) -> Vec<f64> {
    (0..network.names().len()).map(|node| 100.0 + 700.0 * node as f64).collect()
}

/// The solution by an independent way: `exp(M t)` of the system with its input as a further state,
/// by halving the time until the Taylor series is short and squaring back (Moler and Van Loan, SIAM
/// Review 45, 2003, method 3).
fn by_matrix_exponential(
    thermal: &Thermal,
    rows: &[&str],
    before_c: &[f64],
    power_mw: &[f64],
    time_s: f64,
) -> Vec<f64> {
    let size = rows.len();
    let mut a = vec![vec![0.0; size + 1]; size + 1];
    let node = |row: usize| {
        let name = rows[row].split('.').next().unwrap();
        thermal.nodes.iter().find(|node| node.name == name).unwrap()
    };
    for row in 0..size {
        let ThermalNode { name, j_per_k, background_mw, .. } = node(row);
        let warming = (power_mw[row] + background_mw) / 1000.0;
        a[row][size] += warming / j_per_k;
        for ThermalLink { from, to, k_per_w } in &thermal.links {
            let rate = 1.0 / (k_per_w * j_per_k);
            let other = match to {
                Some(to) if from == name => to,
                Some(to) if to == name => from,
                None if from == name => {
                    a[row][row] -= rate;
                    continue;
                }
                _ => continue,
            };
            for column in (0..size).filter(|&column| node(column).name == *other) {
                a[row][row] -= rate;
                a[row][column] += rate;
            }
        }
    }
    let exponential = matrix_exponential(&a, time_s);
    let mut state: Vec<f64> = before_c.iter().map(|c| c - thermal.ambient_c).collect();
    state.push(1.0);
    let after =
        |row: usize| -> f64 { exponential[row].iter().zip(&state).map(|(x, y)| x * y).sum() };
    (0..size).map(|row| thermal.ambient_c + after(row)).collect()
}

fn matrix_exponential(a: &[Vec<f64>], time: f64) -> Vec<Vec<f64>> {
    let size = a.len();
    let multiply = |x: &[Vec<f64>], y: &[Vec<f64>]| -> Vec<Vec<f64>> {
        let entry = |i: usize, j: usize| (0..size).map(|k| x[i][k] * y[k][j]).sum();
        (0..size).map(|i| (0..size).map(|j| entry(i, j)).collect()).collect()
    };
    let norm =
        a.iter().map(|row| row.iter().map(|x| x.abs()).sum::<f64>()).fold(0.0, f64::max) * time;
    let halvings = norm.max(1.0).log2().ceil() as i32 + 3;
    let scale = time / 2f64.powi(halvings);
    let unit = |i: usize, j: usize| if i == j { 1.0 } else { 0.0 };
    let mut sum: Vec<Vec<f64>> =
        (0..size).map(|i| (0..size).map(|j| unit(i, j)).collect()).collect();
    let mut term = sum.clone();
    for order in 1..=18 {
        term = multiply(&term, a);
        term.iter_mut().flatten().for_each(|x| *x *= scale / f64::from(order));
        sum.iter_mut().flatten().zip(term.iter().flatten()).for_each(|(x, y)| *x += y);
    }
    (0..halvings).fold(sum, |sum, _| multiply(&sum, &sum))
}

fn names(network: &ThermalNetwork) -> Vec<&str> {
    network.names().iter().map(String::as_str).collect()
}

fn assert_close(a: &[f64], b: &[f64], tolerance: f64) {
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{a} instead of {b}");
    }
}

#[test]
fn every_core_has_its_node_and_every_uncore_its_own() {
    let (machine, thermal) = read();
    let network = ThermalNetwork::new(&thermal, &machine).unwrap();
    assert_eq!(names(&network), ["big-core.0", "big-core.1", "big", "little", "case"]);
    let cores = (0..5).map(|core| network.core_node(CoreId(core))).collect::<Vec<_>>();
    assert_eq!(cores, [0, 1, 3, 3, 3]);
    assert_eq!((network.uncore_node(ClusterId(0)), network.uncore_node(ClusterId(1))), (2, 3));
    assert_eq!(network.sensors().iter().map(|(node, _)| *node).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(network.time_constants_s().len(), 5);
}

#[test]
fn derived_machines_keep_their_nodes() {
    let (machine, thermal) = read();
    let reordered = ThermalNetwork::new(&thermal, &machine.ordered(false)).unwrap();
    let cores = (0..5).map(|core| reordered.core_node(CoreId(core))).collect::<Vec<_>>();
    assert_eq!(cores, [3, 3, 3, 0, 1], "little cores are numbered first");
    let big = ThermalNetwork::new(&thermal, &machine.all_big()).unwrap();
    assert_eq!(big.names().len(), 7, "five big cores, their cluster, the case");
    let stranger = Machine { name: "s".into(), ..machine.clone() };
    let mut other = stranger.clone();
    other.clusters[0].name = "huge".into();
    let error = ThermalNetwork::new(&thermal, &other).unwrap_err().to_string();
    assert_eq!(error, "s: thermal: cluster \"huge\" has no node");
}

#[test]
fn in_the_end_the_ambient_takes_all_heat_away() {
    let (machine, thermal) = read();
    let network = ThermalNetwork::new(&thermal, &machine).unwrap();
    let power_mw = powers(&network);
    let steady_c = network.steady_c(&power_mw);
    // All heat goes through 8 K/W from the case; below it, what a node and those behind it draw.
    let total_w = (power_mw.iter().sum::<f64>() + 500.0) / 1000.0;
    let case_c = 25.0 + 8.0 * total_w;
    let big_c = case_c + 3.0 * (power_mw[0] + power_mw[1] + power_mw[2]) / 1000.0;
    let expected = [
        big_c + 4.0 * power_mw[0] / 1000.0,
        big_c + 4.0 * power_mw[1] / 1000.0,
        big_c,
        case_c + 5.0 * power_mw[3] / 1000.0,
        case_c,
    ];
    assert_close(&steady_c, &expected, 1e-12);
    let later_c = network.advance(&network.cold_c(), &power_mw, 10_000_000_000_000);
    assert_close(&later_c, &expected, 1e-12);
}

#[test]
fn many_short_steps_are_one_long_step() {
    let (machine, thermal) = read();
    let network = ThermalNetwork::new(&thermal, &machine).unwrap();
    let power_mw = powers(&network);
    let stepped =
        (0..1000).fold(network.cold_c(), |before_c, _| network.step(&before_c, &power_mw));
    let at_once = network.advance(&network.cold_c(), &power_mw, 1000 * network.period_ns());
    assert_close(&stepped, &at_once, 1e-11);
    assert_close(&network.advance(&stepped, &power_mw, 0), &stepped, 1e-14);
}

#[test]
fn leakage_that_heats_without_end_is_refused() {
    let (mut machine, thermal) = read();
    let leaking = |reference_mw: f64| Leakage {
        reference_mw,
        reference_volt: 1.1,
        reference_c: 25.0,
        per_volt: 0.0,
        kelvin: 3000.0,
    };
    machine.clusters[0].power.core_leakage = leaking(50.0);
    ThermalNetwork::new(&thermal, &machine).unwrap();
    machine.clusters[0].power.core_leakage = leaking(2000.0);
    let error = ThermalNetwork::new(&thermal, &machine).unwrap_err().to_string();
    assert!(error.starts_with("m: thermal: leakage alone heats node \"big-core."), "{error}");
    assert!(error.ends_with("without end (check static_mw, static_kelvin and k_per_w)"), "{error}");
}

#[test]
fn one_node_alone_is_the_textbook_exponential() {
    let (machine, thermal) = read();
    let mut alone = machine.all_big();
    alone.clusters[0].cores.truncate(1);
    let single = Thermal {
        nodes: vec![ThermalNode {
            name: "all".into(),
            heat: HeatSource::Cluster("big".into()),
            j_per_k: 2.0,
            background_mw: 0.0,
        }],
        links: vec![ThermalLink { from: "all".into(), to: None, k_per_w: 10.0 }],
        sensors: Vec::new(),
        ..thermal
    };
    let network = ThermalNetwork::new(&single, &alone).unwrap();
    assert_close(&network.time_constants_s(), &[20.0], 1e-15);
    let temperature_c = network.advance(&network.cold_c(), &[3000.0], 20_000_000_000);
    assert_close(&temperature_c, &[25.0 + 30.0 * (1.0 - (-1.0_f64).exp())], 1e-14);
}

proptest! {
    /// Any tree of nodes with any capacities, resistances, powers and times.
    #[test]
    fn steps_are_the_matrix_exponential_and_stay_physical(
        seed in any::<u64>(),
        log_time in -4.0..3.0f64,
    ) {
        let (machine, mut thermal) = read();
        let mut random = Draw::new(seed);
        for node in &mut thermal.nodes {
            node.j_per_k = 10f64.powf(3.0 * random.uniform() - 2.0);
            node.background_mw = 1000.0 * random.uniform();
        }
        for link in &mut thermal.links {
            link.k_per_w = 10f64.powf(3.0 * random.uniform() - 1.0);
        }
        let network = ThermalNetwork::new(&thermal, &machine).unwrap();
        let size = network.names().len();
        let power_mw: Vec<f64> = (0..size).map(|_| 4000.0 * random.uniform()).collect();
        let before_c: Vec<f64> = (0..size).map(|_| 25.0 + 60.0 * random.uniform()).collect();
        let time_ns = (1e9 * 10f64.powf(log_time)).round() as u64;
        let time_s = time_ns as f64 / 1e9;

        let after_c = network.advance(&before_c, &power_mw, time_ns);
        let exact = by_matrix_exponential(&thermal, &names(&network), &before_c, &power_mw, time_s);
        for (after, exact) in after_c.iter().zip(&exact) {
            prop_assert!((after - exact).abs() < 1e-7 * (1.0 + exact.abs()), "{after_c:?} {exact:?}");
        }

        // Physical: what was there decays, what is added stays below what it leads to in the end.
        let steady_c = network.steady_c(&power_mw);
        let hottest_c = before_c.iter().fold(25.0, |a: f64, b| a.max(*b));
        for (after, steady) in after_c.iter().zip(&steady_c) {
            prop_assert!(*after >= 25.0 - 1e-9);
            prop_assert!(*after <= hottest_c + (steady - 25.0) * (1.0 + 1e-9), "{after} {steady}");
        }
        let warming_c = network.advance(&network.cold_c(), &power_mw, time_ns);
        for (warming, steady) in warming_c.iter().zip(&steady_c) {
            prop_assert!(*warming >= 25.0 && *warming <= steady + 1e-9 * steady, "{warming} {steady}");
        }
        prop_assert!(network.time_constants_s().iter().all(|time_s| *time_s > 0.0));
    }

    /// More power anywhere makes no node colder.
    #[test]
    fn more_power_never_cools(seed in any::<u64>(), steps in 1..200usize) {
        let (machine, thermal) = read();
        let network = ThermalNetwork::new(&thermal, &machine).unwrap();
        let mut random = Draw::new(seed);
        let size = network.names().len();
        let (mut less_c, mut more_c) = (network.cold_c(), network.cold_c());
        for _ in 0..steps {
            let less: Vec<f64> = (0..size).map(|_| 3000.0 * random.uniform()).collect();
            let more: Vec<f64> = less.iter().map(|mw| mw + 500.0 * random.uniform()).collect();
            less_c = network.step(&less_c, &less);
            more_c = network.step(&more_c, &more);
            for (less, more) in less_c.iter().zip(&more_c) {
                prop_assert!(more > less, "{more} {less}");
            }
        }
    }
}

#[test]
fn trip_points_go_step_by_step_and_let_go_below_their_hysteresis() {
    let (machine, thermal) = read();
    let mut throttle = Throttle::new(&thermal, &machine);
    let highest = |throttle: &Throttle| {
        (throttle.highest_opp(ClusterId(0)), throttle.highest_opp(ClusterId(1)))
    };
    assert_eq!(highest(&throttle), (2, 1));
    let mut seen = Vec::new();
    for hottest_c in [69.9, 70.0, 84.0, 85.0, 86.0, 90.0, 80.0, 75.0, 74.9, 74.0, 65.0, 59.9, 59.0]
    {
        let changed = throttle.look(hottest_c);
        seen.push((hottest_c, highest(&throttle), changed));
    }
    assert_eq!(
        seen,
        [
            (69.9, (2, 1), false),
            (70.0, (1, 1), true),
            (84.0, (1, 1), false),
            (85.0, (0, 1), true),
            (86.0, (0, 0), true),
            (90.0, (0, 0), false),
            (80.0, (0, 0), false),
            (75.0, (0, 0), false),
            (74.9, (0, 1), true),
            (74.0, (1, 1), true),
            (65.0, (1, 1), false),
            (59.9, (2, 1), true),
            (59.0, (2, 1), false),
        ]
    );
}
