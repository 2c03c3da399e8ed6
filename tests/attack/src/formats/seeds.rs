//! Texts to start from, out of the checkout.

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

/// The bytes of a file of the checkout.
pub fn bytes(file: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What coverage-guided mutation has kept of a format.
#[cfg(test)]
pub fn corpus(name: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let Ok(entries) = fs::read_dir(&folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("a folder can be listed").path()).collect();
    paths.sort();
    paths
        .iter()
        .map(|path| String::from_utf8_lossy(&fs::read(path).expect("a file")).into_owned())
        .collect()
}
