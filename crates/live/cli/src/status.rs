//! `ampsched-live status`.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use ampsched_live_session::{RunDir, Status, print};
use ampsched_model::InputError;

use crate::args::StatusArgs;
use crate::stop::nobody;

/// Clears a terminal and goes to its upper left corner (ECMA-48: ED, CUP).
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Prints the running session's status, once or every second.
pub fn status(args: &StatusArgs) -> Result<ExitCode, InputError> {
    let folder = RunDir::new(&args.folder);
    let Some(mut status) = folder.status()? else { return Err(nobody(&folder)) };
    if args.json {
        let text = serde_json::to_string_pretty(&status).expect("a status is plain data");
        print(&(text + "\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !args.watch {
        print(&text_of(&status))?;
        return Ok(ExitCode::SUCCESS);
    }
    while print(&format!("{CLEAR}{}", text_of(&status)))? {
        std::thread::sleep(Duration::from_secs(1));
        match folder.status()? {
            Some(next) => status = next,
            None => break,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The status as tables.
fn text_of(status: &Status) -> String {
    let mut text = format!(
        "{} ({}, {}) on {}\n{:.1} s, {} epochs, {} decisions, {:.1} % of a CPU\n",
        status.policy,
        status.backend,
        status.mode,
        status.cores,
        status.age_s,
        status.epochs,
        status.decisions,
        100.0 * status.overhead
    );
    for line in status.measured.iter().chain(&status.missing_factors) {
        let _ = writeln!(text, "{line}");
    }
    for energy in &status.energy {
        let _ = writeln!(text, "{}", energy.in_words());
    }
    let cores = status.on_cores.iter().map(|core| {
        vec![
            core.cpu.to_string(),
            core.class.clone(),
            core.running.map_or_else(|| "-".to_owned(), |tid| tid.to_string()),
            core.waiting.to_string(),
            format!("{:.0}", 100.0 * core.busy),
        ]
    });
    text += &table(&["CPU", "class", "runs", "waiting", "busy %"], cores.collect());
    let number =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
    let threads = status.threads.iter().map(|thread| {
        vec![
            thread.tid.to_string(),
            thread.program.clone(),
            thread.state.clone(),
            thread.class.clone(),
            thread.cpu.to_string(),
            thread.cpus.clone(),
            thread.rank.to_string(),
            number(thread.blame_s),
            number(thread.speedup),
            format!("{:.1}", thread.big_s),
            format!("{:.1}", thread.little_s),
        ]
    });
    let heads = [
        "thread", "program", "state", "class", "CPU", "allowed", "rank", "blame s", "speed-up",
        "big s", "little s",
    ];
    text + &table(&heads, threads.collect())
}

/// Rows in columns as wide as their widest cell.
pub fn table(heads: &[&str], rows: Vec<Vec<String>>) -> String {
    let heads: Vec<String> = heads.iter().map(|&head| head.to_owned()).collect();
    let all: Vec<Vec<String>> = std::iter::once(heads).chain(rows).collect();
    let width =
        |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..all[0].len()).map(width).collect();
    let mut text = String::from("\n");
    for row in &all {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use ampsched_live_session::{CoreStatus, ThreadStatus};

    use super::*;

    #[test]
    fn tables_are_aligned() {
        let row = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
        let text = table(&["a", "long"], vec![row("xxx", "1"), row("y", "22")]);
        assert_eq!(text, "\na    long\nxxx  1\ny    22\n");
    }

    #[test]
    fn unknown_values_are_dashes() {
        let status = Status {
            policy: "hsp".to_owned(),
            threads: vec![ThreadStatus { tid: 7, speedup: Some(2.0), ..ThreadStatus::default() }],
            on_cores: vec![CoreStatus::default()],
            ..Status::default()
        };
        let text = text_of(&status);
        let thread = text.lines().last().unwrap();
        assert!(
            thread.contains("7 ") && thread.contains("-  ") && thread.contains("2.00"),
            "{text}"
        );
    }
}
