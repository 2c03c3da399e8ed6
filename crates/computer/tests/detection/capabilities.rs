//! What a kernel can do and this process may, on trees of files.

use ampsched_computer::{Capabilities, CgroupVersion, Delegation};

use crate::tree::Tree;

/// What is found of four CPUs and some files.
fn detect(files: &[(&str, &str)]) -> Capabilities {
    let tree = Tree::new("0-3")
        .file("proc/sys/kernel/osrelease", "6.18.15")
        .file("proc/self/cgroup", "3:freezer:/a\n0::/b");
    let tree = files.iter().fold(tree, |tree, (name, text)| tree.file(name, text));
    Capabilities::detect(&tree.root())
}

const V2: (&str, &str) =
    ("proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\nproc /proc proc rw 0 0\n");
const BOTH: (&str, &str) = (
    "proc/self/mounts",
    "cgroup /sys/fs/cgroup/freezer cgroup rw,freezer 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
);

#[test]
fn version_1_can_freeze_threads_and_comes_first() {
    let found = detect(&[
        BOTH,
        ("sys/fs/cgroup/freezer/a/tasks", ""),
        ("sys/fs/cgroup/unified/b/cgroup.procs", ""),
    ]);
    let freezer = found.freezer.unwrap();
    assert_eq!(freezer.version, CgroupVersion::V1);
    assert_eq!(freezer.folder, "/sys/fs/cgroup/freezer/a".into());
}

#[test]
fn version_2_stands_in() {
    let found = detect(&[V2, ("sys/fs/cgroup/b/cgroup.procs", "")]);
    let freezer = found.freezer.clone().unwrap();
    assert_eq!((freezer.version, freezer.folder), (CgroupVersion::V2, "/sys/fs/cgroup/b".into()));
    let rows = found.rows();
    assert!(
        rows.contains(&("freezer", "whole processes, below /sys/fs/cgroup/b (cgroup v2)".into()))
    );
}

#[test]
fn the_cgroup_of_a_controller_is_found_in_either_interface() {
    let of_cpu = |mounts: &str, own: &str| {
        let tree = Tree::new("0").file("proc/self/mounts", mounts).file("proc/self/cgroup", own);
        let found = Delegation::of_controller(&tree.root(), "cpu");
        found.map(|found| (found.version, found.folder))
    };
    let v1 = "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n\
              cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n";
    let own = "7:cpuset:/x\n4:cpu,cpuacct:/user/me\n0::/unified/me\n";
    let expected = (CgroupVersion::V1, "/sys/fs/cgroup/cpu,cpuacct/user/me".into());
    assert_eq!(of_cpu(&format!("{}{v1}", V2.1), own), Some(expected));
    let expected = (CgroupVersion::V2, "/sys/fs/cgroup/user.slice/run.scope".into());
    assert_eq!(of_cpu(V2.1, "0::/user.slice/run.scope"), Some(expected));
    assert_eq!(of_cpu(V2.1, "0::/"), Some((CgroupVersion::V2, "/sys/fs/cgroup".into())));
    assert_eq!(of_cpu("proc /proc proc rw 0 0", own), None);
}

#[test]
fn without_cgroups_there_is_sigstop() {
    let found = detect(&[]);
    assert_eq!(found.freezer, None);
    assert!(!found.sched_ext && !found.btf && !found.bpf && !found.run_delay);
    let row = found.rows().into_iter().find(|row| row.0 == "freezer").unwrap();
    assert!(row.1.contains("SIGSTOP"), "{}", row.1);
}

#[test]
fn what_a_kernel_has_is_found() {
    let found = detect(&[
        ("proc/self/mounts", "tracefs /sys/kernel/tracing tracefs rw 0 0\n"),
        ("sys/kernel/tracing/events/sched/enable", "0"),
        ("sys/kernel/sched_ext/state", "disabled"),
        ("sys/kernel/btf/vmlinux", ""),
        ("proc/sys/kernel/unprivileged_bpf_disabled", "2"),
        ("sys/bus/event_source/devices/cpu_core/type", "4"),
        ("sys/bus/event_source/devices/uprobe/type", "8"),
        (
            "sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors",
            "powersave userspace\n",
        ),
        ("sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq", "1000"),
        ("proc/self/status", "Name:\tx\nCapEff:\t0000000000800000\n"),
    ]);
    assert!(found.sched_ext && found.btf && found.bpf);
    assert_eq!(found.pmus, ["cpu_core"]);
    assert_eq!(found.cpufreq[0].governors, ["powersave", "userspace"]);
    assert_eq!(found.tracefs, Some("/sys/kernel/tracing".into()));
    assert_eq!(found.privileges, ["CAP_SYS_NICE"]);
    assert!(found.holds("CAP_SYS_NICE") && !found.holds("CAP_KILL"));
}

#[test]
fn rights_name_the_capabilities_that_they_take() {
    let of = |mask: &str| {
        let status = format!("Name:\tx\nCapEff:\t{mask}\n");
        let found = detect(&[("proc/self/status", &status)]);
        let held = found.rights.into_iter().filter(|right| right.is_held);
        held.map(|right| right.what).collect::<Vec<_>>()
    };
    assert_eq!(of("0000000000800000"), ["CPUs, nice values and classes of other users' threads"]);
    assert_eq!(
        of("000000c000000000"),
        ["counters of other users' threads", "a scheduler in the kernel"]
    );
    assert_eq!(of("0000000000200000"), of("000000c000000000"), "before Linux 5.8");
    assert_eq!(of("000001ffffffffff").len(), 6);
    assert!(of("0").is_empty());
    let lines = detect(&[]).rights_in_words();
    assert!(
        lines.contains(&"may not: a scheduler in the kernel (CAP_BPF, CAP_PERFMON)".to_owned())
    );
}
