//! Clocks of the cores, and how fast each core is at that of the moment.
//!
//! `cpu_frequency` tells changes only, so the clock before a core's first change is not known. The mean of what follows
//! stands for it: where traces of two phones tell the truth, it was off by 1 to 16 % on average, the clock of the next
//! change by 25 to 240 %, and the clock from which a core mostly goes to that one by 15 to 240 %.

use std::collections::BTreeMap;

use ampsched_model::{CoreId, InputError, name_cores};

use super::event::{Raw, What};
use super::stream::SPEED_UNITS;
use super::{Domain, Options, limits};
use crate::TracedClock;

/// By how much a clock may be above the machine's highest before that is named (ours): turbo aside, firmware rounds.
const ABOVE_MAX: f64 = 1.01;

/// What a trace tells of one core's clock.
#[derive(Clone, Copy, Debug, Default)]
struct CoreClock {
    first_ns: u64,
    last_ns: u64,
    /// The last one.
    khz: u32,
    highest_khz: u32,
    /// Clock times time.
    khz_ns: u128,
    is_told: bool,
}

impl CoreClock {
    fn change(&mut self, at_ns: u64, khz: u32) {
        if !self.is_told {
            (self.first_ns, self.is_told) = (at_ns, true);
        } else {
            self.khz_ns += u128::from(self.khz) * u128::from(at_ns - self.last_ns);
        }
        (self.last_ns, self.khz) = (at_ns, khz);
        self.highest_khz = self.highest_khz.max(khz);
    }

    /// Its mean from the first change to the end.
    fn mean_khz(&self, end_ns: u64) -> u32 {
        let rest = u128::from(self.khz) * u128::from(end_ns - self.last_ns);
        let mean = (self.khz_ns + rest).checked_div(u128::from(end_ns - self.first_ns));
        mean.map_or(self.khz, |khz| khz as u32)
    }
}

/// How fast cores are at which clock.
#[derive(Debug, Default)]
pub struct Clocks {
    told: Vec<CoreClock>,
    /// Speeds at the highest clock, in millionths; cores beyond have full speed.
    tops: Vec<u64>,
    /// Highest clocks in kHz; 0 if not known.
    highest_khz: Vec<u32>,
    /// Cores whose clock is that of another one that tells it, by that one's number.
    with: BTreeMap<u16, Vec<u16>>,
    begin_ns: u64,
    end_ns: u64,
    domains: Vec<Domain>,
    /// Bounds of the domains' clocks.
    pub held: Vec<TracedClock>,
    /// What idle states leave unknown.
    idle: Option<String>,
}

impl Clocks {
    /// What events tell that are in the order of time. `speeds`: at the highest clock, in millionths.
    pub fn of(events: &[Raw], speeds: &[u64], options: &Options) -> Self {
        let begin_ns = options.window.as_ref().map(|window| window.since_ns);
        let mut found = Self {
            tops: speeds.to_vec(),
            domains: options.domains.clone(),
            begin_ns: begin_ns.or(events.first().map(|raw| raw.at_ns)).unwrap_or_default(),
            end_ns: events.last().map_or(0, |raw| raw.at_ns),
            ..Self::default()
        };
        for raw in events {
            match raw.what {
                // Without a clock it is off.
                What::Frequency { cpu, khz } if khz > 0 => {
                    found.stated_for(cpu).change(raw.at_ns, khz);
                }
                What::FrequencyLimits { cpu, max_khz, .. } => {
                    let told = found.stated_for(cpu);
                    told.highest_khz = told.highest_khz.max(max_khz);
                }
                _ => {}
            }
        }
        found.held = limits::held(events, &options.domains, found.begin_ns, found.end_ns);
        found.idle = limits::idle_states(events);
        found.highest_khz = found.told.iter().map(|told| told.highest_khz).collect();
        for domain in &options.domains {
            found.share(domain);
        }
        found
    }

    fn stated_for(&mut self, cpu: u16) -> &mut CoreClock {
        let core = usize::from(cpu);
        if self.told.len() <= core {
            self.told.resize(core + 1, CoreClock::default());
        }
        &mut self.told[core]
    }

    /// Cores of a machine that have one clock: those that tell nothing have that of those that do, and the machine
    /// states the highest.
    fn share(&mut self, domain: &Domain) {
        let is_told =
            |core: &u16| self.told.get(usize::from(*core)).is_some_and(|told| told.is_told);
        let (tell, silent): (Vec<u16>, Vec<u16>) =
            domain.cores.iter().partition(|core| is_told(core));
        let first =
            tell.iter().map(|&core| self.told[usize::from(core)]).min_by_key(|told| told.first_ns);
        if let Some(first) = first.filter(|_| !silent.is_empty()) {
            silent.iter().for_each(|&core| *self.stated_for(core) = first);
            self.with.extend(tell.iter().map(|&core| (core, domain.cores.clone())));
        }
        for core in domain.cores.iter().map(|&core| usize::from(core)) {
            self.highest_khz.resize(self.highest_khz.len().max(core + 1), 0);
            self.highest_khz[core] = (domain.max_mhz * 1000.0).round() as u32;
        }
    }

    /// The cores whose clock changes if one tells so: itself, unless others have no word of their own.
    pub fn cores_with<'a>(&'a self, core: &'a u16) -> &'a [u16] {
        self.with.get(core).map_or(std::slice::from_ref(core), Vec::as_slice)
    }

    /// The speed of a core at a clock, in millionths of the fastest core's at its highest.
    pub fn speed(&self, core: usize, khz: u32) -> u64 {
        let top = self.tops.get(core).copied().unwrap_or(SPEED_UNITS);
        match self.highest_khz.get(core) {
            Some(&highest) if highest > 0 && khz > 0 => {
                let speed = u128::from(top) * u128::from(khz) / u128::from(highest);
                u64::try_from(speed.max(1)).unwrap_or(u64::MAX)
            }
            _ => top,
        }
    }

    /// The same at the begin of the trace.
    pub fn begin_speed(&self, core: usize) -> u64 {
        let told = self.told.get(core).filter(|told| told.is_told);
        self.speed(core, told.map_or(0, |told| told.mean_khz(self.end_ns)))
    }

    /// Errors: the trace has more cores than the machine.
    pub fn check(&self, file: &str, cores: usize) -> Result<(), InputError> {
        let of_machine: usize = self.domains.iter().map(|domain| domain.cores.len()).sum();
        if of_machine == 0 || cores <= of_machine {
            return Ok(());
        }
        let message = format!("has {cores} cores, the machine {of_machine}");
        let hint = "the machine that was traced is needed, with all its cores";
        Err(InputError::new(file, "", message).with_hint(hint))
    }

    /// What is not known of clocks, a sentence each.
    pub fn unknown(&self, cores: usize) -> Vec<String> {
        let mut found = Vec::new();
        let of_machine: usize = self.domains.iter().map(|domain| domain.cores.len()).sum();
        if cores < of_machine {
            found.push(format!(
                "what {} cores of the machine did: no event names them",
                of_machine - cores
            ));
        }
        if self.told.iter().any(|told| told.is_told) {
            found.extend(self.inferred(cores));
        } else {
            found.extend(self.largest_error());
        }
        found.extend(limits::unknown(&self.held));
        found.extend(self.idle.clone());
        found
    }

    fn inferred(&self, cores: usize) -> Vec<String> {
        let mut begins: BTreeMap<u32, (Vec<CoreId>, u64)> = BTreeMap::new();
        let (mut silent, mut above) = (Vec::new(), Vec::new());
        let mut highest: BTreeMap<u32, Vec<CoreId>> = BTreeMap::new();
        for core in 0..cores.min(usize::from(u16::MAX)) {
            let (told, number) =
                (self.told.get(core).copied().unwrap_or_default(), CoreId::from(core));
            if !told.is_told {
                silent.push(number);
                continue;
            }
            let mean_mhz = (told.mean_khz(self.end_ns) + 500) / 1000;
            let begin = begins.entry(mean_mhz).or_default();
            begin.0.push(number);
            begin.1 = begin.1.max(told.first_ns.saturating_sub(self.begin_ns));
            highest.entry(told.highest_khz).or_default().push(number);
            if f64::from(told.highest_khz) > f64::from(self.highest_khz[core]) * ABOVE_MAX {
                above.push(number);
            }
        }
        let mut found = Vec::new();
        for (mean_mhz, (cores, ns)) in begins.iter().filter(|(_, (_, ns))| *ns > 0) {
            found.push(format!(
                "the clock of {} in the first {:.1} ms: taken for its mean from there on, {mean_mhz} MHz",
                name_cores(cores),
                *ns as f64 / 1e6
            ));
        }
        if !silent.is_empty() {
            found.push(format!("the clock of {}: it counts as the highest", name_cores(&silent)));
        }
        if !above.is_empty() {
            found
                .push(format!("why {} had clocks above the machine's highest", name_cores(&above)));
        }
        if self.domains.is_empty() {
            let each = highest
                .iter()
                .map(|(khz, cores)| format!("{} {} MHz", name_cores(cores), mhz(*khz)));
            let each: Vec<String> = each.collect();
            found.push(format!(
                "highest clocks of the machine: those of the trace count as such ({}); --machine states them",
                each.join(", ")
            ));
        }
        found
    }

    /// If no clock is told, by how much that may matter on the machine, if one is stated.
    fn largest_error(&self) -> Option<String> {
        let ratio = |domain: &Domain| domain.max_mhz / domain.min_mhz.max(f64::MIN_POSITIVE);
        let largest = self.domains.iter().map(ratio).fold(1.0, f64::max);
        (largest > 1.0).then(|| {
            format!(
                "clocks of the cores (cpu_frequency): work is that at the highest, up to {largest:.1} times too much"
            )
        })
    }
}

fn mhz(khz: u32) -> f64 {
    f64::from(khz / 100) / 10.0
}
