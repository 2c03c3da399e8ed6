//! A machine: clusters of equal cores, their operating points, and what moving a thread costs.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::rtapp::run_loop;
use crate::{
    BoardPower, Calibration, ClassId, ClockBounds, ClusterId, ClusterPower, CoreId, CoreParams,
    KernelView, Memory, Ns, Sharing, Thermal, speed_ips,
};

/// An operating performance point of a cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Opp {
    /// Frequency in MHz.
    pub mhz: u32,
    /// Supply voltage in V.
    pub volt: f64,
}

/// A group of equal cores that share an L2 cache and a clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// Name, such as `big`.
    pub name: String,
    /// Speed class; 0 is the slowest.
    pub class: ClassId,
    /// Cores, by identifier.
    pub cores: Vec<CoreId>,
    /// They share a second-level cache.
    pub shares_l2: bool,
    /// Core type name, such as `cortex-a57`.
    pub core_type: String,
    /// Parameters of the core model.
    pub params: CoreParams,
    /// Operating points in ascending frequency; at least one.
    pub opps: Vec<Opp>,
    /// What is known of its power.
    pub power: ClusterPower,
    /// What scheduling costs on its cores, if it differs from the machine's.
    pub costs: Option<Costs>,
    /// What its cores use together, so that they slow each other down.
    pub sharing: Sharing,
    /// The highest frequency in MHz while 1, 2, ... cores of its class are active; the last one holds for more. Two
    /// threads of a core (SMT) count once. Empty: always the highest operating point.
    pub turbo_mhz: Vec<u32>,
    /// Bounds of its clock that were named; none: all its operating points.
    pub bounds: Option<ClockBounds>,
}

impl Cluster {
    /// The highest frequency in MHz, whatever bounds allow: what capacities and ratios of speeds refer to.
    pub fn max_mhz(&self) -> u32 {
        self.opps.last().map_or(0, |opp| opp.mhz)
    }

    /// The highest operating point that turbo allows while that many cores of its class are active.
    pub fn turbo_opp(&self, active: usize) -> usize {
        let place = active.max(1).min(self.turbo_mhz.len());
        let mhz = place.checked_sub(1).map_or(u32::MAX, |place| self.turbo_mhz[place]);
        self.opps.partition_point(|opp| opp.mhz <= mhz).saturating_sub(1)
    }

    /// The other thread of the core at a place of the cluster, by place; none without SMT, or if it was left out.
    pub fn sibling(&self, place: usize) -> Option<usize> {
        let other = place ^ 1;
        (self.sharing.smt_speed.is_some() && other < self.cores.len()).then_some(other)
    }

    /// The cores that are two threads of one physical core, each pair once, the first thread first.
    pub fn pairs(&self) -> impl Iterator<Item = (CoreId, CoreId)> + '_ {
        let second = |place: usize| self.sibling(place).filter(|&other| other > place);
        let of = move |(place, &core)| second(place).map(|other| (core, self.cores[other]));
        self.cores.iter().enumerate().filter_map(of)
    }

    /// Compares two clusters at their highest frequencies: the faster one comes first, measured as the capacity of
    /// cores is ([`crate::energy_models`]).
    pub(crate) fn by_speed(&self, other: &Cluster) -> Ordering {
        if self.params == other.params && self.max_mhz() == other.max_mhz() {
            return Ordering::Equal; // as most are, without two evaluations of the model
        }
        let speed = |cluster: &Cluster| {
            speed_ips(&run_loop(), &cluster.params, f64::from(cluster.max_mhz()))
        };
        speed(other).total_cmp(&speed(self))
    }
}

/// What scheduling costs, in ns; each with its source in the machine's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Switching a core from one thread to another.
    pub context_switch_ns: Ns,
    /// Resuming a thread on another core of the same cluster (L1 refill), on top of the switch.
    pub migrate_same_cluster_ns: Ns,
    /// Resuming a thread on a core of another cluster (L2 refill), on top of the switch.
    pub migrate_cross_cluster_ns: Ns,
    /// From the wake-up of a thread to the first instruction on an idle core.
    pub wakeup_latency_ns: Ns,
    /// What waking another thread takes of the time of the thread that does it.
    pub wake_ns: Ns,
    /// What starting another thread takes of the time of the thread that does it.
    pub fork_ns: Ns,
    /// Period of the timer tick, at which ends of turns are noticed, and that the time has come for an idle core to
    /// look again; none: exactly when they are due.
    pub tick_ns: Option<Ns>,
    /// What a tick takes of the time of a busy core.
    pub tick_cost_ns: Ns,
    /// From the request of another frequency until it holds; cores run on meanwhile.
    pub frequency_switch_ns: Ns,
    /// What taking a lock, an item, an iteration or a count costs if another core of the same cluster used the object
    /// last: the transfer of a cache line.
    pub handover_same_cluster_ns: Ns,
    /// The same if a core of another cluster did.
    pub handover_cross_cluster_ns: Ns,
    /// Resuming a thread on another core takes what refilling its caches takes, if the working set of its code is known
    /// ([`crate::refill`]), instead of the fixed times.
    pub migrate_refill: bool,
    /// An idle core looks for work only when it has left its idle state, on top of the latency of wake-ups.
    pub idle_exit: bool,
}

impl Costs {
    /// When something is noticed that is due at some time: at the next tick, or at once without ticks.
    pub fn at_tick(&self, due_ns: Ns) -> Ns {
        match self.tick_ns {
            Some(tick_ns) => due_ns.checked_next_multiple_of(tick_ns).unwrap_or(due_ns),
            None => due_ns,
        }
    }
}

/// What the class at a place among `count` is called, 0 being the slowest: `big` and `little`, with `middle` between
/// them (`middle1`, `middle2` if there are two); `all` if there is only one.
pub fn class_name(place: usize, count: usize) -> String {
    match (place, count) {
        (_, 1) => "all".to_owned(),
        (0, _) => "little".to_owned(),
        (place, count) if place + 1 == count => "big".to_owned(),
        (_, 3) => "middle".to_owned(),
        (place, _) => format!("middle{place}"),
    }
}

/// A machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Name.
    pub name: String,
    /// One line for listings.
    pub description: String,
    /// Clusters, in the order in which their cores are numbered.
    pub clusters: Vec<Cluster>,
    /// Costs.
    pub costs: Costs,
    /// What an operating system knows of it.
    pub kernel_view: KernelView,
    /// How it heats up, if that is described.
    pub thermal: Option<Arc<Thermal>>,
    /// Its power beyond that of clusters.
    pub board: BoardPower,
    /// If this machine was made from another one by leaving out the fastest kind of core: that kind.
    /// Stated ratios of speeds and work stated in time (`run_us`) still refer to it.
    pub reference: Option<Cluster>,
    /// What the memory carries; none: as much as anybody wants.
    pub memory: Option<Memory>,
}

impl Machine {
    /// Whether threads on different cores slow each other down.
    pub fn has_contention(&self) -> bool {
        self.memory.is_some() || self.clusters.iter().any(|cluster| cluster.sharing.is_any())
    }

    /// Number of cores.
    pub fn cores(&self) -> usize {
        self.clusters.iter().map(|cluster| cluster.cores.len()).sum()
    }

    /// What scheduling costs on the cores of a cluster.
    #[inline]
    pub fn costs_on(&self, cluster: ClusterId) -> &Costs {
        self.clusters[cluster.index()].costs.as_ref().unwrap_or(&self.costs)
    }

    /// Whether using an object that another core used last costs anything.
    pub fn has_handovers(&self) -> bool {
        self.all_costs().any(|(_, costs)| {
            costs.handover_same_cluster_ns > 0 || costs.handover_cross_cluster_ns > 0
        })
    }

    fn all_costs(&self) -> impl Iterator<Item = (&Cluster, &Costs)> {
        self.clusters.iter().map(|cluster| (cluster, cluster.costs.as_ref().unwrap_or(&self.costs)))
    }

    /// How long a wake-up on an idle core takes at most.
    pub fn longest_wakeup_ns(&self) -> Ns {
        self.all_costs().map(|(_, costs)| costs.wakeup_latency_ns).max().unwrap_or(0)
    }

    /// What leaving an idle state takes at most; 0 if that costs nothing.
    pub fn longest_exit_ns(&self) -> Ns {
        let clusters = self.clusters.iter().filter(|_| self.costs.idle_exit);
        let states = clusters.flat_map(|cluster| &cluster.power.idle_states);
        states.map(|state| state.exit_ns).max().unwrap_or(0)
    }

    /// What it takes at most to switch a core from one thread to another.
    pub fn dearest_switch_ns(&self) -> Ns {
        self.all_costs().map(|(_, costs)| costs.context_switch_ns).max().unwrap_or(0)
    }

    /// What it takes at most to bring a thread to another core of its cluster, on top of the switch; 0 if there is no
    /// such core.
    pub fn migration_within_ns(&self) -> Ns {
        let with_neighbours = self.all_costs().filter(|(cluster, _)| cluster.cores.len() > 1);
        with_neighbours.map(|(_, costs)| costs.migrate_same_cluster_ns).max().unwrap_or(0)
    }

    /// What it takes at most to bring a thread to another core, on top of the switch; 0 if there is no other.
    pub fn dearest_migration_ns(&self) -> Ns {
        let across = self.all_costs().filter(|_| self.clusters.len() > 1);
        let across_ns = across.map(|(_, costs)| costs.migrate_cross_cluster_ns).max().unwrap_or(0);
        self.migration_within_ns().max(across_ns)
    }

    /// The kind of core that stated ratios of speeds and work stated in time refer to: the fastest of
    /// the machine, or of the one from which it was made.
    pub fn fastest(&self) -> &Cluster {
        self.reference.as_ref().unwrap_or_else(|| self.top())
    }

    /// The kind of core that a program's work in time refers to; the fastest for a number that there is not.
    pub fn calibrated<'a>(&'a self, calibration: &'a Calibration) -> &'a Cluster {
        match calibration {
            Calibration::Kind(cluster) => cluster,
            Calibration::Core(core) if core.index() < self.cores() => {
                &self.clusters[self.cluster_of(*core).index()]
            }
            Calibration::Core(_) | Calibration::Fastest => self.fastest(),
        }
    }

    /// The cluster that stands for the fastest class ([`Machine::standing_for`]).
    pub fn top(&self) -> &Cluster {
        let classes = self.clusters.iter().map(|cluster| cluster.class);
        self.standing_for(classes.max().expect("a machine has a cluster"))
    }

    /// The cluster that stands for the slowest class ([`Machine::standing_for`]).
    pub fn bottom(&self) -> &Cluster {
        let classes = self.clusters.iter().map(|cluster| cluster.class);
        self.standing_for(classes.min().expect("a machine has a cluster"))
    }

    /// The cluster that stands for a class: of its clusters the fastest one at its highest frequency, of equally fast
    /// ones the first by name. So it does not depend on the order of clusters.
    ///
    /// Panics if no cluster is of that class.
    pub fn standing_for(&self, class: ClassId) -> &Cluster {
        let of_class = self.clusters.iter().filter(|cluster| cluster.class == class);
        let first =
            of_class.min_by(|one, other| one.by_speed(other).then(one.name.cmp(&other.name)));
        first.expect("a cluster is of the class")
    }

    /// Number of speed classes.
    pub fn class_count(&self) -> usize {
        self.clusters.iter().map(|cluster| cluster.class.index() + 1).max().unwrap_or(1)
    }

    /// The cluster of a core.
    pub fn cluster_of(&self, core: CoreId) -> ClusterId {
        let position = self.clusters.iter().position(|cluster| cluster.cores.contains(&core));
        ClusterId::from(position.expect("core is in a cluster"))
    }

    /// The same machine with its clusters, and so its core numbers, ordered by speed.
    ///
    /// COLAB averages runs with big cores first and with little cores first (CGO 2020, section 5.1).
    #[must_use]
    pub fn ordered(&self, fastest_first: bool) -> Machine {
        let mut machine = self.clone();
        machine.clusters.sort_by_key(|cluster| cluster.class);
        if fastest_first {
            machine.clusters.reverse();
        }
        machine.renumber();
        machine
    }

    /// The machine with the same number of cores, all of the fastest kind (its heat is not described): the reference of
    /// H_ANTT and H_STP (CGO 2020, section 5.1: "only big cores").
    #[must_use]
    pub fn all_big(&self) -> Machine {
        self.all_like(self.top(), "big", "fastest")
    }

    /// The machine with the same number of cores, all of the slowest kind.
    #[must_use]
    pub fn all_little(&self) -> Machine {
        self.all_like(self.bottom(), "little", "slowest")
    }

    /// The machine without any cores but those of the fastest kind.
    #[must_use]
    pub fn only_big(&self) -> Machine {
        self.only(self.top().class, "big", "fastest")
    }

    /// The machine without any cores but those of the slowest kind: where Prop-SP measures `CT_slow`
    /// (Euro-Par 2014 workshops, section 2).
    #[must_use]
    pub fn only_little(&self) -> Machine {
        self.only(self.bottom().class, "little", "slowest")
    }

    fn only(&self, class: ClassId, label: &str, kind: &str) -> Machine {
        let kept = self.clusters.iter().filter(|cluster| cluster.class == class);
        let mut machine = Machine {
            name: format!("{}-only-{label}", self.name),
            description: format!("the cores of the {kind} kind of {}", self.name),
            clusters: kept
                .map(|cluster| Cluster { class: ClassId(0), ..cluster.clone() })
                .collect(),
            costs: self.costs,
            kernel_view: self.kernel_view,
            thermal: None,
            board: self.board.clone(),
            reference: self.reference_without(class),
            memory: self.memory,
        };
        machine.close_numbers();
        machine
    }

    /// The reference of a machine that has only cores of a class of this one.
    fn reference_without(&self, class: ClassId) -> Option<Cluster> {
        let fastest = self.fastest();
        (class != fastest.class).then(|| fastest.clone())
    }

    fn all_like(&self, cluster: &Cluster, label: &str, kind: &str) -> Machine {
        let cores = (0..self.cores()).map(CoreId::from).collect();
        Machine {
            name: format!("{}-all-{label}", self.name),
            description: format!("{} cores of the {kind} kind of {}", self.cores(), self.name),
            clusters: vec![Cluster { class: ClassId(0), cores, ..cluster.clone() }],
            costs: self.costs,
            kernel_view: self.kernel_view,
            thermal: None,
            board: BoardPower {
                shared_rail: Vec::new(),
                shared_clock: false,
                ..self.board.clone()
            },
            reference: self.reference_without(cluster.class),
            memory: self.memory,
        }
    }

    /// Numbers cores in the order of clusters.
    fn renumber(&mut self) {
        for (next, core) in self.all_cores().enumerate() {
            *core = CoreId::from(next);
        }
    }

    /// Numbers cores without a gap, where some were taken away; they keep their order.
    pub(crate) fn close_numbers(&mut self) {
        let mut numbers: Vec<CoreId> = self.all_cores().map(|core| *core).collect();
        numbers.sort_unstable();
        for core in self.all_cores() {
            *core = CoreId::from(numbers.partition_point(|other| other < core));
        }
    }

    fn all_cores(&mut self) -> impl Iterator<Item = &mut CoreId> {
        self.clusters.iter_mut().flat_map(|cluster| &mut cluster.cores)
    }
}
