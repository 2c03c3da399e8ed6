//! The plan carried out, and held to the policy's contract.

use ampsched_model::{CoreSet, ThreadId};

use super::{RunState, Sched};
use crate::plan::to_fixed;
use crate::words::Contract;
use crate::{Change, Needs, Order, Plan, Prefer, Refusal};

/// What a change of the plan has brought about; nothing if it was so before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// The thread is on a core, or in the queue of a core, that it may not use, or held back though it need
    /// not be, or runnable though it is held back: the host must move it.
    pub moves: bool,
    /// Idle cores may be allowed to take the thread now: the host must let them look.
    pub opens: bool,
}

impl Sched {
    /// Serves a policy with these needs: tracks load as they say, shows it what they name and nothing else, and
    /// holds it to its contract ([`Sched::check`]).
    ///
    /// # Errors
    ///
    /// One of its rules reads what its needs do not name.
    pub fn serve(&mut self, needs: &Needs) -> Result<(), Refusal> {
        self.needs = *needs;
        self.contract = Some(Contract::new(needs, &self.rules)?);
        if let Some(how) = needs.load_tracking {
            self.track_load(how);
        }
        Ok(())
    }

    /// What the policy's needs name.
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// Whether the policy may ask for all of a plan.
    ///
    /// # Errors
    ///
    /// A change that none of its rules reads, or that its needs do not name.
    pub fn check(&self, plan: &Plan) -> Result<(), Refusal> {
        self.contract.map_or(Ok(()), |contract| contract.check(plan))
    }

    /// Carries out a change of the plan. What holds already is left alone. For a thread that is of a class above the
    /// policy's now the plan is kept for the time when it comes back.
    pub fn apply(&mut self, thread: ThreadId, change: &Change) -> Effect {
        let effect = self.carry_out(thread, change);
        if self.is_above(thread) { Effect::default() } else { effect }
    }

    fn carry_out(&mut self, thread: ThreadId, change: &Change) -> Effect {
        let index = thread.index();
        match change {
            Change::Affinity(set) => {
                let user = self.plans[index].user_affinity;
                let affinity = self.affinities.restrict(set, user);
                let is_new =
                    std::mem::replace(&mut self.plans[index].affinity, affinity) != affinity;
                Effect { moves: is_new && self.is_misplaced(thread), opens: is_new }
            }
            Change::Prefer(prefer) => Effect { opens: self.prefer(thread, *prefer), moves: false },
            Change::Move(prefer) => {
                let opens = self.prefer(thread, *prefer);
                Effect { moves: self.is_on_wrong_kind(thread), opens }
            }
            Change::Rank(rank) => {
                self.plans[index].rank = *rank;
                Effect::default()
            }
            Change::Weight(weight) => {
                self.reweigh(thread, (*weight).max(1));
                Effect::default()
            }
            Change::Speed(speed) => {
                let speed = speed.map(to_fixed);
                let is_new = std::mem::replace(&mut self.plans[index].speed, speed) != speed;
                if is_new {
                    self.begin_turn_anew(thread);
                }
                Effect { moves: false, opens: is_new }
            }
            Change::Slice(slice_ns) => {
                self.plans[index].slice_ns = *slice_ns;
                Effect::default()
            }
            Change::Hold(held) => {
                self.plans[index].held = *held;
                let state = self.thread(thread).state;
                let moves = if *held { state.is_runnable() } else { state == RunState::Held };
                Effect { moves, opens: false }
            }
        }
    }

    /// Returns whether that is another preference than before.
    fn prefer(&mut self, thread: ThreadId, prefer: Prefer) -> bool {
        std::mem::replace(&mut self.plans[thread.index()].prefer, prefer) != prefer
    }

    /// The pace at which a thread is charged changes: what it has run so far has been charged for.
    fn begin_turn_anew(&mut self, thread: ThreadId) {
        let core = self.threads[thread.index()].core;
        let cpu = &mut self.cores[core.index()];
        if cpu.running == Some(thread) {
            (cpu.turn_ns, cpu.turn_virtual_ns) = (0, 0);
        }
    }

    /// The program itself says which cores its thread may use. What the plan said of that is void.
    pub fn restrict_user(&mut self, thread: ThreadId, set: &CoreSet) -> Effect {
        let id = self.affinities.intern(set);
        let plan = &mut self.plans[thread.index()];
        plan.user_affinity = id;
        let is_new = std::mem::replace(&mut plan.affinity, id) != id;
        Effect { moves: self.is_misplaced(thread), opens: is_new }
    }

    fn is_misplaced(&self, thread: ThreadId) -> bool {
        let state = self.thread(thread);
        state.state.is_runnable() && !state.is_above && !self.allows(thread, state.core)
    }

    /// Whether a runnable thread is on a core of a kind that it does not prefer, though it may use one
    /// that it does.
    fn is_on_wrong_kind(&self, thread: ThreadId) -> bool {
        let state = self.thread(thread);
        state.state.is_runnable()
            && !self.is_preferred(thread, state.core)
            && self.may_use_preferred(thread)
    }

    fn reweigh(&mut self, thread: ThreadId, weight: u32) {
        let old = std::mem::replace(&mut self.plans[thread.index()].weight, weight);
        if old == weight {
            return;
        }
        self.begin_turn_anew(thread);
        let state = &self.threads[thread.index()];
        if state.state.is_runnable() && !state.is_aside {
            self.serial += 1;
            let vruntime = i128::from(state.vruntime);
            let queue = &mut self.queues[usize::from(self.cores[state.core.index()].queue)];
            queue.load = queue.load - u64::from(old) + u64::from(weight);
            if self.rules.order == Order::Deadline {
                queue.weighted_vruntime += (i128::from(weight) - i128::from(old)) * vruntime;
            }
        }
    }
}
