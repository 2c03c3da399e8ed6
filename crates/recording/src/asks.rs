//! What a recorded thread asks of a scheduler beside its priority, and the groups that share CPU time.

use ampsched_model::limits::CPUS_MAX;
use ampsched_model::{CLAMP_MAX, CoreId, CoreSet, GROUPS_MAX, SchedClass, TaskGroup, path_flaw};
use serde::{Deserialize, Serialize};

use crate::{Info, Thread};

/// A class that no priority tells from another one (`policy` of sched_setattr(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// `SCHED_RR`: threads of one real-time priority take turns.
    Rr,
    /// `SCHED_BATCH`.
    Batch,
    /// `SCHED_IDLE`.
    Idle,
    /// `SCHED_DEADLINE`, whose budget nobody has told.
    Deadline,
}

impl Policy {
    /// That of a class, given the class that a priority has told. One that contradicts it changes nothing: the priority
    /// is that of most of a thread's CPU time.
    pub(crate) fn class(self, told: SchedClass) -> SchedClass {
        match (self, told) {
            (Self::Rr, SchedClass::Fifo { priority }) => SchedClass::RoundRobin { priority },
            (Self::Batch, SchedClass::Fair) => SchedClass::Batch,
            (Self::Idle, SchedClass::Fair) => SchedClass::Idle,
            _ => told,
        }
    }
}

/// What a thread asks for beside its priority.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Asks {
    /// Its class, if its priority does not tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// The CPUs that it may use, ascending, of the computer that recorded; none: all, or nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Vec<u16>>,
    /// Least utilisation that it asks for, 0 to 1024; none if it states none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uclamp_min: Option<u16>,
    /// Greatest utilisation that it is worth, 0 to 1024; none if it states none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uclamp_max: Option<u16>,
    /// Its group in [`Info::groups`]; none: the root group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<u16>,
}

impl Asks {
    /// Whether it asks for nothing.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The CPUs that it may use as a list, such as `0-3,6`; empty if it may use all.
    pub fn cpus_text(&self) -> String {
        let cpus = self.cpus.as_deref().unwrap_or_default();
        let range = |cpus: &[u16]| match cpus {
            [first, .., last] => format!("{first}-{last}"),
            cpus => cpus.iter().map(u16::to_string).collect(),
        };
        let ranges = cpus.chunk_by(|one, other| one.checked_add(1) == Some(*other));
        ranges.map(range).collect::<Vec<_>>().join(",")
    }

    /// The CPUs that it may use, as a set.
    pub fn core_set(&self) -> Option<CoreSet> {
        let cpus = self.cpus.as_ref()?;
        Some(cpus.iter().map(|&cpu| CoreId::from(usize::from(cpu))).collect())
    }
}

/// A group of threads that share CPU time as one (a control group with Linux's cpu controller).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Group {
    /// Its path from the root: `/background`.
    pub path: String,
    /// Its share among the groups and threads beside it; 1024 is `cpu.weight` 100. None: not told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shares: Option<u32>,
    /// Least utilisation of its threads, 0 to 1024; none: not told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uclamp_min: Option<u16>,
    /// Greatest utilisation of its threads, 0 to 1024; none: not told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uclamp_max: Option<u16>,
}

/// Least and greatest share of a group (kernel/sched/core.c, `sched_group_set_shares`, 6.12).
pub(crate) const SHARES: std::ops::RangeInclusive<u32> = 2..=(1 << 18);

impl Group {
    /// The same as a group of a program.
    pub(crate) fn of_program(&self) -> TaskGroup {
        let Self { shares, uclamp_min, uclamp_max, .. } = *self;
        TaskGroup { path: self.path.clone(), shares, uclamp_min, uclamp_max }
    }

    fn flaw(&self) -> Option<String> {
        if let Some(flaw) = path_flaw(&self.path) {
            return Some(format!("the group \"{}\": {flaw}", self.path));
        }
        let bad = self.shares.filter(|shares| !SHARES.contains(shares))?;
        Some(format!("a share of {bad} of {}; {SHARES:?} are allowed", self.path))
    }
}

/// What is wrong with what a recording's threads ask for, in a sentence, as only a damaged file has it.
pub(crate) fn flaw(info: &Info, threads: &[Thread]) -> Option<String> {
    if info.groups.len() > GROUPS_MAX {
        return Some(format!("{} groups; most are {GROUPS_MAX}", info.groups.len()));
    }
    let clamps = |min: Option<u16>, max: Option<u16>| {
        let bad = [min, max].into_iter().flatten().find(|&clamp| clamp > CLAMP_MAX)?;
        Some(format!("a utilisation clamp of {bad}; the greatest is {CLAMP_MAX}"))
    };
    let of_group = |group: &Group| group.flaw().or(clamps(group.uclamp_min, group.uclamp_max));
    let of_thread = |thread: &Thread| {
        let asks = &thread.asks;
        let group = asks.group.filter(|&group| usize::from(group) >= info.groups.len());
        let cpus = asks.cpus.as_deref().unwrap_or_default();
        let beyond = cpus.iter().find(|&&cpu| usize::from(cpu) >= CPUS_MAX);
        let groups = info.groups.len();
        clamps(asks.uclamp_min, asks.uclamp_max)
            .or(group.map(|group| format!("a thread of group {group}; there are {groups}")))
            .or(beyond.map(|cpu| format!("a mask with CPU {cpu}; most are {CPUS_MAX}")))
    };
    info.groups.iter().find_map(of_group).or_else(|| threads.iter().find_map(of_thread))
}
