//! What a session tells about itself while it runs.

use ampsched_live_driver::Demand;
use ampsched_live_factors::Energy;
use serde::{Deserialize, Serialize};

/// A session at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Process of the session.
    pub pid: i32,
    /// When that process started, in clock ticks since boot.
    pub start_ticks: u64,
    /// The policy with its parameters, as given.
    pub policy: String,
    /// By which means it runs.
    pub backend: String,
    /// `as written`, or `degraded` if something essential of the policy is missing, or `by the kernel itself` if the
    /// policy asks for nothing but what the kernel does without it.
    pub mode: String,
    /// What the policy asks for and does not get.
    pub lacks: Vec<Demand>,
    /// Factors that are missing, or the same for all threads.
    pub missing_factors: Vec<String>,
    /// What is counted and predicted, in a line each.
    #[serde(default)]
    pub measured: Vec<String>,
    /// Energy since the start, by sensor; of all that runs on the computer.
    #[serde(default)]
    pub energy: Vec<Energy>,
    /// Classes of cores.
    pub cores: String,
    /// Means of holding threads back.
    pub freezer: String,
    /// Seconds since the start.
    pub age_s: f64,
    /// Looks at the threads so far.
    pub looks: u64,
    /// Epochs of the policy so far.
    pub epochs: u64,
    /// Decisions carried out so far.
    pub decisions: u64,
    /// Share of one CPU that the session itself uses.
    pub overhead: f64,
    /// What could not be carried out, each kind once.
    pub failures: Vec<String>,
    /// The scheduled threads.
    pub threads: Vec<ThreadStatus>,
    /// The machine's cores.
    pub on_cores: Vec<CoreStatus>,
}

/// A scheduled thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadStatus {
    /// Its number.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// Its program.
    pub program: String,
    /// Its name.
    pub name: String,
    /// What it does: running, waiting, blocked, held.
    pub state: String,
    /// The CPU on which it runs, waits or last ran.
    pub cpu: usize,
    /// The class of that CPU.
    pub class: String,
    /// The CPUs that it may use at present.
    pub cpus: String,
    /// Kind of core that the policy wants for it: big, little or any.
    pub wants: String,
    /// Its rank.
    pub rank: u64,
    /// Time that others have waited for it in s; none if that is not known.
    pub blame_s: Option<f64>,
    /// Its speed-up; none if it is not known.
    pub speedup: Option<f64>,
    /// `measured`, `predicted` (by a model, by what was stated, or by the ratio of the classes' speeds) or `missing`.
    #[serde(default)]
    pub speedup_kind: String,
    /// How old it is, in s; none if there is none.
    #[serde(default)]
    pub speedup_age_s: Option<f64>,
    /// CPU time on the fastest class and on all others since it was found, in s.
    pub big_s: f64,
    /// CPU time on the slowest class since it was found, in s.
    pub little_s: f64,
    /// Changes of CPU that were seen.
    pub migrations: u64,
}

/// A core of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreStatus {
    /// Its CPU.
    pub cpu: usize,
    /// Its class.
    pub class: String,
    /// The scheduled thread that runs there.
    pub running: Option<i32>,
    /// Scheduled threads that wait there.
    pub waiting: usize,
    /// Share of the time so far that it ran scheduled threads.
    pub busy: f64,
}
