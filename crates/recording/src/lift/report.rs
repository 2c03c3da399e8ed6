//! What was recognised.

use serde::Serialize;

/// If each thread of a crew that nobody feeds did the same number of jobs, and more than this, they were its own.
const JOBS_BY_CHANCE: usize = 3;

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
    /// What each of its threads stands for; a single part: all together.
    pub parts: Vec<Part>,
    /// Whether its threads take items of queues or pools, as others may: how many each takes is chance.
    pub takes_items: bool,
    /// Whether it is a thread that does what was recorded, as more was not understood.
    pub is_literal: bool,
    /// Its threads in the recording.
    pub members: Vec<u32>,
    /// Steps of its code, loops and bodies counted once.
    pub steps: usize,
}

/// Recorded threads that a thread of the program stands for.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Part {
    /// Recorded threads.
    pub threads: Vec<u32>,
    /// Recorded work in ns.
    pub recorded_ns: f64,
    /// Expected work of the program in ns.
    pub lifted_ns: f64,
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
    /// How many jobs each thread of a crew did; empty if there is no crew.
    pub jobs: Vec<usize>,
    /// What was assumed or left out, a sentence each.
    pub notes: Vec<String>,
}

impl Report {
    /// Whether the number of threads of a group is a parameter.
    pub fn has_n(&self) -> bool {
        self.groups.iter().any(|group| group.count.contains('n'))
    }

    /// Recorded threads that take items or jobs.
    pub fn takers(&self) -> impl Iterator<Item = u32> + '_ {
        let groups = self.groups.iter().filter(|group| group.takes_items);
        groups.flat_map(|group| group.members.iter().copied())
    }

    /// Whether others hand out what is taken, and not only the takers.
    pub fn is_fed(&self) -> bool {
        self.count("queue") > 0
    }

    /// Whether something is taken from one object only.
    pub fn has_one_source(&self) -> bool {
        self.count("queue") + self.count("pool") == 1
    }

    /// How many objects are of that kind.
    fn count(&self, kind: &str) -> usize {
        self.objects.iter().filter(|object| object.kind == kind).count()
    }

    /// Whether several threads take items or jobs, and nothing says that each has its own.
    pub fn hands_out(&self) -> bool {
        let most = self.jobs.iter().max().copied().unwrap_or(0);
        let is_even = most > JOBS_BY_CHANCE && self.jobs.iter().all(|jobs| *jobs == most);
        let has_own = !self.jobs.is_empty() && !self.is_fed() && is_even;
        self.takers().count() > 1 && !has_own
    }

    /// Error of the total work, as a share.
    pub fn work_error(&self) -> f64 {
        if self.recorded_ns > 0.0 { self.lifted_ns / self.recorded_ns - 1.0 } else { 0.0 }
    }
}
