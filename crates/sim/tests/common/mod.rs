//! A small host for engine tests: machines whose cores differ by exactly a ratio, free of costs.
#![allow(dead_code)]

use std::num::NonZeroU32;

use ampsched_model::{
    App, Catalog, ClassId, Cluster, ClusterPower, CoreId, CoreParams, Costs, FileKind, KernelView,
    Machine, Opp, Pipeline, Profile, ProfileLibrary, Program, Workload, parse_program,
};
use ampsched_policy::build_policy;
use ampsched_sim::{Options, Outcome, SimError, simulate};

pub fn ns(ms: f64) -> u64 {
    (ms * 1e6) as u64
}

/// A machine and how to run on it.
pub struct Host {
    pub machine: Machine,
    pub options: Options,
}

impl Host {
    pub fn symmetric(cores: usize) -> Self {
        Self::unequal(cores, 0, 1.0)
    }

    /// Big cores first; a big core is `ratio` times as fast as a little one.
    pub fn unequal(big: usize, little: usize, ratio: f64) -> Self {
        let mut clusters = vec![cluster("big", u8::from(little > 0), 0..big, 2000)];
        if little > 0 {
            clusters.push(cluster("little", 0, big..big + little, (2000.0 / ratio).round() as u32));
        }
        let machine = Machine {
            name: "test".into(),
            description: String::new(),
            clusters,
            costs: Costs::default(),
            kernel_view: KernelView::default(),
            thermal: None,
            board: ampsched_model::BoardPower::default(),
            reference: None,
            memory: None,
        };
        Self { machine, options: Options { check: true, ..Options::default() } }
    }

    pub fn with_seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    pub fn with_repetitions(mut self, repetitions: u32) -> Self {
        self.options.repetitions = NonZeroU32::new(repetitions);
        self
    }

    pub fn with_limit(mut self, limit_ns: u64) -> Self {
        self.options.limit_ns = limit_ns;
        self
    }

    pub fn try_run(&self, program: &str, policy: &str) -> Result<Outcome, SimError> {
        self.try_run_mix(&[program], policy)
    }

    /// Programs together, called `p`, `p2`, ...
    pub fn try_run_mix(&self, programs: &[&str], policy: &str) -> Result<Outcome, SimError> {
        let (name, params) = split_policy(policy);
        simulate(
            &self.machine,
            &workload(programs),
            name,
            build_policy(name, &params).unwrap(),
            &self.options,
        )
    }

    pub fn run(&self, program: &str, policy: &str) -> Outcome {
        self.run_mix(&[program], policy)
    }

    pub fn run_mix(&self, programs: &[&str], policy: &str) -> Outcome {
        self.try_run_mix(programs, policy).unwrap_or_else(|error| panic!("{policy}: {error}"))
    }
}

/// `name:param=value:...` as on the command line.
pub fn split_policy(text: &str) -> (&str, Vec<(String, f64)>) {
    let mut parts = text.split(':');
    let name = parts.next().unwrap();
    let params = parts.map(|part| part.split_once('=').unwrap());
    let number = |key: &str, value: &str| {
        let named = ampsched_policy::named_value(name, key, value).unwrap();
        named.unwrap_or_else(|| value.parse().unwrap())
    };
    (name, params.map(|(key, value)| (key.to_owned(), number(key, value))).collect())
}

pub fn workload(programs: &[&str]) -> Workload {
    workload_with(programs, "")
}

/// The same of programs whose regions' graphs, where they are files, have this text.
pub fn workload_with(programs: &[&str], graph: &str) -> Workload {
    let app = |(index, text): (usize, &&str)| {
        let name = if index == 0 { "p".to_owned() } else { format!("p{}", index + 1) };
        App { name, program: program(text, graph).into(), start_ns: 0, nice: 0 }
    };
    let apps = programs.iter().enumerate().map(app).collect();
    Workload { name: "w".into(), description: String::new(), apps }
}

fn program(text: &str, graph: &str) -> Program {
    let text = format!("name = 'p'\ndescription = 'test'\n{text}");
    let profiles = ProfileLibrary { profiles: vec![unit_profile()] };
    let program = parse_program("test.toml", &text).and_then(|mut template| {
        let paths: Vec<String> = template.missing_graphs().collect();
        paths.iter().for_each(|path| template.add_graph(path, &graph.into()));
        template.instantiate(&[], &profiles)
    });
    program.unwrap_or_else(|error| panic!("{error}"))
}

/// One cycle per instruction on every core: no misses, no dependences.
pub fn unit_profile() -> Profile {
    Profile { name: "unit".into(), cpi_core_big: 1.0, cpi_core_little: 1.0, ..Profile::default() }
}

fn cluster(name: &str, class: u8, cores: std::ops::Range<usize>, mhz: u32) -> Cluster {
    Cluster {
        shares_l2: false,
        sharing: ampsched_model::Sharing::NONE,
        turbo_mhz: Vec::new(),
        bounds: None,
        name: name.into(),
        class: ClassId(class),
        cores: cores.map(CoreId::from).collect(),
        core_type: "unit".into(),
        params: CoreParams {
            pipeline: Pipeline::OutOfOrder,
            width: 3.0,
            window: 128.0,
            mispredict_cycles: 0.0,
            load_cycles: 1.0,
            fp_single_cycles: 1.0,
            fp_single_latency_cycles: 1.0,
            fp_double_cycles: 1.0,
            fp_double_latency_cycles: 1.0,
            simd_cycles: 0.5,
            simd_latency_cycles: 3.0,
            l1i_kib: 32.0,
            l1d_kib: 32.0,
            l2_kib: 2048.0,
            l2_cycles: 0.0,
            memory_ns: 0.0,
            mlp_max: 1.0,
            prefetch_share: 0.0,
            cycles_factor: 1.0,
        },
        opps: vec![Opp { mhz, volt: 1.0 }],
        power: ClusterPower::default(),
        costs: None,
    }
}

/// The catalogue of everything that the Python package ships.
pub fn shipped_catalog() -> Catalog {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/ampsched/data");
    let mut catalog = Catalog::new();
    for (kind, folder) in FileKind::FOLDERS {
        let mut paths: Vec<_> = std::fs::read_dir(data.join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        for path in paths {
            let text = std::fs::read_to_string(&path).unwrap();
            let name = path.file_stem().unwrap().to_str().unwrap();
            catalog
                .add(kind, name, path.to_str().unwrap(), &text)
                .unwrap_or_else(|error| panic!("{error}"));
        }
    }
    catalog
}
