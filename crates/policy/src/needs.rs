//! Needs: what a policy asks of its host. What is not named does not arrive, wherever the policy runs.

use ampsched_model::Ns;

use crate::LoadTracking;
use crate::words::{Does, Used, Word};

/// What a daemon that binds threads says of decisions that it does not take.
const fn not_told(what: &'static str) -> Does {
    Does::Refuses { what, instead: "the kernel decides and tells nobody" }
}

/// What a kernel says of decisions by a policy's own code, which no rule states: it must not wait for a process, least
/// of all for one that it has to schedule first.
const fn needs_code(what: &'static str) -> Does {
    Does::Refuses {
        what,
        instead: "not inside the kernel: its code is a process's, for which no decision can wait",
    }
}

/// What a kernel says of events that are as frequent as its decisions: a process that hears of each has to run for
/// each, which makes two more of them.
const fn too_often(what: &'static str) -> Does {
    Does::Refuses {
        what,
        instead: "not inside the kernel: a process that hears of each causes two more",
    }
}

record! {
    /// Which events a policy wants to hear of.
    #[derive(Copy)]
    pub struct Events as "events" {
        /// A thread has started or exited.
        lifecycle: bool = false => {}
        /// A thread has blocked or woken.
        blocking: bool = false => {
            kernel: too_often("hears of every blocking and waking"),
            daemon: not_told("hears of every blocking and waking"),
        }
        /// A thread was put on a core or taken off it.
        dispatch: bool = false => {
            kernel: too_often("hears of every start and stop of a thread"),
            daemon: not_told("hears of every start and stop of a thread"),
        }
    }
}

record! {
    /// Which fast-plane decisions a policy takes itself instead of by [`crate::Rules`].
    ///
    /// Only possible in simulation; a policy that can be stated as Rules should be.
    #[derive(Copy)]
    pub struct Hooks as "hooks" {
        /// [`crate::Policy::place`].
        place: bool = false => {
            kernel: needs_code("places threads by code of its own (hook `place`)"),
            daemon: not_told("decides by itself where each waking thread goes"),
        }
        /// [`crate::Policy::pick`].
        pick: bool = false => {
            kernel: needs_code("picks threads by code of its own (hook `pick`)"),
            daemon: not_told("decides by itself which thread each core runs next"),
        }
        /// [`crate::Policy::slice`].
        slice: bool = false => {
            kernel: needs_code("sets slices by code of its own (hook `slice`)"),
            daemon: not_told("decides by itself how long each thread runs"),
        }
        /// All of them, by Linux's fair class ([`crate::Policy::fast_plane`]).
        fair: bool = false => {
            kernel: Does::Refuses {
                what: "is the kernel's own fair class",
                instead: "there is nothing to put into the kernel: let it run without, by the daemon",
            },
        }
        /// [`crate::Policy::preempts`].
        preempts: bool = false => {
            kernel: needs_code("decides on pre-emption by code of its own (hook `preempts`)"),
            daemon: not_told("decides by itself who interrupts whom"),
        }
    }
}

record! {
    /// What a policy needs from its host.
    #[derive(Copy)]
    pub struct Needs as "needs" {
        /// Decisions that it takes itself.
        hooks: Hooks = Hooks::default() => {}
        /// Sets or limits frequencies ([`crate::Plan::set_frequency`], [`crate::Plan::limit_frequency`]).
        frequencies: bool = false => {
            kernel: With { means: Means::Clocks, what: "sets the clocks of clusters" },
            daemon: With { means: Means::Clocks, what: "sets the clocks of clusters" },
        }
        /// Events that it wants to hear of.
        events: Events = Events::default() => {}
        /// Reads [`crate::Factors::speedup`].
        speedup: bool = false => {}
        /// Reads [`crate::Factors::offline_speedup`].
        offline_speedup: bool = false => {}
        /// Reads [`crate::Factors::alone_ips`] or [`crate::Factors::energy_ratio`].
        alone: bool = false => {}
        /// Reads [`crate::Factors::work_ns`].
        work: bool = false => {}
        /// Reads [`crate::Factors::path_ns`].
        paths: bool = false => {}
        /// Reads [`crate::View::instructions`].
        instructions: bool = false => {
            kernel: With {
                means: Means::Instructions,
                what: "reads retired instructions, which are not counted here",
            },
        }
        /// Reads [`crate::Factors::stalls`].
        stalls: bool = false => {
            kernel: With { means: Means::Stalls, what: "reads stall counters, which are not counted here" },
        }
        /// Reads [`crate::Factors::power_mw`].
        power: bool = false => {}
        /// Reads [`crate::View::power_mw`] or [`crate::View::temperature_c`].
        sensors: bool = false => {}
        /// Reads [`crate::Factors::blame_ns`].
        blame: bool = false => {}
        /// Reads [`crate::View::load`], [`crate::View::util`] or [`crate::View::core_util`], or has rules that do:
        /// how load is tracked.
        load_tracking: Option<LoadTracking> = None => {}
        /// Cadence of [`crate::Policy::epoch`]; none if absent.
        epoch_ns: Option<Ns> = None => {}
        /// Holds threads back for whole epochs ([`crate::Change::Hold`]).
        holds: bool = false => { daemon: With { means: Means::Freezer, what: "holds single threads back" }, }
        /// Promises that no core idles while a thread that may run there waits.
        work_conserving: bool = false => {}
    }
}

impl Used for Option<LoadTracking> {
    fn visit(&self, row: &'static Word, visit: &mut dyn FnMut(&'static Word)) {
        if self.is_some() {
            visit(row);
        }
    }
}
