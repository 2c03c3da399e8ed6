//! Placement by energy and around idle threads, on whole runs.

mod common;

use ampsched_model::{App, FileKind, Machine, Workload, import_rtapp};
use ampsched_policy::build_policy;
use ampsched_sim::{GovernorSpec, Options, Outcome, simulate};
use common::{shipped_catalog, split_policy, workload};

/// Kernels that know of capacities and energy.
const KERNELS: [&str; 4] = ["6.1", "6.6", "6.18", "7.3"];

fn run(machine: &Machine, workload: &Workload, policy: &str) -> Outcome {
    let governor = GovernorSpec { cluster: None, name: "schedutil".into(), params: vec![] };
    let governs = machine.clusters[0].opps.len() > 1;
    let governors = if governs { vec![governor] } else { Vec::new() };
    let options = Options { governors, ..Options::default() };
    let (name, params) = split_policy(policy);
    let built = build_policy(name, &params).unwrap();
    simulate(machine, workload, name, built, &options).unwrap_or_else(|error| panic!("{error}"))
}

fn rtapp(text: &str) -> Workload {
    let program = import_rtapp("f.json", text).unwrap().program.into();
    let app = App { name: "f".into(), program, start_ns: 0, nice: 0 };
    Workload { name: "f".into(), description: String::new(), apps: vec![app] }
}

/// 34.11: the more a thread asks for, the sooner it is done: from what a little core cannot give on, on a big one.
#[test]
fn h34_11_a_greater_clamp_never_makes_a_thread_slower() {
    let catalog = shipped_catalog();
    let mut policies: Vec<String> =
        KERNELS.iter().map(|kernel| format!("linux:kernel={kernel}")).collect();
    policies.extend(["eas".to_owned(), "eas:hysteresis=0".to_owned()]);
    for name in ["hikey960", "exynos5422"] {
        let machine = catalog.machine(name).unwrap();
        for policy in &policies {
            let response = |umin: u32| {
                let program = format!(
                    "[timers.f]\n[[threads]]\nname='ui'\nuclamp_min={umin}\n\
                     body=[{{loop=20,body=[{{run_us=8000,profile='unit'}},{{timer_us=200000,timer='f'}}]}}]"
                );
                let outcome = run(&machine, &workload(&[&program]), policy);
                outcome.apps[0].periods.as_ref().unwrap().response.p50_ns
            };
            let all = [0, 512, 800, 819, 820, 1000, 1024].map(response);
            let falls = all.is_sorted_by(|less, more| *more as f64 <= *less as f64 * 1.02);
            assert!(falls, "{name}, {policy}: {all:?}");
        }
    }
}

/// 34.11: a light phase behind a burst that takes more than 80 % of a big core comes back to little ones.
#[test]
fn h34_11_energy_counts_again_after_a_burst() {
    let text = r#"{ "tasks" : { "r" : { "loop" : 1, "phases" : {
        "a" : { "loop" : 30, "run" : 14000, "timer" : { "ref" : "unique", "period" : 16000 } },
        "b" : { "loop" : 400, "run" : 800, "timer" : { "ref" : "unique", "period" : 16000 } } } } },
        "global" : { "calibration" : "CPU4" } }"#;
    for kernel in KERNELS {
        let machine = shipped_catalog().machine("hikey960").unwrap();
        let outcome = run(&machine, &rtapp(text), &format!("linux:kernel={kernel}"));
        let thread = &outcome.threads[0];
        let (little_ns, big_ns) = (thread.class_ns[0], thread.class_ns[1]);
        // 30 x 14 ms on a big core, then 512 + 5 x 16 ms of at most 1.6 in 16; the rest of the light phase on others.
        assert!(big_ns < 490_000_000 && little_ns > 600_000_000, "{kernel}: {little_ns} {big_ns}");
    }
}

const HIKEY620: &str = "name = 'hikey620'
[[clusters]]
name = 'c0'
core_type = 'cortex-a53'
cores = 8
class = 0
opps = [{ mhz = 1200, volt = 1.0 }]
[costs]
context_switch_ns = 3000
migrate_same_cluster_ns = 5000
migrate_cross_cluster_ns = 5000
wakeup_latency_ns = 60000
[kernel]
sees = 'nothing'
last_level_cache = 'machine'
";

/// 34.11: threads of class idle cost others next to nothing (the figures of the patch set of `sched_idle_cpu`: 5,095 of
/// 5,136 wake-ups).
#[test]
fn h34_11_threads_of_class_idle_give_way() {
    let mut catalog = shipped_catalog();
    catalog.add(FileKind::Machine, "hikey620", "hikey620.toml", HIKEY620).unwrap();
    let machine = catalog.machine("hikey620").unwrap();
    let text = |hogs: u32| {
        format!(
            r#"{{ "tasks" : {{
        "fg" : {{ "instance" : 8, "run" : 5300, "timer" : {{ "ref" : "unique", "period" : 7700 }} }},
        "hog" : {{ "instance" : {hogs}, "run" : 3000, "policy" : "SCHED_IDLE" }} }},
        "global" : {{ "duration" : 5 }} }}"#
        )
    };
    let rounds = |hogs: u32, kernel: &str| {
        let outcome = run(&machine, &rtapp(&text(hogs)), &format!("linux:kernel={kernel}"));
        outcome.apps[0].periods.as_ref().unwrap().count
    };
    for kernel in KERNELS {
        for hogs in [1, 5, 8] {
            let (without, with) = (rounds(0, kernel), rounds(hogs, kernel));
            // EEVDF lets a thread of class idle end its request if who wakes owes time.
            let least = if kernel == "6.1" { 0.99 } else { 0.95 };
            assert!(with as f64 > least * without as f64, "{kernel}: {with} of {without}");
        }
    }
}
