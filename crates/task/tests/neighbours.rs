//! Task graphs as neighbours write them, and what of a graph comes back from each format.

use ampsched_task::{Format, Graph, ReadOptions, read, write};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn graph(file: &str, text: &str) -> Graph {
    let format = Format::of(file).expect("a known ending");
    read(format, file, text, &ReadOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn error_of(file: &str, text: &str) -> String {
    let format = Format::of(file).expect("a known ending");
    read(format, file, text, &ReadOptions::default()).expect_err("it is refused").to_string()
}

/// Name, kind, work, and predecessors with seconds and bytes of each task.
type Content = Vec<(String, String, f64, Vec<(String, f64, f64)>)>;

fn content(graph: &Graph) -> Content {
    let tasks = graph.tasks().map(|task| {
        let links = graph.inputs(task).zip(graph.untimed_inputs(task));
        let links = links
            .map(|((from, comm_s), (_, bytes))| (graph.task_name(from).to_owned(), comm_s, bytes));
        let (name, kind) = (graph.task_name(task).to_owned(), graph.kind(task).to_owned());
        (name, kind, graph.work(task), links.collect())
    });
    tasks.collect()
}

fn names(graph: &Graph) -> Vec<&str> {
    graph.tasks().map(|task| graph.task_name(task)).collect()
}

#[test]
fn h34_12_dot_as_other_programs_write_it_is_read() {
    let html = r##"/* nextflow */ digraph "unnamed" {
        node [work=1]; rankdir=TB;
        v0 [shape=point, label="", xlabel="Channel.fromPath"];
        v1 [label=<<B>FASTQC</B><BR/>(x &gt; 1)>];
        v0 -> v1 [label="reads"]; v1 -> {v2 v3} [color="#888888"];
        v2, v3 [shape=box]; subgraph s { v4; v5 } -> v6;
    }"##;
    let read = graph("h.dot", html);
    assert_eq!(names(&read), ["v0", "v1", "v2", "v3", "v4", "v5", "v6"]);
    assert_eq!(read.link_count(), 5);
    let list = graph("l.dot", "digraph g { node [work=1]; a -> b, c:e; b, c [kind=x]; }");
    let kinds: Vec<&str> = list.tasks().map(|task| list.kind(task)).collect();
    assert_eq!(
        (names(&list), kinds, list.link_count()),
        (vec!["a", "b", "c"], vec!["", "x", "x"], 2)
    );
    let joined =
        graph("j.dot", "digraph g { node [work=1]; \"a\" + \"b\" [kind=\"x\" /**/ + \"y\"] }");
    assert_eq!(content(&joined)[0].0, "ab");
    assert_eq!(content(&joined)[0].1, "xy");
    for wrong in ["digraph g { a [label=<<b>] }", "digraph g { a [label=\"x\" + y] }"] {
        assert!(error_of("w.dot", wrong).starts_with("w.dot:1: not valid DOT: "), "{wrong}");
    }
}

#[test]
fn h34_12_dot_of_simgrid_and_daggen_is_read() {
    let simgrid = graph(
        "s.dot",
        "digraph G { 1 [size=\"10000000129\"]; 2 [size=\"10000000131\"]; root -> 1 [size=\"-1\"]; 1 -> 2 [size=\"10001\"]; 2 -> end [size=\"-1\"]; }",
    );
    let works: Vec<f64> = content(&simgrid).iter().map(|task| task.2).collect();
    assert_eq!(names(&simgrid), ["root", "1", "2", "end"]);
    assert_eq!(works, [0.0, 10_000_000_129.0, 10_000_000_131.0, 0.0]);
    assert_eq!(content(&simgrid)[2].3, [("1".to_owned(), 0.0, 10001.0)]);
    let daggen = graph(
        "d.dot",
        "digraph G { 1 [size=\"1368709120000\", alpha=\"0.2\"]\n 1 -> 2 [size =\"75497472\"]\n 2 [size=\"100000000000000\"] }",
    );
    assert_eq!(content(&daggen)[1].2, 1e14);
    // Nobody means SimGrid where no node has a size.
    assert_eq!(
        error_of("p.dot", "digraph { a [work=1]; root -> a }"),
        "p.dot:1: task \"root\": states neither work nor costs (write \"root\" [work=SECONDS], or node [work=1] before all nodes)"
    );
    assert!(
        error_of("p.dot", "digraph { node [size=1]; a -> b [size=-2] }").contains("size -2 is not")
    );
}

#[test]
fn h34_12_csv_with_a_header_is_read_and_semicolons_are_explained() {
    let plain = graph("g.csv", "a,4,,\nb,2,,a\n");
    assert_eq!(content(&graph("g.csv", "id,work,kind,deps\na,4,,\nb,2,,a\n")), content(&plain));
    assert_eq!(
        content(&graph("g.csv", "# c\n\"id\",\"Work\",kind,deps\n\"a\",4,,\nb,\"2\",,a\n")),
        content(&plain)
    );
    assert_eq!(
        error_of("g.csv", "a;4;;\nb;2;;a\n"),
        "g.csv:1: task \"a;4;;\": has 1 fields, \"id,work,kind,dep;dep\" are needed (commas separate fields, semicolons what a task waits for)"
    );
    assert_eq!(error_of("g.csv", "\"a,4,,\n"), "g.csv:1: a quote is not closed");
}

#[test]
fn h34_12_sizes_of_data_stay_in_the_formats_that_hold_them() {
    let text = "digraph g { a [work=1]; b [work=2]; c [work=3]; a -> b [size=1000000]; b -> c [size=2.5]; a -> c }";
    let sized = graph("g.dot", text);
    assert!(sized.has_untimed_data() && !sized.has_communication());
    for file in ["o.dot", "o.json"] {
        let options = ReadOptions::default();
        let written = write(Format::of(file).unwrap(), file, &sized, &options).unwrap();
        assert_eq!(content(&graph(file, &written)), content(&sized), "{written}");
    }
}

/// Names that are hard on some format.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-cA-C]{1,3}[0-9_-]{0,3}",
        "[0-9]{1,3}",
        "[a-c\",#;' \\\\<+]{1,4}",
        any::<String>(),
    ]
}

fn config() -> ProptestConfig {
    let seed = std::env::var("FUZZ_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    ProptestConfig { rng_seed: RngSeed::Fixed(seed), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    /// A format holds names, kinds, work and sizes as they are, or says that it cannot.
    #[test]
    fn h34_09_nothing_of_a_graph_changes_in_silence(
        kinds in proptest::collection::vec(word(), 1..5),
        label in word(),
        bytes in (0..1_000_000_u32).prop_map(|quarters| f64::from(quarters) / 4.0),
    ) {
        let quoted = |word: &str| format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""));
        let name = |number: usize| quoted(&format!("{label}{number}{label}"));
        let mut text = "digraph g {\n".to_owned();
        for (number, kind) in kinds.iter().enumerate() {
            text += &format!("{} [work={number}.5, kind={}]\n", name(number), quoted(kind));
            if number > 0 {
                text += &format!("{} -> {} [size={bytes}]\n", name(number - 1), name(number));
            }
        }
        let made = graph("g.dot", &(text + "}"));
        let mut held = 0;
        for file in ["o.dot", "o.json", "o.csv"] {
            match write(Format::of(file).unwrap(), file, &made, &ReadOptions::default()) {
                Ok(written) => {
                    held += 1;
                    prop_assert_eq!(content(&graph(file, &written)), content(&made), "{}", written);
                }
                Err(error) => prop_assert!(error.to_string().starts_with(file), "{}", error),
            }
        }
        prop_assert!(held >= 1, "DOT holds everything");
    }
}
