//! What must hold of the results of any simulation, computed from the results and the machine alone.

use ampsched_model::{ClusterId, ClusterPower, CoreState, Machine, Ns};
use ampsched_sim::{ClusterOutcome, Limits, Options, Outcome, ThreadOutcome};

/// Energies are sums of products of floating-point numbers.
const RELATIVE_ERROR: f64 = 1e-9;
/// Temperature in degrees Celsius of machines of which it is not known how they heat up
/// (docs/explanation/power-model.md).
const ASSUMED_C: f64 = 50.0;
/// Busy for longer than this without an instruction: nothing progresses.
const STUCK_NS: Ns = 50_000_000;

/// The first thing that does not hold.
pub fn flaw(machine: &Machine, options: &Options, outcome: &Outcome) -> Option<String> {
    None.or_else(|| times(options, outcome))
        .or_else(|| places(machine, outcome))
        .or_else(|| outcome.threads.iter().find_map(|thread| life(outcome, thread)))
        .or_else(|| residency(machine, outcome))
        .or_else(|| energy(machine, options, outcome))
        .or_else(|| progress(outcome))
        .or_else(|| repetitions(options, outcome))
}

/// A time that is less than the least that any schedule could have.
pub fn beaten_limit(limits: &Limits, outcome: &Outcome) -> Option<String> {
    let beats = |what: &str, value: f64, limit: f64| {
        (value < limit).then(|| format!("{what} of {value} is less than the limit of {limit}"))
    };
    let turnarounds: Vec<f64> = outcome.apps.iter().map(|app| app.turnaround_ns as f64).collect();
    let of_app = |(app, ns): (usize, &f64)| {
        beats(&format!("turnaround of application {app}"), *ns, limits.turnaround_ns(app))
    };
    let ones = vec![1e6; turnarounds.len()];
    let mean = turnarounds.iter().map(|ns| ns / 1e6).sum::<f64>() / ones.len() as f64;
    let progress: f64 = turnarounds.iter().map(|ns| 1e6 / ns.max(1.0)).sum();
    (turnarounds.iter().enumerate().find_map(of_app))
        .or_else(|| beats("makespan", outcome.makespan_ns as f64, limits.makespan_ns()))
        .or_else(|| beats("mean turnaround", mean, limits.h_antt(&ones)))
        .or_else(|| beats("-throughput", -progress, -limits.h_stp(&ones)))
}

fn unequal(what: &str, one: u64, other: u64) -> Option<String> {
    (one != other).then(|| format!("{what}: {one} is not {other}"))
}

/// Every core is busy or idle at any time, and busy with the threads.
fn times(options: &Options, outcome: &Outcome) -> Option<String> {
    let end_ns = outcome.makespan_ns;
    if options.until_ns.is_some_and(|until_ns| end_ns > until_ns) {
        return Some(format!("it goes on until {end_ns} ns"));
    }
    let busy_ns: Ns = outcome.cores.iter().map(|core| core.busy_ns).sum();
    let run_ns: Ns = outcome.threads.iter().map(|thread| thread.run_ns()).sum();
    let cores = outcome.cores.iter().enumerate().find_map(|(index, core)| {
        let all_ns = core.busy_ns + core.idle_ns;
        unequal(&format!("core {index}: busy + idle, in ns"), all_ns, end_ns).or_else(|| {
            (core.overhead_ns > core.busy_ns).then(|| {
                format!("core {index}: overhead of {} ns in {} ns", core.overhead_ns, core.busy_ns)
            })
        })
    });
    cores.or_else(|| unequal("cores are busy, threads run, in ns", busy_ns, run_ns))
}

/// Time on big and on little cores is that of the cores of these classes.
fn places(machine: &Machine, outcome: &Outcome) -> Option<String> {
    let classes = machine.clusters.iter().map(|cluster| cluster.class);
    let is_symmetric = classes.clone().min() == classes.max();
    let little = machine.clusters.iter().filter(|cluster| !is_symmetric && cluster.class.0 == 0);
    let cores = little.flat_map(|cluster| &cluster.cores);
    let busy_ns: Ns = cores.map(|core| outcome.cores[core.index()].busy_ns).sum();
    let told_ns = outcome.threads.iter().map(|thread| thread.little_ns()).sum();
    unequal("little cores are busy, threads run there, in ns", busy_ns, told_ns)
}

/// A thread always runs, waits for a core, or waits for something else; and retires what its program demands.
fn life(outcome: &Outcome, thread: &ThreadOutcome) -> Option<String> {
    let name = &thread.name;
    if thread.end_ns < thread.start_ns || thread.end_ns > outcome.makespan_ns {
        return Some(format!(
            "thread {name} lives from {} to {} ns",
            thread.start_ns, thread.end_ns
        ));
    }
    let parts_ns = thread.run_ns() + thread.ready_ns + thread.blocked_ns;
    let lives_ns = thread.end_ns - thread.start_ns;
    unequal(&format!("thread {name}: running + ready + blocked, in ns"), parts_ns, lives_ns)
        .or_else(|| {
            unequal(
                &format!("thread {name}: retired, demanded"),
                thread.instructions,
                thread.instructions_demanded,
            )
        })
        .or_else(|| {
            (thread.ready_ns_max > thread.ready_ns).then(|| {
                format!(
                    "thread {name}: longest wait {} of {} ns",
                    thread.ready_ns_max, thread.ready_ns
                )
            })
        })
}

/// Every cluster has one of its frequencies at any time.
fn residency(machine: &Machine, outcome: &Outcome) -> Option<String> {
    machine.clusters.iter().zip(&outcome.clusters).find_map(|(cluster, told)| {
        let name = &cluster.name;
        let sum_ns = told.residency.iter().map(|(_, ns)| ns).sum();
        let strange =
            told.residency.iter().find(|(mhz, _)| cluster.opps.iter().all(|opp| opp.mhz != *mhz));
        unequal(&format!("cluster {name}: residency, in ns"), sum_ns, outcome.makespan_ns).or_else(
            || {
                strange.map(|(mhz, _)| {
                    format!("cluster {name}: ran at {mhz} MHz, which it does not have")
                })
            },
        )
    })
}

fn is_close(one: f64, other: f64) -> bool {
    (one - other).abs() <= RELATIVE_ERROR * one.abs().max(other.abs()).max(1e-6)
}

/// Energy is what the parts use, within what their powers allow; and it is accounted for if and only if asked for, or
/// limited.
fn energy(machine: &Machine, options: &Options, outcome: &Outcome) -> Option<String> {
    let is_told = options.energy || machine.board.limit.is_some();
    if outcome.clusters.iter().any(|cluster| cluster.energy.is_some() != is_told)
        || outcome.threads.iter().any(|thread| thread.energy_uj.is_some() != is_told)
    {
        return Some("energy is told unasked, or not told".to_owned());
    }
    if !is_told {
        return None;
    }
    let of_threads: f64 = outcome.threads.iter().filter_map(|thread| thread.energy_uj).sum();
    let of_cores: f64 =
        outcome.clusters.iter().filter_map(|cluster| cluster.energy).map(|e| e.running_uj).sum();
    if !is_close(of_threads, of_cores) {
        return Some(format!("threads use {of_threads} uJ, the cores that run them {of_cores} uJ"));
    }
    (0..machine.clusters.len()).find_map(|index| cluster_energy(machine, outcome, index.into()))
}

fn cluster_energy(machine: &Machine, outcome: &Outcome, id: ClusterId) -> Option<String> {
    let (cluster, told) = (&machine.clusters[id.index()], &outcome.clusters[id.index()]);
    let (energy, power) = (told.energy?, &cluster.power);
    let parts_uj = energy.running_uj + energy.idle_uj + energy.uncore_uj;
    if !is_close(parts_uj, energy.sensor_uj) {
        return Some(format!(
            "cluster {}: its parts use {parts_uj} uJ, its supply gives {} uJ",
            cluster.name, energy.sensor_uj
        ));
    }
    let cores = || cluster.cores.iter().map(|core| &outcome.cores[core.index()]);
    let busy_ns: Ns = cores().map(|core| core.busy_ns).sum();
    let idle_ns: Ns = cores().map(|core| core.idle_ns).sum();
    let hottest_c = outcome.peak_c.unwrap_or(ASSUMED_C);
    let coldest_c =
        machine.thermal.as_ref().map_or(hottest_c, |thermal| thermal.ambient_c.min(hottest_c));
    if power.core_leakage.kelvin == 0.0 && is_fixed(power) {
        return exact(machine, told, power, &energy, outcome.makespan_ns);
    }
    let bounds = |state: CoreState| {
        let of = |celsius: f64| {
            move |&(mhz, _): &(u32, Ns)| {
                let opp = cluster
                    .opps
                    .iter()
                    .position(|opp| opp.mhz == mhz)
                    .expect("residency was looked at");
                power.core_power_mw(opp, state, celsius)
            }
        };
        let least = told.residency.iter().map(of(coldest_c)).fold(f64::INFINITY, f64::min);
        let most = told.residency.iter().map(of(hottest_c)).fold(0.0, f64::max);
        (least, most)
    };
    let within = |what: &str, uj: f64, ns: Ns, least_mw: f64, most_mw: f64| {
        // mW x ns = pJ.
        let (least, most) = (least_mw * ns as f64 / 1e6, most_mw * ns as f64 / 1e6);
        let fits = uj >= least * (1.0 - RELATIVE_ERROR) - 1e-9
            && uj <= most * (1.0 + RELATIVE_ERROR) + 1e-9;
        (!fits).then(|| {
            format!(
                "cluster {}: {what} cores use {uj} uJ in {ns} ns, not {least} to {most} uJ",
                cluster.name
            )
        })
    };
    let highest = 1.0_f64.max(1.0 + power.activity.l2);
    let (run_least, _) = bounds(CoreState::Running { activity: power.activity.stalled.min(1.0) });
    let (_, run_most) = bounds(CoreState::Running { activity: highest });
    let idle = (0..power.idle_states.len()).map(|state| bounds(CoreState::Idle(state)));
    let (idle_least, idle_most) = idle
        .fold((f64::INFINITY, 0.0_f64), |(least, most), (low, high)| {
            (least.min(low), most.max(high))
        });
    // Of two threads of a core, a busy one pays for at least a half, and an idle one for nothing beside a busy one.
    let (run_part, idle_part) =
        if cluster.sharing.smt_speed.is_some() { (0.5, 0.0) } else { (1.0, 1.0) };
    within("running", energy.running_uj, busy_ns, run_part * run_least, run_most)
        .or_else(|| within("idle", energy.idle_uj, idle_ns, idle_part * idle_least, idle_most))
}

/// Whether a core's power follows from its frequency and from whether it runs.
fn is_fixed(power: &ClusterPower) -> bool {
    power.activity == ampsched_model::ActivityLaw::default() && power.idle_states.len() == 1
}

/// Without anything that varies but the frequency, cores and uncore together use power x time of it: one cluster alone
/// can be computed exactly if its frequency never changed.
fn exact(
    machine: &Machine,
    told: &ClusterOutcome,
    power: &ClusterPower,
    energy: &ampsched_sim::ClusterEnergy,
    makespan_ns: Ns,
) -> Option<String> {
    let [(mhz, _)] = told.residency[..] else { return None };
    let cluster = machine.clusters.iter().find(|cluster| cluster.name == told.name)?;
    let opp = cluster.opps.iter().position(|opp| opp.mhz == mhz)?;
    let celsius = power.core_leakage.reference_c;
    let uncore_mw = power.uncore_power_mw(opp, None, celsius);
    let state = &power.idle_states[0].uncore;
    // An idle uncore that draws as much as a busy one: its energy is one product.
    if state.share != 1.0 || state.constant_mw != 0.0 {
        return None;
    }
    let expected_uj = uncore_mw * makespan_ns as f64 / 1e6;
    (!is_close(energy.uncore_uj, expected_uj)).then(|| {
        format!(
            "cluster {}: its uncore uses {} uJ, not {expected_uj} uJ",
            told.name, energy.uncore_uj
        )
    })
}

/// Cores that are busy retire instructions.
fn progress(outcome: &Outcome) -> Option<String> {
    let retired: u64 = outcome.threads.iter().map(|thread| thread.instructions).sum();
    let busy_ns: Ns = outcome.cores.iter().map(|core| core.busy_ns).sum();
    (retired == 0 && busy_ns > STUCK_NS)
        .then(|| format!("no instruction retires in {busy_ns} ns of busy cores"))
}

/// Who is to be repeated ends so often, unless the run was stopped before.
fn repetitions(options: &Options, outcome: &Outcome) -> Option<String> {
    let wanted = options.repetitions.map_or(1, |times| times.get() as usize);
    if options.until_ns.is_some() {
        return None;
    }
    let few = outcome.apps.iter().find(|app| app.completions_ns.len() < wanted)?;
    Some(format!(
        "application {} has ended {} times, not {wanted}",
        few.name,
        few.completions_ns.len()
    ))
}
