//! Load tracking against closed forms and a model without rounding; its clock; its estimates.

use proptest::prelude::*;

use super::*;

const RUNNING: Activity = Activity::RUNNING;
const WAITING: Activity = Activity::WAITING;
const ASLEEP: Activity = Activity::ASLEEP;

/// A thread without a past that does something for some periods.
fn after(start: Pelt, periods: u64, done: Activity) -> Pelt {
    let mut pelt = start;
    pelt.update(start.updated_ns + periods * PELT_PERIOD_NS, done);
    pelt
}

/// A thread with a utilisation at some time.
fn thread_of(now_ns: Ns, util: u32) -> Pelt {
    Pelt::with_averages(now_ns, util)
}

/// What some periods leave of a sum (`decay_load`).
fn left_of(sum: u64, periods: u64) -> u64 {
    if periods == 0 { sum } else { Decay::over(periods).map_or(0, |past| past.of(sum)) }
}

/// An update as the kernel writes it (`accumulate_sum`).
fn by_the_book(pelt: &Pelt, now_ns: Ns, done: Activity) -> Pelt {
    let units = now_ns.saturating_sub(pelt.updated_ns) / PELT_UNIT_NS;
    let (periods, part) = ((pelt.part + units) / UNITS, (pelt.part + units) % UNITS);
    let active = match periods {
        0 => units,
        _ => {
            let first = left_of(UNITS - pelt.part, periods);
            first + SUM_MAX - left_of(SUM_MAX, periods) - UNITS + part
        }
    };
    let one = u64::from(CAPACITY_ONE);
    let sum = |sum, share| left_of(sum, periods) + share * active;
    Pelt {
        updated_ns: pelt.updated_ns + units * PELT_UNIT_NS,
        part,
        load_sum: sum(pelt.load_sum, done.load),
        runnable_sum: sum(pelt.runnable_sum, done.runnable * one),
        util_sum: sum(pelt.util_sum, u64::from(done.running) * one),
    }
}

proptest! {
    #[test]
    fn updates_are_the_kernels(
        steps in prop::collection::vec((0u64..3, any::<u64>(), 0u64..90_000, 0u64..30, any::<bool>()), 1..60),
    ) {
        let (mut pelt, mut now_ns) = (Pelt::new(12_345), 12_345);
        for (far, wait, load, runnable, running) in steps {
            now_ns += wait % [1 << 20, 1 << 26, 1 << 42][far as usize];
            let done = Activity { load, runnable, running };
            let expected = by_the_book(&pelt, now_ns, done);
            let ended = pelt.update(now_ns, done);
            prop_assert_eq!(pelt, expected);
            prop_assert!(!ended || far > 0 || pelt.part < UNITS);
        }
    }
}

#[test]
fn constants_follow_from_the_half_life() {
    for (n, &factor) in Y_TO_THE.iter().enumerate() {
        let exact = f64::from(u32::MAX) * (-(n as f64) / 32.0).exp2();
        assert_eq!(f64::from(factor), exact.floor(), "y^{n}");
    }
    let mut sum = 0;
    for _ in 0..FORGOTTEN {
        sum = left_of(sum, 1) + UNITS;
    }
    assert_eq!(sum, SUM_MAX);
    assert_eq!([32, 64, 2016, 2017].map(|n| left_of(1 << 20, n)), [524_287, 262_143, 0, 0]);
}

#[test]
fn an_always_running_thread_rises_towards_full() {
    // 1024 (1 - 2^(-n / 32)): half after 32 periods; 700, where the Linaro HMP patches move a thread up, after
    // 54; 80 %, beyond which a thread does not fit a core, after 75.
    let util = |periods| after(Pelt::new(0), periods, RUNNING).util_avg();
    assert_eq!([32, 33, 53, 54, 74, 75].map(util), [512, 522, 699, 706, 817, 822]);
    assert!((1022..=1024).contains(&util(320)), "{}", util(320));
}

#[test]
fn a_sleeping_thread_loses_half_every_32_periods() {
    let util = |periods| after(Pelt::full(0), periods, ASLEEP).util_avg();
    assert_eq!([0, 31, 32, 63, 64, 96, 400, 5000].map(util), [1024, 523, 511, 261, 255, 127, 0, 0]);
}

#[test]
fn waiting_is_runnable_but_not_running() {
    let mut pelt = after(Pelt::new(0), 32, WAITING);
    assert_eq!((pelt.util_avg(), pelt.runnable_avg(), pelt.load_avg(335)), (0, 512, 167));
    pelt.update(pelt.updated_ns + 32 * PELT_PERIOD_NS, RUNNING);
    assert_eq!((pelt.util_avg(), pelt.runnable_avg()), (512, 767));
}

#[test]
fn a_core_counts_all_its_runnable_threads() {
    let two = Activity { load: 1024 + 335, runnable: 2, running: true };
    let core = after(Pelt::new(0), 2000, two);
    assert_eq!(core.runnable_avg(), 2 * core.util_avg());
    assert!((1357..=1359).contains(&core.load_avg(1)), "{}", core.load_avg(1));
    assert_eq!(core_util(&core, 0, 1024), core.util_avg());
    assert_eq!(core_util_boosted(&core, 0, 1024), 1024);
    assert_eq!(core_util_boosted(&core, 0, 400), 400);
    let idle = Pelt::new(0);
    assert_eq!((core_util(&idle, 300, 1024), core_util_boosted(&idle, 300, 1024)), (300, 300));
}

#[test]
fn an_update_tells_whether_a_period_has_ended() {
    let mut pelt = Pelt::new(0);
    assert!(!pelt.update(PELT_PERIOD_NS - 1, RUNNING));
    assert!(pelt.update(PELT_PERIOD_NS, RUNNING));
    assert_eq!(pelt.period_start_ns(), PELT_PERIOD_NS);
    assert!(!pelt.update(PELT_PERIOD_NS + 1023, RUNNING), "less than a unit");
    let before = pelt;
    assert!(!pelt.update(0, ASLEEP));
    assert_eq!(pelt, before, "a time in the past");
}

#[test]
fn new_threads_get_half_of_what_is_left() {
    // The series that the kernel's comment on post_init_entity_util_avg names.
    let mut core = Pelt::new(0);
    let mut utils = Vec::new();
    for _ in 0..7 {
        let mut thread = Pelt::forked(0, &core, 1024, 1024);
        utils.push(thread.util_avg());
        core.attach(&mut thread, 1024);
    }
    assert_eq!(utils, [512, 256, 128, 64, 32, 16, 8]);
    assert_eq!(core.util_avg(), 1016);
    assert_eq!(Pelt::forked(0, &Pelt::new(0), 1024, 400).util_avg(), 200);
    assert_eq!(Pelt::forked(0, &Pelt::full(0), 1024, 1024).util_avg(), 0);
    // Next to one thread of weight 1024 that uses 100, one of weight 335 is expected to use a third of that.
    let mut core = Pelt::new(0);
    core.attach(&mut thread_of(0, 100), 1024);
    let thread = Pelt::forked(0, &core, 335, 1024);
    assert_eq!((thread.util_avg(), thread.runnable_avg(), thread.load_avg(335)), (32, 32, 335));
    assert_eq!(Pelt::full(0).util_avg(), 1024);
}

#[test]
fn a_thread_takes_its_utilisation_with_it() {
    // The cores' clocks differ and stand at different places in their periods.
    let mut from = after(Pelt::new(0), 500, ASLEEP);
    let mut to = Pelt::new(0);
    to.update(123 * PELT_UNIT_NS, ASLEEP);
    let mut thread = thread_of(from.updated_ns, 600);
    from.attach(&mut thread, 1024);
    assert_eq!((from.util_avg(), from.load_avg(1)), (600, 1024));
    from.detach(&thread, 1024);
    assert_eq!((from.util_avg(), from.load_avg(1)), (0, 0));
    to.attach(&mut thread, 1024);
    assert!((598..=600).contains(&to.util_avg()), "{}", to.util_avg());
    assert_eq!(thread.updated_ns, to.updated_ns);
}

mod clock {
    use super::*;

    const MS: Ns = 1_000_000;

    #[test]
    fn the_clock_slows_down_with_the_core_and_catches_up_when_idle() {
        // The timeline in the kernel's comment on update_rq_clock_pelt, at half capacity.
        let core = Pelt::new(0);
        let mut clock = PeltClock::new(0);
        let mut shown = Vec::new();
        for start in [2, 9] {
            clock.idle_until(start * MS);
            shown.push(clock.time_ns() / MS);
            for now in [start + 2, start + 4] {
                clock.busy_until(now * MS, 512);
                shown.push(clock.time_ns() / MS);
            }
            clock.fall_idle(&core);
            shown.push(clock.time_ns() / MS);
        }
        assert_eq!(shown, [2, 3, 4, 6, 9, 10, 11, 13]);
    }

    #[test]
    fn a_core_that_was_never_idle_does_not_catch_up() {
        let mut clock = PeltClock::new(0);
        clock.busy_until(100 * MS, 512);
        clock.fall_idle(&Pelt::full(0));
        assert_eq!(clock.time_ns(), 50 * MS);
        clock.idle_until(110 * MS);
        assert_eq!(clock.time_ns(), 60 * MS);
        clock.idle_until(90 * MS);
        assert_eq!(clock.time_ns(), 60 * MS, "time does not go back");
    }

    /// Utilisation of a thread that does the same work in each of many periods of 20 ms.
    fn periodic(work_ms: u64, capacity: u32) -> u32 {
        let (mut clock, mut thread) = (PeltClock::new(0), Pelt::new(0));
        for period in 0..50 {
            clock.idle_until(period * 20 * MS);
            thread.update(clock.time_ns(), ASLEEP);
            let busy_ns = work_ms * MS * 1024 / u64::from(capacity);
            clock.busy_until(period * 20 * MS + busy_ns, capacity);
            thread.update(clock.time_ns(), RUNNING);
            clock.fall_idle(&thread);
        }
        thread.util_avg()
    }

    #[test]
    fn equal_work_counts_equally_at_every_speed() {
        let fast = periodic(5, 1024);
        assert!((270..330).contains(&fast), "a quarter of the time, seen after the burst: {fast}");
        for capacity in [512, 341, 300] {
            let slow = periodic(5, capacity);
            assert!(
                slow.abs_diff(fast) <= 2,
                "{fast} on a fast core, {slow} at capacity {capacity}"
            );
        }
    }

    #[test]
    fn a_slow_core_needs_longer_to_show_full_use() {
        let (mut clock, mut thread) = (PeltClock::new(0), Pelt::new(0));
        clock.busy_until(64 * PELT_PERIOD_NS, 512);
        thread.update(clock.time_ns(), RUNNING);
        assert_eq!(thread.util_avg(), 512, "as after 32 periods on a core of full capacity");
    }
}

mod estimate {
    use super::*;

    /// The estimates after sleeping with each of these utilisations, in one period each.
    fn estimates(utils: &[u32]) -> Vec<u32> {
        let mut estimate = UtilEst::default();
        let sleep = |(period, &util): (usize, &u32)| {
            estimate.on_sleep(&thread_of(period as Ns * PELT_PERIOD_NS, util), 1024);
            estimate.util()
        };
        utils.iter().enumerate().map(sleep).collect()
    }

    #[test]
    fn a_rise_counts_at_once_and_a_fall_by_a_quarter() {
        assert_eq!(estimates(&[400, 200, 200, 600]), [400, 350, 312, 600]);
        assert_eq!(estimates(&[400, 391, 390, 400]), [400, 400, 397, 400], "1 % is no news");
    }

    #[test]
    fn what_says_nothing_about_the_need_is_skipped() {
        let mut estimate = UtilEst::default();
        estimate.on_sleep(&thread_of(0, 800), 1024);
        estimate.on_sleep(&thread_of(0, 100), 1024);
        assert_eq!(estimate.util(), 800, "the average has not changed since");
        estimate.on_sleep(&thread_of(PELT_PERIOD_NS, 600), 500);
        assert_eq!(estimate.util(), 800, "the core was too small to tell");
        let mut waited = thread_of(2 * PELT_PERIOD_NS, 600);
        waited.runnable_sum = 611 * waited.divider();
        estimate.on_sleep(&waited, 1024);
        assert_eq!(estimate.util(), 800, "it had to wait");
        waited.updated_ns = 3 * PELT_PERIOD_NS;
        waited.runnable_sum = 610 * waited.divider();
        estimate.on_sleep(&waited, 1024);
        assert_eq!(estimate.util(), 750);
    }
}

/// The definition without rounding: each unit of the past, weighted by the age of its period.
fn exact(spans: &[(u64, Activity)]) -> f64 {
    let (mut sum, mut part) = (0.0, 0);
    let y = 0.5_f64.powf(1.0 / 32.0);
    for &(mut units, done) in spans {
        while units > 0 {
            let step = units.min(UNITS - part);
            sum += if done.running { step as f64 } else { 0.0 };
            part += step;
            units -= step;
            if part == UNITS {
                (sum, part) = (sum * y, 0);
            }
        }
    }
    1024.0 * sum / (1024.0 / (1.0 - y) - 1024.0 + part as f64)
}

fn activity() -> impl Strategy<Value = Activity> {
    prop_oneof![Just(RUNNING), Just(WAITING), Just(ASLEEP)]
}

fn spans() -> impl Strategy<Value = Vec<(u64, Activity)>> {
    prop::collection::vec((0..200_000_u64, activity()), 1..40)
}

proptest! {
    #[test]
    fn averages_are_those_of_the_definition(spans in spans()) {
        let (mut pelt, mut now_ns) = (Pelt::new(0), 0);
        for &(units, done) in &spans {
            now_ns += units * PELT_UNIT_NS;
            pelt.update(now_ns, done);
        }
        let expected = exact(&spans);
        prop_assert!((f64::from(pelt.util_avg()) - expected).abs() < 2.0, "{} {expected}", pelt.util_avg());
        prop_assert!(pelt.util_avg() <= pelt.runnable_avg() && pelt.runnable_avg() <= 1024);
    }

    #[test]
    fn one_late_update_equals_many_early_ones(
        start in 0..=1024_u32, done in activity(), steps in prop::collection::vec(0..5_000_u64, 1..60),
    ) {
        let mut often = thread_of(0, start);
        let mut once = often;
        let mut now_ns = 0;
        for units in steps {
            now_ns += units * PELT_UNIT_NS;
            often.update(now_ns, done);
        }
        once.update(now_ns, done);
        prop_assert!(once.util_avg().abs_diff(often.util_avg()) <= 1);
        prop_assert_eq!((once.updated_ns, once.part), (often.updated_ns, often.part));
    }

    #[test]
    fn running_never_lowers_and_sleeping_never_raises_the_utilisation(
        start in 0..=1024_u32, running in any::<bool>(), steps in prop::collection::vec(1..3_000_u64, 1..100),
    ) {
        let done = if running { RUNNING } else { ASLEEP };
        let mut pelt = thread_of(0, start);
        let mut now_ns = 0;
        for units in steps {
            let before = pelt.util_avg();
            now_ns += units * PELT_UNIT_NS;
            pelt.update(now_ns, done);
            // Sums are rounded down when they decay, so the last bit may go either way.
            let (low, high) = if running { (before, pelt.util_avg()) } else { (pelt.util_avg(), before) };
            prop_assert!(low <= high + 1, "{low} {high}");
        }
    }

    #[test]
    fn a_sleeper_s_utilisation_never_rises(
        part in 0..UNITS, util in 0..=1024_u64, rest in 0..UNITS, steps in prop::collection::vec(1..3_000_u64, 1..60),
    ) {
        let at_first = Pelt { part, ..Pelt::new(0) };
        let most = (util * at_first.divider() + rest).min(1024 * at_first.divider());
        let at_first = Pelt { util_sum: most, ..at_first };
        let (mut units, mut before) = (0, at_first.util_avg());
        for step in steps {
            units += step;
            let mut pelt = at_first;
            pelt.update(units * PELT_UNIT_NS, ASLEEP);
            prop_assert!(pelt.util_avg() <= before, "{before} {} after {units}", pelt.util_avg());
            before = pelt.util_avg();
        }
    }

    #[test]
    fn a_core_s_utilisation_is_that_of_its_threads(
        utils in prop::collection::vec(0..=300_u32, 1..8), sleeps in prop::collection::vec(1..5_000_u64, 1..20),
    ) {
        let mut core = Pelt::new(0);
        let mut threads: Vec<Pelt> = utils.iter().map(|&util| thread_of(0, util)).collect();
        for thread in &mut threads {
            core.attach(thread, 1024);
        }
        let mut now_ns = 0;
        for units in sleeps {
            now_ns += units * PELT_UNIT_NS;
            core.update(now_ns, ASLEEP);
            threads.iter_mut().for_each(|thread| { thread.update(now_ns, ASLEEP); });
        }
        let sum: u32 = threads.iter().map(Pelt::util_avg).sum();
        prop_assert!(core.util_avg().abs_diff(sum) <= threads.len() as u32, "{} {sum}", core.util_avg());
        for thread in &threads {
            core.detach(thread, 1024);
        }
        prop_assert_eq!(core.util_avg(), 0);
    }
}
