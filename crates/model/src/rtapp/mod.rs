//! Importer for workloads of rt-app 1.0, the load generator of Linux scheduler developers.
//!
//! rt-app's JSON is read as rt-app and its front end `workgen` read it, and becomes a [`Program`]. A
//! setting that a simulation cannot honour is an error that names it; one that concerns rt-app's logs
//! or its host only is accepted and listed in [`RtApp::notes`]. Nothing is skipped silently. What every
//! key becomes stands in `docs/reference/rt-app.md`.
//!
//! Sources: the tutorial, manual pages and examples of rt-app 1.0 (Debian package 1.0-1); where they
//! are silent, what rt-app does.

mod ast;
mod check;
mod emit;
mod events;
mod global;
mod json;
mod profiles;
mod read;
mod sched;
mod survey;
mod tasks;

use ast::{EventKind, Global, Repeat, Task};
use emit::{DEVICE_NS_PER_BYTE, Generator, WRITE_NS, is_sink};
pub use profiles::run_loop;
use read::Field;
use survey::{Survey, lonely_names};

use crate::reader::{quoted, stem};
use crate::{Calibration, InputError, Ns, Profile, Program};

/// An imported rt-app file.
#[derive(Clone, Debug)]
pub struct RtApp {
    /// The program.
    pub program: Program,
    /// What is honoured differently from rt-app, one line each.
    pub notes: Vec<String>,
}

/// Imports a workload of rt-app (JSON); `file` is the path as error messages show it.
///
/// `run` and `runtime` behave like rt-app's own busy loop.
///
/// # Errors
/// Invalid JSON; an unknown key; a value of the wrong kind or out of its range; anything that a
/// simulation cannot honour; events in an order in which a thread would block itself for ever.
pub fn import_rtapp(file: &str, text: &str) -> Result<RtApp, InputError> {
    import_rtapp_with(file, text, run_loop())
}

/// Imports a workload of rt-app whose `run` and `runtime` behave like the given profile.
///
/// # Errors
/// As [`import_rtapp`].
pub fn import_rtapp_with(
    file: &str,
    text: &str,
    run_profile: Profile,
) -> Result<RtApp, InputError> {
    let root = json::parse(file, text)?;
    let root = Field::root(file, &root);
    let (mut global, mut resources, mut tasks) = (Global::default(), None, None);
    for entry in root.settings(&["tasks", "resources", "global"])? {
        let field = entry.field()?;
        match entry.key {
            "tasks" => tasks = Some(field),
            "global" => global = global::global(&field)?,
            _ => resources = Some(global::resources(&field)?),
        }
    }
    let field = tasks.ok_or_else(|| root.spot.error("key \"tasks\" is missing"))?;
    let mut notes = std::mem::take(&mut global.notes);
    notes.extend(resources);
    let mut tasks = tasks::tasks(&field, &global, &mut notes)?;
    let survey = Survey::of(&tasks)?;
    tasks.iter_mut().try_for_each(|task| check::check(task, &survey))?;
    notes.extend(remarks(&global, &tasks, &survey));
    let program = program(file, &global, &tasks, &survey, run_profile);
    Ok(RtApp { program, notes })
}

fn program(
    file: &str,
    global: &Global,
    tasks: &[Task],
    survey: &Survey,
    run_profile: Profile,
) -> Program {
    let mut generator = Generator::new(global, survey, run_profile);
    for (index, task) in tasks.iter().enumerate() {
        generator.task(index, task);
    }
    let threads: u32 = tasks.iter().map(|task| task.instances).sum();
    Program {
        name: stem(file).to_owned(),
        description: match threads {
            1 => "rt-app workload of 1 thread".to_owned(),
            _ => format!("rt-app workload of {threads} threads"),
        },
        profiles: generator.profiles,
        objects: generator.objects,
        threads: generator.threads,
        groups: generator.groups,
        code: generator.code,
        duration_ns: global.duration_s.map(|seconds| Ns::from(seconds) * 1_000_000_000),
        energy_ratio: None,
        calibration: global.calibration.clone(),
        held_clocks: Vec::new(),
        recorded_cores: None,
    }
}

/// Notes about events whose meaning differs from rt-app's.
fn remarks(global: &Global, tasks: &[Task], survey: &Survey) -> Vec<String> {
    let has = |fits: fn(&EventKind) -> bool| {
        tasks.iter().any(|task| task.events().any(|event| fits(&event.kind)))
    };
    let mut notes = Vec::new();
    if has(|kind| matches!(kind, EventKind::Run(_))) {
        notes.push(match &global.calibration {
            Calibration::Core(core) => format!("run: times are times on CPU {} at its highest frequency (global.calibration)", core.0),
            _ => "run: times are times on the machine's fastest core at its highest frequency, whatever rt-app needs for a loop (global.calibration)".to_owned(),
        });
    }
    if has(|kind| matches!(kind, EventKind::Runtime(_))) {
        notes.push("runtime: counts the CPU time of the thread, rt-app also counts the time in which others run instead".to_owned());
    }
    if has(|kind| matches!(kind, EventKind::Mem(_))) {
        notes.push(
            "mem: 1 instruction per 16 bytes, with the cache misses of a sweep over the buffer"
                .to_owned(),
        );
    }
    if has(|kind| matches!(kind, EventKind::IoRun(_))) {
        notes.push(io_remark(global));
    }
    notes.extend(tasks.iter().enumerate().filter_map(|(index, task)| {
        let started = task.instances > 0 || survey.forked[index];
        (!started).then(|| {
            format!("thread {} is never started: 0 instances, no fork", quoted(&task.name))
        })
    }));
    notes.extend(lonely_names(tasks));
    if global.duration_s.is_none() && tasks.iter().any(is_endless) {
        notes.push("a thread is repeated without end and global.duration is not set: limit the simulated time".to_owned());
    }
    notes
}

fn io_remark(global: &Global) -> String {
    let device = quoted(&global.io_device);
    if is_sink(&global.io_device) {
        return format!("iorun: {WRITE_NS} ns of CPU time a write call, {device} needs no time");
    }
    let rate = 1000 / DEVICE_NS_PER_BYTE;
    format!("iorun: {WRITE_NS} ns of CPU time a write call, then device {device} at {rate} MB/s")
}

fn is_endless(task: &Task) -> bool {
    task.instances > 0
        && (task.repeat == Repeat::Forever
            || task.phases.iter().any(|phase| phase.repeat == Repeat::Forever))
}
