//! A task policy with parameters as a text: `cats:steal=1`.

use ampsched_model::InputError;

use crate::Error;

/// A policy's name and the values of its parameters.
pub type PolicyText = (String, Vec<(String, f64)>);

/// Reads `NAME` or `NAME:PARAMETER=VALUE:...`. Errors: another form, or a value that is not a number.
pub fn parse_policy(text: &str) -> Result<PolicyText, Error> {
    let mut parts = text.split(':').map(str::trim);
    let name = parts.next().unwrap_or_default().to_owned();
    let value = |part: &str| {
        let (key, value) = part.split_once('=')?;
        Some((key.trim().to_owned(), value.trim().parse().ok()?))
    };
    let values = parts.map(|part| {
        value(part).ok_or_else(|| {
            let message = format!("{part:?} is not a parameter and a number");
            InputError::new(format!("policy {text:?}"), "", message)
                .with_hint("write NAME:PARAMETER=NUMBER, as in cats:steal=1")
                .into()
        })
    });
    let values: Result<Vec<_>, Error> = values.collect();
    Ok((name, values?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_follow_the_name() {
        assert_eq!(parse_policy("fifo").unwrap(), ("fifo".into(), vec![]));
        let values = vec![("steal".into(), 1.0), ("strict".into(), 0.0)];
        assert_eq!(parse_policy("cats:steal=1: strict = 0").unwrap(), ("cats".into(), values));
        assert_eq!(
            parse_policy("cats:steal").unwrap_err().to_string(),
            "policy \"cats:steal\": \"steal\" is not a parameter and a number (write NAME:PARAMETER=NUMBER, as in cats:steal=1)"
        );
    }
}
