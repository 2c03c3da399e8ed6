//! Every example that comes with rt-app is imported or refused for a named reason.
//!
//! The examples are GPL and so not part of this project. The folder is the one that
//! `AMPSCHED_RTAPP_EXAMPLES` names, or where Debian's package puts them; without either the test says so.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use ampsched_model::import_rtapp;

const DEBIAN: &str = "/usr/share/doc/rt-app/examples";

/// The examples of Debian's rt-app 1.0-1 and those that its project has added since: threads, or what the refusal says.
const OUTCOMES: [(&str, Result<u32, &str>); 28] = [
    ("browser-long.json", Ok(9)),
    ("browser-short.json", Ok(9)),
    ("cpufreq_governor_efficiency/calibration.json", Ok(1)),
    ("cpufreq_governor_efficiency/dvfs.json", Ok(1)),
    ("custom-slice.json", Ok(2)),
    ("merge/global.json", Err("key \"tasks\" is missing")),
    ("merge/resources.json", Err("a setting of old rt-app versions")),
    ("merge/thread0.json", Err("a key of old rt-app versions")),
    ("merge/thread1.json", Err("a key of old rt-app versions")),
    ("merge/thread2.json", Err("a key of old rt-app versions")),
    ("merge/thread3.json", Err("a key of old rt-app versions")),
    ("mp3-long.json", Ok(5)),
    ("mp3-short.json", Ok(5)),
    ("spreading-tasks.json", Ok(2)),
    ("template.json", Ok(1)),
    ("tutorial/example1.json", Ok(1)),
    ("tutorial/example10.json", Ok(1)),
    ("tutorial/example11.json", Ok(1)),
    ("tutorial/example2.json", Ok(1)),
    ("tutorial/example3.json", Ok(12)),
    ("tutorial/example4.json", Ok(2)),
    ("tutorial/example5.json", Ok(2)),
    ("tutorial/example6.json", Ok(1)),
    ("tutorial/example7.json", Ok(2)),
    ("tutorial/example8.json", Ok(1)),
    ("tutorial/example9.json", Ok(2)),
    ("video-long.json", Ok(17)),
    ("video-short.json", Ok(17)),
];

/// JSON files below a folder by their path from it.
fn examples(folder: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let entries =
            std::fs::read_dir(&next).unwrap_or_else(|error| panic!("{}: {error}", next.display()));
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "json") {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(name, path);
            }
        }
    }
    found
}

#[test]
fn examples_are_imported_or_refused_by_name() {
    let named = std::env::var_os("AMPSCHED_RTAPP_EXAMPLES");
    let folder = PathBuf::from(named.clone().unwrap_or_else(|| DEBIAN.into()));
    if named.is_none() && !folder.is_dir() {
        // Not eprintln, which nobody sees when the test passes.
        let note = format!(
            "\nrt-app's examples were not tested: {DEBIAN} is absent; install Debian's package rt-app or set AMPSCHED_RTAPP_EXAMPLES\n"
        );
        std::io::stderr().write_all(note.as_bytes()).unwrap();
        return;
    }
    let known: BTreeMap<&str, Result<u32, &str>> = OUTCOMES.into_iter().collect();
    let examples = examples(&folder);
    assert!(!examples.is_empty(), "no example in {}", folder.display());
    for (name, path) in &examples {
        let text = std::fs::read_to_string(path).unwrap();
        let outcome = import_rtapp(name, &text);
        match &outcome {
            Ok(import) => {
                println!("{name}: imported with {} threads", import.program.initial_threads());
                assert_eq!(import.program.flaw(), None, "{name}");
            }
            Err(error) => {
                println!("{error}");
                assert!(
                    error.line.is_some() && !error.message.starts_with("not valid JSON"),
                    "{error}"
                );
            }
        }
        match (known.get(name.as_str()), outcome) {
            (None, _) => println!("{name} is not known"),
            (Some(Ok(threads)), Ok(import)) => {
                assert_eq!(import.program.initial_threads(), *threads, "{name}");
            }
            (Some(Err(reason)), Err(error)) => {
                assert!(error.message.contains(reason), "{name}: {error}");
            }
            (Some(expected), Ok(_)) => panic!("{name}: imported, {expected:?} expected"),
            (Some(Ok(_)), Err(error)) => panic!("{error}"),
        }
    }
}

#[test]
fn reference_page_states_the_outcomes() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/rt-app.md");
    let page = std::fs::read_to_string(page).unwrap();
    for (name, outcome) in OUTCOMES {
        let outcome = match outcome {
            Ok(1) => "imported, 1 thread".to_owned(),
            Ok(threads) => format!("imported, {threads} threads"),
            Err(reason) => format!("refused: {reason}"),
        };
        let row = format!("| `{name}` | {outcome} |");
        assert!(page.contains(&row), "{row} is missing");
    }
}
