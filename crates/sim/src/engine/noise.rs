//! What the system does beside the programs: interrupts and kernel threads.
//!
//! Policies learn nothing of it but what any scheduler sees: a thread has lost its core and waits, a core is not idle.
//! An interrupt keeps the running thread from its work, as the cost of a wake-up does; a core that idles goes on idling
//! for those who look for one, but begins to run only when the interrupt is over. A kernel thread takes its core at
//! once and for as long as it runs ([`Sched::take_core`](ampsched_policy::Sched::take_core)): who ran there waits in
//! the core's queue like any other thread, and any core may take it. Each source pauses between the end of one event on
//! a core and the next; pauses and durations are functions of seed, core, source and number.

use std::sync::Arc;

use ampsched_model::{CoreId, Draw, Noise, NoiseKind, Ns};
use ampsched_policy::{DecidedBy, Event, Reason, Topology};

use super::events::SimEvent;
use super::{Engine, Fallible};

/// Stream of random numbers, apart from those of programs (which begin with a letter's code) and of sensors.
const NOISE: u64 = (1 << 40) + 3;
/// When idle cores are told of who waits behind a kernel thread, if the rules name no tick: Linux looks for such
/// threads at ticks, of 250 Hz here.
const TICK_NS: Ns = 4_000_000;
/// Most of what one event takes from a core, however slow it is: 100 s.
const LONGEST_NS: f64 = 1e11;

/// The sources and how far they are on each core.
pub(super) struct Noisy {
    noise: Arc<Noise>,
    draw: Draw,
    /// Events so far, by core and source.
    numbers: Vec<u64>,
    /// How much longer each core takes at its highest frequency than the fastest one.
    slowness: Vec<f64>,
}

impl Noisy {
    fn new(noise: Arc<Noise>, seed: u64, topology: &Topology) -> Self {
        let cores = topology.core_count();
        let fastest = topology.cores().map(|core| topology.core(core).capacity).max();
        let slowness =
            |core| f64::from(fastest.unwrap_or(1)) / f64::from(topology.core(core).capacity);
        Self {
            draw: Draw::new(seed).child(NOISE),
            numbers: vec![0; cores * noise.sources.len()],
            slowness: topology.cores().map(slowness).collect(),
            noise,
        }
    }

    /// The random numbers of an event, and those of the next one later.
    fn next(&mut self, core: CoreId, source: u16) -> Draw {
        let number =
            &mut self.numbers[core.index() * self.noise.sources.len() + usize::from(source)];
        let of_source = self.draw.child(core.0.into()).child(source.into());
        *number += 1;
        of_source.child(*number)
    }
}

impl Engine<'_> {
    /// Schedules the first event of each source on each core: somewhere within a pause.
    pub(super) fn start_noise(&mut self) {
        let Some(noise) = self.setup.options.noise.clone() else { return };
        let mut noisy = Noisy::new(noise, self.setup.options.seed, self.sched.topology());
        for core in self.cores.ids() {
            for (number, source) in noisy.noise.clone().sources.iter().enumerate() {
                if source.is_on(core.index(), self.cores.len()) {
                    let mut draw = noisy.next(core, number as u16);
                    let pause_ns = source.pause.draw(&mut draw);
                    let first_ns = (pause_ns as f64 * draw.uniform()) as Ns;
                    self.events.schedule(first_ns, SimEvent::Noise(core, number as u16));
                }
            }
        }
        self.noisy = Some(Box::new(noisy));
    }

    /// A source of noise has its turn on a core.
    pub(super) fn make_noise(&mut self, core: CoreId, source: u16) -> Fallible {
        let full = self.slowdown(core);
        let Some(noisy) = self.noisy.as_deref_mut() else { return Ok(()) };
        let mut draw = noisy.next(core, source);
        let slowness = full * noisy.slowness[core.index()];
        let kind = &noisy.noise.sources[usize::from(source)];
        let takes_ns = (kind.duration.draw(&mut draw) as f64 * slowness).min(LONGEST_NS) as Ns;
        let pause_ns = kind.pause.draw(&mut draw).max(1);
        let kind = kind.kind;
        self.account(core);
        self.record.counts.noise += 1;
        let end_ns = match kind {
            NoiseKind::Interrupt => {
                self.tell_noise(core, source, takes_ns);
                self.interrupt_core(core, takes_ns)
            }
            // Kernel threads are fair ones: they give way to threads of classes above, and do their work later.
            NoiseKind::Thread if self.sched.core(core).above.is_some() => self.events.now_ns(),
            NoiseKind::Thread => {
                self.keep(core, takes_ns);
                let until_ns = self.cores[core].noise_until_ns;
                self.take_core(core, source, takes_ns)?;
                until_ns
            }
        };
        self.events.schedule(end_ns + pause_ns, SimEvent::Noise(core, source));
        Ok(())
    }

    /// How much slower a core is now than at its highest frequency.
    fn slowdown(&self, core: CoreId) -> f64 {
        let cluster = self.cores[core].cluster;
        let highest = self.setup.machine.clusters[cluster.index()].max_mhz();
        f64::from(highest) / f64::from(self.sched.frequency_mhz(cluster).max(1))
    }

    /// An interrupt: whoever runs there is kept from its work. Returns when it is over.
    fn interrupt_core(&mut self, core: CoreId, takes_ns: Ns) -> Ns {
        let Some(thread) = self.sched.current(core) else {
            self.keep(core, takes_ns);
            if self.sched.is_taken(core) {
                self.wait_for_system(core);
            } else {
                self.meter_interrupt(core);
                self.idles_anew(core);
            }
            return self.cores[core].noise_until_ns;
        };
        let state = &mut self.cores[core];
        state.interrupted_ns += takes_ns;
        state.delay(&self.threads[thread], takes_ns);
        self.arm(core);
        self.cores[core].works_from_ns
    }

    /// The system keeps a core that no thread has, or will have any more, for a time longer.
    fn keep(&mut self, core: CoreId, takes_ns: Ns) {
        let until_ns = self.cores[core].noise_until_ns.max(self.events.now_ns());
        self.cores[core].noise_until_ns = until_ns + takes_ns;
    }

    /// A kernel thread runs on a core until that is kept no longer.
    fn take_core(&mut self, core: CoreId, source: u16, takes_ns: Ns) -> Fallible {
        if self.sched.is_taken(core) {
            self.tell_noise(core, source, takes_ns);
            self.wait_for_system(core);
            return Ok(());
        }
        let now_ns = self.events.now_ns();
        let interrupted = self.sched.core(core).running;
        if let Some(thread) = interrupted {
            let noisy = self.noisy.as_deref();
            self.record.because(|| {
                let reason = Reason::new(DecidedBy::System, "a kernel thread takes the core");
                let name =
                    noisy.map(|noisy| noisy.noise.sources[usize::from(source)].name.to_string());
                reason.word("kernel_thread", name.unwrap_or_default())
            });
            self.sched.requeue(core, now_ns);
            self.close_turn(core, thread);
            self.threads[thread].involuntary += 1;
        }
        self.sched.take_core(core);
        self.fast_occupied(core, true);
        self.tell_noise(core, source, takes_ns);
        self.meter_system(core);
        self.governors_hear(core);
        self.wait_for_system(core);
        self.aim_elsewhere(core);
        match interrupted {
            Some(thread) => self.tell(Event::Stopped(thread, core)),
            None => Ok(()),
        }
    }

    /// The core goes on when the system is done. Idle cores that look meanwhile may take whoever waits there, but
    /// nobody tells them before a tick, for mostly the system is done first.
    fn wait_for_system(&mut self, core: CoreId) {
        let until_ns = self.cores[core].noise_until_ns;
        self.events.timers.set(core, until_ns);
        let looks_ns = self.events.now_ns() + self.sched.rules().tick_ns.unwrap_or(TICK_NS);
        if until_ns > looks_ns && self.sched.queue_len(core) > 0 {
            self.kick_idle_cores(looks_ns);
        }
    }

    /// Whether the system still has a core that has nothing else to run; if it had it, it gives it back.
    #[inline]
    pub(super) fn is_kept_by_noise(&mut self, core: CoreId) -> bool {
        self.sched.is_taken(core) && self.goes_on_with_noise(core)
    }

    #[cold]
    fn goes_on_with_noise(&mut self, core: CoreId) -> bool {
        let (now_ns, until_ns) = (self.events.now_ns(), self.cores[core].noise_until_ns);
        if now_ns < until_ns {
            self.events.timers.set(core, until_ns);
            return true;
        }
        self.account(core);
        self.sched.give_core_back(core, now_ns);
        self.fast_occupied(core, false);
        self.governors_hear(core);
        if let Some(watch) = &mut self.record.watch {
            watch.trace.system_ends(core, now_ns);
        }
        false
    }

    /// A trace hears of noise.
    fn tell_noise(&mut self, core: CoreId, source: u16, takes_ns: Ns) {
        let (Some(watch), Some(noisy)) = (&mut self.record.watch, &self.noisy) else { return };
        let source = &noisy.noise.sources[usize::from(source)];
        let now_ns = self.events.now_ns();
        watch.trace.noise(core, source.kind, &source.name, takes_ns, now_ns);
    }
}
