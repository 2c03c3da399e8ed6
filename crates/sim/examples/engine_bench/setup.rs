//! Machines and workloads of the measurements, built in code so that no file is needed.

use std::ops::Range;
use std::sync::Arc;

use ampsched_model::{
    ActivityLaw, App, ClassId, Cluster, ClusterPower, CoreId, CoreParams, Costs, HeatSource,
    IdleState, InputError, Leakage, Machine, Memory, Opp, Pipeline, PowerPoint, Profile,
    ProfileLibrary, Remaining, Sharing, Thermal, ThermalLink, ThermalNode, Workload, parse_program,
};

/// The first half of the cores has speed 1, the second half 0.5; nothing costs extra time.
pub fn half_speed_machine(cores: usize) -> Machine {
    let big = cores.div_ceil(2);
    let mut clusters = vec![cluster("big", u8::from(big < cores), 0..big, 1000)];
    if big < cores {
        clusters.push(cluster("little", 0, big..cores, 500));
    }
    let thermal = thermal(&clusters);
    let description = "half of the cores half as fast".to_owned();
    Machine {
        name: format!("{cores} cores"),
        description,
        clusters,
        costs: Costs::default(),
        thermal: Some(thermal.into()),
        board: ampsched_model::BoardPower::default(),
        kernel_view: ampsched_model::KernelView::default(),
        reference: None,
        memory: None,
    }
}

fn cluster(name: &str, class: u8, cores: Range<usize>, mhz: u32) -> Cluster {
    Cluster {
        shares_l2: false,
        sharing: Sharing::NONE,
        turbo_mhz: Vec::new(),
        bounds: None,
        name: name.to_owned(),
        class: ClassId(class),
        cores: cores.map(CoreId::from).collect(),
        core_type: "unit".to_owned(),
        params: UNIT_CORE,
        opps: vec![Opp { mhz, volt: 1.0 }],
        power: power(),
        costs: None,
    }
}

/// Power of a core that is busy or idles in one of two states; used only if energy is measured.
fn power() -> ClusterPower {
    let idle = |name: &str, constant_mw, share, min_residency_ns| IdleState {
        name: name.to_owned(),
        core: Remaining { constant_mw, share },
        uncore: Remaining { constant_mw: 0.0, share: 1.0 },
        entry_ns: 0,
        exit_ns: 0,
        min_residency_ns,
    };
    ClusterPower {
        points: vec![PowerPoint { volt: 1.0, core_mw: 1000.0, uncore_mw: 100.0 }],
        core_leakage: Leakage { reference_mw: 50.0, kelvin: 2000.0, ..Leakage::default() },
        activity: ActivityLaw { stalled: 0.5, l2: 0.0 },
        idle_states: vec![idle("shallow", 20.0, 0.0, 0), idle("deep", 5.0, 0.0, 2_000_000)],
        ..ClusterPower::default()
    }
}

/// Every cluster heats one node, which cools to the ambient.
fn thermal(clusters: &[Cluster]) -> Thermal {
    let node = |cluster: &Cluster| ThermalNode {
        name: cluster.name.clone(),
        heat: HeatSource::Cluster(cluster.name.clone()),
        j_per_k: 1.0,
        background_mw: 0.0,
    };
    let link =
        |cluster: &Cluster| ThermalLink { from: cluster.name.clone(), to: None, k_per_w: 5.0 };
    Thermal {
        ambient_c: 25.0,
        period_ns: 10_000_000,
        nodes: clusters.iter().map(node).collect(),
        links: clusters.iter().map(link).collect(),
        sensors: Vec::new(),
        throttle_period_ns: 100_000_000,
        trips: Vec::new(),
    }
}

/// A core that needs one cycle for an instruction without misses.
const UNIT_CORE: CoreParams = CoreParams {
    pipeline: Pipeline::OutOfOrder,
    width: 3.0,
    window: 128.0,
    mispredict_cycles: 0.0,
    load_cycles: 1.0,
    fp_double_cycles: 1.0,
    fp_single_cycles: 1.0,
    fp_double_latency_cycles: 1.0,
    simd_cycles: 0.5,
    simd_latency_cycles: 3.0,
    fp_single_latency_cycles: 1.0,
    l1i_kib: 32.0,
    l1d_kib: 32.0,
    l2_kib: 2048.0,
    l2_cycles: 0.0,
    memory_ns: 0.0,
    mlp_max: 1.0,
    prefetch_share: 0.0,
    cycles_factor: 1.0,
};

/// Two clusters of cores that wait for memory; if `is_on`, of two threads each, which share an L2 and the memory.
pub fn contended_machine(cores: usize, is_on: bool) -> Machine {
    let mut machine = half_speed_machine(cores);
    for cluster in &mut machine.clusters {
        cluster.params = CoreParams {
            l2_kib: 1024.0,
            l2_cycles: 10.0,
            memory_ns: 80.0,
            mlp_max: 4.0,
            ..UNIT_CORE
        };
        if is_on {
            cluster.sharing = Sharing { l2: true, smt_speed: Some(0.6), ..Sharing::NONE };
        }
    }
    machine.memory = is_on.then_some(Memory { mb_s: 4000.0, channels: 2 });
    machine
}

/// The applications of [`mix`], each with behaviour of its own.
pub fn contended_mix() -> Result<Workload, InputError> {
    let apps = [("hogs", HOGS, 5.0), ("convoy", CONVOY, 10.0), ("phases", PHASES, 20.0)];
    let apps = apps.into_iter().chain([("pipeline", PIPELINE, 1.0)]);
    let apps: Result<Vec<App>, InputError> = apps
        .map(|(name, text, mpki)| {
            let unit = Profile {
                l1d_mpki: 2.0 * mpki,
                l2_512k_mpki: mpki,
                l2_2m_mpki: mpki / 2.0,
                l1d_write_mpki: mpki / 2.0,
                l2_512k_write_mpki: mpki / 4.0,
                l2_2m_write_mpki: mpki / 8.0,
                ilp_40: 2.0,
                ilp_128: 3.0,
                ..unit_profile()
            };
            app_with(name, text, unit)
        })
        .collect();
    Ok(Workload { name: "contended".to_owned(), description: String::new(), apps: apps? })
}

/// Threads that only compute, longer than any measurement.
pub fn hogs(threads: usize) -> Result<Workload, InputError> {
    let text = format!(
        "[[threads]]\nname = 'hog'\ncount = {threads}\nbody = [{{ compute = 1e17, profile = 'unit' }}]"
    );
    Ok(Workload {
        name: "hogs".to_owned(),
        description: String::new(),
        apps: vec![app("hogs", &text)?],
    })
}

/// Four applications of five threads that compute, contend for a mutex, meet at a barrier, pass items on.
pub fn mix() -> Result<Workload, InputError> {
    let apps = [
        app("hogs", HOGS)?,
        app("convoy", CONVOY)?,
        app("phases", PHASES)?,
        app("pipeline", PIPELINE)?,
    ];
    Ok(Workload { name: "mix".to_owned(), description: String::new(), apps: apps.into() })
}

/// Two applications that end after about 1 ms, and the five threads of one that does not end.
pub fn repeated() -> Result<Workload, InputError> {
    let apps = [app("first", SHORT)?, app("second", SHORT)?, app("hogs", HOGS)?];
    Ok(Workload { name: "repeated".to_owned(), description: String::new(), apps: apps.into() })
}

const SHORT: &str = "
[[threads]]
name = 'short'
body = [{ compute = { mean = 1e6, cv = 0.5 }, profile = 'unit' }]";

const HOGS: &str = "
[[threads]]
name = 'hog'
count = 5
body = [{ loop = 'forever', body = [{ compute = { mean = 5e6, cv = 0.5 }, profile = 'unit' }] }]";

const CONVOY: &str = "
[mutexes.table]
[[threads]]
name = 'worker'
count = 5
body = [{ loop = 'forever', body = [
  { compute = { mean = 300e3, cv = 0.5 }, profile = 'unit' },
  { lock = 'table' }, { compute = 50e3, profile = 'unit' }, { unlock = 'table' },
] }]";

const PHASES: &str = "
[barriers.phase]
[[threads]]
name = 'worker'
count = 5
body = [{ loop = 'forever', body = [
  { compute = { mean = 1e6, cv = 0.3 }, profile = 'unit' }, { barrier = 'phase' },
] }]";

const PIPELINE: &str = "
[queues.items]
capacity = 16
[[threads]]
name = 'reader'
body = [
  { loop = 1e12, body = [{ compute = 100e3, profile = 'unit' }, { push = 'items' }] },
  { close = 'items' },
]
[[threads]]
name = 'worker'
count = 4
body = [{ each = 'items', body = [{ compute = { mean = 400e3, cv = 0.8 }, profile = 'unit' }] }]";

fn app(name: &str, text: &str) -> Result<App, InputError> {
    app_with(name, text, unit_profile())
}

fn unit_profile() -> Profile {
    Profile {
        name: "unit".to_owned(),
        cpi_core_big: 1.0,
        cpi_core_little: 1.0,
        ..Profile::default()
    }
}

fn app_with(name: &str, text: &str, unit: Profile) -> Result<App, InputError> {
    let text = format!("name = '{name}'\ndescription = 'benchmark'\n{text}");
    let profiles = ProfileLibrary { profiles: vec![unit] };
    let program = parse_program(name, &text)?.instantiate(&[], &profiles)?;
    Ok(App { name: name.to_owned(), program: Arc::new(program), start_ns: 0, nice: 0 })
}
