//! What a lens sees of all that happens.

use super::Walk;
use crate::import::event::{Raw, What};
use crate::import::observed::cpus::At;
use crate::import::observed::threads::Thread;

impl Walk<'_> {
    /// The present, in ns since the first event.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// The thread of a place, if it has been seen.
    pub fn thread_at(&self, place: u32) -> Option<&Thread> {
        self.threads.get(place as usize)
    }

    /// The clock of a CPU in kHz, if told.
    pub fn khz(&self, cpu: u16) -> Option<u32> {
        self.cpus[usize::from(cpu)].khz
    }

    /// Whether an event changes the clock of a CPU.
    pub fn is_clock_of(&self, raw: &Raw, cpu: u16) -> bool {
        match raw.what {
            What::Frequency { cpu: of, .. } => {
                of == cpu || self.layout.followers(of).contains(&cpu)
            }
            _ => false,
        }
    }

    /// A thread by number: number and name.
    pub fn named(&self, tid: u32) -> (u32, String) {
        let thread = self.by_tid.get(&tid).and_then(|&place| self.thread_at(place));
        let name = thread.and_then(|thread| thread.texts.last());
        (tid, name.map_or("", |&name| self.names.text(name)).to_owned())
    }

    /// Who runs on a CPU, 0 for nobody; none if that is not known.
    pub fn on(&self, cpu: u16) -> Option<(u32, String)> {
        match self.cpus[usize::from(cpu)].at {
            At::Unknown => None,
            At::Idle => Some((0, String::new())),
            At::Thread(place) => self.thread_at(place).map(|thread| self.named(thread.tid)),
        }
    }

    /// Who runs on the other CPUs, where that is known.
    pub fn elsewhere(&self, cpu: u16) -> Vec<(u16, u32, String)> {
        let others = (0..self.cpus.len() as u16).filter(|other| *other != cpu);
        others.filter_map(|other| self.on(other).map(|(tid, name)| (other, tid, name))).collect()
    }
}
