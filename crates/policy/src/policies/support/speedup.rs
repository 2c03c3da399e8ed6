//! How much a thread, and an application as a whole, gains from fast cores.

use ampsched_model::{AppId, Ns, ThreadId};

use super::known_speedup;
use super::window::PerThread;
use crate::{FactorKind, Needs, ParamInfo, Params, View};

/// How often speed-ups are read.
pub const SAMPLE: ParamInfo = ParamInfo::number(
    "sample_ms",
    200.0,
    0.1,
    100_000.0,
    "period at which speed-ups are read (Prop-SP, section 3: 200 ms)",
);

/// Whether the speed-up measured beforehand is used.
pub const STATIC: ParamInfo = ParamInfo::flag(
    "static",
    false,
    "use speed-ups measured beforehand over whole programs instead of those at run time",
);

/// Whether threads of one application share the fast cores evenly.
pub const EVEN: ParamInfo =
    ParamInfo::flag("even", false, "threads of one program share the fast cores evenly");

/// How threads of one application share fast cores, as far as its speed-up depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// As many threads as there are fast cores have one for themselves, one group after the other
    /// (Prop-SP, section 3.2: fine- and medium-grained parallelism).
    BusyFastCores,
    /// All threads get equal shares (Prop-SP, section 3.2: coarse-grained parallelism).
    Even,
    /// A thread each for all fast cores but one, which the rest share (the first form of CAMP's utility
    /// factor, Saez et al., EuroSys 2010; a reconstruction, as that paper's text was not at hand).
    LastFastCore,
}

impl Sharing {
    /// As the parameter [`EVEN`] says.
    pub fn new(params: &Params) -> Self {
        if params.flag("even") { Self::Even } else { Self::BusyFastCores }
    }

    /// Speed-up of an application with `threads` runnable threads whose mean speed-up is `speedup` on a
    /// machine with `fast_cores`; the utility factor of CAMP.
    pub fn app_speedup(self, speedup: f64, threads: usize, fast_cores: usize) -> f64 {
        if threads == 1 {
            return speedup;
        }
        let (n, fast) = (threads as f64, fast_cores as f64);
        let per_gain = match self {
            Self::BusyFastCores => (((threads - 1) / fast_cores + 1) as f64).powi(2).recip(),
            Self::Even => fast.min(n) / n,
            Self::LastFastCore => (n - (fast - 1.0)).max(1.0).powi(2).recip(),
        };
        1.0 + (speedup - 1.0) * per_gain
    }
}

/// Speed-ups of threads, read every so often.
#[derive(Clone, Debug)]
pub struct Speedups {
    period_ns: Ns,
    offline: bool,
    due_ns: Ns,
    values: PerThread<Option<f64>>,
    watching: Watching,
}

/// Whether there is a thread whose speed-up depends on watching it, as far as is known.
#[derive(Clone, Copy, Debug, Default)]
enum Watching {
    #[default]
    Unknown,
    /// This one was.
    Of(ThreadId),
    /// There was none.
    Nobody,
}

impl Speedups {
    /// Read every [`SAMPLE`], from what was measured beforehand if [`STATIC`] says so.
    pub fn new(params: &Params) -> Self {
        Self {
            period_ns: params.ms(SAMPLE.name),
            offline: params.flag(STATIC.name),
            due_ns: 0,
            values: PerThread::default(),
            watching: Watching::Unknown,
        }
    }

    /// What is read.
    pub fn needs(&self) -> Needs {
        Needs { speedup: true, offline_speedup: self.offline, ..Needs::default() }
    }

    /// Reads anew if it is time; threads not known yet are read at once. Returns whether it was time.
    pub fn update(&mut self, view: &View) -> bool {
        let due = view.now_ns() >= self.due_ns;
        if due {
            self.due_ns = view.now_ns() + self.period_ns;
        }
        // Of who has slept nothing is known that was not known then.
        let threads = if due { view.threads().collect() } else { view.recent() };
        for &thread in threads.iter() {
            let value = self.values.slot(thread);
            if due || value.is_none() {
                *value = read(view, thread, self.offline);
            }
        }
        due
    }

    /// Whether a thread's speed-up comes from watching it, or is not known (yet): such threads should
    /// keep running on both kinds of core. To be asked at each epoch, if at all.
    pub fn depend_on_watching(&mut self, view: &View) -> bool {
        let offline = self.offline;
        let is_watched = |thread: &ThreadId| {
            let factors = view.factors(*thread);
            let offline = offline && factors.offline_speedup.kind != FactorKind::Missing;
            let kind = factors.speedup.kind;
            let depends = !offline && matches!(kind, FactorKind::Measured | FactorKind::Missing);
            depends && view.state(*thread).is_live()
        };
        let found = match self.watching {
            Watching::Of(thread) if is_watched(&thread) => Some(thread),
            // Of who has slept nothing is known that was not known then.
            Watching::Nobody => view.recent().iter().copied().find(is_watched),
            Watching::Unknown | Watching::Of(_) => view.threads().find(is_watched),
        };
        self.watching = found.map_or(Watching::Nobody, Watching::Of);
        found.is_some()
    }

    /// A thread's speed-up; 1 if nothing is known.
    pub fn of(&mut self, thread: ThreadId) -> f64 {
        self.known(thread).unwrap_or(1.0)
    }

    /// A thread's speed-up, unless nothing is known.
    pub fn known(&mut self, thread: ThreadId) -> Option<f64> {
        *self.values.slot(thread)
    }
}

/// A thread's speed-up now, at least 1: no thread loses on a fast core (Prop-SP, section 2).
fn read(view: &View, thread: ThreadId, offline: bool) -> Option<f64> {
    let known = view.factors(thread).offline_speedup;
    let value = match offline && known.kind != FactorKind::Missing {
        true => Some(known.value),
        false => known_speedup(view, thread),
    };
    value.map(|value| value.max(1.0))
}

/// An application that has runnable threads.
#[derive(Clone, Debug, PartialEq)]
pub struct ActiveApp {
    /// Which.
    pub app: AppId,
    /// Its runnable threads in ascending order.
    pub threads: Vec<ThreadId>,
    /// Mean speed-up of these.
    pub speedup: f64,
    /// Mean weight of these; 1024 is nice 0.
    pub weight: f64,
}

impl ActiveApp {
    /// All applications with runnable threads, in ascending order.
    pub fn all(view: &View, speedups: &mut Speedups) -> Vec<Self> {
        let mut apps: Vec<Self> = Vec::new();
        for thread in view.runnable() {
            let app = view.app(thread);
            let index = apps.partition_point(|known| known.app < app);
            if apps.get(index).is_none_or(|known| known.app != app) {
                let empty = Self { app, threads: Vec::new(), speedup: 0.0, weight: 0.0 };
                apps.insert(index, empty);
            }
            apps[index].threads.push(thread);
            apps[index].speedup += speedups.of(thread);
            apps[index].weight += f64::from(view.plan(thread).weight);
        }
        for app in &mut apps {
            app.speedup /= app.threads.len() as f64;
            app.weight /= app.threads.len() as f64;
        }
        apps
    }
}

/// The runnable threads with the speed-ups of their applications.
pub fn app_gains(
    view: &View,
    speedups: &mut Speedups,
    sharing: Sharing,
    fast_cores: usize,
) -> Vec<(f64, ThreadId)> {
    let mut gains = Vec::new();
    for app in ActiveApp::all(view, speedups) {
        let gain = sharing.app_speedup(app.speedup, app.threads.len(), fast_cores);
        gains.extend(app.threads.iter().map(|&thread| (gain, thread)));
    }
    gains
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREADS: [usize; 8] = [1, 2, 3, 4, 6, 8, 9, 12];

    /// Computed from the formulas of Prop-SP, section 3.2, and CAMP.
    #[test]
    fn speedups_of_applications_are_those_of_the_formulas() {
        use Sharing::{BusyFastCores, Even, LastFastCore};
        let expected = [
            (BusyFastCores, 2, 3.0, [3.0, 3.0, 1.5, 1.5, 1.2222, 1.125, 1.08, 1.0556]),
            (LastFastCore, 2, 3.0, [3.0, 3.0, 1.5, 1.2222, 1.08, 1.0408, 1.0312, 1.0165]),
            (Even, 2, 3.0, [3.0, 3.0, 2.3333, 2.0, 1.6667, 1.5, 1.4444, 1.3333]),
            (BusyFastCores, 1, 3.0, [3.0, 1.5, 1.2222, 1.125, 1.0556, 1.0312, 1.0247, 1.0139]),
            (Even, 1, 3.0, [3.0, 2.0, 1.6667, 1.5, 1.3333, 1.25, 1.2222, 1.1667]),
            (BusyFastCores, 4, 2.0, [2.0, 2.0, 2.0, 2.0, 1.25, 1.25, 1.1111, 1.1111]),
            (Even, 4, 2.0, [2.0, 2.0, 2.0, 2.0, 1.6667, 1.5, 1.4444, 1.3333]),
        ];
        for (sharing, fast_cores, speedup, values) in expected {
            for (threads, value) in THREADS.into_iter().zip(values) {
                let ours = sharing.app_speedup(speedup, threads, fast_cores);
                assert!((ours - value).abs() < 6e-5, "{sharing:?} {fast_cores} {threads}: {ours}");
            }
        }
    }
}
