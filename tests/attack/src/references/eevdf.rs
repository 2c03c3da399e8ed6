//! EEVDF on one core by its definition (Stoica and Abdel-Wahab 1995; Linux 6.6,
//! Documentation/scheduler/sched-eevdf.rst), for threads of nice 0 that compute until they end. V is the mean virtual
//! run time of all that are ready. Of those that are not beyond V, the one of the earliest deadline runs until its
//! request is used up; its next deadline is a request later. A new thread starts at V with half a request
//! (`PLACE_DEADLINE_INITIAL`), and interrupts if it would be chosen and the running one is beyond V or has used its
//! request up (`RUN_TO_PARITY`).

use super::setup::{Cluster, Setup, compute, costs, machine, thread, us};
use super::{Case, TIE, Verdict};

/// A thread that comes at a time and computes.
#[derive(Clone, Copy, Debug)]
struct Plan {
    start: u64,
    work: u64,
}

/// A thread that is ready.
#[derive(Clone, Copy, Debug)]
struct Task {
    thread: usize,
    virtual_ns: u64,
    deadline: u64,
    left: u64,
}

/// Whether a thread is not beyond the mean of all.
fn is_eligible(tasks: &[Task], task: &Task) -> bool {
    let sum: u64 = tasks.iter().map(|task| task.virtual_ns).sum();
    task.virtual_ns * tasks.len() as u64 <= sum
}

/// The place of whoever comes first, but for one; none if two are equal.
fn choose(tasks: &[Task], but: Option<usize>) -> Option<usize> {
    let eligible = |place: &usize| Some(*place) != but && is_eligible(tasks, &tasks[*place]);
    let all = || (0..tasks.len()).filter(eligible);
    let first = all().min_by_key(|&place| tasks[place].deadline)?;
    let equal = all().filter(|&place| tasks[place].deadline == tasks[first].deadline);
    (equal.count() == 1).then_some(first)
}

/// When each thread ends; none if it depends on the order of what happens at one moment. Plans are in the order of
/// their starts.
fn schedule(plans: &[Plan], request: u64) -> Option<Vec<u64>> {
    let mut ends = vec![0; plans.len()];
    // The one that runs, by its place.
    let (mut tasks, mut running) = (Vec::<Task>::new(), None);
    let (mut now, mut next) = (0, 0);
    loop {
        let comes = plans.get(next).map_or(u64::MAX, |plan| plan.start);
        let Some(place) = running else {
            if comes == u64::MAX {
                return Some(ends);
            }
            let Plan { start, work } = plans[next];
            tasks.push(Task { thread: next, virtual_ns: 0, deadline: request / 2, left: work });
            (now, next, running) = (start, next + 1, Some(0));
            continue;
        };
        let task: &mut Task = &mut tasks[place];
        // Alone it goes on beyond its request.
        let rest = task.deadline.saturating_sub(task.virtual_ns);
        let until = now + task.left;
        let due = if tasks.len() > 1 { until.min(now + rest) } else { until };
        if due == comes {
            return None;
        }
        let ran = due.min(comes) - now;
        now += ran;
        let task = &mut tasks[place];
        (task.virtual_ns, task.left) = (task.virtual_ns + ran, task.left - ran);
        let is_used_up = task.virtual_ns >= task.deadline;
        if task.left == 0 {
            ends[task.thread] = now;
            tasks.remove(place);
            running = if tasks.is_empty() { None } else { Some(choose(&tasks, None)?) };
            continue;
        }
        if due > comes {
            let sum: u64 = tasks.iter().map(|task| task.virtual_ns).sum();
            let mean = sum / tasks.len() as u64;
            let (thread, left) = (next, plans[next].work);
            tasks.push(Task { thread, virtual_ns: mean, deadline: mean + request / 2, left });
            next += 1;
            let is_ahead = !is_eligible(&tasks, &tasks[place]);
            let chosen = choose(&tasks, Some(place));
            let interrupts = is_used_up || is_ahead && chosen? == tasks.len() - 1;
            if !interrupts {
                continue;
            }
        }
        if is_used_up {
            tasks[place].deadline = tasks[place].virtual_ns + request;
        }
        running = Some(choose(&tasks, None)?);
    }
}

/// One to nine threads. The end of a request is noticed at once (`hz = 0`).
pub fn run(case: &mut Case) -> Verdict {
    let dice = &mut case.dice;
    let (mut plans, request) = loop {
        let longest = dice.whole(100_000..=30_000_000);
        let plan = |_| Plan { start: dice.whole(0..=3 * longest), work: dice.whole(1..=longest) };
        let mut plans: Vec<Plan> = (0..9).map(plan).collect();
        plans.truncate(dice.whole(1..=9) as usize);
        plans.sort_by_key(|plan| plan.start);
        let request = 1000 * dice.whole(100..=5000);
        if schedule(&plans, request).is_some() {
            break (plans, request);
        }
    };
    let program: String = (plans.iter().enumerate())
        .map(|(number, plan)| {
            let keys = format!("start_us = {}", us(plan.start));
            thread(&format!("t{number}"), &keys, &[compute(plan.work)])
        })
        .collect();
    let policy = format!("eevdf:hz=0:base_slice_ms={}", request as f64 / 1e6);
    let machine = machine(&[Cluster::new(1, 1000)], &costs(&[]));
    let outcome = case.simulate(&Setup::new(machine, program, &policy))?;
    let last = plans.len() - 1;
    plans[0].work = case.bend("work", plans[0].work, 1);
    plans[last].start = case.bend("start", plans[last].start, 1);
    let request = case.bend("request", request, 2000);
    let expected = schedule(&plans, request).ok_or(TIE)?;
    case.each_thread("end", &outcome, |thread| thread.end_ns, &expected)
}
