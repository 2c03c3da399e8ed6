//! Machines, programs and workloads by name, and machines.

use std::mem;
use std::sync::Arc;

use ampsched_model::{
    Catalog as ModelCatalog, FileKind, KindCycles, Machine as ModelMachine, MissCycles,
    energy_models, kind_cycles, miss_cycles,
};
use ampsched_recording::Replayed;
use pyo3::prelude::*;

use crate::error::{InputError, input};
use crate::interrupt::interruptible;
use crate::recording::Recording;
use crate::workload::Workload;

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

    /// Adds a recording as a program whose code behaves like a profile; `file` is its path for messages. Its speed-up
    /// and how much its pieces of work vary are the defaults of these parameters.
    #[pyo3(signature = (name, file, recording, like, speedup=0.0, spread=0.0))]
    #[allow(clippy::too_many_arguments)] // two of them by name in Python
    fn add_recording(
        &mut self,
        py: Python<'_>,
        name: &str,
        file: String,
        recording: &Recording,
        like: String,
        speedup: f64,
        spread: f64,
    ) -> PyResult<()> {
        let recording = Arc::clone(&recording.inner);
        let made = interruptible(py, move |_| {
            Replayed::new(&file, recording, &like).with_defaults(speedup, spread)
        })?;
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

    /// What the applications of a workload refer to: the name of each program, and the parameters that stand there.
    fn references(&self, workload: &str) -> Vec<(String, Vec<(String, f64)>)> {
        let found = self.inner.references(workload).into_iter();
        found.map(|(program, params)| (program, params.to_vec())).collect()
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

    /// Of each cluster the bounds of its clock in MHz; none if none were named.
    fn bounds(&self) -> Vec<Option<(u32, u32)>> {
        let bounds =
            |cluster: &ampsched_model::Cluster| cluster.bounds.map(|it| (it.min_mhz, it.max_mhz));
        self.inner.clusters.iter().map(bounds).collect()
    }

    /// The machine with only some of its cores on, and with capped or bounded clocks: ``["big=2@1600", "little=0"]``,
    /// ``["big@600-1600"]``; under another name if one is given.
    #[pyo3(signature = (shares, name=None))]
    fn part(&self, shares: Vec<String>, name: Option<String>) -> PyResult<Machine> {
        let shares: Vec<&str> = shares.iter().map(String::as_str).collect();
        let mut inner = self.inner.part(&shares).map_err(|error| input(&error))?;
        inner.name = name.unwrap_or(inner.name);
        Ok(Machine { inner })
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
