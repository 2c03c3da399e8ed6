//! What a thread asks of the operating system's scheduler beside its nice value: class, slice, clamps, group.
//!
//! Names, ranges and defaults are those of Linux 6.12: `sched_setattr(2)` with `struct sched_attr`
//! (include/uapi/linux/sched/types.h) and control groups (`cpu.weight`, `cpu.uclamp.min`, `cpu.uclamp.max`).

use crate::Ns;

/// A scheduling class and what it needs to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchedClass {
    /// `SCHED_OTHER`: what the policy schedules.
    #[default]
    Fair,
    /// `SCHED_BATCH`: fair, but it interrupts nobody when it wakes.
    Batch,
    /// `SCHED_IDLE`: fair, with a weight of 3, and interrupted by every other thread that wakes.
    Idle,
    /// `SCHED_FIFO`: above all fair threads; the highest priority runs until it waits.
    Fifo {
        /// 1 to 99; 99 is the most urgent.
        priority: u8,
    },
    /// `SCHED_RR`: the same, but threads of one priority take turns of 100 ms.
    RoundRobin {
        /// 1 to 99; 99 is the most urgent.
        priority: u8,
    },
    /// `SCHED_DEADLINE`: above all others; the earliest deadline first, each within its budget.
    Deadline {
        /// Budget of each period in ns.
        runtime_ns: Ns,
        /// From the begin of a period until the budget is needed, in ns.
        deadline_ns: Ns,
        /// Length of a period in ns.
        period_ns: Ns,
    },
}

/// Least runtime of a deadline thread: `1 << DL_SCALE` ns (kernel/sched/deadline.c, `__checkparam_dl`, 6.12).
pub const DL_RUNTIME_NS_MIN: Ns = 1 << 10;
/// Least period of a deadline thread (`sysctl_sched_dl_period_min`, 6.12).
pub const DL_PERIOD_NS_MIN: Ns = 100_000;
/// Greatest period of a deadline thread (`sysctl_sched_dl_period_max`, 6.12).
pub const DL_PERIOD_NS_MAX: Ns = (1 << 22) * 1000;
/// Least slice of a fair thread; less is raised to it (kernel/sched/syscalls.c, `__setparam_fair`, 6.12).
pub const SLICE_NS_MIN: Ns = 100_000;
/// Greatest slice of a fair thread; more is cut to it.
pub const SLICE_NS_MAX: Ns = 100_000_000;
/// Utilisation of a whole core, and so the greatest clamp (`SCHED_CAPACITY_SCALE`).
pub const CLAMP_MAX: u16 = 1024;
/// The share of CPU time of a group that nobody has set (`cpu.shares`; `cpu.weight` 100).
pub const SHARES_DEFAULT: u32 = 1024;

impl SchedClass {
    /// Whether it stands above the fair class, whatever policy that has.
    pub fn is_above(self) -> bool {
        !matches!(self, Self::Fair | Self::Batch | Self::Idle)
    }

    /// Its name in the workload language.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fair => "fair",
            Self::Batch => "batch",
            Self::Idle => "idle",
            Self::Fifo { .. } => "fifo",
            Self::RoundRobin { .. } => "rr",
            Self::Deadline { .. } => "deadline",
        }
    }

    /// What is wrong with the numbers of a deadline thread: the limit that does not hold, in a sentence. `None` if
    /// nothing is, or for another class.
    pub fn flaw(self) -> Option<String> {
        let Self::Deadline { runtime_ns, deadline_ns, period_ns } = self else { return None };
        let us = |ns: Ns| format!("{} us", ns as f64 / 1000.0);
        if runtime_ns < DL_RUNTIME_NS_MIN {
            return Some(format!(
                "a runtime of {}, at least {} is needed",
                us(runtime_ns),
                us(DL_RUNTIME_NS_MIN)
            ));
        }
        if runtime_ns > deadline_ns || deadline_ns > period_ns {
            return Some(format!(
                "runtime {}, deadline {}, period {}: runtime <= deadline <= period is needed",
                us(runtime_ns),
                us(deadline_ns),
                us(period_ns)
            ));
        }
        if !(DL_PERIOD_NS_MIN..=DL_PERIOD_NS_MAX).contains(&period_ns) {
            return Some(format!(
                "a period of {}, {} to {} is allowed",
                us(period_ns),
                us(DL_PERIOD_NS_MIN),
                us(DL_PERIOD_NS_MAX)
            ));
        }
        None
    }
}

/// A slice as Linux takes it: 0 is none of its own, others are cut to 0.1 to 100 ms.
pub fn clamp_slice(slice_ns: Ns) -> Ns {
    if slice_ns == 0 { 0 } else { slice_ns.clamp(SLICE_NS_MIN, SLICE_NS_MAX) }
}

/// What a thread asks for beside its nice value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedAttrs {
    /// Its class.
    pub class: SchedClass,
    /// Length of its slices while it is fair, in ns; 0: as the policy says (`sched_attr.sched_runtime`).
    pub slice_ns: Ns,
    /// Least utilisation that it asks for, 0 to 1024; none: the class's default.
    pub uclamp_min: Option<u16>,
    /// Greatest utilisation that it is worth, 0 to 1024; none: 1024.
    pub uclamp_max: Option<u16>,
    /// Its group in [`crate::Program::groups`]; none: the root group.
    pub group: Option<u16>,
}

/// A group of threads that share CPU time as one (a control group with the cpu controller).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskGroup {
    /// Its path from the root: `/tg1/tg11`. Groups above it exist with it.
    pub path: String,
    /// Its share among the groups and threads beside it; 1024 is `cpu.weight` 100. None: not stated here.
    pub shares: Option<u32>,
    /// Least utilisation of its threads, 0 to 1024; none: not stated here, 0.
    pub uclamp_min: Option<u16>,
    /// Greatest utilisation of its threads, 0 to 1024; none: not stated here, 1024.
    pub uclamp_max: Option<u16>,
}

impl TaskGroup {
    /// A group of which nothing but the path is stated.
    pub fn new(path: &str) -> Self {
        Self { path: path.to_owned(), shares: None, uclamp_min: None, uclamp_max: None }
    }

    /// Shares of a `cpu.weight` of 1 to 10,000, rounded (kernel/sched/sched.h, `sched_weight_from_cgroup`, 6.12).
    pub fn shares_of_weight(weight: u32) -> u32 {
        ((u64::from(weight) * 1024 + 50) / 100) as u32
    }
}

/// Why a text is no path of a group, in a sentence; `None` if it is one. The root `/` is one.
pub fn path_flaw(path: &str) -> Option<&'static str> {
    if !path.starts_with('/') {
        return Some("a group's path begins with /");
    }
    let is_bad = |part: &str| part.is_empty() || part == "." || part == "..";
    if path != "/" && path[1..].split('/').any(is_bad) {
        return Some("a part of the path is empty, \".\" or \"..\"");
    }
    (path.len() > PATH_BYTES_MAX || path.matches('/').count() > GROUPS_DEPTH_MAX)
        .then_some("the path is longer than 1,000 bytes or deeper than 32 groups")
}

/// Longest path of a group in bytes.
const PATH_BYTES_MAX: usize = 1000;
/// Deepest nesting of groups.
const GROUPS_DEPTH_MAX: usize = 32;
/// Most groups of a program.
pub const GROUPS_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadline_numbers_are_checked_as_in_linux() {
        let flaw = |runtime_ns, deadline_ns, period_ns| {
            SchedClass::Deadline { runtime_ns, deadline_ns, period_ns }.flaw()
        };
        assert_eq!(flaw(10_000_000, 20_000_000, 20_000_000), None);
        assert_eq!(flaw(200_000_000, 200_000_000, 200_000_000), None);
        let order = "runtime 3000 us, deadline 2000 us, period 4000 us: runtime <= deadline <= period is needed";
        assert_eq!(flaw(3_000_000, 2_000_000, 4_000_000).as_deref(), Some(order));
        assert_eq!(
            flaw(1000, 1_000_000, 1_000_000).as_deref(),
            Some("a runtime of 1 us, at least 1.024 us is needed")
        );
        assert_eq!(
            flaw(2000, 50_000, 50_000).as_deref(),
            Some("a period of 50 us, 100 us to 4194304 us is allowed")
        );
        assert!(flaw(2000, 50_000, DL_PERIOD_NS_MAX + 1).is_some());
        assert_eq!(SchedClass::Fifo { priority: 1 }.flaw(), None);
    }

    #[test]
    fn slices_and_weights_are_cut_as_in_linux() {
        assert_eq!(
            [0, 1, 5_000_000, u64::MAX].map(clamp_slice),
            [0, 100_000, 5_000_000, 100_000_000]
        );
        assert_eq!([1, 100, 10_000].map(TaskGroup::shares_of_weight), [10, 1024, 102_400]);
    }

    #[test]
    fn paths_begin_at_the_root() {
        assert_eq!(["/", "/a", "/a/b.slice"].map(path_flaw), [None; 3]);
        for bad in ["", "a", "//", "/a/", "/a//b", "/a/../b", &"/a".repeat(33), &"/abc".repeat(300)]
        {
            assert!(path_flaw(bad).is_some(), "{bad}");
        }
    }
}
