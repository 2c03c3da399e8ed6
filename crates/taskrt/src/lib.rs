//! A task runtime for unequal cores: parallel loops, and tasks with dependences, on pinned threads.
//!
//! A parallel region that gives every core the same waits for the slowest one. Here faster cores get more: a loop's
//! iterations are shared out by measured speed and taken over by whoever has finished ([`Runtime::for_each`]); tasks go
//! to workers as a task policy of the simulator decides ([`Runtime::scope`], [`Runtime::graph`],
//! [`Runtime::run_graph`]).
//!
//! ```
//! use ampsched_taskrt::{Config, Cores, Datum, Runtime};
//!
//! let runtime = Runtime::new(&Config::new(Cores::detect()?))?;
//!
//! let mut squares = vec![0; 1000];
//! runtime.for_each_mut(&mut squares, |first, part| {
//!     for (offset, square) in part.iter_mut().enumerate() {
//!         *square = (first + offset).pow(2);
//!     }
//! });
//! assert_eq!(squares[999], 998_001);
//!
//! let (a, b) = (Datum::new(1), Datum::new(0));
//! runtime.scope(|scope| {
//!     scope.task("add").writes(&a).run(|| *a.write() += 1);
//!     scope.task("double").reads(&a).writes(&b).run(|| *b.write() = 2 * *a.read());
//! })?;
//! assert_eq!(b.into_inner(), 4);
//! # Ok::<(), ampsched_taskrt::Error>(())
//! ```
//!
//! Architecture invariant: policies are those of `ampsched-task`; this crate has none of its own but the sharing-out of
//! loops.

/// The how-to page, whose programs are tested.
#[cfg(doctest)]
#[allow(rustdoc::invalid_codeblock_attributes)] // Blocks of other languages have titles.
#[doc = include_str!("../../../docs/howto/use-the-runtime.md")]
mod how_to {}

pub mod c_api;
mod cores;
mod datum;
mod dispatcher;
mod erase;
mod error;
mod graph_job;
mod loop_job;
mod parker;
mod path_publisher;
mod policy_text;
mod quota;
mod ranges;
mod rates;
mod recording;
mod runtime;
mod scope;
mod shared;
mod speed;
mod sync;

pub use ampsched_task::{Recording, TaskId, WorkerId};
pub use cores::{CoreClass, Cores};
pub use datum::Datum;
pub use error::Error;
pub use quota::Quotas;
pub use runtime::{Config, Runtime};
pub use scope::{Scope, TaskBuilder};
