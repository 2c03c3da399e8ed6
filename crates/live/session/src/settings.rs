//! What the user of a session can choose, declared once: command lines, the hand-over from one program to another and
//! Python's options follow from it (`arguments`).

use std::path::PathBuf;

use ampsched_computer::{
    ByHand, CoreMap, EnergyModels, Evidence, Root, detect_cores, format_cpus, online_cpus,
    parse_cpus,
};
use ampsched_model::InputError;
use serde::{Deserialize, Serialize};

/// What a session is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Settings {
    /// Policy with parameters, such as abreast or colab:decay=0.5.
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
    /// TOML file with what was measured of programs: speedup, alone_ips, energy_ratio, work_s by name.
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
    /// CPUs of the fastest class, such as 0-1; all others if only slower ones are named; found by itself if none is.
    #[cfg_attr(feature = "clap", arg(long, value_name = "CPUS"))]
    pub big: Option<String>,
    /// CPUs of a class in between; repeat it from the faster to the slower.
    #[cfg_attr(feature = "clap", arg(long, value_name = "CPUS"))]
    pub middle: Vec<String>,
    /// CPUs of the slowest class; all others if only faster ones are named.
    #[cfg_attr(feature = "clap", arg(long, value_name = "CPUS"))]
    pub little: Option<String>,
    /// Speed of the fastest class over that of the others, from the next to the slowest, such as 2.5 or 1.4,2.5.
    #[cfg_attr(feature = "clap", arg(long, value_name = "RATIOS", value_delimiter = ','))]
    pub ratio: Vec<f64>,
    /// Power of a busy CPU at frequencies, in mW and MHz, such as 0-3=600:38,1200:120; repeatable; by the kernel's
    /// energy model if none is stated.
    #[cfg_attr(feature = "clap", arg(long, value_name = "CPUS=MHZ:MW,.."))]
    pub power: Vec<String>,
}

impl CoreSettings {
    /// The classes of cores as given, or as found.
    ///
    /// # Errors
    ///
    /// The lists are wrong, or what the kernel shows contradicts itself.
    pub fn detect(&self, root: &Root) -> Result<(CoreMap, Evidence), InputError> {
        let by_hand = ByHand { classes: self.classes(root)?, ratios: self.ratio.clone() };
        let (cores, evidence) = detect_cores(root, &by_hand)?;
        if self.power.is_empty() {
            return Ok((cores, evidence));
        }
        Ok((cores.with_power(&EnergyModels::stated(&self.power)?)?, evidence))
    }

    /// The classes that are named, the slowest first, and the one at the end that follows from them.
    fn classes(&self, root: &Root) -> Result<Vec<String>, InputError> {
        let between = self.middle.iter().rev();
        let named: Vec<String> =
            self.little.iter().chain(between).chain(&self.big).cloned().collect();
        match (&self.little, &self.big) {
            (Some(_), None) => Ok([named.clone(), vec![others("--big", root, &named)?]].concat()),
            (None, Some(_)) => Ok([vec![others("--little", root, &named)?], named].concat()),
            (None, None) if !named.is_empty() => {
                let message = "neither the fastest nor the slowest class is named";
                Err(InputError::new("--middle", "", message)
                    .with_hint("give --big or --little, too"))
            }
            _ => Ok(named),
        }
    }
}

/// The CPUs that are in none of these classes, for one that is not named.
fn others(class: &str, root: &Root, named: &[String]) -> Result<String, InputError> {
    let mut rest = online_cpus(root)?;
    for text in named {
        rest = &rest - &parse_cpus("classes of cores", "", text)?;
    }
    if rest.is_empty() {
        let message = format!("{} are all CPUs that there are", named.join(" and "));
        return Err(InputError::new(class, "", message)
            .with_hint("name fewer: the CPUs that are not named are the other class"));
    }
    Ok(format_cpus(rest))
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
    /// User as whom the command runs, by name or number [default: under sudo whoever has called it].
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "USER", conflicts_with_all = ["pid", "cgroup"])
    )]
    pub user: Option<String>,
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The classes that settings name on a computer with four CPUs, as the map describes them.
    fn described(big: Option<&str>, middle: &[&str], little: Option<&str>) -> String {
        let folder = tempfile::tempdir().unwrap();
        let cpus = folder.path().join("sys/devices/system/cpu");
        fs::create_dir_all(&cpus).unwrap();
        fs::write(cpus.join("online"), "0-3\n").unwrap();
        let own = |text: &str| text.to_owned();
        let settings = CoreSettings {
            big: big.map(own),
            middle: middle.iter().copied().map(own).collect(),
            little: little.map(own),
            ratio: Vec::new(),
            power: Vec::new(),
        };
        let found = settings.detect(&Root::new(folder.path()));
        found.map_or_else(|error| error.to_string(), |(cores, _)| cores.describe())
    }

    #[test]
    fn low_the_class_that_is_not_named_is_all_other_cpus() {
        let both = described(Some("2-3"), &[], Some("0-1"));
        assert_eq!(described(Some("2-3"), &[], None), both);
        assert_eq!(described(None, &[], Some("0-1")), both);
        let three = described(Some("3"), &["2"], Some("0-1"));
        assert_eq!(described(Some("3"), &["2"], None), three);
        assert_eq!(described(None, &["2"], Some("0-1")), three);
        let all = described(Some("0-3"), &[], None);
        assert!(all.starts_with("--little: 0-3 are all CPUs that there are"), "{all}");
        let middle = described(None, &["2"], None);
        assert!(middle.starts_with("--middle: neither the fastest nor the slowest"), "{middle}");
        let wrong = described(Some("7"), &[], None);
        assert!(wrong.contains("CPU 7 of \"7\" is not online"), "{wrong}");
    }
}
