//! No text makes the rt-app importer panic, and whatever it accepts is well-formed code.

mod cases;

use std::path::Path;
use std::sync::OnceLock;

use ampsched_model::import_rtapp;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;

/// Imports a text; errors must be one line that names the file and a line in it.
fn exercise(text: &str) {
    match import_rtapp("f.json", text) {
        Ok(import) => {
            assert_eq!(import.program.flaw(), None, "{text}");
            assert!(import.notes.iter().all(|note| !note.contains('\n')), "{:?}", import.notes);
        }
        Err(error) => {
            let line = error.line.unwrap_or(0);
            assert!((1..=text.matches('\n').count() + 1).contains(&line), "{error}\n{text}");
            let shown = error.to_string();
            assert!(shown.starts_with("f.json:") && !shown.contains('\n'), "{shown}\n{text}");
            assert!(shown.chars().count() < 1200, "{shown}");
        }
    }
}

/// The test files, well formed and malformed.
fn seeds() -> &'static [String] {
    static SEEDS: OnceLock<Vec<String>> = OnceLock::new();
    SEEDS.get_or_init(read_seeds)
}

fn read_seeds() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rtapp");
    let cases =
        ["bad.cases", "good.cases"].into_iter().flat_map(|file| cases::read(&folder.join(file)));
    cases.map(|case| case.input).collect()
}

/// Something that means something to the importer.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            "\"",
            "'",
            "/*",
            "*/",
            "//",
            "\n",
            "\\",
            "\\u",
            "-",
            "0",
            "1",
            "-1",
            "2147483647",
            "2147483648",
            "1e308",
            "1e-3",
            "4095",
            "4096",
            "true",
            "False",
            "null",
            "\u{0}",
            "ü",
            "\u{1f600}",
            "\u{feff}",
            "\u{2028}",
        ])
        .prop_map(str::to_owned),
        prop::sample::select(vec![
            "tasks",
            "global",
            "resources",
            "phases",
            "loop",
            "instance",
            "delay",
            "cpus",
            "policy",
            "priority",
            "taskgroup",
            "dl-runtime",
            "util_min",
            "nodes_membind",
            "run",
            "runtime",
            "sleep",
            "timer",
            "lock",
            "unlock",
            "wait",
            "signal",
            "broad",
            "sync",
            "barrier",
            "suspend",
            "resume",
            "mem",
            "iorun",
            "yield",
            "fork",
            "ref",
            "mutex",
            "period",
            "mode",
            "unique",
            "absolute",
            "SCHED_OTHER",
            "SCHED_FIFO",
            "duration",
            "calibration",
            "CPU0",
            "io_device",
            "mem_buffer_size",
            "exec",
            "type",
            "t",
            "",
        ])
        .prop_map(|name| format!("\"{name}\"")),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<String>(),
    ]
}

#[derive(Clone, Debug)]
enum Mutation {
    Delete(Index, usize),
    Insert(Index, String),
    Repeat(Index, usize),
    ReplaceNumber(Index, String),
    Swap(Index, Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        (any::<Index>(), 1usize..30).prop_map(|(at, span)| Mutation::Delete(at, span)),
        (any::<Index>(), word()).prop_map(|(at, word)| Mutation::Insert(at, word)),
        (any::<Index>(), 1usize..60).prop_map(|(at, span)| Mutation::Repeat(at, span)),
        (any::<Index>(), word()).prop_map(|(at, word)| Mutation::ReplaceNumber(at, word)),
        (any::<Index>(), any::<Index>()).prop_map(|(one, other)| Mutation::Swap(one, other)),
    ]
}

fn mutate(text: &str, mutation: &Mutation) -> String {
    let mut chars: Vec<char> = text.chars().chain(std::iter::once('\n')).collect();
    let length = chars.len();
    let range = |at: &Index, span: usize| at.index(length)..(at.index(length) + span).min(length);
    match mutation {
        Mutation::Delete(at, span) => drop(chars.drain(range(at, *span))),
        Mutation::Insert(at, word) => {
            let at = at.index(length);
            chars.splice(at..at, word.chars());
        }
        Mutation::Repeat(at, span) => {
            let copy: Vec<char> = chars[range(at, *span)].to_vec();
            let at = at.index(length);
            chars.splice(at..at, copy);
        }
        Mutation::ReplaceNumber(at, word) => {
            let digits: Vec<usize> =
                (0..length).filter(|index| chars[*index].is_ascii_digit()).collect();
            if !digits.is_empty() {
                let start = digits[at.index(digits.len())];
                chars.splice(start..=start, word.chars());
            }
        }
        Mutation::Swap(one, other) => chars.swap(one.index(length), other.index(length)),
    }
    chars.into_iter().collect()
}

/// Events that any thread may execute anywhere.
fn events() -> impl Strategy<Value = String> {
    let number = prop_oneof![0u32..100, Just(i32::MAX as u32)];
    let name = prop::sample::select(vec!["a", "b", "mp3.decoder"]);
    let event = prop_oneof![
        number.clone().prop_map(|us| format!("\"run\" : {us}")),
        number.clone().prop_map(|us| format!("\"runtime3\" : {us}")),
        number.clone().prop_map(|us| format!("'sleep' : {us}")),
        number.clone().prop_map(|bytes| format!("\"mem\" : {bytes}")),
        number.clone().prop_map(|bytes| format!("\"iorun\" : {bytes}")),
        name.clone().prop_map(|name| format!("\"lock\" : \"{name}\", \"run\" : 1, \"unlock\" : \"{name}\"")),
        name.clone().prop_map(|name| format!(
            "\"lock\" : \"{name}\", \"wait\" : {{ \"ref\" : \"c\", \"mutex\" : \"{name}\" }}, \"unlock\" : \"{name}\""
        )),
        name.clone().prop_map(|name| format!(
            "\"lock\" : \"{name}\", \"sync\" : {{ \"ref\" : \"c\", \"mutex\" : \"{name}\" }}, \"unlock\" : \"{name}\""
        )),
        name.clone().prop_map(|name| format!("\"sync\" : {{ \"ref\" : \"c\", \"mutex\" : \"{name}\" }}")),
        name.clone().prop_map(|name| format!("\"signal\" : \"{name}\", \"broad\" : \"c\"")),
        name.clone().prop_map(|name| format!("\"suspend\" : \"{name}\"")),
        Just("\"suspend\"".to_owned()),
        name.prop_map(|name| format!("\"resume\" : \"{name}\"")),
        Just("\"yield\" : \"\"".to_owned()),
        Just("\"fork\" : \"child\"".to_owned()),
        (prop::sample::select(vec!["unique", "uniqueB", "tick"]), number, any::<bool>()).prop_map(
            |(name, period, absolute)| {
                let mode = if absolute { ", \"mode\" : \"absolute\"" } else { "" };
                format!("\"timer\" : {{ \"ref\" : \"{name}\", \"period\" : {period}{mode} }}")
            }
        ),
    ];
    prop::collection::vec(event, 1..6).prop_map(|events| events.join(",\n"))
}

fn properties() -> impl Strategy<Value = String> {
    let cpus = prop::collection::vec(0u32..200, 1..4);
    (proptest::option::of(cpus), proptest::option::of(-20i32..20), 1u32..5).prop_map(
        |(cpus, nice, times)| {
            let cpus = cpus.map_or(String::new(), |cpus| format!("\"cpus\" : {cpus:?}, "));
            let nice = nice.map_or(String::new(), |nice| format!("\"priority\" : {nice}, "));
            format!("\"loop\" : {times}, {cpus}{nice}")
        },
    )
}

fn task() -> impl Strategy<Value = String> {
    let phase = (properties(), events())
        .prop_map(|(properties, events)| format!("{{ {properties}{events} }}"));
    let phases = prop::collection::vec(phase, 1..4).prop_map(|phases| {
        let phases: Vec<String> = phases.iter().map(|phase| format!("\"p\" : {phase}")).collect();
        format!("\"phases\" : {{ {} }}", phases.join(", "))
    });
    let body = prop_oneof![phases, events()];
    (properties(), 0u32..4, 0u32..1000, body).prop_map(|(properties, instances, delay, body)| {
        format!("{{ {properties}\"instance\" : {instances}, \"delay\" : {delay}, {body}, }}")
    })
}

/// A valid file. The task `child` forks nothing, so forks have an end.
fn valid_file() -> impl Strategy<Value = String> {
    (prop::collection::vec(task(), 1..5), 1u32..100).prop_map(|(tasks, seconds)| {
        let tasks: String = tasks.iter().map(|task| format!("\"t\" : {task},\n")).collect();
        format!(
            "{{ /* generated */ \"tasks\" : {{ {tasks} \"child\" : {{ \"instance\" : 0, \"loop\" : 1, \"run\" : 1 }} }},\n\
             \"global\" : {{ \"duration\" : {seconds}, \"io_device\" : \"disk\" }} }}"
        )
    })
}

/// The same cases in every run; `FUZZ_SEED=17 PROPTEST_CASES=20000` looks at others.
fn config() -> ProptestConfig {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    ProptestConfig {
        cases: number("PROPTEST_CASES").unwrap_or(400) as u32,
        rng_seed: RngSeed::Fixed(number("FUZZ_SEED").unwrap_or(1)),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>(), words in prop::collection::vec(word(), 0..40)) {
        exercise(&text);
        exercise(&words.join(" "));
        exercise(&format!("{{ \"tasks\" : {{ \"t\" : {{ {} }} }} }}", words.join("")));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        exercise(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn mutated_files_never_panic(seed in any::<Index>(), mutations in prop::collection::vec(mutation(), 1..6)) {
        let seeds = seeds();
        let text = &seeds[seed.index(seeds.len())];
        exercise(&mutations.iter().fold(text.clone(), |text, mutation| mutate(&text, mutation)));
    }

    #[test]
    fn valid_files_become_well_formed_code(text in valid_file()) {
        match import_rtapp("f.json", &text) {
            Ok(import) => prop_assert_eq!(import.program.flaw(), None),
            Err(error) => panic!("{error}\n{text}"),
        }
    }
}

/// Deep nesting and long lists must not exhaust the stack or the patience.
#[test]
fn monsters_are_refused_or_read_in_time() {
    let tasks = |body: String| format!("{{ \"tasks\" : {{ {body} }} }}");
    let one = |body: String| tasks(format!("\"t\" : {{ \"loop\" : 1, {body} }}"));
    let many = |count: u32, line: fn(u32) -> String| (0..count).map(line).collect::<String>();
    let monsters = [
        "{\"a\":".repeat(100_000),
        format!("{{ \"a\" : {}{} }}", "[".repeat(100_000), "]".repeat(100_000)),
        "/*".repeat(100_000),
        format!("{{ \"{}\" : 1 }}", "k".repeat(1_000_000)),
        one(many(20_000, |index| format!("\"run{index}\" : 1, "))),
        one(many(20_000, |_| "\"run\" : 1, ".to_owned())),
        one(many(20_000, |index| format!("\"lock\" : \"m{index}\", "))),
        one(format!("\"cpus\" : [{}], \"run\" : 1", "1, ".repeat(100_000))),
        one(format!(
            "\"phases\" : {{ {} }}",
            many(20_000, |_| "\"p\" : { \"loop\" : 2, \"run\" : 1 }, ".to_owned())
        )),
        tasks(many(20_000, |_| "\"t\" : { \"run\" : 1 }, ".to_owned())),
        tasks(many(20_000, |index| {
            format!("\"t{index}\" : {{ \"loop\" : 1, \"fork\" : \"t{}\" }}, ", index + 1)
        })),
        tasks(many(20_000, |index| {
            format!("\"t{index}\" : {{ \"run\" : 1, \"barrier\" : \"b{index}\" }}, ")
        })),
        tasks(many(10_000, |index| {
            format!("\"t{index}\" : {{ \"run\" : 1, \"barrier\" : \"b\" }}, ")
        })),
        tasks(format!(
            "{} \"t20000\" : {{ \"run\" : 1 }}",
            many(20_000, |index| format!(
                "\"t{index}\" : {{ \"loop\" : 1, \"fork\" : \"t{}\" }}, ",
                index + 1
            ))
        )),
    ];
    for text in monsters {
        exercise(&text);
    }
}
