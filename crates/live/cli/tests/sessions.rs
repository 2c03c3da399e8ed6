//! Sessions on real processes: policies do what they say, and everything is put back, whoever is killed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use ampsched_computer::Proc;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ampsched-live");

/// The first two CPUs that this test may use; none if it may use one only.
fn two_cpus() -> Option<(usize, usize)> {
    let own = std::process::id() as i32;
    let cpus: Vec<usize> = Proc::default().cpus_allowed(own, own).unwrap().into_iter().collect();
    let pair = cpus.get(..2).map(|pair| (pair[0], pair[1]));
    if pair.is_none() {
        eprintln!("SKIPPED: this test may use one CPU only, so there are no two classes of cores");
    }
    pair
}

/// Waits for something that must come.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(300), "it never came true that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(pid: i32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

/// Processes that count for ever, each in a group of its own, with a low priority so that they disturb little.
struct Counters {
    children: Vec<Child>,
    cpus: BTreeSet<usize>,
    nice: i32,
}

impl Counters {
    fn new(count: usize) -> Self {
        let own = std::process::id() as i32;
        let cpus = Proc::default().cpus_allowed(own, own).unwrap();
        let start = |_| {
            let mut command = Command::new("nice");
            command.args(["-n", "10", "sh", "-c", "while :; do :; done"]);
            std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn().unwrap()
        };
        let proc = Proc::default();
        // What `nice` adds to, and Linux's limit.
        let nice = (proc.process(own).unwrap().nice + 10).min(19);
        let counters = Self { children: (0..count).map(start).collect(), cpus, nice };
        until("they count", || {
            counters.pids().all(|pid| proc.process(pid).is_ok_and(|stat| stat.name == "sh"))
        });
        counters
    }

    fn pids(&self) -> impl Iterator<Item = i32> {
        self.children.iter().map(|child| child.id() as i32)
    }

    fn arguments(&self) -> Vec<String> {
        self.pids().map(|pid| format!("--pid={pid}")).collect()
    }

    fn cpus_of(pid: i32) -> BTreeSet<usize> {
        Proc::default().cpus_allowed(pid, pid).unwrap()
    }

    /// Those that may use exactly these CPUs.
    fn on(&self, cpu: usize) -> usize {
        self.pids().filter(|&pid| Self::cpus_of(pid) == BTreeSet::from([cpu])).count()
    }

    /// Those that are frozen or stopped.
    fn held(&self) -> usize {
        let proc = Proc::default();
        let is_held = |&pid: &i32| {
            let is_stopped = proc.process(pid).is_ok_and(|stat| stat.state == 'T');
            let cgroups = proc.cgroups(pid).unwrap_or_default();
            let is_frozen = |path: &PathBuf| path.display().to_string().contains("ampsched-held");
            is_stopped || cgroups.values().any(is_frozen)
        };
        self.pids().filter(is_held).count()
    }

    /// Whether all are as they were at first.
    fn are_untouched(&self) -> bool {
        let nice = |pid: i32| Proc::default().process(pid).unwrap().nice;
        self.held() == 0
            && self.pids().all(|pid| Self::cpus_of(pid) == self.cpus && nice(pid) == self.nice)
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A session of a policy for some processes.
struct Session {
    child: Child,
    folder: TempDir,
}

impl Session {
    fn start(policy: &str, counters: &Counters, more: &[&str]) -> Option<Self> {
        Self::start_in(tempfile::tempdir().unwrap(), policy, counters, more)
    }

    fn start_in(folder: TempDir, policy: &str, counters: &Counters, more: &[&str]) -> Option<Self> {
        let (big, little) = two_cpus()?;
        let mut command = Command::new(PROGRAM);
        command.args(["run", "--backend", "daemon", "--quiet", "--policy", policy]);
        command.args([format!("--big={big}"), format!("--little={little}")]);
        command.args(counters.arguments()).args(more);
        command
            .arg("--run-dir")
            .arg(folder.path())
            .arg("--result")
            .arg(folder.path().join("result"));
        Some(Self { child: command.spawn().unwrap(), folder })
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn guardian(&self) -> Option<i32> {
        let proc = Proc::default();
        let is_guardian =
            |pid: &i32| proc.command(*pid).get(1).is_some_and(|word| word == "guardian");
        proc.children(self.pid()).unwrap_or_default().into_iter().find(is_guardian)
    }

    fn call(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).arg("--run-dir").arg(self.folder.path()).output().unwrap()
    }

    fn status(&self) -> Value {
        let output = self.call(&["status", "--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    fn stop(&mut self) -> Value {
        let output = self.call(&["stop"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(self.child.wait().unwrap().success());
        let text = fs::read_to_string(self.folder.path().join("result")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn journals(&self) -> usize {
        let names =
            fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("journal-")).count()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        kill(self.pid(), Signal::TERM);
        let _ = self.child.wait();
    }
}

/// The program with arguments and nothing to read: exit code, output, errors.
fn call(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(PROGRAM).args(arguments).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn hsp_binds_and_puts_back() {
    let counters = Counters::new(3);
    let Some(mut session) = Session::start("hsp", &counters, &["--ratio=2"]) else { return };
    let (big, little) = two_cpus().unwrap();
    until("one has the big core and two the little one", || {
        counters.on(big) == 1 && counters.on(little) == 2
    });
    let result = session.stop();
    assert!(counters.are_untouched());
    assert_eq!(result["status"]["mode"], "as written");
    assert_eq!(result["threads"], 3);
    assert_eq!(result["restored"]["failures"], serde_json::json!([]));
    assert_eq!(session.journals(), 0);
}

#[test]
fn hfee_stops_programs_in_turns_and_lets_all_go() {
    let counters = Counters::new(4);
    let more = ["--degrade", "--param=epoch_ms=100"];
    let Some(mut session) = Session::start("hfee", &counters, &more) else { return };
    let proc = Proc::default();
    let run_ns = |pid: i32| proc.run_and_wait_ns(pid, pid).unwrap_or_default().0;
    until("two of four programs on two cores are held back", || counters.held() == 2);
    let before: Vec<u64> = counters.pids().map(run_ns).collect();
    until("all have had a turn", || {
        counters.pids().zip(&before).all(|(pid, before)| run_ns(pid) > before + 1_000_000)
    });
    let result = session.stop();
    assert!(counters.are_untouched());
    assert_eq!(result["status"]["mode"], "degraded");
    let lacks = result["status"]["lacks"].to_string();
    assert!(lacks.contains("sets the clocks of clusters"), "{lacks}");
}

#[test]
fn after_a_sigkill_the_guardian_puts_back() {
    let counters = Counters::new(4);
    let more = ["--degrade", "--param=epoch_ms=100"];
    let Some(session) = Session::start("hfee", &counters, &more) else { return };
    until("programs are held back", || counters.held() == 2);
    kill(session.pid(), Signal::KILL);
    until("all is as it was", || counters.are_untouched() && session.journals() == 0);
}

#[test]
fn a_guardian_that_is_killed_is_replaced() {
    let counters = Counters::new(3);
    let Some(session) = Session::start("hsp", &counters, &["--ratio=2"]) else { return };
    let (big, _) = two_cpus().unwrap();
    until("they are bound", || counters.on(big) == 1);
    let first = session.guardian().expect("there is a guardian");
    kill(first, Signal::KILL);
    until("there is another", || session.guardian().is_some_and(|pid| pid != first));
    kill(session.pid(), Signal::KILL);
    until("all is as it was", || counters.are_untouched());
}

#[test]
fn when_both_are_killed_restore_puts_back() {
    let counters = Counters::new(3);
    let Some(session) = Session::start("hsp", &counters, &["--ratio=2"]) else { return };
    let (big, _) = two_cpus().unwrap();
    until("they are bound", || counters.on(big) == 1);
    // Stopped first, so that it cannot start another guardian.
    kill(session.pid(), Signal::STOP);
    kill(session.guardian().unwrap(), Signal::KILL);
    kill(session.pid(), Signal::KILL);
    until("both are gone", || session.guardian().is_none() && session.status().is_null());
    assert!(!counters.are_untouched());
    let output = session.call(&["restore"]);
    assert!(output.status.success());
    assert!(counters.are_untouched(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(session.call(&["restore"]).stdout, b"nothing to put back\n");
}

/// Copies the program, by another one: a process that this test starts meanwhile would inherit the file as one that is
/// written, which cannot be executed.
fn copy(to: &Path) {
    assert!(Command::new("cp").arg(PROGRAM).arg(to).status().unwrap().success());
}

/// A copy of the program with what stands in for the other one beside it, and a folder of sessions in which that one
/// has left a journal.
fn beside_another(script: &str) -> (TempDir, impl Fn(&[&str]) -> (Option<i32>, String)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    copy(&path.join("ampsched-live"));
    let other = path.join("ampsched-live-scx");
    fs::write(&other, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&other, fs::metadata(PROGRAM).unwrap().permissions()).unwrap();
    fs::write(path.join("journal-ampsched-live-scx-7"), "").unwrap();
    let call = move |arguments: &[&str]| {
        let mut command = Command::new(path.join("ampsched-live"));
        let output = command.args(arguments).arg("--run-dir").arg(&path).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    (folder, call)
}

#[test]
fn a_journal_is_left_to_the_program_that_wrote_it() {
    let (folder, call) = beside_another("read line || echo \"$@\" >\"$0.told\"; rm \"$2\"");
    assert_eq!(call(&["restore"]).0, Some(0));
    let told = fs::read_to_string(folder.path().join("ampsched-live-scx.told")).unwrap();
    let journal = folder.path().join("journal-ampsched-live-scx-7");
    assert_eq!(told, format!("guardian {}\n", journal.display()));
    assert!(!journal.exists());
}

#[test]
fn a_journal_that_cannot_be_restored_stops_no_session() {
    let (folder, call) = beside_another("");
    fs::remove_file(folder.path().join("ampsched-live-scx")).unwrap();
    let (code, errors) = call(&["restore"]);
    assert_eq!(code, Some(4));
    assert!(errors.contains("ampsched-live-scx: cannot be run: No such file"), "{errors}");
    let command = ["run", "--policy=hsp", "--backend=daemon"];
    let mut shell = Command::new(folder.path().join("ampsched-live"));
    let output =
        shell.args(command).arg("--run-dir").arg(folder.path()).args(["--", "true"]).output();
    let errors = String::from_utf8(output.unwrap().stderr).unwrap();
    assert!(
        errors.contains("not put back: ") && errors.contains("hsp as written for "),
        "{errors}"
    );
}

#[test]
fn two_sessions_do_not_meet() {
    let counters = Counters::new(1);
    let Some(session) = Session::start("hsp", &counters, &[]) else { return };
    until("it tells its status", || !session.status().is_null());
    let folder = session.folder.path().display().to_string();
    let pid = counters.arguments();
    let (code, _, errors) = call(&["run", "--policy=hsp", &pid[0], "--run-dir", &folder]);
    assert_eq!(code, Some(2));
    assert!(
        errors.contains(&format!("another session runs (process {})", session.pid())),
        "{errors}"
    );
}

#[test]
fn the_status_names_threads_and_cores() {
    let counters = Counters::new(2);
    let Some(session) = Session::start("gts", &counters, &[]) else { return };
    until("both are there", || session.status()["threads"].as_array().map_or(0, Vec::len) == 2);
    let status = session.status();
    assert_eq!((&status["policy"], &status["backend"]), (&"gts".into(), &"daemon".into()));
    let pids: BTreeSet<i64> = counters.pids().map(i64::from).collect();
    for thread in status["threads"].as_array().unwrap() {
        assert!(pids.contains(&thread["tid"].as_i64().unwrap()));
        assert_eq!(thread["program"], "sh");
        assert!(thread["blame_s"].is_null(), "it is not known");
    }
    assert_eq!(status["on_cores"].as_array().unwrap().len(), 2);
    let table = String::from_utf8(session.call(&["status"]).stdout).unwrap();
    assert!(table.starts_with("gts (daemon, as written) on big "), "{table}");
    assert!(table.contains("speed-up"), "{table}");
}

#[test]
fn a_session_does_not_schedule_itself() {
    let Some((big, little)) = two_cpus() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    // The session and its guardian are below the process that is scheduled.
    let script = format!(
        "{PROGRAM} run --quiet --policy=hsp --big={big} --little={little} --run-dir={path} --pid=$$ & read line; kill $!; wait"
    );
    let mut command = Command::new("sh");
    let mut shell = command.args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
    let status = || {
        let run_dir = format!("--run-dir={path}");
        serde_json::from_str::<Value>(&call(&["status", "--json", &run_dir]).1).unwrap_or_default()
    };
    until("it has looked again", || status()["looks"].as_u64().unwrap_or(0) > 20);
    let threads = status()["threads"].to_string();
    drop(shell.stdin.take());
    shell.wait().unwrap();
    assert!(threads.contains("\"sh\"") && !threads.contains("ampsched-live"), "{threads}");
}

/// A command under a policy that binds its threads; the session's files are in the folder.
fn run_command(folder: &TempDir, more: &[&str], script: &str) -> Option<Output> {
    let (big, little) = two_cpus()?;
    let mut command = Command::new(PROGRAM);
    command.args(["run", "--backend=daemon", "--policy=hsp"]).args(more);
    command.args([format!("--big={big}"), format!("--little={little}")]);
    command.arg("--run-dir").arg(folder.path()).args(["--", "sh", "-c", script]);
    Some(command.output().unwrap())
}

#[test]
fn a_command_s_exit_code_is_passed_on() {
    let folder = tempfile::tempdir().unwrap();
    let Some(output) = run_command(&folder, &["--quiet"], "echo out; exit 7") else { return };
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(7), &b"out\n"[..]));
    assert_eq!(output.stderr, b"");
    let output = run_command(&folder, &["--quiet"], "kill -9 $$").unwrap();
    assert_eq!(output.status.code(), Some(128 + 9));
}

#[test]
fn a_trace_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.pftrace");
    let option = format!("--trace={}", file.display());
    let script = "nice -n 10 sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'";
    let Some(output) = run_command(&folder, &[&option], script) else { return };
    assert!(output.status.success());
    let bytes = fs::read(&file).unwrap();
    let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("Cores of this computer") && has("swapper") && has("sh"));
    assert!(has("to big cores"), "the decision is in it");
}

#[test]
fn what_it_says_is_honest() {
    let folder = tempfile::tempdir().unwrap();
    let Some(output) = run_command(&folder, &[], "true") else { return };
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("note: it lets an idle fast core take a running thread"), "{errors}");
    assert!(
        errors.contains("speed-ups are missing: such threads count as gaining nothing"),
        "{errors}"
    );
    assert!(errors.contains("hsp as written for "), "{errors}");
}

#[test]
fn colab_is_refused_with_what_would_work() {
    let Some((big, little)) = two_cpus() else { return };
    let (big, little) = (format!("--big={big}"), format!("--little={little}"));
    let arguments = ["run", "--policy=colab", "--backend=daemon", &big, &little, "--", "true"];
    let (code, _, errors) = call(&arguments);
    assert_eq!(code, Some(2));
    assert!(
        errors
            .starts_with("error: policy: colab: cannot be run by the daemon as it is written: it ")
    );
    assert!(errors.contains("serves the waiting thread of the highest rank"), "{errors}");
    assert!(errors.contains("what would work: --degrade"), "{errors}");
    assert!(errors.contains("hsp, ") && errors.lines().count() == 1, "{errors}");
}

#[test]
fn bad_input_is_one_line_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let facts: PathBuf = folder.path().join("facts.toml");
    fs::write(&facts, "[programs.mcf]\nspeedup = -1\n").unwrap();
    let facts = format!("--facts={}", facts.display());
    let run_dir = format!("--run-dir={}", folder.path().display());
    for (arguments, expected) in [
        (&["--policy=prop-spp", "--", "true"][..], "unknown policy \"prop-spp\" (did you mean"),
        (
            &["--policy=hsp"],
            "run: nothing to schedule (give a command behind --, or --pid, --cgroup or --everything)",
        ),
        (&["--policy=hsp", "--pid=2147483647"], "--pid: there is no process 2147483647"),
        (&["--policy=hsp", "--cgroup=/tmp"], "--cgroup: /tmp is not a cgroup"),
        (
            &["--policy=hsp", "--dilation=0", "--", "true"],
            "--dilation: 0 is not within 0.001 to 1000",
        ),
        (&["--policy=hsp", &facts, "--", "true"], "programs.mcf.speedup: -1 is not above 0"),
        (&["--policy=hsp", "--facts=/nonexistent", "--", "true"], "/nonexistent: No such file"),
        (&["--policy=hsp", "--big=0", "--little=0", "--", "true"], "CPU 0 is in two classes"),
        (&["--policy=hsp", "--", "/nonexistent"], "/nonexistent: cannot be run: No such file"),
    ] {
        let (code, _, errors) =
            call(&[&["run", "--quiet", "--backend=daemon", &run_dir], arguments].concat());
        assert_eq!(code, Some(2), "{errors}");
        assert!(errors.starts_with("error: ") && errors.contains(expected), "{errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
    let (code, _, errors) = call(&["status", &run_dir]);
    assert_eq!((code, errors.contains("no session runs")), (Some(2), true), "{errors}");
}

#[test]
fn the_doctor_says_what_there_is() {
    let (code, text, _) = call(&["doctor"]);
    assert_eq!(code, Some(0));
    assert!(text.contains("sched_ext") && text.contains("freezer") && text.contains("privileges"));
    let (_, json, _) = call(&["doctor", "--json"]);
    let value: Value = serde_json::from_str(&json).unwrap();
    assert!(!value["classes"][0]["cpus"].as_array().unwrap().is_empty());
    assert!(value["policies"]["colab"]["daemon"].as_array().unwrap().len() > 1);
}

#[test]
fn the_doctor_says_where_the_kernel_program_is_or_who_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("ampsched-live");
    copy(&program);
    let doctor = |arguments: &[&str]| {
        let output = Command::new(&program).arg("doctor").args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let other = folder.path().canonicalize().unwrap().join("ampsched-live-scx");
    let missing = format!("kernel program {} is not there (wheels bring it; ", other.display());
    assert!(doctor(&[]).contains(&missing), "{}", doctor(&[]));
    assert!(doctor(&["--json"]).contains("\"kernel_program\": null"));
    fs::write(&other, "").unwrap();
    assert!(doctor(&[]).contains(&format!("kernel program {}\n", other.display())));
    let value: Value = serde_json::from_str(&doctor(&["--json"])).unwrap();
    assert_eq!(value["kernel_program"], other.to_str().unwrap());
}
