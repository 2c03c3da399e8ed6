//! Demands of policies, on trees of files.

use std::fs;

use ampsched_computer::{ByHand, Capabilities, Root, detect_cores};
use ampsched_live_driver::{Backend, demands, runnable_policies};
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
    let what = |list: Vec<ampsched_live_driver::Demand>| list.into_iter().map(|d| d.what).collect();
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
