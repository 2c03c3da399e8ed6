//! Has the interpreter in Rust decide what the one in C has recorded.
//!
//! Records are carried out in the order of their numbers. All that was decided with locks must be the same: who comes
//! first in a queue, who interrupts whom, when turns end, whether a core may take or pull the thread that it has
//! found, what a change of the plan moves; and with each thread that is queued, starts or stops its virtual run time.
//! What was found without locks (where a thread shall go, what other queues have for an idle core) must be the same if
//! nothing changed while it was looked for; if something did, or a queue was passed over because another CPU held its
//! lock, only what came of it is compared, which was decided with locks. What balancing finds is not compared, only
//! whether what it moved could be moved.

mod books;
mod decisions;
mod events;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ampsched_model::{CoreId, CoreSet, Ns, ThreadId};
use ampsched_policy::{Allocator, LoadTracking, Pick, Rules, Sched, Topology};

use crate::layout::Set;
use crate::record::{Kind, NO_CORE, Record};

/// A record that the interpreter in Rust does not agree with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record {index}, {kind:?}: {why}")]
pub struct Unexplained {
    /// Its place in the recording.
    pub index: usize,
    /// What it is of.
    pub kind: Option<Kind>,
    /// What does not agree.
    pub why: String,
}

/// What a recording holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Records by what they are of.
    pub records: BTreeMap<Kind, u64>,
    /// Looks without locks during which nothing changed: they were compared.
    pub looks_compared: u64,
    /// Looks during which something did.
    pub looks_overtaken: u64,
    /// Of these and of those during which nothing did: looks that passed over a queue because it was locked. They are
    /// not compared either.
    pub looks_that_passed: u64,
    /// Threads that started as their core had chosen, or the one that had pulled them.
    pub chosen: u64,
    /// Threads that the kernel put on a core by itself.
    pub put: u64,
    /// The longest times that cores idled though their rules let them run a thread that waited.
    pub idled: Vec<Idled>,
}

/// A time in which a core idled though its rules let it run a thread that waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Idled {
    /// How long, in ns.
    pub ns: Ns,
    /// When it began.
    pub since_ns: Ns,
    /// The core.
    pub core: CoreId,
    /// The slot of the thread that it could have run at first.
    pub slot: u32,
}

/// Where a thread is: in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Out,
    Waits,
    Runs,
}

/// A thread, as the interpreter in C knows it by its slot.
#[derive(Clone, Debug)]
struct Slot {
    thread: ThreadId,
    place: Place,
    /// The only core that may pick it; none if all may.
    bound_to: Option<u16>,
    /// The core that has chosen to pull it.
    pull_to: Option<u16>,
}

/// A recording that is carried out.
#[derive(Clone, Debug)]
pub struct Replay {
    rust: Sched,
    slots: BTreeMap<u32, Slot>,
    /// Slots of threads that not every core may pick.
    reserved: BTreeSet<u32>,
    /// Sets of cores that records to come speak of.
    sets: BTreeMap<u32, Set>,
    /// The thread that each core has chosen last.
    chosen: Vec<Option<u32>>,
    /// Since when each core has idled although a thread could run there.
    in_vain: Vec<Option<Idled>>,
    /// Whether a task that is not ours runs on each core.
    others: Vec<bool>,
    /// Whether it is known where the allocator's turn stands, by preference.
    turns_known: [bool; 3],
    now_ns: Ns,
    tally: Tally,
}

type Checked = Result<(), String>;

/// An error unless two things are the same.
fn same<T: PartialEq + fmt::Debug>(what: &str, recorded: T, ours: T) -> Checked {
    if recorded == ours {
        return Ok(());
    }
    Err(format!("{what}: recorded is {recorded:?}, the interpreter in Rust says {ours:?}"))
}

impl Replay {
    /// Before the first record of a system without threads.
    pub fn new(topology: Topology, rules: Rules, tracking: Option<LoadTracking>) -> Self {
        let cores = topology.core_count();
        let mut rust = Sched::new(topology, rules);
        if let Some(how) = tracking {
            rust.track_load(how);
        }
        Self {
            rust,
            slots: BTreeMap::new(),
            reserved: BTreeSet::new(),
            sets: BTreeMap::new(),
            chosen: vec![None; cores],
            in_vain: vec![None; cores],
            others: vec![false; cores],
            turns_known: [true; 3],
            now_ns: 0,
            tally: Tally::default(),
        }
    }

    /// Carries out records, which are in order.
    ///
    /// # Errors
    ///
    /// The first that does not agree.
    pub fn run(&mut self, records: &[Record]) -> Result<(), Unexplained> {
        let mut begun_later = begun_later(records, self.takes_turns());
        for (index, record) in records.iter().enumerate() {
            let is_overtaken = self.is_overtaken(records, index, begun_later.pop());
            self.carry_out(record, is_overtaken).map_err(|why| Unexplained {
                index,
                kind: record.kind(),
                why: format!("{why} ({record:?})"),
            })?;
        }
        Ok(())
    }

    /// What the records held so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Whether places that are chosen depend on those before.
    fn takes_turns(&self) -> bool {
        self.rust.rules().allocator == Allocator::RoundRobinInClass
    }

    /// Whether something changed while a look lasted. `begun_later`: the least that records after it begun with.
    fn is_overtaken(&self, records: &[Record], index: usize, begun_later: Option<u64>) -> bool {
        let record = &records[index];
        if !record.kind().is_some_and(Kind::looks) {
            return false;
        }
        let takes_turns = self.takes_turns();
        let during = records[..index].iter().rev().take_while(|other| other.number > record.begun);
        let done = during.filter(|other| writes(other, takes_turns)).count() > 0;
        done || begun_later.is_some_and(|begun| begun < record.number)
    }

    fn carry_out(&mut self, record: &Record, is_overtaken: bool) -> Checked {
        let kind = record.kind().ok_or("there is no such record")?;
        *self.tally.records.entry(kind).or_default() += 1;
        self.now_ns = self.now_ns.max(record.now_ns);
        if kind.looks() {
            let has_passed = record.passed_over();
            let tally = &mut self.tally;
            tally.looks_that_passed += u64::from(has_passed);
            tally.looks_overtaken += u64::from(is_overtaken);
            tally.looks_compared += u64::from(!is_overtaken && !has_passed);
            self.look(kind, record, is_overtaken || has_passed)
        } else if kind == Kind::Others {
            let core = self.core(record.core())?;
            self.others[core.index()] = record.flag() != 0;
            self.watch_idle_cores();
            Ok(())
        } else if kind.changes() || kind == Kind::Cores {
            self.happen(kind, record)?;
            self.watch_idle_cores();
            Ok(())
        } else {
            self.decide(kind, record)
        }
    }

    /// Notes which cores idle though their rules let them run a thread that waits, and that they may pick.
    fn watch_idle_cores(&mut self) {
        for core in 0..self.rust.topology().core_count() {
            let core = CoreId::from(core);
            let is_idle = self.rust.core(core).running.is_none() && !self.others[core.index()];
            let is_idle = is_idle && self.rust.waiting_count() > 0;
            let now_ns = self.now_ns;
            let pick = is_idle.then(|| self.ask(core, |rust| rust.pick_by_rules(core, now_ns)));
            let since = self.in_vain[core.index()].take();
            self.in_vain[core.index()] = match (pick, since) {
                (Some(Pick::Run(_)), Some(since)) => Some(since),
                (Some(Pick::Run(thread)), None) => {
                    let slot = thread.0;
                    Some(Idled { ns: 0, since_ns: self.now_ns, core, slot })
                }
                (_, Some(since)) => {
                    let ns = self.now_ns - since.since_ns;
                    note_idled(&mut self.tally.idled, Idled { ns, ..since });
                    None
                }
                (_, None) => None,
            };
        }
    }

    fn slot(&self, slot: u32) -> Result<&Slot, String> {
        self.slots.get(&slot).ok_or_else(|| format!("slot {slot} has never been given out"))
    }

    fn slot_mut(&mut self, slot: u32) -> Result<&mut Slot, String> {
        self.slots.get_mut(&slot).ok_or_else(|| format!("slot {slot} has never been given out"))
    }

    /// The thread in a slot, which is in a place.
    fn thread_in(&self, slot: u32, place: Place) -> Result<ThreadId, String> {
        let found = self.slot(slot)?;
        match found.place == place {
            true => Ok(found.thread),
            false => Err(format!("thread in slot {slot}: {:?} instead of {place:?}", found.place)),
        }
    }

    /// The set of which a record of a thread speaks.
    fn take_set(&mut self, slot: u32) -> Result<CoreSet, String> {
        let set = self.sets.remove(&slot).ok_or("it has no set of cores")?;
        Ok(set.cores().collect())
    }

    fn core(&self, core: u16) -> Result<CoreId, String> {
        match usize::from(core) < self.rust.topology().core_count() {
            true => Ok(CoreId(core)),
            false => Err(format!("there is no core {core}")),
        }
    }
}

/// Keeps the longest ones.
fn note_idled(longest: &mut Vec<Idled>, idled: Idled) {
    const KEPT: usize = 5;
    let at = longest.partition_point(|other| other.ns >= idled.ns);
    if at < KEPT {
        longest.insert(at, idled);
        longest.truncate(KEPT);
    }
}

/// A core's number as records have it.
fn core_number(core: u16) -> Option<u16> {
    (core != NO_CORE).then_some(core)
}

fn writes(record: &Record, takes_turns: bool) -> bool {
    record.kind().is_some_and(|kind| kind.changes() || (takes_turns && kind == Kind::Place))
}

/// The least that those records begun with which come after each record and change something; the last one first.
fn begun_later(records: &[Record], takes_turns: bool) -> Vec<u64> {
    let mut least = u64::MAX;
    let mut all = Vec::with_capacity(records.len());
    for record in records.iter().rev() {
        all.push(least);
        if writes(record, takes_turns) {
            least = least.min(record.begun);
        }
    }
    // The first record's comes off first.
    all
}
