//! What the system does beside the programs, and that policies and results know nothing of it.

mod common;

use std::sync::{Arc, Mutex};

use ampsched_model::{CoreId, Noise, NoiseKind, Ns, ThreadId, parse_noise};
use ampsched_policy::{
    Event, Events, Needs, Plan, Policy, REGISTRY, Rules, Topology, View, build_policy,
};
use ampsched_sim::{
    Decision, GovernorSpec, Options, Outcome, Trace, TraceThread, TurnEnd, simulate, simulate_with,
};
use common::{Host, ns, shipped_catalog, workload};

const HOG: &str = "[[threads]]\nname='hog'\nbody=[{run_us=1e6,profile='unit'}]";

fn noise(sources: &str) -> Option<Arc<Noise>> {
    Some(Arc::new(parse_noise("test.toml", sources).unwrap_or_else(|error| panic!("{error}"))))
}

/// One source on every core: so often, in us, for so long.
fn of_kind(kind: &str, pause_us: f64, duration_us: f64) -> Option<Arc<Noise>> {
    noise(&format!(
        "[[sources]]\nname='it'\nkind='{kind}'\npause_us=[{pause_us},{pause_us}]\n\
         duration_us=[{duration_us},{duration_us}]"
    ))
}

/// Both kinds, as often as a very busy system has them.
fn busy() -> Option<Arc<Noise>> {
    noise(
        "[[sources]]\nname='timer'\nkind='interrupt'\npause_us=[10,300,900]\nduration_us=[1,3,20]\n\
         [[sources]]\nname='disk'\nkind='interrupt'\ncore=1\npause_us=[50,400]\nduration_us=[2,9]\n\
         [[sources]]\nname='kworker'\nkind='thread'\npause_us=[100,700,3000]\nduration_us=[3,20,400]\n\
         [[sources]]\nname='ksoftirqd'\nkind='thread'\npause_us=[1000,9000]\nduration_us=[50,4000]",
    )
}

fn with(mut host: Host, noise: Option<Arc<Noise>>) -> Host {
    host.options.noise = noise;
    host
}

#[test]
fn an_interrupt_delays_the_thread_that_runs() {
    let outcome = with(Host::symmetric(1), of_kind("interrupt", 990.0, 10.0)).run(HOG, "cfs");
    let core = &outcome.cores[0];
    assert_eq!(core.overhead_ns, core.interrupted_ns);
    assert_eq!((core.noise_ns, core.idle_ns), (0, 0));
    // A hundredth of the time, up to one event more or less.
    assert!(core.interrupted_ns.abs_diff(ns(1000.0) / 99) < 20_000, "{}", core.interrupted_ns);
    assert_eq!(outcome.makespan_ns, ns(1000.0) + core.interrupted_ns);
    assert_eq!(outcome.threads[0].involuntary, 0);
    assert_eq!(outcome.noise.as_deref(), Some("test"));
}

#[test]
fn a_kernel_thread_takes_the_core_and_gives_it_back() {
    let outcome = with(Host::symmetric(1), of_kind("thread", 990.0, 10.0)).run(HOG, "cfs");
    let (core, hog) = (&outcome.cores[0], &outcome.threads[0]);
    assert_eq!((core.busy_ns, core.idle_ns), (ns(1000.0), 0));
    assert!(core.noise_ns.abs_diff(ns(1000.0) / 99) < 20_000, "{}", core.noise_ns);
    assert_eq!(outcome.makespan_ns, core.busy_ns + core.noise_ns);
    assert_eq!((hog.big_ns(), hog.ready_ns), (ns(1000.0), core.noise_ns));
    assert_eq!(hog.involuntary, outcome.counts.noise);
    assert_eq!((outcome.threads.len(), outcome.apps.len()), (1, 1));
}

#[test]
fn slower_cores_take_longer() {
    let noise_of = |host: Host| with(host, of_kind("thread", 1000.0, 100.0)).run(HOG, "cfs");
    let outcome = noise_of(Host::unequal(1, 1, 4.0));
    // The hog is on the big core, and the little one would idle.
    let shares = outcome.cores.iter().map(|core| core.noise_ns as f64 / outcome.makespan_ns as f64);
    let shares: Vec<f64> = shares.collect();
    assert!((shares[0] - 100.0 / 1100.0).abs() < 0.002, "{shares:?}");
    assert!((shares[1] - 400.0 / 1400.0).abs() < 0.002, "{shares:?}");
}

#[test]
fn a_source_of_one_core_stays_there() {
    let source =
        "[[sources]]\nname='it'\nkind='interrupt'\ncore=5\npause_us=[900,900]\nduration_us=[9,9]";
    let outcome = with(Host::symmetric(4), noise(source)).run(HOG, "cfs");
    let noisy = outcome.cores.iter().map(|core| core.noise_ns + core.interrupted_ns > 0);
    assert_eq!(noisy.collect::<Vec<_>>(), [false, true, false, false]);
}

#[test]
fn who_waits_behind_a_kernel_thread_is_taken_by_an_idle_core() {
    // A kernel thread has core 0 for 50 ms, in vain: core 1 is idle and takes the thread.
    let source = "[[sources]]\nname='it'\nkind='thread'\ncore=0\npause_us=[60e3,60e3]\nduration_us=[50e3,50e3]";
    let host = with(Host::symmetric(2), noise(source));
    for policy in ["colab", "gts", "cfs"] {
        let hog = &host.run(HOG, policy).threads[0];
        assert!(hog.migrations > 0 && hog.ready_ns < ns(9.0), "{policy}: {hog:?}");
    }
}

#[test]
fn who_wakes_goes_where_no_kernel_thread_runs() {
    let program = "[[threads]]\nname='napper'\nbody=[{loop=400,body=[{run_us=500,profile='unit'},{sleep_us=2000}]}]";
    let source =
        "[[sources]]\nname='it'\nkind='thread'\ncore=0\npause_us=[4e3,5e3]\nduration_us=[2e3,2e3]";
    let napper = |noise| with(Host::symmetric(2), noise).run(program, "cfs").threads[0].clone();
    assert_eq!(napper(None).migrations, 0);
    let disturbed = napper(noise(source));
    assert!(disturbed.migrations > 0, "{disturbed:?}");
    assert!(disturbed.ready_ns < ns(8.0), "{disturbed:?}");
}

/// What does not depend on the order of execution.
fn work(outcome: &Outcome) -> Vec<(u16, String, u64)> {
    let threads = outcome.threads.iter();
    threads.map(|thread| (thread.app, thread.name.clone(), thread.instructions)).collect()
}

#[test]
fn all_policies_do_the_same_work_beside_noise_and_their_books_are_right() {
    let program = "[mutexes.m]\n[barriers.all]\n[devices.d]\n\
        [[threads]]\nname='group'\ncount=5\nbody=[{loop=15,body=[{compute={mean=900e3,cv=0.8},profile='unit'},\
        {lock='m'},{compute=100e3,profile='unit'},{unlock='m'},{io_us=200,device='d'},{barrier='all'}]}]\n\
        [[threads]]\nname='hog'\ncount=2\nbody=[{compute=20e6,profile='unit'}]";
    for info in REGISTRY {
        let quiet = Host::unequal(2, 2, 2.5).run(program, info.name);
        let host = with(Host::unequal(2, 2, 2.5), busy());
        let noisy = host.run(program, info.name);
        assert_eq!(work(&quiet), work(&noisy), "{}", info.name);
        assert_eq!(noisy, host.run(program, info.name), "{}: not repeatable", info.name);
        for core in &noisy.cores {
            assert_eq!(
                core.busy_ns + core.idle_ns + core.noise_ns,
                noisy.makespan_ns,
                "{}",
                info.name
            );
        }
        assert!(noisy.counts.noise > 0 && quiet.counts.noise == 0);
        assert_ne!(noisy, host.with_seed(2).run(program, info.name));
    }
}

#[test]
fn shipped_mixes_end_beside_noise_under_all_policies() {
    let catalog = shipped_catalog();
    let (machine, mix) = (catalog.machine("2B4S").unwrap(), catalog.workload("comm-1").unwrap());
    let options = Options { noise: busy(), check: true, ..Options::default() };
    for info in REGISTRY {
        let policy = build_policy(info.name, &[]).unwrap();
        let outcome = simulate(&machine, &mix, info.name, policy, &options);
        let outcome = outcome.unwrap_or_else(|error| panic!("{}: {error}", info.name));
        assert_eq!(outcome.apps.len(), mix.apps.len());
    }
}

/// Writes down every thread that it sees, and the cores that it takes for idle.
struct Spy {
    seen: Arc<Mutex<Vec<ThreadId>>>,
    idle: Arc<Mutex<u32>>,
}

impl Spy {
    fn look(&self, view: &View) {
        let mut seen = self.seen.lock().unwrap();
        seen.extend(view.threads().chain(view.recent().iter().copied()));
        for core in view.topology().cores() {
            seen.extend(view.running(core));
            seen.extend(view.queued(core));
            *self.idle.lock().unwrap() += u32::from(view.is_idle(core));
        }
        assert!(view.live_count() <= 2 && view.runnable().count() <= 2);
    }
}

impl Policy for Spy {
    fn needs(&self) -> Needs {
        let events = Events { dispatch: true, blocking: true, lifecycle: true };
        Needs { epoch_ns: Some(100_000), events, ..Needs::default() }
    }

    fn rules(&self, _topology: &Topology) -> Rules {
        Rules::default()
    }

    fn epoch(&mut self, view: &View, _plan: &mut Plan) {
        self.look(view);
    }

    fn on_event(&mut self, view: &View, event: Event, _plan: &mut Plan) {
        let (Event::Added(thread)
        | Event::Exited(thread)
        | Event::Woken(thread, _)
        | Event::Blocked(thread)
        | Event::Started(thread, _)
        | Event::Stopped(thread, _)) = event;
        self.seen.lock().unwrap().push(thread);
        self.look(view);
    }
}

#[test]
fn policies_see_threads_of_programs_only() {
    let seen = Arc::<Mutex<Vec<ThreadId>>>::default();
    let spy = Spy { seen: seen.clone(), idle: Arc::default() };
    let host = with(Host::symmetric(2), busy());
    let mix = workload(&[HOG, HOG]);
    let outcome = simulate(&host.machine, &mix, "spy", Box::new(spy), &host.options).unwrap();
    assert_eq!(outcome.threads.len(), 2);
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [ThreadId(0), ThreadId(1)]);
}

/// What the trace hears of the system.
#[derive(Default)]
struct Heard {
    interrupts: u64,
    kernel_threads: u64,
    taken: Vec<Option<Ns>>,
    taken_ns: Ns,
    because: Vec<&'static str>,
}

impl Trace for Heard {
    fn thread(&mut self, _thread: TraceThread) {}
    fn run(&mut self, core: CoreId, _: ThreadId, _: Option<&ampsched_policy::Reason>, _: Ns) {
        assert!(self.taken.get(core.index()).is_none_or(Option::is_none), "a kernel thread has it");
    }
    fn stop(&mut self, _: CoreId, _: ThreadId, end: TurnEnd, _: Ns) {
        self.because.extend(end.why.map(|why| why.because));
    }
    fn wake(&mut self, _: Option<ThreadId>, _: ThreadId, _: Option<CoreId>, _: Ns) {}
    fn decided(&mut self, _: ThreadId, _: Decision, _: Option<&ampsched_policy::Reason>, _: Ns) {}
    fn frequency(&mut self, _: ampsched_model::ClusterId, _: u32, _: Ns) {}
    fn queue_len(&mut self, _: CoreId, _: usize, _: Ns) {}
    fn noise(&mut self, core: CoreId, kind: NoiseKind, name: &str, _: Ns, at_ns: Ns) {
        self.taken.resize(8, None);
        match kind {
            NoiseKind::Interrupt => self.interrupts += 1,
            NoiseKind::Thread => {
                self.kernel_threads += 1;
                self.taken[core.index()].get_or_insert(at_ns);
            }
        }
        assert!(["timer", "disk", "kworker", "ksoftirqd"].contains(&name));
    }
    fn system_ends(&mut self, core: CoreId, at_ns: Ns) {
        self.taken_ns += at_ns - self.taken[core.index()].take().expect("it has the core");
    }
}

#[test]
fn a_trace_hears_of_it_and_changes_nothing() {
    let (host, mix) = (with(Host::symmetric(2), busy()), workload(&[HOG; 5]));
    // What nobody watches is done in fewer steps.
    for policy in ["cfs", "linux"] {
        let built = || build_policy(policy, &[]).unwrap();
        let mut heard = Heard::default();
        let (machine, options) = (&host.machine, &host.options);
        let traced =
            simulate_with(machine, &mix, policy, built(), options, Some(&mut heard)).unwrap();
        assert_eq!(traced, simulate(machine, &mix, policy, built(), options).unwrap());
        assert_eq!(heard.interrupts + heard.kernel_threads, traced.counts.noise);
        assert!(
            heard.kernel_threads > 100 && heard.because.contains(&"a kernel thread takes the core")
        );
        let noise_ns: Ns = traced.cores.iter().map(|core| core.noise_ns).sum();
        assert!(
            heard.taken_ns <= noise_ns && heard.taken_ns > noise_ns / 2,
            "{policy}: {} {noise_ns}",
            heard.taken_ns
        );
    }
}

#[test]
fn meters_and_governors_see_kernel_threads() {
    let catalog = shipped_catalog();
    let machine = catalog.machine("juno").unwrap();
    let nap = workload(&["[[threads]]\nname='nap'\nbody=[{sleep_us=400e3}]"]);
    let run = |noise: Option<Arc<Noise>>| {
        let governor = GovernorSpec { cluster: None, name: "ondemand".into(), params: Vec::new() };
        let options =
            Options { noise, energy: true, governors: vec![governor], ..Options::default() };
        let policy = build_policy("cfs", &[]).unwrap();
        simulate(&machine, &nap, "cfs", policy, &options).unwrap()
    };
    let used = |outcome: &Outcome| {
        let energy = outcome.clusters.iter().map(|cluster| cluster.energy.unwrap());
        energy.fold((0.0, 0.0), |sum, energy| {
            (sum.0 + energy.running_uj, sum.1 + energy.idle_uj + energy.uncore_uj)
        })
    };
    let (quiet, noisy) = (run(None), run(of_kind("thread", 2000.0, 500.0)));
    // The thread itself takes no time: kernel threads use what is used.
    assert!(
        used(&quiet).0 < 10.0 && used(&noisy).0 > 1000.0,
        "{:?} {:?}",
        used(&quiet),
        used(&noisy)
    );
    assert!(noisy.threads[0].energy_uj.unwrap() < 10.0);
    // Interrupts keep idle cores from the deeper states.
    let often = run(of_kind("interrupt", 100.0, 1.0));
    assert!(used(&often).1 > 1.05 * used(&quiet).1, "{:?} {:?}", used(&often), used(&quiet));
    let changes =
        |outcome: &Outcome| outcome.clusters.iter().map(|c| c.frequency_changes).sum::<u64>();
    let loaded = run(of_kind("thread", 100.0, 80.0));
    assert!(changes(&loaded) > changes(&quiet), "{} {}", changes(&loaded), changes(&quiet));
}
