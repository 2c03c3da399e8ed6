//! Text of `perf script` of `perf sched record` (tools/perf/Documentation/perf-script.txt).
//!
//! `NAME TID [CORE] SECONDS: GROUP:EVENT: FIELDS`; the thread may be `PROCESS/TID`.

use super::event::{Context, Story, WHOEVER_RUNS};
use super::text::{self, Head};

/// How many of a text's first lines are of this form.
pub fn matches(lines: &[std::borrow::Cow<'_, str>]) -> usize {
    lines.iter().filter(|line| parse(line).is_some()).count()
}

/// Reads a trace.
pub fn read(bytes: &[u8]) -> Story {
    let mut story = Story::of(bytes.len());
    for line in text::lines(bytes) {
        if let Some((head, event, fields)) = parse(&line) {
            text::tell(&mut story, &head, event, fields);
        }
    }
    story
}

/// What stands before the event, its name and its fields.
fn parse(line: &str) -> Option<(Head<'_>, &str, &str)> {
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

fn parse_at(line: &str, bracket: usize) -> Option<(Head<'_>, &str, &str)> {
    let (cpu, rest) = line[bracket + 1..].split_once(']')?;
    let cpu: u16 = cpu.parse().ok()?;
    let (name, thread) = line[..bracket].trim().rsplit_once(' ')?;
    let (process, tid) = match thread.split_once('/') {
        Some((process, tid)) => (process.parse().ok(), tid),
        None => (None, thread),
    };
    // A thread that ends has no number any more.
    let tid = if tid == "-1" { WHOEVER_RUNS } else { tid.parse().ok()? };
    let (at_ns, event, fields) = text::timed(rest)?;
    let head = Head { tid, name: name.trim(), process, cpu, at_ns, context: Context::Unknown };
    (!event.is_empty()).then_some((head, event, fields))
}
