//! The command `ampsched-live-scx`: runs a policy inside this computer's kernel. `ampsched-live run` becomes it, with
//! the same settings, where the kernel can run the policy.

use std::path::PathBuf;
use std::process::ExitCode;

use ampsched_live_session::arguments::{Task, exit_code};
use ampsched_live_session::{Backend, Setup, check_limits, print};
use ampsched_model::InputError;
use ampsched_scx::{Scx, recording};
use ampsched_version::VERSION;
use clap::{Parser, Subcommand};

/// Runs a scheduling policy of ampsched inside this computer's kernel.
#[derive(Debug, Parser)]
#[command(name = "ampsched-live-scx", version = VERSION, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    task: ScxTask,
    /// Write what `run` decides to a file, for `replay`: 40 bytes for each, and a few times longer decisions.
    #[arg(long, global = true, value_name = "FILE")]
    decisions: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum ScxTask {
    #[command(flatten)]
    Session(Task),
    /// Have the interpreter of policies that simulations use decide what a file of `run --decisions` says.
    Replay {
        /// The file.
        file: PathBuf,
    },
}

fn main() -> ExitCode {
    exit_code(check_limits().and_then(|()| execute()))
}

fn execute() -> Result<ExitCode, InputError> {
    let Arguments { task, decisions } = Arguments::parse();
    let task = match task {
        ScxTask::Session(task) => task,
        ScxTask::Replay { file } => {
            print(&recording::check(&file)?)?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    recording::want(decisions);
    let run = |settings| ampsched_live_session::run::<Scx>(Setup::new(settings)?);
    task.execute::<Scx>(run, |setup| <Scx>::check(&setup))
}
