//! What real counters add to the truth: noise, more of it if events take turns.

use ampsched_model::Draw;

/// Coefficient of variation of a count that was scaled up from half of the time, relative to `sqrt(1 / share - 1)`.
///
/// A count sampled in a share of the window and scaled up errs with the standard deviation of a sample
/// without replacement: `k sqrt(1 / share - 1)`. Lv et al. (CounterMiner, MICRO 2018) measured a mean absolute error of
/// 28.3 % with 10 events on 4 counters, a share of 0.4; a normal error of that mean has a standard deviation
/// of 0.283 x sqrt(pi / 2) = 0.355, so k = 0.355 / sqrt(1.5).
const MULTIPLEX_CV: f64 = 0.29;

/// Coefficient of variation of a count that runs in a share of the time, if `base_cv` is that of one that
/// always runs.
pub fn counter_cv(base_cv: f64, running_share: f64) -> f64 {
    let turns = MULTIPLEX_CV * (1.0 / running_share - 1.0).max(0.0).sqrt();
    (base_cv * base_cv + turns * turns).sqrt()
}

/// A factor of mean 1 and a coefficient of variation: log-normal, so that a count stays positive.
pub fn noise_factor(cv: f64, random: &mut Draw) -> f64 {
    let variance = (1.0 + cv * cv).ln();
    (variance.sqrt() * random.normal() - variance / 2.0).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_err_as_measured() {
        let cv = counter_cv(0.0, 0.4);
        let mut random = Draw::new(3);
        let errors: f64 = (0..20_000).map(|_| (noise_factor(cv, &mut random) - 1.0).abs()).sum();
        let mean = errors / 20_000.0;
        assert!((mean - 0.283).abs() < 0.02, "{mean}");
        assert_eq!(counter_cv(0.01, 1.0), 0.01);
    }
}
