//! Parallel regions inside programs: task policies and the operating system's policy at once.

mod common;

use ampsched_model::{App, Draw, ProfileLibrary, Workload, parse_program};
use ampsched_policy::{REGISTRY as POLICIES, build_policy};
use ampsched_sim::{Outcome, SimError, run_task_policy, simulate};
use ampsched_task::{
    Format, Graph, Problem, REGISTRY, ReadOptions, WorkerClass, Workers, build_task_policy, read,
    task_program,
};
use common::{Host, ns, split_policy, unit_profile};

/// A big core retires two instructions per ns, a little one one.
const RATIO: f64 = 2.0;

/// Runs a program whose region's graph, if it is a file, has this text.
fn try_run(host: &Host, program: &str, csv: &str, policy: &str) -> Result<Outcome, SimError> {
    try_run_mix(host, &[program], csv, policy)
}

fn try_run_mix(
    host: &Host,
    programs: &[&str],
    csv: &str,
    policy: &str,
) -> Result<Outcome, SimError> {
    let apps = programs.iter().enumerate().map(|(index, text)| {
        let text = format!("name = 'p'\ndescription = 'test'\n{text}");
        let mut template = parse_program("test.toml", &text).unwrap_or_else(|e| panic!("{e}"));
        let paths: Vec<String> = template.missing_graphs().collect();
        paths.iter().for_each(|path| template.add_graph(path, &csv.into()));
        let profiles = ProfileLibrary { profiles: vec![unit_profile()] };
        let program = template.instantiate(&[], &profiles).unwrap_or_else(|e| panic!("{e}"));
        App { name: format!("p{index}"), program: program.into(), start_ns: 0, nice: 0 }
    });
    let workload = Workload { name: "w".into(), description: String::new(), apps: apps.collect() };
    let (name, params) = split_policy(policy);
    simulate(&host.machine, &workload, name, build_policy(name, &params).unwrap(), &host.options)
}

fn run(host: &Host, program: &str, csv: &str, policy: &str) -> Outcome {
    try_run(host, program, csv, policy)
        .unwrap_or_else(|error| panic!("{policy}: {error}\n{program}\n{csv}"))
}

/// One thread pinned to each of so many cores, all of them working on a region.
fn pinned(cores: usize, region: &str) -> String {
    format!(
        "regions.r = {{ {region} }}\n[[threads]]\nname = 'w'\ncount = {cores}\ncores = ['index']\n\
         body = [{{ tasks = 'r', profile = 'unit' }}]\n"
    )
}

/// Big and little workers as the task simulator counts: speed 1 is a big core.
fn workers(big: usize, little: usize, grab_us: f64) -> Workers {
    let class = |name: &str, speed: f64, count| WorkerClass {
        name: name.into(),
        speed,
        count,
        grab_s: grab_us * 1e-6 / speed,
    };
    Workers::new(vec![class("big", 1.0, big), class("little", 1.0 / RATIO, little)]).unwrap()
}

fn makespan_s(graph: &Graph, workers: Workers, policy: &str) -> f64 {
    let (name, params) = split_policy(policy);
    let (build, params) = build_task_policy(name, &params).unwrap();
    let problem = Problem::new(graph, workers).unwrap();
    run_task_policy(&problem, build, &params).unwrap().makespan_s()
}

/// A graph whose tasks take whole, even numbers of ns on a big core, as a CSV text.
fn random_csv(random: &mut Draw) -> String {
    let tasks = 1 + random.bits() % 80;
    let row = |task: u64| {
        let work = (2 * (1 + random.bits() % 1_000_000)) as f64 * 1e-9;
        let before: Vec<String> = (0..task)
            .filter(|_| random.uniform() < 2.0 / tasks as f64)
            .map(|before| before.to_string())
            .collect();
        format!("{task},{work:.9},,{}\n", before.join(";"))
    };
    (0..tasks).map(row).collect()
}

fn graph_of(csv: &str) -> Graph {
    read(Format::Csv, "graph.csv", csv, &ReadOptions::default()).unwrap()
}

#[test]
fn a_worker_on_each_core_does_what_the_task_simulator_does() {
    for seed in 0..40 {
        let mut random = Draw::new(seed);
        let csv = random_csv(&mut random);
        let (big, little) = (1 + (random.bits() % 3) as usize, 1 + (random.bits() % 3) as usize);
        let host = Host::unequal(big, little, RATIO);
        for info in REGISTRY {
            let region = format!("graph = 'graph.csv', policy = '{}'", info.name);
            let found = run(&host, &pinned(big + little, &region), &csv, "cfs");
            let expected_s = makespan_s(&graph_of(&csv), workers(big, little, 0.0), info.name);
            assert_eq!(
                found.makespan_ns,
                (expected_s * 1e9).round() as u64,
                "seed {seed}, {big} + {little} cores, {}",
                info.name
            );
        }
    }
}

#[test]
fn programs_do_so_too() {
    let graphs =
        ["blackscholes:runs=8:blocks=50:barriers=1", "swaptions:swaptions=40", "ferret:queries=30"];
    for text in graphs {
        let (name, params) = split_policy(text);
        let graph = task_program(name, &params).unwrap();
        // Tasks of equal length end together, and rounding to ns decides who asks first; ferret's differ.
        let queue = (name == "ferret").then_some("fifo");
        for policy in ["static", "loop-static", "heft"].into_iter().chain(queue) {
            let host = Host::unequal(2, 3, RATIO);
            let region = format!("graph = '{text}', policy = '{policy}', grab_us = 0.5");
            let found = run(&host, &pinned(5, &region), "", "cfs");
            let expected_ns = makespan_s(&graph, workers(2, 3, 0.5), policy) * 1e9;
            let error = found.makespan_ns as f64 / expected_ns - 1.0;
            assert!(error.abs() < 1e-6, "{text} under {policy}: {error}");
        }
    }
}

#[test]
fn a_master_creates_while_others_work() {
    // Creation takes 1 ms each, the tasks 2 ms: the worker starts the first at 1 ms; at 3 ms all are there, the worker
    // takes the second, the master the third.
    let program = "regions.r = { graph = 'g.csv', create_us = 1000 }\n[[threads]]\nname = 'm'\ncores = [0]\n\
         body = [{ create = 'r', profile = 'unit' }, { tasks = 'r', profile = 'unit' }]\n\
         [[threads]]\nname = 'w'\ncores = [1]\nbody = [{ tasks = 'r', profile = 'unit' }]\n";
    let csv = "a,0.002,,\nb,0.002,,\nc,0.002,,\n";
    let host = Host::symmetric(2);
    assert_eq!(run(&host, program, csv, "cfs").makespan_ns, ns(5.0));
    // A chain: each task waits for the one before, which has ended when it is created, but for the last.
    let chain = "a,0.002,,\nb,0.002,,a\nc,0.002,,b\n";
    assert_eq!(run(&host, program, chain, "cfs").makespan_ns, ns(7.0));
    // All policies that can do so end, and no task is lost.
    let mut random = Draw::new(7);
    let csv = random_csv(&mut random);
    let work_ns = (graph_of(&csv).tasks().map(|task| graph_of(&csv).work(task)).sum::<f64>() * 1e9)
        .round() as u64;
    let tasks = graph_of(&csv).len() as u64;
    for info in REGISTRY.iter().filter(|info| info.lazy) {
        let policy = format!("'g.csv', policy = '{}'", info.name);
        let found = run(&host, &program.replace("'g.csv'", &policy), &csv, "cfs");
        let retired: u64 = found.threads.iter().map(|thread| thread.instructions).sum();
        assert_eq!(retired, 2 * (work_ns + tasks * 1_000_000), "{}", info.name);
    }
}

#[test]
fn a_creator_that_does_not_work_waits_for_the_use_before() {
    let program = "regions.r = { graph = 'g.csv', create_us = 1000 }\n[[threads]]\nname = 'm'\n\
         body = [{ loop = 3, body = [{ create = 'r', profile = 'unit' }] }]\n\
         [[threads]]\nname = 'w'\nbody = [{ loop = 3, body = [{ tasks = 'r', profile = 'unit' }] }]\n";
    // 1 ms until the first task is there, 5 ms of work; then the next round.
    let found = run(&Host::symmetric(2), program, "a,0.005,,\n", "cfs");
    assert_eq!(found.makespan_ns, ns(18.0));
}

#[test]
fn a_region_can_be_used_again_and_again() {
    let body = "[{ loop = 4, body = [{ tasks = 'r', profile = 'unit' }, { compute = 2e6, profile = 'unit' }] }]";
    let program = pinned(2, "graph = 'g.csv'").replace("[{ tasks = 'r', profile = 'unit' }]", body);
    // Two equal tasks of 3 ms and 1 ms behind them, four times; three repetitions.
    let host = Host::symmetric(2).with_repetitions(3);
    let found = run(&host, &program, "a,0.003,,\nb,0.003,,\n", "cfs");
    assert_eq!(found.apps[0].completions_ns, [ns(16.0), ns(16.0), ns(16.0)]);
}

#[test]
fn a_task_does_not_wait_for_a_worker_without_a_core() {
    // b and c are ready at 1 ms; the second worker is woken for c, but its core has a hog. The first worker takes c
    // over.
    let hog = "[[threads]]\nname = 'hog'\ncores = [1]\nnice = -20\nstart_us = 500\nbody = [{ compute = 2e8, profile = 'unit' }]\n";
    let csv = "a,0.001,,\nb,0.001,,a\nc,0.001,,a\n";
    let shared = pinned(2, "graph = 'g.csv'");
    let host = Host::symmetric(2);
    let found = try_run_mix(&host, &[&shared, hog], csv, "cfs").unwrap();
    assert_eq!(found.threads[0].end_ns, ns(3.0));
    // What belongs to that worker alone waits with it.
    let own = pinned(2, "graph = 'g.csv', policy = 'static'");
    let found = try_run_mix(&host, &[&own, hog], csv, "cfs").unwrap();
    assert!(found.threads[0].end_ns > ns(3.0));
}

#[test]
fn every_policy_of_the_system_conserves_the_work() {
    let program = "regions.r = { graph = 'g.csv', policy = 'cats:steal=1', grab_us = 3, create_us = 2 }\n\
         [[threads]]\nname = 'm'\nbody = [{ create = 'r', profile = 'unit' }, { tasks = 'r', profile = 'unit' }]\n\
         [[threads]]\nname = 'w'\ncount = 5\nbody = [{ tasks = 'r', profile = 'unit' }]\n";
    let other = "[[threads]]\nname = 'o'\ncount = 3\nbody = [{ loop = 20, body = [{ compute = 2e6, profile = 'unit' }, { sleep_us = 300 }] }]\n";
    let csv = random_csv(&mut Draw::new(3));
    let host = Host::unequal(2, 2, RATIO);
    let of_first = |outcome: &Outcome| -> u64 {
        outcome.threads.iter().filter(|t| t.app == 0).map(|t| t.instructions).sum()
    };
    let mut expected = None;
    for info in POLICIES {
        let Ok(found) = try_run_mix(&host, &[program, other], &csv, info.name) else {
            panic!("{} fails", info.name)
        };
        let first = *expected.get_or_insert(of_first(&found));
        assert_eq!(of_first(&found), first, "{}", info.name);
        let again = try_run_mix(&host, &[program, other], &csv, info.name).unwrap();
        assert_eq!(again.makespan_ns, found.makespan_ns, "{} is not deterministic", info.name);
    }
}

#[test]
fn what_cannot_be_executed_is_refused() {
    let host = Host::symmetric(2);
    let error = |region: &str| {
        try_run(&host, &pinned(2, region), "a,1,,\n", "cfs").unwrap_err().to_string()
    };
    let unknown = "test.toml:3: regions.r: unknown task program \"fluidanimat\" (did you mean \"fluidanimate\"?)";
    assert_eq!(error("graph = 'fluidanimat'"), unknown);
    assert!(error("graph = 'swaptions', policy = 'fif'").contains("did you mean \"fifo\"?"));
    assert!(
        error("graph = 'swaptions', policy = 'cats:steal'")
            .contains("cats: \"steal\" is not of the form")
    );
    assert!(error("graph = 'swaptions:swaption=3'").contains("no parameter \"swaption\""));
    assert!(error("graph = 'g.xyz'").contains("xyz"));
    let few = error("graph = 'swaptions', workers = 1");
    assert!(few.contains("thread p0/w.1 works on it besides 1 others (raise workers)"), "{few}");
    let lazy = "regions.r = { graph = 'swaptions', policy = 'heft' }\n[[threads]]\nname = 'm'\n\
        body = [{ create = 'r', profile = 'unit' }, { tasks = 'r', profile = 'unit' }]\n";
    let error = try_run(&host, lazy, "", "cfs").unwrap_err().to_string();
    assert!(error.contains("needs all tasks beforehand"), "{error}");
    let dot = "digraph { a [work=1]; b [work=1]; a -> b [comm=0.5]; }";
    let error = try_run(&host, &pinned(2, "graph = 'g.dot'"), dot, "cfs").unwrap_err().to_string();
    assert!(error.contains("data takes time"), "{error}");
}

#[test]
fn a_region_whose_tasks_never_come_is_a_deadlock() {
    // The creator waits for a mutex that the worker holds.
    let program = "mutexes.m = {}\nregions.r = { graph = 'swaptions' }\n[[threads]]\nname = 'm'\nstart_us = 10\n\
        body = [{ lock = 'm' }, { create = 'r', profile = 'unit' }, { unlock = 'm' }]\n\
        [[threads]]\nname = 'w'\nbody = [{ lock = 'm' }, { tasks = 'r', profile = 'unit' }, { unlock = 'm' }]\n";
    let error = try_run(&Host::symmetric(2), program, "", "cfs").unwrap_err().to_string();
    assert!(error.contains("p0/w waits for region \"p0/r\""), "{error}");
}

/// Threads that the system may put on any core; the first cores are little ones.
fn free(threads: usize, region: &str) -> String {
    pinned(threads, region).replace("cores = ['index']\n", "")
}

#[test]
fn h04_little_workers_alone_execute_all_tasks() {
    let mut host = Host::unequal(2, 2, RATIO);
    host.machine = host.machine.ordered(false);
    let graph = || task_program("canneal", &[("steps".to_owned(), 3.0)]).unwrap();
    let one_by_one_s = makespan_s(&graph(), workers(0, 1, 0.0), "fifo");
    for policy in ["cats", "cats-cost", "cats:strict=1", "cats-cost:strict=1", "cats:steal=1"] {
        let region = format!("graph = 'canneal:steps=3', policy = '{policy}'");
        // Pinned to the little cores, or free, under policies that move them to and fro.
        for (program, under) in [
            (pinned(2, &region), "cfs"),
            (free(2, &region), "cfs"),
            (free(2, &region), "gts"),
            (free(3, &region), "rr-amp"),
        ] {
            let found = run(&host, &program, "", under);
            assert!(found.makespan_ns as f64 <= one_by_one_s * 1e9, "{policy} under {under}");
        }
    }
}

#[test]
fn h04_without_big_workers_the_little_ones_take_critical_tasks_first() {
    // A chain of three, and two tasks beside it: as on equal workers, the chain decides.
    let csv = "a,0.002,,\nx,0.002,,\ny,0.002,,\nb,0.002,,a\nc,0.002,,b\n";
    for (big, little) in [(2, 0), (0, 2)] {
        let schedule = makespan_s(&graph_of(csv), workers(big, little, 0.0), "cats");
        assert_eq!(schedule, 0.006 * if big > 0 { 1.0 } else { RATIO });
    }
}

#[test]
fn who_executes_the_longest_chain_has_the_fast_core_if_the_system_s_policy_counts_paths() {
    // A chain of 160 ms on the fast core, and two of 72 ms, which take 144 ms on slow ones.
    let chain = |name: char, work_s: f64| -> String {
        let first = format!("{name}0,{work_s},,\n");
        let link = |task| format!("{name}{task},{work_s},,{name}{}\n", task - 1);
        std::iter::once(first).chain((1..40).map(link)).collect()
    };
    let csv = chain('a', 0.004) + &chain('b', 0.0018) + &chain('c', 0.0018);
    let program = "regions.r = { graph = 'g.csv' }\n[[threads]]\nname = 'w'\ncount = 3\n\
         body = [{ tasks = 'r', profile = 'unit' }]\n";
    let host = Host::unequal(1, 2, 2.0);
    let makespan_ms = |policy| run(&host, program, &csv, policy).makespan_ns as f64 / 1e6;
    let (told, untold) = (makespan_ms("abreast:lengths=1"), makespan_ms("abreast"));
    assert!(told <= 164.0, "{told}"); // A tick until the policy looks.
    assert!(untold > 180.0, "{untold}");
}
