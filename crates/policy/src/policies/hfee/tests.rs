use super::ladder::State;
use super::*;
use crate::testing::{PolicyHost, build};

/// Big and little programs of each epoch, by their number.
fn epochs(mut ranking: Ranking, eers: &[f64], count: usize) -> Vec<(Vec<usize>, Vec<usize>)> {
    let programs: Vec<Ranked> =
        (0usize..).zip(eers).map(|(index, &eer)| Ranked { thread: index.into(), eer }).collect();
    (0..count)
        .map(|_| {
            let chosen = ranking.choose(&programs, 2, 2);
            let on = |kind| {
                let all = 0..eers.len();
                all.filter(|&index| chosen.of(index.into()) == Some(kind)).collect()
            };
            (on(Prefer::Big), on(Prefer::Little))
        })
        .collect()
}

/// HFEE's workload W4: libquantum, h264ref, gcc, soplex, mcf, perlbench.
#[test]
fn w4_keeps_two_and_rotates_four() {
    let eers = [2.12, 1.27, 1.13, 1.31, 1.80, 1.12];
    for k in [2.0, 4.0] {
        let seen = epochs(Ranking::corrected(k), &eers, 4);
        let (first, second) = ((vec![0, 4], vec![2, 5]), (vec![0, 4], vec![1, 3]));
        assert_eq!(seen, [first.clone(), second.clone(), first, second]);
    }
}

/// W1: omnetpp, specrand 998, mcf, perlbench, specrand 999, astar.
#[test]
fn w1_keeps_the_outlier_and_the_next() {
    let seen = epochs(Ranking::corrected(4.0), &[1.08, 0.92, 1.80, 1.12, 0.89, 1.30], 4);
    let (first, second) = ((vec![2, 5], vec![1, 4]), (vec![2, 5], vec![0, 3]));
    assert_eq!(seen, [first.clone(), second.clone(), first, second]);
}

/// W9: GemsFDTD, povray, milc, omnetpp, mcf, perlbench.
#[test]
fn w9_rotates_the_little_cores() {
    let seen = epochs(Ranking::corrected(4.0), &[1.09, 0.96, 0.97, 1.08, 1.80, 1.12], 2);
    assert_eq!(seen, [(vec![4, 5], vec![1, 2]), (vec![4, 5], vec![0, 3])]);
}

#[test]
fn alphas_balance_the_longest_wait() {
    for (k, up, down) in [(1.0, 0.6667, 0.3333), (4.0, 0.5556, 0.4444), (10.0, 0.5238, 0.4762)] {
        let (alpha1, alpha2) = ranking::alphas(k);
        assert!((alpha1 - up).abs() < 5e-5 && (alpha2 - down).abs() < 5e-5);
        assert!((alpha1 + (2.0 * alpha1 - 1.0) * k - 1.0).abs() < 1e-12);
        assert!((alpha2 + (2.0 * alpha2 - 1.0) * k).abs() < 1e-12);
    }
}

/// Twelve programs on 2 + 2 cores: the longest waits in a row within 200 epochs.
#[test]
fn waits_are_as_computed_and_longer_than_the_stated_bound() {
    let eers = [0.0, 0.1, 0.2, 0.3, 0.4, 0.48, 0.52, 0.6, 0.7, 0.8, 0.9, 1.0];
    for (k, middle) in [(2.0, 5), (4.0, 8), (10.0, 15)] {
        let seen = epochs(Ranking::corrected(k), &eers, 200);
        let longest = |program: usize| {
            let waits: Vec<bool> = seen
                .iter()
                .map(|(big, little)| !big.contains(&program) && !little.contains(&program))
                .collect();
            waits.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[bool]>::len).max().unwrap()
        };
        let waits: Vec<usize> = (0..12).map(longest).collect();
        assert_eq!(waits, [1, 2, 2, 3, 5, middle, middle, 5, 3, 2, 2, 1], "K = {k}");
    }
}

#[test]
fn equal_programs_take_turns() {
    let seen = epochs(Ranking::corrected(4.0), &[1.0; 6], 60);
    for program in 0..6 {
        let placed = |(big, little): &&(Vec<usize>, Vec<usize>)| {
            big.contains(&program) || little.contains(&program)
        };
        assert!(seen.iter().filter(placed).count() >= 30, "program {program}");
    }
}

fn climb(high: High, mut mhz: u32, uniformity: f64, steps: usize) -> (Vec<u32>, State) {
    let mut ladder = Ladder::new(0.75, 1400, 100, high);
    let trace = (0..steps).map(|_| {
        mhz = ladder.step(uniformity, mhz);
        mhz
    });
    (trace.collect(), ladder.state())
}

/// What the authors' scripts do within an epoch.
#[test]
fn the_published_traces() {
    let ends = |mhz, uniformity| *climb(High::AsPublished, mhz, uniformity, 10).0.last().unwrap();
    assert_eq!(
        climb(High::AsPublished, 2000, 0.60, 10).0,
        [1900, 1800, 1700, 1600, 1500, 1400, 1300, 1200, 1300, 1200]
    );
    let (trace, state) = climb(High::AsPublished, 2000, 0.80, 10);
    assert_eq!((&trace[4..7], state), (&[1500, 1400, 1400][..], State::Target));
    assert_eq!(ends(1000, 0.60), 1200);
    assert_eq!(climb(High::AsPublished, 1200, 0.80, 5).0, [1300, 1400, 1500, 1400, 1400]);
    assert_eq!([ends(1400, 0.70), ends(1300, 0.70), ends(600, 0.90)], [1200, 1300, 1400]);
    assert_eq!(climb(High::AsPublished, 600, 0.90, 9).0[8], 1500);
}

#[test]
fn the_paper_s_table_of_states() {
    use State::{BothHigh, BothLow, FromBelow, Target, Unfair};
    // (uniformity, MHz) that lead to each state, and what follows on the four observations.
    let rows = [
        (vec![(0.5, 1000)], BothLow, [BothLow, FromBelow, Unfair, BothHigh]),
        (vec![(0.5, 1000), (0.9, 1000)], FromBelow, [BothLow, FromBelow, Unfair, BothHigh]),
        (vec![(0.5, 1500)], Unfair, [BothLow, Target, Unfair, BothHigh]),
        (vec![(0.9, 1500)], BothHigh, [BothLow, Target, Unfair, BothHigh]),
        (vec![(0.9, 1500), (0.9, 1300)], Target, [BothLow, Target, Unfair, BothHigh]),
    ];
    for (path, state, follows) in rows {
        for ((uniformity, mhz), expected) in
            [(0.7, 1300), (0.8, 1300), (0.7, 1400), (0.8, 1400)].into_iter().zip(follows)
        {
            let mut ladder = Ladder::new(0.75, 1400, 100, High::AtThreshold);
            for &(uniformity, mhz) in &path {
                ladder.step(uniformity, mhz);
            }
            assert_eq!(ladder.state(), state);
            let next_mhz = ladder.step(uniformity, mhz);
            assert_eq!(ladder.state(), expected, "from {state:?} at {uniformity}, {mhz}");
            let moved = match expected {
                BothLow | FromBelow => 100,
                Unfair | BothHigh => -100,
                Target => 0,
            };
            assert_eq!(i64::from(next_mhz) - i64::from(mhz), moved);
        }
    }
}

#[test]
fn few_programs_have_the_big_cores_and_many_are_stopped_in_turns() {
    let mut host = PolicyHost::new(&[(1, 2), (0, 2)], build("hfee", &[]));
    let mut threads: Vec<ThreadId> = (0..2).map(|_| host.add(None)).collect();
    host.epoch();
    assert_eq!(host.on_fast(), threads);
    threads.extend((0..4).map(|_| host.add(None)));
    for (thread, eer) in threads.iter().zip([2.12, 1.27, 1.13, 1.31, 1.80, 1.12]) {
        host.factors[thread.index()].energy_ratio =
            crate::Factor { value: eer, kind: crate::FactorKind::Measured, at_ns: 0 };
    }
    let held = |host: &PolicyHost| -> Vec<usize> {
        (0..6).filter(|&t: &usize| host.sched.plan(t.into()).held).collect()
    };
    host.epoch();
    assert_eq!((host.on_fast(), held(&host)), (vec![threads[0], threads[4]], vec![1, 3]));
    host.epoch();
    assert_eq!((host.on_fast(), held(&host)), (vec![threads[0], threads[4]], vec![2, 5]));
}

#[test]
fn on_line_every_program_has_an_epoch_on_either_kind_first() {
    let mut host = PolicyHost::new(&[(1, 2), (0, 2)], build("hfee", &[("online", 1.0)]));
    let threads: Vec<ThreadId> = (0..4).map(|_| host.add(None)).collect();
    // Instructions per us and power on a big and on a little core: EERs 2.0, 0.5, 1.0 and 4.0.
    let rates = [(4, 1, 2e3, 1e3), (2, 2, 2e3, 1e3), (3, 1, 3e3, 1e3), (4, 1, 1e3, 1e3)];
    let mut on_fast = Vec::new();
    for _ in 0..3 {
        host.epoch();
        let fast = host.on_fast();
        for (&thread, &(big, little, big_mw, little_mw)) in threads.iter().zip(&rates) {
            let (per_us, value) =
                if fast.contains(&thread) { (big, big_mw) } else { (little, little_mw) };
            host.run_alone(thread, 1_000_000, per_us * 1000);
            host.factors[thread.index()].power_mw =
                crate::Factor { value, kind: crate::FactorKind::Measured, at_ns: host.now_ns };
        }
        on_fast.push(fast);
    }
    let [first, second, ranked] = on_fast.try_into().unwrap();
    assert_eq!(first, threads[..2]);
    assert_eq!(second, threads[2..]);
    assert_eq!(ranked, [threads[0], threads[3]], "the greatest ratios, both measured");
}
