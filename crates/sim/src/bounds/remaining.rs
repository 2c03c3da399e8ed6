//! The limit of what is left to do, at a moment of a run: what a search prunes with.
//!
//! What a thread has had of the cores so far pays at most for so much work at given prices. So prices that are good
//! for the whole are good for the rest, too, and a look takes some additions per set of applications.

use ampsched_model::Ns;

use super::Limits;
use super::capacity::Prices;

/// A thread, as far as its work is known.
pub(crate) struct KnownThread {
    /// Threads of the same group do the same.
    pub group: u32,
    /// Least time of its work, and how much of that a ns on a core of each cluster takes off at most.
    pub own_ns: f64,
    pub speed: Vec<f64>,
    /// By set of applications: cost of its work, and what a ns on a core of each cluster pays for at most.
    cost: Vec<f64>,
    pays: Vec<Vec<f64>>,
}

/// What an application was created with.
pub(crate) struct KnownApp {
    pub threads: Vec<KnownThread>,
    /// By set: cost of the work that any thread may do.
    shared: Vec<f64>,
    pub start_ns: f64,
    least_ns: f64,
    /// Whether it is known by the time that its threads have had how far they are.
    pub is_simple: bool,
}

/// How far an application is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// Its end, if it has ended.
    pub ended_ns: Option<Ns>,
    /// Time that each thread, in the order of creation, has had on each cluster.
    pub run_ns: Vec<Vec<Ns>>,
}

/// The limits of a workload, ready to be asked for those of what is left.
pub(crate) struct Remaining {
    pub apps: Vec<KnownApp>,
}

impl Remaining {
    /// Of a workload of few applications; none if it is not known which threads there will be.
    pub fn new(limits: &Limits) -> Option<Self> {
        let prices: Vec<Prices> =
            (0..1u64 << limits.demands.len()).map(|set| limits.capacity.by_cores(set).1).collect();
        let known = |app: usize| known_app(limits, app, &prices);
        let apps = (0..limits.demands.len()).map(known).collect::<Option<Vec<KnownApp>>>()?;
        Some(Self { apps })
    }

    /// The least sum, over the applications, of what is made of their turnarounds.
    pub fn least_sum(
        &self,
        now_ns: Ns,
        progress: &[Progress],
        part: &dyn Fn(usize, f64) -> f64,
    ) -> f64 {
        let open: Vec<usize> =
            (0..self.apps.len()).filter(|&app| progress[app].ended_ns.is_none()).collect();
        let mut least = vec![f64::INFINITY; 1 << open.len()];
        least[0] = 0.0;
        for set in 1..1usize << open.len() {
            let end_ns = self.end_ns(&open, set, now_ns as f64, progress);
            for (place, &last) in open.iter().enumerate().filter(|(place, _)| set >> place & 1 == 1)
            {
                let app = &self.apps[last];
                let turnaround_ns = (end_ns - app.start_ns).max(app.least_ns);
                let sum = least[set & !(1 << place)] + part(last, turnaround_ns);
                least[set] = least[set].min(sum);
            }
        }
        let ended =
            progress.iter().zip(&self.apps).enumerate().filter_map(|(number, (at, app))| {
                at.ended_ns.map(|ns| part(number, ns as f64 - app.start_ns))
            });
        least[least.len() - 1] + ended.sum::<f64>()
    }

    /// The least time by which all have ended.
    pub fn makespan_ns(&self, now_ns: Ns, progress: &[Progress]) -> f64 {
        let open: Vec<usize> =
            (0..self.apps.len()).filter(|&app| progress[app].ended_ns.is_none()).collect();
        self.end_ns(&open, (1 << open.len()) - 1, now_ns as f64, progress)
    }

    /// When the last of a set (of places in `open`) ends at the earliest.
    fn end_ns(&self, open: &[usize], set: usize, now_ns: f64, progress: &[Progress]) -> f64 {
        let of_set = || open.iter().enumerate().filter(|(place, _)| set >> place & 1 == 1);
        let apps = of_set().fold(0usize, |apps, (_, app)| apps | 1 << app);
        let (mut cost, mut end_ns) = (0.0, now_ns);
        for (_, &number) in of_set() {
            let (app, progress) = (&self.apps[number], &progress[number]);
            cost += app.cost_left(apps, progress);
            let from_ns = now_ns.max(app.start_ns);
            end_ns = end_ns.max(from_ns + app.longest_left_ns(progress));
            end_ns = end_ns.max(app.start_ns + app.least_ns);
        }
        end_ns.max(now_ns + cost) * super::SAFETY
    }
}

impl KnownApp {
    fn cost_left(&self, apps: usize, progress: &Progress) -> f64 {
        let left = |(number, thread): (usize, &KnownThread)| {
            let paid = progress.run_ns.get(number).map_or(0.0, |run| pays(run, &thread.pays[apps]));
            thread.cost[apps] - paid
        };
        let threads = self.threads.iter().enumerate().map(left);
        if self.shared[apps] > 0.0 {
            return (threads.sum::<f64>() + self.shared[apps]).max(0.0);
        }
        threads.map(|left| left.max(0.0)).sum()
    }

    /// Time that the thread needs that has most left to do.
    fn longest_left_ns(&self, progress: &Progress) -> f64 {
        if self.shared[self.shared.len() - 1] > 0.0 {
            return 0.0;
        }
        let left = |(number, _): (usize, &KnownThread)| self.left_ns(number, progress);
        self.threads.iter().enumerate().map(left).fold(0.0, f64::max)
    }

    /// Time that a thread's own work still takes at best.
    pub fn left_ns(&self, number: usize, progress: &Progress) -> f64 {
        let thread = &self.threads[number];
        let done = progress.run_ns.get(number).map_or(0.0, |run| pays(run, &thread.speed));
        (thread.own_ns - done).max(0.0)
    }
}

fn pays(run_ns: &[Ns], rates: &[f64]) -> f64 {
    run_ns.iter().zip(rates).map(|(ns, rate)| *ns as f64 * rate).sum()
}

fn known_app(limits: &Limits, number: usize, prices: &[Prices]) -> Option<KnownApp> {
    let demand = &limits.demands[number];
    if !demand.knows_threads {
        return None;
    }
    let speeds = &demand.speeds;
    let kinds = |work: &[f64]| {
        work.iter().enumerate().filter(|(_, amount)| **amount > 0.0).map(|(kind, _)| kind).collect()
    };
    let shared_kinds: Vec<usize> = kinds(&demand.shared);
    let clusters = speeds.ns_per_unit(speeds.cpu_time()).len();
    let everywhere = vec![true; clusters];
    let cost_of = |kind: usize, may_use: &[bool], prices: &Prices| {
        let places = speeds.ns_per_unit(kind).iter().zip(&prices.cores).zip(may_use);
        let usable = places.filter(|(_, may)| **may).map(|((ns, price), _)| ns * price);
        usable.fold(f64::INFINITY, f64::min)
    };
    let cost = |work: &[f64], may_use: &[bool], prices: &Prices| -> f64 {
        kinds(work).iter().map(|&kind: &usize| work[kind] * cost_of(kind, may_use, prices)).sum()
    };
    let mut groups: Vec<(usize, Vec<f64>)> = Vec::new();
    let mut threads = Vec::new();
    for thread in &demand.threads {
        let same = (thread.spec, thread.work.clone());
        let group = groups.iter().position(|group| *group == same).unwrap_or_else(|| {
            groups.push(same);
            groups.len() - 1
        });
        let may_use = &thread.may_use;
        // A thread may also spend its time on what is shared.
        let mut doing: Vec<usize> = kinds(&thread.work);
        doing.extend(&shared_kinds);
        let most = |cluster: usize, per_unit: &dyn Fn(usize) -> f64| {
            let rate = |&kind: &usize| per_unit(kind) / speeds.ns_per_unit(kind)[cluster];
            doing.iter().map(rate).fold(0.0, f64::max)
        };
        let by_cluster = |per_unit: &dyn Fn(usize) -> f64| -> Vec<f64> {
            (0..clusters).map(|cluster| most(cluster, per_unit)).collect()
        };
        threads.push(KnownThread {
            group: group as u32,
            own_ns: demand.own_ns(thread),
            speed: by_cluster(&|kind| speeds.best_ns(kind, may_use)),
            cost: prices.iter().map(|prices| cost(&thread.work, may_use, prices)).collect(),
            pays: prices
                .iter()
                // What is shared costs what it costs where it is cheapest, wherever this thread may run.
                .map(|prices| {
                    by_cluster(&|kind| {
                        let own = if thread.work[kind] > 0.0 {
                            cost_of(kind, may_use, prices)
                        } else {
                            0.0
                        };
                        own.max(cost_of(kind, &everywhere, prices))
                    })
                })
                .collect(),
        });
    }
    let mut kinds_used: Vec<usize> = demand.threads.iter().flat_map(|t| kinds(&t.work)).collect();
    kinds_used.extend(&shared_kinds);
    kinds_used.dedup();
    Some(KnownApp {
        threads,
        shared: prices.iter().map(|prices| cost(&demand.shared, &everywhere, prices)).collect(),
        start_ns: demand.start_ns,
        least_ns: limits.turnaround_ns(number),
        is_simple: kinds_used.windows(2).all(|pair| pair[0] == pair[1]) && shared_kinds.is_empty(),
    })
}
