//! Every format that is read, with texts to start from and what must hold of any text whatsoever.
//!
//! No text makes a reader panic, hang or use memory out of proportion; what is refused is refused in one short line
//! that names the file; what is read can be used, and can be read again where it can be written.

mod catalog;
mod computer;
mod folder;
mod graphs;
mod imports;
mod live;
mod measured;
#[cfg(test)]
mod readers;
mod seeds;
mod specs;

use std::sync::OnceLock;

/// A format.
#[derive(Debug)]
pub struct Format {
    /// Name, as on the command line.
    pub name: &'static str,
    /// Texts to start from: files that are shipped or belong to tests.
    pub seeds: fn() -> Vec<String>,
    /// Reads a text and uses what was read.
    ///
    /// # Panics
    /// If something does not hold.
    pub read: fn(&str),
    /// Longest text that is tried, in bytes: what matters is reached by short ones, and they are faster.
    pub most: usize,
    /// How many of all texts are of this format, in parts of the sum of all shares: more where there is more to reach,
    /// fewer where a text takes long.
    pub share: u32,
}

/// All formats, in the order of their names.
pub static FORMATS: &[&Format] = &[
    &computer::CGROUPS,
    &catalog::CORE_TYPE,
    &specs::CORES,
    &specs::CPUS,
    &live::FACTS,
    &live::FUTEX_TRACE,
    &measured::GEM5,
    &graphs::CSV,
    &graphs::DOT,
    &graphs::STG,
    &graphs::WFCOMMONS,
    &live::JOURNAL,
    &catalog::MACHINE,
    &specs::MACHINE_PART,
    &measured::MODEL,
    &catalog::NOISE,
    &measured::PERF,
    &computer::PMU,
    &specs::POLICY,
    &computer::PROC,
    &catalog::PROFILE,
    &catalog::PROGRAM,
    &graphs::RECORDING,
    &live::REGISTRATION,
    &catalog::RTAPP,
    &specs::RULE,
    &computer::SENSORS,
    &live::STATUS,
    &computer::SYSFS,
    &specs::TASK_POLICY,
    &specs::TASK_PROGRAM,
    &imports::CGROUPS,
    &imports::FILE,
    &imports::TEXT,
    &specs::WORKERS,
    &catalog::WORKLOAD,
];

/// The format of that name.
pub fn find(name: &str) -> Option<&'static Format> {
    FORMATS.iter().copied().find(|format| format.name == name)
}

impl Format {
    /// Words that stand in the seeds: they mean something in the format.
    pub fn words(&self) -> Vec<String> {
        let mut words: Vec<String> = (self.seeds)()
            .iter()
            .flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && !"_-".contains(c)))
            .filter(|word| word.len() > 1)
            .map(str::to_owned)
            .collect();
        words.sort();
        words.dedup();
        words
    }
}

/// What every refusal must be.
pub(crate) fn check_refusal(file: &str, message: &str) {
    one_line(message);
    assert!(message.starts_with(file), "does not name {file}: {message:?}");
}

/// A refusal is one line, and a short one: each of its four parts is cut at 1,500 characters.
pub(crate) fn one_line(message: &str) {
    assert!(!message.contains('\n') && message.chars().count() < 6200, "not one line: {message:?}");
}

/// The seeds of a format, read once.
pub(crate) fn once(cell: &'static OnceLock<Vec<String>>, read: fn() -> Vec<String>) -> Vec<String> {
    cell.get_or_init(read).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_sorted_and_have_seeds_that_hold() {
        assert!(FORMATS.is_sorted_by_key(|format| format.name));
        for format in FORMATS {
            let seeds = (format.seeds)();
            assert!(!seeds.is_empty(), "{}", format.name);
            seeds.iter().for_each(|seed| (format.read)(seed));
        }
    }

    /// What coverage-guided mutation has kept of each format is read here in every test run.
    #[test]
    fn the_corpus_holds() {
        let corpus = seeds::corpus();
        assert!(corpus.values().map(Vec::len).sum::<usize>() > 1000, "few texts");
        for (name, texts) in corpus {
            let format = find(&name).unwrap_or_else(|| panic!("{name} is no format"));
            texts.iter().for_each(|text| (format.read)(text));
        }
    }
}
