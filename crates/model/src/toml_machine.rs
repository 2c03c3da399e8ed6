//! Machine files.
use crate::{InputError, Machine};

/// Parses a machine file.
pub fn parse_machine(file: &str, text: &str) -> Result<Machine, InputError> {
    let _ = (file, text);
    todo!()
}
