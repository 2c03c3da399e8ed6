//! Every example of rt-app that is imported runs, under policies with and without requests.
//!
//! The examples are GPL and so not part of this project. The folder is the one that
//! `AMPSCHED_RTAPP_EXAMPLES` names, or where Debian's package puts them; without either the test says so.

mod common;

use std::io::Write;
use std::path::{Path, PathBuf};

use ampsched_model::{App, Workload, import_rtapp};
use ampsched_policy::build_policy;
use ampsched_sim::{Options, simulate};
use common::{ns, shipped_catalog};

const DEBIAN: &str = "/usr/share/doc/rt-app/examples";

/// JSON files below a folder.
fn examples(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            examples(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "json") {
            found.push(path);
        }
    }
}

#[test]
fn examples_run() {
    let named = std::env::var_os("AMPSCHED_RTAPP_EXAMPLES");
    let folder = PathBuf::from(named.clone().unwrap_or_else(|| DEBIAN.into()));
    if named.is_none() && !folder.is_dir() {
        let note = format!("\nrt-app's examples were not run: {DEBIAN} is absent\n");
        std::io::stderr().write_all(note.as_bytes()).unwrap();
        return;
    }
    let mut paths = Vec::new();
    examples(&folder, &mut paths);
    paths.sort();
    let machine = shipped_catalog().machine("2B2S").unwrap();
    let mut count = 0;
    for path in &paths {
        let name = path.strip_prefix(&folder).unwrap().display().to_string();
        let Ok(import) = import_rtapp(&name, &std::fs::read_to_string(path).unwrap()) else {
            continue;
        };
        count += 1;
        let program = import.program.into();
        let app = App { name: "a".into(), program, start_ns: 0, nice: 0 };
        let workload = Workload { name: name.clone(), description: String::new(), apps: vec![app] };
        for policy in ["cfs", "eevdf", "colab"] {
            let options =
                Options { check: true, until_ns: Some(ns(3_000.0)), ..Options::default() };
            let outcome =
                simulate(&machine, &workload, policy, build_policy(policy, &[]).unwrap(), &options)
                    .unwrap_or_else(|error| panic!("{name}, {policy}: {error}"));
            let worked = outcome.threads.iter().filter(|thread| thread.instructions > 0).count();
            println!("{name}, {policy}: {worked} threads worked, {:?}", outcome.caveat);
            assert!(worked > 0, "{name}");
        }
    }
    println!("{count} examples ran");
}
