//! rayon: a sort, and sums over what it has sorted.

use rayon::prelude::*;

fn main() {
    let mut value = 1_u64;
    let mut values: Vec<u64> = (0..1_500_000)
        .map(|_| {
            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            value
        })
        .collect();
    values.par_sort_unstable();
    let mut sum = 0_u64;
    for round in 0..5 {
        let mixed = |each: &u64| {
            (0..20).fold(each ^ round, |known, _| (known ^ known >> 13).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        };
        sum = sum.wrapping_add(values.par_iter().map(mixed).reduce(|| 0, u64::wrapping_add));
    }
    println!("{sum}");
}
