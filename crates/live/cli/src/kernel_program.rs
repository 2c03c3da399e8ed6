//! The program that runs policies in the kernel. It is a program of its own because its licence is the kernel's.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use ampsched_live_session::Settings;
use ampsched_model::InputError;

/// What it is called; it is beside this one.
const NAME: &str = "ampsched-live-scx";

/// Where it is. Errors: it is not there; says so for people, and who has it.
pub fn find() -> Result<PathBuf, String> {
    let path = path();
    if path.is_file() {
        return Ok(path);
    }
    let remedy = "wheels bring it; in the sources, `make build` builds it or says what is missing";
    Err(format!("{} is not there ({remedy})", path.display()))
}

fn path() -> PathBuf {
    std::env::current_exe().unwrap_or_default().with_file_name(NAME)
}

/// Lets it run a policy with the same settings instead of this program; returns why it cannot.
pub fn become_it(settings: &Settings) -> InputError {
    let mut command = match command(settings) {
        Ok(command) => command,
        Err(error) => return error,
    };
    let error = command.exec();
    let program = command.get_program().to_string_lossy().into_owned();
    InputError::new(program, "", format!("cannot be run: {error}"))
        .with_hint("it loads policies into the kernel; --backend daemon does without")
}

fn command(settings: &Settings) -> Result<Command, InputError> {
    let mut command = Command::new(path());
    command.arg("run").args(settings.to_arguments()?);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use ampsched_live_session::arguments::Task;
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, LiveTask};

    /// Every option of `run` with a value that is not its default.
    const ALL: [&str; 29] = [
        "run",
        "--policy=wash:sigma=0.3",
        "--param=decay=0.5",
        "--param=x=-1",
        "--big=0-1",
        "--middle=2",
        "--middle=3,4",
        "--little=5-7",
        "--ratio=1.4",
        "--ratio=2.5",
        "--power=0-1=600:38,1200:120.5",
        "--power=5-7=600:9",
        "--backend=scx",
        "--degrade",
        "--allow-dvfs",
        "--facts=my facts.toml",
        "--model=own.json",
        "--dilation=8.5",
        "--everything",
        "--trace=out.pftrace",
        "--result=-",
        "--quiet",
        "--run-dir=/run/user/a b",
        "--user=nobody",
        "--",
        "sh",
        "-c",
        "--policy='$x'",
        "--",
    ];

    fn settings(words: impl IntoIterator<Item = String>) -> Settings {
        let words = std::iter::once("ampsched-live".to_owned()).chain(words);
        match Arguments::try_parse_from(words).unwrap().task {
            LiveTask::Session(Task::Run(settings)) => *settings,
            other => panic!("{other:?}"),
        }
    }

    fn handed_over(given: &Settings) -> Settings {
        let command = command(given).unwrap();
        assert!(command.get_program().to_string_lossy().ends_with("/ampsched-live-scx"));
        settings(command.get_args().map(|word| word.to_str().unwrap().to_owned()))
    }

    #[test]
    fn no_setting_is_lost_on_the_way_to_the_kernel() {
        let given = settings(ALL.map(str::to_owned));
        assert_eq!(handed_over(&given), given);
        let processes = ["run", "-p=hsp", "--pid=7", "--pid=-8"].map(str::to_owned);
        let cgroup = ["run", "-p=hsp", "--cgroup=/sys/fs/cgroup/a"].map(str::to_owned);
        let [processes, cgroup] = [settings(processes), settings(cgroup)];
        assert_eq!(handed_over(&processes), processes);
        assert_eq!(handed_over(&cgroup), cgroup);
        // Each setting has been given by one of them, so that none can be forgotten here.
        let default = serde_json::to_value(settings(["run", "-p=hsp"].map(str::to_owned))).unwrap();
        let given = [given, processes, cgroup].map(|given| serde_json::to_value(given).unwrap());
        for (name, value) in default.as_object().unwrap() {
            assert!(given.iter().any(|given| given[name] != *value), "{name} is not tried");
        }
    }
}
