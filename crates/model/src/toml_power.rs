//! The power keys of a machine file's clusters.

use std::ops::RangeInclusive;

use crate::reader::{Node, Table};
use crate::{
    ActivityLaw, BoardPower, ClusterPower, EnergyPoint, IdleState, InputError, Leakage, Ns, Opp,
    PowerLimit, PowerPoint, Remaining, Sensor,
};

/// Keys of a cluster that this file reads.
pub(crate) const CLUSTER_KEYS: [&str; 4] = ["power", "energy_model", "idle_states", "power_sensor"];
/// Keys of the table `power`.
const POWER_KEYS: [&str; 9] = [
    "dynamic_uw_per_mhz_v2",
    "uncore_dynamic_uw_per_mhz_v2",
    "static_mw",
    "uncore_static_mw",
    "static_at_volt",
    "static_at_c",
    "static_per_volt",
    "static_kelvin",
    "activity",
];
/// Largest power in mW, 1 kW.
const POWER_MW: RangeInclusive<f64> = 0.0..=1e6;
/// What kernels are told of a core, of 1024.
const CAPACITY: RangeInclusive<f64> = 1.0..=1024.0;
/// Temperatures in degrees Celsius at which electronics work, with room to spare.
pub(crate) const CELSIUS: RangeInclusive<f64> = -60.0..=200.0;
/// Longest period or latency in ms, 1000 s.
const MS_MAX: f64 = 1e6;

/// Reads what a cluster's table says about power; `opps` are its operating points.
pub(crate) fn cluster_power(cluster: &Table<'_>, opps: &[Opp]) -> Result<ClusterPower, InputError> {
    let power = stated_power(cluster, opps)?;
    let in_table = power.energy_model.last().map(|point| point.capacity);
    let capacity = match cluster.get("capacity") {
        Some(node) if in_table.is_some() => {
            let error = node.spot.error("a capacity beside energy_model");
            return Err(error.with_hint("energy_model has it for each operating point"));
        }
        Some(node) => Some(node.number(CAPACITY)?),
        None => in_table,
    };
    let highest_mhz = opps.last().map_or(1.0, |opp| f64::from(opp.mhz));
    Ok(ClusterPower { capacity_per_mhz: capacity.map(|all| all / highest_mhz), ..power })
}

fn stated_power(cluster: &Table<'_>, opps: &[Opp]) -> Result<ClusterPower, InputError> {
    let (energy_model, points) = match cluster.get("energy_model") {
        Some(node) => energy_model(&node, opps)?,
        None => Default::default(),
    };
    let mut power = ClusterPower { points, energy_model, ..ClusterPower::default() };
    if let Some(node) = cluster.get("power") {
        law(&node, opps, &mut power)?;
    }
    if !power.is_known() {
        return refuse_details(cluster).map(|()| power);
    }
    power.idle_states = match cluster.get("idle_states") {
        Some(node) => idle_states(&node)?,
        None => vec![clock_gated()],
    };
    power.sensor = cluster.get("power_sensor").map(|node| sensor(&node, "mw")).transpose()?;
    Ok(power)
}

/// The table `power` of a machine, whose clusters have these names, with whether their powers are known.
pub(crate) fn board(node: &Node<'_>, clusters: &[(&str, bool)]) -> Result<BoardPower, InputError> {
    let table =
        node.table(&["board_mw", "shared_rail", "shared_clock", "pl1_mw", "pl2_mw", "tau_ms"])?;
    let board_mw = table.number_or("board_mw", 0.0, POWER_MW)?;
    let limit = limit(&table, clusters)?;
    let clock = table.get("shared_clock");
    let shared_clock = clock.as_ref().map_or(Ok(false), |node| node.boolean())?;
    let Some(list) = table.get("shared_rail") else {
        if let Some(node) = clock.filter(|_| shared_clock) {
            let error = node.spot.error("there is no shared_rail");
            return Err(error.with_hint("name the clusters whose uncores have one clock"));
        }
        return Ok(BoardPower { board_mw, limit, ..BoardPower::default() });
    };
    let mut shared_rail: Vec<String> = Vec::new();
    for node in list.list()? {
        let name = node.name()?;
        match clusters.iter().find(|(known, _)| *known == name) {
            None => {
                let known = clusters.iter().map(|(known, _)| *known);
                return Err(node.spot.unknown("cluster", name, known));
            }
            Some((_, false)) => {
                let error = node.spot.error(format!("power of cluster {name:?} is not known"));
                return Err(error.with_hint("state its power or energy_model, too"));
            }
            Some(_) if shared_rail.iter().any(|other| other == name) => {
                return Err(node.spot.error(format!("cluster {name:?} a second time")));
            }
            Some(_) => shared_rail.push(name.to_owned()),
        }
    }
    if shared_rail.len() < 2 {
        let message = format!("{} cluster, at least 2 are needed to share", shared_rail.len());
        return Err(list.spot.error(message));
    }
    Ok(BoardPower { board_mw, shared_rail, shared_clock, limit })
}

/// What all clusters together may draw: PL1, PL2 and the time constant.
fn limit(table: &Table<'_>, clusters: &[(&str, bool)]) -> Result<Option<PowerLimit>, InputError> {
    let Some(pl1) = table.get("pl1_mw") else {
        let lonely = ["pl2_mw", "tau_ms"].iter().find_map(|key| table.get(key));
        return lonely.map_or(Ok(None), |node| {
            Err(node.spot.error("there is no pl1_mw").with_hint("state pl1_mw, pl2_mw and tau_ms"))
        });
    };
    if let Some((name, _)) = clusters.iter().find(|(_, is_known)| !is_known) {
        let error = pl1.spot.error(format!("power of cluster {name:?} is not known"));
        return Err(error.with_hint("state its power or energy_model, too"));
    }
    let pl1_mw = pl1.number(1.0..=*POWER_MW.end())?;
    let pl2_mw = table.number_or("pl2_mw", pl1_mw, 1.0..=*POWER_MW.end())?;
    if let Some(node) = table.get("pl2_mw").filter(|_| pl2_mw < pl1_mw) {
        return Err(node.spot.error(format!("{pl2_mw} mW, below pl1_mw of {pl1_mw} mW")));
    }
    let tau_ns = ms(table.number("tau_ms", 1.0..=MS_MAX)?);
    Ok(Some(PowerLimit { pl1_mw, pl2_mw, tau_ns }))
}

/// Idle states and sensors make no sense if the power is not known.
fn refuse_details(cluster: &Table<'_>) -> Result<(), InputError> {
    for key in ["idle_states", "power_sensor"] {
        if let Some(node) = cluster.get(key) {
            let error = node.spot.error("power is not known");
            return Err(error.with_hint("state power or energy_model, too"));
        }
    }
    Ok(())
}

/// The table `power`: coefficients of the power law.
fn law(node: &Node<'_>, opps: &[Opp], power: &mut ClusterPower) -> Result<(), InputError> {
    const COEFFICIENT: RangeInclusive<f64> = 0.0..=100_000.0;
    let table = node.table(&POWER_KEYS)?;
    let core = table.number("dynamic_uw_per_mhz_v2", COEFFICIENT)?;
    let uncore = table.number_or("uncore_dynamic_uw_per_mhz_v2", 0.0, COEFFICIENT)?;
    power.points = opps.iter().map(|opp| PowerPoint::of_law(*opp, core, uncore)).collect();
    let nominal_volt = opps.last().map_or(1.0, |opp| opp.volt);
    let leakage = Leakage {
        reference_mw: table.number_or("static_mw", 0.0, POWER_MW)?,
        reference_volt: table.number_or("static_at_volt", nominal_volt, 0.1..=2.0)?,
        reference_c: table.number_or("static_at_c", Leakage::default().reference_c, CELSIUS)?,
        per_volt: table.number_or("static_per_volt", 0.0, 0.0..=20.0)?,
        kelvin: table.number_or("static_kelvin", 0.0, 0.0..=20_000.0)?,
    };
    let uncore_mw = table.number_or("uncore_static_mw", 0.0, POWER_MW)?;
    power.core_leakage = leakage;
    power.uncore_leakage = Leakage { reference_mw: uncore_mw, ..leakage };
    if let Some(node) = table.get("activity") {
        power.activity = activity(&node)?;
    }
    Ok(())
}

fn activity(node: &Node<'_>) -> Result<ActivityLaw, InputError> {
    let table = node.table(&["stalled", "l2"])?;
    Ok(ActivityLaw {
        stalled: table.number("stalled", 0.0..=1.0)?,
        l2: table.number("l2", 0.0..=10.0)?,
    })
}

/// The table `energy_model`, and power by it: each operating point's power is what the table says.
fn energy_model(
    node: &Node<'_>,
    opps: &[Opp],
) -> Result<(Vec<EnergyPoint>, Vec<PowerPoint>), InputError> {
    let rows = node.list()?;
    if rows.len() != opps.len() {
        let message = format!("{} rows for {} operating points", rows.len(), opps.len());
        return Err(node.spot.error(message).with_hint("state one row for each, in their order"));
    }
    let mut energy_model: Vec<EnergyPoint> = Vec::new();
    let mut points = Vec::new();
    for (row, opp) in rows.iter().zip(opps) {
        let table = row.table(&["mhz", "capacity", "power_mw", "cluster_mw"])?;
        let mhz = table.require("mhz")?;
        if mhz.whole(1..=10_000)? != i64::from(opp.mhz) {
            let message =
                format!("{} MHz, but this operating point has {}", mhz.any_number()?, opp.mhz);
            return Err(mhz.spot.error(message));
        }
        let capacity = table.number("capacity", CAPACITY)?;
        if let Some(last) = energy_model.last().filter(|last| last.capacity >= capacity) {
            let message =
                format!("capacity {capacity} after {}, capacities must ascend", last.capacity);
            return Err(table.require("capacity")?.spot.error(message));
        }
        let power_mw = table.number("power_mw", POWER_MW)?;
        energy_model.push(EnergyPoint { mhz: opp.mhz, capacity, power_mw });
        let uncore_mw = table.number_or("cluster_mw", 0.0, POWER_MW)?;
        points.push(PowerPoint { volt: opp.volt, core_mw: power_mw, uncore_mw });
    }
    Ok((energy_model, points))
}

fn idle_states(node: &Node<'_>) -> Result<Vec<IdleState>, InputError> {
    let states = node.list()?.iter().map(idle_state).collect::<Result<Vec<_>, _>>()?;
    if states.is_empty() {
        return Err(node.spot.error("no idle state, at least 1 is needed"));
    }
    Ok(states)
}

fn idle_state(node: &Node<'_>) -> Result<IdleState, InputError> {
    let table = node.table(&[
        "name",
        "core_mw",
        "core_share",
        "uncore_mw",
        "uncore_share",
        "entry_us",
        "exit_us",
        "min_residency_us",
    ])?;
    let remaining = |constant, share| {
        let constant_mw = table.number_or(constant, 0.0, POWER_MW)?;
        Ok(Remaining { constant_mw, share: table.number_or(share, 0.0, 0.0..=1.0)? })
    };
    let time = |key| Ok((table.number_or(key, 0.0, 0.0..=MS_MAX * 1e3)? * 1e3).round() as Ns);
    Ok(IdleState {
        name: table.require("name")?.name()?.to_owned(),
        core: remaining("core_mw", "core_share")?,
        uncore: remaining("uncore_mw", "uncore_share")?,
        entry_ns: time("entry_us")?,
        exit_ns: time("exit_us")?,
        min_residency_ns: time("min_residency_us")?,
    })
}

/// The idle state of a machine that states none: clocks of the core off, everything else on.
fn clock_gated() -> IdleState {
    let everything = Remaining { constant_mw: 0.0, share: 1.0 };
    IdleState {
        name: "wfi".to_owned(),
        core: everything,
        uncore: everything,
        entry_ns: 0,
        exit_ns: 0,
        min_residency_ns: 0,
    }
}

/// A sensor whose unit, as in its keys, is `unit`.
pub(crate) fn sensor(node: &Node<'_>, unit: &str) -> Result<Sensor, InputError> {
    sensor_of(&node.table(&sensor_keys(unit).each_ref().map(String::as_str))?, unit)
}

/// Keys of a sensor.
pub(crate) fn sensor_keys(unit: &str) -> [String; 4] {
    let key = str::to_owned;
    [format!("resolution_{unit}"), format!("noise_{unit}"), key("period_ms"), key("delay_ms")]
}

/// The sensor of a table that may have other keys as well.
pub(crate) fn sensor_of(table: &Table<'_>, unit: &str) -> Result<Sensor, InputError> {
    let [resolution, noise, period, delay] = sensor_keys(unit);
    Ok(Sensor {
        resolution: table.number_or(&resolution, 0.0, 0.0..=1e4)?,
        noise: table.number_or(&noise, 0.0, 0.0..=1e4)?,
        period_ns: ms(table.number(&period, PERIOD_MS)?),
        delay_ns: ms(table.number_or(&delay, 0.0, 0.0..=MS_MAX)?),
    })
}

/// Limits of a period in ms.
pub(crate) const PERIOD_MS: RangeInclusive<f64> = 1e-3..=MS_MAX;

/// Milliseconds as whole nanoseconds.
pub(crate) fn ms(value: f64) -> Ns {
    (value * 1e6).round() as Ns
}
