//! What a policy asks of a back end that cannot give it, or gives it otherwise than written: derived from the table
//! of words, and from what this computer offers.

use ampsched_policy::{Does, Means, Needs, Policy, REGISTRY, Rules, Topology, words_in_use};
use serde::{Deserialize, Serialize};

use ampsched_computer::{Capabilities, CgroupVersion};

/// Means of running a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// A scheduler in the kernel (sched_ext).
    Scx,
    /// Affinities, nice values, freezer and cpufreq, on top of the kernel's own fair scheduler.
    Daemon,
}

/// Something that a policy asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    /// What, in the policy's terms: what the policy does, or needs.
    pub what: String,
    /// What happens instead.
    pub instead: String,
    /// Whether the policy is another one without it, so that it runs only if the user agrees.
    pub is_essential: bool,
}

impl Demand {
    fn essential(what: &str, instead: &str) -> Self {
        Self { what: what.to_owned(), instead: instead.to_owned(), is_essential: true }
    }

    fn note(what: &str, instead: &str) -> Self {
        Self { what: what.to_owned(), instead: instead.to_owned(), is_essential: false }
    }
}

/// What a policy asks for that a back end lacks on this system; `dvfs`: whether the user lets it set clocks.
pub fn demands(
    backend: Backend,
    policy: &dyn Policy,
    topology: &Topology,
    capabilities: &Capabilities,
    dvfs: bool,
) -> Vec<Demand> {
    let (needs, rules) = (policy.needs(), policy.rules(topology));
    let offer = Offer { topology, capabilities, dvfs };
    let mut list = match backend {
        Backend::Scx => of_loading(capabilities),
        Backend::Daemon => Vec::new(),
    };
    let mut note = |demand: Demand| {
        if !list.contains(&demand) {
            list.push(demand);
        }
    };
    for word in words_in_use(&needs, &rules) {
        let does = match backend {
            Backend::Scx => word.facts.kernel,
            Backend::Daemon => word.facts.daemon,
        };
        match does.of(&needs, &rules) {
            Does::Approximates { what, instead } => note(Demand::note(what, instead)),
            Does::Refuses { what, instead } => note(Demand::essential(what, instead)),
            Does::With { means, what } => {
                offer.lacks(backend, means, what).into_iter().for_each(&mut note)
            }
            Does::Exact | Does::Depends(_) => {}
        }
    }
    list
}

/// The policies, with their default parameters, of which a back end lacks nothing essential here.
pub fn runnable_policies(
    backend: Backend,
    topology: &Topology,
    capabilities: &Capabilities,
    dvfs: bool,
) -> Vec<&'static str> {
    let runs = |info: &&&'static ampsched_policy::PolicyInfo| {
        let policy = ampsched_policy::build_policy(info.name, &[]).expect("defaults are valid");
        let list = demands(backend, policy.as_ref(), topology, capabilities, dvfs);
        !list.iter().any(|demand| demand.is_essential)
    };
    REGISTRY.iter().filter(runs).map(|info| info.name).collect()
}

/// What a kernel needs to load a scheduler.
fn of_loading(capabilities: &Capabilities) -> Vec<Demand> {
    let mut list = Vec::new();
    if !capabilities.sched_ext {
        let what =
            "needs a kernel that loads schedulers (CONFIG_SCHED_CLASS_EXT, Linux 6.12 or newer)";
        list.push(Demand::essential(what, &format!("{} has none", capabilities.kernel)));
    }
    if !capabilities.btf {
        list.push(Demand::essential("needs BTF of the kernel", "the scheduler cannot be loaded"));
    }
    if !capabilities.holds("CAP_SYS_ADMIN") && !capabilities.holds("CAP_BPF") {
        list.push(Demand::essential(
            "needs CAP_BPF and CAP_PERFMON",
            "this process may not load it",
        ));
    }
    list
}

/// What this computer offers beyond a scheduler.
struct Offer<'a> {
    topology: &'a Topology,
    capabilities: &'a Capabilities,
    dvfs: bool,
}

impl Offer<'_> {
    /// What becomes of a word that needs certain means; none if they are there.
    fn lacks(&self, backend: Backend, means: Means, what: &str) -> Option<Demand> {
        match means {
            Means::Clocks => self.lacks_clocks(what),
            Means::Freezer => self.lacks_freezer(what),
            Means::Instructions if self.capabilities.counts_instructions => None,
            Means::Stalls if self.capabilities.counts_stalls => None,
            Means::Instructions | Means::Stalls => {
                let instead = match backend {
                    Backend::Scx => "not inside the kernel",
                    Backend::Daemon => "it is missing",
                };
                Some(Demand::essential(what, instead))
            }
        }
    }

    fn lacks_clocks(&self, what: &str) -> Option<Demand> {
        let clusters = self.topology.clusters();
        let known = clusters.iter().any(|cluster| !cluster.freqs_mhz.is_empty());
        let clocks = &self.capabilities.cpufreq;
        let why = if !known || clocks.is_empty() {
            ": this system has no cpufreq"
        } else if !clocks.iter().any(|clock| clock.writable) {
            ": cpufreq is not writable for this process"
        } else if !self.dvfs {
            " without --allow-dvfs"
        } else {
            return None;
        };
        Some(Demand::essential(what, &format!("clocks stay as they are{why}")))
    }

    fn lacks_freezer(&self, what: &str) -> Option<Demand> {
        let instead = match self.capabilities.freezer.as_ref().map(|freezer| freezer.version) {
            Some(CgroupVersion::V1) => return None,
            Some(CgroupVersion::V2) => {
                "a process is frozen while all its threads are held back (cgroup v2)"
            }
            None => "a process is stopped by SIGSTOP while all its threads are held back",
        };
        Some(Demand::note(what, instead))
    }
}

/// What a scheduler in the kernel that executes Rules and Plan cannot do for a policy, of whose needs those are
/// given that are not met by counters.
pub fn kernel_lacks(needs: &Needs, rules: &Rules) -> Vec<&'static str> {
    let mut lacks = Vec::new();
    for word in words_in_use(needs, rules) {
        let what = match word.facts.kernel.of(needs, rules) {
            Does::Refuses { what, .. } => what,
            Does::With { means: Means::Instructions | Means::Stalls | Means::Clocks, what } => what,
            _ => continue,
        };
        if !lacks.contains(&what) {
            lacks.push(what);
        }
    }
    lacks
}
