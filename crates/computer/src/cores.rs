//! The machine as policies see it, and which CPU of Linux each of its cores is.

use std::collections::BTreeSet;

use ampsched_model::{ClassId, ClusterId, CoreId, CoreSet, EnergyPoint, InputError, class_name};
use ampsched_policy::{CAPACITY_ONE, ClusterInfo, Topology};
use serde::Serialize;

use crate::energy::STATED;
use crate::{EnergyModels, PowerPoint, format_cpus};

/// CPUs of one class that share a clock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Domain {
    /// Speed class; 0 is the slowest.
    pub class: u8,
    /// CPUs as Linux numbers them, ascending.
    pub cpus: Vec<usize>,
    /// Frequencies in MHz, ascending; none if they are not known.
    pub freqs_mhz: Vec<u32>,
    /// Its clocks' names below `/sys/devices/system/cpu/cpufreq`, such as `policy0`; none if there is no control.
    pub cpufreq: Vec<String>,
    /// Speed relative to the fastest class, 0 to 1, if it is known.
    pub relative_speed: Option<f64>,
    /// Power of one of its CPUs when busy, by frequency, ascending; none if it is not known.
    pub power: Vec<PowerPoint>,
}

/// A machine's cores and the CPUs that they are.
#[derive(Clone, Debug)]
pub struct CoreMap {
    topology: Topology,
    domains: Vec<Domain>,
    /// CPU of each core.
    cpus: Vec<usize>,
}

impl CoreMap {
    /// Cores are numbered through the domains, in their order.
    pub fn new(domains: Vec<Domain>) -> Self {
        let cpus: Vec<usize> = domains.iter().flat_map(|domain| domain.cpus.clone()).collect();
        let mut next = 0;
        let clusters = domains.iter().map(|domain| {
            let cores = (next..next + domain.cpus.len()).map(CoreId::from).collect();
            next += domain.cpus.len();
            cluster(domain, cores)
        });
        Self { topology: Topology::from_clusters(clusters.collect()), cpus, domains }
    }

    /// The same, with pairs of CPUs that are the two threads of one physical core. Pairs of which the machine does not
    /// include both are left out.
    pub fn with_siblings(self, pairs: &[(usize, usize)]) -> Self {
        let of = |&(one, other): &(usize, usize)| Some((self.core(one)?, self.core(other)?));
        let pairs: Vec<(CoreId, CoreId)> = pairs.iter().filter_map(of).collect();
        Self { topology: self.topology.with_siblings(pairs), ..self }
    }

    /// The same, with the power of its CPUs as an energy model has it.
    ///
    /// # Errors
    ///
    /// A CPU that is of no class, and CPUs that share a clock of which some have no power.
    pub fn with_power(self, energy: &EnergyModels) -> Result<Self, InputError> {
        let error = |message: String| Err(InputError::new(STATED, "", message));
        let stated = energy.cpus();
        if let Some(cpu) = stated.difference(&self.cpus()).next() {
            return error(format!("CPU {cpu} is not online, or in no class of cores"));
        }
        let pairs: Vec<(usize, usize)> = self
            .cpus
            .iter()
            .filter_map(|&cpu| Some((cpu, self.cpu(self.topology.sibling(self.core(cpu)?)?))))
            .collect();
        let mut domains = self.domains;
        for domain in &mut domains {
            domain.power = energy.points(&domain.cpus);
            let has_some = domain.cpus.iter().any(|cpu| stated.contains(cpu));
            if has_some && domain.power.is_empty() {
                let cpus = format_cpus(domain.cpus.iter().copied());
                return error(format!(
                    "CPUs {cpus} share a clock, but only some of them have a power"
                ));
            }
        }
        Ok(Self::new(domains).with_siblings(&pairs))
    }

    /// What policies see.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The domains in the order of the clusters.
    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// The domain of a cluster.
    pub fn domain(&self, cluster: ClusterId) -> &Domain {
        &self.domains[cluster.index()]
    }

    /// The CPU of a core.
    pub fn cpu(&self, core: CoreId) -> usize {
        self.cpus[core.index()]
    }

    /// The core of a CPU; none if the machine does not include it.
    pub fn core(&self, cpu: usize) -> Option<CoreId> {
        self.cpus.iter().position(|&own| own == cpu).map(CoreId::from)
    }

    /// The CPUs of a set of cores.
    pub fn cpu_set(&self, cores: &CoreSet) -> BTreeSet<usize> {
        cores.iter().map(|core| self.cpu(core)).collect()
    }

    /// The cores among some CPUs.
    pub fn core_set(&self, cpus: &BTreeSet<usize>) -> CoreSet {
        cpus.iter().filter_map(|&cpu| self.core(cpu)).collect()
    }

    /// All CPUs, ascending.
    pub fn cpus(&self) -> BTreeSet<usize> {
        self.cpus.iter().copied().collect()
    }

    /// Number of speed classes.
    pub fn class_count(&self) -> usize {
        self.topology.class_count()
    }

    /// The CPUs of a class, ascending.
    pub fn cpus_of_class(&self, class: ClassId) -> BTreeSet<usize> {
        let of_class = self.domains.iter().filter(|domain| domain.class == class.0);
        of_class.flat_map(|domain| domain.cpus.iter().copied()).collect()
    }

    /// What a class is called ([`class_name`]).
    pub fn class_name(&self, class: ClassId) -> String {
        class_name(class.index(), self.class_count())
    }

    /// Speed of the fastest class over that of the slowest, if it is known and there are several.
    pub fn speed_ratio(&self) -> Option<f64> {
        let slowest = self.domains.iter().find(|domain| domain.class == 0)?;
        slowest.relative_speed.filter(|_| self.class_count() > 1).map(f64::recip)
    }

    /// One line such as `big 0-1, little 2-3`, the fastest first.
    pub fn describe(&self) -> String {
        let classes = (0..self.class_count()).rev().map(ClassId::from);
        let text = |class| {
            format!("{} {}", self.class_name(class), format_cpus(self.cpus_of_class(class)))
        };
        classes.map(text).collect::<Vec<_>>().join(", ")
    }
}

fn cluster(domain: &Domain, cores: Vec<CoreId>) -> ClusterInfo {
    ClusterInfo {
        shares_l2: false,
        class: ClassId(domain.class),
        cores,
        freqs_mhz: domain.freqs_mhz.clone(),
        design: None,
        energy_model: energy_model(domain),
    }
}

/// Capacity at each frequency, as Linux has it (in proportion), at those of which power is known if there are such.
fn energy_model(domain: &Domain) -> Vec<EnergyPoint> {
    let Some(speed) = domain.relative_speed else { return Vec::new() };
    let top = f64::from(CAPACITY_ONE) * speed;
    let mut points: Vec<(u32, f64)> =
        domain.power.iter().map(|point| (point.mhz, point.power_mw)).collect();
    if points.is_empty() {
        points = domain.freqs_mhz.iter().map(|&mhz| (mhz, 0.0)).collect();
    }
    let Some(&(max_mhz, _)) = points.last() else {
        return vec![EnergyPoint { mhz: 0, capacity: top, power_mw: 0.0 }];
    };
    // Where no power is known, nobody divides by a capacity.
    let least = if domain.power.is_empty() { 0.0 } else { 1.0 };
    let capacity = |mhz: u32| (top * f64::from(mhz) / f64::from(max_mhz)).max(least);
    let point = |(mhz, power_mw)| EnergyPoint { mhz, capacity: capacity(mhz), power_mw };
    points.into_iter().map(point).collect()
}
