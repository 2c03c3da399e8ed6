//! What was decided, and found: the interpreter in Rust says the same.

use ampsched_model::{CoreId, CoreSet, ThreadId};
use ampsched_policy::{Change, Choice, Pick, Sched};

use super::{Checked, Place, Replay, core_number, same};
use crate::layout::{NEVER, NONE};
use crate::record::{Kind, Record};

/// `enum pick_kind`.
const RUN: u8 = 1;
const PULL: u8 = 2;

impl Replay {
    pub(super) fn decide(&mut self, kind: Kind, record: &Record) -> Checked {
        let core = self.core(record.core())?;
        match kind {
            Kind::First => {
                let first = self.ask(core, |rust| rust.first_waiting(core, record.now_ns));
                let first = first.map_or(NONE, |thread| thread.0);
                self.chosen[core.index()] = (first != NONE).then_some(first);
                same("who comes first", record.thread(), first)
            }
            Kind::Preempts => self.preempts(record, core),
            Kind::Expiry => {
                let end_ns = self.rust.expiry_ns(core, None, record.now_ns);
                same("the end of the turn", record.value, end_ns.unwrap_or(NEVER))
            }
            Kind::Take => {
                let takes = self.can_take(record, core)?;
                if takes {
                    self.chosen[core.index()] = Some(record.thread());
                }
                same("whether it can be taken", record.flag() != 0, takes)
            }
            Kind::Pull => {
                let pulls = self.can_pull(record, core)?;
                if pulls {
                    self.chosen[core.index()] = Some(record.thread());
                }
                same("whether it can be pulled", record.flag() != 0, pulls)
            }
            Kind::Move => {
                let moves = self.can_move(record, core)?;
                same("whether balancing moves it", record.flag() != 0, moves)
            }
            _ => Err("it says nothing of a decision".to_owned()),
        }
    }

    pub(super) fn look(&mut self, kind: Kind, record: &Record, is_overtaken: bool) -> Checked {
        match kind {
            Kind::Place => self.place(record, is_overtaken),
            _ if is_overtaken => Ok(()),
            _ => self.look_elsewhere(record),
        }
    }

    fn preempts(&mut self, record: &Record, core: CoreId) -> Checked {
        let woken = self.thread_in(record.thread(), Place::Waits)?;
        let running = self.rust.core(core).running.ok_or("nobody runs there")?;
        let preempts = self.ask(core, |rust| rust.preempts_by_rules(woken, running, core));
        same("whether it interrupts", record.flag() != 0, preempts)
    }

    /// Whether a thread waits in another queue, from which the core may take it.
    fn can_take(&self, record: &Record, core: CoreId) -> Result<bool, String> {
        let slot = self.slot(record.thread())?;
        let (thread, from) = (slot.thread, self.rust.thread(slot.thread).core);
        let prefers = u64::from(self.rust.plan(thread).prefer.number());
        Ok(slot.place == Place::Waits
            && !self.rust.share_queue(from, core)
            && self.can_spare(from)
            && self.rust.allows(thread, core)
            && prefers != record.value
            && slot.bound_to.is_none_or(|bound| bound == core.0))
    }

    fn can_spare(&self, core: CoreId) -> bool {
        let mut cores = self.rust.cores_of_queue(core);
        let runs = cores.any(|core| self.rust.core(core).running.is_some());
        self.rust.queue_len(core) + usize::from(runs) > 1
    }

    /// Whether a thread runs on a slower core, or on a shared one, from which the core may pull it.
    fn can_pull(&self, record: &Record, core: CoreId) -> Result<bool, String> {
        let slot = self.slot(record.thread())?;
        let (thread, from) = (slot.thread, self.rust.thread(slot.thread).core);
        let class = |core| self.rust.topology().core(core).class;
        Ok(slot.place == Place::Runs
            && slot.pull_to.is_none()
            && !self.rust.plan(thread).held
            && self.rust.allows(thread, core)
            && (class(from) < class(core)
                || (self.rust.shares_core(from) && !self.rust.shares_core(core))))
    }

    /// Whether a thread still waits where balancing has found it.
    fn can_move(&self, record: &Record, core: CoreId) -> Result<bool, String> {
        let slot = self.slot(record.thread())?;
        let (thread, source) = (slot.thread, self.core(record.value as u16)?);
        Ok(slot.place == Place::Waits
            && slot.bound_to.is_none()
            && self.rust.allows(thread, core)
            && self.rust.share_queue(self.rust.thread(thread).core, source))
    }

    /// Where a thread shall go. If something changed meanwhile, only the allocator's turn follows; where that stood is
    /// not known then, and told by the next place that is found.
    fn place(&mut self, record: &Record, is_overtaken: bool) -> Checked {
        let thread = self.slot(record.thread())?.thread;
        let core = self.core(record.value as u16)?;
        let prefer = self.rust.plan(thread).prefer;
        let waker = core_number(record.core()).map(CoreId);
        let is_known = std::mem::replace(&mut self.turns_known[prefer as usize], !is_overtaken);
        if is_overtaken {
            self.turns_known = [false; 3];
        } else if is_known || !self.takes_turns() {
            let place = self.rust.place_by_rules_near(thread, waker, record.now_ns);
            same("where it shall go", core, place)?;
        }
        self.rust.took_turn(prefer, core);
        Ok(())
    }

    fn look_elsewhere(&mut self, record: &Record) -> Checked {
        let core = self.core(record.core())?;
        let own = (record.value as u32 != NONE).then_some(record.value as u32);
        let own = own.map(|slot| self.slot(slot).map(|slot| slot.thread)).transpose()?;
        let pick = self.ask(core, |rust| rust.pick_from_others(core, own, record.now_ns));
        let (kind, thread) = match pick {
            Pick::Run(thread) => (RUN, Some(thread)),
            Pick::Pull(thread) => (PULL, Some(thread)),
            Pick::Idle { .. } => (0, None),
        };
        let slot = thread.map_or(NONE, |thread| thread.0);
        same("what others have for it", (record.flag(), record.thread()), (kind, slot))
    }

    /// Asks the interpreter on behalf of a core, for which threads do not exist that only others may pick.
    pub(super) fn ask<T>(&mut self, core: CoreId, question: impl FnOnce(&Sched) -> T) -> T {
        let is_hidden = |slot: &&u32| {
            let slot = &self.slots[slot];
            let elsewhere = slot.bound_to.is_some_and(|bound| bound != core.0);
            (slot.place == Place::Waits && elsewhere)
                || (slot.place == Place::Runs && slot.pull_to.is_some())
        };
        let hidden = self.reserved.iter().filter(is_hidden).map(|slot| self.slots[slot].thread);
        let hidden: Vec<(ThreadId, [CoreSet; 2])> =
            hidden.map(|thread| (thread, self.cores_of(thread))).collect();
        for (thread, _) in &hidden {
            self.rust.restrict_user(*thread, &CoreSet::default());
        }
        let answer = question(&self.rust);
        for (thread, [user, plan]) in hidden {
            self.rust.restrict_user(thread, &user);
            self.rust.apply(thread, &Change::Affinity(plan));
        }
        answer
    }

    /// The cores that its program, and the plan, let a thread use.
    fn cores_of(&self, thread: ThreadId) -> [CoreSet; 2] {
        let all = || self.rust.topology().cores();
        [
            all().filter(|&core| self.rust.user_allows(thread, core)).collect(),
            all().filter(|&core| self.rust.allows(thread, core)).collect(),
        ]
    }
}
