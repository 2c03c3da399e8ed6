//! Single rules that a policy written in Python replaces in those of its base; the words are the table's.

use ampsched_policy::{Rules, Value, set_rule};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};

use crate::error::InputError;

/// Rules to replace.
#[derive(Default)]
pub struct Overrides {
    /// Key, value, and the value as Python shows it.
    rules: Vec<(String, Value, String)>,
}

impl Overrides {
    /// Reads a dictionary such as `{"order": "fifo", "slice_ms": 2.0}`.
    pub fn from_python(dict: &Bound<'_, PyDict>) -> PyResult<Self> {
        let read = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| -> PyResult<_> {
            let shown =
                value.repr().map_or_else(|_| "the given value".to_owned(), |text| text.to_string());
            Ok((key.extract::<String>()?, value_of(&value), shown))
        };
        let overrides = Self { rules: dict.iter().map(read).collect::<PyResult<_>>()? };
        overrides.put_into(&mut Rules::default()).map_err(InputError::new_err)?;
        Ok(overrides)
    }

    /// The rules with the replacements made.
    pub fn apply(&self, mut rules: Rules) -> Rules {
        self.put_into(&mut rules).expect("they were tried when they were read");
        rules
    }

    fn put_into(&self, rules: &mut Rules) -> Result<(), String> {
        self.rules.iter().try_for_each(|(key, value, shown)| set_rule(rules, key, value, shown))
    }
}

fn value_of(value: &Bound<'_, PyAny>) -> Value {
    if let Ok(flag) = value.cast::<PyBool>() {
        return Value::Flag(flag.is_true());
    }
    if let Ok(number) = value.extract::<f64>() {
        return Value::Number(number);
    }
    if let Ok(word) = value.extract::<String>() {
        return Value::Word(word);
    }
    match value.try_iter() {
        Ok(items) => Value::List(items.flatten().map(|item| value_of(&item)).collect()),
        Err(_) => Value::Other,
    }
}
