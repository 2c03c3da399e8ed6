//! Text of Linux's function tracer (Documentation/trace/ftrace.rst) and of `trace-cmd report`.
//!
//! `NAME-TID (PROCESS) [CORE] FLAGS SECONDS: EVENT: FIELDS`; the process and the flags may be absent.

use super::event::{Context, Raw, Story, What};
use super::format;
use super::text::{self, Head};

/// Begins a line of ours with the numbers of the kernel's own threads.
const KERNEL_THREADS: &str = "# kernel threads:";

/// How many of a text's first lines are of this form.
pub fn matches(lines: &[std::borrow::Cow<'_, str>]) -> usize {
    lines.iter().filter(|line| parse(line).is_some()).count()
}

/// Reads a trace.
pub fn read(bytes: &[u8]) -> Story {
    let mut story = Story::of(bytes.len());
    for line in text::lines(bytes) {
        read_line(&mut story, &line);
    }
    let has_flags = story.events.iter().any(|raw| raw.context != Context::Unknown);
    if !has_flags {
        story.unknown.push(
            "flags of interrupts: record or report with them (trace-cmd report -l)".to_owned(),
        );
    }
    story
}

fn read_line(story: &mut Story, line: &str) {
    if let Some((head, rest)) = parse(line) {
        let Some((at_ns, event, fields)) = text::timed(rest) else { return };
        let head = Head { at_ns, ..head };
        if !event.is_empty() {
            text::tell(story, &head, event, fields);
        } else if let Some((event, fields)) = text::kernel_call(fields) {
            text::tell(story, &head, &event, fields);
        }
    } else if let Some(tids) = line.strip_prefix(KERNEL_THREADS) {
        story.of_kernel.extend(tids.split_whitespace().filter_map(|tid| tid.parse::<u32>().ok()));
    } else if let Some((cpu, events)) = lost(line) {
        let at_ns = story.events.last().map_or(0, |raw| raw.at_ns);
        let what = What::Lost { events };
        story.push(Raw { at_ns, cpu, tid: 0, context: Context::Unknown, what });
    } else if let Some(counts) = line.strip_prefix("# entries-in-buffer/entries-written:") {
        story.lost_events = overwritten(counts).unwrap_or_default();
    }
}

/// `CPU:0 [LOST 123 EVENTS]`.
fn lost(line: &str) -> Option<(u16, u64)> {
    let (cpu, rest) = line.trim_start().strip_prefix("CPU:")?.split_once(' ')?;
    let events = rest.trim_start().strip_prefix("[LOST ")?.split(' ').next()?;
    Some((cpu.parse().ok()?, events.parse().unwrap_or(1)))
}

/// `100/250   #P:4`: events that were overwritten.
fn overwritten(counts: &str) -> Option<u64> {
    let (kept, rest) = counts.trim().split_once('/')?;
    let written: u64 = rest.split_whitespace().next()?.parse().ok()?;
    Some(written.saturating_sub(kept.parse().ok()?))
}

/// What stands before the time, and the rest from the time on.
fn parse(line: &str) -> Option<(Head<'_>, &str)> {
    // A thread may have any name, so its end is where the first core in brackets is behind a number.
    let mut from = 0;
    while let Some(place) = line[from..].find('[') {
        let place = from + place;
        if let Some(found) = parse_at(line, place) {
            return Some(found);
        }
        from = place + 1;
    }
    parse_with_flags(line)
}

/// `NAME-TID   1d..2.  SECONDS: ...`: core and flags in one word, as `trace-cmd report -l` prints them; `1-0x1` with
/// `-R`.
fn parse_with_flags(line: &str) -> Option<(Head<'_>, &str)> {
    let (before, _) = line.split_once(": ")?;
    let (before, time) = before.rsplit_once(' ')?;
    let (before, word) = before.trim_end().rsplit_once(' ')?;
    text::nanoseconds(time)?;
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let (cpu, flags) = word.split_at(digits);
    let raw = flags.strip_prefix("-0x").and_then(|flags| u8::from_str_radix(flags, 16).ok());
    let (name, tid) = before.trim().rsplit_once('-')?;
    let head = Head {
        tid: tid.parse().ok()?,
        name,
        process: None,
        cpu: cpu.parse().ok()?,
        at_ns: 0,
        context: raw.map_or_else(|| context(flags), format::context),
    };
    let start = line.split_once(": ")?.0.len() - time.len();
    (raw.is_some() || is_flags(flags)).then_some((head, &line[start..]))
}

fn parse_at(line: &str, bracket: usize) -> Option<(Head<'_>, &str)> {
    let (cpu, rest) = line[bracket + 1..].split_once(']')?;
    let cpu: u16 = cpu.parse().ok()?;
    let mut head = line[..bracket].trim_end();
    let mut process = None;
    if let Some((before, number)) = head.strip_suffix(')').and_then(|head| head.rsplit_once('(')) {
        process = number.trim().parse().ok();
        head = before.trim_end();
    }
    let (name, tid) = head.rsplit_once('-')?;
    let tid: u32 = tid.parse().ok()?;
    if tid == 1 && name.ends_with([' ', '/']) {
        // -1, as perf prints it for a thread that has ended.
        return None;
    }
    let rest = rest.trim_start();
    let (context, rest) = match rest.split_once(' ') {
        Some((flags, after)) if is_flags(flags) => (context(flags), after.trim_start()),
        _ => (Context::Unknown, rest),
    };
    let starts_with_time =
        rest.split_once(':').is_some_and(|(time, _)| text::nanoseconds(time).is_some());
    let head = Head { tid, name: name.trim_start(), process, cpu, at_ns: 0, context };
    starts_with_time.then_some((head, rest))
}

/// `d.h2.` or `....`: letters, dots and depths.
fn is_flags(word: &str) -> bool {
    (4..=8).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.')
        && text::nanoseconds(word).is_none()
}

fn context(flags: &str) -> Context {
    match flags.as_bytes().get(2) {
        Some(b'h' | b's' | b'H' | b'z' | b'Z') => Context::Interrupt,
        _ => Context::Thread,
    }
}
