//! Task policies against published schedules, reference makespans and invariants.

mod task_graphs;

use ampsched_model::Draw;
use ampsched_policy::Params;
use ampsched_sim::{TaskError, run_task_policy, run_tasks};
use ampsched_task::{
    Bounds, Build, Graph, Pick, Problem, REGISTRY, Replay, Schedule, Slot, TaskId, TaskPolicy,
    Tasks, WorkerId, Workers, build_task_policy,
};
use task_graphs::{cholesky, dot, random_problem};

/// Ten tasks on three processors: Topcuoglu et al. (2002), Figure 2.
const TOPCUOGLU: &str = include_str!("task_graphs/topcuoglu.dot");
/// Ten tasks on three processors: Arabnejad and Barbosa (2014), Figure 1.
const ARABNEJAD: &str = include_str!("task_graphs/arabnejad.dot");

fn workers(text: &str) -> Workers {
    Workers::parse(text, None).unwrap()
}

fn build(name: &str, params: &[(&str, f64)]) -> (Build, Params) {
    let params: Vec<_> = params.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect();
    build_task_policy(name, &params).unwrap()
}

fn run(problem: &Problem<'_>, name: &str, params: &[(&str, f64)]) -> Schedule {
    let (build, params) = build(name, params);
    let schedule = run_task_policy(problem, build, &params).unwrap();
    assert_eq!(schedule.flaw(problem), None, "{name}");
    schedule
}

/// Executions of each worker as `task:start-end`.
fn rows(problem: &Problem<'_>, schedule: &Schedule) -> Vec<String> {
    let text = |slot: &Slot| {
        let name = problem.graph().task_name(slot.task);
        format!("{name}:{}-{}", slot.start_s, slot.end_s)
    };
    let rows = schedule.by_worker(problem.workers().len());
    rows.iter().map(|row| row.iter().map(text).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn schedules_that_topcuoglu_et_al_published() {
    let graph = dot(TOPCUOGLU);
    let problem = Problem::new(&graph, workers("1x1,1x1,1x1")).unwrap();
    let heft = run(&problem, "heft", &[]);
    assert_eq!(
        rows(&problem, &heft),
        ["2:27-40 8:57-62", "4:18-26 6:26-42 9:56-68 10:73-80", "1:0-9 3:9-28 5:28-38 7:38-49"]
    );
    let cpop = run(&problem, "cpop", &[]);
    assert_eq!(
        rows(&problem, &cpop),
        ["3:28-39 7:39-46", "1:0-16 2:16-35 5:35-48 9:65-77 10:79-86", "4:25-42 6:42-51 8:54-68"]
    );
    let dls = run(&problem, "dls", &[]);
    let first: Vec<u16> =
        ["1", "2", "4", "5"].iter().map(|name| worker_of(&problem, &dls, name)).collect();
    assert_eq!(first, [2, 2, 1, 0], "{:?}", rows(&problem, &dls));
    let lmt = run(&problem, "lmt", &[]);
    let makespans_s = [heft, cpop, dls, lmt].map(|schedule| schedule.makespan_s());
    assert_eq!(makespans_s, [80.0, 86.0, 91.0, 76.0]);
}

fn worker_of(problem: &Problem<'_>, schedule: &Schedule, name: &str) -> u16 {
    let mut slots = schedule.slots().iter();
    slots.find(|slot| problem.graph().task_name(slot.task) == name).unwrap().worker.0
}

#[test]
fn schedules_that_arabnejad_and_barbosa_published() {
    let graph = dot(ARABNEJAD);
    let problem = Problem::new(&graph, workers("1x1,1x1,1x1")).unwrap();
    assert_eq!(run(&problem, "heft", &[]).makespan_s(), 133.0);
    assert_eq!(
        rows(&problem, &run(&problem, "peft", &[])),
        ["1:0-22 4:22-29 2:29-51 3:51-83 7:83-97", "6:29-46 8:54-77 10:106-122", "5:35-70 9:81-89"]
    );
}

/// Reference makespans on four workers of speed 10 and four of speed 4, to four decimals, from an independent program.
#[test]
fn cholesky_makespans_agree_with_the_reference() {
    for (tiles, fifo, heft) in [(38, "327.7667", "327.2833"), (83, "3404.6500", "3404.0667")] {
        let graph = cholesky(tiles);
        let problem = Problem::new(&graph, workers("4x10,4x4")).unwrap();
        for (name, expected) in [("fifo", fifo), ("heft", heft)] {
            let makespan_s = run(&problem, name, &[]).makespan_s();
            assert_eq!(format!("{makespan_s:.4}"), expected, "{name} {tiles}");
        }
    }
}

/// 800 equal iterations, ratio 3.03: speed-ups over one little core, computed from the definitions.
#[test]
fn loop_speedups() {
    let dynamic: [&[(&str, f64)]; 2] = [&[("chunk", 1.0)], &[("chunk", 25.0)]];
    let cases = [
        ("4xbig", ["12.12", "12.12", "12.12"]),
        ("4xbig,1xlittle", ["5.00", "13.10", "10.67"]),
        ("4xbig,2xlittle", ["6.00", "14.04", "13.85"]),
        ("4xbig,3xlittle", ["7.00", "15.06", "13.85"]),
        ("4xbig,4xlittle", ["8.00", "16.00", "16.00"]),
        ("2xbig,2xlittle", ["4.00", "8.00", "8.00"]),
    ];
    // The static column supposes equal shares; 840 iterations can be divided by every number of workers here.
    let (even, graph) = (iterations(840), iterations(800));
    for (text, expected) in cases {
        let workers = Workers::parse(text, Some(3.03)).unwrap();
        let speedup = |graph: &Graph, name, params: &[_]| {
            let problem = Problem::new(graph, workers.clone()).unwrap();
            let makespan_s = run(&problem, name, params).makespan_s();
            format!("{:.2}", graph.len() as f64 / makespan_s)
        };
        let found = [
            speedup(&even, "loop-static", &[]),
            speedup(&graph, "loop-dynamic", dynamic[0]),
            speedup(&graph, "loop-dynamic", dynamic[1]),
        ];
        assert_eq!(found, expected, "{text}");
        assert_eq!(speedup(&even, "static", &[]), expected[0], "{text}");
        // Equal iterations in a queue are a loop of chunk 1.
        assert_eq!(speedup(&graph, "fifo", &[]), expected[1], "{text}");
    }
}

/// A loop of equal iterations of 1 s.
fn iterations(count: usize) -> Graph {
    let iterations: Vec<(f64, &[u32])> = vec![(1.0, &[]); count];
    Graph::from_work("loop", &iterations).unwrap()
}

/// 800 iterations on six workers: blocks of 134, 134, 133, 133, 133, 133, as libgomp deals them.
#[test]
fn blocks_differ_by_one_iteration_at_most() {
    let graph = iterations(800);
    let problem = Problem::new(&graph, workers("6x1")).unwrap();
    let rows = run(&problem, "loop-static", &[]).by_worker(6);
    assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [134, 134, 133, 133, 133, 133]);
    assert_eq!(rows[1][0].task, TaskId(134));
}

#[test]
fn guided_chunks_shrink() {
    let graph = iterations(100);
    let grabs_s = [0.5];
    let four = workers("4x1").with_grab_s(&grabs_s).unwrap();
    let problem = Problem::new(&graph, four).unwrap();
    let schedule = run(&problem, "loop-dynamic", &[("guided", 1.0), ("chunk", 2.0)]);
    // Every fetch leaves a pause: 100/4 = 25, then 75/4 = 19, 56/4 = 14, 42/4 = 11, 31/4 = 8, ...
    let rows = schedule.by_worker(4);
    let first = |row: &Vec<Slot>| {
        let pause = row.windows(2).position(|pair| pair[1].start_s > pair[0].end_s);
        pause.map_or(row.len(), |position| position + 1)
    };
    assert_eq!(rows.iter().map(first).collect::<Vec<_>>(), [25, 19, 14, 11]);
    assert_eq!(rows[3][11].start_s - rows[3][10].end_s, 0.5);
}

/// A chain a, b, c, d and two free tasks, 4 s on a little worker and 2 s on a big one.
#[test]
fn cats_serves_the_chain_on_the_big_worker() {
    let chain: Vec<(f64, &[u32])> =
        vec![(4.0, &[]), (4.0, &[]), (4.0, &[]), (4.0, &[0]), (4.0, &[3]), (4.0, &[4])];
    let graph = Graph::from_work("chain", &chain).unwrap();
    let big_first = Problem::new(&graph, workers("1x2,1x1")).unwrap();
    let cats = run(&big_first, "cats", &[]);
    assert_eq!(rows(&big_first, &cats), ["0:0-2 3:2-4 4:4-6 5:6-8", "1:0-4 2:4-8"]);
    assert_eq!(run(&big_first, "cats-cost", &[]).makespan_s(), 8.0);
    assert_eq!(run(&big_first, "fifo", &[]).makespan_s(), 10.0);
}

/// The little worker idles and asks first, but successors on the critical path are not for it.
#[test]
fn cats_keeps_a_chain_on_the_big_worker() {
    let chain: Vec<(f64, &[u32])> = vec![(2.0, &[]), (2.0, &[0]), (2.0, &[1])];
    let graph = Graph::from_work("chain", &chain).unwrap();
    let problem = Problem::new(&graph, workers("1x1,1x2")).unwrap();
    for name in ["cats", "cats-cost"] {
        assert_eq!(rows(&problem, &run(&problem, name, &[])), ["", "0:0-1 1:1-2 2:2-3"], "{name}");
    }
}

/// Without `steal` little workers leave critical tasks alone; `strict` makes equal ones uncritical.
#[test]
fn cats_options() {
    let pairs: Vec<(f64, &[u32])> = vec![(1.0, &[]), (1.0, &[]), (1.0, &[0]), (1.0, &[1])];
    let graph = Graph::from_work("pairs", &pairs).unwrap();
    let problem = Problem::new(&graph, workers("1x2,1x1")).unwrap();
    let cats = run(&problem, "cats", &[]);
    assert_eq!(rows(&problem, &cats), ["0:0-0.5 1:0.5-1 3:1-1.5", "2:0.5-1.5"]);
    let steal = run(&problem, "cats", &[("steal", 1.0)]);
    assert_eq!(rows(&problem, &steal), ["0:0-0.5 2:0.5-1 3:1-1.5", "1:0-1"]);
    let strict = run(&problem, "cats", &[("strict", 1.0)]);
    // Both heads equal the starting level of one hop, so neither is critical; the little worker gets one.
    assert_eq!(rows(&problem, &strict), ["0:0-0.5 2:0.5-1 3:1-1.5", "1:0-1"]);
}

/// Without both order and a queue apart nothing is left of CATS; each of its rules changes something.
#[test]
fn cats_without_its_rules_is_fifo() {
    let graph = cholesky(6);
    let problem = Problem::new(&graph, workers("1x2,2x1")).unwrap();
    let with = |params: &[(&str, f64)]| rows(&problem, &run(&problem, "cats", params));
    let fifo = rows(&problem, &run(&problem, "fifo", &[]));
    let none = [("ordered", 0.0), ("apart", 0.0)];
    assert_eq!(with(&none), fifo);
    for (name, value) in none {
        assert_ne!(with(&[(name, value)]), fifo, "{name}");
        assert_ne!(with(&[(name, value)]), with(&[]), "{name}");
    }
    assert_ne!(with(&[("follow", 0.0), ("strict", 1.0)]), with(&[("strict", 1.0)]));
}

/// Few long tasks against many short ones: only predicted cost tells which path is longer.
#[test]
fn cats_cost_sees_durations() {
    let paths: Vec<(f64, &[u32])> =
        vec![(1.0, &[]), (10.0, &[]), (1.0, &[0]), (1.0, &[2]), (10.0, &[1])];
    let graph = Graph::from_work("paths", &paths).unwrap();
    let problem = Problem::new(&graph, workers("1x2,1x1")).unwrap();
    let by_hops = run(&problem, "cats", &[]);
    let by_cost = run(&problem, "cats-cost", &[]);
    assert_eq!(worker_of(&problem, &by_cost, "1"), 0);
    assert_eq!(by_cost.makespan_s(), 10.0);
    assert!(by_hops.makespan_s() > 10.0, "{:?}", rows(&problem, &by_hops));
}

/// Bottom levels grow as tasks are created: the same levels as of the whole graph at once.
#[test]
fn cats_follows_a_graph_that_grows() {
    let graph = cholesky(6);
    let problem = Problem::new(&graph, workers("1x2,2x1")).unwrap();
    for name in ["cats", "cats-cost"] {
        let (Build::OnLine(make), params) = build(name, &[("steal", 1.0)]) else { panic!() };
        let mut whole = make(&params, problem.workers());
        whole.created(&problem, TaskId(0));
        let mut grown = make(&params, problem.workers());
        for (step, count) in (1..=graph.len()).enumerate() {
            grown.created(&Part { problem: &problem, count }, TaskId::from(step));
        }
        for task in graph.tasks() {
            whole.ready(&problem, task, None);
            grown.ready(&problem, task, None);
        }
        for step in 0..graph.len() {
            let worker = WorkerId::from(step % 3);
            assert_eq!(whole.next(&problem, worker), grown.next(&problem, worker), "{name} {step}");
        }
    }
}

/// The first tasks of a graph.
struct Part<'p> {
    problem: &'p Problem<'p>,
    count: usize,
}

impl Tasks for Part<'_> {
    fn len(&self) -> usize {
        self.count
    }

    fn predecessors(&self, task: TaskId) -> &[TaskId] {
        self.problem.predecessors(task)
    }

    fn cost_s(&self, task: TaskId, class: ampsched_model::ClassId) -> f64 {
        Tasks::cost_s(self.problem, task, class)
    }
}

#[test]
fn duplicates_replace_dear_communication() {
    let fork = dot("digraph { a [work=1]; b [work=3]; c [work=3]; a -> {b c} [comm=10] }");
    let problem = Problem::new(&fork, workers("2x1")).unwrap();
    assert_eq!(run(&problem, "heft", &[]).makespan_s(), 7.0);
    let hed = run(&problem, "hed", &[]);
    assert_eq!(rows(&problem, &hed), ["a:0-1 b:1-4", "a:0-1 c:1-4"]);
}

#[test]
fn stealing_takes_the_oldest_and_keeps_the_newest() {
    let three: Vec<(f64, &[u32])> = vec![(1.0, &[]); 3];
    let graph = Graph::from_work("three", &three).unwrap();
    let problem = Problem::new(&graph, workers("3x1")).unwrap();
    assert_eq!(rows(&problem, &run(&problem, "work-stealing", &[])), ["2:0-1", "0:0-1", "1:0-1"]);
}

/// Every policy on random graphs, with and without communication and costs per class.
#[test]
fn schedules_are_valid_and_never_beat_the_lower_bound() {
    for seed in 0..300 {
        let (graph, workers) = random_problem(&mut Draw::new(seed));
        let problem = Problem::new(&graph, workers).unwrap();
        let lower_s = Bounds::of(&problem).lower_s();
        for info in REGISTRY {
            let (build, params) = build(info.name, &[]);
            let schedule = run_task_policy(&problem, build, &params)
                .unwrap_or_else(|error| panic!("seed {seed} {}: {error}", info.name));
            assert_eq!(schedule.flaw(&problem), None, "seed {seed} {}", info.name);
            let makespan_s = schedule.makespan_s();
            assert!(
                makespan_s >= lower_s * (1.0 - 1e-12),
                "seed {seed} {}: {makespan_s} is below {lower_s}",
                info.name
            );
        }
    }
}

#[test]
fn simulated_execution_of_a_schedule_ends_when_it_says() {
    for seed in 0..300 {
        let (graph, workers) = random_problem(&mut Draw::new(seed));
        let problem = Problem::new(&graph, workers).unwrap();
        for info in REGISTRY {
            let (Build::OffLine(schedule), params) = build(info.name, &[]) else { continue };
            let planned = schedule(&params, &problem);
            assert_eq!(planned.flaw(&problem), None, "seed {seed} {}", info.name);
            let mut replay = Replay::new(&planned, problem.workers().len());
            let executed = run_tasks(&problem, &mut replay).unwrap();
            let workers = problem.workers().len();
            for (executed, planned) in
                executed.by_worker(workers).iter().zip(planned.by_worker(workers))
            {
                assert_eq!(*executed, planned, "seed {seed} {}", info.name);
            }
        }
    }
}

/// What a flawed policy does is reported, not simulated.
#[test]
fn faults_of_a_policy_are_errors() {
    struct Hasty(bool);
    impl TaskPolicy for Hasty {
        fn ready(&mut self, _tasks: &dyn Tasks, _task: TaskId, _by: Option<WorkerId>) {}
        fn next(&mut self, _tasks: &dyn Tasks, _worker: WorkerId) -> Option<Pick> {
            self.0.then(|| Pick::own(TaskId(1)))
        }
    }
    let pair: Vec<(f64, &[u32])> = vec![(1.0, &[]), (1.0, &[0])];
    let graph = Graph::from_work("pair", &pair).unwrap();
    let problem = Problem::new(&graph, workers("1x1")).unwrap();
    assert_eq!(
        run_tasks(&problem, &mut Hasty(false)),
        Err(TaskError::Stalled { ended: 0, tasks: 2 })
    );
    let error = run_tasks(&problem, &mut Hasty(true)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the policy handed out task \"1\" before its predecessors had ended"
    );
}

/// `flaw` finds what it is there for.
#[test]
fn flaws_are_found() {
    let graph = dot("digraph { a [work=1]; b [work=1]; a -> b [comm=2] }");
    let problem = Problem::new(&graph, workers("2x1")).unwrap();
    let slot = |task, worker, start_s: f64, end_s| Slot {
        task: TaskId(task),
        worker: WorkerId(worker),
        start_s,
        end_s,
    };
    let flaw = |slots: &[Slot]| Schedule::new(slots.to_vec()).flaw(&problem);
    assert_eq!(flaw(&[slot(0, 0, 0.0, 1.0), slot(1, 1, 3.0, 4.0)]), None);
    let cases: [(&[Slot], &str); 4] = [
        (&[slot(0, 0, 0.0, 1.0), slot(1, 1, 2.0, 3.0)], "before its data has arrived"),
        (&[slot(0, 0, 0.0, 1.0), slot(1, 0, 0.5, 1.5)], "is busy"),
        (&[slot(0, 0, 0.0, 1.0), slot(1, 0, 1.0, 1.5)], "another time than it costs"),
        (&[slot(0, 0, 0.0, 1.0)], "\"b\" is not executed"),
    ];
    for (slots, text) in cases {
        assert!(flaw(slots).is_some_and(|flaw| flaw.contains(text)), "{text}");
    }
}
