//! Rules from another language: words, numbers of ms, flags.

use ampsched_model::{MAX_CLASSES, Ns, suggest};

use super::{Choice, Record, Source, Wire};
use crate::plan::{SPEED_MAX, SPEED_MIN, to_fixed};
use crate::{Rules, SPEED_ONE, StealFrom};

/// Longest duration that a rule may state, in ms.
const DURATION_MS_MAX: f64 = 1e6;

/// A value as written in Python.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// True or False.
    Flag(bool),
    /// A number.
    Number(f64),
    /// A word.
    Word(String),
    /// Several values.
    List(Vec<Value>),
    /// Anything else.
    Other,
}

impl Value {
    /// A word of a choice; a number is the payload of its first word, in ms; False is `never`.
    pub(crate) fn choice<T: Choice>(&self) -> Result<T, String> {
        let words = T::group().words;
        let number = match self {
            Self::Word(name) => {
                words.iter().position(|word| word.name == name && word.is_statable())
            }
            Self::Flag(false) => words.iter().position(|word| word.name == "never"),
            Self::Number(_) if words[0].payload.len() == 1 => {
                let number = self.duration_ns(0.001)?;
                return Ok(T::from_number(0, &mut Source::given(number)));
            }
            _ => None,
        };
        let known = words.iter().filter(|word| word.is_statable()).map(|word| word.name);
        let number =
            number.ok_or_else(|| format!("one of {}", known.collect::<Vec<_>>().join(", ")))?;
        Ok(T::from_number(number as u32, &mut Source::defaults()))
    }

    pub(super) fn choices(&self) -> Result<Vec<StealFrom>, String> {
        let Self::List(values) = self else { return Err("a list of words".to_owned()) };
        let one_of = |wanted: String| wanted.replacen("one of", "a list of", 1);
        values.iter().map(|value| value.choice().map_err(one_of)).collect()
    }

    pub(super) fn flag(&self) -> Result<bool, String> {
        match self {
            Self::Flag(on) => Ok(*on),
            _ => Err("True or False".to_owned()),
        }
    }

    pub(super) fn only_off(&self) -> Result<(), String> {
        match self {
            Self::Flag(false) => Ok(()),
            Self::Flag(true) => Err("False; leave it out to do as the base does".to_owned()),
            _ => Err("False".to_owned()),
        }
    }

    pub(super) fn number(&self, least: f64, most: f64) -> Result<f64, String> {
        match self {
            Self::Number(number) if (least..=most).contains(number) => Ok(*number),
            _ => Err(format!("a number within {least} to {most}")),
        }
    }

    pub(super) fn duration_ns(&self, least_ms: f64) -> Result<Ns, String> {
        let ms = self.number(least_ms, DURATION_MS_MAX);
        let wanted = || format!("a number of ms within {least_ms} to {DURATION_MS_MAX}");
        Ok((ms.map_err(|_| wanted())? * 1e6).round() as Ns)
    }

    /// Speeds per class, slowest first; the last holds for all further classes.
    pub(super) fn speeds(&self) -> Result<[u16; MAX_CLASSES], String> {
        let wanted = || {
            format!("a list of 1 to {MAX_CLASSES} speeds, each within 1/{SPEED_ONE} to {SPEED_MAX}")
        };
        let Self::List(values) = self else { return Err(wanted()) };
        let speed = |value: &Self| value.number(SPEED_MIN, SPEED_MAX).map_err(|_| wanted());
        let speeds = values.iter().map(speed).collect::<Result<Vec<f64>, String>>()?;
        if speeds.is_empty() || speeds.len() > MAX_CLASSES {
            return Err(wanted());
        }
        let last = speeds[speeds.len() - 1];
        Ok(std::array::from_fn(|class| to_fixed(speeds.get(class).copied().unwrap_or(last))))
    }
}

/// Replaces a rule by its name in Python.
///
/// # Errors
///
/// There is no such rule, or the value is not one of it; the text names both.
pub fn set_rule(rules: &mut Rules, key: &str, value: &Value, shown: &str) -> Result<(), String> {
    let rows = Rules::group().words;
    let Some(row) = rows.iter().find(|row| python_key(row) == key) else {
        let known: Vec<String> = rows.iter().map(python_key).collect();
        let hint = suggest(key, known.iter().map(String::as_str));
        return Err(format!("unknown rule \"{key}\" ({hint})"));
    };
    let set = rules.set_field(row.name, value).expect("a row is a field");
    set.map_err(|wanted| format!("rule {key} = {shown} is not {wanted}"))
}

/// The key of a rule in Python: durations are in ms there.
pub fn python_key(row: &super::Word) -> String {
    match row.python().strip_suffix("_ns") {
        Some(stem) => format!("{stem}_ms"),
        None => row.python().to_owned(),
    }
}
