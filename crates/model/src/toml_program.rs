//! The program language.
use crate::{InputError, Program, ProfileLibrary};

/// A parsed program file whose parameters are still open.
#[derive(Clone, Debug)]
pub struct ProgramTemplate {}

impl ProgramTemplate {
    /// The program with parameters set; those not named keep their defaults.
    pub fn instantiate(&self, params: &[(String, f64)], profiles: &ProfileLibrary) -> Result<Program, InputError> {
        let _ = (params, profiles);
        todo!()
    }
}

/// Parses a program file.
pub fn parse_program(file: &str, text: &str) -> Result<ProgramTemplate, InputError> {
    let _ = (file, text);
    todo!()
}
