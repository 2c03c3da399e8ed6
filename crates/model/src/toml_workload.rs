//! Workload files: named mixes of programs.
use crate::{InputError, Workload};

/// A workload file.
#[derive(Clone, Debug)]
pub struct WorkloadFile {
    /// The workloads, in file order.
    pub workloads: Vec<Workload>,
}

/// Parses a workload file.
pub fn parse_workloads(file: &str, text: &str) -> Result<WorkloadFile, InputError> {
    let _ = (file, text);
    todo!()
}
