//! Replays of threads that ask for CPUs, clamps and groups, on the machine that was traced and on others.

mod common;

use std::sync::Arc;

use ampsched_model::{App, Machine, Workload};
use ampsched_policy::build_policy;
use ampsched_recording::lift::{Options as LiftOptions, lift};
use ampsched_recording::{Asks, Core, Group, Kind, Policy, Recording, read};
use ampsched_sim::{Options as SimOptions, Outcome, simulate};
use common::{Script, catalog, recording, replayed, run_on};

/// The CPUs of an exynos5422 as Linux numbers them: four little, four big.
fn of_exynos(asks: Vec<Asks>) -> Recording {
    of_scripts(asks, || Script::default().at(0, 0, Kind::Start, 0, 0).at(80, 80, Kind::Exit, 0, 0))
}

/// A thread that works for 4 ms and sleeps for 6 ms, again and again: too much for a little core.
fn heavy(asks: Asks) -> Recording {
    of_scripts(vec![asks], || {
        let begin = Script::default().at(0, 0, Kind::Start, 0, 0);
        let round = |script: Script, at| script.at(at * 10, 4, Kind::Sleep, 0, 0).waited(6);
        (1..=60_u64).fold(begin, round).at(601, 1, Kind::Exit, 0, 0)
    })
}

fn of_scripts(asks: Vec<Asks>, script: impl Fn() -> Script) -> Recording {
    let mut found = recording(asks.iter().map(|_| script()).collect());
    for (thread, asks) in found.threads.iter_mut().zip(asks) {
        thread.asks = asks;
    }
    let core = |kind: &str, speed| Core { speed, kind: kind.to_owned() };
    found.info.cores = [vec![core("cortex-a7", 0.3); 4], vec![core("cortex-a15", 1.0); 4]].concat();
    found
}

fn bound(cpus: std::ops::Range<u16>) -> Asks {
    Asks { cpus: Some(cpus.collect()), ..Asks::default() }
}

fn run(recording: &Recording, machine: &Machine, policy: &str, params: &[(&str, f64)]) -> Outcome {
    let program = Arc::new(replayed(recording).program);
    let app = App { name: "p".to_owned(), program, start_ns: 0, nice: 0 };
    let workload = Workload { name: "w".to_owned(), description: String::new(), apps: vec![app] };
    let params: Vec<(String, f64)> =
        params.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
    let policy_of = build_policy(policy, &params).unwrap();
    simulate(machine, &workload, policy, policy_of, &SimOptions::default()).unwrap()
}

/// Share of a thread's time on the fastest class of cores.
fn on_big(outcome: &Outcome, thread: usize) -> f64 {
    let thread = &outcome.threads[thread];
    *thread.class_ns.last().unwrap() as f64 / thread.run_ns().max(1) as f64
}

#[test]
fn a_group_of_the_background_stays_on_little_cores() {
    let machine = catalog().machine("exynos5422").unwrap();
    let android = [("kernel", -4.14)];
    for (policy, params) in [("linux", &[][..]), ("linux", &android), ("eas", &[]), ("gts", &[])] {
        let free = run(&of_exynos(vec![Asks::default(); 2]), &machine, policy, params);
        assert!(on_big(&free, 0) > 0.5, "{policy} {params:?}: {}", on_big(&free, 0));
        let asks = vec![bound(0..4), Asks::default()];
        let kept = run(&of_exynos(asks), &machine, policy, params);
        assert_eq!(on_big(&kept, 0), 0.0, "{policy} {params:?}");
        assert!(on_big(&kept, 1) > 0.5, "{policy} {params:?}: the other one is free");
        assert!(!kept.caveat.unwrap_or_default().contains("recorded CPUs"));
    }
}

#[test]
fn a_clamp_keeps_a_heavy_thread_small() {
    let machine = catalog().machine("exynos5422").unwrap();
    let free = run(&heavy(Asks::default()), &machine, "linux", &[]);
    let clamp = Asks { uclamp_max: Some(100), ..Asks::default() };
    let kept = run(&heavy(clamp.clone()), &machine, "linux", &[]);
    assert!(on_big(&free, 0) > 0.5, "{}", on_big(&free, 0));
    assert!(on_big(&kept, 0) < 0.1, "{}", on_big(&kept, 0));
    // So does that of its group.
    let mut grouped = heavy(Asks { group: Some(0), ..Asks::default() });
    let group = Group { path: "/background".to_owned(), uclamp_max: Some(100), ..Group::default() };
    grouped.info.groups = vec![group];
    assert!(on_big(&run(&grouped, &machine, "linux", &[]), 0) < 0.1);
    // A policy without clamps says so.
    for recording in [heavy(clamp), grouped] {
        let caveat = run_on(&machine, &replayed(&recording), "cfs").unwrap().caveat.unwrap();
        assert!(caveat.contains("utilisation clamps (1 thread)"), "{caveat}");
    }
}

#[test]
fn shares_of_groups_are_honoured() {
    let machine = catalog().machine("sym-2").unwrap();
    let in_group = |group| Asks { group: Some(group), cpus: Some(vec![0]), ..Asks::default() };
    let mut found = of_exynos(vec![in_group(0), in_group(1)]);
    found.info.cores = vec![Core { speed: 1.0, kind: String::new() }; 2];
    let group = |path: &str, shares| Group {
        path: path.to_owned(),
        shares: Some(shares),
        ..Group::default()
    };
    found.info.groups = vec![group("/top-app", 1024), group("/background", 102)];
    let outcome = run(&found, &machine, "linux", &[]);
    let end_ns = |thread: usize| outcome.threads[thread].end_ns as f64;
    assert!(end_ns(0) < 0.6 * end_ns(1), "{} {}", end_ns(0), end_ns(1));
}

#[test]
fn masks_become_those_of_another_machine_or_are_dropped_and_named() {
    let shipped = catalog();
    for name in ["2B2S", "pixel"] {
        let machine = shipped.machine(name).unwrap();
        let asks = vec![bound(0..4), bound(4..8), bound(1..3)];
        let outcome = run(&of_exynos(asks), &machine, "gts", &[]);
        assert_eq!(outcome.threads[0].class_ns[1..].iter().sum::<u64>(), 0, "{name}: little");
        assert!(on_big(&outcome, 1) > 0.99, "{name}: big");
        let caveat = outcome.caveat.unwrap();
        let named =
            "1 threads use all cores: the machine has none that stand for their recorded CPUs";
        assert!(caveat.contains(named), "{name}: {caveat}");
    }
    // There are no little cores to be kept on.
    let big = shipped.machine("exynos5422").unwrap().all_big();
    assert!(run(&of_exynos(vec![bound(0..4)]), &big, "cfs", &[]).threads[0].end_ns > 0);
}

#[test]
fn what_threads_ask_for_is_lifted() {
    let mut asks = bound(0..4);
    (asks.uclamp_max, asks.policy, asks.group) = (Some(300), Some(Policy::Rr), Some(0));
    let mut found = of_exynos(vec![Asks::default(), asks]);
    (found.threads[0].prio, found.threads[1].prio) = (Some(130), Some(97));
    let group = Group { path: "/a \"b\"".to_owned(), shares: Some(102), ..Group::default() };
    found.info.groups = vec![group];
    let toml = lift(&found, &LiftOptions::default()).toml;
    for text in [
        "nice = 10\n",
        "class = \"rr\"\npriority = 2\ncores = [0, 1, 2, 3]\nuclamp_max = 300\ngroup = \"/a \\\"b\\\"\"\n",
        "[groups.\"/a \\\"b\\\"\"]\nshares = 102\n",
    ] {
        assert!(toml.contains(text), "no {text}\n{toml}");
    }
    let program = ampsched_model::parse_program("p.toml", &toml).unwrap();
    let program = program.instantiate(&[], catalog().profiles()).unwrap();
    assert_eq!(program.threads[1].affinity.as_ref().map(|cores| cores.len()), Some(4));
    assert_eq!(program.threads[1].attrs.uclamp_max, Some(300));
}

#[test]
fn a_file_whose_threads_ask_for_what_there_is_not_is_refused() {
    let written = |change: &dyn Fn(&mut Recording)| {
        let mut found = of_exynos(vec![Asks::default()]);
        found.info.groups = vec![Group { path: "/a".to_owned(), ..Group::default() }];
        change(&mut found);
        read("r.ampr", &found.to_bytes()).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(written(&|found| found.threads[0].asks.group = Some(0)), Ok(()));
    type Change<'a> = (&'a dyn Fn(&mut Recording), &'a str);
    let change: [Change<'_>; 6] = [
        (&|found| found.threads[0].asks.group = Some(1), "a thread of group 1; there are 1"),
        (&|found| found.threads[0].asks.uclamp_min = Some(1025), "a utilisation clamp of 1025"),
        (&|found| found.threads[0].asks.cpus = Some(vec![8192]), "a mask with CPU 8192"),
        (&|found| found.info.groups[0].path.clear(), "the group \"\": a group's path begins"),
        (&|found| found.info.groups[0].shares = Some(1), "a share of 1 of /a"),
        (&|found| found.info.groups[0].uclamp_max = Some(2000), "a utilisation clamp of 2000"),
    ];
    for (change, text) in change {
        let error = written(change).unwrap_err();
        assert!(error.starts_with("r.ampr: threads: ") && error.contains(text), "{text}: {error}");
    }
}
