//! The command `ampsched-live-scx`: runs a policy inside this computer's kernel. `ampsched-live run --backend scx` calls it with its own
//! arguments.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use ampsched_computer::{CoreMap, Proc, Root, format_cpus, online_cpus};
use ampsched_live_cli::args::{BackendArg, FolderArgs, RunArgs};
use ampsched_live_cli::policy_text::{self, Named};
use ampsched_live_cli::record::Record;
use ampsched_live_cli::run_dir::RunDir;
use ampsched_live_cli::signals::Signals;
use ampsched_live_cli::{command, instruments};
use ampsched_live_daemon::Guardian;
use ampsched_live_host::{Dilation, Driver, Facts, Scope as Threads};
use ampsched_model::{InputError, Ns};
use ampsched_policy::Needs;
use ampsched_scx::ScxError;
use ampsched_scx::class::{self, Chosen};
use ampsched_scx::kernel::{Options, Scope};
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
    /// Put back what sessions left behind that were killed together with their guardians.
    Restore {
        /// Which sessions.
        #[command(flatten)]
        folder: FolderArgs,
    },
    /// Wait for the end of standard input, then put back what a file names (started by `run`).
    #[command(hide = true)]
    Guardian {
        /// The file.
        file: PathBuf,
    },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Run { args, everything } => run(*args, everything),
        Task::Restore { folder } => restore(&folder),
        Task::Guardian { file } => class::keep_watch(&file).map(|count| {
            report(count);
            ExitCode::SUCCESS
        }),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(BAD_INPUT)
    })
}

fn run(args: RunArgs, everything: bool) -> Result<ExitCode, InputError> {
    refuse(&args, everything)?;
    let mut signals = Signals::new()?;
    // Cores stay what they are when a CPU goes offline.
    let (cores, evidence) = args.cores.detect(&Root::default())?;
    let mut record = Record::open(&args, &cores)?;
    restore_remains(record.folder())?;
    if !args.quiet {
        eprintln!("ampsched-live-scx: {} on {} ({evidence})", args.policy, cores.describe());
    }
    let threads = chosen_threads(&args)?;
    let mut session = start(&args, everything, &cores)?;
    let mut chosen = if everything { None } else { Some(Scoped::new(threads, &record)?) };
    let mut child = match spawn(&args) {
        Ok(child) => child,
        Err(error) => {
            chosen.map_or(Ok(0), Scoped::finish)?;
            return Err(error);
        }
    };
    command::prefer_own();
    let started = Instant::now();
    let (mut ended, mut nobody_left) = (None, false);
    while ended.is_none() && !nobody_left && signals.stops() == 0 {
        if let Some(chosen) = &mut chosen {
            nobody_left = !chosen.step() && child.is_none() && args.cgroup.is_none();
        }
        let now_ns = started.elapsed().as_nanos() as Ns;
        let decisions = session.step(now_ns).map_err(in_words)?;
        record.step(&session, &decisions, now_ns, Session::status);
        if let Some(exit) = session.exit() {
            eprintln!(
                "ampsched-live-scx: the kernel has ended the scheduler: {}: {}",
                exit.reason, exit.message
            );
            if !exit.asks_for_restart() {
                drop(session);
                chosen.map_or(Ok(0), Scoped::finish)?;
                record.close()?;
                return Ok(ExitCode::from(ENDED_BY_KERNEL));
            }
            drop(session);
            record.begin_anew(now_ns);
            session = start(&args, everything, &cores)?;
        }
        if let Some(running) = &mut child {
            ended = running.try_wait().map_err(|error| failed("command", &error))?;
        }
        if ended.is_none() {
            signals.sleep(Duration::from_nanos(session.period_ns()));
        }
    }
    let summary = session.finish();
    chosen.map_or(Ok(0), Scoped::finish)?;
    record.close()?;
    conclude(&args, &summary)?;
    command::wait_for(child, ended, &mut signals)
}

/// Threads under the extensible class, and who puts them back.
struct Scoped {
    chosen: Chosen,
    guardian: Guardian,
    /// Those that run already, for `--pid` and `--cgroup`.
    threads: Option<Threads>,
    searched: Option<Instant>,
}

impl Scoped {
    fn new(threads: Option<Threads>, record: &Record) -> Result<Self, InputError> {
        let file = record.folder().classes();
        let chosen = Chosen::create(&file)?;
        let own = std::env::current_exe().map_err(|error| failed("guardian", &error))?;
        let guardian = Guardian::start(&own, &file).map_err(|error| failed("guardian", &error))?;
        Ok(Self { chosen, guardian, threads, searched: None })
    }

    /// Takes in new threads now and then; whether there is anybody to schedule, as of the last search.
    fn step(&mut self) -> bool {
        if let Err(error) = self.guardian.renew() {
            eprintln!("ampsched-live-scx: no guardian: {error}");
        }
        let Some(threads) = &mut self.threads else { return true };
        if self.searched.is_some_and(|at| at.elapsed() < SEARCH) {
            return true;
        }
        self.searched = Some(Instant::now());
        let own = [std::process::id() as i32, self.guardian.pid()];
        let mut found = threads.find(&Root::default(), &Proc::default());
        found.retain(|thread| !own.contains(&thread.pid));
        for thread in &found {
            // Kernel threads and threads that have just ended cannot be chosen, which is no failure.
            let _ = self.chosen.take_in(thread);
        }
        !found.is_empty()
    }

    /// Puts all threads back.
    fn finish(self) -> Result<usize, InputError> {
        let count = self.chosen.finish()?;
        self.guardian.dismiss();
        Ok(count)
    }
}

/// Puts back what sessions have left behind that are gone with their guardians.
fn restore(args: &FolderArgs) -> Result<ExitCode, InputError> {
    // Whoever has the lock has no session that this could disturb.
    let folder = RunDir::new(args);
    let _lock = folder.lock()?;
    restore_remains(&folder)?;
    Ok(ExitCode::SUCCESS)
}

fn restore_remains(folder: &RunDir) -> Result<(), InputError> {
    for file in folder.left_classes() {
        report(class::restore(&file)?);
    }
    Ok(())
}

fn report(count: usize) {
    if count > 0 {
        eprintln!("ampsched-live-scx: put back: scheduling class of {count} threads");
    }
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
    let (root, model) = (Root::default(), args.model.as_deref());
    let instruments = instruments::start(&root, cores, &policy.needs(), model)?;
    if !args.quiet {
        // Blame is counted in the kernel.
        let needs = Needs { blame: false, ..instruments.unmet(&policy.needs()) };
        for line in instruments.notes().iter().chain(&instruments.reasons()) {
            eprintln!("ampsched-live-scx: {line}");
        }
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
    Session::start(&name, driver, cores.clone(), facts, instruments, &options, THREADS_MAX)
        .map_err(in_words)
}

/// The cores whose CPUs are online, as a word. Errors: a CPU is in none of the stated classes, but the kernel has one
/// scheduler for all.
fn online(root: &Root, cores: &CoreMap) -> Result<u64, InputError> {
    let cpus = online_cpus(root)?;
    let outside = cpus.iter().copied().filter(|&cpu| cores.core(cpu).is_none());
    let outside = format_cpus(outside);
    if !outside.is_empty() {
        let message = format!("CPUs {outside} are online and in no class");
        return Err(InputError::new("cores", "", message)
            .with_hint("in the kernel a policy schedules every CPU: name all with --big, --middle and --little"));
    }
    Ok(cores.core_set(&cpus).iter().fold(0, |word, core| word | 1 << core.index()))
}

/// The threads to take in again and again, for processes and cgroups that run already.
fn chosen_threads(args: &RunArgs) -> Result<Option<Threads>, InputError> {
    let root = Root::default();
    if let Some(folder) = &args.cgroup {
        return Threads::cgroup(&root, folder).map(Some);
    }
    if args.pid.is_empty() {
        return Ok(None);
    }
    Threads::trees(&Proc::new(root), &args.pid).map(Some)
}

/// Starts the command under the kernel's extensible class.
#[allow(unsafe_code)] // Between fork and exec.
fn spawn(args: &RunArgs) -> Result<Option<Child>, InputError> {
    let Some((program, words)) = args.command.split_first() else { return Ok(None) };
    let mut command = Command::new(program);
    // SAFETY: a single system call.
    unsafe { command.args(words).pre_exec(class::choose_own) };
    command
        .spawn()
        .map(Some)
        .map_err(|error| InputError::new(program, "", format!("cannot be run: {error}")))
}

fn conclude(args: &RunArgs, summary: &Summary) -> Result<(), InputError> {
    if !args.quiet {
        let status = &summary.status;
        eprintln!(
            "ampsched-live-scx: {} for {:.1} s: {} threads, {} epochs, {} decisions, {:.1} % of a CPU; queued {} times; {:.0} us per epoch of {:.0} threads ({:.0} per 1,000)",
            status.policy,
            status.age_s,
            summary.threads,
            status.epochs,
            status.decisions,
            100.0 * status.overhead,
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
