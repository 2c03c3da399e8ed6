//! Items of queues and iterations of pools: which thread works on one depends on the schedule, what it takes does not,
//! as its random amounts are its own. If several pieces of code may work on it, the least of each counts.

use ampsched_model::{CodePtr, Draw, ObjectKind, Op, Program};

use super::Work;
use super::demand::{Sum, add};
use super::scan::pushed_into;
use super::speeds::Speeds;
use super::walk::{Amounts, Walk, latency_ns};
use crate::streams;

/// Steps through the code of items that are walked at most.
const STEP_LIMIT: u32 = 4_000_000;

/// What an item, or several, takes.
#[derive(Clone)]
pub(super) struct ItemCost {
    pub work: Work,
    /// Time from the first step to the last at best.
    pub span_ns: f64,
    /// By object.
    pub held_ns: Vec<f64>,
    pub served_ns: Vec<f64>,
    pub pushed: Vec<f64>,
}

impl ItemCost {
    fn nothing(speeds: &Speeds, objects: usize) -> Self {
        let zeros = vec![0.0; objects];
        let (held_ns, served_ns, pushed) = (zeros.clone(), zeros.clone(), zeros);
        Self { work: speeds.nothing(), span_ns: 0.0, held_ns, served_ns, pushed }
    }

    fn parts(&mut self) -> [&mut Vec<f64>; 4] {
        [&mut self.work, &mut self.held_ns, &mut self.served_ns, &mut self.pushed]
    }

    fn add_times(&mut self, other: &mut Self, count: f64) {
        self.span_ns += other.span_ns * count;
        for (sum, more) in self.parts().into_iter().zip(other.parts()) {
            let more: Vec<f64> = more.iter().map(|value| value * count).collect();
            add(sum, &more);
        }
    }

    /// The least of each part.
    fn reduce(&mut self, other: &mut Self) {
        self.span_ns = self.span_ns.min(other.span_ns);
        for (least, value) in self.parts().into_iter().zip(other.parts()) {
            for (least, value) in least.iter_mut().zip(value) {
                *least = least.min(*value);
            }
        }
    }
}

/// All items of an application.
pub(super) struct Items<'a> {
    program: &'a Program,
    speeds: &'a Speeds,
    stream: Draw,
    amounts: Amounts,
    walk: &'a Walk<'a>,
    everywhere: Vec<bool>,
    steps: u32,
}

impl<'a> Items<'a> {
    /// Of a program whose threads have been walked.
    pub fn new(
        program: &'a Program,
        speeds: &'a Speeds,
        stream: Draw,
        amounts: Amounts,
        walk: &'a Walk<'a>,
    ) -> Self {
        let everywhere = vec![true; speeds.ns_per_unit(speeds.cpu_time()).len()];
        Self { program, speeds, stream, amounts, walk, everywhere, steps: 0 }
    }

    /// What the items of each object take together; none for objects without.
    pub fn measure(&mut self) -> Vec<Option<Sum>> {
        let objects = self.program.objects.len();
        let mut sums: Vec<Option<Sum>> = (0..objects).map(|_| None).collect();
        let mut pushed: Vec<f64> = self.walk.pushed.iter().map(|&count| count as f64).collect();
        let mut open: Vec<usize> =
            (0..objects).filter(|&object| self.walk.scan.has_items(object)).collect();
        while !open.is_empty() {
            // First those into which no open one pushes; in a circle, whatever is known by then.
            let is_fed = |object: usize| open.iter().any(|&from| self.feeds(from, object));
            let place = open.iter().position(|&object| !is_fed(object)).unwrap_or(0);
            let object = open.remove(place);
            let mut sum = self.sum(object, pushed[object] as u64);
            if !self.walk.scan.has_daemons(object) {
                add(&mut pushed, &sum.cost.pushed);
            }
            sum.cost.pushed.clear();
            sums[object] = Some(sum);
        }
        sums
    }

    /// Whether work on an object's items pushes items into another one.
    fn feeds(&self, from: usize, to: usize) -> bool {
        from != to
            && self.walk.scan.sites(from).iter().any(|&site| {
                let body = &self.program.code[site.index()..self.end_of(site)];
                body.iter().filter_map(pushed_into).any(|queue| queue.index() == to)
            })
    }

    /// Behind the last step of the work on an item.
    fn end_of(&self, site: CodePtr) -> usize {
        match &self.program.code[site.index()] {
            Op::Pop { end, .. } | Op::Take { end, .. } => end.index(),
            _ => site.index(),
        }
    }

    fn sum(&mut self, object: usize, pushed: u64) -> Sum {
        let mut sum = Sum {
            cost: ItemCost::nothing(self.speeds, self.program.objects.len()),
            longest_ns: 0.0,
        };
        let (uses, count) = match self.program.objects[object].kind {
            ObjectKind::Pool { total, .. } => (self.walk.uses[object], total),
            _ => (1, pushed),
        };
        if self.is_constant(object) && count > 0 {
            let mut cost = self.cost(object, self.stream);
            sum.longest_ns = cost.span_ns;
            sum.cost.add_times(&mut cost, f64::from(uses) * count as f64);
            return sum;
        }
        let is_pool = matches!(self.program.objects[object].kind, ObjectKind::Pool { .. });
        for use_number in 0..uses {
            for item in 0..count {
                if self.steps >= STEP_LIMIT {
                    return sum;
                }
                let draw = if is_pool {
                    streams::of_iteration(&self.stream, object as u32, use_number, item)
                } else {
                    streams::of_item(&self.stream, object as u32, item)
                };
                let mut cost = self.cost(object, draw);
                sum.longest_ns = sum.longest_ns.max(cost.span_ns);
                sum.cost.add_times(&mut cost, 1.0);
            }
        }
        sum
    }

    /// Whether all items take the same.
    fn is_constant(&self, object: usize) -> bool {
        self.amounts == Amounts::Least
            || self.walk.scan.sites(object).iter().all(|&site| {
                let body = &self.program.code[site.index()..self.end_of(site)];
                body.iter().all(|op| match op {
                    Op::Compute { instructions: amount, .. }
                    | Op::Run { reference_ns: amount, .. }
                    | Op::Occupy { cpu_ns: amount, .. }
                    | Op::Sleep(amount)
                    | Op::Io { service_ns: amount, .. }
                    | Op::Loop { count: amount, .. } => amount.always().is_some(),
                    _ => true,
                })
            })
    }

    /// The least that an item takes, whoever works on it.
    fn cost(&mut self, object: usize, draw: Draw) -> ItemCost {
        let sites = self.walk.scan.sites(object).to_vec();
        let mut costs = sites.into_iter().map(|site| self.cost_at(site, draw)).collect::<Vec<_>>();
        let mut least = costs.pop().expect("an object with items has sites");
        costs.iter_mut().for_each(|cost| least.reduce(cost));
        least
    }

    fn cost_at(&mut self, site: CodePtr, mut draw: Draw) -> ItemCost {
        let mut cost = ItemCost::nothing(self.speeds, self.program.objects.len());
        let (mut loops, mut held): (Vec<u64>, Vec<(usize, f64)>) = (Vec::new(), Vec::new());
        let mut pc = site.index() + 1;
        let end = self.end_of(site);
        while pc < end && self.steps < STEP_LIMIT {
            self.steps += 1;
            let op = &self.program.code[pc];
            pc += 1;
            match op {
                Op::Compute { instructions: amount, profile } => {
                    let amount = self.amounts.of(amount, &mut draw) as f64;
                    self.compute(&mut cost, usize::from(profile.0), amount);
                }
                Op::Run { reference_ns: amount, profile } => {
                    let ns = self.amounts.of(amount, &mut draw) as f64;
                    let amount = self.speeds.instructions(usize::from(profile.0), ns).round();
                    self.compute(&mut cost, usize::from(profile.0), amount);
                }
                Op::Occupy { cpu_ns, .. } => {
                    let ns = self.amounts.of(cpu_ns, &mut draw) as f64;
                    self.compute(&mut cost, self.speeds.cpu_time(), ns);
                }
                Op::Sleep(amount) => cost.span_ns += self.amounts.of(amount, &mut draw) as f64,
                Op::Io { device, service_ns } => {
                    let ns = self.amounts.of(service_ns, &mut draw) as f64;
                    cost.served_ns[device.index()] += ns;
                    cost.span_ns += ns + latency_ns(self.program, device.index());
                }
                Op::LockOneOf { .. } => drop(draw.bits()),
                Op::Lock(mutex) => held.push((mutex.index(), cost.span_ns)),
                Op::Unlock(mutex) | Op::Wait { mutex, .. } => {
                    let place = held.iter().rposition(|held| held.0 == mutex.index());
                    if let Some(place) = place {
                        let (_, since_ns) = held.remove(place);
                        cost.held_ns[mutex.index()] += cost.span_ns - since_ns;
                        if matches!(op, Op::Wait { .. }) {
                            held.push((mutex.index(), cost.span_ns));
                        }
                    }
                }
                Op::Push(queue) => cost.pushed[queue.index()] += 1.0,
                // Items within items are left out.
                Op::Pop { end, .. } | Op::Take { end, .. } => pc = end.index(),
                Op::Loop { count, end } => match self.amounts.of(count, &mut draw) {
                    0 => pc = end.index(),
                    left => loops.push(left),
                },
                Op::LoopEnd { start } => {
                    let left = loops.last_mut().expect("loops are balanced");
                    *left -= 1;
                    if *left > 0 {
                        pc = start.index();
                    } else {
                        loops.pop();
                    }
                }
                _ => {}
            }
        }
        cost
    }

    fn compute(&self, cost: &mut ItemCost, kind: usize, amount: f64) {
        cost.work[kind] += amount;
        if amount > 0.0 {
            cost.span_ns += amount * self.speeds.best_ns(kind, &self.everywhere);
        }
    }
}
