//! Energy is the sum of power times the time for which it is drawn: C V^2 f and leakage while a core runs, what an idle
//! state leaves of them while it idles, the deeper state once the core has idled for the time that it asks for; what
//! cores share sleeps as deeply as the most awake of them.

use ampsched_sim::GovernorSpec;

use super::setup::{Cluster, Setup, compute, costs, machine, thread, us};
use super::{Case, Verdict, any_policy};

/// What a cluster draws, in mW.
#[derive(Clone, Copy, Debug)]
struct Powers {
    running: f64,
    /// A core in the shallow and in the deep state.
    idle: [f64; 2],
    /// What cores share: awake, shallow, deep.
    shared: [f64; 3],
    /// After so many ns the deep state is entered.
    deepens: u64,
}

/// Energies in uJ: running, idle, shared.
fn energies(powers: &Powers, cores: &[Vec<(u64, u64)>], end: u64) -> [f64; 3] {
    // mW x ns = pJ.
    let uj = |mw: f64, ns: u64| mw * ns as f64 / 1e6;
    // How deep each core sleeps from when to when: 0 awake, 1 shallow, 2 deep.
    let mut depths: Vec<Vec<(u64, u64, usize)>> = Vec::new();
    for busy in cores {
        let (mut rows, mut from) = (Vec::new(), 0);
        for &(begin, until) in busy.iter().chain([&(end, end)]) {
            let deep = (from + powers.deepens).min(begin);
            rows.extend([(from, deep, 1), (deep, begin, 2), (begin, until, 0)]);
            from = until;
        }
        depths.push(rows);
    }
    let mut sums = [0.0; 3];
    for (from, until, depth) in depths.iter().flatten() {
        match depth {
            0 => sums[0] += uj(powers.running, until - from),
            depth => sums[1] += uj(powers.idle[depth - 1], until - from),
        }
    }
    let mut moments: Vec<u64> = depths.iter().flatten().flat_map(|row| [row.0, row.1]).collect();
    moments.sort_unstable();
    for pair in moments.windows(2) {
        let at = |rows: &Vec<(u64, u64, usize)>| {
            rows.iter().find(|row| row.0 <= pair[0] && pair[0] < row.1).map_or(2, |row| row.2)
        };
        let depth = depths.iter().map(at).min().unwrap_or(2);
        sums[2] += uj(powers.shared[depth], pair[1] - pair[0]);
    }
    sums
}

/// A cluster at one of its frequencies; cores work and sleep, or do nothing at all.
pub fn run(case: &mut Case) -> Verdict {
    let dice = &mut case.dice;
    let mhz = *dice.of(&[500, 1000, 2000]);
    let (dynamic, shared) = (dice.whole(10..=900), dice.whole(0..=300));
    let (leaks, shared_leaks) = (dice.whole(0..=80), dice.whole(0..=40));
    let (core_mw, core_share) = (dice.whole(0..=20), dice.whole(0..=10) as f64 / 10.0);
    let (deep_mw, deep_share) = (dice.whole(0..=9), dice.whole(0..=10) as f64 / 20.0);
    let (shallow_uncore, deep_uncore) =
        (dice.whole(5..=10) as f64 / 10.0, dice.whole(0..=5) as f64 / 10.0);
    let deepens = 1000 * dice.whole(1..=1500);
    let count = dice.whole(1..=4);
    let mut program = String::new();
    let (mut busy, mut end) = (vec![Vec::new(); count as usize], 0);
    for (number, busy) in busy.iter_mut().enumerate() {
        if number > 0 && dice.once_in(4) {
            continue;
        }
        let (mut body, mut now) = (Vec::new(), 0);
        for _ in 0..dice.whole(1..=5) {
            let (work, sleep) = (4 * dice.whole(1..=500_000), dice.whole(1..=3_000_000));
            body.extend([compute(work * mhz / 1000), format!("{{ sleep_us = {} }}", us(sleep))]);
            busy.push((now, now + work));
            now += work + sleep;
        }
        body.pop();
        end = busy.last().map_or(end, |last| last.1.max(end));
        program += &thread(&format!("t{number}"), &format!("cores = [{number}]"), &body);
    }
    let more = format!(
        "power = {{ dynamic_uw_per_mhz_v2 = {dynamic}, uncore_dynamic_uw_per_mhz_v2 = {shared}, static_mw = {leaks}, \
         uncore_static_mw = {shared_leaks}, static_at_volt = 1 }}\nidle_states = [{{ name = \"shallow\", core_mw = \
         {core_mw}, core_share = {core_share}, uncore_share = {shallow_uncore} }}, {{ name = \"deep\", core_mw = \
         {deep_mw}, core_share = {deep_share}, uncore_share = {deep_uncore}, min_residency_us = {} }}]\n",
        us(deepens)
    );
    let cluster = Cluster { cores: count, mhz: vec![500, 1000, 2000], more };
    let policy = any_policy(dice, 0);
    let mut setup = Setup::new(machine(&[cluster], &costs(&[])), program, policy);
    setup.options.energy = true;
    let params = vec![("mhz".to_owned(), mhz as f64)];
    setup.options.governors =
        vec![GovernorSpec { cluster: None, name: "userspace".to_owned(), params }];
    let outcome = case.simulate(&setup)?;
    let per_mhz = |uw: u64| uw as f64 * mhz as f64 / 1000.0;
    let leaks = case.bend("leakage", leaks, 1);
    let shared_leaks = case.bend("shared leakage", shared_leaks, 1);
    let awake = per_mhz(case.bend("shared power", shared, 1)) + shared_leaks as f64;
    let core_mw = case.bend("idle power", core_mw, 1);
    let deep_mw = case.bend("deep power", deep_mw, 1);
    let powers = Powers {
        running: per_mhz(case.bend("dynamic power", dynamic, 1)) + leaks as f64,
        idle: [
            core_mw as f64 + core_share * leaks as f64,
            deep_mw as f64 + deep_share * leaks as f64,
        ],
        shared: [awake, shallow_uncore * awake, deep_uncore * awake],
        deepens: case.bend("least stay", deepens, 1000),
    };
    case.equal("end", outcome.makespan_ns, end)?;
    let energy = outcome.clusters[0].energy.ok_or("no energy")?;
    let expected = energies(&powers, &busy, end);
    let found = [energy.running_uj, energy.idle_uj, energy.uncore_uj];
    for (what, (found, expected)) in
        ["running", "idle", "shared"].into_iter().zip(found.into_iter().zip(expected))
    {
        // Sums of floating-point numbers in another order.
        case.near(&format!("energy {what}"), found, expected, 1e-9 * expected.max(1.0))?;
    }
    Ok(())
}
