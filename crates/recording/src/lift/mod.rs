//! Makes a program of a recording: what its threads did, with the number of threads and the size of the input as
//! parameters.
//!
//! 1. `visits`, `acts`: what each event means by itself; visits of mutexes.
//! 2. `monitors`, `queues`, `pools`, `causes`: what mutexes and conditions are used for; what is not recognised becomes
//!    a semaphore for each pair of threads that waits and wakes.
//!    `crews`, `jobs`, `shares`: threads that share work take jobs, if most of the rest would be such semaphores.
//! 3. `items`: a thread as steps with work between them; `groups`: threads that do the same.
//! 4. `fold`: loops; `emit`, `amounts`: the text.

mod acts;
mod amounts;
mod barriers;
mod bodies;
mod causes;
mod children;
mod crews;
mod emit;
mod expected;
mod fold;
mod groups;
mod items;
mod jobs;
mod latches;
mod minor;
mod monitors;
mod mutexes;
mod node;
mod objects;
mod phases;
mod pools;
mod queues;
mod report;
mod rounds;
mod scale;
mod segment;
mod shares;
mod visits;
mod work;

#[cfg(test)]
mod tests;

use crate::Recording;

pub use report::{Group, ObjectRow, Report};

/// How work is divided if the number of threads is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// Threads that each do a share: the whole stays, the shares change.
    FixedTotal,
    /// Each thread does as much as in the recording.
    PerThread,
}

/// How much is recognised: what is less recognises less, and is surer to come to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Everything.
    Full,
    /// Threads that share work take jobs; how these are handed out is not recognised.
    Jobs,
    /// No queues, pools and gates: waits become semaphores.
    Literal,
    /// Only threads and their work.
    Work,
}

impl Level {
    /// All levels, from the one that recognises most.
    pub const ALL: [Level; 4] = [Level::Full, Level::Jobs, Level::Literal, Level::Work];

    /// The word for messages.
    pub fn word(self) -> &'static str {
        match self {
            Level::Full => "full",
            Level::Jobs => "jobs",
            Level::Literal => "literal",
            Level::Work => "work",
        }
    }
}

/// What may be chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The program's name; empty: that of the recording.
    pub name: String,
    /// The profile that its code is like.
    pub like: String,
    /// (Speed on the fastest core) / (speed on the slowest), if known.
    pub speedup: Option<f64>,
    /// How work is divided.
    pub scaling: Scaling,
    /// The level to begin with.
    pub level: Level,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: String::new(),
            like: crate::TYPICAL_PROFILE.to_owned(),
            speedup: None,
            scaling: Scaling::FixedTotal,
            level: Level::Full,
        }
    }
}

/// A program made of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Lifted {
    /// Its text in the workload language.
    pub toml: String,
    /// What was recognised, and how well.
    pub report: Report,
}

/// A program with a greater share of literal work is made of jobs if it can be.
const LITERAL_SHARE_MAX: f64 = 0.25;

/// Makes a program of a recording. The text can always be parsed: if it could not at one level, it is made at the next.
pub fn lift(recording: &Recording, options: &Options) -> Lifted {
    let levels = Level::ALL.into_iter().filter(|level| *level >= options.level);
    let mut lifted = None;
    let mut failures = Vec::new();
    for level in levels {
        let Some(mut found) = at_level(recording, options, level) else { continue };
        found.report.notes.extend(failures.iter().cloned());
        match check(&mut found, &options.like) {
            Ok(()) if level == Level::Full => {
                return of_jobs(recording, options, &found).unwrap_or(found);
            }
            Ok(()) => return found,
            Err(failure) => failures.push(format!("Level {}: {failure}.", level.word())),
        }
        lifted = Some(found);
    }
    lifted.expect("there is a last level")
}

/// The program made of jobs, if it says more than this one.
fn of_jobs(recording: &Recording, options: &Options, full: &Lifted) -> Option<Lifted> {
    let share = full.report.literal_share;
    if share <= LITERAL_SHARE_MAX && full.report.has_n() {
        return None;
    }
    let mut found = at_level(recording, options, Level::Jobs)?;
    check(&mut found, &options.like).ok()?;
    let is_better = found.report.literal_share < share || !full.report.has_n();
    is_better.then_some(found).filter(|found| found.report.has_n())
}

/// Reads the text again and notes what it is expected to do.
///
/// # Errors
/// It is of no use, and why.
fn check(lifted: &mut Lifted, like: &str) -> Result<(), String> {
    if lifted.toml.len() > ampsched_model::limits::DESCRIPTION_BYTES_MAX {
        return Err(format!("the program would have {} bytes", lifted.toml.len()));
    }
    let works = expected::works(&lifted.toml, like).map_err(|error| error.to_string())?;
    for group in &mut lifted.report.groups {
        group.lifted_ns = works.get(&group.name).copied().unwrap_or(0.0);
    }
    lifted.report.lifted_ns = works.values().sum();
    Ok(())
}

/// The program at that level; none if there are no jobs.
fn at_level(recording: &Recording, options: &Options, level: Level) -> Option<Lifted> {
    let programs = (level == Level::Jobs).then(|| children::as_threads(recording)).flatten();
    let of_programs = programs.and_then(|threads| made(&threads, options, level));
    of_programs.or_else(|| made(recording, options, level))
}

fn made(recording: &Recording, options: &Options, level: Level) -> Option<Lifted> {
    let mut objects = objects::Objects::default();
    let mut acts = acts::Acts::new(recording, &mut objects, level);
    if level < Level::Work {
        let visits = visits::Visits::new(recording, &acts);
        monitors::recognise(recording, &visits, &mut acts, &mut objects, level);
        causes::tie(recording, &mut acts, &mut objects, level);
        if level == Level::Jobs && !shares::recognise(recording, &mut acts, &mut objects) {
            return None;
        }
        pools::recognise(recording, &visits, &mut acts, &mut objects, level);
        minor::drop_if_it_unites(recording, &mut acts, &mut objects);
    }
    let threads = items::build(recording, &acts, &mut objects);
    let groups = groups::build(recording, threads);
    Some(emit::emit(recording, &acts, groups, objects, options, level))
}
