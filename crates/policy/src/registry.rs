//! The registry: one row per policy. Command line, documentation and tests read it.

use crate::params::{Owner, unknown};
use crate::{ParamInfo, Params, Policy, PolicyError, policies};

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

/// All policies, in alphabetical order.
pub static REGISTRY: &[&PolicyInfo] = &[
    &policies::a_dwrr::INFO,
    &policies::acfs::INFO,
    &policies::amps::INFO,
    &policies::bias::INFO,
    &policies::camp::INFO,
    &policies::cfs::INFO,
    &policies::cluster_switching::INFO,
    &policies::colab::INFO,
    &policies::colab_collaboration_only::INFO,
    &policies::dtpm::INFO,
    &policies::eas::INFO,
    &policies::eevdf::INFO,
    &policies::equal_progress::INFO,
    &policies::gts::INFO,
    &policies::guaranteed_fairness::INFO,
    &policies::hfee::INFO,
    &policies::hfee::AS_PUBLISHED,
    &policies::hpm::INFO,
    &policies::hsp::INFO,
    &policies::iks::INFO,
    &policies::max_fair::INFO,
    &policies::max_perf::INFO,
    &policies::min_fair::INFO,
    &policies::min_fair_hfee::INFO,
    &policies::pie::INFO,
    &policies::prop_sp::INFO,
    &policies::rr::INFO,
    &policies::rr_amp::INFO,
    &policies::similarity::INFO,
    &policies::smart_balance::INFO,
    &policies::pinned::INFO,
    &policies::uniformity::INFO,
    &policies::utilisation_aware::INFO,
    &policies::wash::INFO,
    &policies::wash_orig::INFO,
];

/// The registry's row of a policy.
pub fn find_policy(name: &str) -> Result<&'static PolicyInfo, PolicyError> {
    let found = REGISTRY.iter().copied().find(|info| info.name == name);
    found.ok_or_else(|| unknown("policy", name, REGISTRY.iter().map(|info| info.name)))
}

/// Builds a policy by name with parameters; those not named keep their defaults.
pub fn build_policy(name: &str, params: &[(String, f64)]) -> Result<Box<dyn Policy>, PolicyError> {
    let info = find_policy(name)?;
    let owner = Owner { kind: "policy", name: info.name, params: info.params };
    Ok((info.build)(&owner.values(params)?))
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
            let defaults = info.params.iter().map(|row| (row.name.to_owned(), row.default));
            build_policy(info.name, &defaults.collect::<Vec<_>>()).unwrap();
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
