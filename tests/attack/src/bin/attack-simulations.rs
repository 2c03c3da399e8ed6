//! Runs random scenes and prints how many simulations that were and what failed.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use ampsched_attack::campaign::Scene;
use ampsched_attack::panics;
use ampsched_attack::shipped::Shipped;
use ampsched_attack::work::{Progress, Tally, ending};
use ampsched_model::FileKind;
use clap::Parser;

/// Random simulations, judged from outside.
#[derive(Debug, Parser)]
struct Args {
    /// Seed of all scenes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of the first scene.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Step from scene to scene: several processes share them out.
    #[arg(long, default_value_t = 1)]
    step: u64,
    /// Stop after so many simulations.
    #[arg(long, default_value_t = 1000)]
    simulations: u64,
    /// A scene that takes longer is given up, and the process with it.
    #[arg(long, default_value_t = 20)]
    limit_s: u64,
    /// File for the number of the scene at work.
    #[arg(long)]
    progress: Option<PathBuf>,
    /// Print the scene `first`, run it alone and say everything.
    #[arg(long)]
    only: bool,
}

fn main() -> ExitCode {
    ending(run(&Args::parse()))
}

/// How many failed.
fn run(args: &Args) -> Result<u64, String> {
    let shipped = Shipped::read(&[FileKind::CoreType, FileKind::Profile])?;
    let progress = Progress::watched(args.progress.as_deref(), Duration::from_secs(args.limit_s))
        .map_err(|error| error.to_string())?;
    panics::note();
    let (mut number, mut tally) = (args.first, Tally::default());
    while tally.done < args.simulations {
        progress.begin(number, &tally).map_err(|error| error.to_string())?;
        let scene = Scene::new(args.seed, number, &shipped)
            .map_err(|error| format!("scene {number} of seed {}: {error}", args.seed))?;
        if args.only {
            print!("{}", scene.describe());
        }
        let report = scene.run();
        tally.done += report.simulations;
        tally.refused += report.refused;
        tally.failed += report.failures.len() as u64;
        for failure in &report.failures {
            let policy = failure.policy.as_deref().unwrap_or("-");
            println!("FAILED\t{number}\t{policy}\t{}", failure.what);
        }
        if args.only {
            break;
        }
        number += args.step;
    }
    Ok(tally.end())
}
