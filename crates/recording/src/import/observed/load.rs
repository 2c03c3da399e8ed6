//! Whether threads ran on cores that suit their load.
//!
//! The load of a thread in a window is its CPU time there, each ns weighted by the capacity of the CPU at the clock of
//! that moment, over the length of the window: 1024 is the fastest core at its highest clock all the time. Windows are
//! those of 100 ms since the begin of the trace (ours). What a thread would have done while it waited does not count.

use super::layout::Layout;

/// Length of a window.
pub const WINDOW_NS: u64 = 100_000_000;
/// Part of a capacity that a load may take so that it fits: that of Linux's `fits_capacity` (kernel/sched/fair.c).
pub const ROOM: f64 = 0.8;

/// The load of one thread, window by window.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// Number of the window.
    window: u64,
    /// CPU time in it, in ns times capacity.
    done: f64,
    /// CPU time in it by cluster, and when it ran there last, in ns since the begin.
    by_cluster_ns: Vec<(u64, u64)>,
    /// CPU time on clusters that were too small.
    pub too_small: Misplaced,
    /// CPU time on clusters though smaller ones would have done.
    pub too_big: Misplaced,
}

/// CPU time of a thread on clusters that did not suit it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misplaced {
    /// How long.
    pub ns: u64,
    /// The most in a window.
    pub most_ns: u64,
    /// When it ran last in that window.
    pub at_ns: u64,
}

impl Misplaced {
    fn add(&mut self, ns: u64, at_ns: u64) {
        self.ns += ns;
        if ns > self.most_ns {
            (self.most_ns, self.at_ns) = (ns, at_ns);
        }
    }
}

impl Load {
    /// The thread has run on a cluster, from one time since the begin to another one.
    pub fn run(&mut self, layout: &Layout, cluster: usize, times_ns: (u64, u64), capacity: f64) {
        let (mut from_ns, to_ns) = times_ns;
        self.by_cluster_ns.resize(layout.clusters().len(), (0, 0));
        while from_ns < to_ns {
            let window = from_ns / WINDOW_NS;
            if window != self.window {
                self.close(layout, WINDOW_NS);
                self.window = window;
            }
            let whole = if from_ns % WINDOW_NS == 0 { (to_ns - from_ns) / WINDOW_NS } else { 0 };
            let ns = match whole {
                0 => (to_ns - from_ns).min(WINDOW_NS - from_ns % WINDOW_NS),
                _ => WINDOW_NS,
            };
            self.done += ns as f64 * capacity;
            let of_cluster = &mut self.by_cluster_ns[cluster];
            *of_cluster = (of_cluster.0 + ns, from_ns);
            from_ns += ns;
            if whole > 1 {
                from_ns += self.repeat(layout, whole - 1);
            }
        }
    }

    /// So many windows more are like the one that is full. Returns their length in ns.
    fn repeat(&mut self, layout: &Layout, times: u64) -> u64 {
        let before_ns = (self.too_small.ns, self.too_big.ns);
        self.close(layout, WINDOW_NS);
        self.too_small.ns += (self.too_small.ns - before_ns.0) * times;
        self.too_big.ns += (self.too_big.ns - before_ns.1) * times;
        self.window += times;
        times * WINDOW_NS
    }

    /// The trace has ended.
    pub fn finish(&mut self, layout: &Layout, end_ns: u64) {
        let length_ns = end_ns.saturating_sub(self.window * WINDOW_NS).min(WINDOW_NS);
        self.close(layout, length_ns);
    }

    fn close(&mut self, layout: &Layout, length_ns: u64) {
        let load = std::mem::take(&mut self.done) / length_ns.max(1) as f64;
        let clusters = layout.clusters();
        let tops = || clusters.iter().map(|cluster| cluster.top().round());
        for (cluster, of_cluster) in self.by_cluster_ns.iter_mut().enumerate() {
            let ((ns, at_ns), top) = (std::mem::take(of_cluster), clusters[cluster].top().round());
            if load > ROOM * top {
                self.too_small.add(if tops().any(|other| other > top) { ns } else { 0 }, at_ns);
            } else if tops().any(|other| other < top && load <= ROOM * other) {
                self.too_big.add(ns, at_ns);
            }
        }
    }
}
