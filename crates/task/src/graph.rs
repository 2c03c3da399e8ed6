//! A task graph: tasks, how much work each one is, and which ones it waits for.

use ampsched_model::InputError;

use crate::draft::Draft;

/// A task; its predecessors have smaller numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

impl TaskId {
    /// The identifier as an index into a table.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<usize> for TaskId {
    #[inline]
    fn from(index: usize) -> Self {
        debug_assert!(index < u32::MAX as usize);
        Self(index as u32)
    }
}

/// A directed graph of tasks without cycles.
///
/// Tasks are numbered in a topological order (every predecessor has a smaller number), so that a pass over
/// the graph is a loop over the numbers, upwards or downwards. Links are stored as compressed rows: about
/// 30 bytes per task and 8 to 16 per link besides the names.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    pub(crate) name: String,
    pub(crate) names: Names,
    pub(crate) kinds: Vec<String>,
    pub(crate) kind_of: Vec<u32>,
    pub(crate) work: Vec<f64>,
    pub(crate) cost_columns: usize,
    pub(crate) costs_s: Vec<f64>,
    pub(crate) predecessors: Links,
    /// Seconds beside each link of `predecessors`; empty if no link takes time.
    pub(crate) comm_s: Vec<f64>,
    /// Bytes beside each link of `predecessors` of data whose time is not known; empty if there is none.
    pub(crate) bytes: Vec<f64>,
    pub(crate) successors: Links,
    pub(crate) ratio: Option<f64>,
    pub(crate) notes: Vec<String>,
}

impl Graph {
    /// Name: that of the file or of the generator.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of tasks.
    pub fn len(&self) -> usize {
        self.work.len()
    }

    /// Whether there is no task.
    pub fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    /// Number of links.
    pub fn link_count(&self) -> usize {
        self.predecessors.tasks.len()
    }

    /// All tasks, predecessors first.
    pub fn tasks(&self) -> impl DoubleEndedIterator<Item = TaskId> + ExactSizeIterator + use<> {
        (0..self.len()).map(TaskId::from)
    }

    /// Name of a task, unique within the graph.
    pub fn task_name(&self, task: TaskId) -> &str {
        self.names.get(task.index())
    }

    /// What kind of work a task is, such as `GEMM`; empty if the graph does not say.
    pub fn kind(&self, task: TaskId) -> &str {
        &self.kinds[self.kind_number(task)]
    }

    /// Number of a task's kind in [`Graph::kinds`].
    pub fn kind_number(&self, task: TaskId) -> usize {
        self.kind_of[task.index()] as usize
    }

    /// All kinds, in the order of their first task.
    pub fn kinds(&self) -> &[String] {
        &self.kinds
    }

    /// Work of a task: seconds on a worker of speed 1. With [`Graph::costs_s`] it is their mean.
    #[inline]
    pub fn work(&self, task: TaskId) -> f64 {
        self.work[task.index()]
    }

    /// Seconds that a task takes on each class of workers, if the graph states them one by one.
    pub fn costs_s(&self, task: TaskId) -> Option<&[f64]> {
        let columns = self.cost_columns;
        (columns > 0).then(|| &self.costs_s[task.index() * columns..][..columns])
    }

    /// Number of classes of workers that the graph states costs for; 0 if cost is work / speed.
    pub fn cost_columns(&self) -> usize {
        self.cost_columns
    }

    /// Tasks that must have ended before this one starts, in ascending order.
    #[inline]
    pub fn predecessors(&self, task: TaskId) -> &[TaskId] {
        self.predecessors.of(task)
    }

    /// Tasks that wait for this one, in ascending order.
    #[inline]
    pub fn successors(&self, task: TaskId) -> &[TaskId] {
        self.successors.of(task)
    }

    /// Predecessors with the seconds that their data takes to another worker (0 on the same one).
    #[inline]
    pub fn inputs(&self, task: TaskId) -> impl Iterator<Item = (TaskId, f64)> + '_ {
        self.beside(task, &self.comm_s)
    }

    /// Predecessors with what stands beside their links; 0 if nothing does.
    #[inline]
    fn beside<'g>(
        &'g self,
        task: TaskId,
        column: &'g [f64],
    ) -> impl Iterator<Item = (TaskId, f64)> + 'g {
        let range = self.predecessors.range(task);
        let values = column.get(range.clone());
        self.predecessors.tasks[range]
            .iter()
            .enumerate()
            .map(move |(position, link)| (*link, values.map_or(0.0, |values| values[position])))
    }

    /// Whether any link takes time between workers.
    #[inline]
    pub fn has_communication(&self) -> bool {
        !self.comm_s.is_empty()
    }

    /// Measured speed of a big core over that of a little one for this program, if it is known.
    pub fn ratio(&self) -> Option<f64> {
        self.ratio
    }

    /// Whether the file states sizes of data that take no time here, as no bandwidth was given.
    pub fn has_untimed_data(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Predecessors with the bytes of such data.
    pub fn untimed_inputs(&self, task: TaskId) -> impl Iterator<Item = (TaskId, f64)> + '_ {
        self.beside(task, &self.bytes)
    }

    /// What of the file has no effect, one line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// A graph of unnamed tasks, for tests and generators: work and predecessors of each.
    ///
    /// Errors: as [`Draft::finish`].
    pub fn from_work(name: &str, tasks: &[(f64, &[u32])]) -> Result<Self, InputError> {
        let mut draft = Draft::new(name);
        for (number, (work, _)) in tasks.iter().enumerate() {
            draft.task(&number.to_string(), "", *work, 0)?;
        }
        for (number, (_, predecessors)) in tasks.iter().enumerate() {
            for &from in *predecessors {
                draft.link(from, number as u32, 0.0, 0)?;
            }
        }
        draft.finish()
    }
}

/// Texts one after the other in one buffer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Names {
    text: String,
    ends: Vec<usize>,
}

impl Names {
    pub fn push(&mut self, name: &str) {
        self.text.push_str(name);
        self.ends.push(self.text.len());
    }

    pub fn get(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }
}

/// Rows of tasks, one row per task, stored one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Links {
    /// Row of task i: `tasks[starts[i]..starts[i + 1]]`.
    pub starts: Vec<u32>,
    pub tasks: Vec<TaskId>,
}

impl Links {
    /// The rows of so many tasks; `pairs` are (row, entry), entries of a row in their order.
    pub fn new(rows: usize, pairs: impl Iterator<Item = (TaskId, TaskId)> + Clone) -> Self {
        let mut starts = vec![0_u32; rows + 1];
        for (row, _) in pairs.clone() {
            starts[row.index() + 1] += 1;
        }
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        let mut next = starts.clone();
        let mut tasks = vec![TaskId(0); starts[rows] as usize];
        for (row, entry) in pairs {
            tasks[next[row.index()] as usize] = entry;
            next[row.index()] += 1;
        }
        Self { starts, tasks }
    }

    #[inline]
    fn range(&self, row: TaskId) -> std::ops::Range<usize> {
        self.starts[row.index()] as usize..self.starts[row.index() + 1] as usize
    }

    #[inline]
    fn of(&self, row: TaskId) -> &[TaskId] {
        &self.tasks[self.range(row)]
    }
}
