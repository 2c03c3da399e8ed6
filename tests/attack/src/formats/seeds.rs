//! Texts to start from, out of the checkout.

#[path = "../../../../crates/model/tests/cases/mod.rs"]
mod cases;

use std::fs;
use std::path::{Path, PathBuf};

/// The files below a folder of the checkout whose names end so, by name; `most` bytes each at most.
pub fn files(folder: &str, ending: &str, most: usize) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a folder can be listed").path())
        .collect();
    paths.sort();
    let named = paths.iter().filter(|path| path.to_string_lossy().ends_with(ending));
    let texts = named.filter_map(|path| fs::read_to_string(path).ok());
    texts.filter(|text| text.len() <= most).collect()
}

/// The inputs in a file of cases of `crates/model/tests`; `most` bytes each at most.
pub fn cases(file: &str, most: usize) -> Vec<String> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/model/tests");
    let inputs = cases::read(&tests.join(file)).into_iter().map(|case| case.input);
    inputs.filter(|text| text.len() <= most).collect()
}

/// The bytes of a file of the checkout.
pub fn bytes(file: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What coverage-guided mutation has kept of each format; `tests/attack/parsers.py` packs it.
#[cfg(test)]
pub fn corpus() -> std::collections::BTreeMap<String, Vec<String>> {
    let packed = bytes("tests/attack/corpus.json.gz");
    serde_json::from_reader(flate2::read::GzDecoder::new(packed.as_slice())).expect("a corpus")
}
