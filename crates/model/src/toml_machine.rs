//! Machine files: clusters, cores, operating points and costs.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::limits::{CLUSTERS_MAX, CORES_MAX};
use crate::reader::{Document, Node, Spot, Table, stem};
use crate::toml_clocks;
use crate::toml_core_type::L2_KIB;
use crate::toml_power::{self, cluster_power};
use crate::toml_sharing::{self, memory, sharing};
use crate::toml_thermal::{self, ClusterSize};
use crate::{
    BoardPower, ClassId, Cluster, ClusterPower, CoreId, CoreParams, Costs, InputError, KernelView,
    LastLevelCache, MAX_CLASSES, Machine, Memory, Ns, Opp, Sees, Sharing, Thermal, energy_models,
};

/// Longest cost, 1 s.
const COST_NS_MAX: i64 = 1_000_000_000;
/// Slowest and fastest cores of a type, of its speed.
const RELATIVE_SPEED: RangeInclusive<f64> = 0.05..=20.0;
/// Shortest and longest period of the tick.
const TICK_NS: RangeInclusive<i64> = 10_000..=COST_NS_MAX;

/// A parsed machine file whose core types are still names.
#[derive(Clone, Debug)]
pub struct MachineTemplate {
    name: String,
    description: String,
    clusters: Vec<ClusterTemplate>,
    costs: Costs,
    kernel_view: KernelView,
    thermal: Option<Thermal>,
    memory: Option<Memory>,
    board: BoardPower,
}

#[derive(Clone, Debug)]
struct ClusterTemplate {
    name: String,
    class: ClassId,
    class_spot: Spot,
    cores: usize,
    /// Their numbers, if the file states them.
    numbers: Option<Vec<CoreId>>,
    core_type: String,
    core_type_spot: Spot,
    l2_kib: Option<f64>,
    relative_speed: f64,
    memory_extra_ns: f64,
    shares_l2: bool,
    opps: Vec<Opp>,
    power: ClusterPower,
    costs: Option<Costs>,
    sharing: Sharing,
    turbo_mhz: Vec<u32>,
}

/// Parses a machine file.
///
/// # Errors
/// Invalid TOML, an unknown or missing key, a value of the wrong kind or out of its range, and
/// clusters that do not fit together: equal names, more than 4096 cores, classes or numbers of cores that are not 0, 1,
/// ...
pub fn parse_machine(file: &str, text: &str) -> Result<MachineTemplate, InputError> {
    let document = Document::parse(file, text)?;
    let root = document.root(&[
        "name",
        "description",
        "clusters",
        "costs",
        "kernel",
        "thermal",
        "memory",
        "power",
    ])?;
    let nodes = root.require("clusters")?.list()?;
    let costs = costs(&root)?;
    let clusters = nodes.iter().map(|node| cluster(node, &costs)).collect::<Result<Vec<_>, _>>()?;
    check_clusters(&root, &nodes, &clusters)?;
    check_capacities(&nodes, &clusters)?;
    let sizes: Vec<ClusterSize<'_>> =
        clusters.iter().map(|cluster| (cluster.name.as_str(), cluster.opps.len())).collect();
    let kernel_view = root.get("kernel").map(|node| kernel_view(&node)).transpose()?;
    let kernel_view = kernel_view.unwrap_or_default();
    let thermal =
        root.get("thermal").map(|node| toml_thermal::thermal(&node, &sizes)).transpose()?;
    toml_clocks::check_exits(&root, clusters.iter().map(|cluster| &cluster.power))?;
    let known: Vec<(&str, bool)> =
        clusters.iter().map(|cluster| (cluster.name.as_str(), cluster.power.is_known())).collect();
    let board = root.get("power").map(|node| toml_power::board(&node, &known)).transpose()?;
    Ok(MachineTemplate {
        name: root.text_or("name", stem(file))?,
        description: root.text_or("description", "")?,
        clusters,
        costs,
        kernel_view,
        thermal,
        memory: memory(&root)?,
        board: board.unwrap_or_default(),
    })
}

/// Kernels are told of all cores or of none.
fn check_capacities(nodes: &[Node<'_>], clusters: &[ClusterTemplate]) -> Result<(), InputError> {
    let tables = nodes.iter().map(Node::any_table).collect::<Result<Vec<_>, _>>()?;
    let is_stated = tables.iter().any(|table| table.get("capacity").is_some());
    let lacks = |cluster: &ClusterTemplate| cluster.power.capacity_per_mhz.is_none();
    let first = nodes.iter().zip(clusters).find(|(_, cluster)| is_stated && lacks(cluster));
    let Some((node, _)) = first else { return Ok(()) };
    let error = node.spot.error("key \"capacity\" is missing");
    Err(error.with_hint("state it for each cluster, or for none"))
}

impl MachineTemplate {
    /// The machine's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One line for listings.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// How it heats up, if the file says so.
    pub fn thermal(&self) -> Option<&Thermal> {
        self.thermal.as_ref()
    }

    /// Core types that the machine refers to, with the place of the reference.
    pub(crate) fn core_types(&self) -> impl Iterator<Item = (&str, &Spot)> {
        self.clusters.iter().map(|cluster| (cluster.core_type.as_str(), &cluster.core_type_spot))
    }

    /// The machine, with core types looked up by name.
    ///
    /// # Errors
    /// Whatever `find` says about a name; the error then names this file and the key.
    pub(crate) fn instantiate(
        &self,
        find: impl Fn(&str, &Spot) -> Result<CoreParams, InputError>,
    ) -> Result<Machine, InputError> {
        let mut next_core = 0;
        let mut clusters = Vec::with_capacity(self.clusters.len());
        for template in &self.clusters {
            let mut params = find(&template.core_type, &template.core_type_spot)?;
            params.l2_kib = template.l2_kib.unwrap_or(params.l2_kib);
            params.memory_ns += template.memory_extra_ns;
            params.cycles_factor /= template.relative_speed;
            clusters.push(template.cluster(params, next_core));
            next_core += template.cores;
        }
        let machine = Machine {
            name: self.name.clone(),
            description: self.description.clone(),
            clusters,
            costs: self.costs,
            kernel_view: self.kernel_view,
            thermal: self.thermal.clone().map(Arc::new),
            board: self.board.clone(),
            reference: None,
            memory: self.memory,
        };
        self.check_speeds(&machine)?;
        Ok(machine)
    }

    /// Refuses classes that contradict the speeds: 0 is the slowest.
    fn check_speeds(&self, machine: &Machine) -> Result<(), InputError> {
        let capacities: Vec<f64> = energy_models(machine)
            .iter()
            .map(|points| points.last().map_or(0.0, |point| point.capacity))
            .collect();
        for (high, capacity) in self.clusters.iter().zip(&capacities) {
            let faster = self
                .clusters
                .iter()
                .zip(&capacities)
                .find(|(low, low_capacity)| low.class < high.class && *low_capacity > capacity);
            if let Some((low, low_capacity)) = faster {
                let message = format!(
                    "class {}, but it is slower than {:?} of class {} (capacity {capacity:.0} against {low_capacity:.0})",
                    high.class.0, low.name, low.class.0
                );
                return Err(high.class_spot.error(message).with_hint("class 0 is the slowest"));
            }
        }
        Ok(())
    }
}

impl ClusterTemplate {
    fn cluster(&self, params: CoreParams, first_core: usize) -> Cluster {
        Cluster {
            name: self.name.clone(),
            class: self.class,
            cores: match &self.numbers {
                Some(numbers) => numbers.clone(),
                None => (first_core..first_core + self.cores).map(CoreId::from).collect(),
            },
            core_type: self.core_type.clone(),
            params,
            shares_l2: self.shares_l2,
            opps: self.opps.clone(),
            power: self.power.clone(),
            costs: self.costs,
            sharing: self.sharing,
            turbo_mhz: self.turbo_mhz.clone(),
            bounds: None,
        }
    }
}

fn cluster(node: &Node<'_>, machine: &Costs) -> Result<ClusterTemplate, InputError> {
    const KEYS: [&str; 12] = [
        "name",
        "core_type",
        "relative_speed",
        "capacity",
        "cores",
        "class",
        "l2_kib",
        "shares_l2",
        "opps",
        "turbo_mhz",
        "memory_extra_ns",
        "costs",
    ];
    let table =
        node.table(&[&KEYS[..], &toml_power::CLUSTER_KEYS, &toml_sharing::CLUSTER_KEYS].concat())?;
    let (core_type, class) = (table.require("core_type")?, table.require("class")?);
    let opps = opps(&table)?;
    let (cores, numbers) = cores(&table.require("cores")?)?;
    Ok(ClusterTemplate {
        name: table.require("name")?.name()?.to_owned(),
        class: ClassId(class.whole(0..=MAX_CLASSES as i64 - 1)? as u8),
        class_spot: class.spot.clone(),
        cores,
        numbers,
        core_type: core_type.name()?.to_owned(),
        core_type_spot: core_type.spot.clone(),
        l2_kib: table.get("l2_kib").map(|node| node.number(L2_KIB)).transpose()?,
        relative_speed: table.number_or("relative_speed", 1.0, RELATIVE_SPEED)?,
        memory_extra_ns: table.number_or("memory_extra_ns", 0.0, toml_clocks::EXTRA_NS)?,
        shares_l2: table.get("shares_l2").map_or(Ok(false), |node| node.boolean())?,
        power: cluster_power(&table, &opps)?,
        sharing: sharing(&table, cores)?,
        turbo_mhz: toml_clocks::turbo_mhz(&table, &opps)?,
        costs: table.get("costs").map(|node| cluster_costs(&node, machine)).transpose()?,
        opps,
    })
}

/// How many cores there are, and their numbers if these are stated.
fn cores(node: &Node<'_>) -> Result<(usize, Option<Vec<CoreId>>), InputError> {
    if !node.is_list() {
        return Ok((node.whole(1..=CORES_MAX)? as usize, None));
    }
    let number = |node: &Node<'_>| node.whole(0..=CORES_MAX - 1).map(|core| CoreId(core as u16));
    let numbers = node.list()?.iter().map(number).collect::<Result<Vec<_>, _>>()?;
    if numbers.is_empty() {
        return Err(node.spot.error("no core, at least 1 is needed"));
    }
    Ok((numbers.len(), Some(numbers)))
}

/// Operating points. Nothing but power needs voltages, so a cluster without power may state none: they count as 1 V.
fn opps(table: &Table<'_>) -> Result<Vec<Opp>, InputError> {
    let list = table.require("opps")?;
    let nodes = list.list()?;
    let entries = nodes.iter().map(|node| node.table(&["mhz", "volt"]));
    let entries = entries.collect::<Result<Vec<_>, _>>()?;
    let has_power = ["power", "energy_model"].iter().any(|key| table.get(key).is_some());
    let has_volts = entries.iter().any(|entry| entry.get("volt").is_some());
    let mut opps: Vec<Opp> = Vec::new();
    for (node, entry) in nodes.iter().zip(&entries) {
        let volt = match entry.get("volt") {
            Some(node) => volt(&node)?,
            None if has_power || has_volts => {
                let error = node.spot.error("key \"volt\" is missing");
                return Err(error.with_hint(
                    "power needs it at each operating point; without power, leave out all",
                ));
            }
            None => 1.0,
        };
        let opp = Opp { mhz: entry.whole("mhz", 1..=10_000)? as u32, volt };
        if let Some(last) = opps.last().filter(|last| last.mhz >= opp.mhz) {
            let message =
                format!("{} MHz after {} MHz, operating points must ascend", opp.mhz, last.mhz);
            return Err(node.spot.error(message));
        }
        opps.push(opp);
    }
    if opps.is_empty() {
        return Err(list.spot.error("no operating point, at least 1 is needed"));
    }
    Ok(opps)
}

fn volt(node: &Node<'_>) -> Result<f64, InputError> {
    let volt = node.number(0.0..=2.0)?;
    if volt == 0.0 { Err(node.spot.error("0 V, more than 0 is needed")) } else { Ok(volt) }
}

/// Keys of costs that a cluster may state for itself.
const CLUSTER_COSTS: [&str; 9] = [
    "context_switch_ns",
    "migrate_same_cluster_ns",
    "migrate_cross_cluster_ns",
    "wakeup_latency_ns",
    "wake_ns",
    "fork_ns",
    "tick_cost_ns",
    "handover_same_cluster_ns",
    "handover_cross_cluster_ns",
];

fn costs(root: &Table<'_>) -> Result<Costs, InputError> {
    let node = root.require("costs")?;
    let table = node.table(
        &[&CLUSTER_COSTS[..], &["tick_ns", "frequency_switch_ns", "migrate_refill", "idle_exit"]]
            .concat(),
    )?;
    let cost = |key| table.whole(key, 0..=COST_NS_MAX).map(|ns| ns as Ns);
    let tick = table.get("tick_ns").map(|node| node.whole(TICK_NS)).transpose()?;
    let costs = Costs {
        context_switch_ns: cost("context_switch_ns")?,
        migrate_same_cluster_ns: cost("migrate_same_cluster_ns")?,
        migrate_cross_cluster_ns: cost("migrate_cross_cluster_ns")?,
        wakeup_latency_ns: cost("wakeup_latency_ns")?,
        wake_ns: cost_or(&table, "wake_ns", 0)?,
        fork_ns: cost_or(&table, "fork_ns", 0)?,
        tick_ns: tick.map(|ns| ns as Ns),
        tick_cost_ns: cost_or(&table, "tick_cost_ns", 0)?,
        frequency_switch_ns: cost_or(&table, "frequency_switch_ns", 0)?,
        handover_same_cluster_ns: cost_or(&table, "handover_same_cluster_ns", 0)?,
        handover_cross_cluster_ns: cost_or(&table, "handover_cross_cluster_ns", 0)?,
        migrate_refill: table.get("migrate_refill").map_or(Ok(false), |node| node.boolean())?,
        idle_exit: table.get("idle_exit").map_or(Ok(false), |node| node.boolean())?,
    };
    check_tick(&table, &costs)?;
    Ok(costs)
}

/// What a kernel knows of the machine.
fn kernel_view(node: &Node<'_>) -> Result<KernelView, InputError> {
    let table = node.table(&["sees", "last_level_cache"])?;
    let sees = word_of(&table, "sees", &Sees::ALL)?;
    let last_level_cache = word_of(&table, "last_level_cache", &LastLevelCache::ALL)?;
    Ok(KernelView { sees, last_level_cache })
}

/// What a word of a table means; the default if it is missing.
fn word_of<T: Copy + Default>(
    table: &Table<'_>,
    key: &str,
    words: &[(&'static str, T)],
) -> Result<T, InputError> {
    let Some(node) = table.get(key) else { return Ok(T::default()) };
    let known: Vec<&'static str> = words.iter().map(|(word, _)| *word).collect();
    let word = node.word("value", &known)?;
    let found = words.iter().find(|(known, _)| *known == word);
    Ok(found.map_or_else(T::default, |(_, value)| *value))
}

/// What a cluster states for itself; the rest is the machine's.
fn cluster_costs(node: &Node<'_>, machine: &Costs) -> Result<Costs, InputError> {
    let table = node.table(&CLUSTER_COSTS)?;
    let costs = Costs {
        context_switch_ns: cost_or(&table, "context_switch_ns", machine.context_switch_ns)?,
        migrate_same_cluster_ns: cost_or(
            &table,
            "migrate_same_cluster_ns",
            machine.migrate_same_cluster_ns,
        )?,
        migrate_cross_cluster_ns: cost_or(
            &table,
            "migrate_cross_cluster_ns",
            machine.migrate_cross_cluster_ns,
        )?,
        wakeup_latency_ns: cost_or(&table, "wakeup_latency_ns", machine.wakeup_latency_ns)?,
        wake_ns: cost_or(&table, "wake_ns", machine.wake_ns)?,
        fork_ns: cost_or(&table, "fork_ns", machine.fork_ns)?,
        tick_cost_ns: cost_or(&table, "tick_cost_ns", machine.tick_cost_ns)?,
        handover_same_cluster_ns: cost_or(
            &table,
            "handover_same_cluster_ns",
            machine.handover_same_cluster_ns,
        )?,
        handover_cross_cluster_ns: cost_or(
            &table,
            "handover_cross_cluster_ns",
            machine.handover_cross_cluster_ns,
        )?,
        ..*machine
    };
    check_tick(&table, &costs)?;
    Ok(costs)
}

fn cost_or(table: &Table<'_>, key: &str, otherwise: Ns) -> Result<Ns, InputError> {
    table.get(key).map_or(Ok(otherwise), |node| Ok(node.whole(0..=COST_NS_MAX)? as Ns))
}

/// A tick must leave time for programs, and needs a period to cost anything.
fn check_tick(table: &Table<'_>, costs: &Costs) -> Result<(), InputError> {
    let Some(node) = table.get("tick_cost_ns") else { return Ok(()) };
    match costs.tick_ns {
        None if costs.tick_cost_ns > 0 => {
            Err(node.spot.error("a tick costs something, but [costs] has no tick_ns"))
        }
        Some(tick_ns) if costs.tick_cost_ns > tick_ns / 2 => Err(node.spot.error(format!(
            "{} ns of each tick of {tick_ns} ns, at most half is allowed",
            costs.tick_cost_ns
        ))),
        _ => Ok(()),
    }
}

fn check_clusters(
    root: &Table<'_>,
    nodes: &[Node<'_>],
    clusters: &[ClusterTemplate],
) -> Result<(), InputError> {
    let spot = &root.require("clusters")?.spot;
    if clusters.is_empty() {
        return Err(spot.error("no cluster, at least 1 is needed"));
    }
    if clusters.len() > CLUSTERS_MAX {
        return Err(
            spot.error(format!("{} clusters, at most {CLUSTERS_MAX} are allowed", clusters.len()))
        );
    }
    let cores: usize = clusters.iter().map(|cluster| cluster.cores).sum();
    if cores > CORES_MAX as usize {
        return Err(
            spot.error(format!("{cores} cores in all clusters, at most {CORES_MAX} are allowed"))
        );
    }
    let mut names = BTreeSet::new();
    for (node, cluster) in nodes.iter().zip(clusters) {
        if !names.insert(&cluster.name) {
            return Err(node
                .any_table()?
                .require("name")?
                .spot
                .error(format!("a second cluster {:?}", cluster.name)));
        }
    }
    check_numbers(nodes, clusters)?;
    check_classes(nodes, clusters)
}

/// All clusters number their cores or none does; the numbers are 0, 1, ...
fn check_numbers(nodes: &[Node<'_>], clusters: &[ClusterTemplate]) -> Result<(), InputError> {
    if clusters.iter().all(|cluster| cluster.numbers.is_none()) {
        return Ok(());
    }
    let count: usize = clusters.iter().map(|cluster| cluster.cores).sum();
    let mut seen = BTreeSet::new();
    for (node, cluster) in nodes.iter().zip(clusters) {
        let stated = node.any_table()?.require("cores")?;
        let Some(numbers) = &cluster.numbers else {
            let message = "a number of cores, but another cluster lists its cores";
            return Err(stated.spot.error(message).with_hint("list them, as in cores = [0, 3]"));
        };
        for (core, node) in numbers.iter().zip(stated.list()?) {
            if core.index() >= count {
                let message = format!("core {}, but there are {count}, from 0 on", core.0);
                return Err(node.spot.error(message));
            }
            if !seen.insert(*core) {
                return Err(node.spot.error(format!("core {} a second time", core.0)));
            }
        }
    }
    Ok(())
}

fn check_classes(nodes: &[Node<'_>], clusters: &[ClusterTemplate]) -> Result<(), InputError> {
    for (node, cluster) in nodes.iter().zip(clusters) {
        let class = cluster.class.0;
        let below = class.checked_sub(1).map(ClassId);
        if let Some(below) =
            below.filter(|below| clusters.iter().all(|other| other.class != *below))
        {
            let message = format!(
                "class {class}, but no cluster has class {}; classes are 0, 1, ...",
                below.0
            );
            return Err(node.any_table()?.require("class")?.spot.error(message));
        }
    }
    Ok(())
}
