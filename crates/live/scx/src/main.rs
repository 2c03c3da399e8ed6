//! The command `ampsched-live-scx`: runs a policy inside this computer's kernel. `ampsched-live run --backend scx` calls it with its own
//! arguments.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use ampsched_live_cli::args::{BackendArg, RunArgs};
use ampsched_live_cli::command::exit_code;
use ampsched_live_cli::policy_text::{self, Named};
use ampsched_live_cli::signals::Signals;
use ampsched_live_host::{
    CoreMap, Dilation, Driver, Facts, Proc, Root, Scope as Threads, parse_cpus,
};
use ampsched_model::{InputError, Ns};
use ampsched_policy::Needs;
use ampsched_scx::ScxError;
use ampsched_scx::kernel::{Options, Scope, choose};
use ampsched_scx::session::{Session, Summary};
use clap::{Parser, Subcommand};

/// Exit code of everything that a user can get wrong.
const BAD_INPUT: u8 = 2;
/// Exit code when the kernel has ended the scheduler.
const ENDED_BY_KERNEL: u8 = 3;
/// Most threads at a time (ours): half of what Linux allows by default (`pid_max` is 32,768).
const THREADS_MAX: u32 = 16_384;
/// After how long without being run a runnable thread ends the scheduler (ours; the kernel allows up to 30 s).
const TIMEOUT_MS: u32 = 10_000;
/// After how long without a sign of life of the policy the scheduler ends (ours).
const EPOCH_LIMIT_NS: Ns = 5_000_000_000;
/// How often new threads of a cgroup are looked for (ours).
const SEARCH: Duration = Duration::from_millis(50);

/// Runs a scheduling policy of ampsched inside this computer's kernel.
#[derive(Debug, Parser)]
#[command(name = "ampsched-live-scx", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run a policy for a command, for processes, for a cgroup or for all that runs here.
    Run {
        /// What `ampsched-live run` takes, too.
        #[command(flatten)]
        args: Box<RunArgs>,
        /// Schedule everything that runs on this computer, not only the command.
        #[arg(long, conflicts_with_all = ["pid", "cgroup"])]
        everything: bool,
    },
}

fn main() -> ExitCode {
    let Task::Run { args, everything } = Arguments::parse().task;
    run(&args, everything).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(BAD_INPUT)
    })
}

fn run(args: &RunArgs, everything: bool) -> Result<ExitCode, InputError> {
    refuse(args, everything)?;
    let mut signals = Signals::new()?;
    // Cores stay what they are when a CPU goes offline.
    let (cores, evidence) = args.cores.detect(&Root::default())?;
    if !args.quiet {
        eprintln!("ampsched-live-scx: {} on {} ({evidence})", args.policy, cores.describe());
    }
    let mut session = start(args, everything, &cores)?;
    let mut threads = chosen(args)?;
    let mut child = spawn(args)?;
    let (started, mut searched) = (Instant::now(), None::<Instant>);
    let mut ended = None;
    while ended.is_none() && signals.stops() == 0 {
        if searched.is_none_or(|at| at.elapsed() >= SEARCH) {
            searched = Some(Instant::now());
            threads.iter_mut().for_each(take_in);
        }
        session.step(started.elapsed().as_nanos() as Ns).map_err(in_words)?;
        if let Some(exit) = session.exit() {
            eprintln!(
                "ampsched-live-scx: the kernel has ended the scheduler: {}: {}",
                exit.reason, exit.message
            );
            if !exit.asks_for_restart() {
                return Ok(ExitCode::from(ENDED_BY_KERNEL));
            }
            drop(session);
            session = start(args, everything, &cores)?;
        }
        if let Some(running) = &mut child {
            ended = running.try_wait().map_err(|error| failed("command", &error))?;
        }
        if ended.is_none() {
            signals.sleep(Duration::from_nanos(session.period_ns()));
        }
    }
    conclude(args, &session.finish())?;
    Ok(ended.map_or(ExitCode::SUCCESS, |status| ExitCode::from(exit_code(status))))
}

/// What makes sense for a daemon only.
fn refuse(args: &RunArgs, everything: bool) -> Result<(), InputError> {
    let wrong = |option: &str, message: &str| Err(InputError::new(option, "", message));
    if args.backend == BackendArg::Daemon {
        return wrong("--backend", "daemon is what ampsched-live does");
    }
    if args.degrade {
        return wrong("--degrade", "in the kernel a policy runs as it is written, or not at all");
    }
    if args.trace.is_some() {
        return wrong("--trace", "in the kernel nothing is traced; use perf sched or trace-cmd");
    }
    if args.command.is_empty() && args.pid.is_empty() && args.cgroup.is_none() && !everything {
        return Err(InputError::new("run", "", "nothing to schedule")
            .with_hint("give a command behind --, or --pid, --cgroup or --everything"));
    }
    Ok(())
}

/// Loads the policy for those of the cores that are online.
fn start(args: &RunArgs, everything: bool, cores: &CoreMap) -> Result<Session, InputError> {
    let Named { name, policy, .. } = policy_text::build(&args.policy, &args.param)?;
    let facts = match args.facts.as_deref() {
        None => Facts::default(),
        Some(file) => {
            let name = file.display().to_string();
            Facts::parse(&name, &fs::read_to_string(file).map_err(|error| failed(&name, &error))?)?
        }
    };
    if !args.quiet {
        // Blame is counted in the kernel.
        let needs = Needs { blame: false, ..policy.needs() };
        for missing in facts.missing(&needs, cores.speed_ratio()) {
            eprintln!("ampsched-live-scx: {missing}");
        }
    }
    let driver = Driver::new(policy, cores.topology(), Dilation::new(args.dilation)?);
    let options = Options {
        scope: if everything { Scope::All } else { Scope::Chosen },
        cpus: cores.topology().cores().map(|core| cores.cpu(core) as u32).collect(),
        online: online(&Root::default(), cores)?,
        timeout_ms: TIMEOUT_MS,
        epoch_limit_ns: EPOCH_LIMIT_NS,
    };
    Session::start(&name, driver, cores.clone(), facts, &options, THREADS_MAX).map_err(in_words)
}

/// The cores whose CPUs are online, as a word.
fn online(root: &Root, cores: &CoreMap) -> Result<u64, InputError> {
    const FILE: &str = "/sys/devices/system/cpu/online";
    let text = root.text(FILE).unwrap_or_default();
    let cpus = parse_cpus(FILE, "", text.trim())?;
    Ok(cores.core_set(&cpus).iter().fold(0, |word, core| word | 1 << core.index()))
}

/// The threads to take in again and again, for processes and cgroups that run already.
fn chosen(args: &RunArgs) -> Result<Option<Threads>, InputError> {
    let root = Root::default();
    if let Some(folder) = &args.cgroup {
        return Threads::cgroup(&root, folder).map(Some);
    }
    if args.pid.is_empty() {
        return Ok(None);
    }
    Threads::trees(&Proc::new(root), &args.pid).map(Some)
}

/// Puts threads under the kernel's extensible class; their children inherit it.
fn take_in(threads: &mut Threads) {
    for found in threads.find(&Root::default(), &Proc::default()) {
        // Kernel threads and threads that have just ended cannot be chosen, which is no failure.
        let _ = choose(found.key.tid);
    }
}

/// Starts the command under the kernel's extensible class.
#[allow(unsafe_code)] // Between fork and exec.
fn spawn(args: &RunArgs) -> Result<Option<Child>, InputError> {
    let Some((program, words)) = args.command.split_first() else { return Ok(None) };
    let mut command = Command::new(program);
    // SAFETY: a single system call.
    unsafe { command.args(words).pre_exec(|| choose(0)) };
    command
        .spawn()
        .map(Some)
        .map_err(|error| InputError::new(program, "", format!("cannot be run: {error}")))
}

fn conclude(args: &RunArgs, summary: &Summary) -> Result<(), InputError> {
    if !args.quiet {
        eprintln!(
            "ampsched-live-scx: {} for {:.1} s: {} threads, {} epochs, {} decisions, queued {} times, {:.0} us per epoch of {:.0} threads ({:.0} per 1,000)",
            summary.policy,
            summary.age_s,
            summary.threads,
            summary.epochs,
            summary.decisions,
            summary.queued,
            summary.epoch_us,
            summary.epoch_threads,
            summary.epoch_us_per_1000_threads
        );
    }
    let Some(file) = &args.result else { return Ok(()) };
    let text = serde_json::to_string_pretty(summary).expect("a summary is plain data");
    fs::write(file, text + "\n").map_err(|error| failed(&file.display().to_string(), &error))
}

fn failed(what: &str, error: &dyn std::error::Error) -> InputError {
    InputError::new(what, "", error.to_string())
}

fn in_words(error: ScxError) -> InputError {
    InputError::new("scx", "", error.to_string())
}
