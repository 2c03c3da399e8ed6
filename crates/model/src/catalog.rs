//! The catalogue: texts of machine, core-type, profile, program and workload files by name, and how names resolve to values.
//!
//! Pure: whoever owns the files (Python package, test, benchmark) hands over their texts.

use crate::{InputError, Machine, ProfileLibrary, Program, Workload};

/// What a file describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A machine.
    Machine,
    /// A core type.
    CoreType,
    /// Profiles.
    Profile,
    /// A program.
    Program,
    /// Workloads.
    Workload,
}

/// Named files and their parsed contents.
#[derive(Clone, Debug, Default)]
pub struct Catalog {}

impl Catalog {
    /// An empty catalogue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file under a name (its stem). Syntax is checked at once.
    pub fn add(&mut self, kind: FileKind, name: &str, file: &str, text: &str) -> Result<(), InputError> {
        let _ = (kind, name, file, text);
        todo!()
    }

    /// Names of one kind in alphabetical order, with their one-line descriptions.
    pub fn list(&self, kind: FileKind) -> Vec<(String, String)> {
        let _ = kind;
        todo!()
    }

    /// The machine of that name.
    pub fn machine(&self, name: &str) -> Result<Machine, InputError> {
        let _ = name;
        todo!()
    }

    /// The program of that name with parameters set.
    pub fn program(&self, name: &str, params: &[(String, f64)]) -> Result<Program, InputError> {
        let _ = (name, params);
        todo!()
    }

    /// The workload of that name; a program's name is a workload of that program alone.
    pub fn workload(&self, name: &str) -> Result<Workload, InputError> {
        let _ = name;
        todo!()
    }

    /// All profiles.
    pub fn profiles(&self) -> &ProfileLibrary {
        todo!()
    }
}
