//! What the last panic said, in one line.

use std::panic::PanicHookInfo;
use std::sync::Mutex;

static LAST: Mutex<String> = Mutex::new(String::new());

/// From now on panics print nothing, and [`last`] tells what they said.
pub fn note() {
    std::panic::set_hook(Box::new(|info| {
        let text = in_one_line(info);
        *LAST.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = text;
    }));
}

/// What the last panic said, and where.
pub fn last() -> String {
    LAST.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
}

fn in_one_line(info: &PanicHookInfo<'_>) -> String {
    let payload = info.payload();
    let said = payload.downcast_ref::<&str>().copied().map(str::to_owned);
    let said = said.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    format!("it panics: {} ({place})", said.split_whitespace().collect::<Vec<_>>().join(" "))
}
