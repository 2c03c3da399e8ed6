//! Policies on a mirrored system: what they see is what was seen, what they decide comes out.

use ampsched_computer::{CoreMap, Domain};
use ampsched_live_driver::{Decision, Dilation, Driver, Facts, Observation};
use ampsched_model::{AppId, CoreId, CoreSet, Ns, ThreadId};
use ampsched_policy::{
    Activity, BalanceWhen, Change, CoreLoad, KeptLoad, Needs, PELT_PERIOD_NS, PELT_UNIT_NS, Pelt,
    Plan, Policy, Prefer, REGISTRY, Rules, RunState, ThreadLoad, Topology, View, build_policy,
};

const MS: Ns = 1_000_000;

/// Two fast cores (0, 1) and two slow ones (2, 3).
fn map() -> CoreMap {
    let domain = |class, first: usize| Domain {
        class,
        cpus: vec![first, first + 1],
        freqs_mhz: vec![500, 1000],
        cpufreq: Vec::new(),
        relative_speed: None,
        power: Vec::new(),
    };
    CoreMap::new(vec![domain(1, 0), domain(0, 2)])
}

fn driver(policy: &str, dilation: f64) -> Driver {
    let policy = build_policy(policy, &[]).unwrap();
    Driver::new(policy, map().topology(), Dilation::new(dilation).unwrap()).unwrap()
}

fn cores(set: &CoreSet) -> Vec<usize> {
    set.iter().map(CoreId::index).collect()
}

/// A thread that has run all the time on a core.
fn ran(thread: ThreadId, core: u16, ran_ns: Ns) -> Observation {
    Observation {
        thread,
        state: RunState::Running,
        core: CoreId(core),
        ran_ns,
        waited_ns: 0,
        instructions: 0,
        blame_ns: 0,
    }
}

/// Four hogs with these speed-ups, each on the core of its number, looked at every period.
struct Hogs {
    driver: Driver,
    threads: Vec<ThreadId>,
    period_ns: Ns,
    now_ns: Ns,
}

impl Hogs {
    fn new(policy: &str, dilation: f64, speedups: [f64; 4]) -> Self {
        let mut driver = driver(policy, dilation);
        let threads = (0..4).map(|app| driver.add(AppId(app), 1024, None, 0)).collect();
        let mut hogs = Self { period_ns: driver.look_period_ns(), driver, threads, now_ns: 0 };
        for (&thread, speedup) in hogs.threads.iter().zip(speedups) {
            hogs.driver.set_factors(thread, Facts::default().factors("", Some(speedup), 0));
        }
        hogs
    }

    fn pass(&mut self) -> Vec<Decision> {
        self.now_ns += self.period_ns;
        let seen = |(core, &thread): (usize, &ThreadId)| ran(thread, core as u16, self.period_ns);
        let seen: Vec<Observation> = self.threads.iter().enumerate().map(seen).collect();
        self.driver.look(&seen, self.now_ns);
        self.driver.epoch().unwrap()
    }
}

#[test]
fn hsp_gives_fast_cores_to_those_who_gain_most() {
    let mut hogs = Hogs::new("hsp", 1.0, [1.1, 2.0, 3.0, 1.2]);
    assert_eq!(hogs.period_ns, 10 * MS);
    let decisions = hogs.pass();
    let moved =
        |kind| move |thread: usize| Decision::Thread(hogs_thread(thread), Change::Move(kind));
    let (down, up) = (moved(Prefer::Little), moved(Prefer::Big));
    assert_eq!(decisions, [down(3), down(0), up(2), up(1)]);
    assert_eq!(cores(&hogs.driver.cores_for(hogs.threads[2])), [0, 1]);
    assert_eq!(cores(&hogs.driver.cores_for(hogs.threads[0])), [2, 3]);
    assert_eq!(hogs.driver.epochs(), 1);
}

fn hogs_thread(number: usize) -> ThreadId {
    ThreadId::from(number)
}

#[test]
fn what_was_seen_is_what_the_policy_sees() {
    let mut hogs = Hogs::new("hsp", 1.0, [1.0; 4]);
    for _ in 0..5 {
        hogs.pass();
    }
    let stats = hogs.driver.sched().stats(hogs.threads[3]);
    assert_eq!(stats.run_ns, [50 * MS, 0, 0, 0]);
    assert_eq!(hogs.driver.sched().stats(hogs.threads[0]).run_ns, [0, 50 * MS, 0, 0]);
    assert_eq!(hogs.driver.sched().core(CoreId(1)).busy_ns, 50 * MS);
    let blocked = Observation {
        state: RunState::Blocked,
        waited_ns: 3 * MS,
        blame_ns: MS,
        ..ran(hogs.threads[0], 0, 5 * MS)
    };
    hogs.driver.look(&[blocked], 60 * MS);
    let stats = hogs.driver.sched().stats(hogs.threads[0]);
    assert_eq!((stats.run_ns[1], stats.ready_ns), (55 * MS, 3 * MS));
    assert_eq!(hogs.driver.sched().blame_ns(hogs.threads[0]), MS);
    assert_eq!(hogs.driver.sched().thread(hogs.threads[0]).state, RunState::Blocked);
}

#[test]
fn a_thread_that_ends_is_gone() {
    let mut hogs = Hogs::new("hsp", 1.0, [1.1, 2.0, 3.0, 1.2]);
    hogs.pass();
    let ended = Observation { state: RunState::Exited, ..ran(hogs.threads[2], 2, 4 * MS) };
    hogs.driver.look(&[ended], 20 * MS);
    assert_eq!(hogs.driver.sched().stats(hogs.threads[2]).run_ns_total(), 14 * MS);
    assert_eq!(hogs.driver.sched().live_threads().count(), 3);
    assert!(!hogs.driver.epoch().unwrap().is_empty(), "its core goes to another");
}

#[test]
fn dilated_policies_decide_the_same_later() {
    let mut real = Hogs::new("prop-sp", 1.0, [1.1, 2.0, 3.0, 1.2]);
    let mut slow = Hogs::new("prop-sp", 8.0, [1.1, 2.0, 3.0, 1.2]);
    assert_eq!(slow.period_ns, 8 * real.period_ns);
    for _ in 0..100 {
        assert_eq!(real.pass(), slow.pass());
    }
    assert_eq!(
        real.driver.sched().stats(real.threads[0]),
        slow.driver.sched().stats(slow.threads[0]),
        "times are the policy's"
    );
}

#[test]
fn gts_moves_by_load() {
    let mut driver = driver("gts", 1.0);
    let light = driver.add(AppId(0), 1024, None, 0);
    assert_eq!(cores(&driver.cores_for(light)), [0, 1, 2, 3]);
    let new = driver.epoch().unwrap();
    assert_eq!(
        new,
        [Decision::Thread(light, Change::Move(Prefer::Big))],
        "new threads start on big"
    );
    // It runs a tenth of the time: below 512 / 1024 it goes down.
    let mut core = 0;
    for look in 1..=20 {
        let seen = Observation { state: RunState::Blocked, ..ran(light, core, MS) };
        driver.look(&[seen], look * 10 * MS);
        for decision in driver.epoch().unwrap() {
            assert_eq!(decision, Decision::Thread(light, Change::Move(Prefer::Little)));
            core = 2;
        }
    }
    assert_eq!(core, 2, "it went down");
    // It becomes a hog: at 700 / 1024 it goes up again.
    for look in 21..=40 {
        driver.look(&[ran(light, core, 10 * MS)], look * 10 * MS);
        for decision in driver.epoch().unwrap() {
            assert_eq!(decision, Decision::Thread(light, Change::Move(Prefer::Big)));
            core = 0;
        }
    }
    assert_eq!(core, 0, "it went up");
}

#[test]
fn a_back_end_that_executes_rules_tells_the_loads_that_it_tracks() {
    let mut driver = driver("gts", 1.0);
    driver.leave_rules_to_back_end();
    let thread = driver.add(AppId(0), 1024, None, 0);
    assert_eq!(driver.epoch().unwrap(), [], "new threads are the back end's business");
    let now_ns = 10 * MS;
    driver.look(&[ran(thread, 0, now_ns)], now_ns);
    // At the beginning of a period a sum of 46718 is one without end; 1024 x 31937 / 46718 is 700.
    let kept = KeptLoad {
        core: CoreId(0),
        sums: Pelt::of_sums(0, 31_937, 0, 5 * 46_718),
        updated_ns: 7,
        done: Activity::ASLEEP,
        estimate: 6,
        unit_ns: PELT_UNIT_NS,
    };
    driver.set_load(thread, Some(kept));
    driver.set_core_load(CoreId(0), CoreLoad { util: 9, boosted: 10 }, 7);
    assert_eq!(driver.epoch().unwrap(), [], "and so are heavy ones");
    let (sched, core) = (driver.sched(), CoreId(0));
    assert_eq!([sched.load_of(thread, now_ns), sched.util_of(thread, now_ns)], [700, 6]);
    assert_eq!(
        [sched.core_util(core, now_ns), sched.core_util_boosted(core, now_ns)],
        [9, 10],
        "not what the mirror would have tracked"
    );
    assert_eq!([0, 1].map(|core| sched.core_util_without(CoreId(core), thread, now_ns)), [3, 0]);
    // Half of it is left after 32 periods of its core's time, of which nobody has to tell but the core: a sum of
    // 15968, and 1024 x 15968 / 46718 is a little less than 350.
    driver.set_core_load(core, CoreLoad { util: 9, boosted: 10 }, 7 + 32 * PELT_PERIOD_NS);
    let load = driver.sched().thread_load(thread, now_ns);
    assert_eq!(load, Some(ThreadLoad { load: 349, running: 2, util: 6 }));
}

#[test]
fn hfee_holds_programs_and_sets_the_clock() {
    let mut driver = driver("hfee", 1.0);
    let threads: Vec<ThreadId> = (0..5).map(|app| driver.add(AppId(app), 1024, None, 0)).collect();
    assert_eq!(driver.look_period_ns(), 100 * MS, "new threads are found between epochs");
    let mut decisions = Vec::new();
    for look in 1..=10 {
        let seen = |(core, &thread): (usize, &ThreadId)| ran(thread, core as u16 % 4, 80 * MS);
        let seen: Vec<Observation> = threads.iter().enumerate().map(seen).collect();
        driver.look(&seen, look * 100 * MS);
        decisions.extend(driver.epoch().unwrap());
    }
    let held = decisions.iter().filter(|d| matches!(d, Decision::Thread(_, Change::Hold(true))));
    assert_eq!(held.count(), 1, "four cores, five programs");
    assert!(decisions.iter().any(|d| matches!(d, Decision::Frequency(..))));
}

/// A computer without cpufreq, power, heat and counters is what policies meet live, if the user insists.
#[test]
fn no_policy_fails_where_little_is_known() {
    let domain = |class, first: usize| Domain {
        class,
        cpus: vec![first, first + 1],
        freqs_mhz: Vec::new(),
        cpufreq: Vec::new(),
        relative_speed: None,
        power: Vec::new(),
    };
    let machines =
        [vec![domain(1, 0), domain(0, 2)], vec![domain(0, 0)], vec![domain(0, 0), domain(2, 2)]];
    for info in REGISTRY {
        for domains in &machines {
            let map = CoreMap::new(domains.clone());
            let policy = build_policy(info.name, &[]).unwrap();
            let mut driver = Driver::new(policy, map.topology(), Dilation::default()).unwrap();
            let threads: Vec<ThreadId> =
                (0..5).map(|app| driver.add(AppId(app), 1024, None, 0)).collect();
            let period_ns = driver.look_period_ns();
            for look in 1..=30 {
                let seen = |(number, &thread): (usize, &ThreadId)| {
                    let core = (number + look as usize) % map.topology().core_count();
                    let state = if number == 4 { RunState::Blocked } else { RunState::Running };
                    Observation { state, ..ran(thread, core as u16, period_ns / 2) }
                };
                let seen: Vec<Observation> = threads.iter().enumerate().map(seen).collect();
                driver.look(&seen, look * period_ns);
                driver.epoch().unwrap();
            }
        }
    }
}

#[test]
fn missed_epochs_are_not_made_up_for() {
    let mut hogs = Hogs::new("hsp", 1.0, [1.0; 4]);
    hogs.now_ns = 95 * MS;
    hogs.pass();
    assert_eq!(hogs.driver.epochs(), 1);
    hogs.driver.look(&[], 109 * MS);
    hogs.driver.epoch().unwrap();
    assert_eq!(hogs.driver.epochs(), 1, "the next is due at 110 ms");
    hogs.driver.look(&[], 110 * MS);
    hogs.driver.epoch().unwrap();
    assert_eq!(hogs.driver.epochs(), 2);
}

/// CFS whose plans nobody reads.
struct Prefers;

impl Policy for Prefers {
    fn needs(&self) -> Needs {
        Needs { epoch_ns: Some(MS), ..Needs::default() }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        build_policy("cfs", &[]).unwrap().rules(topology)
    }

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        view.threads().for_each(|thread| plan.set(thread, Change::Prefer(Prefer::Big)));
    }
}

#[test]
fn a_change_that_no_rule_reads_is_refused_as_in_simulation() {
    let mut driver = Driver::new(Box::new(Prefers), map().topology(), Dilation::default()).unwrap();
    let thread = driver.add(AppId(0), 1024, None, 0);
    driver.look(&[ran(thread, 0, MS)], MS);
    let refusal = driver.epoch().unwrap_err().to_string();
    assert!(
        refusal.starts_with("asks for `prefer`, which none of its rules reads; rules that would: "),
        "{refusal}"
    );
    assert!(refusal.contains("allocator = least_loaded_in_class"), "{refusal}");
}

/// A policy that balances only while a core is over-utilised, and says nothing of load.
struct Saves;

impl Policy for Saves {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn rules(&self, _topology: &Topology) -> Rules {
        Rules { balance_when: BalanceWhen::OverUtilised, ..Rules::default() }
    }
}

#[test]
fn a_rule_that_reads_load_which_nobody_tracks_is_refused_as_in_simulation() {
    let made = Driver::new(Box::new(Saves), map().topology(), Dilation::default());
    let refusal = made.err().unwrap().to_string();
    assert!(
        refusal.starts_with("has the rule balance_when = over_utilised, which reads"),
        "{refusal}"
    );
}

#[test]
fn a_thread_that_leaves_its_application_is_no_trouble_to_who_counted_it_there() {
    let mut driver = driver("static", 1.0);
    let thread = driver.add(AppId(0), 1024, None, 0);
    driver.set_app(thread, AppId(7));
    let ended = Observation { state: RunState::Exited, ..ran(thread, 0, 0) };
    driver.look(&[ended], driver.look_period_ns());
    driver.epoch().unwrap();
}
