//! Task graphs and parallel loops, and the policies that schedule them on unequal workers.
//!
//! A [`Graph`] says what is to be done, [`Workers`] who does it, a [`Problem`] how long each task takes
//! where. A [`TaskPolicy`] feeds workers while they run, in the simulator and in a task runtime alike; an
//! off-line scheduler computes a whole [`Schedule`] beforehand. Both kinds stand in one [`REGISTRY`].
//!
//! Architecture invariant: nothing here reads a clock, the operating system, a file or a random source.

mod bounds;
mod draft;
mod formats;
mod gantt;
mod graph;
mod levels;
mod placement;
mod policies;
mod problem;
mod programs;
mod ranks;
mod recording;
mod registry;
mod schedule;
mod timeline;
mod traits;
mod workers;

pub use bounds::Bounds;
pub use draft::{AMOUNT_MAX, Draft};
pub use formats::{Format, ReadOptions, read, write};
pub use gantt::gantt_svg;
pub use graph::{Graph, TaskId};
pub use levels::{BottomLevels, Weight};
pub use policies::replay::Replay;
pub use problem::Problem;
pub use programs::{PROGRAMS, TaskProgramInfo, task_program};
pub use ranks::{Waiting, upward_s};
pub use recording::Recording;
pub use registry::{
    Build, REGISTRY, Spec, TaskPolicyInfo, build_task_policy, find_task_policy, parse_spec,
};
pub use schedule::{Copies, Schedule, Slot};
pub use traits::{Pick, TaskPolicy, Tasks};
pub use workers::{WORKERS_MAX, WorkerClass, WorkerId, Workers};
