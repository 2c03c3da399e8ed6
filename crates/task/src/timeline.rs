//! When one worker is free: gaps between tasks, and all time after the last one.
//!
//! Gaps are kept in a treap (a search tree that is a heap in random priorities), ordered by start, then end, and every
//! node knows the longest gap below it. So the earliest gap that can hold a task is found in logarithmic
//! time, however many gaps are too short.

/// No node.
const NIL: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Gap {
    start_s: f64,
    end_s: f64,
    /// Length of the longest gap in this subtree.
    longest_s: f64,
    priority: u32,
    left: u32,
    right: u32,
}

/// Free time of one worker; all times in seconds.
#[derive(Clone, Debug)]
pub struct Timeline {
    gaps: Vec<Gap>,
    unused: Vec<u32>,
    root: u32,
    /// End of the last task; all time after it is free.
    end_s: f64,
    /// Whether the moments between adjacent tasks are kept as gaps of no length.
    keeps_moments: bool,
    random: u32,
}

impl Timeline {
    /// All time is free. Only tasks that take no time need the moments between adjacent tasks, of which there are
    /// as many as tasks; without such tasks they are not kept.
    pub fn new(keeps_moments: bool) -> Self {
        Self {
            gaps: Vec::new(),
            unused: Vec::new(),
            root: NIL,
            end_s: 0.0,
            keeps_moments,
            random: 0x9e37_79b9,
        }
    }

    /// End of the last task.
    #[inline]
    pub fn end_s(&self) -> f64 {
        self.end_s
    }

    /// Earliest start, not before `ready_s`, of a task that takes `cost_s`.
    #[inline]
    pub fn earliest_s(&self, ready_s: f64, cost_s: f64) -> f64 {
        if ready_s < self.end_s {
            self.search(self.root, ready_s, cost_s).unwrap_or(self.end_s)
        } else {
            ready_s
        }
    }

    /// Takes the time from `start_s` on, which [`Timeline::earliest_s`] has returned for `cost_s`.
    pub fn occupy(&mut self, start_s: f64, cost_s: f64) {
        if start_s < self.end_s {
            self.occupy_gap(start_s, start_s + cost_s);
            return;
        }
        if cost_s > 0.0 || start_s > self.end_s {
            self.keep(self.end_s, start_s);
        }
        self.end_s = start_s + cost_s;
    }

    /// Keeps a gap that a task has left.
    fn keep(&mut self, start_s: f64, end_s: f64) {
        if start_s < end_s || self.keeps_moments {
            self.insert(start_s, end_s);
        }
    }

    fn node(&self, index: u32) -> &Gap {
        &self.gaps[index as usize]
    }

    /// The first gap of a subtree that can hold the task: where the task would start.
    fn search(&self, index: u32, ready_s: f64, cost_s: f64) -> Option<f64> {
        if index == NIL || self.node(index).longest_s < cost_s {
            return None;
        }
        let gap = self.node(index);
        if gap.end_s >= ready_s {
            if let Some(found) = self.search(gap.left, ready_s, cost_s) {
                return Some(found);
            }
            let start_s = gap.start_s.max(ready_s);
            if start_s + cost_s <= gap.end_s {
                return Some(start_s);
            }
        }
        self.search(gap.right, ready_s, cost_s)
    }

    /// Takes a part out of the gap that holds it.
    fn occupy_gap(&mut self, start_s: f64, end_s: f64) {
        let (before, rest) = self.split(self.root, (start_s, f64::INFINITY));
        // The gap is the last one that starts at or before `start_s`.
        let (before, gap) = self.split_last(before);
        let Gap { start_s: gap_start_s, end_s: gap_end_s, .. } = *self.node(gap);
        debug_assert!(gap_start_s <= start_s && end_s <= gap_end_s, "the time is free");
        if start_s == end_s && (start_s == gap_start_s || end_s == gap_end_s) {
            // Nothing is taken, and the gap is not divided.
            let before = self.merge(before, gap);
            self.root = self.merge(before, rest);
            return;
        }
        self.unused.push(gap);
        self.root = self.merge(before, rest);
        self.keep(gap_start_s, start_s);
        self.keep(end_s, gap_end_s);
    }

    fn insert(&mut self, start_s: f64, end_s: f64) {
        let index = self.new_node(start_s, end_s);
        let (before, after) = self.split(self.root, (start_s, end_s));
        let before = self.merge(before, index);
        self.root = self.merge(before, after);
    }

    fn new_node(&mut self, start_s: f64, end_s: f64) -> u32 {
        // Xorshift (Marsaglia, 2003): priorities need to be independent of the times, no more.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        let longest_s = end_s - start_s;
        let priority = self.random;
        let gap = Gap { start_s, end_s, longest_s, priority, left: NIL, right: NIL };
        match self.unused.pop() {
            Some(index) => {
                self.gaps[index as usize] = gap;
                index
            }
            None => {
                self.gaps.push(gap);
                self.gaps.len() as u32 - 1
            }
        }
    }

    /// Splits a subtree into the gaps up to one of that start and end, and the others.
    fn split(&mut self, index: u32, at_s: (f64, f64)) -> (u32, u32) {
        if index == NIL {
            return (NIL, NIL);
        }
        let gap = self.node(index);
        if (gap.start_s, gap.end_s) <= at_s {
            let (middle, right) = self.split(self.node(index).right, at_s);
            self.gaps[index as usize].right = middle;
            self.update(index);
            (index, right)
        } else {
            let (left, middle) = self.split(self.node(index).left, at_s);
            self.gaps[index as usize].left = middle;
            self.update(index);
            (left, index)
        }
    }

    /// Splits the last gap off a subtree that is not empty: (the others, the last).
    fn split_last(&mut self, index: u32) -> (u32, u32) {
        if self.node(index).right == NIL {
            let others = std::mem::replace(&mut self.gaps[index as usize].left, NIL);
            self.update(index);
            return (others, index);
        }
        let (rest, last) = self.split_last(self.node(index).right);
        self.gaps[index as usize].right = rest;
        self.update(index);
        (index, last)
    }

    /// Joins two subtrees, the first one before the second.
    fn merge(&mut self, first: u32, second: u32) -> u32 {
        if first == NIL || second == NIL {
            return if first == NIL { second } else { first };
        }
        if self.node(first).priority > self.node(second).priority {
            let right = self.merge(self.node(first).right, second);
            self.gaps[first as usize].right = right;
            self.update(first);
            first
        } else {
            let left = self.merge(first, self.node(second).left);
            self.gaps[second as usize].left = left;
            self.update(second);
            second
        }
    }

    fn update(&mut self, index: u32) {
        let gap = self.node(index);
        let below = |child: u32| if child == NIL { 0.0 } else { self.node(child).longest_s };
        let longest_s = (gap.end_s - gap.start_s).max(below(gap.left)).max(below(gap.right));
        self.gaps[index as usize].longest_s = longest_s;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampsched_model::Draw;

    /// The same by a walk over all tasks of the worker.
    #[derive(Default)]
    struct Plain {
        busy: Vec<(f64, f64)>,
    }

    impl Plain {
        fn earliest_s(&self, ready_s: f64, cost_s: f64) -> f64 {
            let mut start_s = ready_s;
            for &(from_s, to_s) in &self.busy {
                if start_s + cost_s <= from_s {
                    break;
                }
                start_s = start_s.max(to_s);
            }
            start_s
        }
    }

    #[test]
    fn finds_what_a_walk_over_all_tasks_finds() {
        for seed in 0..50 {
            let mut random = Draw::new(seed);
            let (mut timeline, mut plain) = (Timeline::new(true), Plain::default());
            for step in 0..300 {
                let ready_s = (random.uniform() * 500.0).floor();
                // Every tenth task takes no time.
                let cost_s = (random.uniform() * 10.0).floor();
                let start_s = timeline.earliest_s(ready_s, cost_s);
                assert_eq!(start_s, plain.earliest_s(ready_s, cost_s), "seed {seed} step {step}");
                timeline.occupy(start_s, cost_s);
                plain.busy.push((start_s, start_s + cost_s));
                plain.busy.sort_by(|a, b| a.0.total_cmp(&b.0));
            }
            let last_s = plain.busy.iter().map(|busy| busy.1).fold(0.0, f64::max);
            assert_eq!(timeline.end_s(), last_s, "seed {seed}");
        }
    }

    #[test]
    fn a_task_without_duration_fits_anywhere() {
        let mut timeline = Timeline::new(true);
        timeline.occupy(0.0, 2.0);
        timeline.occupy(5.0, 1.0);
        assert_eq!(timeline.earliest_s(3.0, 0.0), 3.0);
        timeline.occupy(3.0, 0.0);
        assert_eq!(timeline.earliest_s(1.0, 2.0), 3.0);
        timeline.occupy(3.0, 2.0);
        assert_eq!(timeline.earliest_s(0.0, 1.0), 2.0);
        // 0 to 2, the moment 3, 3 to 5, 5 to 6: the moments between them are free.
        for moment_s in [0.0, 2.5, 3.0, 5.0, 6.0] {
            assert_eq!(timeline.earliest_s(moment_s, 0.0), moment_s);
        }
        assert_eq!(timeline.earliest_s(0.5, 0.0), 2.0);
        assert_eq!(timeline.earliest_s(3.5, 0.0), 5.0);
    }

    #[test]
    fn moments_are_kept_only_if_needed() {
        let mut timeline = Timeline::new(false);
        (0..1000).for_each(|task| timeline.occupy(f64::from(task), 1.0));
        assert!(timeline.gaps.is_empty());
    }
}
