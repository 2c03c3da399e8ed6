//! Generations of the kernel: which parts the fair class has, and their constants.

use ampsched_model::Ns;

use super::walt::WINDOW_NS;

/// How a queue is ordered, and what protects a running thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The least virtual run time first (up to 6.5).
    Cfs,
    /// The earliest eligible virtual deadline first (since 6.6).
    Eevdf,
}

/// How long a running thread is protected from woken ones (`RUN_TO_PARITY`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parity {
    /// Until its request is used up or it is no longer eligible (6.6 to 6.16: `vlag == deadline`).
    Request,
    /// The same for the shortest request of its queue (since 6.17: `set_protect_slice`).
    ShortestRequest,
}

/// How load is balanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balancing {
    /// By load of groups; which are too busy, the number of their threads tells (up to 4.0: `group_capacity_factor`).
    LoadAndThreads,
    /// By load of groups; which are too busy, their utilisation tells (4.1 to 5.4: `group_no_capacity`).
    ByLoad,
    /// By types of groups (since 5.5: `group_has_spare` and the others).
    ByGroupType,
}

/// How the capacity counts that heat takes (`scale_rt_capacity`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pressure {
    /// Not at all (up to 5.6).
    Ignored,
    /// Averaged by load tracking (`thermal_load_avg`, 5.7 to 6.9; `sched_thermal_decay_shift` is 0).
    Averaged,
    /// As it is (`cpufreq_get_pressure`, since 6.10). What is averaged since then, `hw_load_avg`, comes from firmware
    /// that reports it (Qualcomm's LMh), of which there is none here.
    Exact,
}

/// What tells how much threads and cores have to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracking {
    /// Averages (PELT).
    Pelt,
    /// Averages for load, and for all that is compared with capacities and for clocks the work of windows (WALT).
    Walt {
        /// Length of a window (`sched_ravg_window`).
        window_ns: Ns,
    },
}

/// A generation of Linux's fair class.
///
/// Constants are those of the sources, before they are scaled by the number of cores
/// ([`Kernel::scale`], `SCHED_TUNABLESCALING_LOG`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kernel {
    /// Version, such as 6.18; below 0, a vendor's of that version.
    pub version: f64,
    /// How users name it.
    pub name: &'static str,
    /// Order of queues.
    pub order: Order,
    /// `sysctl_sched_base_slice`; up to 6.5 `sysctl_sched_min_granularity`.
    pub base_slice_ns: Ns,
    /// `sysctl_sched_latency` (up to 6.5).
    pub latency_ns: Ns,
    /// `sysctl_sched_wakeup_granularity` (up to 6.5).
    pub wakeup_granularity_ns: Ns,
    /// Threads that owe time stay in their queue when they sleep (`DELAY_DEQUEUE`, since 6.12).
    pub delays_dequeue: bool,
    /// A moved thread keeps what is left of its request (`PLACE_REL_DEADLINE`, since 6.12).
    pub keeps_deadline: bool,
    /// A woken thread with a shorter slice interrupts (`PREEMPT_SHORT`, since 6.12).
    pub preempts_for_short: bool,
    /// What protects the running thread.
    pub parity: Parity,
    /// Threads may state slices of their own (`sched_attr::sched_runtime`, since 6.12).
    pub takes_slices: bool,
    /// A core is told only at its next tick, or when its system call or interrupt ends, that a woken thread is to
    /// interrupt (`PREEMPT_LAZY`, in distributions since 6.13).
    pub preempts_lazily: bool,
    /// Requests end exactly, not at ticks (`HRTICK`, on by default since 7.0 on x86-64).
    pub hrtick: bool,
    /// How load is balanced.
    pub balancing: Balancing,
    /// How much more rarely busy cores balance than idle ones (`sd->busy_factor`: 32, since 5.10 16).
    pub busy_factor: u64,
    /// Loads may differ by this much between the cores of a last-level cache, in percent (`imbalance_pct`).
    pub imbalance_pct: u64,
    /// The same between caches: 125, since 5.10 117.
    pub imbalance_pct_package: u64,
    /// Capacities of cores are known (arm64 since 4.10), which says nothing of what for.
    pub knows_capacities: bool,
    /// The scan for an idle core stops as utilisation grows (`SIS_UTIL`, since 6.0).
    pub scans_by_util: bool,
    /// So does that where capacities differ (`select_idle_capacity`, since 7.2).
    pub scans_capacities_by_util: bool,
    /// Capacities of cores are known to placement and balancing (`SD_ASYM_CPUCAPACITY`, misfits; since 4.20).
    pub asymmetric: bool,
    /// Threads wake up within the cores that share a cluster (x86-64: a second-level cache) before others that share
    /// the last-level cache (`sched_cluster_active`, since 6.8).
    pub prefers_cluster: bool,
    /// Threads are spread over clusters of different capacity, too (`SD_PREFER_SIBLING` below an asymmetric domain,
    /// seen in 7.3).
    pub spreads_unequal: bool,
    /// `find_energy_efficient_cpu` (since 5.0).
    pub energy_aware: bool,
    /// A core that has only threads of class idle takes woken ones like an idle one (`sched_idle_cpu`, since 5.4).
    pub sees_idlers: bool,
    /// A thread that goes to sleep is estimated by its averages as they were brought up to date last before, at a tick
    /// or when it was chosen (`dequeue_task_fair`, 6.14 to 7.1.4).
    pub estimates_early: bool,
    /// Cores that fall idle search as often as that has been worth it (`NI_RANDOM`, since 6.18.3).
    pub draws_newidle: bool,
    /// Two threads of a core come one as soon as the other, cores that are idle as a whole come first, and a core of
    /// which both are busy is relieved (`sched_use_asym_prio`, since 6.4; `group_smt_balance`, since 6.6).
    pub relieves_siblings: bool,
    /// Where capacities differ, threads fit best on a core that is idle as a whole (`asym_fits_cpu` with SMT, since
    /// 7.2).
    pub fits_idle_cores: bool,
    /// How the capacity counts that heat takes.
    pub pressure: Pressure,
    /// What tells how much threads and cores have to do.
    pub tracking: Tracking,
}

impl Kernel {
    /// All generations, the oldest first.
    pub const ALL: [Kernel; 7] = [V3_16, V4_14, ANDROID_4_14, V6_1, V6_6, V6_18, V7_3];

    /// The generation of a version.
    pub fn of(version: f64) -> Option<Kernel> {
        Self::ALL.into_iter().find(|kernel| kernel.version == version)
    }

    /// Whether load is balanced by load, not by types of groups.
    pub(super) fn is_by_load(&self) -> bool {
        self.balancing != Balancing::ByGroupType
    }

    /// Whether it is as up to 4.0 what is balanced by load.
    pub(super) fn counts_threads(&self) -> bool {
        self.balancing == Balancing::LoadAndThreads
    }

    /// A constant for a machine by its number of cores: x (1 + log2(min(cores, 8)))
    /// (fair.c, `get_update_sysctl_factor`).
    pub fn scale(constant_ns: Ns, cores: usize) -> Ns {
        constant_ns * (1 + Ns::from(cores.clamp(1, 8).ilog2()))
    }
}

/// Linux 3.16, whose CFS COLAB is compared with.
pub const V3_16: Kernel = Kernel {
    version: 3.16,
    name: "3.16",
    order: Order::Cfs,
    base_slice_ns: 750_000,
    latency_ns: 6_000_000,
    wakeup_granularity_ns: 1_000_000,
    delays_dequeue: false,
    keeps_deadline: false,
    preempts_for_short: false,
    parity: Parity::Request,
    takes_slices: false,
    preempts_lazily: false,
    hrtick: false,
    balancing: Balancing::LoadAndThreads,
    busy_factor: 32,
    imbalance_pct: 117,
    imbalance_pct_package: 125,
    knows_capacities: false,
    scans_by_util: false,
    scans_capacities_by_util: false,
    asymmetric: false,
    prefers_cluster: false,
    spreads_unequal: false,
    energy_aware: false,
    sees_idlers: false,
    estimates_early: false,
    draws_newidle: false,
    relieves_siblings: false,
    fits_idle_cores: false,
    pressure: Pressure::Ignored,
    tracking: Tracking::Pelt,
};

/// Linux 4.14, of the board of HFEE.
pub const V4_14: Kernel = Kernel {
    version: 4.14,
    name: "4.14",
    balancing: Balancing::ByLoad,
    knows_capacities: true,
    ..V3_16
};

/// Android's 4.14 as Qualcomm ships it for the Snapdragon 855 (msm-4.14): WALT, placement by demand and energy.
pub const ANDROID_4_14: Kernel = Kernel {
    version: -4.14,
    name: "android-4.14",
    asymmetric: true,
    energy_aware: true,
    tracking: Tracking::Walt { window_ns: WINDOW_NS },
    ..V4_14
};

/// Linux 6.1, of long-term support: CFS that knows of capacities and energy (Debian 12, Android 14).
pub const V6_1: Kernel = Kernel {
    version: 6.1,
    name: "6.1",
    busy_factor: 16,
    imbalance_pct_package: 117,
    balancing: Balancing::ByGroupType,
    scans_by_util: true,
    asymmetric: true,
    energy_aware: true,
    sees_idlers: true,
    pressure: Pressure::Averaged,
    ..V4_14
};

/// Linux 6.6, the first with EEVDF.
pub const V6_6: Kernel =
    Kernel { version: 6.6, name: "6.6", order: Order::Eevdf, relieves_siblings: true, ..V6_1 };

/// Linux 6.18, of long-term support.
pub const V6_18: Kernel = Kernel {
    version: 6.18,
    name: "6.18",
    base_slice_ns: 700_000,
    delays_dequeue: true,
    keeps_deadline: true,
    preempts_for_short: true,
    parity: Parity::ShortestRequest,
    takes_slices: true,
    preempts_lazily: true,
    estimates_early: true,
    draws_newidle: true,
    prefers_cluster: true,
    pressure: Pressure::Exact,
    ..V6_6
};

/// Linux 7.3.
pub const V7_3: Kernel = Kernel {
    version: 7.3,
    name: "7.3",
    hrtick: true,
    spreads_unequal: true,
    scans_capacities_by_util: true,
    fits_idle_cores: true,
    estimates_early: false,
    ..V6_18
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_grow_with_the_logarithm_of_cores_up_to_eight() {
        let slices = [1, 2, 4, 8, 64].map(|cores| Kernel::scale(V6_18.base_slice_ns, cores));
        assert_eq!(slices, [700_000, 1_400_000, 2_100_000, 2_800_000, 2_800_000]);
    }

    #[test]
    fn a_generation_is_found_by_its_version() {
        assert_eq!(Kernel::of(6.18), Some(V6_18));
        assert_eq!(Kernel::of(6.17), None);
    }
}
