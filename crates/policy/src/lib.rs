//! Scheduling policies for unequal cores.
//!
//! A policy is written once and runs in three places. It decides at two speeds: the *slow plane*
//! ([`Policy::epoch`], [`Policy::on_event`]) looks at a [`View`] and writes a [`Plan`]; the *fast
//! plane* is declared as [`Rules`], a small vocabulary that a kernel can execute by itself. [`Sched`]
//! is the interpreter of Rules and Plan that the simulator uses; a kernel back end interprets the
//! same values in BPF.
//!
//! Architecture invariant: nothing here reads a clock, the operating system, a file or a random
//! source; everything arrives through [`View`].

#[macro_use]
mod words;

mod affinity;
mod attrs;
mod event;
mod factors;
mod fair;
mod fast;
mod governors;
mod needs;
mod params;
mod pelt;
mod plan;
mod policies;
mod queue;
mod registry;
mod rules;
mod sampling;
mod sched;
#[cfg(test)]
mod testing;
mod topology;
mod traits;
mod view;
mod weight;
mod witness;

pub use affinity::{AffinityId, AffinityTable};
pub use attrs::{GroupId, GroupInfo, Honours, ThreadAttrs, WEIGHT_IDLE};
pub use event::Event;
pub use factors::{Factor, FactorKind, Factors, Stalls};
pub use fair::{Fair, Kernel};
pub use fast::{Act, FastPlane};
pub use governors::{
    ClusterSample, CoreSample, FrequencyDomain, GOVERNORS, Governor, GovernorInfo, Limits, Pace,
    build_governor, check_governor, find_governor,
};
pub use needs::{Events, Hooks, Needs};
pub use params::{Owner, ParamInfo, ParamKind, Params, PolicyError, unknown};
pub use pelt::{
    Activity, CAPACITY_ONE, CoreLoad, KeptLoad, LoadTracker, LoadTracking, PELT_PERIOD_NS,
    PELT_UNIT_NS, Pelt, PeltClock, ThreadLoad, UtilEst, core_util, core_util_boosted,
};
pub use plan::{Change, ChangeKind, Plan, Prefer, SPEED_MAX, SPEED_MIN, SPEED_ONE, ThreadPlan};
pub use registry::{PolicyInfo, REGISTRY, build_policy, find_policy, named_value};
pub use rules::{
    Allocator, Balance, BalanceWhen, Charge, LoadBand, LoadFilter, Order, QueueScope, Rules, Slice,
    Steal, StealFrom, WakePreempt,
};
pub use sampling::SpeedupSampler;
pub use sched::{
    CoreState, CostPoint, Effect, EnqueueKind, Pick, RunState, Sched, ThreadState, ThreadStats,
    Turn, cost_points,
};
pub use topology::{Board, ClusterInfo, CoreDesign, CoreInfo, StaticPower, Topology};
pub use traits::Policy;
pub use view::View;
pub use weight::nice_to_weight;
pub use witness::{DecidedBy, Moved, NoWitness, Reason, ReasonValue, Testimony, Witness};
pub use words::{
    Choice, Does, Facts, Field, Group, Means, NOT_IN_KERNEL, Part, Payload, Record, Refusal,
    STEPS_MAX, Slot, Source, TABLE, Value, Why, Wire, Word, c_header, python_key, set_rule,
    words_in_use,
};
