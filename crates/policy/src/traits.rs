//! The Policy trait.

use ampsched_model::{CoreId, Ns, ThreadId};

use crate::{Event, FastPlane, Needs, Pick, Plan, Rules, Topology, View};

/// A scheduling policy.
///
/// The slow plane is `epoch` and `on_event`; the fast plane is declared by `rules`. The remaining
/// methods take over single fast-plane decisions and are called only if [`Needs::hooks`] names them.
pub trait Policy: Send {
    /// What it needs.
    fn needs(&self) -> Needs;

    /// Its fast plane on that machine.
    fn rules(&self, topology: &Topology) -> Rules;

    /// A fast plane of its own on that machine, if [`crate::Hooks::fair`] says that it has one: then no rule is read,
    /// and no other hook called. What it leaves to chance follows from `seed`.
    fn fast_plane(&self, _topology: &Topology, _seed: u64) -> Option<Box<dyn FastPlane>> {
        None
    }

    /// What it cannot do on that machine for want of what it would have to know, in a sentence for the user;
    /// none if it can do everything. `sensors` tells whether there are power and temperature sensors at all.
    fn caveat(&self, _topology: &Topology, _sensors: bool) -> Option<String> {
        None
    }

    /// Whether it leaves to the rules which of equal cores a thread has, or counts two threads of a physical core (SMT)
    /// as such; else it takes them for two cores.
    fn knows_siblings(&self) -> bool {
        true
    }

    /// All that a user must be told of it on that machine: [`Policy::caveat`], and whether it knows no siblings.
    fn caveats(&self, topology: &Topology, sensors: bool) -> Option<String> {
        let is_blind = topology.has_smt() && !self.knows_siblings();
        let blind =
            is_blind.then(|| "takes the two threads of a core (SMT) for two cores".to_owned());
        let both: Vec<String> = self.caveat(topology, sensors).into_iter().chain(blind).collect();
        (!both.is_empty()).then(|| both.join("; "))
    }

    /// Looks at the system and asks for changes; called every [`Needs::epoch_ns`].
    fn epoch(&mut self, _view: &View, _plan: &mut Plan) {}

    /// Hears of an event that [`Needs::events`] names.
    fn on_event(&mut self, _view: &View, _event: Event, _plan: &mut Plan) {}

    /// The core for a thread that starts or wakes; must be one that it may use.
    fn place(&mut self, view: &View, thread: ThreadId) -> CoreId {
        view.by_rules_place(thread)
    }

    /// What a core does next.
    fn pick(&mut self, view: &View, core: CoreId) -> Pick {
        view.by_rules_pick(core)
    }

    /// How long a thread may run on a core while others wait, in ns.
    fn slice(&mut self, view: &View, thread: ThreadId, core: CoreId) -> Ns {
        view.by_rules_slice(thread, core)
    }

    /// Whether a woken thread interrupts the one that runs on the core where it was put.
    fn preempts(&mut self, view: &View, woken: ThreadId, running: ThreadId, core: CoreId) -> bool {
        view.by_rules_preempts(woken, running, core)
    }
}
