//! How fast every profile runs on every cluster at its present frequency.

use ampsched_model::{
    Cluster, ClusterId, Machine, Ns, Profile, Refill, StallCounters, machine_speed_ips,
    machine_stall_counters, refill,
};

/// How fast instructions retire, both ways round: a division costs more than a look-up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    pub instructions_per_ns: f64,
    pub ns_per_instruction: f64,
}

impl Rate {
    /// For programs without work.
    const ONE: Self = Self { instructions_per_ns: 1.0, ns_per_instruction: 1.0 };

    pub fn new(instructions_per_ns: f64) -> Self {
        Self { instructions_per_ns, ns_per_instruction: 1.0 / instructions_per_ns }
    }

    /// Whole instructions that retire in some time.
    ///
    /// Amounts and times are below 2^63, so both conversions go through signed integers: one machine
    /// instruction each instead of several.
    #[inline]
    pub fn retired_in(self, worked_ns: Ns) -> u64 {
        (worked_ns as i64 as f64 * self.instructions_per_ns) as i64 as u64
    }

    /// Time that instructions take, rounded up. (`f64::ceil` is a function call on older processors.)
    #[inline]
    pub fn duration_ns(self, instructions: u64) -> Ns {
        let exact_ns = instructions as i64 as f64 * self.ns_per_instruction;
        let whole_ns = exact_ns as i64;
        whole_ns as u64 + u64::from((whole_ns as f64) < exact_ns)
    }
}

/// The speeds of a run's profiles.
pub(super) struct Speeds {
    profiles: Vec<Profile>,
    /// Operating point of each cluster.
    opps: Vec<usize>,
    /// Speed of each profile (rows) on each cluster at its operating point.
    now: Vec<Rate>,
    /// Speed of each profile on the kind of core that work stated in time refers to, at its highest
    /// frequency.
    reference: Vec<Rate>,
    /// Stalls of each profile (rows) on each cluster at its operating point; none if nobody asks.
    stalls: Option<Vec<StallCounters>>,
    /// What a migration to each cluster takes at its operating point, by profile (rows), if it depends on the working
    /// set; within: none for a profile whose working set is not known.
    refills: Option<Vec<Option<Refill>>>,
    fastest: ClusterId,
    slowest: ClusterId,
}

impl Speeds {
    /// All clusters at the highest frequency that their bounds allow; no profiles yet.
    pub fn new(machine: &Machine, with_stalls: bool) -> Self {
        let place = |cluster: &Cluster| machine.cluster_of(cluster.cores[0]);
        Self {
            profiles: Vec::new(),
            opps: machine.clusters.iter().map(Cluster::highest_opp).collect(),
            now: Vec::new(),
            reference: Vec::new(),
            stalls: with_stalls.then(Vec::new),
            refills: machine.costs.migrate_refill.then(Vec::new),
            fastest: place(machine.top()),
            slowest: place(machine.bottom()),
        }
    }

    /// Adds profiles of programs whose work in time refers to that kind of core; returns the number of the first.
    pub fn add(&mut self, machine: &Machine, profiles: &[Profile], kind: &Cluster) -> u32 {
        let base = self.profiles.len() as u32;
        for profile in profiles {
            for (cluster, &opp) in machine.clusters.iter().zip(&self.opps) {
                let mhz = cluster.opps[opp].mhz;
                self.now.push(rate_between_ticks(machine, profile, cluster, mhz));
                if let Some(stalls) = &mut self.stalls {
                    stalls.push(machine_stall_counters(profile, machine, cluster, mhz.into()));
                }
                if let Some(refills) = &mut self.refills {
                    refills.push(refill(profile, &cluster.params, mhz.into()));
                }
            }
            self.reference.push(rate(machine, profile, kind, kind.max_mhz()));
            self.profiles.push(profile.clone());
        }
        base
    }

    /// A profile by its number; none for a thread of a program that computes nothing.
    pub fn profile(&self, profile: u32) -> Option<&Profile> {
        self.profiles.get(profile as usize)
    }

    /// A cluster's present operating point.
    pub fn opp(&self, cluster: ClusterId) -> usize {
        self.opps[cluster.index()]
    }

    /// Puts a cluster at another operating point.
    pub fn set_opp(&mut self, machine: &Machine, cluster: ClusterId, opp: usize) {
        let (index, clusters) = (cluster.index(), self.opps.len());
        self.opps[index] = opp;
        let cluster = &machine.clusters[index];
        let mhz = cluster.opps[opp].mhz;
        for (row, profile) in self.profiles.iter().enumerate() {
            self.now[row * clusters + index] = rate_between_ticks(machine, profile, cluster, mhz);
            if let Some(stalls) = &mut self.stalls {
                stalls[row * clusters + index] =
                    machine_stall_counters(profile, machine, cluster, mhz.into());
            }
            if let Some(refills) = &mut self.refills {
                refills[row * clusters + index] = refill(profile, &cluster.params, mhz.into());
            }
        }
    }

    /// Speed of a profile on a cluster now; 1 for a thread of a program that computes nothing.
    #[inline]
    pub fn rate(&self, profile: u32, cluster: ClusterId) -> Rate {
        let index = profile as usize * self.opps.len() + cluster.index();
        self.now.get(index).copied().unwrap_or(Rate::ONE)
    }

    /// Stalls of a profile on a cluster now, if they are kept; none for a thread of a program that computes
    /// nothing.
    pub fn stalls(&self, profile: u32, cluster: ClusterId) -> Option<StallCounters> {
        let index = profile as usize * self.opps.len() + cluster.index();
        self.stalls.as_ref()?.get(index).copied()
    }

    /// What a migration to a cluster takes now, if it depends on the working set and that is known.
    #[inline]
    pub fn refill(&self, profile: u32, cluster: ClusterId) -> Option<Refill> {
        let index = profile as usize * self.opps.len() + cluster.index();
        self.refills.as_ref()?.get(index).copied().flatten()
    }

    /// Instructions per ns on the kind of core that work in time refers to, at its highest frequency.
    #[inline]
    pub fn reference(&self, profile: u32) -> f64 {
        self.reference.get(profile as usize).map_or(1.0, |rate| rate.instructions_per_ns)
    }

    /// Speed on the fastest cluster / speed on the slowest, now.
    pub fn speedup(&self, profile: u32) -> f64 {
        self.rate(profile, self.fastest).instructions_per_ns
            / self.rate(profile, self.slowest).instructions_per_ns
    }
}

/// Speed of a profile on a cluster, less what ticks take of a busy core: that is spread evenly.
fn rate_between_ticks(machine: &Machine, profile: &Profile, cluster: &Cluster, mhz: u32) -> Rate {
    let costs = cluster.costs.as_ref().unwrap_or(&machine.costs);
    let full = rate(machine, profile, cluster, mhz);
    match costs.tick_ns {
        Some(tick_ns) if costs.tick_cost_ns > 0 => {
            let left = 1.0 - costs.tick_cost_ns as f64 / tick_ns as f64;
            Rate::new(full.instructions_per_ns * left)
        }
        _ => full,
    }
}

fn rate(machine: &Machine, profile: &Profile, cluster: &Cluster, mhz: u32) -> Rate {
    Rate::new(machine_speed_ips(profile, machine, cluster, f64::from(mhz)) / 1e9)
}
