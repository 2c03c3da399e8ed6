//! A workload: applications that run together.

use std::sync::Arc;

use crate::{Ns, Program};

/// One application of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct App {
    /// Name, unique in the workload.
    pub name: String,
    /// What it runs.
    pub program: Arc<Program>,
    /// Delay of its start.
    pub start_ns: Ns,
    /// Added to the nice value of each of its threads.
    pub nice: i8,
}

/// Applications that run together.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Name.
    pub name: String,
    /// One line for listings.
    pub description: String,
    /// The applications.
    pub apps: Vec<App>,
}

impl Workload {
    /// Threads that start with the applications.
    pub fn initial_threads(&self) -> u32 {
        self.apps.iter().map(|app| app.program.initial_threads()).sum()
    }

    /// The workload that consists of one of the applications alone, started at once.
    pub fn alone(&self, index: usize) -> Workload {
        let app = App { start_ns: 0, ..self.apps[index].clone() };
        Workload { name: app.name.clone(), description: app.program.description.clone(), apps: vec![app] }
    }
}
