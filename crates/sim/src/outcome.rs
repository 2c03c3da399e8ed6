//! What a simulation yields.

use ampsched_model::{Distribution, Ns};
use serde::Serialize;

/// Results of one simulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Machine.
    pub machine: String,
    /// Workload.
    pub workload: String,
    /// Policy.
    pub policy: String,
    /// Seed.
    pub seed: u64,
    /// Name of the system's noise, if there was any.
    pub noise: Option<String>,
    /// When the last thread ended, or the run was stopped.
    pub makespan_ns: Ns,
    /// Per application.
    pub apps: Vec<AppOutcome>,
    /// Per thread.
    pub threads: Vec<ThreadOutcome>,
    /// Wake-up latencies of all threads.
    pub latency: Distribution,
    /// Per class of cores, the slowest first.
    pub classes: Vec<ClassOutcome>,
    /// Per core.
    pub cores: Vec<CoreOutcome>,
    /// Per cluster.
    pub clusters: Vec<ClusterOutcome>,
    /// Highest temperature of the machine, if heat was accounted for.
    pub peak_c: Option<f64>,
    /// Energy of what is no cluster in uJ, if energy was accounted for and the machine states its power.
    pub board_uj: Option<f64>,
    /// How often things happened.
    pub counts: Counts,
    /// Sums and means over threads, cores and clusters.
    pub totals: Totals,
    /// What the policy could not do on this machine.
    pub caveat: Option<String>,
    /// How the two threads of a core (SMT) are modelled; none if no core has two.
    pub smt: Option<String>,
}

impl Outcome {
    /// Without the histograms of single threads, which take most of the room where many results are kept; percentiles,
    /// and what whole programs have counted, stay.
    #[must_use]
    pub fn without_thread_histograms(mut self) -> Self {
        for thread in &mut self.threads {
            thread.latency.drop_histogram();
            thread.periods.iter_mut().for_each(Periods::drop_histograms);
        }
        self
    }

    /// Without threads, classes, cores, clusters and all histograms: what is kept where simulations are summed up by
    /// the hundred thousand. Programs and totals stay.
    #[must_use]
    pub fn summed(self) -> Self {
        let mut kept = Self {
            threads: Vec::new(),
            classes: Vec::new(),
            cores: Vec::new(),
            clusters: Vec::new(),
            ..self
        };
        kept.latency.drop_histogram();
        for app in &mut kept.apps {
            app.latency.drop_histogram();
            app.periods.iter_mut().for_each(Periods::drop_histograms);
        }
        kept
    }
}

/// Results of one application.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AppOutcome {
    /// Name.
    pub name: String,
    /// Program.
    pub program: String,
    /// When it started.
    pub start_ns: Ns,
    /// From its start to the end of its last thread; the geometric mean of `completions_ns` if it was
    /// repeated.
    pub turnaround_ns: Ns,
    /// The same of each repetition that ended.
    pub completions_ns: Vec<Ns>,
    /// Threads that it had, in all repetitions.
    pub threads: u32,
    /// Wake-up latencies of its threads.
    pub latency: Distribution,
    /// Of its periodic threads together; none if it has no such thread.
    pub periods: Option<Periods>,
}

/// Results of one thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadOutcome {
    /// Application's number.
    pub app: u16,
    /// The repetition of the application that it belonged to, from 0.
    pub repetition: u32,
    /// Name within the application.
    pub name: String,
    /// When it started.
    pub start_ns: Ns,
    /// When it ended.
    pub end_ns: Ns,
    /// Time on cores of each class, the slowest first.
    pub class_ns: Vec<Ns>,
    /// Time in run queues.
    pub ready_ns: Ns,
    /// Longest single stay in a run queue.
    pub ready_ns_max: Ns,
    /// Time blocked.
    pub blocked_ns: Ns,
    /// Of its time on cores, what it spun for while it waited.
    pub spin_ns: Ns,
    /// Time that other threads waited for it.
    pub blame_ns: Ns,
    /// Instructions retired.
    pub instructions: u64,
    /// Instructions that its program demanded.
    pub instructions_demanded: u64,
    /// Times that it was put on a core after another thread.
    pub switches: u64,
    /// Times that it left a core to wait for something (the kernel's voluntary switches).
    pub voluntary: u64,
    /// Times that it lost a core to another thread while it could have gone on.
    pub involuntary: u64,
    /// Times that it changed cores.
    pub migrations: u64,
    /// Energy that cores used while they ran it, if it was accounted for.
    pub energy_uj: Option<f64>,
    /// Its wake-up latencies.
    pub latency: Distribution,
    /// None if it has no period.
    pub periods: Option<Periods>,
}

impl ThreadOutcome {
    /// Time on cores.
    pub fn run_ns(&self) -> Ns {
        self.class_ns.iter().sum()
    }

    /// Time on cores of the slowest class, if there is another one.
    pub fn little_ns(&self) -> Ns {
        if self.class_ns.len() > 1 { self.class_ns[0] } else { 0 }
    }

    /// Time on all other cores.
    pub fn big_ns(&self) -> Ns {
        self.run_ns() - self.little_ns()
    }
}

/// Periods of a thread, or of all threads of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Periods {
    /// Periods whose work has ended or is overdue.
    pub count: u64,
    /// Those whose work ended after it was due, or has not ended though it is due.
    pub missed: u64,
    /// Median of the time from the end of a period's work until it was due; below 0: so much too late.
    pub slack_p50_ns: i64,
    /// The least.
    pub slack_min_ns: i64,
    /// From the beginning of a period to the end of its work.
    pub response: Distribution,
    /// Frame times: between the ends of the work of successive periods of a thread.
    pub frame: Distribution,
}

impl Periods {
    fn drop_histograms(&mut self) {
        self.response.drop_histogram();
        self.frame.drop_histogram();
    }
}

/// Results of one class of cores.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClassOutcome {
    /// Name: `big` and `little`, with `middle` between them; `all` if all cores are alike.
    pub name: String,
    /// Its clusters.
    pub clusters: Vec<String>,
    /// How many cores it has.
    pub cores: usize,
    /// Time of its cores with a thread, switching included.
    pub busy_ns: Ns,
    /// Time of its cores without a thread.
    pub idle_ns: Ns,
    /// Instructions retired there.
    pub instructions: u64,
    /// Energy of its clusters, if it was accounted for.
    pub energy_uj: Option<f64>,
}

/// Results of one core.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CoreOutcome {
    /// Name of its class.
    pub core_class: String,
    /// Name of its cluster.
    pub cluster: String,
    /// Time with a thread, switching included.
    pub busy_ns: Ns,
    /// Of that, time spent on switching and migration, and on interrupts.
    pub overhead_ns: Ns,
    /// Of that, interrupts of the system's noise.
    pub interrupted_ns: Ns,
    /// Time without a thread.
    pub idle_ns: Ns,
    /// Time of the system's noise while no thread had the core. Together with busy and idle time it is all time.
    pub noise_ns: Ns,
    /// Times that it went from one thread to another.
    pub switches: u64,
    /// Frequencies in MHz at which it was busy, ascending, with the time at each.
    pub residency: Vec<(u32, Ns)>,
}

impl CoreOutcome {
    /// Share of time with a thread, 0 to 1.
    pub fn utilisation(&self) -> f64 {
        let total_ns = self.busy_ns + self.idle_ns + self.noise_ns;
        if total_ns == 0 { 0.0 } else { self.busy_ns as f64 / total_ns as f64 }
    }
}

/// Results of one cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClusterOutcome {
    /// Name.
    pub name: String,
    /// Name of its class.
    pub core_class: String,
    /// Name of the type of its cores.
    pub core_type: String,
    /// Numbers of its cores.
    pub cores: Vec<u16>,
    /// Time of its cores with a thread, switching included.
    pub busy_ns: Ns,
    /// Time of its cores without a thread.
    pub idle_ns: Ns,
    /// Frequencies in MHz at which it ran, ascending, with the time at each.
    pub residency: Vec<(u32, Ns)>,
    /// Changes of frequency.
    pub frequency_changes: u64,
    /// Energy and heat, if they were accounted for.
    pub energy: Option<ClusterEnergy>,
}

/// Energy and heat of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ClusterEnergy {
    /// Used by its cores while they ran threads.
    pub running_uj: f64,
    /// Used by its cores while they idled.
    pub idle_uj: f64,
    /// Used by what its cores share.
    pub uncore_uj: f64,
    /// The sum, as a sensor at its supply would integrate it.
    pub sensor_uj: f64,
    /// Time for which heat or the power limit capped its frequency.
    pub throttled_ns: Ns,
    /// Temperature of its hottest core at the end, if the machine describes how it heats.
    pub temperature_c: Option<f64>,
}

impl ClusterEnergy {
    /// All of it.
    pub fn total_uj(&self) -> f64 {
        self.running_uj + self.idle_uj + self.uncore_uj
    }
}

/// Sums and means over the threads, cores and clusters of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Number of threads, in all repetitions.
    pub threads: usize,
    /// Mean utilisation of the cores, 0 to 1.
    pub utilisation: f64,
    /// Instructions that threads have retired.
    pub instructions: u64,
    /// Time of threads in run queues.
    pub ready_ns: Ns,
    /// Longest single stay in a run queue.
    pub ready_ns_max: Ns,
    /// Time for which threads were blocked.
    pub blocked_ns: Ns,
    /// Energy of all clusters, and of the board if its power is stated, in J, if it was accounted for.
    pub energy_j: Option<f64>,
}

impl Totals {
    /// Sums up. `board_uj` is the energy of what is no cluster.
    pub fn of(
        threads: &[ThreadOutcome],
        cores: &[CoreOutcome],
        clusters: &[ClusterOutcome],
        board_uj: Option<f64>,
    ) -> Self {
        let utilisations: f64 = cores.iter().map(CoreOutcome::utilisation).sum();
        let energies_uj: Option<f64> =
            clusters.iter().map(|cluster| Some(cluster.energy?.total_uj())).sum();
        Self {
            threads: threads.len(),
            utilisation: utilisations / cores.len() as f64,
            instructions: threads.iter().map(|thread| thread.instructions).sum(),
            ready_ns: threads.iter().map(|thread| thread.ready_ns).sum(),
            ready_ns_max: threads.iter().map(|thread| thread.ready_ns_max).max().unwrap_or(0),
            blocked_ns: threads.iter().map(|thread| thread.blocked_ns).sum(),
            energy_j: energies_uj.map(|sum_uj| (sum_uj + board_uj.unwrap_or(0.0)) / 1e6),
        }
    }
}

/// How often things happened in a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Scheduling decisions that put a thread on a core.
    pub dispatches: u64,
    /// Decisions that put another thread on the core than before.
    pub switches: u64,
    /// Threads that continued on another core.
    pub migrations: u64,
    /// Wake-ups.
    pub wakeups: u64,
    /// Wake-ups that interrupted the running thread.
    pub preemptions: u64,
    /// Interrupts and wake-ups of kernel threads.
    pub noise: u64,
}
