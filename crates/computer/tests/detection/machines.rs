//! Classes and kinds of cores of several machines, by the files that Linux shows there.

use std::collections::BTreeSet;

use ampsched_computer::{
    ByHand, CpuClasses, Evidence, core_kinds, detect_cores, format_cpus, online_cpus,
};

use crate::tree::Tree;

const CAPACITY: &str = "cpu_capacity";
const MAX_KHZ: &str = "cpufreq/cpuinfo_max_freq";
const MIDR: &str = "regs/identification/midr_el1";

const A53: &str = "0x00000000410fd034";
const A55: &str = "0x00000000412fd050";
const A57: &str = "0x00000000411fd070";
const A76: &str = "0x00000000414fd0b1";
const X1: &str = "0x00000000411fd440";
/// Not one of Arm's own.
const OTHER: &str = "0x00000000510fd072";

/// The same value so many times, then the next.
fn runs<T: Copy>(runs: &[(usize, T)]) -> Vec<T> {
    runs.iter().flat_map(|&(count, value)| vec![value; count]).collect()
}

/// Two prime, two middle and four small cores; the GS101 of a Pixel 6.
fn pixel() -> Tree {
    Tree::new("0-7")
        .per_cpu(CAPACITY, &runs(&[(4, 160), (2, 498), (2, 1024)]))
        .per_cpu(MAX_KHZ, &runs(&[(4, 1_803_000), (2, 2_253_000), (2, 2_802_000)]))
        .per_cpu(MIDR, &runs(&[(4, A55), (2, A76), (2, X1)]))
        .pmu("armv8_cortex_a55", 8, "0-3")
        .pmu("armv8_cortex_a76", 9, "4-5")
        .pmu("armv8_cortex_x1", 10, "6-7")
}

/// Four fast cores of two threads, two of them favoured, and four small ones.
fn hybrid() -> Tree {
    Tree::new("0-11")
        .per_cpu(MAX_KHZ, &runs(&[(4, 5_200_000), (4, 5_000_000), (4, 3_900_000)]))
        .pmu("cpu_core", 4, "0-7")
        .pmu("cpu_atom", 10, "8-11")
        .pmu("power", 9, "0")
}

/// An older board, whose device tree states no capacities.
fn board() -> Tree {
    Tree::new("0-3")
        .per_cpu(MAX_KHZ, &runs(&[(2, 2_000_000), (2, 1_200_000)]))
        .per_cpu(MIDR, &runs(&[(2, A57), (2, A53)]))
        .pmu("armv8_pmuv3_0", 8, "0-3")
}

fn server() -> Tree {
    let tree = Tree::new("0-31").per_cpu(MAX_KHZ, &[3_800_000; 32]);
    tree.file("sys/bus/event_source/devices/cpu/type", "4")
}

/// The classes in words, and the evidence.
fn classes(tree: &Tree) -> (String, Evidence) {
    let (cores, evidence) = detect_cores(&tree.root(), &ByHand::default()).unwrap();
    (cores.describe(), evidence)
}

/// The kinds of the CPUs in words: name, CPUs, MHz, PMU.
fn kinds(tree: &Tree, cpus: &BTreeSet<usize>) -> Vec<String> {
    let kinds = core_kinds(&tree.root(), cpus).unwrap();
    let or_none = |number: Option<u32>| number.map_or("?".to_owned(), |n| n.to_string());
    let line = |kind: &ampsched_computer::CoreKind| {
        assert!(kind.name.starts_with(&kind.core_type));
        assert_eq!(kind.is_known(), kind.core_type != "generic");
        let cpus = format_cpus(kind.cpus.iter().copied());
        format!("{} {cpus} {} {}", kind.name, or_none(kind.mhz), or_none(kind.pmu))
    };
    kinds.iter().map(line).collect()
}

fn all_kinds(tree: &Tree) -> Vec<String> {
    kinds(tree, &online_cpus(&tree.root()).unwrap())
}

fn among(tree: &Tree, cpus: &[usize]) -> Vec<(String, String, Option<f64>)> {
    let root = tree.root();
    let all = CpuClasses::find(&root, &online_cpus(&root).unwrap()).unwrap();
    let own = all.among(&cpus.iter().copied().collect());
    assert_eq!(own.evidence(), all.evidence());
    let row = |class: &ampsched_computer::CpuClass| {
        (class.name.clone(), format_cpus(class.cpus.iter().copied()), class.relative_speed)
    };
    own.classes().iter().map(row).collect()
}

#[test]
fn a_phone_of_three_clusters() {
    let expected = ("big 6-7, middle 4-5, little 0-3".to_owned(), Evidence::Capacity);
    assert_eq!(classes(&pixel()), expected);
    let (cores, _) = detect_cores(&pixel().root(), &ByHand::default()).unwrap();
    assert_eq!(cores.speed_ratio(), Some(1024.0 / 160.0));
    let expected =
        ["cortex-a55-0 0-3 1803 8", "cortex-a76-1 4-5 2253 9", "cortex-x1-2 6-7 2802 10"];
    assert_eq!(all_kinds(&pixel()), expected);
}

#[test]
fn a_hybrid_processor() {
    let expected = ("big 0-7, little 8-11".to_owned(), Evidence::HybridPmus);
    assert_eq!(classes(&hybrid()), expected);
    let (cores, _) = detect_cores(&hybrid().root(), &ByHand::default()).unwrap();
    assert_eq!(cores.speed_ratio(), None, "neither PMUs nor frequencies say it");
    let stated = ByHand { classes: Vec::new(), ratios: vec![1.6] };
    let (cores, evidence) = detect_cores(&hybrid().root(), &stated).unwrap();
    assert_eq!((cores.speed_ratio(), evidence), (Some(1.6), Evidence::HybridPmus));
    // Favoured cores are of the same class, but they are not alike.
    let expected =
        ["golden-cove-0 0-3 5200 4", "golden-cove-1 4-7 5000 4", "gracemont-2 8-11 3900 10"];
    assert_eq!(all_kinds(&hybrid()), expected);
}

#[test]
fn threads_of_one_core_are_told() {
    let pairs = |tree: &Tree| {
        let (cores, _) = detect_cores(&tree.root(), &ByHand::default()).unwrap();
        let (topology, cpu) = (cores.topology(), |core| cores.cpu(core));
        let firsts = topology.cores().filter(|&core| !topology.is_second(core));
        let of = |core| Some((cpu(core), cpu(topology.sibling(core)?)));
        firsts.filter_map(of).collect::<Vec<_>>()
    };
    let lists = ["0-1", "0-1", "2-3", "2-3", "4-5", "4-5", "6-7", "6-7", "8", "9", "10", "11"];
    assert_eq!(pairs(&hybrid()), []);
    let expected = [(0, 1), (2, 3), (4, 5), (6, 7)];
    assert_eq!(pairs(&hybrid().per_cpu("topology/core_cpus_list", &lists)), expected);
    // Its name before 5.3.
    let old = hybrid().per_cpu("topology/thread_siblings_list", &lists);
    assert_eq!(pairs(&old), expected);
    // One thread of a core is offline.
    let tree = old.file("sys/devices/system/cpu/online", "0-2,4-11");
    assert_eq!(pairs(&tree), [(0, 1), (4, 5), (6, 7)]);
    // As where all first threads are counted before the second ones.
    let far = Tree::new("0-3").per_cpu("topology/core_cpus_list", &["0,2", "1,3", "0,2", "1,3"]);
    assert_eq!(pairs(&far), [(0, 2), (1, 3)]);
    let four = Tree::new("0-3").per_cpu("topology/core_cpus_list", &["0-3"; 4]);
    assert_eq!(pairs(&four), []);
}

#[test]
fn a_hybrid_processor_with_capacities() {
    let tree = hybrid().per_cpu(CAPACITY, &runs(&[(4, 1024), (4, 985), (2, 600), (2, 623)]));
    assert_eq!(classes(&tree), ("big 0-7, little 8-11".to_owned(), Evidence::Capacity));
    let (cores, _) = detect_cores(&tree.root(), &ByHand::default()).unwrap();
    assert_eq!(cores.speed_ratio(), Some(1024.0 / 623.0));
    let tree = hybrid().per_cpu(CAPACITY, &[1024; 12]);
    let expected = ("big 0-7, little 8-11".to_owned(), Evidence::HybridPmus);
    assert_eq!(classes(&tree), expected, "capacities that are all alike say nothing");
}

#[test]
fn a_hybrid_processor_of_three_kinds() {
    let tree = Tree::new("0-5").pmu("cpu_core", 4, "0-1").pmu("cpu_atom", 10, "2-3");
    let tree = tree.pmu("cpu_lowpower", 11, "4-5");
    let expected = ("big 0-1, middle 2-3, little 4-5".to_owned(), Evidence::HybridPmus);
    assert_eq!(classes(&tree), expected);
    assert_eq!(
        all_kinds(&tree),
        ["golden-cove-0 0-1 ? 4", "gracemont-1 2-3 ? 10", "gracemont-2 4-5 ? 11"]
    );
}

#[test]
fn a_board_without_capacities() {
    assert_eq!(classes(&board()), ("big 0-1, little 2-3".to_owned(), Evidence::MaxFrequency));
    assert_eq!(all_kinds(&board()), ["cortex-a57-0 0-1 2000 8", "cortex-a53-1 2-3 1200 8"]);
}

#[test]
fn a_board_of_equal_frequencies() {
    let tree = Tree::new("0-3")
        .per_cpu(MAX_KHZ, &[1_500_000; 4])
        .per_cpu(MIDR, &[A53, A53, OTHER, "much"]);
    let expected = ("all 0-3".to_owned(), Evidence::AllAlike);
    assert_eq!(classes(&tree), expected, "kinds differ, but which is faster nothing says");
    assert_eq!(all_kinds(&tree), ["cortex-a53-0 0-1 1500 ?", "generic-1 2-3 1500 ?"]);
}

#[test]
fn a_server_of_equal_cores() {
    assert_eq!(classes(&server()), ("all 0-31".to_owned(), Evidence::AllAlike));
    assert_eq!(all_kinds(&server()), ["generic-0 0-31 3800 ?"]);
}

#[test]
fn a_virtual_machine_that_shows_nothing() {
    let cpuinfo = "processor\t: 0\ncpu MHz\t\t: 2599.6\n\nprocessor\t: 1\ncpu MHz\t\t: 100.0\n";
    let tree = Tree::new("0-1").file("proc/cpuinfo", cpuinfo);
    assert_eq!(classes(&tree), ("all 0-1".to_owned(), Evidence::AllAlike));
    assert_eq!(all_kinds(&tree), ["generic-0 0-1 2600 ?"], "present frequencies waver");
    assert_eq!(all_kinds(&Tree::new("0-1")), ["generic-0 0-1 ? ?"]);
}

#[test]
fn cpus_that_are_offline_do_not_count() {
    let tree = pixel().file("sys/devices/system/cpu/online", "0-2,6");
    assert_eq!(classes(&tree).0, "big 6, little 0-2");
    // Whether their PMU still lists them or not.
    for listed in ["", "8-11"] {
        let tree = hybrid().file("sys/devices/system/cpu/online", "0-7");
        let tree = tree.pmu("cpu_atom", 10, listed);
        assert_eq!(classes(&tree), ("all 0-7".to_owned(), Evidence::AllAlike));
    }
    // Drivers that do not know a frequency say 0.
    let tree = Tree::new("0-1").per_cpu(MAX_KHZ, &[0, 2_000_000]);
    assert_eq!(classes(&tree), ("all 0-1".to_owned(), Evidence::AllAlike));
}

#[test]
fn a_container_has_its_share_of_the_classes() {
    let little = Some(160.0 / 1024.0);
    assert_eq!(among(&pixel(), &[2, 3]), [("little".into(), "2-3".into(), little)]);
    let expected = [("little".into(), "3".into(), little), ("big".into(), "6-7".into(), Some(1.0))];
    assert_eq!(among(&pixel(), &[3, 6, 7]), expected);
    assert_eq!(among(&hybrid(), &[8]), [("little".into(), "8".into(), None)]);
    assert_eq!(among(&server(), &[5, 6]), [("all".into(), "5-6".into(), Some(1.0))]);
    assert_eq!(kinds(&pixel(), &[3, 6].into()), ["cortex-a55-0 3 1803 8", "cortex-x1-1 6 2802 10"]);
}
