//! Tests of the program language: code that comes out, and messages for what is wrong.

mod forks;

use super::*;
use crate::{
    Amount, CodePtr, Dist, Object, ObjectId, ObjectKind, Op, ProfileId, Schedule, TimerMode,
};

/// Profiles `a` and `b`.
fn library() -> ProfileLibrary {
    let table = |name: &str| {
        format!(
            "[profiles.{name}]\nuops_per_instruction = 1\ncpi_core_big = 0.5\ncpi_core_little = 1\nload = 0.2\n\
             store = 0.1\nbranch = 0.1\nfp_simd = 0\nfp_single = 0\nfp_double = 0\nfp_div = 0\nint_mul_div = 0\nbranch_mpki = 1\n\
             l1i_mpki = 0\nl1d_mpki = 5\nl1d_write_mpki = 1\nl2_512k_mpki = 2\nl2_512k_write_mpki = 0.5\nl2_2m_mpki = 1\n\
             l2_2m_write_mpki = 0.2\nprefetchable = 0.5\nilp_40 = 2\nilp_128 = 3\nload_use_1 = 0.3\nload_use_3 = 0.6\n"
        )
    };
    crate::parse_profiles("profiles.toml", &(table("a") + &table("b"))).unwrap()
}

fn program_with(text: &str, params: &[(&str, f64)]) -> Result<Program, String> {
    let params: Vec<(String, f64)> =
        params.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    let template = parse_program("p.toml", text).map_err(|error| error.to_string())?;
    template.instantiate(&params, &library()).map_err(|error| error.to_string())
}

fn program(text: &str) -> Program {
    program_with(text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn error(text: &str) -> String {
    program_with(text, &[]).expect_err("an error")
}

/// A program of one thread with this body, after these declarations.
fn one_thread(declarations: &str, body: &str) -> String {
    format!("{declarations}\n[[threads]]\nname = \"t\"\nbody = [{body}]\n")
}

const PIPELINE: &str = r#"
name = "pipeline"
description = "Two producers, n workers."

[params]
n = 4
items = 1000

[queues.jobs]
capacity = 64

[mutexes.table]
count = 3

[barriers.phase]
parties = "n"

[[threads]]
name = "producer"
count = 2
body = [
  { loop = "items/2", body = [
    { compute = 50e3, profile = "a" },
    { push = "jobs" },
  ] },
  { close = "jobs" },
]

[[threads]]
name = "worker"
count = "n"
cores = [0, 1]
start_us = 1.5
body = [
  { each = "jobs", body = [
    { compute = { mean = 2e6, cv = 0.8 }, profile = "b" },
    { lock = "table" },
    { compute = 1e3, profile = "b" },
    { unlock = "table" },
  ] },
  { barrier = "phase" },
]
"#;

#[test]
fn the_pipeline_of_the_reference_becomes_flat_code() {
    let program = program(PIPELINE);
    let names: Vec<&str> = program.objects.iter().map(|object| object.name.as_str()).collect();
    assert_eq!(names, ["table.0", "table.1", "table.2", "phase", "jobs"]);
    assert_eq!(program.objects[3].kind, ObjectKind::Barrier { parties: 4 });
    assert_eq!(program.objects[4].kind, ObjectKind::Queue { capacity: 64, producers: 2 });
    let work = Amount { mean: 2e6, dist: Dist::LogNormal { cv: 0.8 } };
    assert_eq!(
        program.code,
        [
            Op::Loop { count: Amount::constant(500.0), end: CodePtr(4) },
            Op::Compute { instructions: Amount::constant(50e3), profile: ProfileId(0) },
            Op::Push(ObjectId(4)),
            Op::LoopEnd { start: CodePtr(1) },
            Op::Close(ObjectId(4)),
            Op::Exit,
            Op::Pop { queue: ObjectId(4), end: CodePtr(12) },
            Op::Compute { instructions: work, profile: ProfileId(1) },
            Op::LockOneOf { first: ObjectId(0), count: 3 },
            Op::Compute { instructions: Amount::constant(1e3), profile: ProfileId(1) },
            Op::UnlockOneOf { first: ObjectId(0), count: 3 },
            Op::ItemEnd { again: CodePtr(6) },
            Op::Barrier(ObjectId(3)),
            Op::Exit,
        ]
    );
    let worker = &program.threads[1];
    assert_eq!((worker.entry, worker.count, worker.start_ns), (CodePtr(6), 4, 1500));
    assert_eq!(worker.affinity.as_ref().unwrap().len(), 2);
    assert_eq!(
        program.profiles.iter().map(|profile| profile.name.as_str()).collect::<Vec<_>>(),
        ["a", "b"]
    );
}

#[test]
fn every_step_has_its_operation() {
    let declarations = "[mutexes.m]\n[conditions.c]\n[barriers.b]\n[semaphores.s]\ninitial = 2\n[devices.d]\n[timers.t]\n\
                        shared = true\n[pools.p]\ntotal = 10\nchunk = 2\n";
    let body = r#"
      { run_us = 2, profile = "a" }, { occupy_us = { low = 1, high = 3 }, profile = "a" },
      { lock = "m" }, { wait = "c", mutex = "m" }, { unlock = "m" }, { signal = "c" }, { broadcast = "c" },
      { sync = "c", mutex = "m" }, { barrier = "b" }, { sem_wait = "s" }, { sem_post = "s" },
      { dynamic = "p", body = [{ yield = true }] }, { sleep_us = { mean = 5, dist = "exponential" } },
      { timer_us = 2.5, timer = "t", mode = "absolute" }, { io_us = { mean = 4, cv = 0.5, dist = "normal" }, device = "d" },
      { suspend = true }, { resume = "t" }, { set_cores = [3] }, { set_nice = -5 },
      { loop = "forever", body = [{ compute = { quantiles = [1, 2, 4], scale = 10 }, profile = "a" }] },
    "#;
    let program = program(&one_thread(declarations, body));
    let object = |name: &str| {
        ObjectId::from(
            program.objects.iter().position(|object: &Object| object.name == name).unwrap(),
        )
    };
    let (m, c, pool, profile) = (object("m"), object("c"), object("p"), ProfileId(0));
    let uniform = Amount { mean: 2000.0, dist: Dist::Uniform { low: 1000.0, high: 3000.0 } };
    let quantiles = Amount { mean: 22.5, dist: Dist::Quantiles(vec![10.0, 20.0, 40.0]) };
    let expected = [
        Op::Run { reference_ns: Amount::constant(2000.0), profile },
        Op::Occupy { cpu_ns: uniform, profile },
        Op::Lock(m),
        Op::Wait { condition: c, mutex: m },
        Op::Unlock(m),
        Op::Signal(c),
        Op::Broadcast(c),
        Op::SignalAndWait { condition: c, mutex: m },
        Op::Barrier(object("b")),
        Op::SemWait(object("s")),
        Op::SemPost(object("s")),
        Op::Take { pool, end: CodePtr(14) },
        Op::Yield,
        Op::ItemEnd { again: CodePtr(11) },
        Op::Sleep(Amount { mean: 5000.0, dist: Dist::Exponential }),
        Op::TimerWait { timer: object("t"), period_ns: 2500, mode: TimerMode::Absolute },
        Op::Io {
            device: object("d"),
            service_ns: Amount { mean: 4000.0, dist: Dist::Normal { cv: 0.5 } },
        },
        Op::Suspend,
        Op::Resume { thread: 0 },
        Op::SetAffinity([crate::CoreId(3)].into_iter().collect()),
        Op::SetNice(-5),
        Op::Loop { count: Amount::constant(u64::MAX as f64), end: CodePtr(24) },
        Op::Compute { instructions: quantiles, profile },
        Op::LoopEnd { start: CodePtr(22) },
        Op::Exit,
    ];
    assert_eq!(program.code, expected);
    assert_eq!(
        program.objects[pool.index()].kind,
        ObjectKind::Pool { total: 10, chunk: 2, participants: 1, schedule: Schedule::Dynamic }
    );
    assert_eq!(program.objects[object("t").index()].kind, ObjectKind::Timer { shared: true });
}

#[test]
fn a_region_takes_its_numbers_from_the_threads() {
    let text = "[params]\nn = 4\n[regions.r]\ngraph = \"ferret:queries=9\"\npolicy = \"cats:steal=1\"\nwork_us = \"100 * n\"\n\
                grab_us = 0.5\ncreate_us = 2\n[[threads]]\nname = \"m\"\nbody = [{ create = \"r\", profile = \"a\" }]\n\
                [[threads]]\nname = \"w\"\ncount = \"n\"\nbody = [{ tasks = \"r\", profile = \"b\" }]\n";
    let program = program(text);
    let ObjectKind::Region(region) = &program.objects[0].kind else { panic!("a region") };
    assert_eq!(
        (region.graph.as_str(), region.policy.as_str()),
        ("ferret:queries=9", "cats:steal=1")
    );
    assert_eq!((region.workers, region.is_lazy), (4, true));
    assert_eq!((region.work_ns, region.grab_ns, region.create_ns), (400_000.0, 500.0, 2000.0));
    let (first, second) = (ProfileId(0), ProfileId(1));
    let r = ObjectId(0);
    assert_eq!(program.code[0], Op::Create { region: r, profile: first });
    assert_eq!(program.code[2], Op::Tasks { region: r, profile: second });
}

#[test]
fn a_region_without_graph_creator_or_workers_is_refused() {
    let body = "{ tasks = \"r\", profile = \"a\" },";
    let error = |region: &str| error(&one_thread(&format!("[regions.r]\n{region}\n"), body));
    assert!(error("policy = \"fifo\"").contains("graph"));
    assert!(error("graph = \"g.csv\"").contains("file \"g.csv\" was not found"));
    assert!(
        error("graph = \"ferret\"\nworkers = 2")
            .contains("2 workers, but only 1 thread can work on the region")
    );
    assert!(error("graph = \"ferret\"\nwork_us = 0").contains("work_us"));
    let two = "[regions.r]\ngraph = \"ferret\"\n[[threads]]\nname = \"m\"\ncount = 2\n\
               body = [{ create = \"r\", profile = \"a\" }, { tasks = \"r\", profile = \"a\" }]\n";
    assert!(self::error(two).contains("the tasks of region \"r\" have more than one creator"));
}

#[test]
fn a_mutex_unlocked_without_lock_is_refused() {
    assert_eq!(
        error(&one_thread("[mutexes.m]", "{ unlock = \"m\" }")),
        "p.toml:4: threads[0].body[0]: mutex \"m\" is not locked by this thread here (lock it before: { lock = \"m\" })"
    );
}

#[test]
fn parameters_replace_defaults_only_where_named() {
    let program = program_with(PIPELINE, &[("n", 2.0)]).unwrap();
    assert_eq!(program.threads[1].count, 2);
    assert_eq!(program.objects[3].kind, ObjectKind::Barrier { parties: 2 });
    assert_eq!(program.code[0], Op::Loop { count: Amount::constant(500.0), end: CodePtr(4) });
    let unknown = program_with(PIPELINE, &[("m", 2.0)]).unwrap_err();
    assert_eq!(unknown, "p.toml:1: unknown parameter \"m\" (known: n, items)");
    let nan = program_with(PIPELINE, &[("n", f64::NAN)]).unwrap_err();
    assert_eq!(nan, "p.toml:1: parameter \"n\" is NaN, -1e18 to 1e18 is allowed");
    let fraction = program_with(PIPELINE, &[("n", 2.5)]).unwrap_err();
    assert_eq!(
        fraction,
        "p.toml:31: threads[1].count: 2.5 is not a whole number \
         (floor(x), ceil(x) or round(x) makes it one; with n = 2.5)"
    );
}

#[test]
fn amounts_are_rounded_to_whole_numbers() {
    let program = program(&one_thread(
        "[params]\nn = 5\n",
        "{ loop = \"n / 2\", body = [{ sleep_us = 0.0006 }] }, { compute = { mean = 2.6, cv = 0 }, profile = \"a\" }",
    ));
    assert_eq!(program.code[0], Op::Loop { count: Amount::constant(3.0), end: CodePtr(3) });
    assert_eq!(program.code[1], Op::Sleep(Amount::constant(1.0)));
    let compute = Op::Compute { instructions: Amount::constant(3.0), profile: ProfileId(0) };
    assert_eq!(program.code[3], compute);
}

#[test]
fn instances_that_differ_get_their_own_code() {
    let text = r#"
[[threads]]
name = "w"
count = 3
cores = ["index"]
nice = "index - 1"
start_us = "10 * index"
body = [{ compute = "100 * (index + 1) / count", profile = "a" }, { resume = "w" }]
"#;
    let program = program(text);
    let names: Vec<&str> = program.threads.iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!(names, ["w.0", "w.1", "w.2"]);
    let last = &program.threads[2];
    assert_eq!((last.count, last.nice, last.start_ns, last.entry), (1, 1, 20_000, CodePtr(10)));
    assert!(last.affinity.as_ref().unwrap().contains(crate::CoreId(2)));
    let work = |thread: usize| match &program.code[program.threads[thread].entry.index()] {
        Op::Compute { instructions, .. } => instructions.mean,
        other => panic!("{other:?}"),
    };
    assert_eq!([work(0), work(1), work(2)], [33.0, 67.0, 100.0]);
    let resumed: Vec<&Op> = program.code[11..14].iter().collect();
    assert_eq!(
        resumed,
        [&Op::Resume { thread: 0 }, &Op::Resume { thread: 1 }, &Op::Resume { thread: 2 }]
    );
}

#[test]
fn count_alone_does_not_split_a_group() {
    let text = "[[threads]]\nname = \"w\"\ncount = 4\nbody = [{ compute = \"100 / count\", profile = \"a\" }]\n";
    let program = program(text);
    assert_eq!((program.threads.len(), program.threads[0].count, program.code.len()), (1, 4, 2));
}

#[test]
fn stated_numbers_of_threads_win() {
    let text = "[queues.q]\ncapacity = 1\nproducers = 1\n[pools.p]\ntotal = 5\nparticipants = 1\n[barriers.b]\nparties = 1\n\
                [[threads]]\nname = \"t\"\ncount = 2\nbody = [{ push = \"q\" }, { close = \"q\" }, { barrier = \"b\" },\n\
                { dynamic = \"p\", body = [] }, { each = \"q\", body = [] }]\n";
    let kinds: Vec<ObjectKind> =
        program(text).objects.into_iter().map(|object| object.kind).collect();
    let expected = [
        ObjectKind::Barrier { parties: 1 },
        ObjectKind::Queue { capacity: 1, producers: 1 },
        ObjectKind::Pool { total: 5, chunk: 1, participants: 1, schedule: Schedule::Dynamic },
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn a_server_without_end_needs_no_close() {
    let text = "[queues.q]\ncapacity = 1\n[[threads]]\nname = \"p\"\nbody = [{ loop = \"forever\", body = [{ push = \"q\" }] }]\n\
                [[threads]]\nname = \"c\"\nbody = [{ each = \"q\", body = [{ compute = 1, profile = \"a\" }] }]\n";
    assert_eq!(program(text).objects[0].kind, ObjectKind::Queue { capacity: 1, producers: 0 });
}

#[test]
fn mutexes_may_be_released_inside_a_loop_that_takes_them_again() {
    let body = "{ lock = \"m\" }, { loop = 3, body = [{ unlock = \"m\" }, { yield = true }, { lock = \"m\" }] }, { unlock = \"m\" }";
    assert_eq!(program(&one_thread("[mutexes.m]", body)).code.len(), 8);
}

#[test]
fn own_profiles_come_first_and_may_be_like_others() {
    let text = one_thread(
        "[profiles.a]\nlike = \"b\"\nratio = 2.4\n",
        "{ compute = 1, profile = \"a\" }, { compute = 1, profile = \"b\" }, { compute = 2, profile = \"a\" }",
    );
    let program = program(&text);
    let profiles: Vec<_> = program
        .profiles
        .iter()
        .map(|profile| (profile.name.as_str(), profile.measured_ratio))
        .collect();
    assert_eq!(profiles, [("a", Some(2.4)), ("b", None)]);
    assert_eq!(program.profiles[0].l1d_mpki, program.profiles[1].l1d_mpki);
}

#[test]
fn an_own_profile_may_have_more_or_fewer_misses_than_another() {
    let text = one_thread(
        "[params]\nk = 3\n[profiles.more]\nlike = \"b\"\nmisses = \"k\"\n[profiles.both]\nlike = \"b\"\nmisses = 0.5\nratio = 2\n",
        "{ compute = 1, profile = \"more\" }, { compute = 1, profile = \"both\" }, { compute = 1, profile = \"b\" }",
    );
    let template = parse_program("p.toml", &text).unwrap();
    let [more, both, base] = &template.instantiate(&[], &library()).unwrap().profiles[..] else {
        panic!("three profiles")
    };
    assert!(base.l1d_mpki > 0.0 && base.l2_2m_write_mpki > 0.0);
    assert_eq!(more.l1d_mpki, 3.0 * base.l1d_mpki);
    assert_eq!(more.l2_2m_write_mpki, 3.0 * base.l2_2m_write_mpki);
    assert_eq!((more.l1i_mpki, more.branch_mpki), (base.l1i_mpki, base.branch_mpki));
    assert_eq!((more.measured_ratio, both.measured_ratio), (None, Some(2.0)));
    assert_eq!(both.l2_512k_mpki, 0.5 * base.l2_512k_mpki);
    let error = template.instantiate(&[("k".into(), 900.0)], &library()).unwrap_err().to_string();
    assert!(error.contains("profiles.more.misses: 900 times 5 misses per 1,000"), "{error}");
}

#[test]
fn an_own_profile_may_take_more_cycles_than_another() {
    let text = one_thread(
        "[params]\nc = 3\n[profiles.slow]\nlike = \"b\"\ncycles = \"c\"\n",
        "{ compute = 1, profile = \"slow\" }",
    );
    let template = parse_program("p.toml", &text).unwrap();
    let factor = |c: f64| {
        let program = template.instantiate(&[("c".into(), c)], &library());
        program.map(|program| program.profiles[0].cycles_factor)
    };
    assert_eq!(factor(3.0), Ok(Some(3.0)));
    let error = factor(0.0).unwrap_err().to_string();
    assert!(error.contains("profiles.slow.cycles: 0 is out of range, 0.01 to 1000"), "{error}");
}

#[test]
fn a_program_may_state_its_energy_ratio() {
    let text = |value: &str| {
        one_thread(&format!("energy_ratio = {value}\n"), "{ compute = 1, profile = \"a\" }")
    };
    assert_eq!(program(&text("1.8")).energy_ratio, Some(1.8));
    let error = parse_program("p.toml", &text("0")).unwrap_err().to_string();
    assert!(error.contains("energy_ratio: 0 is out of range, 0.001 to 1000"), "{error}");
}

#[test]
fn the_ratio_of_an_own_profile_may_depend_on_parameters() {
    let text = one_thread(
        "[params]\nmean = 2\nswing = 0.5\n[profiles.high]\nlike = \"a\"\nratio = \"mean + swing\"\n",
        "{ compute = 1, profile = \"high\" }",
    );
    let template = parse_program("p.toml", &text).unwrap();
    let ratio = |params: &[(&str, f64)]| {
        let params: Vec<_> = params.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        template.instantiate(&params, &library()).map(|p| p.profiles[0].measured_ratio)
    };
    assert_eq!(ratio(&[]), Ok(Some(2.5)));
    assert_eq!(ratio(&[("mean", 3.0)]), Ok(Some(3.5)));
    let error = ratio(&[("mean", 60.0)]).unwrap_err().to_string();
    assert!(error.contains("profiles.high.ratio: 60.5 is out of range, 0.05 to 50"), "{error}");
}

#[test]
fn name_duration_and_source_are_kept() {
    let text = "duration_ms = 1.5\nsource = \"paper\"\ndescription = \"d\"\n".to_owned()
        + &one_thread("", "");
    let template = parse_program("dir/mine.toml", &text).unwrap();
    assert_eq!(
        (template.name(), template.source(), template.description()),
        ("mine", "paper", "d")
    );
    assert_eq!(template.instantiate(&[], &library()).unwrap().duration_ns, Some(1_500_000));
}

#[test]
fn devices_have_a_depth_and_a_latency() {
    let with = |keys: &str, params: &[(&str, f64)]| {
        let declarations = format!("[params]\nqd = 4\n[devices.d]\n{keys}\n");
        program_with(&one_thread(&declarations, "{ io_us = 1, device = \"d\" }"), params)
            .map(|program| program.objects[0].kind.clone())
    };
    let device = |depth, latency_ns| Ok(ObjectKind::Device { depth, latency_ns });
    assert_eq!(with("", &[]), device(1, 0));
    assert_eq!(with("depth = \"qd\"\nlatency_us = 1.5", &[]), device(4, 1500));
    let error = with("depth = \"qd\"", &[("qd", 1025.0)]).unwrap_err();
    assert!(
        error.contains("p.toml:4: devices.d.depth: 1025 is out of range, 1 to 1024"),
        "{error}"
    );
    let error = with("depth = 0", &[]).unwrap_err();
    assert!(error.contains("devices.d.depth: 0 is out of range, 1 to 1024"), "{error}");
    let error = with("latency_us = -1", &[]).unwrap_err();
    assert!(error.contains("devices.d.latency_us: -1 is out of range, 0 to 1e15"), "{error}");
    let error = with("width = 2", &[]).unwrap_err();
    assert!(error.contains("unknown key \"width\""), "{error}");
}

#[test]
fn a_window_needs_a_creator_and_a_size() {
    let with = |window: &str, body: &str| {
        let declarations = format!("[regions.r]\ngraph = \"swaptions\"\n{window}\n");
        program_with(&one_thread(&declarations, body), &[]).map(|program| {
            let ObjectKind::Region(region) = &program.objects[0].kind else { panic!() };
            region.window
        })
    };
    let works = "{ tasks = \"r\", profile = \"a\" }";
    let creates = "{ create = \"r\", profile = \"a\" }, { tasks = \"r\", profile = \"a\" }";
    assert_eq!(with("", creates), Ok(None));
    assert_eq!(with("window = 128", creates), Ok(Some(128)));
    let error = with("window = 0", creates).unwrap_err();
    assert!(error.contains("p.toml:3: regions.r.window: 0 is out of range, 1 to 1e7"), "{error}");
    let error = with("window = 9", works).unwrap_err();
    assert!(error.contains("regions.r.window: a window, but all tasks are there"), "{error}");
    assert!(error.contains("add { create = \"r\" } to a thread"), "{error}");
}

#[test]
fn an_own_profile_may_state_a_working_set() {
    let with = |keys: &str| {
        let profile = format!("[profiles.mine]\nlike = \"a\"\n{keys}\n");
        program_with(&one_thread(&profile, "{ compute = 1, profile = \"mine\" }"), &[])
            .map(|program| program.profiles[0].working_set_kib)
    };
    assert_eq!(with("ratio = 2"), Ok(None));
    assert_eq!(with("working_set_kib = 48"), Ok(Some(48.0)));
    let error = with("working_set_kib = 0").unwrap_err();
    assert!(error.contains("working_set_kib: 0 is out of range, 0.0625 to 1e9"), "{error}");
}

#[test]
fn h35_2_daemon_threads_keep_no_program_from_ending() {
    let with = |keys: &str| {
        let text = format!(
            "[[threads]]\nname = \"main\"\nbody = [{{ sleep_us = 1 }}]\n\
             [[threads]]\nname = \"watchdog\"\n{keys}\nbody = [{{ loop = \"forever\", body = [{{ sleep_us = 1 }}] }}]\n"
        );
        program(&text)
    };
    for keys in ["", "daemon = false"] {
        let program = with(keys);
        assert_eq!(program.endless_thread(), Some("watchdog"));
        assert!(program.never_ends_by_itself());
        assert!(!program.threads[1].is_daemon);
    }
    let program = with("daemon = true");
    assert_eq!(program.endless_thread(), None);
    assert!(!program.never_ends_by_itself());
    assert_eq!(
        program.threads.iter().map(|thread| thread.is_daemon).collect::<Vec<_>>(),
        [false, true]
    );
}
