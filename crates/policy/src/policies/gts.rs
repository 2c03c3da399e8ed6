//! ARM's global task scheduling: heavy threads on big cores, light ones on little cores.

use super::cfs::{self, CfsRules};
use crate::{
    Allocator, Balance, LoadBand, LoadFilter, LoadTracking, Needs, ParamInfo, Params, Policy,
    PolicyInfo, Prefer, Rules, Steal, StealFrom, Topology, nice_to_weight,
};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "gts",
    summary: "ARM's global task scheduling (HMP): heavy threads on big cores, light ones on little, by load",
    source: "the Linaro HMP patches for Linux 3.10, kernel/sched/fair.c; the baseline of Chronaki et al., JPDC 2018",
    documentation: "\
**Purpose.** All cores usable at once; threads that need much on big cores, the others where they cost little.

**When to use.** To compare with kernels for big.LITTLE before energy-aware scheduling; for loads of a few busy \
threads and many that mostly sleep. It needs tracked load only. Not where all threads are busy: then all look heavy, \
and gains do not matter.

**Algorithm.** A thread's load is the share of time in which it was runnable lately, 0 to 1024, halved every 32 ms. New threads count as fully loaded and \
start on the least loaded big core. A thread that wakes up on a little core goes to an idle big core if its load is at least `up`; one that wakes up on a \
big core goes to the least loaded little core if its load is below `down`; neither within `residency_us` of its last migration. An idle big core takes the heaviest thread that waits or runs on a little core and may go up, and \
looks every 4 ms. An idle little core takes, while no big core is idle, the lightest thread that waits for a big core and has run in at most `offload` of the time in which it was runnable. Within each kind CFS decides and balances; between \
the kinds it does not.

**Constants.** `up` = 700, `down` = 512, 4096 us (units of 1024 ns) and `offload` = 768 / 1024: the patches' defaults; vendors used 512 / 256, 700 / 500 and 350 / 150, too. Load: half-life 32 periods of 1.024 ms (PELT). \
`nice_max`: threads with a greater nice value stay on little cores (the patches' priority filter, off by default). 4 ms: one tick at 250 Hz, ours.

**Example.** A thread that wakes from a long sleep and runs on has a load above 512 after 32 ms and above 700 after 54 ms: then it goes up, if a big core is idle. 600 stays where it is; 511 goes down.

**Limits.** It does not see how much a thread gains on a big core, nor locks; all threads of a busy program look heavy. Load is a share of time, so that threads look heavier at low frequencies (the patches' \
frequency-invariant load is not built in). Residency counts from any migration, not only from those between kinds. Small-task packing is left out: it is off on boards that cannot switch single cores off. Cores that are neither of the slowest kind nor the fastest count as big.",
    params: &[
        ParamInfo::number("up", 700.0, 0.0, 1024.0, "load from which a thread goes up (HMP patches)"),
        ParamInfo::number(
            "down",
            512.0,
            0.0,
            1024.0,
            "load below which a thread goes down (HMP patches)",
        ),
        ParamInfo::number(
            "residency_us",
            4194.304,
            0.0,
            1_000_000.0,
            "least time between migrations (HMP patches: 4096 x 1024 ns)",
        ),
        ParamInfo::number(
            "offload",
            0.75,
            0.0,
            1.0,
            "share of runnable time run, up to which a thread is offloaded (HMP patches: 768 / 1024)",
        ),
        ParamInfo::number(
            "nice_max",
            19.0,
            -20.0,
            19.0,
            "threads with a greater nice value do not go up (HMP patches; 19 = off)",
        ),
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| Box::new(Gts::new(params)),
};

/// Global task scheduling.
struct Gts {
    cfs: CfsRules,
    band: LoadBand,
    /// In 1/1024.
    offload: u32,
}

impl Gts {
    fn new(params: &Params) -> Self {
        Self {
            cfs: CfsRules::new(params),
            band: LoadBand {
                up: params.number("up") as u32,
                down: params.number("down") as u32,
                min_resident_ns: params.us("residency_us"),
                min_weight: nice_to_weight(params.number("nice_max") as i32),
            },
            offload: (1024.0 * params.number("offload")) as u32,
        }
    }

    fn steal(&self) -> Vec<Steal> {
        let heavy = |from| Steal {
            who: Prefer::Big,
            load: LoadFilter::Heavy { band: self.band },
            ..Steal::any(from)
        };
        vec![
            Steal::any(StealFrom::OwnCluster),
            heavy(StealFrom::OtherClusters),
            heavy(StealFrom::RunningOnSlower),
            Steal {
                who: Prefer::Little,
                load: LoadFilter::Starved { max_served: self.offload },
                ..Steal::any(StealFrom::OtherClusters)
            },
        ]
    }
}

impl Policy for Gts {
    fn needs(&self) -> Needs {
        Needs { load_tracking: Some(LoadTracking::ByTime), ..Needs::default() }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        let rules = self.cfs.on(topology);
        let balance = rules.balance.map(|balance| Balance { within_kind: true, ..balance });
        Rules {
            allocator: Allocator::ByLoad { band: self.band },
            steal: self.steal(),
            // A core that idles must hear of threads that begin to starve elsewhere.
            kick_idle: true,
            balance,
            ..rules
        }
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::{AppId, CoreId, Ns, ThreadId};

    use super::*;
    use crate::testing::{build, topology};
    use crate::{EnqueueKind, Pick, RunState, Sched};

    const PERIOD: Ns = 1_048_576;
    const LATER: Ns = 4000 * PERIOD;

    /// Two little cores (0, 1) and two big ones (2, 3) under GTS, without threads.
    fn sched(params: &[(&str, f64)]) -> Sched {
        let topology = topology(&[(0, 2), (1, 2)]);
        let rules = build("gts", params).rules(&topology);
        let mut sched = Sched::new(topology, rules);
        sched.track_load(LoadTracking::ByTime);
        sched
    }

    /// A thread that has run on a core at the start and has slept since then.
    fn sleeper(sched: &mut Sched, core: u16, weight: u32) -> ThreadId {
        let thread = sched.add(AppId(0), weight, None);
        sched.enqueue(thread, CoreId(core), EnqueueKind::Fork, 0);
        sched.start(CoreId(core), thread, 0);
        sched.stop(CoreId(core), RunState::Blocked, 0);
        thread
    }

    /// It wakes up `LATER` on its core and runs for some periods; then it sleeps and wakes up at once.
    fn after_periods(sched: &mut Sched, thread: ThreadId, periods: u64) -> (Ns, CoreId) {
        let core = sched.thread(thread).core;
        let now_ns = LATER + periods * PERIOD;
        sched.enqueue(thread, core, EnqueueKind::Wake, LATER);
        sched.start(core, thread, LATER);
        sched.stop(core, RunState::Blocked, now_ns);
        (now_ns, sched.place_by_rules(thread, now_ns))
    }

    /// An endless thread that occupies a core.
    fn occupy(sched: &mut Sched, core: u16) {
        let thread = sched.add(AppId(0), 1024, None);
        sched.enqueue(thread, CoreId(core), EnqueueKind::Fork, 0);
        sched.start(CoreId(core), thread, 0);
    }

    #[test]
    fn new_threads_start_on_the_least_loaded_big_core() {
        let mut sched = sched(&[]);
        let places = [2, 3, 2].map(|expected| {
            let thread = sched.add(AppId(0), 1024, None);
            let core = sched.place_by_rules(thread, 0);
            sched.enqueue(thread, core, EnqueueKind::Fork, 0);
            (core.0, expected)
        });
        assert!(places.iter().all(|(core, expected)| core == expected), "{places:?}");
    }

    #[test]
    fn a_thread_goes_up_when_it_has_run_for_54_periods() {
        for (periods, expected) in [(31, 0), (53, 0), (54, 2), (75, 2)] {
            let mut sched = sched(&[]);
            let thread = sleeper(&mut sched, 0, 1024);
            let (now_ns, core) = after_periods(&mut sched, thread, periods);
            let load = sched.load_of(thread, now_ns);
            assert_eq!(core, CoreId(expected), "{periods} periods, load {load}");
            assert_eq!(load >= 700, expected == 2, "{periods} periods, load {load}");
        }
    }

    #[test]
    fn equality_goes_up_and_does_not_go_down() {
        let load = {
            let mut sched = sched(&[]);
            let thread = sleeper(&mut sched, 0, 1024);
            let (now_ns, _) = after_periods(&mut sched, thread, 40);
            sched.load_of(thread, now_ns)
        };
        for (from, param, value, expected) in [
            (0, "up", load, 2),
            (0, "up", load + 1, 0),
            (2, "down", load, 2),
            (2, "down", load + 1, 0),
        ] {
            let mut sched = sched(&[(param, f64::from(value))]);
            let thread = sleeper(&mut sched, from, 1024);
            let (_, core) = after_periods(&mut sched, thread, 40);
            assert_eq!(core, CoreId(expected), "from {from}, {param} = {value}, load {load}");
        }
    }

    #[test]
    fn without_an_idle_big_core_nobody_goes_up() {
        let mut sched = sched(&[]);
        let thread = sleeper(&mut sched, 0, 1024);
        occupy(&mut sched, 2);
        occupy(&mut sched, 3);
        assert_eq!(after_periods(&mut sched, thread, 100).1, CoreId(0));
    }

    #[test]
    fn between_the_thresholds_a_thread_stays_below_it_goes_down() {
        // 1 - 2^(-40 / 32) = 0.58 is 594; after 30 periods 0.478 is 489.
        for (periods, expected) in [(40, 2), (33, 2), (30, 0)] {
            let mut sched = sched(&[]);
            let thread = sleeper(&mut sched, 2, 1024);
            assert_eq!(after_periods(&mut sched, thread, periods).1, CoreId(expected), "{periods}");
        }
    }

    #[test]
    fn a_thread_stays_for_a_while_where_it_has_come_to() {
        for (residency_us, expected) in [(4194.304, 2), (0.0, 0)] {
            let mut sched = sched(&[("residency_us", residency_us)]);
            let thread = sleeper(&mut sched, 0, 1024);
            // It comes to a big core and sleeps again before its residency is over; it is light.
            sched.enqueue(thread, CoreId(2), EnqueueKind::Wake, LATER);
            sched.start(CoreId(2), thread, LATER);
            sched.stop(CoreId(2), RunState::Blocked, LATER + 2 * PERIOD);
            let place = |periods| sched.place_by_rules(thread, LATER + periods * PERIOD);
            assert_eq!(place(3), CoreId(expected), "{residency_us}");
            assert_eq!(place(4), CoreId(0), "4096 units are over");
        }
    }

    #[test]
    fn the_priority_filter_keeps_nice_threads_down() {
        let weight = nice_to_weight(5);
        let mut sched = sched(&[("nice_max", 4.0)]);
        let thread = sched.add(AppId(0), weight, None);
        assert_eq!(sched.place_by_rules(thread, 0), CoreId(0));
        sched.enqueue(thread, CoreId(2), EnqueueKind::Fork, 0);
        sched.start(CoreId(2), thread, 0);
        sched.stop(CoreId(2), RunState::Blocked, PERIOD);
        assert_eq!(sched.place_by_rules(thread, PERIOD), CoreId(0), "whatever its load");
    }

    #[test]
    fn an_idle_big_core_pulls_the_heaviest_and_looks_again() {
        let mut sched = sched(&[]);
        let (first, second) = (sleeper(&mut sched, 0, 1024), sleeper(&mut sched, 1, 1024));
        for (thread, core, periods) in [(first, 0, 0), (second, 1, 4)] {
            sched.enqueue(thread, CoreId(core), EnqueueKind::Wake, LATER + periods * PERIOD);
            sched.start(CoreId(core), thread, LATER + periods * PERIOD);
        }
        let pick = |periods| sched.pick_by_rules(CoreId(3), LATER + periods * PERIOD);
        let soon = Some(LATER + 50 * PERIOD + 4_000_000);
        assert_eq!(pick(50), Pick::Idle { recheck_ns: soon });
        assert_eq!(pick(55), Pick::Pull(first), "only this one is heavy");
        assert_eq!(pick(90), Pick::Pull(first), "the heavier one");
    }

    #[test]
    fn an_idle_little_core_takes_who_starves_on_a_big_one() {
        let mut sched = sched(&[]);
        occupy(&mut sched, 2);
        let waiting = sched.add(AppId(0), 1024, None);
        sched.enqueue(waiting, CoreId(2), EnqueueKind::Fork, 0);
        let pick = |sched: &Sched, periods| sched.pick_by_rules(CoreId(0), periods * PERIOD);
        assert!(matches!(pick(&sched, 20), Pick::Idle { .. }), "core 3 is idle");
        occupy(&mut sched, 3);
        // It began as if it had run all the time: 2^(-n / 32) of that is left, 0.75 after 13.3.
        assert!(matches!(pick(&sched, 13), Pick::Idle { recheck_ns: Some(_) }));
        assert_eq!(pick(&sched, 14), Pick::Run(waiting));
    }
}
