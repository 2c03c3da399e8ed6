//! `perf stat -j`: one JSON object per line.

use std::borrow::Cow;

use serde::Deserialize;

use super::Line;

/// What perf writes; numbers are partly texts.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Object {
    interval: Option<f64>,
    cpu: Option<Cow<'static, str>>,
    core: Option<Cow<'static, str>>,
    cluster: Option<Cow<'static, str>>,
    cache: Option<Cow<'static, str>>,
    die: Option<Cow<'static, str>>,
    socket: Option<Cow<'static, str>>,
    node: Option<Cow<'static, str>>,
    thread: Option<Cow<'static, str>>,
    pmu: Option<Cow<'static, str>>,
    counter_value: Option<Cow<'static, str>>,
    unit: Option<Cow<'static, str>>,
    event: Option<Cow<'static, str>>,
    pcnt_running: Option<f64>,
}

/// A line; none if it has a metric only. Some releases of perf write a comma before the brace.
pub fn parse_line(line: &str) -> Result<Option<Line<'static>>, String> {
    let open = line.trim().strip_suffix('}').and_then(|body| body.trim_end().strip_suffix(','));
    let text = open.map_or(Cow::Borrowed(line.trim()), |body| Cow::Owned(format!("{body}}}")));
    let object: Object = serde_json::from_str(&text).map_err(|error| {
        format!("is not a JSON object of perf stat -j: {error} (the file may be truncated)")
    })?;
    let (Some(event), Some(count)) = (object.event, object.counter_value) else {
        return Ok(None);
    };
    let value = match count.trim() {
        "<not counted>" | "<not supported>" => None,
        text => {
            let number = text.replacen(',', ".", 1).parse(); // a locale may have decimal commas
            Some(number.map_err(|_| format!("counter-value: \"{text}\" is not a number"))?)
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
