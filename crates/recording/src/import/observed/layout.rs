//! Where CPUs belong, and how fast they are at which clock.

use ampsched_model::InputError;
use serde::{Deserialize, Serialize};

use crate::UNKNOWN_CORE;
use crate::import::event::{Raw, What};

/// Most CPUs of a trace: as many as Linux has on x86-64 (NR_CPUS).
const CPUS_MAX: usize = 8192;

/// A cluster of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownCluster {
    /// Its name.
    pub name: String,
    /// Its CPUs.
    pub cpus: Vec<u16>,
    /// Clock in MHz and capacity (1024: the fastest core at its highest), ascending.
    pub opps: Vec<(u32, f64)>,
}

impl KnownCluster {
    /// Capacity at its highest clock.
    pub fn top(&self) -> f64 {
        self.opps.last().map_or(1024.0, |opp| opp.1)
    }

    /// Capacity at a clock in kHz, in proportion between two operating points; at the highest one if it is not known.
    fn at(&self, khz: Option<u32>) -> f64 {
        let Some(mhz) = khz.map(|khz| f64::from(khz) / 1e3) else { return self.top() };
        let mut below = (0.0, 0.0);
        for &(point, capacity) in &self.opps {
            let point = f64::from(point);
            if mhz <= point && point > below.0 {
                return below.1 + (capacity - below.1) * (mhz - below.0) / (point - below.0);
            }
            below = (point, capacity);
        }
        self.top()
    }
}

/// The CPUs of a trace.
#[derive(Debug)]
pub struct Layout {
    clusters: Vec<KnownCluster>,
    /// The cluster of each CPU, if known.
    of: Vec<Option<usize>>,
    /// Of each cluster how many different capacities are smaller.
    ranks: Vec<usize>,
    /// CPUs whose clock each CPU's events tell, beside its own: those of its cluster without events of their own.
    followers: Vec<Vec<u16>>,
}

impl Layout {
    /// That of a trace. Errors: it has CPUs that no cluster has, or too many.
    pub fn of(file: &str, events: &[Raw], clusters: &[KnownCluster]) -> Result<Self, InputError> {
        let mut cpus = 0;
        let mut has_clock = Vec::new();
        for raw in events {
            let mut highest = raw.cpu;
            if let What::Frequency { cpu, .. } | What::Idle { cpu, .. } = raw.what {
                highest = highest.max(cpu);
            }
            if highest == UNKNOWN_CORE || usize::from(highest) >= CPUS_MAX {
                let message = format!("has CPU {highest}, and {CPUS_MAX} CPUs are the most");
                return Err(InputError::new(file, "", message).with_hint("is it damaged?"));
            }
            cpus = cpus.max(usize::from(highest) + 1);
            has_clock.resize(cpus, false);
            if let What::Frequency { cpu, .. } = raw.what {
                has_clock[usize::from(cpu)] = true;
            }
        }
        let place = |cpu: u16| clusters.iter().position(|cluster| cluster.cpus.contains(&cpu));
        let of: Vec<Option<usize>> = (0..cpus as u16).map(place).collect();
        if let Some(cpu) = of.iter().position(Option::is_none).filter(|_| !clusters.is_empty()) {
            let known: usize = clusters.iter().map(|cluster| cluster.cpus.len()).sum();
            let message = format!("has CPU {cpu}, and the machine has {known} cores");
            return Err(InputError::new(file, "", message)
                .with_hint("give --machine the machine that the trace is of"));
        }
        let mut tops: Vec<f64> = clusters.iter().map(|cluster| cluster.top().round()).collect();
        tops.sort_by(f64::total_cmp);
        tops.dedup();
        let rank = |cluster: &KnownCluster| {
            tops.iter().filter(|&&top| top < cluster.top().round()).count()
        };
        let ranks = clusters.iter().map(rank).collect();
        let mut found = Self { clusters: clusters.to_vec(), of, ranks, followers: Vec::new() };
        found.followers = (0..cpus).map(|cpu| found.following(cpu, &has_clock)).collect();
        Ok(found)
    }

    /// The CPUs whose clock is told by that of a CPU.
    fn following(&self, cpu: usize, has_clock: &[bool]) -> Vec<u16> {
        let Some(cluster) = self.of[cpu] else { return Vec::new() };
        let of_it = |other: &usize| self.of[*other] == Some(cluster) && *other != cpu;
        let leads = (0..cpu).filter(of_it).all(|other| !has_clock[other]);
        let silent = (0..self.of.len()).filter(|other| of_it(other) && !has_clock[*other]);
        silent.filter(|_| leads).map(|other| other as u16).collect()
    }

    /// How many CPUs there are.
    pub fn cpus(&self) -> usize {
        self.of.len()
    }

    /// Whose clock changes with that of a CPU, beside it.
    pub fn followers(&self, cpu: u16) -> &[u16] {
        self.followers.get(usize::from(cpu)).map_or(&[], Vec::as_slice)
    }

    /// The clusters that are known.
    pub fn clusters(&self) -> &[KnownCluster] {
        &self.clusters
    }

    /// The cluster of a CPU.
    pub fn cluster(&self, cpu: u16) -> Option<usize> {
        self.of.get(usize::from(cpu)).copied().flatten()
    }

    /// How many kinds of smaller clusters there are than that of a CPU.
    pub fn rank(&self, cpu: u16) -> usize {
        self.cluster(cpu).map_or(0, |cluster| self.ranks[cluster])
    }

    /// Ranks of clusters that there are.
    pub fn rank_count(&self) -> usize {
        self.ranks.iter().max().map_or(1, |rank| rank + 1)
    }

    /// Capacity of a CPU at a clock.
    pub fn capacity(&self, cpu: u16, khz: Option<u32>) -> f64 {
        self.cluster(cpu).map_or(1024.0, |cluster| self.clusters[cluster].at(khz))
    }
}
