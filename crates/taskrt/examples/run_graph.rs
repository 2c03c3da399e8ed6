//! Executes a task graph from a file: each task computes for as long as the file says, divided by 1000.
//!
//! usage: run_graph FILE [CORES [POLICY [RECORDING.csv]]]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use ampsched_task::{Format, Graph, ReadOptions, read};
use ampsched_taskrt::{Config, Cores, Runtime};

/// Real seconds per second of the file.
const SCALE: f64 = 1e-3;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        [file] => run(file, None, "fifo", None),
        [file, cores] => run(file, Some(cores), "fifo", None),
        [file, cores, policy] => run(file, Some(cores), policy, None),
        [file, cores, policy, recording] => run(file, Some(cores), policy, Some(recording)),
        _ => Err("usage: run_graph FILE [CORES [POLICY [RECORDING.csv]]]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("run_graph: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(
    file: &str,
    cores: Option<&str>,
    policy: &str,
    recording: Option<&str>,
) -> Result<(), Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let graph = read(Format::of(file)?, file, &text, &ReadOptions::default())?;
    let cores = cores.map_or_else(Cores::detect, Cores::parse)?;
    let policy = policy.to_owned();
    let config = Config { policy, record: recording.is_some(), ..Config::new(cores) };
    let runtime = Runtime::new(&config)?;
    let start = Instant::now();
    execute(&runtime, &graph)?;
    println!("{} tasks in {:.6} s", graph.len(), start.elapsed().as_secs_f64());
    if let (Some(file), Some(recorded)) = (recording, runtime.take_recording()?) {
        std::fs::write(file, recorded.write())?;
    }
    Ok(())
}

fn execute(runtime: &Runtime, graph: &Graph) -> Result<(), ampsched_taskrt::Error> {
    runtime.run_graph(graph, |task| {
        let duration = Duration::from_secs_f64(graph.work(task) * SCALE);
        let start = Instant::now();
        while start.elapsed() < duration {
            std::hint::spin_loop();
        }
    })
}
