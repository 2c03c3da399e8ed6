//! What a trace cannot know.

use super::event::Story;
use super::track::Track;
use crate::Thread;
use crate::model::PRIO_FAIR;

/// What kinds of events a trace has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Switches.
    pub switches: u64,
    /// Wake-ups.
    pub wakings: u64,
    /// Creations of threads.
    pub creations: u64,
    /// Calls of futexes.
    pub futexes: u64,
    /// Timers that go off, or calls whose time is over.
    pub timers: u64,
    /// Wake-ups of which the form does not tell whether an interrupt did them.
    pub unclear_wakings: u64,
    /// Events that were lost.
    pub lost: u64,
}

/// What a trace cannot know because of the events that it has and lacks.
pub fn missing(seen: &Seen, misfits: u64, story: &Story, speeds: &[u64]) -> Vec<String> {
    let mut found = Vec::new();
    let mut say = |is: bool, text: String| {
        if is {
            found.push(text);
        }
    };
    say(
        true,
        "locks, conditions and barriers that did not block a thread, and their order".to_owned(),
    );
    say(seen.wakings == 0, "who woke whom: wake-ups (sched_waking) were not recorded".to_owned());
    say(
        seen.unclear_wakings > 0,
        format!(
            "whether an interrupt did it, of {} wake-ups beside a running thread",
            seen.unclear_wakings
        ),
    );
    say(
        seen.creations == 0,
        "who created which thread: creations (sched_process_fork) were not recorded".to_owned(),
    );
    say(
        seen.futexes == 0,
        "at which futex threads were blocked: futex calls were not recorded".to_owned(),
    );
    say(
        seen.timers == 0,
        "which blocks a timer has ended: timers were not recorded, such blocks count as ended from outside".to_owned(),
    );
    say(
        speeds.is_empty(),
        "speeds of the cores: work is CPU time, as if all were equally fast".to_owned(),
    );
    say(
        misfits > 0,
        format!("{misfits} times where a thread was: events did not fit those before them"),
    );
    say(story.unreadable > 0, format!("{} records that could not be read", story.unreadable));
    found
}

/// What is lost of the threads' priorities.
pub fn prios<'a>(tracks: impl Iterator<Item = &'a Track>, threads: &[Thread]) -> Vec<String> {
    let (mut changed, mut real_time) = (0, 0);
    for (track, thread) in tracks.zip(threads) {
        let (prio, has_others) = track.main_prio();
        changed += u32::from(has_others);
        let is_real_time = prio.is_some_and(|prio| prio < PRIO_FAIR);
        real_time += u32::from(is_real_time && thread.asks.policy.is_none());
    }
    let mut found = Vec::new();
    if changed > 0 {
        found.push(format!(
            "{changed} threads had several priorities: each has that of most of its CPU time"
        ));
    }
    if real_time > 0 {
        found.push(format!(
            "whether {real_time} real-time threads take turns (SCHED_RR): they count as SCHED_FIFO"
        ));
    }
    found
}
