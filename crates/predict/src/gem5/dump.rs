//! One dump: its lines, and what they say about each core.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use ampsched_model::InputError;
use ampsched_model::limits::READINGS_MAX;

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
        for dot in names.divisions(path) {
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
        let cores = Cores::of(&self.entries);
        if cores.paths.is_empty() {
            let message = "the dump that begins here has no core: no statistic ends in .numCycles";
            return Err(InputError::new(file, "", message).at_line(self.line));
        }
        let mut found: BTreeMap<(usize, usize), Entry<'a>> = BTreeMap::new();
        for entry in &self.entries {
            let Some(core) = cores.core_of(entry) else { continue };
            found
                .entry((core, entry.meaning.counter))
                .and_modify(|known| merge(known, entry))
                .or_insert(*entry);
        }
        let (end_s, duration_s) = (self.seconds(self.end_ticks), self.seconds(self.duration_ticks));
        for ((core, counter), entry) in found {
            if readings.len() == READINGS_MAX {
                let message = format!(
                    "with the dump that begins here more than {READINGS_MAX} counts, which is the limit"
                );
                return Err(InputError::new(file, "", message).at_line(self.line));
            }
            let info = &COUNTERS[counter];
            readings.push(Reading {
                window: self.window,
                end_s,
                duration_s,
                core: Cow::Borrowed(cores.paths.get(core).copied().unwrap_or("")),
                core_type: Cow::Borrowed(""),
                thread: Cow::Borrowed(""),
                counter: Cow::Borrowed(info.name),
                native: Cow::Borrowed(entry.native),
                unit: Cow::Borrowed(info.unit.name()),
                value: Some(entry.value).filter(|value| value.is_finite()),
                running_share: 1.0,
            });
        }
        Ok(())
    }

    fn seconds(&self, ticks: Option<f64>) -> Option<f64> {
        ticks.map(|ticks| ticks / self.ticks_per_s)
    }
}

/// The cores of a dump.
struct Cores<'a> {
    /// Paths that have cycles, in the order of the dump.
    paths: Vec<&'a str>,
    by_path: HashMap<&'a str, usize>,
    /// The first core of each number in a part of a path.
    by_number: HashMap<&'a str, usize>,
}

impl<'a> Cores<'a> {
    fn of(entries: &[Entry<'a>]) -> Self {
        let cycles = counter_index("cycles");
        let (mut paths, mut by_path, mut by_number) = (Vec::new(), HashMap::new(), HashMap::new());
        for entry in entries.iter().filter(|entry| Some(entry.meaning.counter) == cycles) {
            let core = paths.len();
            if by_path.contains_key(entry.owner) {
                continue;
            }
            paths.push(entry.owner);
            by_path.insert(entry.owner, core);
            for number in entry.owner.split('.').filter_map(instance) {
                by_number.entry(number).or_insert(core);
            }
        }
        Self { paths, by_path, by_number }
    }

    /// The core that an entry belongs to; one more than the last if several share it; none if it is no core's.
    fn core_of(&self, entry: &Entry) -> Option<usize> {
        let own = self.by_path.get(entry.owner).copied();
        if own.is_some() || entry.meaning.scope == Scope::Core {
            return own;
        }
        if self.paths.len() == 1 {
            return Some(0);
        }
        // Caches beside the processor carry their core's number: l1dcaches1, cores1.core.
        let is_private = matches!(entry.meaning.scope, Scope::Cache(_))
            && !matches!(entry.component, "l2" | "l3");
        let number = instance(entry.component).filter(|_| is_private);
        let numbered = number.and_then(|number| self.by_number.get(number).copied());
        Some(numbered.unwrap_or(self.paths.len()))
    }
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
