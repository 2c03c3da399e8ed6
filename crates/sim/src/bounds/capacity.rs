//! Work over capacity: how long a set of applications takes at least on the whole machine.
//!
//! The relaxation is a linear program: every thread may use all clusters in any proportion, at no cost, with what the
//! cores of a cluster offer; it may not run for longer than the whole time. Whatever is feasible for its dual is a
//! lower bound: a price per ns of each cluster's cores, and of the time of those threads that have most to do, which
//! together come to 1 per ns. Work costs what it costs where it is cheapest, and all the work has to be paid.

use super::demand::Demand;
use super::speeds::Speeds;

/// Work of one kind, of one thread or of several that may share it.
struct Piece {
    app: usize,
    /// The thread, if only one may do it.
    thread: Option<usize>,
    /// Time that it takes on each cluster; infinite where it may not run.
    ns: Vec<f64>,
}

/// Prices of a ns.
#[derive(Clone, Debug)]
pub(crate) struct Prices {
    /// Of a core of each cluster.
    pub cores: Vec<f64>,
    /// Of each thread that is charged for its time.
    thread: f64,
}

/// The machine's capacity, and what asks for it.
pub(super) struct Capacity {
    /// Cores of each cluster.
    cores: Vec<f64>,
    pieces: Vec<Piece>,
    /// Application of each thread and the least time of its work.
    threads: Vec<(usize, f64)>,
}

impl Capacity {
    /// The demands of applications, each of them as often as it repeats itself.
    pub fn new(cores: Vec<f64>, demands: &[Demand], repetitions: f64) -> Self {
        let mut capacity = Self { cores, pieces: Vec::new(), threads: Vec::new() };
        for (app, demand) in demands.iter().enumerate().take(u64::BITS as usize) {
            for thread in &demand.threads {
                let number = capacity.threads.len();
                capacity.threads.push((app, demand.own_ns(thread) * repetitions));
                let (work, may_use) = (&thread.work, &thread.may_use);
                capacity.add(app, Some(number), work, may_use, &demand.speeds, repetitions);
            }
            let everywhere = vec![true; capacity.cores.len()];
            capacity.add(app, None, &demand.shared, &everywhere, &demand.speeds, repetitions);
        }
        capacity
    }

    fn add(
        &mut self,
        app: usize,
        thread: Option<usize>,
        work: &[f64],
        may_use: &[bool],
        speeds: &Speeds,
        times: f64,
    ) {
        for (kind, &amount) in work.iter().enumerate().filter(|(_, amount)| **amount > 0.0) {
            let place = |(ns, may): (&f64, &bool)| {
                if *may { ns * amount * times } else { f64::INFINITY }
            };
            let ns = speeds.ns_per_unit(kind).iter().zip(may_use).map(place).collect();
            self.pieces.push(Piece { app, thread, ns });
        }
    }

    /// The same with prices of cores only.
    pub fn by_cores(&self, apps: u64) -> (f64, Prices) {
        Search { capacity: self, apps, charged: &[] }.best()
    }

    /// A lower bound of the time that some applications take, and the prices that prove it.
    pub fn least_ns(&self, apps: u64) -> (f64, Prices) {
        let mut threads: Vec<(usize, f64)> = (0..self.threads.len())
            .filter(|&thread| apps >> self.threads[thread].0 & 1 == 1)
            .map(|thread| (thread, self.threads[thread].1))
            .collect();
        threads.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        let cores: f64 = self.cores.iter().sum();
        let mut best = (0.0, Prices { cores: vec![0.0; self.cores.len()], thread: 0.0 });
        // Only threads that are fewer than the cores can be what lacks.
        let few = (0..=8).chain([12, 16, 24, 32, 48]).filter(|&count| count < threads.len());
        for count in few.chain([threads.len()]).filter(|&count| (count as f64) < cores) {
            let charged: Vec<usize> = threads[..count].iter().map(|thread| thread.0).collect();
            let found = Search { capacity: self, apps, charged: &charged }.best();
            if found.0 > best.0 {
                best = found;
            }
        }
        best
    }

    /// What the work of some applications costs.
    fn cost(&self, apps: u64, charged: &[usize], prices: &Prices) -> f64 {
        let wanted = self.pieces.iter().filter(|piece| apps >> piece.app & 1 == 1);
        let cost = |piece: &Piece| {
            let own = piece.thread.is_some_and(|thread| charged.contains(&thread));
            let thread = if own { prices.thread } else { 0.0 };
            let places = prices.cores.iter().zip(&piece.ns).map(|(core, ns)| (core + thread) * ns);
            // A cluster that costs nothing is no place for a thread that may not go there.
            places.filter(|cost| !cost.is_nan()).fold(f64::INFINITY, f64::min)
        };
        wanted.map(cost).sum()
    }
}

/// The search for the best prices: the cost is concave in them, so nested golden sections find it. However inexact,
/// what it finds is a bound.
struct Search<'a> {
    capacity: &'a Capacity,
    apps: u64,
    charged: &'a [usize],
}

impl Search<'_> {
    fn best(&self) -> (f64, Prices) {
        let unknown = self.capacity.cores.len() + usize::from(!self.charged.is_empty());
        let mut shares = Vec::with_capacity(unknown);
        let steps = match unknown {
            0..=3 => 24,
            4 => 14,
            _ => 8,
        };
        self.descend(&mut shares, 1.0, unknown, steps)
    }

    /// The best way to share out what is left among the prices that are still open.
    fn descend(&self, shares: &mut Vec<f64>, left: f64, open: usize, steps: u32) -> (f64, Prices) {
        if open == 1 {
            shares.push(left);
            let prices = self.prices(shares);
            shares.pop();
            return (self.capacity.cost(self.apps, self.charged, &prices), prices);
        }
        let mut at = |share: f64| {
            shares.push(share);
            let found = self.descend(shares, left - share, open - 1, steps);
            shares.pop();
            found
        };
        let golden = (5f64.sqrt() - 1.0) / 2.0;
        let (mut low, mut high) = (0.0, left);
        let (mut one, mut two) = (high - golden * (high - low), low + golden * (high - low));
        let (mut at_one, mut at_two) = (at(one), at(two));
        for _ in 0..steps {
            if at_one.0 >= at_two.0 {
                (high, two) = (two, one);
                at_two = at_one;
                one = high - golden * (high - low);
                at_one = at(one);
            } else {
                (low, one) = (one, two);
                at_one = at_two;
                two = low + golden * (high - low);
                at_two = at(two);
            }
        }
        if at_one.0 >= at_two.0 { at_one } else { at_two }
    }

    /// Shares of 1 as prices.
    fn prices(&self, shares: &[f64]) -> Prices {
        let cores = &self.capacity.cores;
        Prices {
            cores: cores.iter().zip(shares).map(|(count, share)| share / count).collect(),
            thread: shares.get(cores.len()).map_or(0.0, |share| share / self.charged.len() as f64),
        }
    }
}
