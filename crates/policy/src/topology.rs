//! What a policy may know about the machine.

use ampsched_model::{
    ClassId, Cluster, ClusterId, CoreId, CoreParams, EnergyPoint, KernelView, LastLevelCache,
    Leakage, Machine, Pipeline, Sees, ThermalNetwork, energy_models,
};

use crate::{CAPACITY_ONE, Prefer};

/// A core as a policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreInfo {
    /// Its cluster.
    pub cluster: ClusterId,
    /// Its speed class; 0 is the slowest.
    pub class: ClassId,
    /// Work per time at the highest frequency, 1 to 1024: 1024 is the fastest core of the machine.
    pub capacity: u32,
}

/// What is publicly known of how a core issues instructions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoreDesign {
    /// In order or out of order.
    pub pipeline: Pipeline,
    /// Instructions issued per cycle at most.
    pub width: f64,
    /// Reorder window in micro-operations; 1 for an in-order core.
    pub window: f64,
}

impl From<&CoreParams> for CoreDesign {
    fn from(params: &CoreParams) -> Self {
        Self { pipeline: params.pipeline, width: params.width, window: params.window }
    }
}

/// A cluster as a policy sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterInfo {
    /// Speed class of its cores.
    pub class: ClassId,
    /// Its cores in ascending order.
    pub cores: Vec<CoreId>,
    /// They share a second-level cache, and kernels of x86-64 see that.
    pub shares_l2: bool,
    /// Allowed frequencies in MHz, ascending.
    pub freqs_mhz: Vec<u32>,
    /// The design of its cores, if the host knows it.
    pub design: Option<CoreDesign>,
    /// Capacity and power at each frequency, as an energy-aware scheduler believes them; powers are 0 if
    /// they are not known. Empty: nothing is known, and its cores count as the fastest.
    pub energy_model: Vec<EnergyPoint>,
}

impl ClusterInfo {
    /// Capacity of its cores at the highest frequency, 1 to 1024.
    pub fn capacity(&self) -> u32 {
        let top = self.energy_model.last().map(|point| point.capacity.round() as u32);
        top.unwrap_or(CAPACITY_ONE).clamp(1, CAPACITY_ONE)
    }

    /// Whether its energy model tells powers.
    pub fn has_energy_model(&self) -> bool {
        self.energy_model.last().is_some_and(|point| point.power_mw > 0.0)
    }

    /// The highest allowed frequency in MHz; none if no frequency is known.
    pub fn max_mhz(&self) -> Option<u32> {
        self.freqs_mhz.last().copied()
    }
}

/// What is measured once of a cluster's power, apart from what runs on it.
#[derive(Clone, Debug, PartialEq)]
pub struct StaticPower {
    /// Supply voltage in V at each operating point.
    pub volts: Vec<f64>,
    /// Dynamic power in mW of what the cores share, at each operating point.
    pub uncore_mw: Vec<f64>,
    /// Leakage of one core.
    pub core_leakage: Leakage,
    /// Leakage of what the cores share.
    pub uncore_leakage: Leakage,
}

impl From<&Cluster> for StaticPower {
    fn from(cluster: &Cluster) -> Self {
        let (power, points) = (&cluster.power, cluster.power.points.iter());
        Self {
            volts: points.clone().map(|point| point.volt).collect(),
            uncore_mw: points.map(|point| point.uncore_mw).collect(),
            core_leakage: power.core_leakage,
            uncore_leakage: power.uncore_leakage,
        }
    }
}

/// Power and heat of a board as they are identified off line: in a furnace and with known loads.
#[derive(Clone, Debug, PartialEq)]
pub struct Board {
    /// Of each cluster.
    pub power: Vec<StaticPower>,
    /// How heat spreads.
    pub heat: ThermalNetwork,
}

impl Board {
    /// That of a machine; none unless the power of every cluster and a thermal network are described.
    fn of(machine: &Machine) -> Option<Board> {
        if machine.without_power().is_some() {
            return None;
        }
        // A network that cannot be is an error of the host that simulates it; a policy then knows none.
        let heat = ThermalNetwork::new(machine.thermal.as_ref()?, machine).ok()?;
        Some(Board { power: machine.clusters.iter().map(StaticPower::from).collect(), heat })
    }
}

/// Cores and clusters of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    cores: Vec<CoreInfo>,
    clusters: Vec<ClusterInfo>,
    classes: usize,
    /// Of each core, the other thread of the same physical core; empty: no core has two threads.
    siblings: Box<[Option<CoreId>]>,
    /// None: the host is a kernel that is not described.
    kernel_view: Option<KernelView>,
    board: Option<Box<Board>>,
}

impl Topology {
    /// The topology of a machine description.
    pub fn new(machine: &Machine) -> Self {
        let clusters: Vec<ClusterInfo> = machine
            .clusters
            .iter()
            .zip(energy_models(machine))
            .map(|(cluster, energy_model)| ClusterInfo {
                shares_l2: cluster.shares_l2,
                class: cluster.class,
                cores: cluster.cores.clone(),
                freqs_mhz: cluster.opps.iter().map(|opp| opp.mhz).collect(),
                design: Some(CoreDesign::from(&cluster.params)),
                energy_model,
            })
            .collect();
        let pairs = machine.clusters.iter().flat_map(Cluster::pairs);
        Self {
            board: Board::of(machine).map(Box::new),
            kernel_view: Some(machine.kernel_view),
            ..Self::from_clusters(clusters).with_siblings(pairs)
        }
    }

    /// The same, with pairs of cores that are the two hardware threads of one physical core (SMT).
    ///
    /// Panics if there is no such core.
    pub fn with_siblings(self, pairs: impl IntoIterator<Item = (CoreId, CoreId)>) -> Self {
        let mut siblings = vec![None; self.cores.len()];
        let mut has_smt = false;
        for (one, other) in pairs {
            (siblings[one.index()], siblings[other.index()]) = (Some(other), Some(one));
            has_smt = true;
        }
        siblings.truncate(if has_smt { siblings.len() } else { 0 });
        Self { siblings: siblings.into(), ..self }
    }

    /// The topology of clusters, for hosts that know no machine description.
    ///
    /// Panics unless the cores of the clusters are 0, 1, 2 and so on, in whatever order.
    pub fn from_clusters(clusters: Vec<ClusterInfo>) -> Self {
        let mut numbers: Vec<usize> =
            clusters.iter().flat_map(|cluster| &cluster.cores).map(|core| core.index()).collect();
        numbers.sort_unstable();
        let count = numbers.len();
        assert!(numbers.into_iter().eq(0..count), "cores are numbered from 0 on without a gap");
        let unknown = CoreInfo { cluster: ClusterId(0), class: ClassId(0), capacity: 0 };
        let mut cores = vec![unknown; count];
        for (index, cluster) in clusters.iter().enumerate() {
            let capacity = cluster.capacity();
            for core in &cluster.cores {
                cores[core.index()] =
                    CoreInfo { cluster: ClusterId::from(index), class: cluster.class, capacity };
            }
        }
        let classes = clusters.iter().map(|cluster| cluster.class.index() + 1).max().unwrap_or(1);
        Self { cores, clusters, classes, siblings: Box::default(), kernel_view: None, board: None }
    }

    /// The same, as a kernel sees it.
    #[cfg(test)]
    pub(crate) fn seen_as(mut self, kernel_view: KernelView) -> Self {
        self.kernel_view = Some(kernel_view);
        self
    }

    /// Number of cores.
    pub fn core_count(&self) -> usize {
        self.cores.len()
    }

    /// Number of speed classes.
    pub fn class_count(&self) -> usize {
        self.classes
    }

    /// A core's place.
    #[inline]
    pub fn core(&self, core: CoreId) -> CoreInfo {
        self.cores[core.index()]
    }

    /// All cores in ascending order.
    pub fn cores(&self) -> impl Iterator<Item = CoreId> + use<> {
        (0..self.cores.len()).map(CoreId::from)
    }

    /// All clusters.
    pub fn clusters(&self) -> &[ClusterInfo] {
        &self.clusters
    }

    /// Whether it is described what the operating system's kernel knows of the machine: not where that kernel runs.
    pub fn describes_kernel(&self) -> bool {
        self.kernel_view.is_some()
    }

    /// How the operating system's kernel tells cores apart.
    pub fn sees(&self) -> Sees {
        self.kernel_view.unwrap_or_default().sees
    }

    /// Which cores share the last-level cache that the kernel knows of.
    pub fn last_level_cache(&self) -> LastLevelCache {
        self.kernel_view.unwrap_or_default().last_level_cache
    }

    /// Power and heat of the board, if they are known.
    pub fn board(&self) -> Option<&Board> {
        self.board.as_deref()
    }

    /// The cores of the cluster of `core`, itself included, in ascending order.
    pub fn cluster_cores(&self, core: CoreId) -> &[CoreId] {
        &self.clusters[self.core(core).cluster.index()].cores
    }

    /// Whether some physical core has two threads (SMT): each is a core here.
    #[inline]
    pub fn has_smt(&self) -> bool {
        !self.siblings.is_empty()
    }

    /// The other thread of the same physical core; none without SMT.
    #[inline]
    pub fn sibling(&self, core: CoreId) -> Option<CoreId> {
        self.siblings.get(core.index()).copied().flatten()
    }

    /// Whether a core is the second thread of a physical core: where cores are taken in turn, all first threads come
    /// before it.
    #[inline]
    pub fn is_second(&self, core: CoreId) -> bool {
        self.sibling(core).is_some_and(|other| other < core)
    }

    /// Whether the core counts as big: not of the slowest class, or all cores are alike.
    ///
    /// The published policies know two kinds of core; on a machine with three, the middle ones count
    /// as big, because what they ask is whether a thread is spared the slowest cores.
    #[inline]
    pub fn is_big(&self, core: CoreId) -> bool {
        self.classes == 1 || self.core(core).class.0 > 0
    }

    /// The kind of a core, as threads may prefer it.
    #[inline]
    pub fn kind(&self, core: CoreId) -> Prefer {
        if self.is_big(core) { Prefer::Big } else { Prefer::Little }
    }

    /// All cores in the order in which they are filled: the only or first threads of physical cores, then the second.
    pub fn cores_in_turn(&self) -> impl Iterator<Item = CoreId> + '_ {
        let firsts = self.cores().filter(|&core| !self.is_second(core));
        firsts.chain(self.cores().filter(|&core| self.is_second(core)))
    }

    /// How many threads the big cores take before one is better off on a little core, of that many in all: one on each
    /// physical core, and second ones only where there are more threads than physical cores, as half of a big core is
    /// about as fast as a little one but slows down the other half.
    pub fn big_seats(&self, threads: usize) -> usize {
        let big = self.big_cores().count();
        if !self.has_smt() {
            return big;
        }
        let is_whole = |core: &CoreId| !self.is_second(*core);
        let big_whole = self.big_cores().filter(is_whole).count();
        let whole = self.cores().filter(is_whole).count();
        big.min(big_whole + threads.saturating_sub(whole))
    }

    /// The big cores in ascending order.
    pub fn big_cores(&self) -> impl Iterator<Item = CoreId> + '_ {
        self.cores().filter(|&core| self.is_big(core))
    }

    /// The little cores in ascending order; none if all cores are alike.
    pub fn little_cores(&self) -> impl Iterator<Item = CoreId> + '_ {
        self.cores().filter(|&core| !self.is_big(core))
    }

    /// The fastest class.
    pub fn top_class(&self) -> ClassId {
        ClassId::from(self.classes - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_are_told_both_ways() {
        let plain = crate::testing::topology(&[(1, 4), (0, 2)]);
        assert!(!plain.has_smt());
        assert_eq!(plain.sibling(CoreId(0)), None);
        let smt = plain.with_siblings([(CoreId(0), CoreId(1)), (CoreId(3), CoreId(2))]);
        let others: Vec<_> = smt.cores().map(|core| smt.sibling(core).map(|core| core.0)).collect();
        assert_eq!(others, [Some(1), Some(0), Some(3), Some(2), None, None]);
        let second: Vec<_> = smt.cores().map(|core| smt.is_second(core)).collect();
        assert_eq!(second, [false, true, false, true, false, false]);
        let in_turn: Vec<_> = smt.cores_in_turn().map(|core| core.0).collect();
        assert_eq!(in_turn, [0, 2, 4, 5, 1, 3]);
    }

    #[test]
    fn second_threads_of_big_cores_are_seats_where_all_cores_are_taken() {
        let plain = crate::testing::topology(&[(1, 4), (0, 2)]);
        assert_eq!([0, 4, 9].map(|threads| plain.big_seats(threads)), [4; 3]);
        let smt = plain.with_siblings([(CoreId(0), CoreId(1)), (CoreId(2), CoreId(3))]);
        let seats = [0, 2, 4, 5, 6, 9].map(|threads| smt.big_seats(threads));
        assert_eq!(seats, [2, 2, 2, 3, 4, 4]);
    }
}
