//! HPM: controllers for tasks, clusters and the chip, one above the other.

mod pid;

use ampsched_model::{ClusterId, CoreId, CoreSet, Ns, ThreadId};

use self::pid::{Gains, Pid};
use super::cfs::{self, CfsRules};
use super::support::window::PerThread;
use crate::{
    Change, FactorKind, Needs, ParamInfo, Params, Plan, Policy, PolicyInfo, Prefer, Rules,
    Topology, View,
};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "hpm",
    summary: "hierarchical power management: shares for tasks, frequencies for clusters, a power limit for the chip",
    source: "Muthukaruppan et al.: HPM, DAC 2013, as HFEE, IEEE TC 2020, describes it in its related work; a reconstruction",
    documentation: "\
**Purpose.** Every task at the speed that it is meant to have, at the lowest frequencies that do it, within the thermal design power (TDP).

**When to use.** Where every task has a speed to keep (`goal`) and the chip a limit of power. It needs speeds alone, \
instructions and power sensors, and sets clocks: `--energy`, Exynos 5422. Not for the greatest speed: clocks are as \
low as the goal allows.

**Algorithm.** Three levels of PID controllers. *Task*, every `task_ms`: its rate is instructions per time in which it wanted to run, relative to those alone on a fast core at the highest frequency; the error, `goal` - rate, drives its share of a fast core, and its weight under CFS is proportional to the share. \
*Cluster*, every `cluster_ms`: what the fullest core has to supply is the sum of its tasks' shares, each times the part of time in which the task wanted to run, at least the greatest share, over the core's capacity; the difference to the present supply drives the frequency. \
*Chip*, every `chip_ms`: (TDP - power) / TDP drives a factor that limits the frequencies of all clusters, so each keeps its part of the power. At the same time a task whose share is more than its little core's capacity goes to the big ones if one has room for it; it returns when its share is below 0.8 of a little core's capacity, or when its core is overloaded and a little one idle.

**Constants.** The description names none. `task_ms` = 10, `cluster_ms` = 50, `chip_ms` = 200, `goal` = 0.5, `tdp_mw` = 4000 (about half of what an Exynos 5422 draws at most), all gains and the 0.8 (Linux's margin for a thread that fits) are ours. The gains of task and cluster give both loops together a \
damping of 0.7 for one thread per core; those of the chip stay stable for powers that grow with the third power of the frequency.

**Example.** A thread that gets 0.3 of its speed alone and should get 0.5: after 10 ms its share grows by 5 x 0.2 x 0.01 = 0.01. Two threads of shares 0.5 and 0.25 on a core of full capacity: the cluster goes to three quarters of its highest frequency.

**Limits.** A reconstruction from two sentences: the paper's heart rates are set by programs, here all have one goal. It sets frequencies itself: governors have no say. Without power sensors (`--energy`, Exynos 5422) there is no limit of power; TDP is kept on average, after some seconds, not at every moment, \
and less well if `goal` is below 1 and tasks keep going up and down between clusters: of 2800 random loads 10 were more than 2 % above it, the worst 16 %. \
Speeds alone are measured beforehand.",
    params: &[
        ParamInfo::number("goal", 0.5, 0.01, 1.0, "speed that every task is meant to have, relative to alone on a fast core (ours)"),
        ParamInfo::number("tdp_mw", 4000.0, 1.0, 1e6, "power of all clusters together (ours)"),
        ParamInfo::number("task_ms", 10.0, 0.1, 1000.0, "period of the tasks' controllers (ours)"),
        ParamInfo::number("cluster_ms", 50.0, 0.1, 10_000.0, "period of the clusters' controllers, rounded up to looks (ours)"),
        ParamInfo::number("chip_ms", 200.0, 0.1, 10_000.0, "period of the chip's controller, rounded up to looks (ours)"),
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| Box::new(Hpm::new(params)),
};

// Gains, all ours; derivatives are left out because rates and sensors are noisy. One thread alone on a core:
// share' = 5 (goal - f), f' = 10 (share - f), so s^2 + 10 s + 50 = 0, a damping of 0.71.
const TASK: Gains = Gains { p: 0.1, i_per_s: 5.0, d_s: 0.0 };
const CLUSTER: Gains = Gains { p: 0.0, i_per_s: 10.0, d_s: 0.0 };
/// A sensor's period of 270 ms x 0.5 / s x 3 (power grows at most with the third power of the frequency) is 0.4 per
/// step: less than 1, so it does not overshoot.
const CHIP: Gains = Gains { p: 0.0, i_per_s: 0.5, d_s: 0.0 };
/// Least share of a task, so that it always advances: the weight of nice 19 (Linux: 15 / 1024).
const SHARE_MIN: f64 = 15.0 / 1024.0;
/// Part of a little core's capacity below which a task's share fits there (Linux, `fits_capacity`).
const FITS: f64 = 0.8;

/// A task and its controller.
#[derive(Clone, Debug, Default)]
struct Task {
    /// None: not seen yet.
    share: Option<Pid>,
    instructions: u64,
    wanted_ns: Ns,
    /// Time in which it wanted to run, in the clusters' present period: not 0 for those in [`Hpm::wanted`] only.
    wanted_in_period_ns: Ns,
    kind: Option<Prefer>,
    weight: u32,
}

/// When something was done last.
#[derive(Clone, Copy, Debug)]
struct Period {
    every_ns: Ns,
    last_ns: Ns,
}

impl Period {
    fn new(every_ns: Ns) -> Self {
        Self { every_ns, last_ns: 0 }
    }

    /// The time since the last one if the next is due.
    fn due(&mut self, now_ns: Ns) -> Option<Ns> {
        let elapsed_ns = now_ns - self.last_ns;
        (elapsed_ns >= self.every_ns).then(|| {
            self.last_ns = now_ns;
            elapsed_ns
        })
    }
}

/// HPM.
struct Hpm {
    cfs: CfsRules,
    goal: f64,
    tdp_mw: f64,
    task_ns: Ns,
    tasks: PerThread<Task>,
    /// Those that have wanted to run in the clusters' present period.
    wanted: Vec<ThreadId>,
    cluster_period: Period,
    /// Supply of each cluster, as a part of its highest frequency.
    supplies: Vec<Pid>,
    chip_period: Period,
    /// Part of the highest frequencies that the chip's power allows.
    cap: Pid,
    /// When the newest power reading was taken that the chip has acted on.
    read_ns: Ns,
}

impl Hpm {
    fn new(params: &Params) -> Self {
        Self {
            cfs: CfsRules::new(params),
            goal: params.number("goal"),
            tdp_mw: params.number("tdp_mw"),
            task_ns: params.ms("task_ms"),
            tasks: PerThread::default(),
            wanted: Vec::new(),
            cluster_period: Period::new(params.ms("cluster_ms")),
            supplies: Vec::new(),
            chip_period: Period::new(params.ms("chip_ms")),
            cap: Pid::new(CHIP, (0.0, 1.0), 1.0),
            read_ns: 0,
        }
    }

    /// Lets a task's share follow its rate; plans its weight.
    fn control_task(&mut self, view: &View, plan: &mut Plan, thread: ThreadId) {
        let (goal, stats) = (self.goal, view.stats(thread));
        let task = self.tasks.slot(thread);
        let wanted_ns = stats.run_ns_total() + view.ready_ns(thread);
        let elapsed_ns = wanted_ns - std::mem::replace(&mut task.wanted_ns, wanted_ns);
        let retired = view.instructions_total(thread);
        let done = retired - std::mem::replace(&mut task.instructions, retired);
        if task.wanted_in_period_ns == 0 && elapsed_ns > 0 {
            self.wanted.push(thread);
        }
        task.wanted_in_period_ns += elapsed_ns;
        let pid = task.share.get_or_insert(Pid::new(TASK, (SHARE_MIN, 1.0), goal));
        let alone_ips = view.factors(thread).alone_ips.or(0.0);
        if elapsed_ns > 0 && alone_ips > 0.0 {
            let time_s = elapsed_ns as f64 / 1e9;
            pid.step(goal - done as f64 / (alone_ips * time_s), time_s);
        }
        let weight = (1024.0 * pid.output()).round() as u32;
        if std::mem::replace(&mut task.weight, weight) != weight {
            plan.set(thread, Change::Weight(weight));
        }
    }

    fn share(&mut self, thread: ThreadId) -> f64 {
        self.tasks.slot(thread).share.map_or(0.0, |pid| pid.output())
    }

    /// What each core has to supply, as a part of what it can at its highest frequency.
    fn needs_of_cores(&mut self, view: &View, period_ns: Ns) -> Vec<f64> {
        let topology = view.topology();
        let (mut sums, mut greatest) =
            (vec![0.0; topology.core_count()], vec![0.0f64; topology.core_count()]);
        let mut wanted = std::mem::take(&mut self.wanted);
        wanted.sort_unstable();
        for &thread in wanted.iter().filter(|&&thread| view.state(thread).is_live()) {
            let share = self.share(thread);
            let wanted_ns = std::mem::take(&mut self.tasks.slot(thread).wanted_in_period_ns);
            let core = view.core(thread).index();
            sums[core] += share * (wanted_ns as f64 / period_ns as f64).min(1.0);
            greatest[core] = greatest[core].max(share);
        }
        let need = |core: CoreId| {
            let share = sums[core.index()].max(greatest[core.index()]);
            share * 1024.0 / f64::from(topology.core(core).capacity)
        };
        topology.cores().map(need).collect()
    }

    fn control_clusters(&mut self, view: &View, plan: &mut Plan, period_ns: Ns) {
        let needs = self.needs_of_cores(view, period_ns);
        let topology = view.topology();
        let full = Pid::new(CLUSTER, (0.0, 1.0), 1.0);
        self.supplies.resize(topology.clusters().len(), full);
        for (index, cluster) in topology.clusters().iter().enumerate() {
            let need = cluster.cores.iter().map(|core| needs[core.index()]).fold(0.0, f64::max);
            let pid = &mut self.supplies[index];
            let supply = pid.step(need.min(1.0) - pid.output(), period_ns as f64 / 1e9);
            let Some(max_mhz) = cluster.max_mhz() else { continue };
            let mhz = self.allowed_mhz(&cluster.freqs_mhz, supply * f64::from(max_mhz));
            if mhz != view.wanted_mhz(ClusterId::from(index)) {
                plan.set_frequency(ClusterId::from(index), mhz);
            }
        }
    }

    /// The lowest frequency that is at least as high, but none above the chip's limit unless it is the lowest.
    fn allowed_mhz(&self, freqs_mhz: &[u32], wanted_mhz: f64) -> u32 {
        let last = freqs_mhz.len() - 1;
        let limit_mhz = self.cap.output() * f64::from(freqs_mhz[last]);
        let wanted = freqs_mhz.partition_point(|&mhz| f64::from(mhz) < wanted_mhz).min(last);
        let limit = freqs_mhz.partition_point(|&mhz| f64::from(mhz) <= limit_mhz).saturating_sub(1);
        freqs_mhz[wanted.min(limit)]
    }

    /// Lets the chip's limit follow its power, once per reading of the sensors.
    fn control_chip(&mut self, view: &View) {
        let clusters = (0..view.topology().clusters().len()).map(ClusterId::from);
        let readings: Vec<_> = clusters.map(|cluster| view.power_mw(cluster)).collect();
        let known = readings.iter().filter(|reading| reading.kind != FactorKind::Missing);
        let Some(read_ns) = known.clone().map(|reading| reading.at_ns).max() else { return };
        if read_ns > self.read_ns {
            let time_s = (read_ns - std::mem::replace(&mut self.read_ns, read_ns)) as f64 / 1e9;
            let power_mw: f64 = known.map(|reading| reading.value).sum();
            self.cap.step((self.tdp_mw - power_mw) / self.tdp_mw, time_s);
        }
    }

    /// Sends tasks up to big cores that can give them their shares, and down again.
    fn migrate(&mut self, view: &View, plan: &mut Plan) {
        let topology = view.topology();
        if topology.class_count() == 1 {
            return;
        }
        let mut loads = vec![0.0; topology.core_count()];
        for thread in view.threads() {
            loads[view.core(thread).index()] += self.share(thread);
        }
        for thread in view.threads() {
            let (core, share) = (view.core(thread), self.share(thread));
            let present = self.tasks.slot(thread).kind.unwrap_or(topology.kind(core));
            let target = match present {
                Prefer::Big => down(topology, &loads, core, share),
                _ => up(topology, &loads, core, share),
            };
            let kind = target.map_or(present, |target| topology.kind(target));
            if let Some(target) = target {
                loads[core.index()] -= share;
                loads[target.index()] += share;
            }
            if self.tasks.slot(thread).kind.replace(kind) != Some(kind) {
                let of_kind = |&core: &CoreId| topology.kind(core) == kind;
                let cores: CoreSet = topology.cores().filter(of_kind).collect();
                plan.set(thread, Change::Affinity(cores));
            }
        }
    }
}

/// Capacity of a core relative to the fastest.
fn part(topology: &Topology, core: CoreId) -> f64 {
    f64::from(topology.core(core).capacity) / 1024.0
}

/// The big core with the most room if the little one cannot give a task its share and that one can.
fn up(topology: &Topology, loads: &[f64], core: CoreId, share: f64) -> Option<CoreId> {
    if share <= part(topology, core) {
        return None;
    }
    let room = |core: &CoreId| part(topology, *core) - loads[core.index()];
    let roomiest = topology.big_cores().max_by(|a, b| room(a).total_cmp(&room(b)))?;
    (room(&roomiest) >= share).then_some(roomiest)
}

/// The least loaded little core if the task fits there, or if its own core is overloaded and that one idle.
fn down(topology: &Topology, loads: &[f64], core: CoreId, share: f64) -> Option<CoreId> {
    let load = |core: &CoreId| loads[core.index()];
    let lightest = topology.little_cores().min_by(|a, b| load(a).total_cmp(&load(b)))?;
    let fits = share < FITS * part(topology, lightest);
    let relieves = load(&core) > part(topology, core) && load(&lightest) == 0.0;
    (fits || relieves).then_some(lightest)
}

impl Policy for Hpm {
    fn needs(&self) -> Needs {
        Needs {
            alone: true,
            instructions: true,
            epoch_ns: Some(self.task_ns),
            frequencies: true,
            sensors: true,
            ..Needs::default()
        }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        self.cfs.on(topology)
    }

    fn caveat(&self, _topology: &Topology, sensors: bool) -> Option<String> {
        let unlimited =
            "without energy accounting no sensor tells it the power, which it does not limit";
        (!sensors).then(|| unlimited.to_owned())
    }

    fn knows_siblings(&self) -> bool {
        false
    }

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        // Who has slept has not wanted to run.
        for &thread in view.recent().iter() {
            self.control_task(view, plan, thread);
        }
        if self.chip_period.due(view.now_ns()).is_some() {
            self.control_chip(view);
            self.migrate(view, plan);
        }
        if let Some(period_ns) = self.cluster_period.due(view.now_ns()) {
            self.control_clusters(view, plan, period_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::{ClassId, EnergyPoint};

    use super::*;
    use crate::testing::{PolicyHost, build};
    use crate::{ClusterInfo, Factor, REGISTRY};

    fn hpm(goal: f64) -> Hpm {
        let defaults = REGISTRY.iter().find(|info| info.name == "hpm").unwrap();
        let mut params = Params::defaults(defaults.params);
        params.set("goal", goal);
        Hpm::new(&params)
    }

    #[test]
    fn tasks_go_up_if_there_is_room_and_down_if_they_fit() {
        let cluster = |class: u8, cores: [u16; 2], capacity| ClusterInfo {
            shares_l2: false,
            class: ClassId(class),
            cores: cores.map(CoreId).to_vec(),
            freqs_mhz: vec![1000],
            design: None,
            energy_model: vec![EnergyPoint { mhz: 1000, capacity, power_mw: 0.0 }],
        };
        let topology =
            Topology::from_clusters(vec![cluster(1, [0, 1], 1024.0), cluster(0, [2, 3], 512.0)]);
        // More than the half that a little core has, and a big one has room; or has not.
        assert_eq!(up(&topology, &[0.5, 0.3, 0.6, 0.0], CoreId(2), 0.6), Some(CoreId(1)));
        assert_eq!(up(&topology, &[0.5, 0.5, 0.6, 0.0], CoreId(2), 0.6), None);
        assert_eq!(up(&topology, &[0.0, 0.0, 0.5, 0.0], CoreId(2), 0.5), None);
        // Less than 0.8 of a half; or the own core is overloaded and another idle.
        assert_eq!(down(&topology, &[0.39, 0.0, 0.2, 0.1], CoreId(0), 0.39), Some(CoreId(3)));
        assert_eq!(down(&topology, &[0.41, 0.0, 0.2, 0.1], CoreId(0), 0.41), None);
        assert_eq!(down(&topology, &[1.2, 0.0, 0.2, 0.0], CoreId(0), 0.6), Some(CoreId(3)));
        assert_eq!(down(&topology, &[1.2, 0.0, 0.2, 0.1], CoreId(0), 0.6), None);
    }

    #[test]
    fn a_slow_task_gets_a_greater_share() {
        let mut host = PolicyHost::new(&[(1, 1)], build("hpm", &[]));
        let thread = host.add(None);
        // A tenth of an instruction per ns is 0.3 of the speed alone.
        let alone_ips = Factor { value: 1e8 / 0.3, kind: FactorKind::Measured, at_ns: 0 };
        host.factors[0].alone_ips = alone_ips;
        host.run_epoch();
        // 0.5 + 5 x 0.2 x 0.01 = 0.51.
        assert_eq!(host.view().plan(thread).weight, 522);
        host.factors[0].alone_ips.value = 1e8 / 0.6;
        host.run_epoch();
        // The error goes from 0.2 to -0.1: 0.1 x -0.3 + 5 x -0.1 x 0.01.
        assert_eq!(host.view().plan(thread).weight, 486);
    }

    #[test]
    fn the_fullest_core_says_what_its_cluster_must_supply() {
        let mut host = PolicyHost::new(&[(1, 2)], build("cfs", &[]));
        let threads = host.add_programs(&[1.0, 1.0, 1.0]);
        let cores: Vec<_> = threads.iter().map(|&thread| host.view().core(thread).0).collect();
        assert_eq!(cores, [0, 1, 0]);
        let mut policy = hpm(0.5);
        for (&thread, (share, wanted_ns)) in
            threads.iter().zip([(0.5, 100), (0.6, 50), (0.25, 100)])
        {
            let task = policy.tasks.slot(thread);
            task.share = Some(Pid::new(TASK, (0.0, 1.0), share));
            task.wanted_in_period_ns = wanted_ns;
            policy.wanted.push(thread);
        }
        // 0.5 + 0.25; and 0.6, although it wants to run half of the time only.
        assert_eq!(policy.needs_of_cores(&host.view(), 100), [0.75, 0.6]);
        assert_eq!(policy.needs_of_cores(&host.view(), 100), [0.0, 0.0], "a new period");
    }

    #[test]
    fn the_chips_limit_cuts_frequencies() {
        let mut policy = hpm(0.5);
        let mhz = |policy: &Hpm, wanted| policy.allowed_mhz(&[500, 1000, 1500, 2000], wanted);
        assert_eq!(
            [0.0, 500.0, 501.0, 2500.0].map(|wanted| mhz(&policy, wanted)),
            [500, 500, 1000, 2000]
        );
        policy.cap = Pid::new(CHIP, (0.0, 1.0), 0.7);
        assert_eq!([0.0, 900.0, 1500.0].map(|wanted| mhz(&policy, wanted)), [500, 1000, 1000]);
        policy.cap = Pid::new(CHIP, (0.0, 1.0), 0.0);
        assert_eq!(mhz(&policy, 2000.0), 500);
    }
}
