//! Machines, programs and workloads by name.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use ampsched_model::{
    Catalog as ModelCatalog, CoreId, FileKind, KindCycles, Machine as ModelMachine, MissCycles, Ns,
    SPIN_US_MAX, SPINNABLE, Workload as ModelWorkload, energy_models, kind_cycles, miss_cycles,
};
use ampsched_recording::Replayed;
use ampsched_task::{build_task_policy, parse_spec};
use pyo3::prelude::*;

use crate::error::{InputError, input};
use crate::interrupt::interruptible;
use crate::recording::Recording;

/// The words for kinds of files.
const KINDS: [(&str, FileKind); 5] = [
    ("machine", FileKind::Machine),
    ("core_type", FileKind::CoreType),
    ("profile", FileKind::Profile),
    ("program", FileKind::Program),
    ("workload", FileKind::Workload),
];

fn kind_of(word: &str) -> PyResult<FileKind> {
    let found = KINDS.iter().find(|(known, _)| *known == word);
    found
        .map(|(_, kind)| *kind)
        .ok_or_else(|| InputError::new_err(format!("unknown kind of file \"{word}\"")))
}

fn word_of(kind: FileKind) -> &'static str {
    KINDS.iter().find(|(_, known)| *known == kind).map_or("", |(word, _)| word)
}

/// Named files and what they describe.
#[pyclass(module = "ampsched._core")]
#[derive(Default)]
pub struct Catalog {
    inner: Arc<ModelCatalog>,
}

/// Bytes of a text that is read before anybody could want to interrupt that.
const SHORT: usize = 1 << 16;

impl Catalog {
    /// The catalogue itself.
    pub fn inner(&self) -> &ModelCatalog {
        &self.inner
    }
}

#[pymethods]
impl Catalog {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// A copy to which files can be added without changing this one.
    fn copy(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }

    /// Adds a file of a kind under a name; `file` is its path for messages. If that is interrupted, the catalogue is
    /// empty.
    fn add(
        &mut self,
        py: Python<'_>,
        kind: &str,
        name: String,
        file: String,
        text: String,
    ) -> PyResult<()> {
        let kind = kind_of(kind)?;
        let mut catalog = Arc::unwrap_or_clone(mem::take(&mut self.inner));
        let is_short = text.len() < SHORT;
        let add = move || {
            let added = catalog.add(kind, &name, &file, &text);
            (catalog, added)
        };
        let (catalog, added) = if is_short { add() } else { interruptible(py, |_| add())? };
        self.inner = Arc::new(catalog);
        added.map_err(|error| input(&error))
    }

    /// Adds a recording as a program whose code behaves like a profile; `file` is its path for messages.
    fn add_recording(
        &mut self,
        py: Python<'_>,
        name: &str,
        file: String,
        recording: &Recording,
        like: String,
    ) -> PyResult<()> {
        let recording = Arc::clone(&recording.inner);
        let made = interruptible(py, move |_| Replayed::new(&file, recording, &like))?;
        Arc::make_mut(&mut self.inner).add_made(name, Arc::new(made));
        Ok(())
    }

    /// The kind of a file, told from its text.
    #[staticmethod]
    fn detect(py: Python<'_>, file: String, text: String) -> PyResult<&'static str> {
        let found = interruptible(py, move |_| FileKind::detect(&file, &text))?;
        found.map(word_of).map_err(|error| input(&error))
    }

    /// Files that added files refer to by path and that are not there yet: (kind, path).
    fn missing_files(&self) -> Vec<(&'static str, String)> {
        self.inner.missing_files().into_iter().map(|(kind, path)| (word_of(kind), path)).collect()
    }

    /// Task graphs' files that programs refer to and that are not there yet.
    fn missing_graphs(&self) -> Vec<String> {
        self.inner.missing_graphs()
    }

    /// Adds the text of a task graph's file for the programs that refer to it by that path.
    fn add_graph(&mut self, path: &str, text: &str) {
        Arc::make_mut(&mut self.inner).add_graph(path, text);
    }

    /// Names of a kind with their one-line descriptions, in alphabetical order.
    fn entries(&self, kind: &str) -> PyResult<Vec<(String, String)>> {
        Ok(self.inner.list(kind_of(kind)?))
    }

    /// Whether something of that kind and name is there.
    fn has(&self, kind: &str, name: &str) -> PyResult<bool> {
        Ok(self.inner.has(kind_of(kind)?, name))
    }

    /// A text of several lines about one thing.
    fn describe(&self, kind: &str, name: &str) -> PyResult<String> {
        self.inner.describe(kind_of(kind)?, name).map_err(|error| input(&error))
    }

    /// Parameters of a program and their defaults.
    fn params(&self, program: &str) -> PyResult<Vec<(String, f64)>> {
        let params = self.inner.params(program).map_err(|error| input(&error))?;
        Ok(params.into_iter().map(|(name, default)| (name.to_owned(), default)).collect())
    }

    /// What an imported program honours differently from its own tool.
    fn notes(&self, program: &str) -> Vec<String> {
        self.inner.notes(program).to_vec()
    }

    /// Names of the workloads in a workload file.
    fn workloads_of_file(&self, name: &str) -> Vec<String> {
        self.inner.workloads_of_file(name).to_vec()
    }

    /// The machine of that name.
    fn machine(&self, py: Python<'_>, name: String) -> PyResult<Machine> {
        let catalog = Arc::clone(&self.inner);
        let found = interruptible(py, move |_| catalog.machine(&name))?;
        found.map(|inner| Machine { inner }).map_err(|error| input(&error))
    }

    /// The workload of that program alone, with parameters set.
    fn program(
        &self,
        py: Python<'_>,
        name: String,
        params: Vec<(String, f64)>,
    ) -> PyResult<Workload> {
        let catalog = Arc::clone(&self.inner);
        let found = interruptible(py, move |_| catalog.program_alone(&name, &params))?;
        found.map(|inner| Workload { inner }).map_err(|error| input(&error))
    }

    /// The workload of that name.
    fn workload(&self, py: Python<'_>, name: String) -> PyResult<Workload> {
        let catalog = Arc::clone(&self.inner);
        let found = interruptible(py, move |_| catalog.workload(&name))?;
        found.map(|inner| Workload { inner }).map_err(|error| input(&error))
    }
}

/// A machine.
#[pyclass(frozen, module = "ampsched._core")]
pub struct Machine {
    /// The machine.
    pub inner: ModelMachine,
}

#[pymethods]
impl Machine {
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    #[getter]
    fn description(&self) -> &str {
        &self.inner.description
    }

    /// Number of cores.
    #[getter]
    fn cores(&self) -> usize {
        self.inner.cores()
    }

    /// Clusters in the order of the file: name, core type, cores, highest frequency in MHz, class (0 is the
    /// slowest).
    #[getter]
    fn clusters(&self) -> Vec<(String, String, usize, u32, u8)> {
        let row = |cluster: &ampsched_model::Cluster| {
            let (name, core_type) = (cluster.name.clone(), cluster.core_type.clone());
            (name, core_type, cluster.cores.len(), cluster.max_mhz(), cluster.class.0)
        };
        self.inner.clusters.iter().map(row).collect()
    }

    /// The cluster of each core, by the cores' numbers: its place among `clusters`.
    #[getter]
    fn cluster_of_core(&self) -> Vec<usize> {
        let cores = (0..self.inner.cores()).map(ampsched_model::CoreId::from);
        cores.map(|core| self.inner.cluster_of(core).index()).collect()
    }

    /// The threads that share a core (SMT): two cores' numbers, and the speed of each while both are busy, 1 for alone.
    #[getter]
    fn siblings(&self) -> Vec<(u16, u16, f64)> {
        let with_two = self.inner.clusters.iter().filter_map(|cluster| {
            let speed = cluster.sharing.smt_speed?;
            Some(cluster.pairs().map(move |(one, other)| (one.0, other.0, speed)))
        });
        with_two.flatten().collect()
    }

    /// Frequencies of a cluster in MHz, ascending.
    fn frequencies_mhz(&self, cluster: usize) -> PyResult<Vec<u32>> {
        Ok(self.cluster(cluster)?.opps.iter().map(|opp| opp.mhz).collect())
    }

    /// Width and window of the cores of a cluster: instructions per cycle, micro-operations.
    fn issue(&self, cluster: usize) -> PyResult<(f64, f64)> {
        let cluster = self.cluster(cluster)?;
        Ok((cluster.params.width, cluster.params.window))
    }

    /// Cycles per instruction of integer, memory, branch, floating-point and SIMD instructions on the cores of each
    /// cluster, as means over the profiles of a catalogue.
    fn kind_cycles(&self, catalog: &Catalog) -> Vec<[f64; 5]> {
        let profiles = &catalog.inner().profiles().profiles;
        let on = |cluster: &ampsched_model::Cluster| {
            let all: Vec<_> =
                profiles.iter().map(|profile| kind_cycles(profile, &cluster.params)).collect();
            let mean = KindCycles::mean(&all);
            [mean.integer, mean.memory, mean.branch, mean.float, mean.simd]
        };
        self.inner.clusters.iter().map(on).collect()
    }

    /// What an access that misses caches costs on the cores of each cluster at its highest frequency, in cycles, as
    /// means over the profiles of a catalogue: a load that hits the L2; one that misses it, beside that; a line.
    fn miss_cycles(&self, catalog: &Catalog) -> Vec<[f64; 3]> {
        let profiles = &catalog.inner().profiles().profiles;
        let on = |cluster: &ampsched_model::Cluster| {
            let mhz = f64::from(cluster.max_mhz());
            let all: Vec<_> =
                profiles.iter().map(|profile| miss_cycles(profile, &cluster.params, mhz)).collect();
            let mean = MissCycles::mean(&all);
            [mean.l2, mean.memory, mean.line]
        };
        self.inner.clusters.iter().map(on).collect()
    }

    /// What an energy-aware scheduler believes of a cluster: frequency in MHz, capacity of a core (1024: the fastest
    /// one at its highest), power of a busy core in mW (0: not known), for each operating point.
    fn energy_model(&self, cluster: usize) -> PyResult<Vec<(u32, f64, f64)>> {
        self.cluster(cluster)?;
        let points = energy_models(&self.inner).swap_remove(cluster);
        Ok(points.iter().map(|point| (point.mhz, point.capacity, point.power_mw)).collect())
    }

    /// Sizes of the L1 data cache and the L2 in KiB, and the share of prefetchable misses that prefetchers cover.
    fn caches(&self, cluster: usize) -> PyResult<(f64, f64, f64)> {
        let params = &self.cluster(cluster)?.params;
        Ok((params.l1d_kib, params.l2_kib, params.prefetch_share))
    }

    /// The same machine with its cores numbered from the fastest or from the slowest on.
    fn ordered(&self, fastest_first: bool) -> Machine {
        Machine { inner: self.inner.ordered(fastest_first) }
    }

    /// The machine with as many cores, all of the fastest kind.
    fn all_big(&self) -> Machine {
        Machine { inner: self.inner.all_big() }
    }

    /// The machine without any cores but those of the fastest kind.
    fn only_big(&self) -> Machine {
        Machine { inner: self.inner.only_big() }
    }

    /// The machine without any cores but those of the slowest kind; work and ratios keep their meaning.
    fn only_little(&self) -> Machine {
        Machine { inner: self.inner.only_little() }
    }

    /// The machine with only some of its cores on and with capped clocks: ``["big=2@1600", "little=0"]``.
    fn part(&self, shares: Vec<String>) -> PyResult<Machine> {
        let shares: Vec<&str> = shares.iter().map(String::as_str).collect();
        self.inner.part(&shares).map(|inner| Machine { inner }).map_err(|error| input(&error))
    }

    /// Everything that a simulation reads of it, except its name, as text: equal texts behave equally.
    fn content(&self) -> String {
        // Named one by one, so that nothing that is added to a machine can be forgotten here.
        let ModelMachine {
            name: _,
            description: _,
            clusters,
            costs,
            kernel_view,
            thermal,
            board,
            reference,
            memory,
        } = &self.inner;
        format!(
            "{clusters:?} {costs:?} {kernel_view:?} {thermal:?} {board:?} {reference:?} {memory:?}"
        )
    }

    fn __repr__(&self) -> String {
        format!("<Machine {}>", self.inner.name)
    }

    /// As notebooks show it: Python draws.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("ampsched.report.notebook")?.call_method1("machine", (slf,))
    }
}

impl Machine {
    fn cluster(&self, index: usize) -> PyResult<&ampsched_model::Cluster> {
        let missing = || pyo3::exceptions::PyIndexError::new_err(format!("no cluster {index}"));
        self.inner.clusters.get(index).ok_or_else(missing)
    }
}

/// A workload.
#[pyclass(frozen, module = "ampsched._core")]
pub struct Workload {
    /// The workload.
    pub inner: ModelWorkload,
}

#[pymethods]
impl Workload {
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    #[getter]
    fn description(&self) -> &str {
        &self.inner.description
    }

    /// The same under another name.
    fn named(&self, name: String) -> Self {
        let mut inner = self.inner.clone();
        inner.name = name;
        Self { inner }
    }

    /// Applications: name, program, threads at its start.
    #[getter]
    fn apps(&self) -> Vec<(String, String, u32)> {
        let row = |app: &ampsched_model::App| {
            (app.name.clone(), app.program.name.clone(), app.program.initial_threads())
        };
        self.inner.apps.iter().map(row).collect()
    }

    /// The energy ratio that each application's program states, if it does.
    #[getter]
    fn energy_ratios(&self) -> Vec<Option<f64>> {
        self.inner.apps.iter().map(|app| app.program.energy_ratio).collect()
    }

    /// After how many ns each application's program stops where it is, if it does.
    #[getter]
    fn durations_ns(&self) -> Vec<Option<Ns>> {
        self.inner.apps.iter().map(|app| app.program.duration_ns).collect()
    }

    /// Whether a program says by number which cores it may use.
    #[getter]
    fn names_cores(&self) -> bool {
        self.inner.names_cores()
    }

    /// The workload for a machine that numbers the cores of `machine` in another order: named cores stay the same
    /// cores.
    fn renumbered(&self, machine: &Machine, to: &Machine) -> Workload {
        Workload { inner: self.inner.renumbered(&machine.inner, &to.inner) }
    }

    /// The same applications, each stopped at a time in ns if it has not ended by then; all start before.
    fn stopped_at(&self, at_ns: Ns) -> PyResult<Workload> {
        if let Some(late) = self.inner.apps.iter().find(|app| app.start_ns >= at_ns) {
            let (name, start_ms) = (&late.name, late.start_ns as f64 / 1e6);
            let message = format!("starts at {start_ms} ms, when everything has been stopped");
            return Err(InputError::new_err(format!("program {name} {message}")));
        }
        Ok(Workload { inner: self.inner.stopped_at(at_ns) })
    }

    /// The workload of one of its applications alone, started at once.
    fn alone(&self, app: usize) -> PyResult<Workload> {
        if app >= self.inner.apps.len() {
            return Err(pyo3::exceptions::PyIndexError::new_err(format!("no application {app}")));
        }
        Ok(Workload { inner: self.inner.alone(app) })
    }

    /// The same applications with as many times as much work in each step: a factor for each application.
    fn with_work(&self, factors: Vec<f64>) -> PyResult<Workload> {
        let apps = self.inner.apps.len();
        let are_sane = factors.iter().all(|factor| (1e-9..=1e9).contains(factor));
        if factors.len() != apps || !are_sane {
            let message = format!("{apps} factors from 1e-9 to 1e9 are needed");
            return Err(pyo3::exceptions::PyValueError::new_err(message));
        }
        Ok(Workload { inner: self.inner.with_work(&factors) })
    }

    /// The same applications with threads that spin before they block: CPU time in us by kind of object.
    fn spinning(&self, spin_us: BTreeMap<String, f64>) -> PyResult<Workload> {
        let mut kinds = Vec::with_capacity(spin_us.len());
        for (kind, us) in &spin_us {
            if !SPINNABLE.contains(&kind.as_str()) || !(0.0..=SPIN_US_MAX).contains(us) {
                let known = SPINNABLE.join(", ");
                let message = format!(
                    "threads cannot spin {us} us at a {kind:?}; 0 to {SPIN_US_MAX:e} us at: {known}"
                );
                return Err(pyo3::exceptions::PyValueError::new_err(message));
            }
            kinds.push((kind.as_str(), (us * 1000.0).round() as Ns));
        }
        Ok(Workload { inner: self.inner.spinning(&kinds) })
    }

    /// The same applications with other stated ratios of speeds: what exceeds 1 is so many times as much.
    fn with_net_ratios(&self, factor: f64) -> PyResult<Workload> {
        if !(0.0..=10.0).contains(&factor) {
            let message = format!("a factor of ratios from 0 to 10 is needed, not {factor}");
            return Err(pyo3::exceptions::PyValueError::new_err(message));
        }
        Ok(Workload { inner: self.inner.with_net_ratios(factor) })
    }

    /// The same applications on these cores only, as under taskset.
    fn on_cores(&self, cores: Vec<usize>) -> Workload {
        Workload { inner: self.inner.on_cores(&cores.into_iter().map(CoreId::from).collect()) }
    }

    /// The same applications whose regions are worked on under another task policy, such as `cats:steal=1`.
    fn with_task_policy(&self, policy: &str) -> PyResult<Workload> {
        let known = parse_spec(policy).and_then(|(name, params)| {
            build_task_policy(name, &params).map_err(|error| error.to_string())
        });
        known.map_err(pyo3::exceptions::PyValueError::new_err)?;
        Ok(Workload { inner: self.inner.with_task_policy(policy) })
    }

    /// The same applications in another order, by their numbers.
    fn reordered(&self, order: Vec<usize>) -> PyResult<Workload> {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..self.inner.apps.len()) {
            let message = "an order names every application once";
            return Err(pyo3::exceptions::PyValueError::new_err(message));
        }
        Ok(Workload { inner: self.inner.reordered(&order) })
    }

    /// Everything that a simulation reads of it, as text: equal texts behave equally.
    fn content(&self) -> String {
        format!("{:?}", self.inner.apps)
    }

    fn __repr__(&self) -> String {
        format!("<Workload {}>", self.inner.name)
    }
}
