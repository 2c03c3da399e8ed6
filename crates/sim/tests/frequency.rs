//! Frequencies that change in the middle of work.

mod common;

use ampsched_model::{ClusterId, Ns, Opp};
use ampsched_policy::{Needs, Plan, Policy, Rules, Topology, View, build_policy};
use ampsched_sim::{Outcome, SimError, simulate};
use common::{Host, ns, workload};
use proptest::prelude::*;

/// CFS, and a list of (cluster, MHz) that is asked for one by one, an entry per ms.
struct Scripted {
    base: Box<dyn Policy>,
    script: Vec<Option<(u8, u32)>>,
    next: usize,
    /// The frequencies that it saw.
    seen: std::sync::mpsc::Sender<u32>,
}

impl Policy for Scripted {
    fn needs(&self) -> Needs {
        Needs { epoch_ns: Some(1_000_000), frequencies: true, ..self.base.needs() }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        self.base.rules(topology)
    }

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        let _ = self.seen.send(view.frequency_mhz(ClusterId(0)));
        if let Some(Some((cluster, mhz))) = self.script.get(self.next) {
            plan.set_frequency(ClusterId(*cluster), *mhz);
        }
        self.next += 1;
    }
}

const MHZ: [u32; 4] = [500, 1000, 1500, 2000];

fn host(cores: usize, latency_ns: Ns) -> Host {
    let mut host = Host::symmetric(cores);
    host.machine.clusters[0].opps = MHZ.map(|mhz| Opp { mhz, volt: 1.0 }).to_vec();
    host.machine.costs.frequency_switch_ns = latency_ns;
    host
}

fn run(
    host: &Host,
    program: &str,
    script: &[Option<(u8, u32)>],
) -> (Result<Outcome, SimError>, Vec<u32>) {
    let (seen, saw) = std::sync::mpsc::channel();
    let base = build_policy("cfs", &[]).unwrap();
    let policy = Box::new(Scripted { base, script: script.to_vec(), next: 0, seen });
    let outcome = simulate(&host.machine, &workload(&[program]), "scripted", policy, &host.options);
    (outcome, saw.into_iter().collect())
}

/// Two instructions per ns at 2000 MHz.
const HOG: &str = "[[threads]]\nname='hog'\nbody=[{compute=20e6,profile='unit'}]";

#[test]
fn work_goes_on_at_the_new_speed() {
    // 1 ms at 2000 MHz, 2 ms at 500, the rest at 1000.
    let script = [Some((0, 500)), None, Some((0, 1000))];
    let (outcome, seen) = run(&host(1, 0), HOG, &script);
    let outcome = outcome.unwrap();
    let rest_ms = (20.0 - 2.0 - 2.0 * 0.5) / 1.0;
    assert_eq!(outcome.makespan_ns, ns(3.0 + rest_ms));
    assert_eq!(&seen[..4], [2000, 500, 500, 1000]);
    let clusters = &outcome.clusters[0];
    assert_eq!(clusters.residency, [(500, ns(2.0)), (1000, ns(rest_ms)), (2000, ns(1.0))]);
    assert_eq!(clusters.frequency_changes, 2);
}

#[test]
fn a_transition_takes_its_time_and_a_later_request_overtakes_it() {
    // Asked at 1 ms for 500, at 2 ms for 1000 instead; that holds from 3.5 ms on.
    let script = [Some((0, 500)), Some((0, 1000))];
    let (outcome, _) = run(&host(1, 1_500_000), HOG, &script);
    let outcome = outcome.unwrap();
    assert_eq!(outcome.makespan_ns, ns(3.5 + 20.0 - 7.0));
    assert_eq!(outcome.clusters[0].frequency_changes, 1);
}

#[test]
fn a_request_is_rounded_up_to_an_operating_point() {
    for (asked, given) in [(0, 500), (501, 1000), (1000, 1000), (9999, 2000)] {
        let (_, seen) = run(&host(1, 0), HOG, &[Some((0, asked))]);
        assert_eq!(seen[1], given, "{asked}");
    }
}

#[test]
fn a_cluster_that_does_not_exist_is_an_error() {
    let (outcome, _) = run(&host(1, 0), HOG, &[Some((3, 500))]);
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains("cluster 3, which does not exist"), "{error}");
}

#[test]
fn stated_times_are_those_of_the_highest_frequency() {
    let program =
        "[[threads]]\nname='a'\nbody=[{run_us=5e3,profile='unit'},{occupy_us=5e3,profile='unit'}]";
    let (outcome, _) = run(&host(1, 0), program, &[Some((0, 1000))]);
    // 1 ms, then 4 ms of work that takes twice as long; CPU time is CPU time.
    assert_eq!(outcome.unwrap().makespan_ns, ns(1.0 + 8.0 + 5.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The engine checks its invariants after every event; here also: work done is speed x time.
    #[test]
    fn random_changes_lose_no_instruction(
        script in prop::collection::vec(prop::option::of((Just(0u8), 0u32..2500)), 1..60),
        latency_ns in prop_oneof![Just(0u64), 1u64..3_000_000],
        threads in 1u32..6,
        cores in 1usize..4,
    ) {
        let program = format!(
            "[mutexes.m]\n[[threads]]\nname='t'\ncount={threads}\nbody=[{{loop=20,body=[\
             {{compute=1e6,profile='unit'}},{{lock='m'}},{{compute=2e5,profile='unit'}},{{unlock='m'}},\
             {{sleep_us=100}}]}}]"
        );
        let host = host(cores, latency_ns);
        let outcome = run(&host, &program, &script).0.unwrap();
        let residency = &outcome.clusters[0].residency;
        prop_assert_eq!(residency.iter().map(|(_, ns)| ns).sum::<u64>(), outcome.makespan_ns);
        let retired: u64 = outcome.threads.iter().map(|thread| thread.instructions).sum();
        prop_assert_eq!(retired, u64::from(threads) * 20 * 1_200_000);
        let most = residency.iter().map(|&(mhz, ns)| f64::from(mhz) * ns as f64 / 1000.0);
        prop_assert!(retired as f64 <= cores as f64 * most.sum::<f64>() + 1.0);
    }
}
