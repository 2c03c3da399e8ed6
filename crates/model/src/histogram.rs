//! Times, counted by how long they are, so that percentiles can be told of any number of them.
//!
//! The layout is HdrHistogram's (<https://hdrhistogram.org>): each power of two, an *octave*, is divided into
//! [`SHARES`] equal buckets, and what is shorter than that many ns has a bucket of its own. So the upper bound of a
//! bucket, which is what percentiles are told by, is at most 1 / 128 (0.8 %) above any time in it. The counts of an
//! octave take 512 bytes and exist only once a time falls into it: counting allocates at most once per octave, and a
//! thread whose times lie between 1 us and 1 ms takes 5 KiB, ten thousand such threads 50 MB.

use std::ops::AddAssign;

use serde::Serialize;

use crate::Ns;

/// Buckets of an octave.
const SHARES: usize = 128;
/// The bits of a time that tell its bucket within its octave.
const SHARE_BITS: u32 = SHARES.trailing_zeros();
/// Octaves of all times, that of those below [`SHARES`] first.
const OCTAVES: usize = (Ns::BITS - SHARE_BITS) as usize + 1;

/// How often times of each length have occurred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// By octave: the number of its part of `counts`, from 1; 0 if no time has fallen into it.
    parts: [u8; OCTAVES],
    counts: Vec<u32>,
    count: u64,
    max_ns: Ns,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { parts: [0; OCTAVES], counts: Vec::new(), count: 0, max_ns: 0 }
    }
}

impl Histogram {
    /// Counts a time.
    #[inline]
    pub fn count(&mut self, ns: Ns) {
        let (octave, share) = place(ns);
        self.add(octave, share, 1);
        self.max_ns = self.max_ns.max(ns);
    }

    /// How many times have been counted.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether none has.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The longest, exactly; 0 if there is none.
    pub fn max_ns(&self) -> Ns {
        self.max_ns
    }

    /// The time that a part of all do not exceed, 0 to 1, as an upper bound that is at most 0.8 % too long; never more
    /// than the longest. 0 if there is none. Method of the nearest rank.
    pub fn quantile_ns(&self, part: f64) -> Ns {
        self.at_rank_ns((part * self.count as f64).ceil().max(1.0) as u64)
    }

    /// The time at a rank, from 1 for the shortest; in the same way.
    pub fn at_rank_ns(&self, rank: u64) -> Ns {
        let mut seen = 0;
        for (upper_ns, count) in self.buckets() {
            seen += u64::from(count);
            if seen >= rank {
                return upper_ns;
            }
        }
        self.max_ns
    }

    /// The buckets that are not empty, the shortest times first: the longest time that falls into each, or that has
    /// occurred, and how many have.
    pub fn buckets(&self) -> impl Iterator<Item = (Ns, u32)> + '_ {
        let parts = self.parts.iter().enumerate().filter(|&(_, &part)| part > 0);
        parts.flat_map(move |(octave, &part)| {
            let first = (usize::from(part) - 1) * SHARES;
            let counts = self.counts[first..first + SHARES].iter().enumerate();
            counts
                .filter(|&(_, &count)| count > 0)
                .map(move |(share, &count)| (upper_ns(octave, share).min(self.max_ns), count))
        })
    }

    #[inline]
    fn add(&mut self, octave: usize, share: usize, times: u32) {
        if self.parts[octave] == 0 {
            self.make_part(octave);
        }
        let slot = &mut self.counts[(usize::from(self.parts[octave]) - 1) * SHARES + share];
        *slot = slot.saturating_add(times);
        self.count += u64::from(times);
    }

    #[cold]
    fn make_part(&mut self, octave: usize) {
        self.counts.resize(self.counts.len() + SHARES, 0);
        self.parts[octave] = (self.counts.len() / SHARES) as u8;
    }
}

/// What two have counted together.
impl AddAssign<&Histogram> for Histogram {
    fn add_assign(&mut self, other: &Histogram) {
        for (octave, &part) in other.parts.iter().enumerate().filter(|&(_, &part)| part > 0) {
            let first = (usize::from(part) - 1) * SHARES;
            for (share, &count) in other.counts[first..first + SHARES].iter().enumerate() {
                if count > 0 {
                    self.add(octave, share, count);
                }
            }
        }
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

/// The octave of a time, and its bucket there.
#[inline]
fn place(ns: Ns) -> (usize, usize) {
    let shift = (Ns::BITS - SHARE_BITS - 1).saturating_sub((ns | 1).leading_zeros());
    let octave = shift as usize + usize::from(ns >= SHARES as Ns);
    (octave, (ns >> shift) as usize & (SHARES - 1))
}

/// The longest time in a bucket.
fn upper_ns(octave: usize, share: usize) -> Ns {
    match octave.checked_sub(1) {
        None => share as Ns,
        Some(shift) => (((SHARES + share) as Ns) << shift) + ((1 << shift) - 1),
    }
}

/// How long something took, each time: percentiles by nearest rank, at most 0.8 % too long.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// How many times it did.
    pub count: u64,
    /// Median; 0 if there is nothing.
    pub p50_ns: Ns,
    /// 95 % were not longer.
    pub p95_ns: Ns,
    /// 99 % were not longer.
    pub p99_ns: Ns,
    /// The longest, exactly.
    pub max_ns: Ns,
    /// Of the buckets of the histogram that are not empty, the longest time that each counts, ascending.
    pub upper_ns: Vec<Ns>,
    /// How many each counts.
    pub counts: Vec<u32>,
}

impl Distribution {
    /// Keeps the percentiles only.
    pub fn drop_histogram(&mut self) {
        (self.upper_ns, self.counts) = (Vec::new(), Vec::new());
    }
}

impl From<&Histogram> for Distribution {
    fn from(times: &Histogram) -> Self {
        let (upper_ns, counts) = times.buckets().unzip();
        Self {
            count: times.len(),
            p50_ns: times.quantile_ns(0.5),
            p95_ns: times.quantile_ns(0.95),
            p99_ns: times.quantile_ns(0.99),
            max_ns: times.max_ns(),
            upper_ns,
            counts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Draw;

    #[test]
    fn every_time_falls_into_a_bucket_that_is_at_most_a_128th_wider_than_it() {
        let mut draw = Draw::new(7);
        let edges = (0..Ns::BITS).flat_map(|bit| {
            let power: Ns = 1 << bit;
            [power - 1, power, power + 1]
        });
        let random = (0..100_000).map(|_| {
            let bits = draw.bits();
            bits >> (draw.bits() % 64)
        });
        for ns in edges.chain(random).chain([Ns::MAX]) {
            let (octave, share) = place(ns);
            assert!(octave < OCTAVES && share < SHARES, "{ns}");
            let upper_ns = upper_ns(octave, share);
            assert!(
                upper_ns >= ns && upper_ns - ns <= ns / 128,
                "{ns} in a bucket up to {upper_ns}"
            );
            assert_eq!(place(upper_ns), (octave, share), "{ns}");
        }
    }

    #[test]
    fn quantiles_are_nearest_ranks() {
        let mut times = Histogram::default();
        assert_eq!((times.quantile_ns(0.5), times.max_ns()), (0, 0));
        for ns in 1..=100 {
            times.count(ns);
        }
        let told = [0.0, 0.5, 0.95, 0.99, 1.0].map(|part| times.quantile_ns(part));
        assert_eq!(told, [1, 50, 95, 99, 100]);
        // One long time is the maximum, exactly, though its bucket goes further.
        times.count(1_000_000_007);
        assert_eq!((times.quantile_ns(1.0), times.max_ns()), (1_000_000_007, 1_000_000_007));
        assert_eq!(times.len(), 101);
    }

    #[test]
    fn quantiles_of_a_sum_are_those_of_all_times_together() {
        let mut draw = Draw::new(3);
        let (mut one, mut other, mut all) =
            (Histogram::default(), Histogram::default(), Histogram::default());
        let mut exact: Vec<Ns> = (0..5000).map(|_| draw.bits() >> (draw.bits() % 60)).collect();
        for (index, &ns) in exact.iter().enumerate() {
            if index % 3 == 0 {
                one.count(ns)
            } else {
                other.count(ns)
            }
            all.count(ns);
        }
        one += &other;
        let buckets = |times: &Histogram| times.buckets().collect::<Vec<_>>();
        assert_eq!((buckets(&one), one.len(), one.max_ns()), (buckets(&all), 5000, all.max_ns()));
        exact.sort_unstable();
        for (part, index) in [(0.5, 2499), (0.95, 4749), (0.99, 4949), (1.0, 4999)] {
            let (told, exact) = (one.quantile_ns(part), exact[index]);
            assert!(told >= exact && told - exact <= exact / 128, "{part}: {told} for {exact}");
        }
    }
}
