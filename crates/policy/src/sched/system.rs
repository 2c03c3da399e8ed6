//! A core is the system's for a while: a kernel thread runs there, of which policies know nothing.
//!
//! Threads wait meanwhile, as behind a thread of a higher class, and any core may take them; for those who look for an
//! idle core it is not idle. So do the kernel's interpreter with threads that are not ours, and Linux with those of
//! another class.

use ampsched_model::{CoreId, Ns};

use super::Sched;

impl Sched {
    /// The system takes a core, on which no thread runs any more. The next one on it has to be switched to.
    pub fn take_core(&mut self, core: CoreId) {
        let cpu = &mut self.cores[core.index()];
        debug_assert!(cpu.running.is_none() && cpu.above.is_none() && !cpu.is_taken, "it is free");
        cpu.is_taken = true;
        cpu.last = None;
        self.idle_cores -= 1;
        self.queues[usize::from(cpu.queue)].occupied += 1;
        // What was found of loads holds no longer.
        self.serial += 1;
    }

    /// The system gives a core back, which is idle from now on.
    pub fn give_core_back(&mut self, core: CoreId, now_ns: Ns) {
        let cpu = &mut self.cores[core.index()];
        debug_assert!(cpu.is_taken, "the system has the core");
        cpu.is_taken = false;
        cpu.since_ns = now_ns;
        self.idle_cores += 1;
        self.queues[usize::from(cpu.queue)].occupied -= 1;
        self.serial += 1;
    }

    /// Tells for how long the system has used a core since the start while no thread had it.
    #[inline]
    pub fn note_taken(&mut self, core: CoreId, taken_ns: Ns) {
        self.cores[core.index()].taken_ns = taken_ns;
    }

    /// Whether the system has a core for itself.
    #[inline]
    pub fn is_taken(&self, core: CoreId) -> bool {
        self.cores[core.index()].is_taken
    }

    /// Time in ns since the start in which the system has used a core while no thread had it.
    pub fn taken_ns(&self, core: CoreId) -> Ns {
        self.cores[core.index()].taken_ns
    }
}
