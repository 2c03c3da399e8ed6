//! The story of one thread around one moment: a [`Trace`] that keeps what concerns it, in plain sentences.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use ampsched_model::{ClusterId, CoreId, Ns, ThreadId, suggest};
use ampsched_policy::{Reason, ReasonValue, Rules, RunState};
use serde::Serialize;

use crate::{Decision, Trace, TraceMachine, TraceThread, TurnEnd};

/// What is kept of the time before the window, so that its beginning can be understood.
const KEPT_BEFORE: usize = 12;

/// What somebody wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// A thread: its number, or `app/thread`. Of several of that name the one that started last before the moment.
    pub thread: String,
    /// The moment.
    pub at_ns: Ns,
    /// What is told begins so long before the moment and ends so long after it.
    pub window_ns: Ns,
}

impl Question {
    /// When the telling ends.
    pub fn end_ns(&self) -> Ns {
        self.at_ns.saturating_add(self.window_ns)
    }
}

/// A question that has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExplainError {
    /// No such thread has started.
    #[error("no thread \"{thread}\" has started by {:.3} ms ({hint})", *by_ns as f64 / 1e6)]
    NoThread {
        /// What was asked for.
        thread: String,
        /// When the telling ends.
        by_ns: Ns,
        /// A similar name, or those that there are.
        hint: String,
    },
    /// The run was over before.
    #[error("{:.3} ms is after the end of the run at {:.3} ms", *at_ns as f64 / 1e6, *end_ns as f64 / 1e6)]
    TooLate {
        /// What was asked for.
        at_ns: Ns,
        /// When the run ended.
        end_ns: Ns,
    },
}

/// One thing that happened to the thread, or instead of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// When, in ns since the start.
    pub at_ns: Ns,
    /// What, in a word: `starts`, `woken`, `placed`, `interrupts`, `runs`, `stops`, `moved`, `planned`, `held`,
    /// `ended`, `passed` or `instead` for another thread that runs where it waits.
    pub what: &'static str,
    /// What, in a sentence.
    pub sentence: String,
    /// Where.
    pub core: Option<u16>,
    /// The other thread that has part in it.
    pub other: Option<String>,
    /// Who decided, in the vocabulary of the rules.
    pub rule: Option<String>,
    /// Why, in words.
    pub because: Option<&'static str>,
    /// The values that counted, by name; the unit comes last in the name.
    pub values: BTreeMap<&'static str, StepValue>,
}

/// A value that counted, with threads and cores by name and number.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum StepValue {
    /// A time in ns.
    Ns(i64),
    /// A number, a load, a rank, a core.
    Count(u64),
    /// A factor or ratio.
    Real(f64),
    /// A word, a name, a thread.
    Word(String),
    /// A load for each of some cores.
    Loads(BTreeMap<u16, u64>),
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The thread's number.
    pub thread: u32,
    /// `app/thread`.
    pub name: String,
    /// The moment.
    pub at_ns: Ns,
    /// What is told begins then, apart from what led to it.
    pub from_ns: Ns,
    /// What is told ends then.
    pub to_ns: Ns,
    /// What it did at that moment: `not started`, `waiting`, `running`, `blocked`, `held` or `ended`.
    pub state: &'static str,
    /// Where it ran or waited at that moment, or had run before.
    pub core: Option<u16>,
    /// Since when it was in that state.
    pub since_ns: Ns,
    /// The same in a sentence.
    pub summary: String,
    /// What happened, in the order of time.
    pub events: Vec<Step>,
}

#[derive(Clone, Debug)]
struct State {
    word: &'static str,
    core: Option<CoreId>,
    since_ns: Ns,
    /// What it waits for, if it is blocked.
    waits_for: Option<String>,
    /// Who runs on its core, if it waits.
    rival: Option<ThreadId>,
}

const NOT_STARTED: State =
    State { word: "not started", core: None, since_ns: 0, waits_for: None, rival: None };

/// A [`Trace`] that answers a [`Question`].
#[derive(Debug)]
pub struct Explainer {
    question: Question,
    machine: TraceMachine,
    rules: Option<Rules>,
    /// `app/thread` of each thread.
    names: Vec<String>,
    running: Vec<Option<ThreadId>>,
    about: Option<ThreadId>,
    state: State,
    /// The state at the moment, once time has passed it.
    at_moment: Option<State>,
    /// The last change of the thread's plan before the window.
    plan: Option<Step>,
    before: VecDeque<Step>,
    steps: Vec<Step>,
}

impl Explainer {
    /// Nothing has happened yet.
    pub fn new(question: Question, machine: TraceMachine) -> Self {
        let running = vec![None; machine.cores.len()];
        Self {
            question,
            machine,
            rules: None,
            names: Vec::new(),
            running,
            about: None,
            state: NOT_STARTED,
            at_moment: None,
            plan: None,
            before: VecDeque::new(),
            steps: Vec::new(),
        }
    }

    /// The answer, after a run that ended at some time. Errors: see [`ExplainError`].
    pub fn finish(self, end_ns: Ns) -> Result<Explanation, ExplainError> {
        let Question { thread, at_ns, .. } = &self.question;
        if end_ns < *at_ns {
            return Err(ExplainError::TooLate { at_ns: *at_ns, end_ns });
        }
        let Some(about) = self.about else {
            let hint = suggest(thread, self.names.iter().map(String::as_str));
            let (thread, by_ns) = (thread.clone(), self.question.end_ns());
            return Err(ExplainError::NoThread { thread, by_ns, hint });
        };
        let state = self.at_moment.as_ref().unwrap_or(&self.state);
        let summary = self.summary(about, state);
        let mut events: Vec<Step> =
            self.plan.iter().chain(&self.before).chain(&self.steps).cloned().collect();
        events.sort_by_key(|step| step.at_ns);
        Ok(Explanation {
            thread: about.0,
            name: self.name(about),
            at_ns: *at_ns,
            from_ns: self.begin_ns(),
            to_ns: end_ns.min(self.question.end_ns()),
            state: state.word,
            core: state.core.map(|core| core.0),
            since_ns: state.since_ns,
            summary,
            events,
        })
    }

    fn begin_ns(&self) -> Ns {
        self.question.at_ns.saturating_sub(self.question.window_ns)
    }

    fn name(&self, thread: ThreadId) -> String {
        self.names.get(thread.index()).cloned().unwrap_or_else(|| format!("thread {}", thread.0))
    }

    fn core(&self, core: CoreId) -> String {
        match self.machine.cores.get(core.index()).and_then(|it| it.about.split(' ').next()) {
            Some(kind) if !kind.is_empty() => format!("core {} ({kind})", core.0),
            _ => format!("core {}", core.0),
        }
    }

    fn summary(&self, thread: ThreadId, state: &State) -> String {
        let (name, at_ms) = (self.name(thread), self.question.at_ns as f64 / 1e6);
        let since = format!("since {:.3} ms", state.since_ns as f64 / 1e6);
        let core = state.core.map_or_else(|| "no core".to_owned(), |core| self.core(core));
        let doing = match state.word {
            "running" => format!("runs on {core}, {since}"),
            "waiting" => {
                let rival = state.rival.map(|rival| format!(", where {} runs", self.name(rival)));
                let rival = rival.unwrap_or_default();
                format!("waits in the queue of {core}{rival}, {since}")
            }
            "blocked" => {
                let what = state.waits_for.as_deref().unwrap_or("something");
                format!("is blocked, {since}: {what}")
            }
            "held" => format!("is held back by the plan, {since}"),
            "ended" => format!("has ended, at {:.3} ms", state.since_ns as f64 / 1e6),
            _ => "has not started yet".to_owned(),
        };
        format!("At {at_ms:.3} ms {name} {doing}.")
    }

    fn is_about(&self, thread: ThreadId) -> bool {
        self.about == Some(thread)
    }

    /// Whether the thread waits in the queue of a core.
    fn waits_on(&self, core: CoreId) -> bool {
        self.state.word == "waiting" && self.state.core == Some(core)
    }

    /// The thread is in another state from now on.
    fn becomes(&mut self, word: &'static str, core: Option<CoreId>, at_ns: Ns) {
        let core = core.or(self.state.core);
        let rival = core.and_then(|core| self.running.get(core.index()).copied().flatten());
        self.state = State { word, core, since_ns: at_ns, waits_for: None, rival };
    }

    /// Time goes on: what was is the state at the moment, if that has passed.
    fn passes(&mut self, at_ns: Ns) {
        if at_ns > self.question.at_ns && self.at_moment.is_none() && self.about.is_some() {
            self.at_moment = Some(self.state.clone());
        }
    }

    fn step(&self, what: &'static str, sentence: String, why: Option<&Reason>, at_ns: Ns) -> Step {
        let sentence = match why {
            Some(why) => format!("{sentence}: {}", why.because),
            None => sentence,
        };
        let values = why.into_iter().flat_map(|why| &why.values);
        Step {
            at_ns,
            what,
            sentence,
            core: None,
            other: None,
            rule: why.map(|why| why.by.words(self.rules.as_ref())),
            because: why.map(|why| why.because),
            values: values.map(|(name, value)| (*name, self.value(value))).collect(),
        }
    }

    fn value(&self, value: &ReasonValue) -> StepValue {
        match value {
            ReasonValue::Ns(ns) => StepValue::Ns(*ns),
            ReasonValue::Count(count) => StepValue::Count(*count),
            ReasonValue::Real(real) => StepValue::Real(*real),
            ReasonValue::Core(core) => StepValue::Count(core.0.into()),
            ReasonValue::Thread(thread) => StepValue::Word(self.name(*thread)),
            ReasonValue::Word(word) => StepValue::Word(word.clone()),
            ReasonValue::Loads(loads) => {
                StepValue::Loads(loads.iter().map(|(core, load)| (core.0, *load)).collect())
            }
        }
    }

    /// Keeps something: all of it in the window, before that what leads to its beginning.
    fn keep(&mut self, step: Step) {
        if step.at_ns > self.question.end_ns() {
            return;
        }
        if step.at_ns >= self.begin_ns() {
            self.steps.push(step);
            return;
        }
        match step.what {
            "planned" => {
                self.plan = Some(step);
                return;
            }
            // What was before the last turn or sleep explains nothing any more.
            "runs" | "woken" | "starts" => self.before.clear(),
            _ => {}
        }
        if self.before.len() == KEPT_BEFORE {
            // Who else ran matters least.
            let mut before = self.before.iter();
            let others = before.position(|step| matches!(step.what, "instead" | "passed"));
            self.before.remove(others.unwrap_or(0));
        }
        self.before.push_back(step);
    }

    /// The sentence of a decision about the thread itself.
    fn own_decision(&self, decision: Decision) -> (&'static str, String) {
        match decision {
            Decision::Placed(core) => {
                ("placed", format!("It is put into the queue of {}", self.core(core)))
            }
            Decision::Moved { from, to } => {
                let (from, to) = (self.core(from), self.core(to));
                ("moved", format!("It is moved from the queue of {from} to that of {to}"))
            }
            Decision::Interrupts { running, core, yes } => {
                let (running, core) = (self.name(running), self.core(core));
                let verb = if yes { "interrupts" } else { "does not interrupt" };
                ("interrupts", format!("It {verb} {running}, which runs on {core}"))
            }
            Decision::Planned(change) => ("planned", format!("The plan for it changes ({change})")),
            Decision::Held => ("held", "It is held back".to_owned()),
            Decision::Ended => ("ended", "It is ended".to_owned()),
            Decision::PassedOver(core) => {
                ("passed", format!("{} does not choose it", capital(&self.core(core))))
            }
        }
    }
}

fn capital(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    first.to_uppercase() + rest
}

impl Trace for Explainer {
    fn rules(&mut self, rules: &Rules) {
        self.rules = Some(rules.clone());
    }

    fn asks_about(&self) -> Option<ThreadId> {
        self.about
    }

    fn thread(&mut self, thread: TraceThread) {
        let name = format!("{}/{}", thread.app_name, thread.name);
        let index = thread.id.index();
        if self.names.len() <= index {
            self.names.resize(index + 1, String::new());
        }
        let asked = &self.question.thread;
        let is_asked = *asked == name || asked.parse() == Ok(thread.id.0);
        self.names[index] = name;
        // A thread of the same name that starts after the moment is another one.
        if is_asked && self.at_moment.is_none() {
            self.about = Some(thread.id);
            (self.state, self.plan) = (NOT_STARTED, None);
            self.before.clear();
            self.steps.clear();
        }
    }

    fn run(&mut self, core: CoreId, thread: ThreadId, why: Option<&Reason>, at_ns: Ns) {
        self.passes(at_ns);
        self.running[core.index()] = Some(thread);
        let step = if self.is_about(thread) {
            self.becomes("running", Some(core), at_ns);
            self.step("runs", format!("It runs on {}", self.core(core)), why, at_ns)
        } else if self.waits_on(core) {
            self.state.rival = Some(thread);
            let other = self.name(thread);
            let sentence = format!("{} runs {other}", capital(&self.core(core)));
            Step { other: Some(other), ..self.step("instead", sentence, why, at_ns) }
        } else {
            return;
        };
        self.keep(Step { core: Some(core.0), ..step });
    }

    fn stop(&mut self, core: CoreId, thread: ThreadId, end: TurnEnd, at_ns: Ns) {
        self.passes(at_ns);
        self.running[core.index()] = None;
        if self.waits_on(core) {
            self.state.rival = None;
        }
        if !self.is_about(thread) {
            return;
        }
        let on = self.core(core);
        let (state, sentence) = match end.state {
            RunState::Blocked => ("blocked", format!("It leaves {on}")),
            RunState::Exited => ("ended", format!("It ends on {on}")),
            _ => ("waiting", format!("It loses {on}")),
        };
        self.becomes(state, Some(core), at_ns);
        let step = self.step("stops", sentence, end.why, at_ns);
        let object = step.values.get("object").and_then(|value| match value {
            StepValue::Word(word) => Some(format!(" ({word})")),
            _ => None,
        });
        self.state.waits_for =
            step.because.map(|because| format!("{because}{}", object.unwrap_or_default()));
        self.keep(Step { core: Some(core.0), ..step });
    }

    fn wake(&mut self, waker: Option<ThreadId>, woken: ThreadId, _core: Option<CoreId>, at_ns: Ns) {
        self.passes(at_ns);
        if !self.is_about(woken) {
            return;
        }
        let other = waker.map(|waker| self.name(waker));
        let (what, verb) = match self.state.word {
            "not started" => ("starts", "starts"),
            "blocked" => ("woken", "wakes"),
            _ => return,
        };
        let sentence = match (&other, what) {
            (Some(other), "starts") => format!("It is started by {other}"),
            (Some(other), _) => format!("It is woken by {other}"),
            (None, "woken") => "It is woken by a timer or a device".to_owned(),
            (None, _) => format!("It {verb}"),
        };
        self.keep(Step { other, ..self.step(what, sentence, None, at_ns) });
    }

    fn decided(&mut self, thread: ThreadId, decision: Decision, why: Option<&Reason>, at_ns: Ns) {
        self.passes(at_ns);
        let step = match decision {
            Decision::Interrupts { running, core, yes } if self.is_about(running) => {
                let (woken, core) = (self.name(thread), self.core(core));
                let verb = if yes { "interrupts it" } else { "does not interrupt it" };
                let sentence = format!("{woken}, just woken, {verb} on {core}");
                Step { other: Some(woken), ..self.step("interrupts", sentence, why, at_ns) }
            }
            _ if !self.is_about(thread) => return,
            decision => {
                let (what, sentence) = self.own_decision(decision);
                self.step(what, sentence, why, at_ns)
            }
        };
        let (core, other) = match decision {
            Decision::Placed(core) | Decision::Moved { to: core, .. } => {
                self.becomes("waiting", Some(core), at_ns);
                (Some(core), step.other.clone())
            }
            Decision::Interrupts { running, core, .. } => {
                (Some(core), step.other.clone().or_else(|| Some(self.name(running))))
            }
            Decision::PassedOver(core) => (Some(core), None),
            Decision::Held => {
                self.becomes("held", None, at_ns);
                (None, None)
            }
            Decision::Ended => {
                self.becomes("ended", None, at_ns);
                (None, None)
            }
            Decision::Planned(_) => (None, None),
        };
        self.keep(Step { core: core.map(|core| core.0), other, ..step });
    }

    fn frequency(&mut self, _cluster: ClusterId, _mhz: u32, at_ns: Ns) {
        self.passes(at_ns);
    }

    fn queue_len(&mut self, _core: CoreId, _len: usize, at_ns: Ns) {
        self.passes(at_ns);
    }
}
