//! What threads ask for beside affinity: weight, class, slice, clamps, group; and which of it the policy honours.

use ampsched_model::{AppId, CLAMP_MAX, Op, SchedAttrs, SchedClass, TaskGroup, ThreadId};
use ampsched_policy::{Change, GroupId, Sched, ThreadAttrs, WEIGHT_IDLE, nice_to_weight};

use super::steps::Step;
use super::{Engine, Fallible};
use crate::SimError;

/// Bits of what a thread has asked for.
const SLICE: u8 = 1;
const UCLAMP: u8 = 2;
const GROUP: u8 = 4;
const BATCH: u8 = 8;

/// Which threads have asked for what, for the result.
#[derive(Default)]
pub(super) struct Asked {
    /// By thread, once somebody asks for anything.
    bits: Vec<u8>,
    /// Threads whose recorded CPUs fit no cores of the machine.
    pub dropped_sets: usize,
}

impl Asked {
    #[inline]
    fn note(&mut self, sched: &Sched, thread: ThreadId, attrs: &ThreadAttrs) {
        if *attrs != ThreadAttrs::default() {
            self.note_bits(thread, attrs, is_clamped(sched, attrs.group));
        }
    }

    #[cold]
    fn note_bits(&mut self, thread: ThreadId, attrs: &ThreadAttrs, is_clamped: bool) {
        if self.bits.len() <= thread.index() {
            self.bits.resize(thread.index() + 1, 0);
        }
        let bit = |asks: bool, bit: u8| if asks { bit } else { 0 };
        self.bits[thread.index()] |= bit(attrs.slice_ns > 0, SLICE)
            | bit(is_clamped || attrs.uclamp_min.is_some() || attrs.uclamp_max.is_some(), UCLAMP)
            | bit(attrs.group != GroupId::ROOT, GROUP)
            | bit(matches!(attrs.class, SchedClass::Batch | SchedClass::Idle), BATCH);
    }

    /// Whether any thread has asked for anything.
    pub fn any(&self) -> bool {
        !self.bits.is_empty()
    }

    fn count(&self, bit: u8) -> usize {
        self.bits.iter().filter(|&&bits| bits & bit != 0).count()
    }

    /// What the policy does not honour of it, in a sentence for the user.
    pub fn caveat(&self, sched: &Sched, clamps_clocks: bool) -> Option<String> {
        let honours = sched.honours();
        let rows = [
            (SLICE, honours.slice, "a slice of their own"),
            (UCLAMP, honours.uclamp || clamps_clocks, "utilisation clamps"),
            (GROUP, honours.group, "a task group"),
            (BATCH, honours.batch, "class batch or idle"),
        ];
        let mut parts = Vec::new();
        for (bit, honoured, what) in rows {
            let count = self.count(bit);
            if count > 0 && !honoured {
                let threads = if count == 1 { "thread" } else { "threads" };
                parts.push(format!("{what} ({count} {threads})"));
            }
        }
        let unheard = (!parts.is_empty()).then(|| {
            format!("the policy does not honour what threads ask for: {}", parts.join(", "))
        });
        let threads = self.dropped_sets;
        let dropped = (threads > 0).then(|| {
            format!("{threads} threads use all cores: the machine has none that stand for their recorded CPUs")
        });
        let both: Vec<String> = unheard.into_iter().chain(dropped).collect();
        (!both.is_empty()).then(|| both.join("; "))
    }
}

/// Whether a group, or one above it, clamps its threads.
fn is_clamped(sched: &Sched, mut group: GroupId) -> bool {
    while group != GroupId::ROOT {
        let info = sched.group_info(group);
        if info.uclamp_min > 0 || info.uclamp_max < CLAMP_MAX {
            return true;
        }
        group = info.parent;
    }
    false
}

impl Engine<'_> {
    /// The groups of an application exist, with what its program states of them.
    ///
    /// Errors: two programs state different things of one group.
    pub(super) fn add_groups(&mut self, groups: &[TaskGroup]) -> Result<Vec<GroupId>, SimError> {
        let ids: Vec<GroupId> = groups.iter().map(|group| self.sched.group(&group.path)).collect();
        for (group, &id) in groups.iter().zip(&ids) {
            let stated = (group.shares, group.uclamp_min, group.uclamp_max);
            if stated == (None, None, None) {
                continue;
            }
            if let Some((_, other)) = self.stated_groups.iter().find(|(known, _)| *known == id) {
                if *other != stated {
                    return Err(SimError::GroupStatedTwice { group: group.path.clone() });
                }
                continue;
            }
            self.stated_groups.push((id, stated));
            let info = self.sched.group_mut(id);
            info.shares = group.shares.unwrap_or(info.shares);
            info.uclamp_min = group.uclamp_min.unwrap_or(info.uclamp_min);
            info.uclamp_max = group.uclamp_max.unwrap_or(info.uclamp_max);
        }
        Ok(ids)
    }

    fn group_of(&self, app: AppId, group: Option<u16>) -> GroupId {
        group.map_or(GroupId::ROOT, |group| self.apps[app].groups[usize::from(group)])
    }

    /// What a thread of an application states.
    pub(super) fn stated_attrs(&self, app: AppId, stated: &SchedAttrs) -> ThreadAttrs {
        ThreadAttrs {
            class: stated.class,
            slice_ns: stated.slice_ns,
            uclamp_min: stated.uclamp_min,
            uclamp_max: stated.uclamp_max,
            group: self.group_of(app, stated.group),
        }
    }

    /// A thread asks for that from now on.
    pub(super) fn set_attrs(&mut self, thread: ThreadId, attrs: ThreadAttrs) {
        self.asked.note(&self.sched, thread, &attrs);
        self.sched.set_attrs(thread, attrs);
    }

    /// A thread's weight follows from its nice value, to which its application's is added, and its class.
    pub(super) fn weigh(&mut self, thread: ThreadId) {
        let entry = &self.threads[thread];
        let nice = i32::from(entry.nice) + i32::from(self.apps[entry.app].nice);
        let weight = match self.sched.attrs(thread).class {
            SchedClass::Idle => WEIGHT_IDLE,
            _ => nice_to_weight(nice),
        };
        self.sched.apply(thread, &Change::Weight(weight));
    }

    /// A thread changes its slice, its clamps or its group.
    pub(super) fn change_attrs(&mut self, thread: ThreadId, op: &Op) -> Step {
        let app = self.threads[thread].app;
        let mut attrs = *self.sched.attrs(thread);
        match op {
            Op::SetSlice(slice_ns) => attrs.slice_ns = *slice_ns,
            Op::SetUclamp { min, max } => {
                attrs.uclamp_min = min.or(attrs.uclamp_min);
                attrs.uclamp_max = max.or(attrs.uclamp_max);
            }
            Op::SetGroup(group) => attrs.group = self.group_of(app, *group),
            _ => {}
        }
        self.set_attrs(thread, attrs);
        self.fast_changed(thread);
        self.threads[thread].next_step();
        Step::Go
    }

    /// Whether a thread of a class above has restricted itself to other cores than the one on which it runs.
    pub(super) fn leaves_above(&self, thread: ThreadId) -> Fallible<bool> {
        if !self.sched.is_above(thread) {
            return Ok(false);
        }
        let mut cores = self.sched.topology().cores();
        let is_bound = cores.any(|core| !self.sched.user_allows(thread, core));
        if is_bound && matches!(self.sched.attrs(thread).class, SchedClass::Deadline { .. }) {
            return Err(SimError::BoundDeadline { thread: self.thread_name(thread) }.into());
        }
        Ok(!self.sched.user_allows(thread, self.sched.thread(thread).core))
    }
}
