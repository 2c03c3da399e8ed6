//! What the user of a session can choose, declared once: command lines, the hand-over from one program to another and
//! Python's options follow from it (`arguments`).

use std::path::PathBuf;

use ampsched_computer::{ByHand, CoreMap, Evidence, Root, detect_cores};
use ampsched_model::InputError;
use serde::{Deserialize, Serialize};

/// What a session is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Settings {
    /// Policy with parameters, such as hsp or wash:sigma=0.3.
    #[cfg_attr(feature = "clap", arg(long, short))]
    pub policy: String,
    /// A parameter of the policy, such as sigma=0.3; repeatable.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME=NUMBER"))]
    pub param: Vec<String>,
    /// Classes of cores.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub cores: CoreSettings,
    /// By which means.
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value = "auto"))]
    pub backend: Means,
    /// Run the policy although something essential of it is missing; results say so.
    #[cfg_attr(feature = "clap", arg(long))]
    pub degrade: bool,
    /// Let the policy set clocks (cpufreq).
    #[cfg_attr(feature = "clap", arg(long))]
    pub allow_dvfs: bool,
    /// TOML file with what was measured of programs: speedup, alone_ips, energy_ratio by name.
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub facts: Option<PathBuf>,
    /// Model that predicts speed-ups from counters, of this computer's cores: a file that `ampsched calibrate` or
    /// `ampsched train` has made.
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub model: Option<PathBuf>,
    /// How many times slower than real time the policy's time passes.
    #[cfg_attr(feature = "clap", arg(long, value_name = "FACTOR", default_value_t = 1.0))]
    pub dilation: f64,
    /// Which threads are scheduled.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub scope: ScopeSettings,
    /// What is written.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub record: RecordSettings,
}

/// Means of running a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Means {
    /// The kernel if it can, else the daemon.
    Auto,
    /// A scheduler in the kernel (sched_ext).
    Scx,
    /// Affinities, nice values, freezer and cpufreq.
    Daemon,
}

/// Which CPUs are fast and which slow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct CoreSettings {
    /// CPUs of the fastest class, such as 0-1 (found by itself if the kernel shows it).
    #[cfg_attr(feature = "clap", arg(long, value_name = "CPUS", requires = "little"))]
    pub big: Option<String>,
    /// CPUs of a class in between; repeat it from the faster to the slower.
    #[cfg_attr(feature = "clap", arg(long, value_name = "CPUS", requires = "big"))]
    pub middle: Vec<String>,
    /// CPUs of the slowest class.
    #[cfg_attr(feature = "clap", arg(long, value_name = "CPUS", requires = "big"))]
    pub little: Option<String>,
    /// Speed of the fastest class over that of the others, from the next to the slowest, such as 2.5 or 1.4,2.5.
    #[cfg_attr(feature = "clap", arg(long, value_name = "RATIOS", value_delimiter = ','))]
    pub ratio: Vec<f64>,
}

impl CoreSettings {
    /// The classes of cores as given, or as found.
    ///
    /// # Errors
    ///
    /// The lists are wrong, or what the kernel shows contradicts itself.
    pub fn detect(&self, root: &Root) -> Result<(CoreMap, Evidence), InputError> {
        let slowest_first = self.little.iter().chain(self.middle.iter().rev()).chain(&self.big);
        let by_hand =
            ByHand { classes: slowest_first.cloned().collect(), ratios: self.ratio.clone() };
        detect_cores(root, &by_hand)
    }
}

/// Which threads are scheduled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct ScopeSettings {
    /// A process to schedule, with all below it; repeatable.
    #[cfg_attr(feature = "clap", arg(long, value_name = "PID"))]
    pub pid: Vec<i32>,
    /// A cgroup to schedule, by its folder.
    #[cfg_attr(feature = "clap", arg(long, value_name = "FOLDER", conflicts_with = "pid"))]
    pub cgroup: Option<String>,
    /// Schedule everything that runs on this computer, not only the command (in the kernel only).
    #[cfg_attr(feature = "clap", arg(long, conflicts_with_all = ["pid", "cgroup"]))]
    pub everything: bool,
    /// A command to run and schedule, with all that it starts.
    #[cfg_attr(
        feature = "clap",
        arg(last = true, conflicts_with_all = ["pid", "cgroup"], value_name = "COMMAND")
    )]
    pub command: Vec<String>,
}

/// What a session writes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct RecordSettings {
    /// Write a Perfetto trace of what was seen and decided.
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub trace: Option<PathBuf>,
    /// Write what was done, and how faithfully, as JSON.
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub result: Option<PathBuf>,
    /// Say nothing but errors.
    #[cfg_attr(feature = "clap", arg(long, short))]
    pub quiet: bool,
    /// Where the session leaves its files.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub folder: FolderSettings,
}

/// Where running sessions leave their files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct FolderSettings {
    /// Folder of the running session [default: /run/ampsched for root, else below XDG_RUNTIME_DIR].
    #[cfg_attr(feature = "clap", arg(long, value_name = "FOLDER"))]
    pub run_dir: Option<PathBuf>,
}
