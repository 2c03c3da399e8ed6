//! Parts of the text of a lifted program that need nothing but what they say.

use super::Options;
use super::amounts::{self, number};
use super::groups::{Group, Groups};
use super::objects::What;
use crate::Recording;

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
    text
}

/// A group of threads.
pub(super) fn thread(group: &Group, count: &str, body: Vec<String>) -> Vec<String> {
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
