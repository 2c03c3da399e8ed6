//! What has happened: the books follow.

use ampsched_model::ThreadId;
use ampsched_policy::{
    Change, ChangeKind, Choice, EnqueueKind, Prefer, RunState, SPEED_ONE, Source,
};

use super::{Checked, Place, Replay, Slot, core_number, same};
use crate::record::{Kind, Record};

fn run_state(number: u8) -> RunState {
    RunState::from_number(number.into(), &mut Source::defaults())
}

fn preference(number: u64) -> Prefer {
    Prefer::from_number(number as u32, &mut Source::defaults())
}

impl Replay {
    pub(super) fn happen(&mut self, kind: Kind, record: &Record) -> Checked {
        match kind {
            Kind::Cores => self.note_word(record),
            Kind::Add => self.add(record),
            Kind::Enqueue => self.enqueue(record),
            Kind::Start => self.start(record),
            Kind::Charge => self.charge(record),
            Kind::Stop => self.stop(record),
            Kind::Dequeue => self.dequeue(record),
            Kind::Leave => self.leave(record),
            Kind::Out => {
                let thread = self.thread_in(record.thread(), Place::Out)?;
                self.rust.set_aside(thread, record.now_ns);
                Ok(())
            }
            Kind::UserAffinity => self.restrict_user(record),
            Kind::Change => self.change(record),
            Kind::Pace => {
                let core = self.core(record.core())?;
                let whole = self.rust.util_max(core);
                self.rust.set_pace(core, record.value as u32, whole, record.now_ns);
                Ok(())
            }
            Kind::Bind => {
                self.slot_mut(record.thread())?.bound_to = core_number(record.core());
                self.note_reserved(record.thread())
            }
            Kind::PullTo => {
                self.slot_mut(record.thread())?.pull_to = core_number(record.core());
                self.note_reserved(record.thread())
            }
            _ => Err("it says nothing of what has happened".to_owned()),
        }
    }

    fn note_reserved(&mut self, slot: u32) -> Checked {
        let own = self.slot(slot)?;
        if own.bound_to.is_some() || own.pull_to.is_some() {
            self.reserved.insert(slot);
        } else {
            self.reserved.remove(&slot);
        }
        Ok(())
    }

    fn note_word(&mut self, record: &Record) -> Checked {
        let words = &mut self.sets.entry(record.thread()).or_default().words;
        let word = words.get_mut(usize::from(record.core())).ok_or("there is no such word")?;
        *word = record.value;
        Ok(())
    }

    fn add(&mut self, record: &Record) -> Checked {
        let slot = record.thread();
        if self.slots.contains_key(&slot) {
            let before = self.rust.thread(ThreadId(slot)).state;
            same("the slot's last thread", RunState::Exited, before)?;
        }
        let cores = self.take_set(slot)?;
        let thread = ThreadId(slot);
        self.rust.add_as(thread, record.value as u32, Some(&cores));
        let new = Slot { thread, place: Place::Out, bound_to: None, pull_to: None };
        self.slots.insert(slot, new);
        self.note_reserved(slot)
    }

    fn moved(&mut self, record: &Record, thread: ThreadId, place: Place) -> Checked {
        self.slot_mut(record.thread())?.place = place;
        same("virtual run time", record.value, self.rust.thread(thread).vruntime)
    }

    fn enqueue(&mut self, record: &Record) -> Checked {
        let thread = self.thread_in(record.thread(), Place::Out)?;
        let kind = EnqueueKind::from_number(record.flag().into(), &mut Source::defaults());
        self.rust.enqueue(thread, self.core(record.core())?, kind, record.now_ns);
        self.moved(record, thread, Place::Waits)
    }

    fn start(&mut self, record: &Record) -> Checked {
        let thread = self.thread_in(record.thread(), Place::Waits)?;
        let core = self.core(record.core())?;
        same("thread on the core", None, self.rust.core(core).running)?;
        let chosen = self.chosen[core.index()].take() == Some(record.thread());
        *(if chosen { &mut self.tally.chosen } else { &mut self.tally.put }) += 1;
        self.rust.start(core, thread, record.now_ns);
        self.moved(record, thread, Place::Runs)
    }

    /// The thread that runs on the record's core.
    fn running(&self, record: &Record) -> Result<ThreadId, String> {
        let thread = self.thread_in(record.thread(), Place::Runs)?;
        let core = self.core(record.core())?;
        same("thread on the core", Some(thread), self.rust.core(core).running)?;
        Ok(thread)
    }

    fn charge(&mut self, record: &Record) -> Checked {
        self.running(record)?;
        self.rust.charge(self.core(record.core())?, record.value, 0);
        Ok(())
    }

    fn stop(&mut self, record: &Record) -> Checked {
        let thread = self.running(record)?;
        let core = self.core(record.core())?;
        self.rust.stop(core, run_state(record.flag()), record.now_ns);
        self.moved(record, thread, Place::Out)
    }

    fn dequeue(&mut self, record: &Record) -> Checked {
        let thread = self.thread_in(record.thread(), Place::Waits)?;
        self.rust.dequeue(thread);
        self.slot_mut(record.thread())?.place = Place::Out;
        Ok(())
    }

    fn leave(&mut self, record: &Record) -> Checked {
        let thread = self.thread_in(record.thread(), Place::Out)?;
        match run_state(record.flag()) {
            RunState::Ready => self.rust.set_aside(thread, record.now_ns),
            RunState::Blocked => self.rust.block(thread, record.now_ns),
            RunState::Held => self.rust.hold(thread, record.now_ns),
            RunState::Exited => self.rust.retire(thread, record.now_ns),
            other => return Err(format!("nobody leaves for {other:?}")),
        }
        self.moved(record, thread, Place::Out)
    }

    fn restrict_user(&mut self, record: &Record) -> Checked {
        let cores = self.take_set(record.thread())?;
        let thread = self.slot(record.thread())?.thread;
        let moves = self.rust.restrict_user(thread, &cores).moves;
        same("whether it must be moved", record.flag() != 0, moves)
    }

    fn change(&mut self, record: &Record) -> Checked {
        let thread = self.slot(record.thread())?.thread;
        let [kind, class] = record.core().to_le_bytes().map(usize::from);
        let kind = ChangeKind::ALL.get(kind).copied().ok_or("there is no such change")?;
        let change = match kind {
            ChangeKind::Affinity => Change::Affinity(self.take_set(record.thread())?),
            ChangeKind::Prefer => Change::Prefer(preference(record.value)),
            ChangeKind::Move => Change::Move(preference(record.value)),
            ChangeKind::Rank => Change::Rank(record.value),
            ChangeKind::Weight => Change::Weight(record.value as u32),
            ChangeKind::Speed => {
                let mut speeds = self.rust.plan(thread).speed;
                *speeds.get_mut(class).ok_or("there is no such class")? = record.value as u16;
                Change::Speed(speeds.map(|speed| f64::from(speed) / f64::from(SPEED_ONE)))
            }
            ChangeKind::Slice => Change::Slice(record.value),
            ChangeKind::Hold => Change::Hold(record.value != 0),
        };
        let moves = self.rust.apply(thread, &change).moves;
        same("whether it must be moved", record.flag() != 0, moves)
    }
}
