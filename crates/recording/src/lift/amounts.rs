//! Amounts of work as text.

/// Fewer values are not described by quantiles.
const VALUES_MIN: usize = 12;
/// A smaller spread is none.
const CV_MIN: f64 = 0.02;

/// How much and how spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Moments {
    pub mean: f64,
    pub cv: f64,
}

/// Mean and coefficient of variation.
pub(super) fn moments(values: &[f64]) -> Moments {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    Moments { mean, cv: if mean > 0.0 { square.sqrt() / mean } else { 0.0 } }
}

/// A number with five digits.
pub(super) fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let digits = 4 - value.abs().log10().floor() as i32;
    let text = format!("{value:.*}", digits.clamp(0, 12) as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// An amount in us: `mean_us`, an expression or a number, spread as `values` are (in any unit).
pub(super) fn spread(mean_us: &str, values: &[f64]) -> String {
    let Moments { mean, cv } = moments(values);
    if values.len() < VALUES_MIN || cv < CV_MIN || mean <= 0.0 {
        return plain(mean_us);
    }
    let points = quantiles(values);
    let list: Vec<String> = points.iter().map(|point| number(three(*point))).collect();
    let implied = implied_mean(&points.iter().map(|point| three(*point)).collect::<Vec<_>>());
    let scale = match mean_us.parse::<f64>() {
        Ok(mean_us) => number(mean_us / implied),
        Err(_) if (implied - 1.0).abs() < 1e-4 => quoted(mean_us),
        Err(_) => quoted(&format!("{mean_us} / {implied:.5}")),
    };
    format!("{{ quantiles = [{}], scale = {scale} }}", list.join(", "))
}

/// A number as it is, an expression in quotes.
pub(super) fn plain(amount: &str) -> String {
    match amount.parse::<f64>() {
        Ok(_) => amount.to_owned(),
        Err(_) => quoted(amount),
    }
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// With three digits.
fn three(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

/// The mean of a distribution through equally spaced quantiles.
fn implied_mean(points: &[f64]) -> f64 {
    let ends = (points[0] + points[points.len() - 1]) / 2.0;
    (points.iter().sum::<f64>() - ends) / (points.len() - 1) as f64
}

/// Equally spaced quantiles, by the mean: as many as it takes to keep the spread.
fn quantiles(values: &[f64]) -> Vec<f64> {
    let Moments { mean, cv } = moments(values);
    let mut sorted: Vec<f64> = values.iter().map(|value| value / mean).collect();
    sorted.sort_by(f64::total_cmp);
    let mut points = Vec::new();
    for steps in [10, 20, 40] {
        points =
            (0..=steps).map(|step| between(&sorted, f64::from(step) / f64::from(steps))).collect();
        let implied = implied_mean(&points);
        let is_near = (implied - 1.0).abs() < 0.01 && (implied_cv(&points) / cv - 1.0).abs() < 0.02;
        if is_near || values.len() < 2 * steps as usize {
            break;
        }
    }
    points
}

fn implied_cv(points: &[f64]) -> f64 {
    let mean = implied_mean(points);
    let square = |pair: &[f64]| (pair[0] * pair[0] + pair[0] * pair[1] + pair[1] * pair[1]) / 3.0;
    let squares: f64 = points.windows(2).map(square).sum::<f64>() / (points.len() - 1) as f64;
    (squares - mean * mean).max(0.0).sqrt() / mean
}

/// The value at that share of sorted values.
fn between(sorted: &[f64], share: f64) -> f64 {
    at(sorted, share * (sorted.len() - 1) as f64)
}

/// The value at a place, interpolated.
pub(super) fn at(values: &[f64], place: f64) -> f64 {
    let below = (place.floor() as usize).min(values.len() - 1);
    let above = (below + 1).min(values.len() - 1);
    values[below] + (values[above] - values[below]) * (place - below as f64)
}

/// A number of rounds whose mean is kept: a whole number, or at random one of the two next to it.
pub(super) fn rounds(mean: f64) -> String {
    let whole = mean.round();
    if (mean - whole).abs() < 1e-6 * mean.max(1.0) {
        return number_of(whole);
    }
    // A uniform amount is rounded: below 1/2 to 0.
    match mean < 0.5 {
        true => format!("{{ low = 0, high = {} }}", number(0.5 / (1.0 - mean))),
        false => format!("{{ low = {}, high = {} }}", number(mean - 0.5), number(mean + 0.5)),
    }
}

/// A whole number, all digits.
pub(super) fn number_of(whole: f64) -> String {
    format!("{whole:.0}")
}
