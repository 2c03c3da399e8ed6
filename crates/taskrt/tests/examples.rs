//! The examples check their own results; here they run with little work, under several policies, and with bad input.
//!
//! `cargo test` builds the examples before it runs the tests.

use std::path::PathBuf;
use std::process::{Command, Output};

use ampsched_task::Recording;

fn example(name: &str, arguments: &[&str]) -> Output {
    let test = std::env::current_exe().unwrap();
    let program: PathBuf = test.parent().unwrap().parent().unwrap().join("examples").join(name);
    let output = Command::new(&program).args(arguments).output();
    output.unwrap_or_else(|error| panic!("{}: {error}", program.display()))
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn every_example_computes_what_one_thread_does() {
    let policies = ["fifo", "cats:steal=1", "heft", "work-stealing"];
    let sizes = [
        ("black_scholes", "20000"),
        ("cholesky", "200"),
        ("dedup", "600000"),
        ("sph", "500"),
        ("swaptions", "2"),
    ];
    for (place, (name, size)) in sizes.into_iter().enumerate() {
        let policy = policies[place % policies.len()];
        let output = example(name, &["--size", size, "--policy", policy]);
        assert!(output.status.success(), "{name} under {policy}: {}", errors(&output));
    }
}

#[test]
fn a_graph_from_a_file_is_executed_and_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let (graph, recording) = (folder.path().join("g.csv"), folder.path().join("r.csv"));
    std::fs::write(&graph, "a,1,A,\nb,1,B,a\nc,1,B,a\n").unwrap();
    let (graph, recording) = (graph.to_str().unwrap(), recording.to_str().unwrap());
    let output = example("run_graph", &[graph, "core=0", "heft", recording]);
    assert!(output.status.success(), "{}", errors(&output));
    let read = Recording::read(recording, &std::fs::read_to_string(recording).unwrap()).unwrap();
    assert_eq!((read.graph.len(), read.graph.link_count()), (3, 2));
    assert!(read.schedule.makespan_s() >= 0.003);
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("g.csv");
    let path = file.to_str().unwrap();
    for (text, message) in [
        (
            "a,1,,b\nb,1,,a\n",
            "g.csv:1: task \"a\": is part of a cycle: \"a\" -> \"b\" -> \"a\" (a task graph has no cycles)",
        ),
        ("a,1,,b\n", "g.csv:1: task \"a\": depends on task \"b\", which does not exist"),
        ("a,-1,,\n", "g.csv:1: task \"a\": work -1 is out of range, 0 to 1e18 is allowed"),
    ] {
        std::fs::write(&file, text).unwrap();
        let output = example("run_graph", &[path]);
        assert_eq!(output.status.code(), Some(2));
        let said = errors(&output);
        assert!(said.ends_with(&format!("{message}\n")) && said.lines().count() == 1, "{said}");
    }
    let output = example("sph", &["--size", "0"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(errors(&output), "sph: --size \"0\" is not a number above 0\n");
}
