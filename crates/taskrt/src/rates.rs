//! How long things take on each class of workers, measured while they run: tasks by kind, loops by the place that calls
//! them.

use std::collections::HashMap;

use ampsched_model::ClassId;
use ampsched_task::Workers;

/// What a measured rate belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RateId(u32);

/// Time that so many units took.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    units: f64,
    seconds: f64,
}

/// Measured means, for each class of workers.
#[derive(Debug)]
pub struct Rates {
    kinds: HashMap<String, RateId>,
    sites: HashMap<usize, RateId>,
    names: Vec<String>,
    /// By rate, then class.
    sums: Vec<Sum>,
    classes: usize,
}

impl Rates {
    /// Nothing has been measured yet.
    pub fn new(classes: usize) -> Self {
        Self {
            kinds: HashMap::new(),
            sites: HashMap::new(),
            names: Vec::new(),
            sums: Vec::new(),
            classes,
        }
    }

    /// The rate of a kind of tasks; the unit is one task.
    pub fn of_kind(&mut self, kind: &str) -> RateId {
        if let Some(&found) = self.kinds.get(kind) {
            return found;
        }
        let new = self.add(kind.to_owned());
        self.kinds.insert(kind.to_owned(), new);
        new
    }

    /// The rate of loops that are called from one place, which has a name for people; the unit is one iteration.
    pub fn of_site(&mut self, site: usize, name: impl FnOnce() -> String) -> RateId {
        if let Some(&found) = self.sites.get(&site) {
            return found;
        }
        let new = self.add(name());
        self.sites.insert(site, new);
        new
    }

    /// The kind, or the name of the place.
    pub fn name(&self, rate: RateId) -> &str {
        &self.names[rate.0 as usize]
    }

    fn add(&mut self, name: String) -> RateId {
        let new = RateId(self.names.len() as u32);
        self.names.push(name);
        self.sums.resize(self.sums.len() + self.classes, Sum::default());
        new
    }

    /// Notes that a worker of a class took so long for so many units.
    pub fn note(&mut self, rate: RateId, class: ClassId, units: f64, seconds: f64) {
        let sum = &mut self.sums[rate.0 as usize * self.classes + class.index()];
        sum.units += units;
        sum.seconds += seconds;
    }

    /// Mean seconds per unit on a class, if any class has been measured: that of the class itself, or that of the first
    /// one that has been measured, times the ratio of their speeds.
    pub fn seconds(&self, rate: RateId, class: ClassId, workers: &Workers) -> Option<f64> {
        let row = &self.sums[rate.0 as usize * self.classes..][..self.classes];
        let mean = |sum: &Sum| sum.seconds / sum.units;
        if row[class.index()].units > 0.0 {
            return Some(mean(&row[class.index()]));
        }
        let speed = |class: usize| workers.classes()[class].speed;
        let other = row.iter().position(|sum| sum.units > 0.0)?;
        Some(mean(&row[other]) * speed(other) / speed(class.index()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_that_was_not_measured_follows_from_another_and_the_speeds() {
        let workers = Workers::parse("1x3,1x1", None).unwrap();
        let mut rates = Rates::new(2);
        let (gemm, site) = (rates.of_kind("gemm"), rates.of_site(7, || "loop".into()));
        assert_eq!((rates.of_kind("gemm"), rates.of_site(7, String::new)), (gemm, site));
        assert_eq!((rates.name(gemm), rates.name(site)), ("gemm", "loop"));
        assert_eq!(rates.seconds(gemm, ClassId(0), &workers), None);
        rates.note(gemm, ClassId(0), 2.0, 4.0);
        rates.note(gemm, ClassId(0), 2.0, 0.0);
        assert_eq!(rates.seconds(gemm, ClassId(0), &workers), Some(1.0));
        assert_eq!(rates.seconds(gemm, ClassId(1), &workers), Some(3.0));
        rates.note(gemm, ClassId(1), 1.0, 5.0);
        assert_eq!(rates.seconds(gemm, ClassId(1), &workers), Some(5.0));
        assert_eq!(rates.seconds(site, ClassId(1), &workers), None);
    }
}
