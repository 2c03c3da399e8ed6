//! The command `ampsched-live`: runs scheduling policies on this computer.

mod args;
mod choice;
mod doctor;
mod kernel_program;
mod status;
mod stop;

use std::process::ExitCode;

use ampsched_live_daemon::Daemon;
use ampsched_live_driver::Backend;
use ampsched_live_session::arguments::exit_code;
use ampsched_live_session::{Backend as _, Settings, Setup, check_limits};
use ampsched_model::InputError;
use clap::Parser;

use args::{Arguments, LiveTask};

fn main() -> ExitCode {
    exit_code(check_limits().and_then(|()| execute()))
}

fn execute() -> Result<ExitCode, InputError> {
    match Arguments::parse().task {
        LiveTask::Session(task) => task.execute::<Daemon>(run, refuse),
        LiveTask::Status(wanted) => status::status(&wanted),
        LiveTask::Stop(folder) => stop::stop(&folder),
        LiveTask::Doctor(wanted) => doctor::doctor(&wanted),
    }
}

/// Why a policy can be run by no means here, or not by those that are wanted.
fn refuse(setup: Setup) -> Result<(), InputError> {
    match choice::choose(&setup)? {
        (Backend::Scx, _) => Ok(()),
        (Backend::Daemon, _) => Daemon::check(&setup),
    }
}

/// Runs a policy by the means that can run it here.
fn run(settings: Settings) -> Result<ExitCode, InputError> {
    let mut setup = Setup::new(settings)?;
    let (backend, lacks) = choice::choose(&setup)?;
    if backend == Backend::Scx {
        return Err(kernel_program::become_it(&setup.settings));
    }
    setup.lacks = lacks;
    ampsched_live_session::run::<Daemon>(setup)
}
