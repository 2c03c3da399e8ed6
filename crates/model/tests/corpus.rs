//! Malformed files and the message that each must give, word for word.
//!
//! `tests/corpus/FOLDER/NAME.toml` is the input, `NAME.expected` the message. With `BLESS=1` in the
//! environment the messages are written instead of compared; read the difference before committing.

use std::path::{Path, PathBuf};

use ampsched_model::{Catalog, FileKind, InputError};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What the malformed files may refer to: a core type, two profiles and a program.
fn base() -> Catalog {
    let mut catalog = Catalog::new();
    let core_type = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../python/ampsched/data/core_types/cortex-a53.toml");
    let files = [
        (FileKind::CoreType, "cortex-a53", core_type),
        (FileKind::Profile, "profiles", corpus().join("base/profiles.toml")),
        (FileKind::Program, "program", corpus().join("base/program.toml")),
    ];
    for (kind, name, path) in files {
        catalog.add(kind, name, &format!("{name}.toml"), &read(&path)).unwrap();
    }
    catalog
}

/// Adds a file and asks for what it defines.
fn outcome(base: &Catalog, kind: FileKind, file: &str, text: &str) -> Result<(), InputError> {
    let mut catalog = base.clone();
    catalog.add(kind, "input", file, text)?;
    match kind {
        FileKind::Machine => catalog.machine("input").map(drop),
        FileKind::Program => catalog.program("input", &[]).map(drop),
        FileKind::Workload => catalog.workload("input").map(drop),
        FileKind::CoreType | FileKind::Profile => Ok(()),
    }
}

#[test]
fn malformed_files_give_the_expected_message() {
    let base = base();
    let bless = std::env::var_os("BLESS").is_some();
    let (mut seen, mut wrong) = (0, Vec::new());
    for (kind, folder) in FileKind::FOLDERS {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(corpus().join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
            .collect();
        paths.sort();
        for path in paths {
            let file = path.file_name().unwrap().to_str().unwrap().to_owned();
            let message = match outcome(&base, kind, &file, &read(&path)) {
                Ok(()) => "accepted".to_owned(),
                Err(error) => error.to_string(),
            };
            let expected = path.with_extension("expected");
            if bless {
                std::fs::write(&expected, format!("{message}\n")).unwrap();
            } else if read(&expected).trim_end_matches('\n') != message {
                wrong.push(format!(
                    "{folder}/{file}\n  expected {}  got      {message}",
                    read(&expected)
                ));
            }
            assert!(!message.contains('\n'), "{folder}/{file}: {message}");
            assert_ne!(message, "accepted", "{folder}/{file}");
            seen += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 150, "only {seen} files were found");
}
