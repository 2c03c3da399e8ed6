//! The registry: one row per governor. Command line, documentation and tests read it.

use super::{FrequencyDomain, GOVERNORS, Governor};
use crate::params::{Owner, unknown};
use crate::{ParamInfo, Params, PolicyError};

/// A row of the registry.
pub struct GovernorInfo {
    /// Name, as on the command line and in Linux.
    pub name: &'static str,
    /// One line: what it does.
    pub summary: &'static str,
    /// Purpose, algorithm, constants and sources, a small example, limits (Markdown).
    pub documentation: &'static str,
    /// Kernel, version and files.
    pub source: &'static str,
    /// Parameters.
    pub params: &'static [ParamInfo],
    /// A parameter whose value does not go with another's, and what is allowed.
    pub conflict: fn(&Params) -> Option<(&'static str, String)>,
    /// Whether it reads [`CoreSample::util`](super::CoreSample::util): then load must be tracked.
    pub reads_util: bool,
    /// Builds the governor of a domain.
    pub build: fn(&Params, &FrequencyDomain) -> Box<dyn Governor>,
}

/// The registry's row of a governor.
pub fn find_governor(name: &str) -> Result<&'static GovernorInfo, PolicyError> {
    let found = GOVERNORS.iter().copied().find(|info| info.name == name);
    found.ok_or_else(|| unknown("governor", name, GOVERNORS.iter().map(|info| info.name)))
}

/// The values of all parameters of a governor; those not given keep their defaults.
pub fn check_governor(name: &str, params: &[(String, f64)]) -> Result<Params, PolicyError> {
    let info = find_governor(name)?;
    let owner = Owner { kind: "governor", name: info.name, params: info.params };
    let values = owner.values(params)?;
    match (info.conflict)(&values) {
        None => Ok(values),
        Some((param, limit)) => Err(owner.bad(param, values.number(param), limit)),
    }
}

/// Builds a governor by name with parameters for a domain; parameters not given keep their defaults.
pub fn build_governor(
    name: &str,
    params: &[(String, f64)],
    domain: &FrequencyDomain,
) -> Result<Box<dyn Governor>, PolicyError> {
    let values = check_governor(name, params)?;
    Ok((find_governor(name)?.build)(&values, domain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str, params: &[(&str, f64)]) -> String {
        let params: Vec<_> = params.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        check_governor(name, &params).unwrap_err().to_string()
    }

    #[test]
    fn rows_are_sorted_documented_and_their_defaults_fit() {
        assert!(GOVERNORS.is_sorted_by_key(|info| info.name));
        for info in GOVERNORS {
            for part in ["Purpose", "Algorithm", "Constants", "Example", "Limits"] {
                assert!(
                    info.documentation.contains(part),
                    "{}: documentation lacks {part}",
                    info.name
                );
            }
            assert!(!info.summary.is_empty() && !info.source.is_empty(), "{}", info.name);
            let defaults = info.params.iter().map(|row| (row.name.to_owned(), row.default));
            check_governor(info.name, &defaults.collect::<Vec<_>>()).unwrap();
        }
    }

    #[test]
    fn errors_name_the_nearest_and_the_limit() {
        assert_eq!(
            refused("ondeman", &[]),
            "unknown governor \"ondeman\" (did you mean \"ondemand\"?)"
        );
        assert_eq!(
            refused("ondemand", &[("up_treshold", 80.0)]),
            "governor ondemand has no parameter \"up_treshold\" (did you mean \"up_threshold\"?)"
        );
        assert_eq!(
            refused("ondemand", &[("up_threshold", 101.0)]),
            "governor ondemand: parameter up_threshold = 101 is not within 1 to 100"
        );
        assert_eq!(
            refused("conservative", &[("down_threshold", 80.0)]),
            "governor conservative: parameter down_threshold = 80 is not below up_threshold = 80"
        );
    }
}
