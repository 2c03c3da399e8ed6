//! Machines and rules that the tests of the kernel's scheduler try.

use ampsched_model::{ClassId, CoreId, Draw, EnergyPoint};
use ampsched_policy::{
    ClusterInfo, LoadTracking, Needs, REGISTRY, Rules, Source, Topology, Wire, build_policy,
};
use ampsched_scx::{layout, lower};

/// How many traces are tried. `TRACES` in the environment asks for more.
pub fn traces(fallback: u64) -> u64 {
    std::env::var("TRACES").map_or(fallback, |text| text.parse().expect("TRACES is a number"))
}

/// Traces take turns with the machines.
pub fn topology_of(seed: u64) -> Topology {
    let mut all = topologies();
    let index = seed % all.len() as u64;
    all.swap_remove(index as usize)
}

/// Has every policy that a kernel can execute tried, one of each set of rules: by its name, on the machine of a seed,
/// with its rules there. Returns how many sets there are.
pub fn try_policies(
    seeds: u64,
    mut run: impl FnMut(&str, Topology, Rules, layout::Rules, Option<LoadTracking>, u64),
) -> usize {
    let mut done: Vec<Vec<Rules>> = Vec::new();
    for info in REGISTRY {
        let policy = build_policy(info.name, &[]).unwrap();
        let lowered = |rules: &Rules, topology: &Topology| {
            lower::rules(info.name, &Needs::default(), rules, topology)
        };
        let on_all: Vec<_> = topologies().iter().map(|topology| policy.rules(topology)).collect();
        if lowered(&on_all[0], &topologies()[0]).is_err() || done.contains(&on_all) {
            continue;
        }
        for seed in 0..seeds {
            let topology = topology_of(seed);
            let rules = policy.rules(&topology);
            let wire = lowered(&rules, &topology).unwrap();
            run(info.name, topology, rules, wire, policy.needs().load_tracking, seed);
        }
        done.push(on_all);
    }
    done.len()
}

/// Has rules drawn from all words that a kernel executes tried.
pub fn try_random_rules(
    seeds: u64,
    mut run: impl FnMut(&str, Topology, Rules, layout::Rules, Option<LoadTracking>, u64),
) {
    for seed in 0..seeds {
        let (rules, topology) = (random_rules(&mut Draw::new(seed).child(1)), topology_of(seed));
        let wire = lower::rules("random", &Needs::default(), &rules, &topology).unwrap();
        run(&format!("{rules:?}"), topology, rules, wire, tracking_of(seed), seed);
    }
}

/// How load is tracked under random rules, which may read it.
pub fn tracking_of(seed: u64) -> Option<LoadTracking> {
    Some(if seed / 7 % 2 == 0 { LoadTracking::ByWork } else { LoadTracking::ByTime })
}

/// A machine with clusters of a class and so many cores each.
pub fn topology(clusters: &[(u8, usize)]) -> Topology {
    let mut next = 0;
    let clusters = clusters.iter().map(|&(class, count)| {
        let cores = (next..next + count).map(CoreId::from).collect();
        next += count;
        ClusterInfo {
            shares_l2: false,
            class: ClassId(class),
            cores,
            freqs_mhz: vec![1000],
            design: None,
            energy_model: energy_model(class),
        }
    });
    Topology::from_clusters(clusters.collect())
}

/// Capacities and powers of a core of a class.
fn energy_model(class: u8) -> Vec<EnergyPoint> {
    let (capacity, power_mw) =
        [(379.5, 150.0), (700.0, 600.0), (1024.0, 2000.0)][usize::from(class)];
    let point = |mhz: u32| {
        let share = f64::from(mhz) / 1000.0;
        EnergyPoint { mhz, capacity: capacity * share, power_mw: power_mw * share.powf(2.2) }
    };
    [200, 500, 700, 1000].map(point).to_vec()
}

/// The same, where the first cores are two threads each of physical cores: neighbours, or as far apart as they can be.
fn with_siblings(clusters: &[(u8, usize)], pairs: u16, neighbours: bool) -> Topology {
    let of = |pair| if neighbours { (2 * pair, 2 * pair + 1) } else { (pair, pairs + pair) };
    let core = |(one, other)| (CoreId(one), CoreId(other));
    topology(clusters).with_siblings((0..pairs).map(of).map(core))
}

/// Big first and little first, one kind, three kinds, several clusters of a kind, one core, cores with two threads.
pub fn topologies() -> Vec<Topology> {
    let all: [&[(u8, usize)]; 7] = [
        &[(1, 2), (0, 2)],
        &[(0, 3), (1, 1)],
        &[(0, 4)],
        &[(0, 2), (1, 2), (2, 1)],
        &[(0, 2), (0, 2), (1, 4)],
        &[(0, 1)],
        &[(1, 4), (0, 6)],
    ];
    let smt = [with_siblings(&[(1, 4), (0, 4)], 2, true), with_siblings(&[(0, 6)], 3, false)];
    all.map(topology).into_iter().chain(smt).collect()
}

/// Rules drawn from all words that a kernel executes.
pub fn random_rules(draw: &mut Draw) -> Rules {
    Rules::draw_fields(&mut Source::random(&mut |limit| draw.bits() % limit))
}
