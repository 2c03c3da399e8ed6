//! What an application asks of a machine at least, whoever schedules it.

use std::rc::Rc;

use ampsched_model::{App, Machine, ObjectId, ObjectKind, Op};

use super::items::{ItemCost, Items};
use super::speeds::Speeds;
use super::walk::{Amounts, Walk};
use super::{Setting, Work};
use crate::streams;

/// Work of one thread that no other thread can do.
pub(super) struct ThreadDemand {
    pub spec: usize,
    pub work: Work,
    /// Whether it may use each cluster.
    pub may_use: Vec<bool>,
}

/// What an application asks for.
pub(super) struct Demand {
    pub start_ns: f64,
    /// Its turnaround is at least this, whatever the machine's size.
    pub least_ns: f64,
    /// In the order in which they are created, if the program forks none and delays none.
    pub threads: Vec<ThreadDemand>,
    /// Work that any of several threads may do.
    pub shared: Work,
    pub speeds: Rc<Speeds>,
    /// Whether `threads` are all threads, in the order of their creation.
    pub knows_threads: bool,
}

impl Demand {
    /// Of an application on a machine.
    pub fn of(machine: &Machine, app: &App, setting: Setting) -> Self {
        let program = &app.program;
        let speeds = Rc::new(Speeds::new(machine, program));
        let mut demand = Self {
            start_ns: app.start_ns as f64,
            least_ns: 0.0,
            threads: Vec::new(),
            shared: speeds.nothing(),
            speeds,
            knows_threads: false,
        };
        if program.never_ends_by_itself() {
            // Until its duration is over, or that of the simulation.
            demand.least_ns = program.duration_ns.map_or(f64::INFINITY, |ns| ns as f64);
            return demand;
        }
        demand.measure(machine, app, setting);
        if let Some(duration_ns) = program.duration_ns {
            // It may be stopped before its work is done.
            demand.least_ns = demand.least_ns.min(duration_ns as f64);
            demand.threads.clear();
            demand.shared = demand.speeds.nothing();
        }
        demand
    }

    fn measure(&mut self, machine: &Machine, app: &App, setting: Setting) {
        let (program, speeds) = (&app.program, Rc::clone(&self.speeds));
        let stream = streams::of_app(setting.seed, &app.name);
        let amounts = if setting.restarts { Amounts::Least } else { Amounts::Drawn };
        let mut walk = Walk::new(machine, program, &speeds, stream, amounts);
        walk.run();
        let mut least_ns = walk.longest_ns();
        let mut held_ns = walk.held_ns.clone();
        let mut served_ns = walk.served_ns.clone();
        let mut items = Items::new(program, &speeds, stream, amounts, &walk);
        let sums = items.measure();
        for (object, sum) in sums.into_iter().enumerate() {
            let Some(sum) = sum.filter(|_| !walk.scan.has_daemons(object)) else { continue };
            add(&mut held_ns, &sum.cost.held_ns);
            add(&mut served_ns, &sum.cost.served_ns);
            least_ns = least_ns.max(sum.longest_ns);
            if let Some(crew) = walk.crew(object) {
                least_ns = least_ns.max(sum.cost.span_ns / f64::from(crew));
            }
            match walk.only_consumer(object) {
                // Nobody else can do it.
                Some(thread) => walk.threads[thread].take_over(&sum.cost),
                None => add(&mut self.shared, &sum.cost.work),
            }
        }
        self.add_regions(program, &walk, &mut least_ns);
        let devices =
            program.objects.iter().zip(&served_ns).map(|(object, ns)| match object.kind {
                ObjectKind::Device { depth, .. } => ns / f64::from(depth.max(1)),
                _ => 0.0,
            });
        least_ns = devices.chain(held_ns.iter().copied()).fold(least_ns, f64::max);
        self.least_ns = least_ns.max(walk.longest_own_ns());
        self.knows_threads = walk.knows_threads();
        let threads = walk.threads.into_iter();
        self.threads = threads
            .map(|thread| ThreadDemand {
                spec: thread.spec,
                work: thread.work,
                may_use: thread.may_use,
            })
            .collect();
    }

    /// Tasks of regions: all of their work, and the longest chain of tasks.
    fn add_regions(&mut self, program: &ampsched_model::Program, walk: &Walk, least_ns: &mut f64) {
        for (number, object) in program.objects.iter().enumerate() {
            let ObjectKind::Region(region) = &object.kind else { continue };
            if walk.scan.has_daemons(number) {
                continue;
            }
            let Some(profile) = only_profile(program, number) else { continue };
            let Ok(graph) = crate::engine::region_graph(region) else { continue };
            let uses = f64::from(walk.uses[number]);
            // The engine rounds each task to whole instructions.
            let instructions = |work: f64| {
                (self.speeds.instructions(profile, work * region.work_ns) - 0.5).max(0.0)
            };
            self.shared[profile] +=
                uses * graph.tasks().map(|task| instructions(graph.work(task))).sum::<f64>();
            let mut ends = vec![0.0f64; graph.len()];
            for task in graph.tasks() {
                let before = graph.predecessors(task).iter().map(|task| ends[task.index()]);
                ends[task.index()] = before.fold(0.0, f64::max) + instructions(graph.work(task));
            }
            let chain = ends.iter().copied().fold(0.0, f64::max);
            let everywhere = vec![true; self.speeds.ns_per_unit(profile).len()];
            *least_ns = least_ns.max(uses * chain * self.speeds.best_ns(profile, &everywhere));
        }
    }

    /// Least time of a thread's own work.
    pub fn own_ns(&self, thread: &ThreadDemand) -> f64 {
        let of_kind = |(kind, amount): (usize, &f64)| match *amount {
            0.0 => 0.0,
            amount => amount * self.speeds.best_ns(kind, &thread.may_use),
        };
        thread.work.iter().enumerate().map(of_kind).sum()
    }
}

/// The profile of those that work on a region, if they all have the same.
fn only_profile(program: &ampsched_model::Program, number: usize) -> Option<usize> {
    let object = ObjectId::from(number);
    let mut profiles = program.code.iter().filter_map(|op| match op {
        Op::Tasks { region, profile } | Op::Create { region, profile } if *region == object => {
            Some(usize::from(profile.0))
        }
        _ => None,
    });
    let first = profiles.next()?;
    profiles.all(|profile| profile == first).then_some(first)
}

/// Adds numbers place by place.
pub(super) fn add(sum: &mut [f64], more: &[f64]) {
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum += more;
    }
}

/// What an object's items come to.
pub(super) struct Sum {
    pub cost: ItemCost,
    /// The longest of them.
    pub longest_ns: f64,
}
