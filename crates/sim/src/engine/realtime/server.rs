//! What fair threads get beside those of classes above: 50 ms of each second and core.
//!
//! Linux 6.12 has a deadline server for the fair class on each core (kernel/sched/fair.c, `fair_server_init`: 50 ms
//! each 1000 ms), deferred until the last moment (`dl_defer`): fair threads that have waited on an occupied core for
//! 950 ms, in which they did not get 50 ms, get them then. (Before 6.12 real-time threads of a core were throttled for
//! 50 ms of each second, `sched_rt_runtime_us`.) Simplified: while it serves, the server comes before all deadline
//! threads, whatever their deadline.

use ampsched_model::{CoreId, Ns};

use super::super::Engine;
use super::super::Fallible;
use super::super::events::SimEvent;

/// What fair threads get of each period.
const RUNTIME_NS: Ns = 50_000_000;
/// The period of a server.
const PERIOD_NS: Ns = 1_000_000_000;

/// The server of a core.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Server {
    state: State,
    /// What fair threads had run here when the present period began.
    fair_ns: Ns,
    /// Counts what is planned: the last plan holds.
    plan: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// No fair thread waits for a thread of a class above.
    #[default]
    Off,
    /// One does, and the last moment is to come.
    Deferred,
    /// The core belongs to the fair threads.
    Active,
}

impl Server {
    /// Whether the core belongs to the fair threads.
    pub fn is_active(&self) -> bool {
        self.state == State::Active
    }

    fn enter(&mut self, state: State) -> u32 {
        self.state = state;
        self.plan += 1;
        self.plan
    }
}

impl Engine<'_> {
    /// A core is occupied: if fair threads wait there, its server begins a period.
    pub(in crate::engine) fn watch_fair(&mut self, core: CoreId) {
        let waits = self.sched.queue_len(core) > 0 && self.sched.core(core).above.is_some();
        let Some(realtime) = self.realtime.as_deref_mut() else { return };
        let server = &mut realtime.servers[core.index()];
        if waits && server.state == State::Off {
            server.fair_ns = self.sched.fair_ns(core);
            let plan = server.enter(State::Deferred);
            let at_ns = self.events.now_ns() + PERIOD_NS - RUNTIME_NS;
            self.events.schedule(at_ns, SimEvent::FairServer(core, plan));
        }
    }

    /// The last moment of a period has come, or what the fair threads have got is over.
    pub(in crate::engine) fn fair_server(&mut self, core: CoreId, plan: u32) -> Fallible {
        self.account(core);
        let now_ns = self.events.now_ns();
        let Some(realtime) = self.realtime.as_deref_mut() else { return Ok(()) };
        let server = &mut realtime.servers[core.index()];
        if server.plan != plan {
            return Ok(());
        }
        let ran_ns = self.sched.fair_ns(core) - server.fair_ns;
        let waits = self.sched.queue_len(core) > 0 && self.sched.core(core).above.is_some();
        if server.state == State::Active || !waits || ran_ns >= RUNTIME_NS {
            self.end_fair_server(core);
            return Ok(());
        }
        let plan = server.enter(State::Active);
        self.events.schedule(now_ns + RUNTIME_NS - ran_ns, SimEvent::FairServer(core, plan));
        self.interrupt(core);
        self.give_up_on(core);
        self.aim_all();
        Ok(())
    }

    /// A core finds no fair thread any more: it need not be kept for them.
    pub(in crate::engine) fn fair_is_served(&mut self, core: CoreId) {
        if self.realtime.as_deref().is_some_and(|it| it.is_reserved(core)) {
            self.end_fair_server(core);
        }
    }

    /// The core is for all again.
    fn end_fair_server(&mut self, core: CoreId) {
        let Some(realtime) = self.realtime.as_deref_mut() else { return };
        realtime.servers[core.index()].enter(State::Off);
        self.watch_fair(core);
        self.aim_all();
    }
}
