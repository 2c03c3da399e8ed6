//! Speed-ups of whole programs, measured beforehand as one would on a real machine.

use ampsched_model::{Machine, Workload};
use ampsched_policy::build_policy;

use crate::{FactorSource, Options, Overhead, SimError, simulate};

/// Speed-up of each application of a workload: (instructions per run time alone on cores of the
/// fastest kind) / (the same on cores of the slowest kind), as many cores as the machine has.
///
/// This is the "static" speed-up of Prop-SP (Saez et al., Euro-Par 2014 workshops, section 3): an average over
/// the whole run. 1 for an application that retires nothing.
///
/// # Errors
/// Those of simulating an application alone.
pub fn offline_speedups(
    machine: &Machine,
    workload: &Workload,
    options: &Options,
) -> Result<Vec<f64>, SimError> {
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
            let fast = speed(&fast, &alone, &options)?;
            let slow = speed(&slow, &alone, &options)?;
            Ok(if fast > 0.0 && slow > 0.0 { fast / slow } else { 1.0 })
        })
        .collect()
}

/// Instructions per ns of run time.
fn speed(machine: &Machine, workload: &Workload, options: &Options) -> Result<f64, SimError> {
    let policy = build_policy("cfs", &[]).expect("cfs is in the registry");
    let outcome = simulate(machine, workload, "cfs", policy, options)?;
    let instructions: u64 = outcome.threads.iter().map(|thread| thread.instructions).sum();
    let run_ns: u64 = outcome.threads.iter().map(|t| t.big_ns + t.little_ns).sum();
    Ok(instructions as f64 / run_ns.max(1) as f64)
}
