//! Simulations and batches that somebody outside ends early.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ampsched_sim::{Interrupt, Job, JobError, SimError, run_batch};
use common::{Host, workload};

/// Very many events.
const LONG: &str = "[[threads]]\nname='t'\ncount=3\n\
    body=[{loop=1000000000,body=[{run_us=20,profile='unit'},{sleep_us=5}]}]";

/// Says yes when it is asked for the n-th time, and counts how often it is asked.
fn after(questions: u64) -> (Interrupt, Arc<AtomicU64>) {
    let asked = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&asked);
    (Interrupt::new(move || count.fetch_add(1, Ordering::Relaxed) + 1 >= questions), asked)
}

#[test]
fn m13_a_simulation_ends_when_somebody_wants_it() {
    for questions in [1, 2, 1000] {
        let mut host = Host::unequal(2, 2, 2.0);
        let (interrupt, asked) = after(questions);
        host.options.interrupt = interrupt;
        assert_eq!(host.try_run(LONG, "colab").unwrap_err(), SimError::Interrupted);
        assert_eq!(asked.load(Ordering::Relaxed), questions, "once asked for it ends");
    }
}

#[test]
fn m13_it_is_asked_before_the_first_event_and_then_every_so_many() {
    let text =
        "[[threads]]\nname='t'\nbody=[{loop=5000,body=[{run_us=20,profile='unit'},{sleep_us=5}]}]";
    let mut host = Host::symmetric(1);
    let plain = host.run(text, "rr");
    let (never, asked) = after(u64::MAX);
    host.options.interrupt = never;
    assert_eq!(host.run(text, "rr"), plain, "questions change nothing");
    // Of each round of the loop: the work ends, and the sleep.
    let events = 2 * 5000;
    let least = events / u64::from(Interrupt::EVENTS);
    let expected = least..=3 * least;
    assert!(expected.contains(&asked.load(Ordering::Relaxed)), "{asked:?} of {expected:?}");
}

fn job(host: &Host, text: &str) -> Job {
    Job {
        machine: host.machine.clone(),
        workload: workload(&[text]),
        policy: "cfs".into(),
        params: Vec::new(),
        options: host.options.clone(),
    }
}

#[test]
fn m13_an_interrupted_batch_begins_no_further_job() {
    let mut host = Host::symmetric(2);
    let (interrupt, asked) = after(20);
    host.options.interrupt = interrupt;
    let results = run_batch(&vec![job(&host, LONG); 50], 2, &|_| ());
    for result in results {
        assert_eq!(result.unwrap_err(), JobError::Simulation(SimError::Interrupted));
    }
    assert!(asked.load(Ordering::Relaxed) >= 50);
}
