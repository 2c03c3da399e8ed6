//! The contract is enforced: what no rule reads is refused when it is asked for, and what needs do not name is missing.

mod common;

use std::sync::{Arc, Mutex};

use ampsched_model::ClusterId;
use ampsched_policy::{
    Allocator, BalanceWhen, Change, FactorKind, LoadBand, LoadFilter, LoadTracking, Needs, Order,
    Plan, Policy, Prefer, QueueScope, Rules, Steal, StealFrom, TABLE, Topology, View,
};
use ampsched_sim::{SimError, simulate};
use common::{Host, workload};

/// What a policy asks for in its first epoch.
type Ask = fn(&View, &mut Plan);

const HOG: &str = "[[threads]]\nname='hog'\nbody=[{compute=20e6,profile='unit'}]";

/// Asks for one thing in its first epoch and notes what it is told of the thread.
struct Asks {
    rules: Rules,
    needs: Needs,
    ask: Ask,
    /// Which of speed-up, blame, instructions and power of the thread are known.
    seen: Arc<Mutex<[bool; 4]>>,
}

impl Policy for Asks {
    fn needs(&self) -> Needs {
        Needs { epoch_ns: Some(1_000_000), ..self.needs }
    }

    fn rules(&self, _topology: &Topology) -> Rules {
        self.rules.clone()
    }

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        for thread in view.threads() {
            let factors = view.factors(thread);
            let is_known = |kind| kind != FactorKind::Missing;
            *self.seen.lock().unwrap() = [
                is_known(factors.speedup.kind),
                is_known(factors.blame_ns.kind),
                view.instructions_total(thread) > 0,
                is_known(factors.power_mw.kind),
            ];
        }
        (self.ask)(view, plan);
    }
}

fn outcome(rules: Rules, needs: Needs, ask: Ask) -> (Result<(), String>, [bool; 4]) {
    let host = Host::unequal(1, 1, 2.0);
    let seen = Arc::new(Mutex::new([false; 4]));
    let policy = Asks { rules, needs, ask, seen: seen.clone() };
    let done = simulate(&host.machine, &workload(&[HOG]), "asks", Box::new(policy), &host.options);
    let done = match done {
        Ok(_) => Ok(()),
        Err(SimError::BadPolicy { what, .. }) => Err(what),
        Err(other) => panic!("{other}"),
    };
    let seen = *seen.lock().unwrap();
    (done, seen)
}

fn each(view: &View, plan: &mut Plan, change: &Change) {
    view.threads().for_each(|thread| plan.set(thread, change.clone()));
}

#[test]
fn a_change_that_no_rule_reads_is_refused_with_the_rules_that_would() {
    let cases: [(Ask, &str); 4] = [
        (
            |view, plan| each(view, plan, &Change::Prefer(Prefer::Big)),
            "asks for `prefer`, which none of its rules reads; rules that would: allocator = round_robin_in_class, \
             allocator = least_loaded_in_class, steal.except, balance.by_preference",
        ),
        (
            |view, plan| each(view, plan, &Change::Move(Prefer::Any)),
            "asks for `move`, which none of its rules reads; rules that would: allocator = round_robin_in_class, \
             allocator = least_loaded_in_class",
        ),
        (
            |view, plan| each(view, plan, &Change::Rank(1)),
            "asks for `rank`, which none of its rules reads; rules that would: order = highest_rank, \
             steal_from = running_on_slower",
        ),
        (
            |view, plan| each(view, plan, &Change::Speed([1.0; 4])),
            "asks for `speed`, which none of its rules reads; rules that would: slice_by_speed, steal.min_gain, \
             charge = progress, preempt = scaled_vruntime_gap",
        ),
    ];
    for (ask, expected) in cases {
        let (done, _) = outcome(Rules::default(), Needs::default(), ask);
        assert_eq!(done.unwrap_err(), expected);
    }
}

#[test]
fn a_change_whose_meaning_a_rule_takes_away_is_refused() {
    let rules = Rules {
        queues: QueueScope::Global,
        allocator: Allocator::LeastLoadedInClass,
        ..Rules::default()
    };
    let (done, _) = outcome(rules, Needs::default(), |view, plan| {
        each(view, plan, &Change::Prefer(Prefer::Big));
    });
    let expected = "asks for `prefer`, which means nothing with its rule queues = global";
    assert_eq!(done.unwrap_err(), expected);
}

#[test]
fn means_that_needs_do_not_name_are_refused() {
    let holds: Ask = |view, plan| each(view, plan, &Change::Hold(true));
    let clocks: Ask = |_, plan| plan.limit_frequency(ClusterId(0), 500);
    let (done, _) = outcome(Rules::default(), Needs::default(), holds);
    assert_eq!(done.unwrap_err(), "asks for holds, which its needs do not name");
    let (done, _) = outcome(Rules::default(), Needs::default(), clocks);
    assert_eq!(done.unwrap_err(), "asks for frequencies, which its needs do not name");
}

#[test]
fn rules_that_read_load_need_it_to_be_tracked() {
    let misfit = Steal { load: LoadFilter::Misfit, ..Steal::any(StealFrom::OtherClusters) };
    let starved = Steal {
        load: LoadFilter::Starved { max_served: 512 },
        ..Steal::any(StealFrom::OtherClusters)
    };
    let heavy = Steal {
        load: LoadFilter::Heavy { band: LoadBand::default() },
        ..Steal::any(StealFrom::OtherClusters)
    };
    let by_energy = Allocator::ByEnergy { hysteresis: 64 };
    let by_load = Allocator::ByLoad { band: LoadBand::default() };
    let stealing = |step: Steal| Rules { steal: vec![step], ..Rules::default() };
    let cases = [
        (
            Rules { balance_when: BalanceWhen::OverUtilised, ..Rules::default() },
            "balance_when = over_utilised",
        ),
        (Rules { allocator: by_load, ..Rules::default() }, "allocator = by_load"),
        (Rules { allocator: by_energy, ..Rules::default() }, "allocator = by_energy"),
        (stealing(heavy), "steal_load = heavy"),
        (stealing(starved), "steal_load = starved"),
        (stealing(misfit), "steal_load = misfit"),
    ];
    let words = TABLE.iter().flat_map(|(_, group)| group().words);
    assert_eq!(words.filter(|word| word.facts.reads_load).count(), cases.len());
    for (rules, rule) in cases {
        let (done, _) = outcome(rules.clone(), Needs::default(), |_, _| {});
        let expected = format!(
            "has the rule {rule}, which reads tracked load, but its needs do not name load_tracking"
        );
        assert_eq!(done.unwrap_err(), expected);
        let needs = Needs { load_tracking: Some(LoadTracking::ByWork), ..Needs::default() };
        let (done, _) = outcome(rules, needs, |_, _| {});
        done.unwrap();
    }
}

#[test]
fn what_a_rule_reads_is_carried_out() {
    let rules = Rules {
        allocator: Allocator::LeastLoadedInClass,
        order: Order::HighestRank { fair_window_ns: u64::MAX },
        ..Rules::default()
    };
    let (done, _) = outcome(rules, Needs::default(), |view, plan| {
        each(view, plan, &Change::Move(Prefer::Big));
        each(view, plan, &Change::Rank(3));
    });
    assert_eq!(done, Ok(()));
}

#[test]
fn what_needs_do_not_name_is_missing() {
    let nothing: Ask = |_, _| {};
    let (_, seen) = outcome(Rules::default(), Needs::default(), nothing);
    assert_eq!(seen, [false; 4]);
    let needs = Needs { speedup: true, blame: true, instructions: true, ..Needs::default() };
    let (_, seen) = outcome(Rules::default(), needs, nothing);
    assert_eq!(seen, [true, true, true, false]);
}
