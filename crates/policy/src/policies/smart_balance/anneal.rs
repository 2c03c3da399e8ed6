//! Which thread belongs on which core: simulated annealing over the predicted efficiency.

use ampsched_model::Draw;

/// A thread as the assignment sees it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Share of time in which it wants to run, 0 to 1.
    pub demand: f64,
    /// Instructions per s on each core.
    pub ips: Vec<f64>,
    /// Power in mW while it runs on each core.
    pub power_mw: Vec<f64>,
    /// The cores that it may use.
    pub allowed: Vec<usize>,
}

/// Threads, cores and what is drawn whoever runs where.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The threads.
    pub threads: Vec<Candidate>,
    /// Number of cores.
    pub cores: usize,
    /// Power that does not depend on the assignment, in mW.
    pub base_mw: f64,
}

/// How annealing cools down.
#[derive(Clone, Copy, Debug)]
pub struct Cooling {
    /// Moves that are tried.
    pub moves: u32,
    /// Loss, as a part of the present efficiency, that is accepted with probability 1 / e at first; it falls
    /// to 0 linearly.
    pub temperature: f64,
}

impl Problem {
    /// Sum of instructions per s / sum of power in mW (instructions per s if no power is known) if thread i is
    /// on core `cores[i]`. Threads that share a core share its time in proportion to their demands.
    pub fn efficiency(&self, cores: &[usize]) -> f64 {
        let mut demands = vec![0.0; self.cores];
        for (thread, &core) in self.threads.iter().zip(cores) {
            demands[core] += thread.demand;
        }
        let (mut ips, mut power_mw) = (0.0, self.base_mw);
        for (thread, &core) in self.threads.iter().zip(cores) {
            let share = thread.demand / demands[core].max(1.0);
            ips += share * thread.ips[core];
            power_mw += share * thread.power_mw[core];
        }
        if power_mw > 0.0 { ips / power_mw } else { ips }
    }

    /// The best assignment among those that annealing visits, from some assignment on.
    pub fn anneal(&self, from: &[usize], cooling: Cooling, random: &mut Draw) -> Vec<usize> {
        let (mut present, mut value) = (from.to_vec(), self.efficiency(from));
        let (mut best, mut best_value) = (present.clone(), value);
        if self.threads.is_empty() {
            return best;
        }
        for step in 0..cooling.moves {
            let temperature =
                cooling.temperature * (1.0 - f64::from(step) / f64::from(cooling.moves));
            let Some(next) = self.neighbour(&present, random) else { continue };
            let next_value = self.efficiency(&next);
            let loss = (value - next_value) / value.max(f64::MIN_POSITIVE);
            if loss <= 0.0 || random.uniform() < (-loss / temperature).exp() {
                (present, value) = (next, next_value);
            }
            if value > best_value {
                (best, best_value) = (present.clone(), value);
            }
        }
        best
    }

    /// One thread elsewhere or, half of the time, two threads in each other's places; none if they may not.
    fn neighbour(&self, cores: &[usize], random: &mut Draw) -> Option<Vec<usize>> {
        let below = |count: usize, random: &mut Draw| (random.bits() % count as u64) as usize;
        let thread = below(cores.len(), random);
        let allowed = &self.threads[thread].allowed;
        let mut next = cores.to_vec();
        if random.bits() % 2 == 0 {
            next[thread] = allowed[below(allowed.len(), random)];
        } else {
            let other = below(cores.len(), random);
            let may = |thread: usize, core: usize| self.threads[thread].allowed.contains(&core);
            if !may(thread, cores[other]) || !may(other, cores[thread]) {
                return None;
            }
            next.swap(thread, other);
        }
        (next != cores).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COOLING: Cooling = Cooling { moves: 200, temperature: 0.1 };

    fn thread(demand: f64, ips: &[f64], power_mw: &[f64]) -> Candidate {
        let allowed = (0..ips.len()).collect();
        Candidate { demand, ips: ips.to_vec(), power_mw: power_mw.to_vec(), allowed }
    }

    /// A big core and a little one; a thread that gains much by the big one and one that does not.
    fn two(base_mw: f64) -> Problem {
        let threads = vec![
            thread(1.0, &[4000.0, 1000.0], &[1000.0, 200.0]),
            thread(1.0, &[1200.0, 1000.0], &[1000.0, 200.0]),
        ];
        Problem { threads, cores: 2, base_mw }
    }

    #[test]
    fn efficiency_is_that_of_the_shares() {
        let problem = two(0.0);
        assert_eq!(problem.efficiency(&[0, 1]), 5000.0 / 1200.0);
        assert_eq!(problem.efficiency(&[1, 0]), 2200.0 / 1200.0);
        // Half of the time each.
        assert_eq!(problem.efficiency(&[0, 0]), 2600.0 / 1000.0);
        assert_eq!(problem.efficiency(&[1, 1]), 1000.0 / 200.0);
        assert_eq!(two(600.0).efficiency(&[1, 1]), 1000.0 / 800.0);
        let mut light = two(0.0);
        light.threads.iter_mut().for_each(|thread| thread.demand = 0.25);
        assert_eq!(light.efficiency(&[1, 1]), 500.0 / 100.0);
    }

    #[test]
    fn the_more_is_drawn_anyway_the_more_speed_counts() {
        let anneal = |problem: &Problem| problem.anneal(&[1, 0], COOLING, &mut Draw::new(1));
        assert_eq!(anneal(&two(0.0)), [1, 1]);
        assert_eq!(anneal(&two(600.0)), [0, 1]);
    }

    #[test]
    fn without_power_speed_alone_counts() {
        let mut problem = two(0.0);
        problem.threads.iter_mut().for_each(|thread| thread.power_mw = vec![0.0; 2]);
        assert_eq!(problem.efficiency(&[0, 1]), 5000.0);
        assert_eq!(problem.anneal(&[1, 1], COOLING, &mut Draw::new(1)), [0, 1]);
    }

    #[test]
    fn threads_stay_where_they_may_be() {
        let mut problem = two(600.0);
        problem.threads[0].allowed = vec![1];
        let cores = problem.anneal(&[1, 0], COOLING, &mut Draw::new(1));
        assert_eq!(cores[0], 1);
        assert!(
            problem.anneal(&[1, 0], Cooling { moves: 0, ..COOLING }, &mut Draw::new(1)) == [1, 0]
        );
        let nobody = Problem { threads: Vec::new(), ..problem };
        assert!(nobody.anneal(&[], COOLING, &mut Draw::new(1)).is_empty());
    }

    fn problems() -> impl Strategy<Value = Problem> {
        let figures = (0.05..1.0, 500.0..2000.0, 1.0..4.0, 50.0..300.0, 1.0..8.0);
        (prop::collection::vec(figures, 1..5), 0.0..1000.0).prop_map(|(figures, base_mw)| {
            let threads = figures.iter().map(|&(demand, ips, speedup, power_mw, factor)| {
                let (fast, hungry) = (ips * speedup, power_mw * factor);
                thread(demand, &[fast, fast, ips, ips], &[hungry, hungry, power_mw, power_mw])
            });
            Problem { threads: threads.collect(), cores: 4, base_mw }
        })
    }

    fn optimum(problem: &Problem) -> f64 {
        let count = problem.threads.len() as u32;
        let cores = |number: usize| (0..count).map(move |i| number / 4usize.pow(i) % 4);
        let all = (0..4usize.pow(count)).map(|number| cores(number).collect::<Vec<_>>());
        all.map(|cores| problem.efficiency(&cores)).fold(0.0, f64::max)
    }

    #[test]
    fn it_comes_near_the_optimum() {
        let ratio = |seed: u64| {
            let mut random = Draw::new(seed);
            let mut between = |least: f64, most: f64| least + (most - least) * random.uniform();
            let mut one = || {
                let (ips, power_mw) = (between(500.0, 2000.0), between(50.0, 300.0));
                let (fast, hungry) = (ips * between(1.0, 4.0), power_mw * between(1.0, 8.0));
                let demand = between(0.05, 1.0);
                thread(demand, &[fast, fast, ips, ips], &[hungry, hungry, power_mw, power_mw])
            };
            let threads = vec![one(), one(), one(), one()];
            let problem = Problem { threads, cores: 4, base_mw: between(0.0, 1000.0) };
            let found = problem.anneal(&[0; 4], COOLING, &mut random);
            problem.efficiency(&found) / optimum(&problem)
        };
        let ratios: Vec<f64> = (0..200).map(ratio).collect();
        let mean = ratios.iter().sum::<f64>() / 200.0;
        assert!(mean > 0.99, "{mean}");
        assert!(ratios.iter().all(|&ratio| ratio > 0.7 && ratio < 1.0 + 1e-12), "{ratios:?}");
    }

    proptest! {
        #[test]
        fn it_never_gets_worse_nor_better_than_the_optimum(problem in problems(), seed in 0u64..1000) {
            let from = vec![0; problem.threads.len()];
            let cores = problem.anneal(&from, COOLING, &mut Draw::new(seed));
            let (found, best) = (problem.efficiency(&cores), optimum(&problem));
            prop_assert!(found >= problem.efficiency(&from) && found <= best * (1.0 + 1e-12));
        }
    }
}
