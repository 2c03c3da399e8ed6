//! What this kernel can do for a live back end, and what this process may.

use std::collections::BTreeMap;
use std::path::Path;

use rustix::fs::{Access, access};
use serde::Serialize;

use crate::Root;
use crate::cgroups::{CgroupVersion, Delegation, Mounts, Place, own_cgroups};
use crate::pmus::core_pmu_names;

/// What the kernel offers and this process may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Release of the kernel.
    pub kernel: String,
    /// Whether schedulers can be loaded (`CONFIG_SCHED_CLASS_EXT`).
    pub sched_ext: bool,
    /// Whether the kernel describes its own types (`CONFIG_DEBUG_INFO_BTF`).
    pub btf: bool,
    /// Whether there is the system call bpf().
    pub bpf: bool,
    /// Hardware PMUs of cores.
    pub pmus: Vec<String>,
    /// Whether retired instructions of threads can be counted; false until it has been tried.
    pub counts_instructions: bool,
    /// Whether stalls of threads can be counted; false until it has been tried.
    pub counts_stalls: bool,
    /// Clocks: name, governors, whether this process may set them.
    pub cpufreq: Vec<Cpufreq>,
    /// Where each cgroup controller of version 1 is mounted.
    pub cgroup_v1: BTreeMap<String, Place>,
    /// Where cgroup version 2 is mounted.
    pub cgroup_v2: Option<Place>,
    /// Where threads can be frozen; none: only by SIGSTOP.
    pub freezer: Option<Delegation>,
    /// Where trace events are; none if they are not mounted or this process may not read them.
    pub tracefs: Option<Place>,
    /// Whether waiting for a CPU is counted per thread (`CONFIG_SCHED_INFO`).
    pub run_delay: bool,
    /// Privileges of this process.
    pub privileges: Vec<String>,
    /// What sessions do that the kernel does not let everybody do, and whether it lets this process.
    pub rights: Vec<Right>,
}

/// Something that sessions do and that takes privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Right {
    /// What.
    pub what: &'static str,
    /// The capabilities that it takes, all of them.
    pub needs: &'static [&'static str],
    /// Whether this process has them.
    pub is_held: bool,
}

/// A clock that cpufreq controls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cpufreq {
    /// Its name, such as `policy0`.
    pub policy: String,
    /// Available governors.
    pub governors: Vec<String>,
    /// Whether this process may set limits.
    pub writable: bool,
}

/// Capabilities of Linux that sessions use (include/uapi/linux/capability.h), by number.
const PRIVILEGES: [(u32, &str); 8] = [
    (1, "CAP_DAC_OVERRIDE"),
    (5, "CAP_KILL"),
    (6, "CAP_SETGID"),
    (7, "CAP_SETUID"),
    (21, "CAP_SYS_ADMIN"),
    (23, "CAP_SYS_NICE"),
    (38, "CAP_PERFMON"),
    (39, "CAP_BPF"),
];

/// The right without which no policy runs in the kernel.
pub const LOAD_SCHEDULER: &str = "a scheduler in the kernel";

/// What takes privileges, and which (capabilities(7)). Nothing of it is needed for one's own processes, but that nice
/// values can only be lowered with `CAP_SYS_NICE`.
pub const RIGHTS: [(&str, &[&str]); 6] = [
    ("CPUs, nice values and classes of other users' threads", &["CAP_SYS_NICE"]),
    ("stopping other users' processes where no cgroup can freeze them", &["CAP_KILL"]),
    ("counters of other users' threads", &["CAP_PERFMON"]),
    (LOAD_SCHEDULER, &["CAP_BPF", "CAP_PERFMON"]),
    ("running a command as another user", &["CAP_SETGID", "CAP_SETUID"]),
    (
        "files of root: cgroups, cpufreq, tracefs, sensors of energy, the energy model",
        &["CAP_DAC_OVERRIDE"],
    ),
];

/// Before Linux 5.8 it was all of these.
const OLD_ADMIN: [&str; 2] = ["CAP_BPF", "CAP_PERFMON"];

impl Capabilities {
    /// What is found below a root for this process.
    pub fn detect(root: &Root) -> Self {
        let mounts = Mounts::read(root).unwrap_or_default();
        let has_events = |point: &&Place| root.has(point.join("events/sched"));
        Self {
            kernel: root.text("/proc/sys/kernel/osrelease").unwrap_or_default(),
            sched_ext: root.has("/sys/kernel/sched_ext/state"),
            btf: root.has("/sys/kernel/btf/vmlinux"),
            bpf: root.has("/proc/sys/kernel/unprivileged_bpf_disabled"),
            pmus: core_pmu_names(root),
            counts_instructions: false,
            counts_stalls: false,
            cpufreq: cpufreq(root),
            freezer: freezer(root, &mounts),
            cgroup_v1: mounts.controllers(),
            cgroup_v2: mounts.point("cgroup2").cloned(),
            tracefs: mounts.point("tracefs").filter(has_events).cloned(),
            run_delay: root.has("/proc/self/schedstat"),
            rights: rights(&privileges(root)),
            privileges: privileges(root),
        }
    }

    /// Whether this process holds a privilege.
    pub fn holds(&self, privilege: &str) -> bool {
        self.privileges.iter().any(|held| held == privilege)
    }

    /// A right that this process does not have; none if it has it.
    pub fn lacks(&self, what: &str) -> Option<&Right> {
        self.rights.iter().find(|right| right.what == what && !right.is_held)
    }

    /// Pairs of what there is and what was found, for people.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let yes_no = |there: bool| if there { "yes".to_owned() } else { "no".to_owned() };
        let list = |items: &[String]| match items.is_empty() {
            true => "none".to_owned(),
            false => items.join(", "),
        };
        let clocks: Vec<String> = self
            .cpufreq
            .iter()
            .map(|clock| {
                let may = if clock.writable { "" } else { ", not writable" };
                format!("{} ({}{may})", clock.policy, clock.governors.join(" "))
            })
            .collect();
        let place = |place: &Option<Place>| {
            place.as_ref().map_or_else(|| "none".to_owned(), Place::to_string)
        };
        let controllers: Vec<String> = self.cgroup_v1.keys().cloned().collect();
        vec![
            ("kernel", self.kernel.clone()),
            ("sched_ext", yes_no(self.sched_ext)),
            ("BPF", yes_no(self.bpf)),
            ("BTF", yes_no(self.btf)),
            ("PMU", list(&self.pmus)),
            ("cpufreq", list(&clocks)),
            ("cgroup v1", list(&controllers)),
            ("cgroup v2", place(&self.cgroup_v2)),
            ("freezer", self.describe_freezer()),
            ("tracefs", place(&self.tracefs)),
            ("waiting times", yes_no(self.run_delay)),
            ("privileges", list(&self.privileges)),
        ]
    }

    /// What takes privileges, each in a line, for people.
    pub fn rights_in_words(&self) -> Vec<String> {
        let line = |right: &Right| {
            let may = if right.is_held { "may" } else { "may not" };
            format!("{may}: {} ({})", right.what, right.needs.join(", "))
        };
        self.rights.iter().map(line).collect()
    }

    fn describe_freezer(&self) -> String {
        match &self.freezer {
            Some(Delegation { version: CgroupVersion::V1, folder }) => {
                format!("single threads, below {folder} (cgroup v1)")
            }
            Some(Delegation { version: CgroupVersion::V2, folder }) => {
                format!("whole processes, below {folder} (cgroup v2)")
            }
            None => {
                "none that this process may use: whole processes are stopped by SIGSTOP".to_owned()
            }
        }
    }
}

/// Version 1 comes first, because it can stop single threads.
fn freezer(root: &Root, mounts: &Mounts) -> Option<Delegation> {
    own_cgroups(root, mounts, "freezer")
        .into_iter()
        .find(|own| is_writable(&root.path(&own.folder)))
}

fn rights(held: &[String]) -> Vec<Right> {
    let holds = |name: &str| held.iter().any(|held| held == name);
    let has = |name: &&str| holds(name) || OLD_ADMIN.contains(name) && holds("CAP_SYS_ADMIN");
    let right = |(what, needs): (&'static str, &'static [&'static str])| Right {
        what,
        needs,
        is_held: needs.iter().all(has),
    };
    RIGHTS.into_iter().map(right).collect()
}

fn is_writable(path: &Path) -> bool {
    access(path, Access::WRITE_OK).is_ok()
}

fn cpufreq(root: &Root) -> Vec<Cpufreq> {
    const FOLDER: &str = "/sys/devices/system/cpu/cpufreq";
    let policies = root.names(FOLDER).into_iter().filter(|name| name.starts_with("policy"));
    let clock = |policy: String| {
        let governors = root.text(&format!("{FOLDER}/{policy}/scaling_available_governors"));
        Cpufreq {
            governors: governors
                .unwrap_or_default()
                .split_whitespace()
                .map(str::to_owned)
                .collect(),
            writable: is_writable(&root.path(format!("{FOLDER}/{policy}/scaling_max_freq"))),
            policy,
        }
    };
    policies.map(clock).collect()
}

fn privileges(root: &Root) -> Vec<String> {
    let status = root.text("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    let held = PRIVILEGES.iter().filter(|(bit, _)| mask >> bit & 1 == 1);
    let mut held: Vec<String> = held.map(|(_, name)| (*name).to_owned()).collect();
    held.sort();
    held
}
