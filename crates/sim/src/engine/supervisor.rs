//! The policy and everything that is told to it: its view, its factors, its plan.

use std::sync::Arc;

use ampsched_model::{AppId, ClusterId, CoreId, Machine, Ns, Profile, ThreadId};
use ampsched_policy::{
    DecidedBy, EnqueueKind, Event, Factor, FactorKind, Factors, FastPlane, Needs, Pick, Plan,
    Policy, Reason, Sched, Stalls, Topology, View, Witness,
};

use super::sampler::Sampler;
use super::speeds::Speeds;
use crate::factors::{Evidence, FactorService};
use crate::{FactorSource, OfflineFacts};

/// The policy with what it knows and wants.
pub(super) struct Supervisor {
    policy: Box<dyn Policy>,
    /// What takes all fast-plane decisions instead of rules and hooks, if the policy brings it.
    pub fast: Option<Box<dyn FastPlane>>,
    pub needs: Needs,
    /// What it has asked for and has not been carried out yet.
    pub plan: Plan,
    /// Per thread.
    factors: Vec<Factors>,
    source: FactorSource,
    service: FactorService,
    /// Per application; empty if the policy does not ask for them.
    pub offline: Arc<[OfflineFacts]>,
    /// Counters, if speed-ups are predicted from them.
    sampler: Option<Sampler>,
    seed: u64,
}

impl Supervisor {
    /// A policy that has not seen anything.
    pub fn new(
        policy: Box<dyn Policy>,
        source: &FactorSource,
        seed: u64,
        machine: &Machine,
        topology: &Topology,
    ) -> Self {
        Self {
            needs: policy.needs(),
            fast: policy.fast_plane(topology, seed),
            policy,
            plan: Plan::new(),
            factors: Vec::new(),
            source: source.clone(),
            service: FactorService::new(source.clone()),
            offline: Arc::default(),
            sampler: match source {
                FactorSource::Predicted(source) => Some(Sampler::new(source, machine)),
                _ => None,
            },
            seed,
        }
    }

    /// What it cannot do on that machine.
    pub fn caveat(&self, sched: &Sched, sensors: bool) -> Option<String> {
        self.policy.caveats(sched.topology(), sensors)
    }

    /// Threads may have these profiles, numbered in the order of these calls.
    pub fn add_profiles(&mut self, profiles: &[Profile], machine: &Machine) {
        if let Some(sampler) = &mut self.sampler {
            sampler.add_profiles(profiles, machine);
        }
    }

    /// A cluster runs at another frequency from now on.
    pub fn hear_frequency(&mut self, machine: &Machine, cluster: ClusterId, mhz: u32) {
        if let Some(sampler) = &mut self.sampler {
            sampler.set_frequency(machine, cluster, mhz);
        }
    }

    /// Whether it wants to know what threads retire.
    #[inline]
    pub fn counts_work(&self) -> bool {
        self.sampler.is_some()
    }

    /// A thread has retired instructions.
    pub fn count_work(
        &mut self,
        thread: ThreadId,
        profile: u32,
        cluster: ClusterId,
        instructions: u64,
    ) {
        if let Some(sampler) = &mut self.sampler {
            sampler.count(thread, profile, cluster, instructions);
        }
    }

    /// A thread of an application exists: what is known of it before it runs.
    pub fn add_thread(&mut self, app: AppId, now_ns: Ns) {
        let known = |value: f64| Factor { value, kind: FactorKind::Measured, at_ns: now_ns };
        let factors = match self.offline.get(app.index()) {
            None => Factors::default(),
            Some(facts) => Factors {
                offline_speedup: known(facts.speedup),
                alone_ips: known(facts.fast_ips),
                energy_ratio: facts.energy_ratio.map(known).unwrap_or_default(),
                work_ns: known(facts.work_ns),
                ..Factors::default()
            },
        };
        self.factors.push(factors.named_by(&self.needs));
    }

    /// A runtime tells how long the longest chain of tasks is that begins with a thread's next one.
    pub fn hear_path(&mut self, thread: ThreadId, path_ns: f64, now_ns: Ns) {
        if self.needs.paths {
            self.factors[thread.index()].path_ns =
                Factor { value: path_ns, kind: FactorKind::Measured, at_ns: now_ns };
        }
    }

    /// Brings what is known of a thread with some profile up to now; its counters must be.
    pub fn refresh(
        &mut self,
        sched: &Sched,
        speeds: &Speeds,
        thread: ThreadId,
        profile: u32,
        power_mw: Option<f64>,
        now_ns: Ns,
    ) {
        let measured = |value| Factor { value, kind: FactorKind::Measured, at_ns: now_ns };
        if self.needs.stalls {
            let stalls = self.stalls(sched, speeds, thread, profile, now_ns);
            self.factors[thread.index()].stalls = stalls;
        }
        let factors = &mut self.factors[thread.index()];
        if self.needs.speedup {
            let last = factors.speedup;
            factors.speedup = match &mut self.sampler {
                Some(sampler) => sampler.speedup(self.seed, thread, &last, now_ns),
                None => {
                    let truth = speeds.speedup(profile);
                    let evidence = Evidence { seed: self.seed, thread, truth, sched, now_ns };
                    self.service.speedup(evidence, &last)
                }
            };
        }
        if self.needs.blame {
            factors.blame_ns = measured(sched.blame_ns(thread) as f64);
        }
        if let Some(power_mw) = power_mw {
            factors.power_mw = measured(power_mw);
        }
    }

    /// What the counters of the core show on which a thread runs or last ran.
    fn stalls(
        &self,
        sched: &Sched,
        speeds: &Speeds,
        thread: ThreadId,
        profile: u32,
        now_ns: Ns,
    ) -> Option<Stalls> {
        if self.source == FactorSource::Missing {
            return None;
        }
        let core = sched.thread(thread).ran_on?;
        let place = sched.topology().core(core);
        let counters = speeds.stalls(profile, place.cluster)?;
        Some(Stalls { class: place.class, counters, at_ns: now_ns })
    }

    /// What it knows of a thread.
    pub fn factors(&self, thread: ThreadId) -> &Factors {
        &self.factors[thread.index()]
    }

    /// Whether it wants to hear of an event.
    #[inline]
    pub fn wants(&self, event: Event) -> bool {
        let events = self.needs.events;
        match event {
            Event::Added(_) | Event::Exited(_) => events.lifecycle,
            Event::Woken(..) | Event::Blocked(_) => events.blocking,
            Event::Started(..) | Event::Stopped(..) => events.dispatch,
        }
    }

    /// Whether it takes part whenever a core goes from one thread to the next.
    #[inline]
    pub fn follows_turns(&self) -> bool {
        self.needs.hooks.pick || self.needs.events.dispatch
    }

    /// Lets it react to an event that it wants to hear of.
    pub fn hear(&mut self, sched: &Sched, event: Event, now_ns: Ns) {
        self.policy.on_event(&View::new(sched, &self.factors, now_ns), event, &mut self.plan);
    }

    /// Lets it look at the whole system.
    pub fn epoch(&mut self, sched: &Sched, now_ns: Ns) {
        self.policy.epoch(&View::new(sched, &self.factors, now_ns), &mut self.plan);
    }

    /// What a core does next.
    #[inline]
    pub fn pick(&mut self, sched: &Sched, core: CoreId, now_ns: Ns, witness: impl Witness) -> Pick {
        if !self.needs.hooks.pick {
            return sched.pick_watched(core, now_ns, witness);
        }
        witness.because(|| Reason::new(DecidedBy::Hook, "the policy's own code chooses it"));
        self.policy.pick(&View::new(sched, &self.factors, now_ns), core)
    }

    /// The core for a thread that starts or wakes, woken by one on core `waker`.
    pub fn place(
        &mut self,
        sched: &Sched,
        thread: ThreadId,
        kind: EnqueueKind,
        waker: Option<CoreId>,
        now_ns: Ns,
        witness: impl Witness,
    ) -> CoreId {
        if let Some(fast) = &mut self.fast {
            let core = fast.place(sched, thread, kind, waker, now_ns);
            witness.because(|| Reason::new(DecidedBy::Hook, fast.because()));
            return core;
        }
        if !self.needs.hooks.place {
            return sched.place_watched(thread, waker, now_ns, witness);
        }
        witness.because(|| Reason::new(DecidedBy::Hook, "the policy's own code puts it there"));
        let view = View::new(sched, &self.factors, now_ns).woken_from(waker);
        self.policy.place(&view, thread)
    }

    /// When the thread that runs on a core has to let others run, if ever. It must be accounted up to now.
    #[inline]
    pub fn slice_end_ns(
        &mut self,
        sched: &Sched,
        core: CoreId,
        thread: ThreadId,
        now_ns: Ns,
        witness: impl Witness,
    ) -> Option<Ns> {
        if let Some(fast) = &mut self.fast {
            return fast.expiry_ns(sched, core, now_ns);
        }
        let slice_ns = self.needs.hooks.slice.then(|| {
            let view = View::new(sched, &self.factors, now_ns);
            self.policy.slice(&view, thread, core)
        });
        sched.expiry_watched(core, slice_ns, now_ns, witness)
    }

    /// Whether a woken thread interrupts the one that runs on the core where it was put.
    pub fn preempts(
        &mut self,
        sched: &Sched,
        woken: ThreadId,
        running: ThreadId,
        core: CoreId,
        now_ns: Ns,
        witness: impl Witness,
    ) -> bool {
        if !self.needs.hooks.preempts {
            return sched.preempts_watched(woken, running, core, witness);
        }
        witness.because(|| Reason::new(DecidedBy::Hook, "the policy's own code decides it"));
        self.policy.preempts(&View::new(sched, &self.factors, now_ns), woken, running, core)
    }
}
