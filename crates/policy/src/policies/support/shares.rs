//! Kim & Huh's shares (IEEE TC 2018): from speed-ups to the part of its time that each thread has on
//! fast cores.
//!
//! In their model a thread spends a part f of every round on a fast core and the rest on a slow one.
//! With speed-up e its performance is 1 + (e - 1) f, and what counts is performance relative to a base.
//!
//! They have no more threads than cores. Where there are more, one thread has each fast core and the
//! others share the slow ones ([`super::seats`]), so that a fast core is worth more than the speed-up: e
//! times the threads per slow core. With that, all formulas hold for rounds of elapsed time, and the
//! performance of a fair share is what equal time on all cores gives.

use super::labels::Spread;
use crate::{ParamInfo, Params};

/// What performance is compared with.
pub const BASE: ParamInfo = ParamInfo::choice(
    "base",
    0,
    &["fair share", "fast core", "slow core"],
    "what performance is compared with (Kim & Huh's default: fair share)",
);

/// What performance is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// An equal share of the time on fast cores.
    FairShare,
    /// Always a fast core.
    FastCore,
    /// Never a fast core.
    SlowCore,
}

impl Base {
    /// From the parameter [`BASE`].
    pub fn new(params: &Params) -> Self {
        [Self::FairShare, Self::FastCore, Self::SlowCore][params.whole(BASE.name) as usize]
    }
}

/// Programs that compete for fast cores; shares are given and returned in their order.
#[derive(Clone, Debug)]
pub struct Contest {
    rivals: Vec<Rival>,
    /// Fast cores that can be used at a time.
    fast_cores: f64,
    fair_share: f64,
    base: Base,
}

#[derive(Clone, Copy, Debug)]
struct Rival {
    speedup: f64,
    /// Speed on a fast core / speed without one.
    gain: f64,
    threads: f64,
}

/// Rounding errors of sums of shares are less.
const ROUNDING: f64 = 1e-9;
/// Halvings until a level is as exact as a float.
const HALVINGS: usize = 52;

impl Contest {
    /// Of programs, each with a speed-up of at least 1 and a number of threads, the greatest speed-up
    /// first.
    pub fn new(programs: &[(f64, usize)], fast: usize, slow: usize, base: Base) -> Self {
        let threads: usize = programs.iter().map(|program| program.1).sum();
        let per_slow_core = threads.saturating_sub(fast) as f64 / slow.max(1) as f64;
        let rival = |&(speedup, threads): &(f64, usize)| Rival {
            speedup,
            gain: speedup * per_slow_core.max(1.0),
            threads: threads as f64,
        };
        let fast_cores = fast.min(threads) as f64;
        Self {
            rivals: programs.iter().map(rival).collect(),
            fast_cores,
            fair_share: fast_cores / threads.max(1) as f64,
            base,
        }
    }

    /// Number of programs.
    pub fn count(&self) -> usize {
        self.rivals.len()
    }

    /// What time on a slow core beyond an even part of it is worth in time on a fast core; 0 if no core
    /// is shared.
    pub fn slow_worth(&self, program: usize) -> f64 {
        let rival = &self.rivals[program];
        if rival.gain > rival.speedup { 1.0 / (rival.gain - 1.0) } else { 0.0 }
    }

    /// Performance, relative to the base, of a program whose threads have a share.
    pub fn relative(&self, program: usize, share: f64) -> f64 {
        let gain = self.rivals[program].gain;
        (1.0 + (gain - 1.0) * share) / self.base_performance(gain)
    }

    fn base_performance(&self, gain: f64) -> f64 {
        match self.base {
            Base::FairShare => 1.0 + (gain - 1.0) * self.fair_share,
            Base::FastCore => gain,
            Base::SlowCore => 1.0,
        }
    }

    /// The share with which a program's relative performance is at least a level, 0 or more; beyond 1 it
    /// cannot be.
    fn needed(&self, program: usize, level: f64) -> f64 {
        let gain = self.rivals[program].gain;
        let missing = level * self.base_performance(gain) - 1.0;
        if missing <= 0.0 { 0.0 } else { missing / (gain - 1.0) }
    }

    /// Fast cores that shares take.
    fn taken(&self, shares: &[f64]) -> f64 {
        self.rivals.iter().zip(shares).map(|(rival, share)| rival.threads * share).sum()
    }

    /// The greatest throughput: the fast cores to those who gain most.
    pub fn max_perf(&self) -> Vec<f64> {
        let mut shares = vec![0.0; self.count()];
        self.hand_out(&mut shares);
        shares
    }

    /// Hands what is left of the fast cores to those who gain most; if more is taken than there is, they
    /// give it back.
    pub fn hand_out(&self, shares: &mut [f64]) {
        let mut left = self.fast_cores - self.taken(shares);
        for (rival, share) in self.rivals.iter().zip(shares) {
            let part = left.clamp(-*share * rival.threads, (1.0 - *share) * rival.threads);
            *share += part / rival.threads;
            left -= part;
        }
    }

    /// The greatest minimum of relative performance.
    pub fn max_fair(&self) -> Vec<f64> {
        if self.base == Base::FairShare {
            return vec![self.fair_share; self.count()];
        }
        let mut shares = self.equal_performance();
        // Who gains nothing may have what the others cannot use.
        let left = self.fast_cores - self.taken(&shares);
        let gainless = |rival: &Rival| rival.gain <= 1.0;
        let threads: f64 = self.rivals.iter().filter(|r| gainless(r)).map(|r| r.threads).sum();
        for (rival, share) in self.rivals.iter().zip(&mut shares) {
            if gainless(rival) {
                *share = left.max(0.0) / threads;
            }
        }
        shares
    }

    /// Equal relative performance of all who gain, as far as their shares stay within 0 and 1.
    fn equal_performance(&self) -> Vec<f64> {
        let at = |level: f64| -> Vec<f64> {
            let share = |program: usize| match self.rivals[program].gain > 1.0 {
                true => self.needed(program, level).min(1.0),
                false => 0.0,
            };
            (0..self.count()).map(share).collect()
        };
        // All have a share of 1 at the greatest relative performance of a thread on a fast core.
        let most = (0..self.count()).map(|program| self.relative(program, 1.0));
        let (mut low, mut high) = (0.0, most.fold(1.0, f64::max));
        if self.taken(&at(high)) <= self.fast_cores {
            return at(high);
        }
        for _ in 0..HALVINGS {
            let level = f64::midpoint(low, high);
            if self.taken(&at(level)) <= self.fast_cores { low = level } else { high = level }
        }
        at(low)
    }

    /// Relative performance of at least `target` for all; what is left goes to those who gain most. If
    /// that cannot be, [`Contest::max_fair`].
    pub fn min_fair(&self, target: f64) -> Vec<f64> {
        let mut shares: Vec<f64> =
            (0..self.count()).map(|program| self.needed(program, target)).collect();
        let possible = shares.iter().all(|&share| share <= 1.0);
        if !possible || self.taken(&shares) > self.fast_cores + ROUNDING {
            return self.max_fair();
        }
        self.hand_out(&mut shares);
        shares
    }

    /// Programs with similar speed-ups share alike: the first that has more than its fair share, and
    /// those after it whose speed-ups are less by at most `similarity`, get their mean share; and so on.
    pub fn share_alike(&self, shares: &mut [f64], similarity: f64) {
        let fair = self.max_fair();
        let mut next = 0;
        while next < self.count() {
            let first = next;
            next += 1;
            if shares[first] <= fair[first] {
                continue;
            }
            let least = self.rivals[first].speedup - similarity;
            next += self.rivals[next..].iter().take_while(|rival| rival.speedup >= least).count();
            let threads: f64 = self.rivals[first..next].iter().map(|rival| rival.threads).sum();
            let group = self.rivals[first..next].iter().zip(&shares[first..next]);
            let mean = group.map(|(rival, share)| rival.threads * share).sum::<f64>() / threads;
            shares[first..next].fill(mean);
        }
    }

    /// Mixes [`Contest::max_fair`] into the shares, in whole percent, until uniformity is at least
    /// `target`.
    pub fn make_uniform(&self, shares: &mut [f64], target: f64) {
        let uniformity = self.uniformity(shares);
        if uniformity >= target {
            return;
        }
        let (start, fair) = (shares.to_vec(), self.max_fair());
        // The estimate of the authors' tool; the search goes on from there.
        let mut percent = (100.0 * (1.0 - target) / (1.0 - uniformity)).floor();
        loop {
            let part = percent / 100.0;
            for (share, (start, fair)) in shares.iter_mut().zip(start.iter().zip(&fair)) {
                *share = part * start + (1.0 - part) * fair;
            }
            if percent <= 0.0 || self.uniformity(shares) >= target {
                return;
            }
            percent -= 1.0;
        }
    }

    /// 1 - standard deviation / mean of the threads' relative performance (of the population).
    pub fn uniformity(&self, shares: &[f64]) -> f64 {
        let performance = |program: usize| {
            let value = self.relative(program, shares[program]);
            std::iter::repeat_n(value, self.rivals[program].threads as usize)
        };
        let performances: Vec<f64> = (0..self.count()).flat_map(performance).collect();
        let spread = Spread::of(&performances);
        1.0 - spread.sigma / spread.mean
    }

    /// Leaves every thread at least a part of its time on either kind of core, at most an equal one. Who
    /// has more than the least gives in proportion to it.
    pub fn keep_sampling(&self, shares: &mut [f64], least: f64) {
        let low = least.min(self.fair_share);
        // An equal part of either kind leaves no choice, whatever 1 - (1 - x) is rounded to.
        let high = (1.0 - least.min(1.0 - self.fair_share)).max(low);
        for share in shares.iter_mut() {
            *share = share.clamp(low, high);
        }
        let excess = self.taken(shares) - self.fast_cores;
        let limit = if excess > 0.0 { low } else { high };
        let room: Vec<f64> = shares.iter().map(|share| share - limit).collect();
        let total = self.taken(&room);
        if total.abs() > ROUNDING {
            for (share, room) in shares.iter_mut().zip(room) {
                *share -= excess * room / total;
            }
        }
    }
}

#[cfg(test)]
mod tests;
