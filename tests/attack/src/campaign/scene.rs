//! One scene: made of a seed and a number, run under several policies, judged.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ampsched_model::{App, FileKind, Machine, Op, Workload};
use ampsched_policy::build_policy;
use ampsched_sim::{Job, Limits, Options, Outcome, run_batch, simulate_with};

use super::judge;
use super::machines::{self, MachineText};
use super::mechanisms;
use super::programs::{self, ProgramText};
use super::record::Record;
use super::settings::{self, PolicySpec};
use crate::dice::Dice;
use crate::panics;
use crate::shipped::Shipped;

/// Policies that run each scene.
const POLICIES: usize = 4;

/// A machine, a workload, a way to run it, and policies that do.
#[derive(Debug)]
pub struct Scene {
    machine_text: MachineText,
    programs: Vec<ProgramText>,
    machine: Machine,
    workload: Workload,
    options: Options,
    policies: Vec<PolicySpec>,
    /// Processors of the batch.
    threads: usize,
}

/// Something that does not hold.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What, in one line.
    pub what: String,
    /// The policy with its parameters, as on the command line; none: it concerns several.
    pub policy: Option<String>,
}

/// What running a scene has come to.
#[derive(Debug, Default)]
pub struct Report {
    /// Simulations that were run.
    pub simulations: u64,
    /// Refusals that are right, such as that of a program that needs no time and is to be repeated.
    pub refused: u64,
    /// What does not hold.
    pub failures: Vec<Failure>,
}

impl Scene {
    /// The scene of that number.
    ///
    /// # Errors
    /// A machine or program that is refused: either this crate or the reader is wrong.
    pub fn new(seed: u64, number: u64, shipped: &Shipped) -> Result<Self, String> {
        let dice = &mut Dice::new(seed, number);
        let machine_text = machines::machine(dice);
        let count = *dice.of(&[1, 1, 1, 2, 3]);
        let programs: Vec<ProgramText> =
            (0..count).map(|_| programs::program(dice, machine_text.cores)).collect();
        let mut catalog = shipped.catalog.clone();
        let wrong = |error: ampsched_model::InputError| error.to_string();
        catalog
            .add(FileKind::Machine, "machine", "machine.toml", &machine_text.text)
            .map_err(wrong)?;
        let machine = catalog.machine("machine").map_err(wrong)?;
        let mut apps = Vec::new();
        for (index, program) in programs.iter().enumerate() {
            let name = format!("p{index}");
            catalog
                .add(FileKind::Program, &name, &format!("{name}.toml"), &program.text)
                .map_err(wrong)?;
            let read = catalog.program(&name, &[]).map_err(wrong)?;
            let program = Arc::new(mechanisms::of_replay(read, &program.text));
            let start_ns = if dice.once_in(4) { dice.whole(0..=5_000_000) } else { 0 };
            let nice = if dice.once_in(4) { dice.whole(0..=20) as i8 - 10 } else { 0 };
            apps.push(App { name, program, start_ns, nice });
        }
        let workload = Workload { name: "mix".into(), description: String::new(), apps };
        let options = settings::options(dice, &machine_text, &shipped.models);
        let policies = (0..POLICIES).map(|_| settings::policy(dice)).collect();
        let threads = dice.whole(1..=3) as usize;
        Ok(Self { machine_text, programs, machine, workload, options, policies, threads })
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The workload.
    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// How it is run.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Names of the policies that run it.
    pub fn policies(&self) -> impl Iterator<Item = &'static str> {
        self.policies.iter().map(|(name, _)| *name)
    }

    /// Runs and judges it.
    pub fn run(&self) -> Report {
        let mut report = Report::default();
        let mut first: Vec<(usize, Outcome)> = Vec::new();
        let limits = Limits::new(&self.machine, &self.workload, &self.options);
        for (index, policy) in self.policies.iter().enumerate() {
            report.simulations += 1;
            match self.watched(policy, &limits) {
                Ok(Some(outcome)) => first.push((index, outcome)),
                Ok(None) => report.refused += 1,
                Err(what) => report.failures.push(Failure { what, policy: Some(in_words(policy)) }),
            }
        }
        report.failures.extend(self.again(&first, &mut report.simulations));
        report.failures.extend(self.unequal_work(&first));
        report
    }

    /// One policy, traced; none if it is refused with good reason.
    fn watched(&self, policy: &PolicySpec, limits: &Limits) -> Result<Option<Outcome>, String> {
        let mut record = Record::default();
        let run = AssertUnwindSafe(|| {
            let built =
                build_policy(policy.0, &policy.1).map_err(|error| format!("refused: {error}"))?;
            Ok::<_, String>(simulate_with(
                &self.machine,
                &self.workload,
                policy.0,
                built,
                &self.options,
                Some(&mut record),
            ))
        });
        let outcome = match catch_unwind(run).map_err(|_| panics::last())?? {
            Ok(outcome) => outcome,
            Err(error) if is_right(&error, policy.0) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let flaw = judge::flaw(&self.machine, &self.options, &outcome);
        let flaw = flaw.or_else(|| judge::beaten_limit(limits, &outcome));
        match flaw.or_else(|| record.contradiction(&outcome)) {
            None => Ok(Some(outcome)),
            Some(flaw) => Err(flaw),
        }
    }

    /// The same once more, untraced and side by side: the results must be the same bits.
    fn again(&self, first: &[(usize, Outcome)], simulations: &mut u64) -> Vec<Failure> {
        let job = |(index, _): &(usize, Outcome)| {
            let (name, params) = &self.policies[*index];
            Job {
                machine: self.machine.clone(),
                workload: self.workload.clone(),
                policy: (*name).to_owned(),
                params: params.clone(),
                options: self.options.clone(),
            }
        };
        let jobs: Vec<Job> = first.iter().map(job).collect();
        *simulations += jobs.len() as u64;
        let again = catch_unwind(AssertUnwindSafe(|| run_batch(&jobs, self.threads, &|_| {})));
        let Ok(again) = again else {
            return vec![Failure { what: format!("in a batch, {}", panics::last()), policy: None }];
        };
        let differs = |((index, one), other): (&(usize, Outcome), Result<Outcome, _>)| {
            let same = other.as_ref().is_ok_and(|other| format!("{one:?}") == format!("{other:?}"));
            (!same).then(|| Failure {
                what: "a second run, untraced and in a batch, tells something else".to_owned(),
                policy: Some(in_words(&self.policies[*index])),
            })
        };
        first.iter().zip(again).filter_map(differs).collect()
    }

    /// Policies that have done different work, of whole runs of programs whose work does not depend on cores.
    fn unequal_work(&self, outcomes: &[(usize, Outcome)]) -> Vec<Failure> {
        if self.options.until_ns.is_some() {
            return Vec::new();
        }
        let mut seen: BTreeMap<(usize, u32), (usize, u64)> = BTreeMap::new();
        let mut failures = Vec::new();
        for (index, outcome) in outcomes {
            for (key, work) in self.work(outcome) {
                let (before, expected) = *seen.entry(key).or_insert((*index, work));
                if work != expected {
                    failures.push(Failure {
                        what: format!(
                            "{work} instructions of application p{}, but {expected} under {}",
                            key.0,
                            in_words(&self.policies[before])
                        ),
                        policy: Some(in_words(&self.policies[*index])),
                    });
                    break;
                }
            }
        }
        failures
    }

    /// Instructions of each repetition that ended of each application whose work is fixed.
    fn work(&self, outcome: &Outcome) -> BTreeMap<(usize, u32), u64> {
        let mut work = BTreeMap::new();
        for thread in &outcome.threads {
            let app = usize::from(thread.app);
            let ended = (thread.repetition as usize) < outcome.apps[app].completions_ns.len();
            if ended && self.programs[app].fixed_work {
                *work.entry((app, thread.repetition)).or_insert(0) += thread.instructions;
            }
        }
        work
    }

    /// Files and settings with which somebody can repeat it without this program.
    pub fn describe(&self) -> String {
        let mut text = format!("== machine.toml\n{}", self.machine_text.text);
        for (index, (program, app)) in self.programs.iter().zip(&self.workload.apps).enumerate() {
            let _ = write!(
                text,
                "== p{index}.toml (start_ns {}, nice {})\n{}",
                app.start_ns, app.nice, program.text
            );
            for (step, op) in app.program.code.iter().enumerate() {
                if matches!(op, Op::SleepUntil { .. } | Op::Period { .. }) {
                    let _ = writeln!(text, "step {step} of p{index} is {op:?}");
                }
            }
        }
        let policies: Vec<String> = self.policies.iter().map(in_words).collect();
        let _ =
            write!(text, "== settings\n{:?}\n== policies\n{}\n", self.options, policies.join("\n"));
        text
    }
}

/// A policy as on the command line.
fn in_words((name, params): &PolicySpec) -> String {
    params.iter().fold((*name).to_owned(), |text, (key, value)| format!("{text}:{key}={value}"))
}

/// Policies under which a new thread may always come before one that waits, as in the kernel: it starts at the mean of
/// the others' virtual times, and its deadline is earlier (Linux `place_entity`, `PLACE_DEADLINE_INITIAL`).
const NEW_BEFORE_WAITING: [&str; 2] = ["eevdf", "linux"];

/// What may be refused although all that is asked for is legal.
fn is_right(error: &ampsched_sim::SimError, policy: &str) -> bool {
    use ampsched_sim::SimError;
    if let SimError::Outlasted { .. } = error {
        return NEW_BEFORE_WAITING.contains(&policy);
    }
    matches!(
        error,
        SimError::NothingToRepeat { .. }
            | SimError::ThermalRunaway { .. }
            | SimError::SliceTooShort { .. }
            | SimError::RoundTooShort { .. }
            | SimError::OnlySwitching { .. }
    )
}
