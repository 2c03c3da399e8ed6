//! A look changes nothing: whole outcomes are the same, byte for byte, if the engine brings its books up to date and
//! tells the policy more often, and if plans ask for what holds already.

mod common;

use std::sync::Arc;

use ampsched_model::{
    CoreId, CoreSet, IdleState, Memory, Noise, Ns, Opp, PowerLimit, PowerPoint, Profile, Remaining,
    Sharing, ThreadId, parse_noise,
};
use ampsched_policy::{
    Change, Event, FastPlane, Needs, Pick, Plan, Policy, REGISTRY, Rules, SPEED_ONE, Sched,
    Topology, View, build_policy,
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

/// Everything that a thread has already.
fn what_holds(view: &View, thread: ThreadId) -> [Change; 7] {
    let held = view.plan(thread);
    let cores: CoreSet =
        view.topology().cores().filter(|&core| view.may_run(thread, core)).collect();
    [
        Change::Affinity(cores),
        Change::Prefer(held.prefer),
        Change::Rank(held.rank),
        Change::Weight(held.weight),
        Change::Speed(held.speed.map(|speed| f64::from(speed) / f64::from(SPEED_ONE))),
        Change::Slice(held.slice_ns),
        Change::Hold(held.held),
    ]
}

impl Onlooker {
    /// Asks for everything that a thread has already, as far as the policy may ask for it.
    fn plan_what_holds(&self, view: &View, thread: ThreadId, plan: &mut Plan) {
        let mut judge = Sched::new(view.topology().clone(), self.inner.rules(view.topology()));
        judge.serve(&self.inner.needs()).unwrap();
        for change in what_holds(view, thread) {
            let mut one = Plan::new();
            one.set(thread, change.clone());
            if judge.check(&one).is_ok() {
                plan.set(thread, change);
            }
        }
    }
}

impl Policy for Onlooker {
    fn needs(&self) -> Needs {
        Needs { epoch_ns: Some(self.look_ns()), ..self.inner.needs() }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        self.inner.rules(topology)
    }

    fn fast_plane(&self, topology: &Topology, seed: u64) -> Option<Box<dyn FastPlane>> {
        self.inner.fast_plane(topology, seed)
    }

    fn caveat(&self, topology: &Topology, sensors: bool) -> Option<String> {
        self.inner.caveat(topology, sensors)
    }

    fn knows_siblings(&self) -> bool {
        self.inner.knows_siblings()
    }

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        if self.is_own(view.now_ns()) {
            self.inner.epoch(view, plan);
        } else if self.plans {
            view.threads().for_each(|thread| self.plan_what_holds(view, thread, plan));
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

fn run(host: &Host, text: &str, policy: Box<dyn Policy>, name: &str) -> Outcome {
    let mut workload = workload(&[text]);
    if host.machine.has_contention() {
        let program = Arc::get_mut(&mut workload.apps[0].program).unwrap();
        let own = &program.profiles[0];
        let missing =
            Profile { l1d_mpki: 90.0, l2_512k_mpki: 30.0, l2_2m_mpki: 9.0, ..own.clone() };
        program.profiles = vec![missing];
    }
    simulate(&host.machine, &workload, name, policy, &host.options).unwrap()
}

/// Policies whose outcomes differ between a plain run and one with an onlooker.
fn differing(plans: bool, nice: &str) -> Vec<&'static str> {
    differing_beside(None, plans, nice)
}

fn differing_beside(noise: Option<Arc<Noise>>, plans: bool, nice: &str) -> Vec<&'static str> {
    let mut host = Host::unequal(2, 2, 1.7);
    host.options.noise = noise;
    differing_on(&host, plans, nice)
}

fn differing_on(host: &Host, plans: bool, nice: &str) -> Vec<&'static str> {
    let text = MIX.replace("NICE", nice);
    let differs = |name: &&'static str| {
        let build = || build_policy(name, &[]).unwrap();
        let watched = Box::new(Onlooker { inner: build(), plans });
        let (plain, watched) = (run(host, &text, build(), name), run(host, &text, watched, name));
        format!("{plain:?}") != format!("{watched:?}")
    };
    REGISTRY.iter().map(|info| info.name).filter(differs).collect()
}

#[test]
fn looks_change_nothing() {
    assert_eq!(differing(false, ""), [""; 0]);
}

#[test]
fn looks_change_nothing_beside_noise() {
    let text = "[[sources]]\nname='i'\nkind='interrupt'\npause_us=[10,900]\nduration_us=[1,20]\n\
        [[sources]]\nname='k'\nkind='thread'\npause_us=[100,1900]\nduration_us=[3,400]";
    let noise = parse_noise("n.toml", text).unwrap();
    assert_eq!(differing_beside(Some(Arc::new(noise)), false, ""), [""; 0]);
}

#[test]
fn looks_change_nothing_where_threads_slow_each_other_down() {
    let mut host = Host::unequal(2, 2, 1.7);
    for cluster in &mut host.machine.clusters {
        cluster.params.memory_ns = 90.0;
        cluster.sharing = Sharing { l2: true, smt_speed: Some(0.6), ..Sharing::NONE };
    }
    host.machine.memory = Some(Memory { mb_s: 2000.0, channels: 2 });
    assert_eq!(differing_on(&host, false, ""), [""; 0]);
    assert_eq!(differing_on(&host, true, "nice=7\n"), [""; 0]);
}

#[test]
fn looks_change_nothing_where_clocks_follow_load_and_power() {
    let mut host = Host::unequal(2, 2, 1.7);
    for cluster in &mut host.machine.clusters {
        let mhz = cluster.max_mhz();
        let point = |core_mw| PowerPoint { volt: 1.0, core_mw, uncore_mw: 10.0 };
        cluster.opps = vec![Opp { mhz: mhz / 2, volt: 1.0 }, Opp { mhz, volt: 1.0 }];
        cluster.turbo_mhz = vec![mhz, mhz / 2];
        cluster.power.points = vec![point(300.0), point(1000.0)];
        let left = Remaining { constant_mw: 5.0, share: 1.0 };
        let (name, core, uncore) = ("wfi".to_owned(), left, left);
        cluster.power.idle_states =
            vec![IdleState { name, core, uncore, entry_ns: 0, exit_ns: 9000, min_residency_ns: 0 }];
        cluster.sharing = Sharing { smt_speed: Some(0.6), ..Sharing::NONE };
    }
    host.machine.costs.frequency_switch_ns = 70_000;
    host.machine.costs.idle_exit = true;
    host.machine.board.limit =
        Some(PowerLimit { pl1_mw: 700.0, pl2_mw: 1200.0, tau_ns: 2_000_000 });
    // It hears each thread's mean power since the last look, which varies with the clocks.
    let hears_power = ["smart-balance"];
    assert_eq!(differing_on(&host, false, ""), hears_power);
    assert_eq!(differing_on(&host, true, "nice=7\n"), hears_power);
}

#[test]
fn looks_change_nothing_for_unequal_weights() {
    assert_eq!(differing(false, "nice=7\n"), [""; 0]);
}

#[test]
fn plans_of_what_holds_change_nothing() {
    assert_eq!(differing(true, ""), [""; 0]);
}

#[test]
fn plans_of_what_holds_change_nothing_for_unequal_weights() {
    assert_eq!(differing(true, "nice=7\n"), [""; 0]);
}
