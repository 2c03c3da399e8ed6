//! COLAB's motivating example (CGO 2020, Figure 1) on one big and one little core.
//!
//! The figure gives no amounts; these are ours, in ms on the little core. alpha1: 6, speed-up 3, holds
//! up alpha2; gamma: 6, speed-up 3; beta1: 2, speed-up 1.2, holds up beta2; alpha2 and beta2: 3,
//! speed-up 1.2. Labels and ranks are given, so the example shows what the fast plane makes of them;
//! that COLAB gives these threads these labels is tested with the policy.

mod common;

use std::sync::Arc;

use ampsched_model::{App, Profile, ProfileLibrary, Workload, parse_program};
use ampsched_policy::{
    Change, Event, Events, Needs, Plan, Policy, Prefer, Rules, Topology, View, build_policy,
};
use ampsched_sim::{AppTimes, Comparison, Options, Outcome, compare, simulate};
use common::{Host, split_policy, unit_profile};

const ALPHA: (&str, &str) = ("alpha", "run_us=2000,profile='sensitive'");
const BETA: (&str, &str) = ("beta", "run_us=1666.667,profile='insensitive'");

/// A program whose second thread starts when the first has ended.
fn two_stages((name, work): (&str, &str)) -> App {
    let text = format!(
        "[[threads]]\nname='{name}1'\nbody=[{{{work}}},{{fork='{name}2'}}]\n\
         [[threads]]\nname='{name}2'\ncount=0\nbody=[{{run_us=2500,profile='insensitive'}}]"
    );
    app(name, &text)
}

fn app(name: &str, text: &str) -> App {
    let profile = |name: &str, ratio| Profile {
        name: name.into(),
        measured_ratio: Some(ratio),
        ..unit_profile()
    };
    let profiles = vec![profile("sensitive", 3.0), profile("insensitive", 1.2)];
    let text = format!("name='{name}'\ndescription='test'\n{text}");
    let program = parse_program("test.toml", &text)
        .and_then(|template| template.instantiate(&[], &ProfileLibrary { profiles }))
        .unwrap_or_else(|error| panic!("{error}"));
    App { name: name.into(), program: Arc::new(program), start_ns: 0, nice: 0 }
}

fn figure_1() -> Workload {
    let gamma = app("gamma", "[[threads]]\nname='gamma'\nbody=[{run_us=2000,profile='sensitive'}]");
    Workload {
        name: "figure-1".into(),
        description: String::new(),
        apps: vec![two_stages(ALPHA), two_stages(BETA), gamma],
    }
}

/// A policy's fast plane with a plan that is given for each application's first and later threads.
struct Given {
    rules: Box<dyn Policy>,
    plan: fn(usize, bool, &Topology) -> Vec<Change>,
    seen: [bool; 3],
}

impl Policy for Given {
    fn needs(&self) -> Needs {
        Needs { events: Events { lifecycle: true, ..Events::default() }, ..Needs::default() }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        self.rules.rules(topology)
    }

    fn on_event(&mut self, view: &View, event: Event, plan: &mut Plan) {
        let Event::Added(thread) = event else { return };
        let app = view.app(thread).index();
        let first = !std::mem::replace(&mut self.seen[app], true);
        for change in (self.plan)(app, first, view.topology()) {
            plan.set(thread, change);
        }
    }
}

/// WASH: alpha1, beta1 and gamma are critical or gain much, and are bound to the big core.
fn wash(_app: usize, first: bool, topology: &Topology) -> Vec<Change> {
    if first { vec![Change::Affinity(topology.big_cores().collect())] } else { Vec::new() }
}

/// COLAB: alpha1 and gamma gain much; beta1 gains little but is waited for; the others neither.
fn colab(app: usize, first: bool, _topology: &Topology) -> Vec<Change> {
    let (prefer, speedup) = match (app, first) {
        (0 | 2, true) => (Prefer::Big, 3.0),
        (1, true) => (Prefer::Any, 1.2),
        _ => (Prefer::Little, 1.2),
    };
    let rank = u64::from(first && app != 2);
    vec![
        Change::Prefer(prefer),
        Change::Rank(rank),
        Change::Speed([1.0, speedup, speedup, speedup]),
    ]
}

fn run(policy: &str, plan: fn(usize, bool, &Topology) -> Vec<Change>) -> Outcome {
    let (name, params) = split_policy(policy);
    let given = Given { rules: build_policy(name, &params).unwrap(), plan, seen: [false; 3] };
    let host = Host::unequal(1, 1, 1.0);
    let outcome = simulate(&host.machine, &figure_1(), name, Box::new(given), &host.options);
    outcome.unwrap_or_else(|error| panic!("{policy}: {error}"))
}

/// Turnaround of each application alone on two big cores.
fn alone_ns() -> Vec<u64> {
    let (machine, workload) = (Host::unequal(1, 1, 1.0).machine.all_big(), figure_1());
    let alone = |index: usize| {
        let policy = build_policy("cfs", &[]).unwrap();
        let outcome =
            simulate(&machine, &workload.alone(index), "cfs", policy, &Options::default());
        outcome.unwrap().apps[0].turnaround_ns
    };
    (0..3).map(alone).collect()
}

fn metrics(outcome: &Outcome) -> Comparison {
    let times = outcome.apps.iter().zip(alone_ns());
    let times = times.map(|(app, alone_ns)| AppTimes { mix_ns: app.turnaround_ns, alone_ns });
    compare(&times.collect::<Vec<_>>())
}

fn assert_near(found: f64, expected: f64, what: &str) {
    assert!((found / expected - 1.0).abs() < 0.01, "{what}: {found}, expected {expected}");
}

/// Turnarounds of alpha, beta and gamma in ms, and H_ANTT.
fn assert_outcome(outcome: &Outcome, turnarounds_ms: [f64; 3], h_antt: f64) {
    for (app, expected) in outcome.apps.iter().zip(turnarounds_ms) {
        assert_near(app.turnaround_ns as f64 / 1e6, expected, &app.name);
    }
    assert_near(metrics(outcome).h_antt, h_antt, "H_ANTT");
}

#[test]
fn references_on_big_cores_only() {
    for (found, expected) in alone_ns().into_iter().zip([4.5, 4.167, 2.0]) {
        assert_near(found as f64 / 1e6, expected, "alone");
    }
}

#[test]
fn wash_crowds_the_big_core() {
    let fine = "wash:latency_ms=0.03:min_granularity_ms=0.01:wakeup_granularity_ms=0.01";
    let outcome = run(fine, wash);
    assert_outcome(&outcome, [8.167, 8.0, 5.667], 2.189);
    assert_near(metrics(&outcome).h_stp, 1.425, "H_STP");
    // The little core has nothing to do until beta2 starts.
    assert_near(outcome.cores[1].idle_ns as f64 / 1e6, 5.0 + 0.167, "idle time of the little core");
}

#[test]
fn colab_keeps_both_cores_busy() {
    let outcome = run("colab", colab);
    assert_outcome(&outcome, [5.0, 6.5, 4.0], 1.557);
    assert_near(metrics(&outcome).h_stp, 2.041, "H_STP");
}

/// Without the step that takes waiting threads of the little core, the big one pulls alpha2 at 4, with
/// 1 left. At 4.833 it is idle again and pulls beta2, with 2.167 left, which so ends at 6.639.
#[test]
fn strict_algorithm_1_pulls_running_threads() {
    assert_outcome(&run("colab:strict=1", colab), [4.833, 6.639, 4.0], 1.556);
}

/// The same if beta2 is predicted not to gain by a second pull.
#[test]
fn strict_algorithm_1_leaves_alone_what_does_not_gain() {
    fn beta2_does_not_gain(app: usize, first: bool, topology: &Topology) -> Vec<Change> {
        let mut changes = colab(app, first, topology);
        if app == 1 && !first {
            changes.push(Change::Speed([1.0; 4]));
        }
        changes
    }
    let outcome = run("colab:strict=1", beta2_does_not_gain);
    assert_outcome(&outcome, [4.833, 7.0, 4.0], 1.585);
}
