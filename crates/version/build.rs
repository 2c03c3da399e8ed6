//! Hands the compiler what it does not know of the build: commit, profile, target.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=AMPSCHED_COMMIT");
    let commit = env::var("AMPSCHED_COMMIT").ok().filter(|commit| !commit.is_empty());
    let target = env::var("TARGET").expect("cargo sets TARGET");
    let parts: Vec<String> = commit.into_iter().chain([profile(), target]).collect();
    println!("cargo::rustc-env=AMPSCHED_BUILD={}", parts.join(", "));
}

/// The profile's name: cargo's own variable says only which of its two profiles that one is made from.
fn profile() -> String {
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    // TARGET_FOLDER/PROFILE/build/PACKAGE/out
    let folder = out.ancestors().nth(3).and_then(|folder| folder.file_name());
    match folder.and_then(|name| name.to_str()) {
        Some("debug") => "dev".to_owned(),
        Some(name) => name.to_owned(),
        None => env::var("PROFILE").expect("cargo sets PROFILE"),
    }
}
