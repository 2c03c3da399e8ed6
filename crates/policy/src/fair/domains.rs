//! Scheduling domains: which cores balance with which, and how the kernel sees them
//! (kernel/sched/topology.c: `sd_init`, `build_sched_groups`, `asym_cpu_capacity_classify`; checked against
//! /sys/kernel/debug/sched/domains of 6.18 and 7.3).

use ampsched_model::{CoreId, LastLevelCache, Ns, Sees};

use super::kernel::{Balancing, Kernel};
use crate::Topology;

/// What a domain costs to be searched by a core that falls idle, in ns per core of the domain: within what exact
/// machines of 1000 MIPS show (`max_newidle_lb_cost`, 2 to 13 us for 4 cores); ours.
const NEWIDLE_COST_NS: Ns = 2_000;

/// The level of clusters within a last-level cache (`SD_CLUSTER`).
const CLUSTER: &str = "CLS";
/// The level of the threads of a core (`SD_SHARE_CPUCAPACITY`).
const SIBLINGS: &str = "SMT";
/// Loads of siblings may differ by this much, in percent (`sd_init`).
const SIBLINGS_IMBALANCE_PCT: u64 = 110;

/// Cores that are balanced as one within a domain (`struct sched_group`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// In ascending order.
    pub cores: Vec<usize>,
    /// Capacity of the smallest and the largest of them (`sgc->min_capacity`, `max_capacity`).
    pub capacity_min: u64,
    pub capacity_max: u64,
    /// The core of the highest priority (`asym_prefer_cpu`).
    pub preferred: usize,
    /// Affinities kept balancing within it from working (`sgc->imbalance`, looked at up to 5.4).
    pub is_imbalanced: bool,
    /// They are the two threads of one physical core (`SD_SHARE_CPUCAPACITY` of the group).
    pub are_siblings: bool,
    /// Physical cores (`sg->cores`).
    pub physical: u64,
}

/// A set of cores that share work (`struct sched_domain`), the same for all of them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Domain {
    /// Its level as the kernel names it.
    pub name: &'static str,
    /// In ascending order.
    pub cores: Vec<usize>,
    pub groups: Vec<Group>,
    /// Its cores share a last-level cache (`SD_SHARE_LLC`).
    pub shares_cache: bool,
    /// They are the two threads of one physical core (`SD_SHARE_CPUCAPACITY`).
    pub are_siblings: bool,
    /// Threads are to spread over its groups (`SD_PREFER_SIBLING` of the groups).
    pub spreads: bool,
    /// Its cores have different capacities (`SD_ASYM_CPUCAPACITY`).
    pub is_asymmetric: bool,
    /// Cores of high priority are to be used first (`SD_ASYM_PACKING`).
    pub packs: bool,
    /// Some core lacks capacity (WALT, `sd_overutilized`).
    pub is_overutilised: bool,
    pub imbalance_pct: u64,
    pub cache_nice_tries: u32,
    /// In ms.
    pub interval_min: u64,
    pub interval_max: u64,
    /// What a search of it takes.
    pub newidle_cost_ns: Ns,
}

/// What a core remembers of one of its domains.
#[derive(Clone, Debug)]
pub(super) struct Level {
    /// Which domain.
    pub domain: usize,
    /// The group of the domain in which the core is.
    pub own_group: usize,
    /// In ms (`balance_interval`).
    pub interval: u64,
    /// In ticks.
    pub last_balance: u64,
    pub failures: u32,
    /// How often searches of cores that fell idle were worth it (`newidle_call`, `_success`, `_ratio`).
    pub newidle_calls: u32,
    pub newidle_successes: u32,
    pub newidle_ratio: u32,
}

/// All domains of a machine.
#[derive(Clone, Debug)]
pub(super) struct Domains {
    pub all: Vec<Domain>,
    /// Of each core, the smallest first.
    pub of_core: Vec<Vec<Level>>,
    /// Whether any domain is asymmetric.
    pub is_asymmetric: bool,
    /// The greatest capacity of a core.
    pub capacity_max: u64,
    /// Of each core, the domain of its last-level cache, and the first that is asymmetric, as places in `all`.
    pub cache: Vec<Option<usize>>,
    pub asymmetric: Vec<Option<usize>>,
    /// Of each core: its priority for packing (`arch_asym_cpu_priority`), the greater the sooner.
    pub priority: Vec<u64>,
    /// Waking threads tells clusters within a cache apart (`sched_cluster_active`).
    prefers_cluster: bool,
    /// Of each core, the first of those with which it shares a cluster, or the last-level cache if there are no
    /// clusters (`sd_share_id`).
    sharing: Vec<usize>,
    /// Of each last-level domain in `all`: how many cores a search for an idle one looks at (`nr_idle_scan`).
    pub scan: Vec<u64>,
    /// Of each core, the other thread of the same physical core (`cpu_smt_mask`); empty: there is no SMT.
    siblings: Vec<Option<usize>>,
    /// Of each domain in `all`: some physical core is idle as a whole, unless a search has failed since
    /// (`has_idle_cores`).
    pub has_idle_core: Vec<bool>,
}

/// A level of domains: its name, what each spans, and whether their cores share a cache.
type Spans = (&'static str, Vec<Vec<usize>>, bool);

impl Domains {
    /// The domains that a kernel builds on a machine.
    pub fn of(kernel: &Kernel, topology: &Topology, capacity: &[u64]) -> Self {
        let count = topology.core_count();
        let sees = topology.sees();
        let siblings: Vec<Option<usize>> = if topology.has_smt() {
            topology.cores().map(|core| topology.sibling(core).map(CoreId::index)).collect()
        } else {
            Vec::new()
        };
        let singles: Vec<Vec<usize>> = (0..count).map(|core| vec![core]).collect();
        let (levels, has_cluster_level) = levels(kernel, topology, &siblings);
        let mut domains = Self {
            all: Vec::new(),
            of_core: vec![Vec::new(); count],
            is_asymmetric: false,
            capacity_max: capacity.iter().copied().max().unwrap_or(1024),
            cache: vec![None; count],
            asymmetric: vec![None; count],
            priority: topology.cores().map(|core| priority(kernel, topology, core)).collect(),
            prefers_cluster: kernel.prefers_cluster && has_cluster_level,
            sharing: (0..count).collect(),
            scan: Vec::new(),
            siblings,
            has_idle_core: Vec::new(),
        };
        let mut below = singles;
        for (name, spans, shares_cache) in levels {
            for span in &spans {
                let groups: Vec<Group> = below
                    .iter()
                    .filter(|cores| cores.iter().all(|core| span.contains(core)))
                    .map(|cores| domains.group(cores, capacity))
                    .collect();
                if groups.len() < 2 {
                    continue;
                }
                domains.add(kernel, (name, span.clone(), shares_cache), groups, sees, capacity);
            }
            below = spans;
        }
        let sharing = |core: usize| {
            let cache = domains.cache[core].map(|cache| &domains.all[cache]);
            domains.cluster(core).or(cache).map_or(core, |domain| domain.cores[0])
        };
        domains.sharing = (0..count).map(sharing).collect();
        domains
    }

    fn add(
        &mut self,
        kernel: &Kernel,
        (name, cores, shares_cache): (&'static str, Vec<usize>, bool),
        groups: Vec<Group>,
        sees: Sees,
        capacity: &[u64],
    ) {
        let differ =
            |value: &dyn Fn(usize) -> u64| cores.iter().any(|&core| value(core) != value(cores[0]));
        let is_asymmetric =
            kernel.asymmetric && sees == Sees::Capacities && differ(&|core| capacity[core]);
        let are_siblings = name == SIBLINGS;
        // Equal cores have no order, but with SMT one that is wholly idle may relieve another (`asym_active_balance`).
        let packs = sees == Sees::Priorities
            && kernel.balancing == Balancing::ByGroupType
            && (differ(&|core| self.priority[core]) || (self.has_smt() && !are_siblings));
        // A domain of groups of several cores spreads threads over them.
        let spreads = groups.iter().any(|group| group.cores.len() > 1)
            && (!is_asymmetric || kernel.spreads_unequal);
        let number = self.all.len();
        for &core in &cores {
            let own_group = groups.iter().position(|group| group.cores.contains(&core));
            self.of_core[core].push(Level {
                domain: number,
                own_group: own_group.expect("every core is in a group"),
                interval: cores.len() as u64,
                last_balance: 0,
                failures: 0,
                newidle_calls: 512,
                newidle_successes: 256,
                newidle_ratio: 512,
            });
            if shares_cache {
                self.cache[core] = Some(number);
            }
            if is_asymmetric && self.asymmetric[core].is_none() {
                self.asymmetric[core] = Some(number);
            }
        }
        self.is_asymmetric |= is_asymmetric;
        self.scan.push(cores.len() as u64);
        // While a machine starts, all of its cores fall idle.
        self.has_idle_core.push(true);
        self.all.push(Domain {
            name,
            shares_cache,
            are_siblings,
            spreads,
            is_asymmetric,
            packs,
            is_overutilised: false,
            imbalance_pct: match (are_siblings, shares_cache) {
                (true, _) => SIBLINGS_IMBALANCE_PCT,
                (false, true) => kernel.imbalance_pct,
                (false, false) => kernel.imbalance_pct_package,
            },
            cache_nice_tries: u32::from(!are_siblings),
            interval_min: cores.len() as u64,
            interval_max: 2 * cores.len() as u64,
            newidle_cost_ns: NEWIDLE_COST_NS * cores.len() as Ns,
            cores,
            groups,
        });
    }

    /// Whether two cores share a cluster, or the last-level cache if they are in none (`cpus_share_resources`);
    /// yes, where waking threads does not tell (`sched_cluster_active`).
    #[inline]
    pub fn share_cluster(&self, one: usize, other: usize) -> bool {
        !self.prefers_cluster || self.sharing[one] == self.sharing[other]
    }

    /// The cluster of a core, where waking threads prefers it (`SD_CLUSTER` of the group).
    pub fn cluster(&self, core: usize) -> Option<&Domain> {
        if !self.prefers_cluster {
            return None;
        }
        let mut own = self.of_core[core].iter().map(|level| &self.all[level.domain]);
        own.find(|domain| !domain.are_siblings).filter(|domain| domain.name == CLUSTER)
    }

    /// Whether some physical core has two threads (`sched_smt_active`).
    #[inline]
    pub fn has_smt(&self) -> bool {
        !self.siblings.is_empty()
    }

    /// The other thread of a core's physical core.
    #[inline]
    pub fn sibling(&self, core: usize) -> Option<usize> {
        self.siblings.get(core).copied().flatten()
    }

    /// Whether two cores share their last-level cache (`cpus_share_cache`).
    #[inline]
    pub fn share_cache(&self, one: usize, other: usize) -> bool {
        one == other || (self.cache[one].is_some() && self.cache[one] == self.cache[other])
    }

    /// The capacity of a core has changed; `of` tells that of each.
    pub fn note_capacity(&mut self, core: usize, of: impl Fn(usize) -> u64) {
        let groups = self.all.iter_mut().flat_map(|domain| &mut domain.groups);
        for group in groups.filter(|group| group.cores.contains(&core)) {
            (group.capacity_min, group.capacity_max) = least_and_most(&group.cores, &of);
        }
    }

    fn group(&self, cores: &[usize], capacity: &[u64]) -> Group {
        let (capacity_min, capacity_max) = least_and_most(cores, |core| capacity[core]);
        let seconds = cores.iter().filter(|&&core| {
            self.sibling(core).is_some_and(|other| other < core && cores.contains(&other))
        });
        let physical = cores.len() - seconds.count();
        Group {
            cores: cores.to_vec(),
            capacity_min,
            capacity_max,
            // The first of equals, as the kernel's loop keeps it.
            preferred: cores
                .iter()
                .copied()
                .rev()
                .max_by_key(|&core| self.priority[core])
                .unwrap_or(0),
            is_imbalanced: false,
            are_siblings: physical == 1 && cores.len() == 2,
            physical: physical as u64,
        }
    }
}

/// The least and the greatest capacity of some cores.
fn least_and_most(cores: &[usize], of: impl Fn(usize) -> u64) -> (u64, u64) {
    let all = || cores.iter().map(|&core| of(core));
    (all().min().unwrap_or(1), all().max().unwrap_or(1))
}

/// The levels from the smallest to the largest, and whether one is of clusters; levels of one group are left out later
/// (`sd_degenerate`).
fn levels(kernel: &Kernel, topology: &Topology, siblings: &[Option<usize>]) -> (Vec<Spans>, bool) {
    let sees = topology.sees();
    let everything: Vec<usize> = (0..topology.core_count()).collect();
    let clusters: Vec<Vec<usize>> = topology
        .clusters()
        .iter()
        .map(|cluster| cluster.cores.iter().map(|core| core.index()).collect())
        .collect();
    // Before 5.5, the multi-core level of arm64 was a cluster of the device tree, whatever cache there is above.
    let by_cluster =
        kernel.is_by_load() && sees == Sees::Capacities && topology.clusters().len() > 1;
    let whole = topology.last_level_cache() == LastLevelCache::Machine && !by_cluster;
    // The threads of a physical core.
    let physical = |cores: &[usize]| -> Vec<Vec<usize>> {
        let other = |core: usize| siblings.get(core).copied().flatten();
        let firsts = cores.iter().filter(|&&core| other(core).is_none_or(|other| other > core));
        firsts.map(|&core| std::iter::once(core).chain(other(core)).collect()).collect()
    };
    // Clusters of the device tree, or cores of x86-64 that share a second-level cache.
    let inner: Vec<Vec<usize>> = topology
        .clusters()
        .iter()
        .zip(&clusters)
        .flat_map(|(cluster, cores)| {
            let is_one = sees == Sees::Capacities || cluster.shares_l2;
            if is_one { vec![cores.clone()] } else { physical(cores) }
        })
        .collect();
    let has_cluster_level = kernel.balancing == Balancing::ByGroupType && whole && inner.len() > 1;
    let mut levels: Vec<Spans> = Vec::new();
    if !siblings.is_empty() {
        levels.push((SIBLINGS, physical(&everything), true));
    }
    if has_cluster_level {
        levels.push((CLUSTER, inner, true));
    }
    if whole {
        levels.push(("MC", vec![everything], true));
    } else {
        levels.push(("MC", clusters, true));
        levels.push(("PKG", vec![everything], false));
    }
    (levels, has_cluster_level)
}

/// The priority of a core (arch/x86/kernel/itmt.c): up to 6.3 that of a second thread was a quarter of the first's
/// (`sched_set_itmt_core_prio`: prio x siblings / place^2), since then they are equal.
fn priority(kernel: &Kernel, topology: &Topology, core: CoreId) -> u64 {
    let prio = u64::from(topology.core(core).capacity);
    if !topology.has_smt() || kernel.relieves_siblings {
        return prio;
    }
    if topology.is_second(core) { prio * 2 / 4 } else { prio * 2 }
}
