//! Capabilities and demands: on trees of files, and on the system that runs the test.

use std::fs;

use ampsched_live_host::{
    Backend, ByHand, Capabilities, CgroupVersion, Root, demands, detect_cores, runnable_policies,
};
use ampsched_policy::build_policy;
use tempfile::TempDir;

fn tree(files: &[(&str, &str)]) -> (TempDir, Root) {
    let folder = TempDir::new().unwrap();
    let cpu = "sys/devices/system/cpu";
    let basic = [
        (format!("{cpu}/online"), "0-3"),
        ("proc/sys/kernel/osrelease".to_owned(), "6.18.15\n"),
        ("proc/self/cgroup".to_owned(), "3:freezer:/a\n0::/b\n"),
    ];
    let given = files.iter().map(|&(name, text)| (name.to_owned(), text));
    for (name, text) in basic.into_iter().chain(given) {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let root = Root::new(folder.path());
    (folder, root)
}

const V2: (&str, &str) =
    ("proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\nproc /proc proc rw 0 0\n");
const BOTH: (&str, &str) = (
    "proc/self/mounts",
    "cgroup /sys/fs/cgroup/freezer cgroup rw,freezer 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
);

#[test]
fn version_1_can_freeze_threads_and_comes_first() {
    let (_folder, root) = tree(&[
        BOTH,
        ("sys/fs/cgroup/freezer/a/tasks", ""),
        ("sys/fs/cgroup/unified/b/cgroup.procs", ""),
    ]);
    let freezer = Capabilities::detect(&root).freezer.unwrap();
    assert_eq!(freezer.version, CgroupVersion::V1);
    assert_eq!(freezer.folder, "/sys/fs/cgroup/freezer/a");
}

#[test]
fn version_2_stands_in() {
    let (_folder, root) = tree(&[V2, ("sys/fs/cgroup/b/cgroup.procs", "")]);
    let found = Capabilities::detect(&root);
    let freezer = found.freezer.clone().unwrap();
    assert_eq!((freezer.version, freezer.folder.as_str()), (CgroupVersion::V2, "/sys/fs/cgroup/b"));
    let rows = found.rows();
    assert!(
        rows.contains(&("freezer", "whole processes, below /sys/fs/cgroup/b (cgroup v2)".into()))
    );
}

#[test]
fn without_cgroups_there_is_sigstop() {
    let (_folder, root) = tree(&[]);
    let found = Capabilities::detect(&root);
    assert_eq!(found.freezer, None);
    assert!(!found.sched_ext && !found.btf && !found.bpf && !found.run_delay);
    let row = found.rows().into_iter().find(|row| row.0 == "freezer").unwrap();
    assert!(row.1.contains("SIGSTOP"), "{}", row.1);
}

#[test]
fn what_a_kernel_has_is_found() {
    let (_folder, root) = tree(&[
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
    let found = Capabilities::detect(&root);
    assert!(found.sched_ext && found.btf && found.bpf);
    assert_eq!(found.pmus, ["cpu_core"]);
    assert_eq!(found.cpufreq[0].governors, ["powersave", "userspace"]);
    assert_eq!(found.tracefs.as_deref(), Some("/sys/kernel/tracing"));
    assert_eq!(found.privileges, ["CAP_SYS_NICE"]);
    assert!(found.holds("CAP_SYS_NICE") && !found.holds("CAP_KILL"));
}

/// What is essential and what is not of a policy's demands to the daemon, on a system of two fast and two slow
/// CPUs without anything else.
fn asked(policy: &str) -> (Vec<String>, Vec<String>) {
    let (_folder, root) = tree(&[V2, ("sys/fs/cgroup/b/cgroup.procs", "")]);
    let by_hand = ByHand { classes: vec!["2-3".into(), "0-1".into()], ratios: Vec::new() };
    let (cores, _) = detect_cores(&root, &by_hand).unwrap();
    let policy = build_policy(policy, &[]).unwrap();
    let found = Capabilities::detect(&root);
    let list = demands(Backend::Daemon, policy.as_ref(), cores.topology(), &found, true);
    let (essential, notes): (Vec<_>, Vec<_>) =
        list.into_iter().partition(|demand| demand.is_essential);
    let what = |list: Vec<ampsched_live_host::Demand>| list.into_iter().map(|d| d.what).collect();
    (what(essential), what(notes))
}

#[test]
fn the_daemon_runs_policies_of_assignment() {
    for policy in ["hsp", "prop-sp", "min-fair", "wash", "gts", "max-fair", "uniformity"] {
        assert_eq!(asked(policy).0, Vec::<String>::new(), "{policy}");
    }
}

#[test]
fn the_daemon_refuses_what_only_a_kernel_can_do() {
    let colab = asked("colab").0;
    assert!(
        colab.contains(&"serves the waiting thread of the highest rank".to_owned()),
        "{colab:?}"
    );
    assert!(colab.contains(&"shortens slices on faster cores".to_owned()), "{colab:?}");
    let eas = asked("eas").0;
    assert!(eas.contains(&"decides by itself where each waking thread goes".to_owned()), "{eas:?}");
    assert!(asked("rr").0.iter().any(|what| what.starts_with("gives slices of ")));
    assert!(asked("a-dwrr").0.contains(&"serves threads round by round".to_owned()));
}

#[test]
fn hfee_needs_clocks_and_a_freezer() {
    let (essential, notes) = asked("hfee");
    assert_eq!(essential, ["sets the clocks of clusters"]);
    assert!(notes.contains(&"holds single threads back".to_owned()), "{notes:?}");
}

#[test]
fn a_kernel_without_sched_ext_is_named() {
    let (_folder, root) = tree(&[]);
    let (cores, _) = detect_cores(&root, &ByHand::default()).unwrap();
    let found = Capabilities::detect(&root);
    let policy = build_policy("colab", &[]).unwrap();
    let list = demands(Backend::Scx, policy.as_ref(), cores.topology(), &found, true);
    assert_eq!(list[0].instead, "6.18.15 has none");
    assert!(runnable_policies(Backend::Scx, cores.topology(), &found, true).is_empty());
    let runnable = runnable_policies(Backend::Daemon, cores.topology(), &found, true);
    assert!(runnable.contains(&"hsp") && !runnable.contains(&"colab"), "{runnable:?}");
}
