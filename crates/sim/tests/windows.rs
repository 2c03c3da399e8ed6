//! Windows of created tasks: a creator executes what exceeds them itself.

mod common;

use ampsched_model::{App, ProfileLibrary, Workload, parse_program};
use ampsched_policy::build_policy;
use ampsched_sim::{Outcome, simulate};
use common::{Host, ns, unit_profile};
use proptest::prelude::*;

fn run(cores: usize, program: &str, csv: &str) -> Outcome {
    let text = format!("name = 'p'\ndescription = 'test'\n{program}");
    let mut template = parse_program("test.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    template.add_graph("g.csv", &csv.into());
    let profiles = ProfileLibrary { profiles: vec![unit_profile()] };
    let program = template.instantiate(&[], &profiles).unwrap_or_else(|error| panic!("{error}"));
    let app = App { name: "p".into(), program: program.into(), start_ns: 0, nice: 0 };
    let workload = Workload { name: "w".into(), description: String::new(), apps: vec![app] };
    let host = Host::symmetric(cores);
    simulate(&host.machine, &workload, "cfs", build_policy("cfs", &[]).unwrap(), &host.options)
        .unwrap_or_else(|error| panic!("{error}\n{text}\n{csv}"))
}

/// A creator, which takes 1 ms for each task and then works too, and so many other workers.
fn master(workers: usize, keys: &str) -> String {
    let others = format!(
        "[[threads]]\nname = 'w'\ncount = {workers}\ncores = ['index + 1']\n\
         body = [{{ tasks = 'r', profile = 'unit' }}]\n"
    );
    format!(
        "regions.r = {{ graph = 'g.csv', create_us = 1000{keys} }}\n[[threads]]\nname = 'm'\ncores = [0]\n\
         body = [{{ create = 'r', profile = 'unit' }}, {{ tasks = 'r', profile = 'unit' }}]\n{}",
        if workers > 0 { &others } else { "" }
    )
}

#[test]
fn a_creator_executes_what_exceeds_the_window() {
    let csv = "a,0.002,,\nb,0.002,,\nc,0.002,,\n";
    // Without a window: see `a_master_creates_while_others_work`.
    assert_eq!(run(2, &master(1, ""), csv).makespan_ns, ns(5.0));
    assert_eq!(run(2, &master(1, ", window = 3"), csv).makespan_ns, ns(5.0));
    // The worker has a from 1 to 3 ms; the creator has b from 2 to 4, and creates c, which the worker takes at 5.
    assert_eq!(run(2, &master(1, ", window = 1"), csv).makespan_ns, ns(7.0));
}

#[test]
fn a_creator_that_waits_for_its_own_task_executes_others() {
    // One thread: a is created by 1 ms, b by 2; a until 4, b until 6; c is created by 7 and ends at 9.
    let chain = "a,0.002,,\nb,0.002,,a\nc,0.002,,b\n";
    assert_eq!(run(1, &master(0, ", window = 1"), chain).makespan_ns, ns(9.0));
}

#[test]
fn a_creator_that_is_no_worker_waits_for_its_own_task() {
    // The worker has a from 1 to 3 ms; the creator has b, which it created by 2, from 3 to 5.
    let program = master(1, ", window = 1").replacen(", { tasks = 'r', profile = 'unit' }", "", 1);
    assert_eq!(run(2, &program, "a,0.002,,\nb,0.002,,a\n").makespan_ns, ns(5.0));
}

#[test]
fn a_region_with_a_window_can_be_used_again() {
    let again = "body = [{ loop = 3, body = [{ create = 'r', profile = 'unit' }, { tasks = 'r', profile = 'unit' }] }]";
    let program = master(0, ", window = 1");
    let once = "body = [{ create = 'r', profile = 'unit' }, { tasks = 'r', profile = 'unit' }]";
    let found = run(1, &program.replace(once, again), "a,0.002,,\nb,0.002,,\n");
    assert_eq!(found.makespan_ns, ns(18.0));
}

proptest! {
    /// Every task is executed once, whatever the window, and no thread waits for ever.
    #[test]
    fn work_is_conserved(
        costs_us in prop::collection::vec(1u64..3000, 1..60),
        links in prop::collection::vec((0usize..60, 0usize..60), 0..40),
        window in 1u32..20,
        workers in 0usize..4,
        policy in prop::sample::select(vec!["fifo", "work-stealing", "cats", "cats:steal=1", "cats-cost"]),
    ) {
        let rows: String = costs_us.iter().enumerate().map(|(task, cost_us)| {
            let mut before: Vec<String> = links
                .iter()
                .filter(|&&(from, to)| to == task && from < task)
                .map(|(from, _)| from.to_string())
                .collect();
            before.dedup();
            before.sort();
            before.dedup();
            format!("{task},{:.6},,{}\n", *cost_us as f64 * 1e-6, before.join(";"))
        }).collect();
        let keys = format!(", window = {window}, policy = '{policy}'");
        let found = run(workers + 1, &master(workers, &keys), &rows);
        let retired: u64 = found.threads.iter().map(|thread| thread.instructions).sum();
        let work_us: u64 = costs_us.iter().sum::<u64>() + 1000 * costs_us.len() as u64;
        prop_assert_eq!(retired, 2000 * work_us);
        prop_assert!(found.makespan_ns <= work_us * 1000);
    }
}
