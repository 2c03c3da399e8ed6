//! The types of fields and payloads: their words on the wire, random values, what Python may say.

use ampsched_model::{MAX_CLASSES, Ns};

use super::field::NONE;
use super::{Choice, Field, Record, STEPS_MAX, Slot, Source, Used, Value, Wire, Word};
use crate::{Balance, LoadBand, Prefer, Steal, StealFrom};

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

impl Field for LoadBand {
    const LEN: usize = <Self as Wire>::LEN;

    fn slots(name: &'static str, out: &mut Vec<Slot>) {
        out.push(Slot::Struct(name, Self::group().name));
    }

    fn write(&self, out: &mut Vec<u64>) {
        self.write_fields(out);
    }

    fn draw(_samples: &'static [u64], source: &mut Source) -> Self {
        Self::draw_fields(source)
    }

    fn set(&mut self, _value: &Value) -> Result<(), String> {
        Err("something that Python can state".to_owned())
    }

    fn map_times(&mut self, by: &dyn Fn(Ns) -> Ns) {
        self.map_all_times(by);
    }

    fn python_type() -> String {
        "object".to_owned()
    }
}
