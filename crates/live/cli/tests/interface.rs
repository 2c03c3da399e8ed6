//! What others know of the command line is written from it: the man page, and what Python passes on.

// Written from the same arguments, not all of which are used here.
#[allow(dead_code)]
#[path = "../src/args.rs"]
mod args;

use std::fs;
use std::path::Path;

use ampsched_live_session::arguments::describe;
use clap::CommandFactory;
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
otherwise
The exit status of the command that was run.
.SH PRIVILEGES
None for one's own processes. CAP_SYS_NICE for affinities and nice values of others' processes, CAP_KILL to stop them where there is no cgroup in which to freeze them, CAP_PERFMON for their counters (and for one's own where kernel.perf_event_paranoid is above 2); cgroups and files of cpufreq as their owners allow. Policies in the kernel (sched_ext) need root.
.SH "SEE ALSO"
sched_setaffinity(2), setpriority(2), cgroups(7), sched(7)
"#;

fn page() -> String {
    let command = args::Arguments::command().disable_help_subcommand(true);
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
    text.replacen(".SS Description\n", ".SH DESCRIPTION\n", 1) + TAIL
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
