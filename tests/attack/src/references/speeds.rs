//! Work takes its instructions divided by the speed of the core, in whole ns. Work that is stated as time refers to the
//! fastest cores at their highest frequency; a stated ratio of speeds holds between the fastest and the slowest cores
//! at their highest frequencies, and a core at a lower frequency is slower in proportion.

use ampsched_sim::GovernorSpec;

use super::setup::{Cluster, Setup, costs, machine, thread, us};
use super::{Case, Verdict, any_policy};
use crate::dice::Dice;

/// A step of a thread.
#[derive(Clone, Copy, Debug)]
enum Step {
    Instructions(u64),
    /// On the fastest cores.
    Time(u64),
}

/// Frequencies whose cycles are exact numbers of ns in binary.
const EXACT: [u64; 5] = [250, 500, 1000, 2000, 4000];

fn clusters(dice: &mut Dice, is_exact: bool) -> Vec<Cluster> {
    let count = dice.whole(1..=3);
    (0..count)
        .map(|_| {
            let mut mhz: Vec<u64> = (0..dice.whole(1..=4))
                .map(|_| if is_exact { *dice.of(&EXACT) } else { dice.whole(100..=4000) })
                .collect();
            mhz.sort_unstable();
            mhz.dedup();
            Cluster { cores: dice.whole(1..=2), mhz, more: String::new() }
        })
        .collect()
}

/// One thread on each core, whose frequency does not change. A tolerance of 1 ns for each step holds where a cycle is
/// no exact number in binary: rounding up to whole ns may then go either way. With a stated ratio it always holds.
pub fn run(case: &mut Case) -> Verdict {
    let dice = &mut case.dice;
    let is_exact = !dice.once_in(3);
    let clusters = clusters(dice, is_exact);
    let (wanted, has_ratio) = (dice.whole(100..=4000), dice.once_in(4));
    let has_governor = clusters.iter().any(|cluster| cluster.mhz.len() > 1) && dice.once_in(2);
    let tops: Vec<u64> = clusters.iter().map(|it| it.mhz[it.mhz.len() - 1]).collect();
    let (highest, lowest) = (*tops.iter().max().unwrap_or(&1), *tops.iter().min().unwrap_or(&1));
    // A ratio says nothing of cores in between.
    let ratio =
        (has_ratio && tops.iter().all(|&top| top == highest || top == lowest) && highest > lowest)
            .then(|| dice.whole(11..=90) as f64 / 10.0);
    let mut threads: Vec<Vec<Step>> = Vec::new();
    for _ in 0..clusters.iter().map(|cluster| cluster.cores).sum() {
        let step = |_| match dice.once_in(2) {
            true => Step::Time(dice.whole(1..=1_000_000)),
            false => Step::Instructions(dice.whole(1..=4_000_000)),
        };
        threads.push((0..4).map(step).collect());
    }
    let text = |step: &Step| match step {
        Step::Instructions(count) => format!("{{ compute = {count}, profile = \"mine\" }}"),
        Step::Time(ns) => format!("{{ run_us = {}, profile = \"mine\" }}", us(*ns)),
    };
    let stated = ratio.map_or(String::new(), |ratio| format!("ratio = {ratio}\n"));
    let mut program = format!("[profiles.mine]\nlike = \"unit\"\nmisses = 1\n{stated}");
    for (number, steps) in threads.iter().enumerate() {
        let body: Vec<String> = steps.iter().map(text).collect();
        program += &thread(&format!("t{number}"), &format!("cores = [{number}]"), &body);
    }
    let policy = any_policy(dice, 0);
    let mut setup = Setup::new(machine(&clusters, &costs(&[])), program, policy);
    if has_governor {
        let params = vec![("mhz".to_owned(), wanted as f64)];
        setup.options.governors =
            vec![GovernorSpec { cluster: None, name: "userspace".to_owned(), params }];
    }
    let outcome = case.simulate(&setup)?;
    let within = if is_exact && ratio.is_none() { 0.0 } else { 4.0 };
    let highest = case.bend("reference", highest, 10);
    let ratio = ratio.map(|ratio| ratio + case.bend("ratio", 0, 1) as f64);
    for step in threads.iter_mut().flatten() {
        if let Step::Instructions(count) = step {
            *count = case.bend("work", *count, 10_000);
        }
    }
    let mut told = outcome.threads.iter().zip(&threads);
    for (cluster, told_cluster) in clusters.iter().zip(&outcome.clusters) {
        let top = cluster.mhz[cluster.mhz.len() - 1];
        let chosen = cluster.mhz.iter().copied().find(|&mhz| mhz >= wanted).unwrap_or(top);
        let mhz = case.bend("frequency", if has_governor { chosen } else { top }, 1);
        let (at, ns) = told_cluster.residency.first().copied().unwrap_or_default();
        case.equal("frequency", u64::from(at), mhz)?;
        case.equal("time at it", ns, outcome.makespan_ns)?;
        // Instructions per us.
        let speed = match ratio {
            Some(ratio) if top == lowest => highest as f64 / ratio * mhz as f64 / top as f64,
            _ => mhz as f64,
        };
        for (thread, steps) in told.by_ref().take(cluster.cores as usize) {
            let takes = |step: &Step| match step {
                Step::Instructions(count) => (*count as f64 * 1000.0 / speed).ceil(),
                Step::Time(ns) => {
                    ((*ns as f64 * highest as f64 / 1000.0).round() * 1000.0 / speed).ceil()
                }
            };
            let expected: f64 = steps.iter().map(takes).sum();
            case.near(&format!("end of {}", thread.name), thread.end_ns as f64, expected, within)?;
        }
    }
    Ok(())
}
