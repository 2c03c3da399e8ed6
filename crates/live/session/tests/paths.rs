//! A program on the task runtime tells a session which of its threads executes the longest chain of tasks.
//!
//! A program without a test harness: a session's guardian is the session's own program once more, and so is the program
//! that it schedules.

mod common;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use ampsched_computer::ThreadKey;
use ampsched_live_driver::{Decision, Observation};
use ampsched_live_session::{
    Account, Backend, Journal, Observed, Outcome, PutBack, RecordSettings, Scheduled, Session,
    Setup, keep_watch, run,
};
use ampsched_model::{AppId, InputError, Ns, ThreadId};
use ampsched_policy::FactorKind;
use ampsched_taskrt::{Config, Cores, Runtime};
use common::settings;
use rustix::thread::gettid;
use serde::Serialize;

/// Nothing that is waited for takes a hundredth of this.
const PATIENCE: Duration = Duration::from_secs(60);
/// Tasks in each chain, all of which take a second at speed 1.
const CHAINS: [(&str, u32); 2] = [("long", 3), ("short", 1)];
/// Speed of the faster worker, as far as the runtime knows.
const SPEED: f64 = 2.0;
/// What a program says by its exit code.
const NOT_ASKED: u8 = 9;

thread_local! {
    static FOLDER: RefCell<PathBuf> = RefCell::default();
}

/// Writes something that is there as a whole or not at all.
fn say(folder: &Path, name: &str, what: &str) {
    let draft = folder.join(format!("{name}-draft"));
    fs::write(&draft, what).unwrap();
    fs::rename(draft, folder.join(name)).unwrap();
}

fn wait_for(folder: &Path, name: &str) {
    let begun = Instant::now();
    while !folder.join(name).exists() {
        assert!(begun.elapsed() < PATIENCE, "nobody says {name}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Executes the first task of each chain until the session has `seen` it, and then nothing until it has `done`.
fn program(folder: &Path) -> ExitCode {
    if std::env::var_os("AMPSCHED_TELL_PATHS").is_none() {
        return ExitCode::from(NOT_ASKED);
    }
    let cores = Cores::parse(&format!("big:{SPEED}=0;little=1")).unwrap();
    let runtime = &Runtime::new(&Config { pin: false, ..Config::new(cores) }).unwrap();
    let ended = runtime.graph(|scope| {
        for (name, tasks) in CHAINS {
            let mut last = scope.task("link").cost_s(1.0).run(move || {
                // Its path is told again when the inner ones have ended.
                let inner = runtime.scope(|scope| {
                    scope.task("inner").cost_s(0.1).run(|| {});
                });
                inner.unwrap();
                say(folder, name, &gettid().as_raw_pid().to_string());
                wait_for(folder, "seen");
            });
            for _ in 1..tasks {
                last = scope.task("link").cost_s(1.0).after(last).run(|| {});
            }
        }
    });
    ended.unwrap();
    wait_for(folder, "done");
    ExitCode::SUCCESS
}

/// Looks at threads and does nothing.
struct Watcher {
    folder: PathBuf,
    members: BTreeMap<i32, (ThreadId, AppId, i32)>,
    journal: Journal<String>,
}

#[derive(Clone, Debug, Serialize)]
struct Nothing {}

impl Outcome for Nothing {
    fn words(&self) -> Option<String> {
        None
    }
}

impl Observed for Watcher {
    fn scheduled(&self) -> impl Iterator<Item = Scheduled<'_>> {
        self.members.iter().map(|(&tid, &(thread, app, pid))| Scheduled {
            tid,
            pid,
            thread,
            app,
            program: "program",
            name: "",
            cpu: 0,
            blame_ns: None,
        })
    }

    fn account(&self) -> Account {
        Account {
            freezer: "none",
            tells_blame: false,
            has_power_of_clusters: false,
            energy: Vec::new(),
            losses: Vec::new(),
        }
    }
}

impl Backend for Watcher {
    const NAME: &'static str = "watcher";
    const PROGRAM: &'static str = "paths";
    const CPU_SHARE_MAX: f64 = 1.0;
    type Outcome = Nothing;
    type Touch = String;

    fn check(_setup: &Setup) -> Result<(), InputError> {
        Ok(())
    }

    fn start(_session: &mut Session, journal: Journal<String>) -> Result<Self, InputError> {
        Ok(Self { folder: FOLDER.with_borrow(Clone::clone), members: BTreeMap::new(), journal })
    }

    fn prepare(&self, _command: &mut Command) -> Result<(), InputError> {
        Ok(())
    }

    fn look(&mut self, session: &mut Session, now_ns: Ns) -> Vec<Observation> {
        let everywhere = session.cores.core_set(&session.cores.cpus().iter().copied().collect());
        for stat in session.find(now_ns).into_iter().flatten() {
            self.members.entry(stat.key.tid).or_insert_with(|| {
                let (tid, group) = (stat.key.tid, stat.group);
                let (thread, app) = session.add(tid, group, 1024, &everywhere, now_ns);
                (thread, app, stat.pid)
            });
        }
        Vec::new()
    }

    fn carry_out(&mut self, session: &mut Session, _: &[Decision]) -> Result<(), InputError> {
        let told_ns = |tid: &i32| {
            let factor = session.driver.factors(self.members.get(tid)?.0).path_ns;
            (factor.kind == FactorKind::Measured).then_some(factor.value)
        };
        let all: Vec<f64> = self.members.keys().filter_map(told_ns).collect();
        if !self.folder.join("seen").exists() {
            let executing = |name: &str| {
                let text = fs::read_to_string(self.folder.join(name)).ok()?;
                told_ns(&text.parse().unwrap())
            };
            let paths_ns = CHAINS.map(|(name, _)| executing(name));
            if paths_ns == CHAINS.map(|(_, tasks)| Some(f64::from(tasks) * 1e9 / SPEED)) {
                assert_eq!(all.len(), CHAINS.len(), "the other threads execute no tasks");
                say(&self.folder, "seen", "");
            }
        } else if all.is_empty() && !self.folder.join("done").exists() {
            say(&self.folder, "done", "");
        }
        Ok(())
    }

    fn has_threads(&self) -> bool {
        true
    }

    fn journal(&mut self) -> Option<&mut Journal<String>> {
        Some(&mut self.journal)
    }

    fn outstanding(touches: Vec<String>) -> Vec<String> {
        touches
    }

    fn finish(self, _session: &mut Session) -> Nothing {
        Nothing {}
    }

    fn concerns(_touches: &[String], _threads: &BTreeSet<ThreadKey>) -> bool {
        false
    }

    fn put_back(_touches: &[String]) -> PutBack {
        PutBack { what: String::new(), failures: Vec::new() }
    }
}

/// Runs the program under a policy; returns its exit code and what it has left in its folder.
fn session(policy: &str) -> (ExitCode, BTreeSet<String>) {
    let (own, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    FOLDER.set(folder.path().to_owned());
    let mut record = RecordSettings { quiet: true, ..RecordSettings::default() };
    record.folder.run_dir = Some(own.path().to_owned());
    let this = std::env::current_exe().unwrap();
    let command = [this.as_path(), Path::new("program"), folder.path()];
    let command = command.map(|word| word.to_str().unwrap().to_owned()).to_vec();
    let settings = settings(policy, command, record);
    let code = run::<Watcher>(Setup::new(settings).unwrap()).unwrap();
    let names = fs::read_dir(folder.path()).unwrap();
    (code, names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect())
}

fn who_executes_the_longest_chain_is_told_to_a_policy_that_asks() {
    let (code, said) = session("abreast:lengths=1");
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::SUCCESS));
    assert_eq!(said, ["done", "long", "seen", "short"].map(str::to_owned).into());
}

fn a_program_is_not_asked_for_what_its_policy_does_not_read() {
    let (code, said) = session("abreast");
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(NOT_ASKED)));
    assert_eq!(said, BTreeSet::new());
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    match words.get(1).map(String::as_str) {
        Some("guardian") => return keep_watch::<Watcher>(Path::new(&words[2])).unwrap(),
        Some("program") => return program(Path::new(&words[2])),
        _ => {}
    }
    who_executes_the_longest_chain_is_told_to_a_policy_that_asks();
    a_program_is_not_asked_for_what_its_policy_does_not_read();
    ExitCode::SUCCESS
}
