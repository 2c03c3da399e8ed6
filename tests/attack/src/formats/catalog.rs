//! Files of the catalogue: TOML of five kinds, and rt-app's JSON; noise files.

use std::sync::OnceLock;

use ampsched_model::{Catalog, Draw, FileKind, InputError, Program, import_rtapp, parse_noise};

use super::{Format, check_refusal, once, one_line, seeds};
use crate::shipped::Shipped;

const MOST: usize = 3000;
/// Those of shipped noise files: tables of quantiles.
const NOISE_MOST: usize = 6000;

pub static MACHINE: Format = Format {
    name: "machine",
    seeds: || {
        static CELL: OnceLock<Vec<String>> = OnceLock::new();
        once(&CELL, || of("machines"))
    },
    read: |text| read(FileKind::Machine, text),
    most: MOST,
    share: 6,
};
pub static CORE_TYPE: Format = Format {
    name: "core-type",
    seeds: || {
        static CELL: OnceLock<Vec<String>> = OnceLock::new();
        once(&CELL, || of("core_types"))
    },
    read: |text| read(FileKind::CoreType, text),
    most: MOST,
    share: 2,
};
pub static PROFILE: Format = Format {
    name: "profile",
    seeds: || {
        vec![include_str!("../../../../crates/model/tests/corpus/base/profiles.toml").to_owned()]
    },
    read: |text| read(FileKind::Profile, text),
    most: MOST,
    share: 3,
};
pub static PROGRAM: Format = Format {
    name: "program",
    seeds: || {
        static CELL: OnceLock<Vec<String>> = OnceLock::new();
        once(&CELL, || {
            let all = of("programs").into_iter();
            // As long as may be: each like it takes a second, which is right but time for thousands of others.
            all.filter(|text| !text.contains("count = 1_000_000")).collect()
        })
    },
    read: |text| read(FileKind::Program, text),
    most: MOST,
    share: 8,
};
pub static WORKLOAD: Format = Format {
    name: "workload",
    seeds: || {
        static CELL: OnceLock<Vec<String>> = OnceLock::new();
        once(&CELL, || of("workloads"))
    },
    read: |text| read(FileKind::Workload, text),
    most: MOST,
    share: 4,
};
pub static NOISE: Format = Format {
    name: "noise",
    seeds: || {
        let short = include_str!("../../../../crates/model/tests/noise/good.toml");
        let shipped = seeds::files("python/ampsched/data/noise", ".toml", NOISE_MOST);
        shipped.into_iter().chain([short.to_owned()]).collect()
    },
    read: |text| match parse_noise("input.toml", text) {
        Ok(noise) => {
            for source in &noise.sources {
                let mut draw = Draw::new(1);
                let (pause_ns, took_ns) =
                    (source.pause.draw(&mut draw), source.duration.draw(&mut draw));
                assert!(pause_ns <= 1_000_000_000_000 && took_ns <= 1_000_000_000, "{source:?}");
                assert!(source.share() <= 0.5 && source.is_on(0, 1), "{source:?}");
            }
        }
        Err(error) => check_refusal("input.toml", &error.to_string()),
    },
    most: NOISE_MOST,
    share: 3,
};
pub static RTAPP: Format = Format {
    name: "rt-app",
    seeds: || {
        static CELL: OnceLock<Vec<String>> = OnceLock::new();
        once(&CELL, || {
            ["good", "bad"].map(|kind| seeds::cases(&format!("rtapp/{kind}.cases"), MOST)).concat()
        })
    },
    read: |text| match import_rtapp("input.json", text) {
        Ok(import) => check(&import.program),
        Err(error) => check_refusal("input.json", &error.to_string()),
    },
    most: MOST,
    share: 8,
};

/// Shipped files of a kind, and the wrong ones of the tests.
fn of(kind: &str) -> Vec<String> {
    let shipped = seeds::files(&format!("python/ampsched/data/{kind}"), ".toml", MOST);
    let wrong = seeds::cases(&format!("corpus/{kind}.cases"), MOST);
    shipped.into_iter().chain(wrong).collect()
}

/// What inputs may refer to; as little as can be, because each input gets a copy.
fn base() -> &'static Catalog {
    static BASE: OnceLock<Catalog> = OnceLock::new();
    BASE.get_or_init(|| {
        let shipped = Shipped::read(&[FileKind::CoreType]).expect("what is shipped can be read");
        let mut catalog = shipped.catalog;
        let program = include_str!("../../../../crates/model/tests/corpus/base/program.toml");
        catalog.add(FileKind::Program, "program", "program.toml", program).expect("a program");
        let profiles = include_str!("../../../../crates/model/tests/corpus/base/profiles.toml");
        catalog.add(FileKind::Profile, "profiles", "profiles.toml", profiles).expect("profiles");
        catalog
    })
}

/// Reads a file and asks for all that it defines.
fn read(kind: FileKind, text: &str) {
    const FILE: &str = "input.toml";
    let _ = FileKind::detect(FILE, text);
    let mut catalog = base().clone();
    if let Err(error) = catalog.add(kind, "input", FILE, text) {
        return check_refusal(FILE, &error.to_string());
    }
    let used = match kind {
        FileKind::Machine => catalog.machine("input").map(|machine| {
            let _ = (
                machine.ordered(true),
                machine.all_big(),
                machine.all_little(),
                machine.only_little(),
            );
            let _ = ampsched_model::energy_models(&machine);
        }),
        FileKind::Program => catalog.program("input", &[]).map(|program| check(&program)),
        FileKind::Workload => workloads(&catalog),
        FileKind::CoreType | FileKind::Profile => Ok(()),
    };
    for (name, _) in catalog.list(kind).iter().filter(|(name, _)| !base().has(kind, name)) {
        let _ = catalog.describe(kind, name);
    }
    let _ = (catalog.missing_files(), catalog.missing_graphs());
    if let Err(error) = used {
        one_line(&error.to_string());
    }
}

fn workloads(catalog: &Catalog) -> Result<(), InputError> {
    let names = catalog.workloads_of_file("input").to_vec();
    names.iter().try_for_each(|name| catalog.workload(name).map(drop))
}

/// Whatever reads programs makes code that runs.
fn check(program: &Program) {
    assert_eq!(program.flaw(), None);
    for op in &program.code {
        let text = format!("{op:?}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}
