//! Which thread belongs on which core: simulated annealing over the predicted efficiency.

use ampsched_model::Draw;

/// What a thread does while it runs on a core.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Instructions per s.
    pub ips: f64,
    /// Power in mW.
    pub power_mw: f64,
}

/// A thread's share of time in which it wants to run, and what it would do in that on a kind of core.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    demand: f64,
    ips: f64,
    power_mw: f64,
}

/// Threads, cores and what is drawn whichever thread runs where. Kept from epoch to epoch for its memory.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    /// The kind of each core, and how many there are: threads do the same on all cores of a kind.
    kind_of: Vec<usize>,
    kinds: usize,
    base_mw: f64,
    threads: Vec<Thread>,
    /// Of each thread that wants to run, on each kind of core.
    wanted: Vec<Wanted>,
    /// Sets of cores that threads may use.
    sets: Vec<Vec<usize>>,
}

/// A thread.
#[derive(Clone, Copy, Debug)]
struct Thread {
    /// Its number among those that want to run; none if it does not. Then it changes nothing, wherever it is.
    wants: Option<u32>,
    /// The set of cores that it may use.
    set: u32,
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

/// A thread goes from a core to another one and, if there is a second, that one the other way.
#[derive(Clone, Copy, Debug)]
struct Move {
    first: usize,
    second: Option<usize>,
    from: usize,
    to: usize,
}

impl Move {
    fn back(self) -> Self {
        Self { from: self.to, to: self.from, ..self }
    }

    fn carry_out(self, cores: &mut [usize]) {
        cores[self.first] = self.to;
        if let Some(second) = self.second {
            cores[second] = self.from;
        }
    }
}

impl Problem {
    /// Begins anew, without threads, on cores of these kinds; `base_mw` is drawn whatever the assignment.
    pub fn reset(&mut self, kind_of: impl Iterator<Item = usize>, base_mw: f64) {
        self.kind_of.clear();
        self.kind_of.extend(kind_of);
        self.kinds = self.kind_of.iter().max().map_or(0, |last| last + 1);
        self.base_mw = base_mw;
        self.threads.clear();
        self.wanted.clear();
        self.sets.clear();
    }

    /// A set of cores more that threads may use; returns its number.
    pub fn add_set(&mut self, cores: impl Iterator<Item = usize>) -> u32 {
        self.sets.push(cores.collect());
        self.sets.len() as u32 - 1
    }

    /// A thread more that wants to run in a share of time, above 0 to 1, on the cores of a set; `on` says what it does
    /// on each kind of core.
    pub fn add(&mut self, demand: f64, on: impl Iterator<Item = Figures>, set: u32) {
        self.threads.push(Thread { wants: Some(self.wanting() as u32), set });
        self.wanted.extend(on.map(|Figures { ips, power_mw }| Wanted {
            demand,
            ips: demand * ips,
            power_mw: demand * power_mw,
        }));
    }

    /// A thread more that does not want to run.
    pub fn add_idle(&mut self, set: u32) {
        self.threads.push(Thread { wants: None, set });
    }

    /// How many threads want to run.
    fn wanting(&self) -> usize {
        self.wanted.len() / self.kinds.max(1)
    }

    fn allowed(&self, thread: usize) -> &[usize] {
        &self.sets[self.threads[thread].set as usize]
    }

    /// The best assignment among those that annealing visits, from some assignment on.
    pub fn anneal(&self, from: &[usize], cooling: Cooling, random: &mut Draw) -> Vec<usize> {
        let mut present = Assignment::new(self, from);
        if from.is_empty() {
            return Vec::new();
        }
        // What has been done, and how much of it leads to the best.
        let (mut done, mut best, mut best_value) = (Vec::new(), 0, present.value);
        for step in 0..cooling.moves {
            let temperature =
                cooling.temperature * (1.0 - f64::from(step) / f64::from(cooling.moves));
            let Some(change) = self.neighbour(&present.cores, random) else { continue };
            let value = present.value;
            let before = present.change(change);
            let loss = (value - present.value) / value.max(f64::MIN_POSITIVE);
            let accepted = loss <= 0.0 || random.uniform() < (-loss / temperature).exp();
            if accepted {
                done.push(change);
            } else {
                present.undo(change, before, value);
            }
            if present.value > best_value {
                (best, best_value) = (done.len(), present.value);
            }
        }
        let mut cores = from.to_vec();
        done[..best].iter().for_each(|change| change.carry_out(&mut cores));
        cores
    }

    /// One thread elsewhere or, half of the time, two threads in each other's places; none if they may not.
    fn neighbour(&self, cores: &[usize], random: &mut Draw) -> Option<Move> {
        // The upper half of a product: evenly spread, and cheaper than a remainder.
        let below = |count: usize, random: &mut Draw| {
            ((u128::from(random.bits()) * count as u128) >> 64) as usize
        };
        let first = below(cores.len(), random);
        let (allowed, from) = (self.allowed(first), cores[first]);
        let (second, to) = if random.bits() >> 63 == 0 {
            (None, allowed[below(allowed.len(), random)])
        } else {
            let second = below(cores.len(), random);
            (Some(second), cores[second])
        };
        let may = second
            .is_none_or(|second| allowed.contains(&to) && self.allowed(second).contains(&from));
        (may && from != to).then_some(Move { first, second, from, to })
    }
}

/// Threads on cores, with what a change of it needs to be judged: a move changes the sums of two cores only.
///
/// A core's sums run in the order of its threads and the whole's in the order of the cores, so that an assignment has
/// the same efficiency however it came about.
struct Assignment<'p> {
    problem: &'p Problem,
    /// The core of each thread.
    cores: Vec<usize>,
    /// The threads on each core that want to run, as bits, a fixed number of words per core.
    members: Vec<u64>,
    words: usize,
    /// What each core does.
    sums: Vec<Figures>,
    /// Sum of instructions per s / sum of power in mW, or instructions per s if no power is known.
    value: f64,
}

impl<'p> Assignment<'p> {
    /// Thread i on core `cores[i]`.
    fn new(problem: &'p Problem, cores: &[usize]) -> Self {
        let words = problem.wanting().div_ceil(64);
        let mut assignment = Self {
            problem,
            cores: cores.to_vec(),
            members: vec![0; words * problem.kind_of.len()],
            words,
            sums: Vec::new(),
            value: 0.0,
        };
        for (thread, &core) in cores.iter().enumerate() {
            assignment.flip(thread, core);
        }
        assignment.sums = (0..problem.kind_of.len()).map(|core| assignment.sum(core)).collect();
        assignment.value = assignment.efficiency();
        assignment
    }

    /// Carries a move out. Returns the sums of its cores before it.
    fn change(&mut self, change: Move) -> [Figures; 2] {
        let before = [change.from, change.to].map(|core| self.sums[core]);
        self.relocate(change);
        for core in [change.from, change.to] {
            self.sums[core] = self.sum(core);
        }
        self.value = self.efficiency();
        before
    }

    /// Takes the last change back, before which its cores' sums and the value were these.
    fn undo(&mut self, change: Move, before: [Figures; 2], value: f64) {
        self.relocate(change.back());
        [self.sums[change.from], self.sums[change.to]] = before;
        self.value = value;
    }

    fn relocate(&mut self, change: Move) {
        for thread in [Some(change.first), change.second].into_iter().flatten() {
            self.flip(thread, change.from);
            self.flip(thread, change.to);
        }
        change.carry_out(&mut self.cores);
    }

    /// A thread comes to a core, or leaves it.
    fn flip(&mut self, thread: usize, core: usize) {
        if let Some(number) = self.problem.threads[thread].wants {
            self.members[core * self.words + number as usize / 64] ^= 1 << (number % 64);
        }
    }

    /// What a core does: threads that share it share its time in proportion to their demands.
    fn sum(&self, core: usize) -> Figures {
        let problem = self.problem;
        let kind = problem.kind_of[core];
        let mut all = Wanted { demand: 0.0, ips: 0.0, power_mw: 0.0 };
        for_ones(&self.members[core * self.words..][..self.words], |thread| {
            let wanted = problem.wanted[thread * problem.kinds + kind];
            all.demand += wanted.demand;
            all.ips += wanted.ips;
            all.power_mw += wanted.power_mw;
        });
        let granted = 1.0 / f64::max(all.demand, 1.0);
        Figures { ips: all.ips * granted, power_mw: all.power_mw * granted }
    }

    fn efficiency(&self) -> f64 {
        let mut all = Figures { ips: 0.0, power_mw: self.problem.base_mw };
        for sum in &self.sums {
            all.ips += sum.ips;
            all.power_mw += sum.power_mw;
        }
        if all.power_mw > 0.0 { all.ips / all.power_mw } else { all.ips }
    }
}

/// Calls a function with the numbers of the bits that are set, in ascending order.
fn for_ones(words: &[u64], mut call: impl FnMut(usize)) {
    for (index, &word) in words.iter().enumerate() {
        let mut rest = word;
        while rest != 0 {
            call(64 * index + rest.trailing_zeros() as usize);
            rest &= rest - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COOLING: Cooling = Cooling { moves: 200, temperature: 0.1 };

    /// A thread as a test states it.
    #[derive(Clone, Debug)]
    struct Candidate {
        demand: f64,
        ips: Vec<f64>,
        power_mw: Vec<f64>,
        allowed: Vec<usize>,
    }

    fn thread(demand: f64, ips: &[f64], power_mw: &[f64]) -> Candidate {
        let allowed = (0..ips.len()).collect();
        Candidate { demand, ips: ips.to_vec(), power_mw: power_mw.to_vec(), allowed }
    }

    /// Threads as a test states them.
    #[derive(Clone, Debug)]
    struct Threads {
        threads: Vec<Candidate>,
        cores: usize,
        base_mw: f64,
    }

    impl Threads {
        fn problem(&self) -> Problem {
            let mut problem = Problem::default();
            problem.reset(0..self.cores, self.base_mw);
            for thread in &self.threads {
                let set = problem.add_set(thread.allowed.iter().copied());
                let on = thread.ips.iter().zip(&thread.power_mw);
                let figures = on.map(|(&ips, &power_mw)| Figures { ips, power_mw });
                problem.add(thread.demand, figures, set);
            }
            problem
        }

        fn efficiency(&self, cores: &[usize]) -> f64 {
            Assignment::new(&self.problem(), cores).value
        }

        fn anneal(&self, from: &[usize], cooling: Cooling, random: &mut Draw) -> Vec<usize> {
            self.problem().anneal(from, cooling, random)
        }
    }

    /// A big core and a little one; a thread that gains much by the big one and one that does not.
    fn two(base_mw: f64) -> Threads {
        let threads = vec![
            thread(1.0, &[4000.0, 1000.0], &[1000.0, 200.0]),
            thread(1.0, &[1200.0, 1000.0], &[1000.0, 200.0]),
        ];
        Threads { threads, cores: 2, base_mw }
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
        let anneal = |problem: &Threads| problem.anneal(&[1, 0], COOLING, &mut Draw::new(1));
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
        let nobody = Threads { threads: Vec::new(), ..problem };
        assert!(nobody.anneal(&[], COOLING, &mut Draw::new(1)).is_empty());
    }

    fn problems() -> impl Strategy<Value = Threads> {
        let figures = (0.05..1.0, 500.0..2000.0, 1.0..4.0, 50.0..300.0, 1.0..8.0);
        (prop::collection::vec(figures, 1..5), 0.0..1000.0).prop_map(|(figures, base_mw)| {
            let threads = figures.iter().map(|&(demand, ips, speedup, power_mw, factor)| {
                let (fast, hungry) = (ips * speedup, power_mw * factor);
                thread(demand, &[fast, fast, ips, ips], &[hungry, hungry, power_mw, power_mw])
            });
            Threads { threads: threads.collect(), cores: 4, base_mw }
        })
    }

    fn optimum(problem: &Threads) -> f64 {
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
            let problem = Threads { threads, cores: 4, base_mw: between(0.0, 1000.0) };
            let found = problem.anneal(&[0; 4], COOLING, &mut random);
            problem.efficiency(&found) / optimum(&problem)
        };
        let ratios: Vec<f64> = (0..200).map(ratio).collect();
        let mean = ratios.iter().sum::<f64>() / 200.0;
        assert!(mean > 0.99, "{mean}");
        assert!(ratios.iter().all(|&ratio| ratio > 0.7 && ratio < 1.0 + 1e-12), "{ratios:?}");
    }

    /// The efficiency as it is defined, computed from nothing.
    fn plain(problem: &Threads, cores: &[usize]) -> f64 {
        let (mut ips, mut power_mw) = (0.0, problem.base_mw);
        for core in 0..problem.cores {
            let of_core = problem.threads.iter().zip(cores).filter(|(_, on)| **on == core);
            let of_core: Vec<&Candidate> = of_core.map(|(thread, _)| thread).collect();
            let sum = |of: &dyn Fn(&Candidate) -> f64| -> f64 {
                of_core.iter().map(|thread| of(thread)).sum()
            };
            let granted = 1.0 / sum(&|thread| thread.demand).max(1.0);
            ips += sum(&|thread| thread.demand * thread.ips[core]) * granted;
            power_mw += sum(&|thread| thread.demand * thread.power_mw[core]) * granted;
        }
        if power_mw > 0.0 { ips / power_mw } else { ips }
    }

    /// To the last bit, or equally good moves would be judged differently.
    #[test]
    fn changes_and_their_undoing_leave_the_exact_efficiency() {
        let mut random = Draw::new(5);
        let mut between = |least: f64, most: f64| least + (most - least) * random.uniform();
        let mut one = || {
            let ips: Vec<f64> = (0..6).map(|_| between(500.0, 4000.0)).collect();
            let power_mw: Vec<f64> = (0..6).map(|_| between(50.0, 900.0)).collect();
            thread(between(0.05, 1.0), &ips, &power_mw)
        };
        // More than 64, so that the bits of a core take two words.
        let threads = (0..70).map(|_| one()).collect();
        let stated = Threads { threads, cores: 6, base_mw: 300.0 };
        let problem = stated.problem();
        let cores: Vec<usize> = (0..70).map(|thread| thread % 6).collect();
        let mut assignment = Assignment::new(&problem, &cores);
        for step in 0..500 {
            let before = assignment.cores.clone();
            let Some(change) = problem.neighbour(&before, &mut random) else { continue };
            let value = assignment.value;
            let sums = assignment.change(change);
            assert_ne!(assignment.cores, before);
            assert_eq!(assignment.value, plain(&stated, &assignment.cores), "{step}");
            if step % 3 == 0 {
                assignment.undo(change, sums, value);
                assert_eq!(assignment.cores, before);
                assert_eq!(assignment.efficiency(), plain(&stated, &before), "{step}");
            }
        }
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
