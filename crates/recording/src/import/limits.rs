//! Between which bounds the clocks of a traced machine were held, and what of it a replay cannot keep.

use std::collections::BTreeMap;

use ampsched_model::{CoreId, name_cores};

use super::Domain;
use super::event::{Raw, What};
use crate::{HeldLimits, TracedClock};

/// Share of the trace from which on limits count as its only ones (ours): who sets them up takes a moment.
const ONLY: f64 = 0.995;

/// Limits in kHz that were in force, the lowest first.
type Pair = (u32, u32);

/// Limits of one clock up to a moment of the trace.
#[derive(Debug, Default)]
struct LimitsSoFar {
    /// In force since then; none: nobody has told any yet.
    now: Option<Pair>,
    since_ns: u64,
    /// Time with each.
    held_ns: BTreeMap<Option<Pair>, u64>,
    seen_khz: Option<Pair>,
}

impl LimitsSoFar {
    fn change(&mut self, at_ns: u64, limits: Option<Pair>) {
        *self.held_ns.entry(self.now).or_default() += at_ns.saturating_sub(self.since_ns);
        (self.now, self.since_ns) = (limits, self.since_ns.max(at_ns));
    }

    /// Those that were in force for longer than any others, and for what share of the time.
    fn longest(&self) -> Option<HeldLimits> {
        let whole_ns: u64 = self.held_ns.values().sum();
        let (limits, held_ns) = self.held_ns.iter().max_by_key(|(_, ns)| **ns)?;
        let (min_khz, max_khz) = (*limits)?;
        let share = *held_ns as f64 / whole_ns.max(1) as f64;
        Some(HeldLimits { min_khz, max_khz, share })
    }
}

/// The bounds of each clock of a machine, in the order of its domains; those of the time from `begin_ns` to `end_ns`
/// count. Empty if no event tells any of any clock.
pub fn held(events: &[Raw], domains: &[Domain], begin_ns: u64, end_ns: u64) -> Vec<TracedClock> {
    let mut told: Vec<LimitsSoFar> = domains
        .iter()
        .map(|_| LimitsSoFar { since_ns: begin_ns, ..LimitsSoFar::default() })
        .collect();
    let place = |cpu: u16| domains.iter().position(|domain| domain.cores.contains(&cpu));
    for raw in events {
        match raw.what {
            What::FrequencyLimits { cpu, min_khz, max_khz } if (1..=max_khz).contains(&min_khz) => {
                let told = place(cpu).map(|place| &mut told[place]);
                told.into_iter().for_each(|it| it.change(raw.at_ns, Some((min_khz, max_khz))));
            }
            What::Frequency { cpu, khz } if khz > 0 => {
                let Some(place) = place(cpu) else { continue };
                let (low, high) = told[place].seen_khz.unwrap_or((khz, khz));
                told[place].seen_khz = Some((low.min(khz), high.max(khz)));
            }
            _ => {}
        }
    }
    let clock = |(domain, mut told): (&Domain, LimitsSoFar)| {
        let last = told.now;
        told.change(end_ns, last);
        let seen_khz = told.seen_khz;
        TracedClock { cores: domain.cores.clone(), limits: told.longest(), seen_khz }
    };
    let found: Vec<TracedClock> = domains.iter().zip(told).map(clock).collect();
    let says_anything = |it: &TracedClock| it.limits.is_some() || it.seen_khz.is_some();
    if found.iter().any(says_anything) { found } else { Vec::new() }
}

/// What a replay does not keep of the bounds of clocks, a sentence each.
pub fn unknown(clocks: &[TracedClock]) -> Vec<String> {
    let mut found = Vec::new();
    for clock in clocks {
        let cores: Vec<CoreId> = clock.cores.iter().map(|&core| CoreId(core)).collect();
        let cores = name_cores(&cores);
        match (clock.limits, clock.seen_khz) {
            (Some(HeldLimits { min_khz, max_khz, share }), _) if share < ONLY => found.push(format!(
                "other limits of the clock of {cores}: replays keep {} to {} MHz, which held for {:.0}% of the time",
                mhz(min_khz),
                mhz(max_khz),
                share * 100.0
            )),
            (None, Some((min_khz, max_khz))) => found.push(format!(
                "limits of the clock of {cores} (cpu_frequency_limits): replays keep it from the lowest seen on, {} MHz, \
                 and may go above the highest seen, {} MHz",
                mhz(min_khz),
                mhz(max_khz)
            )),
            _ => {}
        }
    }
    found
}

/// What idle states leave unknown, if the trace tells of them.
pub fn idle_states(events: &[Raw]) -> Option<String> {
    let tells = events.iter().any(|raw| matches!(raw.what, What::Idle { .. }));
    // `cpuidle_enter_state` (drivers/cpuidle/cpuidle.c) traces the end when the state has been left.
    tells.then(|| {
        "what leaving idle states took: cpu_idle tells its end only, and replays use the states of their machine"
            .to_owned()
    })
}

fn mhz(khz: u32) -> f64 {
    f64::from(khz / 100) / 10.0
}
