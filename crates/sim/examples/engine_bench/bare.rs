//! The yardstick: what the peers' round robin costs if nothing is kept but the time and the work done.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

const SLICE_NS: u64 = 1_000_000;

/// Global round robin of CPU-bound threads until `until_ns`; half of the cores are half as fast.
/// Returns the number of slices.
pub fn round_robin(cores: usize, threads: usize, until_ns: u64) -> u64 {
    let mut queue: VecDeque<u32> = (0..threads as u32).collect();
    let mut work = vec![0_u64; threads];
    let mut running = vec![0_u32; cores];
    let mut events = BinaryHeap::with_capacity(cores);
    let mut slices = 0;
    for (core, slot) in running.iter_mut().enumerate() {
        let Some(thread) = queue.pop_front() else { break };
        *slot = thread;
        slices += 1;
        events.push(Reverse((SLICE_NS, core as u32)));
    }
    while let Some(Reverse((now_ns, core))) = events.pop() {
        let speed = if core as usize * 2 < cores { 2 } else { 1 };
        let thread = running[core as usize];
        work[thread as usize] += speed;
        if now_ns >= until_ns {
            continue;
        }
        queue.push_back(thread);
        running[core as usize] = queue.pop_front().expect("a thread has just been queued");
        slices += 1;
        events.push(Reverse((now_ns + SLICE_NS, core)));
    }
    assert!(work.iter().sum::<u64>() > 0, "the work is kept, so that it cannot be optimised away");
    slices
}
