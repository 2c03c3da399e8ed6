//! Arguments of the command line.

use std::path::PathBuf;

use ampsched_computer::{ByHand, CoreMap, Evidence, Root, detect_cores};
use ampsched_model::InputError;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Runs a scheduling policy of ampsched on this computer.
#[derive(Debug, Parser)]
#[command(name = "ampsched-live", version, max_term_width = 100)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub task: Task,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Task {
    /// Run a policy for a command, for processes or for a cgroup, until it ends or is stopped.
    Run(Box<RunArgs>),
    /// Show what the running session does.
    Status(StatusArgs),
    /// Stop the running session; everything that it touched is put back.
    Stop(FolderArgs),
    /// Put back what sessions left behind that were killed together with their guardians.
    Restore(FolderArgs),
    /// Say what this computer can do, and which policies it can run.
    Doctor(DoctorArgs),
    /// Wait for the end of standard input, then put back what a journal names (started by `run`).
    #[command(hide = true)]
    Guardian {
        /// The journal.
        journal: PathBuf,
    },
}

/// Means of running a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackendArg {
    /// The kernel if it can, else the daemon.
    Auto,
    /// A scheduler in the kernel (sched_ext).
    Scx,
    /// Affinities, nice values, freezer and cpufreq.
    Daemon,
}

/// Which CPUs are fast and which slow.
#[derive(Args, Clone, Debug, Default)]
pub struct CoreArgs {
    /// CPUs of the fastest class, such as 0-1 (found by itself if the kernel shows it).
    #[arg(long, value_name = "CPUS", requires = "little")]
    pub big: Option<String>,
    /// CPUs of a class in between; repeat it from the faster to the slower.
    #[arg(long, value_name = "CPUS", requires = "big")]
    pub middle: Vec<String>,
    /// CPUs of the slowest class.
    #[arg(long, value_name = "CPUS", requires = "big")]
    pub little: Option<String>,
    /// Speed of the fastest class over that of the others, from the next to the slowest, such as 2.5 or 1.4,2.5.
    #[arg(long, value_name = "RATIOS", value_delimiter = ',')]
    pub ratio: Vec<f64>,
}

impl CoreArgs {
    /// The classes of cores as given, or as found.
    pub fn detect(&self, root: &Root) -> Result<(CoreMap, Evidence), InputError> {
        let slowest_first = self.little.iter().chain(self.middle.iter().rev()).chain(&self.big);
        let by_hand =
            ByHand { classes: slowest_first.cloned().collect(), ratios: self.ratio.clone() };
        detect_cores(root, &by_hand)
    }
}

/// Where running sessions leave their files.
#[derive(Args, Clone, Debug, Default)]
pub struct FolderArgs {
    /// Folder of the running session [default: /run/ampsched for root, else below XDG_RUNTIME_DIR].
    #[arg(long, value_name = "FOLDER")]
    pub run_dir: Option<PathBuf>,
}

/// Arguments of `run`.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// Policy with parameters, such as hsp or wash:sigma=0.3.
    #[arg(long, short)]
    pub policy: String,
    /// A parameter of the policy, such as sigma=0.3; repeatable.
    #[arg(long, value_name = "NAME=NUMBER")]
    pub param: Vec<String>,
    /// Classes of cores.
    #[command(flatten)]
    pub cores: CoreArgs,
    /// By which means.
    #[arg(long, value_enum, default_value = "auto")]
    pub backend: BackendArg,
    /// Run the policy although something essential of it is missing; results say so.
    #[arg(long)]
    pub degrade: bool,
    /// Let the policy set clocks (cpufreq).
    #[arg(long)]
    pub allow_dvfs: bool,
    /// TOML file with what was measured of programs: speedup, alone_ips, energy_ratio by name.
    #[arg(long, value_name = "FILE")]
    pub facts: Option<PathBuf>,
    /// Model that predicts speed-ups from counters, of this computer's cores: a file that `ampsched calibrate` or
    /// `ampsched train` has made.
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// How many times slower than real time the policy's time passes.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub dilation: f64,
    /// A process to schedule, with all below it; repeatable.
    #[arg(long, value_name = "PID")]
    pub pid: Vec<i32>,
    /// A cgroup to schedule, by its folder.
    #[arg(long, value_name = "FOLDER", conflicts_with = "pid")]
    pub cgroup: Option<String>,
    /// Write a Perfetto trace of what was seen and decided.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Write what was done, and how faithfully, as JSON.
    #[arg(long, value_name = "FILE")]
    pub result: Option<PathBuf>,
    /// Say nothing but errors.
    #[arg(long, short)]
    pub quiet: bool,
    /// Where the session leaves its files.
    #[command(flatten)]
    pub folder: FolderArgs,
    /// A command to run and schedule, with all that it starts.
    #[arg(last = true, conflicts_with_all = ["pid", "cgroup"], value_name = "COMMAND")]
    pub command: Vec<String>,
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
    pub folder: FolderArgs,
}

/// Arguments of `doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Classes of cores.
    #[command(flatten)]
    pub cores: CoreArgs,
    /// Suppose that policies may set clocks.
    #[arg(long)]
    pub allow_dvfs: bool,
}
