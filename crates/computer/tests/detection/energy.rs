//! Power from the kernel's energy model, by the files of Linux 7.3 on a HiKey 960 (two of its frequencies).

use ampsched_computer::{ByHand, CoreMap, EnergyModels, detect_cores};
use ampsched_model::CoreId;

use crate::tree::Tree;

const DEBUGFS: &str = "debugfs /sys/kernel/debug debugfs rw,relatime 0 0";
const MODEL: &str = "sys/kernel/debug/energy_model";

/// Two slow CPUs and two fast ones with clocks, and debugfs.
fn board() -> Tree {
    Tree::new("0-3")
        .per_cpu("cpu_capacity", &[512, 512, 1024, 1024])
        .cpufreq(0, "0-1", "500000 1000000")
        .cpufreq(2, "2-3", "1000000 2000000")
        .file("proc/self/mounts", DEBUGFS)
}

fn model(tree: Tree, cpus: &str, flags: &str, points: &[(u64, u64, u8)]) -> Tree {
    let folder = format!("{MODEL}/cpu{}", &cpus[..1]);
    let tree = tree.file(&format!("{folder}/cpus"), cpus).file(&format!("{folder}/flags"), flags);
    points.iter().fold(tree, |tree, (khz, power_uw, inefficient)| {
        let point = format!("{folder}/ps:{khz}");
        tree.file(&format!("{point}/frequency"), &khz.to_string())
            .file(&format!("{point}/power"), &power_uw.to_string())
            .file(&format!("{point}/inefficient"), &inefficient.to_string())
    })
}

fn both() -> Tree {
    let tree = model(board(), "0-1", "0x1", &[(1_000_000, 125_500, 0), (500_000, 30_000, 0)]);
    model(tree, "2-3", "0x1", &[(2_000_000, 1_500_000, 0), (1_000_000, 250_000, 0)])
}

fn cores(tree: &Tree) -> CoreMap {
    detect_cores(&tree.root(), &ByHand::default()).unwrap().0
}

/// MHz, capacity and mW of a cluster.
fn points(cores: &CoreMap, cluster: usize) -> Vec<(u32, f64, f64)> {
    let points = cores.topology().clusters()[cluster].energy_model.iter();
    points.map(|point| (point.mhz, point.capacity, point.power_mw)).collect()
}

#[test]
fn policies_know_the_power_that_the_kernel_believes() {
    let tree = both().file(&format!("{MODEL}/gpu/flags"), "0x1");
    let cores = cores(&tree);
    assert_eq!(points(&cores, 0), [(500, 256.0, 30.0), (1000, 512.0, 125.5)]);
    assert_eq!(points(&cores, 1), [(1000, 512.0, 250.0), (2000, 1024.0, 1500.0)]);
    assert_eq!(EnergyModels::read(&tree.root()).reasons, [""; 0]);
    assert_eq!(
        EnergyModels::describe(&cores, "the kernel's energy model"),
        [
            "little 0-1: a busy core 30 mW at 500 MHz to 125.5 mW at 1000 MHz (the kernel's energy model)",
            "big 2-3: a busy core 250 mW at 1000 MHz to 1500 mW at 2000 MHz (the kernel's energy model)",
        ]
    );
}

/// The cores of the board with power as the user states it, or why not.
fn stated(tree: &Tree, texts: &[&str]) -> Result<CoreMap, String> {
    let texts: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
    let energy = EnergyModels::stated(&texts);
    energy.and_then(|energy| cores(tree).with_power(&energy)).map_err(|error| error.to_string())
}

#[test]
fn what_the_user_states_of_power_takes_the_place_of_the_kernels_model() {
    let cores = stated(&both(), &["2-3=1500:400,2000:900.5", "0,1=1000:70"]).unwrap();
    assert_eq!(points(&cores, 0), [(1000, 512.0, 70.0)]);
    assert_eq!(points(&cores, 1), [(1500, 768.0, 400.0), (2000, 1024.0, 900.5)]);
    let pairs = board().per_cpu("topology/core_cpus_list", &["0-1", "0-1", "2-3", "2-3"]);
    let cores = stated(&pairs, &["0-1=1000:70"]).unwrap();
    assert!(cores.topology().sibling(CoreId(2)) == Some(CoreId(3)));
    assert!(points(&cores, 1).iter().all(|point| point.2 == 0.0));
}

#[test]
fn wrong_powers_are_refused() {
    let form = "is not CPUS=MHZ:MW,... with ascending frequencies";
    for (texts, expected) in [
        (&["0-1"][..], form),
        (&["=1000:70"], form),
        (&["0-1=1000"], form),
        (&["0-1=1000:0"], form),
        (&["0-1=1000:nan"], form),
        (&["0-1=0:70"], form),
        (&["0-1=20000:70"], form),
        (&["0-1=1000:70,900:60"], form),
        (&["0-1=1000:70", "1=1000:70"], "CPU 1 has a power already"),
        (&["7=1000:70"], "CPU 7 is not online, or in no class of cores"),
        (&["0=1000:70"], "CPUs 0-1 share a clock, but only some of them have a power"),
    ] {
        let error = stated(&board(), texts).unwrap_err();
        assert!(error.starts_with("--power: ") && error.contains(expected), "{texts:?}: {error}");
    }
}

#[test]
fn points_that_the_kernel_leaves_out_are_left_out() {
    let tree = model(
        board(),
        "0-1",
        "0x3",
        &[(250_000, 30_000, 1), (500_000, 30_000, 0), (1_000_000, 125_500, 0)],
    );
    assert_eq!(points(&cores(&tree), 0), [(500, 256.0, 30.0), (1000, 512.0, 125.5)]);
    assert_eq!(points(&cores(&tree), 1), [(1000, 512.0, 0.0), (2000, 1024.0, 0.0)], "no model");
}

#[test]
fn without_power_in_watts_none_is_known() {
    let wrong = |flags: &str, points: &[(u64, u64, u8)]| {
        let tree = model(board(), "0-1", flags, points);
        let known = cores(&tree).domains().iter().any(|domain| !domain.power.is_empty());
        assert!(!known, "{flags}");
        let root = tree.root();
        let reasons = EnergyModels::read(&root).reasons;
        let folder = format!("{}/cpu0/", root.name(&format!("/{MODEL}")));
        reasons.iter().map(|reason| reason.replace(&folder, "")).collect::<Vec<_>>()
    };
    let good = [(500_000, 30_000, 0)];
    let costs = "flags: the kernel's energy model has costs, but no power in watts";
    // Abstract, and artificial as on Intel's hybrid processors.
    assert_eq!(wrong("0x0", &good), [costs]);
    assert_eq!(wrong("0x4", &good), [costs]);
    assert_eq!(wrong("much", &good), ["flags: it does not say in which unit power is"]);
    assert_eq!(wrong("0x1", &[(500_000, 0, 0)]), ["ps:500000: 0 uW at 500000 kHz cannot be"]);
    assert_eq!(
        wrong("0x1", &[(500_000, u64::MAX, 0)]),
        ["ps:500000: 18446744073709551615 uW at 500000 kHz cannot be"]
    );
    assert_eq!(wrong("0x1", &[(999, 5, 0)]), ["ps:999: 5 uW at 999 kHz cannot be"]);
    let twice = [(500_000, 30_000, 0), (500_001, 30_000, 0)];
    assert_eq!(wrong("0x1", &twice), ["points: there are none, or two of one frequency"]);
    assert_eq!(wrong("0x1", &[]), ["points: there are none, or two of one frequency"]);
}

#[test]
fn it_is_said_why_nothing_is_known() {
    let reasons = |tree: &Tree| EnergyModels::read(&tree.root()).reasons;
    let none = "the kernel has no energy model of its CPUs";
    assert_eq!(reasons(&board()), [none]);
    assert_eq!(reasons(&board().file(&format!("{MODEL}/gpu/flags"), "0x1")), [none]);
    let unseen = "the kernel's energy model is not to be seen: `mount -t debugfs debugfs /sys/kernel/debug` as root";
    assert_eq!(reasons(&board().file("proc/self/mounts", "")), [unseen]);
}
