//! Every policy names what it reads, and reads what it names.

use ampsched_model::{
    AppId, ClassId, ClusterId, CoreId, EnergyPoint, Ns, Pipeline, StallCounters, ThreadId,
};

use crate::testing::{PolicyHost, build};
use crate::{
    ClusterInfo, CoreDesign, Factor, FactorKind, LoadTracking, Needs, REGISTRY, Refusal, RunState,
    Stalls, Topology,
};

const MS: Ns = 1_000_000;
const THREADS: usize = 14;

/// Takes a need away.
type Without = fn(&mut Needs);

/// What can be named, and how a policy does without it.
const INPUTS: [(&str, Without); 9] = [
    ("speedup", |needs| needs.speedup = false),
    ("offline_speedup", |needs| needs.offline_speedup = false),
    ("alone", |needs| needs.alone = false),
    ("instructions", |needs| needs.instructions = false),
    ("stalls", |needs| needs.stalls = false),
    ("power", |needs| needs.power = false),
    ("sensors", |needs| needs.sensors = false),
    ("blame", |needs| needs.blame = false),
    ("load_tracking", |needs| needs.load_tracking = None),
];

/// Two big and three little cores with several clocks, whose power and design are known.
fn machine() -> Topology {
    let cluster = |class: usize, cores: std::ops::Range<usize>, pipeline| {
        let freqs_mhz = vec![600, 1200, 1800];
        let power = |mhz: u32| f64::from(mhz) * if class == 1 { 1.5 } else { 0.3 };
        let capacity = |mhz: u32| f64::from(mhz) / 1800.0 * if class == 1 { 1024.0 } else { 400.0 };
        let point = |&mhz: &u32| EnergyPoint { mhz, capacity: capacity(mhz), power_mw: power(mhz) };
        ClusterInfo {
            shares_l2: false,
            class: ClassId::from(class),
            cores: cores.map(CoreId::from).collect(),
            energy_model: freqs_mhz.iter().map(point).collect(),
            freqs_mhz,
            design: Some(CoreDesign { pipeline, width: 3.0, window: 64.0 }),
        }
    };
    Topology::from_clusters(vec![
        cluster(1, 0..2, Pipeline::OutOfOrder),
        cluster(0, 2..5, Pipeline::InOrder),
    ])
}

/// A value between 0 and 1 that depends on a thread, a time and what it is for.
fn scatter(thread: usize, epoch: usize, salt: usize) -> f64 {
    ((thread * 7 + epoch * 3 + salt * 11) * 37 % 101) as f64 / 101.0
}

/// What a host knows of its threads and clusters after an epoch.
fn know(host: &mut PolicyHost, epoch: usize) {
    let at_ns = host.now_ns;
    let known = |value| Factor { value, kind: FactorKind::Measured, at_ns };
    for thread in 0..THREADS {
        let part = |salt| scatter(thread, epoch / 40, salt);
        let ran_on = host.sched.thread(ThreadId::from(thread)).ran_on;
        let factors = &mut host.factors[thread];
        factors.speedup = known(1.0 + 2.5 * part(1));
        // Some are not known beforehand.
        if thread % 4 > 0 {
            factors.offline_speedup = known(1.0 + 2.5 * scatter(thread, 0, 2));
        }
        factors.alone_ips = known(1e8 * (1.0 + scatter(thread, 0, 3)));
        factors.energy_ratio = known(0.5 + scatter(thread, 0, 4));
        factors.power_mw = known(100.0 + 900.0 * scatter(thread, epoch, 5));
        factors.stalls = ran_on.map(|core| Stalls {
            class: host.sched.topology().core(core).class,
            counters: StallCounters {
                cpi_base: 0.8,
                cpi_memory: 4.0 * part(6),
                llc_mpi: 0.02 * part(6),
                mlp: 1.5,
                dependence: [0.4, 0.2, 0.1],
                load_use_distance: 5.0,
            },
            at_ns,
        });
    }
    for cluster in [0, 1].map(ClusterId) {
        let hot = scatter(cluster.index(), epoch / 10, 8);
        host.sched.set_power(cluster, known(500.0 + 4000.0 * hot));
        host.sched.set_temperature(cluster, known(40.0 + 60.0 * hot));
        host.sched.set_frequency(cluster, [1800, 1200, 600][epoch / 4 % 3], at_ns);
    }
}

/// All that a policy asks for and where its threads are, if its host gives it what `given` names; its rules may read
/// something else.
fn behaviour(
    name: &str,
    params: &[(&str, f64)],
    given: &Needs,
) -> Result<(Vec<String>, Vec<CoreId>), Refusal> {
    let policy = build(name, params);
    let epoch_ns = policy.needs().epoch_ns;
    let mut host = PolicyHost::giving(given, machine(), policy)?;
    for thread in 0..THREADS {
        host.add_to(AppId(thread as u16 / 3), Some(1.5));
    }
    let mut places = Vec::new();
    let step_ns = (epoch_ns.unwrap_or(8 * MS) / 4).max(1);
    for epoch in 0..300 {
        know(&mut host, epoch);
        // Now and then most threads sleep, so that there are idle cores.
        let active = if epoch / 20 % 2 == 0 { THREADS } else { 3 };
        for step in 0..3 {
            host.run(step_ns);
            for index in 0..THREADS {
                let thread = ThreadId::from(index);
                let rests = index >= active || (index + epoch + step) % 4 == 0;
                match host.sched.thread(thread).state {
                    RunState::Running if rests => host.block(thread),
                    RunState::Blocked if !rests => {
                        host.wake(thread);
                        host.sched.blame(ThreadId::from((index * 5 + 1) % THREADS), step_ns);
                    }
                    _ => {}
                }
            }
        }
        if epoch_ns.is_some() {
            host.run_epoch();
        }
        places.extend((0..THREADS).map(|thread| host.sched.thread(ThreadId::from(thread)).core));
    }
    Ok((std::mem::take(&mut host.asked), places))
}

/// Each policy, and those whose parameters decide what they read in another way.
fn all() -> impl Iterator<Item = (&'static str, Vec<(&'static str, f64)>)> {
    let plain = REGISTRY.iter().map(|info| (info.name, Vec::new()));
    let has_static = |info: &&&crate::PolicyInfo| info.params.iter().any(|p| p.name == "static");
    let by_offline =
        REGISTRY.iter().filter(has_static).map(|info| (info.name, vec![("static", 1.0)]));
    let hfee = [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
        .map(|(clock, online)| ("hfee", vec![("clock", clock), ("online", online)]));
    plain.chain(by_offline).chain(hfee)
}

fn everything(own: Needs) -> Needs {
    Needs {
        speedup: true,
        offline_speedup: true,
        alone: true,
        instructions: true,
        stalls: true,
        power: true,
        sensors: true,
        blame: true,
        load_tracking: own.load_tracking.or(Some(LoadTracking::ByWork)),
        ..own
    }
}

#[test]
fn what_is_not_named_makes_no_difference() {
    for (name, params) in all() {
        let own = build(name, &params).needs();
        let (named, all) = (behaviour(name, &params, &own), everything(own));
        assert!(named == behaviour(name, &params, &all), "{name} {params:?} reads more");
    }
}

#[test]
fn what_is_named_makes_a_difference() {
    let mut idle = Vec::new();
    for (name, params) in all() {
        let own = build(name, &params).needs();
        let with = behaviour(name, &params, &own);
        for (input, leave_out) in INPUTS {
            let mut without = own;
            leave_out(&mut without);
            if without != own && with == behaviour(name, &params, &without) {
                idle.push((name, input));
            }
        }
    }
    // Without a thermal network, which this machine has not, it watches nothing.
    assert_eq!(idle, [("dtpm", "sensors")]);
}
