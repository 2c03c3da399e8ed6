//! What a trace tells of one thread around one moment.

use ampsched_model::{Budget, InputError, suggest};
use serde::{Deserialize, Serialize};

use super::layout::Layout;
use super::threads::{State, Thread};
use super::walk::{Walk, Walked};
use super::{Asked, tids};
use crate::import::event::{Context, Raw, Story, WHOEVER_RUNS, What};

/// What somebody wants to know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// A thread: its name or the kernel's number. Of several of that name the one with most CPU time.
    pub thread: String,
    /// The moment, in ns since the first event.
    pub at_ns: u64,
    /// What is told begins so long before the moment and ends so long after it.
    pub window_ns: u64,
}

/// One thing that happened to the thread, or instead of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Step {
    /// When, in ns since the first event.
    pub at_ns: u64,
    /// What, in a word: `woken`, `runs`, `lost` its CPU, `blocked`, `ended`, `gone` (nobody told), `instead` for
    /// another thread that runs where it was last, `clock`.
    pub what: &'static str,
    /// Where.
    pub cpu: Option<u16>,
    /// Where it was before, if elsewhere.
    pub from_cpu: Option<u16>,
    /// The other thread that has part in it: number and name; 0 for none (an idle CPU, an interrupt).
    pub other: Option<(u32, String)>,
    /// How long it has waited for the CPU.
    pub waited_ns: Option<u64>,
    /// The clock of the CPU, if told.
    pub khz: Option<u32>,
    /// Who runs on the other CPUs, where that is known: CPU, number, name; 0 for none.
    pub elsewhere: Vec<(u16, u32, String)>,
}

/// A wake-up and where it led.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Placed {
    /// When it was woken, in ns since the first event; when it got a CPU if nobody told.
    pub woken_ns: u64,
    /// When it got a CPU.
    pub runs_ns: u64,
    /// That CPU.
    pub cpu: u16,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// The kernel's number of the thread.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// When the first event was, by the trace's clock, in ns.
    pub begin_ns: u64,
    /// Numbers of the other threads of that name, if it was asked for by name.
    pub namesakes: Vec<u32>,
    /// What it did at the moment: `running`, `waiting`, `blocked`, `ended`, or `unknown`.
    pub state: &'static str,
    /// Where it ran at the moment, or had run before.
    pub cpu: Option<u16>,
    /// What happened, in the order of time.
    pub steps: Vec<Step>,
    /// All its wake-ups in the trace.
    pub placed: Vec<Placed>,
}

/// Looks at one thread while events pass.
#[derive(Debug)]
pub struct Lens {
    question: Question,
    place: u32,
    found: Moment,
    is_over: bool,
}

impl Lens {
    /// The thread's place.
    pub fn place(&self) -> u32 {
        self.place
    }

    fn new(question: &Question, place: u32) -> Self {
        let found = Moment { state: "unknown", ..Moment::default() };
        Self { question: question.clone(), place, found, is_over: false }
    }

    /// An event is about to happen.
    pub fn before(&mut self, now_ns: u64, thread: Option<&Thread>) {
        if now_ns > self.question.at_ns && !self.is_over {
            self.is_over = true;
            if let Some(thread) = thread {
                (self.found.state, self.found.cpu) = (word(thread.state), thread.cpu);
            }
        }
    }

    /// What is seen of an event that changed the thread's state from one to another.
    pub fn after(&mut self, walk: &Walk<'_>, raw: &Raw, was: (State, Option<u16>), now_ns: u64) {
        let Some(thread) = walk.thread_at(self.place) else { return };
        let woken_ns = match was.0 {
            State::Ready { since_ns, is_woken: true, .. } => Some(since_ns),
            State::Blocked => Some(now_ns),
            _ => None,
        };
        if let (Some(woken_ns), State::Running(cpu)) = (woken_ns, thread.state) {
            self.found.placed.push(Placed { woken_ns, runs_ns: now_ns, cpu });
        }
        let Question { at_ns, window_ns, .. } = self.question;
        if now_ns < at_ns.saturating_sub(window_ns) || now_ns > at_ns.saturating_add(window_ns) {
            return;
        }
        if let Some(step) = step(walk, raw, was, thread) {
            self.found.steps.push(Step { at_ns: now_ns, ..step });
        }
    }
}

fn word(state: State) -> &'static str {
    match state {
        State::Unknown => "unknown",
        State::Running(_) => "running",
        State::Ready { .. } => "waiting",
        State::Blocked => "blocked",
        State::Dead => "ended",
    }
}

fn step(walk: &Walk<'_>, raw: &Raw, was: (State, Option<u16>), thread: &Thread) -> Option<Step> {
    let is = thread.state;
    let now_ns = walk.now_ns();
    let of = |what, cpu: u16| Step {
        what,
        cpu: Some(cpu),
        khz: walk.khz(cpu),
        elsewhere: walk.elsewhere(cpu),
        ..Step::default()
    };
    match (was.0, is) {
        (State::Running(cpu), State::Running(other)) if cpu == other => match raw.what {
            What::Frequency { .. } if walk.is_clock_of(raw, cpu) => Some(of("clock", cpu)),
            _ => None,
        },
        (before, State::Running(cpu)) => Some(Step {
            from_cpu: was.1.filter(|last| *last != cpu),
            waited_ns: match before {
                State::Ready { since_ns, .. } => Some(now_ns.saturating_sub(since_ns)),
                _ => None,
            },
            ..of("runs", cpu)
        }),
        (State::Running(cpu), after) => {
            let what = match after {
                State::Ready { .. } => "lost",
                State::Blocked => "blocked",
                State::Dead => "ended",
                _ => "gone",
            };
            Some(Step { other: walk.on(cpu), ..of(what, cpu) })
        }
        (State::Ready { since_ns, .. }, State::Ready { since_ns: again_ns, .. })
            if since_ns == again_ns =>
        {
            let cpu = thread.cpu.filter(|cpu| *cpu == raw.cpu)?;
            match raw.what {
                What::Switch { to, .. } if to != 0 => {
                    Some(Step { other: walk.on(cpu), elsewhere: Vec::new(), ..of("instead", cpu) })
                }
                _ => None,
            }
        }
        (_, State::Ready { is_woken: true, .. }) => {
            let by = match raw.context {
                Context::Interrupt => 0,
                _ => raw.tid,
            };
            let other = if by == WHOEVER_RUNS { walk.on(raw.cpu) } else { Some(walk.named(by)) };
            Some(Step { other, ..of("woken", raw.cpu) })
        }
        _ => None,
    }
}

/// What a trace, whose events are in the order of time, tells of one thread around one moment.
///
/// # Errors
/// As of `of_story`; there is no such thread, or the trace has ended before.
pub fn around(
    file: &str,
    bytes: usize,
    story: &Story,
    asked: &Asked,
    question: &Question,
) -> Result<Moment, InputError> {
    let layout = || Layout::of(file, &story.events, &asked.clusters);
    Budget::of(bytes).take::<[u64; 4]>(file, tids(story).saturating_mul(layout()?.cpus()))?;
    let walked = Walk::new(layout()?, &story.names).through(&story.events);
    let end_ns = walked.duration_ns();
    if question.at_ns > end_ns {
        let (at, end) = (question.at_ns as f64 / 1e6, end_ns as f64 / 1e6);
        let message = format!("{at:.3} ms is after the end of the trace at {end:.3} ms");
        return Err(InputError::new(file, "", message));
    }
    let (place, namesakes) = find(file, &walked, story, &question.thread)?;
    let lens = Lens::new(question, place as u32);
    let again = Walk::new(layout()?, &story.names).with_lens(lens).through(&story.events);
    let (Some(lens), Some(thread)) = (again.lens, again.threads.get(place)) else {
        return Ok(Moment::default());
    };
    let mut found = lens.found;
    if !lens.is_over {
        (found.state, found.cpu) = (word(thread.state), thread.cpu);
    }
    let name = thread.names(story).last().unwrap_or_default().to_owned();
    let begin_ns = story.events.first().map_or(0, |raw| raw.at_ns);
    Ok(Moment { tid: thread.tid, name, begin_ns, namesakes, ..found })
}

/// The place of the wanted thread, and the numbers of others of that name.
fn find(
    file: &str,
    walked: &Walked,
    story: &Story,
    wanted: &str,
) -> Result<(usize, Vec<u32>), InputError> {
    let cpu_ns = |thread: &Thread| thread.cpu_ns.iter().map(|(_, ns)| ns).sum::<u64>();
    let is_it = |thread: &Thread| thread.tid.to_string() == wanted && thread.did_something();
    let is_named =
        |thread: &Thread| thread.did_something() && thread.names(story).any(|name| name == wanted);
    let all = || walked.threads.iter().enumerate();
    let by_number = all().rev().find(|(_, thread)| is_it(thread));
    if let Some((place, _)) = by_number {
        return Ok((place, Vec::new()));
    }
    let Some((place, found)) =
        all().filter(|(_, thread)| is_named(thread)).max_by_key(|(_, thread)| cpu_ns(thread))
    else {
        let names = walked.threads.iter().filter_map(|thread| thread.names(story).last());
        let message = format!("has no thread \"{wanted}\"");
        return Err(InputError::new(file, "", message).with_hint(suggest(wanted, names)));
    };
    let others = walked.threads.iter().filter(|thread| is_named(thread) && thread.tid != found.tid);
    Ok((place, others.map(|thread| thread.tid).collect()))
}
