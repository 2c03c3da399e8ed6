//! How classes of cores are told apart, and what is said when they cannot be.

use ampsched_computer::{ByHand, CoreMap, Evidence, Root, detect_cores};
use ampsched_model::{ClusterId, CoreId};

use crate::tree::Tree;

const BY_HAND: &str = " (state them by hand, such as --big 0-1 --little 2-3)";

impl Tree {
    fn detect(&self, by_hand: &ByHand) -> Result<(CoreMap, Evidence), String> {
        detect_cores(&self.root(), by_hand).map_err(|error| error.to_string())
    }

    fn found(&self) -> (CoreMap, Evidence) {
        self.detect(&ByHand::default()).unwrap()
    }

    fn refused(&self) -> String {
        self.detect(&ByHand::default()).unwrap_err()
    }
}

fn by_hand(classes: &[&str], ratios: &[f64]) -> ByHand {
    ByHand {
        classes: classes.iter().map(|&list| list.to_owned()).collect(),
        ratios: ratios.to_vec(),
    }
}

#[test]
fn a_big_little_board_by_capacity() {
    let tree = Tree::new("0-3").per_cpu("cpu_capacity", &[446, 446, 1024, 1024]);
    let (cores, evidence) = tree.found();
    assert_eq!((cores.describe().as_str(), evidence), ("big 2-3, little 0-1", Evidence::Capacity));
    assert_eq!(cores.topology().core(CoreId(0)).capacity, 446);
    assert!((cores.speed_ratio().unwrap() - 1024.0 / 446.0).abs() < 1e-12);
}

#[test]
fn favoured_cores_are_no_class_of_their_own() {
    let khz = [5_000_000, 5_100_000, 5_200_000, 3_900_000];
    let (cores, evidence) = Tree::new("0-3").per_cpu("cpufreq/cpuinfo_max_freq", &khz).found();
    assert_eq!(
        (cores.describe().as_str(), evidence),
        ("big 0-2, little 3", Evidence::MaxFrequency)
    );
    let khz = [5_000_000, 5_100_000];
    let (cores, evidence) = Tree::new("0-1").per_cpu("cpufreq/cpuinfo_max_freq", &khz).found();
    assert_eq!((cores.class_count(), evidence), (1, Evidence::AllAlike));
}

#[test]
fn what_cannot_be_told_apart_is_said() {
    let khz = [3_000_000, 3_200_000, 3_400_000];
    let error = Tree::new("0-2").per_cpu("cpufreq/cpuinfo_max_freq", &khz).refused();
    assert!(error.contains("{3000000, 3200000, 3400000}"), "{error}");
    assert!(error.ends_with(BY_HAND), "{error}");
}

#[test]
fn sources_that_contradict_each_other_are_said() {
    let tree = Tree::new("0-3").per_cpu("cpu_capacity", &[400, 400, 400, 1024]);
    let error = tree.pmu("cpu_core", 4, "0-1").pmu("cpu_atom", 10, "2-3").refused();
    let expected = "cpu_capacity says 0-2 < 3 (slowest first), but the CPUs of the PMUs cpu_core and \
                    cpu_atom says 2-3 < 0-1 (slowest first)";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_cpu_without_a_pmu_of_cores_is_said() {
    let error = Tree::new("0-2").pmu("cpu_core", 4, "0").pmu("cpu_atom", 10, "1").refused();
    assert!(error.contains("CPU 2 belongs to no PMU of cores"), "{error}");
    let error = Tree::new("0-1").pmu("cpu_core", 4, "0-1").pmu("cpu_atom", 10, "1").refused();
    assert!(error.contains("CPU 1 belongs to two PMUs of cores"), "{error}");
}

#[test]
fn there_are_not_more_classes_than_policies_know() {
    let error = Tree::new("0-4").per_cpu("cpu_capacity", &[100, 200, 400, 700, 1024]).refused();
    let expected = "classes of cores: cpu_capacity tells 5 classes apart, at most 4 are possible";
    assert_eq!(error, format!("{expected}{BY_HAND}"));
}

#[test]
fn files_that_hold_nonsense_are_named() {
    for (file, text, expected) in [
        ("devices/system/cpu/cpu0/cpu_capacity", "fast", "\"fast\" is not a whole number"),
        ("bus/event_source/devices/cpu/type", "99999999999", "99999999999 is too big"),
        (
            "bus/event_source/devices/cpu/cpus",
            "0-x",
            "\"0-x\" of \"0-x\" is not a CPU or a range of CPUs",
        ),
    ] {
        let tree = Tree::new("0-1").file("sys/bus/event_source/devices/cpu/type", "4");
        let error = tree.file(&format!("sys/{file}"), text).refused();
        assert!(error.ends_with(&format!("{file}: {expected}{BY_HAND}")), "{error}");
    }
    let error = Tree::new("").refused();
    assert!(error.ends_with("cpu/online: it names no CPU"), "{error}");
    let error = detect_cores(&Root::new("/nonexistent"), &ByHand::default()).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/sys/devices/system/cpu/online: there is no"));
}

#[test]
fn classes_by_hand_need_not_be_in_order_or_complete() {
    let (cores, evidence) = Tree::new("0-5").detect(&by_hand(&["1,3", "0,2"], &[2.5])).unwrap();
    assert_eq!((cores.describe().as_str(), evidence), ("big 0,2, little 1,3", Evidence::Hand));
    assert_eq!((0..4).map(|core| cores.cpu(CoreId(core))).collect::<Vec<_>>(), [0, 2, 1, 3]);
    assert_eq!(cores.core(3), Some(CoreId(3)));
    assert_eq!(cores.core(4), None);
    assert_eq!(cores.topology().core(CoreId(2)).capacity, 410);
}

#[test]
fn wrong_classes_by_hand_are_refused() {
    for (classes, ratios, expected) in [
        (&["2", "0,2"][..], &[][..], "classes of cores: CPU 2 is in two classes"),
        (&["1", "0,9"], &[], "classes of cores: CPU 9 of \"0,9\" is not online (online: 0-3)"),
        (
            &["", "0"],
            &[],
            "classes of cores: a class has no CPU (state both --big and --little, such as --big 0-1 --little 2-3)",
        ),
        (&["1", "0"], &[0.5], "--ratio: 0.5 is not above 1 and at most 63"),
        (&["2", "1", "0"], &[1.5, 1.2], "--ratio: 1.2 is not above 1.5 and at most 63"),
        (
            &["1", "0"],
            &[1.5, 2.0],
            "--ratio: 2 ratios for 2 classes of cores (one for each class but the fastest: fastest / next, ..., \
             fastest / slowest)",
        ),
    ] {
        let error = Tree::new("0-3").detect(&by_hand(classes, ratios)).unwrap_err();
        assert_eq!(error, expected);
    }
}

#[test]
fn clocks_make_clusters() {
    let tree = Tree::new("0-3").per_cpu("cpu_capacity", &[446, 446, 1024, 1024]);
    let tree = tree.cpufreq(0, "0 1", "1400000 200000 800000").cpufreq(2, "2 3", "2000000 1000000");
    let (cores, _) = tree.found();
    let clusters = cores.topology().clusters();
    assert_eq!(clusters[0].freqs_mhz, [200, 800, 1400]);
    assert_eq!(clusters[1].freqs_mhz, [1000, 2000]);
    assert_eq!(cores.domain(ClusterId(1)).cpufreq, ["policy2"]);
    let capacities: Vec<f64> =
        clusters[1].energy_model.iter().map(|point| point.capacity).collect();
    assert_eq!(capacities, [512.0, 1024.0]);
}

#[test]
fn a_clock_per_cpu_makes_a_cluster_per_class() {
    let tree = Tree::new("0-3").per_cpu("cpu_capacity", &[446, 446, 1024, 1024]);
    let tree = (0..4).fold(tree, |tree, cpu| tree.cpufreq(cpu, &cpu.to_string(), "1000000"));
    let (cores, _) = tree.found();
    assert_eq!(cores.topology().clusters().len(), 2);
    assert_eq!(cores.domain(ClusterId(0)).cpufreq, ["policy0", "policy1"]);
}

#[test]
fn low_a_clock_faster_than_any_processor_is_none() {
    let folder = "sys/devices/system/cpu/cpufreq/policy0";
    // Every step of it was listed once.
    for khz in ["1000000000000", "18446744073709551615"] {
        let tree = Tree::new("0-1")
            .file(&format!("{folder}/affected_cpus"), "0-1")
            .file(&format!("{folder}/cpuinfo_min_freq"), "400000")
            .file(&format!("{folder}/cpuinfo_max_freq"), khz);
        let (cores, _) = tree.found();
        assert!(cores.domains()[0].freqs_mhz.is_empty(), "{khz}");
    }
    let tree = Tree::new("0-1").cpufreq(0, "0-1", "4295967296 800000 100001000");
    assert_eq!(tree.found().0.domains()[0].freqs_mhz, [800]);
}
