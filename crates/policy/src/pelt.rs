//! Per-entity load tracking (PELT): how busy a thread or core has been lately, as Linux computes it.
//!
//! Time is cut into periods of 1024 us; a period's activity counts half as much 32 periods later. An
//! average is the weighted sum of the past divided by the sum that uninterrupted activity would have.
//! Arithmetic is the kernel's: whole numbers, sums rounded down when they decay (Linux 6.6,
//! kernel/sched/pelt.c: `decay_load`, `accumulate_sum`, `___update_load_avg`). Updates are lazy: one at
//! each change of state, in constant time however long the state has lasted.
//!
//! Frequency and kind of core are taken out by time itself: give [`Pelt::update`] the time of a
//! [`PeltClock`], which passes more slowly on a slow core. With real time instead, the averages are shares
//! of time, as in kernels without frequency invariance.

mod clock;
mod estimate;
mod reported;
#[cfg(test)]
mod tests;
mod tracker;

use ampsched_model::Ns;

pub use clock::PeltClock;
pub use estimate::{UtilEst, core_util, core_util_boosted};
pub(crate) use reported::ReportedLoads;
pub use reported::{CoreLoad, KeptLoad, ThreadLoad};
pub use tracker::{LoadTracker, LoadTracking};

/// Length of a period: 1024 units of 1024 ns (pelt.c, `___update_load_sum`).
pub const PELT_PERIOD_NS: Ns = UNITS * PELT_UNIT_NS;

/// Full utilisation (`SCHED_CAPACITY_SCALE`).
pub const CAPACITY_ONE: u32 = 1024;

/// Unit of time in ns: the kernel's cheap stand-in for 1 us (pelt.c, `___update_load_sum`).
pub const PELT_UNIT_NS: Ns = 1024;
/// Units in a period.
const UNITS: u64 = 1024;
/// Periods after which activity counts half (`LOAD_AVG_PERIOD`): y^32 = 1/2.
const HALF_LIFE: u64 = 32;
/// Sum of an endless activity in units (`LOAD_AVG_MAX`): 1024 x (1 + y + y^2 + ...), as rounded by [`decay`].
const SUM_MAX: u64 = 47_742;
/// After that many periods nothing is left (`decay_load`).
const FORGOTTEN: u64 = HALF_LIFE * 63;

/// y^n in units of 2^-32 for n = 0 to 31: floor((2^32 - 1) x 2^(-n/32)) (sched-pelt.h, `runnable_avg_yN_inv`).
/// A table, because the last bit of a computed power may differ between C libraries.
const Y_TO_THE: [u32; HALF_LIFE as usize] = [
    0xffff_ffff,
    0xfa83_b2da,
    0xf525_7d14,
    0xefe4_b99a,
    0xeac0_c6e6,
    0xe5b9_06e6,
    0xe0cc_deeb,
    0xdbfb_b796,
    0xd744_fcc9,
    0xd2a8_1d91,
    0xce24_8c14,
    0xc9b9_bd85,
    0xc567_2a10,
    0xc12c_4cc9,
    0xbd08_a39e,
    0xb8fb_af46,
    0xb504_f333,
    0xb123_f581,
    0xad58_3ee9,
    0xa9a1_5ab4,
    0xa5fe_d6a9,
    0xa270_4302,
    0x9ef5_325f,
    0x9b8d_39b9,
    0x9837_f050,
    0x94f4_efa8,
    0x91c3_d373,
    0x8ea4_398a,
    0x8b95_c1e3,
    0x8898_0e80,
    0x85aa_c367,
    0x82cd_8698,
];

/// What one period or more leave of a sum: sum / 2^halvings x factor / 2^32, rounded down.
///
/// Computed once and without branches, because averages are brought up to date at every change of state.
#[derive(Clone, Copy)]
struct Decay {
    halvings: u32,
    factor: u64,
}

impl Decay {
    /// None: nothing is left.
    #[inline]
    fn over(periods: u64) -> Option<Self> {
        let factor = Y_TO_THE[(periods % HALF_LIFE) as usize].into();
        (periods <= FORGOTTEN).then_some(Self { halvings: (periods / HALF_LIFE) as u32, factor })
    }

    #[inline]
    fn of(self, sum: u64) -> u64 {
        ((u128::from(sum >> self.halvings) * u128::from(self.factor)) >> 32) as u64
    }
}

/// What an entity does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Its weight in the load: 1 for a runnable thread, for a core the weights of its runnable threads
    /// together; 0 if nothing is runnable.
    pub load: u64,
    /// Number of runnable threads: 0 or 1 for a thread.
    pub runnable: u64,
    /// Whether it, or a thread on it, runs.
    pub running: bool,
}

impl Activity {
    /// A thread that runs.
    pub const RUNNING: Self = Self { load: 1, runnable: 1, running: true };
    /// A thread that waits for a core.
    pub const WAITING: Self = Self { load: 1, runnable: 1, running: false };
    /// A thread that sleeps, or a core without threads.
    pub const ASLEEP: Self = Self { load: 0, runnable: 0, running: false };
}

/// The averages of a thread or core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pelt {
    updated_ns: Ns,
    /// Units of the current period that have passed, below [`UNITS`].
    part: u64,
    /// Sums over the past: of the load, of runnable threads x 1024, of running x 1024.
    load_sum: u64,
    runnable_sum: u64,
    util_sum: u64,
}

impl Pelt {
    /// Without a past: a core that has always been idle.
    pub fn new(now_ns: Ns) -> Self {
        Self { updated_ns: now_ns, ..Self::default() }
    }

    /// A thread that counts as having run for ever: how the Linaro HMP patches (3.10) start the threads of
    /// programs, so that they begin on a big core.
    pub fn full(now_ns: Ns) -> Self {
        Self::with_averages(now_ns, CAPACITY_ONE)
    }

    /// A new thread on a core, as Linux starts it: fully loaded, with the utilisation that its weight
    /// suggests next to the core's present threads, at most half of what the core has left of its
    /// `capacity` (fair.c, `init_entity_runnable_average` and `post_init_entity_util_avg`; weights are in
    /// the unit of the load, as since 6.10).
    pub fn forked(now_ns: Ns, core: &Pelt, weight: u32, capacity: u32) -> Self {
        let (used, cap) = (core.util_avg(), capacity.saturating_sub(core.util_avg()) / 2);
        let util = match (used, cap) {
            (_, 0) => 0,
            (0, cap) => cap,
            (used, cap) => {
                let like_others = u64::from(used) * u64::from(weight) / (core.load_avg(1) + 1);
                like_others.min(u64::from(cap)) as u32
            }
        };
        Self::with_averages(now_ns, util)
    }

    /// Averages with these sums after a number of units of the current period, at time 0: as a kernel shows them that
    /// keeps them by itself.
    pub fn of_sums(part: u64, load_sum: u64, runnable_sum: u64, util_sum: u64) -> Self {
        Self { updated_ns: 0, part, load_sum, runnable_sum, util_sum }
    }

    /// Fully loaded, with a utilisation and as much runnable time.
    fn with_averages(now_ns: Ns, util: u32) -> Self {
        let pelt = Self::new(now_ns);
        let (divider, util) = (pelt.divider(), u64::from(util));
        Self { load_sum: divider, runnable_sum: util * divider, util_sum: util * divider, ..pelt }
    }

    /// Books what has been done since the last update. Tells whether a period has ended meanwhile, after
    /// which the kernel asks for a fitting frequency (fair.c, `cfs_rq_util_change`).
    ///
    /// A time before the last update changes nothing.
    #[inline(always)]
    pub fn update(&mut self, now_ns: Ns, done: Activity) -> bool {
        let units = now_ns.saturating_sub(self.updated_ns) / PELT_UNIT_NS;
        self.updated_ns += units * PELT_UNIT_NS;
        let (begun, passed) = (self.part, self.part + units);
        self.part = passed % UNITS;
        let periods = passed / UNITS;
        if periods == 0 {
            self.add(units, done);
            return false;
        }
        let Some(past) = Decay::over(periods) else {
            *self = Self { updated_ns: self.updated_ns, part: self.part, ..Self::default() };
            self.add(SUM_MAX - UNITS + self.part, done);
            return true;
        };
        for sum in [&mut self.load_sum, &mut self.runnable_sum, &mut self.util_sum] {
            *sum = past.of(*sum);
        }
        // What activity adds: the rest of the first period, decayed; the whole periods between, y^1 to y^(periods -
        // 1), which is all there is without what is older and without y^0; the begun period.
        let active = past.of(UNITS - begun) + SUM_MAX + self.part - past.of(SUM_MAX) - UNITS;
        self.add(active, done);
        true
    }

    /// Adds what some units of activity are worth.
    #[inline]
    fn add(&mut self, units: u64, done: Activity) {
        self.load_sum += done.load * units;
        self.runnable_sum += done.runnable * u64::from(CAPACITY_ONE) * units;
        self.util_sum += u64::from(done.running) * u64::from(CAPACITY_ONE) * units;
    }

    /// Greatest sum at this place in the period (pelt.h, `get_pelt_divider`): the part that has not yet
    /// passed must not count as idle.
    fn divider(&self) -> u64 {
        SUM_MAX - UNITS + self.part
    }

    /// Utilisation: the share of time in which it ran, 0 to 1024.
    pub fn util_avg(&self) -> u32 {
        (self.util_sum / self.divider()) as u32
    }

    /// The share of time in which it was runnable, 0 to 1024; for a core 1024 per thread.
    pub fn runnable_avg(&self) -> u32 {
        (self.runnable_sum / self.divider()) as u32
    }

    /// Load: the share of time in which it was runnable x its weight. For a core, whose load contains the
    /// weights already, `weight` is 1.
    pub fn load_avg(&self, weight: u32) -> u64 {
        u64::from(weight) * self.load_sum / self.divider()
    }

    /// When the current period began, in the time of the updates.
    pub fn period_start_ns(&self) -> Ns {
        self.updated_ns.saturating_sub(self.part * PELT_UNIT_NS)
    }

    /// Whether it has never been idle as far as the sums tell (pelt.h, `update_idle_rq_clock_pelt`).
    fn is_saturated(&self) -> bool {
        self.util_sum >= (SUM_MAX - UNITS) * u64::from(CAPACITY_ONE) - SUM_MAX
    }

    /// A thread comes to this core: its averages become part of the core's, and from now on it lives in
    /// the core's time (fair.c, `attach_entity_load_avg`). Update both before, each in its own time.
    pub fn attach(&mut self, thread: &mut Pelt, weight: u32) {
        let (before, divider) = (thread.divider(), self.divider());
        (thread.updated_ns, thread.part) = (self.updated_ns, self.part);
        for sum in [&mut thread.load_sum, &mut thread.runnable_sum, &mut thread.util_sum] {
            *sum = *sum * divider / before;
        }
        self.load_sum += u64::from(weight) * thread.load_sum;
        self.runnable_sum += thread.runnable_sum;
        self.util_sum += thread.util_sum;
    }

    /// A thread's utilisation counts as many times as much from now on: where utilisation is a share of time, and the
    /// thread goes to a core of another capacity.
    pub(crate) fn scale_util(&mut self, times: u64, over: u64) {
        self.util_sum = self.util_sum * times / over.max(1);
    }

    /// The weight of a thread of this core changes (fair.c, `reweight_entity`). Update both before, in the core's time.
    pub(crate) fn reweigh(&mut self, thread: &Pelt, old: u32, new: u32) {
        let kept = self.load_sum.saturating_sub(u64::from(old) * thread.load_sum);
        self.load_sum = kept + u64::from(new) * thread.load_sum;
    }

    /// A thread leaves this core for another (fair.c, `detach_entity_load_avg`). Update both before, in the
    /// core's time.
    pub fn detach(&mut self, thread: &Pelt, weight: u32) {
        let weight = u64::from(weight);
        self.load_sum = self.load_sum.saturating_sub(weight * thread.load_sum);
        self.runnable_sum = self.runnable_sum.saturating_sub(thread.runnable_sum);
        self.util_sum = self.util_sum.saturating_sub(thread.util_sum);
    }
}
