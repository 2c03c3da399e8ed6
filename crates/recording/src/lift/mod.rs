//! Makes a program of a recording: what its threads did, with the number of threads and the size of the input as
//! parameters.
//!
//! 1. `visits`, `acts`: what each event means by itself; visits of mutexes.
//! 2. `monitors`, `queues`, `pools`, `causes`: what mutexes and conditions are used for; what is not recognised becomes
//!    a semaphore for each pair of threads that waits and wakes.
//!    `crews`, `stages`, `jobs`, `owners`, `shares`: threads that share work take jobs, if most of the rest would be
//!    such semaphores.
//! 3. `items`: a thread as steps with work between them; `groups`, `teams`: threads that do the same, and how many of
//!    them are there at a time.
//! 4. `fold`: loops; `emit`, `text`, `amounts`: the text.
//! 5. `expected`, `fidelity`: whether each thread does what was recorded; what does not is made again, literally.

mod acts;
mod amounts;
mod barriers;
mod bodies;
mod causes;
mod children;
mod crews;
mod emit;
mod expected;
mod fidelity;
mod fold;
mod groups;
mod items;
mod jobs;
mod joins;
mod latches;
mod minor;
mod monitors;
mod mutexes;
mod node;
mod objects;
mod own;
mod owners;
mod phases;
mod pools;
mod queues;
mod report;
mod rounds;
mod scale;
mod segment;
mod shares;
mod stages;
mod teams;
mod text;
mod visits;
mod work;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::replay::{Woken, with_plain_watchdogs};
use crate::{Kind, Recording, Thread};
use node::Sym;
use shares::Shares;

pub use fidelity::{SMALL_NS, WORK_ERROR_MAX};
pub use report::{Group, ObjectRow, Part, Report};

use fidelity::Kept;

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
    /// Whether the number of threads stays what it was.
    pub is_fixed: bool,
    /// Recorded threads that stay as they were.
    pub literal: Vec<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: String::new(),
            like: crate::TYPICAL_PROFILE.to_owned(),
            speedup: None,
            scaling: Scaling::FixedTotal,
            level: Level::Full,
            is_fixed: false,
            literal: Vec::new(),
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

/// Threads that sleep for a greater share of their time take no jobs when these are shared.
const SLEEP_SHARE_MAX: f64 = 0.01;

/// Most times that a program is made at one level, with more that stays literal each time.
const PASSES_MAX: usize = 16;

/// Makes a program of a recording. The text can always be parsed, and each thread does what was recorded: if it could
/// not, or did not, at one level, it is made at the next.
pub fn lift(recording: &Recording, options: &Options) -> Lifted {
    match with_plain_watchdogs(recording, Woken::Waits) {
        Some((plain, watching)) => lift_plain(&Source { recording: &plain, watching }, options),
        None => lift_plain(&Source { recording, watching: BTreeSet::new() }, options),
    }
}

/// The program in which who is free takes the jobs that the threads of a pool share; none if there is no pool, or if
/// more of the rest is literal than may be. It always comes to its end: who takes jobs waits for nothing but a job, and
/// all others wait for what came earlier in the recording.
pub fn lift_shared(recording: &Recording, options: &Options) -> Option<Lifted> {
    let mut threads: BTreeMap<u32, usize> = BTreeMap::new();
    for thread in &recording.threads {
        *threads.entry(thread.process).or_default() += 1;
    }
    // Who hands out, and two who take.
    let has_threads = threads.values().any(|threads| *threads > 2);
    if !has_threads && !crews::are_of_processes(recording) {
        return None;
    }
    let plain = with_plain_watchdogs(recording, Woken::GoesOn);
    let source = match &plain {
        Some((plain, watching)) => Source { recording: plain, watching: watching.clone() },
        None => Source { recording, watching: BTreeSet::new() },
    };
    let (found, failure) = faithful(&source, options, Level::Jobs)?;
    let report = &found.report;
    // Of what a crew does only its work is kept.
    let sleeps = report.takers().any(|taker| sleeps(recording.threads.get(taker as usize)));
    let is_understood = failure.is_none() && report.literal_share <= LITERAL_SHARE_MAX;
    if !is_understood || !report.has_one_source() || !report.hands_out() || sleeps {
        return None;
    }
    // Threads that nobody feeds may be a pool, or each has its own work and they only exclude each other. Who yields
    // in between looks for work.
    let thread = |taker| source.recording.threads.get(taker as usize);
    let look_for_work = report.takers().filter_map(thread).all(crews::looks_for_work);
    let is_explained = !report.is_fed() && !look_for_work && {
        let (full, failure) = faithful(&source, options, Level::Full)?;
        failure.is_none() && full.report.literal_share <= LITERAL_SHARE_MAX && full.report.has_n()
    };
    (!is_explained).then_some(found)
}

/// Whether a thread sleeps for more than a little of its time.
fn sleeps(thread: Option<&Thread>) -> bool {
    let Some(thread) = thread else { return false };
    let slept = thread.events.iter().filter(|event| event.kind == Kind::Sleep);
    let slept_ns: u64 = slept.map(|event| event.wait_ns).sum();
    let end_ns = thread.events.last().map_or(0, |last| last.at_ns);
    slept_ns as f64 > SLEEP_SHARE_MAX * end_ns.saturating_sub(thread.begin_ns()) as f64
}

/// What a program is made of.
struct Source<'a> {
    recording: &'a Recording,
    /// Threads that become daemon threads.
    watching: BTreeSet<u32>,
}

fn lift_plain(source: &Source<'_>, options: &Options) -> Lifted {
    let levels = Level::ALL.into_iter().filter(|level| *level >= options.level);
    let mut lifted = None;
    let mut failures = Vec::new();
    for level in levels {
        let Some((mut found, failure)) = at_level(source, options, level) else { continue };
        match failure {
            None if level == Level::Full => {
                return of_jobs(source, options, &found).unwrap_or(found);
            }
            None => {
                found.report.notes.append(&mut failures);
                return found;
            }
            Some(failure) => failures.push(format!("Level {}: {failure}.", level.word())),
        }
        lifted = Some(found);
    }
    let mut found = lifted.expect("there is a last level");
    found.report.notes.append(&mut failures);
    found
}

/// The program made of jobs, if it says more than this one.
fn of_jobs(source: &Source<'_>, options: &Options, full: &Lifted) -> Option<Lifted> {
    let share = full.report.literal_share;
    if share <= LITERAL_SHARE_MAX && full.report.has_n() {
        return None;
    }
    let (found, failure) = at_level(source, options, Level::Jobs)?;
    let is_better = found.report.literal_share < share || !full.report.has_n();
    (is_better && failure.is_none() && found.report.has_n()).then_some(found)
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
        let threads = works.get(&group.name).map_or(&[][..], Vec::as_slice);
        group.lifted_ns = threads.iter().sum();
        let count = group.parts.len();
        for (at, part) in group.parts.iter_mut().enumerate() {
            let own = threads.get(at).filter(|_| threads.len() == count).copied();
            part.lifted_ns = own.unwrap_or(group.lifted_ns / count as f64);
        }
    }
    lifted.report.lifted_ns = works.values().flatten().sum();
    Ok(())
}

/// The program at that level, and what is wrong with it; none if there are no jobs.
fn at_level(
    source: &Source<'_>,
    options: &Options,
    level: Level,
) -> Option<(Lifted, Option<String>)> {
    let programs = (level == Level::Jobs).then(|| children::as_threads(source.recording)).flatten();
    let of_programs = programs.and_then(|threads| {
        faithful(&Source { recording: &threads, watching: BTreeSet::new() }, options, level)
    });
    of_programs.or_else(|| faithful(source, options, level))
}

/// The program of which each part that does not do what was recorded stays literal.
fn faithful(
    source: &Source<'_>,
    options: &Options,
    level: Level,
) -> Option<(Lifted, Option<String>)> {
    let literal = options.literal.iter().copied().collect();
    let mut kept = Kept { literal, ..Kept::default() };
    let mut notes = Vec::new();
    let mut passes = 0;
    loop {
        let mut found = made(source, options, level, &kept)?;
        let wrong =
            check(&mut found, &options.like).and_then(|()| kept.add(&found.report, &mut notes));
        passes += 1;
        let failure = match wrong {
            Ok(true) if passes < PASSES_MAX => continue,
            Ok(true) => notes.pop(),
            Ok(false) => None,
            Err(failure) => Some(failure),
        };
        found.report.notes.append(&mut notes);
        return Some((found, failure));
    }
}

fn made(source: &Source<'_>, options: &Options, level: Level, kept: &Kept) -> Option<Lifted> {
    let recording = source.recording;
    let mut objects = objects::Objects::default();
    let mut acts = acts::Acts::new(recording, &mut objects, level);
    if level < Level::Work {
        let visits = visits::Visits::new(recording, &acts);
        monitors::recognise(recording, &visits, &mut acts, &mut objects, level);
        causes::tie(recording, &mut acts, &mut objects, level);
        if level == Level::Jobs {
            match shares::recognise(recording, &mut acts, &mut objects) {
                Shares::Made => {}
                Shares::None => return None,
                Shares::In(divided) => {
                    let source = Source { recording: &divided, watching: source.watching.clone() };
                    return made(&source, options, level, kept);
                }
            }
        }
        pools::recognise(recording, &visits, &mut acts, &mut objects, level);
        minor::drop_if_it_unites(recording, &mut acts, &mut objects);
    }
    let threads = items::build(recording, &acts, &mut objects, &kept.literal);
    let mut groups = groups::build(recording, threads, kept);
    if options.is_fixed {
        groups.fix();
    }
    for group in &mut groups.list {
        let watches = |thread: &u32| source.watching.contains(thread);
        group.is_daemon = group.members.iter().all(watches) && node::any(&group.nodes, Sym::Sleep);
    }
    Some(emit::emit(recording, &acts, groups, objects, options, level))
}
