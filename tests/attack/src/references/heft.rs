//! HEFT (Topcuoglu, Hariri, Wu, IEEE TPDS 13, 2002, section 4.1): a task's rank is its mean cost and the longest way
//! behind it (its bottom level), data included; by decreasing rank each task goes to the worker where it ends first, in
//! a gap between others if it fits there. Equal ranks: the smaller number; equal ends: the smaller worker.
//!
//! Works are whole numbers, speeds and the number of workers powers of two: all numbers are exact in binary.

use ampsched_sim::run_task_policy;
use ampsched_task::{Draft, Problem, WorkerClass, Workers, build_task_policy};

use super::{Case, Verdict};

/// A task: its work, and what it waits for with the time that the data takes to another worker.
#[derive(Clone, Debug)]
struct Task {
    work: u64,
    before: Vec<(usize, u64)>,
}

/// Where a task is executed, and when.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    worker: usize,
    start: f64,
    end: f64,
}

fn schedule(tasks: &[Task], speeds: &[f64]) -> Vec<Slot> {
    let mut ranks = vec![0.0_f64; tasks.len()];
    for (number, task) in tasks.iter().enumerate().rev() {
        let costs: f64 = speeds.iter().map(|speed| task.work as f64 / speed).sum();
        ranks[number] += costs / speeds.len() as f64;
        for &(from, data) in &task.before {
            ranks[from] = ranks[from].max(ranks[number] + data as f64);
        }
    }
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by(|&one, &other| ranks[other].total_cmp(&ranks[one]));
    let mut slots = vec![Slot::default(); tasks.len()];
    let mut rows: Vec<Vec<(f64, f64)>> = vec![Vec::new(); speeds.len()];
    for number in order {
        let task = &tasks[number];
        let mut best: Option<Slot> = None;
        for (worker, speed) in speeds.iter().enumerate() {
            let arrives = |&(from, data): &(usize, u64)| {
                slots[from].end + if slots[from].worker == worker { 0.0 } else { data as f64 }
            };
            let mut start = task.before.iter().map(arrives).fold(0.0, f64::max);
            let cost = task.work as f64 / speed;
            for &(begin, end) in &rows[worker] {
                if start + cost > begin {
                    start = start.max(end);
                }
            }
            if best.is_none_or(|best| start + cost < best.end) {
                best = Some(Slot { worker, start, end: start + cost });
            }
        }
        let slot = best.unwrap_or_default();
        slots[number] = slot;
        rows[slot.worker].push((slot.start, slot.end));
        rows[slot.worker].sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    slots
}

/// A random graph on one, two, four or eight workers.
pub fn run(case: &mut Case) -> Verdict {
    let dice = &mut case.dice;
    let count = dice.whole(1..=40);
    let (links, most) = (dice.whole(1..=4), dice.whole(0..=1) * dice.whole(1..=500));
    let mut tasks: Vec<Task> = Vec::new();
    for number in 0..count as usize {
        let linked: Vec<usize> = (0..number).filter(|_| dice.whole(1..=count) <= links).collect();
        let before = linked.into_iter().map(|from| (from, dice.whole(0..=most))).collect();
        tasks.push(Task { work: dice.whole(1..=400), before });
    }
    let workers = *dice.of(&[1, 2, 4, 8]);
    let mut speeds: Vec<f64> = (0..workers).map(|_| *dice.of(&[0.5, 1.0, 2.0, 4.0])).collect();
    case.note(format!("tasks {tasks:?}\nspeeds {speeds:?}\n"));
    let wrong = |error: ampsched_model::InputError| error.to_string();
    let mut draft = Draft::new("graph");
    for (number, task) in tasks.iter().enumerate() {
        let added = draft.task(&number.to_string(), "", task.work as f64, 0).map_err(wrong)?;
        for &(from, data) in &task.before {
            draft.link(from as u32, added, data as f64, 0).map_err(wrong)?;
        }
    }
    let graph = draft.finish().map_err(wrong)?;
    let class = |(number, &speed): (usize, &f64)| WorkerClass {
        name: format!("w{number}"),
        speed,
        count: 1,
        grab_s: 0.0,
    };
    let classes = Workers::new(speeds.iter().enumerate().map(class).collect()).map_err(wrong)?;
    let problem = Problem::new(&graph, classes).map_err(wrong)?;
    let (build, params) = build_task_policy("heft", &[]).map_err(|error| error.to_string())?;
    let found = run_task_policy(&problem, build, &params).map_err(|error| error.to_string())?;
    tasks[0].work = case.bend("work", tasks[0].work, 1);
    for (_, data) in tasks.iter_mut().flat_map(|task| &mut task.before) {
        *data = case.bend("data", *data, 1);
    }
    speeds[0] *= case.bend("speed", 1, 1) as f64;
    let expected = schedule(&tasks, &speeds);
    case.equal("tasks", found.slots().len(), expected.len())?;
    for slot in found.slots() {
        let wanted = expected[slot.task.index()];
        let what = format!("task {}", slot.task.index());
        case.equal(&format!("worker of {what}"), slot.worker.index(), wanted.worker)?;
        case.equal(&format!("start of {what}"), slot.start_s, wanted.start)?;
        case.equal(&format!("end of {what}"), slot.end_s, wanted.end)?;
    }
    Ok(())
}
