//! Speed-ups that policies get from a model and simulated counters.

mod common;

use std::sync::{Arc, Mutex};

use ampsched_model::{Ns, ThreadId};
use ampsched_policy::{
    Factor, FactorKind, Needs, Plan, Policy, Rules, Topology, View, build_policy,
};
use ampsched_predict::Models;
use ampsched_sim::{FactorSource, Predicted, simulate};

use common::{Host, workload};

/// At 2000 MHz three times the IPC, at 1000 MHz a slow-down of a quarter of it; the profile's IPC is 1.
const MODELS: &str = r#"{ "format": "ampsched-speedup-1", "name": "test", "models": [
  { "mhz": 2000, "predicts": "speedup", "capacity_ratio": 2.5,
    "features": [{ "count": "instructions", "per": "cycles" }], "regression": { "kind": "linear", "intercept": 0, "coefficients": [3] } },
  { "mhz": 1000, "predicts": "slowdown", "capacity_ratio": 2.5, "running_share": 0.5,
    "features": [{ "count": "instructions", "per": "cycles" }], "regression": { "kind": "linear", "intercept": 0, "coefficients": [0.25] } }
] }"#;

/// CFS that writes down what it is told about thread 0.
struct Probe {
    rules: Box<dyn Policy>,
    seen: Arc<Mutex<Vec<(Ns, Factor)>>>,
}

impl Policy for Probe {
    fn needs(&self) -> Needs {
        Needs { speedup: true, epoch_ns: Some(10_000_000), ..Needs::default() }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        self.rules.rules(topology)
    }

    fn epoch(&mut self, view: &View, _plan: &mut Plan) {
        let factor = view.factors(ThreadId(0)).speedup;
        self.seen.lock().unwrap().push((view.now_ns(), factor));
    }
}

fn source(counter_cv: f64, stale_ns: Ns) -> FactorSource {
    let models = Arc::new(Models::parse("m.json", MODELS).unwrap());
    FactorSource::Predicted(Predicted { models, counter_cv, stale_ns })
}

/// What thread 0 of a program is said to gain at each epoch.
fn seen(program: &str, factors: FactorSource) -> Vec<(Ns, Factor)> {
    let mut host = Host::unequal(1, 1, 2.0);
    host.options.factors = factors;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let probe = Probe { rules: build_policy("cfs", &[]).unwrap(), seen: seen.clone() };
    simulate(&host.machine, &workload(&[program]), "probe", Box::new(probe), &host.options)
        .unwrap();
    let seen = seen.lock().unwrap();
    seen.clone()
}

fn on_core(core: usize) -> String {
    format!("[[threads]]\nname='t'\ncores=[{core}]\nbody=[{{compute=60e6,profile='unit'}}]")
}

#[test]
fn each_kind_of_core_has_its_model() {
    let big = seen(&on_core(0), source(0.0, 0));
    assert!(big.len() >= 2);
    for (at_ns, factor) in big {
        assert_eq!((factor.value, factor.kind), (3.0, FactorKind::Predicted));
        assert_eq!(factor.at_ns, at_ns);
    }
    // The model of the little core needs events that take turns: its counts are noisy around 4.
    let little: Vec<f64> =
        seen(&on_core(1), source(0.0, 0)).iter().map(|(_, factor)| factor.value).collect();
    assert!(little.iter().all(|value| (1.0..16.0).contains(value)), "{little:?}");
    assert!(little.windows(2).any(|pair| pair[0] != pair[1]), "{little:?}");
}

#[test]
fn a_thread_that_has_not_run_gets_the_capacity_ratio_and_one_that_waits_keeps_its_value() {
    let late = "[[threads]]\nname='t'\ncores=[0]\nbody=[{sleep_us=25e3},{compute=20e6,profile='unit'},{sleep_us=50e3},{compute=2,profile='unit'}]";
    let values: Vec<f64> =
        seen(late, source(0.0, 0)).iter().map(|(_, factor)| factor.value).collect();
    assert_eq!(values[..4], [2.5, 2.5, 3.0, 3.0]);
    assert!(values[4..].iter().all(|value| *value == 3.0), "{values:?}");
}

#[test]
fn stale_predictions_are_kept() {
    let factors = seen(&on_core(0), source(0.1, 20_000_000));
    let times: Vec<Ns> = factors.iter().map(|(_, factor)| factor.at_ns / 1_000_000).collect();
    assert_eq!(times, [10, 10, 30]);
    let fresh = seen(&on_core(0), source(0.1, 0));
    assert_ne!(fresh[0].1.value, fresh[1].1.value);
}
