//! What a case simulates, as texts that somebody can repeat without this program.
//!
//! All cores execute one instruction per cycle of the behaviour `unit`: at 1000 MHz an instruction takes 1 ns.

use std::fmt::Write;
use std::sync::Arc;

use ampsched_model::{App, Catalog, FileKind, Machine, Ns, Workload};
use ampsched_policy::build_policy;
use ampsched_sim::{Options, Outcome, Trace, simulate_with};

/// The kind of core to which profiles refer, so that what they say holds as it is.
const CORE_TYPE: &str = "pipeline = \"out-of-order\"\nwidth = 3\nwindow = 128\nmispredict_cycles = 0\n\
    load_cycles = 4\nfp_single_cycles = 0.5\nfp_double_cycles = 0.5\nfp_single_latency_cycles = 5\n\
    fp_double_latency_cycles = 5\nl1i_kib = 32\nl1d_kib = 32\nl2_kib = 2048\nl2_cycles = 1\nmemory_ns = 1\n\
    mlp_max = 1\nprefetch_share = 0\n";

/// One cycle per instruction there (more in order), no misses.
const UNIT: &str = "[profiles.unit]\nuops_per_instruction = 1\ncpi_core_big = 1\ncpi_core_little = 4\nload = 0\n\
    store = 0\nbranch = 0\nfp_simd = 0\nfp_single = 0\nfp_double = 0\nfp_div = 0\nint_mul_div = 0\n\
    branch_mpki = 0\nl1i_mpki = 0\nl1d_mpki = 0\nl1d_write_mpki = 0\nl2_512k_mpki = 0\nl2_512k_write_mpki = 0\n\
    l2_2m_mpki = 0\nl2_2m_write_mpki = 0\nprefetchable = 0\nilp_40 = 1000\nilp_128 = 1000\nload_use_1 = 0\n\
    load_use_3 = 0\n";

/// Nothing here lasts longer.
const LIMIT_NS: Ns = 3_600_000_000_000;

/// Cores of a cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// How many.
    pub cores: u64,
    /// Frequencies in MHz, ascending.
    pub mhz: Vec<u64>,
    /// Further lines of its table.
    pub more: String,
}

impl Cluster {
    /// So many cores of one frequency in MHz.
    pub fn new(cores: u64, mhz: u64) -> Self {
        Self { cores, mhz: vec![mhz], more: String::new() }
    }

    fn top(&self) -> u64 {
        self.mhz.iter().copied().max().unwrap_or(0)
    }
}

/// A machine's file: classes are ranks of the highest frequencies; `rest` follows the clusters.
pub fn machine(clusters: &[Cluster], rest: &str) -> String {
    let mut tops: Vec<u64> = clusters.iter().map(Cluster::top).collect();
    tops.sort_unstable();
    tops.dedup();
    let mut text = String::new();
    for (number, cluster) in clusters.iter().enumerate() {
        let class = tops.iter().position(|top| *top == cluster.top()).unwrap_or(0);
        let opps: Vec<String> =
            cluster.mhz.iter().map(|mhz| format!("{{ mhz = {mhz}, volt = 1 }}")).collect();
        let _ = write!(
            text,
            "[[clusters]]\nname = \"c{number}\"\ncore_type = \"unit\"\ncores = {}\nclass = {class}\nopps = [{}]\n{}",
            cluster.cores,
            opps.join(", "),
            cluster.more
        );
    }
    text + rest
}

/// What a machine costs: nothing but what is given, as lines `key = value`.
pub fn costs(rows: &[(&str, u64)]) -> String {
    let needed = [
        "context_switch_ns",
        "migrate_same_cluster_ns",
        "migrate_cross_cluster_ns",
        "wakeup_latency_ns",
    ];
    let given = |key: &str| rows.iter().any(|row| row.0 == key);
    let zeros = needed.iter().filter(|key| !given(key)).map(|key| (*key, 0));
    let all = rows.iter().copied().chain(zeros);
    all.fold("[costs]\n".to_owned(), |text, (key, ns)| format!("{text}{key} = {ns}\n"))
}

/// A thread of a program's file; `keys` are lines.
pub fn thread(name: &str, keys: &str, body: &[String]) -> String {
    format!("[[threads]]\nname = \"{name}\"\n{keys}\nbody = [{}]\n", body.join(", "))
}

/// A step of so many instructions.
pub fn compute(instructions: u64) -> String {
    format!("{{ compute = {instructions}, profile = \"unit\" }}")
}

/// A time in ns as microseconds.
pub fn us(ns: Ns) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// Parameters of a policy by name.
type Params = Vec<(String, f64)>;

/// One simulation.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The machine's file.
    pub machine: String,
    /// The program's file, without the behaviour `unit`.
    pub program: String,
    /// The task graph `g.csv`, if the program names it.
    pub graph: String,
    /// The policy as on the command line.
    pub policy: String,
    /// Everything else.
    pub options: Options,
}

impl Setup {
    /// With the usual options.
    pub fn new(machine: String, program: String, policy: &str) -> Self {
        let options = Options { limit_ns: LIMIT_NS, check: true, ..Options::default() };
        Self { machine, program, graph: String::new(), policy: policy.to_owned(), options }
    }

    /// The machine as it is read.
    ///
    /// # Errors
    /// It is refused.
    pub fn machine(&self) -> Result<Machine, String> {
        self.catalog()?.machine("machine").map_err(|error| error.to_string())
    }

    fn catalog(&self) -> Result<Catalog, String> {
        let program = format!("{}{UNIT}", self.program);
        let files = [
            (FileKind::CoreType, "unit", CORE_TYPE),
            (FileKind::Machine, "machine", &self.machine),
            (FileKind::Program, "p", &program),
        ];
        let mut catalog = Catalog::new();
        for (kind, name, text) in files {
            catalog
                .add(kind, name, &format!("{name}.toml"), text)
                .map_err(|error| error.to_string())?;
        }
        for path in catalog.missing_graphs() {
            catalog.add_graph(&path, &self.graph);
        }
        Ok(catalog)
    }

    /// Runs it, with or without a trace.
    ///
    /// # Errors
    /// Something is refused, or the simulation fails.
    pub fn run(&self, trace: Option<&mut dyn Trace>) -> Result<Outcome, String> {
        let catalog = self.catalog()?;
        let machine = catalog.machine("machine").map_err(|error| error.to_string())?;
        let program = catalog.program("p", &[]).map_err(|error| error.to_string())?;
        let app = App { name: "p".into(), program: Arc::new(program), start_ns: 0, nice: 0 };
        let workload = Workload { name: "w".into(), description: String::new(), apps: vec![app] };
        let (name, params) = in_parts(&self.policy)?;
        let policy = build_policy(name, &params).map_err(|error| error.to_string())?;
        simulate_with(&machine, &workload, name, policy, &self.options, trace)
            .map_err(|error| format!("under {}: {error}", self.policy))
    }

    /// The files, and how they are run.
    pub fn describe(&self) -> String {
        let graph = match self.graph.is_empty() {
            true => String::new(),
            false => format!("== g.csv\n{}", self.graph),
        };
        format!(
            "== unit.toml\n{CORE_TYPE}== machine.toml\n{}== p.toml\n{}{UNIT}{graph}== settings\n{:?}\n== policy\n{}\n",
            self.machine, self.program, self.options, self.policy
        )
    }
}

/// `name:key=value:...` as on the command line.
fn in_parts(policy: &str) -> Result<(&str, Params), String> {
    let mut parts = policy.split(':');
    let name = parts.next().unwrap_or_default();
    let param = |part: &str| {
        let (key, value) = part.split_once('=')?;
        Some((key.to_owned(), value.parse().ok()?))
    };
    let params = parts.map(param).collect::<Option<_>>();
    Ok((name, params.ok_or_else(|| format!("{policy} is no policy"))?))
}
