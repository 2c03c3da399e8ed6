//! Measures the runtime; `make -C lab bench-runtime` runs it beside OpenMP and writes the results down.
//!
//! `loop|rayon ITERATIONS ROUNDS` — seconds of a loop whose iterations are ROUNDS of a chain of multiplications each,
//! on two pinned workers, here or with rayon. `tasks|graph NUMBER` — seconds for empty tasks, started while they are
//! created, or as a graph. `wake NUMBER` — median seconds of a wake-up: half the time of an empty task that is given to
//! sleeping workers, whose end wakes the caller. `asymmetric OPENMP ITERATIONS ROUNDS SHARES COUNT` — the loop under
//! CPU quotas such as 0.5,0.2, and the program OPENMP (lab/benchmarks/peers/openmp_loop.c) under the same ones, in
//! turn; prints a line per measurement: name, seconds.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ampsched_taskrt::{Config, Cores, Quotas, Runtime};
use rayon::prelude::*;

/// Period of quotas: 2 ms of CPU time in 10 ms is a fifth of a core, and 1 ms is the least.
const PERIOD: Duration = Duration::from_millis(10);
/// Speeds are measured over fifty periods.
const MEASURE: Duration = Duration::from_millis(500);

type Failed = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["loop", iterations, rounds] => run_loop(iterations, rounds),
        ["rayon", iterations, rounds] => run_rayon(iterations, rounds),
        ["tasks", number] => run_tasks(number, false),
        ["graph", number] => run_tasks(number, true),
        ["wake", number] => run_wake(number),
        ["asymmetric", openmp, iterations, rounds, shares, count] => {
            run_asymmetric(openmp, iterations, rounds, shares, count)
        }
        _ => Err("usage: see the first lines of runtime_bench.rs".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("runtime_bench: {error}");
            ExitCode::from(2)
        }
    }
}

/// An iteration: a chain of multiplications, which neither caches nor a neighbouring hyper-thread slow down, and
/// shifts, without which some compilers would take several links of the chain at once.
fn work(seed: u64, rounds: u64) -> u64 {
    (0..rounds).fold(seed, |value, _| {
        (value ^ value >> 29).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1)
    })
}

fn two_workers() -> Result<Runtime, Failed> {
    Ok(Runtime::new(&Config::new(Cores::parse("core=0-1")?))?)
}

fn loop_on(runtime: &Runtime, iterations: usize, rounds: u64) -> f64 {
    let start = Instant::now();
    let sum = runtime.map_reduce(
        0..iterations,
        || 0_u64,
        |part| part.fold(0, |sum: u64, i| sum.wrapping_add(work(i as u64, rounds))),
        u64::wrapping_add,
    );
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("{sum:x}");
    seconds
}

fn run_loop(iterations: &str, rounds: &str) -> Result<(), Failed> {
    let (runtime, iterations, rounds) = (two_workers()?, iterations.parse()?, rounds.parse()?);
    println!("{:.9}", loop_on(&runtime, iterations, rounds));
    Ok(())
}

fn run_rayon(iterations: &str, rounds: &str) -> Result<(), Failed> {
    let (iterations, rounds): (u64, u64) = (iterations.parse()?, rounds.parse()?);
    let pin = |worker| {
        let mut set = rustix::thread::CpuSet::new();
        set.set(worker);
        rustix::thread::sched_setaffinity(None, &set).expect("there are two CPUs");
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).start_handler(pin).build()?;
    let start = Instant::now();
    let sum = pool.install(|| {
        (0..iterations).into_par_iter().map(|i| work(i, rounds)).reduce(|| 0, u64::wrapping_add)
    });
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("{sum:x}");
    println!("{seconds:.9}");
    Ok(())
}

fn run_tasks(number: &str, is_held: bool) -> Result<(), Failed> {
    let (runtime, number): (Runtime, usize) = (two_workers()?, number.parse()?);
    let start = Instant::now();
    if is_held {
        runtime.graph(|scope| {
            (0..number).for_each(|_| {
                scope.task("empty").run(|| ());
            })
        })?;
    } else {
        runtime.scope(|scope| {
            (0..number).for_each(|_| {
                scope.task("empty").run(|| ());
            })
        })?;
    }
    println!("{:.9}", start.elapsed().as_secs_f64());
    Ok(())
}

fn run_wake(number: &str) -> Result<(), Failed> {
    let (runtime, number): (Runtime, usize) = (two_workers()?, number.parse()?);
    let mut seconds = Vec::new();
    for _ in 0..number.max(1) {
        sleep(Duration::from_millis(1)); // Long after the workers have fallen asleep.
        let start = Instant::now();
        runtime.scope(|scope| {
            scope.task("empty").run(|| ());
        })?;
        seconds.push(start.elapsed().as_secs_f64() / 2.0);
    }
    seconds.sort_by(f64::total_cmp);
    println!("{:.9}", seconds[seconds.len() / 2]);
    Ok(())
}

fn run_asymmetric(
    openmp: &str,
    iterations: &str,
    rounds: &str,
    shares: &str,
    count: &str,
) -> Result<(), Failed> {
    let shares: Result<Vec<f64>, _> = shares.split(',').map(str::parse).collect();
    let shares = shares?;
    let (loop_iterations, loop_rounds) = (iterations.parse()?, rounds.parse()?);
    // A class per worker: each has its own quota.
    let classes: Vec<String> = (0..shares.len()).map(|cpu| format!("core{cpu}={cpu}")).collect();
    let runtime = Runtime::new(&Config::new(Cores::parse(&classes.join(";"))?))?;
    let quotas = Quotas::new(&shares, PERIOD)?;
    quotas.apply(&runtime)?;
    for _ in 0..count.parse()? {
        let speeds = runtime.measure_speeds(MEASURE)?;
        println!("ratio {:.4}", speeds.iter().copied().fold(0.0, f64::max));
        for mode in ["static", "dynamic"] {
            // Whoever runs next has its whole quota.
            sleep(2 * PERIOD);
            println!("{mode} {}", run_openmp(openmp, mode, iterations, rounds, &quotas)?);
        }
        sleep(2 * PERIOD);
        println!("ampsched {:.9}", loop_on(&runtime, loop_iterations, loop_rounds));
    }
    Ok(())
}

/// Seconds of the same loop under OpenMP, under the same quotas.
fn run_openmp(
    program: &str,
    mode: &str,
    iterations: &str,
    rounds: &str,
    quotas: &Quotas,
) -> Result<f64, Failed> {
    let mut command = Command::new(Path::new(program));
    command.args([mode, iterations, rounds]).args(quotas.thread_files());
    let output = command.env("OMP_WAIT_POLICY", "passive").output()?;
    if !output.status.success() {
        return Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}
