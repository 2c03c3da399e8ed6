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
    /// Threads are to spread over its groups (`SD_PREFER_SIBLING` of the groups).
    pub spreads: bool,
    /// Its cores have different capacities (`SD_ASYM_CPUCAPACITY`).
    pub is_asymmetric: bool,
    /// Cores of high priority are to be used first (`SD_ASYM_PACKING`).
    pub packs: bool,
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
}

impl Domains {
    /// The domains that a kernel builds on a machine.
    pub fn of(kernel: &Kernel, topology: &Topology, capacity: &[u64]) -> Self {
        let count = topology.core_count();
        let sees = topology.sees();
        let everything: Vec<usize> = (0..count).collect();
        let clusters: Vec<Vec<usize>> = topology
            .clusters()
            .iter()
            .map(|cluster| cluster.cores.iter().map(|core| core.index()).collect())
            .collect();
        // Before 5.5, the multi-core level of arm64 was a cluster of the device tree, whatever cache there is above.
        let by_cluster =
            kernel.is_by_load() && sees == Sees::Capacities && topology.clusters().len() > 1;
        let whole = topology.last_level_cache() == LastLevelCache::Machine && !by_cluster;
        let singles: Vec<Vec<usize>> = everything.iter().map(|&core| vec![core]).collect();
        // Clusters of the device tree, or cores of x86-64 that share a second-level cache.
        let inner: Vec<Vec<usize>> = topology
            .clusters()
            .iter()
            .zip(&clusters)
            .flat_map(|(cluster, cores)| {
                let is_one = sees == Sees::Capacities || cluster.shares_l2;
                if is_one {
                    vec![cores.clone()]
                } else {
                    cores.iter().map(|&core| vec![core]).collect()
                }
            })
            .collect();
        let has_cluster_level =
            kernel.balancing == Balancing::ByGroupType && whole && inner.len() > 1;
        // From the smallest to the largest; levels of one group are left out (`sd_degenerate`).
        let mut levels: Vec<(&'static str, Vec<Vec<usize>>, bool)> = Vec::new();
        if has_cluster_level {
            levels.push((CLUSTER, inner, true));
        }
        if whole {
            levels.push(("MC", vec![everything.clone()], true));
        } else {
            levels.push(("MC", clusters, true));
            levels.push(("PKG", vec![everything], false));
        }
        let mut domains = Self {
            all: Vec::new(),
            of_core: vec![Vec::new(); count],
            is_asymmetric: false,
            capacity_max: capacity.iter().copied().max().unwrap_or(1024),
            cache: vec![None; count],
            asymmetric: vec![None; count],
            priority: (0..count)
                .map(|core| topology.core(CoreId::from(core)).capacity.into())
                .collect(),
            prefers_cluster: kernel.prefers_cluster && has_cluster_level,
            sharing: (0..count).collect(),
            scan: Vec::new(),
        };
        let mut below = singles;
        for (name, spans, shares_cache) in levels {
            for span in &spans {
                let groups: Vec<Group> = below
                    .iter()
                    .filter(|cores| cores.iter().all(|core| span.contains(core)))
                    .map(|cores| group(cores, capacity, &domains.priority))
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
        let packs = sees == Sees::Priorities
            && kernel.balancing == Balancing::ByGroupType
            && differ(&|core| self.priority[core]);
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
        self.all.push(Domain {
            name,
            shares_cache,
            spreads,
            is_asymmetric,
            packs,
            imbalance_pct: if shares_cache {
                kernel.imbalance_pct
            } else {
                kernel.imbalance_pct_package
            },
            cache_nice_tries: 1,
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
        let own = self.of_core[core].first().map(|level| &self.all[level.domain])?;
        (self.prefers_cluster && own.name == CLUSTER).then_some(own)
    }

    /// Whether two cores share their last-level cache (`cpus_share_cache`).
    #[inline]
    pub fn share_cache(&self, one: usize, other: usize) -> bool {
        one == other || (self.cache[one].is_some() && self.cache[one] == self.cache[other])
    }
}

fn group(cores: &[usize], capacity: &[u64], priority: &[u64]) -> Group {
    let of = || cores.iter().map(|&core| capacity[core]);
    Group {
        cores: cores.to_vec(),
        capacity_min: of().min().unwrap_or(1),
        capacity_max: of().max().unwrap_or(1),
        // The first of equals, as the kernel's loop keeps it.
        preferred: cores.iter().copied().rev().max_by_key(|&core| priority[core]).unwrap_or(0),
        is_imbalanced: false,
    }
}
