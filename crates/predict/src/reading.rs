//! One counter read once, wherever it comes from.

use std::borrow::Cow;

/// A counter of a core or thread over a window of time: a row of the counter table.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading<'a> {
    /// Number of the window in its file, from 0: a dump of gem5, an interval of perf.
    pub window: u32,
    /// End of the window in seconds after the start of the recording, if the file says.
    pub end_s: Option<f64>,
    /// Length of the window in seconds, if the file says.
    pub duration_s: Option<f64>,
    /// Core as the file names it, such as `system.cpu1` or `CPU3`; empty if it is not one core's.
    pub core: Cow<'a, str>,
    /// PMU or type of core, such as `cpu_atom`; empty if the file does not say.
    pub core_type: Cow<'a, str>,
    /// Thread as the file names it, such as `mcf-1234`; empty if the file does not say.
    pub thread: Cow<'a, str>,
    /// Name in the vocabulary ([`crate::COUNTERS`]), or the native name if it has none there.
    pub counter: Cow<'a, str>,
    /// Name in the file.
    pub native: Cow<'a, str>,
    /// Unit of `value`.
    pub unit: Cow<'a, str>,
    /// The count over the window, scaled up if it was not counted all the time; `None` if it was not
    /// counted at all.
    pub value: Option<f64>,
    /// Share of the window in which it was counted, 0..=1; less than 1 if events took turns.
    pub running_share: f64,
}
