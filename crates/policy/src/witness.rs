//! Why the interpreter decides as it does, told by the code that decides.
//!
//! Each decision of [`Sched`](crate::Sched) takes a [`Witness`]. With [`NoWitness`] nothing of it is compiled; with a
//! [`Testimony`] the answer comes with its [`Reason`].

use std::cell::RefCell;
use std::fmt::Debug;

use ampsched_model::{CoreId, Ns, ThreadId};

use crate::{Change, Choice, Event, Factor, FactorKind, Factors, Prefer, Rules};

/// What decided: a part of [`Rules`], or something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DecidedBy {
    /// [`Rules::order`].
    Order,
    /// [`Rules::allocator`].
    Allocator,
    /// A step of [`Rules::steal`], numbered from 0.
    Steal(u8),
    /// [`Rules::slice`].
    Slice,
    /// [`Rules::preempt`].
    Preempt,
    /// [`Rules::balance`].
    Balance,
    /// [`Rules::balance_when`].
    BalanceWhen,
    /// The policy's slow plane, by a change of the plan.
    Plan,
    /// The policy's own code for one fast-plane decision ([`crate::Hooks`]).
    Hook,
    /// The thread's program.
    Program,
    /// The order of classes above the policy's: real-time and deadline threads.
    Class,
    /// The system itself, of whose own work policies know nothing.
    System,
}

impl DecidedBy {
    /// Who decided, in the vocabulary of the rules if they are known, such as `order: vruntime`.
    pub fn words(self, rules: Option<&Rules>) -> String {
        let name = match self {
            Self::Order => "order",
            Self::Allocator => "allocator",
            Self::Steal(_) => "steal",
            Self::Slice => "slice",
            Self::Preempt => "preempt",
            Self::Balance => "balance",
            Self::BalanceWhen => "balance_when",
            Self::Plan => "plan",
            Self::Hook => "the policy's own code",
            Self::Program => "program",
            Self::Class => "class",
            Self::System => "system",
        };
        let stated = rules.and_then(|rules| match self {
            Self::Order => Some(stated(&rules.order)),
            Self::Allocator => Some(stated(&rules.allocator)),
            Self::Steal(step) => rules.steal.get(usize::from(step)).map(|step| stated(&step.from)),
            Self::Slice => Some(stated(&rules.slice)),
            Self::Preempt => Some(stated(&rules.preempt)),
            Self::BalanceWhen => Some(stated(&rules.balance_when)),
            Self::Balance
            | Self::Plan
            | Self::Hook
            | Self::Program
            | Self::Class
            | Self::System => None,
        });
        // People count steps from 1.
        let step = match self {
            Self::Steal(step) => format!(" step {}", u16::from(step) + 1),
            _ => String::new(),
        };
        let stated = stated.map(|stated| format!(": {stated}")).unwrap_or_default();
        format!("{name}{step}{stated}")
    }
}

/// A word of the rules with the numbers that it carries.
fn stated<T: Choice + Debug>(choice: &T) -> String {
    let debug = format!("{choice:?}");
    let payload = debug.find(' ').map_or("", |at| &debug[at..]);
    format!("{}{payload}", choice.word().name)
}

/// A value that counted in a decision.
#[derive(Clone, Debug, PartialEq)]
pub enum ReasonValue {
    /// A time, or virtual run time, in ns.
    Ns(i64),
    /// A number of things, a load, a rank.
    Count(u64),
    /// A factor or ratio.
    Real(f64),
    /// A core.
    Core(CoreId),
    /// A thread.
    Thread(ThreadId),
    /// A word or a name.
    Word(String),
    /// A load for each of some cores.
    Loads(Vec<(CoreId, u64)>),
}

/// Why something was decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// Who decided.
    pub by: DecidedBy,
    /// The reason in plain words that hold for any thread; few different ones.
    pub because: &'static str,
    /// The values that counted, by name; the unit comes last in the name.
    pub values: Vec<(&'static str, ReasonValue)>,
}

impl Reason {
    /// A reason without values.
    pub fn new(by: DecidedBy, because: &'static str) -> Self {
        Self { by, because, values: Vec::new() }
    }

    /// The same with one value more.
    pub fn with(mut self, name: &'static str, value: ReasonValue) -> Self {
        self.values.push((name, value));
        self
    }

    /// The same with a time.
    pub fn ns(self, name: &'static str, ns: Ns) -> Self {
        self.with(name, ReasonValue::Ns(i64::try_from(ns).unwrap_or(i64::MAX)))
    }

    /// The same with the distance of one time from another.
    pub fn ns_from(self, name: &'static str, ns: i128, origin_ns: i128) -> Self {
        let limits = (i128::from(i64::MIN), i128::from(i64::MAX));
        self.with(name, ReasonValue::Ns((ns - origin_ns).clamp(limits.0, limits.1) as i64))
    }

    /// The same with a number.
    pub fn count(self, name: &'static str, count: impl Into<u64>) -> Self {
        self.with(name, ReasonValue::Count(count.into()))
    }

    /// The same with a core, if there is one.
    pub fn core(self, name: &'static str, core: impl Into<Option<CoreId>>) -> Self {
        match core.into() {
            Some(core) => self.with(name, ReasonValue::Core(core)),
            None => self,
        }
    }

    /// The same with a thread.
    pub fn thread(self, name: &'static str, thread: ThreadId) -> Self {
        self.with(name, ReasonValue::Thread(thread))
    }

    /// The same with a ratio.
    pub fn real(self, name: &'static str, value: f64) -> Self {
        self.with(name, ReasonValue::Real(value))
    }

    /// The same with a word.
    pub fn word(self, name: &'static str, word: impl Into<String>) -> Self {
        self.with(name, ReasonValue::Word(word.into()))
    }

    /// Why the slow plane changes the plan for a thread: after how many epochs, because of which event if not in
    /// an epoch, and what was known about the thread.
    pub fn of_plan(event: Option<Event>, epoch: u64, factors: &Factors, now_ns: Ns) -> Self {
        let reason = match event {
            None => Self::new(DecidedBy::Plan, "the policy looks at the system"),
            Some(event) => {
                let (word, thread) = match event {
                    Event::Added(thread) => ("added", thread),
                    Event::Woken(thread, _) => ("woken", thread),
                    Event::Blocked(thread) => ("blocked", thread),
                    Event::Started(thread, _) => ("started", thread),
                    Event::Stopped(thread, _) => ("stopped", thread),
                    Event::Exited(thread) => ("exited", thread),
                };
                Self::new(DecidedBy::Plan, "the policy reacts to an event")
                    .word("event", word)
                    .thread("event_thread", thread)
            }
        };
        reason.count("epoch", epoch).factors(factors, now_ns)
    }

    /// The same with what is known about a thread now: each factor with its kind and its age.
    fn factors(self, factors: &Factors, now_ns: Ns) -> Self {
        self.factor(["speedup", "speedup_kind", "speedup_age_ns"], &factors.speedup, now_ns)
            .factor(
                ["offline_speedup", "offline_speedup_kind", "offline_speedup_age_ns"],
                &factors.offline_speedup,
                now_ns,
            )
            .factor(["blame_ns", "blame_kind", "blame_age_ns"], &factors.blame_ns, now_ns)
            .factor(["alone_ips", "alone_ips_kind", "alone_ips_age_ns"], &factors.alone_ips, now_ns)
            .factor(["power_mw", "power_kind", "power_age_ns"], &factors.power_mw, now_ns)
            .factor(
                ["energy_ratio", "energy_ratio_kind", "energy_ratio_age_ns"],
                &factors.energy_ratio,
                now_ns,
            )
            .factor(["work_ns", "work_kind", "work_age_ns"], &factors.work_ns, now_ns)
            .factor(["path_ns", "path_kind", "path_age_ns"], &factors.path_ns, now_ns)
    }

    /// Value, kind and age of a factor, by these names; nothing if it is missing.
    fn factor(self, names: [&'static str; 3], factor: &Factor, now_ns: Ns) -> Self {
        let kind = match factor.kind {
            FactorKind::Missing => return self,
            FactorKind::Predicted => "predicted",
            FactorKind::Measured => "measured",
            FactorKind::Oracle => "oracle",
        };
        let value = match names[0].ends_with("_ns") {
            true => ReasonValue::Ns(factor.value as i64),
            false => ReasonValue::Real(factor.value),
        };
        let age_ns = now_ns.saturating_sub(factor.at_ns);
        self.with(names[0], value).word(names[1], kind).ns(names[2], age_ns)
    }
}

impl Change {
    /// The change in words, such as `to big cores`; `cores` names a set of cores.
    pub fn in_words(&self, cores: impl Fn(&ampsched_model::CoreSet) -> String) -> String {
        let kind = |prefer: &Prefer| match prefer {
            Prefer::Any => "any core",
            Prefer::Big => "big cores",
            Prefer::Little => "little cores",
        };
        match self {
            Self::Affinity(set) => format!("to {}", cores(set)),
            Self::Prefer(prefer) => format!("prefers {}", kind(prefer)),
            Self::Move(prefer) => format!("to {}", kind(prefer)),
            Self::Rank(rank) => format!("rank {rank}"),
            Self::Weight(weight) => format!("weight {weight}"),
            Self::Speed(_) => "speeds".to_owned(),
            Self::Slice(0) => "slice as the rules say".to_owned(),
            Self::Slice(slice_ns) => format!("slice {:.2} ms", *slice_ns as f64 / 1e6),
            Self::Hold(true) => "held back".to_owned(),
            Self::Hold(false) => "goes on".to_owned(),
        }
    }
}

/// Listens to the interpreter while it decides.
pub trait Witness: Copy {
    /// Why the answer is what it is; a later reason replaces an earlier one.
    fn because(self, reason: impl FnOnce() -> Reason);
    /// More about the reason told last.
    fn adds(self, more: impl FnOnce(Reason) -> Reason);
    /// Why a thread was passed over.
    fn passes(self, thread: ThreadId, reason: impl FnOnce() -> Reason);
    /// The thread of which the witness wants to know why it was passed over.
    fn asks_about(self) -> Option<ThreadId>;
    /// A waiting thread changes queues.
    fn moves(self, thread: ThreadId, from: CoreId, to: CoreId, reason: impl FnOnce() -> Reason);
}

/// Nobody listens, which costs nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoWitness;

impl Witness for NoWitness {
    #[inline(always)]
    fn because(self, _: impl FnOnce() -> Reason) {}
    #[inline(always)]
    fn adds(self, _: impl FnOnce(Reason) -> Reason) {}
    #[inline(always)]
    fn passes(self, _: ThreadId, _: impl FnOnce() -> Reason) {}
    #[inline(always)]
    fn asks_about(self) -> Option<ThreadId> {
        None
    }
    #[inline(always)]
    fn moves(self, _: ThreadId, _: CoreId, _: CoreId, _: impl FnOnce() -> Reason) {}
}

/// A move of a waiting thread between queues.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// The thread.
    pub thread: ThreadId,
    /// A core of the queue that it left.
    pub from: CoreId,
    /// The core to whose queue it came.
    pub to: CoreId,
    /// Why.
    pub why: Reason,
}

/// What a witness remembers of one decision.
#[derive(Debug, Default)]
pub struct Testimony {
    about: Option<ThreadId>,
    why: RefCell<Option<Reason>>,
    passed: RefCell<Option<Reason>>,
    moved: RefCell<Vec<Moved>>,
}

impl Testimony {
    /// Listens to the next decision; also to why it passes over that thread.
    pub fn about(thread: Option<ThreadId>) -> Self {
        Self { about: thread, ..Self::default() }
    }

    /// Why the answer is what it is.
    pub fn why(&self) -> Option<Reason> {
        self.why.borrow().clone()
    }

    /// Why the thread that was asked about was passed over; none if it was not considered.
    pub fn passed(&self) -> Option<Reason> {
        self.passed.borrow().clone()
    }

    /// The moves of waiting threads, in their order.
    pub fn moved(&self) -> Vec<Moved> {
        self.moved.borrow().clone()
    }
}

impl Witness for &Testimony {
    fn because(self, reason: impl FnOnce() -> Reason) {
        self.why.replace(Some(reason()));
    }

    fn adds(self, more: impl FnOnce(Reason) -> Reason) {
        let told = self.why.take();
        self.why.replace(told.map(more));
    }

    fn passes(self, thread: ThreadId, reason: impl FnOnce() -> Reason) {
        if self.about == Some(thread) {
            self.passed.replace(Some(reason()));
        }
    }

    fn asks_about(self) -> Option<ThreadId> {
        self.about
    }

    fn moves(self, thread: ThreadId, from: CoreId, to: CoreId, reason: impl FnOnce() -> Reason) {
        self.moved.borrow_mut().push(Moved { thread, from, to, why: reason() });
    }
}
