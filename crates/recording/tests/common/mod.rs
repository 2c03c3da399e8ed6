//! What the tests of replays share.
#![allow(dead_code)]

use std::num::NonZeroU32;
use std::sync::Arc;

use ampsched_model::{App, Catalog, FileKind, Machine, Profile, Workload};
use ampsched_policy::build_policy;
use ampsched_recording::{Options, Recording, Replay, replay};
use ampsched_sim::{Options as SimOptions, Outcome, SimError, simulate};

/// A profile whose code takes half as long on big cores.
pub fn profile() -> Profile {
    let mut profile = catalog().profiles().find("swaptions").unwrap().clone();
    profile.measured_ratio = Some(2.0);
    profile
}

pub fn catalog() -> Catalog {
    let mut catalog = Catalog::new();
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/ampsched/data");
    for (kind, folder) in FileKind::FOLDERS {
        if matches!(kind, FileKind::Program | FileKind::Workload) {
            continue;
        }
        for file in std::fs::read_dir(data.join(folder)).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            catalog.add(kind, name, name, &std::fs::read_to_string(&path).unwrap()).unwrap();
        }
    }
    catalog
}

pub fn replayed(recording: &Recording) -> Replay {
    let options = Options { profile: profile(), speed: 1.0, is_balanced: false };
    replay(recording, &options)
}

pub fn run_on(machine: &Machine, replay: &Replay, policy: &str) -> Result<Outcome, SimError> {
    let program = Arc::new(replay.program.clone());
    let app = App { name: "p".to_owned(), program, start_ns: 0, nice: 0 };
    let workload = Workload { name: "w".to_owned(), description: String::new(), apps: vec![app] };
    let options = SimOptions { repetitions: NonZeroU32::new(1), ..SimOptions::default() };
    simulate(machine, &workload, policy, build_policy(policy, &[]).unwrap(), &options)
}
