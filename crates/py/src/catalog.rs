//! Machines, programs and workloads by name.

use ampsched_model::{
    Catalog as ModelCatalog, FileKind, Machine as ModelMachine, Workload as ModelWorkload,
};
use pyo3::prelude::*;

use crate::error::{InputError, input};

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
    inner: ModelCatalog,
}

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
        Self { inner: self.inner.clone() }
    }

    /// Adds a file of a kind under a name; `file` is its path for messages.
    fn add(&mut self, kind: &str, name: &str, file: &str, text: &str) -> PyResult<()> {
        self.inner.add(kind_of(kind)?, name, file, text).map_err(|error| input(&error))
    }

    /// The kind of a file, told from its text.
    #[staticmethod]
    fn detect(file: &str, text: &str) -> PyResult<&'static str> {
        FileKind::detect(file, text).map(word_of).map_err(|error| input(&error))
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
        self.inner.add_graph(path, text);
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
    fn machine(&self, name: &str) -> PyResult<Machine> {
        self.inner.machine(name).map(|inner| Machine { inner }).map_err(|error| input(&error))
    }

    /// The workload of that program alone, with parameters set.
    fn program(&self, name: &str, params: Vec<(String, f64)>) -> PyResult<Workload> {
        let found = self.inner.program_alone(name, &params);
        found.map(|inner| Workload { inner }).map_err(|error| input(&error))
    }

    /// The workload of that name.
    fn workload(&self, name: &str) -> PyResult<Workload> {
        self.inner.workload(name).map(|inner| Workload { inner }).map_err(|error| input(&error))
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

    /// Clusters in the order of their cores: name, core type, cores, highest frequency in MHz, class (0 is the slowest).
    #[getter]
    fn clusters(&self) -> Vec<(String, String, usize, u32, u8)> {
        let row = |cluster: &ampsched_model::Cluster| {
            let (name, core_type) = (cluster.name.clone(), cluster.core_type.clone());
            (name, core_type, cluster.cores.len(), cluster.max_mhz(), cluster.class.0)
        };
        self.inner.clusters.iter().map(row).collect()
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
        let ModelMachine { clusters, costs, thermal, reference, .. } = &self.inner;
        format!("{clusters:?} {costs:?} {thermal:?} {reference:?}")
    }

    fn __repr__(&self) -> String {
        format!("<Machine {}>", self.inner.name)
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

    /// The workload of one of its applications alone, started at once.
    fn alone(&self, app: usize) -> PyResult<Workload> {
        if app >= self.inner.apps.len() {
            return Err(pyo3::exceptions::PyIndexError::new_err(format!("no application {app}")));
        }
        Ok(Workload { inner: self.inner.alone(app) })
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
