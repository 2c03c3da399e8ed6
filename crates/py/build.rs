//! Digests of the sources that determine results: of each policy and governor, and of all that they share.
//!
//! A change of one policy's file changes the digest of that policy, and of those that name its module; results of all
//! others stay valid. What a module names is read off its paths, wherever they stand: rather too much than too little.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use sha2::{Digest, Sha256};

/// What simulations are made of beside policies and governors, from the root of the workspace.
const SHARED: [&str; 9] = [
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
/// Folders with one module per thing, and how a module declares that it is one.
const OWNED: [(&str, &str, &str); 2] = [
    ("POLICIES", "crates/policy/src/policies", ": PolicyInfo = PolicyInfo {"),
    ("GOVERNORS", "crates/policy/src/governors", ": GovernorInfo = GovernorInfo {"),
];

/// Texts of sources by their path from the root.
type Sources = BTreeMap<String, String>;

fn main() {
    let root = PathBuf::from("../..");
    let mut shared = Sources::new();
    for path in SHARED {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
        collect(&root, path, &mut shared);
    }
    let mut code = String::new();
    let owned =
        OWNED.map(|(constant, folder, sign)| (constant, digests(&mut shared, folder, sign)));
    writeln!(code, "const ENGINE: &str = {:?};", digest(&shared)).expect("a text takes all");
    for (constant, found) in owned {
        writeln!(code, "const {constant}: &[(&str, &str)] = &{found:?};")
            .expect("a text takes all");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("code.rs"), code).expect("cargo's folder can be written to");
}

/// Adds a file, or all sources below a folder, tests apart.
fn collect(root: &Path, path: &str, found: &mut Sources) {
    let file = root.join(path);
    if !file.is_dir() {
        let text = fs::read_to_string(&file).expect("sources can be read");
        found.insert(path.to_owned(), text);
        return;
    }
    for entry in fs::read_dir(&file).expect("sources can be read") {
        let name = entry.expect("sources can be read").file_name();
        let name = name.to_str().expect("names of sources are UTF-8");
        if !matches!(name.trim_end_matches(".rs"), "tests" | "testing") {
            collect(root, &format!("{path}/{name}"), found);
        }
    }
}

/// Takes the modules of a folder that declare things out of what is shared; the digest of each thing's code by its
/// name.
fn digests(shared: &mut Sources, folder: &str, sign: &str) -> Vec<(String, String)> {
    // A new row of the registry changes nothing of the others.
    if let Some(text) = shared.get_mut(&format!("{folder}/mod.rs")) {
        let (head, rows) = text.split_once("Info = [").expect("a registry has rows");
        let (_, rest) = rows.split_once(']').expect("the rows end");
        *text = format!("{head}{rest}");
    }
    let is_own = |path: &str, text: &str| path.starts_with(folder) && text.contains(sign);
    let own = shared.iter().filter(|(path, text)| is_own(path, text));
    let modules: BTreeSet<String> = own.map(|(path, _)| module(folder, path).to_owned()).collect();
    let is_of = |path: &str| path.starts_with(folder) && modules.contains(module(folder, path));
    let sources: Sources = shared
        .iter()
        .filter(|(path, _)| is_of(path))
        .map(|(p, t)| (p.clone(), t.clone()))
        .collect();
    shared.retain(|path, _| !is_of(path));
    let mut found = Vec::new();
    for start in &modules {
        let used = closure(start, folder, &modules, &sources);
        let code: Sources = sources
            .iter()
            .filter(|(path, _)| used.contains(module(folder, path)))
            .map(|(path, text)| (path.clone(), text.clone()))
            .collect();
        let declared = &sources[&format!("{folder}/{start}.rs")];
        found.extend(names(declared, sign).map(|name| (name.to_owned(), digest(&code))));
    }
    found
}

/// The module of a file below a folder: `hfee` of `FOLDER/hfee.rs` and `FOLDER/hfee/clock.rs`.
fn module<'a>(folder: &str, path: &'a str) -> &'a str {
    let rest = path[folder.len()..].trim_start_matches('/');
    rest.split('/').next().unwrap_or(rest).trim_end_matches(".rs")
}

/// A module with all that it names, and what those name.
fn closure<'a>(
    start: &'a str,
    folder: &str,
    modules: &'a BTreeSet<String>,
    sources: &'a Sources,
) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open = vec![start];
    while let Some(next) = open.pop() {
        if found.insert(next) {
            let texts = sources.iter().filter(|(path, _)| module(folder, path) == next);
            let words = texts.flat_map(|(_, text)| paths(text));
            open.extend(words.filter(|word| modules.contains(*word)));
        }
    }
    found
}

/// The words of a source that may be parts of paths: all of `use` declarations, and those beside `::`.
fn paths(text: &str) -> Vec<&str> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let (mut found, mut is_use) = (Vec::new(), false);
    for line in text.lines() {
        let start = line.trim_start();
        is_use |= start.starts_with("use ") || start.starts_with("pub") && start.contains(" use ");
        for word in line.split(|letter| !is_part(letter)).filter(|word| !word.is_empty()) {
            let at = word.as_ptr() as usize - line.as_ptr() as usize;
            let (before, after) = (&line[..at], &line[at + word.len()..]);
            if is_use || before.ends_with("::") || after.starts_with("::") {
                found.push(word);
            }
        }
        is_use &= !line.contains(';');
    }
    found
}

/// The names of the things that a module declares.
fn names<'a>(text: &'a str, sign: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(sign).skip(1).map(|row| {
        let name = row.split("name: \"").nth(1).expect("a row begins with its name");
        name.split('"').next().expect("a text has a first part")
    })
}

fn digest(sources: &Sources) -> String {
    let mut sha = Sha256::new();
    for (path, text) in sources {
        sha.update(format!("{path} {}\n", text.len()));
        sha.update(text);
    }
    sha.finalize().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
