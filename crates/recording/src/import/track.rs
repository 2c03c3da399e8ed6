//! What is known of one of a trace's threads.

use super::event::{Ask, Left, NO_PRIO, Name};
use super::mostly::Mostly;
use super::stream::SPEED_UNITS;
use crate::model::IO_STORAGE;
use crate::{Event, Kind, Wake};

/// One of a trace's threads, with all that it did.
#[derive(Clone, Debug, Default)]
pub struct Track {
    /// Its number in the kernel that was traced.
    pub tid: u32,
    /// Its last name.
    pub name: Name,
    /// All names that it had.
    pub names: Vec<Name>,
    /// The thread that created it.
    pub parent: Option<u32>,
    /// When the window began that has found it there.
    pub since_ns: Option<u64>,
    /// Its process, if it was found there.
    pub process: Option<u32>,
    /// Whether it is of the process of the thread that created it, if known.
    pub is_thread: Option<bool>,
    /// Whether it has executed a program, which makes it a process.
    pub has_executed: bool,
    /// The file that it has executed last.
    pub executed: Option<Name>,
    /// What it did. Objects of [`Kind::Wake`], [`Kind::Create`] and [`Kind::Join`], the thread in `aux` of a block and
    /// of a start are indices of tracks.
    pub events: Vec<Event>,
    /// All its CPU time so far, in ns.
    pub cpu_ns: u64,
    /// CPU time behind the last event, in ns.
    pub rest_cpu_ns: u64,
    /// The same, weighted by speed: ns times [`SPEED_UNITS`].
    pub rest_work: u128,
    /// When it was seen last, in the trace's ns.
    pub last_ns: u64,
    /// Events of it that did not fit those before.
    pub misfits: u64,
    /// Switches from an idle core to it that were not told.
    pub unseen: u64,
    /// Whether it has ended.
    pub has_ended: bool,
    /// Whether it has lost its core since its last event.
    pub is_preempted: bool,
    /// Since when and where it runs.
    pub running: Option<(u64, u16)>,
    /// Since when it is blocked, and how it left its core.
    pub blocked: Option<(u64, Left)>,
    /// What has woken it, and when, since it left its core.
    pub waker: Option<(Wake, u64)>,
    /// The call that may wait in which it is.
    pub call: Option<Call>,
    /// Its priority, see [`super::event::prio`].
    pub prio: Mostly<u8>,
    /// The CPUs that it may use, a bit each, where events tell them.
    pub cpus: Mostly<u32>,
    /// Its utilisation clamps, where events tell them.
    pub clamps: Mostly<(u16, u16)>,
    /// Groups to which it was moved, by the kernel's number of the hierarchy.
    pub groups: Vec<(u32, Mostly<Name>)>,
    /// Whether it has begun to end.
    pub is_exiting: bool,
    /// Where it was last.
    pub core: Option<u16>,
    /// Threads that it has woken outside of futex calls since it was blocked last, or began to end.
    pub woke: Vec<u32>,
    /// The same, before it began to end: kernels before 6.16 wake whoever joins a thread at that point.
    pub woke_before: Vec<u32>,
    /// The thread for whose end it waits, if that is known before it goes on.
    pub joins: Option<u32>,
}

/// A call that may wait.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The futex's address, if it is one's.
    pub futex: Option<u64>,
    /// How many events its thread had when it called.
    pub first: usize,
}

impl Track {
    /// Adds CPU time on a core of that speed.
    pub fn use_cpu(&mut self, ns: u64, speed: u64) {
        self.cpu_ns = self.cpu_ns.saturating_add(ns);
        self.rest_cpu_ns = self.rest_cpu_ns.saturating_add(ns);
        self.rest_work = self.rest_work.saturating_add(u128::from(ns) * u128::from(speed));
    }

    /// It asks for something from now on.
    pub fn asks(&mut self, ask: Ask) {
        let cpu_ns = self.cpu_ns;
        match ask {
            Ask::Priority(NO_PRIO) => {}
            Ask::Priority(prio) => self.prio.set(prio, cpu_ns),
            Ask::Cpus(cpus) => self.cpus.set(cpus, cpu_ns),
            Ask::Clamps(min, max) => self.clamps.set((min, max), cpu_ns),
            Ask::Group { hierarchy, path } => {
                let known = self.groups.iter().position(|(known, _)| *known == hierarchy);
                let place = known.unwrap_or_else(|| {
                    self.groups.push((hierarchy, Mostly::default()));
                    self.groups.len() - 1
                });
                self.groups[place].1.set(path, cpu_ns);
            }
        }
    }

    /// The priority under which it had most CPU time, if any was told, and whether it ran under others, too.
    pub fn main_prio(&self) -> (Option<u8>, bool) {
        let (main, has_others) = self.prio.main(self.cpu_ns, true);
        (main.filter(|_| self.cpu_ns > 0), has_others)
    }

    /// The kernel tells why it is blocked.
    pub fn blocked_because(&mut self, is_storage: bool) {
        if let Some((_, left)) = &mut self.blocked {
            *left = if is_storage { Left::WaitsForStorage } else { Left::WaitsInKernel };
        }
    }

    /// Its begin, if it has not begun.
    pub fn start(&mut self, at_ns: u64, core: u16) {
        self.core = Some(core);
        if self.events.is_empty() {
            let aux = self.parent.map_or(0, |parent| parent + 1);
            self.note(Kind::Start, self.since_ns.unwrap_or(at_ns), core).aux = aux;
        }
    }

    /// It is woken. If it was there before the window and has not run in it, it has been blocked since before.
    pub fn wake(&mut self, waker: Wake, at_ns: u64) {
        self.last_ns = self.last_ns.max(at_ns);
        self.waker = Some((waker, at_ns));
        if let Some(since_ns) = self.since_ns.filter(|_| self.events.is_empty()) {
            self.blocked.get_or_insert((since_ns, Left::Sleeps));
        }
    }

    /// Adds an event that takes along the CPU time since the last one.
    pub fn note(&mut self, kind: Kind, at_ns: u64, core: u16) -> &mut Event {
        let last_ns = self.events.last().map_or(0, |event| event.at_ns);
        let work_ns = self.rest_work / u128::from(SPEED_UNITS);
        self.rest_work %= u128::from(SPEED_UNITS);
        self.events.push(Event {
            kind,
            is_blocked: false,
            is_preempted: std::mem::take(&mut self.is_preempted),
            core,
            object: 0,
            aux: 0,
            at_ns: at_ns.max(last_ns),
            cpu_ns: std::mem::take(&mut self.rest_cpu_ns),
            work_ns: u64::try_from(work_ns).unwrap_or(u64::MAX),
            wait_ns: 0,
        });
        self.events.last_mut().expect("one was added")
    }

    /// It has a core from a time on; if it was blocked, it is no more.
    pub fn arrive(&mut self, at_ns: u64, core: u16) {
        self.start(at_ns, core);
        self.running = Some((at_ns, core));
        self.core = Some(core);
        let waker = self.waker.take();
        if let Some((since_ns, left)) = self.blocked.take() {
            self.unblock(at_ns, core, since_ns, left, waker);
        }
    }

    fn unblock(
        &mut self,
        at_ns: u64,
        core: u16,
        since_ns: u64,
        left: Left,
        waker: Option<(Wake, u64)>,
    ) {
        let (wake, until_ns) = waker.unwrap_or((Wake::Unknown, at_ns));
        let joined = self.joins.take().filter(|&ended| wake == Wake::Thread(ended));
        let futex = self.call.and_then(|call| call.futex).map_or(0, hash);
        let is_device = match left {
            Left::WaitsForStorage => true,
            Left::WaitsForDevice => wake == Wake::Outside,
            _ => false,
        };
        let (kind, object, aux) = match joined {
            Some(ended) => (Kind::Join, ended, 0),
            None if is_device => (Kind::Io, 0, IO_STORAGE),
            None => (Kind::Block, futex, wake.to_aux()),
        };
        let event = self.note(kind, at_ns, core);
        event.is_blocked = true;
        event.wait_ns = until_ns.saturating_sub(since_ns);
        event.object = object;
        event.aux = aux;
    }
}

/// An address as the number of an object: not 0, and different for addresses that are near each other.
fn hash(address: u64) -> u32 {
    let mixed = address.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 32) as u32).max(1)
}
