//! Other tools' traces as recordings.

use ampsched_recording::import;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::error::input;
use crate::interrupt::interruptible;
use crate::recording::Recording;

/// What to import, of its JSON.
pub fn options(file: &str, text: &str) -> PyResult<import::Options> {
    read(file, "options", text)
}

fn read<T: serde::de::DeserializeOwned>(file: &str, what: &str, text: &str) -> PyResult<T> {
    serde_json::from_str(text)
        .map_err(|error| input(&ampsched_model::InputError::new(file, what, error.to_string())))
}

/// The recording in the bytes of a trace; `options` is the JSON of what to import, `file` its path for messages.
#[pyfunction]
pub fn import_trace(
    py: Python<'_>,
    file: String,
    data: PyBackedBytes,
    options: &str,
) -> PyResult<Recording> {
    let options = self::options(&file, options)?;
    let found = interruptible(py, move |_| import::import(&file, &data, &options))?;
    found.map(Recording::from).map_err(|error| input(&error))
}

/// A recording; the kernel's number of each thread; when the recording begins, in ns of the trace's clock.
pub type Clocked = (Recording, Vec<u32>, u64);

fn clocked(found: ampsched_recording::Clocked) -> Clocked {
    (Recording::from(found.recording), found.tids, found.origin_ns)
}

/// What a trace says of the scheduler that made it, as JSON of `import::Observed`; `asked` is that of `import::Asked`.
#[pyfunction]
pub fn observe_trace(
    py: Python<'_>,
    file: String,
    data: PyBackedBytes,
    asked: &str,
) -> PyResult<String> {
    let asked = read(&file, "asked", asked)?;
    let found = interruptible(py, move |_| import::observe(&file, &data, &asked))?;
    let found = found.map_err(|error| input(&error))?;
    Ok(serde_json::to_string(&found).expect("numbers and texts are JSON"))
}

/// What a trace tells of one thread around one moment, as JSON of `import::Moment`, of that of `import::Question`; with
/// `options` also its recording.
#[pyfunction]
#[pyo3(signature = (file, data, asked, question, options=None))]
pub fn trace_around(
    py: Python<'_>,
    file: String,
    data: PyBackedBytes,
    asked: &str,
    question: &str,
    options: Option<&str>,
) -> PyResult<(String, Option<Clocked>)> {
    let asked = read(&file, "asked", asked)?;
    let question = read(&file, "question", question)?;
    let options = options.map(|text| self::options(&file, text)).transpose()?;
    let found = interruptible(py, move |_| {
        import::around(&file, &data, &asked, &question, options.as_ref())
    })?;
    let (moment, made) = found.map_err(|error| input(&error))?;
    let text = serde_json::to_string(&moment).expect("numbers and texts are JSON");
    Ok((text, made.map(clocked)))
}

/// The recording in pages of the kernel's ring buffers, of each core one behind the other. `about`: how a page begins,
/// descriptions of the events, bytes of a page.
#[pyfunction]
pub fn import_pages(
    py: Python<'_>,
    folder: String,
    about: About,
    cores: Vec<PyBackedBytes>,
    lost_events: u64,
    options: &str,
) -> PyResult<Recording> {
    let options = self::options(&folder, options)?;
    let found = interruptible(py, move |_| {
        import::of_pages(&folder, &pages(about, &cores, lost_events), &options)
    })?;
    found.map(Recording::from).map_err(|error| input(&error))
}

/// How pages are to be read: text of `events/header_page`, the events' formats, bytes of a page.
pub type About = (String, Vec<String>, usize);

/// Pages of the kernel's buffers.
pub fn pages(about: About, cores: &[PyBackedBytes], lost_events: u64) -> import::Pages {
    let (header_page, formats, page_bytes) = about;
    let cores = cores.iter().map(|bytes| bytes.to_vec()).collect();
    import::Pages { header_page, formats, cores, page_bytes, lost_events }
}

/// Pairs of threads by how long one was blocked until the other woke it: waker, woken, how often, how long in ns.
#[pyfunction]
pub fn wake_ups(recording: &Recording) -> Vec<(u32, u32, u64, u64)> {
    let row = |pair: import::WakeUps| (pair.waker, pair.woken, pair.count, pair.wait_ns);
    import::wake_ups(&recording.inner).into_iter().map(row).collect()
}

/// Work of each thread: what its CPU time would have been on the fastest core, in ns.
#[pyfunction]
pub fn work_ns(recording: &Recording) -> Vec<u64> {
    recording.inner.threads.iter().map(|thread| thread.work_ns()).collect()
}

/// Forms of traces that are imported: name, and what it is.
#[pyfunction]
pub fn trace_forms() -> Vec<(&'static str, &'static str)> {
    import::FORMS.to_vec()
}
