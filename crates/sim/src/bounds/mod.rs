//! The limit: what no schedule can beat, whatever it knows.
//!
//! Each application's turnaround has a lower bound of its own; each set of applications has one for the time by which
//! all of them have ended, from capacity. Metrics of a mix follow by dynamic programming over the orders in which
//! applications end. The page `docs/explanation/limit-of-policies.md` proves it.

mod capacity;
mod demand;
mod items;
mod remaining;
mod scan;
mod speeds;
mod walk;

use std::cell::RefCell;
use std::collections::HashMap;

use ampsched_model::{Machine, Workload};

use crate::Options;
use capacity::Capacity;
use demand::Demand;
pub(crate) use remaining::{Progress, Remaining};

/// Amounts of work by kind.
type Work = Vec<f64>;

/// Sums of floating-point numbers, here and in the engine, err by less than this.
const SAFETY: f64 = 1.0 - 1e-9;
/// Applications for which all orders of ending are looked at.
const APPS_MAX: usize = 12;

/// What of a run the amounts depend on.
#[derive(Clone, Copy)]
struct Setting {
    seed: u64,
    repetitions: u32,
    /// Programs that have ended begin anew, with other amounts, until all have ended so often; that they need to end
    /// only once does not change that.
    restarts: bool,
}

/// Lower bounds of a workload's times on a machine, under any policy.
pub struct Limits {
    demands: Vec<Demand>,
    capacity: Capacity,
    setting: Setting,
    until_ns: f64,
    /// Time that the work of a set of applications takes at least.
    known: RefCell<HashMap<u64, f64>>,
}

impl Limits {
    /// The limits of a run with these options.
    pub fn new(machine: &Machine, workload: &Workload, options: &Options) -> Self {
        let repetitions = options.repetitions.map_or(1, |count| count.get());
        let setting =
            Setting { seed: options.seed, repetitions, restarts: options.repetitions.is_some() };
        let placed = workload.placed_on(machine);
        let workload = placed.workload.as_ref();
        let demands: Vec<Demand> =
            workload.apps.iter().map(|app| Demand::of(machine, app, setting)).collect();
        let cores = machine.clusters.iter().map(|cluster| cluster.cores.len() as f64).collect();
        let capacity = Capacity::new(cores, &demands, f64::from(repetitions));
        let until_ns = options.until_ns.map_or(f64::INFINITY, |ns| ns as f64);
        Self { demands, capacity, setting, until_ns, known: RefCell::default() }
    }

    /// The least turnaround of an application in ns: alone on the machine, never waiting, at the best speeds.
    pub fn turnaround_ns(&self, app: usize) -> f64 {
        let demand = &self.demands[app];
        let repeated = f64::from(self.setting.repetitions);
        let alone_ns = self.capacity_ns(1 << app.min(63)) / repeated;
        let least_ns = demand.least_ns.max(if app < 63 { alone_ns } else { 0.0 });
        // Until the simulation stops, if that comes first.
        least_ns.min(self.until_ns - demand.start_ns).max(0.0) * SAFETY
    }

    /// The least makespan in ns.
    pub fn makespan_ns(&self) -> f64 {
        let apps = self.demands.len();
        let all = if apps < 64 { (1 << apps) - 1 } else { u64::MAX };
        self.end_ns(all)
    }

    /// The least mean of turnaround / `alone_ns`.
    pub fn h_antt(&self, alone_ns: &[f64]) -> f64 {
        let ratio = |app: usize, turnaround_ns: f64| turnaround_ns / alone_ns[app];
        self.least_sum(&ratio) / alone_ns.len() as f64
    }

    /// The greatest sum of `alone_ns` / turnaround.
    pub fn h_stp(&self, alone_ns: &[f64]) -> f64 {
        let progress = |app: usize, turnaround_ns: f64| -alone_ns[app] / turnaround_ns.max(1.0);
        -self.least_sum(&progress)
    }

    /// The least that a sum over applications of something can be that grows with their turnarounds.
    ///
    /// In any schedule applications end in some order. Who ends last of a set cannot end before the set's work can be
    /// done ([`Limits::end_ns`]), so the sum over a set is at least the least, over who is last, of the last one's part
    /// and the sum over the others.
    fn least_sum(&self, part: &dyn Fn(usize, f64) -> f64) -> f64 {
        let apps = self.demands.len();
        let alone = |app: usize| part(app, self.turnaround_ns(app));
        if apps > APPS_MAX || self.setting.restarts {
            return (0..apps).map(alone).sum();
        }
        let mut least = vec![f64::INFINITY; 1 << apps];
        least[0] = 0.0;
        for set in 1..1usize << apps {
            let end_ns = self.end_ns(set as u64);
            for last in (0..apps).filter(|app| set >> app & 1 == 1) {
                let turnaround_ns =
                    (end_ns - self.demands[last].start_ns).max(self.turnaround_ns(last));
                let sum = least[set & !(1 << last)] + part(last, turnaround_ns);
                least[set] = least[set].min(sum);
            }
        }
        least[(1 << apps) - 1]
    }

    /// When the last of a set of applications ends at the earliest.
    fn end_ns(&self, set: u64) -> f64 {
        let repeated = f64::from(self.setting.repetitions);
        let within = |app: &usize| *app >= 64 || set >> app & 1 == 1;
        let apps: Vec<usize> = (0..self.demands.len()).filter(within).collect();
        let alone_ns =
            |app: &usize| self.demands[*app].start_ns + self.turnaround_ns(*app) * repeated;
        let mut end_ns = apps.iter().map(alone_ns).fold(0.0, f64::max);
        // What starts at some time or later has to be done after that.
        for from in &apps {
            let from_ns = self.demands[*from].start_ns;
            let later =
                apps.iter().filter(|app| **app < 64 && self.demands[**app].start_ns >= from_ns);
            let later = later.fold(0u64, |set, app| set | 1 << app);
            end_ns = end_ns.max(from_ns + self.capacity_ns(later) * SAFETY);
        }
        end_ns.min(self.until_ns)
    }

    fn capacity_ns(&self, set: u64) -> f64 {
        if let Some(known) = self.known.borrow().get(&set) {
            return *known;
        }
        let least_ns = self.capacity.least_ns(set).0;
        self.known.borrow_mut().insert(set, least_ns);
        least_ns
    }
}
