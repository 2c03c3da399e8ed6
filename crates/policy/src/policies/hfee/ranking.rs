//! Who goes where: programs by energy-efficiency ratio and by how long they have waited.

use ampsched_model::ThreadId;

use crate::Prefer;
use crate::policies::support::window::PerThread;

/// A program with its energy-efficiency ratio.
#[derive(Clone, Copy, Debug)]
pub struct Ranked {
    /// Its thread.
    pub thread: ThreadId,
    /// (Instructions per joule on a big core) / (the same on a little one).
    pub eer: f64,
}

/// The order of programs.
#[derive(Clone, Debug)]
pub struct Ranking {
    /// None: by ratio alone.
    alphas: Option<(f64, f64)>,
    waits: PerThread<u32>,
    /// A program in the very middle was pushed up last time.
    pushed_up: PerThread<bool>,
}

/// Who is on which kind of core; all others wait.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    big: Vec<ThreadId>,
    little: Vec<ThreadId>,
}

impl Chosen {
    /// Puts a program on a kind of core.
    pub fn put(&mut self, thread: ThreadId, kind: Prefer) {
        if kind == Prefer::Big { &mut self.big } else { &mut self.little }.push(thread);
    }

    /// How many are on a kind of core.
    pub fn count(&self, kind: Prefer) -> usize {
        if kind == Prefer::Big { self.big.len() } else { self.little.len() }
    }

    /// The same with others.
    pub fn with(mut self, other: Self) -> Self {
        self.big.extend(other.big);
        self.little.extend(other.little);
        self
    }

    /// The kind of core of a program; none if it waits.
    pub fn of(&self, thread: ThreadId) -> Option<Prefer> {
        if self.big.contains(&thread) {
            return Some(Prefer::Big);
        }
        self.little.contains(&thread).then_some(Prefer::Little)
    }
}

/// The ratios alpha1 > 0.5 > alpha2 beyond which every program is pushed (HFEE, Equations 6 and 7): with
/// them the longest wait changes a score by exactly what separates it from 1 or 0.
pub fn alphas(k: f64) -> (f64, f64) {
    ((k + 1.0) / (2.0 * k + 1.0), k / (2.0 * k + 1.0))
}

impl Ranking {
    /// By corrected scores that waiting moves, with HFEE's K.
    pub fn corrected(k: f64) -> Self {
        Self { alphas: Some(alphas(k)), ..Self::plain() }
    }

    /// By ratio alone.
    pub fn plain() -> Self {
        Self { alphas: None, waits: PerThread::default(), pushed_up: PerThread::default() }
    }

    /// Chooses the programs of an epoch; those left out have waited one more.
    ///
    /// Ties: the first listed.
    pub fn choose(&mut self, programs: &[Ranked], big: usize, little: usize) -> Chosen {
        let least = programs.iter().map(|program| program.eer).fold(f64::INFINITY, f64::min);
        let most = programs.iter().map(|program| program.eer).fold(f64::NEG_INFINITY, f64::max);
        let mut scored: Vec<(f64, ThreadId)> = programs
            .iter()
            .map(|program| (self.score(program, least, most), program.thread))
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        let big = big.min(scored.len());
        let little = little.min(scored.len() - big);
        let threads = |part: &[(f64, ThreadId)]| part.iter().map(|&(_, thread)| thread).collect();
        let chosen = Chosen {
            big: threads(&scored[..big]),
            little: threads(&scored[scored.len() - little..]),
        };
        for &(_, thread) in &scored {
            let waits = self.waits.slot(thread);
            *waits = if chosen.of(thread).is_some() { 0 } else { *waits + 1 };
        }
        chosen
    }

    /// HFEE's Score, Equations 5 to 9, with Equation 8 corrected.
    fn score(&mut self, program: &Ranked, least: f64, most: f64) -> f64 {
        let Some((up, down)) = self.alphas else { return program.eer };
        let normal = if most > least { (program.eer - least) / (most - least) } else { 0.5 };
        let corrected = if normal > 0.5 {
            normal.max(up)
        } else if normal < 0.5 {
            normal.min(down)
        } else {
            let pushed_up = self.pushed_up.slot(program.thread);
            *pushed_up = !*pushed_up;
            if *pushed_up { up } else { down }
        };
        let waited = f64::from(*self.waits.slot(program.thread));
        corrected + (2.0 * corrected - 1.0) * waited
    }
}
