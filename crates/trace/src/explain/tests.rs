//! A small schedule, and what is told of one of its threads.

use ampsched_model::{CoreId, Ns, ThreadId};
use ampsched_policy::{DecidedBy, Reason, RunState};

use super::{ExplainError, Explainer, Explanation, Question, StepValue};
use crate::{Decision, Trace, TraceCore, TraceMachine, TraceThread, TurnEnd};

const MS: Ns = 1_000_000;
const MAIN: ThreadId = ThreadId(0);
const WORK: ThreadId = ThreadId(1);
const CORE: CoreId = CoreId(0);

fn explainer(thread: &str, at_ms: Ns, window_ms: Ns) -> Explainer {
    let question =
        Question { thread: thread.to_owned(), at_ns: at_ms * MS, window_ns: window_ms * MS };
    let machine = TraceMachine {
        name: "1B".to_owned(),
        cores: vec![TraceCore { about: "big a57 2000 MHz".to_owned(), ..TraceCore::default() }],
        clusters: vec!["big".to_owned()],
    };
    Explainer::new(question, machine)
}

fn end(state: RunState, why: &Reason) -> TurnEnd<'_> {
    TurnEnd { instructions: Some(0), state, why: Some(why) }
}

/// `a/main` starts and runs; `a/work` starts at 1 ms, waits until 4 ms, runs until 6 ms, waits for a lock.
fn schedule(mut trace: Explainer) -> Explainer {
    let alone = Reason::new(DecidedBy::Order, "the only one that waits here");
    let first =
        Reason::new(DecidedBy::Order, "it comes first in the queue").ns("waited_ns", 3 * MS);
    let least = Reason::new(DecidedBy::Allocator, "the least loaded core");
    let over = Reason::new(DecidedBy::Slice, "its slice is over");
    let lock = Reason::new(DecidedBy::Program, "it waits for an object").word("object", "a/lock");
    let introduce = |trace: &mut Explainer, id, name| {
        trace.thread(TraceThread { id, app: 0, app_name: "a", name, ids: None });
    };
    introduce(&mut trace, MAIN, "main");
    trace.wake(None, MAIN, Some(CORE), 0);
    trace.decided(MAIN, Decision::Placed(CORE), Some(&least), 0);
    trace.run(CORE, MAIN, Some(&alone), 0);
    introduce(&mut trace, WORK, "work");
    trace.wake(Some(MAIN), WORK, Some(CORE), MS);
    trace.decided(WORK, Decision::Placed(CORE), Some(&least), MS);
    trace.stop(CORE, MAIN, end(RunState::Ready, &over), 2 * MS);
    let passed =
        Reason::new(DecidedBy::Order, "another thread comes before it").thread("first", MAIN);
    if trace.asks_about() == Some(WORK) {
        trace.decided(WORK, Decision::PassedOver(CORE), Some(&passed), 2 * MS);
    }
    trace.run(CORE, MAIN, Some(&first), 2 * MS);
    trace.stop(CORE, MAIN, end(RunState::Ready, &over), 4 * MS);
    trace.run(CORE, WORK, Some(&first), 4 * MS);
    trace.stop(CORE, WORK, end(RunState::Blocked, &lock), 6 * MS);
    trace.run(CORE, MAIN, Some(&alone), 6 * MS);
    trace
}

fn explain(thread: &str, at_ms: Ns, window_ms: Ns) -> Explanation {
    schedule(explainer(thread, at_ms, window_ms)).finish(10 * MS).unwrap()
}

fn sentences(explanation: &Explanation) -> Vec<(f64, &str)> {
    let each = explanation.events.iter();
    each.map(|step| (step.at_ns as f64 / 1e6, step.sentence.as_str())).collect()
}

#[test]
fn a_waiting_thread_hears_who_runs_and_why_it_does_not() {
    let explanation = explain("a/work", 3, 3);
    assert_eq!(
        explanation.summary,
        "At 3.000 ms a/work waits in the queue of core 0 (big), where a/main runs, since 1.000 ms."
    );
    assert_eq!(
        sentences(&explanation),
        [
            (1.0, "It is started by a/main"),
            (1.0, "It is put into the queue of core 0 (big): the least loaded core"),
            (2.0, "Core 0 (big) does not choose it: another thread comes before it"),
            (2.0, "Core 0 (big) runs a/main: it comes first in the queue"),
            (4.0, "It runs on core 0 (big): it comes first in the queue"),
            (6.0, "It leaves core 0 (big): it waits for an object"),
        ]
    );
    let instead = &explanation.events[3];
    assert_eq!((instead.what, instead.other.as_deref()), ("instead", Some("a/main")));
    assert_eq!(instead.rule.as_deref(), Some("order"));
    assert_eq!(instead.values["waited_ns"], StepValue::Ns(3_000_000));
    assert_eq!(explanation.events[2].values["first"], StepValue::Word("a/main".to_owned()));
}

#[test]
fn the_state_is_that_of_the_moment() {
    for (at_ms, state, summary) in [
        (5, "running", "runs on core 0 (big), since 4.000 ms."),
        (8, "blocked", "is blocked, since 6.000 ms: it waits for an object (a/lock)."),
    ] {
        let explanation = explain("1", at_ms, 1);
        assert_eq!(explanation.state, state);
        assert!(explanation.summary.ends_with(summary), "{}", explanation.summary);
    }
    let early = schedule(explainer("a/work", 0, 2)).finish(2 * MS).unwrap();
    assert_eq!(early.state, "not started");
}

#[test]
fn what_led_to_the_window_is_told_too() {
    let explanation = explain("a/work", 5, 0);
    assert_eq!(
        sentences(&explanation),
        [(4.0, "It runs on core 0 (big): it comes first in the queue")]
    );
    let explanation = explain("a/work", 3, 0);
    assert_eq!(explanation.events.len(), 4, "since it started: {explanation:?}");
}

#[test]
fn errors_name_the_nearest_thread_and_the_end() {
    let error = schedule(explainer("a/wrk", 3, 1)).finish(10 * MS).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no thread \"a/wrk\" has started by 4.000 ms (did you mean \"a/work\"?)"
    );
    let error = schedule(explainer("a/work", 11, 1)).finish(10 * MS).unwrap_err();
    assert_eq!(error, ExplainError::TooLate { at_ns: 11 * MS, end_ns: 10 * MS });
    assert_eq!(error.to_string(), "11.000 ms is after the end of the run at 10.000 ms");
}
