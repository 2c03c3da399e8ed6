//! What the scheduler in the kernel does and decides, in a file while it runs, and checked afterwards.
#![allow(unsafe_code)] // Memory is shared with the kernel.

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use ampsched_live_driver::Dilation;
use ampsched_live_session::{Session, build_policy, tell};
use ampsched_model::{ClassId, CoreId, EnergyPoint, InputError, MAX_CLASSES};
use ampsched_policy::{ClusterInfo, PELT_UNIT_NS, Topology};
use serde::{Deserialize, Serialize};

use crate::layout::{self, Sched, Thread};
use crate::lower;
use crate::record::Record;
use crate::replay::{Idled, Replay};

/// Records that the kernel has room for until they are written (ours): of a few seconds under load.
pub const ROOM: u64 = 1 << 18;
/// How often they are written (ours).
const PERIOD: Duration = Duration::from_millis(5);
/// What a recording begins with.
const FORMAT: &str = "ampsched decisions 1";

/// The first line of a recording: what the policy is and on what it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Header {
    format: String,
    policy: String,
    dilation: f64,
    clusters: Vec<Cluster>,
    /// Cores that are the two threads of one physical core.
    #[serde(default)]
    siblings: Vec<(u16, u16)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Cluster {
    class: u8,
    cores: Vec<u16>,
    freqs_mhz: Vec<u32>,
    /// Frequency, capacity and power.
    points: Vec<(u32, f64, f64)>,
}

impl Header {
    fn of(session: &Session) -> Self {
        let cluster = |cluster: &ClusterInfo| Cluster {
            class: cluster.class.0,
            cores: cluster.cores.iter().map(|core| core.0).collect(),
            freqs_mhz: cluster.freqs_mhz.clone(),
            points: cluster
                .energy_model
                .iter()
                .map(|point| (point.mhz, point.capacity, point.power_mw))
                .collect(),
        };
        Self {
            format: FORMAT.to_owned(),
            policy: session.policy.clone(),
            dilation: session.settings.dilation,
            clusters: session.cores.topology().clusters().iter().map(cluster).collect(),
            siblings: siblings(session.cores.topology()),
        }
    }

    /// Whether there are such cores.
    fn is_possible(&self) -> bool {
        let mut cores: Vec<u16> =
            self.clusters.iter().flat_map(|cluster| cluster.cores.iter().copied()).collect();
        cores.sort_unstable();
        let are_cores = cores.iter().enumerate().all(|(place, &core)| usize::from(core) == place);
        let mut threads: Vec<u16> =
            self.siblings.iter().flat_map(|&(one, other)| [one, other]).collect();
        threads.sort_unstable();
        let are_pairs = threads.windows(2).all(|two| two[0] < two[1])
            && threads.last().is_none_or(|&last| usize::from(last) < cores.len());
        let is_class = |cluster: &Cluster| usize::from(cluster.class) < MAX_CLASSES;
        are_cores && self.clusters.iter().all(is_class) && are_pairs
    }

    fn topology(&self) -> Topology {
        let cluster = |cluster: &Cluster| ClusterInfo {
            shares_l2: false,
            class: ClassId(cluster.class),
            cores: cluster.cores.iter().map(|&core| CoreId(core)).collect(),
            freqs_mhz: cluster.freqs_mhz.clone(),
            design: None,
            energy_model: cluster
                .points
                .iter()
                .map(|&(mhz, capacity, power_mw)| EnergyPoint { mhz, capacity, power_mw })
                .collect(),
        };
        let pairs = self.siblings.iter().map(|&(one, other)| (CoreId(one), CoreId(other)));
        Topology::from_clusters(self.clusters.iter().map(cluster).collect()).with_siblings(pairs)
    }
}

/// Each first thread of a physical core with its second one.
fn siblings(topology: &Topology) -> Vec<(u16, u16)> {
    let firsts = topology.cores().filter(|&core| !topology.is_second(core));
    firsts.filter_map(|core| Some((core.0, topology.sibling(core)?.0))).collect()
}

/// The file to be written, until a session takes it.
static WANTED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Has the next session of this process recorded.
pub fn want(file: Option<PathBuf>) {
    *WANTED.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = file;
}

/// A file that has been begun.
pub struct Begun {
    path: PathBuf,
    file: BufWriter<File>,
}

/// Begins the file of a session if it is to be recorded.
///
/// # Errors
///
/// It cannot be written, or what the policy does cannot be carried out again.
pub fn begin(session: &Session) -> Result<Option<Begun>, InputError> {
    let wanted = WANTED.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    let Some(path) = wanted else { return Ok(None) };
    let wrong = |why: String| InputError::new(path.display().to_string(), "", why);
    let unit_ns = session.driver.dilation().to_real(PELT_UNIT_NS);
    if session.driver.needs().load_tracking.is_some() && unit_ns != PELT_UNIT_NS {
        return Err(wrong("dilated loads cannot be checked: leave out --dilation".to_owned()));
    }
    let header = serde_json::to_string(&Header::of(session)).expect("plain values");
    let file = File::create(&path).map_err(|error| wrong(error.to_string()))?;
    let mut file = BufWriter::new(file);
    writeln!(file, "{header}").map_err(|error| wrong(error.to_string()))?;
    Ok(Some(Begun { path, file }))
}

/// Writes records while the scheduler runs; ends when it is dropped, which must be after the scheduler has ended.
pub struct Writer {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Where the kernel's records are.
struct Source {
    state: NonNull<Sched>,
    records: *const Record,
    /// How many have been written.
    done: u64,
    /// How many were there at the last look.
    seen: u64,
}

// SAFETY: a mapping that outlives the thread, which is joined before it goes.
unsafe impl Send for Source {}

impl Source {
    /// The record of a number if it is there.
    fn record(&self, number: u64) -> Option<Record> {
        // SAFETY: there is room for ROOM records, and every pattern of bits is one.
        let record = unsafe { self.records.add((number % ROOM) as usize).read_volatile() };
        (record.number == number + 1).then_some(record)
    }

    /// Writes those records that were there at the last look already: by now all of them is in memory.
    fn write(&mut self, file: &mut BufWriter<File>) -> std::io::Result<()> {
        fence(Ordering::SeqCst);
        while self.done < self.seen {
            let record = self.record(self.done).expect("it was there");
            file.write_all(bytes_of(&record))?;
            self.done += 1;
        }
        // SAFETY: written by nobody else and read whole.
        unsafe { (&raw mut (*self.state.as_ptr()).records_read).write_volatile(self.done) };
        while self.seen < self.done + ROOM && self.record(self.seen).is_some() {
            self.seen += 1;
        }
        Ok(())
    }

    /// Writes the rest, and the books in the end. Returns whether there was room for all.
    fn finish(mut self, file: &mut BufWriter<File>) -> std::io::Result<bool> {
        for _ in 0..2 {
            self.write(file)?;
        }
        // SAFETY: initialised, with its threads behind it; nobody changes them any more.
        let (state, threads) = unsafe {
            let state = self.state.as_ptr();
            let threads: *const Thread = state.add(1).cast();
            (&*state, std::slice::from_raw_parts(threads, (*state).thread_count as usize))
        };
        file.write_all(bytes_of(&Record::default()))?;
        file.write_all(bytes_of(state))?;
        for thread in threads {
            file.write_all(bytes_of(thread))?;
        }
        file.flush()?;
        Ok(state.records_lost == 0)
    }
}

/// A value of `layout` as bytes.
fn bytes_of<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: types of the C code, which have no padding that matters.
    unsafe { std::slice::from_raw_parts((&raw const *value).cast(), size_of::<T>()) }
}

impl Writer {
    /// Writes the records of a scheduler's table.
    ///
    /// # Safety
    ///
    /// The table is mapped, and the records behind it, until this is dropped.
    ///
    /// # Errors
    ///
    /// No thread can be had.
    pub unsafe fn start(state: NonNull<Sched>, begun: Begun) -> std::io::Result<Self> {
        let Begun { path, mut file } = begun;
        // SAFETY: as above.
        let records = unsafe {
            let at = (&raw const (*state.as_ptr()).records_at).read_volatile() as usize;
            state.as_ptr().cast::<u8>().add(at).cast::<Record>()
        };
        let mut source = Source { state, records, done: 0, seen: 0 };
        let ends = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ends);
        let thread = std::thread::Builder::new().spawn(move || {
            let mut written = Ok(());
            while written.is_ok() && !told.load(Ordering::SeqCst) {
                std::thread::sleep(PERIOD);
                written = source.write(&mut file);
            }
            let done = written.and_then(|()| source.finish(&mut file));
            let name = path.display();
            match done {
                Ok(true) => {}
                Ok(false) => tell("scx", format_args!("{name}: cut off, as there was no room")),
                Err(error) => tell("scx", format_args!("{name}: {error}")),
            }
        })?;
        Ok(Self { ends, thread: Some(thread) })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            // A panic has been told by itself.
            let _ = thread.join();
        }
    }
}

/// Reads a value of `layout`; none at the end of the file.
fn read_value<T: Copy>(file: &mut impl std::io::Read) -> std::io::Result<Option<T>> {
    let mut bytes = vec![0; size_of::<T>()];
    match file.read_exact(&mut bytes) {
        // SAFETY: long enough, and every pattern of bits is one.
        Ok(()) => Ok(Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// Has the interpreter in Rust decide what a recording says, and says what it holds.
///
/// # Errors
///
/// The file is no recording, or the interpreter decides something else.
pub fn check(path: &Path) -> Result<String, InputError> {
    let wrong = |why: String| InputError::new(path.display().to_string(), "", why);
    let unread = |error: std::io::Error| wrong(error.to_string());
    let mut file = BufReader::new(File::open(path).map_err(unread)?);
    let mut line = String::new();
    file.by_ref().take(1 << 20).read_line(&mut line).map_err(unread)?;
    let header: Option<Header> = serde_json::from_str(&line).ok();
    let header = header.filter(|header| header.format == FORMAT && header.is_possible());
    let header = header.ok_or_else(|| wrong("this is no recording of decisions".to_owned()))?;
    let policy = build_policy(&header.policy, &[])?.policy;
    let topology = header.topology();
    let rules = Dilation::new(header.dilation)?.rules_to_real(&policy.rules(&topology));
    let mut records = Vec::new();
    let mut is_whole = false;
    while let Some(record) = read_value::<Record>(&mut file).map_err(unread)? {
        is_whole = record.number == 0;
        if is_whole {
            break;
        }
        records.push(record);
    }
    let wire = lower::rules(&header.policy, &ampsched_policy::Needs::default(), &rules, &topology);
    let wire = wire.map_err(|error| wrong(error.to_string()))?;
    let mut replay = Replay::new(topology, rules, policy.needs().load_tracking);
    replay.run(&records).map_err(|error| wrong(error.to_string()))?;
    let state = if is_whole { read_boxed_state(&mut file).map_err(unread)? } else { None };
    let end = match state {
        None => "; it is cut off",
        Some(state) if state.rules != wire => {
            return Err(wrong("these are not the rules that this program has for it".to_owned()));
        }
        Some(state) if state.records_lost != 0 => "; there was no room for more",
        Some(state) => {
            let threads: Result<Vec<Thread>, _> = (0..state.thread_count)
                .map(|_| read_value(&mut file).and_then(|it| it.ok_or(cut_off())))
                .collect();
            replay.compare(&state, &threads.map_err(unread)?).map_err(wrong)?;
            ""
        }
    };
    let tally = replay.tally();
    let idled = |idled: &Idled| {
        let Idled { ns, since_ns, core, slot } = idled;
        format!("{} us (core {} from {since_ns} ns, thread in slot {slot})", ns / 1000, core.0)
    };
    let idled: Vec<String> = tally.idled.iter().map(idled).collect();
    Ok(format!(
        "{}: {} records explained{end}\nlooks compared: {}, overtaken by changes: {}, past locked queues: {}\n\
         threads started as chosen: {}, put by the kernel: {}\nidled though the rules let them run a waiting thread, at most: {}\n",
        header.policy,
        records.len(),
        tally.looks_compared,
        tally.looks_overtaken,
        tally.looks_that_passed,
        tally.chosen,
        tally.put,
        idled.join(", "),
    ))
}

fn cut_off() -> std::io::Error {
    std::io::ErrorKind::UnexpectedEof.into()
}

fn read_boxed_state(file: &mut impl std::io::Read) -> std::io::Result<Option<Box<layout::Sched>>> {
    Ok(read_value(file)?.map(Box::new))
}
