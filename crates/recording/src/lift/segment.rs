//! What a thread does between two steps: work, and visits of mutexes in any order.

/// Visits of mutexes of one kind within a segment. Times in ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Unit {
    /// The mutex or the array of mutexes.
    pub mutex: u32,
    pub count: f64,
    /// Work while it is held.
    pub hold: f64,
    /// Work outside of all mutexes before it is locked, but for the longest stretch.
    pub gap: f64,
    pub gap_squares: f64,
    /// The longest stretch before a lock.
    pub longest: f64,
}

impl Unit {
    /// Takes a visit into account.
    pub fn visit(&mut self, gap: f64, hold: f64) {
        self.count += 1.0;
        self.hold += hold;
        let other = gap.min(self.longest);
        self.longest = self.longest.max(gap);
        self.gap += other;
        self.gap_squares += other * other;
    }

    fn add(&mut self, other: &Unit) {
        self.count += other.count;
        self.hold += other.hold;
        self.gap += other.gap;
        self.gap_squares += other.gap_squares;
        self.longest += other.longest;
    }
}

/// Work between two steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Segment {
    /// Work outside of mutexes, in ns, gaps included.
    pub work: f64,
    pub units: Vec<Unit>,
}

impl Segment {
    /// All work in ns.
    pub fn total(&self) -> f64 {
        self.work + self.units.iter().map(|unit| unit.hold).sum::<f64>()
    }

    /// The unit of a mutex, new if there is none.
    pub fn unit(&mut self, mutex: u32) -> &mut Unit {
        let at = self.units.iter().position(|unit| unit.mutex == mutex).unwrap_or_else(|| {
            self.units.push(Unit { mutex, ..Unit::default() });
            self.units.len() - 1
        });
        &mut self.units[at]
    }

    /// Adds what another one does.
    pub fn add(&mut self, other: &Segment) {
        self.work += other.work;
        for unit in &other.units {
            self.unit(unit.mutex).add(unit);
        }
    }
}
