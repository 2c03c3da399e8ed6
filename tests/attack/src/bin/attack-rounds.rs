//! Runs rounds of the task runtime and prints how many and what failed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use ampsched_attack::panics;
use ampsched_attack::rounds::Team;
use ampsched_attack::work::{Progress, Tally, ending};
use clap::Parser;

/// Rounds after which the runtimes are made anew.
const ROUNDS_PER_TEAM: u64 = 5000;

/// Random rounds of the task runtime.
#[derive(Debug, Parser)]
struct Args {
    /// Seed of all rounds.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of the first round.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// How many rounds.
    #[arg(long, default_value_t = 1000)]
    rounds: u64,
    /// Workers of each runtime.
    #[arg(long, default_value_t = 3)]
    workers: usize,
    /// A round that takes longer hangs: it is given up, and the process with it. It takes a millisecond, but where
    /// others take all memory and time, a program may stand still for half a minute.
    #[arg(long, default_value_t = 120)]
    limit_s: u64,
    /// File for the number of the round at work.
    #[arg(long)]
    progress: Option<PathBuf>,
    /// Instead of rounds, a data race on purpose, which ThreadSanitizer has to see.
    #[arg(long)]
    race: bool,
}

fn main() -> ExitCode {
    ending(run(&Args::parse()))
}

/// How many failed.
fn run(args: &Args) -> Result<u64, String> {
    let progress = Progress::watched(args.progress.as_deref(), Duration::from_secs(args.limit_s))
        .map_err(|error| error.to_string())?;
    panics::note();
    let mut team = Team::new(args.workers)?;
    if args.race {
        return team.race().map(|()| 0);
    }
    let mut tally = Tally::default();
    for number in args.first..args.first + args.rounds {
        progress.begin(number, &tally).map_err(|error| error.to_string())?;
        if number % ROUNDS_PER_TEAM == ROUNDS_PER_TEAM - 1 {
            team = Team::new(args.workers)?;
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| team.round(args.seed, number)));
        if let Err(what) = outcome.unwrap_or_else(|_| Err(panics::last())) {
            tally.failed += 1;
            println!("FAILED\t{number}\t-\t{what}");
        }
        tally.done += 1;
    }
    // Its threads end with what was asked for: no round has passed before they have.
    drop(team);
    Ok(tally.end())
}
