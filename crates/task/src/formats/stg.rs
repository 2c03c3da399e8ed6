//! STG: the Standard Task Graph set's format, with its extension by communication times.
//!
//! The first number is the number of tasks, with or without the two dummy tasks at start and end. Then one
//! line per task: number, processing time, number of predecessors, and for each of them its number and,
//! in files with communication, the time that its data takes. `#` begins a comment.

use std::fmt::Write;

use ampsched_model::InputError;

use super::refuse;
use crate::Graph;
use crate::draft::Draft;

/// Reads a file's text.
pub fn read(file: &str, text: &str) -> Result<Graph, InputError> {
    let mut rows = text.lines().enumerate().filter_map(|(index, row)| {
        let row = row.split('#').next().unwrap_or(row);
        let words: Vec<&str> = row.split_whitespace().collect();
        (!words.is_empty()).then_some((index + 1, words))
    });
    let mut draft = Draft::new(file);
    let stated = match rows.next() {
        Some((line, words)) => number::<usize>(&draft, line, "", words[0], "number of tasks")?,
        None => return Err(InputError::new(file, "", "has no task")),
    };
    let mut waits = Vec::new();
    for (line, words) in rows {
        let name = words[0];
        let &[_, time, count, ref before @ ..] = words.as_slice() else {
            let message = "needs number, processing time and number of predecessors";
            return Err(draft.error(line, name, message));
        };
        let work = number(&draft, line, name, time, "processing time")?;
        let count = number::<usize>(&draft, line, name, count, "number of predecessors")?;
        let task = draft.task(name, "", work, line)?;
        if before.len() != count && Some(before.len()) != count.checked_mul(2) {
            let found = before.len();
            let message = format!(
                "states {count} predecessors, {found} numbers follow instead of {count} (or twice as many, with times)"
            );
            return Err(draft.error(line, name, &message));
        }
        waits.push((task, name, count, before.to_vec(), line));
    }
    if draft.len() != stated && Some(draft.len()) != stated.checked_add(2) {
        let message = format!("states {stated} tasks and holds {}", draft.len());
        return Err(InputError::new(file, "", message)
            .with_hint("two more are allowed: the dummies at start and end"));
    }
    for (task, name, count, before, line) in waits {
        let width = before.len().checked_div(count).unwrap_or(1);
        for link in before.chunks(width) {
            let from = draft.require(link[0], name, line)?;
            let comm_s = match link.get(1) {
                Some(word) => number(&draft, line, name, word, "communication time")?,
                None => 0.0,
            };
            draft.link(from, task, comm_s, line)?;
        }
    }
    draft.finish()
}

fn number<T: std::str::FromStr>(
    draft: &Draft,
    line: usize,
    task: &str,
    word: &str,
    what: &str,
) -> Result<T, InputError> {
    word.parse().map_err(|_| draft.error(line, task, &format!("{what} {word:?} is not a number")))
}

/// Writes a graph; tasks become numbers from 0 on. Errors: costs per class.
pub fn write(file: &str, graph: &Graph) -> Result<String, InputError> {
    refuse(file, graph, "STG", true)?;
    let mut text = format!("{}\n", graph.len());
    for task in graph.tasks() {
        let count = graph.predecessors(task).len();
        write!(text, "{} {} {count}", task.0, graph.work(task)).expect("a text grows");
        for (from, comm_s) in graph.inputs(task) {
            write!(text, " {}", from.0).expect("a text grows");
            if graph.has_communication() {
                write!(text, " {comm_s}").expect("a text grows");
            }
        }
        text.push('\n');
    }
    Ok(text)
}
