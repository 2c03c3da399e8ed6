//! Compiles `c/` to the library that recorded programs load.

use std::env;
use std::path::{Path, PathBuf};

/// What makes a shared library of the sources, strict about what they say.
const FLAGS: [&str; 14] = [
    "-shared",
    "-fPIC",
    "-O2",
    "-std=gnu11",
    "-D_GNU_SOURCE",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fvisibility=hidden",
    "-fexceptions",
    "-U_FORTIFY_SOURCE",
    "-fno-builtin",
    "-pthread",
    "-Wl,-z,now,-z,relro,-z,defs",
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().expect("the folder c is part of the crate");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("is readable").path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "c"));
    files.sort();
    files
}

fn main() {
    println!("cargo::rerun-if-changed=c");
    let library = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"))
        .join("libampsched-preload.so");
    let mut command = cc::Build::new().get_compiler().to_command();
    command.args(FLAGS).args(sources(Path::new("c"))).arg("-o").arg(&library).arg("-ldl");
    let status = command.status().expect("a C compiler");
    assert!(status.success(), "{command:?} failed");
}
