//! The registry: one row per policy. Command line, documentation and tests read it.

use crate::params::{Owner, unknown};
pub use crate::policies::REGISTRY;
use crate::{ParamInfo, Params, Policy, PolicyError};

/// Declares the modules of a registry and the registry itself: one row per module, in the order of the names.
///
/// A row is the name of a module, whose row is its `INFO`. `module + OTHER` adds a second one of that module.
/// `rustfmt` does not follow modules that a macro declares: `make format` names it all files.
#[macro_export]
macro_rules! registry {
    ($(#[$meta:meta])* pub static $registry:ident: $info:ty =
        [$($module:ident $(+ $other:ident)*),* $(,)?]) => {
        $(pub mod $module;)*

        $(#[$meta])*
        pub static $registry: &[&$info] = &[$(&$module::INFO, $(&$module::$other,)*)*];
    };
}

/// A row of the registry.
pub struct PolicyInfo {
    /// Name, as on the command line.
    pub name: &'static str,
    /// One line: what it does.
    pub summary: &'static str,
    /// Purpose, when to use it (what it needs, and when not), algorithm, constants and sources, a small example,
    /// limits (Markdown).
    pub documentation: &'static str,
    /// Paper or source.
    pub source: &'static str,
    /// Parameters.
    pub params: &'static [ParamInfo],
    /// Builds the policy.
    pub build: fn(&Params) -> Box<dyn Policy>,
}

/// The registry's row of a policy.
pub fn find_policy(name: &str) -> Result<&'static PolicyInfo, PolicyError> {
    let found = REGISTRY.iter().copied().find(|info| info.name == name);
    found.ok_or_else(|| unknown("policy", name, REGISTRY.iter().map(|info| info.name)))
}

/// The number that a text is for a parameter of a policy whose values have names ([`Owner::named`]).
///
/// Errors: the text is no value of the parameter.
pub fn named_value(policy: &str, param: &str, text: &str) -> Result<Option<f64>, PolicyError> {
    let Ok(info) = find_policy(policy) else { return Ok(None) };
    Owner { kind: "policy", name: info.name, params: info.params }.named(param, text)
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
    use crate::{Needs, policies};

    #[test]
    fn rows_are_sorted_documented_and_buildable() {
        assert!(REGISTRY.is_sorted_by_key(|info| info.name));
        for info in REGISTRY.iter().chain(&[&policies::template::INFO]) {
            for part in ["Purpose", "When to use", "Algorithm", "Constants", "Example", "Limits"] {
                assert!(
                    info.documentation.contains(&format!("**{part}.**")),
                    "{}: documentation lacks {part}",
                    info.name
                );
            }
            assert!(!info.summary.is_empty() && !info.source.is_empty(), "{}", info.name);
            let defaults = info.params.iter().map(|row| (row.name.to_owned(), row.default));
            let owner = Owner { kind: "policy", name: info.name, params: info.params };
            (info.build)(&owner.values(&defaults.collect::<Vec<_>>()).unwrap());
        }
    }

    /// The words by which "When to use" says what a policy needs.
    fn needed_words(needs: &Needs) -> Vec<&'static str> {
        let words = [
            (needs.speedup || needs.offline_speedup, "speed-ups"),
            (needs.blame, "blame"),
            (needs.stalls, "stall counters"),
            (needs.instructions, "instructions"),
            (needs.alone, "alone"),
            (needs.work, "lengths"),
            (needs.paths, "paths"),
            (needs.power, "power"),
            (needs.sensors, "sensors"),
            (needs.frequencies, "clock"),
            (needs.load_tracking.is_some(), "tracked load"),
            (needs.holds, "held back|needs what"),
        ];
        words.into_iter().filter(|&(is_needed, _)| is_needed).map(|(_, word)| word).collect()
    }

    #[test]
    fn when_to_use_says_when_not_and_what_is_needed() {
        for info in REGISTRY {
            let (_, rest) = info.documentation.split_once("**When to use.** ").unwrap();
            let (text, _) = rest.split_once("\n\n").unwrap();
            let has = |words: &str| words.split('|').any(|word| text.contains(word));
            assert!(has("Not "), "{}: when not to use it is not said", info.name);
            let needs = build_policy(info.name, &[]).unwrap().needs();
            for words in needed_words(&needs) {
                assert!(has(words), "{}: needs {words}, which is not said: {text}", info.name);
            }
            let knows_gains = needs.speedup || needs.offline_speedup;
            assert!(knows_gains || !text.contains("needs speed-ups"), "{}: {text}", info.name);
        }
    }

    #[test]
    fn errors_name_the_nearest() {
        let error = build_policy("cfss", &[]).err().unwrap();
        assert_eq!(error.to_string(), "unknown policy \"cfss\" (did you mean \"cfs\"?)");
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
