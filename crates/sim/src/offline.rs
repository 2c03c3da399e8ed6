//! What is known of whole programs, measured beforehand as one would on a real machine.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use ampsched_model::{Machine, Workload};
use ampsched_policy::build_policy;

use crate::{FactorSource, Options, Overhead, SimError, ThreadOutcome, simulate};

/// What an application does alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OfflineFacts {
    /// (Instructions per run time alone on cores of the fastest kind) / (the same on cores of the
    /// slowest); 1 if it retires nothing. The "static" speed-up of Prop-SP (Saez et al., Euro-Par
    /// 2014 workshops, section 3).
    pub speedup: f64,
    /// Instructions per s of run time alone on cores of the fastest kind.
    pub fast_ips: f64,
    /// (Instructions per joule alone on the fastest kind) / (the same on the slowest), HFEE's EER: energy
    /// of cores that ran and of what they share, as a sensor of the cluster tells. What the program
    /// states takes its place; none if the machine's power is not known either.
    pub energy_ratio: Option<f64>,
    /// Run time in ns of all its threads together, alone on cores of the fastest kind.
    pub work_ns: f64,
}

/// Where simulations get [`OfflineFacts`] from. By default each computes its own; those of a shared one, which must
/// have the same machine, workload and options but for policy and factors, compute them once, when the first needs
/// them.
#[derive(Clone, Default)]
pub struct AloneFacts(Option<Arc<Mutex<Option<Facts>>>>);

type Facts = Arc<[OfflineFacts]>;

impl AloneFacts {
    /// One that simulations share which have a clone of it.
    pub fn shared() -> Self {
        Self(Some(Arc::default()))
    }

    /// The facts. Whoever comes while another one computes them waits; what failed is tried again.
    pub(crate) fn of(
        &self,
        machine: &Machine,
        workload: &Workload,
        options: &Options,
    ) -> Result<Facts, SimError> {
        let Some(shared) = &self.0 else {
            return offline_facts(machine, workload, options).map(Facts::from);
        };
        let mut known = shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(facts) = &*known {
            return Ok(Arc::clone(facts));
        }
        let facts = Facts::from(offline_facts(machine, workload, options)?);
        Ok(Arc::clone(known.insert(facts)))
    }
}

impl fmt::Debug for AloneFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "AloneFacts(shared)" } else { "AloneFacts(own)" })
    }
}

/// Where they come from changes no result.
impl PartialEq for AloneFacts {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Runs every application of a workload alone on as many cores of the fastest kind as the machine has,
/// and on as many of the slowest, all at their highest frequency.
///
/// # Errors
/// Those of simulating an application alone.
pub fn offline_facts(
    machine: &Machine,
    workload: &Workload,
    options: &Options,
) -> Result<Vec<OfflineFacts>, SimError> {
    let (fast, slow) = (machine.all_big(), machine.all_little());
    // Work that is calibrated with one of this machine's cores stays the same on those.
    let workload = workload.renumbered(machine, machine);
    let options = Options {
        factors: FactorSource::Missing,
        overhead: Overhead::default(),
        governors: Vec::new(),
        repetitions: None,
        alone: AloneFacts::default(),
        energy: machine.clusters.iter().all(|cluster| cluster.power.is_known()),
        ..options.clone()
    };
    (0..workload.apps.len())
        .map(|index| {
            let stated = workload.apps[index].program.energy_ratio;
            let alone = workload.alone(index);
            let fast = measure(&fast, &alone, &options)?;
            let slow = measure(&slow, &alone, &options)?;
            let computes = fast.ips > 0.0 && slow.ips > 0.0;
            let ratio = |(fast, slow): (f64, f64)| if computes { fast / slow } else { 1.0 };
            Ok(OfflineFacts {
                speedup: ratio((fast.ips, slow.ips)),
                fast_ips: fast.ips,
                energy_ratio: stated.or_else(|| fast.per_uj.zip(slow.per_uj).map(ratio)),
                work_ns: fast.run_ns,
            })
        })
        .collect()
}

/// What an application alone on one kind of core achieves.
struct Alone {
    /// Instructions per s of run time.
    ips: f64,
    /// Instructions per uJ.
    per_uj: Option<f64>,
    /// Run time.
    run_ns: f64,
}

fn measure(machine: &Machine, workload: &Workload, options: &Options) -> Result<Alone, SimError> {
    let policy = build_policy("cfs", &[]).expect("cfs is in the registry");
    let outcome = simulate(machine, workload, "cfs", policy, options)?;
    let instructions: u64 = outcome.threads.iter().map(|thread| thread.instructions).sum();
    let run_ns: u64 = outcome.threads.iter().map(ThreadOutcome::run_ns).sum();
    let energy = outcome.clusters[0].energy.map(|energy| energy.running_uj + energy.uncore_uj);
    Ok(Alone {
        ips: instructions as f64 * 1e9 / run_ns.max(1) as f64,
        per_uj: energy.map(|uj| instructions as f64 / uj),
        run_ns: run_ns as f64,
    })
}
