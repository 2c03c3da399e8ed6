//! A simulation that is watched: its trace hears why everything was decided.
//!
//! Reasons arise when the interpreter decides and are told when what was decided happens; in between they are kept
//! here.
//! Nothing of this runs unless there is a trace.

use std::collections::BTreeMap;

use ampsched_model::{ClusterId, CoreId, Ns, ThreadId};
use ampsched_policy::{Balance, Change, DecidedBy, Event, Factors, Pick, Reason, Sched, Testimony};

use super::objects::Objects;
use super::setup::Record;
use super::threads::{Thread, WaitsFor};
use crate::{Decision, Trace, TurnEnd};

/// The trace, and reasons that it has not heard yet.
pub(super) struct Watch<'t> {
    pub trace: &'t mut dyn Trace,
    /// Why the thread that was placed last was put there.
    placed: Option<Reason>,
    /// Why the thread that was picked last was chosen.
    picked: Option<Reason>,
    /// Why the next turn that ends does so.
    ending: Option<Reason>,
    /// Why each core's present slice will be over.
    slices: Vec<Option<Reason>>,
    /// By what each core's present turn has been interrupted.
    cuts: Vec<Option<Reason>>,
    /// Epochs of the policy so far.
    epochs: u64,
    /// What each cluster draws, as told last, in mW.
    powers_mw: BTreeMap<ClusterId, f64>,
}

impl<'t> Watch<'t> {
    /// A trace of a system in which nothing has happened.
    pub fn new(trace: &'t mut dyn Trace, sched: &Sched) -> Self {
        trace.rules(sched.rules());
        let none = vec![None; sched.topology().core_count()];
        Self {
            trace,
            placed: None,
            picked: None,
            ending: None,
            slices: none.clone(),
            cuts: none,
            epochs: 0,
            powers_mw: BTreeMap::new(),
        }
    }

    /// Lets somebody decide where a thread is put.
    #[cold]
    #[inline(never)]
    pub fn place(&mut self, decide: impl FnOnce(&Testimony) -> CoreId) -> CoreId {
        let told = Testimony::default();
        let core = decide(&told);
        self.placed = told.why();
        core
    }

    /// Lets somebody decide what a core does next.
    #[cold]
    #[inline(never)]
    pub fn pick(
        &mut self,
        core: CoreId,
        now_ns: Ns,
        decide: impl FnOnce(&Testimony) -> Pick,
    ) -> Pick {
        let about = self.trace.asks_about();
        let told = Testimony::about(about);
        let pick = decide(&told);
        self.picked = told.why();
        let chosen = match pick {
            Pick::Run(thread) | Pick::Pull(thread) => Some(thread),
            Pick::Idle { .. } => None,
        };
        if let (Some(thread), Some(why)) = (about.filter(|_| about != chosen), told.passed()) {
            self.trace.decided(thread, Decision::PassedOver(core), Some(&why), now_ns);
        }
        pick
    }

    /// A fast plane of the policy's own has decided what a core does next.
    #[cold]
    #[inline(never)]
    pub fn picks(&mut self, because: &'static str) {
        self.picked = Some(Reason::new(DecidedBy::Hook, because));
    }

    /// A fast plane of the policy's own ends the turn of whoever runs on a core.
    #[cold]
    #[inline(never)]
    pub fn cut(&mut self, core: CoreId, because: &'static str) {
        self.cuts[core.index()] = Some(Reason::new(DecidedBy::Hook, because));
    }

    /// A fast plane of the policy's own has moved a waiting thread.
    #[cold]
    #[inline(never)]
    pub fn moved(&mut self, thread: ThreadId, from: CoreId, to: CoreId, now_ns: Ns) {
        let why = Reason::new(DecidedBy::Balance, "there is less to do where it goes");
        self.trace.decided(thread, Decision::Moved { from, to }, Some(&why), now_ns);
    }

    /// A thread of a class above is put somewhere, for that reason.
    #[cold]
    #[inline(never)]
    pub fn placed_above(&mut self, why: Reason) {
        self.placed = Some(why);
    }

    /// A thread of a class above interrupts whoever runs on a core.
    #[cold]
    #[inline(never)]
    pub fn cut_above(&mut self, core: CoreId) {
        let because = "a thread of a class above the policy's takes the core";
        self.cuts[core.index()] = Some(Reason::new(DecidedBy::Class, because));
    }

    /// A thread of a class above is chosen, for that reason.
    #[cold]
    #[inline(never)]
    pub fn picked_above(&mut self, why: Reason) {
        self.picked = Some(why);
    }

    /// Lets somebody decide when the slice of the thread on a core is over.
    #[cold]
    #[inline(never)]
    pub fn slice_end(
        &mut self,
        core: CoreId,
        decide: impl FnOnce(&Testimony) -> Option<Ns>,
    ) -> Option<Ns> {
        let told = Testimony::default();
        let end_ns = decide(&told);
        self.slices[core.index()] = told.why();
        end_ns
    }

    /// Lets somebody decide whether a woken thread interrupts the one that runs on a core.
    #[cold]
    #[inline(never)]
    pub fn preempts(
        &mut self,
        woken: ThreadId,
        running: ThreadId,
        core: CoreId,
        now_ns: Ns,
        decide: impl FnOnce(&Testimony) -> bool,
    ) -> bool {
        let told = Testimony::default();
        let yes = decide(&told);
        let why = told.why();
        let decision = Decision::Interrupts { running, core, yes };
        self.trace.decided(woken, decision, why.as_ref(), now_ns);
        if yes {
            let because = "a woken thread interrupts it";
            let cut = why.map(|why| Reason { because, ..why }.thread("woken", woken));
            self.cuts[core.index()] = cut;
        }
        yes
    }

    /// Lets the interpreter balance the queues.
    #[cold]
    #[inline(never)]
    pub fn balance(&mut self, sched: &mut Sched, balance: Balance, now_ns: Ns) -> Vec<CoreId> {
        let told = Testimony::default();
        let receivers = sched.balance_watched(balance, now_ns, &told);
        for moved in told.moved() {
            let decision = Decision::Moved { from: moved.from, to: moved.to };
            self.trace.decided(moved.thread, decision, Some(&moved.why), now_ns);
        }
        receivers
    }

    /// A cluster draws a power, which may be another one than before; told to a microwatt.
    pub fn power(&mut self, cluster: ClusterId, mw: f64, now_ns: Ns) {
        let mw = (mw * 1e3).round() / 1e3;
        if self.powers_mw.insert(cluster, mw) != Some(mw) {
            self.trace.power(cluster, mw, now_ns);
        }
    }

    /// The policy looks at the system.
    #[cold]
    #[inline(never)]
    pub fn epoch(&mut self) {
        self.epochs += 1;
    }

    /// The plan for a thread has changed. If the thread has to leave its core, this is why.
    #[cold]
    #[inline(never)]
    pub fn planned(
        &mut self,
        thread: ThreadId,
        change: &Change,
        event: Option<Event>,
        factors: &Factors,
        now_ns: Ns,
    ) {
        let why = Reason::of_plan(event, self.epochs, factors, now_ns);
        let words = change.in_words(|cores| {
            let cores: Vec<String> = cores.iter().map(|core| core.0.to_string()).collect();
            format!("cores {}", cores.join(","))
        });
        self.trace.decided(thread, Decision::Planned(&words), Some(&why), now_ns);
        self.ending = Some(why);
    }

    /// A thread is in the queue of a core, woken by another one or not.
    #[cold]
    #[inline(never)]
    pub fn queued(
        &mut self,
        thread: ThreadId,
        core: CoreId,
        waker: Option<ThreadId>,
        len: usize,
        now_ns: Ns,
    ) {
        self.trace.wake(waker, thread, Some(core), now_ns);
        let why = self.placed.take();
        self.trace.decided(thread, Decision::Placed(core), why.as_ref(), now_ns);
        self.trace.queue_len(core, len, now_ns);
    }

    /// A core runs the thread that was picked last.
    #[cold]
    #[inline(never)]
    pub fn runs(&mut self, core: CoreId, thread: ThreadId, len: usize, now_ns: Ns) {
        let why = self.picked.take();
        self.trace.run(core, thread, why.as_ref(), now_ns);
        self.trace.queue_len(core, len, now_ns);
    }

    /// The next turn that ends does so because of that. Kept apart: what dispatches must stay small enough to be
    /// inlined.
    #[cold]
    #[inline(never)]
    fn ends_by(&mut self, reason: impl FnOnce() -> Reason) {
        self.ending = Some(reason());
    }

    #[cold]
    #[inline(never)]
    fn ends_turn(&mut self, core: CoreId, interrupted: bool) {
        let cut = self.cuts[core.index()].take().filter(|_| interrupted);
        self.ending = cut.or_else(|| self.slices[core.index()].clone());
    }

    /// The turn of a thread has ended for the reason told last.
    #[cold]
    #[inline(never)]
    pub fn stops(
        &mut self,
        core: CoreId,
        thread: ThreadId,
        instructions: u64,
        sched: &Sched,
        now_ns: Ns,
    ) {
        let why = self.ending.take();
        self.cuts[core.index()] = None;
        let state = sched.thread(thread).state;
        let end = TurnEnd { instructions: Some(instructions), state, why: why.as_ref() };
        self.trace.stop(core, thread, end, now_ns);
    }
}

/// What a simulation says of the ends of turns; nothing if it is not watched.
impl Record<'_> {
    /// The next turn that ends does so because of that.
    #[inline]
    pub fn because(&mut self, reason: impl FnOnce() -> Reason) {
        if let Some(watch) = &mut self.watch {
            watch.ends_by(reason);
        }
    }

    /// The turn on a core ends, interrupted or because its slice is over.
    #[inline]
    pub fn turn_over(&mut self, core: CoreId, interrupted: bool) {
        if let Some(watch) = &mut self.watch {
            watch.ends_turn(core, interrupted);
        }
    }

    /// The thread that was picked last loses its core to the one that picked it.
    #[inline]
    pub fn pulled(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.ending.clone_from(&watch.picked);
        }
    }
}

/// Why a thread's program leaves the core.
pub(super) fn why_waits(thread: &Thread, objects: &Objects) -> Reason {
    let because = match thread.waits_for {
        WaitsFor::Object(object) => {
            let named = format!("{} {}", objects.kind(object), objects.name(object));
            let reason = Reason::new(DecidedBy::Program, "it waits for an object");
            return reason.word("object", named);
        }
        WaitsFor::Children => "it waits for the threads that it has created",
        WaitsFor::Resume => "it waits until another thread resumes it",
        WaitsFor::Time => "it sleeps until a time",
        WaitsFor::Nothing => "it has ended",
    };
    Reason::new(DecidedBy::Program, because)
}
