//! Importer for rt-app JSON workloads.
use crate::{InputError, Program};

/// An imported rt-app file.
#[derive(Clone, Debug)]
pub struct RtApp {
    /// The program.
    pub program: Program,
    /// What is honoured differently from rt-app, one line each.
    pub notes: Vec<String>,
}

/// Imports rt-app JSON.
pub fn import_rtapp(file: &str, text: &str) -> Result<RtApp, InputError> {
    let _ = (file, text);
    todo!()
}
