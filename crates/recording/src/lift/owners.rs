//! A thread that starts others and then takes jobs as they do, as the first one of a Go program: one that starts them,
//! and one more that takes.

use super::crews::{Crew, FEW_CALLS, WORK_FACTOR, is_near, tells_kind};
use crate::{Event, Kind, Recording, Thread, Wake};

/// Who wakes others more than so many times as often as they do hands jobs out.
const WAKES_FACTOR: usize = 2;
/// But not with so few wake-ups per member: some come with the begin and the end.
const WAKES_PER_MEMBER: usize = 4;

/// The recording in which the owner of a crew only starts it, and one more thread does what it did from then on. None
/// if it takes no jobs, or if calls were recorded by which jobs may be handed out.
pub(super) fn divided(recording: &Recording, crew: &Crew) -> Option<Recording> {
    let owner = &recording.threads[crew.owner as usize];
    let is_start =
        |event: &Event| event.kind == Kind::Create && crew.members.contains(&event.object);
    let at = owner.events.iter().position(is_start)?;
    let last = *owner.events.last()?;
    let members = crew.members.iter().map(|member| &recording.threads[*member as usize].events[..]);
    let mut members: Vec<&[Event]> = members.collect();
    if !takes_part(&owner.events[at + 1..], &members) {
        return None;
    }
    members.push(&owner.events);
    let calls = members.iter().copied().flatten().filter(|event| tells_kind(event.kind)).count();
    if calls > FEW_CALLS * members.len() {
        return None;
    }
    let taker = recording.threads.len() as u32;
    let (from_ns, end_ns) = (owner.events[at].at_ns, last.at_ns);
    let new = |kind, object, at_ns| Event { object, ..Event::new(kind, at_ns, 0) };
    let mut starts = owner.events[..=at].to_vec();
    let wait_ns = end_ns.saturating_sub(from_ns);
    starts.push(new(Kind::Create, taker, from_ns));
    starts.push(Event { wait_ns, is_blocked: true, ..new(Kind::Join, taker, end_ns) });
    starts.push(new(Kind::Exit, 0, end_ns));
    let mut takes = vec![Event { aux: crew.owner + 1, ..new(Kind::Start, 0, from_ns) }];
    takes.extend_from_slice(&owner.events[at + 1..]);
    let mut found = recording.clone();
    let events = found.threads.iter_mut().flat_map(|thread| &mut thread.events);
    events.filter(|event| event.at_ns >= from_ns).for_each(|event| name(event, crew.owner, taker));
    found.threads[crew.owner as usize].events = starts;
    found.threads.push(Thread { events: takes, ..owner.clone() });
    Some(found)
}

/// Whether a thread does about as much as the members of a crew, as these among themselves, and hands out nothing.
fn takes_part(owner: &[Event], members: &[&[Event]]) -> bool {
    let work = |events: &[Event]| events.iter().map(|event| event.work_ns as f64).sum::<f64>();
    let wakes = |events: &[Event]| events.iter().filter(|event| wakes_others(event.kind)).count();
    let mean = members.iter().copied().map(work).sum::<f64>() / members.len() as f64;
    let most = members.iter().copied().map(wakes).max().unwrap_or(0).max(1);
    is_near(work(owner), mean, WORK_FACTOR)
        && wakes(owner) <= usize::max(WAKES_FACTOR * most, WAKES_PER_MEMBER * members.len())
}

fn wakes_others(kind: Kind) -> bool {
    matches!(kind, Kind::Wake | Kind::FutexWake)
}

/// Who woke, or was woken, is the one that takes.
fn name(event: &mut Event, owner: u32, taker: u32) {
    match event.kind {
        Kind::Wake if event.object == owner => event.object = taker,
        Kind::Block if Wake::from_aux(event.aux) == Wake::Thread(owner) => {
            event.aux = Wake::Thread(taker).to_aux();
        }
        _ => {}
    }
}
