//! Limits of a process (ulimit) end nothing without a word.

mod support;

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use support::{PROGRAM, call, files, two_cpus};

/// The program under a limit.
fn under(limit: &str, arguments: &[&str], folder: &Path) -> (Option<i32>, String) {
    let script = format!("ulimit {limit} && exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh", PROGRAM]).args(arguments);
    call(command.arg("--run-dir").arg(folder).current_dir(folder))
}

/// A session of a command that ends at once.
fn session() -> Option<Vec<String>> {
    let (big, little) = two_cpus()?;
    let words = ["run", "--backend=daemon", "--policy=hsp", "--ratio=2", "--quiet"];
    let cores = [format!("--big={big}"), format!("--little={little}")];
    Some(words.map(str::to_owned).into_iter().chain(cores).collect())
}

fn session_under(limit: &str, folder: &Path, command: &[&str]) -> Option<(Option<i32>, String)> {
    let (session, run_dir) = (session()?, format!("--run-dir={}", folder.display()));
    let mut words: Vec<&str> = session.iter().map(String::as_str).collect();
    words.extend([&*run_dir, "--"]);
    words.extend(command);
    let script = format!("ulimit {limit} && exec \"$@\"");
    Some(call(Command::new("sh").args(["-c", &script, "sh", PROGRAM]).args(words)))
}

#[test]
fn h34_a_small_stack_is_refused_before_anything_is_done() {
    let folder = tempfile::tempdir().unwrap();
    for kib in [128, 160, 255] {
        for task in ["status", "stop", "restore"] {
            let (code, said) = under(&format!("-s {kib}"), &[task], folder.path());
            assert_eq!(code, Some(2), "{task}: {said}");
            let expected = format!("error: stack: a stack of {kib} KiB is too small");
            assert!(said.starts_with(&expected) && said.lines().count() == 1, "{said}");
        }
    }
    let (code, said) = under("-s 256", &["restore"], folder.path());
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let Some((code, said)) = session_under("-s 256", folder.path(), &["true"]) else { return };
    assert_eq!((code, said.as_str()), (Some(0), ""));
}

#[test]
fn h34_a_file_that_may_not_grow_is_an_error_and_the_command_s_own_business() {
    let folder = tempfile::tempdir().unwrap();
    let Some((code, said)) = session_under("-f 0", folder.path(), &["true"]) else { return };
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("File too large") && said.lines().count() == 1, "{said}");
    assert_eq!(files(folder.path(), "journal"), Vec::<String>::new());
    // What the command writes beyond the limit ends it as it does without a session: 128 and SIGXFSZ.
    let script = "head -c 600000 /dev/zero >file";
    let command =
        ["sh", "-c", &format!("cd {} && exec sh -c '{script}; exit $?'", folder.path().display())];
    let (code, said) = session_under("-f 512", folder.path(), &command).unwrap();
    assert_eq!(code, Some(128 + 25), "{said}");
}

#[test]
fn h34_few_file_descriptors_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut codes = Vec::new();
    for count in 4..40 {
        let Some((code, said)) = session_under(&format!("-n {count}"), folder.path(), &["true"])
        else {
            return;
        };
        codes.push(code);
        assert!(!said.contains("panicked"), "{count}: {said}");
        // 127: the program's libraries cannot be loaded.
        assert!(matches!(code, Some(0 | 2 | 127)), "{count}: {code:?} {said}");
        assert!(code != Some(2) || said.contains("Too many open files"), "{count}: {said}");
        assert_eq!(files(folder.path(), "journal"), Vec::<String>::new(), "{count}: {said}");
    }
    assert!(codes.contains(&Some(2)) && codes.last() == Some(&Some(0)), "{codes:?}");
}

#[test]
fn h34_a_file_s_name_that_is_no_utf_8_is_an_error_where_json_has_to_name_it() {
    let name = std::ffi::OsStr::from_bytes(b"/tmp/a\xff");
    let mut command = Command::new(PROGRAM);
    command.args(["preview", "--policy=hsp", "--run-dir"]).arg(name).args(["--", "true"]);
    let (code, said) = call(&mut command);
    assert_eq!(code, Some(2), "{said}");
    assert_eq!(said, "error: settings: path contains invalid UTF-8 characters\n");
}
