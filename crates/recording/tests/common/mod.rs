//! What the tests of replays share.
#![allow(dead_code)]

use std::num::NonZeroU32;
use std::sync::Arc;

use ampsched_model::{App, Catalog, FileKind, Machine, Profile, Program, Workload};
use ampsched_policy::build_policy;
use ampsched_recording::{Event, Info, Kind, Options, Recording, Replay, Thread, replay};
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
    let options = Options { profile: profile(), ..Options::default() };
    replay(recording, &options)
}

pub fn run_on(machine: &Machine, replay: &Replay, policy: &str) -> Result<Outcome, SimError> {
    run_program(machine, replay.program.clone(), policy)
}

pub fn run_program(machine: &Machine, program: Program, policy: &str) -> Result<Outcome, SimError> {
    let program = Arc::new(program);
    let app = App { name: "p".to_owned(), program, start_ns: 0, nice: 0 };
    let workload = Workload { name: "w".to_owned(), description: String::new(), apps: vec![app] };
    let options = SimOptions { repetitions: NonZeroU32::new(1), ..SimOptions::default() };
    simulate(machine, &workload, policy, build_policy(policy, &[]).unwrap(), &options)
}

/// Events of a thread, written one after the other; times are ms.
#[derive(Default)]
pub struct Script {
    pub events: Vec<Event>,
}

impl Script {
    /// An event at a time, with so much work before it.
    pub fn at(mut self, at_ms: u64, work_ms: u64, kind: Kind, object: u32, aux: u32) -> Self {
        let event = Event::new(kind, at_ms * 1_000_000, work_ms * 1_000_000);
        self.events.push(Event { object, aux, ..event });
        self
    }

    /// CPU time before the last event, whether it was work or not.
    pub fn cpu_us(mut self, us: u64) -> Self {
        self.events.last_mut().unwrap().cpu_ns = us * 1000;
        self
    }

    /// The last event ended a wait of so long.
    pub fn waited(mut self, ms: u64) -> Self {
        let last = self.events.last_mut().unwrap();
        (last.wait_ns, last.is_blocked) = (ms * 1_000_000, true);
        self
    }
}

/// The recording of these threads, which are of one process.
pub fn recording(threads: Vec<Script>) -> Recording {
    let thread = |script: Script| Thread { events: script.events, ..Thread::default() };
    let info = Info { name: "p".to_owned(), ..Info::default() };
    Recording { info, threads: threads.into_iter().map(thread).collect(), is_cut_off: false }
}
