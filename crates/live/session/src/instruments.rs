//! Counters of threads, a model from a file, and sensors of the machine.

use std::path::Path;

use ampsched_computer::{CoreMap, Root};
use ampsched_live_driver::Driver;
use ampsched_live_factors::{Instruments, Perf, Sensors, Speedups};
use ampsched_model::limits::DATA_BYTES_MAX;
use ampsched_model::{InputError, Ns};
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

/// Tells a policy's mirror what sensors of the machine show, as often as they are read.
pub fn read_sensors(sensors: &mut Sensors, driver: &mut Driver, now_ns: Ns) {
    if !sensors.read(now_ns) {
        return;
    }
    for (cluster, power_mw) in sensors.power_mw() {
        driver.set_power(cluster, power_mw);
    }
    for (cluster, temperature_c) in sensors.temperature_c() {
        driver.set_temperature(cluster, temperature_c);
    }
}
