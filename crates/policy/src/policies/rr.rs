//! Global round robin.

use crate::{
    Needs, Order, ParamInfo, Params, Policy, PolicyInfo, QueueScope, Rules, Slice, Topology,
};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "rr",
    summary: "one global first-come-first-served queue with fixed slices: the simplest baseline",
    source: "textbook round robin; what scx's simplest examples do with one global dispatch queue",
    documentation: "\
**Purpose.** The simplest work-conserving baseline, and a yardstick for the engine's speed.

**When to use.** To check an engine or a policy of your own against something that can be reckoned by hand. It needs \
nothing. Not as a baseline for people: nobody's computer runs it.

**Algorithm.** All cores take the thread that has waited longest from one queue and run it for a fixed slice.

**Constants.** `slice_ms` = 1 ms, an arbitrary choice for comparison with other simulators.

**Example.** Three CPU-bound threads on one core run 1 ms each, in turn.

**Limits.** Threads change cores at nearly every slice, so caches stay cold; weights, core types and blocking are ignored.",
    params: &[ParamInfo::number("slice_ms", 1.0, 0.001, 10_000.0, "slice")],
    build: |params| Box::new(RoundRobin::new(params)),
};

/// Global round robin.
pub struct RoundRobin {
    slice_ns: u64,
}

impl RoundRobin {
    fn new(params: &Params) -> Self {
        Self { slice_ns: params.ms("slice_ms") }
    }
}

impl Policy for RoundRobin {
    fn needs(&self) -> Needs {
        Needs { work_conserving: true, ..Needs::default() }
    }

    fn rules(&self, _topology: &Topology) -> Rules {
        Rules {
            queues: QueueScope::Global,
            order: Order::Fifo,
            steal: Vec::new(),
            slice: Slice::Fixed { slice_ns: self.slice_ns },
            ..Rules::default()
        }
    }
}
