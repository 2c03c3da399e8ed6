//! The programs as task graphs: published granularities and structure.

use ampsched_model::limits::TASKS_MAX;
use ampsched_policy::{ParamInfo, ParamKind};
use ampsched_task::{Graph, PROGRAMS, TaskId, task_program};

fn graph(name: &str, params: &[(&str, f64)]) -> Graph {
    let params: Vec<_> = params.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect();
    task_program(name, &params).unwrap()
}

fn count(graph: &Graph, fits: impl Fn(&str) -> bool) -> usize {
    graph.tasks().filter(|&task| fits(graph.kind(task))).count()
}

/// Number of tasks on the longest path.
fn depth(graph: &Graph) -> usize {
    let mut depths = vec![0; graph.len()];
    for task in graph.tasks() {
        let before = graph.predecessors(task).iter().map(|from| depths[from.index()]);
        depths[task.index()] = 1 + before.max().unwrap_or(0);
    }
    depths.into_iter().max().unwrap_or(0)
}

/// Chronaki et al., JPDC 2018, section 5.3 and Table 1.
#[test]
fn published_granularities_and_ratios() {
    for (name, tasks) in [("blackscholes", 6_400), ("swaptions", 128), ("fluidanimate", 128_500)] {
        assert_eq!(graph(name, &[]).len(), tasks, "{name}");
    }
    assert_eq!(PROGRAMS.len(), 9);
    let mean = PROGRAMS.iter().map(|info| info.ratio).sum::<f64>() / 9.0;
    assert_eq!(format!("{mean:.3}"), "3.034");
    // "Above 2.5 for seven of nine."
    assert_eq!(PROGRAMS.iter().filter(|info| info.ratio > 2.5).count(), 7);
}

#[test]
fn every_program_is_documented_and_does_the_same_work() {
    assert!(PROGRAMS.is_sorted_by_key(|info| info.name));
    for info in PROGRAMS {
        let graph = graph(info.name, &[]);
        let work: f64 = graph.tasks().map(|task| graph.work(task)).sum();
        assert!((work - 100.0).abs() < 1e-6, "{}: {work}", info.name);
        assert_eq!((graph.name(), graph.ratio()), (info.name, Some(info.ratio)));
        for part in ["Structure", "Published", "Assumed"] {
            assert!(info.documentation.contains(&format!("**{part}.**")), "{}: {part}", info.name);
        }
        assert_eq!(graph, task_program(info.name, &[]).unwrap(), "the same graph every time");
    }
}

#[test]
fn barriers_join_stages() {
    let free = graph("blackscholes", &[("runs", 3.0), ("blocks", 4.0)]);
    assert_eq!((free.len(), free.link_count(), depth(&free)), (12, 8, 3));
    let joined = graph("blackscholes", &[("runs", 3.0), ("blocks", 4.0), ("barriers", 1.0)]);
    assert_eq!(count(&joined, |kind| kind == "barrier"), 2);
    assert_eq!((joined.len(), joined.link_count(), depth(&joined)), (14, 16, 5));
}

#[test]
fn fluidanimate_blocks_wait_for_their_neighbours() {
    let graph = graph("fluidanimate", &[("frames", 2.0), ("blocks", 8.0)]);
    assert_eq!(graph.len(), 2 * (1 + 8 * 8));
    let first = |kind: &str| graph.tasks().find(|&task| graph.kind(task) == kind).unwrap();
    let waits = |kind: &str, block: u32| graph.predecessors(TaskId(first(kind).0 + block)).len();
    assert_eq!([waits("densities", 0), waits("densities", 3), waits("densities", 7)], [2, 3, 2]);
    assert_eq!([waits("clear", 3), waits("initialise", 3)], [1, 1]);
    // The second frame begins when all blocks have advanced.
    let frames: Vec<TaskId> = graph.tasks().filter(|&task| graph.kind(task) == "frame").collect();
    assert_eq!(graph.predecessors(frames[1]).len(), 8);
}

#[test]
fn pipelines_are_serial_at_their_ends() {
    let ferret = graph("ferret", &[("queries", 10.0)]);
    assert_eq!((ferret.len(), ferret.link_count(), depth(&ferret)), (60, 50 + 9 + 9, 15));
    let dedup = graph("dedup", &[("chunks", 3.0), ("batches", 4.0)]);
    assert_eq!((dedup.len(), depth(&dedup)), (3 * (3 + 8), 7));
}

#[test]
fn bodytrack_filters_images_ahead_of_the_layers() {
    let small = [("frames", 4.0), ("blocks", 2.0)];
    let ahead = graph("bodytrack", &small);
    let strict = graph("bodytrack", &[small[0], small[1], ("barriers", 1.0)]);
    assert!(depth(&ahead) < depth(&strict));
    let loads: Vec<TaskId> = ahead.tasks().filter(|&task| ahead.kind(task) == "load").collect();
    assert_eq!(ahead.predecessors(loads[1]), [loads[0]]);
    let models: Vec<TaskId> = ahead.tasks().filter(|&task| ahead.kind(task) == "model").collect();
    let before = ahead.predecessors(models[1]);
    assert!(before.iter().any(|&task| ahead.kind(task) == "write"));
    assert!(before.iter().any(|&task| ahead.kind(task) == "columns"));
}

#[test]
fn wrong_names_and_values_are_refused() {
    let error_of = |name: &str, param: &str, value: f64| {
        task_program(name, &[(param.to_owned(), value)]).expect_err("refused").to_string()
    };
    assert_eq!(
        error_of("feret", "queries", 1.0),
        "unknown task program \"feret\" (did you mean \"ferret\"?)"
    );
    assert_eq!(
        error_of("ferret", "querys", 1.0),
        "task program ferret has no parameter \"querys\" (did you mean \"queries\"?)"
    );
    assert_eq!(
        error_of("ferret", "queries", 0.0),
        "task program ferret: parameter queries = 0 is not within 1 to 1000000"
    );
}

#[test]
fn low_programs_that_do_not_fit_into_memory_are_refused() {
    let greatest = |name: &str| -> Vec<(String, f64)> {
        let info = PROGRAMS.iter().find(|info| info.name == name).expect("a program");
        let most = |param: &ParamInfo| match param.kind {
            ParamKind::Number { max, .. } => max,
            _ => 0.0,
        };
        info.params.iter().map(|param| (param.name.to_owned(), most(param))).collect()
    };
    for name in ["streamcluster", "fluidanimate", "facesim"] {
        let error = task_program(name, &greatest(name)).unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "task program {name}: more than {TASKS_MAX} tasks, which is the limit (lower its parameters)"
            )
        );
    }
}
