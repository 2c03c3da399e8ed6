//! Whether all that is read is attacked: every source file that takes a text apart is listed here, with the formats
//! by which it is reached or the reason why none reaches it. Whoever adds a reader adds a format.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::FORMATS;

/// What readers call.
const SIGNS: [&str; 17] = [
    "serde_json::from_",
    "toml::from_",
    "read_to_string(",
    "fs::read(",
    ".parse()",
    ".parse::<",
    "from_str_radix(",
    "FromStr for",
    "root.bytes(",
    "root.text(",
    "root.number(",
    "root.cpus(",
    "text_if_there(",
    "Document::parse(",
    "json::parse(",
    "(file: &str, text: &str",
    "pub fn set_rule(",
];
/// What readers in Python call.
const PYTHON_SIGNS: [&str; 2] = ["json.load", "tomllib.load"];

/// Files of the crates and the formats by which they are reached.
const REACHED: &[(&str, &str)] = &[
    ("computer/src/capabilities.rs", "cgroups sysfs"),
    ("computer/src/cgroups.rs", "cgroups"),
    ("computer/src/classes.rs", "sysfs"),
    ("computer/src/cpu_list.rs", "cores cpus proc sysfs"),
    ("computer/src/domains.rs", "sysfs"),
    ("computer/src/energy.rs", "sysfs"),
    ("computer/src/kinds.rs", "sysfs"),
    ("computer/src/pmus.rs", "pmu sysfs"),
    ("computer/src/procfs.rs", "cgroups proc"),
    ("computer/src/root.rs", "cgroups pmu proc sensors sysfs"),
    ("live/driver/src/facts.rs", "facts"),
    ("live/factors/src/blame.rs", "futex-trace"),
    ("live/factors/src/counters/pmu.rs", "pmu"),
    ("live/factors/src/power.rs", "sensors"),
    ("live/session/src/claims.rs", "registration"),
    ("live/session/src/journal.rs", "journal"),
    ("live/session/src/policy_text.rs", "policy"),
    ("live/session/src/run_dir.rs", "status"),
    ("live/session/src/scope.rs", "cgroups proc"),
    ("model/src/catalog.rs", "core-type machine profile program workload"),
    ("model/src/expr.rs", "program"),
    ("model/src/machine_part.rs", "machine-part"),
    ("model/src/noise.rs", "noise"),
    ("model/src/reader.rs", "core-type machine noise profile program workload"),
    ("model/src/rtapp/global.rs", "rt-app"),
    ("model/src/rtapp/json.rs", "rt-app"),
    ("model/src/rtapp/mod.rs", "rt-app"),
    ("model/src/rtapp/read.rs", "rt-app"),
    ("model/src/toml_core_type.rs", "core-type"),
    ("model/src/toml_machine.rs", "machine"),
    ("model/src/toml_profile.rs", "profile"),
    ("model/src/toml_program.rs", "program"),
    ("model/src/toml_workload.rs", "workload"),
    ("policy/src/params.rs", "policy"),
    ("policy/src/words/value.rs", "rule"),
    ("predict/src/gem5/dump.rs", "gem5"),
    ("predict/src/model.rs", "model"),
    ("predict/src/perf/csv.rs", "perf"),
    ("predict/src/perf/json.rs", "perf"),
    ("recording/src/file.rs", "trace-file"),
    ("recording/src/import/format.rs", "trace-file"),
    ("recording/src/import/cgroups.rs", "trace-cgroups"),
    ("recording/src/import/container.rs", "trace-file trace-text"),
    ("recording/src/import/ftrace_text.rs", "trace-text"),
    ("recording/src/import/lacking.rs", "trace-text"),
    ("recording/src/import/npz.rs", "trace-file"),
    ("recording/src/import/page.rs", "trace-text"),
    ("recording/src/import/pages.rs", "trace-file"),
    ("recording/src/import/perf_script.rs", "trace-text"),
    ("recording/src/import/process_list.rs", "trace-text"),
    ("recording/src/import/text.rs", "trace-text"),
    ("recording/src/import/text_state.rs", "trace-text"),
    ("recording/src/import/text_marks.rs", "trace-text"),
    ("recording/src/import/trace_dat.rs", "trace-file"),
    ("task/src/formats/csv.rs", "graph-csv"),
    ("task/src/formats/dot.rs", "graph-dot"),
    ("task/src/formats/stg.rs", "graph-stg"),
    ("task/src/formats/wfcommons.rs", "graph-wfcommons"),
    ("task/src/recording.rs", "recording"),
    ("task/src/registry.rs", "policy task-policy task-program"),
    ("task/src/workers.rs", "recording workers"),
    ("taskrt/src/cores.rs", "cores"),
];

/// Files that no format reaches, and why.
const NOT_REACHED: &[(&str, &str)] = &[
    ("live/daemon/src/restore.rs", "numbers of threads that are written back as they stand"),
    ("live/driver/src/demands.rs", "the kernel's own version"),
    ("live/scx/src/kernel.rs", "a word of the kernel's that is compared"),
    (
        "live/scx/src/recording.rs",
        "recordings of its own, read where BPF is built, as the attack is not",
    ),
    ("live/scx/src/scx.rs", "numbers of the kernel's, ignored if they are none"),
    ("live/session/src/clocks.rs", "a number of the kernel's, which is refused if it is none"),
    ("live/session/src/identity.rs", "a name or a number that is looked up"),
    (
        "live/session/src/limits.rs",
        "the kernel's own table of limits, ignored where it is no number",
    ),
    ("live/session/src/service.rs", "numbers of the environment, ignored if they are none"),
    ("live/session/src/whole_file.rs", "opens files of the formats facts and model"),
    ("policy/src/governors/testing.rs", "texts of tests"),
    ("py/src/imports.rs", "options that the package itself has written"),
    ("py/src/noise.rs", "hands texts on to the reader of noise files"),
    ("py/src/preload.rs", "what the package itself has written beside the recorder's files"),
    ("py/src/recording.rs", "what is known of a recording, as the package itself has told it"),
    ("recording/src/lift/amounts.rs", "numbers of texts that it has written itself"),
    ("taskrt/src/policy_text.rs", "has no way in but that of a runtime with its threads"),
    (
        "taskrt/src/quota.rs",
        "words and numbers of the kernel's that are written back as they stand",
    ),
    ("trace/src/explain.rs", "a number or the name of a thread, which is compared"),
];

/// Files of the package in Python: libFuzzer sees no coverage there, and the texts are taken apart by libraries.
const PYTHON: &[&str] = &[
    "cli/keeping.py",
    "cli/lifting.py",
    "cli/recorded.py",
    "cli/recording.py",
    "explaining.py",
    "keeping/applied.py",
    "limits.py",
    "live/_runner.py",
    "live/commands.py",
    "live/compare.py",
    "live/mix.py",
    "live/program.py",
    "live/running.py",
    "machine_file/lscpu.py",
    "recording/advice.py",
    "recording/around.py",
    "recording/both.py",
    "recording/check.py",
    "recording/conditions.py",
    "recording/each_kind.py",
    "recording/goals.py",
    "recording/lift.py",
    "recording/mixed.py",
    "recording/model_error.py",
    "recording/observed.py",
    "recording/preload.py",
    "recording/refusal.py",
    "recording/several.py",
    "recording/summary.py",
    "recording/system.py",
    "recording/validation.py",
    "report/saved.py",
    "results.py",
    "training/pmu.py",
    "turns.py",
    "vm/archive.py",
    "vm/exact/record.py",
    "vm/results.py",
];

#[test]
fn every_reader_is_attacked_or_says_why_not() {
    let listed = REACHED.iter().chain(NOT_REACHED).map(|(file, _)| (*file).to_owned());
    let found = with_signs("crates", "rs", &SIGNS);
    assert_same(&found, &listed.collect(), "tests/attack/src/formats/readers.rs");
}

#[test]
fn every_reader_in_python_is_listed() {
    let listed = PYTHON.iter().map(|file| (*file).to_owned()).collect();
    assert_same(&with_signs("python/ampsched", "py", &PYTHON_SIGNS), &listed, "PYTHON");
}

#[test]
fn every_format_reaches_a_reader() {
    let named: BTreeSet<&str> =
        REACHED.iter().flat_map(|(_, formats)| formats.split(' ')).collect();
    let known: BTreeSet<&str> = FORMATS.iter().map(|format| format.name).collect();
    assert_eq!(named, known);
    let count = REACHED.iter().map(|(file, _)| file).collect::<BTreeSet<_>>().len();
    assert_eq!(count, REACHED.len(), "a file is listed once");
}

fn assert_same(found: &BTreeMap<String, String>, listed: &BTreeSet<String>, place: &str) {
    let unlisted: Vec<_> = found.iter().filter(|(file, _)| !listed.contains(*file)).collect();
    assert!(unlisted.is_empty(), "not in {place}: {unlisted:?}");
    let gone: Vec<_> = listed.iter().filter(|file| !found.contains_key(*file)).collect();
    assert!(gone.is_empty(), "{place} lists what reads nothing: {gone:?}");
}

/// The source files below a folder that have a sign outside of their tests, by name, each with the first sign.
fn with_signs(folder: &str, ending: &str, signs: &[&str]) -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut files = Vec::new();
    sources(&folder, ending, &mut files);
    let sign_of = |file: &PathBuf| {
        let text = fs::read_to_string(file).expect("a source file");
        let own = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let code: String =
            own.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let sign = signs.iter().find(|sign| code.contains(*sign))?;
        let name = file.strip_prefix(&folder).expect("it is below it").to_string_lossy();
        Some((name.into_owned(), (*sign).to_owned()))
    };
    files.iter().filter_map(sign_of).collect()
}

fn sources(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    const NOT_SOURCES: [&str; 4] = ["tests", "examples", "benches", "target"];
    for entry in fs::read_dir(folder).expect("a folder of sources").flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() && !NOT_SOURCES.contains(&name.as_str()) {
            sources(&path, ending, found);
        } else if path.extension().is_some_and(|own| own == ending)
            && !["tests.rs", "build.rs"].contains(&name.as_str())
        {
            found.push(path);
        }
    }
}
