//! The registry: one row per policy. Command line, documentation and tests read it.

use ampsched_model::suggest;

use crate::{Policy, policies};

/// What values a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamKind {
    /// A number within limits.
    Number {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// 0 (off) or 1 (on).
    Flag,
}

/// A parameter of a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParamInfo {
    /// Name; ends with the unit if it has one.
    pub name: &'static str,
    /// Default.
    pub default: f64,
    /// What values it takes.
    pub kind: ParamKind,
    /// One line of help, with the source of the default.
    pub help: &'static str,
}

impl ParamInfo {
    /// A number within limits.
    pub const fn number(
        name: &'static str,
        default: f64,
        min: f64,
        max: f64,
        help: &'static str,
    ) -> Self {
        Self { name, default, kind: ParamKind::Number { min, max }, help }
    }

    /// A switch.
    pub const fn flag(name: &'static str, default: bool, help: &'static str) -> Self {
        Self { name, default: if default { 1.0 } else { 0.0 }, kind: ParamKind::Flag, help }
    }
}

/// A row of the registry.
pub struct PolicyInfo {
    /// Name, as on the command line.
    pub name: &'static str,
    /// One line: what it does.
    pub summary: &'static str,
    /// Purpose, algorithm, constants and sources, a small example, limits (Markdown).
    pub documentation: &'static str,
    /// Paper or source.
    pub source: &'static str,
    /// Parameters.
    pub params: &'static [ParamInfo],
    /// Builds the policy.
    pub build: fn(&Params) -> Box<dyn Policy>,
}

/// Values of all parameters of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    values: Vec<(&'static str, f64)>,
}

impl Params {
    /// The defaults.
    pub fn defaults(params: &'static [ParamInfo]) -> Self {
        Self { values: params.iter().map(|param| (param.name, param.default)).collect() }
    }

    /// A parameter's value. Panics if the policy has not declared it.
    pub fn number(&self, name: &str) -> f64 {
        let found = self.values.iter().find(|(known, _)| *known == name);
        found.unwrap_or_else(|| panic!("parameter {name} is not declared")).1
    }

    /// A switch's value.
    pub fn flag(&self, name: &str) -> bool {
        self.number(name) != 0.0
    }

    /// A duration in ms as ns.
    pub fn ms(&self, name: &str) -> u64 {
        (self.number(name) * 1e6).round() as u64
    }

    pub(crate) fn set(&mut self, name: &str, value: f64) {
        for entry in self.values.iter_mut().filter(|entry| entry.0 == name) {
            entry.1 = value;
        }
    }
}

/// A policy or parameter that does not exist, or a value out of limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// No policy has that name.
    #[error("policy \"{name}\" does not exist ({hint})")]
    UnknownPolicy {
        /// The name.
        name: String,
        /// What to do.
        hint: String,
    },
    /// The policy has no such parameter.
    #[error("policy {policy} has no parameter \"{name}\" ({hint})")]
    UnknownParam {
        /// The policy.
        policy: String,
        /// The name.
        name: String,
        /// What to do.
        hint: String,
    },
    /// The value is out of limits.
    #[error("policy {policy}: parameter {name} = {value} is not {limit}")]
    BadValue {
        /// The policy.
        policy: String,
        /// The parameter.
        name: String,
        /// The value.
        value: String,
        /// What is allowed.
        limit: String,
    },
}

/// All policies, in alphabetical order.
pub static REGISTRY: &[&PolicyInfo] = &[
    &policies::cfs::INFO,
    &policies::colab::INFO,
    &policies::colab_collaboration_only::INFO,
    &policies::eevdf::INFO,
    &policies::hfee::INFO,
    &policies::hfee::AS_PUBLISHED,
    &policies::hsp::INFO,
    &policies::prop_sp::INFO,
    &policies::rr::INFO,
    &policies::rr_amp::INFO,
    &policies::pinned::INFO,
    &policies::wash::INFO,
    &policies::wash_orig::INFO,
];

/// The registry's row of a policy.
pub fn find_policy(name: &str) -> Result<&'static PolicyInfo, PolicyError> {
    REGISTRY.iter().copied().find(|info| info.name == name).ok_or_else(|| {
        PolicyError::UnknownPolicy {
            name: name.into(),
            hint: suggest(name, REGISTRY.iter().map(|info| info.name)),
        }
    })
}

/// Builds a policy by name with parameters; those not named keep their defaults.
pub fn build_policy(name: &str, params: &[(String, f64)]) -> Result<Box<dyn Policy>, PolicyError> {
    let info = find_policy(name)?;
    let mut values = Params::defaults(info.params);
    for (param, value) in params {
        let row = info.params.iter().find(|row| row.name == param).ok_or_else(|| {
            PolicyError::UnknownParam {
                policy: name.into(),
                name: param.clone(),
                hint: suggest(param, info.params.iter().map(|row| row.name)),
            }
        })?;
        check(info, row, *value)?;
        values.set(row.name, *value);
    }
    Ok((info.build)(&values))
}

fn check(info: &PolicyInfo, row: &ParamInfo, value: f64) -> Result<(), PolicyError> {
    let (fits, limit) = match row.kind {
        ParamKind::Flag => (value == 0.0 || value == 1.0, "0 or 1".to_owned()),
        ParamKind::Number { min, max } => {
            (value >= min && value <= max, format!("within {min} to {max}"))
        }
    };
    if fits {
        return Ok(());
    }
    Err(PolicyError::BadValue {
        policy: info.name.into(),
        name: row.name.into(),
        value: value.to_string(),
        limit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_documented_and_buildable() {
        assert!(REGISTRY.is_sorted_by_key(|info| info.name));
        for info in REGISTRY {
            for part in ["Purpose", "Algorithm", "Constants", "Example", "Limits"] {
                assert!(
                    info.documentation.contains(part),
                    "{}: documentation lacks {part}",
                    info.name
                );
            }
            assert!(!info.summary.is_empty() && !info.source.is_empty(), "{}", info.name);
            for row in info.params {
                check(info, row, row.default).unwrap();
            }
            build_policy(info.name, &[]).unwrap();
        }
    }

    #[test]
    fn errors_name_the_nearest() {
        let error = build_policy("cfss", &[]).err().unwrap();
        assert_eq!(error.to_string(), "policy \"cfss\" does not exist (did you mean \"cfs\"?)");
        let error = build_policy("cfs", &[("latncy_ms".into(), 1.0)]).err().unwrap();
        assert_eq!(
            error.to_string(),
            "policy cfs has no parameter \"latncy_ms\" (did you mean \"latency_ms\"?)"
        );
        let error = build_policy("cfs", &[("latency_ms".into(), -1.0)]).err().unwrap();
        assert_eq!(
            error.to_string(),
            "policy cfs: parameter latency_ms = -1 is not within 0 to 1000"
        );
    }
}
