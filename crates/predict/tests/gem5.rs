//! gem5 files of 15 years, and what is in them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ampsched_predict::parse_gem5;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gem5")
}

fn files() -> Vec<(String, String)> {
    let mut files: Vec<_> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// `expected.csv` was read from the complete files by another program; its operations of some
/// out-of-order cores and its stores of some others are defined differently and left out.
#[test]
fn counters_are_those_that_another_reader_found() {
    let texts: HashMap<String, String> = files().into_iter().collect();
    let mut checked = 0;
    for line in fs::read_to_string(folder().join("expected.csv")).unwrap().lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [file, window, counter, value] = fields[..] else { panic!("{line}") };
        let (window, value): (u32, f64) = (window.parse().unwrap(), value.parse().unwrap());
        let readings = parse_gem5(file, &texts[file]).unwrap();
        let found: Vec<f64> = readings
            .iter()
            .filter(|reading| reading.window == window && reading.counter == counter)
            .filter_map(|reading| reading.value)
            .collect();
        // A statistic that the reader took to be 0 may be missing.
        assert!(found == [value] || (found.is_empty() && value == 0.0), "{line}: {found:?}");
        checked += 1;
    }
    assert!(checked > 900, "{checked}");
}

#[test]
fn every_file_is_read_with_all_its_dumps() {
    let files = files();
    assert_eq!(files.len(), 20);
    for (name, text) in &files {
        let readings = parse_gem5(name, text).unwrap();
        let dumps = text.matches("Begin Simulation").count();
        assert_eq!(readings.iter().map(|reading| reading.window).max(), Some(dumps as u32 - 1));
        assert!(readings.iter().all(|reading| reading.duration_s.is_some()), "{name}");
    }
}

#[test]
fn cores_have_their_own_counters_and_share_a_cache() {
    let files: HashMap<String, String> = files().into_iter().collect();
    let readings = parse_gem5("boot", &files["linuxboot-dualcore--MinorCPU.txt"]).unwrap();
    let value = |core: &str, counter: &str| {
        let found = readings.iter().find(|r| r.core == core && r.counter == counter);
        found.and_then(|reading| reading.value)
    };
    assert_eq!(value("system.cpu0", "cycles"), Some(177_429_053.0));
    assert_eq!(value("system.cpu1", "cycles"), Some(111_993_643.0));
    assert_eq!(value("system.cpu1", "instructions"), Some(45_058_323.0));
    assert!(value("system.cpu1", "l1d_misses").is_some_and(|misses| misses > 0.0));
    assert_eq!(value("", "l2_misses"), Some(197_906.0));
    assert_eq!(value("system.cpu0", "l2_misses"), Some(257_774.0));
}

fn dump(lines: &str) -> String {
    format!(
        "\n---------- Begin Simulation Statistics ----------\n{lines}\n---------- End Simulation Statistics   ----------\n"
    )
}

#[test]
fn times_follow_the_ticks() {
    let text = dump("simTicks 500\nfinalTick 2000\nsimFreq 1000\nsystem.cpu.numCycles 7");
    let reading = &parse_gem5("f", &text).unwrap()[0];
    assert_eq!(
        (reading.end_s, reading.duration_s, reading.value),
        (Some(2.0), Some(0.5), Some(7.0))
    );
    assert_eq!(
        (reading.native.as_ref(), reading.unit.as_ref()),
        ("system.cpu.numCycles", "cycles")
    );
}

#[test]
fn private_caches_beside_the_processor_go_to_the_core_of_their_number() {
    let text = dump(
        "p.cores0.core.numCycles 1\np.cores1.core.numCycles 2\nh.l1dcaches0.overallMisses::total 3\nh.l1dcaches1.overallMisses::total 4\nh.l2.overallMisses::total 5",
    );
    let readings = parse_gem5("f", &text).unwrap();
    let rows: Vec<_> = readings.iter().map(|r| (r.core.as_ref(), r.value.unwrap())).collect();
    let (first, second) = ("p.cores0.core", "p.cores1.core");
    assert_eq!(rows, [(first, 1.0), (first, 3.0), (second, 2.0), (second, 4.0), ("", 5.0)]);
}

#[test]
fn every_error_names_the_place() {
    let begin = "---------- Begin Simulation Statistics ----------\n";
    for (text, expected) in [
        (
            String::new(),
            "f: has no statistics (gem5 writes them at its end or when the program asks for a dump)",
        ),
        (
            format!("{begin}system.cpu.numCycles 5\n"),
            "f:1: the dump that begins here has no end (the file is truncated, or gem5 is still running)",
        ),
        (
            format!("{begin}{begin}"),
            "f:2: a dump begins before the last one has ended (the file was cut or written by two runs)",
        ),
        (
            "---------- End Simulation Statistics ----------\n".into(),
            "f:1: a dump ends that has not begun",
        ),
        ("---------- Middle\n".into(), "f:1: a ruler that neither begins nor ends a dump"),
        (
            "hello\n".into(),
            "f:1: text outside of a dump (gem5's statistics stand below a line \"---------- Begin Simulation Statistics ----------\")",
        ),
        (dump("system.cpu.numCycles"), "f:3: \"system.cpu.numCycles\" has no value"),
        (dump("system.cpu.numCycles x12"), "f:3: system.cpu.numCycles: \"x12\" is not a number"),
        (
            dump("system.l2.overall_misses 3"),
            "f:2: the dump that begins here has no core: no statistic ends in .numCycles",
        ),
    ] {
        assert_eq!(parse_gem5("f", &text).unwrap_err().to_string(), expected);
    }
}

#[test]
fn low_a_path_of_many_components_is_read_in_linear_time() {
    let path = "a.".repeat(1_000_000);
    let text = format!(
        "---------- Begin Simulation Statistics ----------\n{path}numCycles 5\n\
         ---------- End Simulation Statistics   ----------\n"
    );
    let start = Instant::now();
    let readings = parse_gem5("stats.txt", &text).unwrap();
    assert_eq!(readings.iter().filter(|reading| reading.counter == "cycles").count(), 1);
    assert!(start.elapsed() < Duration::from_secs(100), "took {:?}", start.elapsed());
}

#[test]
fn low_many_cores_are_read_in_linear_time() {
    let cores: String = (0..20_000)
        .map(|n| {
            format!("system.cpu{n}.numCycles {n}\nsystem.l1dcaches{n}.overall_misses::total 1\n")
        })
        .collect();
    let text = format!(
        "---------- Begin Simulation Statistics ----------\n{cores}\
         ---------- End Simulation Statistics   ----------\n"
    );
    let start = Instant::now();
    let readings = parse_gem5("stats.txt", &text).unwrap();
    let last = readings.iter().find(|reading| reading.core == "system.cpu19999").unwrap();
    assert_eq!(last.value, Some(19_999.0));
    assert!(start.elapsed() < Duration::from_secs(100), "took {:?}", start.elapsed());
}
