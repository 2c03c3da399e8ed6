//! Energy: what goes in comes out, whatever happens to frequencies.

mod common;

use ampsched_model::{
    ActivityLaw, ClusterId, ClusterPower, IdleState, Leakage, Opp, PowerPoint, Remaining, Sensor,
};
use ampsched_policy::{Needs, Plan, Policy, Rules, Topology, View, build_policy};
use ampsched_sim::{Outcome, simulate};
use common::{Host, ns, shipped_catalog, workload};
use proptest::prelude::*;

const MHZ: [u32; 4] = [500, 1000, 1500, 2000];

/// 1000 mW per core and 100 mW uncore at 2000 MHz, both in proportion to the frequency; 50 mW of
/// leakage per core; idle cores draw 20 mW, after 2 ms 5 mW and a tenth of the uncore's power.
fn power() -> ClusterPower {
    let point = |mhz: u32| {
        let share = f64::from(mhz) / 2000.0;
        PowerPoint { volt: 1.0, core_mw: 1000.0 * share, uncore_mw: 100.0 * share }
    };
    let idle = |name: &str, core_mw, uncore, min_residency_ns| IdleState {
        name: name.into(),
        core: Remaining { constant_mw: core_mw, share: 0.0 },
        uncore: Remaining { constant_mw: 0.0, share: uncore },
        entry_ns: 0,
        exit_ns: 0,
        min_residency_ns,
    };
    ClusterPower {
        points: MHZ.map(point).to_vec(),
        core_leakage: Leakage { reference_mw: 50.0, ..Leakage::default() },
        activity: ActivityLaw { stalled: 1.0, l2: 0.0 },
        idle_states: vec![idle("shallow", 20.0, 1.0, 0), idle("deep", 5.0, 0.1, 2_000_000)],
        sensor: Some(Sensor { resolution: 0.0, noise: 0.0, period_ns: 5_000_000, delay_ns: 0 }),
        ..ClusterPower::default()
    }
}

fn host(cores: usize) -> Host {
    let mut host = Host::symmetric(cores);
    host.machine.clusters[0].opps = MHZ.map(|mhz| Opp { mhz, volt: 1.0 }).to_vec();
    host.machine.clusters[0].power = power();
    host.options.energy = true;
    host
}

/// CFS with frequencies from a list, one per ms; notes what the power sensor shows.
struct Scripted {
    base: Box<dyn Policy>,
    script: Vec<Option<u32>>,
    next: usize,
    shown: std::sync::mpsc::Sender<f64>,
}

impl Policy for Scripted {
    fn needs(&self) -> Needs {
        Needs { epoch_ns: Some(1_000_000), frequencies: true, sensors: true, ..self.base.needs() }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        self.base.rules(topology)
    }

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        let _ = self.shown.send(view.power_mw(ClusterId(0)).or(-1.0));
        if let Some(Some(mhz)) = self.script.get(self.next) {
            plan.set_frequency(ClusterId(0), *mhz);
        }
        self.next += 1;
    }
}

fn run(host: &Host, program: &str, script: &[Option<u32>]) -> (Outcome, Vec<f64>) {
    let (shown, saw) = std::sync::mpsc::channel();
    let base = build_policy("cfs", &[]).unwrap();
    let policy = Box::new(Scripted { base, script: script.to_vec(), next: 0, shown });
    let outcome =
        simulate(&host.machine, &workload(&[program]), "scripted", policy, &host.options).unwrap();
    (outcome, saw.into_iter().collect())
}

fn is_close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

const HOG: &str = "[[threads]]\nname='hog'\nbody=[{compute=20e6,profile='unit'}]";

#[test]
fn energy_is_power_times_time() {
    // 1 ms at 2000 MHz, the remaining 18 million instructions at 1000.
    let (outcome, shown) = run(&host(2), HOG, &[Some(1000)]);
    assert_eq!(outcome.makespan_ns, ns(19.0));
    let energy = outcome.clusters[0].energy.unwrap();
    // mW x ms = uJ.
    assert!(is_close(energy.running_uj, 1050.0 + 18.0 * 550.0), "{energy:?}");
    assert!(is_close(energy.idle_uj, 2.0 * 20.0 + 17.0 * 5.0), "{energy:?}");
    assert!(is_close(energy.uncore_uj, 100.0 + 18.0 * 50.0), "{energy:?}");
    assert!(is_close(outcome.threads[0].energy_uj.unwrap(), energy.running_uj));
    // The sensor shows nothing at first, then the mean of its last period.
    assert_eq!(shown[3], -1.0);
    let first_mw = (1170.0 + 620.0 + 3.0 * 605.0) / 5.0;
    assert!(is_close(shown[5], first_mw), "{} {first_mw}", shown[5]);
}

#[test]
fn an_uncore_sleeps_when_all_its_cores_do() {
    let program = "[[threads]]\nname='t'\nbody=[{run_us=1000,profile='unit'},{sleep_us=10e3},{run_us=1000,profile='unit'}]";
    let (outcome, _) = run(&host(2), program, &[]);
    let energy = outcome.clusters[0].energy.unwrap();
    // Both run 1 ms, then core 0 sleeps for 10 ms: 2 ms shallow, 8 ms deep.
    assert!(is_close(energy.uncore_uj, 100.0 * (1.0 + 2.0 + 0.1 * 8.0 + 1.0)), "{energy:?}");
}

#[test]
fn nothing_is_accounted_unless_asked_for_and_nothing_invented() {
    let mut off = host(1);
    off.options.energy = false;
    let (outcome, _) = run(&off, HOG, &[]);
    assert_eq!((outcome.clusters[0].energy, outcome.threads[0].energy_uj), (None, None));
    let mut unknown = host(1);
    unknown.machine.clusters[0].power = ClusterPower::default();
    let error = unknown.try_run(HOG, "cfs").unwrap_err().to_string();
    assert!(error.contains("nothing is known of the power of cluster big"), "{error}");
}

/// Threads + idle cores + uncore = what sensors integrate.
fn assert_conserved(outcome: &Outcome) {
    let clusters: Vec<_> = outcome.clusters.iter().map(|c| c.energy.unwrap()).collect();
    for energy in &clusters {
        let parts = energy.running_uj + energy.idle_uj + energy.uncore_uj;
        assert!(is_close(parts, energy.sensor_uj), "{energy:?}");
    }
    let threads: f64 = outcome.threads.iter().map(|thread| thread.energy_uj.unwrap()).sum();
    let running: f64 = clusters.iter().map(|energy| energy.running_uj).sum();
    assert!(is_close(threads, running), "{threads} {running}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn energy_is_conserved_while_frequencies_change_at_random(
        script in prop::collection::vec(prop::option::of(0u32..2500), 0..60),
        latency_ns in prop_oneof![Just(0u64), 1u64..3_000_000],
        threads in 1u32..6,
        cores in 1usize..4,
    ) {
        let program = format!(
            "[mutexes.m]\n[[threads]]\nname='t'\ncount={threads}\nbody=[{{loop=20,body=[\
             {{compute=1e6,profile='unit'}},{{lock='m'}},{{compute=2e5,profile='unit'}},{{unlock='m'}},\
             {{sleep_us={{mean=900,dist='exponential'}}}}]}}]"
        );
        let mut host = host(cores);
        host.machine.costs.frequency_switch_ns = latency_ns;
        let (outcome, _) = run(&host, &program, &script);
        assert_conserved(&outcome);
    }
}

/// Real programs, leakage that follows temperature, throttling.
#[test]
fn energy_is_conserved_on_machines_that_heat_up() {
    let catalog = shipped_catalog();
    for name in catalog.list(ampsched_model::FileKind::Machine).into_iter().map(|(name, _)| name) {
        let machine = catalog.machine(&name).unwrap();
        if !machine.clusters.iter().all(|cluster| cluster.power.is_known()) {
            continue;
        }
        let host = Host { machine, options: Host::symmetric(1).options };
        let mut options = host.options.clone();
        options.energy = true;
        options.until_ns = Some(ns(300.0));
        let policy = build_policy("colab", &[]).unwrap();
        let mix = catalog.workload("sync-1").unwrap();
        let outcome = simulate(&host.machine, &mix, "colab", policy, &options).unwrap();
        assert_conserved(&outcome);
    }
}
