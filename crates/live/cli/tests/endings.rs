//! How sessions end when somebody wants them to, stops them or no longer listens, and what they are allowed.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use ampsched_computer::{Proc, format_cpus};
use rustix::process::{Pid, Signal, getuid, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ampsched-live");
/// Nobody's number on every Linux, and what it may call itself.
const NOBODY: &str = "65534";

/// The CPUs that this test may use, as two classes; none if there is one only.
fn classes() -> Option<[String; 2]> {
    let own = std::process::id() as i32;
    let cpus: Vec<usize> = Proc::default().cpus_allowed(own, own).unwrap().into_iter().collect();
    if cpus.len() < 2 {
        eprintln!("SKIPPED: this test may use one CPU only, so there are no two classes of cores");
        return None;
    }
    Some([format!("--big={}", cpus[0]), format!("--little={}", format_cpus(cpus[1..].to_vec()))])
}

fn is_root() -> bool {
    let is_root = getuid().is_root();
    if !is_root {
        eprintln!("SKIPPED: only root can become somebody else");
    }
    is_root
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

/// A command of a session of hsp, with its folder.
fn session(folder: &Path, more: &[&str], script: &str) -> Option<Command> {
    let mut command = Command::new(PROGRAM);
    command.args(["run", "--backend=daemon", "--policy=hsp"]).args(classes()?).args(more);
    command.arg("--run-dir").arg(folder).args(["--", "sh", "-c", script]).current_dir(folder);
    command.stdin(Stdio::null());
    Some(command)
}

fn words(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

/// How a session ends whose command says by a file that it has begun, and how long it takes.
fn end_by(signal: Signal, script: &str) -> Option<(TempDir, ExitStatus, Duration)> {
    let folder = tempfile::tempdir().unwrap();
    let more = ["--quiet", "--result=result", "--trace=trace"];
    let mut child = session(folder.path(), &more, script)?.spawn().unwrap();
    until("the command has begun", || folder.path().join("begun").exists());
    let asked = Instant::now();
    kill(child.id() as i32, signal);
    let status = child.wait().unwrap();
    Some((folder, status, asked.elapsed()))
}

/// Half a second on a quiet computer. A session that waits for its command never ends.
const SOON: Duration = Duration::from_secs(60);

#[test]
fn signals_end_a_session_soon_whatever_its_command_does() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let script = "trap '' INT TERM HUP; echo $$ >begun.new; mv begun.new begun; while :; do sleep 0.05; done";
        let Some((folder, status, time)) = end_by(signal, script) else { return };
        let pid: i32 =
            fs::read_to_string(folder.path().join("begun")).unwrap().trim().parse().unwrap();
        let goes_on = Proc::default().process(pid).is_ok();
        kill(pid, Signal::KILL);
        assert_eq!(status.code(), Some(code));
        assert!(time < SOON, "{time:?}");
        assert!(goes_on, "a command that does not want to end is not killed");
        let result = fs::read_to_string(folder.path().join("result")).unwrap();
        let result: Value = serde_json::from_str(&result).expect("it is whole");
        assert_eq!(result["status"]["policy"], "hsp");
        let left = fs::read_dir(folder.path()).unwrap();
        let mut left: Vec<_> =
            left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, ["begun", "lock", "result", "trace"]);
    }
}

#[test]
fn a_signal_is_passed_on_to_the_command() {
    let script = "trap 'echo told >told; exit 7' TERM; : >begun; while :; do sleep 0.02; done";
    let Some((folder, status, time)) = end_by(Signal::TERM, script) else { return };
    assert_eq!(status.code(), Some(143), "it is the session's exit code, not the command's");
    assert!(time < SOON, "{time:?}");
    assert_eq!(fs::read_to_string(folder.path().join("told")).unwrap(), "told\n");
}

#[test]
fn stop_ends_the_policy_and_lets_the_command_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let script = ": >begun; while [ ! -e go ]; do sleep 0.02; done; exit 7";
    let Some(mut command) = session(folder.path(), &["--quiet"], script) else { return };
    let mut child = command.spawn().unwrap();
    until("the command has begun", || folder.path().join("begun").exists());
    let stop = || Command::new(PROGRAM).arg("stop").arg("--run-dir").arg(folder.path()).output();
    until("it can be stopped", || stop().unwrap().status.success());
    assert!(child.try_wait().unwrap().is_none(), "the command is waited for");
    fs::write(folder.path().join("go"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(7));
}

/// What can be written to, and nobody reads.
fn nobody_reads() -> Stdio {
    let (reader, writer) = UnixStream::pair().unwrap();
    drop(reader);
    OwnedFd::from(writer).into()
}

#[test]
fn low_whoever_no_longer_listens_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut command) = session(folder.path(), &[], ": >done; exit 7") else { return };
    let status = command.stdout(nobody_reads()).stderr(nobody_reads()).status().unwrap();
    assert_eq!(status.code(), Some(7));
    assert!(folder.path().join("done").exists(), "the command has run");
    for arguments in [&["doctor"][..], &["doctor", "--json"], &["restore", "--run-dir=."]] {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).current_dir(folder.path());
        let output = command.stdout(nobody_reads()).stderr(Stdio::piped()).output().unwrap();
        assert_eq!((output.status.code(), words(&output.stderr)), (Some(0), String::new()));
    }
    let mut wrong = Command::new(PROGRAM);
    let status = wrong.arg("status").arg("--run-dir=.").stderr(nobody_reads()).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

#[test]
fn low_a_full_disk_is_an_error_in_one_line() {
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = Command::new(PROGRAM).arg("doctor").stdout(full).output().unwrap();
    let expected = "error: standard output: No space left on device (os error 28)\n";
    assert_eq!((output.status.code(), words(&output.stderr)), (Some(2), expected.to_owned()));
}

/// A process that counts for ever, with a low priority so that it disturbs little.
struct Counter(Child);

impl Counter {
    fn new() -> Self {
        let mut command = Command::new("nice");
        Self(command.args(["-n", "10", "sh", "-c", "while :; do :; done"]).spawn().unwrap())
    }

    fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    /// Number of CPUs that it may use.
    fn cpus(&self) -> usize {
        Proc::default().cpus_allowed(self.pid(), self.pid()).unwrap().len()
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_a_stopped_session_has_touched_is_put_back() {
    let Some(classes) = classes() else { return };
    let (folder, counter) = (tempfile::tempdir().unwrap(), Counter::new());
    let before = counter.cpus();
    let mut command = Command::new(PROGRAM);
    command.args(["run", "--backend=daemon", "--policy=hsp", "--ratio=2"]).args(classes);
    command.arg(format!("--pid={}", counter.pid())).arg("--run-dir").arg(folder.path());
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id() as i32;
    until("it is bound", || counter.cpus() < before);
    kill(pid, Signal::STOP);
    until("the guardian has put back", || counter.cpus() == before);
    kill(pid, Signal::CONT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(counter.cpus(), before, "nothing is touched any more");
    assert_eq!(output.status.code(), Some(0));
    let said = words(&output.stderr);
    assert!(said.contains(&format!("the session (process {pid}) is stopped")), "{said}");
    let left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["lock"]);
}

#[test]
fn a_service_manager_is_told_and_the_command_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let script = "sleep 1; exit ${NOTIFY_SOCKET:+7}${WATCHDOG_USEC:+8}";
    let Some(mut command) = session(folder.path(), &["--quiet"], script) else { return };
    let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
    let listener = std::thread::spawn(move || {
        let (mut told, mut bytes) = (Vec::new(), [0; 64]);
        while told.last().is_none_or(|last| last != "STOPPING=1") {
            let length = socket.recv(&mut bytes).unwrap();
            told.push(words(&bytes[..length]));
        }
        told
    });
    command.env("NOTIFY_SOCKET", folder.path().join("notify")).env("WATCHDOG_USEC", "200000");
    assert_eq!(command.status().unwrap().code(), Some(0));
    let told = listener.join().unwrap();
    assert_eq!(told[0], "READY=1");
    let signs = &told[1..told.len() - 1];
    // Each 100 ms for a second, on a computer that does other things, too.
    assert!(signs.len() >= 4 && signs.iter().all(|sign| sign == "WATCHDOG=1"), "{told:?}");
}

/// What a command sees of itself under sudo, as far as that is in the environment.
fn under_sudo(uid: &str, more: &[&str]) -> Option<Output> {
    let folder = tempfile::tempdir().unwrap();
    let script = "id -u; id -G; echo $HOME $USER $LOGNAME; grep -E '^(NoNewPrivs|CapEff|CapPrm|CapAmb):' /proc/self/status";
    let mut command = session(folder.path(), more, script)?;
    Some(command.current_dir("/").env("SUDO_UID", uid).output().unwrap())
}

#[test]
fn under_sudo_the_command_runs_as_the_caller() {
    if !is_root() {
        return;
    }
    let Some(output) = under_sudo(NOBODY, &[]) else { return };
    let said = words(&output.stderr);
    assert_eq!(
        said.matches("the command runs as nobody (65534); --user root keeps root").count(),
        1
    );
    let seen = words(&output.stdout);
    let lines: Vec<&str> = seen.lines().collect();
    assert_eq!(lines[..3], ["65534", "65534", "/nonexistent nobody nobody"], "{seen}");
    assert!(seen.contains("NoNewPrivs:\t1"), "{seen}");
    for set in ["CapEff", "CapPrm", "CapAmb"] {
        assert!(seen.contains(&format!("{set}:\t0000000000000000")), "{seen}");
    }
    let kept = under_sudo(NOBODY, &["--user=root"]).unwrap();
    assert!(words(&kept.stdout).starts_with("0\n") && !words(&kept.stderr).contains("runs as"));
    let by_number = under_sudo("0", &["--user=65534"]).unwrap();
    assert!(words(&by_number.stdout).starts_with("65534\n"));
    for (uid, more) in [("0", &["--user=no-such-user"][..]), ("4294967294", &[])] {
        let output = under_sudo(uid, more).unwrap();
        let said = words(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains("there is no such user (--user root keeps"), "{said}");
    }
}

/// The program as nobody with some capabilities, with its folder.
struct AsNobody {
    folder: TempDir,
    command: Command,
}

impl AsNobody {
    fn new(capabilities: &str, arguments: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(folder.path(), Some(65534), Some(65534)).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
        if !capabilities.is_empty() {
            command.args(["--inh-caps", capabilities, "--ambient-caps", capabilities]);
        }
        // A copy, as the folder of the build may be closed to others; by another program, because a process that
        // another test starts meanwhile would inherit it as a file that is written, which cannot be executed.
        let program = folder.path().join("ampsched-live");
        assert!(Command::new("cp").arg(PROGRAM).arg(&program).status().unwrap().success());
        command.arg(program).args(["run", "--quiet", "--policy=hsp", "--backend=daemon"]);
        command.arg("--run-dir").arg(folder.path().join("run")).args(arguments).current_dir("/");
        command.stderr(Stdio::piped()).stdout(Stdio::piped());
        Self { folder, command }
    }

    /// Runs until something holds or a while has passed, then ends the policy; returns what it has said.
    fn run_until(mut self, mut holds: impl FnMut() -> bool) -> String {
        let child = self.command.spawn().unwrap();
        let started = Instant::now();
        let status = self.folder.path().join("run/status.json");
        while !(holds() || status.exists() && started.elapsed() > Duration::from_secs(3)) {
            assert!(started.elapsed() < Duration::from_secs(300), "it never began");
            std::thread::sleep(Duration::from_millis(5));
        }
        kill(child.id() as i32, Signal::USR1);
        words(&child.wait_with_output().unwrap().stderr)
    }
}

#[test]
fn a_capability_stands_in_for_root() {
    let Some(classes) = classes().filter(|_| is_root()) else { return };
    if Command::new("setpriv").arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no setpriv, which gives capabilities");
        return;
    }
    let counter = Counter::new();
    let before = counter.cpus();
    let more = [format!("--pid={}", counter.pid()), "--ratio=2".to_owned()];
    let of_root = [&classes[..], &more].concat();
    let said = AsNobody::new("", &of_root).run_until(|| counter.cpus() < before);
    assert!(said.contains("(CAP_SYS_NICE or the same user is needed)"), "{said}");
    let mut bound = false;
    let said = AsNobody::new("+sys_nice", &of_root).run_until(|| {
        bound = counter.cpus() < before;
        bound
    });
    assert_eq!((bound, said.as_str()), (true, ""));
    assert_eq!(counter.cpus(), before);
    // They are the session's: its command has none of them, and cannot become somebody else.
    let caps = ["--", "grep", "-E", "^Cap(Eff|Prm|Amb)", "/proc/self/status"].map(str::to_owned);
    let mut own = AsNobody::new("+sys_nice", &[&classes[..], &caps].concat());
    let seen = words(&own.command.output().unwrap().stdout);
    assert_eq!(seen.matches("0000000000000000").count(), 3, "{seen}");
    let other = ["--user=root", "--", "true"].map(str::to_owned);
    let mut other = AsNobody::new("+sys_nice", &[&classes[..], &other].concat());
    let output = other.command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(words(&output.stderr).contains("only root can run a command as root"));
}

#[test]
fn h34_the_kernel_s_own_policies_change_nothing_and_say_so() {
    for policy in ["linux", "cfs", "eevdf"] {
        let folder = tempfile::tempdir().unwrap();
        let Some(classes) = classes() else { return };
        let mut command = Command::new(PROGRAM);
        command.args(["run", "--backend=daemon"]).args(classes).arg(format!("--policy={policy}"));
        command.arg("--run-dir").arg(folder.path()).args(["--", "true"]);
        let said = words(&command.output().unwrap().stderr);
        assert!(said.contains("note: it is rules only"), "{said}");
        assert!(said.contains("here: nothing is changed"), "{said}");
        assert!(said.contains(&format!("{policy} by the kernel itself for ")), "{said}");
    }
}
