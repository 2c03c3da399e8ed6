//! Recordings of real runs, in the form in which simulated schedules are drawn and traced.

use std::collections::HashMap;

use ampsched_model::InputError;
use ampsched_task::{Draft, Recording, Schedule, Slot, TaskId, Workers};

use crate::graph_job::Executions;

/// Makes one recording of what graphs and loops have executed; time begins with the first execution.
pub fn recording(all: Vec<Executions>, workers: Workers) -> Result<Option<Recording>, InputError> {
    let slots = all.iter().flat_map(|executions| &executions.slots);
    let start_s = slots.map(|slot| slot.start_s).fold(f64::INFINITY, f64::min);
    if start_s.is_infinite() {
        return Ok(None);
    }
    let mut draft = Draft::new("recording");
    let (mut slots, mut taken, mut first) = (Vec::new(), HashMap::new(), 0_u32);
    for executions in all {
        let mut durations_s = vec![0.0; executions.tasks.len()];
        for slot in executions.slots {
            let speed = workers.classes()[workers.class_of(slot.worker).index()].speed;
            durations_s[slot.task.index()] = (slot.end_s - slot.start_s) * speed;
            let task = TaskId(first + slot.task.0);
            let (start_s, end_s) = (slot.start_s - start_s, slot.end_s - start_s);
            slots.push(Slot { task, worker: slot.worker, start_s, end_s });
        }
        for (number, ((name, kind), work)) in executions.tasks.iter().zip(durations_s).enumerate() {
            let name = unique(&mut taken, &readable(name, number));
            draft.task(&name, kind, work, 0)?;
        }
        for (from, to) in executions.links {
            draft.link(first + from, first + to, 0.0, 0)?;
        }
        first += executions.tasks.len() as u32;
    }
    // Tasks wait for earlier ones only, so they keep their numbers.
    Ok(Some(Recording { graph: draft.finish()?, workers, schedule: Schedule::new(slots) }))
}

/// A task's name as a table of a recording can hold it; its number if nothing is left of it.
fn readable(name: &str, number: usize) -> String {
    let name = name.replace(';', ",").replace(char::is_control, " ");
    match name.trim() {
        "" => number.to_string(),
        name => name.to_owned(),
    }
}

/// The name, with a number behind it if it is taken: several graphs and loops make one recording.
fn unique(taken: &mut HashMap<String, u32>, name: &str) -> String {
    let mut unique = name.to_owned();
    while taken.contains_key(&unique) {
        let count = taken.get_mut(name).expect("it is taken itself");
        *count += 1;
        unique = format!("{name} ({count})");
    }
    taken.insert(unique.clone(), 1);
    unique
}
