//! What once broke readers of task graphs: files that blow up, data that is left out, numbers that cannot be.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ampsched_task::{
    Format, Graph, Problem, ReadOptions, Schedule, Slot, TaskId, WorkerId, Workers, gantt_svg,
    read, write,
};

fn read_with(file: &str, text: &str, bytes_per_s: Option<f64>) -> Result<Graph, String> {
    let options = ReadOptions { bytes_per_s };
    read(Format::of(file).unwrap(), file, text, &options).map_err(|error| error.to_string())
}

/// Resident memory of this process in MB, at its highest.
fn peak_mb() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() / 1024
}

/// Peaks are of the whole process, so only one test at a time looks at them.
static ALONE: Mutex<()> = Mutex::new(());

/// Whether reading takes less memory and time than a file of that size deserves.
fn is_cheap(what: impl FnOnce()) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (before_mb, start) = (peak_mb(), Instant::now());
    what();
    let (grown_mb, took) = (peak_mb() - before_mb, start.elapsed());
    assert!(grown_mb < 200, "{grown_mb} MB more");
    assert!(took < Duration::from_secs(100), "took {took:?}");
}

#[test]
fn low_defaults_of_dot_are_not_copied_to_each_node() {
    let defaults: String = (0..10_000).map(|line| format!("node [a{line}=1]\n")).collect();
    let nodes: String = (0..10_000).map(|node| format!("n{node}\n")).collect();
    let text = format!("digraph g {{\nnode [work=1]\n{defaults}{nodes}}}");
    is_cheap(|| {
        let graph = read_with("g.dot", &text, None).unwrap();
        assert_eq!(graph.len(), 10_000);
        let note = &graph.notes()[0];
        assert!(note.ends_with(" and 9984 more"), "{note}");
    });
}

#[test]
fn low_a_long_default_of_dot_is_not_copied_to_each_node() {
    let nodes: String = (0..20_000).map(|node| format!("n{node}\n")).collect();
    let text = format!("digraph g {{ node [work=1, kind={:?}]\n{nodes}}}", "x".repeat(100_000));
    is_cheap(|| assert_eq!(read_with("g.dot", &text, None).unwrap().len(), 20_000));
}

#[test]
fn low_products_of_edges_are_limited() {
    let names = |letter: char| -> String { (0..20_000).map(|n| format!(" {letter}{n}")).collect() };
    let text = format!("digraph g {{ node [work=1]\n{{{}}} -> {{{}}} }}", names('a'), names('b'));
    is_cheap(|| {
        let error = read_with("g.dot", &text, None).expect_err("refused");
        assert_eq!(error, "g.dot:2: more than 50000000 edges, which is the limit");
    });
}

#[test]
fn low_costs_of_dot_are_limited() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let text = |classes: usize, nodes: usize| {
        let costs = vec!["1"; classes].join(",");
        let nodes: String = (0..nodes).map(|node| format!("n{node}\n")).collect();
        format!("digraph g {{ node [costs=\"{costs}\"]\n{nodes}}}")
    };
    let error = read_with("g.dot", &text(20_000, 20_000), None).expect_err("refused");
    assert_eq!(error, "g.dot:2: task \"n0\": 20000 costs, at most 256");
    let error = read_with("g.dot", &text(250, 80_001), None).expect_err("refused");
    assert_eq!(error, "g.dot:80002: task \"n80000\": more than 20000000 costs together");
}

#[test]
fn low_deep_subgraphs_are_refused() {
    let nested = |depth: usize| {
        let text =
            format!("digraph g {{ node [work=1] {}a{} }}", "{".repeat(depth), "}".repeat(depth));
        read_with("g.dot", &text, None)
    };
    // The graph itself is the first level.
    let deepest = (1..100).take_while(|&depth| nested(depth).is_ok()).last();
    assert_eq!(deepest, Some(32));
    let error = nested(100_000).expect_err("refused");
    assert_eq!(error, "g.dot:1: not valid DOT: subgraphs are nested deeper than 32 levels");
}

#[test]
fn an_edge_of_a_subgraph_keeps_its_own_attributes() {
    let text = "digraph g { node [work=1]; a -> {b -> c [comm=1]} [comm=2] }";
    let graph = read_with("g.dot", text, None).unwrap();
    let mut links: Vec<String> = Vec::new();
    for task in graph.tasks() {
        for (from, comm_s) in graph.inputs(task) {
            let (from, to) = (graph.task_name(from), graph.task_name(task));
            links.push(format!("{from}{to}{comm_s}"));
        }
    }
    assert_eq!(links, ["ab2", "ac2", "bc1"]);
}

#[test]
fn m17_sizes_without_a_bandwidth_are_not_left_out_by_a_conversion() {
    let dot = "digraph g { a [work=1]; b [work=1]; a -> b [size=100] }";
    let json = r#"{"name": "g", "workflow": {"specification": {
        "tasks": [{"id": "a", "children": ["b"], "outputFiles": ["f"]}, {"id": "b", "inputFiles": ["f"]}],
        "files": [{"id": "f", "sizeInBytes": 100}]}, "execution": {"tasks": [
        {"id": "a", "runtimeInSeconds": 1}, {"id": "b", "runtimeInSeconds": 1}]}}}"#;
    for (file, text) in [("g.dot", dot), ("g.json", json)] {
        let graph = read_with(file, text, None).unwrap();
        assert_eq!(graph.notes().len(), 1, "{:?}", graph.notes());
        for (out, name) in [("o.csv", "CSV"), ("o.stg", "STG")] {
            let format = Format::of(out).unwrap();
            let error = write(format, out, &graph, &ReadOptions::default()).expect_err("refused");
            let text = format!("{out}: {name} cannot hold sizes of data, which g has (write .dot)");
            assert_eq!(error.to_string(), text);
        }
        for (out, size) in [("o.dot", "size=100"), ("o.json", "\"sizeInBytes\": 100")] {
            let format = Format::of(out).unwrap();
            let written = write(format, out, &graph, &ReadOptions::default()).unwrap();
            assert!(written.contains(size), "{written}");
        }
        let options = ReadOptions { bytes_per_s: Some(100.0) };
        let timed = read_with(file, text, options.bytes_per_s).unwrap();
        let written = write(Format::Dot, "o.dot", &timed, &options).unwrap();
        assert!(written.contains("\"a\" -> \"b\" [comm=1]"), "{written}");
    }
}

#[test]
fn low_numbers_of_cores_of_wfcommons_are_above_0() {
    let text = |task: &str, machine: &str| {
        format!(
            r#"{{"workflow": {{"specification": {{"tasks": [{{"id": "a"}}]}}, "execution": {{"tasks": [
            {{"id": "a", "runtimeInSeconds": 1, "coreCount": {task}}}],
            "machines": [{{"nodeName": "m", "cpu": {{"coreCount": {machine}}}}}]}}}}}}"#
        )
    };
    assert!(read_with("w.json", &text("1", "48"), None).is_ok());
    assert!(read_with("w.json", &text("null", "48"), None).is_ok());
    for wrong in ["-4", "0", "\"two\""] {
        assert_eq!(
            read_with("w.json", &text(wrong, "48"), None).unwrap_err(),
            format!("w.json: task \"a\": {wrong} cores, a number above 0 is needed")
        );
        assert_eq!(
            read_with("w.json", &text("1", wrong), None).unwrap_err(),
            format!("w.json: machines: {wrong} cores, a number above 0 is needed")
        );
    }
    let old = r#"{"workflow": {"jobs": [{"name": "a", "runtime": 1, "cores": -2}]}}"#;
    assert_eq!(
        read_with("w.json", old, None).unwrap_err(),
        "w.json: task \"a\": -2 cores, a number above 0 is needed"
    );
}

#[test]
fn low_files_of_wfcommons_are_compared_in_linear_time() {
    let count = 4_000;
    let list = |prefix: &str| -> String {
        let names: Vec<String> = (0..count).map(|n| format!("\"{prefix}{n}\"")).collect();
        names.join(",")
    };
    let first: Vec<String> = (0..count)
        .map(|n| {
            format!(r#"{{"id": "t{n}", "name": "n{n}", "runtime": 1, "outputFiles": ["f{n}"]}}"#)
        })
        .collect();
    let last = format!(
        r#"{{"id": "end", "runtime": 1, "parents": [{}], "inputFiles": [{}]}}"#,
        list("n"),
        list("f")
    );
    let text = format!(r#"{{"workflow": {{"tasks": [{},{last}]}}}}"#, first.join(","));
    is_cheap(|| assert_eq!(read_with("w.json", &text, None).unwrap().len(), count + 1));
}

#[test]
fn low_pictures_have_no_control_characters() {
    let graph = read_with("g.csv", "a\u{1b}[2J<b>,1,,\n", None).unwrap();
    let workers = Workers::parse("1x1", None).unwrap();
    let problem = Problem::new(&graph, workers).unwrap();
    let slot = Slot { task: TaskId(0), worker: WorkerId(0), start_s: 0.0, end_s: 1.0 };
    let svg = gantt_svg(&problem, &Schedule::new(vec![slot]), "t\u{7}");
    assert!(svg.contains("a\u{fffd}[2J&lt;b&gt;"), "{svg}");
    assert!(!svg.chars().any(|c| c.is_control() && c != '\n'), "{svg}");
}
