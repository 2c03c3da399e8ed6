//! What others know of the command line is written from it: the man page, and what Python passes on.

// Written from the same arguments, not all of which are used here.
#[allow(dead_code)]
#[path = "../src/args.rs"]
mod args;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ampsched_computer::RIGHTS;
use ampsched_live_session::Means;
use ampsched_live_session::arguments::{Task, describe};
use clap::{CommandFactory, Parser};
use clap_mangen::Man;

const TAIL: &str = r#".SH FILES
.TP
/run/ampsched, or ampsched below $XDG_RUNTIME_DIR
Lock, status and journal of the running session, in the kernel or by the daemon.
.SH "EXIT STATUS"
.TP
0
The session has ended and everything is put back.
.TP
2
The arguments are wrong, or the policy is refused; one line says why.
.TP
3
The kernel has ended the scheduler in it; one line says why.
.TP
4
Something could not be put back; a line for each says what.
.TP
129, 130, 143
SIGHUP, SIGINT or SIGTERM has ended the session, and was passed on to its command; everything is put back.
.TP
otherwise
The exit status of the command that was run.
.SH PRIVILEGES
None for one's own processes, but that counters need CAP_PERFMON where kernel.perf_event_paranoid is above 2. Otherwise:
"#;

const END: &str = r#".PP
Under sudo the command runs as whoever has called it, without new privileges (--user). A command never gets the session's capabilities.
.SH "SEE ALSO"
sched_setaffinity(2), setpriority(2), cgroups(7), capabilities(7), sched(7)
"#;

/// What takes privileges, as the doctor tells it.
fn privileges() -> String {
    let row = |(what, needs): (&str, &[&str])| format!(".TP\n{}\n{what}\n", needs.join(", "));
    RIGHTS.into_iter().map(row).collect()
}

fn page() -> String {
    let command = args::Arguments::command()
        .version(env!("CARGO_PKG_VERSION")) // the page is the same however it was built
        .disable_help_subcommand(true);
    let mut text = Vec::new();
    let man = Man::new(command.clone()).section("8").date("").source("ampsched");
    man.render_title(&mut text).unwrap();
    man.render_name_section(&mut text).unwrap();
    man.render_synopsis_section(&mut text).unwrap();
    man.render_description_section(&mut text).unwrap();
    for task in command.get_subcommands().filter(|task| !task.is_hide_set()) {
        let name = format!(".SH \"AMPSCHED-LIVE {}\"\n", task.get_name().to_uppercase());
        text.extend(name.bytes());
        let man = Man::new(task.clone());
        man.render_description_section(&mut text).unwrap();
        man.render_options_section(&mut text).unwrap();
    }
    let text = String::from_utf8(text).unwrap();
    // Sections of a task are parts of its own.
    let text = text
        .replace(".SH DESCRIPTION\n", ".SS Description\n")
        .replace(".SH OPTIONS\n", ".SS Options\n");
    text.replacen(".SS Description\n", ".SH DESCRIPTION\n", 1) + TAIL + &privileges() + END
}

/// Compares a file with what it must say, or writes it.
fn check(file: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(file);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&file, text).unwrap();
    }
    let is_same = fs::read_to_string(&file).unwrap_or_default() == text;
    assert!(
        is_same,
        "{}: run: BLESS=1 cargo test -p ampsched-live-cli --test interface",
        file.display()
    );
}

#[test]
fn the_man_page_is_up_to_date() {
    check("packaging/ampsched-live.8", &page());
}

#[test]
fn python_knows_the_options() {
    let described = describe(&args::Arguments::command());
    let text = serde_json::to_string_pretty(&described).unwrap();
    check("python/ampsched/live/commands.json", &(text + "\n"));
}

#[test]
fn the_security_model_names_what_takes_privileges() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/explanation/security.md");
    let page = fs::read_to_string(page).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.contains("| `CAP_")).collect();
    let row = |(what, needs): (&str, &[&str])| format!("| {what} | `{}` |", needs.join("`, `"));
    assert_eq!(rows, RIGHTS.map(row));
}

/// What the unit of systemd says behind a key, once for each line.
fn unit(key: &str) -> Vec<String> {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packaging/ampsched-live.service");
    let text = fs::read_to_string(file).unwrap();
    let values = text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    values.map(str::to_owned).collect()
}

#[test]
fn the_service_runs_either_back_end() {
    let command = unit("ExecStart").concat();
    let command = command.replace("${POLICY}", "hsp").replace("$SCOPE", "--cgroup=/a");
    let command = command.replace("$OPTIONS", "--big=0-1 --backend=scx");
    let arguments = args::Arguments::try_parse_from(command.split_whitespace()).unwrap();
    let args::LiveTask::Session(Task::Run(settings)) = arguments.task else { panic!("{command}") };
    assert_eq!((settings.backend, settings.record.quiet), (Means::Scx, true));
    let command = unit("ExecStart").concat();
    assert!(!command.contains("--backend"), "it is chosen by what the kernel can do: {command}");
    for end in unit("ExecStopPost") {
        args::Arguments::try_parse_from(end.split_whitespace()).unwrap();
    }
}

#[test]
fn the_service_has_the_capabilities_that_it_takes_and_no_other() {
    // It runs as root, whose files are its own, and runs no command.
    let is_needed = |what: &str| !what.starts_with("files of root") && !what.contains("command");
    let needed = RIGHTS.iter().filter(|(what, _)| is_needed(what)).flat_map(|(_, needs)| *needs);
    let needed: BTreeSet<String> = needed.map(|&name| name.to_owned()).collect();
    let given = unit("CapabilityBoundingSet").concat();
    assert_eq!(given.split(' ').map(str::to_owned).collect::<BTreeSet<_>>(), needed);
}

#[test]
fn the_service_is_ended_when_it_is_stopped() {
    let one = |key: &str| unit(key).concat();
    // Who is stopped takes no signal but SIGKILL.
    assert_eq!(
        (one("WatchdogSignal"), one("Type"), one("NotifyAccess")),
        ("SIGKILL".into(), "notify".into(), "main".into())
    );
    assert!(one("WatchdogSec").parse::<u32>().unwrap() > 2, "the guardian comes first");
    assert_eq!(one("SuccessExitStatus"), "143", "SIGTERM is how it is stopped");
}
