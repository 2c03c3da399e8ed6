//! Settings as arguments: the part of a command line that all programs share which run policies, the hand-over from one
//! to another, and what other languages have to know of it.

use std::path::PathBuf;
use std::process::ExitCode;

use ampsched_computer::{CoreMap, Root};
use ampsched_model::{ClassId, InputError};
use clap::{Arg, ArgAction, Args, Command, Subcommand};
use serde::Serialize;
use serde_json::{Value, json};

use crate::guardian::GUARD;
use crate::{
    Backend, CoreSettings, FolderSettings, RecordSettings, ScopeSettings, Settings, Setup,
    keep_watch, print, restore, tell,
};

/// Exit code of everything that a user can get wrong.
const BAD_INPUT: u8 = 2;

/// What every program does that runs policies.
#[derive(Debug, Subcommand)]
pub enum Task {
    /// Run a policy for a command, for processes or for a cgroup, until it ends or is stopped.
    Run(Box<Settings>),
    /// Put back what sessions left behind that were killed together with their guardians.
    Restore(FolderSettings),
    /// Wait for the end of standard input, then put back what a journal names (started by `run`).
    #[command(hide = true, name = GUARD)]
    Guardian {
        /// The journal.
        journal: PathBuf,
    },
    /// Print as JSON what `run` would do with the same arguments (for programs that start sessions).
    #[command(hide = true)]
    Preview(Box<Settings>),
}

impl Task {
    /// Does it; `run` runs a policy, `refuse` is why it would not begin.
    ///
    /// # Errors
    ///
    /// Something is wrong that the user can put right.
    pub fn execute<B: Backend>(
        self,
        run: impl FnOnce(Settings) -> Result<ExitCode, InputError>,
        refuse: impl FnOnce(Setup) -> Result<(), InputError>,
    ) -> Result<ExitCode, InputError> {
        match self {
            Self::Run(settings) => run(*settings),
            Self::Restore(folder) => restore::<B>(&folder),
            Self::Guardian { journal } => keep_watch::<B>(&journal),
            Self::Preview(settings) => {
                print(&format!("{}\n", preview(*settings, refuse)?))?;
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

/// What `run` would do: the settings as they are understood, the classes of cores or why there are none, and why it
/// would not begin. Errors: the name of a file is not UTF-8.
fn preview(
    settings: Settings,
    refuse: impl FnOnce(Setup) -> Result<(), InputError>,
) -> Result<Value, InputError> {
    let understood = settings.to_value()?;
    let mut found = match settings.cores.detect(&Root::default()) {
        Ok((cores, _)) => json!({ "settings": understood, "classes": classes(&cores) }),
        Err(error) => json!({ "settings": understood, "error": error.to_string() }),
    };
    let refused = Setup::new(settings).and_then(refuse).err();
    found["refused"] = refused.map(|error| error.to_string()).into();
    Ok(found)
}

/// The classes of cores with their CPUs, the fastest first.
pub fn classes(cores: &CoreMap) -> Vec<Value> {
    let class = |class: ClassId| {
        let cpus: Vec<usize> = cores.cpus_of_class(class).into_iter().collect();
        json!({ "name": cores.class_name(class), "cpus": cpus })
    };
    (0..cores.class_count()).rev().map(ClassId::from).map(class).collect()
}

/// The exit code of a program; what is wrong is said in a line.
pub fn exit_code(done: Result<ExitCode, InputError>) -> ExitCode {
    done.unwrap_or_else(|error| {
        tell("error", error);
        ExitCode::from(BAD_INPUT)
    })
}

impl Settings {
    fn to_value(&self) -> Result<Value, InputError> {
        serde_json::to_value(self)
            .map_err(|error| InputError::new("settings", "", error.to_string()))
    }

    /// The arguments of `run` that mean the same to every program with this [`Task`].
    ///
    /// # Errors
    ///
    /// The name of a file is not UTF-8.
    pub fn to_arguments(&self) -> Result<Vec<String>, InputError> {
        let values = self.to_value()?;
        let (mut words, mut last) = (Vec::new(), Vec::new());
        for argument in declared::<Self>().get_arguments() {
            let value = &values[argument.get_id().as_str()];
            match argument.get_long() {
                Some(long) if *value == Value::Bool(true) => words.push(format!("--{long}")),
                Some(long) => words.extend(texts(value).map(|text| format!("--{long}={text}"))),
                None => last.extend(texts(value)),
            }
        }
        if !last.is_empty() {
            words.push("--".to_owned());
            words.extend(last);
        }
        Ok(words)
    }
}

/// Settings as the arguments of a command.
fn declared<S: Args>() -> Command {
    S::augment_args(Command::new("settings"))
}

/// What stands behind an option, each time that it is given.
fn texts(value: &Value) -> impl Iterator<Item = String> {
    let list = match value {
        Value::Null | Value::Bool(_) => Vec::new(),
        Value::Array(items) => items.clone(),
        other => vec![other.clone()],
    };
    list.into_iter().map(|item| item.as_str().map_or(item.to_string(), str::to_owned))
}

/// A subcommand as other languages have to know it.
#[derive(Debug, Serialize)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// What it does, in a sentence.
    pub about: String,
    /// Its options.
    pub options: Vec<DescribedOption>,
}

/// An option of a subcommand.
#[derive(Debug, Serialize)]
pub struct DescribedOption {
    /// The setting.
    pub name: String,
    /// How it is given; nothing if it stands behind `--`.
    pub flags: Vec<String>,
    /// What stands for its value; nothing if it has none.
    pub metavar: Option<String>,
    /// The values that there are; empty if there are too many to say.
    pub choices: Vec<String>,
    /// What it is if it is not given.
    pub default: Option<String>,
    /// Whether it can be given several times.
    pub is_repeatable: bool,
    /// What it is about.
    pub group: Group,
    /// What it means.
    pub help: String,
}

/// What an option is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// Which CPUs are fast and which slow ([`CoreSettings`]).
    Cores,
    /// Which threads are scheduled ([`ScopeSettings`]).
    Scope,
    /// What is written ([`RecordSettings`]).
    Record,
    /// All else: the policy and how it runs.
    Policy,
}

fn group(setting: &str) -> Group {
    let groups = [
        (Group::Cores, declared::<CoreSettings>()),
        (Group::Scope, declared::<ScopeSettings>()),
        (Group::Record, declared::<RecordSettings>()),
    ];
    let has = |command: &Command| command.get_arguments().any(|known| known.get_id() == setting);
    groups.iter().find(|(_, command)| has(command)).map_or(Group::Policy, |(group, _)| *group)
}

/// The subcommands of a program that people call, in the order of its help.
pub fn describe(program: &Command) -> Vec<Described> {
    let seen = program.get_subcommands().filter(|command| !command.is_hide_set());
    let about =
        |command: &Command| command.get_about().map_or_else(String::new, ToString::to_string);
    let described = |command: &Command| Described {
        name: command.get_name().to_owned(),
        about: about(command),
        options: command.get_arguments().map(option).collect(),
    };
    seen.map(described).collect()
}

fn option(argument: &Arg) -> DescribedOption {
    let id = argument.get_id();
    let takes_value = !matches!(argument.get_action(), ArgAction::SetTrue);
    let metavar =
        argument.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let choices = argument.get_possible_values();
    DescribedOption {
        name: id.to_string(),
        flags: short.into_iter().chain(long).collect(),
        metavar: metavar.filter(|_| takes_value),
        choices: match takes_value {
            true => choices.iter().map(|choice| choice.get_name().to_owned()).collect(),
            false => Vec::new(),
        },
        default: argument
            .get_default_values()
            .first()
            .filter(|_| takes_value)
            .map(|value| value.to_string_lossy().into_owned()),
        is_repeatable: matches!(argument.get_action(), ArgAction::Append),
        group: group(id.as_str()),
        help: argument.get_help().map_or_else(String::new, ToString::to_string),
    }
}
