//! A schedule of a task graph as a trace: one track per worker, and arrows along the data that came last.

use std::io::{self, Write};

use ampsched_model::Ns;
use ampsched_task::{Problem, Schedule, Slot};

use super::packets::{PacketWriter, track};
use super::proto::{ChildOrdering, EventType, TrackDescriptor, TrackEvent};

/// Writes a schedule as a Perfetto trace; times are rounded to ns.
///
/// Every worker has a track whose slices are tasks, named by kind and task. An arrow leads to a task from
/// the predecessor that ended last. Errors: those of the writer.
pub fn write_schedule<W: Write>(
    writer: W,
    problem: &Problem<'_>,
    schedule: &Schedule,
) -> io::Result<()> {
    let mut packets = PacketWriter::new(writer);
    let tracks = describe_workers(&mut packets, problem);
    let slots = schedule.slots();
    let sources = last_sources(problem, slots);
    for event in events(slots, problem.workers().len()) {
        let slot = &slots[event.slot];
        let uuid = tracks[slot.worker.index()];
        if event.is_end {
            packets.event(EventType::SliceEnd, uuid, TrackEvent::default(), event.at_ns);
            continue;
        }
        let begin = TrackEvent {
            name_iid: Some(packets.intern(name_of(problem, slot))),
            flow_ids: sources.outgoing[event.slot].clone(),
            terminating_flow_ids: sources.incoming[event.slot].into_iter().collect(),
            ..TrackEvent::default()
        };
        packets.event(EventType::SliceBegin, uuid, begin, event.at_ns);
    }
    packets.finish()
}

fn describe_workers<W: Write>(packets: &mut PacketWriter<W>, problem: &Problem<'_>) -> Vec<u64> {
    let group = packets.new_uuid();
    let title = format!("Workers of {}", problem.graph().name());
    let child_ordering = Some(ChildOrdering::Explicit as i32);
    packets.describe(TrackDescriptor { child_ordering, ..track(group, Some(title)) });
    let workers = problem.workers();
    workers
        .ids()
        .map(|worker| {
            let class = &workers.classes()[workers.class_of(worker).index()].name;
            let uuid = packets.new_uuid();
            packets.describe(TrackDescriptor {
                parent_uuid: Some(group),
                sibling_order_rank: Some(i32::from(worker.0)),
                ..track(uuid, Some(format!("worker {} {class}", worker.0)))
            });
            uuid
        })
        .collect()
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
