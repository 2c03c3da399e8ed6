//! Properties of all governors, and governors together with load tracking.

use ampsched_model::Ns;
use proptest::prelude::*;

use super::testing::{Cluster, build, domain};
use super::{ClusterSample, CoreSample, GOVERNORS, Limits};
use crate::{Activity, PELT_PERIOD_NS, Pelt, PeltClock, core_util_boosted};

const MS: Ns = 1_000_000;
const MHZ: [u32; 13] = [200, 300, 400, 500, 600, 700, 800, 900, 1000, 1100, 1200, 1300, 1400];

/// What two cores do between two looks: busy percent, percent of waiting for devices, utilisation, and whether
/// a thread came back from a device.
#[derive(Clone, Debug)]
struct Step {
    us: u64,
    cores: [(u64, u64, u32, bool); 2],
    limits: (usize, usize),
}

fn core() -> impl Strategy<Value = (u64, u64, u32, bool)> {
    (0..=100_u64, 0..=100_u64, 0..=1024_u32, any::<bool>())
}

/// Steps with changing limits.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let limits = (0..MHZ.len(), 0..MHZ.len()).prop_map(|(a, b)| (a.min(b), a.max(b)));
    let us = prop_oneof![4 => 0..30_000_u64, 1 => 0..2_000_000_u64];
    let step =
        (us, [core(), core()], limits).prop_map(|(us, cores, limits)| Step { us, cores, limits });
    prop::collection::vec(step, 1..30)
}

/// The frequencies that a governor of two cores chooses in the course of some steps.
fn run(governor: &str, steps: &[Step]) -> Vec<u32> {
    let mut governor = build(governor, &domain(&MHZ, 2));
    let (mut now_ns, mut mhz, mut cores) = (0, 1400, [CoreSample::default(); 2]);
    let mut frequencies = Vec::new();
    for step in steps {
        now_ns += step.us * 1000;
        for (core, (busy, iowait, util, io_wakeup)) in cores.iter_mut().zip(step.cores) {
            core.busy_ns += step.us * 10 * busy;
            core.nice_ns += step.us * 10 * busy / 2;
            core.iowait_ns += step.us * 10 * iowait.min(100 - busy);
            (core.util, core.io_wakeup, core.quiet_ns) = (util, io_wakeup, step.us * 500);
        }
        let limits = Limits { min_mhz: MHZ[step.limits.0], max_mhz: MHZ[step.limits.1] };
        mhz = governor.next_mhz(&ClusterSample { now_ns, mhz, limits, cores: &cores });
        frequencies.push(mhz);
    }
    frequencies
}

/// Every governor with its defaults and with everything switched on.
fn variants() -> Vec<String> {
    let special = [
        "ondemand:powersave_bias=130:sampling_down_factor=4:ignore_nice_load=1:io_is_busy=1",
        "conservative:freq_step=1:sampling_down_factor=2:ignore_nice_load=1",
        "schedutil:invariant=0:rate_limit_us=500",
        "interactive:boost=1:hispeed_freq_mhz=850:io_is_busy=1",
        "interactive:target_load=60:target_load@500=90:target_load@900=30:above_hispeed_delay_us@900=80000",
        "userspace:mhz=777",
    ];
    GOVERNORS.iter().map(|info| info.name).chain(special).map(str::to_owned).collect()
}

proptest! {
    #[test]
    fn the_answer_is_always_an_allowed_frequency(steps in steps()) {
        for governor in variants() {
            for (mhz, step) in run(&governor, &steps).into_iter().zip(&steps) {
                let allowed = &MHZ[step.limits.0..=step.limits.1];
                prop_assert!(allowed.contains(&mhz), "{governor}: {mhz} with {allowed:?}");
            }
        }
    }

    #[test]
    fn equal_histories_give_equal_answers(steps in steps()) {
        for governor in variants() {
            prop_assert_eq!(run(&governor, &steps), run(&governor, &steps));
        }
    }

    #[test]
    fn more_load_never_gives_less(steps in steps(), more in (0..=100_u64, 0..=1024_u32)) {
        // Not `conservative`: its rises are rounded down and its falls up, as the kernel's are.
        for governor in ["performance", "ondemand", "schedutil", "interactive"] {
            // A rest of more than two sampling times counts as the load before, and what limits have raised falls
            // without regard to load.
            let mut steps = steps.clone();
            steps.last_mut().unwrap().us %= 16_000;
            steps.iter_mut().for_each(|step| step.limits = (0, MHZ.len() - 1));
            let mut busier = steps.clone();
            let last = busier.last_mut().unwrap();
            for (busy, _, util, io_wakeup) in &mut last.cores {
                (*busy, *util) = ((*busy + more.0).min(100), (*util + more.1).min(1024));
                *io_wakeup = true;
            }
            let (less, more) = (run(governor, &steps), run(governor, &busier));
            prop_assert!(less.last() <= more.last(), "{governor}: {less:?} {more:?}");
        }
    }

    #[test]
    fn constant_load_settles(load in 0..=100_u64, util in 0..=1024_u32) {
        // Load, the share of time, is given here, so it does not change with the frequency.
        let step = Step { us: 20_000, cores: [(load, 0, util, false); 2], limits: (0, MHZ.len() - 1) };
        for info in GOVERNORS {
            let frequencies = run(info.name, &vec![step.clone(); 60]);
            let settled = frequencies[40];
            prop_assert!(frequencies[40..].iter().all(|&mhz| mhz == settled), "{}: {frequencies:?}", info.name);
        }
    }
}

/// A cluster of one core under `schedutil`, whose utilisation is tracked.
struct Tracked {
    cluster: Cluster,
    clock: PeltClock,
    core: Pelt,
}

impl Tracked {
    fn new(governor: &str, mhz: u32) -> Self {
        let mut cluster = Cluster::new(governor, domain(&MHZ, 1));
        cluster.jump(mhz);
        cluster.start();
        Self { cluster, clock: PeltClock::new(0), core: Pelt::new(0) }
    }

    /// The core does something for so long; then the governor looks.
    fn run(&mut self, ns: Ns, done: Activity) -> u32 {
        let until_ns = self.cluster.now_ns + ns;
        if done.running {
            self.clock.busy_until(until_ns, 1024 * self.cluster.mhz / 1400);
            self.cluster.cores[0].busy_ns += ns;
        } else {
            self.clock.fall_idle(&self.core);
            self.clock.idle_until(until_ns);
        }
        self.core.update(self.clock.time_ns(), done);
        self.cluster.now_ns = until_ns;
        self.cluster.cores[0].util = core_util_boosted(&self.core, 0, 1024);
        self.cluster.look(0.0, &[])
    }
}

#[test]
fn schedutil_settles_at_a_quarter_more_than_constant_work_needs() {
    // Work in million cycles a second, in portions every 2 ms. 1.25 times as much is 375, 650, 1050.
    for (mcycles_per_s, settled) in [(300, 400), (520, 700), (840, 1100)] {
        let mut tracked = Tracked::new("schedutil", 1400);
        let mut trace = Vec::new();
        for _ in 0..1000 {
            let work_ns = 2 * MS * mcycles_per_s / Ns::from(tracked.cluster.mhz);
            tracked.run(work_ns.min(2 * MS), Activity::RUNNING);
            trace.push(tracked.run((2 * MS).saturating_sub(work_ns), Activity::ASLEEP));
        }
        assert_eq!(trace[500..], vec![settled; 500], "{mcycles_per_s} million cycles a second");
    }
}

#[test]
fn schedutil_reaches_the_highest_frequency_when_a_core_is_always_busy() {
    // Utilisation passes 80 % of full after 75 periods of the core's own time, which passes more slowly at
    // low frequencies.
    let mut tracked = Tracked::new("schedutil:rate_limit_us=1000", 200);
    let trace: Vec<u32> =
        (0..200).map(|_| tracked.run(PELT_PERIOD_NS, Activity::RUNNING)).collect();
    assert!(trace.is_sorted(), "{trace:?}");
    let reached = trace.iter().position(|&mhz| mhz == 1400).unwrap();
    assert!((75..200).contains(&reached), "after {reached} periods");
    let own_ns = tracked.clock.time_ns();
    assert!(own_ns < 200 * PELT_PERIOD_NS && own_ns > 100 * PELT_PERIOD_NS, "{own_ns}");
}
