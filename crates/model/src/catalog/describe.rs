//! Texts for people: what a machine, a program or a workload consists of.

use std::collections::HashMap;
use std::fmt::Write;

use super::{Catalog, FileKind};
use crate::{
    ClockBounds, Cluster, InputError, Machine, Object, ObjectKind, Opp, Pipeline, PowerLimit,
    Program, Schedule, Thermal, ThermalNetwork, energy_models, name_cores,
};

/// A text of several lines, without a line break at the end.
pub(super) fn describe(
    catalog: &Catalog,
    kind: FileKind,
    name: &str,
) -> Result<String, InputError> {
    let text = match kind {
        FileKind::Machine => machine(&catalog.machine(name)?),
        FileKind::CoreType => core_type(catalog, name)?,
        FileKind::Profile => profile(catalog, name)?,
        FileKind::Program => program(catalog, name)?,
        FileKind::Workload => workload(catalog, name)?,
    };
    Ok(text.trim_end().to_owned())
}

/// Appends a line; writing to a string cannot fail.
fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    text.write_fmt(content).expect("writing to a string");
    text.push('\n');
}

fn machine(machine: &Machine) -> String {
    let mut text = String::new();
    line(&mut text, format_args!("{}: {}", machine.name, machine.description));
    for (each, points) in machine.clusters.iter().zip(energy_models(machine)) {
        cluster(&mut text, each, points.last().map_or(0.0, |point| point.capacity));
    }
    let costs = &machine.costs;
    line(
        &mut text,
        format_args!(
            "costs: context switch {} ns, wake-up {} ns",
            costs.context_switch_ns, costs.wakeup_latency_ns
        ),
    );
    let (same, cross) = (costs.migrate_same_cluster_ns, costs.migrate_cross_cluster_ns);
    line(
        &mut text,
        format_args!("       migration {same} ns in a cluster, {cross} ns between clusters"),
    );
    if let Some(memory) = &machine.memory {
        let (mb_s, channels) = (memory.mb_s, memory.channels);
        let plural = if channels == 1 { "" } else { "s" };
        line(&mut text, format_args!("memory: {mb_s} MB/s over {channels} channel{plural}"));
    }
    if costs.migrate_refill {
        let what = "       migration takes refilling caches where the working set is known";
        line(&mut text, format_args!("{what}"));
    }
    if costs.idle_exit {
        let most_us = machine.longest_exit_ns() as f64 / 1e3;
        let what = format_args!("       idle cores leave their idle state, up to {most_us} us");
        line(&mut text, what);
    }
    if machine.has_handovers() {
        let (same, cross) = (costs.handover_same_cluster_ns, costs.handover_cross_cluster_ns);
        line(
            &mut text,
            format_args!("       hand-over {same} ns in a cluster, {cross} ns between clusters"),
        );
    }
    if machine.board.board_mw > 0.0 {
        line(&mut text, format_args!("board: {} mW", machine.board.board_mw));
    }
    if !machine.board.shared_rail.is_empty() {
        let clock = if machine.board.shared_clock { "; their uncores have one clock" } else { "" };
        let names = machine.board.shared_rail.join(", ");
        line(&mut text, format_args!("shared rail: {names}{clock}"));
    }
    if let Some(PowerLimit { pl1_mw, pl2_mw, tau_ns }) = machine.board.limit {
        let tau_s = tau_ns as f64 / 1e9;
        line(
            &mut text,
            format_args!(
                "power limit: {pl1_mw} mW on average over {tau_s} s, {pl2_mw} mW below that"
            ),
        );
    }
    if let Some(thermal) = &machine.thermal {
        heat(&mut text, machine, thermal);
    }
    text
}

fn heat(text: &mut String, machine: &Machine, thermal: &Thermal) {
    match ThermalNetwork::new(thermal, machine) {
        Err(error) => line(text, format_args!("heat: {}", error.message)),
        Ok(network) => {
            let (nodes, ambient) = (network.names().len(), thermal.ambient_c);
            let slowest = network.time_constants_s()[0];
            line(
                text,
                format_args!(
                    "heat: {nodes} nodes, ambient {ambient} °C, slowest time constant {slowest:.1} s"
                ),
            );
        }
    }
    let trips: Vec<String> =
        thermal.trips.iter().map(|trip| format!("{} °C", trip.celsius)).collect();
    if !trips.is_empty() {
        line(text, format_args!("      throttles from {} on", trips.join(" and ")));
    }
}

/// Every one; of more than 24 the lowest and the highest, as Intel's chips have one at each 100 MHz.
fn points(opps: &[Opp]) -> String {
    // Voltages that nobody states are 1 V.
    let has_volts = opps.iter().any(|opp| opp.volt != 1.0);
    let volt = |opp: &Opp| if has_volts { format!(" {} V", opp.volt) } else { String::new() };
    let point = |opp: &Opp| format!("{} MHz{}", opp.mhz, volt(opp));
    match opps {
        [first, .., last] if opps.len() > 24 => {
            format!("{} from {} to {}", opps.len(), point(first), point(last))
        }
        opps => opps.iter().map(point).collect::<Vec<_>>().join(", "),
    }
}

fn cluster(text: &mut String, cluster: &Cluster, capacity: f64) {
    let range = name_cores(&cluster.cores);
    let (class, core_type) = (cluster.class.0, &cluster.core_type);
    let speed = match cluster.params.cycles_factor {
        1.0 => String::new(),
        factor => format!(" at {:.2} of its speed", 1.0 / factor),
    };
    line(
        text,
        format_args!(
            "cluster {}: {range}, {core_type}{speed}, class {class}, L2 {} KiB",
            cluster.name, cluster.params.l2_kib
        ),
    );
    line(text, format_args!("  capacity: {capacity:.0} of 1024, for linux and eas"));
    line(text, format_args!("  operating points: {}", points(&cluster.opps)));
    if let Some(ClockBounds { min_mhz, max_mhz }) = cluster.bounds {
        line(text, format_args!("  bounds of the clock: {min_mhz} to {max_mhz} MHz"));
    }
    if !cluster.turbo_mhz.is_empty() {
        let ladder: Vec<String> = cluster.turbo_mhz.iter().map(u32::to_string).collect();
        let class = cluster.class.0;
        line(
            text,
            format_args!(
                "  turbo: {} MHz with 1, 2, ... active cores of class {class}",
                ladder.join(", ")
            ),
        );
    }
    shared(text, cluster);
    power(text, cluster);
}

/// What its cores use together, if that costs speed.
fn shared(text: &mut String, cluster: &Cluster) {
    let sharing = &cluster.sharing;
    let l2 = sharing.l2.then(|| "its L2".to_owned());
    let port = sharing.port_mb_s.map(|mb_s| format!("a port of {mb_s} MB/s"));
    let smt = sharing
        .smt_speed
        .map(|speed| format!("two threads a core, each at {speed} of its speed if both are busy"));
    let all: Vec<String> = [l2, port, smt].into_iter().flatten().collect();
    if !all.is_empty() {
        line(text, format_args!("  shared by what runs there: {}", all.join(", ")));
    }
}

fn power(text: &mut String, cluster: &Cluster) {
    let power = &cluster.power;
    let Some(point) = power.points.last() else {
        line(text, format_args!("  power: not known"));
        return;
    };
    let (mhz, core, uncore) = (cluster.max_mhz(), point.core_mw, point.uncore_mw);
    line(
        text,
        format_args!(
            "  power at {mhz} MHz: {core:.0} mW per core at activity 1, {uncore:.0} mW shared"
        ),
    );
    let (volt, celsius) = (point.volt, power.core_leakage.reference_c);
    let leakage = power.core_leakage.power_mw(volt, celsius);
    if leakage > 0.0 {
        line(
            text,
            format_args!("  leakage: {leakage:.1} mW per core at {volt:.3} V and {celsius} °C"),
        );
    }
    let states: Vec<&str> = power.idle_states.iter().map(|state| state.name.as_str()).collect();
    line(text, format_args!("  idle states: {}", states.join(", ")));
}

fn core_type(catalog: &Catalog, name: &str) -> Result<String, InputError> {
    let core_type = catalog.core_type(name)?;
    let params = &core_type.params;
    let mut text = String::new();
    line(&mut text, format_args!("{name}: {}", core_type.description));
    let pipeline = match params.pipeline {
        Pipeline::InOrder => "in order".to_owned(),
        Pipeline::OutOfOrder => format!("out of order, window {}", params.window),
    };
    line(
        &mut text,
        format_args!(
            "pipeline: {}-wide, {pipeline}, misprediction {} cycles",
            params.width, params.mispredict_cycles
        ),
    );
    let (l1i, l1d, l2, cycles) = (params.l1i_kib, params.l1d_kib, params.l2_kib, params.l2_cycles);
    line(
        &mut text,
        format_args!("caches: L1I {l1i} KiB, L1D {l1d} KiB, L2 {l2} KiB in {cycles} cycles"),
    );
    let (memory, mlp, prefetch) = (params.memory_ns, params.mlp_max, params.prefetch_share);
    line(
        &mut text,
        format_args!(
            "memory: {memory} ns, at most {mlp} misses at once, prefetcher covers {prefetch}"
        ),
    );
    line(&mut text, format_args!("source: {}", core_type.source));
    Ok(text)
}

fn profile(catalog: &Catalog, name: &str) -> Result<String, InputError> {
    let profile =
        catalog.profiles.find(name).ok_or_else(|| catalog.unknown(FileKind::Profile, name))?;
    let mut text = String::new();
    line(&mut text, format_args!("{name}"));
    let (uops, big, little) =
        (profile.uops_per_instruction, profile.cpi_core_big, profile.cpi_core_little);
    line(
        &mut text,
        format_args!(
            "core: {uops} uops per instruction, cpi {big} out of order, {little} in order"
        ),
    );
    let (load, store, branch, fp) = (profile.load, profile.store, profile.branch, profile.fp_simd);
    line(
        &mut text,
        format_args!("mix: load {load}, store {store}, branch {branch}, fp and SIMD {fp}"),
    );
    let (l1i, l1d, small, large) =
        (profile.l1i_mpki, profile.l1d_mpki, profile.l2_512k_mpki, profile.l2_2m_mpki);
    line(
        &mut text,
        format_args!(
            "per 1000 instructions: {} mispredictions, misses L1I {l1i}, L1D {l1d}, L2 {small} (512 KiB) {large} (2 MiB)",
            profile.branch_mpki
        ),
    );
    line(&mut text, format_args!("source: {}", profile.source));
    Ok(text)
}

fn program(catalog: &Catalog, name: &str) -> Result<String, InputError> {
    let program = catalog.program(name, &[])?;
    let mut text = String::new();
    line(&mut text, format_args!("{}: {}", program.name, program.description));
    for (param, default) in catalog.params(name)? {
        line(&mut text, format_args!("parameter {param} = {default}"));
    }
    threads(&mut text, &program);
    objects(&mut text, &program);
    let profiles: Vec<&str> =
        program.profiles.iter().map(|profile| profile.name.as_str()).collect();
    let profiles = if profiles.is_empty() { "none".to_owned() } else { profiles.join(", ") };
    line(&mut text, format_args!("profiles: {profiles}"));
    for note in catalog.notes(name) {
        line(&mut text, format_args!("note: {note}"));
    }
    Ok(text)
}

fn threads(text: &mut String, program: &Program) {
    for group in program.threads.chunk_by(|one, other| family(&one.name) == family(&other.name)) {
        let family = family(&group[0].name);
        let started: u32 = group.iter().map(|thread| thread.count).sum();
        match started {
            0 => line(text, format_args!("thread {family} (forked)")),
            1 => line(text, format_args!("thread {family}")),
            _ => line(text, format_args!("thread {family} x {started}")),
        }
    }
}

/// Up to this number of objects of a kind have a line each; recordings may have thousands.
const LISTED_MAX: usize = 8;
/// Names that stand for the others then.
const NAMED: usize = 3;

/// Objects with names that differ by a number only.
struct Family<'a> {
    word: String,
    name: &'a str,
    length: usize,
}

fn objects(text: &mut String, program: &Program) {
    let families = families(&program.objects);
    let mut by_word: HashMap<&str, Vec<&Family>> = HashMap::new();
    families.iter().for_each(|one| by_word.entry(&one.word).or_default().push(one));
    for Family { word, name, length } in &families {
        let alike = &by_word[word.as_str()];
        if alike.len() <= LISTED_MAX {
            match length {
                1 => line(text, format_args!("{word} {name}")),
                _ => line(text, format_args!("{word} {name} x {length}")),
            }
        } else if std::ptr::eq(alike[0].name, *name) {
            let count: usize = alike.iter().map(|other| other.length).sum();
            let names: Vec<&str> = alike.iter().take(NAMED).map(|other| other.name).collect();
            line(text, format_args!("{word} x {count}: {}, ...", names.join(", ")));
        }
    }
}

fn families(objects: &[Object]) -> Vec<Family<'_>> {
    let groups = objects.chunk_by(|one, other| family(&one.name) == family(&other.name));
    groups
        .map(|group| {
            let first = &group[0];
            let name = if group.len() == 1 { &first.name } else { family(&first.name) };
            Family { word: object_word(first), name, length: group.len() }
        })
        .collect()
}

/// The name without the number of an instance or element: `worker` for `worker.3`.
fn family(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((family, number))
            if !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit()) =>
        {
            family
        }
        _ => name,
    }
}

/// The word for an object, with how long threads spin there.
fn object_word(object: &Object) -> String {
    let word = kind_word(&object.kind);
    match object.spin_ns {
        0 => word,
        spin_ns => format!("{word}, threads spin for {} us:", spin_ns as f64 / 1e3),
    }
}

fn kind_word(kind: &ObjectKind) -> String {
    match kind {
        ObjectKind::Mutex => "mutex".to_owned(),
        ObjectKind::Condition => "condition".to_owned(),
        ObjectKind::Barrier { parties } => format!("barrier ({parties} parties)"),
        ObjectKind::Semaphore { initial } => format!("semaphore ({initial} at first)"),
        ObjectKind::Queue { capacity, producers } => {
            format!("queue (capacity {capacity}, {producers} producers)")
        }
        ObjectKind::Pool { total, chunk, participants, schedule } => {
            let word = if *schedule == Schedule::Dynamic { "" } else { schedule.word() };
            let named = if word.is_empty() { String::new() } else { format!(", {word}") };
            format!(
                "pool ({total} iterations, {chunk} at once, {participants} participants{named})"
            )
        }
        ObjectKind::Region(region) => {
            let window = region.window.map_or(String::new(), |most| format!(", window {most}"));
            let (graph, policy, workers) = (&region.graph, &region.policy, region.workers);
            format!("region ({graph} under {policy}, {workers} workers{window})")
        }
        ObjectKind::Device { depth: 1, latency_ns: 0 } => "device".to_owned(),
        ObjectKind::Device { depth, latency_ns } => {
            format!("device ({depth} requests at once, latency {} us)", *latency_ns as f64 / 1e3)
        }
        ObjectKind::Timer { shared } => {
            format!("timer ({})", if *shared { "shared" } else { "one per thread" })
        }
    }
}

fn workload(catalog: &Catalog, name: &str) -> Result<String, InputError> {
    let workload = catalog.workload(name)?;
    let mut text = String::new();
    line(&mut text, format_args!("{}: {}", workload.name, workload.description));
    for app in &workload.apps {
        let program = &app.program;
        line(
            &mut text,
            format_args!(
                "app {}: {}, {} threads at the start",
                app.name,
                program.name,
                program.initial_threads()
            ),
        );
    }
    line(&mut text, format_args!("threads at the start: {}", workload.initial_threads()));
    Ok(text)
}
