//! Where the system's files are read: below `/`, or below a folder of a test.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use ampsched_model::InputError;

use crate::parse_cpus;

/// The folder that stands for `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    path: PathBuf,
}

impl Default for Root {
    fn default() -> Self {
        Self::new("/")
    }
}

impl Root {
    /// With that folder as `/`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where a file is that has this absolute name, such as `/proc/self/stat`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name.trim_start_matches('/'))
    }

    /// The same for messages.
    pub fn name(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Whether there is such a file or folder.
    pub fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// A file's text without the white space around it; none if there is no such file or it holds nothing
    /// readable (files of `/sys` refuse what the hardware does not have).
    pub fn text(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.path(name)).ok()?;
        Some(text.trim().to_owned())
    }

    /// A file's text, or an error if it exists and cannot be read.
    pub fn text_if_there(&self, name: &str) -> Result<Option<String>, InputError> {
        match fs::read_to_string(self.path(name)) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(InputError::new(self.name(name), "", error.to_string())),
        }
    }

    /// A file that holds a whole number; none if there is no such file.
    ///
    /// Errors: the file holds something else.
    pub fn number(&self, name: &str) -> Result<Option<u64>, InputError> {
        let Some(text) = self.text_if_there(name)? else { return Ok(None) };
        let wrong =
            || InputError::new(self.name(name), "", format!("\"{text}\" is not a whole number"));
        text.parse().map(Some).map_err(|_| wrong())
    }

    /// A file that holds a list of CPUs; none if there is no such file.
    ///
    /// Errors: the file holds something else.
    pub fn cpus(&self, name: &str) -> Result<Option<BTreeSet<usize>>, InputError> {
        let text = self.text_if_there(name)?;
        text.map(|text| parse_cpus(&self.name(name), "", &text)).transpose()
    }

    /// The names in a folder, sorted; none if there is no such folder.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(folder)) else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}
