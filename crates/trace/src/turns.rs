//! Which thread has which core when: the turns of a whole run, to be drawn.

use ampsched_model::{ClusterId, CoreId, NoiseKind, Ns, ThreadId};
use ampsched_policy::Reason;
use serde::Serialize;

use crate::trace::{Decision, Trace, TraceThread, TurnEnd};

/// A thread that had turns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TurnThread {
    /// Number of its application.
    pub app: usize,
    /// Name of its application.
    pub app_name: String,
    /// Name within the application.
    pub name: String,
}

/// Who has a core: a thread by number, or the system's own threads.
type Holder = Option<u32>;

/// Every turn of a run, in the order of their ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Turns {
    /// All threads, by number.
    pub threads: Vec<TurnThread>,
    /// Core, thread, start and end in ns. The system's own threads are no threads: absent.
    pub turns: Vec<(u16, Holder, Ns, Ns)>,
    /// Who has each core, and since when.
    #[serde(skip)]
    open: Vec<Option<(Holder, Ns)>>,
}

impl Turns {
    /// Ends what still runs when the run is over.
    pub fn finish(&mut self, end_ns: Ns) {
        for core in 0..self.open.len() {
            self.end(core, end_ns);
        }
    }

    fn holder(&self, core: CoreId) -> Option<Holder> {
        self.open.get(core.index()).copied().flatten().map(|(holder, _)| holder)
    }

    fn begin(&mut self, core: CoreId, holder: Holder, at_ns: Ns) {
        if self.open.len() <= core.index() {
            self.open.resize(core.index() + 1, None);
        }
        self.end(core.index(), at_ns);
        self.open[core.index()] = Some((holder, at_ns));
    }

    fn end(&mut self, core: usize, at_ns: Ns) {
        let Some((holder, start_ns)) = self.open.get_mut(core).and_then(Option::take) else {
            return;
        };
        if at_ns > start_ns {
            let core = u16::try_from(core).expect("it was a core's number");
            self.turns.push((core, holder, start_ns, at_ns));
        }
    }
}

impl Trace for Turns {
    fn thread(&mut self, thread: TraceThread) {
        assert_eq!(thread.id.index(), self.threads.len(), "threads are introduced in their order");
        let (app_name, name) = (thread.app_name.to_owned(), thread.name.to_owned());
        self.threads.push(TurnThread { app: thread.app, app_name, name });
    }

    fn run(&mut self, core: CoreId, thread: ThreadId, _why: Option<&Reason>, at_ns: Ns) {
        self.begin(core, Some(thread.0), at_ns);
    }

    fn stop(&mut self, core: CoreId, thread: ThreadId, _end: TurnEnd, at_ns: Ns) {
        // The system's threads are told of before the thread whose core they take.
        if self.holder(core) == Some(Some(thread.0)) {
            self.end(core.index(), at_ns);
        }
    }

    fn wake(
        &mut self,
        _waker: Option<ThreadId>,
        _woken: ThreadId,
        _core: Option<CoreId>,
        _at_ns: Ns,
    ) {
    }

    fn decided(&mut self, _thread: ThreadId, _what: Decision, _why: Option<&Reason>, _at_ns: Ns) {}

    fn frequency(&mut self, _cluster: ClusterId, _mhz: u32, _at_ns: Ns) {}

    fn noise(&mut self, core: CoreId, kind: NoiseKind, _name: &str, _takes_ns: Ns, at_ns: Ns) {
        if kind == NoiseKind::Thread && self.holder(core) != Some(None) {
            self.begin(core, None, at_ns);
        }
    }

    fn system_ends(&mut self, core: CoreId, at_ns: Ns) {
        if self.holder(core) == Some(None) {
            self.end(core.index(), at_ns);
        }
    }

    fn queue_len(&mut self, _core: CoreId, _len: usize, _at_ns: Ns) {}
}

#[cfg(test)]
mod tests {
    use ampsched_policy::RunState;

    use super::*;

    const UNTOLD: TurnEnd = TurnEnd { instructions: None, state: RunState::Ready, why: None };

    fn introduce(turns: &mut Turns, name: &str) {
        let id = ThreadId(u32::try_from(turns.threads.len()).unwrap());
        turns.thread(TraceThread { id, app: 0, app_name: "a", name, ids: None });
    }

    #[test]
    fn turns_end_when_another_begins_the_core_is_left_or_the_run_is_over() {
        let mut turns = Turns::default();
        introduce(&mut turns, "x");
        introduce(&mut turns, "y");
        turns.run(CoreId(1), ThreadId(0), None, 0);
        turns.run(CoreId(0), ThreadId(1), None, 5);
        turns.stop(CoreId(1), ThreadId(0), UNTOLD, 10);
        turns.run(CoreId(1), ThreadId(0), None, 11);
        turns.noise(CoreId(1), NoiseKind::Thread, "kworker", 3, 12);
        turns.stop(CoreId(1), ThreadId(0), UNTOLD, 12);
        turns.noise(CoreId(1), NoiseKind::Thread, "rcu", 1, 13);
        turns.system_ends(CoreId(1), 15);
        turns.run(CoreId(1), ThreadId(0), None, 15);
        turns.stop(CoreId(1), ThreadId(0), UNTOLD, 15);
        turns.noise(CoreId(0), NoiseKind::Interrupt, "tick", 3, 20);
        turns.stop(CoreId(1), ThreadId(0), UNTOLD, 20);
        turns.finish(30);
        let own = [(1, Some(0), 0, 10), (1, Some(0), 11, 12), (0, Some(1), 5, 30)];
        let (system, threads): (Vec<_>, Vec<_>) =
            turns.turns.iter().partition(|turn| turn.1.is_none());
        assert_eq!((system, threads), (vec![(1, None, 12, 15)], own.to_vec()));
    }
}
