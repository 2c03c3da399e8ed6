//! Metrics that compare a mix with its programs running alone.

use ampsched_model::Ns;
use serde::Serialize;

/// An application's turnaround in the mix and alone on the reference machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppTimes {
    /// Turnaround in the mix.
    pub mix_ns: Ns,
    /// Turnaround alone on the machine of only big cores.
    pub alone_ns: Ns,
}

/// Metrics of one simulation against the alone-on-big-only reference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Normalised turnaround of each application: T_mix / T_alone; 1 is as if alone (COLAB, section 5.1).
    pub h_ntt: Vec<f64>,
    /// Mean of `h_ntt`; lower is better.
    pub h_antt: f64,
    /// System throughput: sum of T_alone / T_mix; higher is better, at most the number of applications.
    pub h_stp: f64,
    /// Uniformity 1 - sigma / mu of the slowdowns, population sigma (HFEE, section 3); 1 is fair.
    pub uniformity: f64,
    /// Greatest / smallest slowdown (Prop-SP, section 2); 1 is fair.
    pub unfairness: f64,
}

/// The metrics of COLAB, with the fairness measures of HFEE and Prop-SP on the same slowdowns.
///
/// Panics if `times` is empty or a time is zero.
pub fn compare(times: &[AppTimes]) -> Comparison {
    assert!(
        !times.is_empty() && times.iter().all(|time| time.mix_ns > 0 && time.alone_ns > 0),
        "times are positive"
    );
    let h_ntt: Vec<f64> =
        times.iter().map(|time| time.mix_ns as f64 / time.alone_ns as f64).collect();
    let count = h_ntt.len() as f64;
    let mean = h_ntt.iter().sum::<f64>() / count;
    let sigma = (h_ntt.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count).sqrt();
    let greatest = h_ntt.iter().copied().fold(f64::MIN, f64::max);
    let smallest = h_ntt.iter().copied().fold(f64::MAX, f64::min);
    Comparison {
        h_antt: mean,
        h_stp: h_ntt.iter().map(|slowdown| 1.0 / slowdown).sum(),
        uniformity: 1.0 - sigma / mean,
        unfairness: greatest / smallest,
        h_ntt,
    }
}

/// Geometric mean; 1 for no values.
pub fn geometric_mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 1.0;
    }
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turnarounds of COLAB's Figure 1 as computed in the specification, in thousandths of a unit.
    fn figure_1(mix: [Ns; 3]) -> Comparison {
        let alone = [4_500, 4_167, 2_000];
        compare(
            &mix.into_iter()
                .zip(alone)
                .map(|(mix_ns, alone_ns)| AppTimes { mix_ns, alone_ns })
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn figure_1_metrics() {
        let wash = figure_1([8_167, 8_000, 5_667]);
        let colab = figure_1([5_000, 6_500, 4_000]);
        let strict = figure_1([4_833, 7_000, 4_000]);
        assert!((wash.h_antt - 2.189).abs() < 1e-3, "{wash:?}");
        assert!((colab.h_antt - 1.557).abs() < 1e-3, "{colab:?}");
        assert!((strict.h_antt - 1.585).abs() < 1e-3, "{strict:?}");
        assert!((wash.h_stp - 1.425).abs() < 1e-3 && (colab.h_stp - 2.041).abs() < 1e-3);
    }

    #[test]
    fn fairness_vector() {
        let times = [1_200, 1_400, 1_600, 2_000].map(|mix_ns| AppTimes { mix_ns, alone_ns: 1_000 });
        let metrics = compare(&times);
        assert!((metrics.uniformity - 0.8092).abs() < 1e-4);
        assert!((metrics.unfairness - 2.0 / 1.2).abs() < 1e-12);
        assert!((geometric_mean(&[1.0, 4.0]) - 2.0).abs() < 1e-12);
    }
}
