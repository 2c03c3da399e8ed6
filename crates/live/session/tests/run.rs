//! Sessions of a back end that schedules nobody and writes down what it is asked to do.
//!
//! A program without a test harness: a session's guardian is the session's own program once more.

mod common;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use ampsched_computer::ThreadKey;
use ampsched_live_driver::{Decision, Observation};
use ampsched_live_session::{
    Account, Backend, End, Journal, Observed, Outcome, PutBack, RecordSettings, Scheduled, Session,
    Setup, keep_watch, run,
};
use ampsched_model::{InputError, Ns};
use common::settings;
use serde::Serialize;
use serde_json::Value;

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// It cannot begin.
    Start,
    /// To begin takes much CPU time.
    SlowStart,
    /// It has to begin anew after some looks.
    Restart,
    /// It ends by itself.
    End,
    /// Nothing can be carried out.
    CarryOut,
    /// Nothing can be put back.
    PutBack,
}

thread_local! {
    static FAULT: Cell<Fault> = const { Cell::new(Fault::Nothing) };
    static CALLS: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

/// Remembers a call, unless it is the same as the last one.
fn called(what: &'static str) {
    CALLS.with_borrow_mut(|calls| {
        if calls.last() != Some(&what) {
            calls.push(what);
        }
    });
}

struct Nobody {
    looks: usize,
    journal: Journal<String>,
}

#[derive(Clone, Debug, Serialize)]
struct Looks {
    looked: usize,
}

impl Outcome for Looks {
    fn words(&self) -> Option<String> {
        Some(format!("looked {} times since it began", self.looked))
    }
}

impl Observed for Nobody {
    fn scheduled(&self) -> impl Iterator<Item = Scheduled<'_>> {
        std::iter::empty()
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

/// Looks before something goes wrong.
const LOOKS: usize = 3;

impl Backend for Nobody {
    const NAME: &'static str = "nobody";
    const PROGRAM: &'static str = "run";
    const CPU_SHARE_MAX: f64 = 1.0;
    type Outcome = Looks;
    type Touch = String;

    fn check(_setup: &Setup) -> Result<(), InputError> {
        called("check");
        Ok(())
    }

    fn start(_session: &mut Session, mut journal: Journal<String>) -> Result<Self, InputError> {
        called("start");
        journal.write(&"a touch".to_owned()).unwrap();
        if FAULT.get() == Fault::Start {
            return Err(InputError::new("start", "", "it cannot"));
        }
        let (begun, took) = (Instant::now(), Duration::from_millis(500));
        while FAULT.get() == Fault::SlowStart && begun.elapsed() < took {}
        Ok(Self { looks: 0, journal })
    }

    fn prepare(&self, _command: &mut Command) -> Result<(), InputError> {
        called("prepare");
        Ok(())
    }

    fn look(&mut self, _session: &mut Session, _now_ns: Ns) -> Vec<Observation> {
        called("look");
        self.looks += 1;
        Vec::new()
    }

    fn carry_out(
        &mut self,
        _session: &mut Session,
        _decisions: &[Decision],
    ) -> Result<(), InputError> {
        match FAULT.get() {
            Fault::CarryOut => Err(InputError::new("carry out", "", "it cannot")),
            _ => Ok(()),
        }
    }

    fn has_threads(&self) -> bool {
        true
    }

    fn end(&self) -> Option<End> {
        let can_restart = FAULT.get() == Fault::Restart;
        let ends = self.looks == LOOKS && (can_restart || FAULT.get() == Fault::End);
        ends.then(|| End { why: "it has ended".to_owned(), can_restart })
    }

    fn restart(&mut self, _session: &mut Session) -> Result<(), InputError> {
        called("restart");
        self.looks = 0;
        FAULT.set(Fault::Nothing);
        Ok(())
    }

    fn journal(&mut self) -> Option<&mut Journal<String>> {
        Some(&mut self.journal)
    }

    fn outstanding(touches: Vec<String>) -> Vec<String> {
        touches
    }

    fn finish(self, _session: &mut Session) -> Looks {
        called("finish");
        Looks { looked: self.looks }
    }

    fn concerns(_touches: &[String], _threads: &BTreeSet<ThreadKey>) -> bool {
        false
    }

    fn put_back(touches: &[String]) -> PutBack {
        called("put back");
        let fails = FAULT.get() == Fault::PutBack;
        let failures = if fails { touches.to_vec() } else { Vec::new() };
        PutBack { what: format!("{} things", touches.len()), failures }
    }
}

/// What became of a session.
struct Ended {
    code: Result<String, String>,
    calls: Vec<&'static str>,
    /// What it has written as its result.
    result: Value,
    /// Files that it has left in its folder.
    left: Vec<String>,
}

/// Runs a command of a shell; `left` is a journal that an earlier session has left.
fn session(fault: Fault, script: &str, left: Option<&str>) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    if let Some(left) = left {
        fs::write(folder.path().join(left), "").unwrap();
    }
    FAULT.set(fault);
    CALLS.take();
    let mut record = RecordSettings { quiet: true, ..RecordSettings::default() };
    record.folder.run_dir = Some(folder.path().to_owned());
    record.result = Some(folder.path().join("result"));
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    let settings = settings("rr", command, record);
    let code = run::<Nobody>(Setup::new(settings).unwrap());
    let result = fs::read_to_string(folder.path().join("result")).unwrap_or_default();
    let names = fs::read_dir(folder.path()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let is_of_session = |name: &String| name != "lock" && name != "result";
    Ended {
        code: code.map(|code| format!("{code:?}")).map_err(|error| error.to_string()),
        calls: CALLS.take(),
        result: serde_json::from_str(&result).unwrap_or_default(),
        left: names.filter(is_of_session).collect(),
    }
}

fn code(number: u8) -> Result<String, String> {
    Ok(format!("{:?}", ExitCode::from(number)))
}

const UNTIL_LOOKS: [&str; 4] = ["check", "start", "prepare", "look"];

fn a_session_runs_until_its_command_ends() {
    let ended = session(Fault::Nothing, "sleep 0.1; exit 7", Some("journal-run-1"));
    assert_eq!(ended.code, code(7));
    let with_left = ["check", "put back", "start", "prepare", "look", "finish", "put back"];
    assert_eq!(ended.calls, with_left);
    assert_eq!(ended.result["restored"]["what"], "1 things");
    assert_eq!(ended.left, Vec::<String>::new(), "what another has left is put back, too");
    let status = &ended.result["status"];
    assert_eq!((&status["backend"], &status["policy"]), (&"nobody".into(), &"rr".into()));
    assert_eq!(
        ended.result["looked"], status["looks"],
        "what the back end adds is beside the rest"
    );
}

fn low_what_it_takes_to_begin_is_no_overhead() {
    let ended = session(Fault::SlowStart, "sleep 0.3", None);
    let overhead = ended.result["status"]["overhead"].as_f64().unwrap();
    assert!(overhead < 0.5, "{overhead}");
}

fn a_back_end_begins_anew() {
    let ended = session(Fault::Restart, "sleep 0.3", None);
    assert_eq!(ended.code, code(0));
    assert_eq!(
        ended.calls,
        [&UNTIL_LOOKS[..], &["restart", "look", "finish", "put back"]].concat()
    );
    let [since, all] =
        [&ended.result["looked"], &ended.result["status"]["looks"]].map(Value::as_u64);
    assert!(since < all, "the session goes on: {since:?} looks of {all:?}");
}

fn a_back_end_that_ends_ends_the_session() {
    let ended = session(Fault::End, "sleep 1", None);
    assert_eq!(ended.code, code(3));
    assert_eq!(ended.calls, [&UNTIL_LOOKS[..], &["finish", "put back"]].concat());
    assert_eq!((ended.result, ended.left.len()), (Value::Null, 0));
}

fn a_command_goes_on_when_nothing_can_be_carried_out() {
    let ended = session(Fault::CarryOut, "sleep 0.1", None);
    assert_eq!(ended.code, Err("carry out: it cannot".to_owned()));
    assert_eq!(ended.calls, [&UNTIL_LOOKS[..], &["finish", "put back"]].concat());
    assert_eq!(ended.left, Vec::<String>::new());
}

fn m09_what_is_not_put_back_is_told_once_and_by_the_exit_code() {
    let ended = session(Fault::PutBack, "exit 0", None);
    assert_eq!(ended.code, code(4));
    assert_eq!(ended.calls, [&UNTIL_LOOKS[..], &["finish", "put back"]].concat());
    assert_eq!(ended.result["restored"]["failures"], serde_json::json!(["a touch"]));
    assert_eq!(ended.left.len(), 1, "it can be tried once more: {:?}", ended.left);
}

fn a_back_end_that_cannot_begin_leaves_nothing() {
    let ended = session(Fault::Start, "exit 0", None);
    assert_eq!(ended.code, Err("start: it cannot".to_owned()));
    assert_eq!(ended.calls, ["check", "start", "put back"]);
    assert_eq!(ended.left, Vec::<String>::new());
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    if words.get(1).is_some_and(|word| word == "guardian") {
        return keep_watch::<Nobody>(Path::new(&words[2])).unwrap();
    }
    a_session_runs_until_its_command_ends();
    a_back_end_begins_anew();
    a_back_end_that_ends_ends_the_session();
    a_command_goes_on_when_nothing_can_be_carried_out();
    a_back_end_that_cannot_begin_leaves_nothing();
    m09_what_is_not_put_back_is_told_once_and_by_the_exit_code();
    low_what_it_takes_to_begin_is_no_overhead();
    ExitCode::SUCCESS
}
