//! Programs in which who is free takes the jobs of a pool: whatever the recording, they come to their end.

mod common;

use std::sync::Arc;

use ampsched_model::{MadeProgram, Program};
use ampsched_recording::{
    Event, Info, Kind, Recording, Replayed, TYPICAL_PROFILE, Thread, Wake, lift,
};
use common::{catalog, run_program};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

const US: u64 = 1_000;

/// What threads of a pool do, all of them the same, but for how long: kind, object, aux, wait in us.
type Act = (Kind, u32, u32, u64);

/// Kinds that a pool may consist of, with all that threads wait for.
const KINDS: [Kind; 14] = [
    Kind::Yield,
    Kind::Lock,
    Kind::Unlock,
    Kind::CondWait,
    Kind::CondWake,
    Kind::Signal,
    Kind::SemWait,
    Kind::SemPost,
    Kind::FutexWait,
    Kind::FutexWake,
    Kind::Read,
    Kind::Write,
    Kind::Io,
    Kind::Block,
];

fn act() -> impl Strategy<Value = Act> {
    (proptest::sample::select(&KINDS), 0_u32..4, 0_u32..4, 0_u64..400)
}

/// A first thread that starts others, does something, and waits for their ends; each in a process of its own or not.
/// Clocks may be so coarse that much seems to happen at one time.
fn pool() -> impl Strategy<Value = Recording> {
    let acts = || proptest::collection::vec(act(), 0..20);
    let works = proptest::collection::vec(proptest::collection::vec(50_u64..3_000, 21), 2..5);
    let tick_ns = proptest::sample::select(&[1, 1_000_000]);
    let parts = (acts(), acts(), works, any::<bool>(), tick_ns);
    parts.prop_map(|(own, theirs, works, has_processes, tick_ns)| {
        let count = works.len() as u32;
        let starts = (1..=count).map(|child| (Kind::Create, child, 0, 0));
        let ends = (1..=count).map(|child| (Kind::Join, child, 0, 100_000));
        let own: Vec<Act> = starts.chain(own).chain(ends).collect();
        let mut threads = vec![thread(0, 0, &own, &[100; 64])];
        for (number, works) in (1..).zip(&works) {
            let process = if has_processes { number } else { 0 };
            threads.push(thread(process, u64::from(number), &theirs, works));
        }
        for event in threads.iter_mut().flat_map(|thread| &mut thread.events) {
            event.at_ns -= event.at_ns % tick_ns;
        }
        let info = Info { name: "p".to_owned(), ..Info::default() };
        Recording { info, threads, is_cut_off: false }
    })
}

fn thread(process: u32, from_us: u64, acts: &[Act], works_us: &[u64]) -> Thread {
    let mut at_us = 10 * from_us;
    let start = Event { aux: u32::from(from_us > 0), ..Event::new(Kind::Start, at_us * US, 0) };
    let mut events = vec![start];
    let exit: Act = (Kind::Exit, 0, 0, 0);
    for ((kind, object, aux, wait_us), work_us) in acts.iter().chain([&exit]).zip(works_us) {
        at_us += work_us + wait_us;
        let aux = if *kind == Kind::Block { Wake::Thread(*aux).to_aux() } else { *aux };
        events.push(Event {
            object: *object,
            aux,
            wait_ns: wait_us * US,
            is_blocked: *wait_us > 0,
            ..Event::new(*kind, at_us * US, work_us * US)
        });
    }
    Thread { process, events, ..Thread::default() }
}

/// The program, if jobs of a pool are taken anew.
fn shared(recording: &Recording) -> Option<Program> {
    lift::lift_shared(recording, &lift::Options::default())?;
    let made = Replayed::new("p.ampr", Arc::new(recording.clone()), TYPICAL_PROFILE);
    Some(made.make(&[], catalog().profiles()).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn h35_5_a_pool_comes_to_its_end(found in pool()) {
        let Some(program) = shared(&found) else { return Ok(()) };
        let machine = catalog().machine("2B2S").unwrap();
        let outcome = run_program(&machine, program, "cfs");
        let text = || lift::lift_shared(&found, &lift::Options::default()).map(|one| one.toml);
        prop_assert!(outcome.is_ok(), "{outcome:?}\n{}", text().unwrap_or_default());
    }
}

/// The property would hold if nothing were a pool.
#[test]
fn h35_5_many_of_them_are_pools() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut are_pools = 0;
    for _ in 0..200 {
        let found = pool().new_tree(&mut runner).unwrap().current();
        are_pools += usize::from(shared(&found).is_some());
    }
    assert!(are_pools >= 20, "{are_pools} of 200");
}
