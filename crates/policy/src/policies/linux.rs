//! What Linux's fair class does.

use ampsched_model::{Ns, Sees};

use crate::{
    ClusterInfo, Fair, FastPlane, Hooks, Kernel, Needs, Order, ParamInfo, Params, Policy,
    PolicyInfo, Rules, Slice, Topology,
};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "linux",
    summary: "what Linux does on the given machine: its fair class, as of some kernel",
    source: "Linux kernel/sched/{fair,pelt,topology}.c of 3.16, 4.14, 6.1, 6.6, 6.18 and 7.3; Documentation/scheduler; \
             Qualcomm's msm-4.14 kernel/sched/{walt,fair}.c",
    documentation: "\
**Purpose.** The scheduler that people have, and so the baseline of every gain: what a kernel does on this machine \
when nobody has told it anything. `cfs`, `eevdf` and `eas` are one idea of it each; this is its fair class, part by \
part.

**When to use.** As the baseline of every comparison, and to ask what a kernel (`kernel` = 6.18) would do on a \
machine that you do not have. It needs nothing. Not in a kernel: there it is already.

**Algorithm.** Each core has a queue. Since 6.6: of the threads that have had no more than their share of virtual run \
time (EEVDF), the one with the earliest deadline runs, and is protected until its request ends; who sleeps with a \
debt stays queued until it has paid (since 6.12). Before: the least virtual run time runs (CFS). A thread that starts \
goes to the idlest core of the idlest group of cores; one that wakes up to its last core or near its waker, where one \
idles, and with known capacities where it fits; with an energy model where it costs least. Cores balance when they \
fall idle, at intervals while they idle, and more rarely while they are busy. What the kernel knows of the machine \
stands in its file (`[kernel]`): nothing, capacities (Arm) or priorities (x86-64 hybrids, where an idle P-core takes \
the thread of a busy E-core). `kernel` = android-4.14 is Qualcomm's (Snapdragon 855: `hz` = 100), with WALT: a thread \
needs the work of its last busy window of 20 ms or the mean of five, the greater; it wakes up on the smallest cores \
that have 5 % to spare (15 % to come down), moves up at ticks, and clocks follow the last window.

**Constants.** Those of the sources, of the version that `kernel` names: base slice 0.70 ms (0.75 ms up to 6.6) x (1 \
+ log2(min(cores, 8))), lag at most two slices or a tick, 1280 / 1024 for what fits, 117 % of imbalance, migration \
cost 0.5 ms, averages of which half is left after 32 periods of 1024 us. `hz` = 250: CONFIG_HZ of most distributions. \
`lazy` = 0: a kernel with preempt=full, voluntary or none. `autogroup` = 1: programs come from terminals of their own, \
and share cores by program, not by thread; within one session nothing changes.

**Example.** Two threads on one core (base slice 0.7 ms, ticks of 4 ms). The first has run for 3 ms and goes to \
sleep: the mean is 1.5 ms, it owes 1.5 ms and stays queued. When the other has run for 3 ms, too, both are even: it \
is picked, and leaves. Under `linux:kernel=6.6` it would have left at once, with a lag of -1.5 ms.

**Limits.** What is left out is listed on the page [what Linux does](../explanation/linux.md#what-is-left-out): NUMA, \
bandwidth control, synchronous wake-ups. It cannot be \
loaded: in a kernel it is there already.",
    params: &[
        ParamInfo::one_of("kernel", 7.3, &VERSIONS, "version whose fair class it is"),
        ParamInfo::number("hz", 250.0, 100.0, 1000.0, "ticks per second (CONFIG_HZ)"),
        ParamInfo::flag(
            "lazy",
            true,
            "busy cores learn of other cores' interruptions at their ticks (PREEMPT_LAZY, since 6.18)",
        ),
        ParamInfo::flag("autogroup", false, "each program is a session with a group of its own"),
    ],
    build: |params| Box::new(Linux::new(params)),
};

/// The versions of [`Kernel::ALL`], and their names.
const VERSIONS: [(f64, &str); Kernel::ALL.len()] = {
    let mut versions = [(0.0, ""); Kernel::ALL.len()];
    let mut number = 0;
    while number < versions.len() {
        versions[number] = (Kernel::ALL[number].version, Kernel::ALL[number].name);
        number += 1;
    }
    versions
};

/// Linux's fair class.
struct Linux {
    kernel: Kernel,
    tick_ns: Ns,
    groups_sessions: bool,
}

impl Linux {
    fn new(params: &Params) -> Self {
        let version = params.number("kernel");
        let kernel = Kernel::of(version).expect("the parameter is one of the versions");
        Self {
            kernel: Kernel {
                preempts_lazily: kernel.preempts_lazily && params.flag("lazy"),
                ..kernel
            },
            tick_ns: (1e9 / params.number("hz")).round() as Ns,
            groups_sessions: params.flag("autogroup"),
        }
    }
}

impl Policy for Linux {
    fn needs(&self) -> Needs {
        Needs { hooks: Hooks { fair: true, ..Hooks::default() }, ..Needs::default() }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        let base_ns = Kernel::scale(self.kernel.base_slice_ns, topology.core_count());
        Rules {
            order: Order::Fifo,
            steal: Vec::new(),
            kick_idle: false,
            slice: Slice::Fixed { slice_ns: base_ns },
            ..Rules::default()
        }
    }

    fn fast_plane(&self, topology: &Topology, seed: u64) -> Option<Box<dyn FastPlane>> {
        let fair = Fair::new(self.kernel, topology, self.tick_ns, seed);
        Some(Box::new(fair.with_sessions(self.groups_sessions)))
    }

    fn caveat(&self, topology: &Topology, _sensors: bool) -> Option<String> {
        if !topology.describes_kernel() {
            return None; // It is the kernel itself.
        }
        let differ = topology.class_count() > 1;
        let known = topology.clusters().iter().all(ClusterInfo::has_energy_model);
        match topology.sees() {
            Sees::Nothing if differ => Some(
                "its kernel cannot tell the machine's cores apart (`sees` in the machine's file)"
                    .to_owned(),
            ),
            Sees::Capacities if differ && !self.kernel.knows_capacities => Some(format!(
                "Linux {} cannot tell the machine's cores apart",
                self.kernel.name
            )),
            Sees::Capacities if differ && !self.kernel.asymmetric => Some(format!(
                "Linux {} balances by the capacities of cores, but places no thread by them",
                self.kernel.name
            )),
            Sees::Capacities if !known => Some(
                "the machine has no energy model (no power is known of its clusters): it places threads by \
                 capacity, not by energy"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::KernelView;

    use super::*;
    use crate::testing::{build, topology};
    use crate::{build_policy, named_value};

    #[test]
    fn it_says_what_its_kernel_does_not_know_of_the_cores() {
        let view = KernelView { sees: Sees::Capacities, ..KernelView::default() };
        let unequal = topology(&[(0, 2), (1, 2)]).seen_as(view);
        let said = |version| build("linux", &[("kernel", version)]).caveat(&unequal, true).unwrap();
        assert_eq!(said(3.16), "Linux 3.16 cannot tell the machine's cores apart");
        assert!(said(4.14).ends_with("places no thread by them"));
        assert!(said(6.6).contains("no energy model"));
    }

    #[test]
    fn versions_are_those_of_the_fair_class() {
        assert_eq!(Kernel::ALL.map(|kernel| (kernel.version, kernel.name)), VERSIONS);
        let of = |values: &[(&'static str, f64)]| {
            let mut params = Params::defaults(INFO.params);
            values.iter().for_each(|&(name, value)| params.set(name, value));
            Linux::new(&params).kernel
        };
        assert_eq!(of(&[("kernel", 6.18)]), Kernel::of(6.18).unwrap());
        assert!(!of(&[("lazy", 0.0)]).preempts_lazily);
        assert!(!of(&[("kernel", 6.6), ("lazy", 1.0)]).preempts_lazily, "it has none");
        let error = build_policy("linux", &[("kernel".into(), 5.1)]).err().unwrap();
        let known = "3.16, 4.14, android-4.14, 6.1, 6.6, 6.18 or 7.3";
        let expected = format!("policy linux: parameter kernel = 5.1 is not {known}");
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn vendors_kernels_have_names() {
        let named = |text| named_value("linux", "kernel", text).map_err(|error| error.to_string());
        assert_eq!(named("android-4.14"), Ok(Some(-4.14)));
        assert_eq!(named("-4.14"), Ok(Some(-4.14)), "as it is without its name");
        assert_eq!(named("6.18"), Ok(Some(6.18)));
        let known = "3.16, 4.14, android-4.14, 6.1, 6.6, 6.18 or 7.3";
        let expected = format!("policy linux: parameter kernel = 6.180 is not {known}");
        assert_eq!(named("6.180"), Err(expected));
        assert_eq!(named_value("linux", "hz", "250").unwrap(), None, "numbers have no names");
        assert_eq!(named_value("linux", "speed", "1").unwrap(), None);
    }
}
