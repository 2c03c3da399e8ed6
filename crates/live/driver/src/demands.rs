//! What a policy asks of a back end that cannot give it, or gives it otherwise than written.

use ampsched_policy::{
    Allocator, BalanceWhen, Charge, LoadFilter, Needs, Order, Policy, QueueScope, REGISTRY, Rules,
    Slice, StealFrom, Topology, WakePreempt,
};
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
    match backend {
        Backend::Scx => of_kernel(&needs, &rules, capabilities),
        Backend::Daemon => {
            let mut list: Vec<Demand> =
                of_frequencies(&needs, topology, capabilities, dvfs).into_iter().collect();
            list.extend(of_decisions(&needs));
            list.extend(of_selection(&rules));
            list.extend(of_time(&rules));
            list.extend(of_placement(&needs, &rules));
            list.extend(of_holding(&needs, capabilities));
            list
        }
    }
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

fn of_frequencies(
    needs: &Needs,
    topology: &Topology,
    capabilities: &Capabilities,
    dvfs: bool,
) -> Option<Demand> {
    const WHAT: &str = "sets the clocks of clusters";
    if !needs.frequencies {
        return None;
    }
    let known = topology.clusters().iter().any(|cluster| !cluster.freqs_mhz.is_empty());
    let writable = capabilities.cpufreq.iter().any(|clock| clock.writable);
    let clocks_stay = "clocks stay as they are";
    match (known && !capabilities.cpufreq.is_empty(), writable, dvfs) {
        (false, ..) => {
            Some(Demand::essential(WHAT, &format!("{clocks_stay}: this system has no cpufreq")))
        }
        (true, false, _) => {
            let instead = format!("{clocks_stay}: cpufreq is not writable for this process");
            Some(Demand::essential(WHAT, &instead))
        }
        (true, true, false) => {
            Some(Demand::essential(WHAT, &format!("{clocks_stay} without --allow-dvfs")))
        }
        (true, true, true) => None,
    }
}

fn of_kernel(needs: &Needs, rules: &Rules, capabilities: &Capabilities) -> Vec<Demand> {
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
    let needs = Needs {
        instructions: needs.instructions && !capabilities.counts_instructions,
        stalls: needs.stalls && !capabilities.counts_stalls,
        ..*needs
    };
    let lacks = kernel_lacks(&needs, rules);
    list.extend(lacks.into_iter().map(|what| Demand::essential(what, "not inside the kernel")));
    list
}

/// What a scheduler in the kernel that executes Rules and Plan cannot do for a policy, of whose needs those are
/// given that are not met by counters.
pub fn kernel_lacks(needs: &Needs, rules: &Rules) -> Vec<&'static str> {
    let hooks = needs.hooks;
    let by_load = matches!(rules.allocator, Allocator::ByLoad(_))
        || rules.steal.iter().any(|step| step.load != LoadFilter::Any);
    let refused = [
        (hooks.place, "places threads by code of its own (hook `place`)"),
        (hooks.pick, "picks threads by code of its own (hook `pick`)"),
        (hooks.slice, "sets slices by code of its own (hook `slice`)"),
        (hooks.preempts, "decides on pre-emption by code of its own (hook `preempts`)"),
        (needs.events.blocking, "hears of every blocking and waking"),
        (needs.events.dispatch, "hears of every start and stop of a thread"),
        (needs.frequencies, "sets the clocks of clusters, which is the daemon's business"),
        (needs.instructions, "reads retired instructions, which are not counted here"),
        (needs.stalls, "reads stall counters, which are not counted here"),
        (needs.power, "reads power sensors, which are not read here"),
        (needs.load_tracking.is_some() || by_load, "needs tracked load"),
        (
            rules.balance_when != BalanceWhen::Always,
            "balances only while a core is over-utilised, which needs tracked load",
        ),
    ];
    refused.into_iter().filter(|(applies, _)| *applies).map(|(_, what)| what).collect()
}

/// Decisions that a policy takes itself at each event.
fn of_decisions(needs: &Needs) -> Vec<Demand> {
    let hooks = [
        (needs.hooks.place, "decides by itself where each waking thread goes"),
        (needs.hooks.pick, "decides by itself which thread each core runs next"),
        (needs.hooks.slice, "decides by itself how long each thread runs"),
        (needs.hooks.preempts, "decides by itself who interrupts whom"),
        (needs.events.blocking, "hears of every blocking and waking"),
        (needs.events.dispatch, "hears of every start and stop of a thread"),
    ];
    let asked = hooks.iter().filter(|(asked, _)| *asked);
    asked.map(|(_, what)| Demand::essential(what, "the kernel decides and tells nobody")).collect()
}

/// Which thread a core runs, and in which queue threads wait.
fn of_selection(rules: &Rules) -> Vec<Demand> {
    let mut list = Vec::new();
    let kernel = "the kernel's fair scheduler chooses";
    match rules.order {
        Order::Vruntime | Order::Deadline => {}
        Order::Fifo => {
            list.push(Demand::essential("serves threads in the order of arrival", kernel))
        }
        Order::HighestRank { .. } => {
            list.push(Demand::essential("serves the waiting thread of the highest rank", kernel));
        }
        Order::Rounds { .. } => {
            list.push(Demand::essential("serves threads round by round", kernel))
        }
    }
    if rules.queues != QueueScope::PerCore {
        list.push(Demand::essential("lets cores share run queues", "each core has its own"));
    }
    list
}

/// Slices, what run time counts, preemption.
fn of_time(rules: &Rules) -> Vec<Demand> {
    let mut list = Vec::new();
    let kernel = "the kernel's own slices";
    if let Slice::Fixed(slice_ns) = rules.slice {
        let what = format!("gives slices of {:.1} ms", slice_ns as f64 / 1e6);
        list.push(Demand::essential(&what, kernel));
    } else {
        list.push(Demand::note(
            "has constants of its own for slices, preemption and balancing",
            "the kernel's (EEVDF since Linux 6.6, CFS before)",
        ));
    }
    if rules.slice_by_speed {
        list.push(Demand::essential("shortens slices on faster cores", kernel));
    }
    match rules.charge {
        Charge::Time => {}
        Charge::Progress => {
            let what = "charges run time by predicted speed, for equal progress";
            list.push(Demand::essential(what, "equal time"));
        }
        Charge::Rated => {
            let what = "charges run time by the rating of cores";
            list.push(Demand::essential(what, "equal time"));
        }
    }
    match rules.preempt {
        WakePreempt::Never => {
            list.push(Demand::essential(
                "lets woken threads interrupt nobody",
                "the kernel's rule",
            ));
        }
        WakePreempt::VruntimeGap { divide_by_speed: true, .. } => {
            let what = "decides preemption by virtual run time divided by the speed-up";
            list.push(Demand::essential(what, "the kernel's rule"));
        }
        WakePreempt::VruntimeGap { .. } | WakePreempt::EarlierDeadline { .. } => {}
    }
    list
}

/// Where threads go.
fn of_placement(needs: &Needs, rules: &Rules) -> Vec<Demand> {
    let mut list = Vec::new();
    match rules.allocator {
        Allocator::WakeAffine => {}
        Allocator::LeastLoadedInClass => list.push(Demand::note(
            "takes a thread's kind of core for a preference between epochs",
            "it is bound to that kind until the next epoch",
        )),
        Allocator::ByLoad(_) => list.push(Demand::note(
            "moves threads by load when they wake up and at each tick",
            "at each look, from run times since the last one",
        )),
        Allocator::RoundRobinInClass => list.push(Demand::essential(
            "spreads waking threads over the cores of their class in turn",
            "bound to the class, the kernel chooses",
        )),
        Allocator::LeastLoadedWith => list.push(Demand::essential(
            "places threads by load per rated core",
            "the kernel places them",
        )),
    }
    let rated = rules.rating.iter().any(|&rating| rating != rules.rating[0]);
    if rated && rules.allocator != Allocator::LeastLoadedWith {
        list.push(Demand::essential("balances load per rated core", "all cores count alike"));
    }
    if rules.balance_when != BalanceWhen::Always {
        let what = "balances only while a core is over-utilised";
        list.push(Demand::essential(what, "the kernel balances always"));
    }
    let pulls = rules.steal.iter().any(|step| step.from == StealFrom::RunningOnSlower);
    if pulls && needs.epoch_ns.is_some() {
        list.push(Demand::note(
            "lets an idle fast core take a running thread from a slow one at once",
            "at the next epoch",
        ));
    }
    if pulls && needs.epoch_ns.is_none() && !matches!(rules.allocator, Allocator::ByLoad(_)) {
        list.push(Demand::essential(
            "lets an idle fast core take a running thread from a slow one",
            "it stays where it is",
        ));
    }
    list
}

fn of_holding(needs: &Needs, capabilities: &Capabilities) -> Option<Demand> {
    let instead = match capabilities.freezer.as_ref().map(|freezer| freezer.version) {
        Some(CgroupVersion::V1) => return None,
        Some(CgroupVersion::V2) => {
            "a process is frozen while all its threads are held back (cgroup v2)"
        }
        None => "a process is stopped by SIGSTOP while all its threads are held back",
    };
    needs.holds.then(|| Demand::note("holds single threads back", instead))
}
