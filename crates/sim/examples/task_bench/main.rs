//! Measures task policies: `task_bench FILE WORKERS POLICY [REPEAT]` prints one JSON object.
//!
//! Counted is CPU time from the graph in memory to the finished schedule: ranks or levels, the policy, and the
//! simulated execution of what it decides. Reading the file is not counted.

#[path = "../engine_bench/cpu_time.rs"]
mod cpu_time;

use std::process::ExitCode;

use ampsched_sim::run_task_policy;
use ampsched_task::{Format, Problem, ReadOptions, Workers, build_task_policy, read};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match measure(&arguments) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("task_bench: {message}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: &[String]) -> Result<String, String> {
    let [file, workers, policy, repeat @ ..] = arguments else {
        return Err("usage: task_bench FILE WORKERS POLICY [REPEAT]".to_owned());
    };
    let repeat: u32 = match repeat.first() {
        Some(text) => text.parse().map_err(|_| format!("{text} is not a count"))?,
        None => 1,
    };
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let format = Format::of(file).map_err(|error| error.to_string())?;
    let graph =
        read(format, file, &text, &ReadOptions::default()).map_err(|error| error.to_string())?;
    let workers = Workers::parse(workers, graph.ratio()).map_err(|error| error.to_string())?;
    let problem = Problem::new(&graph, workers).map_err(|error| error.to_string())?;
    let (build, params) = build_task_policy(policy, &[]).map_err(|error| error.to_string())?;
    let start = cpu_time::CpuTime::now();
    let mut makespan_s = 0.0;
    for _ in 0..repeat.max(1) {
        let schedule =
            run_task_policy(&problem, build, &params).map_err(|error| error.to_string())?;
        makespan_s = schedule.makespan_s();
    }
    let cpu_s = start.elapsed_s();
    let tasks = graph.len() as u64 * u64::from(repeat.max(1));
    Ok(format!("{{\"dispatches\": {tasks}, \"cpu_s\": {cpu_s}, \"makespan_s\": {makespan_s}}}"))
}
