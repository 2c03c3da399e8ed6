//! What was recognised.

use serde::Serialize;

/// A group of threads of a lifted program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Recorded threads.
    pub threads: usize,
    /// Its number, as in the program.
    pub count: String,
    /// Recorded work in ns.
    pub recorded_ns: f64,
    /// Expected work of the program in ns, with the recorded number of threads.
    pub lifted_ns: f64,
    /// Steps of its code, loops and bodies counted once.
    pub steps: usize,
}

/// An object of a lifted program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ObjectRow {
    /// Its name.
    pub name: String,
    /// What it is in the program.
    pub kind: String,
    /// What it was in the recording.
    pub was: String,
}

/// What was recognised, and how well the program keeps what was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// How much was recognised: `full`, `jobs`, `literal`, `work`.
    pub level: String,
    /// Groups of threads.
    pub groups: Vec<Group>,
    /// Objects.
    pub objects: Vec<ObjectRow>,
    /// Recorded work in ns, without active waiting.
    pub recorded_ns: f64,
    /// Expected work of the program in ns.
    pub lifted_ns: f64,
    /// Active waiting that was left out, in ns.
    pub idle_ns: f64,
    /// Share of the work that only semaphores between pairs of threads order.
    pub literal_share: f64,
    /// Share of the synchronisation steps that are such semaphores.
    pub literal_steps_share: f64,
    /// What was assumed or left out, a sentence each.
    pub notes: Vec<String>,
}

impl Report {
    /// Whether the number of threads of a group is a parameter.
    pub fn has_n(&self) -> bool {
        self.groups.iter().any(|group| group.count.starts_with('n'))
    }

    /// Error of the total work, as a share.
    pub fn work_error(&self) -> f64 {
        if self.recorded_ns > 0.0 { self.lifted_ns / self.recorded_ns - 1.0 } else { 0.0 }
    }
}
