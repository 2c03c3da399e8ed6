//! How the programs' graphs are woven: stage by stage, or item by item through a pipeline.

use ampsched_model::Draw;
use ampsched_model::limits::{LINKS_MAX, TASKS_MAX};
use ampsched_policy::Params;

use crate::Graph;
use crate::draft::Draft;

/// Work of a whole program on one little core. The papers publish no absolute times; only ratios mean something.
const TOTAL_S: f64 = 100.0;
/// Kind of the tasks that stand for barriers; they take no time.
const BARRIER: &str = "barrier";

/// What a block of a stage reads of the stage before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// The block at the same place.
    Same,
    /// That block and its neighbours.
    Neighbours,
    /// All blocks: a barrier.
    All,
}

/// A graph would have too many tasks or links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Which of the two.
    pub what: &'static str,
    /// How many a graph may have.
    pub limit: usize,
}

/// A part of a graph, unless the graph becomes too large.
pub type Woven<T> = Result<T, TooLarge>;

/// A graph in the making; works are in any unit until [`Weaver::finish`].
pub struct Weaver {
    tasks: Vec<(&'static str, f64)>,
    links: Vec<(u32, u32)>,
    /// Tasks of the last stage, in the order of their blocks.
    last: Vec<u32>,
    /// Whether every stage ends with a barrier, as in the programs' pthreads versions.
    barriers: bool,
    random: Draw,
}

impl Weaver {
    /// Nothing yet; `params` has the flag `barriers`.
    pub fn new(params: &Params) -> Self {
        Self::with_barriers(params.flag("barriers"))
    }

    /// Nothing yet.
    pub fn with_barriers(barriers: bool) -> Self {
        let (tasks, links, last) = (Vec::new(), Vec::new(), Vec::new());
        Self { tasks, links, last, barriers, random: Draw::new(1) }
    }

    /// Adds a task and returns its number.
    pub fn task(&mut self, kind: &'static str, work: f64) -> Woven<u32> {
        if self.tasks.len() >= TASKS_MAX {
            return Err(TooLarge { what: "tasks", limit: TASKS_MAX });
        }
        self.tasks.push((kind, work));
        Ok(self.tasks.len() as u32 - 1)
    }

    /// Makes a task wait for another.
    pub fn link(&mut self, from: u32, to: u32) -> Woven<()> {
        if self.links.len() >= LINKS_MAX {
            return Err(TooLarge { what: "links", limit: LINKS_MAX });
        }
        self.links.push((from, to));
        Ok(())
    }

    /// The last task of the last stage.
    pub fn last_task(&self) -> Option<u32> {
        self.last.last().copied()
    }

    /// Makes the last stage wait for a task of an earlier one, too.
    pub fn wait_for(&mut self, before: u32) -> Woven<()> {
        (0..self.last.len()).try_for_each(|place| self.link(before, self.last[place]))
    }

    /// Begins a new sequence of stages; the first one waits for this task only.
    pub fn restart(&mut self, before: Option<u32>) {
        self.last = before.into_iter().collect();
    }

    /// An amount of log-normal distribution with that mean and coefficient of variation; always the same sequence.
    pub fn amount(&mut self, mean: f64, cv: f64) -> f64 {
        let variance = (1.0 + cv * cv).ln();
        mean * (variance.sqrt() * self.random.normal() - variance / 2.0).exp()
    }

    /// Adds a stage of equal blocks with so much work together.
    pub fn stage(
        &mut self,
        kind: &'static str,
        work: f64,
        blocks: usize,
        reads: Reads,
    ) -> Woven<()> {
        self.uneven_stage(kind, work, 0.0, blocks, reads)
    }

    /// Adds a stage of blocks whose work varies.
    pub fn uneven_stage(
        &mut self,
        kind: &'static str,
        work: f64,
        cv: f64,
        blocks: usize,
        reads: Reads,
    ) -> Woven<()> {
        let reads = if self.barriers { Reads::All } else { reads };
        if reads == Reads::All && self.last.len() > 1 && blocks > 1 {
            let barrier = self.task(BARRIER, 0.0)?;
            let last = std::mem::replace(&mut self.last, vec![barrier]);
            last.into_iter().try_for_each(|from| self.link(from, barrier))?;
        }
        let mean = work / blocks as f64;
        let mut stage = Vec::with_capacity(blocks);
        for block in 0..blocks {
            let work = if cv > 0.0 { self.amount(mean, cv) } else { mean };
            let task = self.task(kind, work)?;
            for place in places(block, blocks, self.last.len(), reads) {
                self.link(self.last[place], task)?;
            }
            stage.push(task);
        }
        self.last = stage;
        Ok(())
    }

    /// The graph, scaled to the same total work for all programs.
    pub fn finish(self, name: &str, ratio: f64) -> Graph {
        let total: f64 = self.tasks.iter().map(|task| task.1).sum();
        let mut draft = Draft::new(name);
        draft.set_ratio(ratio);
        for (number, (kind, work)) in self.tasks.into_iter().enumerate() {
            draft
                .task(&number.to_string(), kind, work * TOTAL_S / total, 0)
                .expect("names are numbers, works are in range");
        }
        for (from, to) in self.links {
            draft.link(from, to, 0.0, 0).expect("no communication is in range");
        }
        draft.finish().expect("tasks wait for earlier ones, once")
    }
}

/// Blocks of the stage before, which has `before` of them, that block `block` of `blocks` reads.
fn places(block: usize, blocks: usize, before: usize, reads: Reads) -> std::ops::Range<usize> {
    if before == 0 || reads == Reads::All {
        return 0..before;
    }
    let margin = usize::from(reads == Reads::Neighbours);
    // The same part of the data, in however many blocks it is cut.
    let first = (block * before / blocks).saturating_sub(margin);
    let last = ((block + 1) * before).div_ceil(blocks) + margin;
    first..last.min(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_read_the_same_part_and_its_neighbours() {
        assert_eq!(places(3, 8, 8, Reads::Same), 3..4);
        assert_eq!(places(3, 8, 8, Reads::Neighbours), 2..5);
        assert_eq!(places(0, 8, 8, Reads::Neighbours), 0..2);
        assert_eq!(places(7, 8, 8, Reads::Neighbours), 6..8);
        assert_eq!(places(1, 2, 6, Reads::Same), 3..6);
        assert_eq!(places(5, 6, 2, Reads::Same), 1..2);
        assert_eq!(places(5, 6, 1, Reads::Same), 0..1);
        assert_eq!(places(0, 1, 6, Reads::Same), 0..6);
        assert_eq!(places(2, 6, 4, Reads::All), 0..4);
        assert_eq!(places(2, 6, 0, Reads::Same), 0..0);
    }
}
