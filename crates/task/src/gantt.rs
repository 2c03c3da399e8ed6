//! A schedule as a picture: one row per worker, time from left to right (SVG).

use std::fmt::Write;

use crate::{Problem, Schedule, Slot};

/// Width of the time axis in pixels.
const AXIS_PX: f64 = 1000.0;
/// Width of the names of workers.
const NAMES_PX: f64 = 110.0;
const ROW_PX: f64 = 24.0;
const BAR_PX: f64 = 18.0;
const TOP_PX: f64 = 34.0;
/// Bars narrower than this are drawn together with their neighbours, so that a picture of a million tasks stays small.
const NARROW_PX: f64 = 0.75;
/// Bars at least this wide per character carry their task's name.
const CHARACTER_PX: f64 = 7.0;
/// Fills by kind of task (Okabe and Ito's colours, which colour-blind people can tell apart); repeated if need be.
const FILLS: [&str; 7] =
    ["#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#d55e00", "#0072b2"];
/// Fill of bars that stand for tasks of several kinds.
const MIXED: &str = "#999999";

/// Several executions that are drawn as one bar.
struct Bar {
    first: Slot,
    end_s: f64,
    tasks: usize,
    /// Kind of all its tasks, if they agree.
    kind: Option<usize>,
}

/// Draws a schedule; `title` stands above it.
pub fn gantt_svg(problem: &Problem<'_>, schedule: &Schedule, title: &str) -> String {
    let workers = problem.workers();
    let rows = schedule.by_worker(workers.len());
    let px_per_s = AXIS_PX / schedule.makespan_s().max(f64::MIN_POSITIVE);
    let height = TOP_PX + ROW_PX * workers.len() as f64 + 34.0;
    let width = NAMES_PX + AXIS_PX + 20.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{NAMES_PX}\" y=\"20\" font-weight=\"bold\">{}</text>\n",
        escaped(title)
    );
    for (worker, row) in workers.ids().zip(&rows) {
        let class = &workers.classes()[workers.class_of(worker).index()];
        let y = TOP_PX + ROW_PX * worker.index() as f64;
        let middle = y + BAR_PX - 4.0;
        writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{middle:.1}\" text-anchor=\"end\">{} ({})</text>",
            NAMES_PX - 8.0,
            worker.0,
            escaped(&class.name)
        )
        .expect("a text grows");
        for bar in bars(problem, row, px_per_s) {
            draw(&mut svg, problem, &bar, y, px_per_s);
        }
    }
    axis(&mut svg, schedule.makespan_s(), px_per_s, height - 30.0);
    svg.push_str("</svg>\n");
    svg
}

/// The bars of a row.
fn bars(problem: &Problem<'_>, row: &[Slot], px_per_s: f64) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    for &slot in row {
        let kind = Some(problem.graph().kind_number(slot.task));
        let is_narrow = |from_s: f64, to_s: f64| (to_s - from_s) * px_per_s < NARROW_PX;
        match bars.last_mut() {
            Some(bar)
                if is_narrow(bar.end_s, slot.start_s)
                    && is_narrow(slot.start_s, slot.end_s)
                    && (bar.tasks > 1 || is_narrow(bar.first.start_s, bar.end_s)) =>
            {
                bar.end_s = slot.end_s;
                bar.tasks += 1;
                bar.kind = bar.kind.filter(|_| bar.kind == kind);
            }
            _ => bars.push(Bar { first: slot, end_s: slot.end_s, tasks: 1, kind }),
        }
    }
    bars
}

fn draw(svg: &mut String, problem: &Problem<'_>, bar: &Bar, y: f64, px_per_s: f64) {
    let x = NAMES_PX + bar.first.start_s * px_per_s;
    let width = (bar.end_s - bar.first.start_s) * px_per_s;
    let fill = bar.kind.map_or(MIXED, |kind| FILLS[kind % FILLS.len()]);
    let name = problem.graph().task_name(bar.first.task);
    let what = if bar.tasks == 1 { name.to_owned() } else { format!("{} tasks", bar.tasks) };
    // Narrow bars have no border: it would be all that is seen.
    let border = if width > 3.0 { " stroke=\"white\" stroke-width=\"0.5\"" } else { "" };
    writeln!(
        svg,
        "<rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{BAR_PX}\" fill=\"{fill}\"{border}><title>{}: {} to {} s</title></rect>",
        escaped(&what),
        bar.first.start_s,
        bar.end_s
    )
    .expect("a text grows");
    if bar.tasks == 1 && width > CHARACTER_PX * (name.chars().count() + 1) as f64 {
        let (x, y) = (x + width / 2.0, y + BAR_PX - 5.0);
        writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>",
            escaped(name)
        )
        .expect("a text grows");
    }
}

/// The time axis with about ten marks.
fn axis(svg: &mut String, makespan_s: f64, px_per_s: f64, y: f64) {
    let step_s = round_step_s(makespan_s / 10.0);
    writeln!(
        svg,
        "<line x1=\"{NAMES_PX}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"black\"/>",
        NAMES_PX + AXIS_PX
    )
    .expect("a text grows");
    if step_s <= 0.0 {
        return;
    }
    let marks = (makespan_s / step_s + 1e-9).floor() as usize;
    for mark in 0..=marks {
        let x = NAMES_PX + mark as f64 * step_s * px_per_s;
        // One more significant digit than the step has; sums of steps would show rounding noise.
        let decimals = (-step_s.log10().floor()).clamp(0.0, 12.0) as usize;
        let unit = if mark == marks { " s" } else { "" };
        writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\" stroke=\"black\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{:.decimals$}{unit}</text>",
            y + 4.0,
            y + 17.0,
            mark as f64 * step_s
        )
        .expect("a text grows");
    }
}

/// The next larger of 1, 2, 5, 10, 20, ... times a power of ten.
fn round_step_s(least_s: f64) -> f64 {
    if !(least_s.is_finite() && least_s > 0.0) {
        return 0.0;
    }
    let power = 10.0_f64.powf(least_s.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= least_s);
    factor.unwrap_or(10.0) * power
}

/// The text as XML, which has no place for control characters.
fn escaped(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
