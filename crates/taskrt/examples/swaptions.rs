//! Swaptions by Monte-Carlo simulation of a short rate (Vasicek, 1977): few, coarse tasks.
//!
//! The right to pay 5 % for 5 years, beginning in 2 years. Each task simulates a block of paths with random numbers of
//! its own, so the result does not depend on who executes it.

mod common;

use std::process::ExitCode;

use ampsched_model::Draw;
use ampsched_taskrt::Datum;

/// Vasicek: dr = SPEED (MEAN - r) dt + VOLATILITY dW.
const SPEED: f64 = 0.3;
const MEAN: f64 = 0.05;
const VOLATILITY: f64 = 0.012;
const TODAY: f64 = 0.045;
const STRIKE: f64 = 0.05;
const EXPIRY_YEARS: f64 = 2.0;
const PAYMENTS: usize = 5;
const STEPS: usize = 500;
const PATHS_PER_TASK: usize = 2_000;

/// Price of a bond that pays 1 after some years, at a short rate (Vasicek, 1977, equation 27).
fn bond(rate: f64, years: f64) -> f64 {
    let b = (1.0 - (-SPEED * years).exp()) / SPEED;
    let variance = VOLATILITY * VOLATILITY;
    let a =
        (b - years) * (MEAN - variance / (2.0 * SPEED * SPEED)) - variance * b * b / (4.0 * SPEED);
    (a - b * rate).exp()
}

/// Value of paying the strike and receiving the floating rate, when the swap begins `delay` years from now.
fn swap(rate: f64, delay: f64) -> f64 {
    let fixed: f64 = (1..=PAYMENTS).map(|year| bond(rate, delay + year as f64)).sum();
    bond(rate, delay) - bond(rate, delay + PAYMENTS as f64) - STRIKE * fixed
}

/// Sums over some paths of the discounted values of the right to pay, the right to receive, and of the square of their
/// difference.
fn simulate(seed: u64) -> [f64; 3] {
    let mut random = Draw::new(seed);
    let step_years = EXPIRY_YEARS / STEPS as f64;
    let mut sums = [0.0; 3];
    for _ in 0..PATHS_PER_TASK {
        let (mut rate, mut integral) = (TODAY, 0.0);
        for _ in 0..STEPS {
            integral += rate * step_years;
            rate += SPEED * (MEAN - rate) * step_years
                + VOLATILITY * step_years.sqrt() * random.normal();
        }
        let value = swap(rate, 0.0) * f64::exp(-integral);
        sums[0] += value.max(0.0);
        sums[1] += (-value).max(0.0);
        sums[2] += value * value;
    }
    sums
}

fn main() -> ExitCode {
    // 128 tasks, as many as the JPDC 2018 paper (Chronaki et al.) has for its swaptions.
    common::main("swaptions", 128, |example| {
        let tasks = example.size;
        let (expected, sums) = example.compare(
            || (0..tasks).map(|task| simulate(task as u64)).collect::<Vec<_>>(),
            |runtime| {
                let sums: Vec<Datum<[f64; 3]>> = (0..tasks).map(|_| Datum::default()).collect();
                runtime.graph(|scope| {
                    for (task, sum) in sums.iter().enumerate() {
                        let new = scope.task("simulate").writes(sum);
                        new.run(move || *sum.write() = simulate(task as u64));
                    }
                })?;
                Ok(sums.into_iter().map(Datum::into_inner).collect())
            },
        )?;
        assert!(sums == expected, "the same sums");
        let paths = (tasks * PATHS_PER_TASK) as f64;
        let mean = |place: usize| sums.iter().map(|sum| sum[place]).sum::<f64>() / paths;
        let (pay, receive) = (mean(0), mean(1));
        // Paying and receiving rights differ by the swap itself, whose value is known.
        let difference = pay - receive;
        let error = ((mean(2) - difference * difference) / paths).sqrt();
        let known = swap(TODAY, EXPIRY_YEARS);
        println!("right to pay {:.3} %, to receive {:.3} %", 100.0 * pay, 100.0 * receive);
        println!("difference {difference:.6} +- {error:.6}, known {known:.6}");
        // Four standard errors, and what steps of a few days leave out.
        assert!((difference - known).abs() < 4.0 * error + 1e-4, "parity holds");
        Ok(())
    })
}
