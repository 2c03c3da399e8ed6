//! Measurements of the engine, one per call, printed as a JSON object; `lab/benchmarks/run.py` calls them.
//!
//! ```text
//! engine_bench hogs POLICY CORES THREADS SIM_MS      CPU-bound threads, half of the cores half as fast
//! engine_bench energy POLICY CORES THREADS SIM_MS    the same, with power and heat
//! engine_bench mix POLICY SIM_MS [TRACE_FILE]        20 threads that lock, wait and pass items on 2 + 2 cores
//! engine_bench contention POLICY CORES SIM_MS on|off
//!                                                    the same of four kinds of code that wait for memory, which they
//!                                                    share, and an L2, and the cores (SMT), or not
//! engine_bench repeat POLICY SIM_MS                  two programs of 1 ms, again and again, beside 5 threads
//! engine_bench bare CORES THREADS SIM_MS             the yardstick: a heap and a queue, nothing else
//! ```

mod bare;
mod cpu_time;
mod setup;

use std::fs::File;
use std::num::NonZeroU32;
use std::process::ExitCode;

use ampsched_model::{Machine, Workload};
use ampsched_policy::build_policy;
use ampsched_sim::{Options, Outcome, PerfettoTrace, Trace, simulate_with};

use cpu_time::CpuTime;

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["hogs", policy, cores, threads, sim_ms] => hogs(policy, cores, threads, sim_ms, false),
        ["energy", policy, cores, threads, sim_ms] => hogs(policy, cores, threads, sim_ms, true),
        ["mix", policy, sim_ms] => mix(policy, sim_ms, None),
        ["mix", policy, sim_ms, file] => mix(policy, sim_ms, Some(file)),
        ["contention", policy, cores, sim_ms, state @ ("on" | "off")] => {
            contention(policy, cores, sim_ms, *state == "on")
        }
        ["repeat", policy, sim_ms] => repeat(policy, sim_ms),
        ["bare", cores, threads, sim_ms] => bare(cores, threads, sim_ms),
        _ => Err("usage: engine_bench hogs|energy POLICY CORES THREADS SIM_MS | mix POLICY SIM_MS [TRACE_FILE] | contention POLICY CORES SIM_MS on|off | repeat POLICY SIM_MS | bare CORES THREADS SIM_MS".into()),
    };
    match result {
        Ok(json) => {
            println!("{json}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("engine_bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn hogs(
    policy: &str,
    cores: &str,
    threads: &str,
    sim_ms: &str,
    energy: bool,
) -> Result<String, Failure> {
    let (machine, workload) =
        (setup::half_speed_machine(cores.parse()?), setup::hogs(threads.parse()?)?);
    // What creating and placing the threads costs, apart from running them.
    let (start_s, start) = timed_run(&machine, &workload, policy, &until(1), None)?;
    let options = Options { energy, ..until(to_ns(sim_ms)?) };
    let (cpu_s, outcome) = timed_run(&machine, &workload, policy, &options, None)?;
    Ok(json(start_s, start.counts.dispatches, cpu_s, &outcome))
}

fn mix(policy: &str, sim_ms: &str, file: Option<&str>) -> Result<String, Failure> {
    let (machine, workload) = (setup::half_speed_machine(4), setup::mix()?);
    let options = until(to_ns(sim_ms)?);
    let (cpu_s, outcome) = match file {
        None => timed_run(&machine, &workload, policy, &options, None)?,
        Some(file) => {
            let mut trace = PerfettoTrace::new(File::create(file)?, &(&machine).into())?;
            let result = timed_run(&machine, &workload, policy, &options, Some(&mut trace))?;
            trace.finish()?;
            result
        }
    };
    Ok(json(0.0, 0, cpu_s, &outcome))
}

fn contention(policy: &str, cores: &str, sim_ms: &str, is_on: bool) -> Result<String, Failure> {
    let (machine, workload) =
        (setup::contended_machine(cores.parse()?, is_on), setup::contended_mix()?);
    let options = until(to_ns(sim_ms)?);
    let (cpu_s, outcome) = timed_run(&machine, &workload, policy, &options, None)?;
    Ok(json(0.0, 0, cpu_s, &outcome))
}

fn repeat(policy: &str, sim_ms: &str) -> Result<String, Failure> {
    let (machine, workload) = (setup::half_speed_machine(4), setup::repeated()?);
    let options = Options { repetitions: Some(NonZeroU32::MAX), ..until(to_ns(sim_ms)?) };
    let (cpu_s, outcome) = timed_run(&machine, &workload, policy, &options, None)?;
    Ok(json(0.0, 0, cpu_s, &outcome))
}

fn bare(cores: &str, threads: &str, sim_ms: &str) -> Result<String, Failure> {
    let (cores, threads, until_ns) = (cores.parse()?, threads.parse()?, to_ns(sim_ms)?);
    let start = CpuTime::now();
    let dispatches = bare::round_robin(cores, threads, until_ns);
    Ok(format!(r#"{{"dispatches": {dispatches}, "cpu_s": {:.6}}}"#, start.elapsed_s()))
}

fn timed_run(
    machine: &Machine,
    workload: &Workload,
    policy: &str,
    options: &Options,
    trace: Option<&mut dyn Trace>,
) -> Result<(f64, Outcome), Failure> {
    let boxed = build_policy(policy, &[])?;
    let start = CpuTime::now();
    let outcome = simulate_with(machine, workload, policy, boxed, options, trace)?;
    Ok((start.elapsed_s(), outcome))
}

fn until(until_ns: u64) -> Options {
    Options { until_ns: Some(until_ns), ..Options::default() }
}

fn to_ns(ms: &str) -> Result<u64, Failure> {
    let ms: f64 = ms.parse()?;
    Ok((ms * 1e6) as u64)
}

fn json(start_s: f64, start_dispatches: u64, cpu_s: f64, outcome: &Outcome) -> String {
    let counts = &outcome.counts;
    format!(
        r#"{{"dispatches": {}, "switches": {}, "wakeups": {}, "start_s": {start_s:.6}, "start_dispatches": {start_dispatches}, "cpu_s": {cpu_s:.6}}}"#,
        counts.dispatches, counts.switches, counts.wakeups
    )
}
