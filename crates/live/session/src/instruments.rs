//! Counters of threads, and a model from a file.

use std::fs;
use std::path::Path;

use ampsched_computer::{CoreMap, Root};
use ampsched_live_factors::{Instruments, Perf, Speedups};
use ampsched_model::InputError;
use ampsched_policy::Needs;
use ampsched_predict::Models;

/// Counts what a policy, and the model in a file, read. Errors: a file cannot be read or understood, or the model is
/// one of other cores.
pub fn start(
    root: &Root,
    cores: &CoreMap,
    needs: &Needs,
    model: Option<&Path>,
) -> Result<Instruments, InputError> {
    let read = |file: &Path| {
        let name = file.display().to_string();
        let text = fs::read_to_string(file)
            .map_err(|error| InputError::new(name.clone(), "", error.to_string()))?;
        Speedups::new(&Models::parse(&name, &text)?, root, cores)
    };
    Instruments::start(Perf, root, cores, needs, model.map(read).transpose()?)
}
