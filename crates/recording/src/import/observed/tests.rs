//! Small traces, made by hand, with exact numbers.

use std::path::Path;

use super::*;
use crate::import::event::{Context, Raw};
use crate::import::{ftrace_text, observe};

const MS: u64 = 1_000_000;
/// A switch of each kind in 100 ms on a little and a big core.
const TRACE: &str = "\
a-10 [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120
b-20 [001] d..2. 1.000000: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=20 next_prio=120
b-20 [001] d..2. 1.010000: sched_waking: comm=c pid=30 prio=120 target_cpu=000
a-10 [000] d..2. 1.015000: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=R+ ==> next_comm=c next_pid=30 next_prio=120
b-20 [001] d..2. 1.020000: sched_switch: prev_comm=b prev_pid=20 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
c-30 [000] d..2. 1.025000: sched_switch: prev_comm=c prev_pid=30 prev_prio=120 prev_state=S ==> next_comm=a next_pid=10 next_prio=120
a-10 [000] d..2. 1.040000: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=R ==> next_comm=swapper/0 next_pid=0 next_prio=120
<idle>-0 [001] d..2. 1.040500: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120
a-10 [001] d..2. 1.100000: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
";

fn two_clusters() -> Asked {
    let cluster = |name: &str, cpu, opps: &[(u32, f64)]| KnownCluster {
        name: name.to_owned(),
        cpus: vec![cpu],
        opps: opps.to_vec(),
    };
    let clusters = vec![
        cluster("big", 1, &[(2000, 1024.0)]),
        cluster("little", 0, &[(500, 256.0), (1000, 512.0)]),
    ];
    Asked { clusters, ..Asked::default() }
}

fn look(text: &str, asked: &Asked) -> Observed {
    observe("x", text.as_bytes(), asked).unwrap()
}

fn thread<'a>(found: &'a Observed, name: &str) -> &'a ThreadSeen {
    found.threads.iter().find(|thread| thread.name == name).unwrap()
}

/// What holds of any trace: all time of a CPU is accounted for, and its busy time is that of the threads.
fn check(found: &Observed) {
    for cpu in &found.cpus {
        assert_eq!(cpu.busy_ns + cpu.idle_ns + cpu.unknown_ns, found.duration_ns, "{cpu:?}");
        assert_eq!(cpu.clocks.iter().map(|clock| clock.ns).sum::<u64>(), found.duration_ns);
        assert_eq!(cpu.clocks.iter().map(|clock| clock.busy_ns).sum::<u64>(), cpu.busy_ns);
        let used = found.threads.iter().flat_map(|thread| &thread.cpu_ns);
        let used_ns: u64 = used.filter(|(number, _)| *number == cpu.cpu).map(|(_, ns)| ns).sum();
        assert_eq!(used_ns, cpu.busy_ns, "CPU {}", cpu.cpu);
    }
    for thread in &found.threads {
        assert!(thread.wait_ns <= found.duration_ns, "{thread:?}");
        assert!(thread.beside_greater_ns <= thread.beside_idle_ns);
        assert!(thread.beside_idle_ns <= thread.wait_ns, "{thread:?}");
        assert!(thread.migrations <= thread.switches);
        assert!(thread.cluster_migrations <= thread.migrations);
        assert!(thread.latency.max_ns <= thread.longest_wait_ns);
        assert!(thread.cpu_ns.iter().map(|(_, ns)| ns).sum::<u64>() <= found.duration_ns);
    }
}

#[test]
fn a_trace_made_by_hand_has_the_numbers_that_were_put_into_it() {
    let found = look(TRACE, &two_clusters());
    check(&found);
    assert_eq!(found.duration_ns, 100 * MS);
    let times: Vec<_> = found.cpus.iter().map(|cpu| (cpu.busy_ns, cpu.idle_ns)).collect();
    assert_eq!(times, [(40 * MS, 60 * MS), (79 * MS + MS / 2, 20 * MS + MS / 2)]);
    let a = thread(&found, "a");
    assert_eq!(a.cpu_ns, [(0, 30 * MS), (1, 59 * MS + MS / 2)]);
    assert_eq!((a.switches, a.migrations, a.cluster_migrations, a.preemptions), (3, 1, 1, 2));
    // Put off from 15 to 25, from 20 on with the big core idle; from 40 to 40.5 nobody else had its core.
    assert_eq!((a.wait_ns, a.longest_wait_ns), (10 * MS + MS / 2, 10 * MS));
    assert_eq!((a.beside_idle_ns, a.beside_greater_ns), (5 * MS, 5 * MS));
    assert_eq!(a.latency.count, 0, "a loss of the core is no wake-up");
    let c = thread(&found, "c");
    assert_eq!((c.latency.count, c.latency.max_ns, c.wait_ns), (1, 5 * MS, 5 * MS));
    assert_eq!((found.wakeups, found.latency.count, found.latency.p50_ns), (1, 1, 5 * MS));
    // Running 119.5 ms, waiting 15.5 ms.
    assert!((found.runnable_mean - 1.35).abs() < 1e-9, "{}", found.runnable_mean);
    assert_eq!(found.runnable_max, 3);
    // Loads: a 0.3 x 512 + 0.595 x 1024 = 763, b 205, c 51; of the little core 410 fit.
    assert_eq!((a.too_small_ns, a.too_big_ns), (30 * MS, 0));
    let b = thread(&found, "b");
    assert_eq!((b.too_small_ns, b.too_big_ns), (0, 20 * MS));
    assert_eq!((c.too_small_ns, c.too_big_ns), (0, 0));
}

#[test]
fn without_a_machine_no_core_is_greater() {
    let found = look(TRACE, &Asked::default());
    check(&found);
    let a = thread(&found, "a");
    assert_eq!((a.migrations, a.cluster_migrations, a.too_small_ns), (1, 0, 0));
    assert_eq!((a.beside_idle_ns, a.beside_greater_ns), (5 * MS, 0));
    let only = look(TRACE, &Asked { commands: vec!["c".to_owned()], ..Asked::default() });
    assert_eq!(only.threads.len(), 1);
    let pid = look(TRACE, &Asked { pids: vec![20], ..Asked::default() });
    assert_eq!((pid.threads[0].name.as_str(), pid.latency.count), ("b", 0));
}

/// What was believed of a CPU turns out to be unknown while a thread waits behind it (found by mutation).
#[test]
fn a_wait_behind_a_thread_that_was_elsewhere_is_no_less_than_nothing() {
    let switch = |cpu: u32, ms: u32, from: &str, to: &str| {
        let ((name, tid), (to_name, to_tid)) =
            (from.split_once('-').unwrap(), to.split_once('-').unwrap());
        format!(
            "{from} [{cpu:03}] d..2. 1.{ms:03}000: sched_switch: prev_comm={name} prev_pid={tid} prev_prio=120 \
             prev_state=S ==> next_comm={to_name} next_pid={to_tid} next_prio=120\n"
        )
    };
    let text = [
        switch(1, 0, "idle-0", "b-20"),
        switch(2, 0, "x-40", "idle-0"),
        "b-20 [001] d..2. 1.005000: sched_waking: comm=a pid=10 prio=120 target_cpu=001\n"
            .to_owned(),
        switch(0, 6, "idle-0", "b-20"),
        switch(1, 7, "idle-0", "a-10"),
        switch(1, 8, "a-10", "idle-0"),
    ];
    let found = look(&text.concat(), &Asked::default());
    check(&found);
    let a = thread(&found, "a");
    assert_eq!((a.wait_ns, a.beside_idle_ns), (2 * MS, MS), "from 5 to 6 b had its CPU");
    assert_eq!(a.worst_at_ns, [("latency", 7 * MS), ("wait", 7 * MS), ("beside_idle", 7 * MS)]);
}

fn raw(at_ms: u64, cpu: u16, what: What) -> Raw {
    Raw { at_ns: 1000 * MS + at_ms * MS, cpu, tid: 0, context: Context::Unknown, what }
}

fn look_with(more: &[Raw], asked: &Asked) -> Observed {
    let mut story = ftrace_text::read(TRACE.as_bytes());
    more.iter().for_each(|raw| story.push(*raw));
    story.sort();
    let found = of_story("x", TRACE.len(), story, asked).unwrap();
    check(&found);
    found
}

#[test]
fn clocks_and_idle_states_are_booked_and_weigh_loads() {
    let khz = |at_ms, khz| raw(at_ms, 1, What::Frequency { cpu: 0, khz });
    let idle = |at_ms, state| raw(at_ms, 0, What::Idle { cpu: 0, state });
    let events = [
        khz(20, 500_000),
        khz(60, 1_000_000),
        idle(40, Some(1)),
        idle(70, Some(2)),
        idle(95, None),
    ];
    let found = look_with(&events, &two_clusters());
    let clocks: Vec<_> =
        found.cpus[0].clocks.iter().map(|at| (at.khz, at.ns / MS, at.busy_ns / MS)).collect();
    assert_eq!(clocks, [(None, 20, 20), (Some(500_000), 40, 20), (Some(1_000_000), 40, 0)]);
    assert_eq!(found.cpus[0].idle_states, [(1, 30 * MS), (2, 25 * MS)]);
    assert_eq!(found.clock_events, 2);
    // a: 15 ms at 512, 15 ms at 256, 59.5 ms at 1024: 724; it is still too much for the little core at its highest.
    assert_eq!(thread(&found, "a").too_small_ns, 30 * MS);
    // At 1/20 of the clock the same time is a load of 83 on the big core, and would fit.
    let slow = look_with(&[raw(0, 1, What::Frequency { cpu: 1, khz: 100_000 })], &two_clusters());
    assert_eq!(thread(&slow, "a").too_small_ns, 0);
    assert_eq!(thread(&slow, "a").too_big_ns, 59 * MS + MS / 2);
}

#[test]
fn a_clock_is_that_of_its_cluster_where_only_one_core_tells_it() {
    let mut asked = two_clusters();
    asked.clusters = vec![KnownCluster { cpus: vec![0, 1], ..asked.clusters.swap_remove(1) }];
    let found = look_with(&[raw(50, 1, What::Frequency { cpu: 1, khz: 500_000 })], &asked);
    assert_eq!(found.cpus[0].clocks, found.cpus[0].clocks.clone());
    assert_eq!(found.cpus[0].clocks[1].khz, Some(500_000));
    assert_eq!(found.cpus[0].clocks[1].ns, 50 * MS);
    let alone = look_with(&[raw(50, 1, What::Frequency { cpu: 1, khz: 500_000 })], &two_clusters());
    assert_eq!(alone.cpus[0].clocks.len(), 1, "of another cluster");
}

#[test]
fn what_was_lost_is_neither_busy_nor_idle_and_no_latency() {
    let lost = raw(17, 0, What::Lost { events: 7 });
    let found = look_with(&[lost], &two_clusters());
    // Unknown from 15 to the next switch at 25.
    assert_eq!((found.cpus[0].busy_ns, found.cpus[0].unknown_ns), (30 * MS, 10 * MS));
    assert_eq!(found.lost_events, 7);
    assert_eq!(thread(&found, "a").longest_wait_ns, MS / 2, "that wait may have been interrupted");
}

#[test]
fn events_that_do_not_fit_are_counted() {
    let other = TRACE.replace("prev_comm=c prev_pid=30", "prev_comm=e prev_pid=50");
    let found = look(&other, &Asked::default());
    check(&found);
    assert_eq!(found.cpus[0].unknown_ns, 10 * MS);
    assert!(
        found.unknown.iter().any(|line| line.starts_with("1 times where a thread was")),
        "{:?}",
        found.unknown
    );
    let untold = TRACE.replace(
        "prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a",
        "prev_comm=e prev_pid=50 prev_prio=120 prev_state=S ==> next_comm=a",
    );
    let found = look(&untold, &Asked::default());
    check(&found);
    assert_eq!(thread(&found, "e").cpu_ns, [(1, 20 * MS + MS / 2)]);
}

#[test]
fn a_trace_of_centuries_takes_no_longer() {
    let last = TRACE.replace(" 1.100000: ", " 9999999999.100000: ");
    let found = look(&last, &two_clusters());
    check(&found);
    assert_eq!(found.duration_ns, 9_999_999_998_100 * MS);
    let a = thread(&found, "a");
    // The first window is as before, in all others the big core is full: too small for it, but the greatest.
    assert_eq!((a.too_small_ns, a.too_big_ns), (30 * MS, 0));
    let swapped =
        last.replace("[001]", "[002]").replace("[000]", "[001]").replace("[002]", "[000]");
    let a = look(&swapped, &two_clusters());
    let a = thread(&a, "a");
    assert_eq!(a.too_small_ns, 9_999_999_998_059 * MS + MS / 2);
}

#[test]
fn what_is_wrong_is_said() {
    let error = |bytes: &[u8], asked: &Asked| observe("x", bytes, asked).unwrap_err().to_string();
    let none = Asked::default();
    assert!(error(b"", &none).starts_with("x: is no trace of a form that is read"));
    assert!(error(&crate::MAGIC, &none).starts_with("x: keeps what programs did"));
    let wakes: String = TRACE.lines().filter(|line| line.contains("waking")).collect();
    assert!(error(wakes.as_bytes(), &none).starts_with("x: has no event of a core that goes"));
    let nobody = Asked { commands: vec!["nobody".to_owned()], ..Asked::default() };
    assert!(error(TRACE.as_bytes(), &nobody).starts_with("x: has no thread of nobody"));
    let mut small = two_clusters();
    small.clusters.truncate(1);
    assert!(
        error(TRACE.as_bytes(), &small).starts_with("x: has CPU 0, and the machine has 1 cores")
    );
    let far = TRACE.replace("[001]", "[60000]");
    assert!(error(far.as_bytes(), &none).contains("8192 CPUs are the most"));
}

#[test]
fn all_samples_keep_the_balance_of_time() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let names = [
        "ftrace.txt",
        "report.txt",
        "perf-script.txt",
        "perf.data",
        "trace-7.dat",
        "perfetto.pftrace",
        "perfetto-compact.pftrace",
    ];
    for name in names {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        let found = observe(name, &bytes, &Asked::default()).unwrap();
        check(&found);
        assert!(!found.threads.is_empty() && found.duration_ns > 0, "{name}");
    }
}
