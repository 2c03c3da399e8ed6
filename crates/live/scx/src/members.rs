//! The threads in the kernel's table: who they are, and what they have done since they were seen last.

use std::collections::{BTreeMap, VecDeque};

use ampsched_computer::Proc;
use ampsched_live_driver::{Decision, Observation};
use ampsched_live_session::{Scheduled, Session};
use ampsched_model::{AppId, CoreId, CoreSet, Ns, ThreadId};
use ampsched_policy::{ChangeKind, Choice, RunState, Source};

use crate::layout::{CHANGE, Operation, Thread};
use crate::lower;

/// How often the name and the group of a thread are read that goes on running the same program (ours).
const NAMES_NS: Ns = 1_000_000_000;
/// How often such a name is read at most, of all threads together (ours): it takes some us.
const NAME_NS: Ns = 2_500_000;
/// Names that are read at one look at most, after a long time without one (ours).
const NAMES_MAX: Ns = 100;

/// The time between two looks.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The kernel's time of the look before, in ns.
    pub from_ns: Ns,
    /// The kernel's time of this look, in ns.
    pub to_ns: Ns,
    /// The session's time of this look, in ns.
    pub now_ns: Ns,
}

/// Who has a slot, as long as nobody else gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    slot: u32,
    generation: u32,
}

/// A thread in a slot of the kernel's table.
struct Member {
    place: Place,
    thread: ThreadId,
    app: AppId,
    /// The process group that is its application.
    group: i32,
    tid: u32,
    process: u32,
    program: String,
    /// Its name, which it may change any time.
    name: String,
    /// Programs that its process had executed when `program` was looked up.
    execs: u32,
    /// When its name is to be read again if it has run, in the session's time.
    name_due_ns: Ns,
    /// The CPU on which it runs, waits or last ran.
    cpu: usize,
    seen: Counters,
    /// What the policy has decided of it, the last of each kind.
    plan: Vec<Operation>,
}

/// What the table says of what a thread does and has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    state: u32,
    core: u32,
    since_ns: Ns,
    run_ns: Ns,
    ready_ns: Ns,
    blame_ns: Ns,
}

impl Counters {
    fn of(seen: &Thread) -> Self {
        Self {
            state: seen.state,
            core: seen.core,
            since_ns: seen.since_ns,
            run_ns: seen.run_ns.iter().sum(),
            ready_ns: seen.ready_ns,
            blame_ns: seen.blame_ns,
        }
    }

    /// A thread that has not started yet is blocked until it is seen.
    fn run_state(&self) -> RunState {
        match RunState::from_number(self.state, &mut Source::defaults()) {
            RunState::New => RunState::Blocked,
            state => state,
        }
    }

    /// How long it has waited by then: the kernel counts a stay when it ends.
    fn waited_ns(&self, now_ns: Ns) -> Ns {
        match self.run_state() {
            RunState::Ready | RunState::Held => {
                self.ready_ns + now_ns.saturating_sub(self.since_ns)
            }
            _ => self.ready_ns,
        }
    }
}

impl Member {
    /// Notes a decision in place of the one before it.
    fn note(&mut self, operation: Operation) {
        let what = |one: &Operation| (plan_kind(one.kind), one.core);
        match self.plan.iter_mut().find(|noted| what(noted) == what(&operation)) {
            Some(noted) => *noted = operation,
            None => self.plan.push(operation),
        }
    }

    /// What has been decided, for a place.
    fn decided(&self, place: Place) -> impl Iterator<Item = Operation> {
        let Place { slot: thread, generation } = place;
        self.plan.iter().map(move |&operation| Operation { thread, generation, ..operation })
    }

    fn scheduled(&self) -> Scheduled<'_> {
        Scheduled {
            tid: self.tid as i32,
            pid: self.process as i32,
            thread: self.thread,
            app: self.app,
            program: &self.program,
            name: &self.name,
            cpu: self.cpu,
            blame_ns: Some(self.seen.blame_ns),
        }
    }

    /// Looks up its name and its application, which it may change any time.
    fn read_name(&mut self, session: &mut Session, proc: &Proc, now_ns: Ns) {
        self.name_due_ns = now_ns + NAMES_NS;
        let Ok(stat) = proc.stat(self.process as i32, self.tid as i32) else { return };
        self.name = stat.name;
        if self.group != stat.group {
            (self.group, self.app) = (stat.group, session.regroup(self.thread, stat.group));
        }
    }

    /// Looks up its program, too.
    fn identify(&mut self, session: &mut Session, proc: &Proc, execs: u32, now_ns: Ns) {
        self.read_name(session, proc, now_ns);
        let program = program(proc, self.process);
        match program.is_empty() {
            false => (self.execs, self.program) = (execs, program),
            // For a moment a process that executes a program has no command line; then it is asked again.
            true => self.name_due_ns = now_ns,
        }
    }

    /// What it does, and has used since the last look.
    fn observe(&mut self, session: &mut Session, seen: Counters, span: Span) -> Observation {
        let before = std::mem::replace(&mut self.seen, seen);
        let core = CoreId(seen.core as u16);
        self.cpu = session.cores.cpu(core);
        Observation {
            thread: self.thread,
            state: seen.run_state(),
            core,
            ran_ns: seen.run_ns.saturating_sub(before.run_ns),
            waited_ns: seen.waited_ns(span.to_ns).saturating_sub(before.waited_ns(span.from_ns)),
            instructions: session.count(self.tid as i32, core, span.now_ns),
            blame_ns: seen.blame_ns.saturating_sub(before.blame_ns),
        }
    }

    /// Its end, after which it is counted no longer.
    fn end(&self, session: &mut Session, now_ns: Ns) -> Observation {
        let tid = self.tid as i32;
        let core = session.driver.sched().thread(self.thread).core;
        let instructions = session.count(tid, core, now_ns);
        session.instruments.forget(tid);
        Observation {
            thread: self.thread,
            state: RunState::Exited,
            core,
            ran_ns: 0,
            waited_ns: 0,
            instructions,
            blame_ns: 0,
        }
    }
}

/// Preferences are set with a move or without.
fn plan_kind(kind: u32) -> u32 {
    match kind == CHANGE + ChangeKind::Move as u32 {
        true => CHANGE + ChangeKind::Prefer as u32,
        false => kind,
    }
}

/// All threads in the table.
#[derive(Default)]
pub struct Members {
    proc: Proc,
    by_slot: Vec<Option<Member>>,
    /// By the policy's number of a thread: the slot that it has or had.
    slots: Vec<u32>,
    /// Who was seen for the first time at the last look: who has just been forked soon gets a process group and a
    /// program.
    newcomers: Vec<Place>,
    /// Whose names are to be read, in the order in which that became due.
    unread: VecDeque<Place>,
    /// Slots of threads that changed at the last observation.
    changed: Vec<u32>,
    /// By their numbers: those of a table that is gone, who may be in the new one.
    before: BTreeMap<u32, Member>,
    /// What has been decided of them and is to be carried out there.
    again: Vec<Operation>,
}

impl Members {
    /// All.
    pub fn all(&self) -> impl Iterator<Item = Scheduled<'_>> {
        self.by_slot.iter().flatten().map(Member::scheduled)
    }

    /// Threads that changed at the last observation.
    pub fn changed(&self) -> impl Iterator<Item = Scheduled<'_>> {
        let member = |&slot: &u32| self.by_slot[slot as usize].as_ref();
        self.changed.iter().filter_map(member).map(Member::scheduled)
    }

    /// The thread in a slot.
    pub fn thread_in(&self, slot: u32) -> Option<ThreadId> {
        self.by_slot.get(slot as usize)?.as_ref().map(|member| member.thread)
    }

    /// There is a new table. Who is in it at the next look is who it was.
    pub fn begin_anew(&mut self) {
        let all = std::mem::take(&mut self.by_slot).into_iter().flatten();
        self.before.extend(all.map(|member| (member.tid, member)));
        self.newcomers.clear();
        self.unread.clear();
        self.changed.clear();
    }

    /// What threads have done that have changed since the last look, by their slots. New ones are made known to the
    /// session; those that have ended are told once. Thousands may be new, of each of whom files are read: for each
    /// there is a sign of life.
    pub fn look(
        &mut self,
        session: &mut Session,
        changed: &[(u32, Thread)],
        span: Span,
        mut sign_of_life: impl FnMut(),
    ) -> Vec<Observation> {
        self.changed.clear();
        let newcomers = std::mem::take(&mut self.newcomers);
        let mut observations = Vec::with_capacity(changed.len());
        for (slot, seen) in changed {
            if self.look_at(session, *slot, seen, span, &mut observations) {
                sign_of_life();
            }
        }
        for (_, gone) in std::mem::take(&mut self.before) {
            observations.push(gone.end(session, span.now_ns));
        }
        for place in newcomers {
            sign_of_life();
            let Some(member) = member_at(&mut self.by_slot, place) else { continue };
            member.identify(session, &self.proc, member.execs, span.now_ns);
            self.changed.push(place.slot);
        }
        self.read_names(session, span.now_ns);
        observations
    }

    /// Returns whether there was a new one.
    fn look_at(
        &mut self,
        session: &mut Session,
        slot: u32,
        seen: &Thread,
        span: Span,
        observations: &mut Vec<Observation>,
    ) -> bool {
        let (index, place) = (slot as usize, Place { slot, generation: seen.generation });
        if self.by_slot.len() <= index {
            self.by_slot.resize_with(index + 1, || None);
        }
        let is_other = |member: &mut Member| seen.in_use == 0 || member.place != place;
        if let Some(gone) = self.by_slot[index].take_if(is_other) {
            observations.push(gone.end(session, span.now_ns));
        }
        // Without numbers it is just coming.
        if seen.in_use == 0 || seen.pid == 0 || seen.process == 0 {
            return false;
        }
        let counters = Counters::of(seen);
        let is_new = self.by_slot[index].is_none();
        if is_new {
            let again = self.recognise(place, seen);
            let member = again.unwrap_or_else(|| self.welcome(session, place, seen, span.now_ns));
            self.by_slot[index] = Some(member);
            self.newcomers.push(place);
        }
        let member = self.by_slot[index].as_mut().expect("it is known or welcome");
        let has_executed = member.execs != seen.execs;
        if has_executed {
            member.identify(session, &self.proc, seen.execs, span.now_ns);
        } else if member.name_due_ns <= span.now_ns {
            member.name_due_ns = Ns::MAX;
            self.unread.push_back(place);
        }
        let has_changed = is_new || member.seen != counters;
        if has_changed {
            observations.push(member.observe(session, counters, span));
        }
        if has_changed || has_executed {
            self.changed.push(slot);
        }
        is_new
    }

    /// Reads names that are due, as many as there is time for.
    fn read_names(&mut self, session: &mut Session, now_ns: Ns) {
        let elapsed_ns = now_ns.saturating_sub(session.looked_ns());
        for _ in 0..(elapsed_ns / NAME_NS).clamp(1, NAMES_MAX) {
            let Some(place) = self.unread.pop_front() else { return };
            let Some(member) = member_at(&mut self.by_slot, place) else { continue };
            match member.program.is_empty() {
                true => member.identify(session, &self.proc, member.execs, now_ns),
                false => member.read_name(session, &self.proc, now_ns),
            }
            self.changed.push(place.slot);
        }
    }

    /// Who was in the table before.
    fn recognise(&mut self, place: Place, seen: &Thread) -> Option<Member> {
        let member = self.before.remove(&seen.pid)?;
        self.slots[member.thread.index()] = place.slot;
        self.again.extend(member.decided(place));
        Some(Member { place, execs: seen.execs, seen: Counters::default(), ..member })
    }

    fn welcome(
        &mut self,
        session: &mut Session,
        place: Place,
        seen: &Thread,
        now_ns: Ns,
    ) -> Member {
        let pid = seen.process as i32;
        let stat = self.proc.stat(pid, seen.pid as i32).ok();
        let group = stat.as_ref().map_or(pid, |stat| stat.group);
        let allowed: CoreSet = seen.allowed.cores().collect();
        let (thread, app) = session.add(seen.pid as i32, group, seen.weight, &allowed, now_ns);
        if self.slots.len() <= thread.index() {
            self.slots.resize(thread.index() + 1, u32::MAX);
        }
        self.slots[thread.index()] = place.slot;
        Member {
            place,
            thread,
            app,
            group,
            tid: seen.pid,
            process: seen.process,
            program: program(&self.proc, seen.process),
            name: stat.map_or_else(String::new, |stat| stat.name),
            execs: seen.execs,
            name_due_ns: now_ns + NAMES_NS,
            cpu: 0,
            seen: Counters::default(),
            plan: Vec::new(),
        }
    }

    /// Decisions as operations of the kernel's interpreter, behind what was decided of those who have come again. Those
    /// of threads that have ended are left out.
    pub fn operations(&mut self, decisions: &[Decision]) -> Vec<Operation> {
        let mut operations = std::mem::take(&mut self.again);
        for decision in decisions {
            let Decision::Thread(thread, change) = decision else { continue };
            let Some(place) = self.place_of(*thread) else { continue };
            let Some(member) = member_at(&mut self.by_slot, place) else { continue };
            for operation in lower::change(place.slot, change) {
                member.note(operation);
                operations.push(Operation { generation: place.generation, ..operation });
            }
        }
        operations
    }

    fn place_of(&self, thread: ThreadId) -> Option<Place> {
        let slot = *self.slots.get(thread.index())?;
        let member = self.by_slot.get(slot as usize)?.as_ref()?;
        (member.thread == thread).then_some(member.place)
    }
}

/// Who has a place still.
fn member_at(by_slot: &mut [Option<Member>], place: Place) -> Option<&mut Member> {
    by_slot[place.slot as usize].as_mut().filter(|member| member.place == place)
}

/// The last part of the path of the program that a process executes, as it was started.
fn program(proc: &Proc, process: u32) -> String {
    let command = proc.command(process as i32);
    let path = command.first().map_or("", String::as_str);
    path.rsplit('/').next().unwrap_or(path).to_owned()
}
