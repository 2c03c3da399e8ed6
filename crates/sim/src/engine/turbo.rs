//! Turbo: the fewer cores of a class are active, the faster they may be clocked.
//!
//! A core is active while it runs a thread or does the system's own work; two threads of a core (SMT) count once. The
//! ladder of a cluster ([`ampsched_model::Cluster::turbo_mhz`]) tells the highest clock for each number of active cores
//! of its class, in whichever clusters these are. Who is active is looked at before time goes on, so a core that passes
//! from one thread to the next stays so. The clock follows after the cluster's transition latency, as for governors.

use ampsched_model::{ClusterId, CoreId, Machine};

use super::Engine;

/// A hardware thread.
#[derive(Clone, Copy, Debug)]
struct Seat {
    class: usize,
    /// The number of the core of which it is a thread: that of its first one.
    core: usize,
    is_busy: bool,
    is_stale: bool,
}

/// Which cores are active.
pub(super) struct Turbo {
    seats: Vec<Seat>,
    /// Busy threads of each core.
    busy: Vec<u8>,
    /// Active cores of each class.
    active: Vec<usize>,
    stale: Vec<CoreId>,
}

impl Turbo {
    /// All cores idle; none if clocks do not depend on it.
    pub fn new(machine: &Machine) -> Option<Self> {
        if machine.clusters.iter().all(|cluster| cluster.turbo_mhz.is_empty()) {
            return None;
        }
        let none = Seat { class: 0, core: 0, is_busy: false, is_stale: false };
        let mut seats = vec![none; machine.cores()];
        for cluster in &machine.clusters {
            for (place, core) in cluster.cores.iter().enumerate() {
                let first = cluster.sibling(place).map_or(place, |other| place.min(other));
                let core_number = cluster.cores[first].index();
                seats[core.index()] =
                    Seat { class: cluster.class.index(), core: core_number, ..none };
            }
        }
        let (busy, active) = (vec![0; seats.len()], vec![0; machine.class_count()]);
        Some(Self { seats, busy, active, stale: Vec::new() })
    }

    /// Something has happened on a core.
    pub fn note(&mut self, core: CoreId) {
        let seat = &mut self.seats[core.index()];
        if !std::mem::replace(&mut seat.is_stale, true) {
            self.stale.push(core);
        }
    }

    /// A core is busy or not.
    fn set(&mut self, core: CoreId, is_busy: bool) {
        let seat = &mut self.seats[core.index()];
        seat.is_stale = false;
        if std::mem::replace(&mut seat.is_busy, is_busy) == is_busy {
            return;
        }
        let (busy, active) = (&mut self.busy[seat.core], &mut self.active[seat.class]);
        match (is_busy, *busy) {
            (true, 0) => *active += 1,
            (false, 1) => *active -= 1,
            _ => {}
        }
        *busy = if is_busy { *busy + 1 } else { *busy - 1 };
    }
}

impl Engine<'_> {
    /// Before time goes on: clocks follow the number of active cores.
    pub(super) fn settle_turbo(&mut self) {
        let Some(governing) = self.governing.as_deref_mut() else { return };
        let Some(turbo) = governing.turbo.as_mut().filter(|turbo| !turbo.stale.is_empty()) else {
            return;
        };
        if self.events.first().at_ns == self.events.now_ns() {
            return;
        }
        let before = turbo.active.clone();
        while let Some(core) = turbo.stale.pop() {
            turbo.set(core, !self.sched.is_free(core));
        }
        let active = turbo.active.clone();
        if active == before {
            return;
        }
        for id in 0..self.setup.machine.clusters.len() {
            let cluster = &self.setup.machine.clusters[id];
            let highest = cluster.turbo_opp(active[cluster.class.index()]);
            self.turbo_allows(ClusterId::from(id), highest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_of_a_core_count_once() {
        let seat = |core| Seat { class: 0, core, is_busy: false, is_stale: false };
        let mut turbo = Turbo {
            seats: vec![seat(0), seat(0), seat(2)],
            busy: vec![0; 3],
            active: vec![0],
            stale: Vec::new(),
        };
        let mut counts = Vec::new();
        for (core, is_busy) in [(0, true), (1, true), (2, true), (2, true), (0, false), (1, false)]
        {
            turbo.set(CoreId(core), is_busy);
            counts.push(turbo.active[0]);
        }
        assert_eq!(counts, [1, 1, 2, 2, 2, 1]);
    }
}
