//! The `tasks` object: threads and their phases.

use std::collections::{BTreeMap, BTreeSet};

use super::ast::{Attrs, Change, Event, Global, Phase, Repeat, Task};
use super::events::{self, EVENTS};
use super::read::{Entry, Field, refuse_second, unknown_key};
use super::sched;
use crate::limits::{CORES_MAX, THREADS_MAX};
use crate::reader::{Spot, quoted};
use crate::{CoreId, CoreSet, InputError};

/// Largest number that rt-app reads.
const INT_MAX: i64 = i32::MAX as i64;

/// Keys that only a thread may have.
const THREAD_KEYS: [&str; 3] = ["instance", "delay", "phases"];
/// Keys that a thread and a phase may have, beside those of scheduling.
const PHASE_KEYS: [&str; 2] = ["loop", "cpus"];
/// Keys that ask for what a simulation does not do, with what that is and what to do instead.
const NOT_SIMULATED: [(&str, &str, &str); 3] = [
    (
        "memrun",
        "patterns of memory accesses, newer than rt-app 1.0, are not simulated",
        "use \"mem\"",
    ),
    ("nodes_membind", "binding of memory to NUMA nodes is not simulated", "remove the key"),
    ("membind_nodes", "binding of memory to NUMA nodes is not simulated", "remove the key"),
];
/// Keys of the grammar that rt-app had before phases and events.
const OLD_KEYS: [&str; 5] = ["exec", "period", "deadline", "lock_order", "resources"];

/// Reads `tasks`; the answer has at least one task. Repeated keys are noted in `notes`.
pub(super) fn tasks(
    field: &Field,
    global: &Global,
    notes: &mut Vec<String>,
) -> Result<Vec<Task>, InputError> {
    let entries = field.entries()?;
    if entries.is_empty() {
        return Err(field.spot.error("has no thread, at least 1 is needed"));
    }
    let mut reader = Reader { global, repeated: None };
    let mut names = Names::default();
    let mut tasks = Vec::new();
    let mut threads = 0;
    for entry in &entries {
        let mut task = reader.task(entry)?;
        threads += i64::from(task.instances);
        if threads > THREADS_MAX {
            return Err(task.spot.error(format!("more than {THREADS_MAX} threads in one file")));
        }
        task.name = names.unique(entry.key);
        reader.see(task.name == entry.key, &entry.spot);
        tasks.push(task);
    }
    if let Some(line) = reader.repeated {
        notes.push(format!(
            "keys that repeat in one object, first in line {line}, are all executed in order, as behind workgen; rt-app by itself keeps the last"
        ));
    }
    Ok(tasks)
}

/// Names given so far.
#[derive(Default)]
struct Names {
    taken: BTreeSet<String>,
    /// Last number that was appended to a name.
    last: BTreeMap<String, u32>,
}

impl Names {
    /// The name, or the name and the first number that makes it unique, as workgen does.
    fn unique(&mut self, name: &str) -> String {
        let mut unique = name.to_owned();
        while !self.taken.insert(unique.clone()) {
            let last = self.last.entry(name.to_owned()).or_default();
            *last += 1;
            unique = format!("{name}{last}");
        }
        unique
    }
}

/// Reads tasks and remembers where a key first repeated.
struct Reader<'g> {
    global: &'g Global,
    repeated: Option<usize>,
}

impl Reader<'_> {
    fn see(&mut self, is_new: bool, spot: &Spot) {
        if !is_new && self.repeated.is_none() {
            self.repeated = Some(spot.line);
        }
    }

    fn task(&mut self, entry: &Entry) -> Result<Task, InputError> {
        let field = entry.field()?;
        let entries = field.entries()?;
        if entry.key.is_empty() {
            return Err(entry.spot.error("a thread needs a name"));
        }
        let has_phases = entries.iter().any(|entry| entry.key == "phases");
        let mut draft = Draft::default();
        let mut phases = Vec::new();
        let mut task = Task {
            name: entry.key.to_owned(),
            spot: entry.spot.clone(),
            instances: 1,
            delay: None,
            attrs: Attrs::default(),
            cpus: None,
            repeat: Repeat::Forever,
            phases: Vec::new(),
        };
        for (index, member) in entries.iter().enumerate() {
            if events::base(member.key).is_some() {
                if has_phases {
                    return Err(event_beside_phases(member));
                }
                self.event(&mut draft, member, entry.key)?;
                continue;
            }
            refuse_second(&entries[..index], member)?;
            match member.key {
                "instance" => task.instances = member.field()?.whole(0..=THREADS_MAX)? as u32,
                "delay" => {
                    let delay_us = member.field()?.whole(0..=INT_MAX)? as u32;
                    task.delay = Some((delay_us, member.spot.clone()));
                }
                "phases" => (task.phases, phases) = self.phases(&member.field()?, entry.key)?,
                _ => draft.property(&field.spot, member, &THREAD_KEYS)?,
            }
        }
        let (policy, attrs) = draft.sched.thread(self.global, &entry.spot)?;
        task.attrs = attrs;
        task.cpus = draft.cpus.take();
        task.repeat = draft.repeat.unwrap_or(Repeat::Forever);
        if !has_phases {
            task.phases = vec![draft.into_phase(&entry.spot, Repeat::Times(1))?];
        }
        let changes = sched::phases(&phases, policy, task.repeat)?;
        for (phase, change) in task.phases.iter_mut().zip(changes) {
            phase.change = change;
        }
        Ok(task)
    }

    /// The phases, and what each says of its scheduling.
    fn phases<'a>(&mut self, field: &Field<'a>, task: &str) -> Result<Phases<'a>, InputError> {
        let entries = field.entries()?;
        if entries.is_empty() {
            return Err(field.spot.error("has no phase, at least 1 is needed"));
        }
        let mut names = BTreeSet::new();
        let (mut phases, mut drafts) = (Vec::new(), Vec::new());
        for entry in &entries {
            self.see(names.insert(entry.key), &entry.spot);
            let (phase, draft) = self.phase(entry, task)?;
            phases.push(phase);
            drafts.push((draft, entry.spot.clone()));
        }
        Ok((phases, drafts))
    }

    fn phase<'a>(
        &mut self,
        entry: &Entry<'a>,
        task: &str,
    ) -> Result<(Phase, sched::Draft<'a>), InputError> {
        let field = entry.field()?;
        let entries = field.entries()?;
        let mut draft = Draft::default();
        for (index, member) in entries.iter().enumerate() {
            if events::base(member.key).is_some() {
                self.event(&mut draft, member, task)?;
                continue;
            }
            refuse_second(&entries[..index], member)?;
            if THREAD_KEYS.contains(&member.key) {
                return Err(member
                    .spot
                    .error("belongs to the thread, a phase cannot have it")
                    .with_hint("move it beside \"phases\""));
            }
            draft.property(&field.spot, member, &[])?;
        }
        let repeat = draft.repeat.unwrap_or(Repeat::Times(1));
        let sched = std::mem::take(&mut draft.sched);
        Ok((draft.into_phase(&entry.spot, repeat)?, sched))
    }

    fn event<'a>(
        &mut self,
        draft: &mut Draft<'a>,
        member: &Entry<'a>,
        task: &str,
    ) -> Result<(), InputError> {
        self.see(draft.keys.insert(member.key), &member.spot);
        draft.events.push(events::event(member, task)?);
        Ok(())
    }
}

fn event_beside_phases(member: &Entry) -> InputError {
    member
        .spot
        .error("an event beside \"phases\", which rt-app would not execute")
        .with_hint("move it into a phase")
}

/// Phases, and what each says of its scheduling and where.
type Phases<'a> = (Vec<Phase>, Vec<(sched::Draft<'a>, Spot)>);

/// What is known of a thread or a phase while its members are read.
#[derive(Default)]
struct Draft<'a> {
    repeat: Option<Repeat>,
    cpus: Option<CoreSet>,
    sched: sched::Draft<'a>,
    events: Vec<Event>,
    /// Keys of the events.
    keys: BTreeSet<&'a str>,
}

impl<'a> Draft<'a> {
    /// Reads a member that is no event; `more` are keys beside the common ones that it may have.
    fn property(
        &mut self,
        parent: &Spot,
        member: &Entry<'a>,
        more: &[&'static str],
    ) -> Result<(), InputError> {
        match member.key {
            "loop" => self.repeat = Some(repeat(&member.field()?)?),
            "cpus" => self.cpus = Some(cpus(&member.field()?)?),
            _ if self.sched.read(member)? => {}
            _ => return Err(refused_key(parent, member, more)),
        }
        Ok(())
    }

    fn into_phase(self, spot: &Spot, repeat: Repeat) -> Result<Phase, InputError> {
        if self.events.is_empty() {
            return Err(spot
                .error("has no event, at least 1 is needed")
                .with_hint(format!("events: {}", EVENTS.join(", "))));
        }
        let change = Change::default();
        Ok(Phase { spot: spot.clone(), repeat, cpus: self.cpus, change, events: self.events })
    }
}

/// The error about a key that is no event and no property.
fn refused_key(parent: &Spot, member: &Entry, more: &[&'static str]) -> InputError {
    let key = member.key;
    let plain = key.trim_end_matches(|c: char| c.is_ascii_digit());
    if let Some((_, what, hint)) = NOT_SIMULATED.iter().find(|(name, ..)| *name == plain) {
        return member.spot.error(*what).with_hint(*hint);
    }
    if OLD_KEYS.contains(&key) {
        let error = member.spot.error("a key of old rt-app versions that 1.0 no longer reads");
        return error.with_hint("write events instead: run, lock, unlock, timer");
    }
    if let Some(event) = EVENTS.iter().find(|event| key.starts_with(**event)) {
        let error = Spot { line: member.spot.line, ..parent.clone() }
            .error(format!("unknown key {}", quoted(key)));
        return error.with_hint(format!("events are named {event}, {event}1, {event}2, ..."));
    }
    let known: Vec<&str> =
        more.iter().chain(&PHASE_KEYS).chain(&sched::KEYS).chain(&EVENTS).copied().collect();
    unknown_key(parent, member, &known)
}

fn repeat(field: &Field) -> Result<Repeat, InputError> {
    match field.whole(-1..=INT_MAX)? {
        -1 => Ok(Repeat::Forever),
        0 => {
            Err(field.spot.error("0 is out of range, -1 (for ever) or 1 to 2147483647 is allowed"))
        }
        times => Ok(Repeat::Times(times as u32)),
    }
}

fn cpus(field: &Field) -> Result<CoreSet, InputError> {
    let cpus = field.list()?;
    if cpus.is_empty() {
        return Err(field.spot.error("names no CPU, at least 1 is needed"));
    }
    cpus.iter().map(|cpu| cpu.whole(0..=CORES_MAX - 1).map(|cpu| CoreId(cpu as u16))).collect()
}
