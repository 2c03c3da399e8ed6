//! Parts of the text of a lifted program that need nothing but what they say.

use std::hash::{DefaultHasher, Hash, Hasher};

use ampsched_model::SchedClass;

use super::Options;
use super::amounts::{self, number};
use super::groups::{Group, Groups};
use super::objects::What;
use crate::{Recording, Thread};

/// Later starts of threads that nobody started are kept, in ns.
const START_NS_MIN: u64 = 1_000_000;

/// The name, the parameters and the profile.
pub(super) fn head(
    name: &str,
    recording: &Recording,
    groups: &Groups,
    options: &Options,
) -> Vec<String> {
    let printable = |text: &str| -> String {
        let plain = |letter: char| match letter {
            '"' | '\\' => '\'',
            _ if letter.is_control() => ' ',
            _ => letter,
        };
        text.chars().take(200).map(plain).collect()
    };
    let command = printable(&recording.info.command.join(" "));
    let mut text = vec![
        format!("name = \"{name}\""),
        format!("description = \"Made of a recording with {} threads.\"", recording.threads.len()),
        format!("source = \"recorded: {command}\""),
        String::new(),
        "[params]".to_owned(),
    ];
    if groups.n > 1 {
        text.push(format!("n = {}  # threads that share work", groups.n));
    }
    text.push("scale = 1  # size of the input".to_owned());
    text.push(String::new());
    text.push("[profiles.recorded]".to_owned());
    text.push(format!("like = \"{}\"", printable(&options.like)));
    text.push(match options.speedup {
        Some(ratio) => format!("ratio = {}", number(ratio)),
        None => "cycles = 1".to_owned(),
    });
    for group in &recording.info.groups {
        text.extend([String::new(), format!("[groups.{}]", quoted(&group.path))]);
        text.extend(group.shares.map(|shares| format!("shares = {shares}")));
        text.extend(clamps(group.uclamp_min, group.uclamp_max));
    }
    text
}

/// A text of TOML.
fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|letter| match letter {
        '"' | '\\' => format!("\\{letter}"),
        letter if letter.is_control() => format!("\\u{:04x}", u32::from(letter)),
        letter => letter.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// Keys of utilisation clamps. Of a least one above the greatest the kernel honours the least.
fn clamps(min: Option<u16>, max: Option<u16>) -> impl Iterator<Item = String> {
    let max = max.map(|max| max.max(min.unwrap_or(0)));
    let keys = [("uclamp_min", min), ("uclamp_max", max)];
    keys.into_iter().filter_map(|(key, clamp)| Some(format!("{key} = {}", clamp?)))
}

/// Tells threads apart that ask the scheduler for different things; 0 of those that ask for nothing.
pub(super) fn asks_hash(thread: &Thread) -> u64 {
    let text = format!("{:?} {:?}", thread.scheduled(), thread.asks);
    if thread.prio.is_none() && thread.asks.is_none() {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Keys of what a thread asks the scheduler for.
fn asks(recording: &Recording, thread: u32) -> Vec<String> {
    let thread = &recording.threads[thread as usize];
    let (nice, class) = thread.scheduled();
    let mut text = Vec::new();
    text.extend((nice != 0).then(|| format!("nice = {nice}")));
    text.extend((class != SchedClass::Fair).then(|| format!("class = \"{}\"", class.name())));
    if let SchedClass::Fifo { priority } | SchedClass::RoundRobin { priority } = class {
        text.push(format!("priority = {priority}"));
    }
    text.extend(thread.asks.cpus.as_ref().map(|cpus| format!("cores = {cpus:?}")));
    text.extend(clamps(thread.asks.uclamp_min, thread.asks.uclamp_max));
    let group = thread.asks.group.and_then(|group| recording.info.groups.get(usize::from(group)));
    text.extend(group.map(|group| format!("group = {}", quoted(&group.path))));
    text
}

/// What is to be known of what threads ask the scheduler for.
pub(super) fn asks_note(recording: &Recording) -> Option<String> {
    let count = recording.threads.iter().filter(|thread| thread.asks.cpus.is_some()).count();
    let text = "The cores of {} threads are the CPUs that recorded, by their numbers.";
    (count > 0).then(|| text.replace("{}", &count.to_string()))
}

/// A group of threads.
pub(super) fn thread(
    recording: &Recording,
    group: &Group,
    count: &str,
    body: Vec<String>,
) -> Vec<String> {
    let mut text =
        vec![String::new(), "[[threads]]".to_owned(), format!("name = \"{}\"", group.name)];
    match (group.is_forked, count) {
        (true, _) => text.push("count = 0".to_owned()),
        (_, "1") => {}
        (_, count) => text.push(format!("count = {}", amounts::plain(count))),
    }
    if !group.is_forked && group.start_ns >= START_NS_MIN {
        text.push(format!("start_us = {}", number(group.start_ns as f64 / 1e3)));
    }
    text.extend(group.members.first().map(|&first| asks(recording, first)).unwrap_or_default());
    let body = match group.is_daemon {
        true => block("loop = \"forever\"", body),
        false => body,
    };
    text.extend(group.is_daemon.then(|| "daemon = true".to_owned()));
    text.push("body = [".to_owned());
    text.extend(body.into_iter().map(|line| format!("  {line}")));
    text.push("]".to_owned());
    text
}

/// The word for an object.
pub(super) fn kind(what: &What) -> &'static str {
    match what {
        What::Mutex { members: 1 } => "mutex",
        What::Mutex { .. } => "mutexes",
        What::Barrier => "barrier",
        What::Semaphore { fan: 1, .. } => "semaphore",
        What::Semaphore { .. } => "gate",
        What::Room { .. } => "semaphore",
        What::Queue { .. } => "queue",
        What::Pool { .. } => "pool",
        What::Device => "device",
    }
}

/// A step with steps inside.
pub(super) fn block(head: &str, body: Vec<String>) -> Vec<String> {
    let body = match body.is_empty() {
        true => vec!["{ run_us = 0, profile = \"recorded\" },".to_owned()],
        false => body,
    };
    let mut lines = vec![format!("{{ {head}, body = [")];
    lines.extend(body.into_iter().map(|line| format!("  {line}")));
    lines.push("] },".to_owned());
    lines
}
