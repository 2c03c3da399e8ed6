//! SmartBalance: the assignment of threads to cores with the most instructions per joule.

mod anneal;

use ampsched_model::{ClassId, ClusterId, CoreId, Draw, MAX_CLASSES, Ns, ThreadId};

use self::anneal::{Cooling, Figures, Problem};
use super::cfs::{self, CfsRules};
use super::support::window::{PerAffinity, PerThread};
use super::support::{class_speeds, known_speedup};
use crate::{
    Change, FactorKind, Needs, ParamInfo, Params, Plan, Policy, PolicyInfo, Rules, Topology, View,
};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "smart-balance",
    summary: "SmartBalance: senses speed and power of threads, predicts both for all cores, and pins threads where that is most efficient",
    source: "Sarma et al.: SmartBalance, DAC 2015, from its abstract; what that leaves open is a reconstruction",
    documentation: "\
**Purpose.** The most instructions per joule, by placement alone.

**When to use.** Where instructions per joule count and clocks are not to be touched. It needs speed-ups, \
instructions and, to tell threads apart, their power (`--energy`); the kernel back end reads neither of the last \
two, so it runs in the simulator only. Not for speed: big cores may stay idle.

**Algorithm.** Every `epoch_ms`. *Sense*: instructions per s and power of each thread on the core where it ran, and the share of time in which it wanted to run. *Predict*: both on every core. Speed by the thread's predicted speed-up (`--factors`), classes between \
interpolated geometrically; power in the ratio of the energy model's powers at the present frequencies. *Balance*: simulated annealing from the present assignment maximises (sum of instructions per s) / (sum of power). Threads that share a core share its time. A move puts one thread elsewhere or exchanges two; \
of `moves` moves, those that lose the part d of the efficiency are accepted with probability e^(-d / T), where T falls from `temperature` to 0. The best assignment found is pinned for an epoch, one core per thread; \
a thread that has not run yet goes where CFS puts it. CFS shares each core.

**Constants.** `epoch_ms` = 60, `moves` = 200 and `temperature` = 0.1 are ours, and so is `seed`, which makes a run repeatable. The power that is drawn whoever runs where is that of the uncores.

**Example.** A big and a little core; one thread of 4000 or 1000 instructions per us at 1000 or 200 mW, one of 1200 or 1000: with 600 mW drawn anyway, the first goes to the big core (5000 / 1800 = 2.8 per nJ); with nothing drawn anyway, both \
to the little one (1000 / 200 = 5).

**Limits.** A reconstruction: the paper's predictors and its treatment of idle power are not known. The ratio that is maximised does not ask for speed: where little cores are much more efficient, big ones stay idle. Pinned threads do not move when a core runs out of work. Clusters of one class count as equally fast. \
Without `--energy` the energy model's power counts for all threads alike; without that, instructions per s alone.",
    params: &[
        ParamInfo::number("epoch_ms", 60.0, 1.0, 10_000.0, "time between looks (ours)"),
        ParamInfo::number("moves", 200.0, 0.0, 100_000.0, "moves per look (ours)"),
        ParamInfo::number("temperature", 0.1, 1e-6, 100.0, "loss that is accepted with probability 1 / e at first (ours)"),
        ParamInfo::number("seed", 1.0, 0.0, 1e9, "of the moves (ours)"),
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| Box::new(SmartBalance::new(params)),
};

/// What was seen of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct Sensed {
    instructions: [u64; MAX_CLASSES],
    run_ns: [Ns; MAX_CLASSES],
    ready_ns: Ns,
    /// Where it ran most in the last epoch in which it ran; none if it never has.
    ran: Option<Measured>,
    demand: f64,
}

/// What a thread does on a class of cores.
#[derive(Clone, Copy, Debug)]
struct Measured {
    class: ClassId,
    /// A cluster of that class: of several the one where the thread was last.
    cluster: ClusterId,
    ips: f64,
    /// None: not known.
    power_mw: Option<f64>,
}

impl Sensed {
    /// An epoch is over.
    fn sense(&mut self, view: &View, thread: ThreadId, epoch_ns: Ns) {
        let (stats, instructions) = (view.stats(thread), view.instructions(thread));
        let ran_ns = |class: usize| stats.run_ns[class] - self.run_ns[class];
        let total_ns: Ns = (0..MAX_CLASSES).map(ran_ns).sum();
        let waited_ns = view.ready_ns(thread) - self.ready_ns;
        self.demand = ((total_ns + waited_ns) as f64 / epoch_ns as f64).min(1.0);
        // Of equal ones the last: the fastest.
        let most = (0..MAX_CLASSES).max_by_key(|&class| ran_ns(class)).expect("there are classes");
        if ran_ns(most) > 0 {
            let retired = instructions[most] - self.instructions[most];
            let power = view.factors(thread).power_mw;
            let class = ClassId::from(most);
            self.ran = Some(Measured {
                class,
                cluster: cluster_of(view, thread, class),
                ips: retired as f64 * 1e9 / ran_ns(most) as f64,
                power_mw: (power.kind != FactorKind::Missing).then_some(power.value),
            });
        }
        self.instructions = *instructions;
        self.run_ns = stats.run_ns;
        self.ready_ns = view.ready_ns(thread);
    }
}

/// SmartBalance.
struct SmartBalance {
    cfs: CfsRules,
    epoch_ns: Ns,
    cooling: Cooling,
    random: Draw,
    sensed: PerThread<Sensed>,
    /// Those that wanted to run in the last epoch.
    wanting: Vec<ThreadId>,
    pinned: PerThread<Option<CoreId>>,
    problem: Problem,
}

impl SmartBalance {
    fn new(params: &Params) -> Self {
        let (moves, temperature) = (params.whole("moves"), params.number("temperature"));
        Self {
            cfs: CfsRules::new(params),
            epoch_ns: params.ms("epoch_ms"),
            cooling: Cooling { moves, temperature },
            random: Draw::new(u64::from(params.whole("seed"))),
            sensed: PerThread::default(),
            wanting: Vec::new(),
            pinned: PerThread::default(),
            problem: Problem::default(),
        }
    }

    /// Who has slept has neither run nor waited: its demand is 0.
    fn sense(&mut self, view: &View) {
        for thread in self.wanting.drain(..) {
            self.sensed.slot(thread).demand = 0.0;
        }
        for &thread in view.recent().iter() {
            let sensed = self.sensed.slot(thread);
            sensed.sense(view, thread, self.epoch_ns);
            if sensed.demand > 0.0 {
                self.wanting.push(thread);
            }
        }
    }

    /// Says of all threads that have run what they would do on each core. Returns who and where they are.
    fn pose(&mut self, view: &View) -> (Vec<ThreadId>, Vec<usize>) {
        let topology = view.topology();
        let ids = (0..topology.clusters().len()).map(ClusterId::from);
        let busy_mw: Vec<f64> = ids.map(|cluster| believed_mw(view, cluster)).collect();
        let clusters = topology.cores().map(|core| topology.core(core).cluster.index());
        self.problem.reset(clusters, uncores_mw(view));
        let mut sets: PerAffinity<Option<u32>> = PerAffinity::default();
        let (mut threads, mut present) = (Vec::new(), Vec::new());
        for thread in view.threads() {
            let sensed = self.sensed.slot(thread);
            let (demand, Some(measured)) = (sensed.demand, sensed.ran) else { continue };
            let set = *sets.slot(view.plan(thread).user_affinity).get_or_insert_with(|| {
                let allowed = topology.cores().filter(|&core| view.user_allows(thread, core));
                self.problem.add_set(allowed.map(CoreId::index))
            });
            if demand > 0.0 {
                self.problem.add(demand, predict(view, thread, measured, &busy_mw), set);
            } else {
                self.problem.add_idle(set);
            }
            threads.push(thread);
            present.push(view.core(thread).index());
        }
        (threads, present)
    }
}

/// The cluster of a class where a thread is, or, if it has moved to another class, the class's most powerful one.
fn cluster_of(view: &View, thread: ThreadId, class: ClassId) -> ClusterId {
    let own = view.topology().core(view.core(thread));
    if own.class == class {
        return own.cluster;
    }
    let clusters = view.topology().clusters().iter().enumerate();
    let of_class = clusters.filter(|(_, cluster)| cluster.class == class);
    let all = of_class.map(|(index, _)| ClusterId::from(index));
    let most = |one: &ClusterId, other: &ClusterId| {
        believed_mw(view, *one).total_cmp(&believed_mw(view, *other)).then(other.cmp(one))
    };
    all.max_by(most).expect("a class has a cluster")
}

/// Speed and power that are predicted for a thread on each cluster's cores; `busy_mw` is that of a busy one.
fn predict(
    view: &View,
    thread: ThreadId,
    measured: Measured,
    busy_mw: &[f64],
) -> impl Iterator<Item = Figures> {
    let topology = view.topology();
    let speeds = class_speeds(known_speedup(view, thread).unwrap_or(1.0), topology.class_count());
    let own_mw = busy_mw[measured.cluster.index()];
    topology.clusters().iter().zip(busy_mw).map(move |(cluster, &there_mw)| Figures {
        ips: measured.ips * speeds[cluster.class.index()] / speeds[measured.class.index()],
        power_mw: match measured.power_mw {
            Some(power_mw) if own_mw > 0.0 => power_mw * there_mw / own_mw,
            _ => there_mw,
        },
    })
}

/// Power in mW of a busy core of a cluster at its present frequency, as the energy model has it; 0 if it
/// tells none.
fn believed_mw(view: &View, cluster: ClusterId) -> f64 {
    let model = &view.topology().clusters()[cluster.index()].energy_model;
    let mhz = view.frequency_mhz(cluster);
    let point = model.iter().find(|point| point.mhz >= mhz).or(model.last());
    point.map_or(0.0, |point| point.power_mw)
}

/// Power in mW of all uncores at their present frequencies, without leakage; 0 if it is not known.
fn uncores_mw(view: &View) -> f64 {
    let topology = view.topology();
    let Some(board) = topology.board() else { return 0.0 };
    let uncore_mw = |(index, cluster): (usize, &crate::ClusterInfo)| {
        let mhz = view.frequency_mhz(ClusterId::from(index));
        let level = cluster.freqs_mhz.partition_point(|&each| each < mhz);
        board.power[index].uncore_mw[level.min(cluster.freqs_mhz.len() - 1)]
    };
    topology.clusters().iter().enumerate().map(uncore_mw).sum()
}

impl Policy for SmartBalance {
    fn needs(&self) -> Needs {
        Needs {
            speedup: true,
            instructions: true,
            power: true,
            epoch_ns: Some(self.epoch_ns),
            ..Needs::default()
        }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        self.cfs.on(topology)
    }

    fn caveat(&self, topology: &Topology, sensors: bool) -> Option<String> {
        let known = topology.clusters().iter().all(crate::ClusterInfo::has_energy_model);
        let reason = match (known, sensors) {
            (false, _) => "no power is known: it maximises instructions per second",
            (true, false) => {
                "without energy accounting all threads draw what the energy model says"
            }
            (true, true) => return None,
        };
        Some(reason.to_owned())
    }

    fn knows_siblings(&self) -> bool {
        false
    }

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        self.sense(view);
        let (threads, present) = self.pose(view);
        let chosen = self.problem.anneal(&present, self.cooling, &mut self.random);
        for (thread, core) in threads.into_iter().zip(chosen) {
            let core = CoreId::from(core);
            if self.pinned.slot(thread).replace(core) != Some(core) {
                plan.set(thread, Change::Affinity(core.into()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::EnergyPoint;

    use super::*;
    use crate::ClusterInfo;
    use crate::testing::{PolicyHost, build};

    #[test]
    fn without_powers_those_who_gain_most_have_the_big_cores() {
        let mut host = PolicyHost::new(&[(1, 2), (0, 2)], build("smart-balance", &[]));
        let threads = host.add_programs(&[1.2, 3.0, 1.4, 2.5]);
        for _ in 0..3 {
            host.run_epoch();
        }
        let mut on_fast = host.on_fast();
        on_fast.sort();
        assert_eq!(on_fast, [threads[1], threads[3]]);
        let cores: Vec<_> = threads.iter().map(|&thread| host.sched.thread(thread).core).collect();
        assert!((0..4).all(|core| cores.iter().any(|each| each.index() == core)), "{cores:?}");
    }

    #[test]
    fn m11_of_a_class_with_several_clusters_the_thread_s_own_counts() {
        for powers_mw in [[100.0, 300.0], [300.0, 100.0]] {
            let cluster = |class, core: usize, power_mw| ClusterInfo {
                shares_l2: false,
                class: ClassId(class),
                cores: vec![core.into()],
                freqs_mhz: vec![1000],
                design: None,
                energy_model: vec![EnergyPoint { mhz: 1000, capacity: 512.0, power_mw }],
            };
            let topology = Topology::from_clusters(vec![
                cluster(0, 0, powers_mw[0]),
                cluster(0, 1, powers_mw[1]),
                cluster(1, 2, 900.0),
            ]);
            let mut host = PolicyHost::on(topology, build("smart-balance", &[]));
            let threads = host.add_programs(&[1.5, 1.5, 1.5]);
            let view = host.view();
            for thread in threads {
                let own = view.topology().core(view.core(thread));
                assert_eq!(cluster_of(&view, thread, own.class), own.cluster);
                // Of a class where it is not, the most powerful.
                let most = if own.class == ClassId(1) {
                    ClusterId::from(usize::from(powers_mw[1] > powers_mw[0]))
                } else {
                    ClusterId(2)
                };
                assert_eq!(cluster_of(&view, thread, ClassId(1 - own.class.0)), most);
            }
        }
    }

    #[test]
    fn threads_that_have_not_run_are_left_alone() {
        let mut host = PolicyHost::new(&[(1, 1), (0, 1)], build("smart-balance", &[]));
        host.add_programs(&[2.0, 2.0]);
        assert_eq!(host.epoch(), 0);
    }
}
