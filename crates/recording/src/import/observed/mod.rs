//! What a trace says of the scheduler that made it: who ran where and for how long, who waited, clocks and idle states.
//!
//! Everything follows from switches and wake-ups. A CPU is busy from the switch to a thread until the switch away from
//! it; from the begin of the trace with the thread that its first switch takes off. Time in which events do not fit
//! those before, or were lost, is *unknown*: neither busy nor idle. The times of all threads on a CPU are its busy
//! time, exactly.

mod around;
mod cpus;
mod frames;
mod layout;
mod load;
#[cfg(test)]
mod tests;
mod threads;
mod walk;
mod worst;

use std::collections::HashSet;

use ampsched_model::{Budget, Distribution, Histogram, InputError};
use serde::{Deserialize, Serialize};

pub use around::{Moment, Placed, Question, Step, around};
pub use frames::FramesSeen;
pub use layout::KnownCluster;

use super::event::{Story, What};
use super::select::is_named;
use crate::FrameCount;
use layout::Layout;
use walk::{Walk, Walked};

/// What to look at, and what is known of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Asked {
    /// Programs whose threads count, with all that they create: names of processes, threads or executed files. Without
    /// these and `pids`: all threads.
    pub commands: Vec<String>,
    /// Processes and threads that count, with all that they create.
    pub pids: Vec<u32>,
    /// Clusters of the machine; empty: not known.
    pub clusters: Vec<KnownCluster>,
}

/// Time of a CPU at one clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AtClock {
    /// The clock in kHz; none before the first event that tells it.
    pub khz: Option<u32>,
    /// How long.
    pub ns: u64,
    /// How long of it busy.
    pub busy_ns: u64,
}

/// What one CPU did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CpuSeen {
    /// Its number.
    pub cpu: u16,
    /// Its cluster, by place among those that are known.
    pub cluster: Option<usize>,
    /// Time in which it ran threads.
    pub busy_ns: u64,
    /// Time in which it ran none.
    pub idle_ns: u64,
    /// Time of which the trace does not tell.
    pub unknown_ns: u64,
    /// Time at each clock, ascending.
    pub clocks: Vec<AtClock>,
    /// Time in each idle state, ascending: the kernel's number and ns.
    pub idle_states: Vec<(u32, u64)>,
}

/// What one thread did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ThreadSeen {
    /// The kernel's number.
    pub tid: u32,
    /// Its name, the last one.
    pub name: String,
    /// Its process, if known.
    pub process: Option<u32>,
    /// CPU time on each CPU on which it ran: number and ns.
    pub cpu_ns: Vec<(u16, u64)>,
    /// Times when it got a CPU.
    pub switches: u64,
    /// Times when that was another CPU than the last one.
    pub migrations: u64,
    /// Of these, to another cluster.
    pub cluster_migrations: u64,
    /// Times when it lost its CPU though it could go on; giving it up by sched_yield counts, too.
    pub preemptions: u64,
    /// From wake-up to a CPU.
    pub latency: Distribution,
    /// Time in run queues, also after losing a CPU.
    pub wait_ns: u64,
    /// The longest time in a run queue at a stretch.
    pub longest_wait_ns: u64,
    /// Part of `wait_ns` in which another thread had the CPU and a third CPU was idle.
    pub beside_idle_ns: u64,
    /// The same for an idle CPU of a greater cluster.
    pub beside_greater_ns: u64,
    /// CPU time on a cluster that is too small for its load.
    pub too_small_ns: u64,
    /// CPU time on a cluster though its load fits a smaller one.
    pub too_big_ns: u64,
    /// Frames that it ends.
    pub frames: FramesSeen,
    /// When something was worst, in ns since the first event: `latency`, `wait`, `beside_idle`, `beside_greater`,
    /// `migration`, `cluster_migration`, `preemption`, `too_small`, `too_big`, those that happened.
    pub worst_at_ns: Vec<(&'static str, u64)>,
    /// When it began to run on each CPU for the last time.
    pub ran_at_ns: Vec<(u16, u64)>,
}

/// What a trace says of its scheduler.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Observed {
    /// From the first event to the last one.
    pub duration_ns: u64,
    /// The CPUs that were seen.
    pub cpus: Vec<CpuSeen>,
    /// The threads that count, those with most CPU time first.
    pub threads: Vec<ThreadSeen>,
    /// From wake-up to a CPU, of all these.
    pub latency: Distribution,
    /// Frames, if there are any: those that advice finds.
    pub frames: Option<FrameCount>,
    /// Runnable threads of the whole system, on average: those that run and those that wait for a CPU.
    pub runnable_mean: f64,
    /// The most at a time.
    pub runnable_max: u64,
    /// Wake-ups that were told.
    pub wakeups: u64,
    /// Changes of clocks that were told.
    pub clock_events: u64,
    /// Events that were lost.
    pub lost_events: u64,
    /// What these numbers cannot know, a sentence each.
    pub unknown: Vec<String>,
}

/// Looks at a trace, whose events are in the order of time.
///
/// # Errors
/// It has no switch, CPUs that the machine lacks, none of the wanted threads, or more CPUs and threads than a file of
/// so many bytes may have.
pub fn of_story(
    file: &str,
    bytes: usize,
    story: Story,
    asked: &Asked,
) -> Result<Observed, InputError> {
    let lost = story.lost_events;
    let layout = Layout::of(file, &story.events, &asked.clusters)?;
    Budget::of(bytes).take::<[u64; 4]>(file, tids(&story).saturating_mul(layout.cpus()))?;
    let walked = Walk::new(layout, &story.names).through(&story.events);
    if walked.switches == 0 {
        let message = "has no event of a core that goes to another thread";
        let hint = "record sched_switch, and sched_waking for latencies";
        return Err(InputError::new(file, "", message).with_hint(hint));
    }
    let chosen = chosen(&walked, &story, asked);
    let mut latency = Histogram::default();
    let mut threads = Vec::new();
    for (thread, _) in walked.threads.iter().zip(&chosen).filter(|(_, is_chosen)| **is_chosen) {
        latency += &thread.latency;
        threads.push(thread.seen(&story, &walked.layout));
    }
    if threads.is_empty() {
        return Err(nothing(file, &walked, &story, asked));
    }
    threads.sort_by_key(|thread: &ThreadSeen| {
        (std::cmp::Reverse(thread.cpu_ns.iter().map(|(_, ns)| ns).sum::<u64>()), thread.tid)
    });
    let mut unknown = unknown(&walked, &story, asked);
    let frames = frames::find(file, story, asked, &mut threads).unwrap_or_else(|why| {
        unknown.push(format!("frames: it {why}"));
        None
    });
    Ok(Observed {
        duration_ns: walked.duration_ns(),
        threads,
        latency: percentiles(&latency),
        frames,
        runnable_mean: walked.crowd.mean(walked.duration_ns()),
        runnable_max: walked.crowd.max,
        wakeups: walked.wakeups,
        clock_events: walked.clock_events,
        lost_events: walked.lost.saturating_add(lost),
        unknown,
        cpus: walked.cpus,
    })
}

/// How many threads have part in switches and wake-ups.
fn tids(story: &Story) -> usize {
    let tids = story.events.iter().flat_map(|raw| match raw.what {
        What::Switch { from, to, .. } => [from, to],
        What::Waking { woken, .. } => [woken; 2],
        What::New { child, .. } => [child; 2],
        _ => [0; 2],
    });
    tids.collect::<HashSet<u32>>().len()
}

/// Percentiles alone.
fn percentiles(times: &Histogram) -> Distribution {
    let mut found = Distribution::from(times);
    found.drop_histogram();
    found
}

/// Which threads count: those that are named, and what they create.
fn chosen(walked: &Walked, story: &Story, asked: &Asked) -> Vec<bool> {
    let is_all = asked.commands.is_empty() && asked.pids.is_empty();
    let mut found: Vec<bool> = Vec::with_capacity(walked.threads.len());
    for thread in &walked.threads {
        let names: Vec<&str> = thread.names(story).collect();
        let process = thread.process(story).unwrap_or(thread.tid);
        let of_parent =
            thread.parent.is_some_and(|parent| found.get(parent as usize) == Some(&true));
        let is_wanted = asked.pids.contains(&thread.tid)
            || asked.pids.contains(&process)
            || asked.commands.iter().any(|wanted| is_named(&names, wanted));
        found.push(is_all || of_parent || is_wanted);
    }
    let processes: HashSet<u32> = (walked.threads.iter().zip(&found))
        .filter(|(_, is_chosen)| **is_chosen)
        .filter_map(|(thread, _)| thread.process(story))
        .collect();
    for (thread, is_chosen) in walked.threads.iter().zip(&mut found) {
        *is_chosen |= thread.process(story).is_some_and(|process| processes.contains(&process));
        *is_chosen &= thread.did_something();
    }
    found
}

/// The error about threads that are not there.
fn nothing(file: &str, walked: &Walked, story: &Story, asked: &Asked) -> InputError {
    let pids = asked.pids.iter().map(u32::to_string);
    let wanted: Vec<String> = asked.commands.iter().cloned().chain(pids).collect();
    let mut names: Vec<&str> =
        walked.threads.iter().filter_map(|thread| thread.names(story).last()).collect();
    names.sort_unstable();
    names.dedup();
    let hint = ampsched_model::suggest(wanted.first().map_or("", String::as_str), names);
    InputError::new(file, "", format!("has no thread of {}", wanted.join(", "))).with_hint(hint)
}

fn unknown(walked: &Walked, story: &Story, asked: &Asked) -> Vec<String> {
    let mut found = story.unknown.clone();
    let mut say = |is: bool, text: String| {
        if is {
            found.push(text);
        }
    };
    say(walked.wakeups == 0, "latencies: wake-ups (sched_waking) were not recorded".to_owned());
    say(
        walked.clock_events == 0,
        match asked.clusters.is_empty() {
            true => "clocks: cpu_frequency was not recorded".to_owned(),
            false => {
                "clocks: cpu_frequency was not recorded; loads are as if at the highest".to_owned()
            }
        },
    );
    say(
        true,
        "affinities: a thread that waits beside an idle CPU may not be allowed there".to_owned(),
    );
    say(
        walked.misfits > 0,
        format!(
            "{} times where a thread was: events did not fit those before them",
            walked.misfits
        ),
    );
    say(
        walked.untold > 0,
        format!(
            "{} times when a thread began to run: taken to be when it was woken",
            walked.untold
        ),
    );
    say(story.unreadable > 0, format!("{} records that could not be read", story.unreadable));
    found
}
