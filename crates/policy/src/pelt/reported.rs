//! Averages that the host keeps by itself, as a kernel does that executes Rules and Plan.

use ampsched_model::{CoreId, Ns, ThreadId};

use super::{Activity, CAPACITY_ONE, PELT_UNIT_NS, Pelt};

/// What the averages of a thread are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadLoad {
    /// The share of time in which it has been runnable lately, 0 to 1024.
    pub load: u32,
    /// The share of time in which it has run, 0 to 1024.
    pub running: u32,
    /// What it uses of the fastest core, or will when it wakes up, 0 to 1024.
    pub util: u32,
}

/// What the averages of a core are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreLoad {
    /// Its utilisation, 0 to its capacity.
    pub util: u32,
    /// The same as governors read it.
    pub boosted: u32,
}

/// What a host keeps of a thread since it did something else last. From then on its averages follow from the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptLoad {
    /// In whose time it is kept.
    pub core: CoreId,
    /// The sums as they were.
    pub sums: Pelt,
    /// When that was, in the core's time in ns.
    pub updated_ns: Ns,
    /// What it has done since then.
    pub done: Activity,
    /// The estimate of what it will use when it wakes up, 0 to 1024.
    pub estimate: u32,
    /// The unit of time in which load is tracked, in ns.
    pub unit_ns: Ns,
}

impl KeptLoad {
    /// Averages as they are at a time of the core.
    pub fn at(&self, time_ns: Ns) -> ThreadLoad {
        let mut pelt = self.sums;
        let units = time_ns.saturating_sub(self.updated_ns) / self.unit_ns.max(1);
        pelt.update(units * PELT_UNIT_NS, self.done);
        let running = pelt.util_avg();
        let load = pelt.load_avg(CAPACITY_ONE) as u32;
        ThreadLoad { load, running, util: running.max(self.estimate) }
    }
}

/// What a host has told last of threads and cores; nothing of those that it has not named. Threads' averages are
/// computed when they are read: they rise and fall with time alone, and few are asked about.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReportedLoads {
    threads: Vec<Option<KeptLoad>>,
    /// With what the core's time is.
    cores: Vec<(CoreLoad, Ns)>,
}

impl ReportedLoads {
    pub fn set_thread(&mut self, thread: ThreadId, load: Option<KeptLoad>) {
        *slot(&mut self.threads, thread.index()) = load;
    }

    pub fn set_core(&mut self, core: CoreId, load: CoreLoad, time_ns: Ns) {
        *slot(&mut self.cores, core.index()) = (load, time_ns);
    }

    pub fn thread(&self, thread: ThreadId) -> ThreadLoad {
        let kept = self.threads.get(thread.index()).copied().flatten();
        kept.map_or_else(ThreadLoad::default, |kept| kept.at(self.core_at(kept.core).1))
    }

    pub fn core(&self, core: CoreId) -> CoreLoad {
        self.core_at(core).0
    }

    fn core_at(&self, core: CoreId) -> (CoreLoad, Ns) {
        self.cores.get(core.index()).copied().unwrap_or_default()
    }
}

fn slot<T: Clone + Default>(all: &mut Vec<T>, index: usize) -> &mut T {
    if all.len() <= index {
        all.resize(index + 1, T::default());
    }
    &mut all[index]
}
