//! The Python module `ampsched._core`: thin, no logic.
//!
//! Architecture invariant: everything that can be decided elsewhere is decided elsewhere. This crate
//! converts values and errors, releases the interpreter lock while simulations run, and lets a policy
//! be written in Python.

mod catalog;
mod computer;
mod counters;
mod error;
mod imports;
mod interrupt;
mod kernels;
mod lift;
mod limit;
mod models;
mod noise;
mod policy;
mod preload;
mod recording;
mod registry;
mod rules;
mod run;
mod tasks;
mod trace;
mod view;
mod words;
mod workload;

use pyo3::prelude::*;

/// The compiled part of ampsched.
#[pymodule]
mod _core {
    /// How this package was built: commit if known, profile, target.
    #[pymodule_export]
    const BUILD: &str = ampsched_version::BUILD;
    /// Most bytes of a file that people write.
    #[pymodule_export]
    const DESCRIPTION_BYTES_MAX: usize = ampsched_model::limits::DESCRIPTION_BYTES_MAX;
    /// Most bytes of a file that programs write.
    #[pymodule_export]
    const DATA_BYTES_MAX: usize = ampsched_model::limits::DATA_BYTES_MAX;
    /// Most bytes of any file, and of memory that reading it may take.
    #[pymodule_export]
    const MEMORY_BYTES_MAX: usize = ampsched_model::limits::MEMORY_BYTES_MAX;

    /// Kinds of objects at which threads may spin before they block.
    #[pymodule_export]
    const SPINNABLE: [&str; 6] = ampsched_model::SPINNABLE;

    /// The profile that recorded programs are taken for.
    #[pymodule_export]
    const TYPICAL_PROFILE: &str = ampsched_recording::TYPICAL_PROFILE;
    /// Greatest error of the work of a lifted thread, as a share.
    #[pymodule_export]
    const LIFT_WORK_ERROR_MAX: f64 = ampsched_recording::lift::WORK_ERROR_MAX;

    /// SHA-256 of the sources that determine results.
    #[pymodule_export]
    const CODE_DIGEST: &str = env!("AMPSCHED_CODE");

    /// Most features of a model that predicts speed-ups.
    #[pymodule_export]
    const FEATURES_MAX: usize = ampsched_model::limits::FEATURES_MAX;

    #[pymodule_export]
    use super::catalog::{Catalog, Machine};
    #[pymodule_export]
    use super::computer::{CoreKind, core_domains, core_kinds, format_cpus, parse_cpus, wakeup_ns};
    #[pymodule_export]
    use super::counters::{counters, read_counters, simulated_counter_names, simulated_counters};
    #[pymodule_export]
    use super::error::{InputError, check_memory};
    #[pymodule_export]
    use super::imports::{
        import_pages, import_trace, observe_trace, trace_around, trace_forms, wake_ups, work_ns,
    };
    #[pymodule_export]
    use super::kernels::{Kernel, kernels};
    #[pymodule_export]
    use super::lift::lift;
    #[pymodule_export]
    use super::limit::{limit, optimum};
    #[pymodule_export]
    use super::models::{Models, counter_cv};
    #[pymodule_export]
    use super::noise::NoiseSources;
    #[pymodule_export]
    use super::policy::simulate_python;
    #[pymodule_export]
    use super::preload::{preload_library, recording_from_raw};
    #[pymodule_export]
    use super::recording::Recording;
    #[pymodule_export]
    use super::registry::{
        check_governor, check_policy, governors, named_value, policies, suggest,
    };
    #[pymodule_export]
    use super::run::{
        AloneFacts, Compared, FactorSource, Job, Question, Summed, Turns, run_batch, simulate,
    };
    #[pymodule_export]
    use super::tasks::{
        TaskGraph, TaskSchedule, TaskWorkers, run_task_graph, task_policies, task_programs,
    };
    #[pymodule_export]
    use super::trace::TraceWriter;
    #[pymodule_export]
    use super::view::{Event, Pick, Plan, ThreadStats, Topology, View};
    #[pymodule_export]
    use super::words::{rule_keys, words};
    #[pymodule_export]
    use super::workload::Workload;
}
