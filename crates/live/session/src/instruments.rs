//! Counters of threads, and a model from a file.

use std::path::Path;

use ampsched_computer::{CoreMap, Root};
use ampsched_live_factors::{Instruments, Perf, Speedups};
use ampsched_model::InputError;
use ampsched_model::limits::DATA_BYTES_MAX;
use ampsched_policy::Needs;
use ampsched_predict::Models;

use crate::whole_file;

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
        let text = whole_file::read(file, DATA_BYTES_MAX)?;
        Speedups::new(&Models::parse(&name, &text)?, root, cores)
    };
    Instruments::start(Perf, root, cores, needs, model.map(read).transpose()?)
}
