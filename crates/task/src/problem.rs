//! A graph together with the workers that shall execute it: how long each task takes where.

use ampsched_model::{ClassId, InputError};

use crate::{Graph, TaskId, Tasks, WorkerId, Workers};

/// What is to be scheduled and on what.
#[derive(Clone, Debug)]
pub struct Problem<'g> {
    graph: &'g Graph,
    workers: Workers,
    /// Seconds by task and class.
    costs_s: Vec<f64>,
    mean_s: Vec<f64>,
}

impl<'g> Problem<'g> {
    /// Combines a graph and workers. A task takes work / speed, or what the graph states for each class; then
    /// the speeds of the workers are replaced by those that the stated costs imply (total work over total cost).
    ///
    /// Errors: the graph states costs for another number of classes than there are.
    pub fn new(graph: &'g Graph, workers: Workers) -> Result<Self, InputError> {
        let columns = graph.cost_columns();
        let classes = workers.classes().len();
        if columns > 0 && columns != classes {
            let message =
                format!("states costs for {columns} classes of workers, {classes} are given");
            let hint = "give as many classes, as in 1x1,1x1,1x1; their speeds do not matter then";
            return Err(InputError::new(graph.name(), "", message).with_hint(hint));
        }
        let costs_s: Vec<f64> = graph
            .tasks()
            .flat_map(|task| {
                let stated = graph.costs_s(task);
                let work = graph.work(task);
                workers.classes().iter().enumerate().map(move |(class, of)| {
                    stated.map_or(work / of.speed, |costs_s| costs_s[class])
                })
            })
            .collect();
        let workers = if columns > 0 { implied(graph, workers, &costs_s) } else { workers };
        let mean_s = if columns > 0 {
            costs_s.chunks(classes).map(|row| mean(row, &workers)).collect()
        } else {
            // One rounding per task: tasks of equal work have equal means, and so have sums of equal works.
            let mean_s_per_work = mean_s_per_work(&workers);
            graph.tasks().map(|task| graph.work(task) * mean_s_per_work).collect()
        };
        Ok(Self { graph, workers, costs_s, mean_s })
    }

    /// The graph.
    pub fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// The workers.
    pub fn workers(&self) -> &Workers {
        &self.workers
    }

    /// Seconds that a task takes on each class of workers.
    #[inline]
    pub fn costs_s(&self, task: TaskId) -> &[f64] {
        let classes = self.workers.classes().len();
        &self.costs_s[task.index() * classes..][..classes]
    }

    /// Seconds that a task takes on a worker.
    #[inline]
    pub fn cost_s(&self, task: TaskId, worker: WorkerId) -> f64 {
        self.costs_s(task)[self.workers.class_of(worker).index()]
    }

    /// Whether some task takes no time on some workers.
    pub fn has_instants(&self) -> bool {
        self.costs_s.contains(&0.0)
    }

    /// Seconds that a task takes on average over all workers.
    #[inline]
    pub fn mean_s(&self, task: TaskId) -> f64 {
        self.mean_s[task.index()]
    }
}

impl Tasks for Problem<'_> {
    fn len(&self) -> usize {
        self.graph.len()
    }

    #[inline]
    fn predecessors(&self, task: TaskId) -> &[TaskId] {
        self.graph.predecessors(task)
    }

    #[inline]
    fn cost_s(&self, task: TaskId, class: ClassId) -> f64 {
        self.costs_s(task)[class.index()]
    }
}

fn mean(row: &[f64], workers: &Workers) -> f64 {
    let sum: f64 =
        row.iter().zip(workers.classes()).map(|(cost_s, class)| cost_s * class.count as f64).sum();
    sum / workers.len() as f64
}

/// Mean over all workers of the seconds per unit of work.
fn mean_s_per_work(workers: &Workers) -> f64 {
    let speed = |worker| workers.classes()[workers.class_of(worker).index()].speed;
    workers.ids().map(|worker| 1.0 / speed(worker)).sum::<f64>() / workers.len() as f64
}

/// The workers with speeds that the stated costs imply; a graph without any cost says nothing about speeds.
fn implied(graph: &Graph, workers: Workers, costs_s: &[f64]) -> Workers {
    let classes = workers.classes().len();
    let work: f64 = graph.tasks().map(|task| graph.work(task)).sum();
    let total_s = |class: usize| costs_s.iter().skip(class).step_by(classes).sum::<f64>();
    let speeds: Vec<f64> = (0..classes).map(|class| work / total_s(class)).collect();
    if speeds.iter().all(|speed| speed.is_finite() && *speed > 0.0) {
        workers.with_speeds(&speeds)
    } else {
        workers
    }
}
