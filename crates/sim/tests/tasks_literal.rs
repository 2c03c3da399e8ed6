//! The off-line schedulers against literal, slow versions of what their papers describe.
//!
//! The shipped versions keep heaps and a tree of gaps instead of looking at everything in every step; the schedules
//! must be the same. All times are multiples of a half, so that no sum is rounded.

mod task_graphs;

use ampsched_model::Draw;
use ampsched_task::{
    Build, Draft, Graph, Problem, Schedule, Slot, TaskId, WorkerId, Workers, build_task_policy,
};
use task_graphs::{cholesky, dot, random_problem};

fn shipped(problem: &Problem<'_>, name: &str) -> Schedule {
    let (Build::OffLine(schedule), params) = build_task_policy(name, &[]).unwrap() else {
        panic!("{name} is off-line")
    };
    schedule(&params, problem)
}

/// Up to 40 tasks of 0 to 9 s at speed 1, on workers of speed 2 and 1, or with costs of their own.
fn exact_problem(seed: u64) -> (Graph, Workers) {
    let mut random = Draw::new(seed);
    let mut whole = |below: u32| (random.bits() % u64::from(below)) as u32;
    let has_costs = whole(3) == 0;
    let mut draft = Draft::new("exact");
    for number in 0..1 + whole(40) {
        let task = draft.task(&number.to_string(), "", f64::from(whole(10)), 0).unwrap();
        if has_costs {
            draft.costs(task, vec![f64::from(whole(10)), f64::from(whole(10))]).unwrap();
        }
        for from in 0..task {
            if whole(2 + (task - from)) == 0 {
                draft.link(from, task, f64::from(whole(8)), 0).unwrap();
            }
        }
    }
    let text = ["1x2,1x1", "2x2,2x1", "1x2,3x1"][whole(3) as usize];
    (draft.finish().unwrap(), Workers::parse(text, None).unwrap())
}

/// A schedule in the making, without any structure.
struct Plain<'p> {
    problem: &'p Problem<'p>,
    slots: Vec<Slot>,
}

impl<'p> Plain<'p> {
    fn new(problem: &'p Problem<'p>) -> Self {
        Self { problem, slots: Vec::new() }
    }

    fn slot(&self, task: TaskId) -> Option<Slot> {
        self.slots.iter().copied().find(|slot| slot.task == task)
    }

    fn ready(&self) -> Vec<TaskId> {
        let graph = self.problem.graph();
        let placed = |task: &TaskId| self.slot(*task).is_some();
        let fits = |task: &TaskId| !placed(task) && graph.predecessors(*task).iter().all(placed);
        graph.tasks().filter(fits).collect()
    }

    fn arrival_s(&self, task: TaskId, worker: WorkerId) -> f64 {
        let inputs = self.problem.graph().inputs(task);
        let arrivals = inputs.filter_map(|(from, comm_s)| {
            let slot = self.slot(from)?;
            Some(slot.end_s + if slot.worker == worker { 0.0 } else { comm_s })
        });
        arrivals.fold(0.0, f64::max)
    }

    /// The earliest start, in a gap if one is long enough, found by trying the end of every task.
    fn insert(&self, task: TaskId, worker: WorkerId) -> Slot {
        let (ready_s, cost_s) = (self.arrival_s(task, worker), self.problem.cost_s(task, worker));
        let row: Vec<&Slot> = self.slots.iter().filter(|slot| slot.worker == worker).collect();
        let fits = |start_s: f64| {
            let end_s = start_s + cost_s;
            row.iter().all(|slot| {
                let apart = end_s <= slot.start_s || slot.end_s <= start_s;
                // A task that takes no time does not fit into the middle of another one, nor the reverse.
                apart && !(slot.start_s < start_s && start_s < slot.end_s)
            })
        };
        let ends = row.iter().map(|slot| slot.end_s).filter(|end_s| *end_s >= ready_s);
        let starts = ends.chain([ready_s]).filter(|&start_s| fits(start_s));
        let start_s = starts.fold(f64::INFINITY, f64::min);
        Slot { task, worker, start_s, end_s: start_s + cost_s }
    }

    fn earliest(&self, task: TaskId) -> Slot {
        let slots = self.problem.workers().ids().map(|worker| self.insert(task, worker));
        slots.reduce(|best, slot| if slot.end_s < best.end_s { slot } else { best }).unwrap()
    }
}

/// Longest path from each task to an exit.
fn upward(problem: &Problem<'_>, comm: bool, own: impl Fn(TaskId) -> f64) -> Vec<f64> {
    let graph = problem.graph();
    let mut ranks = vec![0.0; graph.len()];
    for task in graph.tasks().rev() {
        let behind = graph.successors(task).iter().map(|&next| {
            let mut inputs = graph.inputs(next);
            let comm_s = inputs.find(|input| input.0 == task).unwrap().1;
            ranks[next.index()] + if comm { comm_s } else { 0.0 }
        });
        ranks[task.index()] = own(task) + behind.fold(0.0, f64::max);
    }
    ranks
}

fn heft(problem: &Problem<'_>) -> Vec<Slot> {
    let ranks = upward(problem, true, |task| problem.mean_s(task));
    let mut order: Vec<TaskId> = problem.graph().tasks().collect();
    order.sort_by(|a, b| ranks[b.index()].total_cmp(&ranks[a.index()]));
    let mut plain = Plain::new(problem);
    for task in order {
        let slot = plain.earliest(task);
        plain.slots.push(slot);
    }
    plain.slots
}

fn dls(problem: &Problem<'_>) -> Vec<Slot> {
    let median_s = |task: TaskId| {
        let workers = problem.workers().ids();
        let mut costs_s: Vec<f64> = workers.map(|worker| problem.cost_s(task, worker)).collect();
        costs_s.sort_by(f64::total_cmp);
        (costs_s[(costs_s.len() - 1) / 2] + costs_s[costs_s.len() / 2]) / 2.0
    };
    let levels = upward(problem, false, median_s);
    let mut plain = Plain::new(problem);
    loop {
        let mut best: Option<(f64, Slot)> = None;
        for task in plain.ready() {
            for worker in problem.workers().ids() {
                let row = plain.slots.iter().filter(|slot| slot.worker == worker);
                let free_s = row.map(|slot| slot.end_s).fold(0.0, f64::max);
                let start_s = plain.arrival_s(task, worker).max(free_s);
                let cost_s = problem.cost_s(task, worker);
                let level = levels[task.index()] - start_s + median_s(task) - cost_s;
                if best.is_none_or(|(greatest, _)| level > greatest) {
                    let slot = Slot { task, worker, start_s, end_s: start_s + cost_s };
                    best = Some((level, slot));
                }
            }
        }
        match best {
            Some((_, slot)) => plain.slots.push(slot),
            None => return plain.slots,
        }
    }
}

/// With one graph per class of workers, measured anew in every step: from every task that nothing placed follows, the
/// longest path behind it, entered when the data of what is placed has arrived at another worker.
fn ldcp(problem: &Problem<'_>) -> Vec<Slot> {
    let graph = problem.graph();
    let classes = 0..problem.workers().classes().len();
    let ranks: Vec<Vec<f64>> =
        classes.map(|class| upward(problem, true, |task| problem.costs_s(task)[class])).collect();
    let mut plain = Plain::new(problem);
    while plain.slots.len() < graph.len() {
        let placed = |task: TaskId| plain.slot(task).is_some();
        let mut best: Option<(f64, TaskId, usize)> = None;
        for task in graph.tasks().filter(|&task| !placed(task)) {
            let before = graph.predecessors(task);
            if !before.is_empty() && !before.iter().any(|&from| placed(from)) {
                continue;
            }
            let inputs = graph.inputs(task);
            let entered =
                inputs.filter_map(|(from, comm_s)| Some(plain.slot(from)?.end_s + comm_s));
            let entered_s = entered.fold(0.0, f64::max);
            for (class, ranks) in ranks.iter().enumerate() {
                let length_s = entered_s + ranks[task.index()];
                if best.is_none_or(|(longest_s, _, _)| length_s > longest_s) {
                    best = Some((length_s, task, class));
                }
            }
        }
        let (_, mut key, class) = best.expect("a task is left");
        loop {
            let before = graph.predecessors(key).iter().copied();
            let rank = |task: TaskId| ranks[class][task.index()];
            let longer = |a, b| if rank(b) > rank(a) { b } else { a };
            match before.filter(|&from| !placed(from)).reduce(longer) {
                Some(from) => key = from,
                None => break,
            }
        }
        let slot = plain.earliest(key);
        plain.slots.push(slot);
    }
    plain.slots
}

fn assert_same(problem: &Problem<'_>, name: &str, literal: Vec<Slot>, case: &str) {
    let (shipped, literal) = (shipped(problem, name), Schedule::new(literal));
    assert_eq!(literal.flaw(problem), None, "{name} {case}, literal");
    let workers = problem.workers().len();
    for (shipped, literal) in shipped.by_worker(workers).iter().zip(literal.by_worker(workers)) {
        assert_eq!(*shipped, literal, "{name} {case}");
    }
}

#[test]
fn schedules_are_those_of_the_literal_versions() {
    for seed in 0..300 {
        let (graph, workers) = exact_problem(seed);
        let problem = Problem::new(&graph, workers).unwrap();
        let case = format!("seed {seed}");
        assert_same(&problem, "heft", heft(&problem), &case);
        assert_same(&problem, "dls", dls(&problem), &case);
        assert_same(&problem, "ldcp", ldcp(&problem), &case);
    }
}

/// A regular graph of many equal tasks, where every step has ties.
#[test]
fn ties_are_broken_alike() {
    let graph = cholesky(7);
    let problem = Problem::new(&graph, Workers::parse("2x2,2x1", None).unwrap()).unwrap();
    assert_same(&problem, "heft", heft(&problem), "cholesky");
}

/// Duplicates are worth it where communication is dear, and `hed` is never worse than `heft` by more than it copies.
#[test]
fn duplication_pays_where_communication_is_dear() {
    let fork = dot("digraph { node [work=2] a -> {b c d e} [comm=100] }");
    let problem = Problem::new(&fork, Workers::parse("4x1", None).unwrap()).unwrap();
    assert_eq!(shipped(&problem, "heft").makespan_s(), 10.0);
    assert_eq!(shipped(&problem, "hed").makespan_s(), 4.0);
    let mut copies = 0;
    for seed in 0..200 {
        let (graph, workers) = random_problem(&mut Draw::new(seed));
        let problem = Problem::new(&graph, workers).unwrap();
        let schedule = shipped(&problem, "hed");
        copies += schedule.slots().len() - graph.len();
        if !graph.has_communication() {
            assert_eq!(schedule.slots().len(), graph.len(), "seed {seed}: nothing to copy for");
        }
    }
    assert!(copies > 50, "{copies} copies in 200 graphs");
}
