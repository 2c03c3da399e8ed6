//! The registry: one row per task policy. Command line, documentation and tests read it.

use ampsched_model::suggest;
use ampsched_policy::{ParamInfo, ParamKind, PolicyError};

use crate::{Problem, Schedule, TaskPolicy, Workers, policies};

/// How a policy decides.
#[derive(Clone, Copy)]
pub enum Build {
    /// While the workers run.
    OnLine(fn(&TaskParams, &Workers) -> Box<dyn TaskPolicy>),
    /// Beforehand, from all costs.
    OffLine(fn(&TaskParams, &Problem<'_>) -> Schedule),
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
    /// Builds the policy.
    pub build: Build,
}

/// Values of all parameters of a task policy.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskParams {
    values: Vec<(&'static str, f64)>,
}

impl TaskParams {
    /// A parameter's value. Panics if the policy has not declared it.
    pub fn number(&self, name: &str) -> f64 {
        let found = self.values.iter().find(|(known, _)| *known == name);
        found.unwrap_or_else(|| panic!("parameter {name} is not declared")).1
    }

    /// A switch's value.
    pub fn flag(&self, name: &str) -> bool {
        self.number(name) != 0.0
    }
}

/// All task policies, in alphabetical order.
pub static REGISTRY: &[&TaskPolicyInfo] = &[
    &policies::cats::INFO,
    &policies::cats_cost::INFO,
    &policies::cpop::INFO,
    &policies::dls::INFO,
    &policies::fifo::INFO,
    &policies::hed::INFO,
    &policies::heft::INFO,
    &policies::ldcp::INFO,
    &policies::lmt::INFO,
    &policies::loop_dynamic::INFO,
    &policies::loop_static::INFO,
    &policies::peft::INFO,
    &policies::static_threads::INFO,
    &policies::work_stealing::INFO,
];

/// The registry's row of a task policy.
pub fn find_task_policy(name: &str) -> Result<&'static TaskPolicyInfo, PolicyError> {
    REGISTRY.iter().copied().find(|info| info.name == name).ok_or_else(|| {
        let hint = suggest(name, REGISTRY.iter().map(|info| info.name));
        PolicyError::UnknownPolicy { name: name.into(), hint }
    })
}

/// How to build a policy by name, and its parameters; those not named keep their defaults.
pub fn build_task_policy(
    name: &str,
    params: &[(String, f64)],
) -> Result<(Build, TaskParams), PolicyError> {
    let info = find_task_policy(name)?;
    Ok((info.build, checked_params(info.name, info.params, params)?))
}

/// The values of some parameters of `owner`; the others keep their defaults.
///
/// Errors: no such parameter, or a value out of limits.
pub(crate) fn checked_params(
    owner: &str,
    rows: &[ParamInfo],
    params: &[(String, f64)],
) -> Result<TaskParams, PolicyError> {
    let mut values: Vec<_> = rows.iter().map(|row| (row.name, row.default)).collect();
    for (param, value) in params {
        let place = rows.iter().position(|row| row.name == param).ok_or_else(|| {
            let hint = suggest(param, rows.iter().map(|row| row.name));
            PolicyError::UnknownParam { policy: owner.into(), name: param.clone(), hint }
        })?;
        check(owner, &rows[place], *value)?;
        values[place].1 = *value;
    }
    Ok(TaskParams { values })
}

fn check(owner: &str, row: &ParamInfo, value: f64) -> Result<(), PolicyError> {
    let (fits, limit) = match row.kind {
        ParamKind::Flag => (value == 0.0 || value == 1.0, "0 or 1".to_owned()),
        ParamKind::Number { min, max } => {
            ((min..=max).contains(&value), format!("within {min} to {max}"))
        }
    };
    if fits {
        return Ok(());
    }
    let (policy, name, value) = (owner.into(), row.name.into(), value.to_string());
    Err(PolicyError::BadValue { policy, name, value, limit })
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
            for row in info.params {
                check(info.name, row, row.default).unwrap();
            }
        }
    }

    #[test]
    fn errors_name_the_nearest() {
        let error_of = |name: &str, param: &str, value: f64| {
            build_task_policy(name, &[(param.into(), value)]).err().unwrap().to_string()
        };
        assert_eq!(
            error_of("hefft", "", 0.0),
            "policy \"hefft\" does not exist (did you mean \"heft\"?)"
        );
        assert_eq!(
            error_of("cats", "stael", 1.0),
            "policy cats has no parameter \"stael\" (did you mean \"steal\"?)"
        );
        assert_eq!(
            error_of("cats", "steal", 2.0),
            "policy cats: parameter steal = 2 is not 0 or 1"
        );
    }
}
