//! What a recorded program leaves in its working folder becomes a recording.
//!
//! The form of the files is declared in `crates/preload/c/form.h`. A program that was killed leaves files without an
//! end: what stands there counts.

mod read;
mod resolve;
#[cfg(test)]
mod tests;
mod times;

use ampsched_model::InputError;

use crate::{Info, Recording};

/// Makes a recording of the files of a working folder, each a name and its bytes; `info` says what is known besides.
///
/// # Errors
/// None of them is a thread's: nothing was recorded. A file is no file of a recorder, or of a later version.
pub fn from_raw(
    folder: &str,
    mut info: Info,
    files: &[(String, Vec<u8>)],
) -> Result<Recording, InputError> {
    let mut threads = Vec::new();
    for (name, bytes) in files.iter().filter(|(name, _)| name.ends_with(".raw")) {
        threads.extend(read::thread(&format!("{folder}/{name}"), bytes)?);
    }
    if threads.is_empty() {
        let error = InputError::new(folder, "", "no thread was recorded");
        return Err(error.with_hint(
            "the program may be static, of another architecture, or setuid; `--system` sees those, too",
        ));
    }
    threads
        .sort_by_key(|thread| (thread.head.begin.ticks, thread.head.process, thread.head.thread));
    let control = files.iter().find(|(name, _)| name == "control");
    let refused = control.map_or(0, |(_, bytes)| read::refused_threads(bytes));
    if refused > 0 {
        info.unknown.push(format!("Threads for which there was no room: {refused}."));
    }
    let scale = times::Scale::of(&threads);
    Ok(resolve::recording(info, &threads, &scale))
}
