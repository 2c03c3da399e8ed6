//! Replays of recordings of real programs: no deadlock anywhere, all work done.

mod common;

use std::path::Path;

use ampsched_recording::import::{Options as ImportOptions, import};
use ampsched_recording::{Kind, Recording};
use common::{catalog, replayed, run_on};

fn recording(name: &str) -> Recording {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/calibration/recordings");
    let beside = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
    let bytes = std::fs::read(folder.join(format!("{name}.npz.zst"))).unwrap();
    let options = ImportOptions { beside, ..ImportOptions::default() };
    import(name, &bytes, &options).unwrap()
}

/// Work that is none: what workers of a region do between their shares.
fn spinning_ns(recording: &Recording) -> u64 {
    let begins = recording.threads.iter().skip(1).flat_map(|thread| &thread.events);
    begins.filter(|event| event.kind == Kind::OmpBegin).map(|event| event.work_ns).sum()
}

fn check(name: &str) {
    let recording = recording(name);
    let replay = replayed(&recording);
    let catalog = catalog();
    let mut times = Vec::new();
    for (machine, policy) in [("sym-2", "cfs"), ("sym-4", "cfs"), ("2B2S", "colab")] {
        let mut machine = catalog.machine(machine).unwrap();
        machine.costs = Default::default();
        let outcome = run_on(&machine, &replay, policy).unwrap();
        times.push(outcome.makespan_ns as f64 / 1e6);
        if machine.name.starts_with("sym") {
            let busy_ns: u64 = outcome.cores.iter().map(|core| core.busy_ns).sum();
            let work_ns = recording.threads.iter().flat_map(|thread| &thread.events);
            let work_ns: u64 = work_ns.map(|event| event.work_ns).sum();
            let expected_ns = work_ns - spinning_ns(&recording);
            let error = busy_ns as f64 / expected_ns as f64 - 1.0;
            assert!(error.abs() < 1e-3, "{name}: {busy_ns} ns of work instead of {expected_ns}");
        }
    }
    let wall_ms = recording.info.wall_ns as f64 / 1e6;
    println!("{name}: recorded {wall_ms:.0} ms, replayed {times:.0?} ms, {:?}", replay.notes);
}

macro_rules! check_all {
    ($($name:ident),+) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )+
    };
}

check_all!(
    blackscholes,
    bodytrack,
    dedup,
    ferret_400q,
    fft,
    fluidanimate,
    fmm,
    freqmine_250k,
    lu_cb,
    lu_ncb,
    ocean_cp,
    radix,
    swaptions,
    water_nsq,
    water_sp
);
