//! Coverage-guided mutation of one format, by libFuzzer: `FORMAT=machine ampsched-fuzz CORPUS`.
//!
//! With `SEEDS=FOLDER` it mutates nothing, but lists all formats and writes the seeds of each below that folder. What
//! is tried and what must hold of it is in `ampsched_attack::formats`; `tests/attack/attack.py` runs this.
#![no_main]

use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use ampsched_attack::dice::Dice;
use ampsched_attack::formats::{FORMATS, Format, find};
use ampsched_attack::mutate::mutate;
use ampsched_attack::panics;
use libfuzzer_sys::{fuzz_crossover, fuzz_mutator, fuzz_target, fuzzer_mutate};

/// The format, the words that mean something in it, and its seeds.
struct Subject {
    format: &'static Format,
    words: Vec<String>,
    seeds: Vec<String>,
    failures: Failures,
}

/// Where panics are written: into the folder `FAILURES`, a file for the first at each place.
struct Failures {
    folder: PathBuf,
    places: Mutex<BTreeSet<String>>,
}

impl Failures {
    fn note(&self, said: &str, text: &str) {
        let place = said.rsplit('(').next().unwrap_or_default().to_owned();
        let mut places = self.places.lock().expect("nobody panics with it");
        let number = places.len();
        if places.insert(place) {
            let name = format!("panic-{}-{number}", std::process::id());
            let written = std::fs::write(self.folder.join(&name), text)
                .and_then(|()| std::fs::write(self.folder.join(name + ".txt"), said));
            written.expect("failures can be written");
        }
    }
}

fn subject() -> &'static Subject {
    static SUBJECT: OnceLock<Subject> = OnceLock::new();
    SUBJECT.get_or_init(|| {
        let name = std::env::var("FORMAT").unwrap_or_default();
        let format = find(&name).unwrap_or_else(|| panic!("FORMAT={name:?} is not a format"));
        // In place of libFuzzer's own, which ends the process.
        panics::note();
        let folder = std::env::var_os("FAILURES").map_or_else(|| ".".into(), PathBuf::from);
        let failures = Failures { folder, places: Mutex::new(BTreeSet::new()) };
        Subject { format, words: format.words(), seeds: (format.seeds)(), failures }
    })
}

/// Lists the formats, each with the longest text that is tried and its share of all texts, and ends the process.
fn list_if_asked() {
    let Some(folder) = std::env::var_os("SEEDS").map(PathBuf::from) else { return };
    for format in FORMATS {
        println!("{}\t{}\t{}", format.name, format.most, format.share);
        write_seeds(format, &folder.join(format.name)).expect("seeds can be written");
    }
    std::process::exit(0);
}

fn write_seeds(format: &Format, folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut seeds = (format.seeds)().into_iter().enumerate();
    seeds.try_for_each(|(number, seed)| {
        std::fs::write(folder.join(format!("seed-{number:03}")), seed)
    })
}

// A panic is written down, the first at each place, and the run goes on; what else ends a process ends this one.
fuzz_target!(init: list_if_asked(), |data: &[u8]| {
    let Subject { format, failures, .. } = subject();
    let text = String::from_utf8_lossy(&data[..data.len().min(format.most)]);
    if catch_unwind(|| (format.read)(&text)).is_err() {
        failures.note(&panics::last(), &text);
    }
});

// One time in four bytes are changed, else what the text is made of.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let dice = &mut Dice::new(u64::from(seed), size as u64);
    if dice.once_in(4) {
        return fuzzer_mutate(data, size, max_size);
    }
    let Subject { format, words, seeds, .. } = subject();
    let text = String::from_utf8_lossy(&data[..size]).into_owned();
    let other = dice.of::<String>(seeds);
    let mutated = match text.is_empty() {
        true => other.clone(),
        false => mutate(&text, other, words, dice, max_size.min(format.most)),
    };
    put(&mutated, data, max_size)
});

// The beginning of one text and the end of another, cut between lines.
fuzz_crossover!(|one: &[u8], other: &[u8], out: &mut [u8], seed: u32| {
    let dice = &mut Dice::new(u64::from(seed), 1);
    let (one, other) = (String::from_utf8_lossy(one), String::from_utf8_lossy(other));
    let lines = |text: &str| text.split_inclusive('\n').map(str::to_owned).collect::<Vec<_>>();
    let (mut first, second) = (lines(&one), lines(&other));
    first.truncate(dice.index(first.len() + 1));
    first.extend(second.into_iter().skip(dice.index(other.lines().count() + 1)));
    let len = out.len();
    put(&first.concat(), out, len)
});

fn put(text: &str, out: &mut [u8], most: usize) -> usize {
    let len = text.len().min(most).min(out.len());
    out[..len].copy_from_slice(&text.as_bytes()[..len]);
    len
}
