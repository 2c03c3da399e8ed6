//! Every file that the package ships is complete and works.

use std::path::{Path, PathBuf};

use ampsched_model::{Catalog, CoreState, FileKind, ThermalNetwork};

/// The package's data folder.
fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/ampsched/data")
}

/// Files of a kind: stem, path and text.
fn files(folder: &str) -> Vec<(String, String, String)> {
    let Ok(entries) = std::fs::read_dir(data().join(folder)) else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let mut files: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a readable file");
            (
                path.file_stem().unwrap().to_str().unwrap().to_owned(),
                path.display().to_string(),
                text,
            )
        })
        .collect();
    files.sort();
    files
}

/// The catalogue of all shipped files.
fn catalog() -> Catalog {
    let mut catalog = Catalog::new();
    for (kind, folder) in FileKind::FOLDERS {
        for (name, path, text) in files(folder) {
            assert_eq!(FileKind::detect(&path, &text), Ok(kind), "{path}");
            catalog.add(kind, &name, &path, &text).unwrap_or_else(|error| panic!("{error}"));
        }
    }
    catalog
}

#[test]
fn every_shipped_name_resolves_and_is_described() {
    let catalog = catalog();
    assert_eq!(catalog.missing_files(), []);
    for (kind, _) in FileKind::FOLDERS {
        for (name, description) in catalog.list(kind) {
            assert!(!description.is_empty(), "{} {name} has no description", kind.word());
            let text = catalog.describe(kind, &name).unwrap_or_else(|error| panic!("{error}"));
            assert!(text.contains(&name), "{text}");
        }
    }
    let hybrid = catalog.describe(FileKind::Machine, "i9-13900k").unwrap();
    assert!(hybrid.contains("points: 51 from 800 MHz 0.65 V to 5800 MHz 1.3 V\n"), "{hybrid}");
    assert!(hybrid.contains("power limit: 253000 mW on average"), "{hybrid}");
}

#[test]
fn machines_are_named_like_their_files_and_core_types_state_a_source() {
    let catalog = catalog();
    let machines = catalog.list(FileKind::Machine);
    assert!(machines.len() >= 15, "{machines:?}");
    for (name, _) in machines {
        assert_eq!(catalog.machine(&name).unwrap().name, name);
    }
    for (name, _) in catalog.list(FileKind::CoreType) {
        assert!(!catalog.core_type(&name).unwrap().source.is_empty(), "{name}");
    }
}

#[test]
fn colab_machines_have_the_published_cores() {
    let catalog = catalog();
    for (name, big, little) in
        [("2B2S", 2, 2), ("2B4S", 2, 4), ("4B2S", 4, 2), ("4B4S", 4, 4), ("8B0S", 8, 0)]
    {
        let machine = catalog.machine(name).unwrap();
        let cores = |mhz| {
            machine
                .clusters
                .iter()
                .filter(|cluster| cluster.max_mhz() == mhz)
                .map(|cluster| cluster.cores.len())
                .sum::<usize>()
        };
        assert_eq!((cores(2000), cores(1200)), (big, little), "{name}");
        let large = &machine.clusters[0].params;
        assert_eq!((large.l1i_kib, large.l1d_kib, large.l2_kib), (48.0, 32.0, 2048.0));
    }
    let reference = catalog.machine("4B4S").unwrap().all_big();
    let shipped = catalog.machine("8B0S").unwrap();
    assert_eq!((reference.cores(), &reference.clusters), (8, &shipped.clusters));
}

#[test]
fn no_profile_is_defined_twice() {
    let defined: usize = files("profiles")
        .iter()
        .map(|(_, path, text)| ampsched_model::parse_profiles(path, text).unwrap().profiles.len())
        .sum();
    assert_eq!(defined, catalog().profiles().profiles.len());
}

#[test]
fn programs_state_a_source_and_are_named_like_their_files() {
    for (name, path, text) in files("programs") {
        let program =
            ampsched_model::parse_program(&path, &text).unwrap_or_else(|error| panic!("{error}"));
        assert!(!program.source().is_empty(), "{path}");
        assert_eq!(program.name(), name);
    }
}

/// Idle power of the Odroid XU3's clusters as measured, against the shipped machine at the temperatures
/// of an idle board.
#[test]
fn the_exynos_idles_as_measured() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../lab/calibration/published/exynos5422_power.csv");
    let text = std::fs::read_to_string(path).unwrap();
    let machine = catalog().machine("exynos5422").unwrap();
    let mut compared = 0;
    for line in text.lines() {
        let cells: Vec<&str> = line.split(',').collect();
        let (Ok(mhz), "idle") = (cells[1].parse::<u32>(), cells[4]) else { continue };
        let cluster = machine.clusters.iter().find(|cluster| cluster.name == cells[0]).unwrap();
        let Some(opp) = cluster.opps.iter().position(|opp| opp.mhz == mhz) else { continue };
        let measured_mw = 1000.0 * cells[5].parse::<f64>().unwrap();
        // 22 degrees around the board; the network gives at most 4 K more, from 8 K/W.
        let celsius = 22.0 + 8.0 * measured_mw / 1000.0;
        let core_mw = cluster.power.core_power_mw(opp, CoreState::Idle(0), celsius);
        let modelled_mw = 4.0 * core_mw + cluster.power.uncore_power_mw(opp, Some(0), celsius);
        let error = modelled_mw / measured_mw - 1.0;
        assert!(error.abs() < 0.05, "{} {mhz} MHz: {modelled_mw} mW of {measured_mw}", cells[0]);
        compared += 1;
    }
    assert_eq!(compared, 19 + 13);
}

#[test]
fn machines_with_power_are_complete_and_others_say_that_they_have_none() {
    let catalog = catalog();
    let mut known = Vec::new();
    for (name, _) in catalog.list(FileKind::Machine) {
        let machine = catalog.machine(&name).unwrap();
        let text = catalog.describe(FileKind::Machine, &name).unwrap();
        assert_eq!(text.contains("power: not known"), machine.without_power().is_some(), "{text}");
        if machine.without_power().is_none() {
            known.push(name.clone());
        }
        if let Some(thermal) = catalog.thermal(&name).unwrap() {
            let network = ThermalNetwork::new(thermal, &machine).unwrap();
            let hottest_s = network.time_constants_s()[0];
            assert!((0.1..1000.0).contains(&hottest_s), "{name}: {hottest_s} s");
            for turned in [machine.ordered(true), machine.all_big(), machine.all_little()] {
                ThermalNetwork::new(thermal, &turned).unwrap();
            }
        }
    }
    let expected = [
        "core-ultra-7-155h",
        "exynos5422",
        "exynos5422-2B2S",
        "exynos5422-3B3S",
        "hikey960",
        "i7-1360p",
        "i9-13900k",
        "juno",
        "pixel",
        "qcs6490",
        "rk3576",
        "rk3588",
        "snapdragon-765g",
        "snapdragon-7c",
        "snapdragon-845",
        "snapdragon-855",
        "snapdragon-865",
        "snapdragon-888",
        "snapdragon-8cx-gen3",
        "tensor-g1",
        "tensor-g2",
        "tensor-g4",
        "tensor-g5",
    ];
    assert_eq!(known, expected);
}
