//! Replay: a recording as a program, with its amounts of work and its dependences, but none of its times.
//!
//! Every wait is *tied* to what ended it: the signal, the last arrival at a barrier, the end of a thread, the item
//! that a queue's consumer took. A tie is a semaphore of two threads, so it holds whatever the machine and the policy.
//! Mutexes stay mutexes, and threads compete for them anew. Only where a thread waits for others while it holds one
//! (or where threads take several in different orders) is the recorded order of its acquisitions kept. All ties point
//! from what was earlier to what was later, and those of one time in no circle, so the recorded order is one in which
//! everything can go on, and no replay deadlocks.

mod build;
mod clock;
mod conditions;
mod handed_out;
mod laws;
mod locks;
mod made;
mod order;
mod path;
mod scan;
mod streams;
mod ties;
mod watchdogs;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use ampsched_model::{Dist, Op, Profile, Program, Schedule};

use crate::Recording;
use crate::interactive::interactive;

pub use laws::{Bond, Cause, Laws, laws};
pub use made::{Replayed, TYPICAL_PROFILE};
pub(crate) use order::in_order;
pub use path::{Part, Path};
pub(crate) use streams::{StreamWaits, stream_waits};
pub(crate) use watchdogs::Woken;

/// The greatest [`Options::spread`]: from nothing to twice as much.
pub const SPREAD_MAX: f64 = 1.0;

/// How a recording is replayed.
#[derive(Clone, Debug)]
pub struct Options {
    /// How its code behaves: what makes a slow core slower.
    pub profile: Profile,
    /// Speed of the machine's fastest core by that of the recording computer's fastest, above 0.
    pub speed: f64,
    /// Who does what, of the work that several threads share.
    pub sharing: Sharing,
    /// By how much each piece of work may be less or more than what was recorded, as a part of it, 0 to
    /// [`SPREAD_MAX`]: evenly distributed in between. The simulation's seed says which amounts come about, whatever
    /// the policy.
    pub spread: f64,
}

/// Who does what, of the work that several threads share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Each thread does what it did.
    #[default]
    None,
    /// Who is free takes what was handed out while it was done: chunks and tasks of OpenMP, and the turns of programs
    /// of which a process runs several at a time.
    HandedOut,
    /// Work up to a barrier, and in parallel regions, is divided anew by a loop schedule, in pieces of equal length:
    /// dynamic, piece by piece, as a task runtime would have it, too; programs as before.
    Loops(Schedule),
}

impl Sharing {
    /// All of them, each at the place of its number in parameters.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::HandedOut,
        Self::Loops(Schedule::Dynamic),
        Self::Loops(Schedule::Static),
        Self::Loops(Schedule::Guided),
        Self::Loops(Schedule::AidStatic),
        Self::Loops(Schedule::AidHybrid),
    ];

    /// By which schedule shared work is taken.
    fn schedule(self) -> Schedule {
        match self {
            Self::Loops(schedule) => schedule,
            Self::None | Self::HandedOut => Schedule::Dynamic,
        }
    }
}

impl Default for Options {
    /// Code of which nothing is known, on a machine that is as fast; each thread does what it did.
    fn default() -> Self {
        Self { profile: Profile::default(), speed: 1.0, sharing: Sharing::None, spread: 0.0 }
    }
}

impl Options {
    /// Lets each piece of work vary, if that is asked for.
    fn vary(&self, code: &mut [Op]) {
        if self.spread <= 0.0 {
            return;
        }
        for op in code {
            if let Op::Run { reference_ns, .. } = op {
                let (mean, by) = (reference_ns.mean, self.spread);
                reference_ns.dist =
                    Dist::Uniform { low: mean * (1.0 - by), high: mean * (1.0 + by) };
            }
        }
    }
}

/// A recording as a program.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The program: one thread for each that was recorded.
    pub program: Program,
    /// What it honours differently, a sentence each.
    pub notes: Vec<String>,
    /// Work that threads take piece by piece, in ns of the machine's fastest core.
    pub shared_ns: f64,
    /// What the waits are that keep their length, by their place in the code.
    waits: BTreeMap<u32, Part>,
    /// The work before these events is left out: the thread spun while it waited.
    spins: HashSet<Place>,
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
    let mut plan = plan(recording, options.sharing, &mut notes);
    match interactive(recording) {
        Some(found) => clock::tie(recording, &found, &mut plan, &mut notes),
        None => watchdogs::settle(recording, &mut plan, &mut notes),
    }
    build::assemble(recording, options, plan, notes)
}

fn plan(recording: &Recording, sharing: Sharing, notes: &mut Vec<String>) -> build::Plan {
    let scan = scan::scan(recording, notes);
    let mut plan = build::Plan::default();
    let is_shared = sharing != Sharing::None;
    let starters =
        if is_shared { handed_out::starters(recording) } else { handed_out::Starters::default() };
    ties::tie_all(recording, &scan, &starters, &mut plan);
    let programs = starters.act(&mut plan);
    let loops = if is_shared { handed_out::share_chunks(recording, &mut plan) } else { 0 };
    if programs > 0 {
        notes.push(format!("of {programs} programs, the next is started when any has ended"));
    }
    if loops > 0 {
        let noun = if loops == 1 { "loop" } else { "loops" };
        notes.push(format!("chunks of {loops} OpenMP {noun} are taken by who is free"));
    }
    conditions::tie_conditions(recording, &scan, &mut plan, notes);
    plan
}

/// The recording with threads that only watch as nothing but work and sleep; and which these are. None if there are
/// none.
pub(crate) fn with_plain_watchdogs(
    recording: &Recording,
    woken: Woken,
) -> Option<(Recording, BTreeSet<u32>)> {
    watchdogs::plain(recording, &plan(recording, Sharing::None, &mut Vec::new()), woken)
}

/// A place in the recording: an event of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub thread: u32,
    pub event: u32,
}

/// A place and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Mark {
    at_ns: u64,
    place: Place,
}
