//! Task graphs for the tests; not every test uses all of them.
#![allow(dead_code)]

use std::collections::HashMap;

use ampsched_model::Draw;
use ampsched_task::{Draft, Format, Graph, ReadOptions, WorkerClass, Workers, read};

/// The graph of a DOT text.
pub fn dot(text: &str) -> Graph {
    read(Format::Dot, "graph.dot", text, &ReadOptions::default()).unwrap()
}

/// Right-looking Cholesky factorisation of so many tiles squared; work 1/3 (POTRF, to six decimals), 1 (TRSM, SYRK), 2
/// (GEMM).
pub fn cholesky(tiles: u32) -> Graph {
    let mut tasks = Tasks { draft: Draft::new("cholesky"), last: HashMap::new() };
    for k in 0..tiles {
        tasks.add("POTRF", 0.333333, &[], (k, k));
        for m in k + 1..tiles {
            tasks.add("TRSM", 1.0, &[(k, k)], (m, k));
        }
        for m in k + 1..tiles {
            tasks.add("SYRK", 1.0, &[(m, k)], (m, m));
            for n in k + 1..m {
                tasks.add("GEMM", 2.0, &[(m, k), (n, k)], (m, n));
            }
        }
    }
    tasks.draft.finish().unwrap()
}

type Tile = (u32, u32);

struct Tasks {
    draft: Draft,
    /// The last task that wrote each tile.
    last: HashMap<Tile, u32>,
}

impl Tasks {
    fn add(&mut self, kind: &str, work: f64, reads: &[Tile], writes: Tile) {
        let task = self.draft.task(&self.draft.len().to_string(), kind, work, 0).unwrap();
        let tiles = reads.iter().chain([&writes]);
        let mut before: Vec<u32> = tiles.filter_map(|tile| self.last.get(tile).copied()).collect();
        before.sort_unstable();
        before.dedup();
        before.iter().for_each(|&from| self.draft.link(from, task, 0.0, 0).unwrap());
        self.last.insert(writes, task);
    }
}

/// A graph of 1 to 60 tasks and 1 to 6 workers in 1 to 3 classes. Some have communication, some costs per class,
/// some tasks that take no time, some times that are no round numbers.
pub fn random_problem(random: &mut Draw) -> (Graph, Workers) {
    let classes: Vec<WorkerClass> = (0..1 + random.bits() % 3)
        .map(|class| WorkerClass {
            name: format!("class {class}"),
            speed: 0.5 + random.uniform() * 4.0,
            count: 1 + (random.bits() % 2) as usize,
            grab_s: 0.0,
        })
        .collect();
    let (communicates, has_costs) = (random.bits() % 2 == 0, random.bits() % 3 == 0);
    let round = random.bits() % 2 == 0;
    let density = random.uniform().powi(2);
    let amount = |random: &mut Draw| {
        let amount = random.uniform() * 10.0;
        if round { amount.floor() } else { amount }
    };
    let mut draft = Draft::new("random");
    for number in 0..1 + random.bits() as u32 % 60 {
        let work = amount(random);
        let task = draft.task(&number.to_string(), "", work, 0).unwrap();
        if has_costs {
            draft.costs(task, classes.iter().map(|_| amount(random)).collect()).unwrap();
        }
        for from in 0..task {
            if random.uniform() < density / f64::from(1 + (task - from) / 4) {
                let comm_s = if communicates { amount(random) } else { 0.0 };
                draft.link(from, task, comm_s, 0).unwrap();
            }
        }
    }
    (draft.finish().unwrap(), Workers::new(classes).unwrap())
}
