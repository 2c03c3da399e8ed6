//! Recording programs by a library that they load first.

use std::borrow::Cow;

use ampsched_model::InputError;
use ampsched_recording as recording;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::error::input;
use crate::imports::{self, About};
use crate::interrupt::interruptible;
use crate::recording::Recording;

/// The bytes of the library, an ELF file.
#[pyfunction]
pub fn preload_library() -> Cow<'static, [u8]> {
    Cow::Borrowed(ampsched_preload::LIBRARY)
}

/// A recording of what a recorded program left: what its processes share, and the events; `info` is JSON, `folder` is
/// for messages; `took_ns` and `cpu_ns` are time and CPU time of the whole as seen from outside, 0 if not known.
/// `kernel`: what the kernel has told meanwhile, as `import_pages` takes it, is merged into it.
#[pyfunction]
#[pyo3(signature = (folder, info, control, events, whole_ns, kernel=None))]
pub fn recording_from_raw(
    py: Python<'_>,
    folder: String,
    info: &str,
    control: PyBackedBytes,
    events: PyBackedBytes,
    whole_ns: (u64, u64),
    kernel: Option<(About, Vec<PyBackedBytes>, u64, String)>,
) -> PyResult<Recording> {
    let info = serde_json::from_str(info)
        .map_err(|error| input(&InputError::new(&folder, "info", error.to_string())))?;
    let whole = recording::Whole { took_ns: whole_ns.0, cpu_ns: whole_ns.1 };
    let kernel = kernel.map(|(about, cores, lost_events, options)| {
        let options = imports::options(&folder, &options)?;
        PyResult::Ok((imports::pages(about, &cores, lost_events), options))
    });
    let kernel = kernel.transpose()?;
    let made = interruptible(py, move |_| match &kernel {
        Some((pages, options)) => {
            let told = (pages, options.clone());
            recording::from_raw_and_pages(&folder, info, &control, &events, whole, told)
        }
        None => recording::from_raw(&folder, info, &control, &events, whole),
    })?;
    made.map(Recording::from).map_err(|error| input(&error))
}
