//! `ampsched-live run`.

use std::fs;
use std::path::Path;
use std::process::{Child, ExitCode};
use std::time::{Duration, Instant};

use ampsched_computer::{Capabilities, CoreMap, Evidence, Proc, Root};
use ampsched_live_daemon::{Guardian, Journal, Session, Setup, Summary};
use ampsched_live_factors::SensorSurvey;
use ampsched_live_host::{Backend, Demand, Dilation, Driver, Facts, Scope};
use ampsched_model::{InputError, Ns};
use rustix::time::{ClockId, clock_gettime};

use crate::args::RunArgs;
use crate::policy_text::{self, Named};
use crate::record::Record;
use crate::refusal::Question;
use crate::signals::Signals;
use crate::status::energy_text;
use crate::{command, instruments};

/// A session uses at most one part in so many of a CPU: where threads are so many that a look takes long, looks
/// become rarer (ours).
const CPU_SHARE_MAX: u32 = 4;

/// Runs a policy until its command ends, or it is stopped, or nobody is left.
pub fn run(args: RunArgs) -> Result<ExitCode, InputError> {
    let root = Root::default();
    let Named { text, name, policy } = policy_text::build(&args.policy, &args.param)?;
    let (cores, evidence) = args.cores.detect(&root)?;
    let mut capabilities = Capabilities::detect(&root);
    let instruments = instruments::start(&root, &cores, &policy.needs(), args.model.as_deref())?;
    capabilities.counts_instructions = instruments.counts_instructions();
    capabilities.counts_stalls = instruments.tells_stalls();
    let dilation = Dilation::new(args.dilation)?;
    let facts = read_facts(args.facts.as_deref())?;
    let question = Question {
        name: &name,
        policy: policy.as_ref(),
        cores: &cores,
        capabilities: &capabilities,
        allow_dvfs: args.allow_dvfs,
    };
    let (backend, lacks) = question.answer(args.backend, args.degrade)?;
    if backend == Backend::Scx {
        return in_kernel();
    }
    let scope = scope(&root, &args)?;
    if !args.quiet {
        announce(&text, &cores, evidence, &lacks);
    }
    let driver = Driver::new(policy, cores.topology(), dilation);
    let sensors = SensorSurvey::make(&root, &cores)?;
    let allow_dvfs = args.allow_dvfs;
    let policy = text;
    let setup = Setup {
        driver,
        cores,
        capabilities,
        scope,
        facts,
        instruments,
        sensors,
        allow_dvfs,
        lacks,
        policy,
    };
    Run::start(setup, args)?.until_it_ends()
}

/// The program for the kernel takes the same arguments.
fn in_kernel() -> Result<ExitCode, InputError> {
    let program = command::kernel_program();
    let error = {
        use std::os::unix::process::CommandExt;
        std::process::Command::new(&program).args(std::env::args_os().skip(1)).exec()
    };
    Err(InputError::new(program.display().to_string(), "", format!("cannot be run: {error}"))
        .with_hint("it loads policies into the kernel; --backend daemon does without"))
}

fn read_facts(file: Option<&Path>) -> Result<Facts, InputError> {
    let Some(file) = file else { return Ok(Facts::default()) };
    let name = file.display().to_string();
    let text = fs::read_to_string(file)
        .map_err(|error| InputError::new(name.clone(), "", error.to_string()))?;
    Facts::parse(&name, &text)
}

fn scope(root: &Root, args: &RunArgs) -> Result<Scope, InputError> {
    if let Some(folder) = &args.cgroup {
        return Scope::cgroup(root, folder);
    }
    if !args.pid.is_empty() {
        return Scope::trees(&Proc::new(root.clone()), &args.pid);
    }
    if args.command.is_empty() {
        return Err(InputError::new("run", "", "nothing to schedule")
            .with_hint("give a command behind --, or --pid, or --cgroup"));
    }
    Ok(Scope::Below { parent: std::process::id() as i32 })
}

fn announce(policy: &str, cores: &CoreMap, evidence: Evidence, lacks: &[Demand]) {
    eprintln!("ampsched-live: {policy} on {} ({evidence})", cores.describe());
    if cores.class_count() == 1 {
        eprintln!(
            "ampsched-live: all cores count as alike, so most policies have nothing to decide: \
             state classes by --big and --little"
        );
    }
    for demand in lacks {
        let how = if demand.is_essential { "DEGRADED" } else { "note" };
        eprintln!("ampsched-live: {how}: it {}; here: {}", demand.what, demand.instead);
    }
}

/// A session with everything around it.
struct Run {
    args: RunArgs,
    session: Session,
    guardian: Guardian,
    record: Record,
    signals: Signals,
    child: Option<Child>,
    started: Instant,
}

impl Run {
    fn start(setup: Setup, args: RunArgs) -> Result<Self, InputError> {
        let record = Record::open(&args, &setup.cores)?;
        let signals = Signals::new()?;
        let journal = record.journal();
        let mut session = Session::new(setup, Journal::create(&journal)?)?;
        let own = std::env::current_exe().map_err(|error| failed("guardian", &error))?;
        let guardian =
            Guardian::start(&own, &journal).map_err(|error| failed("guardian", &error))?;
        session.except(vec![guardian.pid()]);
        if !args.quiet {
            let status = session.status();
            for line in status.measured.iter().chain(&status.missing_factors) {
                eprintln!("ampsched-live: {line}");
            }
        }
        let child = match args.command.is_empty() {
            true => None,
            false => match command::start(&args.command) {
                Ok(child) => Some(child),
                Err(error) => {
                    session.finish()?;
                    guardian.dismiss();
                    return Err(error);
                }
            },
        };
        command::prefer_own();
        let started = Instant::now();
        Ok(Self { session, guardian, record, signals, child, started, args })
    }

    fn until_it_ends(mut self) -> Result<ExitCode, InputError> {
        let (mut ended, mut refused) = (None, Ok(()));
        while ended.is_none() && self.signals.stops() == 0 {
            let begun = cpu_time();
            refused = self.step();
            if refused.is_err() {
                break;
            }
            let worked = cpu_time().saturating_sub(begun);
            ended = self.child_ended()?;
            let nobody_left = self.child.is_none() && !self.session.has_members();
            if nobody_left && self.args.cgroup.is_none() {
                break;
            }
            if ended.is_none() {
                self.signals.sleep(self.until_next_step(worked));
            }
        }
        let Self { session, guardian, record, args, child, mut signals, .. } = self;
        let summary = session.finish();
        guardian.dismiss();
        record.close()?;
        conclude(&args, &summary?)?;
        // The command goes on without the policy, and its end is waited for.
        let code = command::wait_for(child, ended, &mut signals)?;
        refused.map(|()| code)
    }

    /// Errors: the policy asks for what it may not ask for.
    fn step(&mut self) -> Result<(), InputError> {
        let now_ns = self.started.elapsed().as_nanos() as Ns;
        match self.guardian.renew() {
            Ok(true) => self.session.except(vec![self.guardian.pid()]),
            Ok(false) => {}
            Err(error) => eprintln!("ampsched-live: no guardian: {error}"),
        }
        let decisions = self.session.step(now_ns).map_err(|refusal| {
            let error = InputError::new("policy", &self.args.policy, refusal.to_string());
            eprintln!("ampsched-live: {error}; the policy is ended and everything put back");
            error
        })?;
        if self.record.step(&self.session, &decisions, now_ns, Session::status) {
            let child = self.child.as_ref().map(|child| child.id() as i32);
            let own: Vec<i32> = child.into_iter().chain([self.guardian.pid()]).collect();
            command::bury_orphans(&Proc::default(), &own);
        }
        Ok(())
    }

    fn child_ended(&mut self) -> Result<Option<std::process::ExitStatus>, InputError> {
        let Some(child) = &mut self.child else { return Ok(None) };
        child.try_wait().map_err(|error| failed("command", &error))
    }

    /// How long to sleep after a step that took so much CPU time.
    fn until_next_step(&self, worked: Duration) -> Duration {
        let period_ns = self.session.period_ns();
        let now_ns = self.started.elapsed().as_nanos() as Ns;
        let next = Duration::from_nanos(period_ns - now_ns % period_ns);
        next.max(worked * (CPU_SHARE_MAX - 1))
    }
}

/// CPU time of this process so far.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn failed(what: &str, error: &dyn std::error::Error) -> InputError {
    InputError::new(what, "", error.to_string())
}

fn conclude(args: &RunArgs, summary: &Summary) -> Result<(), InputError> {
    let status = &summary.status;
    for failure in &status.failures {
        eprintln!("ampsched-live: not carried out: {failure}");
    }
    if let Some(restored) = &summary.restored {
        for failure in &restored.failures {
            eprintln!("ampsched-live: not put back: {failure}");
        }
    }
    if !args.quiet {
        eprintln!(
            "ampsched-live: {} {} for {:.1} s: {} threads, {} epochs, {} decisions, {:.1} % of a CPU; all put back",
            status.policy,
            status.mode,
            status.age_s,
            summary.threads,
            status.epochs,
            status.decisions,
            100.0 * status.overhead
        );
    }
    if !args.quiet {
        for energy in &status.energy {
            eprintln!("ampsched-live: {}", energy_text(energy));
        }
    }
    let Some(file) = &args.result else { return Ok(()) };
    let text = serde_json::to_string_pretty(summary).expect("a summary is plain data");
    fs::write(file, text + "\n").map_err(|error| failed(&file.display().to_string(), &error))
}
