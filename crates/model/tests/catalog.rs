//! Names and paths across files, as a user of the catalogue meets them.

use ampsched_model::{Catalog, FileKind, InputError};

const CORE: &str = "description = \"c\"\npipeline = \"out-of-order\"\nwidth = 3\nwindow = 60\nmispredict_cycles = 15\n\
    load_cycles = 4\nfp_single_cycles = 1\nfp_double_cycles = 1\n\
    fp_single_latency_cycles = 4\nfp_double_latency_cycles = 4\nl1i_kib = 32\nl1d_kib = 32\nl2_kib = 512\nl2_cycles = 20\nmemory_ns = 100\n\
    mlp_max = 6\nprefetch_share = 0.5\n";
const COSTS: &str = "[costs]\ncontext_switch_ns = 1\nmigrate_same_cluster_ns = 2\nmigrate_cross_cluster_ns = 3\n\
    wakeup_latency_ns = 4\n";

fn machine(core_type: &str) -> String {
    format!(
        "description = \"m\"\n[[clusters]]\nname = \"big\"\ncore_type = \"{core_type}\"\ncores = 2\nclass = 1\n\
         l2_kib = 2048\nopps = [{{ mhz = 500, volt = 0.9 }}, {{ mhz = 1000, volt = 1.0 }}]\n\
         power = {{ dynamic_uw_per_mhz_v2 = 310, static_mw = 5 }}\n\
         [[clusters]]\nname = \"little\"\ncore_type = \"{core_type}\"\ncores = 3\nclass = 0\n\
         opps = [{{ mhz = 800, volt = 1.0 }}]\n{COSTS}"
    )
}

/// A program without profiles.
fn program(name: &str) -> String {
    format!(
        "name = \"{name}\"\ndescription = \"d\"\n[params]\nn = 2\n[[threads]]\nname = \"t\"\ncount = \"n\"\n\
         body = [{{ sleep_us = 1 }}]\n"
    )
}

fn catalog(files: &[(FileKind, &str, &str, &str)]) -> Catalog {
    let mut catalog = Catalog::new();
    for (kind, name, file, text) in files {
        catalog.add(*kind, name, file, text).unwrap();
    }
    catalog
}

fn message<T>(result: Result<T, InputError>) -> String {
    result.err().expect("an error").to_string()
}

#[test]
fn a_machine_takes_its_core_types_and_its_own_l2() {
    let catalog = catalog(&[
        (FileKind::Machine, "m", "m.toml", &machine("c")),
        (FileKind::CoreType, "c", "c.toml", CORE),
    ]);
    let machine = catalog.machine("m").unwrap();
    let (big, little) = (&machine.clusters[0], &machine.clusters[1]);
    assert_eq!((big.params.l2_kib, little.params.l2_kib, big.params.width), (2048.0, 512.0, 3.0));
    assert_eq!(little.cores.iter().map(|core| core.index()).collect::<Vec<_>>(), [2, 3, 4]);
    assert_eq!((machine.name.as_str(), machine.cores(), big.max_mhz()), ("m", 5, 1000));
    assert_eq!((big.power.points[1].core_mw, little.power.is_known()), (310.0, false));
    assert_eq!((machine.costs.context_switch_ns, machine.costs.wakeup_latency_ns), (1, 4));
}

#[test]
fn paths_are_relative_to_the_file_that_says_them() {
    let workload =
        "[workloads.w]\napps = [{ program = \"sub/p.toml\" }, { program = \"/abs/q.toml\" }]\n";
    let mut catalog = catalog(&[
        (FileKind::Machine, "m", "dir/m.toml", &machine("../c.toml")),
        (FileKind::Workload, "mix", "dir/mix.toml", workload),
    ]);
    let missing = [
        (FileKind::CoreType, "dir/../c.toml".to_owned()),
        (FileKind::Program, "/abs/q.toml".to_owned()),
        (FileKind::Program, "dir/sub/p.toml".to_owned()),
    ];
    assert_eq!(catalog.missing_files(), missing);
    assert_eq!(catalog.references("mix")[0].0, "dir/sub/p.toml");
    assert_eq!(
        message(catalog.workload("w")),
        "dir/mix.toml:2: workloads.w.apps[0].program: file \"dir/sub/p.toml\" was not found"
    );
    for (kind, path) in missing {
        let text = if kind == FileKind::CoreType { CORE.to_owned() } else { program("p") };
        catalog.add(kind, &path, &path, &text).unwrap();
    }
    assert_eq!(catalog.missing_files(), []);
    assert_eq!(catalog.machine("m").unwrap().cores(), 5);
    assert_eq!(catalog.workload("w").unwrap().apps[0].program.name, "p");
}

#[test]
fn apps_of_one_program_get_names_of_their_own() {
    let workload = "[workloads.w]\ndescription = \"mix\"\napps = [\n{ program = \"p\" },\n\
        { program = \"p\", params = { n = 5 }, start_ms = 1.5, nice = 3 },\n{ program = \"p\", name = \"p-2\" },\n]\n";
    let catalog = catalog(&[
        (FileKind::Program, "p", "p.toml", &program("p")),
        (FileKind::Workload, "mix", "mix.toml", workload),
    ]);
    let workload = catalog.workload("w").unwrap();
    let names: Vec<&str> = workload.apps.iter().map(|app| app.name.as_str()).collect();
    assert_eq!(names, ["p", "p-3", "p-2"]);
    assert_eq!((workload.apps[1].start_ns, workload.apps[1].nice), (1_500_000, 3));
    assert_eq!(workload.initial_threads(), 9);
    assert_eq!(catalog.references("w")[1], ("p".to_owned(), &[("n".to_owned(), 5.0)][..]));
    let later = workload.starting_later(&[1, 2, 3]);
    assert_eq!([1, 1_500_002, 3], [0, 1, 2].map(|app| later.apps[app].start_ns));
    assert_eq!(catalog.list(FileKind::Workload), [("w".to_owned(), "mix".to_owned())]);
}

#[test]
fn a_workload_may_be_a_program_or_a_file_with_one_workload() {
    let one = "[workloads.w]\napps = [{ program = \"p\" }]\n";
    let two = "[workloads.a]\napps = [{ program = \"p\" }]\n[workloads.b]\napps = [{ program = \"p\" }]\n";
    let catalog = catalog(&[
        (FileKind::Program, "p", "p.toml", &program("p")),
        (FileKind::Workload, "one", "one.toml", one),
        (FileKind::Workload, "two", "two.toml", two),
    ]);
    assert_eq!(catalog.workload("p").unwrap().apps.len(), 1);
    assert_eq!(catalog.workload("one").unwrap().name, "w");
    assert_eq!(
        ["one", "w", "two", "b", "p"].map(|name| catalog.references(name).len()),
        [1, 1, 0, 1, 0]
    );
    assert_eq!(catalog.workloads_of_file("two"), ["a", "b"]);
    assert_eq!(
        message(catalog.workload("two")),
        "catalog: file \"two\" defines 2 workloads (name one: a, b)"
    );
}

#[test]
fn unknown_names_get_the_nearest_known_one() {
    let catalog = catalog(&[
        (FileKind::Machine, "2B2S", "m.toml", &machine("c")),
        (FileKind::Program, "dedup", "p.toml", &program("dedup")),
    ]);
    assert_eq!(message(catalog.machine("2b2s")), "catalog: unknown machine \"2b2s\" (known: 2B2S)");
    assert_eq!(
        message(catalog.workload("dedupe")),
        "catalog: unknown workload \"dedupe\" (did you mean \"dedup\"?)"
    );
    assert_eq!(message(catalog.program("x", &[])), "catalog: unknown program \"x\" (known: dedup)");
    assert_eq!(message(catalog.core_type("x")), "catalog: unknown core type \"x\"");
    assert_eq!(
        message(catalog.machine("2B2S")),
        "m.toml:4: clusters[0].core_type: unknown core type \"c\" (none is known)"
    );
    assert_eq!(message(catalog.describe(FileKind::Profile, "x")), "catalog: unknown profile \"x\"");
}

#[test]
fn a_later_file_takes_the_place_of_an_earlier_one() {
    let mut catalog = catalog(&[(FileKind::Program, "p", "p.toml", &program("shipped"))]);
    catalog.add(FileKind::Program, "p", "mine/p.toml", &program("mine")).unwrap();
    assert_eq!(catalog.program("p", &[]).unwrap().name, "mine");
    assert_eq!(catalog.params("p").unwrap(), [("n", 2.0)]);
}

#[test]
fn the_kind_of_a_file_follows_from_its_keys() {
    let detect = |text: &str| FileKind::detect("f", text);
    assert_eq!(detect(&program("p")), Ok(FileKind::Program));
    assert_eq!(detect("\n { \"tasks\": {} }"), Ok(FileKind::Program));
    assert_eq!(detect("[workloads.w]\n"), Ok(FileKind::Workload));
    assert_eq!(detect(&machine("c")), Ok(FileKind::Machine));
    assert_eq!(detect(CORE), Ok(FileKind::CoreType));
    assert_eq!(detect("[profiles.p]\n"), Ok(FileKind::Profile));
    assert_eq!(
        message(detect("a = 1\n")),
        "f:1: describes no program, workload, machine, core type or profile \
         (it has none of the keys threads, workloads, clusters, pipeline, profiles)"
    );
    assert!(message(detect("a =\n")).starts_with("f:1: not valid TOML"));
}

#[test]
fn many_objects_of_a_kind_are_one_line() {
    let mutexes: String = (0..9).map(|number| format!("[mutexes.m{number}x]\n")).collect();
    let text = format!(
        "name = \"p\"\ndescription = \"d\"\n[mutexes.all]\ncount = 2\n{mutexes}[queues.q]\ncapacity = 4\n\
        [[threads]]\nname = \"w\"\nbody = [{{ push = \"q\" }}, {{ close = \"q\" }}]\n\
        [[threads]]\nname = \"c\"\nbody = [{{ each = \"q\", body = [] }}]\n"
    );
    let catalog = catalog(&[(FileKind::Program, "p", "p.toml", &text)]);
    assert_eq!(
        catalog.describe(FileKind::Program, "p").unwrap(),
        "p: d\nthread w\nthread c\nmutex x 11: all, m0x, m1x, ...\nqueue (capacity 4, 1 producers) q\nprofiles: none"
    );
}

#[test]
fn descriptions_say_what_there_is() {
    let text = "name = \"p\"\ndescription = \"d\"\n[params]\nn = 2\n[mutexes.m]\ncount = 3\n[queues.q]\ncapacity = 4\n\
        [[threads]]\nname = \"w\"\ncount = \"n\"\nbody = [{ sleep_us = \"index\" }, { push = \"q\" }, { close = \"q\" }]\n\
        [[threads]]\nname = \"c\"\nbody = [{ each = \"q\", body = [] }]\n";
    let catalog = catalog(&[
        (FileKind::Program, "p", "p.toml", text),
        (FileKind::Machine, "m", "m.toml", &machine("c")),
        (FileKind::CoreType, "c", "c.toml", CORE),
    ]);
    assert_eq!(
        catalog.describe(FileKind::Program, "p").unwrap(),
        "p: d\nparameter n = 2\nthread w x 2\nthread c\nmutex m x 3\nqueue (capacity 4, 2 producers) q\nprofiles: none"
    );
    let machine = catalog.describe(FileKind::Machine, "m").unwrap();
    assert!(
        machine.starts_with("m: m\ncluster big: cores 0-1, c, class 1, L2 2048 KiB\n"),
        "{machine}"
    );
    assert!(
        catalog
            .describe(FileKind::CoreType, "c")
            .unwrap()
            .contains("3-wide, out of order, window 60")
    );
    let workload = catalog.describe(FileKind::Workload, "p").unwrap();
    assert_eq!(workload, "p: d\napp p: p, 3 threads at the start\nthreads at the start: 3");
}

#[test]
fn low_classes_that_contradict_speeds_are_refused() {
    let swapped = machine("c").replace("class = 1", "class = X").replace("class = 0", "class = 1");
    let files = |text: &str| {
        let files =
            [(FileKind::Machine, "m", "m.toml", text), (FileKind::CoreType, "c", "c.toml", CORE)];
        catalog(&files).machine("m").map(|machine| machine.clusters.len())
    };
    assert_eq!(
        message(files(&swapped.replace("class = X", "class = 0"))),
        "m.toml:14: clusters[1].class: class 1, but it is slower than \"big\" of class 0 \
         (capacity 819 against 1024) (class 0 is the slowest)"
    );
    // Equal speeds contradict no order.
    assert_eq!(files(&machine("c").replace("mhz = 800", "mhz = 1000")), Ok(2));
}

#[test]
fn handovers_have_a_range() {
    let cluster = "[[clusters]]\nname = \"a\"\ncore_type = \"generic\"\ncores = 2\nclass = 0\nopps = [{ mhz = 1000, volt = 1.0 }]\n";
    let machine = |costs: &str| {
        let text = format!("name = \"m\"\ndescription = \"d\"\n{cluster}{COSTS}{costs}\n");
        ampsched_model::parse_machine("m.toml", &text)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    assert_eq!(machine("handover_same_cluster_ns = 35\nhandover_cross_cluster_ns = 50"), Ok(()));
    let error = machine("handover_same_cluster_ns = -1").unwrap_err();
    assert!(
        error.contains("costs.handover_same_cluster_ns: -1 is out of range, 0 to 1"),
        "{error}"
    );
}
