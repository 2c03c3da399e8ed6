//! How threads are scheduled: policy, priority, deadline parameters, slices, clamps, groups.

use super::ast::{Attrs, Change, Global, Policy, Repeat};
use super::global::policy;
use super::read::{Entry, Field};
use crate::attrs::path_flaw;
use crate::reader::{Spot, quoted};
use crate::{CLAMP_MAX, InputError, Ns, SchedClass, clamp_slice};

/// Keys that this reads, of a thread or a phase.
pub(super) const KEYS: [&str; 9] = [
    "policy",
    "priority",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "dl-reclaim",
    "util_min",
    "util_max",
    "taskgroup",
];
/// Priority of real-time threads that state none, as in rt-app.
const PRIORITY: u8 = 10;
/// Greatest number that rt-app reads.
const INT_MAX: i64 = i32::MAX as i64;
/// Nanoseconds per microsecond.
const NS_PER_US: Ns = 1000;

/// What a thread or a phase says of its scheduling, before it is known what it means: that depends on the policy.
#[derive(Clone, Default)]
pub(super) struct Draft<'a> {
    policy: Option<Policy>,
    priority: Option<Field<'a>>,
    /// Runtime, period, deadline.
    deadline: [Option<Field<'a>>; 3],
    uclamp: [Option<u16>; 2],
    group: Option<(String, Spot)>,
}

impl<'a> Draft<'a> {
    /// Reads a member if it is one of [`KEYS`]; the answer is whether it is.
    pub fn read(&mut self, member: &Entry<'a>) -> Result<bool, InputError> {
        match member.key {
            "policy" => self.policy = Some(policy(&member.field()?)?),
            "priority" => self.priority = Some(member.field()?),
            "dl-runtime" => self.deadline[0] = Some(member.field()?),
            "dl-period" => self.deadline[1] = Some(member.field()?),
            "dl-deadline" => self.deadline[2] = Some(member.field()?),
            "dl-reclaim" => refuse_reclaiming(&member.field()?)?,
            "util_min" => self.uclamp[0] = clamp(&member.field()?)?,
            "util_max" => self.uclamp[1] = clamp(&member.field()?)?,
            "taskgroup" => self.group = group(&member.field()?)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What a thread starts with.
    pub fn thread(&self, global: &Global, spot: &Spot) -> Result<(Policy, Attrs), InputError> {
        let policy = self.policy.or(global.default_policy).unwrap_or(Policy::Other);
        let class = self.class(policy, spot)?;
        let attrs = Attrs {
            class,
            nice: self.nice(policy)?.unwrap_or(0),
            slice_ns: self.slice_ns(policy)?,
            uclamp: self.uclamp,
            group: self.group.as_ref().map(|(path, _)| path.clone()),
        };
        self.refuse_group(policy)?;
        Ok((policy, attrs))
    }

    /// What a phase changes, if the thread has that policy before it, and the policy from then on.
    pub fn phase(&self, before: Policy, spot: &Spot) -> Result<(Policy, Change), InputError> {
        let policy = self.policy.unwrap_or(before);
        let mut change = Change {
            uclamp: self.uclamp,
            group: self.group.as_ref().map(|(path, _)| path.clone()),
            ..Change::default()
        };
        self.refuse_group(policy)?;
        let sets = self.policy.is_some() || self.depends();
        if sets {
            let is_fair = matches!(policy, Policy::Other | Policy::Idle | Policy::Batch);
            change.class = Some(self.class(policy, spot)?);
            // A policy without priority sets nice 0, and no slice is the usual one: rt-app sets both at once.
            let nice = self.nice(policy)?.or(self.policy.is_some().then_some(0));
            change.nice = nice.filter(|_| is_fair);
            change.slice_ns = Some(self.slice_ns(policy)?).filter(|_| is_fair);
        }
        Ok((policy, change))
    }

    /// Whether it says something whose meaning depends on a policy that stands elsewhere.
    fn depends(&self) -> bool {
        self.priority.is_some() || self.deadline.iter().any(Option::is_some)
    }

    fn class(&self, policy: Policy, spot: &Spot) -> Result<SchedClass, InputError> {
        let priority = || match &self.priority {
            None => Ok(PRIORITY),
            Some(field) => field.whole(1..=99).map(|priority| priority as u8),
        };
        Ok(match policy {
            Policy::Other => SchedClass::Fair,
            Policy::Batch => SchedClass::Batch,
            Policy::Idle => SchedClass::Idle,
            Policy::Fifo => SchedClass::Fifo { priority: priority()? },
            Policy::RoundRobin => SchedClass::RoundRobin { priority: priority()? },
            Policy::Deadline => return self.deadline(spot),
        })
    }

    /// The period is the runtime if it is not stated, the deadline the period.
    fn deadline(&self, spot: &Spot) -> Result<SchedClass, InputError> {
        if let Some(priority) = &self.priority {
            priority.whole(0..=0)?;
        }
        let [Some(runtime), period, deadline] = &self.deadline else {
            return Err(spot
                .error("SCHED_DEADLINE needs a budget")
                .with_hint("such as \"dl-runtime\" : 10000, \"dl-period\" : 100000 (us)"));
        };
        let ns = |field: &Field| field.whole(1..=INT_MAX).map(|us| us as Ns * NS_PER_US);
        let runtime_ns = ns(runtime)?;
        let period_ns = period.as_ref().map_or(Ok(runtime_ns), ns)?;
        let deadline_ns = deadline.as_ref().map_or(Ok(period_ns), ns)?;
        let class = SchedClass::Deadline { runtime_ns, deadline_ns, period_ns };
        match class.flaw() {
            None => Ok(class),
            Some(flaw) => Err(runtime.spot.error(flaw)),
        }
    }

    /// The nice value of a fair thread.
    fn nice(&self, policy: Policy) -> Result<Option<i8>, InputError> {
        if !matches!(policy, Policy::Other | Policy::Idle | Policy::Batch) {
            return Ok(None);
        }
        self.priority.as_ref().map(|field| field.whole(-20..=19).map(|nice| nice as i8)).transpose()
    }

    /// The slice of a fair thread, which is how the kernel reads its runtime; 0: the usual one.
    fn slice_ns(&self, policy: Policy) -> Result<Ns, InputError> {
        if policy == Policy::Deadline {
            return Ok(0);
        }
        let [runtime, period, deadline] = &self.deadline;
        let is_fair = matches!(policy, Policy::Other | Policy::Batch);
        let rows = [
            (
                runtime.as_ref().filter(|_| !is_fair),
                "SCHED_DEADLINE, SCHED_OTHER and SCHED_BATCH do",
            ),
            (period.as_ref().or(deadline.as_ref()), "SCHED_DEADLINE does"),
        ];
        for (field, who) in rows {
            if let Some(field) = field {
                let message = format!("{} does not read it, only {who}", policy.name());
                return Err(field.spot.error(message).with_hint("remove the key"));
            }
        }
        let us = runtime.as_ref().map_or(Ok(0), |field| field.whole(0..=INT_MAX))?;
        Ok(clamp_slice(us as Ns * NS_PER_US))
    }

    /// rt-app refuses groups for threads that are not fair.
    fn refuse_group(&self, policy: Policy) -> Result<(), InputError> {
        match &self.group {
            Some((path, spot))
                if !matches!(policy, Policy::Other | Policy::Idle | Policy::Batch) =>
            {
                let name = policy.name();
                let message = format!("{}: threads of {name} are in no group", quoted(path));
                Err(spot.error(message).with_hint("rt-app refuses it, too: remove the key"))
            }
            _ => Ok(()),
        }
    }
}

/// What the phases of a thread change, one after the other; `thread` is the policy with which it starts.
///
/// A phase that states no policy keeps that before it. If all phases are repeated, what it says must mean the same in
/// every round.
pub(super) fn phases(
    drafts: &[(Draft<'_>, Spot)],
    thread: Policy,
    repeat: Repeat,
) -> Result<Vec<Change>, InputError> {
    let mut policy = thread;
    let mut changes = Vec::with_capacity(drafts.len());
    for (draft, spot) in drafts {
        let (next, change) = draft.phase(policy, spot)?;
        policy = next;
        changes.push(change);
    }
    let keeps = drafts.iter().take_while(|(draft, _)| draft.policy.is_none());
    if repeat.is_loop() && policy != thread {
        for (draft, spot) in keeps {
            if draft.depends() || draft.group.is_some() {
                let (one, other) = (thread.name(), policy.name());
                let message = format!(
                    "has {one} in the first round and {other} in others, for which its keys mean something else"
                );
                return Err(spot.error(message).with_hint("state \"policy\" in this phase"));
            }
        }
    }
    Ok(changes)
}

/// What others leave of their budgets is nobody's.
fn refuse_reclaiming(field: &Field) -> Result<(), InputError> {
    if !field.boolean()? {
        return Ok(());
    }
    let error = field.spot.error("reclaiming of unused budgets (GRUB) is not simulated");
    Err(error.with_hint("set it to false"))
}

/// A clamp; -1 is none.
fn clamp(field: &Field) -> Result<Option<u16>, InputError> {
    let value = field.whole(-1..=CLAMP_MAX.into())?;
    Ok(u16::try_from(value).ok())
}

/// A group's path; the empty one says nothing.
fn group(field: &Field) -> Result<Option<(String, Spot)>, InputError> {
    let path = field.text()?;
    if path.is_empty() {
        return Ok(None);
    }
    match path_flaw(path) {
        None => Ok(Some((path.to_owned(), field.spot.clone()))),
        Some(flaw) => Err(field.spot.error(format!("{}: {flaw}", quoted(path)))),
    }
}
