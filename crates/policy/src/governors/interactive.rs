//! Android's `interactive` governor.

use ampsched_model::Ns;

use super::domain::{Round, in_khz};
use super::{ClusterSample, CoreSample, FrequencyDomain, Governor, GovernorInfo, Limits, Pace};
use crate::{ParamInfo, Params};

/// The registry's row.
pub static INFO: GovernorInfo = GovernorInfo {
    name: "interactive",
    summary: "up at once when a core wakes to work, down only after a while: for touch screens",
    source: "Android common kernel 3.10 drivers/cpufreq/cpufreq_interactive.c, \
             Documentation/cpu-freq/governors.txt",
    documentation: "\
**Purpose.** Phones that answer a touch without delay; the usual governor of Android until schedutil, on Exynos 5422 and its kind too.

**Algorithm.** Every `timer_rate_us` each core's work since the last time is expressed as a load: time busy x frequency / (time x the core's target). \
The core's new target is the lowest frequency at which the same work would be at most `target_load` percent. If the load is `go_hispeed_load` or more, the target is at least `hispeed_freq_mhz`, and exactly that if it was below. \
From there on, a rise must be `above_hispeed_delay_us` after the last. A fall must be `min_sample_time_us` after the target was last confirmed. \
A core at the highest frequency is not looked at again until it has been idle. The cluster runs at the highest target of its cores. An idle cluster above its lowest frequency is looked at after \
`timer_rate_us` + `timer_slack_us`.

**Constants.** `DEFAULT_TARGET_LOAD` 90, `DEFAULT_TIMER_RATE` 20 ms, `DEFAULT_ABOVE_HISPEED_DELAY` 20 ms, `DEFAULT_GO_HISPEED_LOAD` 99, \
`DEFAULT_MIN_SAMPLE_TIME` 80 ms, `DEFAULT_TIMER_SLACK` 80 ms; `hispeed_freq_mhz` is the highest frequency if not given.

**Example.** 200, 300 ... 1400 MHz, `hispeed_freq_mhz=800`: a core at 200 MHz that is busy all the time gets 800 MHz after 20 ms, then 900 (800 / 0.9 = 889), 1000, 1200, 1400 MHz \
every 20 ms. When it falls to a load of 10 percent it keeps 1400 MHz until 80 ms after it was last confirmed, then gets 200 MHz.

**Limits.** All cores are looked at together, not each at its own time, and a core at the highest frequency up to one `timer_rate_us` later. Pulses of user input (`boostpulse`) are left \
out; `boost=1` is the lasting one. If `target_load` falls from a frequency on, Android's search may end elsewhere. Vendors ship other values: set them.",
    params: &[
        ParamInfo::per_mhz(
            "target_load",
            90.0,
            1.0,
            100.0,
            "load in percent to aim at; target_load@1000=95 from 1000 MHz on (DEFAULT_TARGET_LOAD)",
        ),
        ParamInfo::number(
            "go_hispeed_load",
            99.0,
            1.0,
            100.0,
            "load in percent that raises to hispeed_freq_mhz (DEFAULT_GO_HISPEED_LOAD)",
        ),
        ParamInfo::number(
            "hispeed_freq_mhz",
            0.0,
            0.0,
            100_000.0,
            "frequency for a burst of load; 0 = the highest",
        ),
        ParamInfo::per_mhz(
            "above_hispeed_delay_us",
            20_000.0,
            0.0,
            10_000_000.0,
            "time before a further rise; above_hispeed_delay_us@1000=80000 from 1000 MHz on (DEFAULT_ABOVE_HISPEED_DELAY)",
        ),
        ParamInfo::number(
            "min_sample_time_us",
            80_000.0,
            0.0,
            10_000_000.0,
            "time before a fall (DEFAULT_MIN_SAMPLE_TIME)",
        ),
        ParamInfo::number(
            "timer_rate_us",
            20_000.0,
            1000.0,
            10_000_000.0,
            "time between looks (DEFAULT_TIMER_RATE)",
        ),
        ParamInfo::number(
            "timer_slack_us",
            80_000.0,
            -1.0,
            10_000_000.0,
            "how much longer while idle; -1 = for ever (DEFAULT_TIMER_SLACK)",
        ),
        ParamInfo::flag("io_is_busy", false, "time spent waiting for devices counts as load"),
        ParamInfo::flag("boost", false, "never below hispeed_freq_mhz"),
    ],
    conflict: |_| None,
    reads_util: false,
    build: |params, domain| Box::new(Interactive::new(params, domain)),
};

/// The `interactive` governor.
struct Interactive {
    tunables: Tunables,
    cores: Vec<CoreTarget>,
    limits: Limits,
}

/// Domain and parameters.
struct Tunables {
    domain: FrequencyDomain,
    target_load: Steps,
    go_hispeed_load: u64,
    hispeed_mhz: u32,
    above_hispeed_delay_us: Steps,
    min_sample_ns: Ns,
    rate_ns: Ns,
    slack_ns: Option<Ns>,
    io_is_busy: bool,
    boost: bool,
}

/// A whole number that depends on the frequency: from how many MHz on, ascending from 0, and the value.
struct Steps(Vec<(u32, u64)>);

impl Steps {
    fn new(values: Vec<(u32, f64)>) -> Self {
        Self(values.into_iter().map(|(mhz, value)| (mhz, value.round() as u64)).collect())
    }

    fn at(&self, mhz: u32) -> u64 {
        self.0[self.0.partition_point(|&(from_mhz, _)| from_mhz <= mhz) - 1].1
    }
}

/// What a core wants (`struct cpufreq_interactive_cpuinfo`).
#[derive(Clone, Copy)]
struct CoreTarget {
    mhz: u32,
    /// Lowest frequency until `min_sample_ns` after it was last confirmed.
    floor_mhz: u32,
    floor_ns: Ns,
    /// When a look last passed the delay for rises above hispeed.
    hispeed_ns: Ns,
    /// Whether it is looked at at all.
    armed: bool,
    seen_ns: Ns,
    active_ns: Ns,
}

impl Tunables {
    fn new(params: &Params, domain: &FrequencyDomain) -> Self {
        let hispeed_mhz = params.whole("hispeed_freq_mhz");
        let slack_us = params.number("timer_slack_us");
        Self {
            domain: domain.clone(),
            target_load: Steps::new(params.per_mhz("target_load")),
            go_hispeed_load: params.whole("go_hispeed_load").into(),
            hispeed_mhz: if hispeed_mhz > 0 { hispeed_mhz } else { domain.max_mhz() },
            above_hispeed_delay_us: Steps::new(params.per_mhz("above_hispeed_delay_us")),
            min_sample_ns: params.us("min_sample_time_us"),
            rate_ns: params.us("timer_rate_us"),
            slack_ns: (slack_us >= 0.0).then(|| params.us("timer_slack_us")),
            io_is_busy: params.flag("io_is_busy"),
            boost: params.flag("boost"),
        }
    }

    /// Time of a core that does not count as idle, since the start.
    fn active_ns(&self, core: &CoreSample) -> Ns {
        core.busy_ns + if self.io_is_busy { core.iowait_ns } else { 0 }
    }

    /// The lowest frequency that does some work within its target load (`choose_freq`). Work is given as the
    /// frequency in kHz at which it would take all the time, x 100.
    fn choose(&self, work: u64) -> u32 {
        let fits = |&mhz: &u32| in_khz(mhz) >= work / self.target_load.at(mhz);
        self.domain.freqs_mhz.iter().copied().find(|mhz| fits(mhz)).unwrap_or(self.domain.max_mhz())
    }

    /// The frequency for some work, hispeed considered, before delays.
    fn wanted(&self, work: u64, target_mhz: u32) -> u32 {
        let load = work / in_khz(target_mhz);
        if load < self.go_hispeed_load && !self.boost {
            return self.choose(work);
        }
        if target_mhz < self.hispeed_mhz {
            self.hispeed_mhz
        } else {
            self.choose(work).max(self.hispeed_mhz)
        }
    }
}

impl CoreTarget {
    fn new(mhz: u32, core: &CoreSample, now_ns: Ns, tunables: &Tunables) -> Self {
        let active_ns = tunables.active_ns(core);
        Self {
            mhz,
            floor_mhz: mhz,
            floor_ns: now_ns,
            hispeed_ns: now_ns,
            armed: true,
            seen_ns: now_ns,
            active_ns,
        }
    }

    /// Looks at the core (`cpufreq_interactive_timer`).
    fn look(&mut self, core: &CoreSample, sample: &ClusterSample, tunables: &Tunables) {
        let now_ns = sample.now_ns;
        let elapsed_ns = now_ns - self.seen_ns;
        let active_ns = tunables.active_ns(core);
        let worked_ns = active_ns.saturating_sub(self.active_ns).min(elapsed_ns);
        (self.seen_ns, self.active_ns) = (now_ns, active_ns);
        self.mhz = self.mhz.max(sample.limits.min_mhz).min(sample.limits.max_mhz);
        if self.is_due(elapsed_ns - worked_ns, tunables.rate_ns) && elapsed_ns > 0 {
            let mean_khz =
                u128::from(in_khz(sample.mhz)) * u128::from(worked_ns) / u128::from(elapsed_ns);
            self.decide(mean_khz as u64 * 100, now_ns, sample.limits, tunables);
        }
    }

    /// Whether the core's target is to be set now. At the highest frequency the core is left alone until it
    /// has been idle: then from the next look on, or at once if it was idle for as long as a look takes.
    fn is_due(&mut self, idle_ns: Ns, rate_ns: Ns) -> bool {
        let due = self.armed || idle_ns >= rate_ns;
        self.armed |= idle_ns > 0;
        due
    }

    /// Sets the target for some work, unless a rise or fall has to wait.
    fn decide(&mut self, work: u64, now_ns: Ns, limits: Limits, tunables: &Tunables) {
        let wanted = tunables.wanted(work, self.mhz);
        let delay_ns = tunables.above_hispeed_delay_us.at(self.mhz) * 1000;
        let rises_above = self.mhz >= tunables.hispeed_mhz && wanted > self.mhz;
        if rises_above && now_ns - self.hispeed_ns < delay_ns {
            return;
        }
        self.hispeed_ns = now_ns;
        let mhz = tunables.domain.resolve(in_khz(wanted), Round::Up, limits);
        if mhz < self.floor_mhz && now_ns - self.floor_ns < tunables.min_sample_ns {
            return;
        }
        if !tunables.boost || mhz > tunables.hispeed_mhz {
            (self.floor_mhz, self.floor_ns) = (mhz, now_ns);
        }
        self.mhz = mhz;
        self.armed = mhz < limits.max_mhz;
    }
}

impl Interactive {
    fn new(params: &Params, domain: &FrequencyDomain) -> Self {
        Self { tunables: Tunables::new(params, domain), cores: Vec::new(), limits: domain.limits() }
    }
}

impl Governor for Interactive {
    fn pace(&self) -> Option<Pace> {
        let Tunables { rate_ns, slack_ns, .. } = self.tunables;
        let above_min = self.cores.iter().any(|core| core.mhz > self.limits.min_mhz);
        let slack_ns = slack_ns.filter(|_| above_min);
        Some(Pace { gap_ns: rate_ns, idle_gap_ns: slack_ns.map(|slack_ns| rate_ns + slack_ns) })
    }

    fn next_mhz(&mut self, sample: &ClusterSample) -> u32 {
        self.limits = sample.limits;
        if self.cores.is_empty() {
            let mhz = self.tunables.domain.keep(sample.mhz, sample.limits);
            let target = |core| CoreTarget::new(mhz, core, sample.now_ns, &self.tunables);
            self.cores = sample.cores.iter().map(target).collect();
        }
        for (target, core) in self.cores.iter_mut().zip(sample.cores) {
            target.look(core, sample, &self.tunables);
        }
        let highest = self.cores.iter().map(|core| core.mhz).max().unwrap_or(sample.mhz);
        self.tunables.domain.resolve(in_khz(highest), Round::Down, sample.limits)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Cluster;

    /// A started cluster at some frequency.
    fn cluster(governor: &str, mhz: u32) -> Cluster {
        let mut cluster = Cluster::little(governor);
        cluster.jump(mhz);
        cluster.start();
        cluster
    }

    /// Frequencies after looks at loads in percent, 20 ms apart.
    fn trace(governor: &str, mhz: u32, loads: &[f64]) -> Vec<u32> {
        let mut cluster = cluster(governor, mhz);
        loads.iter().map(|&load| cluster.look(20.0, &[load])).collect()
    }

    #[test]
    fn a_burst_goes_to_hispeed_and_climbs_from_there() {
        let governor = "interactive:hispeed_freq_mhz=800";
        // 800 / 0.9 = 889, 900 / 0.9 = 1000, 1000 / 0.9 = 1111, 1200 / 0.9 = 1333.
        assert_eq!(trace(governor, 200, &[100.0; 6]), [800, 900, 1000, 1200, 1400, 1400]);
        assert_eq!(trace("interactive", 200, &[99.0]), [1400]);
    }

    #[test]
    fn below_the_burst_the_target_load_decides() {
        // Load 98 at 200 MHz is work of 196 MHz: 218 at 90 %.
        assert_eq!(trace("interactive", 200, &[98.0, 89.0, 95.0]), [300, 300, 400]);
        assert_eq!(trace("interactive:target_load=50", 400, &[50.0, 60.0]), [400, 500]);
        assert_eq!(trace("interactive:go_hispeed_load=85", 200, &[86.0]), [1400]);
    }

    #[test]
    fn a_fall_waits_for_the_sample_time() {
        let mut cluster = cluster("interactive", 200);
        assert_eq!(cluster.look(20.0, &[100.0]), 1400);
        // The look that notices the idle time starts a new window; then 40, 60, 80 ms after the rise.
        let falls = [10.0; 5].map(|load| cluster.look(20.0, &[load]));
        assert_eq!(falls, [1400, 1400, 1400, 200, 200]);
        assert_eq!(trace("interactive:min_sample_time_us=0", 1300, &[50.0, 50.0]), [800, 500]);
    }

    #[test]
    fn the_highest_frequency_is_left_once_the_core_has_been_idle() {
        let mut cluster = cluster("interactive", 200);
        cluster.look(20.0, &[100.0]);
        let busy = [100.0; 5].map(|load| cluster.look(20.0, &[load]));
        assert_eq!(busy, [1400; 5]);
        // The last confirmation was at the rise, so only the new window counts.
        assert_eq!(cluster.look(20.0, &[50.0]), 1400);
        assert_eq!(cluster.look(20.0, &[50.0]), 800);
        // A core that has been idle for a whole interval is due at once.
        cluster.look(20.0, &[100.0]);
        assert_eq!(cluster.mhz, 1400);
        assert_eq!(cluster.look(100.0, &[5.0]), 200);
    }

    #[test]
    fn a_rise_above_hispeed_has_its_delay() {
        let governor = "interactive:hispeed_freq_mhz=800:above_hispeed_delay_us=40000:above_hispeed_delay_us@1000=0";
        // From 800 and 900 after 40 ms; from 1000 MHz on without delay.
        let expected = [800, 800, 900, 900, 1000, 1200, 1400];
        assert_eq!(trace(governor, 200, &[100.0; 7]), expected);
    }

    #[test]
    fn the_target_load_may_depend_on_the_frequency() {
        // Work of 480 MHz: at 600 MHz 80 percent are allowed, at 500 MHz 70 are not enough.
        let governor = "interactive:target_load=70:target_load@600=80:min_sample_time_us=0";
        assert_eq!(trace(governor, 1200, &[40.0]), [600]);
        assert_eq!(trace("interactive:target_load=70:min_sample_time_us=0", 1200, &[40.0]), [700]);
    }

    #[test]
    fn the_highest_target_of_a_core_counts() {
        let mut cluster = cluster("interactive:min_sample_time_us=0", 1000);
        assert_eq!(cluster.look(20.0, &[10.0, 40.0, 0.0, 20.0]), 500);
    }

    #[test]
    fn a_core_that_another_has_made_fast_still_begins_at_hispeed() {
        let mut cluster = cluster("interactive:hispeed_freq_mhz=800:min_sample_time_us=0", 1400);
        // The first core's target falls to 200 MHz while the second keeps the cluster at 1400.
        assert_eq!(cluster.look(20.0, &[0.0, 100.0]), 1400);
        assert_eq!(cluster.look(20.0, &[100.0, 0.0]), 800);
    }

    #[test]
    fn boost_and_io_are_switches() {
        assert_eq!(trace("interactive:boost=1:hispeed_freq_mhz=800", 200, &[0.0, 0.0]), [800, 800]);
        for (governor, expected) in [("interactive", 300), ("interactive:io_is_busy=1", 400)] {
            let mut cluster = cluster(governor, 400);
            cluster.pass(100.0, &[50.0]);
            cluster.cores[0].iowait_ns += 40_000_000;
            assert_eq!(cluster.look(0.0, &[]), expected, "{governor}");
        }
    }

    #[test]
    fn an_idle_cluster_is_looked_at_while_it_could_be_slower() {
        let mut slow = cluster("interactive", 200);
        assert_eq!((slow.gap_us(), slow.idle_gap_us()), (20_000, None));
        slow.look(20.0, &[100.0]);
        assert_eq!((slow.gap_us(), slow.idle_gap_us()), (20_000, Some(100_000)));
        let mut never = cluster("interactive:timer_slack_us=-1:timer_rate_us=10000", 1400);
        never.look(10.0, &[50.0]);
        assert_eq!((never.gap_us(), never.idle_gap_us()), (10_000, None));
    }

    #[test]
    fn limits_hold_at_once() {
        let mut cluster = cluster("interactive", 200);
        cluster.look(20.0, &[100.0]);
        cluster.limit(300, 1000);
        assert_eq!(cluster.look(1.0, &[100.0]), 1000);
        assert_eq!(cluster.look(200.0, &[0.0]), 300);
    }
}
