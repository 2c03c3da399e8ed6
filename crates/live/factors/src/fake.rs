//! A machine of tests: two PMUs, threads, and files that run out.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::rc::Rc;

use ampsched_computer::{ByHand, CoreMap, Root, detect_cores};
use rustix::io::Errno;
use tempfile::TempDir;

use crate::counters::{Encoding, Source, Times};

/// A machine of a test: how many events each PMU counts at once, and what threads have done on each.
#[derive(Default)]
pub struct Machine {
    /// By the number of the PMU.
    pub at_once: BTreeMap<u32, usize>,
    /// By thread and PMU: time on it in ns; each event counts its config per us.
    pub ran_ns: BTreeMap<(i32, u32), u64>,
    /// By thread and PMU: share of the time in which groups are counted there, in percent.
    pub percent: BTreeMap<(i32, u32), u64>,
    /// Files that are open at most, and what they can be raised by.
    pub files: usize,
    pub more_files: usize,
    pub opened: usize,
    pub error: Option<Errno>,
}

#[derive(Clone)]
pub struct Fake(pub Rc<RefCell<Machine>>);

/// Gives its files back at the end.
pub struct FakeGroup {
    machine: Fake,
    tid: i32,
    events: Vec<Encoding>,
}

impl Drop for FakeGroup {
    fn drop(&mut self) {
        self.machine.0.borrow_mut().opened -= self.events.len();
    }
}

impl Source for Fake {
    type Group = FakeGroup;

    fn open(&mut self, tid: i32, events: &[Encoding]) -> io::Result<FakeGroup> {
        let mut machine = self.0.borrow_mut();
        if let Some(error) = machine.error {
            return Err(error.into());
        }
        if machine.opened + events.len() > machine.files {
            return Err(Errno::MFILE.into());
        }
        machine.opened += events.len();
        Ok(FakeGroup { machine: self.clone(), tid, events: events.to_vec() })
    }

    fn read(&mut self, group: &mut FakeGroup, counts: &mut [u64]) -> io::Result<Times> {
        let machine = self.0.borrow();
        let key = (group.tid, pmu_of(&group.events[0]));
        let ran_ns = machine.ran_ns.get(&key).copied().unwrap_or(0);
        let running_ns = ran_ns * machine.percent.get(&key).copied().unwrap_or(100) / 100;
        for (count, event) in counts.iter_mut().zip(&group.events) {
            *count = (event.config[0] & 0xff) * running_ns / 1000;
        }
        let of_thread = machine.ran_ns.iter().filter(|((tid, _), _)| *tid == group.tid);
        Ok(Times { enabled_ns: of_thread.map(|(_, ns)| ns).sum(), running_ns })
    }

    fn try_out(&mut self, _cpu: usize, events: &[Encoding]) -> io::Result<bool> {
        let machine = self.0.borrow();
        if let Some(error) = machine.error {
            return Err(error.into());
        }
        let at_once = machine.at_once.get(&pmu_of(&events[0])).copied().unwrap_or(0);
        Ok(events.len() <= at_once)
    }

    fn files_max(&self) -> usize {
        self.0.borrow().files
    }

    fn raise_limit(&mut self) -> bool {
        let mut machine = self.0.borrow_mut();
        let more = std::mem::take(&mut machine.more_files);
        machine.files += more;
        more > 0
    }
}

/// A generic event has the number of its PMU in the upper half.
fn pmu_of(event: &Encoding) -> u32 {
    if event.kind < 4 { (event.config[0] >> 32) as u32 } else { event.kind }
}

/// Two fast CPUs of PMU 4, two slow ones of PMU 10.
pub fn hybrid() -> (TempDir, Root, CoreMap) {
    let folder = TempDir::new().unwrap();
    let devices = "sys/bus/event_source/devices";
    for (name, text) in [
        ("sys/devices/system/cpu/online", "0-3"),
        (&format!("{devices}/cpu_core/type"), "4"),
        (&format!("{devices}/cpu_core/cpus"), "0-1"),
        (&format!("{devices}/cpu_core/format/event"), "config:0-7"),
        (&format!("{devices}/cpu_core/events/instructions"), "event=0x4"),
        (&format!("{devices}/cpu_core/events/cpu-cycles"), "event=0x2"),
        (&format!("{devices}/cpu_core/events/branch-misses"), "event=0x8"),
        (&format!("{devices}/cpu_atom/type"), "10"),
        (&format!("{devices}/cpu_atom/cpus"), "2-3"),
        (&format!("{devices}/cpu_atom/format/event"), "config:0-7"),
        (&format!("{devices}/cpu_atom/events/instructions"), "event=0x1"),
        (&format!("{devices}/cpu_atom/events/cpu-cycles"), "event=0x1"),
        (&format!("{devices}/cpu_atom/events/branch-misses"), "event=0x3"),
    ] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let root = Root::new(folder.path());
    let by_hand = ByHand { classes: vec!["2-3".into(), "0-1".into()], ratios: Vec::new() };
    let cores = detect_cores(&root, &by_hand).unwrap().0;
    (folder, root, cores)
}

pub fn machine(at_once: [usize; 2]) -> Fake {
    let at_once = [(4, at_once[0]), (10, at_once[1])].into_iter().collect();
    Fake(Rc::new(RefCell::new(Machine { at_once, files: 100, ..Machine::default() })))
}
