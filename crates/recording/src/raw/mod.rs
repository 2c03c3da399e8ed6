//! What a recorded program leaves in its working folder becomes a recording.
//!
//! The form of the files is declared in `crates/preload/c/form.h`. A program that was killed leaves files without an
//! end: what stands there counts.

mod children;
mod read;
mod resolve;
mod signals;
mod streams;
#[cfg(test)]
mod tests;
mod times;

use std::collections::BTreeMap;

use ampsched_model::InputError;

use crate::import::{self, Options, Pages};
use crate::merge::{merge, see_ends};
use crate::model::TIME_NS_MAX;
use crate::{Clocked, Info, Kind, Recording, Thread};

/// Makes a recording of the files of a working folder: what its processes share (`control`), and the events of their
/// threads; `info` says what is known besides. What `whole` has more than was recorded is put to the program's end.
///
/// # Errors
/// Nothing was recorded. `control` is no file of a recorder, or of another version.
pub fn from_raw(
    folder: &str,
    info: Info,
    control: &[u8],
    events: &[u8],
    whole: Whole,
) -> Result<Recording, InputError> {
    let (mut found, outside) = of_threads(folder, info, control, events)?;
    outside.add_to(&mut found, whole);
    Ok(found.recording)
}

/// The same, merged with what the kernel has told meanwhile. If no thread has loaded the library it is all there is.
///
/// # Errors
/// As above.
pub fn from_raw_and_pages(
    folder: &str,
    info: Info,
    control: &[u8],
    events: &[u8],
    whole: Whole,
    (pages, options): (&Pages, Options),
) -> Result<Recording, InputError> {
    if read::threads(events).is_empty() && !options.pids.is_empty() {
        let Info { name, command, kernel, exit_code, wakeup_ns, foreign, .. } = info;
        let recorder = "system".to_owned();
        let known =
            Options { name, command, kernel, exit_code, wakeup_ns, foreign, recorder, ..options };
        return import::of_pages(folder, pages, &known);
    }
    let (mut found, outside) = of_threads(folder, info, control, events)?;
    found.recording.info.unknown.extend_from_slice(&options.unknown);
    let options = Options { pids: vec![outside.pid], ..options };
    let kernel = import::clocked(folder, pages, &options).unwrap_or_else(|error| {
        let text = format!("What the kernel has told meanwhile: {}.", error.message);
        found.recording.info.unknown.push(text);
        Clocked::default()
    });
    let unseen_ns = see_ends(&mut found, &kernel);
    let cpu_ns = whole.cpu_ns.saturating_sub(unseen_ns);
    outside.add_to(&mut found, Whole { cpu_ns, ..whole });
    Ok(merge(found, kernel))
}

/// What is known of the time before the recording.
struct Outside {
    /// The program's first process.
    pid: u32,
    /// CPU time of loading it, in ns.
    startup_ns: u64,
    /// CPU time of the recorder before, in ns.
    before_ns: u64,
    /// CPU time of the recorder in all, in ns.
    own_ns: u64,
}

impl Outside {
    fn add_to(&self, found: &mut Clocked, whole: Whole) {
        // From outside, what the recorder did before the recording began looks like a part of the program.
        let cpu_ns = whole.cpu_ns.saturating_sub(self.own_ns);
        let took_ns = whole.took_ns.saturating_sub(self.before_ns);
        add_ends(&mut found.recording, self.startup_ns, Whole { took_ns, cpu_ns });
        found.origin_ns = found.origin_ns.saturating_sub(self.startup_ns);
    }
}

/// What the library has recorded.
fn of_threads(
    folder: &str,
    mut info: Info,
    control: &[u8],
    events: &[u8],
) -> Result<(Clocked, Outside), InputError> {
    let refused = read::refused_threads(&format!("{folder}/control"), control)?;
    let mut threads = read::threads(events);
    if threads.is_empty() {
        let error = InputError::new(folder, "", "no thread was recorded");
        return Err(error.with_hint(
            "the program may be static, of another architecture, or setuid; `--system` sees those, too",
        ));
    }
    threads
        .sort_by_key(|thread| (thread.head.begin.ticks, thread.head.process, thread.head.thread));
    if refused > 0 {
        info.unknown.push(format!("Threads for which there was no room: {refused}."));
    }
    let scale = times::Scale::of(&threads);
    let recorder_ns: Vec<f64> =
        threads.iter().map(|thread| times::recorder_ns(thread, &scale)).collect();
    let (mut recording, tids) = resolve::recording(info, &threads, &scale, &recorder_ns);
    cap_times(&mut recording);
    let first = &threads[0].head;
    let own_ns = first.before_ns.saturating_add(recorder_ns.iter().sum::<f64>() as u64);
    let (pid, startup_ns, before_ns) = (first.pid, first.startup_ns, first.before_ns);
    let found = Clocked { recording, tids, origin_ns: first.begin.ns };
    Ok((found, Outside { pid, startup_ns, before_ns, own_ns }))
}

/// What stands behind the end of a file that was cut off may be anything: no time is longer than a recording can tell.
fn cap_times(recording: &mut Recording) {
    for event in recording.threads.iter_mut().flat_map(|thread| &mut thread.events) {
        for ns in [&mut event.at_ns, &mut event.cpu_ns, &mut event.work_ns, &mut event.wait_ns] {
            *ns = (*ns).min(TIME_NS_MAX / 2);
        }
    }
    recording.info.wall_ns = recording.info.wall_ns.min(TIME_NS_MAX / 2);
}

/// Has child processes work from their last events until their parents have seen their ends, but for their shares of
/// CPU time that nobody has recorded: taking their memory back. Returns what they have done.
fn end_children(threads: &mut [Thread], unseen_ns: u64) -> u64 {
    let process = |thread: u32| threads.get(thread as usize).map(|thread| thread.process);
    let mut seen: BTreeMap<u32, u64> = BTreeMap::new();
    for thread in threads.iter() {
        let joins = thread.events.iter().filter(|event| event.kind == Kind::Join);
        for join in joins.filter(|join| process(join.object).is_some_and(|of| of != thread.process))
        {
            seen.entry(join.object).or_insert(join.at_ns);
        }
    }
    let share_ns = unseen_ns / (seen.len() as u64 + 1);
    let mut done_ns = 0;
    for (child, seen_ns) in seen {
        let Some(end) = threads[child as usize].events.last_mut() else { continue };
        let ns = share_ns.min(seen_ns.saturating_sub(end.at_ns));
        end.at_ns += ns;
        end.cpu_ns += ns;
        end.work_ns += ns;
        done_ns += ns;
    }
    done_ns
}

/// What is known of a program as a whole from outside.
#[derive(Clone, Copy, Debug, Default)]
pub struct Whole {
    /// From its start to its end, as its parent saw it, in ns; 0 if not known.
    pub took_ns: u64,
    /// CPU time of it and all that it started, in ns.
    pub cpu_ns: u64,
}

/// Adds what happened before the recorder was there, and after: loading the first program, and taking memory back.
fn add_ends(recording: &mut Recording, startup_ns: u64, whole: Whole) {
    let recorded_ns = recording.cpu_ns().saturating_add(startup_ns);
    for event in recording.threads.iter_mut().flat_map(|thread| &mut thread.events) {
        event.at_ns += startup_ns;
    }
    recording.info.wall_ns += startup_ns;
    let unseen_ns = whole.cpu_ns.saturating_sub(recorded_ns);
    let unseen_ns = unseen_ns - end_children(&mut recording.threads, unseen_ns);
    let late_ns = whole.took_ns.saturating_sub(recording.info.wall_ns);
    let ending_ns = unseen_ns.min(late_ns);
    let Some(thread) = recording.threads.first_mut() else { return };
    let Some(last) = thread.events.len().checked_sub(1) else { return };
    for (event, ns) in [(0, startup_ns), (last, ending_ns)] {
        let event = &mut thread.events[event];
        event.cpu_ns += ns;
        event.work_ns += ns;
    }
    let end = &mut thread.events[last];
    end.at_ns += ending_ns;
    let ends = recording.threads.iter().filter_map(|thread| thread.events.last());
    let end_ns = ends.map(|event| event.at_ns).max().unwrap_or_default();
    recording.info.wall_ns = recording.info.wall_ns.max(end_ns);
}
