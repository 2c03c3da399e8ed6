//! Formats of task graphs: what is read, what is written, and what is said about files that are wrong.

use ampsched_task::{Format, Graph, ReadOptions, TaskId, read, write};

fn read_with(file: &str, text: &str, bytes_per_s: Option<f64>) -> Result<Graph, String> {
    let options = ReadOptions { bytes_per_s };
    let format = Format::of(file).map_err(|error| error.to_string())?;
    read(format, file, text, &options).map_err(|error| error.to_string())
}

fn graph(file: &str, text: &str) -> Graph {
    read_with(file, text, None).unwrap()
}

fn error_of(file: &str, text: &str) -> String {
    read_with(file, text, None).expect_err("the file is wrong")
}

/// Tasks as `name kind work: predecessor/comm ...`, in their order.
fn lines(graph: &Graph) -> Vec<String> {
    let line = |task: TaskId| {
        let (name, kind, work) = (graph.task_name(task), graph.kind(task), graph.work(task));
        let inputs = graph.inputs(task);
        let before: Vec<String> =
            inputs.map(|(from, comm_s)| format!("{}/{comm_s}", graph.task_name(from))).collect();
        format!("{name} {kind} {work}: {}", before.join(" "))
    };
    graph.tasks().map(line).collect()
}

#[test]
fn csv_is_read_and_tasks_are_put_in_order() {
    let text = "# id,work,kind,deps\nlast,2,OUT,a; b\na,1.5,IN,\n\nb,1,,a\n";
    let graph = graph("folder/small.csv", text);
    assert_eq!(graph.name(), "small");
    assert_eq!(lines(&graph), ["a IN 1.5: ", "b  1: a/0", "last OUT 2: a/0 b/0"]);
    assert_eq!(graph.successors(TaskId(0)), [TaskId(1), TaskId(2)]);
    assert_eq!((graph.len(), graph.link_count(), graph.kinds().len()), (3, 3, 3));
}

#[test]
fn stg_is_read_with_and_without_communication() {
    let plain = "2\n0 0 0\n1 3 1 0\n2 4 1\t0\n3 0 2 1 2\n# Standard Task Graph Set\n";
    assert_eq!(
        lines(&graph("rand.stg", plain)),
        ["0  0: ", "1  3: 0/0", "2  4: 0/0", "3  0: 1/0 2/0"]
    );
    let timed = "3 # tasks\n0 2 0\n1 3 1 0 5\n2 1 2 0 7 1 0.5\n";
    assert_eq!(lines(&graph("comm.stg", timed)), ["0  2: ", "1  3: 0/5", "2  1: 0/7 1/0.5"]);
}

#[test]
fn dot_is_read_with_defaults_chains_and_groups() {
    let text = r#"
        /* a comment */ strict digraph "two words" {
            rankdir=LR; node [work=1, shape=box] edge [comm=0.5]
            a; b [work=2; kind="READ \"x\""] // another
            a -> b -> { c d } [comm=3];
            subgraph cluster_1 { node [work=7]; e; d }
            c:port -> e
        }"#;
    let graph = graph("x.gv", text);
    assert_eq!(graph.name(), "two words");
    assert_eq!(
        lines(&graph),
        ["a  1: ", "b READ \"x\" 2: a/3", "c  1: b/3", "d  1: b/3", "e  7: c/0.5"]
    );
    assert_eq!(graph.notes(), ["attributes without effect: rankdir, shape"]);
}

#[test]
fn dot_states_costs_per_class_and_sizes_in_bytes() {
    let text = "digraph { a [costs=\"1, 2.5\"]; b [costs=\"3,4\"]; a -> b [size=100] }";
    let graph = read_with("x.dot", text, Some(50.0)).unwrap();
    assert_eq!(graph.costs_s(TaskId(0)), Some([1.0, 2.5].as_slice()));
    assert_eq!(graph.inputs(TaskId(1)).collect::<Vec<_>>(), [(TaskId(0), 2.0)]);
    let graph = read_with("x.dot", text, None).unwrap();
    assert!(!graph.has_communication());
    assert_eq!(graph.notes(), ["sizes of edges take no time, as no bandwidth is given"]);
}

const WF_15: &str = r#"{ "name": "blast", "schemaVersion": "1.5", "workflow": {
  "specification": {
    "tasks": [
      { "name": "split_fasta", "id": "split_1", "parents": [], "children": ["blast_2"], "outputFiles": ["x", "y"] },
      { "name": "blastall", "id": "blast_2", "parents": ["split_1"], "children": [], "inputFiles": ["x", "z"] } ],
    "files": [ { "id": "x", "sizeInBytes": 300 }, { "id": "y", "sizeInBytes": 1 }, { "id": "z", "sizeInBytes": 1000 } ] },
  "execution": { "tasks": [
      { "id": "blast_2", "runtimeInSeconds": 12.5 }, { "id": "split_1", "runtimeInSeconds": 2 } ] } } }"#;

const WF_13: &str = r#"{ "name": "old", "workflow": { "makespan": 5, "tasks": [
      { "name": "split_01", "type": "compute", "runtime": 2, "parents": [],
        "files": [ { "link": "output", "name": "x", "size": 300 } ] },
      { "name": "blast_02", "type": "compute", "runtime": 12.5, "parents": ["split_01"],
        "files": [ { "link": "input", "name": "x", "size": 300 } ] } ] } }"#;

#[test]
fn wfcommons_is_read_in_both_layouts() {
    let new = read_with("w.json", WF_15, Some(100.0)).unwrap();
    assert_eq!(new.name(), "blast");
    assert_eq!(lines(&new), ["split_1 split_fasta 2: ", "blast_2 blastall 12.5: split_1/3"]);
    let old = read_with("w.json", WF_13, Some(100.0)).unwrap();
    assert_eq!(lines(&old), ["split_01 split 2: ", "blast_02 blast 12.5: split_01/3"]);
    let free = read_with("w.json", WF_15, None).unwrap();
    assert!(!free.has_communication());
    assert_eq!(free.notes(), ["sizes of files take no time, as no bandwidth is given"]);
}

#[test]
fn what_is_written_is_read_back() {
    let text = "digraph g { a [work=1.25, kind=IN]; b [work=2, kind=RUN]; c [work=0.1, kind=RUN]; a -> b; a -> c; b -> c }";
    let small = graph("g.dot", text);
    for file in ["g.csv", "g.dot", "g.json"] {
        let options = ReadOptions::default();
        let written = write(Format::of(file).unwrap(), file, &small, &options).unwrap();
        let again = graph(file, &written);
        assert_eq!(lines(&again), lines(&small), "{file}");
    }
    let timed = graph("g.dot", &text.replace("a -> b", "a -> b [comm=0.5]"));
    let options = ReadOptions { bytes_per_s: Some(1e9) };
    for file in ["g.dot", "g.json"] {
        let written = write(Format::of(file).unwrap(), file, &timed, &options).unwrap();
        assert_eq!(lines(&read_with(file, &written, Some(1e9)).unwrap()), lines(&timed), "{file}");
    }
    let stg = write(Format::Stg, "g.stg", &timed, &options).unwrap();
    assert_eq!(lines(&graph("g.stg", &stg)), ["0  1.25: ", "1  2: 0/0.5", "2  0.1: 0/0 1/0"]);
}

#[test]
fn what_a_format_cannot_hold_is_refused() {
    let refused = |format, file: &str, text: &str| {
        let options = ReadOptions::default();
        write(format, file, &graph("g.dot", text), &options).expect_err("refused").to_string()
    };
    let timed = "digraph g { a [work=1]; b [work=1]; a -> b [comm=1] }";
    let costly = "digraph g { a [costs=\"1,2\"] }";
    assert_eq!(
        refused(Format::Csv, "o.csv", timed),
        "o.csv: CSV cannot hold communication times, which g has (write .dot)"
    );
    assert_eq!(
        refused(Format::Stg, "o.stg", costly),
        "o.stg: STG cannot hold costs per class of workers, which g has (write .dot)"
    );
    assert_eq!(
        refused(Format::WfCommons, "o.json", timed),
        "o.json: WfFormat holds sizes of files, the graph has communication times (give a bandwidth)"
    );
    assert_eq!(
        refused(Format::Csv, "o.csv", "digraph g { \"a;b\" [work=1] }"),
        "o.csv: task \"a;b\": cannot stand in CSV, whose separators are ; blanks and line breaks (write .dot or .json)"
    );
    let sized = "digraph g { a [work=1]; b [work=1]; a -> b [size=1] }";
    assert_eq!(
        refused(Format::Stg, "o.stg", sized),
        "o.stg: STG cannot hold sizes of data, which g has (write .dot)"
    );
    assert_eq!(
        refused(Format::WfCommons, "o.json", "digraph g { a [work=1, kind=\"x_\"] }"),
        "o.json: task \"a\": its kind \"x_\" cannot stand in WfFormat: it ends in _ or - (write .dot or .csv)"
    );
}

#[test]
fn wrong_files_are_refused_with_file_line_and_task() {
    let cases = [
        (
            "g.xml",
            "",
            "g.xml: unknown format of a task graph: \".xml\" (known: .csv, .stg, .dot, .gv, .json)",
        ),
        (
            "graph",
            "",
            "graph: unknown format of a task graph: \".\" (known: .csv, .stg, .dot, .gv, .json)",
        ),
        ("g.csv", "# nothing\n", "g.csv: has no task"),
        (
            "g.csv",
            "a,1,,b\nb,1,,c\nc,1,,a\n",
            "g.csv:1: task \"a\": is part of a cycle: \"a\" -> \"c\" -> \"b\" -> \"a\" (a task graph has no cycles)",
        ),
        (
            "g.csv",
            "a,1,,a\n",
            "g.csv:1: task \"a\": is part of a cycle: \"a\" -> \"a\" (a task graph has no cycles)",
        ),
        (
            "g.csv",
            "a,1,,\nb,1,,a;x\n",
            "g.csv:2: task \"b\": depends on task \"x\", which does not exist",
        ),
        ("g.csv", "a,1,,\nb,1,,a;a\n", "g.csv:2: task \"b\": depends on task \"a\" twice"),
        ("g.csv", "a,-1,,\n", "g.csv:1: task \"a\": work -1 is out of range, 0 to 1e18 is allowed"),
        (
            "g.csv",
            "a,inf,,\n",
            "g.csv:1: task \"a\": work inf is out of range, 0 to 1e18 is allowed",
        ),
        ("g.csv", "a,much,,\n", "g.csv:1: task \"a\": work \"much\" is not a number"),
        (
            "g.csv",
            "a,1,\n",
            "g.csv:1: task \"a\": has 3 fields, \"id,work,kind,dep;dep\" are needed",
        ),
        ("g.csv", "a,1,,\na,1,,\n", "g.csv:2: task \"a\": there are two tasks of this name"),
        ("g.csv", ",1,,\n", "g.csv:1: a task has no name"),
        ("g.stg", "", "g.stg: has no task"),
        ("g.stg", "many\n", "g.stg:1: number of tasks \"many\" is not a number"),
        (
            "g.stg",
            "5\n0 1 0\n",
            "g.stg: states 5 tasks and holds 1 (two more are allowed: the dummies at start and end)",
        ),
        (
            "g.stg",
            "2\n0 1 0\n1 1 2 0\n",
            "g.stg:3: task \"1\": states 2 predecessors, 1 numbers follow instead of 2 (or twice as many, with times)",
        ),
        (
            "g.stg",
            "2\n0 1 0\n1 1 1 7\n",
            "g.stg:3: task \"1\": depends on task \"7\", which does not exist",
        ),
        (
            "g.stg",
            "2\n0 1 0\n1 1 1 0 -3\n",
            "g.stg:3: task \"1\": communication -3 is out of range, 0 to 1e18 is allowed",
        ),
        (
            "g.stg",
            "1\n0 -4 0\n",
            "g.stg:2: task \"0\": work -4 is out of range, 0 to 1e18 is allowed",
        ),
        (
            "g.dot",
            "graph { a -- b }",
            "g.dot:1: not valid DOT: is an undirected graph, a digraph is needed",
        ),
        (
            "g.dot",
            "digraph {\n a -- b }",
            "g.dot:2: not valid DOT: \"--\" belongs to undirected graphs",
        ),
        (
            "g.dot",
            "digraph { a [work=1] ",
            "g.dot:1: not valid DOT: expected \"}\", found the end of the file",
        ),
        ("g.dot", "digraph { a [work 1] }", "g.dot:1: not valid DOT: expected \"=\", found \"1\""),
        (
            "g.dot",
            "digraph { a [work=1]; a -> b }",
            "g.dot:1: task \"b\": states neither work nor costs (write \"b\" [work=SECONDS], or node [work=1] before all nodes)",
        ),
        ("g.dot", "digraph { a [work=x] }", "g.dot:1: task \"a\": work \"x\" is not a number"),
        (
            "g.dot",
            "digraph { a [work=1, costs=\"1,2\"] }",
            "g.dot:1: task \"a\": states both work and costs, one is needed",
        ),
        (
            "g.dot",
            "digraph { a [costs=\"1,2\"]; b [costs=\"1\"] }",
            "g.dot:1: task \"b\": states 1 costs, other tasks state 2",
        ),
        (
            "g.dot",
            "digraph { a [costs=\"1,-2\"] }",
            "g.dot:1: task \"a\": cost -2 is out of range, 0 to 1e18 is allowed",
        ),
        (
            "g.dot",
            "digraph { a [work=1]; b [work=1]\n a -> b [comm=-1] }",
            "g.dot:2: task \"b\": communication -1 is out of range, 0 to 1e18 is allowed",
        ),
        (
            "g.dot",
            "digraph { a [work=1]; b [work=1]\n a -> b [comm=1, size=1] }",
            "g.dot:2: task \"b\": is the end of an edge with both comm and size, one is needed",
        ),
        (
            "g.dot",
            "digraph { node [work=1] a -> b\n b -> a }",
            "g.dot:1: task \"a\": is part of a cycle: \"a\" -> \"b\" -> \"a\" (a task graph has no cycles)",
        ),
        ("g.json", "{", "g.json:1: not valid JSON: EOF while parsing an object"),
        (
            "g.json",
            "{}",
            "g.json: key \"workflow\" is missing (only WfCommons WfFormat is read from JSON)",
        ),
        (
            "g.json",
            "{\"workflow\": {}}",
            "g.json: workflow: key \"specification\" with a list of tasks is missing (WfFormat 1.5; \"tasks\" in version 1.3)",
        ),
        (
            "g.json",
            "{\"workflow\": {\"tasks\": [{\"runtime\": 1}]}}",
            "g.json: workflow.tasks[0]: key \"id\" is missing",
        ),
        (
            "g.json",
            "{\"workflow\": {\"tasks\": [{\"name\": \"a\"}]}}",
            "g.json: workflow.tasks[0]: task \"a\" has no run time (workflow.execution.tasks[].runtimeInSeconds in WfFormat 1.5)",
        ),
        (
            "g.json",
            "{\"workflow\": {\"tasks\": [{\"name\": \"a\", \"runtime\": -1}]}}",
            "g.json: task \"a\": work -1 is out of range, 0 to 1e18 is allowed",
        ),
        (
            "g.json",
            "{\"workflow\": {\"tasks\": [{\"name\": \"a\", \"runtime\": 1, \"parents\": [\"b\"]}]}}",
            "g.json: task \"a\": depends on task \"b\", which does not exist",
        ),
        (
            "g.json",
            "{\"workflow\": {\"tasks\": [{\"name\": \"a\", \"runtime\": 1, \"parents\": [\"a\"]}]}}",
            "g.json: task \"a\": is part of a cycle: \"a\" -> \"a\" (a task graph has no cycles)",
        ),
        (
            "g.json",
            "{\"workflow\": {\"tasks\": [{\"name\": \"a\", \"runtime\": 1, \"parents\": 7}]}}",
            "g.json: workflow.tasks[0]: parents is not a list",
        ),
    ];
    for (file, text, expected) in cases {
        assert_eq!(error_of(file, text), expected);
    }
}

#[test]
fn long_cycles_are_shortened() {
    let text: String = (0..50).map(|task| format!("t{task},1,,t{}\n", (task + 1) % 50)).collect();
    let error = error_of("g.csv", &text);
    assert!(error.len() < 200 && error.contains(" -> ..."), "{error}");
}
