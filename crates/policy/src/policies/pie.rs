//! PIE: who gains from a big core is computed from counters, not tried out.

mod estimate;

use ampsched_model::{ClassId, ClusterId, StallCounters, ThreadId};

use super::cfs;
use super::support::claims::Bids;
use super::support::seat_policy::{SeatPolicy, SeatRule};
use super::support::seats::is_on_fast;
use super::support::window::PerThread;
use crate::{Needs, ParamInfo, PolicyInfo, Topology, View};
use estimate::{Core, relative_speed};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "pie",
    summary: "PIE: predicts each thread's speed on the other kind of core from CPI stacks and swaps the best pair",
    source: "Van Craeynest, Jaleel, Eeckhout, Narvaez, Emer: PIE, ISCA 2012; known from a summary of it",
    documentation: "\
**Purpose.** Throughput, without trying threads out on cores that do not suit them.

**When to use.** To see how far a prediction from counters goes without trying threads on both kinds of core. It \
needs stall counters and the cores' design; the kernel back end reads no such counters, so it runs in the simulator \
only. Not where fairness counts, nor where threads differ little: they change places at every epoch.

**Algorithm.** Cycles per instruction are a base part and a memory part; a core's counters give both, with the misses per instruction (MPI) and \
how many of them overlap (MLP). On an out-of-order core of width W and window ROB: CPI_base = 1 / W, MLP = MPI x ROB. On an in-order core of width W: \
CPI_base = 1 / (sum of i x P(i)), P(i) the probability that exactly i instructions in a row do not depend on one another, from the distances to \
their operands; MLP = MPI x mean distance from a load to its first reader. MLP is at least 1. CPI_memory there = CPI_memory here x MLP here / \
MLP there. Every 2.5 ms the pair of threads is found whose exchange between a fast and a slow core would raise the sum of IPC / IPC on the fast core most: the \
one with the least predicted speed-up on a fast core, and the one with the greatest on a slow one. If its speed-up is greater they change places. A free fast core goes to \
the greatest speed-up; waiting threads share the slow cores under CFS.

**Constants.** `epoch_ms` = 2.5, the paper's. Ours: the full width gets the probability that the P(i) leave; with unequal clocks, memory cycles grow with the \
clock and speeds are compared in time; cores of the same design at another clock keep their base CPI and MLP; the slowest and the fastest class are compared, on a core \
between them that core and the slowest, of a class with several clusters the one on which the thread would be fastest; threads beyond the number of cores.

**Example.** On a small core CPI 2.0 = 1.1 + 0.9, MPI 0.02, MLP 1.3. On a big one of width 4 with a window of 128 at the same clock: MLP 2.56, CPI 0.25 + 0.457 = \
0.707, speed-up 2.83.

**Limits.** Of the core that it predicts PIE knows neither mispredicted branches nor L2 hits nor long chains of dependences, of the core where it counts it sees them all. So a thread looks \
better from a small core than from a big one, and threads that differ little are exchanged at every epoch. Distances between operations need counters \
that no core on the market has. No fairness. Before a thread has run its speed-up counts 1.",
    params: &[
        ParamInfo::number("epoch_ms", 2.5, 0.1, 10_000.0, "period of swaps (ISCA 2012: 2.5 ms)"),
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| Box::new(SeatPolicy::every(params.ms("epoch_ms"), params, Pie::default())),
};

/// Those on fast cores, with the best exchange.
#[derive(Default)]
struct Pie {
    speedups: PerThread<Option<f64>>,
}

impl Pie {
    fn predict_all(&mut self, view: &View) {
        for thread in view.runnable() {
            if let Some(speedup) = predicted(view, thread) {
                *self.speedups.slot(thread) = Some(speedup);
            }
        }
    }

    /// The runnable threads on fast cores and after them the others, each the greatest speed-up first,
    /// with the best pair exchanged.
    fn with_best_exchange(&mut self, view: &View, fast_cores: usize) -> Vec<ThreadId> {
        let mut order: Vec<(bool, f64, ThreadId)> = view
            .runnable()
            .map(|t| (is_on_fast(view, t), self.speedups.slot(t).unwrap_or(1.0), t))
            .collect();
        order.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
        let seated = order.iter().take_while(|entry| entry.0).count().min(fast_cores);
        // Threads that only wait on a fast core are as good as on a slow one.
        order[seated..].sort_by(|a, b| b.1.total_cmp(&a.1).then(a.2.cmp(&b.2)));
        if seated == fast_cores && order.len() > seated && order[seated].1 > order[seated - 1].1 {
            order.swap(seated - 1, seated);
        }
        order.into_iter().map(|(_, _, thread)| thread).collect()
    }
}

/// A thread's speed-up between the slowest and the fastest class as its counters predict it; none if it
/// has no counters, or the host does not know the cores. Of several clusters of a class that one counts on which the
/// thread would be fastest.
fn predicted(view: &View, thread: ThreadId) -> Option<f64> {
    let stalls = view.factors(thread).stalls?;
    let (slowest, fastest) = (ClassId(0), view.topology().top_class());
    let there = if stalls.class == slowest { fastest } else { slowest };
    let own = view.topology().core(view.core(thread));
    let speed_there = |here| greatest_speed(view, &stalls.counters, here, there);
    let here = (0..view.topology().clusters().len()).map(ClusterId::from).filter(|&cluster| {
        let class = view.topology().clusters()[cluster.index()].class;
        class == stalls.class && (own.class != class || own.cluster == cluster)
    });
    let speed =
        here.filter_map(|cluster| speed_there(core_of(view, cluster)?)).max_by(f64::total_cmp)?;
    Some(if stalls.class == slowest { speed } else { 1.0 / speed })
}

/// How much faster a thread that counts so on a core would be on the cluster of a class where that is most.
fn greatest_speed(
    view: &View,
    counters: &StallCounters,
    here: Core,
    class: ClassId,
) -> Option<f64> {
    let clusters = view.topology().clusters().iter().enumerate();
    let of_class = clusters.filter(|(_, cluster)| cluster.class == class);
    let cores = of_class.filter_map(|(index, _)| core_of(view, ClusterId::from(index)));
    cores.map(|there| relative_speed(counters, here, there)).max_by(f64::total_cmp)
}

/// The cores of a cluster at their present clock.
fn core_of(view: &View, cluster: ClusterId) -> Option<Core> {
    let design = view.topology().clusters()[cluster.index()].design?;
    Some(Core { design, mhz: f64::from(view.frequency_mhz(cluster)) })
}

impl SeatRule for Pie {
    type Claim = usize;

    fn needs(&self) -> Needs {
        Needs { stalls: true, ..Needs::default() }
    }

    fn caveat(&self, topology: &Topology) -> Option<String> {
        let unknown = topology.clusters().iter().any(|cluster| cluster.design.is_none());
        unknown.then(|| "the design of the cores is not known: it predicts nothing".to_owned())
    }

    fn claims(&mut self, view: &View, fast_cores: usize) -> Bids<usize> {
        self.predict_all(view);
        self.with_best_exchange(view, fast_cores).into_iter().enumerate().collect()
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::{AppId, Pipeline};

    use super::*;
    use crate::testing::{PolicyHost, build};
    use crate::{ClusterInfo, CoreDesign, RunState, Stalls};

    /// Two big and two small cores.
    fn topology() -> Topology {
        let cluster = |class, first: usize, pipeline, width, window| ClusterInfo {
            shares_l2: false,
            class: ClassId(class),
            cores: vec![first.into(), (first + 1).into()],
            freqs_mhz: vec![1000],
            design: Some(CoreDesign { pipeline, width, window }),
            energy_model: Vec::new(),
        };
        Topology::from_clusters(vec![
            cluster(1, 0, Pipeline::OutOfOrder, 4.0, 128.0),
            cluster(0, 2, Pipeline::InOrder, 2.0, 1.0),
        ])
    }

    /// A host with threads whose memory parts are given; each knows its counters where it is.
    fn host(memory: &[f64]) -> (PolicyHost, Vec<ThreadId>) {
        let mut host = PolicyHost::on(topology(), build("pie", &[]));
        let apps = (0..).map(AppId);
        let threads = apps.zip(memory).map(|(app, _)| host.add_to(app, None)).collect();
        read_counters(&mut host, memory);
        (host, threads)
    }

    /// As a PMU would: less base on a big core, and misses too rare to overlap anywhere.
    fn read_counters(host: &mut PolicyHost, memory: &[f64]) {
        for (index, &cpi_memory) in memory.iter().enumerate() {
            let core = host.sched.thread(ThreadId::from(index)).core;
            let class = host.sched.topology().core(core).class;
            let counters = StallCounters {
                cpi_base: if class.0 > 0 { 0.3 } else { 0.8 },
                cpi_memory,
                llc_mpi: 0.001,
                mlp: 1.0,
                dependence: [0.4, 0.2, 0.1],
                load_use_distance: 5.0,
            };
            host.factors[index].stalls = Some(Stalls { class, counters, at_ns: host.now_ns });
        }
    }

    fn run(host: &mut PolicyHost, memory: &[f64], epochs: usize) -> Vec<usize> {
        (0..epochs)
            .map(|_| {
                read_counters(host, memory);
                host.run_epoch()
            })
            .collect()
    }

    #[test]
    fn who_waits_for_memory_least_gets_the_big_cores() {
        let memory = [4.0, 3.0, 0.1, 0.2];
        let (mut host, threads) = host(&memory);
        run(&mut host, &memory, 10);
        assert_eq!(host.on_fast(), threads[2..]);
        assert_eq!(
            run(&mut host, &memory, 20).iter().sum::<usize>(),
            0,
            "nothing changes any more"
        );
    }

    #[test]
    fn one_pair_is_exchanged_at_a_time() {
        let memory = [4.0, 3.0, 0.1, 0.2];
        let (mut host, threads) = host(&memory);
        // The first two are on big cores, where they were put first.
        run(&mut host, &memory, 1);
        assert_eq!(host.on_fast(), [threads[1], threads[2]]);
        run(&mut host, &memory, 1);
        assert_eq!(host.on_fast(), threads[2..]);
    }

    #[test]
    fn a_free_core_goes_to_the_greatest_gain() {
        let memory = [0.1, 0.2, 2.0, 1.0];
        let (mut host, threads) = host(&memory);
        run(&mut host, &memory, 10);
        assert_eq!(host.on_fast(), threads[..2]);
        let core = host.sched.thread(threads[0]).core;
        host.sched.stop(core, RunState::Blocked, host.now_ns);
        run(&mut host, &memory, 1);
        assert_eq!(host.on_fast(), [threads[1], threads[3]]);
    }

    /// A big core, and two clusters of small ones, of which one is wider; in an order.
    fn with_two_small_clusters(order: [usize; 2]) -> Vec<f64> {
        let designs = [(Pipeline::InOrder, 1.0), (Pipeline::InOrder, 2.0)];
        let cluster = |class, core: usize, pipeline, width, window| ClusterInfo {
            shares_l2: false,
            class: ClassId(class),
            cores: vec![core.into()],
            freqs_mhz: vec![1000],
            design: Some(CoreDesign { pipeline, width, window }),
            energy_model: Vec::new(),
        };
        let small = order.map(|kind| designs[kind]);
        let topology = Topology::from_clusters(vec![
            cluster(0, 0, small[0].0, small[0].1, 1.0),
            cluster(0, 1, small[1].0, small[1].1, 1.0),
            cluster(1, 2, Pipeline::OutOfOrder, 4.0, 128.0),
        ]);
        let mut host = PolicyHost::on(topology, build("pie", &[]));
        for app in 0..3 {
            host.add_to(AppId(app), None);
        }
        read_counters(&mut host, &[0.5, 0.5, 0.5]);
        let view = host.view();
        let mut found: Vec<f64> =
            (0..3).filter_map(|thread| predicted(&view, ThreadId(thread))).collect();
        found.sort_by(f64::total_cmp);
        found
    }

    #[test]
    fn m11_clusters_of_a_class_in_any_order_predict_the_same() {
        let found = with_two_small_clusters([0, 1]);
        assert_eq!(found, with_two_small_clusters([1, 0]));
        assert_eq!(found.len(), 3);
        // The narrow and the wide small core are told apart.
        assert!(found[0] < found[2], "{found:?}");
    }

    #[test]
    fn unknown_threads_stay_where_they_are() {
        let (mut host, _) = host(&[]);
        let threads: Vec<ThreadId> = (0..4).map(|app| host.add_to(AppId(app), None)).collect();
        let before = host.on_fast();
        for _ in 0..5 {
            host.run_epoch();
        }
        assert_eq!((host.on_fast(), threads.len()), (before, 4));
    }
}
