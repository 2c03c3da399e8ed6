//! Text of `perf script` (tools/perf/Documentation/perf-script.txt), with its usual fields or others (`-F`).
//!
//! `NAME TID [CORE] SECONDS: GROUP:EVENT: FIELDS`; the thread may be `PROCESS/TID` or absent, letters (`misc`) or a
//! date may stand before the time, a period behind it, and the event may be absent. Core and time must be there.

use ampsched_model::InputError;

use super::event::{Context, Raw, Story, WHOEVER_RUNS, What};
use super::text::{self, Head};

/// One of so many times that are before the one above is too many (ours): perf sorts its events.
const BACK_SHARE: u64 = 10;

/// How many of a text's first lines are of this form.
pub fn matches(lines: &[std::borrow::Cow<'_, str>]) -> usize {
    lines.iter().filter(|line| parse(line).is_some()).count()
}

/// Reads a trace. Errors: its times are differences.
pub fn read(file: &str, bytes: &[u8]) -> Result<Story, InputError> {
    let mut story = Story::of(bytes.len());
    let (mut lines, mut back, mut last_ns, mut nameless) = (0_u64, 0_u64, 0, 0_u64);
    for line in text::lines(bytes) {
        let Some(Line { head, event, fields }) = parse(&line) else { continue };
        match event {
            Event::Named(event) => text::tell(&mut story, &head, event, fields),
            Event::Guessed(event) => {
                nameless += 1;
                text::tell(&mut story, &head, event, fields);
            }
            Event::OfTask => {
                story.unreadable += u64::from(task(&mut story, &head, fields).is_none());
                continue;
            }
        }
        lines += 1;
        back += u64::from(head.at_ns < last_ns);
        last_ns = head.at_ns;
    }
    if back * BACK_SHARE > lines {
        let message = format!("has times that go back at {back} of {lines} events");
        let hint = "print it without --deltatime";
        return Err(InputError::new(file, "", message).with_hint(hint));
    }
    if nameless > 0 {
        let text =
            "names of events: sched_waking counts as sched_wakeup (print them with -F +event)";
        story.unknown.push(text.to_owned());
    }
    Ok(story)
}

/// What a line is about.
#[derive(Clone, Copy, Debug)]
enum Event<'a> {
    Named(&'a str),
    /// By its fields, for its name is absent.
    Guessed(&'static str),
    /// A record of perf's own (`--show-task-events`).
    OfTask,
}

struct Line<'a> {
    head: Head<'a>,
    event: Event<'a>,
    fields: &'a str,
}

fn parse(line: &str) -> Option<Line<'_>> {
    // A thread may have any name, so its end is where the first core in brackets is behind a number.
    let mut from = 0;
    while let Some(place) = line.get(from..)?.find('[') {
        let place = from + place;
        if let Some(found) = parse_at(line, place) {
            return Some(found);
        }
        from = place + 1;
    }
    None
}

fn parse_at(line: &str, bracket: usize) -> Option<Line<'_>> {
    let (cpu, rest) = line[bracket + 1..].split_once(']')?;
    let cpu: u16 = cpu.parse().ok()?;
    let (name, process, tid) = thread(line[..bracket].trim());
    let (time, rest) = rest.split_once(": ")?;
    let at_ns = text::nanoseconds(time.rsplit(' ').next()?)?;
    let head = Head { tid, name, process, cpu, at_ns, context: Context::Unknown };
    let rest = rest.trim_start();
    if let Some(fields) = rest.strip_prefix("PERF_RECORD_") {
        return Some(Line { head, event: Event::OfTask, fields });
    }
    let behind = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = if behind.starts_with(' ') { behind.trim_start() } else { rest };
    let (event, fields) = text::event(rest);
    let event =
        if event.is_empty() { Event::Guessed(guessed(fields)?) } else { Event::Named(event) };
    Some(Line { head, event, fields })
}

/// Name, process and number of a thread, as far as they are told.
fn thread(text: &str) -> (&str, Option<u32>, u32) {
    let (name, numbers) = text.rsplit_once(' ').unwrap_or(("", text));
    let (process, tid) = match numbers.split_once('/') {
        Some((process, tid)) => (process.parse().ok(), tid),
        None => (None, numbers),
    };
    // A thread that ends has no number any more.
    match (tid, tid.parse()) {
        ("-1", _) => (name.trim_end(), process, WHOEVER_RUNS),
        (_, Ok(tid)) => (name.trim_end(), process, tid),
        _ => (text, None, WHOEVER_RUNS),
    }
}

/// The event that has such fields. Wakings and wake-ups have the same ones, and so have exits and others.
fn guessed(fields: &str) -> Option<&'static str> {
    let has = |key: &str| fields.contains(key);
    Some(match fields.split_once('=')?.0 {
        "prev_comm" => "sched_switch",
        "comm" if has(" child_pid=") => "sched_process_fork",
        "comm" if has(" target_cpu=") => "sched_wakeup",
        "pid" if has(" clone_flags=") => "task_newtask",
        "pid" if has(" newcomm=") => "task_rename",
        "filename" if has(" old_pid=") => "sched_process_exec",
        _ => return None,
    })
}

/// `COMM: NAME:PROCESS/TID`, `FORK(PROCESS:TID):(PARENT'S)` or `EXIT` of the same form; others are passed over. None:
/// it cannot be read.
fn task(story: &mut Story, head: &Head<'_>, record: &str) -> Option<()> {
    let Head { at_ns, cpu, .. } = *head;
    let push = |story: &mut Story, tid: u32, what: What| {
        if at_ns > 0 {
            story.push(Raw { at_ns, cpu, tid, context: Context::Thread, what });
        }
    };
    if let Some(rest) = record.strip_prefix("COMM") {
        let (kind, named) = rest.split_once(": ")?;
        let (name, ids) = named.rsplit_once(':')?;
        let (process, tid) = ids.trim().split_once('/')?;
        let (process, tid): (u32, u32) = (process.parse().ok()?, tid.parse().ok()?);
        let name = story.names.number(name);
        story.processes.insert(tid, process);
        if kind.contains("exec") {
            push(story, tid, What::Exec { tid, old_tid: tid, file: name });
        }
        push(story, tid, What::Rename { tid, name });
        if at_ns == 0 {
            story.thread_names.insert(tid, name);
        }
        return Some(());
    }
    let is_fork = record.starts_with("FORK(");
    if !is_fork && !record.starts_with("EXIT(") {
        return Some(());
    }
    let numbers = record.split(|c: char| !c.is_ascii_digit()).filter(|text| !text.is_empty());
    let numbers: Vec<u32> = numbers.map_while(|text| text.parse().ok()).collect();
    let &[process, tid, parent_process, parent] = numbers.as_slice() else { return None };
    story.processes.insert(tid, process);
    match is_fork {
        true => {
            let (name, is_thread) = (story.names.number(""), Some(process == parent_process));
            push(story, parent, What::New { parent: Some(parent), child: tid, name, is_thread });
        }
        false => push(story, tid, What::Exit { tid }),
    }
    Some(())
}
