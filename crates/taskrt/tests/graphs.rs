//! Random task graphs on real threads: every task sees what its predecessors have written, under every policy.
//!
//! `GRAPHS=10000` runs more of them ; the seed of a failing one is printed. `make attack` goes further.

use std::sync::atomic::{AtomicU64, Ordering};

use ampsched_model::Draw;
use ampsched_task::{Draft, Graph, REGISTRY, TaskId};
use ampsched_taskrt::{Config, Cores, Datum, Runtime, Scope};

/// Graphs in the everyday run: some for each policy.
const GRAPHS: u64 = 1000;

fn graphs() -> u64 {
    std::env::var("GRAPHS").map_or(GRAPHS, |text| text.parse().expect("GRAPHS is a number"))
}

/// Four workers, two of them twice as fast as far as policies know; not pinned, as there may be fewer cores.
fn runtime(policy: &str) -> Runtime {
    let cores = Cores::parse("big:2=0-1;little=2-3").unwrap();
    let config = Config { policy: policy.to_owned(), pin: false, ..Config::new(cores) };
    Runtime::new(&config).unwrap()
}

fn runtimes() -> Vec<Runtime> {
    REGISTRY.iter().map(|info| runtime(info.name)).collect()
}

/// A result that depends on the task and on the results before it, in their order.
fn mixed(task: u64, before: impl Iterator<Item = u64>) -> u64 {
    before.fold(task.wrapping_mul(0x9e37_79b9_7f4a_7c15), |sum, value| {
        (sum.rotate_left(7) ^ value).wrapping_mul(0xff51_afd7_ed55_8ccd)
    })
}

/// Up to 60 tasks, each with up to three predecessors.
fn random_graph(seed: u64) -> Graph {
    let mut random = Draw::new(seed);
    let mut below = |limit: f64| (random.uniform() * limit) as u32;
    let mut draft = Draft::new("random");
    for task in 0..1 + below(60.0) {
        draft.task(&task.to_string(), "", f64::from(below(4.0)), 0).unwrap();
        let mut before: Vec<u32> =
            (0..below(4.0).min(task)).map(|_| below(f64::from(task))).collect();
        before.sort_unstable();
        before.dedup();
        before.into_iter().for_each(|from| draft.link(from, task, 0.0, 0).unwrap());
    }
    draft.finish().unwrap()
}

#[test]
fn graphs_give_the_sequential_result_under_every_policy() {
    let runtimes = runtimes();
    for seed in 0..graphs() {
        let graph = random_graph(seed);
        let results: Vec<AtomicU64> = graph.tasks().map(|_| AtomicU64::new(0)).collect();
        let get = |task: &TaskId| results[task.index()].load(Ordering::Relaxed);
        let runtime = &runtimes[seed as usize % runtimes.len()];
        let body = |task: TaskId| {
            let value = mixed(task.0.into(), graph.predecessors(task).iter().map(get));
            let old = results[task.index()].swap(value, Ordering::Relaxed);
            assert_eq!(old, 0, "seed {seed}: task {} is executed twice", task.0);
        };
        runtime.run_graph(&graph, body).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let mut expected: Vec<u64> = Vec::new();
        for task in graph.tasks() {
            let before = graph.predecessors(task).iter().map(|from| expected[from.index()]);
            let value = mixed(task.0.into(), before);
            expected.push(value);
            assert_eq!(get(&task), value, "seed {seed} task {}", task.0);
        }
    }
}

/// Random accesses to a few data, executed one after the other by `each`.
fn random_accesses(seed: u64, mut each: impl FnMut(u64, Vec<usize>, usize)) {
    let mut random = Draw::new(seed);
    let mut below = |limit: usize| (random.uniform() * limit as f64) as usize;
    for task in 0..1 + below(60) as u64 {
        let writes = below(DATA);
        let mut reads: Vec<usize> = (0..below(4)).map(|_| below(DATA)).collect();
        reads.retain(|&read| read != writes);
        each(task + 1, reads, writes);
    }
}

const DATA: usize = 6;

#[test]
fn accesses_give_the_sequential_result_whether_tasks_start_at_once_or_later() {
    let all = runtimes();
    let starts_at_once = ["cats", "cats-cost", "fifo", "work-stealing"].map(runtime);
    for seed in 0..graphs() {
        let data: Vec<Datum<u64>> = (0..DATA).map(|_| Datum::new(0)).collect();
        let is_held = seed % 2 == 0;
        let team = if is_held { &all[..] } else { &starts_at_once[..] };
        let runtime = &team[(seed / 2) as usize % team.len()];
        let result = if is_held {
            runtime.graph(|scope| create(scope, &data, seed))
        } else {
            runtime.scope(|scope| create(scope, &data, seed))
        };
        result.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let expected: Vec<Datum<u64>> = (0..DATA).map(|_| Datum::new(0)).collect();
        random_accesses(seed, |task, reads, writes| access(&expected, task, &reads, writes));
        for (place, (is, should)) in data.into_iter().zip(expected).enumerate() {
            assert_eq!(is.into_inner(), should.into_inner(), "seed {seed} datum {place}");
        }
    }
}

/// Creates the tasks of a seed.
fn create<'scope>(scope: &'scope Scope<'scope, '_>, data: &'scope [Datum<u64>], seed: u64) {
    random_accesses(seed, |task, reads, writes| {
        let new = scope.task("mix").writes(&data[writes]);
        let new = reads.iter().fold(new, |new, &read| new.reads(&data[read]));
        new.run(move || access(data, task, &reads, writes));
    });
}

/// What a task does; a datum refuses access if a dependence is missing.
fn access(data: &[Datum<u64>], task: u64, reads: &[usize], writes: usize) {
    let mut write = data[writes].write();
    let before = reads.iter().map(|&read| *data[read].read());
    *write = mixed(task, before.chain([*write]).collect::<Vec<_>>().into_iter());
}
