//! Static threading: threads pinned round robin.

use ampsched_model::{AppId, ThreadId};

use super::cfs::CfsRules;
use crate::{
    Change, Event, Events, Needs, Params, Plan, Policy, PolicyInfo, Rules, Topology, View,
};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "static",
    summary: "every thread pinned to one core, round robin in order of creation",
    source: "static threading of Chronaki et al. (JPDC 2018), section 3",
    documentation: "\
**Purpose.** What a program gets that binds its threads: no decision at run time at all.

**When to use.** As what programs get that pin their threads, and to see what moving them is worth. It needs \
nothing. Not for several programs at once: the threads of all begin at core 0.

**Algorithm.** The i-th thread of an application is pinned to core i modulo the number of cores; each core time-shares its threads as CFS does.

**Constants.** Those of `cfs`; nothing is moved or stolen because the pinning forbids it.

**Example.** Four threads of a barrier program on 2 big + 2 little cores: two run on big cores and wait at every barrier for the two on little cores.

**Limits.** The slowest core sets the pace; applications that start together all begin at core 0.",
    params: super::cfs::PARAMS,
    build: |params| Box::new(Pinned::new(params)),
};

/// Static threading.
pub struct Pinned {
    rules: CfsRules,
    /// Threads seen per application.
    seen: Vec<usize>,
}

impl Pinned {
    fn new(params: &Params) -> Self {
        Self { rules: CfsRules::new(params), seen: Vec::new() }
    }

    fn pin(&mut self, view: &View, thread: ThreadId, plan: &mut Plan) {
        let app = view.app(thread).index();
        if self.seen.len() <= app {
            self.seen.resize(app + 1, 0);
        }
        let topology = view.topology();
        let place = self.seen[app] % topology.core_count();
        let core = topology.cores_in_turn().nth(place).expect("there are as many places as cores");
        self.seen[app] += 1;
        plan.set(thread, Change::Affinity(core.into()));
    }

    /// An application that has ended begins at core 0 if it is started again.
    fn forget(&mut self, view: &View, app: AppId) {
        let is_over = view.live_in(app) == 0;
        // Who has changed its application since it was pinned counts for the one in which it was.
        if let Some(seen) = self.seen.get_mut(app.index()).filter(|_| is_over) {
            *seen = 0;
        }
    }
}

impl Policy for Pinned {
    fn needs(&self) -> Needs {
        Needs { events: Events { lifecycle: true, ..Events::default() }, ..Needs::default() }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        self.rules.on(topology)
    }

    fn on_event(&mut self, view: &View, event: Event, plan: &mut Plan) {
        match event {
            Event::Added(thread) => self.pin(view, thread, plan),
            Event::Exited(thread) => self.forget(view, view.app(thread)),
            _ => {}
        }
    }
}
