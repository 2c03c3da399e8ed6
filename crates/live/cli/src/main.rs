//! The command `ampsched-live`: runs scheduling policies on this computer.

mod doctor;
mod refusal;
mod run;
mod status;

use std::process::ExitCode;

use ampsched_live_cli::{args, command, instruments, policy_text, record, run_dir, signals};
use ampsched_model::InputError;
use clap::Parser;

use args::{Arguments, Task};

/// Exit code of everything that a user can get wrong.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.task {
        Task::Run(wanted) => run::run(*wanted),
        Task::Status(wanted) => status::status(&wanted),
        Task::Stop(wanted) => run_dir::stop(&wanted),
        Task::Restore(wanted) => run_dir::restore_remains(&wanted),
        Task::Doctor(wanted) => doctor::doctor(&wanted),
        Task::Guardian { journal } => guard(&journal),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(BAD_INPUT)
    })
}

fn guard(journal: &std::path::Path) -> Result<ExitCode, InputError> {
    if let Some(restored) = ampsched_live_daemon::keep_watch(journal)? {
        run_dir::report(&restored);
    }
    Ok(ExitCode::SUCCESS)
}
