//! What a policy asks of a back end that cannot give it, or gives it otherwise than written: derived from the table
//! of words, and from what this computer offers.

use ampsched_model::Ns;
use ampsched_policy::{
    Allocator, Does, Events, Means, NOT_IN_KERNEL, Needs, Order, Policy, REGISTRY, Rules, Topology,
    nice_to_weight, words_in_use,
};
use serde::{Deserialize, Serialize};

use ampsched_computer::{Capabilities, CgroupVersion, LOAD_SCHEDULER};

use crate::Dilation;

/// Most CPUs that a scheduler in the kernel serves.
pub const KERNEL_CORES_MAX: usize = 512;

/// Means of running a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// A scheduler in the kernel (sched_ext).
    Scx,
    /// Affinities, nice values, freezer and cpufreq, on top of the kernel's own fair scheduler.
    Daemon,
}

/// What it takes Linux at least to switch to another thread: half of what Li, Ding and Shen (ExpCS 2007) measured on a
/// 2 GHz Xeon, as for current machines in simulation.
const SWITCH_NS: Ns = 2_000;

/// The first Linux whose verifier is known to survive the search for the earliest deadline. 6.16.12 reads beyond an
/// empty stack there (`widen_imprecise_scalars` in kernel/bpf/verifier.c) and kills the loading program; 6.18.15 does
/// not. Which versions between them are mended was not tried.
const VERIFIER_MENDED: (u32, u32) = (6, 18);

/// The first Linux that lets programs call functions with interrupts off which its verifier looks at by themselves.
const LOADS: (u32, u32) = (6, 15);

impl Backend {
    /// Slices must be longer than this, or they are over before their thread has been switched to; none where the
    /// policy's slices count for nothing.
    fn useless_slice_ns(self) -> Option<Ns> {
        match self {
            Self::Scx => Some(SWITCH_NS),
            Self::Daemon => None,
        }
    }
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

/// What the user has chosen for a policy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choices {
    /// Whether it may set clocks.
    pub dvfs: bool,
    /// How much slower than real time its time passes.
    pub dilation: Dilation,
}

/// What a policy asks for that a back end lacks on this system.
pub fn demands(
    backend: Backend,
    policy: &dyn Policy,
    topology: &Topology,
    capabilities: &Capabilities,
    choices: Choices,
) -> Vec<Demand> {
    let needs = policy.needs();
    let rules = choices.dilation.rules_to_real(&policy.rules(topology));
    let offer = Offer { topology, capabilities, dvfs: choices.dvfs };
    let mut list = match backend {
        Backend::Scx => of_loading(topology, capabilities),
        Backend::Daemon => Vec::new(),
    };
    if backend == Backend::Scx {
        list.extend(crashes_verifier(&rules, &capabilities.kernel));
    }
    list.extend(lacks_progress(backend, &rules, topology));
    list.extend(gaps(backend, &needs, &rules, |means, what| offer.lacks(backend, means, what)));
    if backend == Backend::Daemon && plans_nothing(&needs, &rules) {
        let instead = "nothing is changed: the kernel decides as it does without a policy";
        list.push(Demand::note("is rules only, which a daemon does not execute", instead));
    }
    list
}

/// Whether a policy with these needs and rules never asks a daemon for anything: it has no occasion to plan, and no
/// rule that is carried out by moves between kinds of cores.
pub fn plans_nothing(needs: &Needs, rules: &Rules) -> bool {
    let moves = matches!(rules.allocator, Allocator::ByLoad { .. });
    needs.epoch_ns.is_none() && needs.events == Events::default() && !moves
}

/// What a back end does not do as a policy's words say, each once; `lacks` says what becomes of a word that needs
/// certain means.
fn gaps(
    backend: Backend,
    needs: &Needs,
    rules: &Rules,
    lacks: impl Fn(Means, &str) -> Option<Demand>,
) -> Vec<Demand> {
    let mut gaps = Vec::new();
    for word in words_in_use(needs, rules) {
        let does = match backend {
            Backend::Scx => word.facts.kernel,
            Backend::Daemon => word.facts.daemon,
        };
        let gap = match does.of(needs, rules) {
            Does::Approximates { what, instead } => Some(Demand::note(what, instead)),
            Does::Refuses { what, instead } => Some(Demand::essential(what, instead)),
            Does::With { means, what } => lacks(means, what),
            Does::Exact | Does::Depends(_) => None,
        };
        gaps.extend(gap.filter(|gap| !gaps.contains(gap)));
    }
    gaps
}

/// Whether turns are too short for anybody to get anything done, under rules whose times are real.
fn lacks_progress(backend: Backend, rules: &Rules, topology: &Topology) -> Option<Demand> {
    let (turn_ns, switch_ns) =
        (rules.turn_ns(topology, nice_to_weight(0)), backend.useless_slice_ns()?);
    let turns = match rules.order {
        Order::Rounds { .. } => "rounds",
        Order::Fifo | Order::Vruntime | Order::Deadline | Order::HighestRank { .. } => "slices",
    };
    let what = format!("gives turns of {turn_ns} ns");
    let instead = format!("to switch to a thread takes {switch_ns} ns; give longer {turns}");
    (turn_ns <= switch_ns).then(|| Demand::essential(&what, &instead))
}

/// The policies, with their default parameters, of which a back end lacks nothing essential here.
pub fn runnable_policies(
    backend: Backend,
    topology: &Topology,
    capabilities: &Capabilities,
    choices: Choices,
) -> Vec<&'static str> {
    let runs = |info: &&&'static ampsched_policy::PolicyInfo| {
        let policy = ampsched_policy::build_policy(info.name, &[]).expect("defaults are valid");
        let list = demands(backend, policy.as_ref(), topology, capabilities, choices);
        !list.iter().any(|demand| demand.is_essential)
    };
    REGISTRY.iter().filter(runs).map(|info| info.name).collect()
}

/// What a kernel needs to load a scheduler.
fn of_loading(topology: &Topology, capabilities: &Capabilities) -> Vec<Demand> {
    let mut list = Vec::new();
    let kernel = &capabilities.kernel;
    if !capabilities.sched_ext || version(kernel).is_some_and(|version| version < LOADS) {
        let (major, minor) = LOADS;
        let what = format!(
            "needs a kernel that loads schedulers (CONFIG_SCHED_CLASS_EXT, Linux {major}.{minor} or newer)"
        );
        list.push(Demand::essential(&what, &format!("{kernel} does not")));
    }
    if !capabilities.btf {
        list.push(Demand::essential("needs BTF of the kernel", "the scheduler cannot be loaded"));
    }
    if let Some(right) = capabilities.lacks(LOAD_SCHEDULER) {
        let what = format!("needs {}", right.needs.join(" and "));
        list.push(Demand::essential(&what, "this process may not load it"));
    }
    if topology.core_count() > KERNEL_CORES_MAX {
        let what = format!("needs a computer of at most {KERNEL_CORES_MAX} CPUs");
        list.push(Demand::essential(&what, &format!("this one has {}", topology.core_count())));
    }
    list
}

/// What the verifier of a kernel of that release would crash at. A release that cannot be read is taken for a new one.
pub fn crashes_verifier(rules: &Rules, release: &str) -> Option<Demand> {
    let is_old = version(release).is_some_and(|version| version < VERIFIER_MENDED);
    let (major, minor) = VERIFIER_MENDED;
    let instead = format!(
        "the verifier of Linux {release} may crash at that, from {major}.{minor} on none does"
    );
    let at_risk = matches!(rules.order, Order::Deadline);
    (is_old && at_risk).then(|| Demand::essential("orders queues by deadlines", &instead))
}

/// The first two numbers of a kernel's release, such as 6.18.15+deb13-cloud-amd64.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|sign: char| !sign.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
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
            Means::Clocks => lacks_clocks(self.topology, self.capabilities, self.dvfs)
                .map(|why| Demand::essential(what, &why)),
            Means::Freezer => self.lacks_freezer(what),
            Means::Instructions if self.capabilities.counts_instructions => None,
            Means::Stalls if self.capabilities.counts_stalls => None,
            Means::Instructions | Means::Stalls => {
                let instead = match backend {
                    Backend::Scx => NOT_IN_KERNEL,
                    Backend::Daemon => "it is missing",
                };
                Some(Demand::essential(what, instead))
            }
        }
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

/// Why a policy cannot set clocks here, as what happens instead; none if it can. `dvfs`: whether the user allows it.
pub fn lacks_clocks(
    topology: &Topology,
    capabilities: &Capabilities,
    dvfs: bool,
) -> Option<String> {
    let known = topology.clusters().iter().any(|cluster| !cluster.freqs_mhz.is_empty());
    let clocks = &capabilities.cpufreq;
    let why = if !known || clocks.is_empty() {
        ": this system has no cpufreq"
    } else if !clocks.iter().any(|clock| clock.writable) {
        ": cpufreq is not writable for this process"
    } else if !dvfs {
        " without --allow-dvfs"
    } else {
        return None;
    };
    Some(format!("clocks stay as they are{why}"))
}

/// What a scheduler in the kernel that executes Rules and Plan cannot do for a policy, of whose needs those are
/// given that are not met by counters and clocks; times of the rules are real.
pub fn kernel_lacks(needs: &Needs, rules: &Rules, topology: &Topology) -> Vec<String> {
    let lacks = |means, what: &str| {
        (means != Means::Freezer).then(|| Demand::essential(what, NOT_IN_KERNEL))
    };
    let gaps = gaps(Backend::Scx, needs, rules, lacks);
    let gaps = lacks_progress(Backend::Scx, rules, topology).into_iter().chain(gaps);
    gaps.filter(|gap| gap.is_essential).map(|gap| gap.what).collect()
}
