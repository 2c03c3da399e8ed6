//! CSV: one line per task, `id,work,kind,dep;dep`.
//!
//! Work is in seconds at speed 1 (or any unit in which speeds are counted per second). Lines that are empty or
//! begin with `#` are skipped, and a first one that names the columns (its second field is `work`). Fields may be
//! quoted as in RFC 4180. A task may depend on one that comes later in the file.

use std::fmt::Write;

use ampsched_model::InputError;

use super::refuse;
use crate::Graph;
use crate::draft::Draft;
use crate::recording::{fields, quoted};

/// Reads a file's text.
pub fn read(file: &str, text: &str) -> Result<Graph, InputError> {
    let mut draft = Draft::new(file);
    let mut waits = Vec::new();
    let rows = text.lines().enumerate().map(|(index, row)| (index + 1, row.trim()));
    for (line, row) in rows.filter(|(_, row)| !row.is_empty() && !row.starts_with('#')) {
        let fields = fields(file, line, row)?;
        let fields: Vec<&str> = fields.iter().map(|field| field.trim()).collect();
        let &[id, work, kind, before] = fields.as_slice() else {
            let message =
                format!("has {} fields, \"id,work,kind,dep;dep\" are needed", fields.len());
            let error = draft.error(line, fields[0], &message);
            return Err(match row.contains(';') && fields.len() == 1 {
                true => error.with_hint("commas separate fields, semicolons what a task waits for"),
                false => error,
            });
        };
        if draft.is_empty() && work.eq_ignore_ascii_case("work") {
            continue;
        }
        let work = work
            .parse()
            .map_err(|_| draft.error(line, id, &format!("work {work:?} is not a number")))?;
        let task = draft.task(id, kind, work, line)?;
        waits.push((task, before.to_owned(), line));
    }
    for (task, before, line) in waits {
        for from in before.split(';').map(str::trim).filter(|from| !from.is_empty()) {
            let from = draft.require(from, draft.name_of(task), line)?;
            draft.link(from, task, 0.0, line)?;
        }
    }
    draft.finish()
}

/// Writes a graph. Errors: communication, costs per class, or a name with a separator in it.
pub fn write(file: &str, graph: &Graph) -> Result<String, InputError> {
    refuse(file, graph, "CSV", false)?;
    let mut text = String::new();
    for task in graph.tasks() {
        for word in [graph.task_name(task), graph.kind(task)] {
            if word.contains([';', '\n', '\r']) || word.trim() != word {
                let message = "cannot stand in CSV, whose separators are ; blanks and line breaks";
                return Err(InputError::new(file, format!("task {word:?}"), message)
                    .with_hint("write .dot or .json"));
            }
        }
        let before: Vec<&str> =
            graph.predecessors(task).iter().map(|&from| graph.task_name(from)).collect();
        let (name, kind) = (graph.task_name(task), graph.kind(task));
        let (name, kind, before) = (quoted(name), quoted(kind), quoted(&before.join(";")));
        writeln!(text, "{name},{},{kind},{before}", graph.work(task)).expect("a text grows");
    }
    Ok(text)
}
