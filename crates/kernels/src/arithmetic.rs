//! Kernels that stay within the core.

use std::hint::black_box;

/// Elements of a SIMD array: two arrays of 8 KiB together fit into every L1.
const LANES: usize = 2048;
/// The multiplier of Knuth's MMIX generator (TAOCP 2, 3.3.4).
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;

/// Four chains of additions, shifts and exclusive ors.
pub fn integer(rounds: u64) -> u64 {
    let mut chains = [1u64, 2, 3, 4];
    for round in 0..rounds {
        for chain in &mut chains {
            *chain = chain.wrapping_add(round) ^ (*chain >> 3);
        }
        chains = black_box(chains);
    }
    chains.iter().fold(0, |sum, chain| sum.wrapping_add(*chain))
}

/// One chain of multiplications; the shift keeps compilers from folding several rounds into one.
pub fn integer_chain(rounds: u64) -> u64 {
    (0..rounds).fold(1u64, |state, _| (state ^ (state >> 29)).wrapping_mul(MULTIPLIER))
}

/// Eight chains of multiplications and additions.
pub fn float(rounds: u64) -> u64 {
    let factor = black_box(0.999_999_9);
    let mut chains = [1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    for _ in 0..rounds {
        for chain in &mut chains {
            *chain = *chain * factor + 1.0;
        }
    }
    chains.iter().sum::<f64>().to_bits()
}

/// One chain of multiplications and additions.
pub fn float_chain(rounds: u64) -> u64 {
    let factor = black_box(0.999_999_9);
    (0..rounds).fold(1.0f64, |state, _| state * factor + 1.0).to_bits()
}

/// One chain of divisions.
pub fn divide(rounds: u64) -> u64 {
    let dividend = black_box(2.0);
    // x -> 1 + 2 / x has the fixed point 2; the number of rounds is added, as the chain gets there.
    let end = (0..rounds).fold(1.5f64, |state, _| 1.0 + dividend / state);
    end.to_bits().wrapping_add(rounds)
}

/// Branches that depend on random bits.
pub fn branches(bytes: &[u8], rounds: u64) -> u64 {
    let mut sum = 0u64;
    for round in 0..rounds {
        let byte = bytes[round as usize % bytes.len()];
        // The two sides differ in work that no conditional move can do.
        if byte & 1 == 1 {
            sum = black_box(sum.wrapping_mul(3));
        } else {
            sum = black_box(sum ^ round);
        }
    }
    sum.wrapping_add(rounds)
}

/// Two arrays for arithmetic that compilers vectorise.
pub struct Lanes {
    x: [f32; LANES],
    y: [f32; LANES],
}

impl Default for Lanes {
    fn default() -> Self {
        Self { x: [0.5; LANES], y: [0.25; LANES] }
    }
}

impl Lanes {
    /// A round works on 64 elements.
    pub fn run(&mut self, rounds: u64) -> u64 {
        let factor = black_box(0.999f32);
        for round in 0..rounds {
            let from = (round as usize * 64) % LANES;
            let (x, y) = (&self.x[from..from + 64], &mut self.y[from..from + 64]);
            for (y, x) in y.iter_mut().zip(x) {
                *y = *y * factor + *x;
            }
        }
        black_box(&mut self.y);
        self.y.iter().map(|y| u64::from(y.to_bits())).sum::<u64>().wrapping_add(rounds)
    }
}
