//! Linux's `schedutil` governor.

use ampsched_model::Ns;

use super::domain::{Round, in_khz};
use super::{ClusterSample, CoreSample, FrequencyDomain, Governor, GovernorInfo, Limits, Pace};
use crate::{CAPACITY_ONE, PELT_PERIOD_NS, ParamInfo, Params};

/// The registry's row.
pub static INFO: GovernorInfo = GovernorInfo {
    name: "schedutil",
    summary: "a quarter more than the scheduler's own measure of utilisation asks for",
    source: "Linux 6.6 kernel/sched/cpufreq_schedutil.c, Documentation/admin-guide/pm/cpufreq.rst",
    documentation: "\
**Purpose.** One opinion of how busy a core is, shared by the scheduler and the clock; the governor that energy-aware scheduling relies on.

**Algorithm.** Whenever a core's load average has moved on by a period, but not sooner than `rate_limit_us` after the last change, the greatest utilisation of the cluster's cores is taken, \
and the cluster gets the lowest frequency that is not below 1.25 x max x utilisation / capacity. With `invariant=0` the present frequency stands for the highest: for utilisations that are shares of time. \
A core's utilisation is the greatest of its running average, its runnable average and the sum of its runnable threads' estimates (PELT). \
A core to which a thread comes back from waiting for a device counts as at least 1/8 of its capacity; the share doubles with every look at which this has happened again, \
halves at every other, and ends when the core has been quiet for a tick. A core that has a clock of its own keeps its frequency as long as it has not been idle.

**Constants.** 1.25: `map_util_perf`, so that the frequency rises at 80 % of what the present one can do. `rate_limit_us`: 1000 times as long as a change takes, at most 10 ms \
(`cpufreq_policy_transition_delay_us`). 1/8: `IOWAIT_BOOST_MIN`.

**Example.** 200, 300 ... 1400 MHz, capacity 1024: utilisation 512 asks for 1.25 x 1400 x 512 / 1024 = 875 MHz and gets 900; 819 asks for 1399.7 and gets 1400.

**Limits.** Real-time and deadline threads, interrupts and utilisation clamps are left out, and so is the drivers' own thread that carries a change out. Kernels since 6.12 \
wait one and a half times as long as a change takes.",
    params: &[
        ParamInfo::number(
            "rate_limit_us",
            0.0,
            0.0,
            10_000_000.0,
            "least time between two changes; 0 = from the time that a change takes (sugov_init)",
        ),
        ParamInfo::flag(
            "invariant",
            true,
            "utilisation is relative to the highest frequency (arch_scale_freq_invariant: Arm, x86)",
        ),
    ],
    conflict: |_| None,
    reads_util: true,
    build: |params, domain| Box::new(Schedutil::new(params, domain)),
};

/// The `schedutil` governor.
struct Schedutil {
    domain: FrequencyDomain,
    rate_limit_ns: Ns,
    invariant: bool,
    boosts: Vec<IoBoost>,
    limits: Option<Limits>,
    /// The last frequency asked for in MHz.
    chosen: Option<u32>,
    changed_ns: Ns,
    looked_ns: Ns,
    activity: LastActivity,
}

impl Schedutil {
    fn new(params: &Params, domain: &FrequencyDomain) -> Self {
        let rate_limit_ns = match params.us("rate_limit_us") {
            0 => domain.transition_delay_ns(),
            given_ns => given_ns,
        };
        Self {
            domain: domain.clone(),
            rate_limit_ns,
            invariant: params.flag("invariant"),
            boosts: vec![IoBoost::default(); domain.cores],
            limits: None,
            chosen: None,
            changed_ns: 0,
            looked_ns: 0,
            activity: LastActivity::default(),
        }
    }

    /// The frequency that the cluster's utilisation asks for (`get_next_freq`, `map_util_perf`,
    /// `map_util_freq`).
    fn by_util(&mut self, sample: &ClusterSample) -> u32 {
        let util = u64::from(self.util(sample.cores));
        let reference = if self.invariant { self.domain.max_mhz() } else { sample.mhz };
        let wanted = in_khz(reference) * (util + util / 4) / u64::from(self.domain.capacity);
        self.domain.resolve(wanted, Round::Up, sample.limits)
    }

    /// The greatest utilisation of a core, boosts included (`sugov_next_freq_shared`).
    fn util(&mut self, cores: &[CoreSample]) -> u32 {
        let capacity = self.domain.capacity;
        let pairs = cores.iter().zip(&mut self.boosts);
        let utils = pairs.map(|(core, boost)| core.util.max(boost.apply(capacity)));
        utils.max().unwrap_or(0).min(capacity)
    }
}

impl Governor for Schedutil {
    fn pace(&self) -> Option<Pace> {
        let limited_ns = (self.changed_ns + self.rate_limit_ns).saturating_sub(self.looked_ns);
        Pace::at_events(limited_ns.max(PELT_PERIOD_NS))
    }

    fn next_mhz(&mut self, sample: &ClusterSample) -> u32 {
        self.looked_ns = sample.now_ns;
        for (core, boost) in sample.cores.iter().zip(&mut self.boosts) {
            boost.note(core.io_wakeup, core.quiet_ns > self.domain.tick_ns);
        }
        let limits_are_new = self.limits.replace(sample.limits) != Some(sample.limits);
        let chosen = self.chosen.filter(|_| !limits_are_new);
        if let Some(mhz) = chosen.filter(|_| sample.now_ns < self.changed_ns + self.rate_limit_ns) {
            return mhz;
        }
        let wanted = self.by_util(sample);
        let busy = self.activity.is_unbroken(sample);
        // A core that has not been idle needs its frequency, whatever the average says.
        let mhz = chosen.filter(|&mhz| busy && wanted < mhz).unwrap_or(wanted);
        if self.chosen.replace(mhz) != Some(mhz) {
            self.changed_ns = sample.now_ns;
        }
        mhz
    }
}

/// What the only core of a domain had done at the last decision.
#[derive(Clone, Copy, Default)]
struct LastActivity {
    now_ns: Ns,
    busy_ns: Ns,
}

impl LastActivity {
    /// Whether the core, if it is the only one, has run without a break since the last decision
    /// (`sugov_cpu_is_busy`).
    fn is_unbroken(&mut self, sample: &ClusterSample) -> bool {
        let [core] = sample.cores else { return false };
        let before = std::mem::replace(self, Self { now_ns: sample.now_ns, busy_ns: core.busy_ns });
        core.busy_ns - before.busy_ns == sample.now_ns - before.now_ns
    }
}

/// The boost of a core whose threads wait for devices (`sugov_iowait_boost`, `sugov_iowait_apply`).
#[derive(Clone, Copy, Default)]
struct IoBoost {
    /// Boost, 0 to 1024.
    level: u32,
    /// Whether it has been raised since the last decision.
    pending: bool,
}

impl IoBoost {
    /// The first boost (`IOWAIT_BOOST_MIN`).
    const FIRST: u32 = CAPACITY_ONE / 8;

    /// Notes whether a thread has come back from a device, and whether the core was quiet for longer than a
    /// tick.
    fn note(&mut self, io_wakeup: bool, quiet: bool) {
        if quiet && self.level > 0 {
            *self = Self::default();
        }
        if io_wakeup && !self.pending {
            self.pending = true;
            self.level = (2 * self.level).clamp(Self::FIRST, CAPACITY_ONE);
        }
    }

    /// The boost for this decision in units of utilisation; halved if it has not been raised since the last.
    fn apply(&mut self, capacity: u32) -> u32 {
        if !std::mem::take(&mut self.pending) {
            self.level /= 2;
        }
        if self.level < Self::FIRST {
            self.level = 0;
        }
        self.level * capacity / CAPACITY_ONE
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Cluster, domain};
    use super::*;

    const MHZ: [u32; 13] = [200, 300, 400, 500, 600, 700, 800, 900, 1000, 1100, 1200, 1300, 1400];

    /// A started cluster of some cores.
    fn cluster(governor: &str, cores: usize, capacity: u32) -> Cluster {
        let mut cluster =
            Cluster::new(governor, FrequencyDomain { capacity, ..domain(&MHZ, cores) });
        cluster.start();
        cluster
    }

    /// Frequencies after looks at utilisations 10 ms apart, on two cores, the other one idle.
    fn trace(governor: &str, capacity: u32, utils: &[u32]) -> Vec<u32> {
        let mut cluster = cluster(governor, 2, capacity);
        let look = |&util: &u32| {
            cluster.cores[0].util = util;
            cluster.look(10.0, &[50.0])
        };
        utils.iter().map(look).collect()
    }

    #[test]
    fn a_quarter_more_than_the_utilisation_asks_for() {
        // 1400 x 1.25 x util / 1024: 0, 175, 273.4, 875, 1399.7 (819 + 204), 1750.
        assert_eq!(
            trace("schedutil", 1024, &[0, 102, 160, 512, 819, 1024]),
            [200, 200, 300, 900, 1400, 1400]
        );
        // The edge at 1000 MHz: 585 + 146 = 731 asks for 999.4, 586 + 146 = 732 for 1000.8.
        assert_eq!(trace("schedutil", 1024, &[585, 586]), [1000, 1100]);
        // A little core of capacity 400.
        assert_eq!(trace("schedutil", 400, &[200, 320, 1024]), [900, 1400, 1400]);
    }

    #[test]
    fn without_invariance_the_present_frequency_is_the_reference() {
        // 50 % of 200 MHz asks for 125, all of 200 for 250, all of 300 for 375, 80 % of 400 for 399.6.
        let utils = [512, 1024, 1024, 819, 0];
        assert_eq!(trace("schedutil:invariant=0", 1024, &utils), [200, 300, 400, 400, 200]);
        // 50 % of 1400 MHz asks for 875, all of 900 for 1125, all of 1200 for 1500.
        let mut cluster = cluster("schedutil:invariant=0", 2, 1024);
        cluster.jump(1400);
        cluster.cores[1].util = 512;
        assert_eq!(cluster.look(10.0, &[]), 900);
        cluster.cores[1].util = 1024;
        assert_eq!([cluster.look(10.0, &[]), cluster.look(10.0, &[])], [1200, 1400]);
    }

    #[test]
    fn the_greatest_utilisation_of_a_core_counts() {
        let mut cluster = cluster("schedutil", 4, 1024);
        for (core, util) in [100, 512, 300, 0].into_iter().enumerate() {
            cluster.cores[core].util = util;
        }
        assert_eq!(cluster.look(10.0, &[]), 900);
    }

    #[test]
    fn changes_keep_their_distance() {
        let mut cluster = cluster("schedutil", 2, 1024);
        cluster.cores[0].util = 512;
        assert_eq!(
            (cluster.look(10.0, &[]), cluster.gap_us()),
            (900, 10_000),
            "1000 x 100 us, at most 10 ms"
        );
        cluster.cores[0].util = 1024;
        assert_eq!((cluster.look(4.0, &[]), cluster.gap_us()), (900, 6_000));
        assert_eq!((cluster.look(6.0, &[]), cluster.gap_us()), (1400, 10_000));
        // Where nothing has changed, the next look may come as soon as an average moves.
        assert_eq!((cluster.look(10.0, &[]), cluster.gap_us()), (1400, 1_048));
        cluster.cores[0].util = 0;
        assert_eq!(cluster.look(2.0, &[]), 200);
        cluster.limit(500, 1000);
        assert_eq!(cluster.look(1.0, &[]), 500, "new limits do not wait");
    }

    #[test]
    fn the_rate_limit_can_be_given() {
        let mut cluster = cluster("schedutil:rate_limit_us=2000", 2, 1024);
        cluster.cores[0].util = 1024;
        assert_eq!((cluster.look(2.0, &[]), cluster.gap_us()), (1400, 2_000));
    }

    #[test]
    fn a_single_busy_core_keeps_its_frequency() {
        for (cores, expected) in [(1, 1400), (2, 900)] {
            let mut cluster = cluster("schedutil", cores, 1024);
            cluster.cores[0].util = 1024;
            assert_eq!(cluster.look(10.0, &[100.0]), 1400);
            cluster.cores[0].util = 512;
            assert_eq!(cluster.look(10.0, &[100.0]), expected, "{cores} cores");
            assert_eq!(cluster.look(10.0, &[99.0]), 900);
        }
    }

    #[test]
    fn waiting_for_devices_boosts_step_by_step() {
        let mut cluster = cluster("schedutil", 2, 1024);
        let mut look = |io_wakeup: bool, quiet_ms: u64| {
            cluster.cores[0].io_wakeup = io_wakeup;
            cluster.cores[0].quiet_ns = quiet_ms * 1_000_000;
            cluster.look(10.0, &[])
        };
        // 128, 256, 512, 1024, 1024; 512, 256, 128, 0 in units of 1.25 x 1400 / 1024 MHz.
        let up = [true; 5].map(|io| look(io, 1));
        assert_eq!(up, [300, 500, 900, 1400, 1400]);
        let down = [false; 5].map(|io| look(io, 1));
        assert_eq!(down, [900, 500, 300, 200, 200]);
        assert_eq!([look(true, 1), look(true, 1)], [300, 500]);
        assert_eq!(look(true, 5), 300, "after more than a tick it starts anew");
        assert_eq!(look(false, 5), 200);
    }

    #[test]
    fn boosts_between_two_decisions_count_once() {
        let mut cluster = cluster("schedutil", 2, 1024);
        cluster.cores[0].io_wakeup = true;
        assert_eq!(cluster.look(10.0, &[]), 300);
        let trace = [3.0, 3.0, 4.0].map(|ms| cluster.look(ms, &[]));
        assert_eq!(trace, [300, 300, 500]);
    }
}
