//! Policies with parameters as text: `wash:sigma=0.3`, as everywhere in ampsched.

use ampsched_model::InputError;
use ampsched_policy::{Policy, build_policy, named_value};

/// A policy as given.
pub struct Named {
    /// The policy with its parameters, as given.
    pub text: String,
    /// Its name.
    pub name: String,
    /// The policy.
    pub policy: Box<dyn Policy>,
}

/// Builds a policy from `name:key=number:...` and further parameters `key=number`.
pub fn build(text: &str, more: &[String]) -> Result<Named, InputError> {
    let mut parts = text.trim().split(':');
    let name = parts.next().unwrap_or_default();
    if name.ends_with(".py") {
        let message = "a policy in Python runs in simulation only";
        return Err(InputError::new("--policy", name, message)
            .with_hint("write it in Rust to run it live: ampsched new policy NAME"));
    }
    let mut params: Vec<(String, f64)> = Vec::new();
    for part in parts.chain(more.iter().map(String::as_str)) {
        let (key, value) = parameter(name, part)?;
        if params.iter().any(|(known, _)| *known == key) {
            let message = format!("parameter {key} is given twice");
            return Err(InputError::new("--policy", name, message));
        }
        params.push((key, value));
    }
    let policy = build_policy(name, &params)
        .map_err(|error| InputError::new("--policy", "", error.to_string()))?;
    let text = more.iter().fold(text.trim().to_owned(), |text, part| format!("{text}:{part}"));
    Ok(Named { text, name: name.to_owned(), policy })
}

fn parameter(policy: &str, part: &str) -> Result<(String, f64), InputError> {
    let wrong = |message: String| InputError::new("--policy", policy, message);
    let (key, value) = part
        .split_once('=')
        .filter(|(key, _)| !key.is_empty())
        .ok_or_else(|| wrong(format!("\"{part}\" is not of the form parameter=number")))?;
    let named = named_value(policy, key, value)
        .map_err(|error| InputError::new("--policy", "", error.to_string()))?;
    if let Some(number) = named {
        return Ok((key.to_owned(), number));
    }
    let number: f64 = value.parse().unwrap_or(f64::NAN);
    if !number.is_finite() {
        return Err(wrong(format!("parameter {key} = \"{value}\" is not a number")));
    }
    Ok((key.to_owned(), number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_giving_parameters_add_up() {
        let named = build("wash:sigma=0.3", &["decay=0.5".to_owned()]).unwrap();
        assert_eq!(
            (named.text.as_str(), named.name.as_str()),
            ("wash:sigma=0.3:decay=0.5", "wash")
        );
    }

    #[test]
    fn errors_name_policy_parameter_and_value() {
        for (text, more, expected) in [
            ("wsh", None, "--policy: unknown policy \"wsh\" (did you mean \"wash\"?)"),
            (
                "mine.py:Fast",
                None,
                "--policy: mine.py: a policy in Python runs in simulation only \
                 (write it in Rust to run it live: ampsched new policy NAME)",
            ),
            ("wash:sigma", None, "--policy: wash: \"sigma\" is not of the form parameter=number"),
            ("wash", Some("sigma=x"), "--policy: wash: parameter sigma = \"x\" is not a number"),
            ("wash:sigma=1", Some("sigma=2"), "--policy: wash: parameter sigma is given twice"),
            (
                "linux:kernel=android-4",
                None,
                "--policy: policy linux: parameter kernel = android-4 is not 3.16, 4.14, android-4.14, 6.1, 6.6, 6.18 or 7.3",
            ),
            (
                "wash:sigma=9",
                None,
                "--policy: policy wash: parameter sigma = 9 is not within 0 to 5",
            ),
        ] {
            let more: Vec<String> = more.iter().map(|&part: &&str| part.to_owned()).collect();
            assert_eq!(build(text, &more).err().unwrap().to_string(), expected);
        }
    }
}
