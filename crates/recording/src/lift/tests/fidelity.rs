//! 35.6: what is lifted does what was recorded, thread by thread, or stays literal; the number of threads of crews that
//! are started again and again.

use proptest::prelude::*;

use super::super::*;
use super::synthetic::pipeline_with;
use super::{has, lifted, synthetic, teams};
use crate::{Kind, Recording, TYPICAL_PROFILE};

/// The program without any correction.
fn raw(recording: &Recording) -> Lifted {
    let options = Options::default();
    let source = Source { recording, watching: BTreeSet::new() };
    let mut found = made(&source, &options, Level::Full, &Kept::default()).expect("a program");
    check(&mut found, TYPICAL_PROFILE).expect("it can be read");
    found
}

/// What is wrong: threads, groups, the whole.
fn wrong(lifted: &Lifted) -> Vec<String> {
    let parts = lifted.report.groups.iter().flat_map(|group| &group.parts);
    let mut found: Vec<String> =
        parts.filter(|part| part.is_off()).map(|part| format!("{part:?}")).collect();
    let error = lifted.report.work_error();
    if error.abs() > WORK_ERROR_MAX {
        found.push(format!("the whole: {error}"));
    }
    found
}

/// Expected work of the whole with another number of threads, in ns.
fn work_with(lifted: &Lifted, n: usize) -> f64 {
    let line = lifted.toml.lines().find(|line| line.starts_with("n = ")).expect("a parameter");
    let toml = lifted.toml.replacen(line, &format!("n = {n}"), 1);
    let works =
        expected::works(&toml, TYPICAL_PROFILE).unwrap_or_else(|error| panic!("{error}\n{toml}"));
    works.values().flatten().sum()
}

/// The whole work stays what it is with other numbers of threads.
fn assert_divided(lifted: &Lifted) {
    for n in [2, 3, 8, 16] {
        let error = work_with(lifted, n) / lifted.report.recorded_ns - 1.0;
        assert!(error.abs() < WORK_ERROR_MAX, "n = {n}: {error}\n{}", lifted.toml);
    }
}

#[test]
fn h35_6_a_crew_that_is_started_again_and_again_is_one_with_rounds() {
    for (threads, rounds) in [(2, 2), (4, 6), (12, 3)] {
        let lifted = lifted(&teams::batches(&vec![vec![2_000_000; threads]; rounds]));
        has(&lifted, &format!("n = {threads}"));
        has(&lifted, "{ fork = \"worker\", times = \"n\" }");
        assert_eq!(wrong(&lifted), [""; 0], "{}", lifted.toml);
        assert_divided(&lifted);
    }
}

#[test]
fn h35_6_a_last_batch_with_less_to_do_is_a_round_as_well() {
    let mut works = vec![vec![3_000_000; 4]; 4];
    works.push(vec![400_000; 4]);
    let lifted = lifted(&teams::batches(&works));
    has(&lifted, "{ fork = \"worker\", times = \"n\" }");
    assert_eq!(wrong(&lifted), [""; 0], "{}", lifted.toml);
    assert_divided(&lifted);
}

#[test]
fn h35_6_crews_of_a_pipeline_are_no_jobs() {
    for batches in [3, 5, 6] {
        let works = vec![vec![4_000_000; 12]; batches];
        let lifted = lifted(&teams::batches_of_a_pipeline(2, &works));
        has(&lifted, "n = 12");
        assert_eq!(lifted.report.level, "full", "{}", lifted.toml);
        assert_eq!(wrong(&lifted), [""; 0], "{}", lifted.toml);
        let shares: f64 = lifted
            .report
            .groups
            .iter()
            .filter(|group| group.count == "n")
            .map(|group| group.recorded_ns)
            .sum();
        assert!(shares > 0.9 * lifted.report.recorded_ns, "{}", lifted.toml);
        assert_divided(&lifted);
    }
}

#[test]
fn h35_6_a_thread_for_each_that_has_ended_is_a_window() {
    let works: Vec<u64> = (0..40).map(|task| 1_500_000 + 100_000 * (task % 7)).collect();
    let lifted = lifted(&teams::window(4, &works));
    has(&lifted, "n = 4");
    has(&lifted, "times = \"min(n, 40)\"");
    has(&lifted, "{ loop = \"max(0, 40 - n)\", body = [");
    assert_eq!(wrong(&lifted), [""; 0], "{}", lifted.toml);
    assert_divided(&lifted);
}

#[test]
fn h35_6_the_report_says_what_n_changes() {
    let says = |recording: &Recording, words: &str| {
        let notes = lifted(recording).report.notes;
        assert!(notes.iter().any(|note| note.contains(words)), "{words}: {notes:?}");
    };
    says(&teams::window(4, &[2_000_000; 40]), "n = 4: so many threads are there at a time");
    says(&teams::batches(&vec![vec![2_000_000; 4]; 3]), "is divided by n");
    let little = teams::batches(&vec![vec![100_000; 2]; 5]);
    says(&little, "The threads whose number is n do 29 % of the work.");
}

#[test]
fn h35_6_what_is_done_between_starts_does_not_matter_to_a_window() {
    let lifted =
        lifted(&teams::window_with(3, &[2_000_000; 24], |task| [900, 150_000, 12_000][task % 3]));
    has(&lifted, "{ loop = \"max(0, 24 - n)\", body = [");
    has(&lifted, "{ loop = \"min(n, 24)\", body = [");
    assert_eq!(wrong(&lifted), [""; 0], "{}", lifted.toml);
    assert_divided(&lifted);
}

#[test]
fn h35_6_visits_of_a_mutex_are_divided_although_rounds_are_whole() {
    let lifted = lifted(&teams::visits(8, 7));
    has(&lifted, "\"max(1, round(56 * scale / n))\"");
    assert_eq!(wrong(&lifted), [""; 0], "{}", lifted.toml);
    assert_divided(&lifted);
}

#[test]
fn h35_6_threads_that_differ_keep_their_works_and_their_number() {
    for works in [vec![9, 9, 1, 1], vec![10, 2], vec![20, 3, 2, 2, 2, 2, 1]] {
        let works: Vec<u64> = works.into_iter().map(|work| work * 1_000_000).collect();
        let recording = teams::uneven(&works);
        assert_ne!(wrong(&raw(&recording)), [""; 0], "the check can fail");
        let lifted = lifted(&recording);
        assert_eq!(wrong(&lifted), [""; 0], "{}", lifted.toml);
        has(&lifted, "times = \"n\"");
        assert!(lifted.report.groups.iter().all(|group| !group.is_literal), "{}", lifted.toml);
    }
}

#[test]
fn h35_6_a_thread_that_takes_less_than_its_share_stays_literal_and_says_so() {
    let recording = teams::pool_with_main(3, 60_000_000, &[2_000_000; 120]);
    assert_ne!(wrong(&raw(&recording)), [""; 0], "the check can fail");
    let lifted = lifted(&recording);
    assert_eq!(wrong(&lifted), [""; 0], "{}", lifted.toml);
    let main = &lifted.report.groups[0];
    assert!(main.is_literal, "{}", lifted.toml);
    let note = lifted.report.notes.iter().find(|note| note.starts_with("main (thread 0)"));
    let note = note.unwrap_or_else(|| panic!("{:?}", lifted.report.notes));
    assert!(note.contains(" ms instead of ") && note.ends_with("it stays literal."), "{note}");
    // The others still share the rest.
    has(&lifted, "{ dynamic = \"pool1\", body = [");
    has(&lifted, "times = \"n\"");
    assert_divided(&lifted);
}

#[test]
fn h35_6_the_number_of_threads_can_be_fixed() {
    let options = Options { is_fixed: true, ..Options::default() };
    for recording in [teams::batches(&vec![vec![2_000_000; 4]; 3]), synthetic::pool(4, 50)] {
        let lifted = lift(&recording, &options);
        assert!(!lifted.report.has_n() && !lifted.toml.contains("\nn = "), "{}", lifted.toml);
        assert_eq!(wrong(&lifted), [""; 0], "{}", lifted.toml);
    }
}

/// Crews of all kinds, with works of up to 4 ms.
fn crew() -> impl Strategy<Value = (usize, Recording)> {
    let works = proptest::collection::vec(0..4_000_000_u64, 12..60);
    (0..7_usize, 2..6_usize, works).prop_map(|(kind, threads, works)| {
        let batches = || works.chunks_exact(threads).map(<[u64]>::to_vec).collect::<Vec<_>>();
        let recording = match kind {
            0 => teams::batches(&batches()),
            1 => teams::batches_of_a_pipeline(2, &batches()),
            2 => teams::window(threads, &works),
            3 => teams::uneven(&works[..threads * 2]),
            4 => teams::pool_with_main(threads, 5 * works[0], &works),
            5 => teams::rounds(threads, &works),
            _ => synthetic::pipeline_with(threads, works.len(), |script, taker, item| {
                script.add(taker, crate::Kind::Yield, 0, works[item]);
            }),
        };
        (kind, recording)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    #[test]
    fn h35_6_every_thread_is_right_or_literal_with_a_note((kind, recording) in crew()) {
        let lifted = lift(&recording, &Options::default());
        prop_assert_eq!(wrong(&lifted), [""; 0], "kind {}: {:?}\n{}", kind, lifted.report.notes, lifted.toml);
        let notes = lifted.report.notes.join("\n");
        for group in lifted.report.groups.iter().filter(|group| group.is_literal) {
            let threads: Vec<String> = group.members.iter().map(u32::to_string).collect();
            prop_assert!(notes.contains("stays literal"), "{}: {}", threads.join(", "), notes);
        }
    }
}

/// A third of the items waits for a timer and works on, longer than others.
fn uneven_items(items: usize) -> Recording {
    pipeline_with(2, items, |script, taker, item| {
        if item % 3 == 0 {
            let until_ns = script.clock(taker) + 200_000;
            script.add(taker, Kind::Yield, 0, 4_000_000);
            script.wait(taker, Kind::Io, 5, until_ns + 4_000_000);
            script.last(taker).aux = 2;
        }
    })
}

#[test]
fn h35_6_chance_does_not_change_what_few_items_are_in_all() {
    for (items, is_random) in [(9, false), (30, false), (8_000, true)] {
        let lifted = lifted(&uneven_items(items));
        has(&lifted, "sleep_us");
        assert_eq!(lifted.toml.contains("low = "), is_random, "{items}: {}", lifted.toml);
        assert_eq!(wrong(&lifted), [""; 0], "{}", lifted.toml);
    }
}
