//! Load tracking against what the kernel of a real board has told of its own.
//!
//! Kernels before 5.1 weigh what a thread contributes by clock and kind of core (fair.c of 4.15, `accumulate_sum`:
//! `cap_scale`) instead of letting time pass more slowly. A sum is linear in what is contributed, so one [`Pelt`] for
//! each capacity, each weighed by it, gives the same.

use ampsched_policy::{Activity, Pelt};

const TRACE: &str = include_str!("data/juno-ramp.csv");
/// The thread's utilisation where the trace begins.
const FIRST: u64 = 690;
/// Of a Cortex-A53 of Juno at its highest clock.
const CAPACITY: u64 = 446;
const MHZ_MAX: u64 = 850;
/// Greatest sum at the begin of a period (pelt.h of 6.6, `get_pelt_divider`).
const DIVIDER: u64 = 47_742 - 1024;

/// A thread as the kernel tracks it.
struct Tracked {
    /// What was contributed at a capacity of 1024 before the trace begins, and since then at each capacity.
    sums: Vec<(u64, Pelt)>,
    /// The average is computed at ends of periods only (fair.c of 4.15, `___update_load_avg`).
    util_avg: u64,
}

impl Tracked {
    fn update(&mut self, at_us: u64, capacity: Option<u64>) {
        let mut has_ended = false;
        for (of, pelt) in &mut self.sums {
            let is_running = capacity == Some(*of);
            let done = if is_running { Activity::RUNNING } else { Activity::ASLEEP };
            has_ended |= pelt.update(at_us * 1000, done);
        }
        if has_ended {
            let weighed = |(of, pelt): &(u64, Pelt)| of * u64::from(pelt.util_avg());
            self.util_avg = self.sums.iter().map(weighed).sum::<u64>() / 1024;
        }
    }
}

#[test]
fn utilisation_is_that_of_junos_kernel() {
    let capacity = |mhz: u64| CAPACITY * (mhz * 1024 / MHZ_MAX) / 1024;
    let past = (1024, Pelt::of_sums(0, 0, 0, FIRST * DIVIDER));
    let now = [450, 700, 850].map(|mhz| (capacity(mhz), Pelt::new(0)));
    let sums = [past].into_iter().chain(now).collect();
    let mut thread = Tracked { sums, util_avg: FIRST };
    let (mut mhz, mut is_running) = (450, true);
    let mut errors = Vec::new();
    for line in TRACE.lines().filter(|line| line.as_bytes()[0].is_ascii_digit()) {
        let fields: Vec<&str> = line.split(',').collect();
        let value: u64 = fields[2].parse().expect("a number");
        thread.update(fields[0].parse().expect("a time"), is_running.then(|| capacity(mhz)));
        match fields[1] {
            "runs" => is_running = true,
            "leaves" => is_running = false,
            "mhz" => mhz = value,
            what => {
                assert_eq!(what, "util_avg");
                errors.push(thread.util_avg.abs_diff(value));
            }
        }
    }
    let mean = errors.iter().sum::<u64>() as f64 / errors.len() as f64;
    let worst = errors.iter().max().expect("there are some");
    println!("{} values: mean {mean:.2} of 1024, worst {worst}", errors.len());
    assert_eq!(errors.len(), 109);
    assert!(mean <= 1.5 && *worst <= 5, "mean {mean:.2}, worst {worst}");
}
