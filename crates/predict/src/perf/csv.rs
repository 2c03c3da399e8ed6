//! `perf stat -x`: `[TIME,][PLACE,[CPUS,]]COUNT,UNIT,EVENT,[VARIANCE%,]RUN_TIME,PERCENT[,METRIC,METRIC_UNIT]`.
//!
//! The variance is there with `-r`. Where a locale writes decimal commas, they are read if another sign separates.

use std::borrow::Cow;

use super::Line;

/// Separators that people choose; a comma may stand inside an event, too.
const SEPARATORS: [char; 4] = [';', '\t', '|', ','];
/// Fields before the count: time, place, number of CPUs.
const PREFIX_MAX: usize = 3;

/// A line; none if it has no count: a metric, or the name of a group of metrics.
pub fn parse_line(line: &str) -> Result<Option<Line<'_>>, String> {
    let (fields, separator) = split(line);
    let found = (0..=PREFIX_MAX).find_map(|at| Some((at, percent_of_event_at(&fields, at)?)));
    let Some((at, percent)) = found else {
        return if is_metric(&fields) { Ok(None) } else { Err(refuse(line)) };
    };
    if separator == ',' && !percent.contains('.') {
        return Err("has decimal commas between commas (run perf with LC_ALL=C)".to_owned());
    }
    let mut parsed = Line {
        event: fields[at + 2].clone(),
        unit: fields[at + 1].clone(),
        value: count(&fields[at]).expect("checked by percent_of_event_at"),
        running_percent: number(Some(percent)),
        ..Line::default()
    };
    let mut prefix = &fields[..at];
    if let Some(time) = number(prefix.first()) {
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

/// The percentage of an event whose count stands in a field, if one does.
fn percent_of_event_at<'f, 'a>(fields: &'f [Cow<'a, str>], at: usize) -> Option<&'f Cow<'a, str>> {
    let is_event =
        |field: &Cow<str>| number(Some(field)).is_none() && field.contains(char::is_alphabetic);
    let is_counted = fields.get(at).is_some_and(|field| count(field).is_some())
        && fields.get(at + 1).is_some_and(|field| number(Some(field)).is_none())
        && fields.get(at + 2).is_some_and(is_event);
    let variance = fields.get(at + 3)?.strip_suffix('%').and_then(parsed);
    let time = at + 3 + usize::from(variance.is_some());
    let percent = fields.get(time + 1).filter(|field| number(Some(field)).is_some());
    percent.filter(|_| is_counted && number(fields.get(time)).is_some())
}

/// Whether a line continues another one: no count, no event, in the end a metric or the name of a group of metrics,
/// which stands behind its run time and percentage.
fn is_metric(fields: &[Cow<str>]) -> bool {
    let [before @ .., value, name] = fields else { return false };
    let filled = before.iter().filter(|field| !field.is_empty()).count();
    let is_last = number(Some(value)).is_some() || value.is_empty() && parsed(name).is_none();
    before.len() >= 4 && filled < before.len() - 1 && filled <= PREFIX_MAX + 2 && is_last
}

/// A count, or no value if perf could not count; `None` if it is neither.
fn count(field: &str) -> Option<Option<f64>> {
    match field {
        "<not counted>" | "<not supported>" => Some(None),
        _ => parsed(field).map(Some),
    }
}

fn number(field: Option<&Cow<str>>) -> Option<f64> {
    field.and_then(|field| parsed(field))
}

/// A number, with a decimal point or comma.
fn parsed(field: &str) -> Option<f64> {
    field.parse().ok().or_else(|| field.replacen(',', ".", 1).parse().ok())
}

/// `--per-thread` writes `COMMAND-TID`; places are CPU3, S0-D0-C2, N0, or a PMU.
fn is_thread(place: &str) -> bool {
    let (command, tid) = place.rsplit_once('-').unwrap_or(("", ""));
    let is_tid = !tid.is_empty() && tid.bytes().all(|byte| byte.is_ascii_digit());
    is_tid && !command.is_empty()
}

/// The fields and what separates them; between slashes it belongs to the event (`cpu_core/event=0x3c,umask=0x0/`).
fn split(line: &str) -> (Vec<Cow<'_, str>>, char) {
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
    (fields, separator)
}
