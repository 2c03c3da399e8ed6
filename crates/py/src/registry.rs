//! The registries of policies and governors as Python values.

use ampsched_policy::{
    GOVERNORS, GovernorInfo, ParamInfo, ParamKind, PolicyInfo, REGISTRY, build_policy,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::error;

/// All policies: a dictionary each, with `name`, `summary`, `documentation`, `source` and `params`.
#[pyfunction]
pub fn policies(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let row = |info: &&PolicyInfo| {
        let texts = [info.name, info.summary, info.documentation, info.source];
        registry_row(py, texts, info.params)
    };
    REGISTRY.iter().map(row).collect()
}

/// All governors, described as policies are.
#[pyfunction]
pub fn governors(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let row = |info: &&GovernorInfo| {
        let texts = [info.name, info.summary, info.documentation, info.source];
        registry_row(py, texts, info.params)
    };
    GOVERNORS.iter().map(row).collect()
}

fn registry_row<'py>(
    py: Python<'py>,
    [name, summary, documentation, source]: [&str; 4],
    params: &[ParamInfo],
) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("name", name)?;
    row.set_item("summary", summary)?;
    row.set_item("documentation", documentation)?;
    row.set_item("source", source)?;
    let params: PyResult<Vec<_>> = params.iter().map(|param| param_row(py, param)).collect();
    row.set_item("params", params?)?;
    Ok(row)
}

/// A parameter as a dictionary.
pub fn param_row<'py>(py: Python<'py>, param: &ParamInfo) -> PyResult<Bound<'py, PyDict>> {
    let (min, max, choices): (f64, f64, &[&str]) = match param.kind {
        ParamKind::Flag => (0.0, 1.0, &[]),
        ParamKind::Number { min, max } | ParamKind::PerMhz { min, max } => (min, max, &[]),
        ParamKind::OneOf(values) => {
            let ends = values.iter().map(|&(value, _)| value);
            (ends.clone().fold(f64::MAX, f64::min), ends.fold(f64::MIN, f64::max), &[])
        }
        ParamKind::Choice(choices) => (0.0, choices.len() as f64 - 1.0, choices),
    };
    let values: &[(f64, &str)] =
        if let ParamKind::OneOf(values) = param.kind { values } else { &[] };
    let row = PyDict::new(py);
    row.set_item("name", param.name)?;
    row.set_item("default", param.default)?;
    row.set_item("min", min)?;
    row.set_item("max", max)?;
    row.set_item("flag", param.kind == ParamKind::Flag)?;
    row.set_item("choices", PyTuple::new(py, choices)?)?;
    row.set_item("one_of", PyTuple::new(py, values.iter().map(|&(value, _)| value))?)?;
    row.set_item("names", PyTuple::new(py, values.iter().map(|&(_, name)| name))?)?;
    row.set_item("help", param.help)?;
    Ok(row)
}

/// Raises `InputError` unless the policy exists and takes these parameters.
#[pyfunction]
pub fn check_policy(name: &str, params: Vec<(String, f64)>) -> PyResult<()> {
    build_policy(name, &params).map(drop).map_err(|error| error::policy(&error))
}

/// The number that a text is for a parameter of a policy whose values have names; none: for another one.
/// Raises `InputError` if it is no value of the parameter.
#[pyfunction]
pub fn named_value(policy: &str, param: &str, text: &str) -> PyResult<Option<f64>> {
    ampsched_policy::named_value(policy, param, text).map_err(|error| error::policy(&error))
}

/// Raises `InputError` unless the governor exists and takes these parameters.
#[pyfunction]
pub fn check_governor(name: &str, params: Vec<(String, f64)>) -> PyResult<()> {
    ampsched_policy::check_governor(name, &params).map(drop).map_err(|error| error::policy(&error))
}

/// A hint that names the known word nearest to `word`, or all known words.
#[pyfunction]
pub fn suggest(word: &str, known: Vec<String>) -> String {
    ampsched_model::suggest(word, known.iter().map(String::as_str))
}
