//! A driver that is told only of threads that have done something decides the same as one that is told of all.

use ampsched_computer::{CoreMap, Domain};
use ampsched_live_driver::{Dilation, Driver, Observation};
use ampsched_model::{AppId, ClassId, CoreId, Draw, Ns, StallCounters, ThreadId};
use ampsched_policy::{Factor, FactorKind, Factors, REGISTRY, RunState, Stalls, build_policy};

/// Looks in a history.
const LOOKS: u64 = 60;

/// How many threads there are, and how often they do something.
#[derive(Clone, Copy)]
struct Crowd {
    first: usize,
    most: usize,
    /// Of those that sleep one in so many does something between two looks; of the others one in three.
    awakes_one_in: u64,
    /// Of those that do something one in so many waits afterwards.
    waits_one_in: u64,
}

/// Most do something.
const BUSY: Crowd = Crowd { first: 12, most: 24, awakes_one_in: 3, waits_one_in: 2 };
/// Most sleep.
const QUIET: Crowd = Crowd { first: 150, most: 160, awakes_one_in: 60, waits_one_in: 5 };

/// What happens to a thread in the part of a history between two looks.
#[derive(Clone, Copy)]
struct Life {
    state: RunState,
    core: usize,
    blame_ns: Ns,
    speedup: f64,
    /// Whether it has done something since the last look.
    has_changed: bool,
    ran_ns: Ns,
    waited_ns: Ns,
    blamed_ns: Ns,
}

/// Two drivers with the same history.
struct Twins {
    /// Told of all threads.
    all: Driver,
    /// Told of those that have changed.
    few: Driver,
    lives: Vec<Life>,
    draw: Draw,
    period_ns: Ns,
    now_ns: Ns,
    cores: usize,
    crowd: Crowd,
}

fn machines() -> Vec<CoreMap> {
    let domain = |class, first: usize, count| Domain {
        class,
        cpus: (first..first + count).collect(),
        freqs_mhz: vec![500, 1000],
        cpufreq: Vec::new(),
        relative_speed: None,
        power: Vec::new(),
    };
    vec![
        CoreMap::new(vec![domain(1, 0, 2), domain(0, 2, 2)]),
        CoreMap::new(vec![domain(0, 0, 3), domain(1, 3, 1)]),
    ]
}

impl Twins {
    fn new(policy: &str, map: &CoreMap, crowd: Crowd, seed: u64) -> Self {
        let dilation = Dilation::new(if seed % 2 == 0 { 1.0 } else { 4.0 }).unwrap();
        let driver = || {
            let policy = build_policy(policy, &[]).unwrap();
            Driver::new(policy, map.topology(), dilation).unwrap()
        };
        let (all, few) = (driver(), driver());
        let period_ns = all.look_period_ns();
        let cores = map.topology().core_count();
        let draw = Draw::new(seed);
        Self { all, few, lives: Vec::new(), draw, period_ns, now_ns: 0, cores, crowd }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.draw.bits() % limit
    }

    fn add(&mut self) {
        let (app, core) = (AppId(self.below(4) as u16), self.below(self.cores as u64) as usize);
        let weight = [1024, 1024, 335, 3121][self.below(4) as usize];
        let speedup = self.some_speedup();
        self.all.add(app, weight, None, self.now_ns);
        self.few.add(app, weight, None, self.now_ns);
        self.lives.push(Life {
            state: RunState::New,
            core,
            blame_ns: 0,
            speedup,
            has_changed: true,
            ran_ns: 0,
            waited_ns: 0,
            blamed_ns: 0,
        });
    }

    fn some_speedup(&mut self) -> f64 {
        1.0 + self.below(200) as f64 / 100.0
    }

    /// Time passes in which some threads do something. They use no core for longer than there is time.
    fn live(&mut self) {
        let mut left_ns = vec![self.period_ns; self.cores];
        for index in 0..self.lives.len() {
            let mut life = self.lives[index];
            life.has_changed = match life.state {
                RunState::Exited => false,
                RunState::New => true,
                RunState::Blocked => self.below(self.crowd.awakes_one_in) == 0,
                _ => self.below(3) == 0,
            };
            (life.ran_ns, life.blamed_ns) = (0, 0);
            // Who waits and does nothing has waited all the time.
            life.waited_ns = if life.state == RunState::Ready { self.period_ns } else { 0 };
            if life.has_changed {
                self.change(&mut life, &mut left_ns);
            }
            self.lives[index] = life;
        }
    }

    fn change(&mut self, life: &mut Life, left_ns: &mut [Ns]) {
        life.state = match self.below(20) {
            0 => RunState::Exited,
            1 => RunState::Held,
            _ if self.below(self.crowd.waits_one_in) == 0 => RunState::Ready,
            _ => RunState::Blocked,
        };
        if self.below(4) == 0 {
            life.core = self.below(self.cores as u64) as usize;
        }
        if self.below(4) > 0 {
            let left_ns = &mut left_ns[life.core];
            life.ran_ns = (1 + self.below(self.period_ns / 4)).min(*left_ns);
            *left_ns -= life.ran_ns;
        }
        life.waited_ns = self.below(self.period_ns - life.ran_ns + 1);
        if self.below(3) == 0 {
            life.blamed_ns = self.below(2_000_000) >> self.below(12);
            life.blame_ns += life.blamed_ns;
        }
        if self.below(5) == 0 {
            life.speedup = self.some_speedup();
        }
    }

    fn observation(&self, index: usize) -> Observation {
        let life = &self.lives[index];
        Observation {
            thread: ThreadId::from(index),
            state: life.state,
            core: CoreId::from(life.core),
            ran_ns: life.ran_ns,
            waited_ns: life.waited_ns,
            instructions: life.ran_ns * (1 + index as u64),
            blame_ns: life.blamed_ns,
        }
    }

    fn factors(&self, index: usize) -> Factors {
        let life = &self.lives[index];
        let measured = |value| Factor { value, kind: FactorKind::Measured, at_ns: self.now_ns };
        let counters = StallCounters {
            cpi_base: 0.8,
            cpi_memory: life.speedup,
            llc_mpi: life.speedup / 200.0,
            mlp: 1.0,
            dependence: [0.0; 3],
            load_use_distance: 1.0,
        };
        Factors {
            speedup: measured(life.speedup),
            offline_speedup: measured(life.speedup),
            alone_ips: measured(1e9 * life.speedup),
            blame_ns: measured(life.blame_ns as f64),
            power_mw: measured(500.0 * life.speedup),
            energy_ratio: measured(0.5 * life.speedup),
            work_ns: measured(1e9 * life.speedup),
            path_ns: measured(1e6 * life.speedup),
            stalls: Some(Stalls { class: ClassId(0), counters, at_ns: self.now_ns }),
        }
    }

    /// Both look and decide the same. `is_there`: who was not told to have ended. Returns the number of decisions.
    fn look(&mut self, what: &str, is_there: &[bool]) -> usize {
        let (changed, silent): (Vec<usize>, Vec<usize>) = (0..self.lives.len())
            .filter(|&index| is_there.get(index).copied().unwrap_or(true))
            .partition(|&index| self.lives[index].has_changed);
        let few: Vec<Observation> = changed.iter().map(|&index| self.observation(index)).collect();
        let mut all: Vec<Observation> =
            silent.iter().map(|&index| self.observation(index)).collect();
        all.extend_from_slice(&few);
        self.all.look(&all, self.now_ns);
        self.few.look(&few, self.now_ns);
        for &index in silent.iter().chain(&changed) {
            self.all.set_factors(ThreadId::from(index), self.factors(index));
        }
        for &index in &changed {
            self.few.set_factors(ThreadId::from(index), self.factors(index));
        }
        let (of_all, of_few) = (self.all.epoch(), self.few.epoch());
        assert_eq!(of_all, of_few, "{what} at {} ns decides otherwise", self.now_ns);
        for index in (0..self.lives.len()).map(ThreadId::from) {
            let (one, other) = (self.all.sched(), self.few.sched());
            let (state, same) = (one.thread(index), other.thread(index));
            assert_eq!(
                (state.state, state.core, state.since_ns, state.vruntime),
                (same.state, same.core, same.since_ns, same.vruntime),
                "{what} at {} ns: {index:?}",
                self.now_ns
            );
            assert_eq!(one.stats(index), other.stats(index), "{what}: {index:?}");
        }
        of_all.map_or(0, |decisions| decisions.len())
    }
}

/// A policy sees the same, whether the back end tells everything or only what has changed. Returns the number of its
/// decisions.
fn sees_the_same(policy: &str, map: &CoreMap, crowd: Crowd, seed: u64) -> usize {
    let mut decisions = 0;
    let mut twins = Twins::new(policy, map, crowd, seed);
    (0..crowd.first).for_each(|_| twins.add());
    for look in 1..=LOOKS {
        twins.now_ns = look * twins.period_ns;
        let is_there: Vec<bool> =
            twins.lives.iter().map(|life| life.state != RunState::Exited).collect();
        twins.live();
        decisions += twins.look(&format!("{policy}, history {seed}"), &is_there);
        let live = twins.lives.iter().filter(|life| life.state != RunState::Exited).count();
        if live < crowd.most && twins.below(3) == 0 {
            twins.add();
        }
    }
    decisions
}

/// The number of decisions of all policies.
fn all_see_the_same(crowd: Crowd, histories: u64) -> usize {
    let mut decisions = 0;
    for info in REGISTRY {
        for (number, map) in machines().iter().enumerate() {
            for seed in 0..histories {
                decisions += sees_the_same(info.name, map, crowd, 1000 * number as u64 + seed);
            }
        }
    }
    decisions
}

#[test]
fn who_is_told_of_changes_only_decides_the_same() {
    let decisions = all_see_the_same(BUSY, 12);
    assert!(decisions > 10_000, "{decisions} decisions were compared");
}

#[test]
fn who_is_told_of_few_among_many_sleepers_decides_the_same() {
    let decisions = all_see_the_same(QUIET, 3);
    assert!(decisions > 10_000, "{decisions} decisions were compared");
}
