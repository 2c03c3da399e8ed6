//! Malformed files and the message that each must give, word for word.
//!
//! `tests/corpus/KIND.cases` has the inputs and messages. With `BLESS=1` in the environment the messages
//! are written instead of compared; read the difference before committing.

mod cases;

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
    let mut seen = 0;
    for (kind, folder) in FileKind::FOLDERS {
        let path = corpus().join(folder).with_extension("cases");
        cases::check(&path, |case| {
            let refused = outcome(&base, kind, &case.name, &case.input);
            let message = refused.expect_err(&case.name).to_string();
            assert!(!message.contains('\n'), "{}: {message}", case.name);
            format!("{message}\n")
        });
        seen += cases::read(&path).len();
    }
    assert!(seen > 150, "only {seen} cases were found");
}
