//! Files that hold task graphs: which formats there are, reading and writing.

mod csv;
mod dot;
mod stg;
mod wfcommons;

use ampsched_model::InputError;

use crate::Graph;
use crate::draft::Draft;

/// A format of task graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One line per task: `id,work,kind,dep;dep`.
    Csv,
    /// Standard Task Graph set (Tobita and Kasahara, J. Scheduling 5, 2002).
    Stg,
    /// Graphviz DOT.
    Dot,
    /// WfCommons WfFormat (JSON), versions 1.3 to 1.5.
    WfCommons,
}

/// What a file of a task graph does not say itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReadOptions {
    /// Bytes per second between workers, for formats that state sizes of data. `None`: data takes no time.
    pub bytes_per_s: Option<f64>,
}

/// Links tasks by data of so many bytes; without a bandwidth they take no time, and the graph remembers them.
fn link_data(
    draft: &mut Draft,
    (from, to): (u32, u32),
    bytes: f64,
    line: usize,
    options: &ReadOptions,
) -> Result<(), InputError> {
    match options.bytes_per_s {
        Some(bytes_per_s) => draft.link(from, to, bytes / bytes_per_s, line),
        None => draft.link_untimed(from, to, bytes, line),
    }
}

/// Endings of file names and their formats.
const ENDINGS: [(&str, Format); 5] = [
    ("csv", Format::Csv),
    ("stg", Format::Stg),
    ("dot", Format::Dot),
    ("gv", Format::Dot),
    ("json", Format::WfCommons),
];

impl Format {
    /// The format of a file by the ending of its name. Errors: an ending that no format has.
    pub fn of(file: &str) -> Result<Self, InputError> {
        let ending = file.rsplit(['/', '\\']).next().unwrap_or(file).rsplit_once('.');
        let ending = ending.map_or("", |(_, ending)| ending);
        let found = ENDINGS.iter().find(|(known, _)| known.eq_ignore_ascii_case(ending));
        found.map(|(_, format)| *format).ok_or_else(|| {
            let known: Vec<String> = ENDINGS.iter().map(|(known, _)| format!(".{known}")).collect();
            InputError::new(file, "", format!("unknown format of a task graph: \".{ending}\""))
                .with_hint(format!("known: {}", known.join(", ")))
        })
    }
}

/// Reads a task graph; `file` is its path for messages.
///
/// Errors: whatever is wrong, with file, line where the format has lines, and task.
pub fn read(
    format: Format,
    file: &str,
    text: &str,
    options: &ReadOptions,
) -> Result<Graph, InputError> {
    match format {
        Format::Csv => csv::read(file, text),
        Format::Stg => stg::read(file, text),
        Format::Dot => dot::read(file, text, options),
        Format::WfCommons => wfcommons::read(file, text, options),
    }
}

/// Writes a task graph; `file` is its path for messages.
///
/// Errors: the format cannot hold something of the graph; nothing is ever left out silently.
pub fn write(
    format: Format,
    file: &str,
    graph: &Graph,
    options: &ReadOptions,
) -> Result<String, InputError> {
    match format {
        Format::Csv => csv::write(file, graph),
        Format::Stg => stg::write(file, graph),
        Format::Dot => Ok(dot::write(graph)),
        Format::WfCommons => wfcommons::write(file, graph, options),
    }
}

/// Refuses a graph that states costs per class or, if they cannot be held either, communication times.
fn refuse(file: &str, graph: &Graph, format: &str, communication: bool) -> Result<(), InputError> {
    let lacks = if graph.cost_columns() > 0 {
        "costs per class of workers"
    } else if graph.has_communication() && !communication {
        "communication times"
    } else if graph.has_untimed_data() && format != "WfFormat" {
        "sizes of data"
    } else {
        return Ok(());
    };
    let message = format!("{format} cannot hold {lacks}, which {} has", graph.name());
    Err(InputError::new(file, "", message).with_hint("write .dot"))
}
