//! How fast a core computes.

use std::time::{Duration, Instant};

use ampsched_kernels::Kernel;

/// The kernel that speeds are measured with: what most programs do most of the time is integer arithmetic.
const SPEED_KERNEL: &str = "integer";
/// Rounds of the kernel between two readings of the clock: about 10 µs.
const SPEED_ROUNDS: u64 = 10_000;

/// Rounds of the kernel per second on the calling thread.
pub fn measure(duration: Duration) -> f64 {
    let mut kernel = Kernel::new(SPEED_KERNEL).expect("the kernel exists");
    let (start, mut rounds, mut sum) = (Instant::now(), 0_u64, 0_u64);
    loop {
        sum = sum.wrapping_add(kernel.run(SPEED_ROUNDS));
        rounds += SPEED_ROUNDS;
        let elapsed = start.elapsed();
        if elapsed >= duration {
            std::hint::black_box(sum);
            return rounds as f64 / elapsed.as_secs_f64();
        }
    }
}
