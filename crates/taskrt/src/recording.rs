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
    let (mut slots, mut named, mut first) = (Vec::new(), HashMap::new(), 0_u32);
    for executions in all {
        let mut durations_s = vec![0.0; executions.tasks.len()];
        for slot in executions.slots {
            let speed = workers.classes()[workers.class_of(slot.worker).index()].speed;
            durations_s[slot.task.index()] = (slot.end_s - slot.start_s) * speed;
            let task = TaskId(first + slot.task.0);
            let (start_s, end_s) = (slot.start_s - start_s, slot.end_s - start_s);
            slots.push(Slot { task, worker: slot.worker, start_s, end_s });
        }
        for ((name, kind), work) in executions.tasks.iter().zip(durations_s) {
            draft.task(&unique(&mut named, name), kind, work, 0)?;
        }
        for (from, to) in executions.links {
            draft.link(first + from, first + to, 0.0, 0)?;
        }
        first += executions.tasks.len() as u32;
    }
    // Tasks wait for earlier ones only, so they keep their numbers.
    Ok(Some(Recording { graph: draft.finish()?, workers, schedule: Schedule::new(slots) }))
}

/// The name, with a number behind it if it was there before: several graphs and loops make one recording.
fn unique(named: &mut HashMap<String, u32>, name: &str) -> String {
    let count = named.entry(name.to_owned()).or_insert(0);
    *count += 1;
    if *count == 1 { name.to_owned() } else { format!("{name} ({count})") }
}
