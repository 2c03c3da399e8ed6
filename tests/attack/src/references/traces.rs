//! What traces tell: the same when they are written twice, and the same of the beginning of a run wherever that ends.

use std::fmt::Write;

use ampsched_model::{ClusterId, CoreId, Ns, ThreadId};
use ampsched_policy::Reason;
use ampsched_sim::{Decision, PerfettoTrace, Trace, TraceMachine, TraceThread, TurnEnd};

use super::scenes::Scene;
use super::{Case, Verdict};

/// Results and trace, written down.
fn written(case: &mut Case, scene: &Scene) -> Result<(String, Vec<u8>), String> {
    let setup = scene.setup();
    case.note(setup.describe());
    let (mut bytes, wrong) = (Vec::new(), |error: std::io::Error| error.to_string());
    let machine = TraceMachine::from(&setup.machine()?);
    let mut trace = PerfettoTrace::new(&mut bytes, &machine).map_err(wrong)?;
    let outcome = setup.run(Some(&mut trace))?;
    trace.finish().map_err(wrong)?;
    Ok((serde_json::to_string(&outcome).map_err(|error| error.to_string())?, bytes))
}

/// The same bytes; and results do not depend on whether somebody writes a trace.
pub fn twice(case: &mut Case) -> Verdict {
    let one = Scene::new(&mut case.dice);
    let mut other = one.clone();
    if case.is_bent("work") {
        other.add_work();
    }
    let (first, second) = (written(case, &one)?, written(case, &other)?);
    let untraced = case.simulate(&one.setup())?;
    let untraced = serde_json::to_string(&untraced).map_err(|error| error.to_string())?;
    case.equal("bytes of the trace that differ", differing(&first.1, &second.1), 0)?;
    case.equal("results that are the same", first.0 == second.0, true)?;
    case.equal("results that are the same without a trace", first.0 == untraced, true)
}

fn differing(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).filter(|(one, other)| one != other).count()
        + one.len().abs_diff(other.len())
}

/// What happens, in lines, with when it does.
#[derive(Debug, Default)]
struct Lines {
    all: Vec<(Ns, String)>,
    /// For each thread: since when it runs, and for how long it did before.
    runs: Vec<(Option<Ns>, Ns)>,
}

impl Lines {
    fn add(&mut self, at: Ns, text: std::fmt::Arguments<'_>) {
        let mut line = String::new();
        let _ = line.write_fmt(text);
        self.all.push((at, line));
    }

    /// How long each thread has run until then.
    fn ran(&self, until: Ns) -> Vec<Ns> {
        self.runs.iter().map(|(since, ns)| ns + since.map_or(0, |since| until - since)).collect()
    }
}

/// Follows a run until some moment, not included.
#[derive(Debug, Default)]
struct Until {
    end: Ns,
    lines: Lines,
}

impl Trace for Until {
    fn thread(&mut self, _: TraceThread<'_>) {
        self.lines.runs.push((None, 0));
    }

    fn run(&mut self, core: CoreId, thread: ThreadId, _: Option<&Reason>, at_ns: Ns) {
        if at_ns < self.end {
            self.lines.runs[thread.index()].0 = Some(at_ns);
            self.lines.add(at_ns, format_args!("core {} runs {}", core.0, thread.0));
        }
    }

    fn stop(&mut self, core: CoreId, thread: ThreadId, end: TurnEnd<'_>, at_ns: Ns) {
        if at_ns < self.end {
            let run = &mut self.lines.runs[thread.index()];
            *run = (None, run.1 + run.0.map_or(0, |since| at_ns - since));
            let told = (end.instructions, end.state);
            self.lines.add(at_ns, format_args!("core {} stops {}: {told:?}", core.0, thread.0));
        }
    }

    fn wake(&mut self, by: Option<ThreadId>, woken: ThreadId, core: Option<CoreId>, at_ns: Ns) {
        if at_ns < self.end {
            self.lines.add(at_ns, format_args!("{by:?} wakes {} on {core:?}", woken.0));
        }
    }

    fn decided(&mut self, thread: ThreadId, _: Decision<'_>, _: Option<&Reason>, at_ns: Ns) {
        if at_ns < self.end {
            self.lines.add(at_ns, format_args!("something is decided of {}", thread.0));
        }
    }

    fn frequency(&mut self, cluster: ClusterId, mhz: u32, at_ns: Ns) {
        if at_ns < self.end {
            self.lines.add(at_ns, format_args!("cluster {} at {mhz} MHz", cluster.index()));
        }
    }

    fn queue_len(&mut self, core: CoreId, len: usize, at_ns: Ns) {
        if at_ns < self.end {
            self.lines.add(at_ns, format_args!("{len} wait on core {}", core.0));
        }
    }
}

/// A run that is stopped is the beginning of one that goes on.
pub fn beginning(case: &mut Case) -> Verdict {
    let mut long = Scene::new(&mut case.dice);
    let end = case.dice.scale(1e3, 3e6) as Ns;
    let mut short = Scene { until: Some(end), ..long.clone() };
    if case.is_bent("start") {
        short.threads[0].start += 1000;
        long.threads[0].start = 0;
    }
    let mut run = |scene: &Scene| {
        let setup = scene.setup();
        case.note(setup.describe());
        let mut trace = Until { end, ..Until::default() };
        setup.run(Some(&mut trace)).map(|outcome| (outcome, trace.lines))
    };
    let ((_, whole), (outcome, begun)) = (run(&long)?, run(&short)?);
    let policy = &long.policy;
    case.equal(&format!("events under {policy}"), begun.all.len(), whole.all.len())?;
    for ((at, begun), (_, whole)) in begun.all.iter().zip(&whole.all) {
        case.equal(&format!("at {at} ns under {policy}"), begun, whole)?;
    }
    let told: Vec<Ns> = outcome.threads.iter().map(|thread| thread.run_ns()).collect();
    let ran = whole.ran(outcome.makespan_ns.min(end));
    // Those that start later are not known yet.
    let (begun, later) = ran.split_at(told.len().min(ran.len()));
    case.equal("time of threads", format!("{told:?}"), format!("{begun:?}"))?;
    case.equal("time of later threads", later.iter().sum(), 0)
}
