//! No input makes a reader panic, and what is read can be written and scheduled.

use ampsched_task::{
    Bounds, Build, Format, Graph, Problem, REGISTRY, ReadOptions, Workers, build_task_policy,
    gantt_svg, read, write,
};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;

const SEEDS: [(Format, &str, &str); 6] = [
    (Format::Csv, "f.csv", "# c\na,1.5,IN,\nb,2,RUN,a\nc,0,OUT,a;b\n"),
    (Format::Stg, "f.stg", "2\n0 0 0\n1 3 1 0\n2 4 1 0\n3 0 2 1 2\n# end\n"),
    (Format::Stg, "f.stg", "3\n0 2 0\n1 3 1 0 5\n2 1 2 0 7 1 0.5\n"),
    (
        Format::Dot,
        "f.dot",
        "digraph \"g\" { node [work=1, shape=box]; a; b [work=2, kind=K] // c\n a -> {b; subgraph x { c:p }} -> d [comm=2] /* e */ rank=same }",
    ),
    (
        Format::Dot,
        "f.dot",
        "digraph { 1 [costs=\"14,16,9\"]; 2 [costs=\"13,19,18\"]; \"3 b\" [costs=\"0,1,1\"] 1 -> 2 [size=18]; 1 -> \"3 b\" }",
    ),
    (
        Format::WfCommons,
        "f.json",
        r#"{"name":"w","workflow":{"specification":{"tasks":[{"name":"s","id":"s_1","children":["b_2"],"outputFiles":["x"]},{"id":"b_2","parents":["s_1"],"inputFiles":["x"]}],"files":[{"id":"x","sizeInBytes":300}]},"execution":{"tasks":[{"id":"b_2","runtimeInSeconds":12.5},{"id":"s_1","runtimeInSeconds":2}]}}}"#,
    ),
];

fn word() -> impl Strategy<Value = String> {
    let words = [
        "0",
        "-1",
        "-0",
        "1e999",
        "nan",
        "inf",
        "1e12",
        "18446744073709551615",
        "3.5",
        "\"",
        "\\",
        "a",
        "b",
        "->",
        "--",
        "{",
        "}",
        "[",
        "]",
        "=",
        ";",
        ",",
        ":",
        "#",
        "//",
        "/*",
        "*/",
        "\n",
        "node [work=2]",
        "subgraph",
        "null",
        "\"parents\":",
        "\u{0}",
        "\u{feff}",
        "é",
        " ",
    ];
    prop_oneof![proptest::sample::select(words.to_vec()).prop_map(str::to_owned), any::<String>()]
}

/// A change of a text: what stands in a span is replaced, or repeated elsewhere.
#[derive(Clone, Debug)]
enum Mutation {
    Replace(Index, usize, String),
    Repeat(Index, usize, Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        (any::<Index>(), 0..12usize, word())
            .prop_map(|(at, span, word)| Mutation::Replace(at, span, word)),
        (any::<Index>(), 1..60usize, any::<Index>())
            .prop_map(|(at, span, to)| Mutation::Repeat(at, span, to)),
    ]
}

fn mutate(text: &str, mutation: &Mutation) -> String {
    let mut chars: Vec<char> = text.chars().chain(['\n']).collect();
    let length = chars.len();
    let range = |at: &Index, span: usize| at.index(length)..(at.index(length) + span).min(length);
    match mutation {
        Mutation::Replace(at, span, word) => drop(chars.splice(range(at, *span), word.chars())),
        Mutation::Repeat(at, span, to) => {
            let copy: Vec<char> = chars[range(at, *span)].to_vec();
            let to = to.index(length);
            chars.splice(to..to, copy);
        }
    }
    chars.into_iter().collect()
}

/// Reads a text; what is read is written in all formats that can hold it, and scheduled off-line.
fn exercise(format: Format, file: &str, text: &str) {
    let options = ReadOptions { bytes_per_s: Some(100.0) };
    match read(format, file, text, &options) {
        Err(error) => {
            let message = error.to_string();
            assert!(message.starts_with(file) && !message.contains('\n'), "{message}");
            assert!(message.len() < 3000, "{message}");
        }
        Ok(graph) => {
            for (format, file, _) in SEEDS {
                let Ok(written) = write(format, file, &graph, &options) else { continue };
                let again = read(format, file, &written, &options)
                    .unwrap_or_else(|error| panic!("{error}\n{written}"));
                assert_eq!((again.len(), again.link_count()), (graph.len(), graph.link_count()));
            }
            schedule(&graph);
        }
    }
}

fn schedule(graph: &Graph) {
    let classes = graph.cost_columns().max(1);
    let workers = Workers::parse(&vec!["2x1"; classes].join(","), None).unwrap();
    let problem = Problem::new(graph, workers).unwrap();
    let lower_s = Bounds::of(&problem).lower_s();
    for info in REGISTRY {
        let (Build::OffLine(make), params) = build_task_policy(info.name, &[]).unwrap() else {
            continue;
        };
        let schedule = make(&params, &problem);
        assert_eq!(schedule.flaw(&problem), None, "{}", info.name);
        assert!(schedule.makespan_s() >= lower_s * (1.0 - 1e-12), "{}", info.name);
        assert!(gantt_svg(&problem, &schedule, info.name).ends_with("</svg>\n"));
    }
}

/// The seed is fixed in tests, and printed with a failing case; `make attack` goes further.
fn config() -> ProptestConfig {
    let seed = std::env::var("FUZZ_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    ProptestConfig { rng_seed: RngSeed::Fixed(seed), ..ProptestConfig::default() }
}

#[test]
fn seeds_are_valid() {
    for (format, file, text) in SEEDS {
        read(format, file, text, &ReadOptions::default()).unwrap();
        exercise(format, file, text);
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn changed_files_are_read_or_refused(
        seed in 0..SEEDS.len(),
        mutations in proptest::collection::vec(mutation(), 0..6),
    ) {
        let (format, file, text) = SEEDS[seed];
        let text = mutations.iter().fold(text.to_owned(), |text, change| mutate(&text, change));
        exercise(format, file, &text);
    }

    #[test]
    fn any_text_is_read_or_refused(seed in 0..SEEDS.len(), text in any::<String>()) {
        exercise(SEEDS[seed].0, SEEDS[seed].1, &text);
    }

    #[test]
    fn workers_are_read_or_refused(text in "[0-9x,. a-z-]{0,20}") {
        let _ = Workers::parse(&text, Some(2.0));
    }
}
