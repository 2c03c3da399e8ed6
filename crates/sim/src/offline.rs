//! What is known of whole programs, measured beforehand as one would on a real machine.

use ampsched_model::{Machine, Workload};
use ampsched_policy::build_policy;

use crate::{FactorSource, Options, Overhead, SimError, simulate};

/// What an application does alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OfflineFacts {
    /// (Instructions per run time alone on cores of the fastest kind) / (the same on cores of the
    /// slowest); 1 if it retires nothing. The "static" speed-up of Prop-SP (Saez et al., Euro-Par
    /// 2014 workshops, section 3).
    pub speedup: f64,
    /// Instructions per s of run time alone on cores of the fastest kind.
    pub fast_ips: f64,
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
    let options = Options {
        factors: FactorSource::Missing,
        overhead: Overhead::default(),
        repetitions: None,
        ..options.clone()
    };
    (0..workload.apps.len())
        .map(|index| {
            let alone = workload.alone(index);
            let fast_ips = ips(&fast, &alone, &options)?;
            let slow_ips = ips(&slow, &alone, &options)?;
            let computes = fast_ips > 0.0 && slow_ips > 0.0;
            Ok(OfflineFacts { speedup: if computes { fast_ips / slow_ips } else { 1.0 }, fast_ips })
        })
        .collect()
}

/// Instructions per s of run time.
fn ips(machine: &Machine, workload: &Workload, options: &Options) -> Result<f64, SimError> {
    let policy = build_policy("cfs", &[]).expect("cfs is in the registry");
    let outcome = simulate(machine, workload, "cfs", policy, options)?;
    let instructions: u64 = outcome.threads.iter().map(|thread| thread.instructions).sum();
    let run_ns: u64 = outcome.threads.iter().map(|t| t.big_ns + t.little_ns).sum();
    Ok(instructions as f64 * 1e9 / run_ns.max(1) as f64)
}
