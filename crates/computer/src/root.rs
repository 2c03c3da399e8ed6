//! Where the system's files are read: below `/`, or below a folder of a test.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

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
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        let name = name.as_ref();
        self.path.join(name.strip_prefix("/").unwrap_or(name))
    }

    /// The same for messages.
    pub fn name(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Whether there is such a file or folder.
    pub fn has(&self, name: impl AsRef<Path>) -> bool {
        self.path(name).exists()
    }

    /// All bytes of a file. Whoever chooses names within it chooses bytes, which need be no UTF-8.
    ///
    /// # Errors
    ///
    /// It cannot be read; [`is_gone`](crate::is_gone) tells whether that is because it does not exist.
    pub fn bytes(&self, name: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        fs::read(self.path(name))
    }

    /// A file's text without the white space around it; none if there is no such file or it cannot be read (files of
    /// `/sys` refuse what the hardware does not have). What is no UTF-8 becomes U+FFFD.
    pub fn text(&self, name: &str) -> Option<String> {
        self.bytes(name).ok().map(|bytes| trimmed(&bytes))
    }

    /// A file's text, or an error if it exists and cannot be read.
    pub fn text_if_there(&self, name: &str) -> Result<Option<String>, InputError> {
        match self.bytes(name) {
            Ok(bytes) => Ok(Some(trimmed(&bytes))),
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

    /// The names in a folder, sorted.
    ///
    /// # Errors
    ///
    /// It cannot be read; [`is_gone`](crate::is_gone) tells whether that is because it does not exist.
    pub fn entries(&self, folder: impl AsRef<Path>) -> io::Result<Vec<OsString>> {
        let entries = fs::read_dir(self.path(folder))?;
        let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
        let mut names = names.collect::<io::Result<Vec<OsString>>>()?;
        names.sort();
        Ok(names)
    }

    /// The names in a folder of the kernel's, sorted; none if it cannot be read.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let names = self.entries(folder).unwrap_or_default().into_iter();
        names.filter_map(|name| name.into_string().ok()).collect()
    }
}

pub(crate) fn trimmed(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}
