//! What a type must know to be a field of the contract: its slots on the wire, its words, random values, Python.
//!
//! On the wire everything is a 64-bit word, so that loader and kernel cannot disagree about a layout.

use ampsched_model::{CoreSet, MAX_CLASSES, Ns};

use super::{Group, Value, Word};
use crate::Prefer;
use crate::plan::to_fixed;

/// Most steps of stealing that fit on the wire.
pub const STEPS_MAX: usize = 8;

/// No thread, core or preference on the wire.
pub(super) const NONE: u64 = u32::MAX as u64;

/// A member of a structure on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// One word.
    Scalar(&'static str),
    /// Several words.
    Array(&'static str, usize),
    /// A structure of that name.
    Struct(&'static str, &'static str),
    /// Several structures of that name.
    Structs(&'static str, &'static str, usize),
}

/// A type of a field: which words it puts to use.
pub trait Used {
    /// Names the words that are in use; `row` is the field's own.
    fn visit(&self, row: &'static Word, visit: &mut dyn FnMut(&'static Word));
}

/// A type of a field or a payload that goes to the kernel.
pub trait Field: Sized + Used {
    /// Words on the wire.
    const LEN: usize;

    /// Names its slots; `name` is the field's.
    fn slots(name: &'static str, out: &mut Vec<Slot>);

    /// Writes [`Field::LEN`] words.
    fn write(&self, out: &mut Vec<u64>);

    /// A value drawn from a source; `samples` are the row's.
    fn draw(samples: &'static [u64], source: &mut Source) -> Self;

    /// Its type in Python.
    fn python_type() -> String;

    /// Replaces all times in it.
    fn map_times(&mut self, by: &dyn Fn(Ns) -> Ns);

    /// Sets it from a value of another language. Errors: what would be right, as in "is not ...".
    fn set(&mut self, value: &Value) -> Result<(), String>;
}

/// An enum of the contract.
pub trait Choice: Sized {
    /// Its words.
    fn group() -> &'static Group;
    /// The number of the chosen one.
    fn number(&self) -> u32;
    /// The word of a number, its payload drawn from a source.
    fn from_number(number: u32, source: &mut Source) -> Self;

    /// Its type in Python: the words that can be chosen by name, and what else stands for one of them.
    fn python_choice() -> String {
        let words = Self::group().words;
        let names = words.iter().filter(|word| word.is_statable());
        let mut names: Vec<String> = names.map(|word| format!("\"{}\"", word.name)).collect();
        if words.iter().any(|word| word.name == "never") {
            names.push("False".to_owned());
        }
        let choice = format!("Literal[{}]", names.join(", "));
        if words[0].payload.len() == 1 { format!("float | {choice}") } else { choice }
    }

    /// The chosen word.
    fn word(&self) -> &'static Word {
        &Self::group().words[self.number() as usize]
    }
}

/// A struct of the contract.
pub trait Record: Sized {
    /// Its fields.
    fn group() -> &'static Group;
    /// Names the words in use.
    fn visit_fields(&self, visit: &mut dyn FnMut(&'static Word));
}

/// A struct that goes to the kernel.
pub trait Wire: Record {
    /// Words on the wire.
    const LEN: usize;
    /// Names the slots of all fields.
    fn fields(out: &mut Vec<Slot>);
    /// Writes all fields.
    fn write_fields(&self, out: &mut Vec<u64>);
    /// A record drawn from a source.
    fn draw_fields(source: &mut Source) -> Self;
    /// Replaces all times in it.
    fn map_all_times(&mut self, by: &dyn Fn(Ns) -> Ns);
    /// The types of its fields in Python.
    fn python_types() -> Vec<String>;
    /// Sets a field by its name; none if there is no such field.
    fn set_field(&mut self, name: &str, value: &Value) -> Option<Result<(), String>>;
}

/// The payload of a change as words on the wire.
pub trait Payloads {
    /// (Element, value) for each element.
    fn words(&self) -> Vec<(u32, u64)>;
}

impl Payloads for CoreSet {
    fn words(&self) -> Vec<(u32, u64)> {
        self.iter().map(|core| (core.0.into(), 1)).collect()
    }
}

impl Payloads for Prefer {
    fn words(&self) -> Vec<(u32, u64)> {
        vec![(0, self.number().into())]
    }
}

/// A change of one number.
macro_rules! one_word {
    ($($Number:ty),+) => {$(
        impl Payloads for $Number {
            fn words(&self) -> Vec<(u32, u64)> {
                vec![(0, u64::from(*self))]
            }
        }
    )+};
}

one_word!(u64, u32, bool);

/// One element per class, in the plan's fixed point.
impl Payloads for [f64; MAX_CLASSES] {
    fn words(&self) -> Vec<(u32, u64)> {
        (0..).zip(self.map(to_fixed)).map(|(class, speed)| (class, speed.into())).collect()
    }
}

/// Where words and numbers come from when none are given.
pub struct Source<'a> {
    /// A number below a limit; none: the first.
    below: Option<&'a mut dyn FnMut(u64) -> u64>,
    /// The number that is meant, instead of a sample.
    given: Option<u64>,
}

impl<'a> Source<'a> {
    /// Defaults: the first sample of each number, the first word of each choice.
    pub fn defaults() -> Self {
        Self { below: None, given: None }
    }

    /// A number that is given, for the payload of the first word.
    pub(super) fn given(number: u64) -> Self {
        Self { below: None, given: Some(number) }
    }

    /// Random words that a kernel executes as they are written, and random samples; `below` gives a number
    /// below its argument.
    pub fn random(below: &'a mut dyn FnMut(u64) -> u64) -> Self {
        Self { below: Some(below), given: None }
    }

    pub(super) fn number(&mut self, limit: usize) -> usize {
        self.below.as_mut().map_or(0, |below| below(limit as u64) as usize)
    }

    /// Whether a field may be drawn at all.
    pub(crate) fn may(&self, row: &Word) -> bool {
        self.below.is_none() || row.facts.kernel.is_exact()
    }

    /// The number of a word of a group.
    pub(crate) fn word(&mut self, group: &Group) -> u32 {
        let may: Vec<usize> =
            (0..group.words.len()).filter(|&at| self.may(&group.words[at])).collect();
        may[self.number(may.len())] as u32
    }

    pub(super) fn sample(&mut self, samples: &'static [u64]) -> u64 {
        if let Some(given) = self.given {
            return given;
        }
        if samples.is_empty() { 0 } else { samples[self.number(samples.len())] }
    }
}
