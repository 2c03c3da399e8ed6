//! List scheduling (Graham, SIAM J. Applied Mathematics 17, 1969) of a task graph on unequal workers, in the order in
//! which tasks become ready: the free workers take the first tasks of one queue, in the order of their numbers.

use std::collections::VecDeque;

use super::setup::{Cluster, Setup, costs, machine, thread, us};
use super::{Case, TIE, Verdict, any_policy};

/// A task: how long it takes on the fastest worker, in ns, and what it waits for.
#[derive(Clone, Debug)]
struct Task {
    work: u64,
    before: Vec<usize>,
}

/// How long each worker is busy, and when all has ended; none if two tasks end at once.
fn schedule(tasks: &[Task], slowness: &[u64], grab: u64) -> Option<(Vec<u64>, u64)> {
    let mut missing: Vec<usize> = tasks.iter().map(|task| task.before.len()).collect();
    let mut queue: VecDeque<usize> = (0..tasks.len()).filter(|&task| missing[task] == 0).collect();
    let mut running: Vec<Option<(u64, usize)>> = vec![None; slowness.len()];
    let (mut busy, mut now) = (vec![0; slowness.len()], 0);
    loop {
        for (worker, running) in running.iter_mut().enumerate() {
            if running.is_none() {
                if let Some(task) = queue.pop_front() {
                    let takes = (tasks[task].work + grab) * slowness[worker];
                    busy[worker] += takes;
                    *running = Some((now + takes, task));
                }
            }
        }
        let Some((end, ended)) = running.iter().flatten().copied().min() else {
            return Some((busy, now));
        };
        if running.iter().flatten().filter(|other| other.0 == end).count() > 1 {
            return None;
        }
        now = end;
        running.iter_mut().filter(|it| **it == Some((end, ended))).for_each(|it| *it = None);
        for (task, missing) in missing.iter_mut().enumerate() {
            if tasks[task].before.contains(&ended) {
                *missing -= 1;
                if *missing == 0 {
                    queue.push_back(task);
                }
            }
        }
    }
}

/// How many times as long as on the fastest worker work takes.
fn slowness(mhz: &[u64]) -> Vec<u64> {
    mhz.iter().map(|mhz| 2000 / mhz).collect()
}

/// A worker on each core of its own, all in one parallel region.
pub fn run(case: &mut Case) -> Verdict {
    let dice = &mut case.dice;
    let (mut tasks, mhz, grab) = loop {
        let count = dice.whole(1..=40);
        let links = dice.whole(1..=4);
        let tasks: Vec<Task> = (0..count)
            .map(|number| Task {
                work: 4 * dice.whole(1..=500_000),
                before: (0..number as usize).filter(|_| dice.whole(1..=count) <= links).collect(),
            })
            .collect();
        let mut mhz: Vec<u64> =
            (0..dice.whole(1..=5)).map(|_| *dice.of(&[500, 1000, 2000])).collect();
        mhz[0] = 2000;
        let grab = 4 * dice.whole(0..=1) * dice.whole(1..=2000);
        if schedule(&tasks, &slowness(&mhz), grab).is_some() {
            break (tasks, mhz, grab);
        }
    };
    let row = |(number, task): (usize, &Task)| {
        let before: Vec<String> = task.before.iter().map(usize::to_string).collect();
        format!(
            "{number},{}.{:09},,{}\n",
            task.work / 1_000_000_000,
            task.work % 1_000_000_000,
            before.join(";")
        )
    };
    let graph: String = tasks.iter().enumerate().map(row).collect();
    let workers = mhz.len();
    let mut program = format!("[regions.r]\ngraph = \"g.csv\"\ngrab_us = {}\n", us(grab));
    for number in 0..workers {
        let body = ["{ tasks = \"r\", profile = \"unit\" }".to_owned()];
        program += &thread(&format!("t{number}"), &format!("cores = [{number}]"), &body);
    }
    let clusters: Vec<Cluster> = mhz.iter().map(|&mhz| Cluster::new(1, mhz)).collect();
    let policy = any_policy(dice, 0);
    let mut setup = Setup::new(machine(&clusters, &costs(&[])), program, policy);
    setup.graph = graph;
    let outcome = case.simulate(&setup)?;
    let last = tasks.len() - 1;
    tasks[0].work = case.bend("work", tasks[0].work, 4);
    if case.is_bent("order") && last > 0 {
        tasks[last].before = (0..last).collect();
    }
    let mut slowness = slowness(&mhz);
    slowness[0] = case.bend("speed", slowness[0], 1);
    let grab = case.bend("grab", grab, 4);
    let (busy, end) = schedule(&tasks, &slowness, grab).ok_or(TIE)?;
    case.equal("end", outcome.makespan_ns, end)?;
    for (number, (core, busy)) in outcome.cores.iter().zip(busy).enumerate() {
        case.equal(&format!("time of worker {number}"), core.busy_ns, busy)?;
    }
    Ok(())
}
