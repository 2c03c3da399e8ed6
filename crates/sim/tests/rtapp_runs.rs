//! What rt-app files do when they run: periods of timers, and what work is calibrated with.

mod common;

use ampsched_model::{App, Machine, Workload, import_rtapp};
use ampsched_policy::build_policy;
use ampsched_sim::{Options, Outcome, SimError, simulate};
use common::shipped_catalog;

fn workload(text: &str) -> Workload {
    let program = import_rtapp("f.json", text).unwrap().program.into();
    let app = App { name: "f".into(), program, start_ns: 0, nice: 0 };
    Workload { name: "f".into(), description: String::new(), apps: vec![app] }
}

fn try_run(machine: &Machine, text: &str, policy: &str) -> Result<Outcome, SimError> {
    let policy_object = build_policy(policy, &[]).unwrap();
    simulate(machine, &workload(text), policy, policy_object, &Options::default())
}

fn hikey960() -> Machine {
    shipped_catalog().machine("hikey960").unwrap()
}

/// A task with a timer of its own, and what stands in its body.
fn task(rounds: u32, more: &str, body: &str) -> String {
    format!("{{ \"tasks\" : {{ \"t\" : {{ {more} \"loop\" : {rounds}, {body} }} }} }}")
}

const TIMER: &str = r#""timer" : { "ref" : "unique", "period" : 16000 }"#;

/// 34.10: what comes before the first wait is no period, wherever the timer stands and however long its thread took to
/// come to it; so a thread that always ends in time has missed nothing.
#[test]
fn h34_10_setting_a_timer_is_no_period() {
    let mut cases: Vec<(u64, String)> = Vec::new();
    for (instances, rounds, mode) in
        [(1_u32, 10, "relative"), (3, 100, "absolute"), (2, 2, "relative")]
    {
        let more = format!("\"instance\" : {instances},");
        let timer = TIMER.replace("}", &format!(", \"mode\" : \"{mode}\" }}"));
        let count = u64::from(instances * (rounds - 1));
        cases.push((count, task(rounds, &more, &format!("\"run\" : 1000, {timer}"))));
        cases.push((count, task(rounds, &more, &format!("{timer}, \"run\" : 1000"))));
    }
    // A wait for either of two timers ends a period; and one that begins late.
    let second = TIMER.replace("unique", "unique2");
    cases.push((19, task(10, "", &format!("\"run\" : 1000, {TIMER}, \"run0\" : 1000, {second}"))));
    let phases = format!(
        r#""phases" : {{ "a" : {{ "run" : 9000 }}, "b" : {{ "loop" : 5, "run" : 1000, {TIMER} }} }}"#
    );
    cases.push((4, task(1, "", &phases)));
    for (count, text) in cases {
        let outcome = try_run(&hikey960(), &text, "linux").unwrap();
        let told = outcome.apps[0].periods.as_ref().unwrap_or_else(|| panic!("{text}"));
        assert_eq!((told.count, told.missed), (count, 0), "{text}: {told:?}");
        assert!(told.slack_min_ns > 5_000_000, "{text}: {told:?}");
    }
}

/// 34.10: the first period of a deadline thread begins when it does, and is counted once.
#[test]
fn h34_10_deadline_threads_have_as_many_periods_as_waits() {
    let more =
        r#""policy" : "SCHED_DEADLINE", "dl-runtime" : 5000, "dl-period" : 16000, "instance" : 2,"#;
    let text = task(125, more, &format!("\"run\" : 1000, {TIMER}"));
    let outcome = try_run(&hikey960(), &text, "linux").unwrap();
    let told = outcome.apps[0].periods.as_ref().unwrap();
    assert_eq!((told.count, told.missed), (250, 0), "{told:?}");
}

fn calibrated(cpu: &str) -> String {
    let work = format!("\"run\" : 9000, {TIMER}");
    let text = task(20, "", &work);
    text.replacen("{ \"tasks\"", &format!("{{ \"global\" : {{ {cpu} }}, \"tasks\""), 1)
}

/// 34.10: work is that which the CPU of the calibration does in that time, CPU 0 if none is stated.
#[test]
fn h34_10_run_is_calibrated_on_its_cpu() {
    let machine = hikey960();
    let work = |text: &str| -> u64 {
        let outcome = try_run(&machine, text, "linux").unwrap();
        outcome.threads.iter().map(|thread| thread.instructions).sum()
    };
    let of = |cpu: u32| work(&calibrated(&format!("\"calibration\" : \"CPU{cpu}\"")));
    let little = of(0);
    assert_eq!(little, work(&calibrated("")));
    for core in machine.clusters.iter().flat_map(|cluster| &cluster.cores) {
        let is_big = machine.cluster_of(*core) == machine.cluster_of(machine.top().cores[0]);
        assert_eq!(of(core.0.into()) > little, is_big, "core {}", core.0);
    }
    // A loop time says nothing of this machine: the fastest core.
    assert_eq!(work(&calibrated("\"calibration\" : 128")), of(7));
}

/// 34.10: nor does the work change on machines that are made of that one, as for baselines.
#[test]
fn h34_10_calibrated_work_is_the_same_on_other_machines() {
    let machine = hikey960();
    let text = calibrated("\"calibration\" : \"CPU0\"");
    let sum = |machine: &Machine, workload: &Workload| -> u64 {
        let policy = build_policy("cfs", &[]).unwrap();
        let outcome = simulate(machine, workload, "cfs", policy, &Options::default()).unwrap();
        outcome.threads.iter().map(|thread| thread.instructions).sum()
    };
    let stated = sum(&machine, &workload(&text));
    for order in [true, false] {
        let ordered = machine.ordered(order);
        let bound = workload(&text).renumbered(&machine, &ordered);
        assert_eq!(sum(&ordered, &bound), stated);
        for other in [machine.all_big(), machine.only_big(), machine.only_little()] {
            assert_eq!(sum(&other, &bound.renumbered(&other, &other)), stated, "{}", other.name);
        }
    }
}

#[test]
fn h34_10_a_calibration_core_that_is_not_there_is_named() {
    let error = try_run(&hikey960(), &calibrated("\"calibration\" : \"CPU8\""), "linux");
    let message = error.unwrap_err().to_string();
    assert!(
        message.contains("core 8, which the machine does not have (cores 0 to 7)"),
        "{message}"
    );
}
