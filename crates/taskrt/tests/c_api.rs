//! The header and the library fit together: a C program that uses every function is compiled, linked and run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn names(text: &str, before: &str) -> BTreeSet<String> {
    let name = |rest: &str| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    text.match_indices(before).map(|(at, _)| name(&text[at + before.len()..])).collect()
}

#[test]
fn the_header_declares_what_the_library_has_and_the_program_uses_it() {
    let library = names(include_str!("../src/c_api.rs"), "extern \"C\" fn ampsched_");
    let is_function = |text: &str, name: &String| text.contains(&format!("ampsched_{name}("));
    let header = include_str!("../include/ampsched_taskrt.h");
    let declared: BTreeSet<String> =
        names(header, "ampsched_").into_iter().filter(|name| is_function(header, name)).collect();
    assert_eq!(declared, library);
    let program = include_str!("c_program.c");
    assert!(library.iter().all(|name| is_function(program, name)), "{library:?}");
}

/// The static library of this build: beside the test program, with or without a hash in its name.
fn static_library() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let folder = program.parent().unwrap();
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("libampsched_taskrt") && name.ends_with(".a")
    };
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let newest =
        files.filter(is_library).max_by_key(|path| path.metadata().unwrap().modified().unwrap());
    newest.unwrap_or_else(|| panic!("no static library in {}", folder.display()))
}

#[test]
fn a_c_program_runs() {
    run_c(include_str!("c_program.c"));
}

/// It hung.
#[test]
fn h34_a_forked_child_is_refused_its_parent_s_runtime() {
    assert_eq!(run_c(include_str!("c_forked.c")), "child 0, parent 0\n");
}

#[test]
fn the_program_of_the_how_to_page_runs() {
    let page = include_str!("../../../docs/howto/use-the-runtime.md");
    let (_, rest) = page.split_once("```c\n").unwrap();
    assert_eq!(run_c(rest.split_once("```").unwrap().0), "42\n");
}

/// Compiles, links and runs a program; what it prints.
fn run_c(source: &str) -> String {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let (file, program) = (folder.path().join("program.c"), folder.path().join("program"));
    std::fs::write(&file, source).unwrap();
    let mut compiler = Command::new("cc");
    compiler
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(crate_folder.join("include"));
    compiler.arg("-o").arg(&program).arg(&file).arg(static_library());
    let compiled = compiler.args(["-lpthread", "-ldl", "-lm"]).output().expect("a C compiler");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let run = Command::new(&program).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).unwrap()
}
