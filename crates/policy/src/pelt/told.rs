//! Averages that the host keeps by itself, as a kernel does that executes Rules and Plan.

use ampsched_model::{CoreId, ThreadId};

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

/// What a host has told last of all threads and cores; nothing of those that it has not named.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    threads: Vec<ThreadLoad>,
    cores: Vec<CoreLoad>,
}

impl Told {
    pub fn set_thread(&mut self, thread: ThreadId, load: ThreadLoad) {
        *slot(&mut self.threads, thread.index()) = load;
    }

    pub fn set_core(&mut self, core: CoreId, load: CoreLoad) {
        *slot(&mut self.cores, core.index()) = load;
    }

    pub fn thread(&self, thread: ThreadId) -> ThreadLoad {
        self.threads.get(thread.index()).copied().unwrap_or_default()
    }

    pub fn core(&self, core: CoreId) -> CoreLoad {
        self.cores.get(core.index()).copied().unwrap_or_default()
    }
}

fn slot<T: Clone + Default>(all: &mut Vec<T>, index: usize) -> &mut T {
    if all.len() <= index {
        all.resize(index + 1, T::default());
    }
    &mut all[index]
}
