//! A task graph in the making: checked, put into a topological order and packed by [`Draft::finish`].

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use ampsched_model::InputError;
use ampsched_model::limits::{COSTS_MAX, LINKS_MAX, TASKS_MAX, WORKER_CLASSES_MAX};

use crate::TaskId;
use crate::graph::{Graph, Links, Names};

/// Longest time or greatest work of one task: work may be counted in flop.
pub const AMOUNT_MAX: f64 = 1e18;
/// Most tasks of a cycle that a message names.
const CYCLE_SHOWN: usize = 8;

/// A task graph in the making. Tasks have numbers in the order in which they are added.
#[derive(Debug, Default)]
pub struct Draft {
    file: String,
    name: String,
    names: Vec<String>,
    by_name: HashMap<String, u32>,
    lines: Vec<usize>,
    kinds: Vec<String>,
    kind_numbers: HashMap<String, u32>,
    kind_of: Vec<u32>,
    work: Vec<f64>,
    costs_s: Vec<Vec<f64>>,
    /// Number of all costs.
    costs: usize,
    links: Vec<Link>,
    ratio: Option<f64>,
    notes: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    from: u32,
    to: u32,
    comm_s: f64,
    /// Bytes of data whose time is not known.
    bytes: f64,
    line: usize,
}

impl Draft {
    /// An empty graph; `file` is its path for messages, whose stem is the graph's name.
    pub fn new(file: &str) -> Self {
        let base = file.rsplit(['/', '\\']).next().unwrap_or(file);
        let name = base.rsplit_once('.').map_or(base, |(stem, _)| stem).to_owned();
        Self { file: file.to_owned(), name, ..Self::default() }
    }

    /// Number of tasks so far.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is no task yet.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Adds a task and returns its number. `work` is in seconds at speed 1; `line` 0 stands for none.
    ///
    /// Errors: a name that is empty or there already, work that is negative or not finite, too many tasks.
    pub fn task(
        &mut self,
        name: &str,
        kind: &str,
        work: f64,
        line: usize,
    ) -> Result<u32, InputError> {
        if name.is_empty() {
            return Err(self.error(line, "", "a task has no name"));
        }
        let number = self.names.len() as u32;
        if self.names.len() >= TASKS_MAX {
            return Err(self.error(line, name, &format!("more than {TASKS_MAX} tasks")));
        }
        if self.by_name.insert(name.to_owned(), number).is_some() {
            return Err(self.error(line, name, "there are two tasks of this name"));
        }
        self.check_amount(name, "work", work, line)?;
        let kind = self.kind_number(kind);
        self.names.push(name.to_owned());
        self.lines.push(line);
        self.kind_of.push(kind);
        self.work.push(without_sign(work));
        Ok(number)
    }

    /// States how many seconds a task takes on each class of workers; all tasks of a graph or none.
    ///
    /// Errors: no cost at all, one that is negative or not finite, too many in all.
    pub fn costs(&mut self, task: u32, costs_s: Vec<f64>) -> Result<(), InputError> {
        let (name, line) = (self.names[task as usize].clone(), self.lines[task as usize]);
        if costs_s.is_empty() {
            return Err(self.error(line, &name, "has an empty list of costs"));
        }
        if costs_s.len() > WORKER_CLASSES_MAX {
            let message = format!("{} costs, at most {WORKER_CLASSES_MAX}", costs_s.len());
            return Err(self.error(line, &name, &message));
        }
        self.costs += costs_s.len();
        if self.costs > COSTS_MAX {
            return Err(self.error(line, &name, &format!("more than {COSTS_MAX} costs together")));
        }
        for &cost_s in &costs_s {
            self.check_amount(&name, "cost", cost_s, line)?;
        }
        self.work[task as usize] = costs_s.iter().sum::<f64>() / costs_s.len() as f64;
        self.costs_s.resize(self.names.len(), Vec::new());
        self.costs_s[task as usize] = costs_s.into_iter().map(without_sign).collect();
        Ok(())
    }

    /// Name of a task.
    pub fn name_of(&self, task: u32) -> &str {
        &self.names[task as usize]
    }

    /// The task of that name.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// The task of that name, which `by` depends on. Errors: there is none.
    pub fn require(&self, name: &str, by: &str, line: usize) -> Result<u32, InputError> {
        self.find(name).ok_or_else(|| {
            let message = format!("depends on task {name:?}, which does not exist");
            self.error(line, by, &message)
        })
    }

    /// Makes task `to` wait for task `from`, whose data takes `comm_s` to another worker.
    ///
    /// Errors: a time that is negative or not finite, too many links.
    pub fn link(&mut self, from: u32, to: u32, comm_s: f64, line: usize) -> Result<(), InputError> {
        if !(0.0..=AMOUNT_MAX).contains(&comm_s) || self.links.len() >= LINKS_MAX {
            let name = self.names[to as usize].clone();
            if self.links.len() >= LINKS_MAX {
                return Err(self.error(line, &name, &format!("more than {LINKS_MAX} links")));
            }
            self.check_amount(&name, "communication", comm_s, line)?;
        }
        self.links.push(Link { from, to, comm_s: without_sign(comm_s), bytes: 0.0, line });
        Ok(())
    }

    /// Makes task `to` wait for data of task `from`, whose size is known and whose time is not: it takes none.
    ///
    /// Errors: a size that is negative or not finite, too many links.
    pub fn link_untimed(
        &mut self,
        from: u32,
        to: u32,
        bytes: f64,
        line: usize,
    ) -> Result<(), InputError> {
        self.link(from, to, 0.0, line)?;
        self.check_amount(&self.names[to as usize], "size", bytes, line)?;
        self.links.last_mut().expect("one was added").bytes = without_sign(bytes);
        Ok(())
    }

    /// States the measured speed of a big core over that of a little one.
    pub fn set_ratio(&mut self, ratio: f64) {
        self.ratio = Some(ratio);
    }

    /// Whether some links carry data whose size is known and whose time is not.
    pub fn has_untimed_data(&self) -> bool {
        self.links.iter().any(|link| link.bytes > 0.0)
    }

    /// Gives the graph another name than the file's.
    pub fn set_name(&mut self, name: &str) {
        name.clone_into(&mut self.name);
    }

    /// Notes something of the file that has no effect.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Checks the graph, puts it into a topological order (the given one wherever it is one) and packs it.
    ///
    /// Errors: no task, a cycle, a link that is stated twice, costs for different numbers of classes.
    pub fn finish(mut self) -> Result<Graph, InputError> {
        if self.names.is_empty() {
            return Err(InputError::new(&self.file, "", "has no task"));
        }
        let cost_columns = self.check_costs()?;
        let order = self.order()?;
        let mut number_of = vec![TaskId(0); order.len()];
        for (number, &old) in order.iter().enumerate() {
            number_of[old as usize] = TaskId::from(number);
        }
        self.links.sort_by_key(|link| (number_of[link.to as usize], number_of[link.from as usize]));
        self.check_links()?;
        let pairs = self
            .links
            .iter()
            .map(|link| (number_of[link.from as usize], number_of[link.to as usize]));
        let column = |of: fn(&Link) -> f64| match self.links.iter().any(|link| of(link) > 0.0) {
            true => self.links.iter().map(of).collect(),
            false => Vec::new(),
        };
        let mut names = Names::default();
        order.iter().for_each(|&old| names.push(&self.names[old as usize]));
        Ok(Graph {
            predecessors: Links::new(order.len(), pairs.clone().map(|(from, to)| (to, from))),
            successors: Links::new(order.len(), pairs),
            comm_s: column(|link| link.comm_s),
            bytes: column(|link| link.bytes),
            names,
            kind_of: order.iter().map(|&old| self.kind_of[old as usize]).collect(),
            work: order.iter().map(|&old| self.work[old as usize]).collect(),
            cost_columns,
            costs_s: if cost_columns == 0 {
                Vec::new()
            } else {
                order.iter().flat_map(|&old| self.costs_s[old as usize].iter().copied()).collect()
            },
            name: self.name,
            kinds: self.kinds,
            ratio: self.ratio,
            notes: self.notes,
        })
    }

    /// An error about a task.
    pub fn error(&self, line: usize, task: &str, message: &str) -> InputError {
        let key = if task.is_empty() { String::new() } else { format!("task {task:?}") };
        let error = InputError::new(&self.file, key, message);
        if line > 0 { error.at_line(line) } else { error }
    }

    fn check_amount(
        &self,
        task: &str,
        what: &str,
        amount: f64,
        line: usize,
    ) -> Result<(), InputError> {
        if (0.0..=AMOUNT_MAX).contains(&amount) {
            return Ok(());
        }
        let message = format!("{what} {amount} is out of range, 0 to {AMOUNT_MAX:e} is allowed");
        Err(self.error(line, task, &message))
    }

    fn kind_number(&mut self, kind: &str) -> u32 {
        if let Some(&number) = self.kind_numbers.get(kind) {
            return number;
        }
        let number = self.kinds.len() as u32;
        self.kinds.push(kind.to_owned());
        self.kind_numbers.insert(kind.to_owned(), number);
        number
    }

    /// Number of classes that the tasks state costs for; 0 if none does.
    fn check_costs(&self) -> Result<usize, InputError> {
        let Some(columns) = self.costs_s.iter().map(Vec::len).max() else { return Ok(0) };
        for (task, name) in self.names.iter().enumerate() {
            let stated = self.costs_s.get(task).map_or(0, Vec::len);
            if stated != columns {
                let message = format!("states {stated} costs, other tasks state {columns}");
                return Err(self.error(self.lines[task], name, &message));
            }
        }
        Ok(columns)
    }

    fn check_links(&self) -> Result<(), InputError> {
        let same = |pair: &[Link]| pair[0].from == pair[1].from && pair[0].to == pair[1].to;
        let Some(pair) = self.links.windows(2).find(|pair| same(pair)) else { return Ok(()) };
        let (from, to) = (&self.names[pair[1].from as usize], &self.names[pair[1].to as usize]);
        Err(self.error(pair[1].line, to, &format!("depends on task {from:?} twice")))
    }

    /// A topological order: of all tasks whose predecessors are placed, the one that was added first.
    fn order(&self) -> Result<Vec<u32>, InputError> {
        let count = self.names.len();
        if self.links.iter().all(|link| link.from < link.to) {
            return Ok((0..count as u32).collect());
        }
        let pairs = self.links.iter().map(|link| (TaskId(link.from), TaskId(link.to)));
        let successors = Links::new(count, pairs);
        let mut missing = vec![0_u32; count];
        self.links.iter().for_each(|link| missing[link.to as usize] += 1);
        let mut free: BinaryHeap<Reverse<u32>> =
            (0..count as u32).filter(|&task| missing[task as usize] == 0).map(Reverse).collect();
        let mut order = Vec::with_capacity(count);
        while let Some(Reverse(task)) = free.pop() {
            order.push(task);
            let row = successors.starts[task as usize] as usize
                ..successors.starts[task as usize + 1] as usize;
            for next in &successors.tasks[row] {
                missing[next.index()] -= 1;
                if missing[next.index()] == 0 {
                    free.push(Reverse(next.0));
                }
            }
        }
        if order.len() == count { Ok(order) } else { Err(self.cycle_error(&missing)) }
    }

    /// The error about a cycle among the tasks that could not be placed (those with missing predecessors).
    fn cycle_error(&self, missing: &[u32]) -> InputError {
        let mut before = vec![None; self.names.len()];
        for link in self.links.iter().filter(|link| missing[link.from as usize] > 0) {
            before[link.to as usize].get_or_insert(link.from);
        }
        let start = missing.iter().position(|&count| count > 0).expect("a task was not placed");
        // Walking backwards from a task that cannot be placed ends in a cycle.
        let mut seen = vec![false; self.names.len()];
        let mut task = start as u32;
        while !std::mem::replace(&mut seen[task as usize], true) {
            task = before[task as usize].expect("a missing predecessor");
        }
        let mut cycle = vec![task];
        let mut next = before[task as usize].expect("a missing predecessor");
        while next != task {
            cycle.push(next);
            next = before[next as usize].expect("a missing predecessor");
        }
        cycle.push(task);
        cycle.reverse();
        let shown: Vec<String> = cycle
            .iter()
            .take(CYCLE_SHOWN)
            .map(|&task| format!("{:?}", self.names[task as usize]))
            .collect();
        let rest = if cycle.len() > CYCLE_SHOWN { " -> ..." } else { "" };
        let name = &self.names[task as usize];
        let message = format!("is part of a cycle: {}{rest}", shown.join(" -> "));
        self.error(self.lines[task as usize], name, &message)
            .with_hint("a task graph has no cycles")
    }
}

/// -0 as 0: times are also compared by their bits.
fn without_sign(amount: f64) -> f64 {
    amount + 0.0
}
