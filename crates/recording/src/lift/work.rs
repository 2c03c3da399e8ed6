//! The work before a step as lines of text.

use super::amounts::{self, moments, number, number_of};
use super::node::{Node, Step};
use super::segment::Unit;

/// Mutexes that are locked more rarely, per execution, are left out.
const COUNT_MIN: f64 = 0.3;
/// Means by thread that differ by less are the same.
const SLOPE_MIN: f64 = 0.03;
/// A thread's work that differs by more than this share from what is alike for all is told by itself.
const CURVE_ERROR_MAX: f64 = 0.03;
/// Most threads whose work is told by itself; it is interpolated for those between.
const KNOTS_MAX: usize = 16;
/// A thread with more than this share of a step's work does it alone.
const ALONE_SHARE: f64 = 0.9;
/// Differences between threads matter for steps with this share of their work.
const MUCH_SHARE: f64 = 0.005;
/// A random amount may change the work of its group by this share.
const ERROR_MAX: f64 = 0.004;
/// Random amounts of items may change the work of their group by this share.
const ITEM_ERROR_MAX: f64 = 0.03;
/// A random number of rounds in the work on items may change the work of their group by this share.
const ROUNDS_ERROR_MAX: f64 = 0.01;
/// A smaller spread of what lies between two locks is none.
const GAP_CV_MIN: f64 = 0.05;

/// Where a step is executed.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// Recorded threads of the group, by round and in each round in the order of their `index`.
    pub members: &'a [u32],
    /// Threads of a round.
    pub team: usize,
    /// Expected executions in the program.
    pub executions: f64,
    /// Whether it is the work on items.
    pub is_item: bool,
    /// Whether `index` tells its threads apart.
    pub has_index: bool,
    /// Whether each thread's own work matters.
    pub is_curved: bool,
    /// Work of the group in ns.
    pub group_work: f64,
    /// The recorded value of n, if the amount is a share of a whole that n threads divide.
    pub shared_by: Option<f64>,
    /// Whether amounts are multiplied by the parameter `scale`.
    pub is_scaled: bool,
}

impl Place<'_> {
    /// The `index` of a recorded thread.
    fn rank(&self, thread: u32) -> Option<usize> {
        let place = self.members.iter().position(|one| *one == thread)?;
        Some(place % self.team)
    }
}

/// Lines for the work before a step; visits of mutexes are named by `mutex`.
pub(super) fn lines(
    step: &Step,
    place: Place,
    mutex: &mut dyn FnMut(u32) -> String,
) -> Vec<String> {
    let mut lead: Vec<f64> = step.samples.iter().map(|sample| sample.segment.work).collect();
    let mut units: Vec<(Unit, Vec<f64>)> = Vec::new();
    for (at, sample) in step.samples.iter().enumerate() {
        for unit in &sample.segment.units {
            let place = units.iter().position(|(one, _)| one.mutex == unit.mutex);
            let place = place.unwrap_or_else(|| {
                let new = Unit { mutex: unit.mutex, ..Unit::default() };
                units.push((new, vec![0.0; lead.len()]));
                units.len() - 1
            });
            let (sum, rest) = &mut units[place];
            sum.count += unit.count;
            sum.hold += unit.hold;
            sum.gap += unit.gap;
            sum.gap_squares += unit.gap_squares;
            lead[at] -= unit.gap;
            rest[at] += unit.gap + unit.hold;
        }
    }
    units.retain(|(unit, rest)| {
        let is_often = unit.count >= COUNT_MIN * place.executions;
        if !is_often {
            lead.iter_mut().zip(rest).for_each(|(lead, more)| *lead += *more);
        }
        is_often
    });
    let mut found = Vec::new();
    if let Some(amount) = phase(step, &lead, place) {
        found.push(format!("{{ run_us = {amount}, profile = \"recorded\" }},"));
    }
    for (unit, _) in units {
        let name = mutex(unit.mutex);
        found.push(visits(&unit, &name, place));
    }
    found
}

/// The line for visits of mutexes.
fn visits(unit: &Unit, name: &str, place: Place) -> String {
    let count = (unit.count / place.executions).round().max(1.0);
    let all = count * place.executions;
    let scale = if place.is_scaled { " * scale" } else { "" };
    let rounds = match place.shared_by {
        Some(n) if count > 1.0 => Some(format!("{}{scale} / n", number_of(count * n))),
        _ => None,
    };
    // Rounds are whole; what is done in each makes up for that.
    let each = rounds.as_ref().map(|all| format!(" * {all} / max(1, round({all}))"));
    let run = |mean_ns: f64, cv: f64| {
        let us = number(mean_ns / 1e3);
        let text = amounts::plain(&format!("{us}{}", each.as_deref().unwrap_or_default()));
        match (us == "0", cv > GAP_CV_MIN) {
            (true, _) => String::new(),
            (_, true) => {
                format!(
                    "{{ run_us = {{ mean = {text}, cv = {cv:.2} }}, profile = \"recorded\" }}, "
                )
            }
            _ => format!("{{ run_us = {text}, profile = \"recorded\" }}, "),
        }
    };
    let gaps = (unit.count - place.executions).max(1.0);
    let square = unit.gap_squares / gaps - (unit.gap / gaps).powi(2);
    let cv = if unit.gap > 0.0 { square.max(0.0).sqrt() * gaps / unit.gap } else { 0.0 };
    // Few draws must not change the whole.
    let error = cv / all.sqrt() * unit.gap / place.group_work.max(1.0);
    let cv = if error < ERROR_MAX { cv.min(5.0) } else { 0.0 };
    let gap = run(unit.gap / all, cv);
    let hold = run(unit.hold / all, 0.0);
    let body = format!("{gap}{{ lock = \"{name}\" }}, {hold}{{ unlock = \"{name}\" }}");
    let rounds = match rounds {
        Some(rounds) => format!("\"max(1, round({rounds}))\""),
        None if place.is_scaled => format!("\"{}{scale}\"", number_of(count)),
        None => number_of(count),
    };
    match count > 1.0 {
        true => format!("{{ loop = {rounds}, body = [ {body} ] }},"),
        false => format!("{body},"),
    }
}

/// The amount of the work outside of mutexes.
fn phase(step: &Step, lead: &[f64], place: Place) -> Option<String> {
    let sum: f64 = lead.iter().sum();
    let mean_us = sum / place.executions / 1e3;
    if mean_us < 1e-3 || lead.is_empty() {
        return None;
    }
    let is_much = sum >= MUCH_SHARE * place.group_work;
    let is_by_index = is_much && place.has_index;
    let scale = if place.is_scaled { " * scale" } else { "" };
    if place.is_item {
        let values =
            if is_much { narrowed(lead, sum / place.group_work.max(1.0)) } else { Vec::new() };
        return Some(amounts::spread(&format!("{}{scale}", number(mean_us)), &values));
    }
    let by_thread = Means::of(step, lead, place);
    if let Some(alone) = by_thread.alone().filter(|_| is_by_index && !place.is_curved) {
        let whole = number(mean_us * place.team as f64);
        let only = match alone {
            0 => "max(0, 1 - index)".to_owned(),
            _ => format!("max(0, 1 - max(index - {alone}, {alone} - index))"),
        };
        return Some(amounts::plain(&format!("{whole}{scale} * {only}")));
    }
    let slope = by_thread.slope().filter(|_| is_by_index);
    let is_curved = is_by_index && place.is_curved && by_thread.differ(slope);
    let values = residuals(step, lead, place, &by_thread, slope.is_some() || is_curved);
    let mut mean = match place.shared_by {
        Some(n) => format!("{}{scale} / n", number(mean_us * n)),
        None => format!("{}{scale}", number(mean_us)),
    };
    if is_curved {
        mean += &format!(" * {}", by_thread.curve());
    } else if let Some(slope) = slope {
        let sign = if slope < 0.0 { '-' } else { '+' };
        let slope = slope.abs();
        mean += &format!(" * (1 {sign} {slope:.3} * (2 * index + 1 - count) / max(1, count - 1))");
    }
    let error =
        moments(&values).cv / (values.len() as f64).sqrt() * sum / place.group_work.max(1.0);
    Some(match is_much && error < ERROR_MAX {
        true => amounts::spread(&mean, &values),
        false => amounts::plain(&mean),
    })
}

/// Rounds of a loop in the work on an item, of which there are `mean` for each item: always as many, if there are so
/// few items that chance would change the whole. What is done in each round makes up for that.
pub(super) fn steady_rounds(node: &Node, mean: f64, place: Place) -> f64 {
    let spread = (mean.fract() * (1.0 - mean.fract()) * place.executions).sqrt();
    let each = node.own_work() / (mean * place.executions).max(1.0);
    match node.is_free() && spread * each > ROUNDS_ERROR_MAX * place.group_work {
        true => mean.round().max(1.0),
        false => mean,
    }
}

/// Amounts nearer to their mean, if so few are drawn that chance would change the whole. `share`: of the group's work.
fn narrowed(values: &[f64], share: f64) -> Vec<f64> {
    let moments = moments(values);
    let error = moments.cv / (values.len() as f64).sqrt() * share;
    let factor = (ITEM_ERROR_MAX / error.max(1e-9)).min(1.0);
    values.iter().map(|value| moments.mean + (value - moments.mean) * factor).collect()
}

/// Means by thread, in the order of `index`, by the mean of all.
struct Means {
    means: Vec<f64>,
}

impl Means {
    fn of(step: &Step, lead: &[f64], place: Place) -> Self {
        let mut sums = vec![(0.0, 0.0); place.team];
        for (sample, work) in step.samples.iter().zip(lead) {
            if let Some(rank) = place.rank(sample.thread) {
                sums[rank].0 += work;
                sums[rank].1 += 1.0;
            }
        }
        let mean = lead.iter().sum::<f64>() / lead.len().max(1) as f64;
        let relative = |(sum, count): (f64, f64)| {
            if count > 0.0 && mean > 0.0 { sum / count / mean } else { 1.0 }
        };
        Self { means: sums.into_iter().map(relative).collect() }
    }

    /// Whether some thread does more or less than it would by the slope.
    fn differ(&self, slope: Option<f64>) -> bool {
        let last = self.means.len().max(2) as f64 - 1.0;
        let slope = slope.unwrap_or(0.0);
        let by_slope = |rank: usize| 1.0 + slope * (2.0 * rank as f64 - last) / last;
        let mut means = self.means.iter().enumerate();
        means.any(|(rank, mean)| (mean - by_slope(rank)).abs() > CURVE_ERROR_MAX * mean)
    }

    /// What each thread does by the mean of all: straight between some of them, and stretched over other numbers.
    fn curve(&self) -> String {
        let last = self.means.len() - 1;
        let count = KNOTS_MAX.min(last + 1);
        let step = last as f64 / (count - 1).max(1) as f64;
        let knots: Vec<f64> =
            (0..count).map(|knot| amounts::at(&self.means, knot as f64 * step)).collect();
        let all: f64 = (0..=last).map(|rank| amounts::at(&knots, rank as f64 / step)).sum();
        let knots: Vec<f64> =
            knots.iter().map(|knot| knot * self.means.len() as f64 / all.max(1e-9)).collect();
        let place = format!("min({last}, (index + 0.5) * {} / count - 0.5)", last + 1);
        let mut text = number(knots[0]);
        let mut slope = 0.0;
        for (knot, pair) in knots.windows(2).enumerate() {
            let change = (pair[1] - pair[0]) / step - slope;
            slope += change;
            let sign = if change < 0.0 { '-' } else { '+' };
            let from = number(knot as f64 * step);
            text += &format!(" {sign} {} * max(0, {place} - {from})", number(change.abs()));
        }
        format!("max(0, {text})")
    }

    /// The only thread that works.
    fn alone(&self) -> Option<usize> {
        let count = self.means.len() as f64;
        let is_alone = |mean: &f64| self.means.len() > 1 && *mean > ALONE_SHARE * count;
        self.means.iter().position(is_alone)
    }

    /// How much more the last threads do than the mean, if that explains the differences.
    fn slope(&self) -> Option<f64> {
        let count = self.means.len();
        if count < 3 {
            return None;
        }
        let place = |rank: usize| {
            (2 * rank + 1) as f64 / (count - 1) as f64 - count as f64 / (count - 1) as f64
        };
        let squares: f64 = (0..count).map(|rank| place(rank).powi(2)).sum();
        let deviation = |rank: usize| self.means[rank] - 1.0;
        let slope = (0..count).map(|rank| place(rank) * deviation(rank)).sum::<f64>() / squares;
        let all: f64 = (0..count).map(|rank| deviation(rank).powi(2)).sum();
        let explained = slope * slope * squares;
        (slope.abs() >= SLOPE_MIN && explained > 0.6 * all).then_some(slope.clamp(-0.99, 0.99))
    }
}

/// What remains of the spread when rounds and threads are accounted for, by the mean.
fn residuals(
    step: &Step,
    lead: &[f64],
    place: Place,
    by_thread: &Means,
    is_by_thread: bool,
) -> Vec<f64> {
    let count = place.team;
    let is_rounds = count > 1 && lead.len() % count == 0;
    let mut found = Vec::with_capacity(lead.len());
    for (at, (sample, work)) in step.samples.iter().zip(lead).enumerate() {
        let of_thread = match place.rank(sample.thread) {
            Some(rank) if is_by_thread => by_thread.means[rank].max(1e-9),
            _ => 1.0,
        };
        let of_round = if is_rounds {
            let round = &lead[at / count * count..][..count];
            round.iter().sum::<f64>() / count as f64
        } else {
            1.0
        };
        found.push(if of_round > 0.0 { work / of_round / of_thread } else { 1.0 });
    }
    found
}
