//! Where a thread is put when it starts or wakes.

use ampsched_model::{CoreId, Ns, ThreadId};

use super::{RunState, Sched};
use crate::{
    AffinityId, Allocator, Choice, DecidedBy, NoWitness, Prefer, Reason, ReasonValue, Witness,
};

/// Where the last search for the least loaded core ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastSearch {
    core: CoreId,
    /// Its load; those before it had more and those behind it at least as much.
    load: Load,
    /// When this holds: after the thread that asked has been queued, and nothing else.
    age: Age,
}

/// How loaded a core is: weight per rated core of its queue, whether it runs something, whether it shares its physical
/// core with a busy thread. The least comes first: of equal queues (they may be shared) a core without a thread, of its
/// own or of the system's, and of those one with a whole physical core for itself.
type Load = (u64, bool, bool);

/// A state of the system, as far as it changes loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Age {
    serial: u64,
    waiting: u32,
    idle_cores: u16,
}

impl Age {
    /// After one thread more has been queued.
    fn next(self) -> Self {
        Self { serial: self.serial + 1, waiting: self.waiting + 1, ..self }
    }
}

impl Sched {
    /// The core for a thread that starts or wakes; always one that it may use.
    ///
    /// Round-robin allocators remember the choice, so ask once per placement.
    pub fn place_by_rules(&self, thread: ThreadId, now_ns: Ns) -> CoreId {
        self.place_by_rules_near(thread, None, now_ns)
    }

    /// The same, for a thread woken by a thread that runs on core `waker`.
    pub fn place_by_rules_near(
        &self,
        thread: ThreadId,
        waker: Option<CoreId>,
        now_ns: Ns,
    ) -> CoreId {
        self.place_watched(thread, waker, now_ns, NoWitness)
    }

    /// The same, telling a witness why.
    pub fn place_watched(
        &self,
        thread: ThreadId,
        waker: Option<CoreId>,
        now_ns: Ns,
        witness: impl Witness,
    ) -> CoreId {
        match self.rules.allocator {
            Allocator::WakeAffine => self.place_wake_affine(thread, waker, witness),
            Allocator::RoundRobinInClass => self.place_in_turn(thread, witness),
            Allocator::LeastLoadedInClass => self.place_least_loaded_in_class(thread, witness),
            Allocator::LeastLoadedWith => self.place_least_loaded_with(thread, witness),
            Allocator::ByLoad { band } => self.place_by_load(thread, waker, band, now_ns, witness),
            Allocator::ByEnergy { hysteresis } => {
                self.place_by_energy(thread, waker, hysteresis, now_ns, witness)
            }
        }
    }

    pub(super) fn place_wake_affine(
        &self,
        thread: ThreadId,
        waker: Option<CoreId>,
        witness: impl Witness,
    ) -> CoreId {
        let state = self.thread(thread);
        if state.state == RunState::New {
            witness.because(|| self.why_placed("the least loaded core for a new thread", thread));
            return self.least_loaded(thread);
        }
        let previous = state.core;
        let candidates = [Some(previous), waker];
        let reason = |because| {
            let reason = self.why_placed(because, thread);
            reason.core("previous_core", previous).core("waker_core", waker)
        };
        if let Some(core) = self.idle_near(thread, candidates) {
            witness.because(|| {
                let cluster = |core: CoreId| self.topology.core(core).cluster;
                reason(if core == previous {
                    "its previous core, which is idle"
                } else if cluster(core) == cluster(previous) {
                    "an idle core that shares a cluster with its previous one"
                } else if Some(core) == waker {
                    "the waker's core, which is idle"
                } else {
                    "an idle core that shares a cluster with the waker's"
                })
            });
            return core;
        }
        let less_loaded =
            candidates.into_iter().flatten().filter(|&core| self.allows(thread, core));
        if let Some(core) = less_loaded.min_by_key(|&core| self.load(core)) {
            witness.because(|| {
                let near =
                    (self.allows(thread, previous), waker.filter(|&c| self.allows(thread, c)));
                reason(match near {
                    (true, Some(_)) => {
                        "no core near is idle: the less loaded of its previous core and the waker's"
                    }
                    (true, None) => "no core near is idle: back to its previous one",
                    (false, _) => {
                        "no core near is idle: the waker's, for it may not use its previous one"
                    }
                })
            });
            return core;
        }
        witness.because(|| {
            reason("it may use neither its previous core nor the waker's: the least loaded one")
        });
        self.least_loaded(thread)
    }

    /// A reason of the allocator with the load of each core that a thread may use.
    pub(super) fn why_placed(&self, because: &'static str, thread: ThreadId) -> Reason {
        let usable = self.topology.cores().filter(|&core| self.allows(thread, core));
        let loads = usable.map(|core| (core, self.load(core).0)).collect();
        Reason::new(DecidedBy::Allocator, because).with("loads", ReasonValue::Loads(loads))
    }

    /// An idle core that the thread may use and that shares a cluster with one of the candidates, itself first; with
    /// SMT rather one that has a physical core for itself.
    fn idle_near(&self, thread: ThreadId, candidates: [Option<CoreId>; 2]) -> Option<CoreId> {
        let idle = |core: CoreId| self.is_idle(core) && self.allows(thread, core);
        if self.topology.has_smt() {
            let whole = |core: CoreId| idle(core) && !self.shares_core(core);
            if let Some(core) = self.near(candidates, whole) {
                return Some(core);
            }
        }
        self.near(candidates, idle)
    }

    /// The first candidate that is usable, or of the cluster of the first that has such a core.
    fn near(
        &self,
        candidates: [Option<CoreId>; 2],
        usable: impl Fn(CoreId) -> bool,
    ) -> Option<CoreId> {
        candidates.into_iter().flatten().find_map(|near| {
            let mut mates = self.topology.cluster_cores(near).iter().copied();
            if usable(near) { Some(near) } else { mates.find(|&core| usable(core)) }
        })
    }

    /// The least loaded core that the thread may use; of equal ones the first.
    ///
    /// A program that starts many threads asks again and again while nothing else happens. Loads have
    /// only grown since the answer before, so the search goes on where it ended.
    pub(super) fn least_loaded(&self, thread: ThreadId) -> CoreId {
        let allowed = |&core: &CoreId| self.allows(thread, core);
        let mut usable = self.topology.cores().filter(allowed);
        if self.queues.len() == 1 && !self.topology.has_smt() {
            // All cores are equally loaded: the first that runs nothing wins at once.
            let first = self.topology.cores().find(allowed);
            let free = usable.find(|&core| self.is_free(core));
            return free.or(first).expect("an affinity set is never empty");
        }
        if let Some(last) = self.last_search.get().filter(|last| last.age == self.age()) {
            let rest = (last.core.index()..self.topology.core_count()).map(CoreId::from);
            let mut equal = rest.filter(|&core| self.load(core) == last.load);
            if let Some(core) = equal.find(allowed) {
                return self.found(thread, core);
            }
        }
        let least = usable.min_by_key(|&core| self.load(core));
        self.found(thread, least.expect("an affinity set is never empty"))
    }

    /// Remembers the answer if it holds for all threads.
    fn found(&self, thread: ThreadId, core: CoreId) -> CoreId {
        let for_all = self.plan(thread).affinity == AffinityId::ALL;
        let last = LastSearch { core, load: self.load(core), age: self.age().next() };
        self.last_search.set(for_all.then_some(last));
        core
    }

    /// Threads that start, stop, move or change weight change it. (Each start takes a waiting thread,
    /// each stop frees a core, and everything else counts up `serial`.)
    fn age(&self) -> Age {
        Age { serial: self.serial, waiting: self.waiting, idle_cores: self.idle_cores }
    }

    /// How loaded a core is.
    pub(super) fn load(&self, core: CoreId) -> Load {
        (self.queue(core).scaled_load(), !self.is_free(core), self.shares_core(core))
    }

    /// The cores in turn from a place on: the only or first threads of physical cores, then the second ones.
    fn in_turn(&self, next: u16) -> impl Iterator<Item = CoreId> + '_ {
        let (next, count) = (usize::from(next), self.topology.core_count());
        let has_smt = self.topology.has_smt();
        let last = if has_smt { 2 * count } else { count };
        (next..last).chain(0..next).filter_map(move |turn| {
            if !has_smt {
                return Some(CoreId::from(turn));
            }
            let is_second = turn >= count;
            let core = CoreId::from(if is_second { turn - count } else { turn });
            (self.topology.is_second(core) == is_second).then_some(core)
        })
    }

    /// Has the allocator that takes turns begin behind a core next, for threads of a preference.
    pub fn took_turn(&self, prefer: Prefer, core: CoreId) {
        let (count, next) = (self.topology.core_count(), core.index() + 1);
        let next = match self.topology.has_smt() {
            true if self.topology.is_second(core) => (count + next) % (2 * count),
            true => next,
            false => next % count,
        };
        self.cursors[prefer as usize].set(next as u16);
    }

    fn place_in_turn(&self, thread: ThreadId, witness: impl Witness) -> CoreId {
        let prefer = self.plan(thread).prefer;
        let exists = self.may_use_preferred(thread);
        let usable = |core: CoreId| {
            self.allows(thread, core) && (!exists || self.is_preferred(thread, core))
        };
        let next = self.cursors[prefer as usize].get();
        let mut usable_in_turn = self.in_turn(next).filter(|&core| usable(core));
        let chosen = match prefer {
            Prefer::Any => usable_in_turn.min_by_key(|&core| self.load(core)),
            Prefer::Big | Prefer::Little => usable_in_turn.next(),
        };
        witness.because(|| {
            let because = match prefer {
                Prefer::Any => {
                    "the least loaded core, for it prefers no kind; of equal ones the next in turn"
                }
                _ if exists => "the next core in turn of the kind that it prefers",
                _ => "it may not use the kind that it prefers: the next core in turn of all",
            };
            self.why_placed(because, thread).word("prefer", prefer.word().name)
        });
        let chosen = chosen.expect("an affinity set is never empty");
        self.took_turn(prefer, chosen);
        chosen
    }

    fn place_least_loaded_in_class(&self, thread: ThreadId, witness: impl Witness) -> CoreId {
        let exists = self.may_use_preferred(thread);
        let usable = |&core: &CoreId| {
            self.allows(thread, core) && (!exists || self.is_preferred(thread, core))
        };
        let previous = self.thread(thread).ran_on;
        witness.because(|| {
            let prefer = self.plan(thread).prefer;
            let because = match prefer {
                Prefer::Any => "the least loaded core, for it prefers no kind; of equal ones its previous one",
                _ if exists => {
                    "the least loaded core of the kind that it prefers; of equal ones its previous one"
                }
                _ => "it may not use the kind that it prefers: the least loaded core of all",
            };
            let reason = self.why_placed(because, thread).core("previous_core", previous);
            reason.word("prefer", prefer.word().name)
        });
        let cores = self.topology.cores().filter(usable);
        cores
            .min_by_key(|&core| (self.load(core), previous != Some(core)))
            .expect("an affinity set is never empty")
    }

    fn place_least_loaded_with(&self, thread: ThreadId, witness: impl Witness) -> CoreId {
        let weight = self.plan(thread).weight;
        let previous = self.thread(thread).ran_on;
        // Two busy threads of a physical core have half of it each.
        let load = |core: CoreId| -> Load {
            let shares = self.shares_core(core);
            let load = self.queue(core).scaled_load_with(weight) << u32::from(shares);
            (load, !self.is_free(core), shares)
        };
        witness.because(|| {
            let usable = self.topology.cores().filter(|&core| self.allows(thread, core));
            let loads = usable.map(|core| (core, load(core).0)).collect();
            let because =
                "the core that is least loaded with the thread; of equal ones its previous one";
            Reason::new(DecidedBy::Allocator, because)
                .with("loads_with_it", ReasonValue::Loads(loads))
                .core("previous_core", previous)
        });
        let cores = self.topology.cores().filter(|&core| self.allows(thread, core));
        cores
            .min_by_key(|&core| (load(core), previous != Some(core)))
            .expect("an affinity set is never empty")
    }
}
