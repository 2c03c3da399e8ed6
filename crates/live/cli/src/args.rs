//! Arguments of the command line.

use ampsched_live_session::arguments::Task;
use ampsched_live_session::{CoreSettings, FolderSettings};
use ampsched_version::VERSION;
use clap::{Args, Parser, Subcommand};

/// Runs a scheduling policy of ampsched on this computer.
#[derive(Debug, Parser)]
#[command(name = "ampsched-live", version = VERSION, max_term_width = 100)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub task: LiveTask,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum LiveTask {
    /// What all programs do that run policies.
    #[command(flatten)]
    Session(Task),
    /// Show what the running session does.
    Status(StatusArgs),
    /// Stop the running session; everything that it touched is put back, and its command goes on without a policy.
    Stop(FolderSettings),
    /// Say what this computer can do, and which policies it can run.
    Doctor(DoctorArgs),
}

/// Arguments of `status`.
#[derive(Args, Debug)]
pub struct StatusArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Show it anew every second until the session ends.
    #[arg(long, conflicts_with = "json")]
    pub watch: bool,
    /// Which session.
    #[command(flatten)]
    pub folder: FolderSettings,
}

/// Arguments of `doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Classes of cores.
    #[command(flatten)]
    pub cores: CoreSettings,
    /// Suppose that policies may set clocks.
    #[arg(long)]
    pub allow_dvfs: bool,
}
