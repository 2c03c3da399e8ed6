//! The in-kernel switcher: a big and a little core are one virtual core with one table of frequencies.

use ampsched_model::{ClusterId, CoreId, CoreSet, Ns, ThreadId};

use super::cfs::{self, CfsRules};
use super::support::busy::Busy;
use crate::{
    Change, Event, Events, Needs, ParamInfo, Params, Plan, Policy, PolicyInfo, Rules, Topology,
    View,
};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "iks",
    summary: "in-kernel switcher: pairs of a big and a little core, one of which runs, as the frequency asks",
    source: "Linux drivers/cpufreq/arm_big_little.c (bL switcher); Chronaki et al., JPDC 2018, section 2",
    documentation: "\
**Purpose.** Use of big.LITTLE chips by a kernel that knows nothing of them: moving to another core is a change of frequency.

**When to use.** To compare with the in-kernel switcher of early big.LITTLE phones; for loads that one core of each \
pair can carry. It needs only how busy cores are, and sets clocks. Not for speed: half of the cores are unused.

**Algorithm.** The i-th big and the i-th little core form a virtual core whose frequencies are those of the little core divided by two, then those of the big core from `big_min_mhz` on. \
Every `sampling_ms`, a virtual core that was busy for more than `up_threshold` gets the highest frequency, else the lowest that is not below busy share x present frequency / `up_threshold`. One that runs on its big core goes to \
the little one if it wants less than the big core's lowest, the other way round if it wants more than the little core's highest. A cluster runs at the greatest frequency that its virtual cores want. \
CFS schedules the virtual cores.

**Constants.** Division by two: `VIRT_FREQ` of the driver, about the ratio of work per cycle. `up_threshold` = 0.8: the ondemand governor that ran with it. `big_min_mhz` = 800: lowest frequency of the big cores in the table of the Exynos 5 Octa; \
chips whose table begins higher begin there. `sampling_ms` = 10 is ours.

**Example.** Little 200 to 1400 MHz (virtually 100 to 700), big 800 to 2000: 85 % busy at virtual 700 asks for 2000 and goes to the big core; 20 % busy at 2000 asks for 500, below 800, and goes back, at 1000 MHz.

**Limits.** Half of the cores are unused. Cores without a partner are never used; if there are only cores of one kind, it is CFS. The policy sets frequencies itself: governors have no say. Threads that may use only cores that \
are not active run there nevertheless.",
    params: &[
        ParamInfo::number("up_threshold", 0.8, 0.01, 1.0, "busy share above which the highest frequency is wanted (ondemand)"),
        ParamInfo::number("big_min_mhz", 800.0, 1.0, 100_000.0, "lowest frequency of a big core in the table (Exynos 5 Octa)"),
        ParamInfo::number("sampling_ms", 10.0, 0.1, 10_000.0, "time between looks (ours)"),
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| Box::new(Iks::new(params)),
};

/// The table of a virtual core.
#[derive(Clone, Debug)]
struct VirtualTable {
    /// Frequencies of the little core in MHz, ascending.
    little_mhz: Vec<u32>,
    /// Frequencies of the big core in MHz, ascending.
    big_mhz: Vec<u32>,
    up_threshold: f64,
}

/// A little core's frequency counts half (`VIRT_FREQ`).
const LITTLE_DIVISOR: u32 = 2;

/// Which core of a pair runs, and what it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Virtual {
    on_big: bool,
    /// Virtual frequency in MHz.
    mhz: u32,
}

impl VirtualTable {
    /// The table of two cores' frequencies; big ones below `big_min_mhz` are left out, unless all are.
    fn new(little_mhz: &[u32], big_mhz: &[u32], big_min_mhz: u32, up_threshold: f64) -> Self {
        let begin = big_mhz.partition_point(|&mhz| mhz < big_min_mhz).min(big_mhz.len() - 1);
        let (little_mhz, big_mhz) = (little_mhz.to_vec(), big_mhz[begin..].to_vec());
        Self { little_mhz, big_mhz, up_threshold }
    }

    fn little_max(&self) -> u32 {
        self.little_mhz[self.little_mhz.len() - 1] / LITTLE_DIVISOR
    }

    fn max(&self) -> u32 {
        self.little_max().max(self.big_mhz[self.big_mhz.len() - 1])
    }

    /// All virtual frequencies.
    fn all(&self) -> impl Iterator<Item = u32> + '_ {
        let little = self.little_mhz.iter().map(|mhz| mhz / LITTLE_DIVISOR);
        little.chain(self.big_mhz.iter().copied())
    }

    /// The virtual core after a window in which it was busy for that share.
    fn next(&self, now: Virtual, busy: f64) -> Virtual {
        let mhz = if busy > self.up_threshold {
            self.max()
        } else {
            let wanted = busy * f64::from(now.mhz) / self.up_threshold;
            let enough = self.all().filter(|&mhz| f64::from(mhz) >= wanted);
            enough.min().unwrap_or(self.max())
        };
        let on_big = if now.on_big { mhz >= self.big_mhz[0] } else { mhz > self.little_max() };
        Virtual { on_big, mhz }
    }

    /// The frequency of the core that runs, in MHz.
    fn real_mhz(&self, now: Virtual) -> u32 {
        if now.on_big { now.mhz } else { now.mhz * LITTLE_DIVISOR }
    }
}

/// Two cores that are one.
#[derive(Clone, Copy, Debug)]
struct Pair {
    big: CoreId,
    little: CoreId,
    now: Virtual,
}

impl Pair {
    fn active(&self) -> CoreId {
        if self.now.on_big { self.big } else { self.little }
    }

    fn has(&self, core: CoreId) -> bool {
        core == self.big || core == self.little
    }
}

/// The in-kernel switcher.
struct Iks {
    cfs: CfsRules,
    sampling_ns: Ns,
    up_threshold: f64,
    big_min_mhz: u32,
    busy: Busy,
    /// None before the first call that shows the machine.
    pairs: Option<Vec<Pair>>,
}

impl Iks {
    fn new(params: &Params) -> Self {
        Self {
            cfs: CfsRules::new(params),
            sampling_ns: params.ms("sampling_ms"),
            up_threshold: params.number("up_threshold"),
            big_min_mhz: params.number("big_min_mhz") as u32,
            busy: Busy::default(),
            pairs: None,
        }
    }

    /// The table of a pair's clusters.
    fn table(&self, topology: &Topology, pair: &Pair) -> VirtualTable {
        let freqs = |core| {
            let cluster = topology.core(core).cluster;
            &topology.clusters()[cluster.index()].freqs_mhz
        };
        VirtualTable::new(freqs(pair.little), freqs(pair.big), self.big_min_mhz, self.up_threshold)
    }

    /// The pairs; at first each runs on its big core at the highest frequency, as at boot. There are none where
    /// frequencies are not known.
    fn pairs(&mut self, topology: &Topology) -> Vec<Pair> {
        if let Some(pairs) = &self.pairs {
            return pairs.clone();
        }
        let known = topology.clusters().iter().all(|cluster| !cluster.freqs_mhz.is_empty());
        let cores = topology.big_cores().zip(topology.little_cores()).filter(|_| known);
        let mut pairs: Vec<Pair> = cores
            .map(|(big, little)| Pair { big, little, now: Virtual { on_big: true, mhz: 0 } })
            .collect();
        for pair in &mut pairs {
            pair.now.mhz = self.table(topology, pair).max();
        }
        self.pairs = Some(pairs.clone());
        pairs
    }

    /// Each cluster runs at the greatest frequency that its virtual cores want, without any at its lowest.
    fn set_frequencies(&self, view: &View, plan: &mut Plan, pairs: &[Pair]) {
        let topology = view.topology();
        let cluster_of = |core| topology.core(core).cluster;
        for (index, cluster) in topology.clusters().iter().enumerate() {
            let id = ClusterId::from(index);
            let own = pairs.iter().filter(|pair| cluster_of(pair.active()) == id);
            let wanted = own.map(|pair| self.table(topology, pair).real_mhz(pair.now)).max();
            let mhz = wanted.unwrap_or(cluster.freqs_mhz[0]);
            if mhz != view.frequency_mhz(id) {
                plan.set_frequency(id, mhz);
            }
        }
    }
}

fn active_cores(pairs: &[Pair]) -> CoreSet {
    pairs.iter().map(Pair::active).collect()
}

impl Policy for Iks {
    fn needs(&self) -> Needs {
        Needs {
            epoch_ns: Some(self.sampling_ns),
            frequencies: true,
            events: Events { lifecycle: true, ..Events::default() },
            ..Needs::default()
        }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        self.cfs.on(topology)
    }

    fn on_event(&mut self, view: &View, event: Event, plan: &mut Plan) {
        let pairs = self.pairs(view.topology());
        if let (Event::Added(thread), false) = (event, pairs.is_empty()) {
            plan.set(thread, Change::Affinity(active_cores(&pairs)));
        }
    }

    fn knows_siblings(&self) -> bool {
        false
    }

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        let usage = self.busy.look(view);
        let before = self.pairs(view.topology());
        if before.is_empty() {
            return;
        }
        let mut pairs = before.clone();
        for pair in &mut pairs {
            let busy = usage[pair.big.index()] + usage[pair.little.index()];
            pair.now = self.table(view.topology(), pair).next(pair.now, busy);
        }
        self.pairs = Some(pairs.clone());
        self.set_frequencies(view, plan, &pairs);
        let active = active_cores(&pairs);
        if active != active_cores(&before) {
            for thread in view.threads() {
                // First to the partner alone, then the others, too: who runs or waits on a core that is switched goes
                // there, and the allocator has no say.
                if let Some(partner) = partner_to_go_to(view, &pairs, thread) {
                    plan.set(thread, Change::Affinity([partner].into_iter().collect()));
                }
                plan.set(thread, Change::Affinity(active.clone()));
            }
        }
    }
}

/// The other core of its pair for a thread that runs or waits on one that is not active any more.
fn partner_to_go_to(view: &View, pairs: &[Pair], thread: ThreadId) -> Option<CoreId> {
    let core = view.core(thread);
    let active = pairs.iter().find(|pair| pair.has(core))?.active();
    let goes = active != core && view.state(thread).is_runnable();
    (goes && view.user_allows(thread, active)).then_some(active)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_a_change_of_frequency() {
        let little: Vec<u32> = (2..=14).map(|hundreds| hundreds * 100).collect();
        let big: Vec<u32> = (2..=20).map(|hundreds| hundreds * 100).collect();
        let table = VirtualTable::new(&little, &big, 800, 0.8);
        let at = |on_big, mhz| Virtual { on_big, mhz };
        let up = table.next(at(false, 700), 0.85);
        assert_eq!(up, at(true, 2000));
        let down = table.next(up, 0.20);
        assert_eq!((down, table.real_mhz(down)), (at(false, 500), 1000));
        // At the threshold itself the present frequency is enough; below, the next that is enough.
        assert_eq!(table.next(at(false, 700), 0.8), at(false, 700));
        assert_eq!(table.next(at(true, 2000), 0.321), at(true, 900));
        assert_eq!(table.next(at(true, 2000), 0.32), at(true, 800));
        assert_eq!(table.next(at(true, 2000), 0.281), at(true, 800), "702.5 is above 700");
        assert_eq!(table.next(at(true, 800), 0.7), at(false, 700));
        assert_eq!(table.next(at(false, 400), 0.0), at(false, 100));
    }

    #[test]
    fn the_big_table_begins_where_it_can() {
        let table = VirtualTable::new(&[1000], &[300, 400], 800, 0.8);
        assert_eq!((table.big_mhz.clone(), table.max()), (vec![400], 500));
    }
}
