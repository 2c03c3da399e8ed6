//! Tests of the program language: code that comes out, and messages for what is wrong.

use super::*;
use crate::{Amount, CodePtr, Dist, Object, ObjectId, ObjectKind, Op, ProfileId, TimerMode};

/// Profiles `a` and `b`.
fn library() -> ProfileLibrary {
    let table = |name: &str| {
        format!(
            "[profiles.{name}]\nuops_per_instruction = 1\ncpi_core_big = 0.5\ncpi_core_little = 1\nload = 0.2\n\
             store = 0.1\nbranch = 0.1\nfp_simd = 0\nfp_div = 0\nint_mul_div = 0\nbranch_mpki = 1\nl1i_mpki = 0\n\
             l1d_mpki = 5\nl2_512k_mpki = 2\nl2_2m_mpki = 1\nprefetchable = 0.5\nilp_128 = 3\n"
        )
    };
    crate::parse_profiles("profiles.toml", &(table("a") + &table("b"))).unwrap()
}

fn program_with(text: &str, params: &[(&str, f64)]) -> Result<Program, String> {
    let params: Vec<(String, f64)> = params.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
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
    assert_eq!(program.profiles.iter().map(|profile| profile.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}
