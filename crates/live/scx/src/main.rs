//! The command `ampsched-live-scx`: runs a policy inside this computer's kernel. `ampsched-live run` becomes it, with
//! the same settings, where the kernel can run the policy.

use std::process::ExitCode;

use ampsched_live_session::arguments::{Task, exit_code};
use ampsched_live_session::{Backend, Setup};
use ampsched_scx::Scx;
use clap::Parser;

/// Runs a scheduling policy of ampsched inside this computer's kernel.
#[derive(Debug, Parser)]
#[command(name = "ampsched-live-scx", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

fn main() -> ExitCode {
    let task = Arguments::parse().task;
    let run = |settings| ampsched_live_session::run::<Scx>(Setup::new(settings)?);
    exit_code(task.execute::<Scx>(run, |setup| <Scx>::check(&setup)))
}
