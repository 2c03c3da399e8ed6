//! Task graphs in all formats, and recordings of real runs.

use ampsched_task::{
    Bounds, Build, Format as Kind, Graph, Problem, REGISTRY, ReadOptions, Recording, Workers,
    build_task_policy, read, write,
};

use super::{Format, check_refusal, one_line};

const MOST: usize = 2000;
/// Graphs above this are read and written, but not scheduled: that is a campaign of its own.
const SCHEDULED_MAX: usize = 60;
const FORMATS: [(Kind, &str); 4] = [
    (Kind::Csv, "input.csv"),
    (Kind::Stg, "input.stg"),
    (Kind::Dot, "input.dot"),
    (Kind::WfCommons, "input.json"),
];

pub static CSV: Format = Format {
    name: "graph-csv",
    seeds: || strings(&["# c\na,1.5,IN,\nb,2,RUN,a\nc,0,OUT,a;b\n", "x,1e3,,\ny,0,k,x\n"]),
    read: |text| read_graph(Kind::Csv, "input.csv", text),
    most: MOST,
    share: 4,
};
pub static STG: Format = Format {
    name: "graph-stg",
    seeds: || {
        strings(&[
            "2\n0 0 0\n1 3 1 0\n2 4 1 0\n3 0 2 1 2\n# end\n",
            "1\n0 0 0\n1 5 1 0 7\n2 0 1 1 3\n",
        ])
    },
    read: |text| read_graph(Kind::Stg, "input.stg", text),
    most: MOST,
    share: 3,
};
pub static DOT: Format = Format {
    name: "graph-dot",
    seeds: || {
        strings(&[
            "digraph g { node [work=2]; a -> b [comm=1]; b -> {c d}; subgraph s { x; y } a -> x /* c */; \"q r\" [kind=k]; }",
            include_str!("../../../../crates/sim/tests/task_graphs/arabnejad.dot"),
            include_str!("../../../../crates/sim/tests/task_graphs/topcuoglu.dot"),
        ])
    },
    read: |text| read_graph(Kind::Dot, "input.dot", text),
    most: MOST,
    share: 6,
};
pub static WFCOMMONS: Format = Format {
    name: "graph-wfcommons",
    seeds: || {
        strings(&[
            r#"{"name":"w","schemaVersion":"1.5","workflow":{"specification":{"tasks":[{"name":"a","id":"a","children":["b"],"parents":[],"outputFiles":["f"]},{"name":"b","id":"b","parents":["a"],"children":[],"inputFiles":["f"]}],"files":[{"id":"f","sizeInBytes":100}]},"execution":{"tasks":[{"id":"a","runtimeInSeconds":1.5,"coreCount":1},{"id":"b","runtimeInSeconds":2}]}}}"#,
            r#"{"name":"o","schemaVersion":"1.3","workflow":{"tasks":[{"name":"a","type":"compute","runtime":3,"parents":[],"children":["b"],"files":[{"name":"f","link":"output","size":7}],"cores":2},{"name":"b","type":"compute","runtimeInSeconds":4,"parents":["a"],"children":[]}]}}"#,
        ])
    },
    read: |text| read_graph(Kind::WfCommons, "input.json", text),
    most: MOST,
    share: 5,
};
pub static RECORDING: Format = Format {
    name: "recording",
    seeds: || {
        let graph = read(Kind::Csv, "s.csv", "a,1,k,\nb,2,k,a\nc,1,,a\n", &ReadOptions::default())
            .expect("a graph");
        let workers = Workers::parse("2x2,1x1", None).expect("workers");
        let problem = Problem::new(&graph, workers.clone()).expect("a problem");
        let Ok((Build::OffLine(make), params)) = build_task_policy("heft", &[]) else {
            unreachable!("heft is off-line")
        };
        let schedule = make(&params, &problem);
        vec![Recording { graph: graph.clone(), workers, schedule }.write()]
    },
    read: |text| match Recording::read("input.csv", text) {
        Ok(recording) => {
            let written = recording.write();
            let again = Recording::read("input.csv", &written)
                .unwrap_or_else(|error| panic!("{error}\n{written}"));
            assert_eq!(again.graph.len(), recording.graph.len());
        }
        Err(error) => one_line(&error.to_string()),
    },
    most: MOST,
    share: 4,
};

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// Reads a text; what is read is written in all formats that can hold it, and scheduled.
fn read_graph(kind: Kind, file: &str, text: &str) {
    let options = ReadOptions { bytes_per_s: Some(100.0) };
    let graph = match read(kind, file, text, &options) {
        Ok(graph) => graph,
        Err(error) => return check_refusal(file, &error.to_string()),
    };
    for (kind, file) in FORMATS {
        let Ok(written) = write(kind, file, &graph, &options) else { continue };
        let again = read(kind, file, &written, &options)
            .unwrap_or_else(|error| panic!("{error}\n{written}"));
        assert_eq!((again.len(), again.link_count()), (graph.len(), graph.link_count()), "{file}");
    }
    if graph.len() <= SCHEDULED_MAX {
        schedule(&graph);
    }
}

fn schedule(graph: &Graph) {
    let classes = graph.cost_columns().max(1);
    let workers = Workers::parse(&vec!["2x1"; classes].join(","), None).expect("workers");
    let problem = Problem::new(graph, workers).expect("as many classes as columns");
    let lower_s = Bounds::of(&problem).lower_s();
    // One of them: which, the graph decides, so that a text always does the same.
    let info = REGISTRY[(graph.len() + graph.link_count()) % REGISTRY.len()];
    let Ok((Build::OffLine(make), params)) = build_task_policy(info.name, &[]) else { return };
    let schedule = make(&params, &problem);
    assert_eq!(schedule.flaw(&problem), None, "{}", info.name);
    assert!(schedule.makespan_s() >= lower_s * (1.0 - 1e-12), "{}", info.name);
}
