//! Tests of 3.16 and 4.14 against their documented arithmetic, with numbers worked by hand.

use ampsched_model::{AppId, CoreId, Ns, ThreadId};

use super::Fair;
use super::by_load::{Judge, LoadStats, capacity_factor, small_imbalance, smoothed};
use super::kernel::{Kernel, V3_16, V4_14};
use super::stats::When;
use super::wake_old::{Affine, Idlest, scan_of};
use crate::testing::{build, topology};
use crate::{EnqueueKind, FastPlane, Pick, RunState, Sched, Turn};

const OLD: [Kernel; 2] = [V3_16, V4_14];

fn judge(kernel: &Kernel, when: When) -> Judge {
    Judge { when, imbalance_pct: 125, counts_threads: kernel.counts_threads() }
}

/// Cores with hogs of weight 1024.
fn hogs(judge: &Judge, cores: u64, threads: u64) -> LoadStats {
    let mut stats = LoadStats {
        load: threads * 1024,
        present: threads * 1024,
        util: threads.min(cores) * 1024,
        threads,
        idle_cores: cores.saturating_sub(threads),
        cores,
        capacity: cores * 1024,
        ..LoadStats::default()
    };
    stats.finish(judge, false);
    stats
}

#[test]
fn past_loads_are_halved_and_rounded_towards_the_present() {
    assert_eq!(
        [smoothed(0, 1024, 0), smoothed(512, 1024, 0), smoothed(768, 1024, 0)],
        [512, 768, 896]
    );
    assert_eq!([smoothed(896, 0, 0), smoothed(1023, 1024, 0)], [448, 1024]);
    // Two ticks were missed: 896 / 4 = 224 is left, half of it after this one.
    assert_eq!(smoothed(896, 0, 2), 112);
}

#[test]
fn a_group_runs_as_many_threads_as_it_has_cores_or_fewer_if_they_are_weak() {
    assert_eq!([capacity_factor(4096, 4), capacity_factor(1024, 1)], [4, 1]);
    // ceil(4096 / 2400) = 2: 4 / 2.
    assert_eq!([capacity_factor(2400, 4), capacity_factor(430, 1)], [2, 0]);
}

#[test]
fn one_of_two_hogs_moves_to_a_core_that_has_one() {
    for kernel in OLD {
        let judge = judge(&kernel, When::Busy);
        let (local, busiest) = (hogs(&judge, 1, 1), hogs(&judge, 1, 2));
        assert!(judge.is_busier(&busiest, &LoadStats::default()), "{}", kernel.version);
        // Half a thread too much is less than one: but 2048 + 1024 >= 1024 + 2 x 1024.
        assert_eq!(judge.imbalance(&local, &busiest, 1536), Some(1024), "{}", kernel.version);
    }
}

#[test]
fn the_imbalance_is_what_makes_both_groups_average() {
    for kernel in OLD {
        let judge = judge(&kernel, When::Busy);
        let (local, busiest) = (hogs(&judge, 4, 4), hogs(&judge, 4, 8));
        assert_eq!([local.mean, busiest.mean, busiest.per_thread], [1024, 2048, 1024]);
        // (2048 - 1536) x 4 cores.
        assert_eq!(judge.imbalance(&local, &busiest, 1536), Some(2048), "{}", kernel.version);
    }
}

#[test]
fn no_more_is_moved_than_is_above_capacity() {
    let judge_3 = judge(&V3_16, When::Busy);
    let (local, busiest) = (hogs(&judge_3, 4, 0), hogs(&judge_3, 4, 5));
    // Means 0, 1280 and 640: (5 - 4) x 1024 x 1024 / 4096 = 256 above capacity, less than 1280 - 640.
    assert_eq!(judge_3.imbalance(&local, &busiest, 640), Some(1024));
    let judge_4 = judge(&V4_14, When::Busy);
    let (local, busiest) = (hogs(&judge_4, 4, 6), hogs(&judge_4, 4, 40));
    // Both overloaded: (40 - 4) / 4 x 1024 above capacity; the means 1536, 10240 and 5888 ask for less.
    assert_eq!(judge_4.imbalance(&local, &busiest, 5888), Some(4352 * 4));
}

#[test]
fn loads_within_the_tolerance_stay() {
    let judge = judge(&V4_14, When::Busy);
    let (local, mut busiest) = (hogs(&judge, 4, 8), hogs(&judge, 4, 9));
    // 2304 is less than 125 % of 2048.
    assert_eq!(judge.imbalance(&local, &busiest, 2176), None);
    busiest.is_imbalanced = true;
    assert!(judge.imbalance(&local, &busiest, 2176).is_some());
}

#[test]
fn one_small_thread_moves_if_more_capacity_is_used_then() {
    let local = LoadStats {
        threads: 4,
        per_thread: 900,
        mean: 800,
        capacity: 4096,
        ..LoadStats::default()
    };
    let busiest = LoadStats {
        threads: 30,
        per_thread: 100,
        mean: 750,
        capacity: 4096,
        ..LoadStats::default()
    };
    // Now 100 + 800, after that 100 + 825.
    assert_eq!(small_imbalance(&local, &busiest, 0), 100);
    let local = LoadStats {
        threads: 1,
        per_thread: 1000,
        mean: 1000,
        capacity: 1024,
        ..LoadStats::default()
    };
    let busiest = LoadStats {
        threads: 3,
        per_thread: 400,
        mean: 1200,
        capacity: 1024,
        ..LoadStats::default()
    };
    // 1200 + 400 < 1000 + 800, and 400 + 1000 either way.
    assert_eq!(small_imbalance(&local, &busiest, 150), 150);
}

#[test]
fn an_idle_core_with_room_takes_from_a_group_without_whatever_the_loads_are() {
    let group = |judge: &Judge, threads: u64, load: u64, util: u64| {
        let mut stats = LoadStats { load, present: load, util, ..hogs(judge, 4, threads) };
        stats.finish(judge, false);
        stats
    };
    // Means 256, 96 and 176: 64 + 256 are used of 4 cores each, 64 + 272 once a thread of 64 has moved.
    let newly = judge(&V3_16, When::NewlyIdle);
    let (local, busiest) = (group(&newly, 1, 1024, 0), group(&newly, 6, 384, 0));
    assert_eq!(newly.imbalance(&local, &busiest, 176), Some(64));
    let later = judge(&V3_16, When::Idle);
    assert_eq!(later.imbalance(&local, &busiest, 176), None);
    // 4.14 asks whether the capacity is used up; a core that has been idle for a while counts, too.
    for (util, expected) in [(4096, Some(64)), (2000, None)] {
        let idle = judge(&V4_14, When::Idle);
        let (local, busiest) = (group(&idle, 1, 1024, 1024), group(&idle, 6, 384, util));
        assert_eq!(idle.imbalance(&local, &busiest, 176), expected);
    }
}

fn affine(here: i64, there: i64, adds_here: i64, adds_there: i64) -> Affine {
    Affine {
        here,
        there,
        adds_here,
        adds_there,
        capacity_here: 1024,
        capacity_there: 1024,
        imbalance_pct: 117,
    }
}

#[test]
fn a_woken_thread_is_drawn_to_its_waker_if_that_has_less_to_do() {
    // 3.16: 100 x (1024 + 1024) against 108 x 2048, then against 108 x 1024.
    assert!(affine(1024, 2048, 1024, 0).is_drawn_by_load(1024));
    assert!(!affine(1024, 1024, 1024, 0).is_drawn_by_load(1024));
    assert!(affine(0, 0, 1024, 0).is_drawn_by_load(0));
    // Both together have no more than one thread of the waker's core.
    assert!(affine(200, 300, 1024, 0).is_drawn_by_load(512));
    assert!(!affine(200, 300, 1024, 0).is_drawn_by_load(200));
    // 4.14: 100 x 512 against 108 x 512, then 100 x 612.
    assert!(affine(0, 1024, 512, -512).is_drawn_by_weight());
    assert!(!affine(100, 1024, 512, -512).is_drawn_by_weight());
}

#[test]
fn a_search_looks_at_as_many_cores_as_the_idle_time_of_the_waker_allows() {
    // 8 x 1953 ns / 321 ns = 48, less one; with 97 ns it is the least.
    assert_eq!([scan_of(8, 1_000_000), scan_of(8, 50_000)], [47, 3]);
}

#[test]
fn a_new_thread_goes_to_the_first_other_group_unless_that_has_more_to_do() {
    let found = |counts_threads, own, others: &[(u64, u64)]| {
        let mut search = Idlest::new(117, counts_threads);
        search.own = Some(own);
        for (group, &loads) in (1..).zip(others) {
            search.look_at(group, loads);
        }
        search.found()
    };
    for counts_threads in [true, false] {
        assert_eq!(found(counts_threads, (0, 0), &[(0, 0), (0, 0)]), Some(1));
        assert_eq!(found(counts_threads, (1024, 1024), &[(1024, 1024), (0, 0)]), Some(2));
        assert_eq!(found(counts_threads, (0, 0), &[(1024, 1024)]), None);
    }
    // 108 % of 950 is more than 1000.
    assert_eq!(found(true, (1000, 0), &[(950, 0)]), None);
    // Within 174 of each other: what sleeps there decides.
    assert_eq!(found(false, (0, 0), &[(0, 500)]), None);
    assert_eq!(found(false, (100, 900), &[(50, 800), (100, 300)]), Some(2));
}

/// A fair class whose host does what it says.
struct Host {
    fair: Fair,
    sched: Sched,
    now_ns: Ns,
}

impl Host {
    fn new(kernel: Kernel, cores: usize) -> Self {
        let topology = topology(&[(0, cores)]);
        let rules = build("linux", &[]).rules(&topology);
        let fair = Fair::new(kernel, &topology, 4_000_000, 1);
        Self { fair, sched: Sched::new(topology, rules), now_ns: 0 }
    }

    fn add_to(&mut self, core: usize) -> ThreadId {
        let thread = self.sched.add(AppId(0), 1024, None);
        let (fair, sched) = (&mut self.fair, &self.sched);
        fair.added(sched, thread, self.now_ns);
        fair.place(sched, thread, EnqueueKind::Fork, Some(CoreId::from(core)), self.now_ns);
        fair.enqueued(sched, thread, CoreId::from(core), EnqueueKind::Fork, self.now_ns);
        thread
    }

    fn run(&mut self, core: usize) -> Option<ThreadId> {
        let (core, mut acts) = (CoreId::from(core), Vec::new());
        match self.fair.pick(&self.sched, core, self.now_ns, &mut acts) {
            Pick::Run(thread) => {
                let turn = Turn { thread, switched: true, migrated_from: None };
                self.fair.started(&self.sched, core, turn, self.now_ns);
                Some(thread)
            }
            _ => None,
        }
    }

    fn sleep(&mut self, thread: ThreadId, core: usize) {
        self.fair.left(&self.sched, thread, CoreId::from(core), RunState::Blocked, self.now_ns);
    }

    /// The core on which a thread wakes up if that happens on a core.
    fn wake_on(&mut self, thread: ThreadId, this: usize) -> usize {
        let this = Some(CoreId::from(this));
        self.fair.place(&self.sched, thread, EnqueueKind::Wake, this, self.now_ns).index()
    }
}

/// A thread runs on core 0; a sleeper's last core 2 has `hogs` others.
fn sleeper_beside(kernel: Kernel, hogs: usize) -> (Host, ThreadId) {
    let mut host = Host::new(kernel, 4);
    host.add_to(0);
    host.run(0);
    let sleeper = host.add_to(2);
    host.run(2);
    host.now_ns += 1_000_000;
    host.sleep(sleeper, 2);
    for _ in 0..hogs {
        host.add_to(2);
    }
    host.run(2);
    (host, sleeper)
}

#[test]
fn a_sleeper_wakes_near_its_waker_if_that_has_less_to_do() {
    for kernel in OLD {
        // Its core is idle.
        let (mut host, sleeper) = sleeper_beside(kernel, 0);
        assert_eq!(host.wake_on(sleeper, 0), 2, "{}", kernel.version);
        // As busy as the waker's: it stays, and the next idle core is 3.
        let (mut host, sleeper) = sleeper_beside(kernel, 1);
        assert_eq!(host.wake_on(sleeper, 0), 3, "{}", kernel.version);
        // Much busier: it comes to the waker, next to which core 1 is idle.
        let (mut host, sleeper) = sleeper_beside(kernel, 4);
        assert_eq!(host.wake_on(sleeper, 0), 1, "{}", kernel.version);
        // An idle core on which it wakes up draws it.
        let (mut host, sleeper) = sleeper_beside(kernel, 1);
        assert_eq!(host.wake_on(sleeper, 1), 1, "{}", kernel.version);
    }
}

#[test]
fn a_buddy_comes_before_its_turn_if_that_is_not_unfair() {
    let mut host = Host::new(V3_16, 1);
    let threads: Vec<_> = (0..3).map(|_| host.add_to(0)).collect();
    let ids: Vec<_> = threads.iter().map(|&thread| host.fair.id(thread)).collect();
    let start = host.fair.queues[0].min_vruntime;
    host.fair.queues[0].entries.clear();
    for (index, &id) in ids.iter().enumerate() {
        // 0, 0.6 and 1.2 ms behind; the granularity on one core is 1 ms.
        host.fair.entities[id as usize].vruntime = start + index as i64 * 600_000;
        let entry = host.fair.entry(id);
        host.fair.queues[0].insert(entry);
    }
    assert_eq!(host.fair.least_or_buddy(0), Some(ids[0]));
    host.fair.queues[0].buddies.next = Some(ids[1]);
    assert_eq!(host.fair.least_or_buddy(0), Some(ids[1]));
    host.fair.queues[0].buddies.next = Some(ids[2]);
    assert_eq!(host.fair.least_or_buddy(0), Some(ids[0]));
    host.fair.queues[0].buddies.skip = Some(ids[0]);
    assert_eq!(host.fair.least_or_buddy(0), Some(ids[1]));
    host.fair.forget_buddies(ids[0]);
    assert_eq!(host.fair.least_or_buddy(0), Some(ids[0]));
}

#[test]
fn a_new_thread_begins_a_slice_ahead_of_the_least() {
    let mut host = Host::new(V4_14, 1);
    let first = host.add_to(0);
    let id = host.fair.id(first);
    let start = host.fair.queues[0].min_vruntime;
    // Alone: all of the latency of 6 ms.
    assert_eq!(host.fair.entities[id as usize].vruntime, start + 6_000_000);
    let second = host.add_to(0);
    let id = host.fair.id(second);
    assert_eq!(host.fair.entities[id as usize].vruntime, start + 3_000_000);
}
