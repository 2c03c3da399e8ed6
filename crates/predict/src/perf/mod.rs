//! Output of `perf stat`: `-x,` (any separator) and `-j`, each also with `-I`, `--per-thread`, `--per-core`, `-A`
//! and the PMUs of hybrid processors.

mod csv;
mod events;
mod json;

use std::borrow::Cow;

use ampsched_model::InputError;
use ampsched_model::limits::READINGS_MAX;

use crate::{COUNTERS, Reading};
use events::Event;
pub use events::counter_of_event;

/// A line of `perf stat`, before its event is looked up.
#[derive(Default)]
struct Line<'a> {
    /// End of the interval in s (`-I`).
    end_s: Option<f64>,
    /// CPU, core, die, socket or PMU that the counts were added up over.
    place: Cow<'a, str>,
    /// Thread (`--per-thread`).
    thread: Cow<'a, str>,
    /// PMU, if it is not part of the event.
    pmu: Cow<'a, str>,
    event: Cow<'a, str>,
    /// The unit that perf scaled the value to, such as `msec`.
    unit: Cow<'a, str>,
    value: Option<f64>,
    /// Percentage of the time in which the event was counted.
    running_percent: Option<f64>,
}

/// The counters of a `perf stat` output, line by line.
///
/// Windows are numbered by the times of `-I`. Derived metrics (`insn per cycle`) are left out: they follow from the
/// counts. An event that perf did not count (`<not counted>`, `<not supported>`) has no value.
///
/// Errors: a line that is neither an event nor a metric nor a comment, a number out of range; no event
/// at all; more counts than [`READINGS_MAX`]. Each names the line.
pub fn parse_perf<'a>(file: &str, text: &'a str) -> Result<Vec<Reading<'a>>, InputError> {
    let Some(first) = text.lines().map(str::trim).find(|line| !is_comment(line)) else {
        return Err(InputError::new(file, "", "has no events")
            .with_hint("write it with: perf stat -x, -o FILE or perf stat -j -o FILE"));
    };
    let is_json = first.starts_with('{');
    let mut windows = Windows::default();
    let mut readings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if is_comment(line.trim()) {
            continue;
        }
        let fail = |message: String| InputError::new(file, "", message).at_line(index + 1);
        let line = if is_json { json::parse_line(line) } else { csv::parse_line(line) };
        let Some(line) = line.map_err(fail)? else { continue };
        if line.end_s.is_some_and(|end_s| !(0.0..1e12).contains(&end_s)) {
            return Err(fail("the time is not within 0 to 1e12 s".into()));
        }
        let (window, duration_s) = windows.of(line.end_s);
        if readings.len() == READINGS_MAX {
            return Err(fail(format!("more than {READINGS_MAX} counts, which is the limit")));
        }
        readings.push(reading(line, window, duration_s).map_err(fail)?);
    }
    if readings.is_empty() {
        return Err(InputError::new(file, "", "has metrics only, no events"));
    }
    Ok(readings)
}

fn is_comment(line: &str) -> bool {
    line.is_empty() || line.starts_with('#')
}

fn reading(line: Line<'_>, window: u32, duration_s: Option<f64>) -> Result<Reading<'_>, String> {
    let percent = line.running_percent.unwrap_or(100.0);
    // perf rounds: 100.01 occurs.
    if !(0.0..=101.0).contains(&percent) {
        return Err(format!("{percent} % of the time counted is not within 0 to 100"));
    }
    if let Some(value) = line.value.filter(|value| !value.is_finite() || *value < 0.0) {
        return Err(format!("the count {value} is below 0 or not finite"));
    }
    let Event { pmu, counter } = events::parse(&line.event);
    let pmu = if pmu.is_empty() { line.pmu } else { Cow::Owned(pmu.to_owned()) };
    let scale = if line.unit == "msec" { 1e6 } else { 1.0 };
    let known = counter.map(|counter| &COUNTERS[counter]);
    let unit = match known {
        Some(info) => Cow::Borrowed(info.unit.name()),
        None if line.unit.is_empty() => Cow::Borrowed("count"),
        None => line.unit,
    };
    Ok(Reading {
        window,
        end_s: line.end_s,
        duration_s,
        core: line.place,
        core_type: pmu,
        thread: line.thread,
        counter: known.map_or_else(|| line.event.clone(), |info| Cow::Borrowed(info.name)),
        native: line.event,
        unit,
        value: line.value.map(|value| if known.is_some() { value * scale } else { value }),
        running_share: (percent / 100.0).min(1.0),
    })
}

/// Numbers the intervals by their ends.
#[derive(Default)]
struct Windows {
    number: u32,
    begin_s: f64,
    end_s: Option<f64>,
}

impl Windows {
    /// Number and length of the window that ends at that time.
    fn of(&mut self, end_s: Option<f64>) -> (u32, Option<f64>) {
        if end_s != self.end_s {
            if let Some(last_s) = self.end_s {
                self.number += 1;
                self.begin_s = last_s;
            }
            self.end_s = end_s;
        }
        (self.number, end_s.map(|end_s| (end_s - self.begin_s).max(0.0)))
    }
}
