//! The frame of policies that decide, thread by thread, who has a fast core: they differ in who deserves one.

use ampsched_model::Ns;

use super::super::cfs::CfsRules;
use super::claims::Bids;
use super::seats::{self, seat};
use crate::{Event, Needs, Params, Plan, Policy, Rules, Topology, View};

/// Who deserves a fast core.
pub trait SeatRule: Send {
    /// What it compares; of equal ones the lower number of a thread counts.
    type Claim: Ord + Copy;

    /// What it reads and hears of.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// What it cannot do on a machine ([`Policy::caveat`]).
    fn caveat(&self, _topology: &Topology) -> Option<String> {
        None
    }

    /// The claims of the runnable threads; the least should have one of the `fast_cores`, of which there is at least
    /// one. Asked at every tick.
    fn claims(&mut self, view: &View, fast_cores: usize) -> Bids<Self::Claim>;

    /// Hears how many threads had to change to a fast core for the last claims.
    fn seated(&mut self, _changes: usize) {}

    /// Hears of an event that its needs name.
    fn on_event(&mut self, _view: &View, _event: Event) {}
}

/// A policy that applies a rule's claims at every tick: the first threads have a fast core each, the others share
/// the slow ones under CFS ([`seats::rules`]).
pub struct SeatPolicy<R> {
    cfs: CfsRules,
    tick_ns: Ns,
    rule: R,
}

impl<R: SeatRule> SeatPolicy<R> {
    /// With the parameters of CFS and [`seats::TICK`].
    pub fn new(params: &Params, rule: R) -> Self {
        Self::every(params.ms(seats::TICK.name), params, rule)
    }

    /// With a tick of its own and the parameters of CFS.
    pub fn every(tick_ns: Ns, params: &Params, rule: R) -> Self {
        Self { cfs: CfsRules::new(params), tick_ns, rule }
    }
}

impl<R: SeatRule> Policy for SeatPolicy<R> {
    fn needs(&self) -> Needs {
        Needs { epoch_ns: Some(self.tick_ns), ..self.rule.needs() }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        seats::rules(self.cfs, topology)
    }

    fn caveat(&self, topology: &Topology, _sensors: bool) -> Option<String> {
        self.rule.caveat(topology)
    }

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        let fast_cores = seats::fast_cores(view);
        if fast_cores > 0 {
            let claims = self.rule.claims(view, fast_cores);
            self.rule.seated(seat(view, plan, &claims, |_| false));
        }
    }

    fn on_event(&mut self, view: &View, event: Event, _plan: &mut Plan) {
        self.rule.on_event(view, event);
    }
}
