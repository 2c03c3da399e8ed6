//! Load as `ondemand` and `conservative` measure it: the share of time in which a core was not idle.

use ampsched_model::Ns;

use super::{ClusterSample, CoreSample, FrequencyDomain};
use crate::{ParamInfo, Params};

/// Sampling rate.
pub const SAMPLING_RATE: ParamInfo = ParamInfo::number(
    "sampling_rate_us",
    0.0,
    0.0,
    10_000_000.0,
    "time between samples; 0 = from the time that a change takes, at least 2 ticks (dbs_governor_init)",
);

/// Nice threads do not count.
pub const IGNORE_NICE: ParamInfo = ParamInfo::flag(
    "ignore_nice_load",
    false,
    "time of threads with a nice value above 0 counts as idle",
);

/// Time between samples in ns: as given, or Linux's default (cpufreq_governor.c, `cpufreq_dbs_governor_init`).
pub fn sampling_rate_ns(params: &Params, domain: &FrequencyDomain) -> Ns {
    match params.us("sampling_rate_us") {
        0 => domain.transition_delay_ns().max(2 * domain.tick_ns),
        given_ns => given_ns,
    }
}

/// Measures the load of a cluster from sample to sample (Linux 6.6, drivers/cpufreq/cpufreq_governor.c,
/// `dbs_update`).
pub struct LoadMeter {
    ignore_nice: bool,
    io_is_busy: bool,
    seen_ns: Option<Ns>,
    cores: Vec<CoreLoad>,
}

#[derive(Clone, Copy, Default)]
struct CoreLoad {
    active_ns: Ns,
    /// Load in the last sample in percent; 0 after it has stood in for a long idle time.
    percent: u64,
}

/// A cluster's load.
pub struct Load {
    /// Load of the busiest core in percent.
    pub percent: u64,
    /// If cores were idle for more than two sampling times: how many sampling times the least idle of them
    /// was idle for.
    pub idle_periods: Option<u64>,
}

impl LoadMeter {
    /// A meter that has seen nothing.
    pub fn new(ignore_nice: bool, io_is_busy: bool) -> Self {
        Self { ignore_nice, io_is_busy, seen_ns: None, cores: Vec::new() }
    }

    /// The load since the last measurement; none the first time. `rate_ns` is the sampling time.
    pub fn measure(&mut self, sample: &ClusterSample, rate_ns: Ns) -> Option<Load> {
        let started = self.seen_ns.is_some();
        let elapsed_ns =
            sample.now_ns - self.seen_ns.replace(sample.now_ns).unwrap_or(sample.now_ns);
        self.cores.resize(sample.cores.len(), CoreLoad::default());
        let mut load = Load { percent: 0, idle_periods: None };
        for index in 0..self.cores.len() {
            let active_ns = self.active_ns(&sample.cores[index]);
            let core = &mut self.cores[index];
            let worked_ns = active_ns.saturating_sub(core.active_ns).min(elapsed_ns);
            core.active_ns = active_ns;
            let idle_ns = elapsed_ns - worked_ns;
            let percent = core.percent(elapsed_ns, idle_ns, rate_ns);
            load.percent = load.percent.max(percent);
            if idle_ns > 2 * rate_ns {
                let periods = idle_ns / rate_ns;
                load.idle_periods =
                    Some(load.idle_periods.map_or(periods, |least| least.min(periods)));
            }
        }
        started.then_some(load)
    }

    /// Time of a core that does not count as idle, since the start.
    fn active_ns(&self, core: &CoreSample) -> Ns {
        let nice_ns = if self.ignore_nice { core.nice_ns } else { 0 };
        let iowait_ns = if self.io_is_busy { core.iowait_ns } else { 0 };
        core.busy_ns + iowait_ns - nice_ns
    }
}

impl CoreLoad {
    /// The load in percent. A core that has just woken from a long sleep gets, once, the load that it had
    /// before, so that it does not begin at the lowest frequency.
    fn percent(&mut self, elapsed_ns: Ns, idle_ns: Ns, rate_ns: Ns) -> u64 {
        if elapsed_ns == 0 {
            return self.percent;
        }
        if idle_ns > 2 * rate_ns && self.percent > 0 {
            return std::mem::take(&mut self.percent);
        }
        self.percent = 100 * (elapsed_ns - idle_ns) / elapsed_ns;
        self.percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    const MS: Ns = 1_000_000;
    const RATE: Ns = 10 * MS;

    /// Loads in percent and idle periods after samples of (time, busy, nice, I/O wait) in ms, of one core.
    fn loads(
        ignore_nice: bool,
        io_is_busy: bool,
        steps: &[(u64, u64, u64, u64)],
    ) -> Vec<(u64, Option<u64>)> {
        let mut meter = LoadMeter::new(ignore_nice, io_is_busy);
        let (mut now_ns, mut core) = (0, CoreSample::default());
        let limits = Limits { min_mhz: 1, max_mhz: 1 };
        let mut look = |core, now_ns| {
            let sample = ClusterSample { now_ns, mhz: 1, limits, cores: &[core] };
            meter.measure(&sample, RATE).map(|load| (load.percent, load.idle_periods))
        };
        assert_eq!(look(core, 0), None);
        let step = |&(ms, busy, nice, iowait): &(u64, u64, u64, u64)| {
            now_ns += ms * MS;
            core.busy_ns += busy * MS;
            core.nice_ns += nice * MS;
            core.iowait_ns += iowait * MS;
            look(core, now_ns).unwrap()
        };
        steps.iter().map(step).collect()
    }

    #[test]
    fn load_is_the_share_of_time_that_was_not_idle() {
        let steps = [(10, 0, 0, 0), (10, 10, 4, 0), (10, 5, 5, 3), (20, 7, 0, 8)];
        let none = |percents: [u64; 4]| percents.map(|percent| (percent, None));
        assert_eq!(loads(false, false, &steps), none([0, 100, 50, 35]));
        assert_eq!(loads(true, false, &steps), none([0, 60, 0, 35]));
        assert_eq!(loads(false, true, &steps), none([0, 100, 80, 75]));
    }

    #[test]
    fn after_a_long_sleep_the_load_before_counts_once() {
        let steps = [(10, 9, 0, 0), (50, 2, 0, 0), (50, 2, 0, 0), (20, 10, 0, 0), (0, 0, 0, 0)];
        let expected = [(90, None), (90, Some(4)), (4, Some(4)), (50, None), (50, None)];
        assert_eq!(loads(false, false, &steps), expected);
    }

    #[test]
    fn the_busiest_core_and_the_least_idle_one_count() {
        let mut meter = LoadMeter::new(false, false);
        let limits = Limits { min_mhz: 1, max_mhz: 1 };
        let mut look = |now_ms: u64, busy_ms: [u64; 3]| {
            let core = |ms| CoreSample { busy_ns: ms * MS, ..CoreSample::default() };
            let cores = busy_ms.map(core);
            let sample = ClusterSample { now_ns: now_ms * MS, mhz: 1, limits, cores: &cores };
            meter.measure(&sample, RATE).map(|load| (load.percent, load.idle_periods))
        };
        assert_eq!(look(0, [0, 0, 0]), None);
        assert_eq!(look(100, [10, 30, 95]), Some((95, Some(7))));
        assert_eq!(look(110, [18, 30, 95]), Some((80, None)));
    }
}
