//! A look changes nothing: whole outcomes are the same, byte for byte, if the engine brings its books up to date and
//! tells the policy more often, and if plans ask for what holds already.

mod common;

use ampsched_model::{CoreId, CoreSet, Ns, ThreadId};
use ampsched_policy::{
    Change, Event, Needs, Pick, Plan, Policy, REGISTRY, Rules, SPEED_ONE, Topology, View,
    build_policy,
};
use ampsched_sim::{Outcome, simulate};
use common::{Host, workload};

/// How often is looked at least.
const LOOK_NS: Ns = 1_000_000;

/// A policy that is called more often than it asks for and does nothing then, or asks for what holds already.
struct Onlooker {
    inner: Box<dyn Policy>,
    plans: bool,
}

impl Onlooker {
    fn look_ns(&self) -> Ns {
        match self.inner.needs().epoch_ns {
            // A divisor, so that the policy's own epochs stay when they are.
            Some(epoch_ns) => (epoch_ns.div_ceil(LOOK_NS)..)
                .find(|n| epoch_ns % n == 0)
                .map_or(epoch_ns, |n| epoch_ns / n),
            None => LOOK_NS,
        }
    }

    fn is_own(&self, now_ns: Ns) -> bool {
        self.inner.needs().epoch_ns.is_some_and(|epoch_ns| now_ns % epoch_ns == 0)
    }
}

/// Asks for everything that a thread has already.
fn plan_what_holds(view: &View, thread: ThreadId, plan: &mut Plan) {
    let held = view.plan(thread);
    let cores: CoreSet =
        view.topology().cores().filter(|&core| view.may_run(thread, core)).collect();
    let speed = held.speed.map(|speed| f64::from(speed) / f64::from(SPEED_ONE));
    plan.set(thread, Change::Affinity(cores));
    plan.set(thread, Change::Prefer(held.prefer));
    plan.set(thread, Change::Rank(held.rank));
    plan.set(thread, Change::Weight(held.weight));
    plan.set(thread, Change::Speed(speed));
    plan.set(thread, Change::Slice(held.slice_ns));
    plan.set(thread, Change::Hold(held.held));
}

impl Policy for Onlooker {
    fn needs(&self) -> Needs {
        Needs { epoch_ns: Some(self.look_ns()), ..self.inner.needs() }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        self.inner.rules(topology)
    }

    fn caveat(&self, topology: &Topology, sensors: bool) -> Option<String> {
        self.inner.caveat(topology, sensors)
    }

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        if self.is_own(view.now_ns()) {
            self.inner.epoch(view, plan);
        } else if self.plans {
            view.threads().for_each(|thread| plan_what_holds(view, thread, plan));
        }
    }

    fn on_event(&mut self, view: &View, event: Event, plan: &mut Plan) {
        self.inner.on_event(view, event, plan);
    }

    fn place(&mut self, view: &View, thread: ThreadId) -> CoreId {
        self.inner.place(view, thread)
    }

    fn pick(&mut self, view: &View, core: CoreId) -> Pick {
        self.inner.pick(view, core)
    }

    fn slice(&mut self, view: &View, thread: ThreadId, core: CoreId) -> Ns {
        self.inner.slice(view, thread, core)
    }

    fn preempts(&mut self, view: &View, woken: ThreadId, running: ThreadId, core: CoreId) -> bool {
        self.inner.preempts(view, woken, running, core)
    }
}

/// Locks, a barrier, sleeps, a device, amounts that no slice divides, threads of several weights.
const MIX: &str = "\
[mutexes.m]\n[barriers.b]\n[devices.d]\n\
[[threads]]\nname='worker'\ncount=4\nbody=[{loop=40,body=[{compute={low=1e5,high=9e6},profile='unit'},\
{lock='m'},{compute={low=1e4,high=9e5},profile='unit'},{unlock='m'},{barrier='b'}]}]\n\
[[threads]]\nname='sleeper'\ncount=3\nNICEbody=[{loop=60,body=[{compute={low=1e5,high=4e6},profile='unit'},\
{sleep_us={low=50,high=5000}}]}]\n\
[[threads]]\nname='reader'\ncount=2\nbody=[{loop=50,body=[{io_us={low=100,high=900},device='d'},\
{compute={low=1e5,high=3e6},profile='unit'}]}]\n\
[[threads]]\nname='hog'\nNICEbody=[{compute=3.1e8,profile='unit'}]\n";

/// Policies for which looks still matter, because virtual time is rounded at each charge: by ratings, by weights that
/// they set themselves, by the weights of threads.
const ROUNDED: &[&str] = &["a-dwrr", "hpm"];
const ROUNDED_BY_WEIGHT: &[&str] =
    &["a-dwrr", "amps", "cluster-switching", "equal-progress", "hpm", "iks", "static", "wash-orig"];

/// Those for which plans matter besides, because idle cores are woken whatever a plan says.
const KICKED: &[&str] = &["colab", "gts"];

fn run(host: &Host, text: &str, policy: Box<dyn Policy>, name: &str) -> Outcome {
    simulate(&host.machine, &workload(&[text]), name, policy, &host.options).unwrap()
}

fn differing(plans: bool, nice: &str) -> Vec<&'static str> {
    let text = MIX.replace("NICE", nice);
    let host = Host::unequal(2, 2, 1.7);
    let differs = |name: &&'static str| {
        let build = || build_policy(name, &[]).unwrap();
        let watched = Box::new(Onlooker { inner: build(), plans });
        let (plain, watched) = (run(&host, &text, build(), name), run(&host, &text, watched, name));
        format!("{plain:?}") != format!("{watched:?}")
    };
    REGISTRY.iter().map(|info| info.name).filter(differs).collect()
}

/// Whether they differ is a property of today's rules; nobody else may.
fn expect(plans: bool, nice: &str, known: &[&[&str]]) {
    let mut known: Vec<&str> = known.concat();
    known.sort_unstable();
    assert_eq!(differing(plans, nice), known);
}

#[test]
fn looks_change_nothing() {
    expect(false, "", &[ROUNDED]);
}

#[test]
fn looks_change_nothing_for_unequal_weights() {
    expect(false, "nice=7\n", &[ROUNDED_BY_WEIGHT]);
}

#[test]
fn plans_of_what_holds_change_nothing() {
    expect(true, "", &[ROUNDED, KICKED]);
}

#[test]
fn plans_of_what_holds_change_nothing_for_unequal_weights() {
    expect(true, "nice=7\n", &[ROUNDED_BY_WEIGHT, KICKED]);
}
