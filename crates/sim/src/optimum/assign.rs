//! Which threads may run where at one moment: all ways that leave no core idle that somebody could use.

use ampsched_model::{ClusterId, CoreId, Ns, ThreadId};
use ampsched_policy::{RunState, Sched};

/// A cluster for each runnable thread, or none: it waits.
pub(super) type Assignment = Vec<Option<ClusterId>>;

/// A thread that could run.
pub(super) struct Runnable {
    pub thread: ThreadId,
    /// Threads that are alike in everything that matters are interchangeable.
    pub alike: Alike,
    /// Whether it may use each cluster.
    may_use: Vec<bool>,
}

/// What threads may have in common.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Alike {
    /// Group of threads that do the same; its own if it is the only one.
    pub group: u32,
    /// Time that it has had on each cluster.
    pub run_ns: Vec<Ns>,
    /// Where it runs or ran, and whether it does.
    pub place: Option<CoreId>,
    pub runs: bool,
}

/// The threads that could run now, in the order of their creation.
///
/// `known`: a thread's group, and the time that it has had on each cluster.
pub(super) fn runnable(sched: &Sched, known: &dyn Fn(ThreadId) -> (u32, Vec<Ns>)) -> Vec<Runnable> {
    let clusters = sched.topology().clusters();
    let of_thread = |thread: ThreadId| {
        let state = sched.thread(thread);
        let may_use = |cluster: &ampsched_policy::ClusterInfo| {
            cluster.cores.iter().any(|&core| sched.allows(thread, core))
        };
        let (group, run_ns) = known(thread);
        let alike =
            Alike { group, run_ns, place: state.ran_on, runs: state.state == RunState::Running };
        Runnable { thread, alike, may_use: clusters.iter().map(may_use).collect() }
    };
    let mut threads: Vec<ThreadId> = sched
        .live_threads()
        .filter(|&thread| sched.thread(thread).state.is_runnable() && !sched.is_above(thread))
        .collect();
    threads.sort_unstable();
    threads.into_iter().map(of_thread).collect()
}

/// All assignments that run as many threads as possible, but for the names of threads that are alike.
pub(super) fn assignments(sched: &Sched, threads: &[Runnable]) -> Vec<Assignment> {
    let mut free: Vec<usize> =
        sched.topology().clusters().iter().map(|cluster| cluster.cores.len()).collect();
    let mut all = Vec::new();
    extend(threads, &mut Vec::new(), &mut free, &mut all);
    let running = |assignment: &Assignment| assignment.iter().flatten().count();
    let most = all.iter().map(running).max().unwrap_or(0);
    all.retain(|assignment| running(assignment) == most);
    all
}

fn extend(
    threads: &[Runnable],
    begun: &mut Assignment,
    free: &mut [usize],
    all: &mut Vec<Assignment>,
) {
    let Some(thread) = threads.get(begun.len()) else {
        all.push(begun.clone());
        return;
    };
    let before = threads[..begun.len()].iter().rposition(|other| other.alike == thread.alike);
    let places = (0..free.len()).map(Some).chain([None]);
    for place in places {
        let place = place.map(ClusterId::from);
        // Of threads that are alike the earlier ones get the earlier clusters.
        if before.is_some_and(|before| order(begun[before]) > order(place)) {
            continue;
        }
        if let Some(cluster) = place {
            if free[cluster.index()] == 0 || !thread.may_use[cluster.index()] {
                continue;
            }
            free[cluster.index()] -= 1;
        }
        begun.push(place);
        extend(threads, begun, free, all);
        begun.pop();
        if let Some(cluster) = place {
            free[cluster.index()] += 1;
        }
    }
}

fn order(place: Option<ClusterId>) -> usize {
    place.map_or(usize::MAX, ClusterId::index)
}

/// Cores for the threads of an assignment: who runs in its cluster stays, who ran there last comes back.
pub(super) fn cores(
    sched: &Sched,
    threads: &[Runnable],
    assignment: &Assignment,
) -> Vec<Option<ThreadId>> {
    let topology = sched.topology();
    let mut plan = vec![None; topology.core_count()];
    let placed = || {
        let pairs = threads.iter().zip(assignment);
        pairs.filter_map(|(thread, place)| place.map(|cluster| (thread, cluster)))
    };
    let mut open: Vec<(&Runnable, ClusterId)> = Vec::new();
    for runs in [true, false] {
        for (thread, cluster) in placed().filter(|(thread, _)| thread.alike.runs == runs) {
            let last = thread.alike.place.filter(|&core| topology.core(core).cluster == cluster);
            match last.filter(|core| plan[core.index()].is_none()) {
                Some(core) if sched.allows(thread.thread, core) => {
                    plan[core.index()] = Some(thread.thread);
                }
                _ => open.push((thread, cluster)),
            }
        }
    }
    for (thread, cluster) in open {
        let cores = &topology.clusters()[cluster.index()].cores;
        let is_free =
            |core: &&CoreId| plan[core.index()].is_none() && sched.allows(thread.thread, **core);
        if let Some(core) = cores.iter().find(is_free) {
            plan[core.index()] = Some(thread.thread);
        }
    }
    plan
}
