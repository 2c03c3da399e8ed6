//! Files that are there whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use ampsched_model::InputError;

/// Reads a text that a user has named. Of a file without end, such as `/dev/zero`, no more than may be is read.
///
/// # Errors
///
/// It cannot be read, is longer than that or is not UTF-8.
pub fn read(file: &Path, most_bytes: usize) -> Result<String, InputError> {
    let wrong = |message: String| InputError::new(file.display().to_string(), "", message);
    let mut text = String::new();
    let limit = most_bytes as u64 + 1;
    let read = File::open(file).and_then(|opened| opened.take(limit).read_to_string(&mut text));
    read.map_err(|error| wrong(error.to_string()))?;
    if text.len() > most_bytes {
        return Err(wrong(format!("is longer than {} MiB, which is the limit", most_bytes >> 20)));
    }
    Ok(text)
}

/// Writes a file: a reader finds what was there before or all of the text, whenever this process ends. What
/// is no regular file, such as a pipe, is written as it is.
///
/// # Errors
///
/// It cannot be written; then nothing is left of the attempt.
pub fn write(file: &Path, text: &str) -> io::Result<()> {
    // Where a link points to is what is meant.
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    if fs::metadata(&file).is_ok_and(|there| !there.is_file()) {
        return fs::write(file, text);
    }
    let mut name = OsString::from(".");
    name.push(file.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    let new = file.with_file_name(name);
    let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &file));
    if written.is_err() {
        let _ = fs::remove_file(new);
    }
    written
}

#[cfg(test)]
mod tests {
    #[test]
    fn low_a_file_without_end_is_refused() {
        let said = super::read("/dev/zero".as_ref(), 1 << 20).unwrap_err().to_string();
        assert_eq!(said, "/dev/zero: is longer than 1 MiB, which is the limit");
        let none = super::read("/nowhere/facts.toml".as_ref(), 1 << 20).unwrap_err().to_string();
        assert!(none.starts_with("/nowhere/facts.toml: No such file"), "{none}");
    }

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_what_fails_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("result");
        write(&file, "old").unwrap();
        write(&file, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, "by link").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "by link");
        assert!(link.is_symlink());
        assert!(write(&folder.path().join("no/file"), "x").is_err());
        write(Path::new("/dev/null"), "x").unwrap();
        let mut left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["link", "result"]);
    }
}
