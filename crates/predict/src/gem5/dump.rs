//! One dump: its lines, and what they say about each core.

use std::borrow::Cow;
use std::collections::HashMap;

use ampsched_model::InputError;

use super::caches::{instance, level};
use super::names::{Meaning, Names, Scope};
use crate::{COUNTERS, Reading, counter_index};

/// A statistic of the vocabulary as it stands in the dump.
#[derive(Clone, Copy)]
struct Entry<'a> {
    meaning: Meaning,
    /// Path of the core, or of the component above a cache or in front of a memory's statistic.
    owner: &'a str,
    /// The cache's own name.
    component: &'a str,
    native: &'a str,
    value: f64,
}

/// A dump while it is read.
pub struct Dump<'a> {
    /// Line of its beginning, from 1.
    pub line: usize,
    window: u32,
    ticks_per_s: f64,
    duration_ticks: Option<f64>,
    end_ticks: Option<f64>,
    entries: Vec<Entry<'a>>,
}

impl<'a> Dump<'a> {
    pub fn new(window: u32, line: usize) -> Self {
        Self {
            line,
            window,
            // gem5's tick is 1 ps unless the dump says otherwise.
            ticks_per_s: 1e12,
            duration_ticks: None,
            end_ticks: None,
            entries: Vec::new(),
        }
    }

    /// Reads a line; the error says what is wrong with it.
    pub fn read_line(&mut self, line: &'a str, names: &Names) -> Result<(), String> {
        let mut words = line.split_ascii_whitespace();
        let Some(name) = words.next() else { return Ok(()) };
        let Some(word) = words.next() else {
            return Err(format!("\"{}\" has no value", shortened(name)));
        };
        let Some(value) = number(word) else {
            return Err(format!("{}: \"{}\" is not a number", shortened(name), shortened(word)));
        };
        if name.contains('.') {
            self.find(name, value, names);
        } else {
            self.read_time(name, value);
        }
        Ok(())
    }

    fn read_time(&mut self, name: &str, value: f64) {
        match name {
            "sim_ticks" | "simTicks" => self.duration_ticks = Some(value),
            "final_tick" | "finalTick" => self.end_ticks = Some(value),
            "sim_freq" | "simFreq" if value > 0.0 => self.ticks_per_s = value,
            _ => {}
        }
    }

    /// Keeps the statistic if it is of the vocabulary: at some dot its name divides into the path of a
    /// core or cache and a name that is known.
    fn find(&mut self, path: &'a str, value: f64, names: &Names) {
        for (dot, _) in path.match_indices('.') {
            let (above, native) = (&path[..dot], &path[dot + 1..]);
            let (owner, component) = above.rsplit_once('.').unwrap_or(("", above));
            for &meaning in names.of(native) {
                let (owner, component) = match meaning.scope {
                    Scope::Core => (above, ""),
                    Scope::Cache(wanted) if level(component) == Some(wanted) => (owner, component),
                    Scope::Memory => ("", component),
                    Scope::Cache(_) => continue,
                };
                self.entries.push(Entry { meaning, owner, component, native: path, value });
            }
        }
    }

    /// Adds the readings of all cores.
    pub fn finish(self, file: &str, readings: &mut Vec<Reading<'a>>) -> Result<(), InputError> {
        let cores = self.cores();
        if cores.is_empty() {
            let message = "the dump that begins here has no core: no statistic ends in .numCycles";
            return Err(InputError::new(file, "", message).at_line(self.line));
        }
        let mut found: HashMap<(usize, usize), Entry<'a>> = HashMap::new();
        for entry in &self.entries {
            let Some(core) = core_of(entry, &cores) else { continue };
            found
                .entry((core, entry.meaning.counter))
                .and_modify(|known| merge(known, entry))
                .or_insert(*entry);
        }
        let (end_s, duration_s) = (self.seconds(self.end_ticks), self.seconds(self.duration_ticks));
        for core in 0..=cores.len() {
            for (counter, info) in COUNTERS.iter().enumerate() {
                let Some(entry) = found.get(&(core, counter)) else { continue };
                readings.push(Reading {
                    window: self.window,
                    end_s,
                    duration_s,
                    core: Cow::Borrowed(cores.get(core).copied().unwrap_or("")),
                    core_type: Cow::Borrowed(""),
                    thread: Cow::Borrowed(""),
                    counter: Cow::Borrowed(info.name),
                    native: Cow::Borrowed(entry.native),
                    unit: Cow::Borrowed(info.unit.name()),
                    value: Some(entry.value).filter(|value| value.is_finite()),
                    running_share: 1.0,
                });
            }
        }
        Ok(())
    }

    fn seconds(&self, ticks: Option<f64>) -> Option<f64> {
        ticks.map(|ticks| ticks / self.ticks_per_s)
    }

    /// Paths that have cycles, in the order of the dump.
    fn cores(&self) -> Vec<&'a str> {
        let cycles = counter_index("cycles");
        let mut cores: Vec<&str> = Vec::new();
        for entry in &self.entries {
            if Some(entry.meaning.counter) == cycles && !cores.contains(&entry.owner) {
                cores.push(entry.owner);
            }
        }
        cores
    }
}

/// The core that an entry belongs to; one more than the last if several share it; none if it is no
/// core's.
fn core_of(entry: &Entry, cores: &[&str]) -> Option<usize> {
    let own = cores.iter().position(|core| *core == entry.owner);
    if own.is_some() || entry.meaning.scope == Scope::Core {
        return own;
    }
    if cores.len() == 1 {
        return Some(0);
    }
    // Caches beside the processor carry their core's number: l1dcaches1, cores1.core.
    let number = instance(entry.component).filter(|_| !matches!(entry.component, "l2" | "l3"));
    let same_number = |core: &&str| core.rsplit('.').any(|part| instance(part) == number);
    let is_private = matches!(entry.meaning.scope, Scope::Cache(_)) && number.is_some();
    let numbered = if is_private { cores.iter().position(same_number) } else { None };
    Some(numbered.unwrap_or(cores.len()))
}

/// Of two statistics for one counter the preferred one counts; parts of one sum are added up.
fn merge<'a>(known: &mut Entry<'a>, other: &Entry<'a>) {
    if other.meaning.preference < known.meaning.preference {
        *known = *other;
    } else if other.meaning.preference == known.meaning.preference {
        known.value += other.value;
    }
}

/// Reads a number; `nan`, `inf`, `no_value` and errors such as `<err:` are values that say nothing.
fn number(word: &str) -> Option<f64> {
    if let Ok(value) = word.parse::<f64>() {
        return Some(value);
    }
    let says_nothing = word == "no_value" || word == "|" || word.starts_with("<err:");
    says_nothing.then_some(f64::NAN)
}

/// A word of the file, cut to a length that fits into a message.
fn shortened(word: &str) -> String {
    word.chars().take(60).collect()
}
