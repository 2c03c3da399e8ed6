//! HFEE: energy-efficient mapping, and a clock that keeps programs alike in progress.

mod ladder;
mod ranking;
mod trials;

use ampsched_model::{ClusterId, CoreId, CoreSet, Ns, ThreadId};

use self::ladder::{High, Ladder};
use self::ranking::{Chosen, Ranked, Ranking};
use self::trials::Trials;
use super::cfs::{self, CfsRules};
use super::support::uniformity::Uniformity;
use super::support::window::PerThread;
use crate::{
    Change, Event, Events, Needs, ParamInfo, Params, Plan, Policy, PolicyInfo, Prefer, Rules,
    RunState, Topology, View,
};

/// The registry's row of the policy as its paper defines it.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "hfee",
    summary: "HFEE: programs by energy-efficiency ratio, stopped in turns; the big clock holds a uniformity",
    source: "HFEE, IEEE Transactions on Computers 2020, sections 3 and 4, Equation 8 corrected",
    documentation: "\
**Purpose.** Little energy at a fairness that the user sets, for single-threaded programs of which there may be more than cores.

**When to use.** For single-threaded programs that run for many seconds, where energy counts and fairness has a \
target. It needs each program's energy ratio and speed alone, counts instructions, holds programs back and sets the \
clock of the big cluster: `--energy`, Exynos 5422. Not for programs that react or whose threads wait for each other: \
whoever is held back waits for a whole second.

**Algorithm.** Every second programs are ranked by EER, (instructions per joule on a big core) / (the same on a little one): normalised \
between the least and the greatest of those alive, pushed away from 0.5 to at least alpha1 or at most alpha2, and moved further away by every epoch \
that they had to wait. The first N_big go to the big cores, the last N_little to the little ones, the others are stopped. Then the clock of the big \
cluster takes a step: state 1 (uniformity low, clock low) and 2 (high, low, from below) raise it, 3 (low, high) and 4 (high, high) lower it, 5 (high, low, from above) \
holds it. If no more programs live than there are big cores, all run there at the highest frequency. The little clock stays at its highest.

**Constants.** Epoch 1 s and `f_threshold_mhz` = 1400 are the paper's. `uniformity` = 0.75 and `step_mhz` = 100 are those of the authors' scripts; `k` = 4 is ours. \
alpha1 = (K + 1) / (2K + 1), alpha2 = K / (2K + 1). Equation 8 prints 0.5 + alpha1 and 0.5 - alpha2, which exceeds 1 for every K and contradicts the text; without the 0.5 it agrees with it. \
A program exactly at 0.5 takes alpha1 and alpha2 in turns instead of by chance. `reading` says which uniformity is meant: of slowdowns with the standard deviation divided by n (the paper, \
which does not say by what) or by n - 1, or of progress. `burst` = 1: one step per epoch, measured anew. `clock` = 0 leaves the clock to the governor. `online` = 1: every program first has an epoch on either \
kind of core, in which instructions and power are measured (the paper's pre-processing in the first two epochs; more if there are more programs than cores), and the clock rests meanwhile.

**Example.** 2 big and 2 little cores, EERs 2.12, 1.27, 1.13, 1.31, 1.80, 1.12: the first and the fifth stay on the big cores; the others take turns on the little ones.

**Limits.** No model of contention; needs EERs, measured beforehand or with power per core; one clock. One program with an extreme EER pushes all others below 0.5, and the \
first ones then never leave the big cores. The longest wait is not bounded by K + ceil(M / C), as the paper states.",
    params: &[
        K,
        UNIFORMITY,
        F_THRESHOLD,
        STEP,
        READING,
        ParamInfo::number("burst", 1.0, 1.0, 100.0, "steps of the clock per epoch"),
        CLOCK,
        ParamInfo::flag("online", false, "measures EERs in each program's first epochs instead of beforehand"),
        EPOCH,
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| {
        let reading = Uniformity::numbered(params.number("reading"));
        let ladder = ladder(params, High::AtThreshold);
        let ranking = Ranking::corrected(params.number("k"));
        let burst = params.number("burst") as u32;
        let clock = params.flag("clock");
        let trials = params.flag("online").then(Trials::default);
        let variant = Variant { ranking, ladder, reading, burst, clock, trials, restarts: false };
        Box::new(Hfee::new(params, variant))
    },
};

/// The registry's row of what the authors' scripts do.
pub static AS_PUBLISHED: PolicyInfo = PolicyInfo {
    name: "hfee-as-published",
    summary: "HFEE as its authors' scripts do it: EER alone, ten steps of the clock per epoch",
    source: "the scripts that the authors of HFEE (IEEE Transactions on Computers 2020) have published",
    documentation: "\
**Purpose.** To see what the published measurements measured, where scripts and paper differ.

**When to use.** To repeat the published measurements, on three big and three little cores. It needs what `hfee` \
needs: energy ratios, speeds alone and instructions, and it sets the clock. Not for anything else: `hfee` is the \
paper's algorithm.

**Algorithm.** As `hfee`, but: programs are ordered by EER as it is, without normalising, correcting or waiting; the clock takes ten steps per epoch with the \
uniformity of the epoch's beginning, and its state begins anew; uniformity is that of progress (instructions so far / (speed alone x time), at most 1) with n - 1; a clock counts as \
high above 1400 MHz if uniformity is reached, from 1300 MHz on if it is not. The scripts ran on three big and three little cores, so that six programs always fitted: use such a machine. If there \
are more, those in the middle are stopped, which the scripts never had to do.

**Constants.** Those of the scripts: uniformity 0.75, steps of 100 MHz, ten per epoch.

**Example.** At 2000 MHz with uniformity 0.60 the clock ends at 1200 MHz within an epoch, with 0.80 at 1400 MHz; at 600 MHz with 0.90 it ends at 1400 MHz.

**Limits.** Below the threshold it hovers between 1200 and 1300 MHz; good fairness at a low clock is given up for speed.",
    params: &[
        UNIFORMITY,
        F_THRESHOLD,
        STEP,
        EPOCH,
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| {
        let variant = Variant {
            ranking: Ranking::plain(),
            ladder: ladder(params, High::AsPublished),
            reading: Uniformity::ProgressSample,
            burst: 10,
            clock: true,
            trials: None,
            restarts: true,
        };
        Box::new(Hfee::new(params, variant))
    },
};

const K: ParamInfo =
    ParamInfo::number("k", 4.0, 1.0, 1000.0, "how soon waiting weighs more than the ratio (ours)");
const READING: ParamInfo = ParamInfo::choice(
    "reading",
    0,
    &["slowdown, by n", "slowdown, by n - 1", "progress, by n", "progress, by n - 1"],
    "which uniformity",
);
const CLOCK: ParamInfo = ParamInfo::flag("clock", true, "sets the frequency of the big cluster");
const UNIFORMITY: ParamInfo =
    ParamInfo::number("uniformity", 0.75, 0.0, 1.0, "uniformity to hold (the authors' scripts)");
const F_THRESHOLD: ParamInfo = ParamInfo::number(
    "f_threshold_mhz",
    1400.0,
    1.0,
    100_000.0,
    "frequency of the big cluster from which it counts as high (HFEE)",
);
const STEP: ParamInfo = ParamInfo::number(
    "step_mhz",
    100.0,
    1.0,
    10_000.0,
    "step of the big cluster's frequency (the authors' scripts)",
);
const EPOCH: ParamInfo = ParamInfo::number("epoch_ms", 1000.0, 1.0, 100_000.0, "epoch (HFEE: 1 s)");

fn ladder(params: &Params, high: High) -> Ladder {
    Ladder::new(
        params.number("uniformity"),
        params.number("f_threshold_mhz") as u32,
        params.number("step_mhz") as u32,
        high,
    )
}

/// In what the paper and the scripts differ.
struct Variant {
    ranking: Ranking,
    ladder: Ladder,
    reading: Uniformity,
    burst: u32,
    /// It sets the frequency of the big cluster.
    clock: bool,
    /// EERs come from epochs on either kind of core, not from beforehand.
    trials: Option<Trials>,
    /// The clock's state begins anew with every epoch.
    restarts: bool,
}

/// HFEE.
struct Hfee {
    cfs: CfsRules,
    epoch_ns: Ns,
    variant: Variant,
    started_ns: PerThread<Ns>,
    places: PerThread<Place>,
}

/// Where a program is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Anywhere,
    On(Prefer),
    Stopped,
}

impl Hfee {
    fn new(params: &Params, variant: Variant) -> Self {
        Self {
            cfs: CfsRules::new(params),
            epoch_ns: params.ms("epoch_ms"),
            variant,
            started_ns: PerThread::default(),
            places: PerThread::default(),
        }
    }

    fn assign(&mut self, view: &View, plan: &mut Plan, thread: ThreadId, place: Place) {
        let before = std::mem::replace(self.places.slot(thread), place);
        if before == place {
            return;
        }
        if let Place::On(kind) = place {
            let topology = view.topology();
            let of_kind = |&core: &CoreId| topology.kind(core) == kind;
            let cores: CoreSet = topology.cores().filter(of_kind).collect();
            plan.set(thread, Change::Affinity(cores));
        }
        if (before == Place::Stopped) != (place == Place::Stopped) {
            plan.set(thread, Change::Hold(place == Place::Stopped));
        }
    }

    /// Slowdowns of the programs since their start, against running alone on a big core at its highest
    /// frequency; none of those that have retired nothing yet.
    fn slowdowns(&mut self, view: &View, threads: &[ThreadId]) -> Vec<f64> {
        let slowdown = |&thread: &ThreadId| {
            let age_ns = (view.now_ns() - *self.started_ns.slot(thread)) as f64;
            let alone = view.factors(thread).alone_ips.or(0.0) * age_ns / 1e9;
            let done = view.instructions_total(thread) as f64;
            (alone > 0.0 && done > 0.0).then(|| (alone / done).max(1.0))
        };
        threads.iter().filter_map(slowdown).collect()
    }

    /// Who goes where in the next epoch, and whether some are there to be tried.
    fn choose(
        &mut self,
        view: &View,
        threads: &[ThreadId],
        big: usize,
        little: usize,
    ) -> (Chosen, bool) {
        let Some(trials) = &mut self.variant.trials else {
            let eer = |thread| view.factors(thread).energy_ratio.or(1.0);
            let known: Vec<Ranked> =
                threads.iter().map(|&thread| Ranked { thread, eer: eer(thread) }).collect();
            return (self.variant.ranking.choose(&known, big, little), false);
        };
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for &thread in threads {
            trials.note(view, thread);
            match trials.eer(thread) {
                Some(eer) => known.push(Ranked { thread, eer }),
                None => unknown.push(thread),
            }
        }
        let tried = trials.next(&unknown, big, little);
        let (big, little) = (big - tried.count(Prefer::Big), little - tried.count(Prefer::Little));
        let ranked = self.variant.ranking.choose(&known, big, little);
        (tried.with(ranked), !unknown.is_empty())
    }

    fn step_clock(&mut self, view: &View, plan: &mut Plan, threads: &[ThreadId], big: ClusterId) {
        let uniformity = self.variant.reading.of(&self.slowdowns(view, threads));
        let freqs_mhz = &view.topology().clusters()[big.index()].freqs_mhz;
        let (Some(&lowest), Some(&highest)) = (freqs_mhz.first(), freqs_mhz.last()) else { return };
        if self.variant.restarts {
            self.variant.ladder.restart();
        }
        let mut mhz = view.frequency_mhz(big);
        for _ in 0..self.variant.burst {
            mhz = self.variant.ladder.step(uniformity, mhz).clamp(lowest, highest);
        }
        plan.set_frequency(big, mhz);
    }
}

impl Policy for Hfee {
    fn needs(&self) -> Needs {
        let (tries, clocks) = (self.variant.trials.is_some(), self.variant.clock);
        Needs {
            alone: clocks || !tries,
            power: tries,
            holds: true,
            frequencies: clocks,
            instructions: clocks || tries,
            epoch_ns: Some(self.epoch_ns),
            events: Events { lifecycle: true, ..Events::default() },
            ..Needs::default()
        }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        self.cfs.on(topology)
    }

    fn on_event(&mut self, view: &View, event: Event, _plan: &mut Plan) {
        if let Event::Added(thread) = event {
            *self.started_ns.slot(thread) = view.now_ns();
        }
    }

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        let topology = view.topology();
        if topology.class_count() == 1 {
            return;
        }
        let big_core = topology.big_cores().next().expect("a fast core has just been counted");
        let big = topology.core(big_core).cluster;
        // A thread that waits for something needs no core; HFEE's programs never do.
        let wants = |&thread: &ThreadId| view.state(thread) != RunState::Blocked;
        let threads: Vec<ThreadId> = view.threads().filter(wants).collect();
        // Those that are held back want a core, too.
        let big_count = topology.big_seats(threads.len());
        if threads.len() <= big_count {
            for &thread in &threads {
                self.assign(view, plan, thread, Place::On(Prefer::Big));
            }
            if self.variant.clock {
                plan.set_frequency(big, u32::MAX);
            }
            return;
        }
        let little_count = topology.little_cores().count();
        let (chosen, tried) = self.choose(view, &threads, big_count, little_count);
        for &thread in &threads {
            let place = match chosen.of(thread) {
                Some(kind) => Place::On(kind),
                None => Place::Stopped,
            };
            self.assign(view, plan, thread, place);
        }
        // While programs are tried, the clock stays where it is: ratios are those at the same frequency.
        if self.variant.clock && !tried {
            self.step_clock(view, plan, &threads, big);
        }
    }
}

#[cfg(test)]
mod tests;
