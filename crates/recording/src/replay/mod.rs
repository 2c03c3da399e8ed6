//! Replay: a recording as a program, with its amounts of work and its dependences, but none of its times.
//!
//! Every wait is *tied* to what ended it: the signal, the last arrival at a barrier, the end of a thread, the item
//! that a queue's consumer took. A tie is a semaphore of two threads, so it holds whatever the machine and the policy.
//! Mutexes stay mutexes, and threads compete for them anew. Only where a thread waits for others while it holds one
//! (or where threads take several in different orders) is the recorded order of its acquisitions kept. All ties point
//! from what was earlier to what was later, so the recorded order is one in which everything can go on, and no replay
//! deadlocks.

mod build;
mod conditions;
mod locks;
mod made;
mod scan;
mod ties;

use ampsched_model::{Profile, Program};

use crate::Recording;

pub use made::{Replayed, TYPICAL_PROFILE};

/// How a recording is replayed.
#[derive(Clone, Debug)]
pub struct Options {
    /// How its code behaves: what makes a slow core slower.
    pub profile: Profile,
    /// Speed of the machine's fastest core by that of the recording computer's fastest, above 0.
    pub speed: f64,
    /// Whether threads take work up to a barrier, and in parallel regions, piece by piece from all of it, as a task
    /// runtime or a dynamic loop would have them do; else each does what it did.
    pub is_balanced: bool,
}

impl Default for Options {
    /// Code of which nothing is known, on a machine that is as fast.
    fn default() -> Self {
        Self { profile: Profile::default(), speed: 1.0, is_balanced: false }
    }
}

/// A recording as a program.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The program: one thread for each that was recorded.
    pub program: Program,
    /// What it honours differently, a sentence each.
    pub notes: Vec<String>,
    /// Work that could be balanced, in ns of the machine's fastest core: what several threads do up to a barrier or in
    /// a parallel region.
    pub shared_ns: f64,
}

/// Makes a program of a recording.
pub fn replay(recording: &Recording, options: &Options) -> Replay {
    let mut notes = Vec::new();
    if recording.is_cut_off {
        notes.push("the recording was cut off: the program ends where it ends".to_owned());
    }
    if recording.info.lost_events > 0 {
        let lost = recording.info.lost_events;
        notes.push(format!("the recorder lost {lost} events: some waits are not there"));
    }
    let scan = scan::scan(recording, &mut notes);
    let mut plan = build::Plan::default();
    ties::tie_all(recording, &scan, &mut plan);
    conditions::tie_conditions(&scan, &mut plan, &mut notes);
    build::assemble(recording, options, plan, notes)
}

/// A place in the recording: an event of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place {
    thread: u32,
    event: u32,
}

/// A place and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Mark {
    at_ns: u64,
    place: Place,
}
