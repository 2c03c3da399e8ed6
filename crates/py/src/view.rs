//! What a policy written in Python sees and says: `View`, `Topology`, `Event`, `Pick`, `Plan`.

use std::sync::atomic::{AtomicU32, Ordering};

use ampsched_model::{ClusterId, CoreId, CoreSet, MAX_CLASSES, Ns, ThreadId};
use ampsched_policy::{
    self as policy, Change, Factor, Prefer, RunState, SPEED_MAX, SPEED_MIN, SPEED_ONE,
};
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

scoped_tls_hkt::scoped_thread_local!(
    /// The view of the policy call that this thread is in.
    pub static CURRENT: for<'a> policy::View<'a>
);

/// The system at one moment; usable only while a method of the policy runs.
#[pyclass(frozen, module = "ampsched._core")]
#[derive(Default)]
pub struct View {
    /// Threads that the policy has been told of are numbered below this.
    known: AtomicU32,
}

impl View {
    /// The policy is told of a thread, which may not live yet or any more.
    pub fn tell(&self, thread: ThreadId) {
        self.known.fetch_max(thread.0 + 1, Ordering::Relaxed);
    }

    /// Lets `read` look at a thread that exists.
    fn at<T>(
        &self,
        thread: u32,
        read: impl FnOnce(policy::View<'_>, ThreadId) -> T,
    ) -> PyResult<T> {
        look(|view| {
            let id = ThreadId(thread);
            if thread < self.known.load(Ordering::Relaxed) || view.threads().any(|live| live == id)
            {
                return Ok(read(view, id));
            }
            Err(PyIndexError::new_err(format!("thread {thread} does not exist")))
        })
    }
}

/// Lets `read` look through the view of the running policy call.
fn look<T>(read: impl FnOnce(policy::View<'_>) -> PyResult<T>) -> PyResult<T> {
    if !CURRENT.is_set() {
        let text = "a View is usable only while the simulation calls the policy; copy what is needed later";
        return Err(PyRuntimeError::new_err(text));
    }
    CURRENT.with(read)
}

fn look_core<T>(core: usize, read: impl FnOnce(policy::View<'_>, CoreId) -> T) -> PyResult<T> {
    look(|view| Ok(read(view, core_id(core, view.topology().core_count())?)))
}

/// A core number that exists.
fn core_id(core: usize, count: usize) -> PyResult<CoreId> {
    if core < count {
        return Ok(CoreId::from(core));
    }
    Err(PyIndexError::new_err(format!("core {core} does not exist (cores 0 to {})", count - 1)))
}

fn word_of(state: RunState) -> &'static str {
    match state {
        RunState::New => "new",
        RunState::Ready => "ready",
        RunState::Running => "running",
        RunState::Blocked => "blocked",
        RunState::Held => "held",
        RunState::Exited => "exited",
    }
}

fn numbers(threads: impl IntoIterator<Item = ThreadId>) -> Vec<u32> {
    threads.into_iter().map(|thread| thread.0).collect()
}

#[pymethods]
impl View {
    /// Time in ns since the start.
    #[getter]
    fn now_ns(&self) -> PyResult<Ns> {
        look(|view| Ok(view.now_ns()))
    }

    /// Threads that have started and not exited.
    fn threads(&self) -> PyResult<Vec<u32>> {
        look(|view| Ok(numbers(view.threads())))
    }

    /// Live threads that run or wait for a core.
    fn runnable(&self) -> PyResult<Vec<u32>> {
        look(|view| Ok(numbers(view.runnable())))
    }

    /// `ready`, `running` or `blocked`.
    fn state(&self, thread: u32) -> PyResult<&'static str> {
        self.at(thread, |view, id| word_of(view.state(id)))
    }

    /// The number of a thread's application.
    fn app(&self, thread: u32) -> PyResult<u16> {
        self.at(thread, |view, id| view.app(id).0)
    }

    /// The core on which a thread runs, waits or last ran.
    fn core(&self, thread: u32) -> PyResult<u16> {
        self.at(thread, |view, id| view.core(id).0)
    }

    /// The thread that runs on a core.
    fn running(&self, core: usize) -> PyResult<Option<u32>> {
        look_core(core, |view, id| view.running(id).map(|thread| thread.0))
    }

    /// Whether a core runs nothing, has no waiting thread, and is not busy with the system's own work.
    fn is_idle(&self, core: usize) -> PyResult<bool> {
        look_core(core, |view, id| view.is_idle(id))
    }

    /// Number of threads that wait in a core's queue.
    fn queue_len(&self, core: usize) -> PyResult<usize> {
        look_core(core, |view, id| view.queue_len(id))
    }

    /// The threads that wait in a core's queue, in ascending order.
    fn queued(&self, core: usize) -> PyResult<Vec<u32>> {
        let mut threads = look_core(core, |view, id| numbers(view.queued(id)))?;
        threads.sort_unstable();
        Ok(threads)
    }

    /// A thread's counters since its start.
    fn stats(&self, thread: u32) -> PyResult<ThreadStats> {
        self.at(thread, |view, id| {
            let stats = view.stats(id);
            ThreadStats {
                run_ns: stats.run_ns_total(),
                instructions: view.instructions_total(id),
                ready_ns: stats.ready_ns,
                blocked_ns: stats.blocked_ns,
                switches: stats.switches,
                migrations: stats.migrations,
            }
        })
    }

    /// A thread's virtual run time in ns.
    fn vruntime_ns(&self, thread: u32) -> PyResult<Ns> {
        self.at(thread, |view, id| view.vruntime(id))
    }

    /// Whether the plan lets a thread use a core.
    fn may_run(&self, thread: u32, core: usize) -> PyResult<bool> {
        self.at(thread, |view, id| {
            core < view.topology().core_count() && view.may_run(id, CoreId::from(core))
        })
    }

    /// A thread's speed on the fastest cores relative to the slowest, or `default` if it is not known.
    #[pyo3(signature = (thread, default=1.0))]
    fn speedup(&self, thread: u32, default: f64) -> PyResult<f64> {
        self.at(thread, |view, id| view.factors(id).speedup.or(default))
    }

    /// Time in ns that others have waited for a thread since its start, as of the last epoch.
    fn blame_ns(&self, thread: u32) -> PyResult<f64> {
        self.at(thread, |view, id| Factor::or(&view.factors(id).blame_ns, 0.0))
    }

    /// The frequency at which a cluster runs, in MHz.
    fn frequency_mhz(&self, cluster: u8) -> PyResult<u32> {
        look(|view| {
            if usize::from(cluster) < view.topology().clusters().len() {
                return Ok(view.frequency_mhz(ClusterId(cluster)));
            }
            Err(PyIndexError::new_err(format!("there is no cluster {cluster}")))
        })
    }

    /// The share of time in which a thread has been runnable lately, 0 to 1024; 0 unless the policy tracks load.
    fn load(&self, thread: u32) -> PyResult<u32> {
        self.at(thread, |view, id| view.load(id))
    }

    /// What a thread uses of the fastest core, 0 to 1024; 0 unless the policy tracks load.
    fn util(&self, thread: u32) -> PyResult<u32> {
        self.at(thread, |view, id| view.util(id))
    }

    /// How much of a core is used, 0 to its capacity; 0 unless the policy tracks load.
    fn core_util(&self, core: usize) -> PyResult<u32> {
        look_core(core, |view, id| view.core_util(id))
    }

    /// The core that the rules choose for a thread.
    fn by_rules_place(&self, thread: u32) -> PyResult<u16> {
        self.at(thread, |view, id| view.by_rules_place(id).0)
    }

    /// What the rules let a core do next.
    fn by_rules_pick(&self, core: usize) -> PyResult<Pick> {
        look_core(core, |view, id| Pick { inner: view.by_rules_pick(id) })
    }

    /// How long the rules let a thread run on a core, in ns.
    fn by_rules_slice_ns(&self, thread: u32, core: usize) -> PyResult<Ns> {
        let id = look_core(core, |_, id| id)?;
        self.at(thread, |view, thread| view.by_rules_slice(thread, id))
    }

    /// Whether the rules let a woken thread interrupt the one that runs on a core.
    fn by_rules_preempts(&self, woken: u32, running: u32, core: usize) -> PyResult<bool> {
        let id = look_core(core, |_, id| id)?;
        self.at(running, |_, _| ())?;
        self.at(woken, |view, woken| view.by_rules_preempts(woken, ThreadId(running), id))
    }
}

/// What a thread has used and suffered since its start; times in ns.
#[pyclass(frozen, get_all, module = "ampsched._core")]
pub struct ThreadStats {
    run_ns: Ns,
    instructions: u64,
    ready_ns: Ns,
    blocked_ns: Ns,
    switches: u64,
    migrations: u64,
}

/// Cores and clusters of the machine.
#[pyclass(frozen, module = "ampsched._core")]
pub struct Topology {
    /// The topology.
    pub inner: policy::Topology,
}

impl Topology {
    fn id(&self, core: usize) -> PyResult<CoreId> {
        core_id(core, self.inner.core_count())
    }
}

#[pymethods]
impl Topology {
    /// Number of cores.
    #[getter]
    fn core_count(&self) -> usize {
        self.inner.core_count()
    }

    /// Number of speed classes.
    #[getter]
    fn class_count(&self) -> usize {
        self.inner.class_count()
    }

    /// A core's speed class; 0 is the slowest.
    fn class_of(&self, core: usize) -> PyResult<u8> {
        Ok(self.inner.core(self.id(core)?).class.0)
    }

    /// A core's cluster.
    fn cluster_of(&self, core: usize) -> PyResult<u8> {
        Ok(self.inner.core(self.id(core)?).cluster.0)
    }

    /// The frequencies that a cluster may have, in MHz, ascending.
    fn frequencies_mhz(&self, cluster: usize) -> PyResult<Vec<u32>> {
        let found = self.inner.clusters().get(cluster);
        let none = || PyIndexError::new_err(format!("there is no cluster {cluster}"));
        found.map(|cluster| cluster.freqs_mhz.clone()).ok_or_else(none)
    }

    /// The cores of a core's cluster, itself included.
    fn cluster_cores(&self, core: usize) -> PyResult<Vec<u16>> {
        Ok(self.inner.cluster_cores(self.id(core)?).iter().map(|core| core.0).collect())
    }

    /// The other thread of the same physical core (SMT); none if it has one thread.
    fn sibling(&self, core: usize) -> PyResult<Option<u16>> {
        Ok(self.inner.sibling(self.id(core)?).map(|core| core.0))
    }

    /// Whether a core is not of the slowest class, or all are alike.
    fn is_big(&self, core: usize) -> PyResult<bool> {
        Ok(self.inner.is_big(self.id(core)?))
    }

    /// The big cores.
    fn big_cores(&self) -> Vec<u16> {
        self.inner.big_cores().map(|core| core.0).collect()
    }

    /// The little cores; none if all are alike.
    fn little_cores(&self) -> Vec<u16> {
        self.inner.little_cores().map(|core| core.0).collect()
    }
}

/// Something that happened to a thread.
#[pyclass(frozen, get_all, module = "ampsched._core")]
pub struct Event {
    /// `added`, `woken`, `blocked`, `started`, `stopped` or `exited`.
    kind: &'static str,
    /// The thread.
    thread: u32,
    /// The core, of `started` and `stopped`.
    core: Option<u16>,
    /// The thread that woke it, of `woken`.
    by: Option<u32>,
}

impl From<policy::Event> for Event {
    fn from(event: policy::Event) -> Self {
        use policy::Event as E;
        let (kind, thread, core, by) = match event {
            E::Added(thread) => ("added", thread, None, None),
            E::Woken(thread, by) => ("woken", thread, None, by),
            E::Blocked(thread) => ("blocked", thread, None, None),
            E::Started(thread, core) => ("started", thread, Some(core), None),
            E::Stopped(thread, core) => ("stopped", thread, Some(core), None),
            E::Exited(thread) => ("exited", thread, None, None),
        };
        Self { kind, thread: thread.0, core: core.map(|core| core.0), by: by.map(|by| by.0) }
    }
}

#[pymethods]
impl Event {
    fn __repr__(&self) -> String {
        format!("<Event {} thread {}>", self.kind, self.thread)
    }
}

/// What a core does next.
#[pyclass(frozen, module = "ampsched._core")]
pub struct Pick {
    /// The decision.
    pub inner: policy::Pick,
}

#[pymethods]
impl Pick {
    /// Run a waiting thread.
    #[staticmethod]
    fn run(thread: u32) -> Self {
        Self { inner: policy::Pick::Run(ThreadId(thread)) }
    }

    /// Interrupt a thread that runs on a slower core, and run it here.
    #[staticmethod]
    fn pull(thread: u32) -> Self {
        Self { inner: policy::Pick::Pull(ThreadId(thread)) }
    }

    /// Nothing; ask again at that time, if given, unless something happens before.
    #[staticmethod]
    #[pyo3(signature = (recheck_ns=None))]
    fn idle(recheck_ns: Option<Ns>) -> Self {
        Self { inner: policy::Pick::Idle { recheck_ns } }
    }

    /// `run`, `pull` or `idle`.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.inner {
            policy::Pick::Run(_) => "run",
            policy::Pick::Pull(_) => "pull",
            policy::Pick::Idle { .. } => "idle",
        }
    }

    /// The thread, unless idle.
    #[getter]
    fn thread(&self) -> Option<u32> {
        match self.inner {
            policy::Pick::Run(thread) | policy::Pick::Pull(thread) => Some(thread.0),
            policy::Pick::Idle { .. } => None,
        }
    }
}

/// Changes that a policy asks for; carried out when the policy returns.
#[pyclass(module = "ampsched._core")]
pub struct Plan {
    /// Changes so far.
    pub inner: policy::Plan,
    /// Cores of the machine.
    pub core_count: usize,
}

impl Plan {
    /// Notes a change; the simulator refuses threads that do not exist.
    fn set(&mut self, thread: u32, change: Change) {
        self.inner.set(ThreadId(thread), change);
    }
}

#[pymethods]
impl Plan {
    /// Restricts a thread to these cores, within what its program allows.
    fn allow(&mut self, thread: u32, cores: Vec<usize>) -> PyResult<()> {
        if cores.is_empty() {
            return Err(PyValueError::new_err(format!(
                "thread {thread} must be allowed at least one core"
            )));
        }
        let set: PyResult<CoreSet> =
            cores.into_iter().map(|core| core_id(core, self.core_count)).collect();
        self.set(thread, Change::Affinity(set?));
        Ok(())
    }

    /// Prefers a kind of core for a thread, from its next placement on: `any`, `big` or `little`.
    fn prefer(&mut self, thread: u32, kind: &str) -> PyResult<()> {
        self.set(thread, Change::Prefer(kind_of_core(kind)?));
        Ok(())
    }

    /// Prefers a kind of core for a thread and moves it there now.
    fn r#move(&mut self, thread: u32, kind: &str) -> PyResult<()> {
        self.set(thread, Change::Move(kind_of_core(kind)?));
        Ok(())
    }

    /// Holds a thread back, or lets it go on.
    fn hold(&mut self, thread: u32, held: bool) {
        self.set(thread, Change::Hold(held));
    }

    /// Asks for a frequency of a cluster in MHz.
    fn set_frequency(&mut self, cluster: u8, mhz: u32) {
        self.inner.set_frequency(ClusterId(cluster), mhz);
    }

    /// Sets a thread's rank, for queues that serve the highest rank first.
    fn rank(&mut self, thread: u32, rank: u64) {
        self.set(thread, Change::Rank(rank));
    }

    /// Sets a thread's weight; 1024 is nice 0.
    fn weight(&mut self, thread: u32, weight: u32) {
        self.set(thread, Change::Weight(weight));
    }

    /// Sets a thread's predicted speed on each class of cores, slowest class first, relative to the slowest.
    fn speed(&mut self, thread: u32, speeds: Vec<f64>) -> PyResult<()> {
        let can_be_held = |speed: &f64| (SPEED_MIN..=SPEED_MAX).contains(speed);
        if speeds.is_empty() || speeds.len() > MAX_CLASSES || !speeds.iter().all(can_be_held) {
            let text = format!(
                "thread {thread} needs 1 to {MAX_CLASSES} speeds, each within 1/{SPEED_ONE} to {SPEED_MAX}, not {speeds:?}"
            );
            return Err(PyValueError::new_err(text));
        }
        let last = speeds[speeds.len() - 1];
        let all = std::array::from_fn(|class| speeds.get(class).copied().unwrap_or(last));
        self.set(thread, Change::Speed(all));
        Ok(())
    }
}

fn kind_of_core(kind: &str) -> PyResult<Prefer> {
    match kind {
        "any" => Ok(Prefer::Any),
        "big" => Ok(Prefer::Big),
        "little" => Ok(Prefer::Little),
        _ => Err(PyValueError::new_err(format!(
            "unknown kind of core \"{kind}\" (any, big, little)"
        ))),
    }
}
