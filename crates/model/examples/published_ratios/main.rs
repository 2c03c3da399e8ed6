//! Compares the core model with published ratios of speed, and prints tables in Markdown.
//!
//! ```console
//! cargo run -p ampsched-model --example published_ratios
//! cargo run -p ampsched-model --example published_ratios -- --write docs/reports/models/core-model.md
//! ```
//!
//! With `--write` the tables replace what stands between the two marks in that file.

mod data;
mod report;
mod statistics;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            print!("{}", report::markdown(&data::Published::read()));
            Ok(())
        }
        ["--write", path] => write(path),
        _ => Err("usage: published_ratios [--write FILE.md]".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// Puts the tables into a file.
fn write(path: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let tables = report::markdown(&data::Published::read());
    let text = report::replace(&text, &tables).map_err(|error| format!("{path}: {error}"))?;
    std::fs::write(path, text).map_err(|error| format!("{path}: {error}"))
}
