//! What is said to people and programs, who may have gone meanwhile.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use ampsched_model::InputError;

/// Says something in a line on standard error, on behalf of a program. That nobody hears it any more changes nothing.
pub fn tell(program: &str, what: impl Display) {
    let line = format!("{program}: {what}\n");
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Writes what a command was called for to standard output; returns whether anybody goes on reading. Whoever has seen
/// enough and closes the pipe does no wrong.
///
/// # Errors
///
/// It cannot be written for another reason, such as a full disk.
pub fn print(text: &str) -> Result<bool, InputError> {
    let mut output = io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(InputError::new("standard output", "", error.to_string())),
    }
}
