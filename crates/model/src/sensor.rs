//! Sensors: what software can know of a temperature or a power.

use crate::{Draw, Ns};

/// A sensor that refreshes its reading now and then.
///
/// Sample `k` is taken at time `k * period_ns` (k from 1 on) and can be read `delay_ns` later; until the
/// first can be read there is no reading. What a sample holds is up to the quantity: the temperature at
/// that time, or, as the INA231 converters of the Odroid XU3 do, the mean power of the period before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensor {
    /// Step between two readings, in the quantity's unit; 0 if readings are not rounded.
    pub resolution: f64,
    /// Standard deviation of the noise, in the quantity's unit.
    pub noise: f64,
    /// Time between two samples; at least 1.
    pub period_ns: Ns,
    /// Time from a sample to when it can be read.
    pub delay_ns: Ns,
}

impl Sensor {
    /// The newest sample that can be read at a time, if there is one.
    pub fn sample(&self, now_ns: Ns) -> Option<u64> {
        let newest = now_ns.checked_sub(self.delay_ns)? / self.period_ns;
        (newest > 0).then_some(newest)
    }

    /// When a sample is taken.
    pub fn sample_ns(&self, sample: u64) -> Ns {
        sample * self.period_ns
    }

    /// What the sensor shows for a sample of a true value.
    ///
    /// `random` is the stream of this sensor; a sample's noise depends on it and on the sample's number
    /// only, so it is the same whichever policy reads it and how often.
    pub fn reading(&self, value: f64, sample: u64, random: &Draw) -> f64 {
        let noisy = value + self.noise * random.child(sample).normal();
        if self.resolution == 0.0 {
            return noisy;
        }
        (noisy / self.resolution).round() * self.resolution
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 mW steps, 5 mW noise, every 270 ms, 2 ms late.
    const SENSOR: Sensor =
        Sensor { resolution: 1.0, noise: 5.0, period_ns: 270_000_000, delay_ns: 2_000_000 };

    #[test]
    fn a_sample_can_be_read_when_its_delay_is_over() {
        let seen = [0, 1_999_999, 271_999_999, 272_000_000, 541_999_999, 542_000_000];
        let samples = seen.map(|now_ns| SENSOR.sample(now_ns));
        assert_eq!(samples, [None, None, None, Some(1), Some(1), Some(2)]);
        assert_eq!(SENSOR.sample_ns(2), 540_000_000);
    }

    #[test]
    fn readings_are_rounded_and_have_the_stated_noise() {
        let random = Draw::new(7);
        let readings: Vec<f64> =
            (1..=20_000).map(|sample| SENSOR.reading(1000.4, sample, &random)).collect();
        assert!(readings.iter().all(|reading| reading.fract() == 0.0));
        let mean = readings.iter().sum::<f64>() / readings.len() as f64;
        let variance = readings.iter().map(|reading| (reading - mean).powi(2)).sum::<f64>()
            / readings.len() as f64;
        // Rounding to steps of 1 adds a variance of 1/12.
        assert!((mean - 1000.4).abs() < 0.2, "mean {mean}");
        assert!((variance - (25.0 + 1.0 / 12.0)).abs() < 1.0, "variance {variance}");
    }

    #[test]
    fn a_reading_does_not_depend_on_other_readings() {
        let random = Draw::new(3);
        assert_eq!(SENSOR.reading(5.0, 9, &random), SENSOR.reading(5.0, 9, &random));
        assert_ne!(SENSOR.reading(5.0, 9, &random), SENSOR.reading(5.0, 10, &random));
        let exact = Sensor { resolution: 0.0, noise: 0.0, ..SENSOR };
        assert_eq!(exact.reading(1.234, 1, &random), 1.234);
    }
}
