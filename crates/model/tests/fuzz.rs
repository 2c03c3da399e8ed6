//! No input makes a parser panic, and valid programs become well-formed code.

mod cases;

use std::path::{Path, PathBuf};

use ampsched_model::{Catalog, FileKind, Program};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;

fn manifest() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Texts of all TOML files in a folder.
fn texts(folder: PathBuf) -> Vec<String> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
        .unwrap_or_default();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// What to mutate: shipped files and the malformed ones of the corpus, by kind.
fn seeds() -> Vec<(FileKind, String)> {
    let mut seeds = Vec::new();
    for (kind, folder) in FileKind::FOLDERS {
        let shipped = texts(manifest().join("../../python/ampsched/data").join(folder));
        let malformed =
            cases::read(&manifest().join("tests/corpus").join(folder).with_extension("cases"));
        let malformed = malformed.into_iter().map(|case| case.input);
        seeds.extend(shipped.into_iter().chain(malformed).map(|text| (kind, text)));
    }
    seeds
}

/// Core types, profiles and a program that inputs may refer to.
fn base() -> Catalog {
    let mut catalog = Catalog::new();
    let core_types = texts(manifest().join("../../python/ampsched/data/core_types"));
    catalog.add(FileKind::CoreType, "cortex-a53", "c.toml", &core_types[0]).unwrap();
    let corpus = manifest().join("tests/corpus/base");
    let read = |name: &str| std::fs::read_to_string(corpus.join(name)).unwrap();
    catalog.add(FileKind::Profile, "profiles", "profiles.toml", &read("profiles.toml")).unwrap();
    catalog.add(FileKind::Program, "program", "program.toml", &read("program.toml")).unwrap();
    catalog
}

/// Parses a text as a file of the kind and asks for all that it defines. Errors must be one line.
fn exercise(base: &Catalog, kind: FileKind, text: &str) {
    let mut catalog = base.clone();
    let _ = FileKind::detect("input", text);
    let mut outcome = catalog.add(kind, "input", "input.toml", text);
    if outcome.is_ok() {
        outcome = match kind {
            FileKind::Machine => catalog.machine("input").map(drop),
            FileKind::Program => catalog.program("input", &[]).map(|program| check(&program)),
            FileKind::Workload => catalog.workload("input").map(drop),
            FileKind::CoreType | FileKind::Profile => Ok(()),
        };
        for (name, _) in catalog.list(kind) {
            let _ = catalog.describe(kind, &name);
        }
        catalog.missing_files();
    }
    if let Err(error) = outcome {
        let message = error.to_string();
        assert!(!message.contains('\n') && message.len() < 3000, "{message}");
    }
}

fn check(program: &Program) {
    assert_eq!(program.flaw(), None);
    for op in &program.code {
        let text = format!("{op:?}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}

/// Words that a mutation may insert.
fn word() -> impl Strategy<Value = String> {
    let words = [
        "0",
        "-1",
        "1e999",
        "nan",
        "inf",
        "-inf",
        "1e18",
        "9223372036854775807",
        "0x7fffffffffffffff",
        "3.5",
        "true",
        "\"\"",
        "\"n\"",
        "\"index\"",
        "\"forever\"",
        "\"(((\"",
        "[]",
        "{}",
        "[[",
        "]]",
        "{ ",
        " }",
        ",",
        "=",
        "\n",
        "\"\"\"",
        "'",
        "#",
        "[threads]",
        "[[threads]]",
        "[params]\nn = 1\n",
        "1979-05-27",
        "\u{0}",
        "\u{feff}",
        "é",
        "{ loop = 2, body = [",
        "{ lock = \"m\" },",
        "{ fork = \"t\" },",
        "a.b.c = 1\n",
    ];
    prop_oneof![proptest::sample::select(words.to_vec()).prop_map(str::to_owned), any::<String>()]
}

/// A change of a text.
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
        (any::<Index>(), 1..40usize).prop_map(|(at, length)| Mutation::Delete(at, length)),
        (any::<Index>(), word()).prop_map(|(at, word)| Mutation::Insert(at, word)),
        (any::<Index>(), 1..200usize).prop_map(|(at, length)| Mutation::Repeat(at, length)),
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

/// A step that any thread may execute, as TOML; `depth` further levels of bodies may follow.
fn step(depth: u32) -> BoxedStrategy<String> {
    let amount = prop_oneof![
        (0u32..1_000_000).prop_map(|number| number.to_string()),
        Just("\"n * 10 + 1\"".to_owned()),
        Just("\"max(1, index) / count\"".to_owned()),
        (1u32..1000, 0u32..300)
            .prop_map(|(mean, cv)| format!("{{ mean = {mean}, cv = {} }}", f64::from(cv) / 100.0)),
        (0u32..100, 0u32..100)
            .prop_map(|(low, more)| format!("{{ low = {low}, high = {} }}", low + more)),
        proptest::collection::vec(0u32..1000, 2..6).prop_map(|mut points| {
            points.sort_unstable();
            format!("{{ quantiles = {points:?}, scale = \"n\" }}")
        }),
    ];
    let simple = prop_oneof![
        amount.clone().prop_map(|amount| format!("{{ compute = {amount}, profile = \"fft\" }}")),
        amount.clone().prop_map(|amount| format!("{{ run_us = {amount}, profile = \"radix\" }}")),
        amount.clone().prop_map(|amount| format!("{{ occupy_us = {amount}, profile = \"fft\" }}")),
        amount.clone().prop_map(|amount| format!("{{ sleep_us = {amount} }}")),
        amount.clone().prop_map(|amount| format!("{{ io_us = {amount}, device = \"d\" }}")),
        Just("{ barrier = \"b\" }".to_owned()),
        Just("{ sem_post = \"s\" }, { sem_wait = \"s\" }".to_owned()),
        Just("{ push = \"q\" }".to_owned()),
        Just("{ timer_us = 5, timer = \"t\" }".to_owned()),
        Just("{ yield = true }".to_owned()),
        Just("{ set_nice = \"index - 3\" }, { set_cores = [0, \"index\"] }".to_owned()),
        Just("{ fork = \"child\", times = \"n\" }, { join = true }".to_owned()),
        Just("{ signal = \"c\" }, { broadcast = \"c\" }".to_owned()),
        Just(
            "{ lock = \"single\" }, { wait = \"c\", mutex = \"single\" }, { unlock = \"single\" }"
                .to_owned()
        ),
    ];
    if depth == 0 {
        return simple.boxed();
    }
    let inner = body(depth - 1);
    prop_oneof![
        3 => simple,
        1 => (amount, inner.clone()).prop_map(|(times, body)| format!("{{ loop = {times}, body = [{body}, {{ yield = true }}] }}")),
        1 => inner.clone().prop_map(|body| format!("{{ dynamic = \"p\", body = [{body}] }}")),
        1 => inner.prop_map(|body| format!("{{ lock = \"m\" }}, {{ compute = 1, profile = \"fft\" }}, {{ unlock = \"m\" }}, {{ loop = 2, body = [{body}, {{ yield = true }}] }}")),
    ]
    .boxed()
}

fn body(depth: u32) -> BoxedStrategy<String> {
    proptest::collection::vec(step(depth), 1..5).prop_map(|steps| steps.join(", ")).boxed()
}

/// A valid program: every object is declared with the numbers that cannot be counted.
fn valid_program() -> impl Strategy<Value = String> {
    let threads = proptest::collection::vec((body(3), 0u32..4), 1..4);
    (threads, 1u32..5).prop_map(|(threads, n)| {
        let mut text = format!(
            "[params]\nn = {n}\n[mutexes.m]\ncount = \"n\"\n[mutexes.single]\n[conditions.c]\n[barriers.b]\nparties = 1\n\
             [semaphores.s]\ninitial = 1\n[queues.q]\ncapacity = 3\n[pools.p]\ntotal = 9\nchunk = \"n\"\nparticipants = 1\n\
             [devices.d]\n[timers.t]\n[[threads]]\nname = \"sink\"\n\
             body = [{{ barrier = \"b\" }}, {{ sem_post = \"s\" }}, {{ signal = \"c\" }}, {{ push = \"q\" }}, \
             {{ close = \"q\" }}, {{ dynamic = \"p\", body = [] }}, {{ each = \"q\", body = [] }}, {{ fork = \"child\" }}]\n\
             [[threads]]\nname = \"child\"\ncount = 0\nbody = [{{ compute = 1, profile = \"fft\" }}]\n"
        );
        for (index, (body, count)) in threads.iter().enumerate() {
            text += &format!("[[threads]]\nname = \"t{index}\"\ncount = {}\nbody = [{body}]\n", count + 1);
        }
        text
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
    fn arbitrary_text_never_panics(text in any::<String>(), words in proptest::collection::vec(word(), 0..30)) {
        let base = base();
        for (kind, _) in FileKind::FOLDERS {
            exercise(&base, kind, &text);
            exercise(&base, kind, &words.join(" "));
        }
    }

    #[test]
    fn mutated_files_never_panic(seed in any::<Index>(), mutations in proptest::collection::vec(mutation(), 1..6)) {
        let seeds = seeds();
        let (kind, text) = &seeds[seed.index(seeds.len())];
        let mutated = mutations.iter().fold(text.clone(), |text, mutation| mutate(&text, mutation));
        exercise(&base(), *kind, &mutated);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let text = String::from_utf8_lossy(&bytes);
        let base = base();
        for (kind, _) in FileKind::FOLDERS {
            exercise(&base, kind, &text);
        }
    }

    #[test]
    fn valid_programs_become_well_formed_code(text in valid_program()) {
        let mut catalog = base();
        if let Err(error) = catalog.add(FileKind::Program, "input", "input.toml", &text) {
            panic!("{error}\n{text}");
        }
        match catalog.program("input", &[]) {
            Ok(program) => check(&program),
            Err(error) => panic!("{error}\n{text}"),
        }
    }
}

/// Deep nesting and long lists must not exhaust the stack or the patience.
#[test]
fn monsters_are_refused_or_read_in_time() {
    let base = base();
    let monsters = [
        format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000)),
        format!("a = {}", "{ a = ".repeat(100_000)),
        format!("{} = 1", ["a"; 100_000].join(".")),
        format!("[{}]\n", ["a"; 100_000].join(".")),
        "[a]\n".repeat(10_000),
        format!("[[threads]]\nname = \"t\"\nbody = [{}]\n", "{ yield = true },".repeat(100_000)),
        format!(
            "[[threads]]\nname = \"t\"\nbody = [{{ compute = \"{}\" }}]\n",
            "(".repeat(100_000)
        ),
        format!("[[threads]]\nname = \"t\"\nbody = [{{ sleep_us = \"{}1\" }}]\n", "-".repeat(1900)),
        (0..5000).map(|index| format!("[[threads]]\nname = \"t{index}\"\nbody = []\n")).collect(),
    ];
    for text in monsters {
        for (kind, _) in FileKind::FOLDERS {
            exercise(&base, kind, &text);
        }
    }
}
