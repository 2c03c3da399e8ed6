//! Linux's `ondemand` governor.

use ampsched_model::Ns;

use super::domain::{Round, in_khz};
use super::load::{IGNORE_NICE, LoadMeter, SAMPLING_RATE, sampling_rate_ns};
use super::{ClusterSample, FrequencyDomain, Governor, GovernorInfo, Limits, Pace};
use crate::{ParamInfo, Params};

/// The registry's row.
pub static INFO: GovernorInfo = GovernorInfo {
    name: "ondemand",
    summary: "the highest frequency when the load passes a threshold, else one in proportion to the load",
    source: "Linux 6.6 drivers/cpufreq/cpufreq_ondemand.c and cpufreq_governor.c, \
             Documentation/admin-guide/pm/cpufreq.rst; Pallipadi and Starikovskiy, OLS 2006",
    documentation: "\
**Purpose.** Full speed at once when there is work, less when there is little: the default of most kernels before schedutil.

**Algorithm.** Every `sampling_rate_us` the load of each core is taken: the share of time in which it was not idle. The greatest counts. If it is \
above `up_threshold` percent, the cluster gets its highest frequency, and the next sample comes after `sampling_down_factor` sampling times. Otherwise it gets the \
frequency nearest to min + load x (max - min) / 100. A core that has been idle for more than two sampling times gets once the load that it had before. With \
`powersave_bias` the target is lowered by that many thousandths, and if the result is no frequency of the cluster, the sampling time is divided between the next higher and the next \
lower one so that the mean fits.

**Constants.** `up_threshold` = 95: `MICRO_FREQUENCY_UP_THRESHOLD`, used wherever idle time is measured exactly, as in all tickless kernels \
(80 where it is counted in ticks). `sampling_rate_us`: 1000 times as long as a change takes, at most 10 ms (no upper limit before 4.14; 100 ms on \
many boards), at least two ticks. `sampling_down_factor` = 1, `powersave_bias` = 0 (`od_init`). `io_is_busy` = 0: the kernel sets it on Intel only (`od_should_io_be_busy`).

**Example.** 200, 300 ... 1400 MHz: load 96 gives 1400 MHz, load 95 gives 200 + 0.95 x 1200 = 1340, so 1300 MHz, load 50 gives 800 MHz. With \
`powersave_bias=100` load 100 asks for 1400 x 0.9 = 1260 MHz: 1300 MHz for 60 % of the sampling time, then 1200 MHz.

**Limits.** A constant amount of work need not settle: 500 million cycles a second swing between 700 MHz (load 71) and 1100 MHz (load 45). The frequency-sensitivity driver of \
AMD processors is left out. Sampling times below two ticks are allowed here.",
    params: &[
        SAMPLING_RATE,
        ParamInfo::number(
            "up_threshold",
            95.0,
            1.0,
            100.0,
            "load in percent above which the cluster gets its highest frequency (od_init)",
        ),
        ParamInfo::number(
            "sampling_down_factor",
            1.0,
            1.0,
            100_000.0,
            "sampling times until the next look after a rise to the highest frequency (od_init)",
        ),
        ParamInfo::number(
            "powersave_bias",
            0.0,
            0.0,
            1000.0,
            "thousandths by which the target is lowered (od_init)",
        ),
        IGNORE_NICE,
        ParamInfo::flag(
            "io_is_busy",
            false,
            "time spent waiting for devices counts as load (od_should_io_be_busy: off except on Intel)",
        ),
    ],
    conflict: |_| None,
    reads_util: false,
    build: |params, domain| Box::new(Ondemand::new(params, domain)),
};

/// The `ondemand` governor.
struct Ondemand {
    domain: FrequencyDomain,
    meter: LoadMeter,
    rate_ns: Ns,
    up_threshold: u64,
    sampling_down_factor: u64,
    powersave_bias: u64,
    /// Sampling times until the next sample (`rate_mult`).
    rates: u64,
    /// The second part of the present sampling time.
    low: Option<LowPart>,
    gap_ns: Ns,
}

/// The part of a sampling time at the lower of two frequencies.
#[derive(Clone, Copy)]
struct LowPart {
    mhz: u32,
    ns: Ns,
}

impl Ondemand {
    fn new(params: &Params, domain: &FrequencyDomain) -> Self {
        let rate_ns = sampling_rate_ns(params, domain);
        Self {
            domain: domain.clone(),
            meter: LoadMeter::new(params.flag("ignore_nice_load"), params.flag("io_is_busy")),
            rate_ns,
            up_threshold: params.whole("up_threshold").into(),
            sampling_down_factor: params.whole("sampling_down_factor").into(),
            powersave_bias: params.whole("powersave_bias").into(),
            rates: 1,
            low: None,
            gap_ns: rate_ns,
        }
    }

    /// The frequency for a load (`od_update`).
    fn by_load(&mut self, percent: u64, sample: &ClusterSample) -> u32 {
        let limits = sample.limits;
        if percent > self.up_threshold {
            if sample.mhz < limits.max_mhz {
                self.rates = self.sampling_down_factor;
            }
            return self.biased(in_khz(limits.max_mhz), Round::Down, Round::Down, limits);
        }
        self.rates = 1;
        let (min, max) = (in_khz(self.domain.min_mhz()), in_khz(self.domain.max_mhz()));
        self.biased(min + percent * (max - min) / 100, Round::Nearest, Round::Up, limits)
    }

    /// The frequency for a wanted one in kHz; with a bias, rounded differently and lowered, the higher of
    /// the two between which the sampling time is divided (`generic_powersave_bias_target`).
    fn biased(&mut self, khz: u64, round: Round, round_biased: Round, limits: Limits) -> u32 {
        if self.powersave_bias == 0 {
            return self.domain.resolve(khz, round, limits);
        }
        let wanted = in_khz(self.domain.resolve(khz, round_biased, limits));
        let mean = wanted - wanted * self.powersave_bias / 1000;
        let [low_mhz, high_mhz] =
            [Round::Down, Round::Up].map(|round| self.domain.resolve(mean, round, limits));
        let (low, high) = (in_khz(low_mhz), in_khz(high_mhz));
        if low < high {
            let high_ns = (mean - low) * self.rate_ns / (high - low);
            self.low = Some(LowPart { mhz: low_mhz, ns: self.rate_ns - high_ns });
        }
        high_mhz
    }
}

impl Governor for Ondemand {
    fn pace(&self) -> Option<Pace> {
        Pace::at_events(self.gap_ns)
    }

    fn next_mhz(&mut self, sample: &ClusterSample) -> u32 {
        if let Some(low) = self.low.take() {
            self.gap_ns = low.ns;
            return self.domain.keep(low.mhz, sample.limits);
        }
        let Some(load) = self.meter.measure(sample, self.rate_ns * self.rates) else {
            return self.domain.keep(sample.mhz, sample.limits);
        };
        let mhz = self.by_load(load.percent, sample);
        self.gap_ns = match self.low {
            Some(low) => self.rate_ns - low.ns,
            None => self.rate_ns * self.rates,
        };
        mhz
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Cluster;

    /// Frequencies after looks at loads in percent, 10 ms apart.
    fn trace(governor: &str, loads: &[f64]) -> Vec<u32> {
        let mut cluster = Cluster::little(governor);
        cluster.start();
        loads.iter().map(|&load| cluster.look(10.0, &[load])).collect()
    }

    #[test]
    fn the_frequency_follows_the_load_below_the_threshold() {
        // 200 + load x 12 MHz, to the nearest: 1340, 800, 680, 1148, 200.
        let trace_95 = trace("ondemand", &[96.0, 95.0, 50.0, 40.0, 79.0, 0.0]);
        assert_eq!(trace_95, [1400, 1300, 800, 700, 1100, 200]);
        assert_eq!(
            trace("ondemand:up_threshold=80", &[80.0, 81.0, 100.0, 12.0]),
            [1200, 1400, 1400, 300]
        );
    }

    #[test]
    fn the_busiest_core_decides() {
        let mut cluster = Cluster::little("ondemand");
        cluster.start();
        assert_eq!(cluster.look(10.0, &[10.0, 50.0, 0.0, 20.0]), 800);
    }

    #[test]
    fn constant_work_may_swing() {
        // 500 million cycles a second, from 1400 MHz on: loads 35, 83, 41, 71, 45, 71.
        let mut cluster = Cluster::little("ondemand");
        cluster.start();
        let trace: Vec<u32> =
            (0..6).map(|_| cluster.look(10.0, &[50_000.0 / f64::from(cluster.mhz)])).collect();
        assert_eq!(trace, [600, 1200, 700, 1100, 700, 1100]);
    }

    #[test]
    fn samples_come_at_the_sampling_rate_and_later_after_a_rise() {
        let gap_us = |governor: &str, loads: &[f64]| {
            let mut cluster = Cluster::little(governor);
            cluster.start();
            cluster.jump(200);
            let mut gaps = vec![cluster.gap_us()];
            for &load in loads {
                cluster.look(10.0, &[load]);
                gaps.push(cluster.gap_us());
            }
            gaps
        };
        // The domain of the tests changes its frequency in 100 us and has a tick of 4 ms.
        assert_eq!(gap_us("ondemand", &[100.0]), [10_000, 10_000]);
        let loads = [100.0, 100.0, 50.0, 99.0];
        let gaps = gap_us("ondemand:sampling_rate_us=20000:sampling_down_factor=3", &loads);
        // At the highest frequency already, the factor stays.
        assert_eq!(gaps, [20_000, 60_000, 60_000, 20_000, 60_000]);
        let mut cluster = Cluster::little("ondemand:sampling_down_factor=3");
        cluster.start();
        assert_eq!((cluster.look(10.0, &[100.0]), cluster.gap_us()), (1400, 10_000), "no rise");
    }

    #[test]
    fn a_bias_divides_the_sampling_time_between_two_frequencies() {
        let mut cluster = Cluster::little("ondemand:powersave_bias=100");
        cluster.start();
        // 1400 x 0.9 = 1260: 60 % at 1300 and 40 % at 1200.
        assert_eq!((cluster.look(10.0, &[100.0]), cluster.gap_us()), (1300, 6_000));
        assert_eq!((cluster.look(6.0, &[50.0]), cluster.gap_us()), (1200, 4_000));
        // Load 50 over both parts together: 800 x 0.9 = 720.
        assert_eq!((cluster.look(4.0, &[50.0]), cluster.gap_us()), (800, 2_000));
        assert_eq!((cluster.look(2.0, &[0.0]), cluster.gap_us()), (700, 8_000));
        assert_eq!((cluster.look(8.0, &[0.0]), cluster.gap_us()), (200, 10_000));
        // Load 51: 812, rounded up: 900 x 0.9 = 810.
        assert_eq!((cluster.look(10.0, &[51.0]), cluster.gap_us()), (900, 1_000));
    }

    #[test]
    fn a_bias_of_a_whole_step_needs_no_division() {
        // 1000 x 0.8 = 800.
        let mut cluster = Cluster::little("ondemand:powersave_bias=200");
        cluster.start();
        cluster.limit(200, 1000);
        assert_eq!((cluster.look(10.0, &[100.0]), cluster.gap_us()), (800, 10_000));
    }

    #[test]
    fn what_counts_as_load_can_be_chosen() {
        for (governor, expected) in [
            ("ondemand", 800),
            ("ondemand:ignore_nice_load=1", 400),
            ("ondemand:io_is_busy=1", 1200),
        ] {
            let mut cluster = Cluster::little(governor);
            cluster.start();
            cluster.cores[0].nice_ns = 3_000_000;
            cluster.cores[0].iowait_ns = 3_000_000;
            assert_eq!(cluster.look(10.0, &[50.0]), expected, "{governor}");
        }
    }

    #[test]
    fn a_core_that_wakes_from_a_long_sleep_gets_its_old_frequency_once() {
        let mut cluster = Cluster::little("ondemand");
        cluster.start();
        assert_eq!(cluster.look(10.0, &[70.0]), 1000);
        assert_eq!(cluster.look(100.0, &[1.0]), 1000);
        assert_eq!(cluster.look(100.0, &[1.0]), 200);
    }

    #[test]
    fn load_is_scaled_by_all_frequencies_but_limits_hold() {
        let mut cluster = Cluster::little("ondemand");
        cluster.start();
        cluster.limit(500, 1000);
        assert_eq!(cluster.look(10.0, &[50.0]), 800, "not half of the allowed range");
        assert_eq!(cluster.look(10.0, &[100.0]), 1000);
        assert_eq!(cluster.look(10.0, &[0.0]), 500);
    }
}
