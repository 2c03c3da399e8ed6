//! Other tools' traces as recordings.
//!
//! A form's parser tells scheduler events (`event`); `stream` makes of them what each thread did, and `select`
//! keeps the wanted threads. Forms are told apart by their content.

mod asked;
mod away;
mod cgroups;
mod clocks;
mod container;
mod cursor;
mod event;
mod format;
mod frames;
mod ftrace_text;
mod interrupts;
mod kind;
mod lacking;
mod limits;
mod missing;
mod mostly;
mod naming;
mod npz;
mod observed;
mod page;
mod pages;
mod perf_data;
mod perf_script;
mod perfetto;
mod process_list;
mod select;
mod stream;
mod system;
mod text;
mod text_marks;
mod text_state;
mod trace_dat;
mod track;
mod wakes;
mod zip;

use ampsched_model::InputError;
use serde::{Deserialize, Serialize};

pub use frames::Frames;
pub use observed::{
    Asked, AtClock, CpuSeen, FramesSeen, KnownCluster, Moment, Observed, Placed, Question, Step,
    ThreadSeen,
};
pub use system::{Pages, clocked, recording as of_pages};
pub use wakes::{WakeUps, wake_ups};

use crate::{Clocked, Recording};
use event::Story;
use stream::SPEED_UNITS;

/// What to import of a trace, and what its reader knows beside it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Programs whose threads are wanted, with all that they start: names of processes, threads or executed files.
    /// Without these and `pids`: all threads of programs, apart from those of recorders.
    pub commands: Vec<String>,
    /// Processes and threads that are wanted, with all that they start.
    pub pids: Vec<u32>,
    /// Speeds of the cores, the first that of core 0; only their ratios count. Empty: all are equally fast.
    pub speeds: Vec<f64>,
    /// Kinds of the cores.
    pub kinds: Vec<String>,
    /// Which cores of the machine have one clock. Empty: nobody has stated the machine.
    pub domains: Vec<Domain>,
    /// The program's name; empty: the first of `commands`, else that of its first thread.
    pub name: String,
    /// What was executed, if the reader knows.
    pub command: Vec<String>,
    /// Release of the kernel, if the reader knows.
    pub kernel: String,
    /// The recorder; empty: the form's name.
    pub recorder: String,
    /// How the program ended, if the reader knows.
    pub exit_code: Option<i32>,
    /// (time with the recorder) / (time without), if known.
    pub slowdown: Option<f64>,
    /// From the return of a call that wakes a thread until that thread runs, in ns, if it was measured.
    pub wakeup_ns: Option<u64>,
    /// The exact machine that the trace is of, as `--machine` names it; empty if it was a real computer.
    pub machine: String,
    /// Share of the CPUs' time that others took meanwhile, if it was measured.
    pub foreign: Option<f64>,
    /// The part of their lives that the trace shows of programs that ran before.
    pub window: Option<Window>,
    /// What the reader knows that the trace cannot tell, a sentence each.
    pub unknown: Vec<String>,
    /// What stands in the file beside it: of an `.npz.zst` the `.json` of the same name.
    pub beside: String,
    /// What stands beside it of control groups and threads: lines `PATH:VALUE`, and the file's name; empty: nothing.
    pub cgroups: (String, String),
}

/// Cores of a machine that have one clock; `speeds` are those at its highest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Domain {
    /// Their numbers in the trace.
    pub cores: Vec<u16>,
    /// Lowest clock in MHz.
    pub min_mhz: f64,
    /// Highest clock in MHz.
    pub max_mhz: f64,
}

/// A window onto programs that ran before it and go on after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Window {
    /// When it begins, in ns of the trace's clock.
    pub since_ns: u64,
    /// When it ends; none if nobody knows, as after a recorder that was killed.
    pub until_ns: Option<u64>,
    /// The threads that were there at its begin, and their processes.
    pub threads: Vec<(u32, u32)>,
}

impl Options {
    /// The same of a trace of a form, which is the recorder if no other one is stated.
    fn of_form(&self, form: &str) -> Self {
        let mut options = self.clone();
        if options.recorder.is_empty() {
            form.clone_into(&mut options.recorder);
        }
        options
    }

    /// Speeds by that of the fastest, in [`SPEED_UNITS`].
    fn relative_speeds(&self, file: &str) -> Result<Vec<u64>, InputError> {
        let fastest = self.speeds.iter().copied().fold(0.0, f64::max);
        let relative = |&speed: &f64| {
            let units = (speed / fastest * SPEED_UNITS as f64).round();
            match speed.is_finite() && speed > 0.0 && units >= 1.0 {
                true => Ok(units as u64),
                false => {
                    Err(InputError::new(file, "speeds", format!("{speed} is no speed of a core"))
                        .with_hint("speeds are above 0, and none is a millionth of another one"))
                }
            }
        };
        self.speeds.iter().map(relative).collect()
    }
}

/// The forms that are read: the names by which a recording states them, and what they are.
pub const FORMS: &[(&str, &str)] = &[
    ("ftrace", "text of Linux's function tracer: trace, trace_pipe, trace-cmd report (also -R)"),
    ("systrace", "pages and JSON of Android's systrace and of Catapult's trace2html"),
    ("atrace", "Android's atrace, also compressed (-z)"),
    ("perf-script", "text of perf script"),
    ("perf-data", "perf.data with tracepoints"),
    ("trace-cmd", "trace.dat of trace-cmd, versions 6 and 7"),
    ("perfetto", "Perfetto's protobuf with ftrace events"),
    ("npz", "columns of numpy, .npz or .npz.zst"),
];

/// Reads a trace as a recording. Each form may be packed by gzip, zstd or zip, as in bugreports; of several traces in
/// a zip that one is read which has the scheduler's events.
///
/// # Errors
/// It is of no form that is read, or damaged, has several traces, no event of the scheduler, or none of the wanted
/// threads.
pub fn import(file: &str, bytes: &[u8], options: &Options) -> Result<Recording, InputError> {
    let is_ours = bytes.starts_with(&crate::MAGIC[..6]);
    let has_cgroups = !options.cgroups.1.is_empty();
    if has_cgroups && (is_ours || npz::is_form(bytes)) {
        return Err(InputError::new(
            file,
            "",
            "has no numbers of threads, so that no group has any",
        )
        .with_hint("leave --cgroups out, or state it when the trace itself is imported"));
    }
    if !options.domains.is_empty() && (is_ours || npz::is_form(bytes)) {
        return Err(InputError::new(
            file,
            "",
            "tells no clocks, so that a machine says nothing of it",
        )
        .with_hint("leave --machine out"));
    }
    if is_ours {
        return crate::read(file, bytes);
    }
    if npz::is_form(bytes) {
        return npz::recording(file, bytes, options)?.checked(file);
    }
    import_clocked(file, bytes, options).map(|found| found.recording)
}

/// Reads a trace that keeps what the scheduler did as a recording, with the kernel's numbers of the threads and its
/// clock.
///
/// # Errors
/// As of [`import`].
pub fn import_clocked(file: &str, bytes: &[u8], options: &Options) -> Result<Clocked, InputError> {
    let (form, story) = container::story(file, bytes)?;
    select::clocked(file, story.checked(file)?, &options.of_form(form))
}

/// What a trace says of the scheduler that made it.
///
/// # Errors
/// As of [`import`]; the trace keeps no switches (recordings and columns of numpy), has CPUs that the machine lacks, or
/// too many.
pub fn observe(file: &str, bytes: &[u8], asked: &Asked) -> Result<Observed, InputError> {
    observed::of_story(file, bytes.len(), of_scheduler(file, bytes)?.1, asked)
}

/// What a trace tells of one thread around one moment; with options its recording, too, as of [`import_clocked`].
///
/// # Errors
/// As of [`observe`]; there is no such thread, or the trace has ended before.
pub fn around(
    file: &str,
    bytes: &[u8],
    asked: &Asked,
    question: &Question,
    options: Option<&Options>,
) -> Result<(Moment, Option<Clocked>), InputError> {
    let (form, story) = of_scheduler(file, bytes)?;
    let found = observed::around(file, bytes.len(), &story, asked, question)?;
    let clocked = options.map(|options| select::clocked(file, story, &options.of_form(form)));
    Ok((found, clocked.transpose()?))
}

/// The form and the story of a trace that keeps what the scheduler did, in the order of time.
fn of_scheduler(file: &str, bytes: &[u8]) -> Result<(&'static str, Story), InputError> {
    if bytes.starts_with(&crate::MAGIC[..6]) || npz::is_form(bytes) {
        let message = "keeps what programs did and not what the scheduler did";
        return Err(InputError::new(file, "", message).with_hint("give the trace itself"));
    }
    let (form, story) = container::story(file, bytes)?;
    let mut story = story.checked(file)?;
    story.sort();
    Ok((form, story))
}
