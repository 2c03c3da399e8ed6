//! The `global` and `resources` objects.

use super::ast::{Global, Policy};
use super::read::{Entry, Field, refuse_second, unknown_key};
use crate::error::nearest;
use crate::reader::{Spot, quoted};
use crate::{Calibration, CoreId, InputError};

/// Keys of `global`.
const KEYS: [&str; 19] = [
    "duration",
    "calibration",
    "default_policy",
    "pi_enabled",
    "lock_pages",
    "logdir",
    "log_size",
    "log_basename",
    "log_period",
    "logstats",
    "gnuplot",
    "ftrace",
    "io_device",
    "mem_buffer_size",
    "cumulative_slack",
    "frag",
    "fragment",
    "logsize",
    "spacing",
];
/// What is said of a setting that rt-app ignores. Others than these may be new, or old: only what looks like a misspelt
/// one is refused.
const UNREAD: &str = "a setting that rt-app does not read";
/// Longest duration in seconds, rt-app's integer limit.
const DURATION_S_MAX: i64 = i32::MAX as i64;
/// Largest memory buffer in bytes, rt-app's integer limit.
const BUFFER_BYTES_MAX: i64 = i32::MAX as i64;
/// Types that a member of `resources` may have.
const RESOURCE_TYPES: [&str; 16] = [
    "mutex",
    "timer",
    "timer_unique",
    "wait",
    "signal",
    "broadcast",
    "sync",
    "sleep",
    "run",
    "runtime",
    "suspend",
    "resume",
    "mem",
    "iorun",
    "yield",
    "barrier",
];

/// Reads `global`.
pub(super) fn global(field: &Field) -> Result<Global, InputError> {
    let mut global = Global::default();
    let entries = field.entries()?;
    for (index, entry) in entries.iter().enumerate() {
        refuse_second(&entries[..index], entry)?;
        setting(&mut global, &field.spot, entry)?;
    }
    Ok(global)
}

fn setting(global: &mut Global, parent: &Spot, entry: &Entry) -> Result<(), InputError> {
    if !KEYS.contains(&entry.key) && nearest(entry.key, &KEYS).is_some() {
        return Err(unknown_key(parent, entry, &KEYS));
    }
    let field = entry.field()?;
    match entry.key {
        "duration" => global.duration_s = duration_s(&field, &mut global.notes)?,
        "calibration" => global.calibration = calibration(&field)?,
        "default_policy" => {
            global.default_policy = Some(policy(&field)?);
        }
        "io_device" => global.io_device = field.name()?.to_owned(),
        "mem_buffer_size" => global.mem_buffer_bytes = field.whole(1..=BUFFER_BYTES_MAX)? as u32,
        "pi_enabled" => {
            if field.boolean()? {
                return Err(field
                    .spot
                    .error("priority inheritance of mutexes is not simulated")
                    .with_hint("set it to false"));
            }
        }
        "spacing" => {
            return Err(entry
                .spot
                .error("a setting of old rt-app versions that 1.0 no longer reads")
                .with_hint("give each thread a \"delay\" in microseconds"));
        }
        _ => {
            let why = host_setting(&field, entry.key)?;
            global.notes.push(format!("global.{} = {}: {why}", entry.key, field.shown()));
        }
    }
    Ok(())
}

fn duration_s(field: &Field, notes: &mut Vec<String>) -> Result<Option<u32>, InputError> {
    match field.whole(-1..=DURATION_S_MAX)? {
        -1 => Ok(None),
        0 => {
            notes.push("global.duration = 0: no limit, as in rt-app".to_owned());
            Ok(None)
        }
        seconds => Ok(Some(seconds as u32)),
    }
}

/// `"CPU3"`, or the time of one loop in ns.
fn calibration(field: &Field) -> Result<Calibration, InputError> {
    if field.is_number() {
        return field.whole(1..=i64::from(i32::MAX)).map(|_| Calibration::Fastest);
    }
    let digits = field.text().ok().and_then(|text| text.strip_prefix("CPU"));
    match digits.and_then(|digits| digits.parse::<u16>().ok()) {
        Some(cpu) => Ok(Calibration::Core(CoreId(cpu))),
        None => Err(field
            .wrong("a CPU or a number of ns per loop")
            .with_hint("such as \"CPU0\" or 128")),
    }
}

/// A policy by name.
pub(super) fn policy(field: &Field) -> Result<Policy, InputError> {
    let name = field.text()?;
    let found = Policy::NAMES.iter().find(|(known, _)| *known == name);
    found.map(|(_, policy)| *policy).ok_or_else(|| {
        field.spot.unknown("policy", name, Policy::NAMES.iter().map(|(known, _)| *known))
    })
}

/// Checks a setting that concerns rt-app's host or its logs only, and says why it changes nothing.
fn host_setting(field: &Field, key: &str) -> Result<&'static str, InputError> {
    match key {
        "lock_pages" => field.boolean().map(|_| "memory is never paged out in a simulation"),
        "gnuplot" => field.boolean().map(|_| "rt-app's plots are not written"),
        "cumulative_slack" => field.boolean().map(|_| "concerns a column of rt-app's logs only"),
        "logstats" => field.boolean().map(|_| "rt-app's logs are not written"),
        "ftrace" if field.is_text() => Ok("rt-app's kernel trace marks are not written"),
        "ftrace" => field.boolean().map(|_| "rt-app's kernel trace marks are not written"),
        "logdir" | "log_basename" => field.text().map(|_| "rt-app's logs are not written"),
        "log_size" if field.is_text() => log_size(field),
        "log_size" | "log_period" => {
            field.whole(0..=i64::from(i32::MAX)).map(|_| "rt-app's logs are not written")
        }
        "frag" | "fragment" => field.whole(0..=i64::from(i32::MAX)).map(|_| UNREAD),
        _ => Ok(UNREAD),
    }
}

fn log_size(field: &Field) -> Result<&'static str, InputError> {
    const MODES: [&str; 3] = ["file", "disable", "auto"];
    let mode = field.text()?;
    if MODES.contains(&mode.to_ascii_lowercase().as_str()) {
        return Ok("rt-app's logs are not written");
    }
    Err(field.spot.unknown("log mode", mode, MODES))
}

/// Checks `resources`, which declares what is created on use anyway; the answer is a note about it.
pub(super) fn resources(field: &Field) -> Result<String, InputError> {
    let entries = field.entries()?;
    for entry in &entries {
        let settings = entry.field()?.settings(&["type", "target"])?;
        for setting in settings {
            resource_setting(&setting)?;
        }
    }
    let names: Vec<String> = entries.iter().take(10).map(|entry| quoted(entry.key)).collect();
    let more = if entries.len() > names.len() { ", ..." } else { "" };
    Ok(format!(
        "resources ({}{more}): need no declaration, they are made where they are used",
        names.join(", ")
    ))
}

fn resource_setting(setting: &Entry) -> Result<(), InputError> {
    let field = setting.field()?;
    let text = field.name()?;
    if setting.key == "target" {
        let error = setting.spot.error("a setting of old rt-app versions that 1.0 no longer reads");
        return Err(error.with_hint("name the target where it is used: \"signal\" : \"queue\""));
    }
    if RESOURCE_TYPES.contains(&text) {
        return Ok(());
    }
    Err(field.spot.unknown("type of resource", text, RESOURCE_TYPES))
}
