//! Governors: who decides at which frequency a cluster runs. One file each, after Linux's cpufreq.
//!
//! A governor is asked now and then ([`Pace`]), sees what its cluster's cores have done ([`ClusterSample`])
//! and answers with one of the cluster's frequencies. It is part of no scheduling policy: any policy can
//! run under any governor. The host, a simulator or a daemon that writes `scaling_setspeed`, carries the
//! answer out.

mod domain;
mod load;
mod registry;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use ampsched_model::Ns;

pub use domain::{FrequencyDomain, Limits};
pub use registry::{GovernorInfo, build_governor, check_governor, find_governor};

crate::registry! {
    /// All governors, in alphabetical order.
    pub static GOVERNORS: GovernorInfo = [
        conservative,
        interactive,
        ondemand,
        performance,
        powersave,
        schedutil,
        userspace,
    ]
}

/// Decides at which frequency a cluster runs.
pub trait Governor: Send {
    /// When it wants to look next; none if its answer depends on nothing but the limits. Ask again after
    /// each look.
    fn pace(&self) -> Option<Pace>;

    /// Looks at the cluster and returns a frequency in MHz: one of the domain's within the sample's limits.
    ///
    /// The host calls it once when the governor takes over, then at its pace, and at once when the limits
    /// change.
    fn next_mhz(&mut self, sample: &ClusterSample) -> u32;
}

/// When a governor wants to look.
///
/// Linux's governors have no timer of their own: the scheduler calls them when a thread starts, stops,
/// wakes or blocks on a core of the cluster and at each tick of a busy core, and they look if enough time
/// has passed (kernel/sched/sched.h, `cpufreq_update_util`). While all cores are idle nothing calls them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The next look is at the first such event that is at least so long after the last look, in ns.
    pub gap_ns: Ns,
    /// If no such event comes because the cluster is idle, the next look is so long after the last one, in
    /// ns; none: not before something happens.
    pub idle_gap_ns: Option<Ns>,
}

impl Pace {
    /// Looks at events only.
    fn at_events(gap_ns: Ns) -> Option<Self> {
        Some(Self { gap_ns, idle_gap_ns: None })
    }
}

/// What a governor sees of a cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusterSample<'a> {
    /// The time in ns since the start.
    pub now_ns: Ns,
    /// Frequency in MHz at which the cluster has run since the last look.
    pub mhz: u32,
    /// What is allowed at present: all frequencies, or fewer while the chip must cool.
    pub limits: Limits,
    /// The cluster's cores.
    pub cores: &'a [CoreSample],
}

/// What a governor sees of a core. Times are sums since the start in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreSample {
    /// Time in which it ran a thread.
    pub busy_ns: Ns,
    /// The part of the busy time in which the thread had a nice value above 0.
    pub nice_ns: Ns,
    /// The part of the idle time in which a thread that last ran here waited for a device.
    pub iowait_ns: Ns,
    /// Utilisation, 0 to the core's capacity ([`core_util_boosted`](crate::core_util_boosted)).
    pub util: u32,
    /// Whether a thread has come back to this core from waiting for a device since the last look.
    pub io_wakeup: bool,
    /// Longest time since the last look, up to now, in which nothing was scheduled here: no event, no tick.
    pub quiet_ns: Ns,
}
