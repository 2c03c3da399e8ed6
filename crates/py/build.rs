//! A digest of the sources that determine results, by which a sweep knows which of its rows are still valid.

use std::path::Path;
use std::{fs, io};

use sha2::{Digest, Sha256};

/// What results are made of, from the root of the workspace.
const SOURCES: [&str; 9] = [
    "Cargo.lock",
    "crates/model/src",
    "crates/policy/src",
    "crates/predict/src",
    "crates/sim/src",
    "crates/task/src",
    "crates/py/src/policy.rs",
    "crates/py/src/run.rs",
    "crates/py/src/view.rs",
];

fn main() -> io::Result<()> {
    let mut sha = Sha256::new();
    for path in SOURCES {
        println!("cargo::rerun-if-changed=../../{path}");
        add(&mut sha, path)?;
    }
    println!("cargo::rustc-env=AMPSCHED_CODE={:x}", sha.finalize());
    Ok(())
}

/// Adds a file, or all sources below a folder, tests apart.
fn add(sha: &mut Sha256, path: &str) -> io::Result<()> {
    let file = Path::new("../..").join(path);
    if file.is_dir() {
        let mut names = fs::read_dir(&file)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<Vec<_>>>()?;
        names.retain(|name| !matches!(name.trim_end_matches(".rs"), "tests" | "testing"));
        names.sort();
        return names.iter().try_for_each(|name| add(sha, &format!("{path}/{name}")));
    }
    let text = fs::read(&file)?;
    sha.update(format!("{path} {}\n", text.len()));
    sha.update(text);
    Ok(())
}
