//! What a type must know to be a field of the contract: its slots on the wire, its words, random values, Python.
//!
//! On the wire everything is a 64-bit word, so that loader and kernel cannot disagree about a layout.

use ampsched_model::{CoreSet, MAX_CLASSES, Ns};

use super::{Group, Value, Word};
use crate::plan::to_fixed;
use crate::{Balance, LoadBand, Prefer, Steal, StealFrom};

/// Most steps of stealing that fit on the wire.
pub const STEPS_MAX: usize = 8;

/// No thread, core or preference on the wire.
const NONE: u64 = u32::MAX as u64;

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
        let names: Vec<String> = names.map(|word| format!("\"{}\"", word.name)).collect();
        let mut types = vec![format!("Literal[{}]", names.join(", "))];
        if words[0].payload.len() == 1 {
            types.insert(0, "float".to_owned());
        }
        if words.iter().any(|word| word.name == "never") {
            types.push("Literal[False]".to_owned());
        }
        types.join(" | ")
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
        vec![(0, self.iter().fold(0, |word, core| word | 1 << core.index()))]
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

    fn number(&mut self, limit: usize) -> usize {
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

    fn sample(&mut self, samples: &'static [u64]) -> u64 {
        if let Some(given) = self.given {
            return given;
        }
        if samples.is_empty() { 0 } else { samples[self.number(samples.len())] }
    }
}

impl Used for Ns {
    fn visit(&self, row: &'static Word, visit: &mut dyn FnMut(&'static Word)) {
        if *self > 0 {
            visit(row);
        }
    }
}

impl Field for Ns {
    const LEN: usize = 1;

    fn slots(name: &'static str, out: &mut Vec<Slot>) {
        out.push(Slot::Scalar(name));
    }

    fn write(&self, out: &mut Vec<u64>) {
        out.push(*self);
    }

    fn draw(samples: &'static [u64], source: &mut Source) -> Self {
        source.sample(samples)
    }

    fn set(&mut self, value: &Value) -> Result<(), String> {
        *self = value.duration_ns(0.0)?;
        Ok(())
    }

    fn map_times(&mut self, by: &dyn Fn(Ns) -> Ns) {
        *self = by(*self);
    }

    fn python_type() -> String {
        "float".to_owned()
    }
}

/// A number that is not a time: it has no word in Python.
macro_rules! number {
    ($($Number:ty),+) => {$(
        impl Used for $Number {
            fn visit(&self, row: &'static Word, visit: &mut dyn FnMut(&'static Word)) {
                if *self > 0 {
                    visit(row);
                }
            }
        }

        impl Field for $Number {
            const LEN: usize = 1;

            fn slots(name: &'static str, out: &mut Vec<Slot>) {
                out.push(Slot::Scalar(name));
            }

            fn write(&self, out: &mut Vec<u64>) {
                out.push(u64::from(*self));
            }

            fn draw(samples: &'static [u64], source: &mut Source) -> Self {
                source.sample(samples) as Self
            }

            fn set(&mut self, value: &Value) -> Result<(), String> {
                *self = value.number(0.0, f64::from(Self::MAX))?.round() as Self;
                Ok(())
            }

            fn map_times(&mut self, _by: &dyn Fn(Ns) -> Ns) {}

            fn python_type() -> String {
                "float".to_owned()
            }
        }
    )+};
}

number!(u16, u32);

impl Used for bool {
    fn visit(&self, row: &'static Word, visit: &mut dyn FnMut(&'static Word)) {
        if *self {
            visit(row);
        }
    }
}

impl Field for bool {
    const LEN: usize = 1;

    fn slots(name: &'static str, out: &mut Vec<Slot>) {
        out.push(Slot::Scalar(name));
    }

    fn write(&self, out: &mut Vec<u64>) {
        out.push(u64::from(*self));
    }

    fn draw(_samples: &'static [u64], source: &mut Source) -> Self {
        source.number(2) == 1
    }

    fn set(&mut self, value: &Value) -> Result<(), String> {
        *self = value.flag()?;
        Ok(())
    }

    fn map_times(&mut self, _by: &dyn Fn(Ns) -> Ns) {}

    fn python_type() -> String {
        "bool".to_owned()
    }
}

impl Used for Option<Ns> {
    fn visit(&self, row: &'static Word, visit: &mut dyn FnMut(&'static Word)) {
        if self.is_some() {
            visit(row);
        }
    }
}

impl Field for Option<Ns> {
    const LEN: usize = 1;

    fn slots(name: &'static str, out: &mut Vec<Slot>) {
        out.push(Slot::Scalar(name));
    }

    fn write(&self, out: &mut Vec<u64>) {
        out.push(self.unwrap_or(0));
    }

    fn draw(samples: &'static [u64], source: &mut Source) -> Self {
        Some(source.sample(samples)).filter(|_| source.number(2) == 1)
    }

    fn set(&mut self, value: &Value) -> Result<(), String> {
        *self = if *value == Value::Flag(false) { None } else { Some(value.duration_ns(0.001)?) };
        Ok(())
    }

    fn map_times(&mut self, by: &dyn Fn(Ns) -> Ns) {
        *self = self.map(by);
    }

    fn python_type() -> String {
        "float | Literal[False]".to_owned()
    }
}

impl Used for Option<Prefer> {
    fn visit(&self, row: &'static Word, visit: &mut dyn FnMut(&'static Word)) {
        if self.is_some() {
            visit(row);
        }
    }
}

impl Field for Option<Prefer> {
    const LEN: usize = 1;

    fn slots(name: &'static str, out: &mut Vec<Slot>) {
        out.push(Slot::Scalar(name));
    }

    fn write(&self, out: &mut Vec<u64>) {
        out.push(self.map_or(NONE, |prefer| prefer.number().into()));
    }

    fn draw(samples: &'static [u64], source: &mut Source) -> Self {
        let prefer = Prefer::draw(samples, source);
        Some(prefer).filter(|_| source.number(2) == 1)
    }

    fn set(&mut self, value: &Value) -> Result<(), String> {
        *self = if *value == Value::Flag(false) { None } else { Some(value.choice()?) };
        Ok(())
    }

    fn map_times(&mut self, _by: &dyn Fn(Ns) -> Ns) {}

    fn python_type() -> String {
        format!("{} | Literal[False]", Prefer::python_type())
    }
}

/// One number per class of cores, in units of 1 / [`crate::SPEED_ONE`].
impl Used for [u16; MAX_CLASSES] {
    fn visit(&self, row: &'static Word, visit: &mut dyn FnMut(&'static Word)) {
        if self.iter().any(|&one| one != self[0]) {
            visit(row);
        }
    }
}

impl Field for [u16; MAX_CLASSES] {
    const LEN: usize = MAX_CLASSES;

    fn slots(name: &'static str, out: &mut Vec<Slot>) {
        out.push(Slot::Array(name, MAX_CLASSES));
    }

    fn write(&self, out: &mut Vec<u64>) {
        out.extend(self.iter().map(|&one| u64::from(one)));
    }

    /// The classes' numbers are multiples of the sample, so that they differ.
    fn draw(samples: &'static [u64], source: &mut Source) -> Self {
        let (one, differ) = (source.sample(samples) as u16, source.number(2) as u16);
        std::array::from_fn(|class| one * (1 + differ * class as u16))
    }

    fn set(&mut self, value: &Value) -> Result<(), String> {
        *self = value.speeds()?;
        Ok(())
    }

    fn map_times(&mut self, _by: &dyn Fn(Ns) -> Ns) {}

    fn python_type() -> String {
        "Sequence[float]".to_owned()
    }
}

impl Used for Vec<Steal> {
    fn visit(&self, _row: &'static Word, visit: &mut dyn FnMut(&'static Word)) {
        self.iter().for_each(|step| step.visit_fields(visit));
    }
}

impl Field for Vec<Steal> {
    const LEN: usize = 1 + STEPS_MAX * <Steal as Wire>::LEN;

    fn slots(name: &'static str, out: &mut Vec<Slot>) {
        out.push(Slot::Scalar("steps"));
        out.push(Slot::Structs(name, Steal::group().name, STEPS_MAX));
    }

    fn write(&self, out: &mut Vec<u64>) {
        let end = out.len() + Self::LEN;
        out.push(self.len() as u64);
        self.iter().for_each(|step| step.write_fields(out));
        out.resize(end, 0);
    }

    fn draw(_samples: &'static [u64], source: &mut Source) -> Self {
        (0..source.number(5)).map(|_| Steal::draw_fields(source)).collect()
    }

    fn set(&mut self, value: &Value) -> Result<(), String> {
        *self = value.choices()?.into_iter().map(Steal::any).collect();
        Ok(())
    }

    fn map_times(&mut self, by: &dyn Fn(Ns) -> Ns) {
        self.iter_mut().for_each(|step| step.map_all_times(by));
    }

    fn python_type() -> String {
        format!("Sequence[{}]", StealFrom::python_type())
    }
}

impl Used for Option<Balance> {
    fn visit(&self, _row: &'static Word, visit: &mut dyn FnMut(&'static Word)) {
        if let Some(balance) = self {
            balance.visit_fields(visit);
        }
    }
}

impl Field for Option<Balance> {
    const LEN: usize = <Balance as Wire>::LEN;

    fn slots(name: &'static str, out: &mut Vec<Slot>) {
        out.push(Slot::Struct(name, Balance::group().name));
    }

    fn write(&self, out: &mut Vec<u64>) {
        match self {
            Some(balance) => balance.write_fields(out),
            None => out.resize(out.len() + Self::LEN, 0),
        }
    }

    fn draw(_samples: &'static [u64], source: &mut Source) -> Self {
        let balance = Balance::draw_fields(source);
        Some(balance).filter(|_| source.number(3) > 0)
    }

    /// What the base does can be switched off; what it does not do cannot be switched on.
    fn set(&mut self, value: &Value) -> Result<(), String> {
        value.only_off()?;
        *self = None;
        Ok(())
    }

    fn map_times(&mut self, by: &dyn Fn(Ns) -> Ns) {
        if let Some(balance) = self {
            balance.map_all_times(by);
        }
    }

    fn python_type() -> String {
        "Literal[False]".to_owned()
    }
}

/// Loads are tracked outside kernels only, so a band does not go there.
impl Used for LoadBand {
    fn visit(&self, _row: &'static Word, _visit: &mut dyn FnMut(&'static Word)) {}
}

impl Field for LoadBand {
    const LEN: usize = 0;

    fn slots(_name: &'static str, _out: &mut Vec<Slot>) {}

    fn write(&self, _out: &mut Vec<u64>) {}

    fn draw(_samples: &'static [u64], _source: &mut Source) -> Self {
        Self::default()
    }

    fn set(&mut self, _value: &Value) -> Result<(), String> {
        Err("something that Python can state".to_owned())
    }

    fn map_times(&mut self, by: &dyn Fn(Ns) -> Ns) {
        self.min_resident_ns = by(self.min_resident_ns);
    }

    fn python_type() -> String {
        "object".to_owned()
    }
}
