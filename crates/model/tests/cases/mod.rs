//! Files of cases: inputs, each with what must come of it.
//!
//! `=== NAME` begins an input, which is the lines up to `--- expected`; what is expected are the lines up to the next
//! input or the end.

use std::fmt::Write;
use std::path::Path;

/// An input and what must come of it.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name of the input file.
    pub name: String,
    /// Text of the input file.
    pub input: String,
    /// What must come of it, in whole lines.
    pub expected: String,
}

/// Reads a file of cases.
///
/// # Panics
/// If the file cannot be read or does not begin with a case.
pub fn read(path: &Path) -> Vec<Case> {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut cases: Vec<Case> = Vec::new();
    let mut is_input = false;
    for line in text.split_inclusive('\n') {
        if let Some(name) = line.strip_prefix("=== ") {
            let name = name.trim_end().to_owned();
            cases.push(Case { name, input: String::new(), expected: String::new() });
            is_input = true;
        } else if line == "--- expected\n" {
            is_input = false;
        } else {
            let case = cases.last_mut().unwrap_or_else(|| panic!("{}: {line}", path.display()));
            if is_input { &mut case.input } else { &mut case.expected }.push_str(line);
        }
    }
    cases
}

/// Compares what comes of each case with what is expected, or writes it if `BLESS` is in the environment.
///
/// # Panics
/// If they differ; the message shows them.
#[allow(dead_code, reason = "not every test that reads cases checks them")]
pub fn check(path: &Path, outcome: impl Fn(&Case) -> String) {
    let mut cases = read(path);
    let mut differences = String::new();
    for case in &mut cases {
        let got = outcome(case);
        if got != case.expected {
            let Case { name, expected, .. } = &case;
            writeln!(differences, "{name}\n-- expected\n{expected}-- got\n{got}").unwrap();
        }
        case.expected = got;
    }
    if std::env::var_os("BLESS").is_some() {
        let texts = cases.iter().map(|Case { name, input, expected }| {
            format!("=== {name}\n{input}--- expected\n{expected}")
        });
        std::fs::write(path, texts.collect::<String>()).unwrap();
    } else {
        assert!(differences.is_empty(), "{}:\n{differences}", path.display());
    }
}
