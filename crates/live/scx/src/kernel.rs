//! The scheduler inside the kernel: loads the BPF programs, shares memory with them, carries out changes of the plan.
#![allow(unsafe_code)] // Memory is shared with the kernel.

mod trial;

use std::fs;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::mpsc::{Receiver, channel};

use libbpf_rs::{
    Link, MapCore, MapFlags, Object, ObjectBuilder, OpenObject, ProgramInput, RingBuffer,
    RingBufferBuilder,
};

use ampsched_policy::nice_to_weight;

use crate::ScxError;
use crate::latencies::Latency;
use crate::layout::{CORES_MAX, CPUS_MAX, Operation, Rules, Sched, Thread};
use crate::lower;
use crate::record::Record;
use crate::recording::{self, Begun, Writer};
use crate::table::{self, Changes, Cores, PAGE};

pub use trial::{Replay, Room, verify};

/// The programs, aligned as libbpf reads them.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);
static SCHEDULER: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/scheduler.bpf.o")));
static REPLAY: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/replay.bpf.o")));
static VERIFY: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/verify.bpf.o")));

/// Where the arena lies (`ARENA_AT` in `bpf/platform.h`): loader and kernel use the same addresses.
const ARENA_AT: usize = 1 << 44;
/// Most bytes of an arena (Linux 6.18, `kernel/bpf/arena.c`).
const ARENA_BYTES_MAX: usize = 4 << 30;
/// Operations that the arena has room for.
const OPERATIONS_MAX: usize = 4096;
const OPERATIONS_BYTES: usize = OPERATIONS_MAX * size_of::<Operation>();
/// Room for nice values from -20 to 19.
const NICES: usize = 64;
/// Threads that are read at each look though they are not marked (ours): of 10,000, each every six seconds at looks
/// 10 ms apart.
const IN_TURN: u32 = 16;
const TEXT_MAX: usize = 256;
/// `SCX_OPS_SWITCH_PARTIAL` of Linux 6.18, `enum scx_ops_flags`.
const SWITCH_PARTIAL: u64 = 1 << 3;

/// `struct settings` in `bpf/scheduler.bpf.c`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Settings {
    timer_period_ns: u64,
    epoch_limit_ns: u64,
    cpu_of_core: [u16; CORES_MAX],
    core_of_cpu: [u16; CPUS_MAX],
    weight_of_nice: [u32; NICES],
    blames: u32,
    session: u32,
}

/// `struct report` in `bpf/scheduler.bpf.c`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Report {
    exit_code: i64,
    exit_kind: u32,
    unused: u32,
    reason: [u8; TEXT_MAX],
    message: [u8; TEXT_MAX],
}

/// `struct sched_ext_ops` in `bpf/sched_ext.h`.
#[repr(C)]
struct Ops {
    functions: [usize; 18],
    flags: u64,
    timeout_ms: u32,
    hotplug_seq: u64,
}

/// Which tasks the scheduler gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// All that are of no real-time or deadline class.
    #[default]
    All,
    /// Those of the class SCHED_EXT, which their children inherit; everything else stays with the kernel's own
    /// scheduler, which comes first.
    Chosen,
}

/// How the kernel runs the scheduler.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which tasks it gets.
    pub scope: Scope,
    /// CPU of each core, in the topology's order of cores.
    pub cpus: Vec<u32>,
    /// What [`hotplug_seq`] said before it was found out which CPUs are online: the kernel asks for a restart if
    /// some have come or gone since. 0: it does not look.
    pub hotplug_seq: u64,
    /// After how many ms without being run a runnable task makes the kernel give up on the scheduler; at most 30,000.
    pub timeout_ms: u32,
    /// After how many ns without [`Kernel::sign_of_life`] the scheduler gives up; 0: never.
    pub epoch_limit_ns: u64,
}

/// Why the scheduler ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The kernel's number for the kind of end (`enum scx_exit_kind`): 64 unregistered, 1024 and more errors.
    pub kind: u32,
    /// The kernel's code: whether a restart makes sense.
    pub code: i64,
    /// Why.
    pub reason: String,
    /// More about it.
    pub message: String,
}

/// `SCX_ECODE_ACT_RESTART` of Linux 6.18, `enum scx_exit_code`.
const RESTART: i64 = 1 << 48;

impl Exit {
    /// Whether the kernel ended it only because something changed that a scheduler has to know from the start, such as
    /// the number of CPUs.
    pub fn asks_for_restart(&self) -> bool {
        self.code & RESTART != 0
    }
}

/// Memory shared with loaded BPF programs.
struct Shared {
    object: Object,
    state: NonNull<Sched>,
    operations: NonNull<Operation>,
}

/// Where wake-up latencies come from the kernel.
struct Latencies {
    ring: RingBuffer<'static>,
    read: Receiver<Latency>,
}

impl Latencies {
    fn of(object: &Object) -> Result<Self, ScxError> {
        let wrong = |error| failed("wake-up latencies cannot be read", error);
        let (write, read) = channel();
        let map = object.maps().find(|map| map.name() == "latencies").expect("it is in the object");
        let mut builder = RingBufferBuilder::new();
        let took = builder.add(&map, move |bytes| {
            // SAFETY: the programs write nothing else there, and every pattern of bits is a `Latency`.
            let latency = (bytes.len() >= size_of::<Latency>())
                .then(|| unsafe { bytes.as_ptr().cast::<Latency>().read_unaligned() });
            latency.map_or(0, |latency| i32::from(write.send(latency).is_err()))
        });
        took.map_err(wrong)?;
        Ok(Self { ring: builder.build().map_err(wrong)?, read })
    }
}

/// The scheduler in the kernel, which runs until this is dropped.
pub struct Kernel {
    // Dropped first: the kernel falls back to its own scheduler.
    _links: Vec<Link>,
    latencies: Latencies,
    // Then all is in order to be written.
    _recording: Option<Writer>,
    shared: Shared,
    changes: Changes,
}

fn failed(what: &str, error: impl std::fmt::Display) -> ScxError {
    ScxError::Kernel { what: what.to_owned(), why: error.to_string() }
}

impl Drop for Kernel {
    /// Gives no more signs of life, and none is missed while the kernel lets the scheduler go, which may take seconds.
    fn drop(&mut self) {
        self.shared.set_alive_ns(0);
    }
}

impl Shared {
    fn load(mut open: OpenObject, initial: &Sched) -> Result<Self, ScxError> {
        let marks_end = table::bytes(initial.threads_max);
        let operations_at = marks_end.next_multiple_of(PAGE);
        let records_at = (operations_at + OPERATIONS_BYTES).next_multiple_of(PAGE);
        let records_bytes = initial.records_max as usize * size_of::<Record>();
        let bytes = (records_at + records_bytes).next_multiple_of(PAGE);
        let threads_end = size_of::<Sched>() + initial.slots as usize * size_of::<Thread>();
        for mut map in open.maps_mut() {
            if map.name() == "arena_map" {
                let pages = (bytes / PAGE) as u32;
                map.set_max_entries(pages)
                    .map_err(|error| failed("cannot size the arena", error))?;
            }
        }
        let object =
            open.load().map_err(|error| failed("the kernel refuses the programs", error))?;
        let base = ARENA_AT as *mut u8;
        // SAFETY: libbpf has mapped the arena, `bytes` long, at this address. Writing makes the kernel provide its
        // pages, which most programs cannot do themselves (`bpf/slots.h`).
        let (state, operations) = unsafe {
            let marks = initial.marks_at as usize..marks_end;
            for used in [0..threads_end, marks, records_at..bytes] {
                for page in used.step_by(PAGE) {
                    base.add(page).write_volatile(0);
                }
            }
            base.cast::<Sched>().copy_from_nonoverlapping(initial, 1);
            (*base.cast::<Sched>()).operations_at = operations_at as u64;
            (*base.cast::<Sched>()).records_at = records_at as u64;
            (base.cast(), base.add(operations_at).cast())
        };
        let not_null = "the arena does not begin at 0";
        Ok(Self {
            object,
            state: NonNull::new(state).expect(not_null),
            operations: NonNull::new(operations).expect(not_null),
        })
    }

    /// When the slow plane gave a sign of life; 0: none is expected.
    fn set_alive_ns(&self, alive_ns: u64) {
        // SAFETY: the field is written by nobody else and read whole.
        unsafe { (&raw mut (*self.state.as_ptr()).alive_ns).write_volatile(alive_ns) }
    }

    /// Runs a program over operations, which then hold their answers.
    fn run(&self, program: &str, operations: &mut [Operation]) -> Result<(), ScxError> {
        let mut programs = self.object.progs_mut();
        let program = programs.find(|found| found.name() == program).expect("it is in the object");
        for chunk in operations.chunks_mut(OPERATIONS_MAX) {
            let mut count = (chunk.len() as u64).to_ne_bytes();
            // SAFETY: there is room for that many operations, and nobody else uses it.
            unsafe {
                self.operations.as_ptr().copy_from_nonoverlapping(chunk.as_ptr(), chunk.len())
            };
            let input = ProgramInput { context_in: Some(&mut count), ..ProgramInput::default() };
            program.test_run(input).map_err(|error| failed("a program does not run", error))?;
            // SAFETY: as above; the program has ended.
            unsafe {
                self.operations.as_ptr().copy_to_nonoverlapping(chunk.as_mut_ptr(), chunk.len())
            };
        }
        Ok(())
    }
}

/// Writes what is constant to programs for one policy.
fn set_rules(open: &mut OpenObject, initial: &Sched) {
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let Some(value) = map.initial_value_mut() else { continue };
        // SAFETY: the types are those of the maps' values.
        unsafe {
            if name.ends_with(".rules") {
                value.as_mut_ptr().cast::<Rules>().write_unaligned(initial.rules);
            } else if name.ends_with(".track") {
                value.as_mut_ptr().cast::<u32>().write_unaligned(initial.tracking);
            } else if name.ends_with(".smt") {
                value.as_mut_ptr().cast::<u32>().write_unaligned(initial.has_smt);
            } else if name.ends_with(".record") {
                let records = u32::from(initial.records_max > 0);
                value.as_mut_ptr().cast::<u32>().write_unaligned(records);
            }
        }
    }
}

/// Whether it is one of the programs in `bpf/blame.h`.
fn watches_futexes(program: &std::ffi::OsStr) -> bool {
    program.to_string_lossy().starts_with("ampsched_futex")
}

fn open(programs: &[u8]) -> Result<OpenObject, ScxError> {
    ObjectBuilder::default()
        .open_memory(programs)
        .map_err(|error| failed("libbpf cannot read the programs", error))
}

impl Kernel {
    /// Loads the scheduler and switches the tasks of its scope over to it. If the policy blames, threads are charged
    /// for the time that others wait for them at futexes ([`Thread::blame_ns`]). What it decides is written to a file
    /// if one has been begun, for which the empty system has room.
    ///
    /// # Errors
    ///
    /// The kernel has no sched_ext, already runs another scheduler, refuses the programs, or this process may not load
    /// them.
    pub fn load(
        initial: &Sched,
        rules: &ampsched_policy::Rules,
        options: &Options,
        blames: bool,
        recording: Option<Begun>,
    ) -> Result<Self, ScxError> {
        if !Path::new("/sys/kernel/sched_ext").exists() {
            return Err(ScxError::NoSchedExt);
        }
        let mut open = open(&SCHEDULER.0)?;
        let settings = settings(rules, options, blames)?;
        set_rules(&mut open, initial);
        for mut map in open.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            let Some(value) = map.initial_value_mut() else { continue };
            // SAFETY: the types are those of the maps' values; libbpf aligns them.
            unsafe {
                if name.ends_with(".setting") || name.ends_with(".settings") {
                    assert!(value.len() <= size_of::<Settings>(), "settings as in scheduler.bpf.c");
                    let from = (&raw const settings).cast::<u8>();
                    value.as_mut_ptr().copy_from_nonoverlapping(from, value.len());
                } else if name == "ampsched_ops" {
                    let ops = &mut *value.as_mut_ptr().cast::<Ops>();
                    ops.timeout_ms = options.timeout_ms;
                    ops.hotplug_seq = options.hotplug_seq;
                    ops.flags |= if options.scope == Scope::Chosen { SWITCH_PARTIAL } else { 0 };
                }
            }
        }
        for mut program in open.progs_mut().filter(|program| watches_futexes(program.name())) {
            program.set_autoload(blames);
        }
        let mut shared = Shared::load(open, initial)?;
        // SAFETY: mapped as long as `shared` is there, which is dropped later.
        let recording = recording.map(|begun| unsafe { Writer::start(shared.state, begun) });
        let recording =
            recording.transpose().map_err(|error| failed("nobody can record", error))?;
        let mut links = Vec::new();
        if blames {
            for program in
                shared.object.progs_mut().filter(|program| watches_futexes(program.name()))
            {
                let link = program.attach_trace();
                links.push(link.map_err(|error| failed("futexes cannot be watched", error))?);
            }
        }
        let mut maps = shared.object.maps_mut();
        let mut ops = maps.find(|map| map.name() == "ampsched_ops").expect("it is in the object");
        let link = ops
            .attach_struct_ops()
            .map_err(|error| failed("the kernel refuses the scheduler", error))?;
        drop(maps);
        links.push(link);
        let latencies = Latencies::of(&shared.object)?;
        let changes = Changes::new(IN_TURN);
        Ok(Self { _links: links, latencies, _recording: recording, shared, changes })
    }

    /// Carries out changes of the plan; those for threads that have ended are left out.
    ///
    /// # Errors
    ///
    /// The kernel does not run the program.
    pub fn apply(&mut self, operations: &mut [Operation]) -> Result<(), ScxError> {
        self.shared.run("apply", operations)
    }

    /// Tells the scheduler that the slow plane is alive.
    pub fn sign_of_life(&mut self) {
        self.shared.set_alive_ns(monotonic_ns());
    }

    /// The threads that have changed ([`Changes::read`]). The kernel goes on meanwhile.
    pub fn read_changed(&mut self, changed: &mut Vec<(u32, Thread)>) {
        // SAFETY: mapped as long as the object is, written in `load`, and nobody else here uses it.
        unsafe { self.changes.read(self.shared.state, changed) };
    }

    /// What cores and queues do. The kernel goes on meanwhile.
    pub fn read_cores(&self, cores: &mut Cores) {
        // SAFETY: as in `read_changed`.
        unsafe { cores.read(self.shared.state) };
    }

    /// Wake-up latencies since the last call; those that found no room are missing ([`Kernel::latencies_lost`]).
    pub fn read_latencies(&mut self, latencies: &mut Vec<Latency>) {
        latencies.clear();
        self.latencies.ring.consume_raw();
        latencies.extend(self.latencies.read.try_iter());
    }

    /// How many wake-up latencies found no room.
    pub fn latencies_lost(&self) -> u64 {
        let all = self.shared.object.maps();
        let map = all.into_iter().find(|map| map.name().to_string_lossy().ends_with(".lost"));
        let value = map.and_then(|map| map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok()?);
        let word = value.as_deref().and_then(|value| value.first_chunk());
        word.map_or(0, |word| u64::from_ne_bytes(*word))
    }

    /// Why the scheduler has ended; none while it runs.
    pub fn exit(&self) -> Option<Exit> {
        let map =
            self.shared.object.maps().find(|map| map.name().to_string_lossy().ends_with(".report"));
        let value = map?.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok()??;
        assert!(value.len() >= size_of::<Report>(), "a report as in scheduler.bpf.c");
        // SAFETY: long enough, and every pattern of bits is a `Report`.
        let report = unsafe { value.as_ptr().cast::<Report>().read_unaligned() };
        (report.exit_kind != 0).then(|| Exit {
            kind: report.exit_kind,
            code: report.exit_code,
            reason: text(&report.reason),
            message: text(&report.message),
        })
    }
}

/// Text up to the first zero byte.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Time between two looks at idle cores and balance: the policy's period of balancing, at most one tick at 250 Hz.
const LOOK_NS: u64 = 4_000_000;

fn settings(
    rules: &ampsched_policy::Rules,
    options: &Options,
    blames: bool,
) -> Result<Settings, ScxError> {
    let core_of_cpu = lower::core_of_cpu(&options.cpus)?;
    let mut cpu_of_core = [0; CORES_MAX];
    for (slot, &cpu) in cpu_of_core.iter_mut().zip(&options.cpus) {
        *slot = cpu as u16;
    }
    Ok(Settings {
        timer_period_ns: rules.balance.map_or(LOOK_NS, |balance| balance.period_ns.min(LOOK_NS)),
        epoch_limit_ns: options.epoch_limit_ns,
        cpu_of_core,
        core_of_cpu,
        weight_of_nice: std::array::from_fn(|index| nice_to_weight(index as i32 - 20)),
        blames: blames.into(),
        // Chosen threads are scheduled, whichever process has chosen them.
        session: if options.scope != Scope::Chosen { std::process::id() } else { 0 },
    })
}

/// Threads for which an arena has room.
pub fn threads_in_arena() -> u32 {
    let records_bytes = recording::ROOM as usize * size_of::<Record>() + PAGE;
    table::threads_within(ARENA_BYTES_MAX - OPERATIONS_BYTES - records_bytes)
}

/// CLOCK_MONOTONIC in ns, which BPF programs read, too.
pub fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes a timespec.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// How often CPUs have come or gone (`/sys/kernel/sched_ext/hotplug_seq`); 0 if the kernel does not say so.
pub fn hotplug_seq() -> u64 {
    let text = fs::read_to_string("/sys/kernel/sched_ext/hotplug_seq").unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// `enabled`, `disabled` or what else the kernel says about its sched_ext scheduler; none without sched_ext.
pub fn kernel_state() -> Option<String> {
    let text = fs::read_to_string("/sys/kernel/sched_ext/state").ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests;
