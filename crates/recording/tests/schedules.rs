//! Replays of parallel loops under schedules: against closed forms, and against what cores can do.

mod common;

use ampsched_model::{Costs, Machine, ObjectKind, Op, Profile, Schedule};
use ampsched_recording::{Event, Info, Kind, Options, Recording, Sharing, Thread, replay};
use common::{catalog, profile, run_on};
use proptest::prelude::*;

use Kind::{Create, Exit, OmpBarrier, OmpBegin, OmpEnd, OmpFork, OmpJoin, Start};

const US: u64 = 1_000;
/// Pieces per thread in which a replay divides shared work.
const PIECES: u64 = 32;

/// A recording of a team of threads on equal cores, in one region of loops with barriers between them: the work of each
/// thread in each loop in us, and work in us of the main thread before and behind the region.
fn team(loops: &[Vec<u64>], serial_us: u64) -> Recording {
    let threads = loops[0].len();
    let events_of = |thread: usize| {
        let mut events = Vec::new();
        let mut now_us = 0;
        let mut add = |kind, object, at_us: u64, work_us: u64| {
            events.push(Event { object, ..Event::new(kind, at_us * US, work_us * US) });
        };
        add(Start, 0, 0, 0);
        if thread == 0 {
            (1..threads as u32).for_each(|worker| add(Create, worker, 0, 0));
            add(OmpFork, 1, serial_us, serial_us);
        }
        now_us += serial_us;
        add(OmpBegin, 1, now_us, 0);
        for (number, works) in loops.iter().enumerate() {
            let is_last = number + 1 == loops.len();
            let end_us = now_us + works.iter().max().unwrap();
            let (kind, object) = if is_last { (OmpEnd, 1) } else { (OmpBarrier, 2) };
            let at_us = if is_last { now_us + works[thread] } else { end_us };
            add(kind, object, at_us, works[thread]);
            now_us = end_us;
        }
        if thread == 0 {
            add(OmpJoin, 1, now_us, 0);
            now_us += serial_us;
        }
        add(Exit, 0, now_us, if thread == 0 { serial_us } else { 0 });
        events
    };
    let thread = |place| Thread { events: events_of(place), ..Thread::default() };
    let info = Info { name: "p".to_owned(), ..Info::default() };
    Recording { info, threads: (0..threads).map(thread).collect(), is_cut_off: false }
}

/// A shipped machine without costs.
fn machine(name: &str) -> Machine {
    let mut machine = catalog().machine(name).unwrap();
    machine.costs = Costs::default();
    machine
}

/// How a recording is replayed by a schedule.
fn options(sharing: Sharing) -> Options {
    let profile = Profile { measured_ratio: Some(SPEEDUP), ..profile() };
    Options { profile, sharing, ..Options::default() }
}

/// Makespan in us of a replay by a schedule.
fn makespan_us(recording: &Recording, machine: &Machine, sharing: Sharing) -> f64 {
    let replay = replay(recording, &options(sharing));
    run_on(machine, &replay, "cfs").unwrap().makespan_ns as f64 / 1e3
}

/// How many times as fast as a little core a big one is.
const SPEEDUP: f64 = 3.0;

/// (big cores, little cores) of machines. Threads stay where they began, as they are as many as cores.
const MACHINES: [(&str, f64, f64); 2] = [("2B2S", 2.0, 2.0), ("4B4S", 4.0, 4.0)];

/// n big cores of speed s and m little ones of speed 1, as many threads, and even iterations of W in all: equal blocks
/// take W / (n + m), shares by speed W / (n s + m), and so do chunks but for the last ones.
#[test]
fn h38_2_even_loops_take_what_closed_forms_say() {
    for (name, big, little) in MACHINES {
        let machine = machine(name);
        let cores = big + little;
        // Work is stated as time of a big core: W is what a little one would take for all of it.
        let share_us = 96_000.0;
        let whole_us = share_us * cores * SPEEDUP;
        let found = team(&[vec![share_us as u64; cores as usize]], 0);
        let of = |sharing| makespan_us(&found, &machine, sharing);
        let by = |schedule| of(Sharing::Loops(schedule));
        let near = |us: f64, expected_us: f64, within_us: f64, what: &str| {
            let is_near = (us - expected_us).abs() <= within_us;
            assert!(is_near, "{name} {what}: {us}, not {expected_us}");
        };
        let (equal_us, ideal_us) = (whole_us / cores, whole_us / (big * SPEEDUP + little));
        near(of(Sharing::None), equal_us, 0.1, "as recorded");
        near(by(Schedule::Static), equal_us, 0.1, "static");
        near(by(Schedule::AidStatic), ideal_us, 0.1, "aid-static");
        // The last chunk of a little core may begin when all others end.
        let piece_us = share_us * SPEEDUP / PIECES as f64;
        for schedule in [Schedule::AidHybrid, Schedule::Dynamic] {
            let us = by(schedule);
            assert!(
                (ideal_us - 0.1..ideal_us + piece_us).contains(&us),
                "{name} {schedule:?}: {us}"
            );
        }
        // The first part that guided gives is an equal block; if a little core gets it, nothing is gained.
        let guided_us = by(Schedule::Guided);
        assert!(
            (ideal_us - 0.1..equal_us + 0.1).contains(&guided_us),
            "{name} guided: {guided_us}"
        );
    }
}

#[test]
fn h38_2_what_is_serial_stays_serial() {
    let machine = machine("2B2S");
    for sharing in Sharing::ALL {
        let without_us = makespan_us(&team(&[vec![48_000; 4]], 0), &machine, sharing);
        let with_us = makespan_us(&team(&[vec![48_000; 4]], 10_000), &machine, sharing);
        // On a big core at least.
        assert!(
            with_us - without_us >= 2.0 * 10_000.0 - 0.1,
            "{sharing:?}: {with_us} {without_us}"
        );
    }
}

#[test]
fn h38_2_chunks_cost_hand_overs_and_blocks_hardly_any() {
    let found = team(&[vec![3_200; 4]], 0);
    let slower_us = |schedule| {
        let mut machine = machine("sym-4");
        let free_us = makespan_us(&found, &machine, Sharing::Loops(schedule));
        let costs = Costs { handover_same_cluster_ns: 1_000, ..Costs::default() };
        machine.costs = costs;
        makespan_us(&found, &machine, Sharing::Loops(schedule)) - free_us
    };
    let [fixed, dynamic, guided, aid, _] = Schedule::ALL.map(slower_us);
    // Each thread has the line for 32 pieces and the end, and waits at first for three others.
    assert!((33.0..=37.0).contains(&dynamic), "{dynamic}");
    assert!(fixed < 12.0 && aid < 20.0, "{fixed} {aid}");
    assert!(guided < dynamic / 2.0 && guided > fixed, "{guided}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    /// Whatever the schedule, the same work is done, and not faster than the cores can.
    #[test]
    fn h38_2_all_work_is_done_and_never_faster_than_cores_can(
        loops in proptest::collection::vec(proptest::collection::vec(100_u64..5_000, 4), 1..4),
        serial_us in 0_u64..500,
        place in 0..MACHINES.len(),
    ) {
        let (name, big, little) = MACHINES[place];
        let machine = machine(name);
        let found = team(&loops, serial_us);
        let all_us = found.cpu_ns() as f64 / 1e3;
        let capacity = (big + little / SPEEDUP).min(4.0);
        for sharing in Sharing::ALL {
            let program = replay(&found, &options(sharing)).program;
            let pieces: f64 = program.code.windows(2).map(|pair| match (&pair[0], &pair[1]) {
                (Op::Take { pool, .. }, Op::Run { reference_ns, .. }) => {
                    let ObjectKind::Pool { total, participants, .. } =
                        program.objects[pool.index()].kind else { panic!("a pool") };
                    reference_ns.mean * total as f64 / f64::from(participants)
                }
                (_, Op::Run { reference_ns, .. }) => reference_ns.mean,
                _ => 0.0,
            }).sum();
            // Pieces are whole ns.
            prop_assert!((pieces / 1e3 - all_us).abs() < 1.0, "{sharing:?}: {pieces} of {all_us}");
            let us = makespan_us(&found, &machine, sharing);
            prop_assert!(us >= all_us / capacity - 1.0, "{sharing:?}: {us} of {all_us}");
            let longest_us: u64 = loops.iter().map(|works| works.iter().sum::<u64>()).sum();
            let worst_us = SPEEDUP * (longest_us + 2 * serial_us) as f64;
            prop_assert!(us <= worst_us + 1.0, "{sharing:?}: {us} of {worst_us}");
        }
    }
}
