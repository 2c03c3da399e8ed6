//! Parameters of what a registry offers: policies, and the governors of clocks.

use ampsched_model::suggest;

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
    /// A number within limits that may depend on a frequency: `name` is the value from 0 MHz on,
    /// `name@1000` that from 1000 MHz on.
    PerMhz {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// 0 (off) or 1 (on).
    Flag,
    /// The number of one of these, counted from 0.
    Choice(&'static [&'static str]),
    /// One of these numbers, in this order, each with the name by which people give it.
    OneOf(&'static [(f64, &'static str)]),
}

/// A parameter of a policy or governor.
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

    /// A number within limits that may depend on a frequency.
    pub const fn per_mhz(
        name: &'static str,
        default: f64,
        min: f64,
        max: f64,
        help: &'static str,
    ) -> Self {
        Self { name, default, kind: ParamKind::PerMhz { min, max }, help }
    }

    /// A switch.
    pub const fn flag(name: &'static str, default: bool, help: &'static str) -> Self {
        Self { name, default: if default { 1.0 } else { 0.0 }, kind: ParamKind::Flag, help }
    }

    /// One of several choices; `default` is its number, counted from 0.
    pub const fn choice(
        name: &'static str,
        default: usize,
        choices: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, default: default as f64, kind: ParamKind::Choice(choices), help }
    }

    /// One of several numbers with names.
    pub const fn one_of(
        name: &'static str,
        default: f64,
        values: &'static [(f64, &'static str)],
        help: &'static str,
    ) -> Self {
        Self { name, default, kind: ParamKind::OneOf(values), help }
    }

    /// Whether a value is allowed; else what is.
    fn check(&self, value: f64) -> Result<(), String> {
        let (fits, limit) = match self.kind {
            ParamKind::Flag => (value == 0.0 || value == 1.0, "0 or 1".to_owned()),
            ParamKind::Number { min, max } | ParamKind::PerMhz { min, max } => {
                (value >= min && value <= max, format!("within {min} to {max}"))
            }
            ParamKind::Choice(choices) => {
                let known = (0..choices.len()).any(|index| index as f64 == value);
                (known, list(choices))
            }
            ParamKind::OneOf(values) => {
                (values.iter().any(|&(known, _)| known == value), any_of(values))
            }
        };
        if fits { Ok(()) } else { Err(limit) }
    }

    /// The number that a text names; none: the parameter has no names, and numbers are read as everywhere.
    fn named(&self, text: &str) -> Option<Result<f64, String>> {
        let ParamKind::OneOf(values) = self.kind else { return None };
        let is_meant = |&&(value, name): &&(f64, &str)| name == text || value.to_string() == text;
        let found = values.iter().find(is_meant).map(|&(value, _)| value);
        Some(found.ok_or_else(|| any_of(values)))
    }
}

/// Names: "1, 2 or 3".
fn any_of(values: &[(f64, &str)]) -> String {
    let words: Vec<String> = values.iter().map(|&(_, name)| name.to_owned()).collect();
    either(&words)
}

/// Choices with their numbers: "0 (none), 1 (some) or 2 (all)".
fn list(choices: &[&str]) -> String {
    let rows: Vec<String> =
        choices.iter().enumerate().map(|(index, choice)| format!("{index} ({choice})")).collect();
    either(&rows)
}

fn either(words: &[String]) -> String {
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => words.concat(),
    }
}

/// Values of all parameters of a policy or governor.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    values: Vec<(&'static str, f64)>,
    /// Values from a frequency on, in ascending frequencies.
    steps: Vec<(&'static str, u32, f64)>,
}

impl Params {
    /// The defaults.
    pub fn defaults(params: &'static [ParamInfo]) -> Self {
        let values = params.iter().map(|param| (param.name, param.default)).collect();
        Self { values, steps: Vec::new() }
    }

    /// A parameter's value. Panics if it is not declared.
    pub fn number(&self, name: &str) -> f64 {
        let found = self.values.iter().find(|(known, _)| *known == name);
        found.unwrap_or_else(|| panic!("parameter {name} is not declared")).1
    }

    /// A switch's value.
    pub fn flag(&self, name: &str) -> bool {
        self.number(name) != 0.0
    }

    /// A whole number, rounded.
    pub fn whole(&self, name: &str) -> u32 {
        self.number(name).round() as u32
    }

    /// A duration in ms as ns.
    pub fn ms(&self, name: &str) -> u64 {
        (self.number(name) * 1e6).round() as u64
    }

    /// A duration in us as ns.
    pub fn us(&self, name: &str) -> u64 {
        (self.number(name) * 1e3).round() as u64
    }

    /// The values of a parameter that depends on a frequency: from how many MHz on, in ascending order
    /// from 0, and the value.
    pub fn per_mhz(&self, name: &str) -> Vec<(u32, f64)> {
        let steps = self.steps.iter().filter(|(known, ..)| *known == name);
        let steps = steps.map(|&(_, mhz, value)| (mhz, value));
        std::iter::once((0, self.number(name))).chain(steps).collect()
    }

    pub(crate) fn set(&mut self, name: &str, value: f64) {
        for entry in self.values.iter_mut().filter(|entry| entry.0 == name) {
            entry.1 = value;
        }
    }

    fn set_from(&mut self, name: &'static str, mhz: u32, value: f64) {
        self.steps.retain(|step| (step.0, step.1) != (name, mhz));
        self.steps.push((name, mhz, value));
        self.steps.sort_by_key(|step| step.1);
    }
}

/// A policy, governor or parameter that does not exist, or a value out of limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// Nothing of that kind has that name.
    #[error("unknown {kind} {name:?} ({hint})")]
    Unknown {
        /// `policy` or `governor`.
        kind: &'static str,
        /// The name.
        name: String,
        /// What to do.
        hint: String,
    },
    /// It has no such parameter.
    #[error("{kind} {owner} has no parameter {name:?} ({hint})")]
    UnknownParam {
        /// `policy` or `governor`.
        kind: &'static str,
        /// The policy or governor.
        owner: String,
        /// The name.
        name: String,
        /// What to do.
        hint: String,
    },
    /// The value is out of limits.
    #[error("{kind} {owner}: parameter {name} = {value} is not {limit}")]
    BadValue {
        /// `policy` or `governor`.
        kind: &'static str,
        /// The policy or governor.
        owner: String,
        /// The parameter.
        name: String,
        /// The value.
        value: String,
        /// What is allowed.
        limit: String,
    },
    /// What the values ask for together does not fit into memory.
    #[error("{kind} {owner}: more than {limit} {what}, which is the limit (lower its parameters)")]
    TooMuch {
        /// `task program`.
        kind: &'static str,
        /// The program.
        owner: String,
        /// What there would be too many of.
        what: &'static str,
        /// How many are allowed.
        limit: usize,
    },
}

/// What has parameters: its kind for messages, its name, and what it takes.
#[derive(Clone, Copy)]
pub struct Owner {
    /// `policy`, `governor`, ...
    pub kind: &'static str,
    /// Name.
    pub name: &'static str,
    /// What it takes.
    pub params: &'static [ParamInfo],
}

impl Owner {
    /// The values of all parameters; those that are not given keep their defaults.
    ///
    /// Errors: no such parameter, or a value out of limits.
    pub fn values(&self, given: &[(String, f64)]) -> Result<Params, PolicyError> {
        let mut values = Params::defaults(self.params);
        for (name, value) in given {
            let (row, mhz) = self.find(name)?;
            row.check(*value).map_err(|limit| self.bad(name, *value, limit))?;
            match mhz {
                0 => values.set(row.name, *value),
                mhz => values.set_from(row.name, mhz, *value),
            }
        }
        Ok(values)
    }

    /// A parameter's row and the frequency in MHz from which on its value is meant.
    fn find(&self, name: &str) -> Result<(&'static ParamInfo, u32), PolicyError> {
        let (plain, mhz) = match name.split_once('@') {
            Some((plain, mhz)) => (plain, mhz.parse().ok()),
            None => (name, Some(0)),
        };
        let row = self.params.iter().find(|row| row.name == plain);
        match (row, mhz) {
            (Some(row), Some(mhz)) if mhz == 0 || matches!(row.kind, ParamKind::PerMhz { .. }) => {
                Ok((row, mhz))
            }
            _ => Err(PolicyError::UnknownParam {
                kind: self.kind,
                owner: self.name.into(),
                name: name.into(),
                hint: suggest(name, self.params.iter().map(|row| row.name)),
            }),
        }
    }

    /// The number that a text is for a parameter whose values have names, such as `kernel=android-4.14`; none: for
    /// another one, or none of these.
    ///
    /// Errors: the text is no value of the parameter.
    pub fn named(&self, param: &str, text: &str) -> Result<Option<f64>, PolicyError> {
        let row = self.params.iter().find(|row| row.name == param);
        let bad = |limit| self.bad(param, text, limit);
        row.and_then(|row| row.named(text)).transpose().map_err(bad)
    }

    /// An error about a value.
    pub(crate) fn bad(&self, name: &str, value: impl ToString, limit: String) -> PolicyError {
        PolicyError::BadValue {
            kind: self.kind,
            owner: self.name.into(),
            name: name.into(),
            value: value.to_string(),
            limit,
        }
    }
}

/// An error about a name that nothing of a kind has, with the nearest known one as hint.
pub fn unknown(
    kind: &'static str,
    name: &str,
    known: impl IntoIterator<Item = &'static str>,
) -> PolicyError {
    PolicyError::Unknown { kind, name: name.into(), hint: suggest(name, known) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Owner = Owner {
        kind: "governor",
        name: "test",
        params: &[
            ParamInfo::number("rate_us", 10.0, 0.0, 100.0, "a number"),
            ParamInfo::per_mhz("load", 90.0, 1.0, 100.0, "steps"),
            ParamInfo::flag("boost", false, "a switch"),
            ParamInfo::choice("who", 1, &["none", "some", "all"], "a choice"),
        ],
    };

    fn values(given: &[(&str, f64)]) -> Result<Params, String> {
        let given: Vec<_> = given.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        OWNER.values(&given).map_err(|error| error.to_string())
    }

    #[test]
    fn low_names_of_several_lines_are_refused_in_one() {
        let error = values(&[("lo\nad", 1.0)]).unwrap_err();
        assert_eq!(error, r#"governor test has no parameter "lo\nad" (did you mean "load"?)"#);
        let error = unknown("policy", "x\ry\u{1b}", ["cfs"]).to_string();
        assert_eq!(error, r#"unknown policy "x\ry\u{1b}" (known: cfs)"#);
    }

    #[test]
    fn what_is_not_given_keeps_its_default() {
        let params = values(&[("rate_us", 12.5), ("boost", 1.0)]).unwrap();
        assert_eq!((params.us("rate_us"), params.flag("boost")), (12_500, true));
        assert_eq!((params.whole("who"), values(&[("who", 2.0)]).unwrap().whole("who")), (1, 2));
        assert_eq!(params.per_mhz("load"), [(0, 90.0)]);
    }

    #[test]
    fn a_value_may_change_from_a_frequency_on() {
        let params = values(&[("load@1500", 95.0), ("load", 70.0), ("load@1000", 80.0)]).unwrap();
        assert_eq!(params.per_mhz("load"), [(0, 70.0), (1000, 80.0), (1500, 95.0)]);
        let params =
            values(&[("load@1000", 80.0), ("load@01000", 85.0), ("load@0", 60.0)]).unwrap();
        assert_eq!(params.per_mhz("load"), [(0, 60.0), (1000, 85.0)]);
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let known = "known: rate_us, load, boost, who";
        let refused = [
            ("rat_us", 1.0, "has no parameter \"rat_us\" (did you mean \"rate_us\"?)".to_owned()),
            ("rate_us@1000", 1.0, "has no parameter \"rate_us@1000\"".to_owned()),
            ("load@fast", 1.0, "has no parameter \"load@fast\"".to_owned()),
            ("@", 1.0, format!("has no parameter \"@\" ({known})")),
        ];
        for (name, value, text) in refused {
            let error = values(&[(name, value)]).unwrap_err();
            assert!(error.starts_with(&format!("governor test {text}")), "{error}");
        }
        let limits = [
            ("rate_us", 101.0, "parameter rate_us = 101 is not within 0 to 100"),
            ("rate_us", f64::NAN, "parameter rate_us = NaN is not within 0 to 100"),
            ("load@1000", 0.0, "parameter load@1000 = 0 is not within 1 to 100"),
            ("boost", 0.5, "parameter boost = 0.5 is not 0 or 1"),
            ("who", 0.5, "parameter who = 0.5 is not 0 (none), 1 (some) or 2 (all)"),
            ("who", 3.0, "parameter who = 3 is not 0 (none), 1 (some) or 2 (all)"),
            ("who", -1.0, "parameter who = -1 is not 0 (none), 1 (some) or 2 (all)"),
        ];
        for (name, value, text) in limits {
            let error = values(&[(name, value)]).unwrap_err();
            assert_eq!(error, format!("governor test: {text}"));
        }
    }
}
