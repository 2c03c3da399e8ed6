//! Load tracking of a whole system: the averages of its threads and cores, kept as they change state.

use ampsched_model::{CoreId, Ns, ThreadId};

use super::{
    Activity, CAPACITY_ONE, Pelt, PeltClock, ThreadLoad, UtilEst, core_util, core_util_boosted,
};

/// How load is tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadTracking {
    /// As mainline Linux does since 5.1: time counts in proportion to the work that a core does in it, so
    /// that utilisation is independent of core and frequency; a new thread starts with what its core has to
    /// spare ([`Pelt::forked`]).
    ByWork,
    /// As the Linaro HMP patches (3.10) do: shares of real time, whatever the core; a new thread counts as
    /// having run for ever ([`Pelt::full`]).
    ByTime,
}

/// The averages of all threads and cores.
#[derive(Clone, Debug)]
pub struct LoadTracker {
    how: LoadTracking,
    cores: Vec<TrackedCore>,
    threads: Vec<TrackedThread>,
}

#[derive(Clone, Debug)]
struct TrackedCore {
    clock: PeltClock,
    pelt: Pelt,
    /// Of the threads on it together.
    activity: Activity,
    /// Sum of the estimates of its runnable threads.
    estimates: u32,
    /// Capacity at the highest frequency.
    capacity: u32,
    /// Capacity at the present frequency.
    present: u32,
    /// Up to when its averages are kept.
    seen_ns: Ns,
}

#[derive(Clone, Copy, Debug)]
struct TrackedThread {
    /// Of whose averages its own are a part; none before its start and after its end.
    core: Option<CoreId>,
    pelt: Pelt,
    estimate: UtilEst,
    activity: Activity,
    weight: u32,
}

impl TrackedCore {
    /// Brings the core's averages up to now.
    #[inline]
    fn advance(&mut self, now_ns: Ns) {
        if now_ns == self.seen_ns {
            return;
        }
        self.clock = self.clock_at(now_ns);
        self.seen_ns = now_ns;
        self.pelt.update(self.clock.time_ns(), self.activity);
    }

    /// Its clock as it will be then if nothing changes.
    #[inline]
    fn clock_at(&self, now_ns: Ns) -> PeltClock {
        let mut clock = self.clock;
        if now_ns == self.seen_ns {
            return clock;
        }
        if self.activity.running {
            clock.busy_until(now_ns, self.present);
        } else {
            // It has been idle since the last change; only the first call after that makes a difference.
            clock.fall_idle(&self.pelt);
            clock.idle_until(now_ns);
        }
        clock
    }

    /// Brings the averages of one of its threads, and its own, up to now.
    #[inline]
    fn settle(&mut self, thread: &mut TrackedThread, now_ns: Ns) {
        self.advance(now_ns);
        thread.pelt.update(self.clock.time_ns(), thread.activity);
    }

    fn advanced(&self, now_ns: Ns) -> Self {
        let mut later = self.clone();
        later.advance(now_ns);
        later
    }

    /// A thread begins to do something here.
    fn add(&mut self, thread: &TrackedThread) {
        let done = thread.activity;
        self.activity.load += done.load * u64::from(thread.weight);
        self.activity.runnable += done.runnable;
        self.activity.running |= done.running;
        self.estimates += done.runnable as u32 * thread.estimate.util();
    }

    /// A thread does no longer what it did here.
    fn remove(&mut self, thread: &TrackedThread) {
        let done = thread.activity;
        self.activity.load -= done.load * u64::from(thread.weight);
        self.activity.runnable -= done.runnable;
        self.activity.running &= !done.running;
        self.estimates -= done.runnable as u32 * thread.estimate.util();
    }
}

impl LoadTracker {
    /// Idle cores of some capacities (1 to 1024 at their highest frequency), which they have at present.
    pub fn new(how: LoadTracking, capacities: impl Iterator<Item = u32>) -> Self {
        let core = |capacity| {
            let capacity = match how {
                LoadTracking::ByWork => capacity,
                LoadTracking::ByTime => CAPACITY_ONE,
            };
            TrackedCore {
                clock: PeltClock::new(0),
                pelt: Pelt::new(0),
                activity: Activity::ASLEEP,
                estimates: 0,
                capacity,
                present: capacity,
                seen_ns: 0,
            }
        };
        Self { how, cores: capacities.map(core).collect(), threads: Vec::new() }
    }

    /// How load is tracked.
    pub fn how(&self) -> LoadTracking {
        self.how
    }

    /// The greatest utilisation that a core can have: its capacity, or 1024 for shares of time.
    pub fn capacity(&self, core: CoreId) -> u32 {
        self.cores[core.index()].capacity
    }

    /// A core runs at a share `mhz / max_mhz` of its highest frequency from now on.
    pub fn set_frequency(&mut self, core: CoreId, mhz: u32, max_mhz: u32, now_ns: Ns) {
        let core = &mut self.cores[core.index()];
        core.advance(now_ns);
        if self.how == LoadTracking::ByWork && max_mhz > 0 {
            let present = u64::from(core.capacity) * u64::from(mhz) / u64::from(max_mhz);
            core.present = (present as u32).max(1);
        }
    }

    /// A thread of some weight, on a core, does something else from now on. The first time it is new there.
    ///
    /// A changed weight counts from here on.
    pub fn becomes(
        &mut self,
        thread: ThreadId,
        core: CoreId,
        activity: Activity,
        weight: u32,
        now_ns: Ns,
    ) {
        if self.threads.len() <= thread.index() {
            self.make_room(thread, weight, now_ns);
        }
        let entry = &mut self.threads[thread.index()];
        if let Some(from) = entry.core {
            let from = &mut self.cores[from.index()];
            from.settle(entry, now_ns);
            from.remove(entry);
        }
        let falls_asleep = entry.activity.runnable > 0 && activity.runnable == 0;
        if entry.core != Some(core) || entry.weight != weight {
            self.attach(thread, core, weight, now_ns);
        }
        let (entry, on) = (&mut self.threads[thread.index()], &mut self.cores[core.index()]);
        if falls_asleep {
            entry.estimate.on_sleep(&entry.pelt, on.capacity);
        }
        entry.activity = activity;
        on.add(entry);
    }

    #[cold]
    fn make_room(&mut self, thread: ThreadId, weight: u32, now_ns: Ns) {
        let absent = TrackedThread {
            core: None,
            pelt: Pelt::new(now_ns),
            estimate: UtilEst::default(),
            activity: Activity::ASLEEP,
            weight,
        };
        self.threads.resize(thread.index() + 1, absent);
    }

    /// A thread has ended.
    pub fn exit(&mut self, thread: ThreadId, now_ns: Ns) {
        let Some(entry) = self.threads.get_mut(thread.index()) else { return };
        let Some(from) = entry.core.take() else { return };
        let from = &mut self.cores[from.index()];
        from.settle(entry, now_ns);
        from.remove(entry);
        from.pelt.detach(&entry.pelt, entry.weight);
        entry.activity = Activity::ASLEEP;
    }

    /// The number of a thread that has ended goes to a new one.
    pub fn forget(&mut self, thread: ThreadId) {
        if let Some(entry) = self.threads.get_mut(thread.index()) {
            entry.estimate = UtilEst::default();
        }
    }

    /// Makes a settled thread part of a core, and of none else.
    fn attach(&mut self, thread: ThreadId, core: CoreId, weight: u32, now_ns: Ns) {
        let entry = &mut self.threads[thread.index()];
        let is_new = entry.core.is_none();
        if let Some(from) = entry.core.replace(core) {
            self.cores[from.index()].pelt.detach(&entry.pelt, entry.weight);
        }
        entry.weight = weight;
        let to = &mut self.cores[core.index()];
        to.advance(now_ns);
        if is_new {
            let time_ns = to.clock.time_ns();
            entry.pelt = match self.how {
                LoadTracking::ByWork => Pelt::forked(time_ns, &to.pelt, weight, to.capacity),
                LoadTracking::ByTime => Pelt::full(time_ns),
            };
        }
        to.pelt.attach(&mut entry.pelt, weight);
    }

    /// A thread's averages now; none before its start and after its end.
    #[inline]
    fn thread_now(&self, thread: ThreadId, now_ns: Ns) -> Option<TrackedThread> {
        let mut entry = *self.threads.get(thread.index())?;
        let clock = self.cores[entry.core?.index()].clock_at(now_ns);
        entry.pelt.update(clock.time_ns(), entry.activity);
        Some(entry)
    }

    /// The share of time in which a thread has been runnable lately, 0 to 1024.
    pub fn load(&self, thread: ThreadId, now_ns: Ns) -> u32 {
        let load = |entry: TrackedThread| entry.pelt.load_avg(CAPACITY_ONE) as u32;
        self.thread_now(thread, now_ns).map_or(0, load)
    }

    /// The share of time in which it has run, 0 to 1024, without the estimate.
    pub fn running(&self, thread: ThreadId, now_ns: Ns) -> u32 {
        self.thread_now(thread, now_ns).map_or(0, |entry| entry.pelt.util_avg())
    }

    /// What a thread uses of the fastest core, 0 to 1024: its average or, if greater, the estimate of what
    /// it will use when it wakes up (fair.c, `task_util_est`).
    pub fn util(&self, thread: ThreadId, now_ns: Ns) -> u32 {
        let util = |entry: TrackedThread| entry.pelt.util_avg().max(entry.estimate.util());
        self.thread_now(thread, now_ns).map_or(0, util)
    }

    /// All averages of a thread; nothing before its start and after its end.
    pub fn averages(&self, thread: ThreadId, now_ns: Ns) -> ThreadLoad {
        let averages = |entry: TrackedThread| ThreadLoad {
            load: entry.pelt.load_avg(CAPACITY_ONE) as u32,
            running: entry.pelt.util_avg(),
            util: entry.pelt.util_avg().max(entry.estimate.util()),
        };
        self.thread_now(thread, now_ns).map_or_else(ThreadLoad::default, averages)
    }

    /// A core's utilisation, 0 to its capacity ([`core_util`]).
    pub fn core_util(&self, core: CoreId, now_ns: Ns) -> u32 {
        let core = self.cores[core.index()].advanced(now_ns);
        core_util(&core.pelt, core.estimates, core.capacity)
    }

    /// A core's utilisation as `schedutil` reads it ([`core_util_boosted`]).
    pub fn core_util_boosted(&self, core: CoreId, now_ns: Ns) -> u32 {
        let core = self.cores[core.index()].advanced(now_ns);
        core_util_boosted(&core.pelt, core.estimates, core.capacity)
    }

    /// A core's utilisation without what a thread has left there (fair.c, `cpu_util_without`).
    pub fn core_util_without(&self, core: CoreId, thread: ThreadId, now_ns: Ns) -> u32 {
        let mut rest = self.cores[core.index()].advanced(now_ns);
        if let Some(entry) = self.thread_now(thread, now_ns).filter(|it| it.core == Some(core)) {
            rest.remove(&entry);
            rest.pelt.detach(&entry.pelt, entry.weight);
        }
        core_util(&rest.pelt, rest.estimates, rest.capacity)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Ns = 1_000_000;
    /// A period of load tracking, which is a little more than a millisecond.
    const PERIOD: Ns = 1_048_576;

    fn tracker(how: LoadTracking, capacities: &[u32]) -> LoadTracker {
        LoadTracker::new(how, capacities.iter().copied())
    }

    fn core(number: usize) -> CoreId {
        CoreId::from(number)
    }

    const T: ThreadId = ThreadId(0);

    #[test]
    fn a_thread_that_wakes_from_a_long_sleep_is_heavy_after_54_periods() {
        let mut all = tracker(LoadTracking::ByTime, &[377]);
        all.becomes(T, core(0), Activity::RUNNING, 1024, 0);
        assert_eq!(all.load(T, 0), 1024, "a new thread counts as having run for ever");
        all.becomes(T, core(0), Activity::ASLEEP, 1024, 0);
        let woken_ns = 3000 * PERIOD;
        assert!(all.load(T, 33 * PERIOD) < 512 && all.load(T, 31 * PERIOD) > 512);
        assert!(all.load(T, 65 * PERIOD) < 256 && all.load(T, 63 * PERIOD) > 256);
        all.becomes(T, core(0), Activity::RUNNING, 1024, woken_ns);
        let load = |periods: u64| all.load(T, woken_ns + periods * PERIOD);
        assert_eq!(load(0), 0);
        // 1 - 2^(-n / 32): 0.5 at 32, 0.684 = 700 / 1024 at 53.1, 0.8 at 74.3.
        assert!(load(31) < 512 && load(33) > 512, "{} {}", load(31), load(33));
        assert!(load(52) < 700 && load(54) > 700, "{} {}", load(52), load(54));
        assert!(load(73) < 819 && load(75) >= 819, "{} {}", load(73), load(75));
    }

    #[test]
    fn equal_work_is_equal_utilisation_on_slow_cores_too() {
        // 2 ms of work of the fastest core every 16: a core of half the capacity needs 4, at half its
        // frequency 8.
        for (capacity, mhz, busy_ms) in [(1024, 1000, 2), (512, 1000, 4), (512, 500, 8)] {
            let mut all = tracker(LoadTracking::ByWork, &[capacity]);
            all.set_frequency(core(0), mhz, 1000, 0);
            for round in 0..100u64 {
                let start_ns = round * 16 * MS;
                all.becomes(T, core(0), Activity::RUNNING, 1024, start_ns);
                all.becomes(T, core(0), Activity::ASLEEP, 1024, start_ns + busy_ms * MS);
            }
            // The mean over a round is 128; at its end it is a little less.
            let util = all.core_util(core(0), 1600 * MS);
            assert!((105..=125).contains(&util), "capacity {capacity}, {mhz} MHz: {util}");
        }
    }

    #[test]
    fn threads_take_their_averages_along() {
        let mut all = tracker(LoadTracking::ByWork, &[1024, 1024]);
        all.becomes(T, core(0), Activity::RUNNING, 1024, 0);
        let now_ns = 300 * MS;
        let before = all.core_util(core(0), now_ns);
        assert!(before > 1000, "{before}");
        all.becomes(T, core(1), Activity::WAITING, 1024, now_ns);
        assert!(all.core_util(core(0), now_ns) <= 1);
        assert!(all.core_util(core(1), now_ns).abs_diff(before) <= 1);
        assert_eq!(all.core_util_without(core(1), T, now_ns), 0);
        all.exit(T, now_ns);
        assert_eq!([0, 1].map(|index| all.core_util(core(index), now_ns)), [0, 0]);
        assert_eq!(all.load(T, now_ns), 0);
    }

    #[test]
    fn waiting_counts_as_load_and_for_governors_not_as_utilisation() {
        let mut all = tracker(LoadTracking::ByTime, &[1024]);
        let other = ThreadId(1);
        all.becomes(T, core(0), Activity::RUNNING, 1024, 0);
        all.becomes(other, core(0), Activity::ASLEEP, 1024, 0);
        all.becomes(other, core(0), Activity::WAITING, 1024, 3000 * MS);
        let now_ns = 3100 * MS;
        assert!(all.load(other, now_ns) > 800);
        assert_eq!(all.running(other, now_ns), 0);
        assert_eq!(all.core_util_boosted(core(0), now_ns), 1024);
    }

    proptest! {
        #[test]
        fn a_core_has_what_its_threads_have(
            steps in prop::collection::vec(
                (0usize..4, 0usize..3, 0u8..3, 0u64..30_000_000, 1u32..=10), 1..120),
            by_work in any::<bool>(),
        ) {
            let how = if by_work { LoadTracking::ByWork } else { LoadTracking::ByTime };
            let mut all = tracker(how, &[1024, 600, 250]);
            let mut now_ns = 0;
            for (number, on, doing, wait_ns, tenths) in steps {
                now_ns += wait_ns;
                all.set_frequency(core(on), tenths * 100, 1000, now_ns);
                // One at a time on a core.
                let runs = all.threads.iter().any(|it| it.core == Some(core(on)) && it.activity.running);
                let activity = match doing {
                    0 if !runs => Activity::RUNNING,
                    0 | 1 => Activity::WAITING,
                    _ => Activity::ASLEEP,
                };
                all.becomes(ThreadId::from(number), core(on), activity, 1024, now_ns);
                for index in 0..3 {
                    let on_it = all.threads.iter().filter(|it| it.core == Some(core(index)));
                    let active = on_it.clone().filter(|it| it.activity.runnable > 0).count();
                    prop_assert_eq!(all.cores[index].activity.runnable, active as u64);
                    let later = all.cores[index].advanced(now_ns);
                    let sum: u32 = (0..all.threads.len())
                        .filter(|&number| all.threads[number].core == Some(core(index)))
                        .map(|number| all.running(ThreadId::from(number), now_ns))
                        .sum();
                    let util = later.pelt.util_avg();
                    // Sums of rounded-down parts; a thread that comes has its own rounding.
                    prop_assert!(util.abs_diff(sum) <= 8, "core {}: {} and {}", index, util, sum);
                    prop_assert!(all.core_util(core(index), now_ns) <= all.capacity(core(index)));
                }
                for number in 0..all.threads.len() {
                    let thread = ThreadId::from(number);
                    let (load, util) = (all.load(thread, now_ns), all.util(thread, now_ns));
                    prop_assert!(load <= 1024 && util <= 1024, "{} {}", load, util);
                }
            }
        }
    }
}
