//! Classes of cores as the user states them.

use std::collections::BTreeSet;

use ampsched_model::{InputError, MAX_CLASSES};
use ampsched_policy::SPEED_MAX;

use crate::classes::{Lists, Speeds};
use crate::{format_cpus, parse_cpus};

/// What errors name.
const SOURCE: &str = "classes of cores";

/// Classes of cores as the user states them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ByHand {
    /// CPUs of each class, the slowest class first, such as `["2-3", "0-1"]`; empty: as the kernel shows them.
    pub classes: Vec<String>,
    /// Speed of the fastest class over that of each slower one, from the next to the slowest; empty: not known.
    pub ratios: Vec<f64>,
}

impl ByHand {
    pub(crate) fn lists(&self, online: &BTreeSet<usize>) -> Result<Lists, InputError> {
        let count = self.classes.len();
        if count > MAX_CLASSES {
            return Err(wrong(format!("{count} classes, at most {MAX_CLASSES} are possible")));
        }
        let mut lists = Lists::new();
        for text in &self.classes {
            let cpus = parse_cpus(SOURCE, "", text)?;
            if cpus.is_empty() {
                return Err(wrong("a class has no CPU".to_owned())
                    .with_hint("state both --big and --little, such as --big 0-1 --little 2-3"));
            }
            if let Some(cpu) = cpus.difference(online).next() {
                let online = format_cpus(online.iter().copied());
                let message = format!("CPU {cpu} of \"{text}\" is not online (online: {online})");
                return Err(wrong(message));
            }
            if let Some(cpu) = cpus.iter().find(|cpu| lists.iter().any(|list| list.contains(cpu))) {
                return Err(wrong(format!("CPU {cpu} is in two classes")));
            }
            lists.push(cpus);
        }
        Ok(lists)
    }

    /// Relative speed of each class, for a given number of classes, the slowest first; unknown if no ratio is stated.
    pub(crate) fn speeds(&self, count: usize) -> Result<Speeds, InputError> {
        if self.ratios.is_empty() {
            // A single class is as fast as the fastest: itself.
            return Ok(vec![(count == 1).then_some(1.0); count]);
        }
        let wrong = |message: String| InputError::new("--ratio", "", message);
        let ratios = self.ratios.len();
        if ratios + 1 != count {
            return Err(wrong(format!("{ratios} ratios for {count} classes of cores")).with_hint(
                "one for each class but the fastest: fastest / next, ..., fastest / slowest",
            ));
        }
        let mut before = 1.0;
        for &ratio in &self.ratios {
            if !(ratio.is_finite() && ratio > before && ratio <= SPEED_MAX) {
                return Err(wrong(format!(
                    "{ratio} is not above {before} and at most {SPEED_MAX}"
                )));
            }
            before = ratio;
        }
        let slower = self.ratios.iter().rev().map(|ratio| Some(1.0 / ratio));
        Ok(slower.chain([Some(1.0)]).collect())
    }
}

fn wrong(message: String) -> InputError {
    InputError::new(SOURCE, "", message)
}
