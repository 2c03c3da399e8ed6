//! Tests of the program language: code that comes out, and messages for what is wrong.

use super::*;
use crate::{Amount, CodePtr, Dist, Object, ObjectId, ObjectKind, Op, ProfileId, TimerMode};

/// Profiles `a` and `b`.
fn library() -> ProfileLibrary {
    let table = |name: &str| {
        format!(
            "[profiles.{name}]\nuops_per_instruction = 1\ncpi_core_big = 0.5\ncpi_core_little = 1\nload = 0.2\n\
             store = 0.1\nbranch = 0.1\nfp_simd = 0\nfp_double = 0\nfp_div = 0\nint_mul_div = 0\nbranch_mpki = 1\n\
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
        ObjectKind::Pool { total: 10, chunk: 2, participants: 1 }
    );
    assert_eq!(program.objects[object("t").index()].kind, ObjectKind::Timer { shared: true });
}

#[test]
fn a_mutex_unlocked_without_lock_is_refused() {
    assert_eq!(
        error(&one_thread("[mutexes.m]", "{ unlock = \"m\" }")),
        "p.toml:4: threads[0].body[0]: mutex \"m\" is not locked by this thread here (lock it before: { lock = \"m\" })"
    );
}
