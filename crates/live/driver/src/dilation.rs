//! A policy's clock that runs slower than the wall's.

use ampsched_model::{InputError, Ns};
use ampsched_policy::{Change, Rules, Wire};

/// How many times slower a policy's time passes than real time.
///
/// All constants of a policy (epochs, windows, slices, thresholds) then last as many times longer, with no
/// need to know which of its parameters are times. It is for machines on which time means less, such as
/// emulated ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dilation(f64);

impl Default for Dilation {
    fn default() -> Self {
        Self::REAL
    }
}

impl Dilation {
    /// The policy's time is real time.
    pub const REAL: Self = Self(1.0);
    /// Greatest factor: an epoch of 10 ms becomes 10 s.
    const MAX: f64 = 1000.0;

    /// From a factor as given by the user. Errors: it is not within 0.001 to 1000.
    pub fn new(factor: f64) -> Result<Self, InputError> {
        if (1.0 / Self::MAX..=Self::MAX).contains(&factor) {
            return Ok(Self(factor));
        }
        let message = format!("{factor} is not within {} to {}", 1.0 / Self::MAX, Self::MAX);
        Err(InputError::new("--dilation", "", message).with_hint("1 is real time"))
    }

    /// The factor.
    pub fn factor(self) -> f64 {
        self.0
    }

    /// Real time as the policy sees it.
    pub fn to_policy(self, real_ns: Ns) -> Ns {
        scaled(real_ns, 1.0 / self.0)
    }

    /// The policy's time in real time.
    pub fn to_real(self, policy_ns: Ns) -> Ns {
        scaled(policy_ns, self.0)
    }

    /// A rate per real time as one per the policy's time.
    pub fn rate_to_policy(self, per_real: f64) -> f64 {
        per_real * self.0
    }

    /// A change of a plan with its times in real time.
    pub fn change_to_real(self, change: Change) -> Change {
        match change {
            Change::Slice(slice_ns) => Change::Slice(self.to_real(slice_ns)),
            other => other,
        }
    }

    /// Rules with their times in real time.
    pub fn rules_to_real(self, rules: &Rules) -> Rules {
        let mut real = rules.clone();
        real.map_all_times(&|ns| self.to_real(ns));
        real
    }
}

/// Times a factor, rounded; "no limit" stays so.
fn scaled(ns: Ns, factor: f64) -> Ns {
    if factor == 1.0 || ns == Ns::MAX { ns } else { (ns as f64 * factor).round() as Ns }
}

#[cfg(test)]
mod tests {
    use ampsched_policy::{REGISTRY, build_policy};

    use super::*;
    use ampsched_computer::{CoreMap, Domain};

    fn map() -> CoreMap {
        let domain = |class, cpu| Domain {
            class,
            cpus: vec![cpu],
            freqs_mhz: vec![1000],
            cpufreq: Vec::new(),
            relative_speed: None,
            power: Vec::new(),
        };
        CoreMap::new(vec![domain(1, 0), domain(0, 1)])
    }

    /// All numbers in the text of rules that are followed by nothing but a separator.
    fn times(rules: &Rules) -> Vec<(String, u64)> {
        let text = format!("{rules:?}");
        let fields = text.split(['{', ',', '}', '(', ')']).filter_map(|field| {
            let (name, value) = field.split_once(": ")?;
            name.trim()
                .ends_with("_ns")
                .then(|| (name.trim().to_owned(), value.trim().parse().ok()))
        });
        fields.filter_map(|(name, value)| Some((name, value?))).collect()
    }

    #[test]
    fn every_time_in_every_policy_s_rules_is_scaled() {
        let dilation = Dilation::new(4.0).unwrap();
        for info in REGISTRY {
            let rules = build_policy(info.name, &[]).unwrap().rules(map().topology());
            let (before, after) = (times(&rules), times(&dilation.rules_to_real(&rules)));
            assert_eq!(before.len(), after.len());
            for ((name, before), (_, after)) in before.into_iter().zip(after) {
                let expected = if before == u64::MAX { before } else { 4 * before };
                assert_eq!(after, expected, "{}: {name}", info.name);
            }
        }
    }

    #[test]
    fn real_and_policy_time_are_inverse() {
        let dilation = Dilation::new(2.5).unwrap();
        assert_eq!(dilation.to_policy(10), 4);
        assert_eq!(dilation.to_real(4), 10);
        assert_eq!(Dilation::default().to_real(Ns::MAX - 1), Ns::MAX - 1);
        assert!((dilation.rate_to_policy(2.0) - 5.0).abs() < 1e-12);
    }

    #[test]
    fn impossible_factors_are_refused() {
        for factor in [0.0, -1.0, f64::NAN, 1001.0] {
            let error = Dilation::new(factor).unwrap_err().to_string();
            assert!(error.contains("is not within 0.001 to 1000 (1 is real time)"), "{error}");
        }
    }
}
