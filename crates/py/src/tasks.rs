//! Task graphs and their schedules.

use std::sync::Arc;

use ampsched_model::InputError as ModelError;
use ampsched_sim::{run_task_policy, write_schedule};
use ampsched_task::{
    Bounds, Build, Format, Graph, PROGRAMS, Problem, REGISTRY, ReadOptions, Recording, Schedule,
    TaskId, Workers, build_task_policy, gantt_svg, read, task_program, write,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{self, input};
use crate::interrupt::interruptible;
use crate::registry::param_row;
use crate::run::PyFile;

fn refused<T>(result: Result<T, ModelError>) -> PyResult<T> {
    result.map_err(|error| input(&error))
}

/// A task graph.
#[pyclass(frozen, module = "ampsched._core")]
pub struct TaskGraph {
    inner: Arc<Graph>,
}

#[pymethods]
impl TaskGraph {
    /// Reads a file's text; the format is told by the ending of the file's name.
    #[staticmethod]
    #[pyo3(signature = (file, text, bytes_per_s=None))]
    fn read(
        py: Python<'_>,
        file: String,
        text: String,
        bytes_per_s: Option<f64>,
    ) -> PyResult<Self> {
        let format = refused(Format::of(&file))?;
        let options = ReadOptions { bytes_per_s };
        let graph = refused(interruptible(py, move |_| read(format, &file, &text, &options))?)?;
        Ok(Self { inner: Arc::new(graph) })
    }

    /// The graph of a program.
    #[staticmethod]
    fn program(py: Python<'_>, name: String, params: Vec<(String, f64)>) -> PyResult<Self> {
        let graph = interruptible(py, move |_| task_program(&name, &params))?;
        let graph = graph.map_err(|found| error::policy(&found))?;
        Ok(Self { inner: Arc::new(graph) })
    }

    /// The graph as a text; the format is told by the ending of the file's name.
    #[pyo3(signature = (file, bytes_per_s=None))]
    fn write(&self, file: &str, bytes_per_s: Option<f64>) -> PyResult<String> {
        let format = refused(Format::of(file))?;
        refused(write(format, file, &self.inner, &ReadOptions { bytes_per_s }))
    }

    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// Number of tasks.
    #[getter]
    fn tasks(&self) -> usize {
        self.inner.len()
    }

    /// Number of links.
    #[getter]
    fn links(&self) -> usize {
        self.inner.link_count()
    }

    /// Work of all tasks: seconds on one worker of speed 1.
    #[getter]
    fn work(&self) -> f64 {
        self.inner.tasks().map(|task| self.inner.work(task)).sum()
    }

    /// Measured speed of a big core over that of a little one, if it is known.
    #[getter]
    fn ratio(&self) -> Option<f64> {
        self.inner.ratio()
    }

    /// Number of classes of workers that the graph states costs for; 0 if cost is work / speed.
    #[getter]
    fn cost_columns(&self) -> usize {
        self.inner.cost_columns()
    }

    /// Whether data takes time between workers.
    #[getter]
    fn has_communication(&self) -> bool {
        self.inner.has_communication()
    }

    /// What of the file has no effect.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.inner.notes().to_vec()
    }

    /// Kinds of tasks: name, number of tasks, their work.
    #[getter]
    fn kinds(&self) -> Vec<(String, usize, f64)> {
        let mut rows: Vec<(String, usize, f64)> =
            self.inner.kinds().iter().map(|kind| (kind.clone(), 0, 0.0)).collect();
        for task in self.inner.tasks() {
            let row = &mut rows[self.inner.kind_number(task)];
            row.1 += 1;
            row.2 += self.inner.work(task);
        }
        rows
    }

    fn __repr__(&self) -> String {
        format!("<TaskGraph {}: {} tasks>", self.inner.name(), self.inner.len())
    }
}

/// Workers that execute tasks.
#[pyclass(frozen, module = "ampsched._core")]
pub struct TaskWorkers {
    inner: Workers,
}

#[pymethods]
impl TaskWorkers {
    /// Reads ``4x10,4x4`` or, with a ratio, ``4xbig,4xlittle``; `grab_s` are seconds per grab of each class.
    #[new]
    #[pyo3(signature = (text, ratio=None, grab_s=None))]
    fn new(text: &str, ratio: Option<f64>, grab_s: Option<Vec<f64>>) -> PyResult<Self> {
        let workers = refused(Workers::parse(text, ratio))?;
        let inner = match grab_s {
            Some(grab_s) => refused(workers.with_grab_s(&grab_s))?,
            None => workers,
        };
        Ok(Self { inner })
    }

    /// Number of workers.
    fn __len__(&self) -> usize {
        self.inner.len()
    }
}

/// Tasks' names, their kinds, workers, starts and ends in seconds.
type Columns<'a> = (Vec<&'a str>, Vec<&'a str>, Vec<u16>, Vec<f64>, Vec<f64>);

/// Which worker executes which task when.
#[pyclass(frozen, module = "ampsched._core")]
pub struct TaskSchedule {
    graph: Arc<Graph>,
    workers: Workers,
    inner: Schedule,
    bounds: Bounds,
}

impl TaskSchedule {
    fn problem(&self) -> Problem<'_> {
        Problem::new(&self.graph, self.workers.clone()).expect("it was one when it was scheduled")
    }
}

#[pymethods]
impl TaskSchedule {
    /// Reads a recording of real executions.
    #[staticmethod]
    fn recorded(py: Python<'_>, file: String, text: String) -> PyResult<Self> {
        let read = interruptible(py, move |_| Recording::read(&file, &text))?;
        let Recording { graph, workers, schedule } = refused(read)?;
        let bounds = Bounds::of(&refused(Problem::new(&graph, workers.clone()))?);
        Ok(Self { graph: Arc::new(graph), workers, inner: schedule, bounds })
    }

    /// The graph whose tasks are executed.
    #[getter]
    fn graph(&self) -> TaskGraph {
        TaskGraph { inner: Arc::clone(&self.graph) }
    }

    /// End of the last task.
    #[getter]
    fn makespan_s(&self) -> f64 {
        self.inner.makespan_s()
    }

    /// Longest path at the fastest cost of each task.
    #[getter]
    fn critical_path_s(&self) -> f64 {
        self.bounds.critical_path_s
    }

    /// All work spread evenly over all workers.
    #[getter]
    fn capacity_s(&self) -> f64 {
        self.bounds.capacity_s
    }

    /// No schedule is shorter: the greater of critical path and capacity.
    #[getter]
    fn lower_bound_s(&self) -> f64 {
        self.bounds.lower_s()
    }

    /// Classes of workers: name, number of workers.
    #[getter]
    fn classes(&self) -> Vec<(String, usize)> {
        self.workers.classes().iter().map(|class| (class.name.clone(), class.count)).collect()
    }

    /// Seconds that each worker executes tasks.
    #[getter]
    fn busy_s(&self) -> Vec<f64> {
        self.inner.busy_s(self.workers.len())
    }

    /// Executions by start: tasks' names, their kinds, workers, starts and ends in seconds.
    fn columns(&self) -> Columns<'_> {
        let slots = self.inner.slots();
        (
            slots.iter().map(|slot| self.graph.task_name(slot.task)).collect(),
            slots.iter().map(|slot| self.graph.kind(slot.task)).collect(),
            slots.iter().map(|slot| slot.worker.0).collect(),
            slots.iter().map(|slot| slot.start_s).collect(),
            slots.iter().map(|slot| slot.end_s).collect(),
        )
    }

    /// For each execution, in the order of `columns`, the executions that it had to wait for.
    fn predecessors(&self) -> Vec<Vec<usize>> {
        let slots = self.inner.slots();
        let mut rows = vec![None; self.graph.len()];
        for (row, slot) in slots.iter().enumerate() {
            rows[slot.task.index()] = Some(row);
        }
        let before = |task| {
            self.graph.predecessors(task).iter().filter_map(|&each: &TaskId| rows[each.index()])
        };
        slots.iter().map(|slot| before(slot.task).collect()).collect()
    }

    /// A picture (SVG): one row per worker, time from left to right.
    fn gantt(&self, title: &str) -> String {
        gantt_svg(&self.problem(), &self.inner, title)
    }

    /// Writes a trace for Perfetto into a binary file.
    fn perfetto(&self, file: Py<PyAny>) -> PyResult<()> {
        Ok(write_schedule(PyFile(file), &self.problem(), &self.inner)?)
    }

    fn __repr__(&self) -> String {
        format!("<TaskSchedule of {}: {} s>", self.graph.name(), self.inner.makespan_s())
    }
}

/// Executes a graph under a task policy, without the interpreter lock.
#[pyfunction]
pub fn run_task_graph(
    py: Python<'_>,
    graph: &TaskGraph,
    workers: &TaskWorkers,
    policy: &str,
    params: Vec<(String, f64)>,
) -> PyResult<TaskSchedule> {
    let (build, params) =
        build_task_policy(policy, &params).map_err(|found| error::policy(&found))?;
    let (graph, workers) = (Arc::clone(&graph.inner), workers.inner.clone());
    interruptible(py, move |_| {
        let problem = refused(Problem::new(&graph, workers.clone()))?;
        let inner = run_task_policy(&problem, build, &params)
            .map_err(|fault| input(&format!("task graph {}: {fault}", graph.name())))?;
        let bounds = Bounds::of(&problem);
        Ok(TaskSchedule { graph, workers, inner, bounds })
    })?
}

/// All task policies: a dictionary each, as of `policies`, with `off_line`.
#[pyfunction]
pub fn task_policies(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    REGISTRY
        .iter()
        .map(|info| {
            let row = PyDict::new(py);
            row.set_item("name", info.name)?;
            row.set_item("summary", info.summary)?;
            row.set_item("documentation", info.documentation)?;
            row.set_item("source", info.source)?;
            row.set_item("off_line", matches!(info.build, Build::OffLine(_)))?;
            let params: PyResult<Vec<_>> =
                info.params.iter().map(|param| param_row(py, param)).collect();
            row.set_item("params", params?)?;
            Ok(row)
        })
        .collect()
}

/// All programs whose task graphs can be generated: a dictionary each.
#[pyfunction]
pub fn task_programs(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    PROGRAMS
        .iter()
        .map(|info| {
            let row = PyDict::new(py);
            row.set_item("name", info.name)?;
            row.set_item("summary", info.summary)?;
            row.set_item("documentation", info.documentation)?;
            row.set_item("ratio", info.ratio)?;
            let params: PyResult<Vec<_>> =
                info.params.iter().map(|param| param_row(py, param)).collect();
            row.set_item("params", params?)?;
            Ok(row)
        })
        .collect()
}
