//! Linux EEVDF.

use ampsched_model::Ns;

use super::cfs::{CfsRules, scaled};
use crate::{
    Needs, Order, ParamInfo, Params, Policy, PolicyInfo, Rules, Slice, Topology, WakePreempt,
};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "eevdf",
    summary: "Linux's present order (6.6 and later) as rules: earliest eligible virtual deadline first",
    source: "Linux kernel/sched/fair.c and Documentation/scheduler/sched-eevdf.rst; Stoica, Abdel-Wahab 1995",
    documentation: "\
**Purpose.** Weighted-fair CPU time with a bound on how far a thread can be ahead of or behind its share. Like CFS it does not \
know that cores differ.

**When to use.** As the baseline for the order of threads in Linux since 6.6, alone. It needs nothing. Not as the \
whole of Linux on unequal cores: `linux` balances and knows capacities as kernels do.

**Algorithm.** V is the weighted mean virtual run time of a queue's threads, running one included; a thread's lag is V - v. Each \
thread requests a slice r; its deadline is v + r x 1024 / weight. A core serves, among the threads with lag >= 0, the one with the \
earliest deadline, and looks again when its request is used up. A thread keeps its lag, at most two requests, while it sleeps, a \
debt only until V has caught up; it comes back at V - lag, scaled for the weight that it adds. A new thread's first request has \
half the length; a moved thread keeps the rest of its request. A woken thread interrupts if choosing anew would choose it; but \
the running thread is protected while it has lag >= 0 and its request is not used up. Placement, stealing and balancing are those \
of `cfs`.

**Constants.** Base slice 0.70 ms x (1 + log2(min(cores, 8))) as in present sources; Linux 6.6 has 0.75 ms (`base_slice_ms`). \
`hz` = 250: the end of a request is noticed at a tick, so a request of 2.1 ms takes 4 ms. `hz` = 0 ends it exactly (Linux's \
HRTICK). `run_to_parity` = 1 is the protection of the running thread, the Linux feature of that name, on by default there; with \
0 a fresh choice decides, as in the original algorithm. Left out: group scheduling, slice-dependent protection (PREEMPT_SHORT), \
buddies, load tracking.

**Example.** Three equal threads with v = 0, 1, 5 ms and requests of 3 ms: V = 2, so the first two are eligible, with deadlines 3 \
and 4; the first runs. If the second requests 0.5 ms, its deadline is 1.5 and it runs.

**Limits.** Equal time is not equal work on unequal cores; no notion of criticality.",
    params: &[
        ParamInfo::number(
            "base_slice_ms",
            0.0,
            0.0,
            1000.0,
            "request; 0 = 0.70 ms x CPU factor (fair.c)",
        ),
        ParamInfo::flag(
            "run_to_parity",
            true,
            "protect the running thread until it is even or its request used up (fair.c)",
        ),
        ParamInfo::number(
            "hz",
            250.0,
            0.0,
            1e6,
            "ticks per second; requests end at ticks, 0 = exactly (CONFIG_HZ of most distributions)",
        ),
    ],
    build: |params| Box::new(Eevdf::new(params)),
};

/// Linux EEVDF.
pub struct Eevdf {
    base_slice_ns: Ns,
    run_to_parity: bool,
    tick_ns: Option<Ns>,
}

impl Eevdf {
    fn new(params: &Params) -> Self {
        let hz = params.number("hz");
        Self {
            base_slice_ns: params.ms("base_slice_ms"),
            run_to_parity: params.flag("run_to_parity"),
            tick_ns: (hz > 0.0).then(|| ((1e9 / hz).round() as Ns).max(1)),
        }
    }
}

impl Policy for Eevdf {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn rules(&self, topology: &Topology) -> Rules {
        Rules {
            order: Order::Deadline,
            slice: Slice::Request { base_ns: scaled(self.base_slice_ns, 700_000, topology) },
            preempt: WakePreempt::EarlierDeadline { run_to_parity: self.run_to_parity },
            sleeper_credit_ns: 0,
            fork_debit: false,
            tick_ns: self.tick_ns,
            ..CfsRules::default().on(topology)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{build, topology};

    fn rules(params: &[(&str, f64)], cores: usize) -> Rules {
        build("eevdf", params).rules(&topology(&[(0, cores)]))
    }

    #[test]
    fn base_slice_grows_with_cores() {
        let slices = [1, 2, 4, 8, 64].map(|cores| rules(&[], cores).slice);
        let expected = [700_000, 1_400_000, 2_100_000, 2_800_000, 2_800_000]
            .map(|base_ns| Slice::Request { base_ns });
        assert_eq!(slices, expected);
        assert_eq!(
            rules(&[("base_slice_ms", 3.0)], 4).slice,
            Slice::Request { base_ns: 3_000_000 }
        );
    }

    #[test]
    fn ticks_are_a_parameter() {
        assert_eq!(rules(&[], 1).tick_ns, Some(4_000_000));
        assert_eq!(rules(&[("hz", 1000.0)], 1).tick_ns, Some(1_000_000));
        assert_eq!(rules(&[("hz", 0.0)], 1).tick_ns, None);
    }

    #[test]
    fn placement_stealing_and_balancing_are_those_of_cfs() {
        let (eevdf, cfs) = (rules(&[], 4), build("cfs", &[]).rules(&topology(&[(0, 4)])));
        assert_eq!(
            (eevdf.allocator, eevdf.steal, eevdf.balance, eevdf.kick_idle),
            (cfs.allocator, cfs.steal, cfs.balance, cfs.kick_idle)
        );
    }
}
