//! Runs cases whose results are known beforehand, and prints how many of each kind were compared and what failed.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use ampsched_attack::panics;
use ampsched_attack::references::{KINDS, run};
use ampsched_attack::work::{Progress, Tally, ending};
use clap::Parser;

/// Simulations beside references and beside each other.
#[derive(Debug, Parser)]
struct Args {
    /// Seed of all cases.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of the first case.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Step from case to case.
    #[arg(long, default_value_t = 1)]
    step: u64,
    /// How many cases.
    #[arg(long, default_value_t = 1000)]
    references: u64,
    /// A case that takes longer is given up, and the process with it.
    #[arg(long, default_value_t = 20)]
    limit_s: u64,
    /// File for the number of the case at work.
    #[arg(long)]
    progress: Option<PathBuf>,
    /// Run the case `first` alone and print what it simulates.
    #[arg(long)]
    only: bool,
}

fn main() -> ExitCode {
    ending(attack(&Args::parse()))
}

/// How many failed.
fn attack(args: &Args) -> Result<u64, String> {
    let progress = Progress::watched(args.progress.as_deref(), Duration::from_secs(args.limit_s))
        .map_err(|error| error.to_string())?;
    panics::note();
    let (mut number, mut tally) = (args.first, Tally::default());
    let mut cases = vec![(0_u64, 0_u64); KINDS.len()];
    while tally.done < args.references {
        progress.begin(number, &tally).map_err(|error| error.to_string())?;
        let report = run(args.seed, number, None);
        if args.only {
            print!("{}", report.describe());
        }
        tally.done += 1;
        let (count, compared) = &mut cases[report.kind];
        (*count, *compared) = (*count + 1, *compared + report.compared);
        if let Some(flaw) = report.flaw {
            tally.failed += 1;
            println!("FAILED\t{number}\t-\t{flaw}");
        }
        if args.only {
            break;
        }
        number += args.step;
    }
    for (kind, (count, compared)) in KINDS.iter().zip(cases) {
        println!("KIND\t{}\t{count}\t{compared}", kind.name);
    }
    Ok(tally.end())
}
