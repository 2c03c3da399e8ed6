//! Typed access to JSON values, with errors that name file, line, key, value and limit.

use std::ops::RangeInclusive;

use super::json::{Member, Node, Value, is_placeholder};
use crate::InputError;
use crate::reader::{Spot, quoted};

/// A value and where it stands.
#[derive(Clone)]
pub(super) struct Field<'a> {
    value: &'a Value,
    /// Where the value stands.
    pub spot: Spot,
}

/// A member of an object: its key and where it stands; the value may be missing.
#[derive(Clone)]
pub(super) struct Entry<'a> {
    /// The key as it is written.
    pub key: &'a str,
    /// Where the key stands.
    pub spot: Spot,
    member: &'a Member,
}

impl<'a> Entry<'a> {
    /// Whether the key stands without colon and value.
    pub fn is_bare(&self) -> bool {
        self.member.value.is_none()
    }

    /// The value, which must be there.
    pub fn field(&self) -> Result<Field<'a>, InputError> {
        match &self.member.value {
            Some(node) => Ok(Field {
                value: &node.value,
                spot: Spot { line: node.line, ..self.spot.clone() },
            }),
            None => Err(self
                .spot
                .error("has no value")
                .with_hint("only \"suspend\" may stand without one")),
        }
    }
}

impl<'a> Field<'a> {
    /// The root of a file.
    pub fn root(file: &str, node: &'a Node) -> Self {
        let spot = Spot { file: file.into(), line: node.line, key: String::new() };
        Self { value: &node.value, spot }
    }

    /// The members of an object, repeated keys included.
    pub fn entries(&self) -> Result<Vec<Entry<'a>>, InputError> {
        let Value::Object(members) = self.value else { return Err(self.wrong("an object")) };
        let entry = |member: &'a Member| Entry {
            key: &member.key,
            spot: member_spot(&self.spot, member),
            member,
        };
        Ok(members.iter().map(entry).collect())
    }

    /// The members of an object in which every key may stand once, and only a `known` one.
    pub fn settings(&self, known: &[&str]) -> Result<Vec<Entry<'a>>, InputError> {
        let entries = self.entries()?;
        for (index, entry) in entries.iter().enumerate() {
            if !known.contains(&entry.key) {
                return Err(unknown_key(&self.spot, entry, known));
            }
            refuse_second(&entries[..index], entry)?;
        }
        Ok(entries)
    }

    /// The value as a text.
    pub fn text(&self) -> Result<&'a str, InputError> {
        match self.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.wrong("a text")),
        }
    }

    /// The value as the name of something.
    pub fn name(&self) -> Result<&'a str, InputError> {
        match self.text()? {
            "" => Err(self.spot.error("is empty, a name is needed")),
            name => Ok(name),
        }
    }

    /// The value as true or false.
    pub fn boolean(&self) -> Result<bool, InputError> {
        match self.value {
            Value::Bool(value) => Ok(*value),
            _ => Err(self.wrong("true or false")),
        }
    }

    /// The value as a whole number within limits (which stay below 2^53, where f64 is exact).
    pub fn whole(&self, limits: RangeInclusive<i64>) -> Result<i64, InputError> {
        let Value::Number(digits) = self.value else { return Err(self.wrong("a whole number")) };
        let number: f64 = digits.parse().unwrap_or(f64::NAN);
        if number.fract() != 0.0 {
            return Err(self.wrong("a whole number"));
        }
        let (lowest, highest) = (*limits.start() as f64, *limits.end() as f64);
        if (lowest..=highest).contains(&number) {
            return Ok(number as i64);
        }
        let (shown, lowest, highest) = (self.shown(), limits.start(), limits.end());
        Err(self.spot.error(format!("{shown} is out of range, {lowest} to {highest} is allowed")))
    }

    /// Whether the value is a text.
    pub fn is_text(&self) -> bool {
        matches!(self.value, Value::Text(_))
    }

    /// Whether the value is a number.
    pub fn is_number(&self) -> bool {
        matches!(self.value, Value::Number(_))
    }

    /// The elements of a list.
    pub fn list(&self) -> Result<Vec<Field<'a>>, InputError> {
        let Value::List(elements) = self.value else { return Err(self.wrong("a list")) };
        let field = |(index, node): (usize, &'a Node)| {
            let key = format!("{}[{index}]", self.spot.key);
            Field { value: &node.value, spot: Spot { line: node.line, key, ..self.spot.clone() } }
        };
        Ok(elements.iter().enumerate().map(field).collect())
    }

    /// An error that says what was expected instead of this value.
    pub fn wrong(&self, expected: &str) -> InputError {
        if let Value::Text(text) = self.value {
            if is_placeholder(text) {
                let shown = self.shown();
                return self.spot.error(format!(
                    "{shown} is a placeholder of a template, to be replaced by {expected}"
                ));
            }
        }
        self.spot.error(format!("{} is not {expected}", self.shown()))
    }

    /// The value as it is shown in messages.
    pub fn shown(&self) -> String {
        match self.value {
            Value::Null => "null".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Number(digits) => digits.chars().take(40).collect(),
            Value::Text(text) => quoted(text),
            Value::List(_) => "a list".to_owned(),
            Value::Object(_) => "an object".to_owned(),
        }
    }
}

/// The error about a key that an object cannot have.
pub(super) fn unknown_key(parent: &Spot, entry: &Entry, known: &[&str]) -> InputError {
    Spot { line: entry.spot.line, ..parent.clone() }.unknown(
        "key",
        entry.key,
        known.iter().copied(),
    )
}

/// Refuses a setting that stood in the object before: rt-app would take the last one, workgen the first.
pub(super) fn refuse_second(before: &[Entry], entry: &Entry) -> Result<(), InputError> {
    match before.iter().find(|other| other.key == entry.key) {
        None => Ok(()),
        Some(first) => {
            Err(entry.spot.error(format!("is set twice, first in line {}", first.spot.line)))
        }
    }
}

fn member_spot(parent: &Spot, member: &Member) -> Spot {
    let key = &member.key;
    let bare = !key.is_empty()
        && key.len() <= 40
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let key = if bare { key.clone() } else { quoted(key) };
    let key = if parent.key.is_empty() { key } else { format!("{}.{key}", parent.key) };
    Spot { file: parent.file.clone(), line: member.line, key }
}
