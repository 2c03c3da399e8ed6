//! Texts that are read from files: they are written into a folder of this thread first.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};

use ampsched_computer::Root;
use tempfile::TempDir;

/// A folder of this thread, in memory if there is such a place.
pub fn with_folder<T>(use_it: impl FnOnce(&Path) -> T) -> T {
    thread_local! {
        static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
    }
    let make = || {
        let memory = Path::new("/dev/shm");
        TempDir::new_in(memory).or_else(|_| TempDir::new()).expect("a folder can be made")
    };
    FOLDER.with(|folder| use_it(folder.get_or_init(make).path()))
}

/// Writes the files of a text, in which a line `== NAME` stands before each, lets somebody read them, and removes them.
/// `place` tells where below the root a file is, if there is one of that name.
pub fn with_files(text: &str, place: impl Fn(&str) -> Option<String>, read: impl FnOnce(&Root)) {
    with_folder(|folder| {
        // What a panic has left of the text before counts as there.
        let clear = || {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let _ = fs::remove_dir_all(entry.path());
            }
        };
        clear();
        write(folder, text, place);
        read(&Root::new(folder));
        clear();
    });
}

/// Writes the files of a text below a folder.
pub fn write(folder: &Path, text: &str, place: impl Fn(&str) -> Option<String>) {
    for part in text.split("== ").skip(1) {
        let Some((name, content)) = part.split_once('\n') else { continue };
        let Some(path) = place(name).filter(|name| is_plain(name)) else { continue };
        let path: PathBuf = folder.join(path);
        if path.parent().is_some_and(|parent| fs::create_dir_all(parent).is_ok()) {
            // Whatever the text takes for a folder and for a file is one of them.
            let _ = fs::write(&path, content);
        }
    }
}

fn is_plain(name: &str) -> bool {
    !name.split('/').any(|part| part.is_empty() || part.starts_with('.')) && !name.contains('\0')
}
