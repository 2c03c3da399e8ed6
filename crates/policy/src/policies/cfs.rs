//! Linux CFS.

use ampsched_model::Ns;

use crate::{
    Balance, Needs, Order, ParamInfo, Params, Policy, PolicyInfo, Rules, Slice, Topology,
    WakePreempt,
};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "cfs",
    summary: "Linux's completely fair scheduler (3.16) as rules: equal weighted time, blind to core types",
    source: "Linux 3.16 kernel/sched/fair.c; the baseline of COLAB (CGO 2020)",
    documentation: "\
**Purpose.** Weighted-fair CPU time. It knows weights and run-queue loads, not that cores differ.

**When to use.** As the baseline of papers that compare with CFS, such as COLAB. It needs nothing. Not as what Linux \
does today: that is `linux`.

**Algorithm.** Each core serves the thread with the least virtual run time (run time x 1024 / weight). A thread may run for \
its share of the scheduling period: the latency up to 8 threads, else threads x minimum granularity. A turn also ends when the \
thread is a slice ahead of the leftmost waiting one. A woken thread starts at most half a latency behind the queue's least \
virtual run time and interrupts if it is behind the running thread by more than the wake-up granularity x 1024 / its weight. \
New threads go to the least loaded core; woken ones to an idle core near their previous core or their waker's, else to the less \
loaded of the two. An idle core pulls one thread; every 4 ms loads are balanced with 25 % tolerance; \
every 32 ms x cores an imbalance of one thread is passed on, so that threads take turns at having a core alone.

**Constants.** Latency 6 ms, minimum granularity 0.75 ms, wake-up granularity 1 ms, each x (1 + log2(min(cores, 8))) \
(fair.c, SCHED_TUNABLESCALING_LOG). `0` for a parameter means this default. Left out: group scheduling, buddies, load history.

**Example.** Four cores: two threads of nice 0 on one core get 9 ms each; nice 0 and nice 5 get 13.563 and 4.437 ms; nine equal \
threads 2.25 ms each.

**Limits.** Equal time is not equal work on unequal cores; the first placement decides who gets the big cores; no notion of \
criticality.",
    params: PARAMS,
    build: |params| Box::new(Cfs::new(params)),
};

/// Scheduling latency.
pub const LATENCY: ParamInfo = ParamInfo::number(
    "latency_ms",
    0.0,
    0.0,
    1000.0,
    "scheduling latency; 0 = 6 ms x CPU factor (fair.c)",
);

/// Minimum granularity.
pub const MIN_GRANULARITY: ParamInfo = ParamInfo::number(
    "min_granularity_ms",
    0.0,
    0.0,
    1000.0,
    "minimum granularity; 0 = 0.75 ms x CPU factor (fair.c)",
);

/// Wake-up granularity.
pub const WAKEUP_GRANULARITY: ParamInfo = ParamInfo::number(
    "wakeup_granularity_ms",
    0.0,
    0.0,
    1000.0,
    "wake-up granularity; 0 = 1 ms x CPU factor (fair.c)",
);

/// Parameters of CFS, which the policies that build on it have too.
pub const PARAMS: &[ParamInfo] = &[LATENCY, MIN_GRANULARITY, WAKEUP_GRANULARITY];

/// Linux CFS.
pub struct Cfs {
    rules: CfsRules,
}

impl Cfs {
    /// CFS with the parameters of [`PARAMS`].
    pub fn new(params: &Params) -> Self {
        Self { rules: CfsRules::new(params) }
    }
}

impl Policy for Cfs {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn rules(&self, topology: &Topology) -> Rules {
        self.rules.on(topology)
    }
}

/// CFS's fast plane, also the base of policies that only add placement or ranking.
///
/// Its default has the kernel's constants.
#[derive(Clone, Copy, Debug, Default)]
pub struct CfsRules {
    latency_ns: Ns,
    min_granularity_ns: Ns,
    wakeup_granularity_ns: Ns,
}

impl CfsRules {
    /// From the parameters of [`PARAMS`].
    pub fn new(params: &Params) -> Self {
        Self {
            latency_ns: params.ms("latency_ms"),
            min_granularity_ns: params.ms("min_granularity_ms"),
            wakeup_granularity_ns: params.ms("wakeup_granularity_ms"),
        }
    }

    /// The kernel's constants for one core, on any machine.
    pub fn unscaled() -> Self {
        Self {
            latency_ns: LATENCY_NS,
            min_granularity_ns: MIN_GRANULARITY_NS,
            wakeup_granularity_ns: WAKEUP_GRANULARITY_NS,
        }
    }

    /// The scheduling latency on a machine.
    pub fn latency_ns(self, topology: &Topology) -> Ns {
        scaled(self.latency_ns, LATENCY_NS, topology)
    }

    /// The rules on a machine.
    pub fn on(self, topology: &Topology) -> Rules {
        let scaled = |given_ns, base_ns| scaled(given_ns, base_ns, topology);
        let latency_ns = self.latency_ns(topology);
        Rules {
            order: Order::Vruntime,
            kick_idle: false,
            slice: Slice::LatencyShare {
                latency_ns,
                min_granularity_ns: scaled(self.min_granularity_ns, MIN_GRANULARITY_NS),
            },
            preempt: WakePreempt::VruntimeGap {
                granularity_ns: scaled(self.wakeup_granularity_ns, WAKEUP_GRANULARITY_NS),
            },
            sleeper_credit_ns: latency_ns / 2,
            fork_debit: true,
            balance: Some(Balance {
                period_ns: BALANCE_NS,
                rotate_period_ns: topology.core_count() as Ns * BUSY_BALANCE_NS,
                tolerance_percent: 25,
                ..Balance::default()
            }),
            ..Rules::default()
        }
    }
}

/// Constants before they are scaled (fair.c).
const LATENCY_NS: Ns = 6_000_000;
const MIN_GRANULARITY_NS: Ns = 750_000;
const WAKEUP_GRANULARITY_NS: Ns = 1_000_000;

/// Balancing interval: one tick at 250 Hz.
const BALANCE_NS: Ns = 4_000_000;

/// Balancing interval of busy cores, per core: 1 ms per core of the domain x busy factor 32
/// (3.16 `sd_init`; later kernels use 16 and need two attempts for a swap).
const BUSY_BALANCE_NS: Ns = 32_000_000;

/// A given constant, or Linux's scaled by the number of cores if it is 0.
pub fn scaled(given_ns: Ns, base_ns: Ns, topology: &Topology) -> Ns {
    if given_ns > 0 { given_ns } else { base_ns * u64::from(cpu_factor(topology.core_count())) }
}

/// Linux's logarithmic scaling of the base constants: 1 + floor(log2(min(cores, 8))).
fn cpu_factor(cores: usize) -> u32 {
    1 + cores.clamp(1, 8).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{build, topology};

    /// Latency, minimum granularity and wake-up granularity in us.
    fn constants(cores: usize, params: &[(&str, f64)]) -> [Ns; 3] {
        let rules = build("cfs", params).rules(&topology(&[(0, cores)]));
        let Slice::LatencyShare { latency_ns, min_granularity_ns } = rules.slice else { panic!() };
        let WakePreempt::VruntimeGap { granularity_ns } = rules.preempt else { panic!() };
        assert_eq!(rules.sleeper_credit_ns, latency_ns / 2);
        [latency_ns, min_granularity_ns, granularity_ns].map(|ns| ns / 1000)
    }

    #[test]
    fn constants_grow_with_cores_up_to_eight() {
        assert_eq!(constants(1, &[]), [6_000, 750, 1_000]);
        assert_eq!(constants(2, &[]), [12_000, 1_500, 2_000]);
        assert_eq!(constants(4, &[]), [18_000, 2_250, 3_000]);
        assert_eq!(constants(7, &[]), [18_000, 2_250, 3_000]);
        assert_eq!(constants(8, &[]), [24_000, 3_000, 4_000]);
        assert_eq!(constants(64, &[]), [24_000, 3_000, 4_000]);
    }

    #[test]
    fn given_constants_are_not_scaled() {
        let params =
            [("latency_ms", 5.0), ("min_granularity_ms", 0.5), ("wakeup_granularity_ms", 0.25)];
        assert_eq!(constants(8, &params), [5_000, 500, 250]);
    }
}
