//! The registry: one row per task policy. Command line, documentation and tests read it.

use ampsched_policy::{Owner, ParamInfo, Params, PolicyError, unknown};

pub use crate::policies::REGISTRY;
use crate::{Problem, Schedule, TaskPolicy, Workers};

/// How a policy decides.
#[derive(Clone, Copy)]
pub enum Build {
    /// While the workers run.
    OnLine(fn(&Params, &Workers) -> Box<dyn TaskPolicy>),
    /// Beforehand, from all costs.
    OffLine(fn(&Params, &Problem<'_>) -> Schedule),
}

/// A row of the registry.
pub struct TaskPolicyInfo {
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
    /// Whether it can begin before all tasks have been created; the others divide whole levels, or schedule beforehand.
    pub lazy: bool,
    /// Builds the policy.
    pub build: Build,
}

/// The registry's row of a task policy.
pub fn find_task_policy(name: &str) -> Result<&'static TaskPolicyInfo, PolicyError> {
    let found = REGISTRY.iter().copied().find(|info| info.name == name);
    found.ok_or_else(|| unknown("task policy", name, REGISTRY.iter().map(|info| info.name)))
}

/// How to build a policy by name, and its parameters; those not named keep their defaults.
pub fn build_task_policy(
    name: &str,
    params: &[(String, f64)],
) -> Result<(Build, Params), PolicyError> {
    let info = find_task_policy(name)?;
    let owner = Owner { kind: "task policy", name: info.name, params: info.params };
    Ok((info.build, owner.values(params)?))
}

/// A name, and parameters with their values.
pub type Spec<'t> = (&'t str, Vec<(String, f64)>);

/// Reads a name with parameters: `cats:steal=1:strict=1`. Errors: what is wrong, in one line.
pub fn parse_spec(text: &str) -> Result<Spec<'_>, String> {
    let mut parts = text.trim().split(':');
    let name = parts.next().filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| format!("{text:?} has no name"))?;
    let param = |part: &str| {
        let pair = part.split_once('=').map(|(key, value)| (key.to_owned(), value.parse::<f64>()));
        match pair {
            Some((key, Ok(value))) if !key.is_empty() && value.is_finite() => Ok((key, value)),
            _ => Err(format!(
                "{}: {part:?} is not of the form parameter=number",
                name.escape_debug()
            )),
        }
    };
    Ok((name, parts.map(param).collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_documented() {
        assert!(REGISTRY.is_sorted_by_key(|info| info.name));
        for info in REGISTRY {
            for part in ["Purpose", "Algorithm", "Constants", "Example", "Limits"] {
                let heading = format!("**{part}.**");
                assert!(info.documentation.contains(&heading), "{}: lacks {part}", info.name);
            }
            assert!(!info.summary.is_empty() && !info.source.is_empty(), "{}", info.name);
            let defaults = info.params.iter().map(|row| (row.name.to_owned(), row.default));
            build_task_policy(info.name, &defaults.collect::<Vec<_>>()).unwrap();
        }
    }

    #[test]
    fn low_specs_of_several_lines_are_refused_in_one() {
        let error = parse_spec("a\nb:c").unwrap_err();
        assert_eq!(error, r#"a\nb: "c" is not of the form parameter=number"#);
    }

    #[test]
    fn errors_name_the_nearest() {
        let error_of = |name: &str, param: &str, value: f64| {
            build_task_policy(name, &[(param.into(), value)]).err().unwrap().to_string()
        };
        assert_eq!(
            error_of("hefft", "", 0.0),
            "unknown task policy \"hefft\" (did you mean \"heft\"?)"
        );
        assert_eq!(
            error_of("cats", "stael", 1.0),
            "task policy cats has no parameter \"stael\" (did you mean \"steal\"?)"
        );
        assert_eq!(
            error_of("cats", "steal", 2.0),
            "task policy cats: parameter steal = 2 is not 0 or 1"
        );
    }
}
