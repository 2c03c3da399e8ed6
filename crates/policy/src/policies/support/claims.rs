//! Who comes first: the least of many claims, without putting all of them in order.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use ampsched_model::ThreadId;

/// What threads put forward for a fast core, in any order. The least comes first, and no two are equal.
pub type Bids<C> = Vec<(C, ThreadId)>;

/// A number that comes before greater ones.
#[derive(Clone, Copy, Debug)]
pub struct Low(pub f64);

impl Ord for Low {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Low {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Low {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Low {}

/// The `count` least of some claims that are accepted, in ascending order. Few are asked about.
pub fn least<T: Ord + Copy>(
    claims: impl IntoIterator<Item = T>,
    count: usize,
    mut is_accepted: impl FnMut(&T) -> bool,
) -> Vec<T> {
    let mut first = BinaryHeap::with_capacity(count + 1);
    for claim in claims {
        let is_too_late = first.len() >= count && first.peek().is_none_or(|last| claim >= *last);
        if is_too_late || !is_accepted(&claim) {
            continue;
        }
        first.push(claim);
        if first.len() > count {
            first.pop();
        }
    }
    first.into_sorted_vec()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_least_are_the_first_of_all_in_order(
            claims in prop::collection::vec(0..50u32, 0..40),
            count in 0..6usize,
            divisor in 1..4u32,
        ) {
            let mut all: Vec<u32> = claims.iter().copied().filter(|it| it % divisor == 0).collect();
            all.sort_unstable();
            all.truncate(count);
            prop_assert_eq!(least(claims, count, |it| it % divisor == 0), all);
        }
    }

    #[test]
    fn low_numbers_come_first() {
        let order = [f64::NEG_INFINITY, -1.0, -0.0, 0.0, 2.5, f64::INFINITY].map(Low);
        assert!(order.is_sorted_by(|a, b| a < b));
    }
}
