//! Short texts of command lines: policies, workers, CPUs, parts of machines, rules.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use ampsched_computer::{ByHand, CpuClasses, EnergyModels, format_cpus, parse_cpus};
use ampsched_live_session::build_policy;
use ampsched_model::{FileKind, Machine};
use ampsched_policy::{
    FrequencyDomain, GOVERNORS, ParamInfo, REGISTRY, Record, Rules, Topology, Value,
    build_governor, python_key, set_rule,
};
use ampsched_task::{self as task, Workers, build_task_policy, parse_spec, task_program};
use ampsched_taskrt::Cores;

use super::{Format, one_line};
use crate::shipped::Shipped;

const MOST: usize = 200;
/// Graphs of task programs grow with their parameters up to millions of tasks, which is right but takes time.
const TASKS_MAX: f64 = 500.0;

pub static CPUS: Format = Format {
    name: "cpus",
    seeds: || {
        let all = ["0-3,8", "7,0-2,1-2", "0 1 2", "8191", "0-1;2-3;1.5", "0-3=600:38.5,1200:120"];
        all.map(str::to_owned).to_vec()
    },
    read: |text| {
        if let Ok(cpus) = parse_cpus("here", "", text) {
            assert!(cpus.iter().all(|&cpu| cpu < 8192));
            assert_eq!(parse_cpus("", "", &format_cpus(cpus.iter().copied())).as_ref(), Ok(&cpus));
        }
        let mut parts: Vec<&str> = text.split(';').collect();
        let ratios = parts.pop().and_then(|last| last.parse().ok()).into_iter().collect();
        let stated =
            ByHand { classes: parts.iter().map(|&part| part.to_owned()).collect(), ratios };
        let online: BTreeSet<usize> = (0..8).collect();
        match CpuClasses::by_hand(&stated, &online) {
            Ok(classes) => assert!(classes.classes().iter().all(|class| !class.cpus.is_empty())),
            Err(error) => one_line(&error.to_string()),
        }
        if let Err(error) = EnergyModels::stated(&[text.to_owned()]) {
            one_line(&error.to_string());
        }
    },
    most: MOST,
    share: 2,
};
pub static CORES: Format = Format {
    name: "cores",
    seeds: || {
        ["big:2.5=0-3;little=4-7", "big=2-3; little=0,1", "all=0"].map(str::to_owned).to_vec()
    },
    read: |text| match Cores::parse(text) {
        Ok(cores) => {
            let listed: BTreeSet<usize> = cores.cpus().collect();
            assert_eq!(listed.len(), cores.cpus().count());
            if let Err(error) = cores.workers() {
                one_line(&error.to_string());
            }
        }
        Err(error) => one_line(&error.to_string()),
    },
    most: MOST,
    share: 2,
};
pub static WORKERS: Format = Format {
    name: "workers",
    seeds: || ["4xbig,4xlittle", "4x10,4x4", "1x1.5", "2xlittle,1x3e2"].map(str::to_owned).to_vec(),
    read: |text| match Workers::parse(text, Some(2.0)) {
        Ok(workers) => assert!(!workers.is_empty()),
        Err(error) => one_line(&error.to_string()),
    },
    most: MOST,
    share: 2,
};
pub static MACHINE_PART: Format = Format {
    name: "machine-part",
    seeds: || {
        ["big=2", "big=2@1600:little=0", "little=4@1000", "big@600-1600:little=1@-900"]
            .map(str::to_owned)
            .to_vec()
    },
    read: |text| match board().part(&text.split(':').collect::<Vec<_>>()) {
        Ok(part) => {
            assert!(part.cores() > 0 && part.clusters.iter().all(|cluster| cluster.max_mhz() > 0));
            let _ = (Topology::new(&part), part.all_big(), part.only_little());
        }
        Err(error) => one_line(&error.to_string()),
    },
    most: MOST,
    share: 2,
};
pub static POLICY: Format = Format {
    name: "policy",
    seeds: || {
        let policies = REGISTRY.iter().map(|info| with_params(info.name, info.params));
        let governors = GOVERNORS.iter().map(|info| with_params(info.name, info.params));
        policies.chain(governors).collect()
    },
    read: |text| {
        match build_policy(text, &[]) {
            Ok(named) => {
                let _ = named.policy.rules(&Topology::new(board()));
            }
            Err(error) => one_line(&error.to_string()),
        }
        if let Ok((name, params)) = parse_spec(text) {
            let freqs_mhz = board().clusters[0].opps.iter().map(|opp| opp.mhz).collect();
            let domain = FrequencyDomain {
                freqs_mhz,
                cores: 4,
                capacity: 400,
                transition_ns: 0,
                tick_ns: 4_000_000,
            };
            build_governor(name, &params, &domain)
                .map_or_else(|error| one_line(&error.to_string()), drop);
        }
    },
    most: MOST,
    share: 4,
};
pub static TASK_POLICY: Format = Format {
    name: "task-policy",
    seeds: || task::REGISTRY.iter().map(|info| with_params(info.name, info.params)).collect(),
    read: |text| match parse_spec(text) {
        Ok((name, params)) => {
            if let Err(error) = build_task_policy(name, &params) {
                one_line(&error.to_string());
            }
        }
        Err(error) => one_line(&error),
    },
    most: MOST,
    share: 2,
};
pub static TASK_PROGRAM: Format = Format {
    name: "task-program",
    seeds: || task::PROGRAMS.iter().map(|info| with_params(info.name, info.params)).collect(),
    read: |text| {
        let Ok((name, params)) = parse_spec(text) else { return };
        if params.iter().map(|(_, value)| value.max(1.0)).product::<f64>() <= TASKS_MAX {
            match task_program(name, &params) {
                Ok(graph) => assert!(!graph.is_empty()),
                Err(error) => one_line(&error.to_string()),
            }
        }
    },
    most: MOST,
    share: 1,
};
pub static RULE: Format = Format {
    name: "rule",
    seeds: || {
        let keys = Rules::group().words.iter().map(python_key);
        keys.flat_map(|key| {
            ["1.5", "True", "never", "[1, 2.5]"].map(|value| format!("{key} = {value}"))
        })
        .collect()
    },
    read: |text| {
        let mut rules = Rules::default();
        for line in text.lines() {
            let Some((key, value)) = line.split_once('=') else { continue };
            if let Err(error) =
                set_rule(&mut rules, key.trim(), &value_of(value.trim()), value.trim())
            {
                assert!(error.len() < 3000, "{error}");
            }
        }
        let _ = format!("{rules:?}");
    },
    most: MOST,
    share: 2,
};

/// `name:key=value:...` with the defaults.
fn with_params(name: &str, params: &[ParamInfo]) -> String {
    params.iter().fold(name.to_owned(), |text, row| format!("{text}:{}={}", row.name, row.default))
}

/// A board with two clusters and many frequencies.
fn board() -> &'static Machine {
    static BOARD: OnceLock<Machine> = OnceLock::new();
    BOARD.get_or_init(|| {
        let shipped = Shipped::read(&[FileKind::Machine, FileKind::CoreType])
            .expect("what is shipped can be read");
        shipped.catalog.machine("exynos5422").expect("it is right")
    })
}

/// A value as Python would give it.
fn value_of(text: &str) -> Value {
    match text {
        "True" => Value::Flag(true),
        "False" => Value::Flag(false),
        _ => match text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
            Some(inner) => {
                Value::List(inner.split(',').map(|part| value_of(part.trim())).collect())
            }
            None => text.parse().map_or_else(|_| Value::Word(text.to_owned()), Value::Number),
        },
    }
}
