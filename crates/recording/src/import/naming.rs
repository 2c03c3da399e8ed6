//! What a program is called whose name nobody states: as the process that has used most CPU time, or on Android the app
//! that has.

use std::collections::{HashMap, HashSet};

use super::event::{Names, Story};
use super::track::Track;
use crate::Thread;

/// The thread that draws, by which Android's toolkit shows that a process is an app.
const DRAWS: &str = "RenderThread";

/// The name of the process with most CPU time, of apps if there are any: as a list of processes or its first thread
/// names it, else as the thread with most time in it. Of processes with equal time it is the first. `order` are the
/// tracks of the threads.
pub fn of_most_time(
    threads: &[Thread],
    order: &[usize],
    tracks: &[Track],
    processes: &[u32],
    story: &Story,
    names: &Names,
) -> String {
    let cpu_ns = |thread: &Thread| -> u64 {
        thread.events.iter().fold(0, |sum, event| sum.saturating_add(event.cpu_ns))
    };
    let times: Vec<u64> = threads.iter().map(cpu_ns).collect();
    let mut of_process: HashMap<u32, u64> = HashMap::new();
    for (&index, &time) in order.iter().zip(&times) {
        let sum = of_process.entry(processes[index]).or_default();
        *sum = sum.saturating_add(time);
    }
    let drawing = order.iter().zip(threads).filter(|(_, thread)| thread.name == DRAWS);
    let apps: HashSet<u32> = drawing.map(|(&index, _)| processes[index]).collect();
    let time = |place: &usize| {
        let process = processes[order[*place]];
        (apps.contains(&process) || story.apps.contains(&process), of_process[&process])
    };
    // The last of the greatest is what `max_by_key` takes, so the order is turned round.
    let Some(most) = (0..order.len()).rev().max_by_key(time) else { return String::new() };
    let process = processes[order[most]];
    if let Some(&name) = story.process_names.get(&process) {
        return names.text(name).to_owned();
    }
    let within = || (0..order.len()).rev().filter(|&place| processes[order[place]] == process);
    let is_named = |place: &usize| !threads[*place].name.is_empty();
    let first = within().find(|&place| tracks[order[place]].tid == process).filter(is_named);
    let busiest = || within().filter(is_named).max_by_key(|&place| times[place]);
    first.or_else(busiest).map(|place| threads[place].name.clone()).unwrap_or_default()
}
