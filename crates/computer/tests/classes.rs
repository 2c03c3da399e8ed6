//! Detection of core classes on trees of files that look like the machines'.

use std::fs;

use ampsched_computer::{ByHand, CoreMap, Evidence, Root, detect_cores};
use ampsched_model::{ClusterId, CoreId};
use tempfile::TempDir;

const CPU: &str = "sys/devices/system/cpu";

struct Tree {
    folder: TempDir,
}

impl Tree {
    /// With CPUs 0 to `count` - 1 online.
    fn new(count: usize) -> Self {
        let tree = Self { folder: TempDir::new().unwrap() };
        tree.file(&format!("{CPU}/online"), &format!("0-{}\n", count - 1));
        tree
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn per_cpu(self, file: &str, values: &[u64]) -> Self {
        for (cpu, value) in values.iter().enumerate() {
            self.file(&format!("{CPU}/cpu{cpu}/{file}"), &format!("{value}\n"));
        }
        self
    }

    fn pmu(self, name: &str, cpus: &str) -> Self {
        self.file(&format!("sys/devices/{name}/cpus"), &format!("{cpus}\n"));
        self
    }

    fn cpufreq(self, policy: usize, cpus: &str, khz: &str) -> Self {
        let folder = format!("{CPU}/cpufreq/policy{policy}");
        self.file(&format!("{folder}/affected_cpus"), cpus);
        self.file(&format!("{folder}/scaling_available_frequencies"), khz);
        self
    }

    fn detect(&self, by_hand: &ByHand) -> Result<(CoreMap, Evidence), String> {
        detect_cores(&Root::new(self.folder.path()), by_hand).map_err(|error| error.to_string())
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
    let tree = Tree::new(4).per_cpu("cpu_capacity", &[446, 446, 1024, 1024]);
    let (cores, evidence) = tree.found();
    assert_eq!((cores.describe().as_str(), evidence), ("big 2-3, little 0-1", Evidence::Capacity));
    assert_eq!(cores.topology().core(CoreId(0)).capacity, 446);
    assert!((cores.speed_ratio().unwrap() - 1024.0 / 446.0).abs() < 1e-12);
}

#[test]
fn three_kinds_of_core() {
    let values = [378, 378, 378, 378, 829, 829, 829, 1024];
    let (cores, _) = Tree::new(8).per_cpu("cpu_capacity", &values).found();
    assert_eq!(cores.describe(), "big 7, middle 4-6, little 0-3");
}

#[test]
fn a_hybrid_processor_by_its_pmus() {
    let tree = Tree::new(6).per_cpu("cpu_capacity", &[1024; 6]);
    let tree = tree.pmu("cpu_core", "0-3").pmu("cpu_atom", "4-5");
    let (cores, evidence) = tree.found();
    let expected = ("big 0-3, little 4-5", Evidence::HybridPmus);
    assert_eq!((cores.describe().as_str(), evidence), expected);
    assert_eq!(cores.speed_ratio(), None, "a capacity of 1024 everywhere says nothing of speeds");
}

#[test]
fn favoured_cores_are_no_class_of_their_own() {
    let khz = [5_000_000, 5_100_000, 5_200_000, 3_900_000];
    let (cores, evidence) = Tree::new(4).per_cpu("cpufreq/cpuinfo_max_freq", &khz).found();
    assert_eq!(
        (cores.describe().as_str(), evidence),
        ("big 0-2, little 3", Evidence::MaxFrequency)
    );
    let khz = [5_000_000, 5_100_000];
    let (cores, evidence) = Tree::new(2).per_cpu("cpufreq/cpuinfo_max_freq", &khz).found();
    assert_eq!((cores.class_count(), evidence), (1, Evidence::AllAlike));
}

#[test]
fn what_cannot_be_told_apart_is_said() {
    let khz = [3_000_000, 3_200_000, 3_400_000];
    let error = Tree::new(3).per_cpu("cpufreq/cpuinfo_max_freq", &khz).refused();
    assert!(error.contains("{3000000, 3200000, 3400000}"), "{error}");
    assert!(error.ends_with("(state them by hand, such as --big 0-1 --little 2-3)"), "{error}");
}

#[test]
fn sources_that_contradict_each_other_are_said() {
    let tree = Tree::new(4).per_cpu("cpu_capacity", &[400, 400, 400, 1024]);
    let error = tree.pmu("cpu_core", "0-1").pmu("cpu_atom", "2-3").refused();
    let expected = "cpu_capacity says 0-2 < 3 (slowest first), but the CPUs of the PMUs cpu_core and \
                    cpu_atom says 2-3 < 0-1 (slowest first)";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_cpu_without_a_pmu_of_cores_is_said() {
    let error = Tree::new(3).pmu("cpu_core", "0").pmu("cpu_atom", "1").refused();
    assert!(error.contains("CPU 2 belongs to no PMU of cores"), "{error}");
}

#[test]
fn without_any_source_all_are_alike() {
    let (cores, evidence) = Tree::new(2).found();
    assert_eq!((cores.describe().as_str(), evidence), ("all 0-1", Evidence::AllAlike));
}

#[test]
fn files_that_hold_nonsense_are_named() {
    let tree = Tree::new(2);
    tree.file(&format!("{CPU}/cpu0/cpu_capacity"), "fast");
    let error = tree.refused();
    assert!(error.ends_with("cpu0/cpu_capacity: \"fast\" is not a whole number"), "{error}");
    let error = detect_cores(&Root::new("/nonexistent"), &ByHand::default()).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/sys/devices/system/cpu/online: there is no"));
}

#[test]
fn classes_by_hand_need_not_be_in_order_or_complete() {
    let (cores, evidence) = Tree::new(6).detect(&by_hand(&["1,3", "0,2"], &[2.5])).unwrap();
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
            "--ratio: 2 ratios for 2 classes of cores (one for each class but the fastest: fastest / next, ..., fastest / slowest)",
        ),
    ] {
        let error = Tree::new(4).detect(&by_hand(classes, ratios)).unwrap_err();
        assert_eq!(error, expected);
    }
}

#[test]
fn clocks_make_clusters() {
    let tree = Tree::new(4).per_cpu("cpu_capacity", &[446, 446, 1024, 1024]);
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
    let mut tree = Tree::new(4).per_cpu("cpu_capacity", &[446, 446, 1024, 1024]);
    for cpu in 0..4 {
        tree = tree.cpufreq(cpu, &cpu.to_string(), "1000000");
    }
    let (cores, _) = tree.found();
    assert_eq!(cores.topology().clusters().len(), 2);
    assert_eq!(cores.domain(ClusterId(0)).cpufreq, ["policy0", "policy1"]);
}
