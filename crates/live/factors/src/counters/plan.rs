//! What can be counted on this computer, in groups that fit.

use std::collections::BTreeSet;
use std::io;

use ampsched_computer::{CoreMap, Root, format_cpus};
use ampsched_model::InputError;
use rustix::io::Errno;

use super::{Encoding, Pmu, Source};

/// What is tried when a caller asks what there is: all that policies read, and what models are trained on.
pub const WANTED: [&str; 14] = [
    "instructions",
    "cycles",
    "stall_memory_cycles",
    "stall_backend_cycles",
    "stall_fetch_cycles",
    "branches",
    "branch_mispredicts",
    "l1d_misses",
    "l1d_read_misses",
    "l1i_misses",
    "l2_accesses",
    "l2_misses",
    "llc_misses",
    "dtlb_misses",
];

/// What a PMU counts, in groups that it counts at once; several groups take turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PmuPlan {
    /// The PMU.
    pub pmu: Pmu,
    /// The groups.
    pub groups: Vec<Vec<Encoding>>,
    /// What was wanted and is not counted.
    pub lacks: Vec<&'static str>,
}

/// What can be counted of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// By PMU; none if nothing can be counted.
    pub pmus: Vec<PmuPlan>,
    /// Why nothing, or not all, can be counted, each reason in a sentence.
    pub reasons: Vec<String>,
}

impl Survey {
    /// Tries out what can be counted on the cores of a machine. Errors: a PMU's files cannot be understood.
    pub fn make(
        root: &Root,
        cores: &CoreMap,
        wanted: &[&'static str],
        source: &mut impl Source,
    ) -> Result<Self, InputError> {
        let cpus = cores.cpus();
        let pmus = Pmu::find(root)?.into_iter();
        let pmus: Vec<Pmu> =
            pmus.filter(|pmu| cpus.iter().any(|&cpu| pmu.core.covers(cpu))).collect();
        let without = cpus.iter().filter(|&&cpu| !pmus.iter().any(|pmu| pmu.core.covers(cpu)));
        let without: Vec<usize> = without.copied().collect();
        let mut survey = Self::default();
        if pmus.is_empty() {
            survey.reasons.push(NO_PMU.to_owned());
        } else if !without.is_empty() {
            let list = format_cpus(without);
            survey.reasons.push(format!("the CPUs {list} have no PMU: nothing is counted there"));
        }
        for pmu in pmus {
            let cpu =
                cpus.iter().copied().find(|&cpu| pmu.core.covers(cpu)).expect("it covers one");
            match PmuPlan::make(pmu, cpu, wanted, source) {
                Ok(plan) => survey.add(plan),
                Err(reason) => {
                    survey.reasons.push(reason);
                    survey.pmus.clear();
                    break;
                }
            }
        }
        Ok(survey)
    }

    fn add(&mut self, plan: PmuPlan) {
        let name = &plan.pmu.core.name;
        if plan.groups.is_empty() {
            self.reasons.push(format!("the PMU {name} counts nothing that is wanted"));
            return;
        }
        if plan.groups.len() > 1 {
            let count = plan.groups.len();
            self.reasons.push(format!(
                "the PMU {name} counts not all at once: {count} groups take turns, and counts are scaled up"
            ));
        }
        self.pmus.push(plan);
    }

    /// Whether something is counted on every PMU, that is wherever a thread runs.
    pub fn counts(&self, counter: &str) -> bool {
        let counts = |plan: &PmuPlan| plan.groups.iter().flatten().any(|e| e.counter == counter);
        !self.pmus.is_empty() && self.pmus.iter().all(counts)
    }

    /// Whether it can be told how much of a thread's time is stalled for data.
    pub fn counts_stalls(&self) -> bool {
        let stalls = ["stall_memory_cycles", "stall_backend_cycles"];
        self.counts("cycles")
            && self.counts("instructions")
            && stalls.iter().any(|stall| self.counts(stall))
    }

    /// What each PMU counts, in a line each.
    pub fn describe(&self) -> Vec<String> {
        let names = |events: &Vec<Encoding>| {
            events.iter().map(|event| event.counter).collect::<Vec<_>>().join(" ")
        };
        let line = |plan: &PmuPlan| {
            let groups: Vec<String> = plan.groups.iter().map(names).collect();
            let lacks = match plan.lacks.is_empty() {
                true => String::new(),
                false => format!("; not {}", plan.lacks.join(" ")),
            };
            format!("{}: {}{lacks}", plan.pmu.core.name, groups.join(" | "))
        };
        self.pmus.iter().map(line).collect()
    }
}

const NO_PMU: &str =
    "the kernel shows no PMU of the cores, as in most virtual machines: nothing is counted";

impl PmuPlan {
    /// Tries out what a PMU counts on a CPU of its, and how much at once. Errors: this process may not.
    fn make(
        pmu: Pmu,
        cpu: usize,
        wanted: &[&'static str],
        source: &mut impl Source,
    ) -> Result<Self, String> {
        let (mut singles, mut lacks) = (Vec::new(), Vec::new());
        let mut seen = BTreeSet::new();
        for &counter in wanted.iter().filter(|counter| seen.insert(**counter)) {
            match pmu.encoding(counter).map(|event| (event, source.try_out(cpu, &[event]))) {
                Some((event, Ok(true))) => singles.push(event),
                Some((_, Err(error))) if is_forbidden(&error) => return Err(forbidden(&error)),
                Some(_) | None => lacks.push(counter),
            }
        }
        let groups = groups(singles, |events| source.try_out(cpu, events).unwrap_or(false));
        Ok(Self { pmu, groups, lacks })
    }
}

/// Parts events into groups that fit: as many as possible into the first, and so on.
fn groups(events: Vec<Encoding>, mut fits: impl FnMut(&[Encoding]) -> bool) -> Vec<Vec<Encoding>> {
    let (mut groups, mut rest) = (Vec::new(), &events[..]);
    while !rest.is_empty() {
        // Each one fits by itself.
        let size = (2..=rest.len()).rev().find(|&size| fits(&rest[..size])).unwrap_or(1);
        groups.push(rest[..size].to_vec());
        rest = &rest[size..];
    }
    groups
}

fn is_forbidden(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(code, Some(Errno::ACCESS | Errno::PERM | Errno::NOSYS))
}

fn forbidden(error: &io::Error) -> String {
    format!(
        "counters may not be used ({error}): it takes `sysctl kernel.perf_event_paranoid=2` (user code of one's own \
         threads) or the privilege CAP_PERFMON; containers often forbid perf_event_open"
    )
}
