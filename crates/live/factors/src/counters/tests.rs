use rustix::io::Errno;

use super::{Counters, Survey};
use crate::fake::{Fake, hybrid, machine};

const COUNTED: [&str; 3] = ["instructions", "cycles", "branch_mispredicts"];

fn start(fake: &Fake) -> (Survey, Counters<Fake>) {
    let (_folder, root, cores) = hybrid();
    let survey = Survey::make(&root, &cores, &COUNTED, &mut fake.clone()).unwrap();
    let counters = Counters::new(fake.clone(), &survey);
    (survey, counters)
}

/// (PMU's place, counter, count), rounded, of all counts that are known.
fn known(counters: &mut Counters<Fake>, tid: i32) -> Vec<(usize, &'static str, u64)> {
    let names = counters.names().to_vec();
    let found = counters.read(tid).unwrap().expect("it is followed").to_vec();
    let rows = found.iter().enumerate().flat_map(|(pmu, counts)| {
        names.iter().zip(&counts.counts).map(move |(name, count)| (pmu, *name, *count))
    });
    let known = rows.filter(|row| row.2.is_finite());
    known.map(|(pmu, name, count)| (pmu, name, count.round() as u64)).collect()
}

#[test]
fn what_fits_is_counted_at_once_and_the_rest_takes_turns() {
    let (survey, _) = start(&machine([8, 2]));
    assert_eq!(
        survey.describe(),
        [
            "cpu_atom: instructions cycles | branch_mispredicts",
            "cpu_core: instructions cycles branch_mispredicts"
        ]
    );
    assert_eq!(survey.reasons.len(), 1, "{:?}", survey.reasons);
    assert!(survey.reasons[0].contains("cpu_atom counts not all at once: 2 groups"));
    assert!(survey.counts("cycles") && !survey.counts("llc_misses") && !survey.counts_stalls());
}

#[test]
fn a_pmu_that_counts_nothing_is_told() {
    let (survey, _) = start(&machine([8, 0]));
    assert!(survey.reasons[0].contains("cpu_atom counts nothing that is wanted"));
    assert!(survey.counts("cycles"), "on the PMU that is left");
}

#[test]
fn counts_are_of_the_time_since_the_last_reading() {
    let fake = machine([8, 8]);
    let (_, mut counters) = start(&fake);
    counters.follow(7).unwrap();
    fake.0.borrow_mut().ran_ns.insert((7, 4), 1_000_000);
    let first = known(&mut counters, 7);
    assert_eq!(
        first,
        [(1, "branch_mispredicts", 8000), (1, "cycles", 2000), (1, "instructions", 4000)]
    );
    fake.0.borrow_mut().ran_ns.insert((7, 10), 500_000);
    let second = known(&mut counters, 7);
    assert_eq!(
        second,
        [(0, "branch_mispredicts", 1500), (0, "cycles", 500), (0, "instructions", 500)]
    );
    assert_eq!(known(&mut counters, 7), []);
    assert_eq!(counters.read(8).unwrap(), None);
}

#[test]
fn turns_are_scaled_up_and_other_pmus_are_not() {
    let fake = machine([8, 2]);
    let (_, mut counters) = start(&fake);
    counters.follow(7).unwrap();
    {
        let mut machine = fake.0.borrow_mut();
        machine.ran_ns.insert((7, 4), 1_000_000);
        machine.ran_ns.insert((7, 10), 3_000_000);
        // Two groups take turns.
        machine.percent.insert((7, 10), 50);
    }
    assert_eq!(
        known(&mut counters, 7),
        [
            (0, "branch_mispredicts", 9000),
            (0, "cycles", 3000),
            (0, "instructions", 3000),
            (1, "branch_mispredicts", 8000),
            (1, "cycles", 2000),
            (1, "instructions", 4000)
        ]
    );
}

#[test]
fn who_uses_the_pmu_besides_takes_a_share() {
    let fake = machine([8, 8]);
    let (_, mut counters) = start(&fake);
    counters.follow(7).unwrap();
    fake.0.borrow_mut().ran_ns.insert((7, 4), 1_000_000);
    fake.0.borrow_mut().percent.insert((7, 4), 25);
    assert_eq!(known(&mut counters, 7)[2], (1, "instructions", 4000));
}

#[test]
fn threads_without_files_wait_until_others_have_ended() {
    let fake = machine([8, 8]);
    fake.0.borrow_mut().files = 7;
    let (_, mut counters) = start(&fake);
    for tid in [1, 2, 3] {
        counters.follow(tid).unwrap();
    }
    // Six files each; of the seventh nothing is kept.
    assert_eq!((counters.followed(), counters.waiting()), (1, 2));
    assert_eq!(fake.0.borrow().opened, 6);
    counters.forget(1);
    assert_eq!((counters.followed(), counters.waiting()), (1, 1));
    assert!(counters.read(2).unwrap().is_some() && counters.read(3).unwrap().is_none());
    fake.0.borrow_mut().more_files = 6;
    counters.follow(4).unwrap();
    assert_eq!((counters.followed(), counters.waiting()), (2, 1), "the limit was raised");
    // A thread that has ended while it waited makes place for nobody.
    fake.0.borrow_mut().error = Some(Errno::SRCH);
    counters.forget(2);
    assert_eq!((counters.followed(), counters.waiting()), (1, 0));
}

#[test]
fn what_is_forbidden_is_said_with_the_remedy() {
    let fake = machine([8, 8]);
    fake.0.borrow_mut().error = Some(Errno::ACCESS);
    let (survey, _) = start(&fake);
    assert_eq!(survey.pmus, []);
    assert!(survey.reasons[0].contains("kernel.perf_event_paranoid=2"), "{:?}", survey.reasons);
}
