//! The power law and what machine files may say about power.

use ampsched_model::{
    ActivityLaw, Catalog, Cluster, ClusterId, CoreParams, CoreState, FileKind, Leakage, Machine,
    Opp, PowerLimit, PowerPoint, Profile, energy_models, speed_ips,
};
use proptest::prelude::*;

const CORE: &str = include_str!("../../../python/ampsched/data/core_types/cortex-a7.toml");
const COSTS: &str = "[costs]\ncontext_switch_ns = 1\nmigrate_same_cluster_ns = 2\n\
    migrate_cross_cluster_ns = 3\nwakeup_latency_ns = 4\n";

/// A cluster of which the file says `keys` about power.
fn cluster(keys: &str) -> Cluster {
    let text = format!(
        "[[clusters]]\nname = \"c\"\ncore_type = \"c\"\ncores = 2\nclass = 0\n\
         opps = [{{ mhz = 500, volt = 0.8 }}, {{ mhz = 1000, volt = 1.0 }}]\n{keys}\n{COSTS}"
    );
    let mut catalog = Catalog::new();
    catalog.add(FileKind::CoreType, "c", "c.toml", CORE).unwrap();
    catalog.add(FileKind::Machine, "m", "m.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    catalog.machine("m").unwrap().clusters.remove(0)
}

fn assert_close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-12 * (1.0 + b.abs()), "{a} instead of {b}");
}

#[test]
fn dynamic_power_is_c_v2_f() {
    // Linux's device tree of the Exynos 5422: 310 uW/(MHz V^2), 2000 MHz at 1.3125 V give 1068.0 mW.
    let point = PowerPoint::of_law(Opp { mhz: 2000, volt: 1.3125 }, 310.0, 0.0);
    assert!((point.core_mw - 1068.0).abs() < 0.05, "{}", point.core_mw);
    assert_eq!((point.uncore_mw, point.volt), (0.0, 1.3125));
}

#[test]
fn leakage_follows_the_law_of_bhat_et_al() {
    // V (c1 T^2 exp(c2 / T)) with c1 = 0.002488, c2 = -2660 K: the Odroid XU3's values in DS3.
    let published_mw = |volt: f64, celsius: f64| {
        let kelvin = celsius + 273.15;
        1000.0 * volt * 0.002488 * kelvin * kelvin * (-2660.0 / kelvin).exp()
    };
    let leakage = Leakage {
        reference_mw: published_mw(1.0, 40.0),
        reference_volt: 1.0,
        reference_c: 40.0,
        per_volt: 0.0,
        kelvin: 2660.0,
    };
    for (volt, celsius) in [(0.9, 25.0), (1.0, 40.0), (1.3, 60.0), (1.3625, 95.0)] {
        let (ours, published) = (leakage.power_mw(volt, celsius), published_mw(volt, celsius));
        assert!((ours / published - 1.0).abs() < 1e-12, "{volt} V {celsius} C: {ours} {published}");
    }
}

#[test]
fn a_core_runs_idles_or_is_off() {
    let power = cluster(
        "power = { dynamic_uw_per_mhz_v2 = 100, uncore_dynamic_uw_per_mhz_v2 = 50, static_mw = 8,\n\
         uncore_static_mw = 4 }\n\
         idle_states = [{ name = \"wfi\", core_share = 1, uncore_share = 1 },\n\
         { name = \"off\", core_mw = 0.5, uncore_mw = 1, uncore_share = 0.25, entry_us = 300, exit_us = 1.5,\n\
         min_residency_us = 2000 }]",
    )
    .power;
    assert!(power.is_known());
    // 100 uW/(MHz V^2) at 1000 MHz and 1 V are 100 mW; leakage is stated for the highest voltage.
    let running = CoreState::Running { activity: 0.5 };
    assert_close(power.core_power_mw(1, running, 80.0), 0.5 * 100.0 + 8.0);
    assert_close(power.core_power_mw(0, running, 80.0), 0.5 * 32.0 + 8.0 * 0.8);
    assert_close(power.core_power_mw(0, CoreState::Idle(0), 80.0), 8.0 * 0.8);
    assert_close(power.core_power_mw(0, CoreState::Idle(1), 80.0), 0.5);
    assert_close(power.core_power_mw(1, CoreState::Off, 80.0), 0.0);
    assert_close(power.uncore_power_mw(1, None, 80.0), 50.0 + 4.0);
    assert_close(power.uncore_power_mw(1, Some(0), 80.0), 50.0 + 4.0);
    assert_close(power.uncore_power_mw(1, Some(1), 80.0), 1.0 + 0.25 * 54.0);
    let off = &power.idle_states[1];
    assert_eq!((off.entry_ns, off.exit_ns, off.min_residency_ns), (300_000, 1_500, 2_000_000));
}

#[test]
fn what_is_not_stated_is_not_known_or_simple() {
    let unknown = cluster("").power;
    assert!(
        !unknown.is_known() && unknown.idle_states.is_empty() && unknown.energy_model.is_empty()
    );
    let simple = cluster("power = { dynamic_uw_per_mhz_v2 = 100 }").power;
    assert_eq!(simple.idle_states.len(), 1);
    assert_close(simple.core_power_mw(1, CoreState::Idle(0), 25.0), 0.0);
    assert_eq!((simple.activity.stalled, simple.activity.l2), (1.0, 0.0));
}

#[test]
fn an_energy_model_is_power_as_well() {
    let table = "energy_model = [{ mhz = 500, capacity = 400, power_mw = 60, cluster_mw = 20 },\n\
        { mhz = 1000, capacity = 800, power_mw = 200, cluster_mw = 30 }]\n";
    let power = cluster(table).power;
    assert_close(power.core_power_mw(1, CoreState::Running { activity: 1.0 }, 25.0), 200.0);
    assert_close(power.uncore_power_mw(0, None, 25.0), 20.0);
    assert_eq!(power.energy_model[1].capacity, 800.0);
    // A law takes its place as power; the table is what a scheduler believes.
    let both = cluster(&format!("{table}power = {{ dynamic_uw_per_mhz_v2 = 100 }}")).power;
    assert_close(both.core_power_mw(1, CoreState::Running { activity: 1.0 }, 25.0), 100.0);
    assert_eq!(both.energy_model, power.energy_model);
}

#[test]
fn power_sensors_are_read() {
    let sensor = cluster(
        "power = { dynamic_uw_per_mhz_v2 = 100 }\n\
         power_sensor = { resolution_mw = 1.5, noise_mw = 2, period_ms = 270, delay_ms = 0.5 }",
    )
    .power
    .sensor
    .unwrap();
    assert_eq!((sensor.resolution, sensor.noise), (1.5, 2.0));
    assert_eq!((sensor.period_ns, sensor.delay_ns), (270_000_000, 500_000));
}

#[test]
fn an_energy_model_is_derived_where_none_is_published() {
    let cluster = |name: &str, class: u8, keys: &str, mhz: u32| {
        format!(
            "[[clusters]]\nname = \"{name}\"\ncore_type = \"c\"\ncores = 1\nclass = {class}\n{keys}\n\
             opps = [{{ mhz = {mhz}, volt = 0.8 }}, {{ mhz = {}, volt = 1.0 }}]\n",
            2 * mhz
        )
    };
    let power = "power = { dynamic_uw_per_mhz_v2 = 100, static_mw = 8, static_kelvin = 2660 }";
    let file = |big: &str| cluster("big", 1, big, 1000) + &cluster("little", 0, power, 500) + COSTS;
    let mut catalog = Catalog::new();
    catalog.add(FileKind::CoreType, "c", "c.toml", CORE).unwrap();
    catalog.add(FileKind::Machine, "m", "m.toml", &file(power)).unwrap();
    catalog.add(FileKind::Machine, "half", "half.toml", &file("")).unwrap();
    let machine = catalog.machine("m").unwrap();
    // A profile without misses: its speed is proportional to the frequency.
    let reference = Profile {
        name: "r".into(),
        uops_per_instruction: 1.0,
        cpi_core_big: 1.0,
        cpi_core_little: 1.0,
        ilp_40: 2.0,
        ilp_128: 2.0,
        ..Profile::default()
    };
    let table = machine.energy_model(ClusterId(1), &reference).unwrap();
    assert_eq!(table.iter().map(|point| point.mhz).collect::<Vec<_>>(), [500, 1000]);
    assert_close(table[0].capacity, 256.0);
    assert_close(table[1].capacity, 512.0);
    // 100 uW/(MHz V^2) at 500 MHz and 0.8 V, and leakage stated for 1 V.
    assert_close(table[0].power_mw, 32.0 + 6.4);
    assert!(machine.without_power().is_none());

    let half = catalog.machine("half").unwrap();
    assert_eq!(half.without_power().unwrap().name, "big");
    assert_eq!(half.energy_model(ClusterId(0), &reference), None);
}

#[test]
fn activity_is_one_with_full_issue_slots_and_grows_with_l2_accesses() {
    let core = cluster("").params;
    let law = ActivityLaw { stalled: 0.1, l2: 0.5 };
    assert_close(law.at(0.0, 0.0, &core), 0.1);
    assert_close(law.at(1.0, 0.0, &core), 1.0);
    assert_close(law.at(2.0, 0.0, &core), 1.0);
    // One access in each L2 latency: e^-1 of the cycles have none under way.
    assert_close(law.at(1.0, 1.0 / core.l2_cycles, &core), 1.0 + 0.5 * (1.0 - (-1.0_f64).exp()));
    assert_close(ActivityLaw::default().at(0.3, 0.2, &core), 1.0);
}

proptest! {
    /// More of anything costs more, and nothing costs less than nothing.
    #[test]
    fn power_grows_with_voltage_temperature_and_activity(
        volt in 0.5..1.4f64, celsius in 0.0..110.0f64, more in 0.0..0.2f64,
        per_volt in 0.0..8.0f64, kelvin in 0.0..5000.0f64,
    ) {
        let leakage =
            Leakage { reference_mw: 10.0, reference_volt: 1.0, reference_c: 40.0, per_volt, kelvin };
        let here = leakage.power_mw(volt, celsius);
        prop_assert!(here > 0.0);
        prop_assert!(leakage.power_mw(volt + more, celsius) >= here);
        prop_assert!(leakage.power_mw(volt, celsius + 100.0 * more) >= here);
    }
}

#[test]
fn kernels_believe_stated_capacities() {
    let machine = |little: &str, big: &str| {
        let cluster = |name: &str, class: u8, keys: &str| {
            format!(
                "[[clusters]]\nname = \"{name}\"\ncore_type = \"c\"\ncores = 1\nclass = {class}\n\
                 opps = [{{ mhz = 500 }}, {{ mhz = 1000 }}]\n{keys}\n"
            )
        };
        let text = format!("{}{}{COSTS}", cluster("little", 0, little), cluster("big", 1, big));
        let mut catalog = Catalog::new();
        catalog.add(FileKind::CoreType, "c", "c.toml", CORE).unwrap();
        catalog.add(FileKind::Machine, "m", "m.toml", &text).map_err(|error| error.to_string())?;
        Ok::<_, String>(catalog)
    };
    let seen = |catalog: &Catalog| {
        let models = energy_models(&catalog.machine("m").unwrap());
        models.iter().flatten().map(|point| point.capacity).collect::<Vec<_>>()
    };
    let stated = machine("capacity = 398", "capacity = 1024").unwrap();
    assert_eq!(seen(&stated), [199.0, 398.0, 512.0, 1024.0]);
    let told = stated.describe(FileKind::Machine, "m").unwrap();
    assert!(told.contains("  capacity: 398 of 1024, for linux and eas\n"), "{told}");
    // In a part of a machine the fastest core has 1024, as in Linux, and speeds are those of the core type.
    assert_eq!(seen(&machine("capacity = 200", "capacity = 400").unwrap())[1], 512.0);
    let machines = [stated, machine("", "").unwrap()].map(|each| each.machine("m").unwrap());
    assert_eq!(machines[0].clusters[0].params, machines[1].clusters[0].params);
    for (little, big, error) in [
        ("capacity = 398", "", "clusters[1]: key \"capacity\" is missing (state it for each"),
        ("capacity = 0", "capacity = 1024", "clusters[0].capacity: 0 is out of range, 1 to 1024"),
        ("capacity = 9", "capacity = 1025", "clusters[1].capacity: 1025 is out of range"),
    ] {
        assert!(machine(little, big).map(|_| ()).unwrap_err().contains(error), "{error}");
    }
}

#[test]
fn voltages_are_needed_for_power_only() {
    let machine = |opps: &str, power: &str| {
        let text = format!(
            "[[clusters]]\nname = \"a\"\ncore_type = \"c\"\ncores = 2\nclass = 0\nopps = [{opps}]\n{power}\n{COSTS}"
        );
        let mut catalog = Catalog::new();
        catalog.add(FileKind::CoreType, "c", "c.toml", CORE).unwrap();
        catalog.add(FileKind::Machine, "m", "m.toml", &text).map_err(|error| error.to_string())?;
        Ok(catalog)
    };
    let found: Result<Catalog, String> = machine("{ mhz = 500 }, { mhz = 800 }", "");
    let catalog = found.unwrap();
    let told = catalog.describe(FileKind::Machine, "m").unwrap();
    assert!(told.contains("operating points: 500 MHz, 800 MHz\n"), "{told}");
    assert!(catalog.machine("m").unwrap().clusters[0].opps.iter().all(|opp| opp.volt == 1.0));
    let law = "power = { dynamic_uw_per_mhz_v2 = 100 }";
    let table = "energy_model = [{ mhz = 500, capacity = 1024, power_mw = 1 }]";
    for (opps, power) in [
        ("{ mhz = 500 }", law),
        ("{ mhz = 500 }", table),
        ("{ mhz = 500 }, { mhz = 800, volt = 1 }", ""),
    ] {
        let error = machine(opps, power).map(|_| ()).unwrap_err();
        assert!(
            error.contains("clusters[0].opps[0]: key \"volt\" is missing (power needs"),
            "{error}"
        );
    }
}

#[test]
fn a_machine_states_the_power_of_its_board_and_a_shared_rail() {
    let machine = |keys: &str, second: &str| {
        let cluster = |name: &str, power: &str| {
            format!(
                "[[clusters]]\nname = \"{name}\"\ncore_type = \"c\"\ncores = 2\nclass = 0\n\
                 opps = [{{ mhz = 500, volt = 0.8 }}]\n{power}\n"
            )
        };
        let known = "power = { dynamic_uw_per_mhz_v2 = 100 }";
        let text =
            format!("{}{}{COSTS}[power]\n{keys}\n", cluster("a", known), cluster("b", second));
        let mut catalog = Catalog::new();
        catalog.add(FileKind::CoreType, "c", "c.toml", CORE).unwrap();
        catalog.add(FileKind::Machine, "m", "m.toml", &text).map_err(|error| error.to_string())?;
        Ok(catalog.machine("m").unwrap().board)
    };
    let known = "power = { dynamic_uw_per_mhz_v2 = 100 }";
    let board = machine("board_mw = 1500\nshared_rail = [\"a\", \"b\"]", known).unwrap();
    assert_eq!((board.board_mw, board.shared_rail.len(), board.shared_clock), (1500.0, 2, false));
    let clock = machine("shared_rail = [\"a\", \"b\"]\nshared_clock = true", known).unwrap();
    assert!(clock.shared_clock);
    let limit = machine("pl1_mw = 65000\npl2_mw = 219000\ntau_ms = 28000", known).unwrap().limit;
    let (pl1_mw, pl2_mw, tau_ns) = (65_000.0, 219_000.0, 28_000_000_000);
    assert_eq!(limit, Some(PowerLimit { pl1_mw, pl2_mw, tau_ns }));
    let one = machine("pl1_mw = 5\ntau_ms = 1", known).unwrap().limit.unwrap();
    assert_eq!((one.pl2_mw, one.tau_ns, board.limit), (5.0, 1_000_000, None));
    let error = |keys: &str, second: &str| -> String { machine(keys, second).unwrap_err() };
    let all = [
        ("board_mw = -1", known, "power.board_mw: -1 is out of range, 0 to 1000000"),
        (
            "shared_rail = [\"a\"]",
            known,
            "power.shared_rail: 1 cluster, at least 2 are needed to share",
        ),
        (
            "shared_rail = [\"a\", \"a\"]",
            known,
            "power.shared_rail[1]: cluster \"a\" a second time",
        ),
        ("shared_rail = [\"a\", \"c\"]", known, "power.shared_rail[1]: unknown cluster \"c\""),
        ("shared_rail = [\"a\", \"b\"]", "", "power of cluster \"b\" is not known"),
        (
            "shared_clock = true",
            known,
            "power.shared_clock: there is no shared_rail (name the clusters whose uncores have one",
        ),
        ("shared_rail = [\"a\", \"b\"]\nshared_clock = 1", known, "power.shared_clock: "),
        ("board_w = 1", known, "unknown key \"board_w\""),
        ("pl1_mw = 0", known, "power.pl1_mw: 0 is out of range, 1 to 1000000"),
        ("pl1_mw = 9\npl2_mw = 8\ntau_ms = 1", known, "power.pl2_mw: 8 mW, below pl1_mw of 9 mW"),
        ("pl1_mw = 9", known, "power: key \"tau_ms\" is missing"),
        ("pl1_mw = 9\ntau_ms = 0", known, "power.tau_ms: 0 is out of range, 1 to 1000000"),
        ("tau_ms = 1", known, "power.tau_ms: there is no pl1_mw (state pl1_mw, pl2_mw and tau_ms)"),
        ("pl1_mw = 9\ntau_ms = 1", "", "power.pl1_mw: power of cluster \"b\" is not known"),
    ];
    for (keys, second, message) in all {
        assert!(error(keys, second).contains(message), "{}", error(keys, second));
    }
}

#[test]
fn leaving_idle_states_takes_what_is_stated() {
    let machine = |states: &str, costs: &str| {
        let text = format!(
            "[[clusters]]\nname = \"c\"\ncore_type = \"c\"\ncores = 1\nclass = 0\nopps = [{{ mhz = 500, volt = 1 \
             }}]\npower = {{ dynamic_uw_per_mhz_v2 = 1 }}\n{states}\n{COSTS}{costs}\n"
        );
        let mut catalog = Catalog::new();
        catalog.add(FileKind::CoreType, "c", "c.toml", CORE).unwrap();
        catalog.add(FileKind::Machine, "m", "m.toml", &text).map_err(|error| error.to_string())?;
        assert_eq!(
            catalog.describe(FileKind::Machine, "m").unwrap().contains("up to 20 us"),
            costs.contains("true")
        );
        Ok(catalog.machine("m").unwrap())
    };
    let states = "idle_states = [{ name = \"wfi\", exit_us = 1 }, { name = \"off\", exit_us = 20, \
        min_residency_us = 50 }]";
    let stated = machine(states, "idle_exit = true").unwrap();
    let exits = [0, 49_999, 50_000, 9_999_999].map(|ns| stated.clusters[0].power.exit_after_ns(ns));
    assert_eq!((exits, stated.longest_exit_ns()), ([1_000, 1_000, 20_000, 20_000], 20_000));
    assert_eq!(machine(states, "").unwrap().longest_exit_ns(), 0);
    let error: String = machine("", "idle_exit = true").unwrap_err();
    let expected = "costs.idle_exit: no idle state states how long leaving it takes (state exit_us in idle_states of a";
    assert!(error.contains(expected), "{error}");
    assert!(machine("", "idle_exit = false").is_ok());
}

#[test]
fn a_cluster_states_its_clock_by_active_cores() {
    let ladder = |keys: &str| {
        let text = format!(
            "[[clusters]]\nname = \"c\"\ncore_type = \"c\"\ncores = 4\nclass = 0\nopps = [{{ mhz = 500, \
             volt = 0.8 }}, {{ mhz = 800, volt = 0.9 }}, {{ mhz = 1000, volt = 1.0 }}]\n{keys}\n{COSTS}"
        );
        let mut catalog = Catalog::new();
        catalog.add(FileKind::CoreType, "c", "c.toml", CORE).unwrap();
        catalog.add(FileKind::Machine, "m", "m.toml", &text).map_err(|error| error.to_string())?;
        let told = catalog.describe(FileKind::Machine, "m").unwrap();
        Ok((catalog.machine("m").unwrap(), told))
    };
    let (machine, told) = ladder("turbo_mhz = [1000, 1000, 800]").unwrap();
    assert!(told.contains("  turbo: 1000, 1000, 800 MHz with 1, 2, ... active cores of class 0"));
    let points = |machine: &Machine| [0, 1, 2, 3, 4, 9].map(|it| machine.clusters[0].turbo_opp(it));
    assert_eq!(points(&machine), [2, 2, 2, 1, 1, 1]);
    assert_eq!(points(&machine.part(&["c=4@800"]).unwrap()), [1; 6]);
    assert_eq!(points(&machine.part(&["c=4@500"]).unwrap()), [0; 6]);
    assert_eq!(points(&ladder("").unwrap().0), [2; 6]);
    let all = [
        ("[]", "clusters[0].turbo_mhz: no frequency, at least 1 is needed"),
        ("[800]", "turbo_mhz[0]: 800 MHz with one active core, below the highest operating point"),
        ("[1000, 900]", "turbo_mhz[1]: 900 MHz is no operating point of the cluster"),
        ("[1000, 800, 1000]", "turbo_mhz[2]: 1000 MHz after 800 MHz, more active cores are never"),
        ("[0]", "turbo_mhz[0]: 0 is out of range, 1 to 10000"),
        ("1000", "turbo_mhz: "),
    ];
    for (list, message) in all {
        let error: String = ladder(&format!("turbo_mhz = {list}")).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn a_cluster_states_how_fast_its_cores_are_of_their_type() {
    let (own, slower) = (cluster(""), cluster("relative_speed = 0.8"));
    assert_eq!(slower.params, CoreParams { cycles_factor: 1.0 / 0.8, ..own.params });
    assert_eq!(slower.power, own.power);
}

#[test]
fn a_cluster_states_what_its_way_to_the_memory_adds() {
    let near = cluster("");
    let far = cluster("memory_extra_ns = 42.5");
    assert_eq!(far.params.memory_ns, near.params.memory_ns + 42.5);
    let (cpi_core_big, cpi_core_little) = (1.0, 1.0);
    let (l1d_mpki, l2_512k_mpki, l2_2m_mpki) = (40.0, 20.0, 20.0);
    let missing = Profile {
        l1d_mpki,
        l2_512k_mpki,
        l2_2m_mpki,
        cpi_core_big,
        cpi_core_little,
        ..Profile::default()
    };
    let ns = |cluster: &Cluster| 1e9 / speed_ips(&missing, &cluster.params, 1000.0);
    assert!(ns(&far) > ns(&near) * 1.05, "{} {}", ns(&far), ns(&near));
}
