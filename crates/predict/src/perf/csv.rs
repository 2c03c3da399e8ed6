//! `perf stat -x`: `[TIME,][PLACE,[CPUS,]]COUNT,UNIT,EVENT,RUN_TIME,PERCENT[,METRIC,METRIC_UNIT]`.

use std::borrow::Cow;

use super::Line;

/// Separators that people choose; a comma may stand inside an event, too.
const SEPARATORS: [char; 4] = [';', '\t', '|', ','];
/// Fields before the count: time, place, number of CPUs.
const PREFIX_MAX: usize = 3;

/// A line; none if it has a metric only.
pub fn parse_line(line: &str) -> Result<Option<Line<'_>>, String> {
    let fields = split(line);
    let Some(at) = (0..=PREFIX_MAX).find(|&at| is_event_at(&fields, at)) else {
        return if is_metric(&fields) { Ok(None) } else { Err(refuse(line)) };
    };
    let mut parsed = Line {
        event: fields[at + 2].clone(),
        unit: fields[at + 1].clone(),
        value: count(&fields[at]).expect("checked by is_event_at"),
        running_percent: number(fields.get(at + 4)),
        ..Line::default()
    };
    let mut prefix = &fields[..at];
    if let Some(time) = prefix.first().and_then(|field| field.parse().ok()) {
        parsed.end_s = Some(time);
        prefix = &prefix[1..];
    }
    if let Some(place) = prefix.first() {
        if is_thread(place) {
            parsed.thread = place.clone();
        } else {
            parsed.place = place.clone();
        }
    }
    Ok(Some(parsed))
}

fn refuse(line: &str) -> String {
    let start: String = line.trim().chars().take(60).collect();
    format!("\"{start}\" is not a line of perf stat -x (the file may be truncated)")
}

/// Whether count, unit, event, run time and percentage begin at a field.
fn is_event_at(fields: &[Cow<str>], at: usize) -> bool {
    let is_event = |field: &Cow<str>| {
        field.parse::<f64>().is_err() && field.contains(|c: char| c.is_alphabetic())
    };
    fields.get(at).is_some_and(|field| count(field).is_some())
        && fields.get(at + 1).is_some_and(|field| field.parse::<f64>().is_err())
        && fields.get(at + 2).is_some_and(is_event)
        && number(fields.get(at + 3)).is_some()
        && number(fields.get(at + 4)).is_some()
}

/// Whether a line continues another one with a metric: no count, no event.
fn is_metric(fields: &[Cow<str>]) -> bool {
    let Some(value) = fields.len().checked_sub(2) else { return false };
    let before = fields[..value].iter().filter(|field| !field.is_empty()).count();
    value >= 4 && before <= PREFIX_MAX && number(fields.get(value)).is_some()
}

/// A count, or no value if perf could not count; `None` if it is neither.
fn count(field: &str) -> Option<Option<f64>> {
    match field {
        "<not counted>" | "<not supported>" => Some(None),
        _ => field.parse().ok().map(Some),
    }
}

fn number(field: Option<&Cow<str>>) -> Option<f64> {
    field.and_then(|field| field.parse().ok())
}

/// `--per-thread` writes `COMMAND-TID`; places are CPU3, S0-D0-C2, N0, or a PMU.
fn is_thread(place: &str) -> bool {
    let (command, tid) = place.rsplit_once('-').unwrap_or(("", ""));
    let is_tid = !tid.is_empty() && tid.bytes().all(|byte| byte.is_ascii_digit());
    is_tid && !command.is_empty()
}

/// The fields; separators between slashes belong to the event (`cpu_core/event=0x3c,umask=0x0/`).
fn split(line: &str) -> Vec<Cow<'_, str>> {
    let separator =
        SEPARATORS.into_iter().find(|separator| line.contains(*separator)).unwrap_or(',');
    let mut fields: Vec<Cow<str>> = Vec::new();
    let mut open = false;
    for field in line.trim_end().split(separator) {
        let slashes = field.bytes().filter(|byte| *byte == b'/').count();
        match fields.last_mut() {
            Some(last) if open => {
                let joined = last.to_mut();
                joined.push(separator);
                joined.push_str(field.trim());
            }
            _ => fields.push(Cow::Borrowed(field.trim())),
        }
        open ^= slashes % 2 == 1;
    }
    fields
}
