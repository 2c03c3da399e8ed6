//! Demands of policies, on trees of files.

use std::fs;

use ampsched_computer::{ByHand, Capabilities, Root, detect_cores};
use ampsched_live_driver::{Backend, Choices, Dilation, demands, runnable_policies};
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
const NOTHING: [[String; 2]; 0] = [];
const WITH_CLOCKS: Choices = Choices { dvfs: true, dilation: Dilation::REAL };

/// What is essential and what is not of a policy's demands to the daemon, on a system of two fast and two slow
/// CPUs without anything else.
fn asked(policy: &str) -> (Vec<String>, Vec<String>) {
    let (_folder, root) = tree(&[V2, ("sys/fs/cgroup/b/cgroup.procs", "")]);
    let by_hand = ByHand { classes: vec!["2-3".into(), "0-1".into()], ratios: Vec::new() };
    let (cores, _) = detect_cores(&root, &by_hand).unwrap();
    let policy = build_policy(policy, &[]).unwrap();
    let found = Capabilities::detect(&root);
    let list = demands(Backend::Daemon, policy.as_ref(), cores.topology(), &found, WITH_CLOCKS);
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
    assert!(asked("rr").0.iter().any(|what| what.starts_with("gives slices of ")));
    assert!(asked("a-dwrr").0.contains(&"serves threads round by round".to_owned()));
}

/// They are those that never plan anything, whatever else they lack.
#[test]
fn h34_who_asks_the_daemon_for_nothing_is_told() {
    let is_told = |name: &str| asked(name).1.iter().any(|what| what.starts_with("is rules only"));
    for policy in ["linux", "cfs", "eevdf"] {
        assert!(is_told(policy), "{policy}");
    }
    for policy in ["hsp", "gts", "wash", "abreast", "colab"] {
        assert!(!is_told(policy), "{policy}");
    }
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
    let list = demands(Backend::Scx, policy.as_ref(), cores.topology(), &found, WITH_CLOCKS);
    assert_eq!(list[0].instead, "6.18.15 does not");
    assert!(runnable_policies(Backend::Scx, cores.topology(), &found, WITH_CLOCKS).is_empty());
    let runnable = runnable_policies(Backend::Daemon, cores.topology(), &found, WITH_CLOCKS);
    assert!(runnable.contains(&"hsp") && !runnable.contains(&"colab"), "{runnable:?}");
}

#[test]
fn a_kernel_that_cannot_load_the_programs_is_named() {
    let lacks = |release: &str| {
        let state = ("sys/kernel/sched_ext/state", "disabled");
        let (_folder, root) = tree(&[("proc/sys/kernel/osrelease", release), state]);
        let (cores, _) = detect_cores(&root, &ByHand::default()).unwrap();
        let policy = build_policy("cfs", &[]).unwrap();
        let found = Capabilities::detect(&root);
        let list = demands(Backend::Scx, policy.as_ref(), cores.topology(), &found, WITH_CLOCKS);
        list.iter().any(|lack| lack.is_essential && lack.what.contains("loads schedulers"))
    };
    assert!(lacks("6.12.94") && lacks("6.14.0-37-generic"));
    assert!(!lacks("6.15.1") && !lacks("6.18.15+deb13-cloud-amd64") && !lacks("7.0.13"));
}

#[test]
fn what_the_verifier_of_an_old_kernel_crashes_at_is_refused() {
    let lacks = |name: &str, release: &str| {
        let (_folder, root) = tree(&[("proc/sys/kernel/osrelease", release)]);
        let (cores, _) = detect_cores(&root, &ByHand::default()).unwrap();
        let policy = build_policy(name, &[]).unwrap();
        let found = Capabilities::detect(&root);
        let list = demands(Backend::Scx, policy.as_ref(), cores.topology(), &found, WITH_CLOCKS);
        list.iter().any(|lack| lack.is_essential && lack.what == "orders queues by deadlines")
    };
    assert!(lacks("eevdf", "6.16.12+deb13-cloud-amd64"));
    assert!(lacks("eevdf", "6.12.94"));
    assert!(!lacks("cfs", "6.16.12+deb13-cloud-amd64"));
    for mended in ["6.18.15+deb13-cloud-amd64", "6.18", "7.0.13", "7.3-rc1", "strange"] {
        assert!(!lacks("eevdf", mended), "{mended}");
    }
}

#[test]
fn low_more_cpus_than_the_kernel_s_programs_have_room_for_leave_the_daemon() {
    let lacks = |online: &str| {
        let (_folder, root) = tree(&[V2, ("sys/devices/system/cpu/online", online)]);
        let (cores, _) = detect_cores(&root, &ByHand::default()).unwrap();
        let policy = build_policy("rr", &[]).unwrap();
        let found = Capabilities::detect(&root);
        demands(Backend::Scx, policy.as_ref(), cores.topology(), &found, Choices::default())
    };
    let of_cpus = |online: &str| {
        let found = lacks(online).into_iter().find(|lack| lack.what.contains("at most 512 CPUs"));
        found.map(|lack| (lack.instead, lack.is_essential))
    };
    assert_eq!(of_cpus("0-512"), Some(("this one has 513".to_owned(), true)));
    assert_eq!(of_cpus("0-510,8191"), None);
}

/// What the back ends say about turns of a policy's whose time passes slower.
fn of_turns(
    backend: Backend,
    policy: &str,
    params: &[(&str, f64)],
    dilation: f64,
) -> Vec<[String; 2]> {
    let (_folder, root) = tree(&[V2]);
    let by_hand = ByHand { classes: vec!["2-3".into(), "0-1".into()], ratios: Vec::new() };
    let (cores, _) = detect_cores(&root, &by_hand).unwrap();
    let found = Capabilities::detect(&root);
    let params: Vec<_> = params.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
    let policy = build_policy(policy, &params).unwrap();
    let choices = Choices { dilation: Dilation::new(dilation).unwrap(), ..WITH_CLOCKS };
    let list = demands(backend, policy.as_ref(), cores.topology(), &found, choices);
    let of_turns = list.into_iter().filter(|demand| demand.what.contains(" turns of "));
    let said = of_turns.map(|demand| {
        assert!(demand.is_essential);
        [demand.what, demand.instead]
    });
    said.collect()
}

#[test]
fn m14_slices_that_are_over_before_a_switch_are_refused_where_they_count() {
    let of_slices = |backend, slice_ms| of_turns(backend, "rr", &[("slice_ms", slice_ms)], 1.0);
    let what = "gives turns of 1000 ns".to_owned();
    let instead = "to switch to a thread takes 2000 ns; give longer slices".to_owned();
    assert_eq!(of_slices(Backend::Scx, 0.001), [[what, instead]]);
    assert_eq!(of_slices(Backend::Scx, 1.0), NOTHING);
    // It refuses fixed slices anyway, whatever their length.
    assert_eq!(of_slices(Backend::Daemon, 0.001), NOTHING);
}

#[test]
fn m14_slices_count_as_long_as_they_really_are() {
    let is_refused = |slice_ms, dilation| {
        !of_turns(Backend::Scx, "rr", &[("slice_ms", slice_ms)], dilation).is_empty()
    };
    assert!(is_refused(0.001, 1.0) && !is_refused(0.001, 10.0));
    assert!(!is_refused(1.0, 1.0) && is_refused(1.0, 0.001));
}

#[test]
fn m14_rounds_shorter_than_a_switch_on_fast_cores_are_refused() {
    let of_rounds =
        |rating| of_turns(Backend::Scx, "a-dwrr", &[("round_ms", 0.01), ("rating", rating)], 1.0);
    let what = "gives turns of 2000 ns".to_owned();
    let instead = "to switch to a thread takes 2000 ns; give longer rounds".to_owned();
    assert_eq!(of_rounds(5.0), [[what, instead]]);
    assert_eq!(of_rounds(4.0), NOTHING);
}
