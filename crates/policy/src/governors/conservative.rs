//! Linux's `conservative` governor.

use ampsched_model::Ns;

use super::domain::{Round, in_khz};
use super::load::{IGNORE_NICE, Load, LoadMeter, SAMPLING_RATE, sampling_rate_ns};
use super::{ClusterSample, FrequencyDomain, Governor, GovernorInfo, Limits, Pace};
use crate::{ParamInfo, Params};

/// The registry's row.
pub static INFO: GovernorInfo = GovernorInfo {
    name: "conservative",
    summary: "small steps up while the load is high and down while it is low",
    source: "Linux 6.6 drivers/cpufreq/cpufreq_conservative.c and cpufreq_governor.c, \
             Documentation/admin-guide/pm/cpufreq.rst",
    documentation: "\
**Purpose.** As ondemand, without jumps: for batteries that do not like them.

**Algorithm.** The load is measured as ondemand does. The governor keeps a wanted frequency. Every `sampling_rate_us` it raises it by `freq_step` percent of the highest \
allowed frequency if the load is above `up_threshold`, and lowers it by as much if the load is below `down_threshold`; lowering needs `sampling_down_factor` samples in a row without a rise. \
After a rise the cluster gets the highest of its frequencies that is not above the wanted one, after a fall the lowest that is not below. If cores have \
slept for more than two sampling times since the last sample, the wanted frequency first falls by a step for each sampling time of the shortest such sleep.

**Constants.** `up_threshold` = 80, `down_threshold` = 20, `freq_step` = 5, `sampling_down_factor` = 1 (`cs_init`). `sampling_rate_us` as for ondemand.

**Example.** 200, 300 ... 1400 MHz at 200 MHz, load 100: the steps are 70 MHz, the wanted frequency 270, 340, 410 ... and the cluster runs at 200, 300, 400 MHz. \
From 1400 MHz with load 10: wanted 1330, 1260, 1190, running at 1400, 1300, 1200 MHz.

**Limits.** From the lowest to the highest frequency takes 18 samples. `freq_step` = 0 freezes the frequency, as in the code (the kernel's documentation says that it means 5). \
Since rises round down and falls round up, a rise by less than the distance of two frequencies can lower the frequency by one step; the kernel does the same.",
    params: &[
        SAMPLING_RATE,
        ParamInfo::number(
            "up_threshold",
            80.0,
            1.0,
            100.0,
            "load in percent above which the frequency rises (cs_init)",
        ),
        ParamInfo::number(
            "down_threshold",
            20.0,
            1.0,
            100.0,
            "load in percent below which it falls; below up_threshold (cs_init)",
        ),
        ParamInfo::number(
            "freq_step",
            5.0,
            0.0,
            100.0,
            "step in percent of the highest allowed frequency (cs_init)",
        ),
        ParamInfo::number(
            "sampling_down_factor",
            1.0,
            1.0,
            10.0,
            "samples in a row before it falls (cs_init)",
        ),
        IGNORE_NICE,
    ],
    conflict: |params| {
        let up = params.whole("up_threshold");
        let conflict = params.whole("down_threshold") >= up;
        conflict.then(|| ("down_threshold", format!("below up_threshold = {up}")))
    },
    reads_util: false,
    build: |params, domain| Box::new(Conservative::new(params, domain)),
};

/// The `conservative` governor.
struct Conservative {
    domain: FrequencyDomain,
    meter: LoadMeter,
    rate_ns: Ns,
    up_threshold: u64,
    down_threshold: u64,
    freq_step: u64,
    sampling_down_factor: u32,
    /// Wanted frequency in kHz.
    wanted: Option<u64>,
    /// Samples in a row without a rise.
    down_skip: u32,
}

/// Least step in kHz (`DEF_FREQUENCY_STEP`, where a step would be 0).
const LEAST_STEP: u64 = 5;

impl Conservative {
    fn new(params: &Params, domain: &FrequencyDomain) -> Self {
        Self {
            domain: domain.clone(),
            meter: LoadMeter::new(params.flag("ignore_nice_load"), false),
            rate_ns: sampling_rate_ns(params, domain),
            up_threshold: params.whole("up_threshold").into(),
            down_threshold: params.whole("down_threshold").into(),
            freq_step: params.whole("freq_step").into(),
            sampling_down_factor: params.whole("sampling_down_factor"),
            wanted: None,
            down_skip: 0,
        }
    }

    /// The new wanted frequency in kHz and how it is rounded; none if nothing changes (`cs_dbs_update`).
    fn step(&mut self, load: &Load, wanted: u64, limits: Limits) -> Option<(u64, Round)> {
        let (min, max) = (in_khz(limits.min_mhz), in_khz(limits.max_mhz));
        let step = (self.freq_step * max / 100).max(LEAST_STEP);
        let slept = load.idle_periods.unwrap_or(0) * step;
        let wanted = wanted.saturating_sub(slept).max(min);
        if load.percent > self.up_threshold {
            self.down_skip = 0;
            return (wanted < max).then(|| ((wanted + step).min(max), Round::Down));
        }
        self.down_skip += 1;
        if self.down_skip < self.sampling_down_factor {
            return None;
        }
        self.down_skip = 0;
        let falls = load.percent < self.down_threshold && wanted > min;
        falls.then(|| (wanted.saturating_sub(step).max(min), Round::Up))
    }
}

impl Governor for Conservative {
    fn pace(&self) -> Option<Pace> {
        Pace::at_events(self.rate_ns)
    }

    fn next_mhz(&mut self, sample: &ClusterSample) -> u32 {
        let limits = sample.limits;
        let present = self.domain.keep(sample.mhz, limits);
        let load = self.meter.measure(sample, self.rate_ns);
        let Some(load) = load.filter(|_| self.freq_step > 0) else {
            return present;
        };
        let range = in_khz(limits.min_mhz)..=in_khz(limits.max_mhz);
        let wanted = self.wanted.filter(|wanted| range.contains(wanted)).unwrap_or(in_khz(present));
        self.wanted = Some(wanted);
        let Some((wanted, round)) = self.step(&load, wanted, limits) else {
            return present;
        };
        self.wanted = Some(wanted);
        self.domain.resolve(wanted, round, limits)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Cluster;

    /// Frequencies after looks at loads in percent, 10 ms apart, from some frequency on.
    fn trace(governor: &str, mhz: u32, loads: &[f64]) -> Vec<u32> {
        let mut cluster = Cluster::little(governor);
        cluster.jump(mhz);
        cluster.start();
        loads.iter().map(|&load| cluster.look(10.0, &[load])).collect()
    }

    #[test]
    fn it_climbs_and_descends_in_small_steps() {
        // Steps of 70 MHz: wanted 270, 340, 410, 480, 550, rounded down.
        assert_eq!(trace("conservative", 200, &[100.0; 5]), [200, 300, 400, 400, 500]);
        // Wanted 1330, 1260, 1190, 1120, 1050, rounded up.
        assert_eq!(trace("conservative", 1400, &[10.0; 5]), [1400, 1300, 1200, 1200, 1100]);
        assert_eq!(trace("conservative", 200, &[100.0; 18]).last(), Some(&1400));
        assert_eq!(trace("conservative", 200, &[100.0; 17]).last(), Some(&1300));
    }

    #[test]
    fn between_the_thresholds_nothing_changes() {
        // Steps of 140 MHz, so that each is seen.
        let governor = "conservative:freq_step=10";
        assert_eq!(trace(governor, 800, &[20.0, 50.0, 80.0]), [800; 3]);
        assert_eq!(trace(governor, 800, &[81.0, 81.0, 19.0, 19.0]), [900, 1000, 1000, 800]);
        let governor = "conservative:freq_step=10:up_threshold=60:down_threshold=40";
        assert_eq!(trace(governor, 800, &[60.0, 61.0, 40.0, 39.0]), [800, 900, 900, 800]);
    }

    #[test]
    fn steps_can_be_larger_or_none() {
        assert_eq!(
            trace("conservative:freq_step=100", 200, &[100.0, 0.0, 100.0]),
            [1400, 200, 1400]
        );
        assert_eq!(trace("conservative:freq_step=0", 800, &[100.0, 0.0]), [800, 800]);
    }

    #[test]
    fn falling_can_take_several_samples() {
        let governor = "conservative:freq_step=10:sampling_down_factor=3";
        // Steps of 140 MHz. A rise starts the count anew.
        let loads = [0.0, 0.0, 0.0, 0.0, 0.0, 100.0, 0.0, 0.0, 0.0];
        assert_eq!(
            trace(governor, 1400, &loads),
            [1400, 1400, 1300, 1300, 1300, 1400, 1400, 1400, 1300]
        );
    }

    #[test]
    fn sleep_counts_as_so_many_falls() {
        // 100 ms, idle for 95: nine sampling times of 70 MHz, 1400 - 630 = 770. The load before, 100, counts
        // once more.
        let mut cluster = Cluster::little("conservative");
        cluster.start();
        assert_eq!(cluster.look(10.0, &[100.0]), 1400);
        assert_eq!(cluster.look(100.0, &[5.0]), 800, "770 + 70 = 840, rounded down");
    }

    #[test]
    fn new_limits_start_from_the_present_frequency() {
        let mut cluster = Cluster::little("conservative");
        cluster.start();
        cluster.look(10.0, &[100.0]);
        cluster.limit(200, 1000);
        assert_eq!(cluster.look(10.0, &[50.0]), 1000);
        assert_eq!(cluster.look(10.0, &[10.0]), 1000, "950, rounded up");
        assert_eq!(cluster.look(10.0, &[10.0]), 900);
    }

    #[test]
    fn samples_come_at_the_sampling_rate() {
        let mut cluster = Cluster::little("conservative");
        cluster.start();
        assert_eq!(cluster.gap_us(), 10_000);
        cluster.look(10.0, &[100.0]);
        assert_eq!(cluster.gap_us(), 10_000);
    }
}
