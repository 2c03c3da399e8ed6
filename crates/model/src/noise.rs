//! Noise files: what a system does beside the programs, as statistics.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::reader::{Document, Node, Table, plain, quoted, stem};
use crate::{Amount, Dist, InputError};

/// Keys of a noise file.
const KEYS: [&str; 3] = ["description", "source", "sources"];
/// Keys of a source.
const SOURCE_KEYS: [&str; 5] = ["name", "kind", "core", "pause_us", "duration_us"];

/// Most sources of a file.
const SOURCES_MAX: usize = 64;
/// Most quantiles of a table.
const QUANTILES_MAX: usize = 1000;
/// Longest pause in us: 1000 s.
const PAUSE_US_MAX: f64 = 1e9;
/// Shortest mean pause in us: more often nothing happens that could be told from a slower core.
const PAUSE_MEAN_US_MIN: f64 = 10.0;
/// Longest duration in us: 1 s.
const DURATION_US_MAX: f64 = 1e6;
/// Greatest share of a core's time that all sources may take.
const SHARE_MAX: f64 = 0.5;
/// Greatest number of a core.
const CORE_MAX: i64 = 1023;
const NS_PER_US: f64 = 1000.0;

/// What a source of noise does to a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoiseKind {
    /// An interrupt: the thread on the core is kept from its work; an idle core stays idle for those who look for one.
    Interrupt,
    /// A kernel thread wakes on the core, to which it is bound: it takes the core from the running thread, which waits
    /// meanwhile, and the core is not idle.
    Thread,
}

impl NoiseKind {
    const WORDS: [(&'static str, NoiseKind); 2] =
        [("interrupt", NoiseKind::Interrupt), ("thread", NoiseKind::Thread)];

    /// Its word in noise files.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }
}

/// Something that happens on cores again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct NoiseSource {
    /// Its name, such as `kworker`.
    pub name: Arc<str>,
    /// What it does to a core.
    pub kind: NoiseKind,
    /// The only core on which it happens, modulo the number of cores; on each by itself if absent.
    pub core: Option<u16>,
    /// Time in ns from its end on a core to its next beginning there.
    pub pause: Amount,
    /// Time in ns that it takes on the machine's fastest core at its highest frequency.
    pub duration: Amount,
}

impl NoiseSource {
    /// The share of a core's time that it takes on the fastest core.
    pub fn share(&self) -> f64 {
        self.duration.mean / (self.duration.mean + self.pause.mean)
    }

    /// Whether it happens on a given core of a machine with a given number of cores.
    pub fn is_on(&self, core: usize, cores: usize) -> bool {
        self.core.is_none_or(|own| usize::from(own) % cores == core)
    }
}

/// What a system does beside the programs.
#[derive(Clone, Debug, PartialEq)]
pub struct Noise {
    /// Its name in results.
    pub name: String,
    /// One line for listings.
    pub description: String,
    /// Where the numbers come from.
    pub source: String,
    /// What happens.
    pub sources: Vec<NoiseSource>,
}

/// Parses a noise file. Its name is the file's.
///
/// # Errors
/// Invalid TOML, an unknown or missing key, a value of the wrong kind or out of its range, two sources of one name, or
/// sources that take more than half of a core's time.
pub fn parse_noise(file: &str, text: &str) -> Result<Noise, InputError> {
    let document = Document::parse(file, text)?;
    let root = document.root(&KEYS)?;
    let list = root.require("sources")?;
    let entries = list.list()?;
    if entries.is_empty() || entries.len() > SOURCES_MAX {
        let message = format!("{} sources, 1 to {SOURCES_MAX} are allowed", entries.len());
        return Err(list.spot.error(message).with_hint("without noise nothing is to be said"));
    }
    let sources = entries.iter().map(source).collect::<Result<Vec<_>, _>>()?;
    let mut names = BTreeSet::new();
    for (entry, source) in entries.iter().zip(&sources) {
        if !names.insert(source.name.clone()) {
            return Err(entry.spot.error(format!("a second source {}", quoted(&source.name))));
        }
    }
    let share: f64 = sources.iter().map(NoiseSource::share).sum();
    if share > SHARE_MAX {
        let message = format!("take {share:.2} of a core's time, at most {SHARE_MAX} is allowed");
        return Err(list.spot.error(message).with_hint("longer pauses leave more to programs"));
    }
    Ok(Noise {
        name: stem(file).to_owned(),
        description: root.text_or("description", "")?,
        source: root.text_or("source", "")?,
        sources,
    })
}

fn source(entry: &Node<'_>) -> Result<NoiseSource, InputError> {
    let table = entry.table(&SOURCE_KEYS)?;
    let words = NoiseKind::WORDS.map(|(word, _)| word);
    let kind = table.require("kind")?.word("kind", &words)?;
    let kind = NoiseKind::WORDS.iter().find(|(word, _)| *word == kind);
    let core = table.get("core").map(|node| node.whole(0..=CORE_MAX)).transpose()?;
    let pause = quantiles(&table, "pause_us", PAUSE_US_MAX)?;
    if pause.mean < PAUSE_MEAN_US_MIN * NS_PER_US {
        let mean_us = plain(pause.mean / NS_PER_US);
        let message = format!("{mean_us} on average, at least {PAUSE_MEAN_US_MIN} is needed");
        return Err(table.require("pause_us")?.spot.error(message));
    }
    Ok(NoiseSource {
        name: table.require("name")?.name()?.into(),
        kind: kind.map_or(NoiseKind::Interrupt, |(_, kind)| *kind),
        core: core.map(|core| core as u16),
        pause,
        duration: quantiles(&table, "duration_us", DURATION_US_MAX)?,
    })
}

/// Equally spaced quantiles in us, from the least to the greatest value, as an amount of ns.
fn quantiles(table: &Table<'_>, key: &str, most_us: f64) -> Result<Amount, InputError> {
    let list = table.require(key)?;
    let nodes = list.list()?;
    if nodes.len() < 2 || nodes.len() > QUANTILES_MAX {
        let message = format!("{} quantiles, 2 to {QUANTILES_MAX} are allowed", nodes.len());
        let hint = "the least and the greatest value, with equally spaced ones between them";
        return Err(list.spot.error(message).with_hint(hint));
    }
    let points =
        nodes.iter().map(|node| node.number(0.0..=most_us)).collect::<Result<Vec<_>, _>>()?;
    for (pair, node) in points.windows(2).zip(&nodes[1..]) {
        if pair[0] > pair[1] {
            let (low, high) = (plain(pair[0]), plain(pair[1]));
            return Err(node.spot.error(format!("{high} after {low}, quantiles must ascend")));
        }
    }
    let points: Vec<f64> = points.iter().map(|point| point * NS_PER_US).collect();
    let mean = points.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).sum::<f64>();
    Ok(Amount { mean: mean / (points.len() - 1) as f64, dist: Dist::Quantiles(points) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Draw;

    const GOOD: &str = include_str!("../tests/noise/good.toml");

    fn error(text: &str) -> String {
        parse_noise("n.toml", text).expect_err("it is wrong").to_string()
    }

    #[test]
    fn sources_have_the_stated_means() {
        let noise = parse_noise("data/quiet.toml", GOOD).unwrap();
        assert_eq!((noise.name.as_str(), noise.description.as_str()), ("quiet", "quiet"));
        let [kworker, network] = noise.sources.as_slice() else { panic!() };
        assert_eq!((kworker.kind, kworker.core), (NoiseKind::Thread, None));
        assert_eq!((network.kind, network.core), (NoiseKind::Interrupt, Some(1)));
        assert_eq!((kworker.pause.mean, kworker.duration.mean), (375_000.0, 3_000.0));
        assert_eq!(network.duration.draw(&mut Draw::new(1)), 1_500);
        let mut draw = Draw::new(7);
        let sum: u64 = (0..20_000).map(|_| kworker.pause.draw(&mut draw)).sum();
        assert!((sum as f64 / 20_000.0 / 375_000.0 - 1.0).abs() < 0.02, "{sum}");
        assert!((kworker.share() - 3.0 / 378.0).abs() < 1e-12);
        assert!(kworker.is_on(3, 4) && network.is_on(1, 4) && !network.is_on(0, 4));
        assert!(network.is_on(0, 1), "modulo the number of cores");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |from: &str, to: &str| error(&GOOD.replace(from, to));
        assert_eq!(
            wrong("\"thread\"", "\"tread\""),
            "n.toml:4: sources[0].kind: unknown kind \"tread\" (did you mean \"thread\"?)"
        );
        assert_eq!(
            wrong("[2, 4]", "[4, 2]"),
            "n.toml:6: sources[0].duration_us[1]: 2 after 4, quantiles must ascend"
        );
        assert_eq!(
            wrong("[2, 4]", "[4]"),
            "n.toml:6: sources[0].duration_us: 1 quantiles, 2 to 1000 are allowed (the least and the greatest value, \
             with equally spaced ones between them)"
        );
        assert_eq!(
            wrong("[100.0, 300, 800]", "[0, 1]"),
            "n.toml:5: sources[0].pause_us: 0.5 on average, at least 10 is needed"
        );
        assert_eq!(
            wrong("core = 1", "core = -1"),
            "n.toml:10: sources[1].core: -1 is out of range, 0 to 1023 is allowed"
        );
        assert_eq!(
            wrong("[2, 4]", "[2000, 4000]"),
            "n.toml:2: sources: take 0.89 of a core's time, at most 0.5 is allowed (longer pauses leave more to \
             programs)"
        );
        assert_eq!(
            wrong("network", "kworker"),
            "n.toml:7: sources[1]: a second source \"kworker\""
        );
        assert!(wrong("pause_us", "pauses_us").contains("did you mean \"pause_us\"?"));
        assert!(error("description = 1\nsources = []").contains("0 sources, 1 to 64 are allowed"));
    }
}
