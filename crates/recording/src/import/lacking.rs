//! Why a trace cannot be imported: what it has, and what it would need.

use ampsched_model::InputError;

use super::event::{Story, What};
use super::text;

/// Bytes of a text in which its first event is looked for (ours).
const LOOK_BYTES: usize = 1 << 20;
/// Letters of a line that are shown (ours).
const SHOWN: usize = 160;

/// The error about a trace in which no core goes to another thread: what it has instead.
pub fn of_switches(file: &str, story: &Story) -> InputError {
    let hint = "record sched_switch, and sched_waking for who woke whom";
    let unreadable = story.unreadable;
    if !story.first_unreadable.is_empty() {
        let message =
            format!("has {unreadable} events that cannot be read, and no switch among the others");
        let hint = format!("the first is \"{}\"", story.first_unreadable);
        return InputError::new(file, "", message).with_hint(hint);
    }
    let has = has(story);
    let has = if has.is_empty() { String::new() } else { format!(": it has {has}") };
    let message = format!("has no event of a core that goes to another thread{has}");
    InputError::new(file, "", message).with_hint(hint)
}

/// What a trace has, the most frequent first.
fn has(story: &Story) -> String {
    let mut counts: Vec<(u64, &str)> = Vec::new();
    for (&name, &count) in &story.met {
        counts.push((count, story.names.text(name)));
    }
    if counts.is_empty() {
        for raw in &story.events {
            let word = word(raw.what);
            match counts.iter_mut().find(|(_, known)| *known == word) {
                Some((count, _)) => *count += 1,
                None => counts.push((1, word)),
            }
        }
    }
    counts.sort_unstable_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(other.1)));
    let words = counts.iter().take(8).map(|(count, name)| format!("{count} {name}"));
    words.collect::<Vec<_>>().join(", ")
}

fn word(what: What) -> &'static str {
    match what {
        What::Switch { .. } => "switches",
        What::Waking { .. } => "wake-ups",
        What::New { .. } => "creations",
        What::Exec { .. } | What::Rename { .. } | What::Exit { .. } => "events of lives of threads",
        What::CallEnter { .. } | What::CallExit | What::TimedOut => "calls",
        What::TimerBegin | What::TimerEnd => "timers",
        What::Lost { .. } => "gaps",
        What::Frequency { .. } | What::FrequencyLimits { .. } => "clocks",
        What::Idle { .. } => "idle states",
        What::Asks { .. } => "what threads ask for",
        What::Away { .. } | What::Isolated { .. } => "cores taken away",
        What::BlockedReason { .. } => "reasons of blocks",
        What::InterruptBegin | What::InterruptEnd => "interrupts",
        What::SliceBegin { .. } | What::SliceEnd => "slices",
    }
}

/// What a text lacks that has the scheduler's events, but no line of a form that is read: message and hint.
pub fn of_text(bytes: &[u8]) -> Option<(String, String)> {
    let head = &bytes[..bytes.len().min(LOOK_BYTES)];
    if head.contains(&0) {
        return None;
    }
    let (number, line) = (1..).zip(text::lines(head)).find(|(_, line)| {
        ["sched_switch", "prev_pid=", "sched_wak", "sch delay"]
            .iter()
            .any(|word| line.contains(word))
    })?;
    if line.contains("sch delay") {
        let message =
            "is a table of perf sched timehist, which does not tell who woke whom".to_owned();
        return Some((message, "print the events: perf script --ns".to_owned()));
    }
    let words = || line.split_whitespace();
    let has_core = words().any(|word| {
        let number = word.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
        number.is_some_and(|number| number.parse::<u16>().is_ok())
    });
    let has_time = words().any(|word| text::nanoseconds(word.trim_end_matches(':')).is_some());
    let lacks = match (has_core, has_time) {
        (false, false) => "neither core nor time",
        (false, true) => "no core",
        (true, false) => "no time",
        (true, true) => "no thread or event where a form that is read has it",
    };
    let shown: String = line.trim().chars().take(SHOWN).collect();
    let hint = format!(
        "perf script -F comm,tid,cpu,time,event,trace prints all; that line is \"{shown}\""
    );
    Some((format!("names events of the scheduler, but line {number} has {lacks}"), hint))
}
