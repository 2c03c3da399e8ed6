//! Tests of threads that programs fork: how many there are, and what code they get.

use super::*;

/// `main` with this body, and a group `w` of forked threads that meet at barrier `b`.
fn forking(body: &str, worker: &str) -> String {
    format!(
        "[barriers.b]\n[[threads]]\nname = \"main\"\nbody = [{body}]\n\
         [[threads]]\nname = \"w\"\ncount = 0\nbody = [{{ barrier = \"b\" }}, {worker}]\n"
    )
}

fn parties(text: &str) -> Result<u32, String> {
    program_with(text, &[]).map(|program| match program.objects[0].kind {
        ObjectKind::Barrier { parties } => parties,
        ref other => panic!("{other:?}"),
    })
}

#[test]
fn forked_threads_count_for_barriers() {
    let fork = "{ fork = \"w\", times = 3 }";
    let join = "{ join = true }";
    let looped = |times: &str, body: &str| format!("{{ loop = {times}, body = [{body}] }}");
    let unclear = Err(
        "p.toml:1: barriers.b: how many threads arrive at it depends on how often they are forked \
                       (state parties = N)"
            .to_owned(),
    );
    let random = "{ low = 1, high = 4 }";
    let cases = [
        (fork.to_owned(), Ok(3)),
        (format!("{fork}, {{ barrier = \"b\" }}"), Ok(4)),
        (format!("{fork}, {fork}, {join}"), Ok(6)),
        (format!("{fork}, {join}, {fork}, {join}"), Ok(3)),
        (format!("{fork}, {join}, {fork}, {fork}, {join}"), unclear.clone()),
        (looped("5", &format!("{fork}, {join}")), Ok(3)),
        (looped("5", fork), Ok(15)),
        (looped(random, &format!("{fork}, {join}")), Ok(3)),
        (looped(random, fork), unclear.clone()),
        (looped("5", &format!("{fork}, {join}, {fork}")), unclear),
        (looped("5", &looped("2", fork)), Ok(30)),
    ];
    for (body, expected) in cases {
        assert_eq!(parties(&forking(&body, "{ yield = true }")), expected, "{body}");
    }
}

#[test]
fn equal_children_are_forked_in_a_loop() {
    let program = program(&forking(
        "{ fork = \"w\", times = 3 }, { fork = \"w\" }, { fork = \"w\", times = 0 }",
        "",
    ));
    let expected = [
        Op::Loop { count: Amount::constant(3.0), end: CodePtr(3) },
        Op::Fork { thread: 1 },
        Op::LoopEnd { start: CodePtr(1) },
        Op::Fork { thread: 1 },
        Op::Exit,
    ];
    assert_eq!(program.code[..5], expected);
    assert_eq!((program.threads[1].count, program.initial_threads()), (0, 1));
}

#[test]
fn unequal_children_are_forked_one_by_one() {
    let body = "{ fork = \"w\", times = 2 }, { join = true }, { fork = \"w\", times = 1 }";
    let program = program(
        &forking(body, "{ compute = \"index + count\", profile = \"a\" }")
            .replace("[barriers.b]", "[barriers.b]\nparties = 1"),
    );
    let expected = [
        Op::Fork { thread: 1 },
        Op::Fork { thread: 2 },
        Op::Join,
        Op::Fork { thread: 1 },
        Op::Exit,
    ];
    assert_eq!(program.code[..5], expected);
    let names: Vec<&str> = program.threads.iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!(names, ["main", "w.0", "w.1"]);
    assert_eq!(
        program.code[9],
        Op::Compute { instructions: Amount::constant(3.0), profile: ProfileId(0) }
    );
}

#[test]
fn grandchildren_are_counted_through_their_parents() {
    let text = r#"
[queues.q]
capacity = 1
[[threads]]
name = "leaf"
count = 0
body = [{ push = "q" }, { close = "q" }]
[[threads]]
name = "middle"
count = 1
body = [{ fork = "leaf", times = "2 * count" }]
[[threads]]
name = "top"
body = [{ loop = 2, body = [{ fork = "middle", times = 3 }, { join = true }] }]
[[threads]]
name = "taker"
body = [{ each = "q", body = [] }]
"#;
    // One middle at the start and 2 x 3 forked ones, each with two leaves.
    assert_eq!(program(text).objects[0].kind, ObjectKind::Queue { capacity: 1, producers: 14 });
}
