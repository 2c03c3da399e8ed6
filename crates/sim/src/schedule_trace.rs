//! A schedule of a task graph as a trace: one track per worker, and arrows along the data that came last.

use std::io::{self, Write};

use ampsched_model::Ns;
use ampsched_task::{Problem, Schedule, Slot};
use ampsched_trace::SpanTrace;

/// Writes a schedule as a Perfetto trace; times are rounded to ns.
///
/// Every worker has a track whose slices are tasks, named by kind and task. An arrow leads to a task from
/// the predecessor that ended last. Errors: those of the writer.
pub fn write_schedule<W: Write>(
    writer: W,
    problem: &Problem<'_>,
    schedule: &Schedule,
) -> io::Result<()> {
    let title = format!("Workers of {}", problem.graph().name());
    let mut trace = SpanTrace::new(writer, title, worker_names(problem));
    let slots = schedule.slots();
    let sources = last_sources(problem, slots);
    for event in events(slots, problem.workers().len()) {
        let slot = &slots[event.slot];
        let worker = slot.worker.index();
        if event.is_end {
            trace.end(worker, event.at_ns);
            continue;
        }
        let (outgoing, incoming) =
            (sources.outgoing[event.slot].clone(), sources.incoming[event.slot]);
        trace.begin(worker, name_of(problem, slot), outgoing, incoming, event.at_ns);
    }
    trace.finish()
}

fn worker_names(problem: &Problem<'_>) -> Vec<String> {
    let workers = problem.workers();
    let name = |worker| {
        let class = &workers.classes()[workers.class_of(worker).index()].name;
        format!("worker {} {class}", worker.0)
    };
    workers.ids().map(name).collect()
}

fn name_of(problem: &Problem<'_>, slot: &Slot) -> String {
    let (name, kind) = (problem.graph().task_name(slot.task), problem.graph().kind(slot.task));
    if kind.is_empty() { name.to_owned() } else { format!("{kind} {name}") }
}

/// Begin or end of an execution.
struct Event {
    at_ns: Ns,
    slot: usize,
    is_end: bool,
}

/// All events by time; those of a worker in the order of its executions.
fn events(slots: &[Slot], workers: usize) -> Vec<Event> {
    let mut places = vec![0_usize; workers];
    let mut events = Vec::with_capacity(2 * slots.len());
    for (number, slot) in slots.iter().enumerate() {
        let place = &mut places[slot.worker.index()];
        for (at_s, is_end) in [(slot.start_s, false), (slot.end_s, true)] {
            let event = Event { at_ns: (at_s * 1e9).round() as Ns, slot: number, is_end };
            events.push((event.at_ns, slot.worker, *place, event));
            *place += 1;
        }
    }
    events.sort_by_key(|&(at_ns, worker, place, _)| (at_ns, worker, place));
    events.into_iter().map(|(_, _, _, event)| event).collect()
}

/// Numbers of the arrows that begin and end at each execution.
struct Sources {
    outgoing: Vec<Vec<u64>>,
    incoming: Vec<Option<u64>>,
}

/// An arrow to each execution from the first execution of that predecessor which ended last.
fn last_sources(problem: &Problem<'_>, slots: &[Slot]) -> Sources {
    let mut first_of = vec![usize::MAX; problem.graph().len()];
    for (number, slot) in slots.iter().enumerate().rev() {
        first_of[slot.task.index()] = number;
    }
    let mut sources =
        Sources { outgoing: vec![Vec::new(); slots.len()], incoming: vec![None; slots.len()] };
    for (number, slot) in slots.iter().enumerate() {
        let before = problem.graph().predecessors(slot.task).iter();
        let later = |a: usize, b: usize| if slots[b].end_s > slots[a].end_s { b } else { a };
        if let Some(source) = before.map(|from| first_of[from.index()]).reduce(later) {
            let flow = number as u64 + 1;
            sources.outgoing[source].push(flow);
            sources.incoming[number] = Some(flow);
        }
    }
    sources
}

#[cfg(test)]
mod tests {
    use ampsched_task::{Format, ReadOptions, Workers, build_task_policy, read};

    use super::*;

    #[test]
    fn arrows_lead_along_the_data_that_came_last() {
        let text = "a,4,LOAD,\nb,2,,\nc,2,WORK,a;b\n";
        let graph = read(Format::Csv, "join.csv", text, &ReadOptions::default()).unwrap();
        let problem = Problem::new(&graph, Workers::parse("1x2,1x1", None).unwrap()).unwrap();
        let (build, params) = build_task_policy("fifo", &[]).unwrap();
        let schedule = crate::run_task_policy(&problem, build, &params).unwrap();
        assert_eq!(worker_names(&problem), ["worker 0 2", "worker 1 1"]);
        let slots = schedule.slots();
        let names: Vec<String> = slots.iter().map(|slot| name_of(&problem, slot)).collect();
        let place = |name: &str| names.iter().position(|own| own == name).unwrap();
        let sources = last_sources(&problem, slots);
        // Both predecessors end at 2 s; the first one is named.
        let arrow = sources.incoming[place("WORK c")].unwrap();
        assert_eq!(sources.outgoing[place("LOAD a")], [arrow]);
        assert!(sources.outgoing[place("b")].is_empty());
        let times = |name: &str| {
            let own = |event: &&Event| event.slot == place(name);
            let all = events(slots, 2);
            all.iter().filter(own).map(|event| event.at_ns / 1_000_000_000).collect::<Vec<_>>()
        };
        assert_eq!(
            (times("LOAD a"), times("b"), times("WORK c")),
            (vec![0, 2], vec![0, 2], vec![2, 3])
        );
    }
}
