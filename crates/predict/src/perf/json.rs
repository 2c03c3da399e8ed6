//! `perf stat -j`: one JSON object per line.

use std::borrow::Cow;

use serde::Deserialize;

use super::Line;

/// What perf writes; numbers are partly texts.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Object<'a> {
    interval: Option<f64>,
    #[serde(borrow)]
    cpu: Option<Cow<'a, str>>,
    core: Option<Cow<'a, str>>,
    cluster: Option<Cow<'a, str>>,
    cache: Option<Cow<'a, str>>,
    die: Option<Cow<'a, str>>,
    socket: Option<Cow<'a, str>>,
    node: Option<Cow<'a, str>>,
    thread: Option<Cow<'a, str>>,
    pmu: Option<Cow<'a, str>>,
    counter_value: Option<Cow<'a, str>>,
    unit: Option<Cow<'a, str>>,
    event: Option<Cow<'a, str>>,
    pcnt_running: Option<f64>,
}

/// A line; none if it has a metric only.
pub fn parse_line(line: &str) -> Result<Option<Line<'_>>, String> {
    let object: Object = serde_json::from_str(line.trim()).map_err(|error| {
        format!("is not a JSON object of perf stat -j: {error} (the file may be truncated)")
    })?;
    let (Some(event), Some(count)) = (object.event, object.counter_value) else {
        return Ok(None);
    };
    let value = match count.trim() {
        "<not counted>" | "<not supported>" => None,
        text => {
            Some(text.parse().map_err(|_| format!("counter-value: \"{text}\" is not a number"))?)
        }
    };
    let places = [
        object.cpu,
        object.core,
        object.cluster,
        object.cache,
        object.die,
        object.socket,
        object.node,
    ];
    Ok(Some(Line {
        end_s: object.interval,
        place: places.into_iter().flatten().next().unwrap_or_default(),
        thread: object.thread.unwrap_or_default(),
        pmu: object.pmu.unwrap_or_default(),
        event,
        unit: object.unit.unwrap_or_default(),
        value,
        running_percent: object.pcnt_running,
    }))
}
