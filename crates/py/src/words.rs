//! The words of a policy as Python values.

use std::ptr;

use ampsched_policy::{
    ChangeKind, Does, Facts, Group, Means, Part, Payload, Record, Rules, TABLE, Wire, Word,
    python_key,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// All groups of words in order: dictionaries with `part`, `name`, `doc` and `words`; a word has `name`, `doc`,
/// `payload`, `reads`, `readers`, `hides`, `reads_load`, `kernel` and `daemon`.
#[pyfunction]
pub fn words(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    TABLE.iter().map(|&(part, group)| group_row(py, part, group())).collect()
}

/// The rules that Python may replace: (key, type, what it means) for each.
#[pyfunction]
pub fn rule_keys() -> Vec<(String, String, String)> {
    let rows = Rules::group().words.iter().zip(Rules::python_types());
    rows.map(|(row, kind)| (python_key(row), kind, row.about())).collect()
}

fn group_row<'py>(py: Python<'py>, part: Part, group: &Group) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    let part = match part {
        Part::Rules => "rules",
        Part::Plan => "plan",
        Part::Needs => "needs",
        Part::Factors => "factors",
    };
    row.set_item("part", part)?;
    row.set_item("name", group.name)?;
    row.set_item("doc", paragraph(group.doc))?;
    let words: PyResult<Vec<_>> = group.words.iter().map(|word| word_row(py, word)).collect();
    row.set_item("words", words?)?;
    Ok(row)
}

fn word_row<'py>(py: Python<'py>, word: &Word) -> PyResult<Bound<'py, PyDict>> {
    let Facts { reads, hides, reads_load, kernel, daemon, .. } = word.facts;
    let row = PyDict::new(py);
    row.set_item("name", word.name)?;
    row.set_item("doc", word.about())?;
    let payload = |payload: &Payload| (payload.name, paragraph(payload.doc));
    row.set_item("payload", word.payload.iter().map(payload).collect::<Vec<_>>())?;
    row.set_item("reads", reads.iter().map(|kind| kind.word().name).collect::<Vec<_>>())?;
    let change = ChangeKind::ALL.iter().find(|kind| ptr::eq(kind.word(), word));
    row.set_item("readers", change.map_or_else(Vec::new, |kind| kind.readers()))?;
    row.set_item("hides", hides.iter().map(|kind| kind.word().name).collect::<Vec<_>>())?;
    row.set_item("reads_load", reads_load)?;
    row.set_item("kernel", does_text(kernel))?;
    row.set_item("daemon", does_text(daemon))?;
    Ok(row)
}

/// Documentation as one line.
fn paragraph(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn does_text(does: Does) -> String {
    match does {
        Does::Exact => "exact".to_owned(),
        Does::Approximates { instead, .. } => format!("instead: {instead}"),
        Does::Refuses { instead, .. } => format!("refused: {instead}"),
        Does::With { means, .. } => {
            let means = match means {
                Means::Clocks => "clocks can be set",
                Means::Instructions => "instructions are counted",
                Means::Stalls => "stalls are counted",
                Means::Freezer => "there is a freezer",
            };
            format!("if {means}")
        }
        Does::Depends(_) => "depends on the policy's other words".to_owned(),
    }
}
