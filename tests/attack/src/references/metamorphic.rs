//! How results must change when what is simulated is changed in a known way.

use super::scenes::{Scene, Step, Unit, facts};
use super::{Case, Verdict};

/// Both are simulated: all numbers of the second are those of the first, times what they are to be multiplied with.
/// What only the second has (cores) is left out.
fn compare(
    case: &mut Case,
    one: &Scene,
    mut other: Scene,
    factor: impl Fn(Unit) -> u64,
) -> Verdict {
    if case.is_bent("work") {
        other.add_work();
    }
    let before = facts(&case.simulate(&one.setup())?);
    let after = facts(&case.simulate(&other.setup())?);
    for (what, unit, expected) in before {
        let found = after.iter().find(|fact| fact.0 == what && fact.1 == unit);
        let found = found.map_or(0, |fact| fact.2);
        case.equal(&format!("{what} under {}", other.policy), found, expected * factor(unit))?;
    }
    Ok(())
}

/// Amounts stay whole numbers of ns wherever threads are interrupted: all cores are equal, or threads do not move.
fn in_whole_ns(case: &mut Case, scene: &mut Scene) {
    if case.dice.once_in(2) {
        return scene.clusters.iter_mut().for_each(|cluster| cluster.1 = 1000);
    }
    let cores: u64 = scene.clusters.iter().map(|cluster| cluster.0).sum();
    for thread in &mut scene.threads {
        thread.bind(&[case.dice.whole(0..=cores - 1)]);
    }
}

/// Twice the instructions on cores of twice the speed take the same time. Policies read speeds only in proportion.
pub fn doubled(case: &mut Case) -> Verdict {
    let one = Scene::new(&mut case.dice);
    let mut other = one.clone();
    other.clusters.iter_mut().for_each(|cluster| cluster.1 *= 2);
    for step in other.steps() {
        if let Step::Work(work) | Step::Locked(work) = step {
            *work *= 2;
        }
    }
    compare(case, &one, other, |unit| if unit == Unit::Instructions { 2 } else { 1 })
}

/// Names mean nothing: those of all threads are exchanged, and others besides.
pub fn renamed(case: &mut Case) -> Verdict {
    let one = Scene::new(&mut case.dice);
    let mut other = one.clone();
    let count = other.threads.len();
    let is_exchange = case.dice.once_in(2);
    for (number, thread) in other.threads.iter_mut().enumerate() {
        thread.name = match is_exchange {
            true => format!("t{}", count - 1 - number),
            false => format!("thread {}", case.dice.whole(1..=999) * 10 + number as u64),
        };
    }
    compare(case, &one, other, |_| 1)
}

/// All times that there are become longer: works, sleeps, costs, slices. Only policies without constants of their own:
/// round robin, and on one core CFS and EEVDF with all of theirs stated. EEVDF without ticks, as these are no
/// multiples.
pub fn scaled(case: &mut Case) -> Verdict {
    let dice = &mut case.dice;
    let mut one = Scene::new(dice);
    let times = dice.whole(2..=9);
    let us = dice.whole(100..=3000);
    let policy = |kind: u64, us: u64| {
        let ms = us as f64 / 1000.0;
        match kind {
            0 => format!("rr:slice_ms={ms}"),
            1 => format!(
                "cfs:latency_ms={}:min_granularity_ms={ms}:wakeup_granularity_ms={ms}",
                (us * 6) as f64 / 1000.0
            ),
            _ => format!("eevdf:hz=0:base_slice_ms={ms}"),
        }
    };
    let kind = dice.whole(0..=2);
    if kind > 0 {
        one.clusters = vec![(1, 1000)];
    }
    for thread in &mut one.threads {
        // The quantum of real-time threads of one priority is a constant, and so is what fair ones are guaranteed.
        thread.keys.clear();
        // Virtual times of other weights are rounded.
        thread.nice = 0;
    }
    if kind == 0 {
        in_whole_ns(case, &mut one);
    }
    one.policy = policy(kind, us);
    let mut other = one.clone();
    other.policy = policy(kind, us * times);
    other.costs.iter_mut().for_each(|cost| cost.1 *= times);
    other.threads.iter_mut().for_each(|thread| thread.start *= times);
    for step in other.steps() {
        match step {
            Step::Work(amount)
            | Step::Locked(amount)
            | Step::Sleep(amount)
            | Step::Device(amount) => {
                *amount *= times;
            }
            Step::Yield => {}
        }
    }
    compare(case, &one, other, |unit| if unit == Unit::Times { 1 } else { times })
}

/// A core more, which no thread may use. Only policies whose constants do not follow from the number of cores, and that
/// take threads where they may run: round robin on any cores, CFS with all constants stated on one.
pub fn another_core(case: &mut Case) -> Verdict {
    let dice = &mut case.dice;
    let mut one = Scene::new(dice);
    if dice.once_in(2) {
        one.policy = format!("rr:slice_ms={}", dice.whole(1..=4));
    } else {
        one.policy = "cfs:latency_ms=6:min_granularity_ms=0.75:wakeup_granularity_ms=1".to_owned();
        one.clusters = vec![(1, 1000)];
    }
    let cores: u64 = one.clusters.iter().map(|cluster| cluster.0).sum();
    let usable: Vec<u64> = (0..cores).collect();
    for thread in &mut one.threads {
        if thread.keys.contains("cores = ") && cores > 1 {
            continue;
        }
        thread.bind(&usable);
    }
    let mut other = one.clone();
    other.clusters.push((1, one.clusters[0].1));
    compare(case, &one, other, |_| 1)
}

/// Work in two pieces, one right behind the other, is the same work.
pub fn split(case: &mut Case) -> Verdict {
    let mut one = Scene::new(&mut case.dice);
    in_whole_ns(case, &mut one);
    let mut other = one.clone();
    for round in other.threads.iter_mut().flat_map(|thread| &mut thread.rounds) {
        let pieces = round.iter().flat_map(|step| match *step {
            // Whole ns at any speed.
            Step::Work(work) if work >= 16 => {
                let first = 8 * case.dice.whole(1..=work / 8 - 1);
                vec![Step::Work(first), Step::Work(work - first)]
            }
            step => vec![step],
        });
        *round = pieces.collect();
    }
    compare(case, &one, other, |_| 1)
}

/// Nothing is random here, so the seed means nothing; but for `linux`, whose newly idle cores search by chance, as the
/// kernel's do (6.18.3, `NI_RANDOM`).
pub fn reseeded(case: &mut Case) -> Verdict {
    let mut one = Scene::new(&mut case.dice);
    if one.policy == "linux" {
        one.policy = "eevdf".to_owned();
    }
    let other = Scene { seed: case.dice.bits() >> 1, ..one.clone() };
    compare(case, &one, other, |_| 1)
}
