//! Speeds on the clusters of a machine when a workload states a ratio.

use ampsched_model::{
    ClassId, Cluster, ClusterPower, CoreId, CoreParams, Costs, Machine, Opp, Profile,
    machine_speed_ips, machine_stall_counters, speed_ips, stall_counters,
};

#[path = "core_model/cases.rs"]
mod cases;

use cases::{big, little, profile};

fn cluster(class: u8, params: CoreParams, mhz: u32) -> Cluster {
    Cluster {
        shares_l2: false,
        sharing: ampsched_model::Sharing::NONE,
        turbo_mhz: Vec::new(),
        bounds: None,
        name: format!("class{class}"),
        class: ClassId(class),
        cores: vec![CoreId::from(usize::from(class))],
        core_type: "test".into(),
        params,
        opps: vec![Opp { mhz: mhz / 2, volt: 0.9 }, Opp { mhz, volt: 1.0 }],
        power: ClusterPower::default(),
        costs: None,
    }
}

fn machine(clusters: Vec<Cluster>) -> Machine {
    Machine {
        name: "m".into(),
        description: String::new(),
        clusters,
        costs: Costs::default(),
        thermal: None,
        board: ampsched_model::BoardPower::default(),
        kernel_view: ampsched_model::KernelView::default(),
        reference: None,
        memory: None,
    }
}

fn stated(ratio: f64) -> Profile {
    Profile { measured_ratio: Some(ratio), ..profile() }
}

/// Speed at the cluster's highest frequency.
fn top(profile: &Profile, machine: &Machine, index: usize) -> f64 {
    let cluster = &machine.clusters[index];
    machine_speed_ips(profile, machine, cluster, f64::from(cluster.max_mhz()))
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

#[test]
fn without_a_stated_ratio_the_model_speaks() {
    let machine = machine(vec![cluster(0, little(), 1200), cluster(1, big(), 2000)]);
    for (index, cluster) in machine.clusters.iter().enumerate() {
        let mhz = f64::from(cluster.max_mhz());
        let expected = speed_ips(&profile(), &cluster.params, mhz);
        assert_eq!(top(&profile(), &machine, index), expected);
    }
}

#[test]
fn the_slowest_class_gets_the_stated_ratio_at_the_highest_frequencies() {
    let machine = machine(vec![cluster(0, little(), 1200), cluster(1, big(), 2000)]);
    let (slow, fast) = (top(&stated(3.7), &machine, 0), top(&stated(3.7), &machine, 1));
    assert!(close(fast / slow, 3.7));
    assert_eq!(fast, speed_ips(&profile(), &big(), 2000.0), "the fastest class is the reference");
}

#[test]
fn frequencies_keep_the_shape_of_the_model() {
    let machine = machine(vec![cluster(0, little(), 1200), cluster(1, big(), 2000)]);
    let slow = &machine.clusters[0];
    let shape = |profile: &Profile| {
        machine_speed_ips(profile, &machine, slow, 600.0)
            / machine_speed_ips(profile, &machine, slow, 1200.0)
    };
    assert!(close(shape(&stated(3.7)), shape(&profile())));
}

#[test]
fn a_class_in_between_takes_its_part_of_the_correction() {
    let middle = CoreParams { width: 2.0, window: 40.0, ..big() };
    let machine = machine(vec![
        cluster(0, little(), 1200),
        cluster(1, middle, 1600),
        cluster(2, big(), 2000),
    ]);
    let model: Vec<f64> = (0..3).map(|index| top(&profile(), &machine, index)).collect();
    let (slowest, between) = (model[2] / model[0], model[2] / model[1]);
    assert!(between > 1.05 && between < slowest, "{between} {slowest}");
    let ratio = 4.5;
    let corrected = top(&stated(ratio), &machine, 2) / top(&stated(ratio), &machine, 1);
    // ln(corrected) : ln(4.5) as ln(predicted) : ln(predicted of the slowest).
    assert!(close(corrected.ln() / ratio.ln(), between.ln() / slowest.ln()));
}

#[test]
fn equal_predictions_are_told_apart_by_class() {
    let machine = machine((0..3).map(|class| cluster(class, big(), 2000)).collect());
    let speed: Vec<f64> = (0..3).map(|index| top(&stated(4.0), &machine, index)).collect();
    assert!(close(speed[2] / speed[0], 4.0));
    assert!(close(speed[2] / speed[1], 2.0));
}

#[test]
fn a_stated_ratio_holds_where_the_fastest_kind_is_left_out() {
    let whole = machine(vec![
        cluster(0, little(), 1200),
        cluster(1, little(), 1600),
        cluster(2, big(), 2000),
    ]);
    for profile in [stated(4.5), profile()] {
        let speeds = |machine: &Machine| top(&profile, machine, 0);
        assert_eq!(speeds(&whole.only_little()), speeds(&whole));
        assert_eq!(speeds(&whole.all_little()), speeds(&whole));
        assert_eq!(speeds(&whole.only_little().ordered(true).all_big()), speeds(&whole));
        assert_eq!(speeds(&whole.only_big()), top(&profile, &whole, 2));
        assert_eq!(speeds(&whole.all_big()), top(&profile, &whole, 2));
    }
}

#[test]
fn a_machine_of_one_class_ignores_the_ratio() {
    let machine = machine(vec![cluster(0, big(), 2000)]);
    assert_eq!(top(&stated(4.0), &machine, 0), top(&profile(), &machine, 0));
}

#[test]
fn stalls_agree_with_the_speed() {
    let machine = machine(vec![cluster(1, big(), 2000), cluster(0, little(), 1000)]);
    for cluster in &machine.clusters {
        let stalls = machine_stall_counters(&stated(3.0), &machine, cluster, 1000.0);
        let ips = machine_speed_ips(&stated(3.0), &machine, cluster, 1000.0);
        assert!(close(stalls.cpi(), 1e9 / ips));
        let modelled = stall_counters(&profile(), &cluster.params, 1000.0);
        assert!(close(stalls.memory_share(), modelled.memory_share()));
    }
}
