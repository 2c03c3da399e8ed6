//! Amounts: a number, an expression, or a distribution whose parameters are expressions.

use crate::expr::{AMOUNT_MAX, Expr, Scope};
use crate::limits::QUANTILES_MAX;
use crate::reader::{Node, Spot, Table, plain};
use crate::{Amount, Dist, InputError};

/// Largest coefficient of variation.
const CV_MAX: f64 = 100.0;

/// An amount whose expressions are still open.
#[derive(Clone, Debug)]
pub(crate) enum AmountExpr {
    Constant(Expr),
    Normal { mean: Expr, cv: Expr },
    LogNormal { mean: Expr, cv: Expr },
    Exponential { mean: Expr },
    Uniform { low: Expr, high: Expr },
    Quantiles { points: Vec<Expr>, scale: Expr, spot: Spot },
}

impl AmountExpr {
    /// Parses an amount.
    pub fn of(node: &Node<'_>) -> Result<AmountExpr, InputError> {
        if !node.is_table() {
            return Expr::of(node).map(AmountExpr::Constant);
        }
        let table = node.any_table()?;
        if table.has("quantiles") {
            Self::quantiles(&node.table(&["quantiles", "scale"])?)
        } else if table.has("low") || table.has("high") {
            let table = node.table(&["low", "high"])?;
            Ok(AmountExpr::Uniform {
                low: Expr::of(&table.require("low")?)?,
                high: Expr::of(&table.require("high")?)?,
            })
        } else {
            Self::around_mean(&node.table(&[
                "mean",
                "cv",
                "dist",
                "low",
                "high",
                "quantiles",
                "scale",
            ])?)
        }
    }

    fn around_mean(table: &Table<'_>) -> Result<AmountExpr, InputError> {
        let mean = Expr::of(&table.require("mean")?)?;
        let cv = table.get("cv").map(|node| Expr::of(&node)).transpose()?;
        let dist = table.get("dist").map_or(Ok("lognormal"), |node| {
            node.word("distribution", &["lognormal", "normal", "exponential"])
        })?;
        match (dist, cv) {
            ("exponential", None) => Ok(AmountExpr::Exponential { mean }),
            ("exponential", Some(cv)) => {
                Err(cv.spot.error("an exponential distribution has no \"cv\" (it is 1)"))
            }
            (_, None) => Err(table
                .spot
                .error("key \"cv\" is missing")
                .with_hint("an amount that does not vary is a number")),
            ("normal", Some(cv)) => Ok(AmountExpr::Normal { mean, cv }),
            (_, Some(cv)) => Ok(AmountExpr::LogNormal { mean, cv }),
        }
    }

    fn quantiles(table: &Table<'_>) -> Result<AmountExpr, InputError> {
        let list = table.require("quantiles")?;
        let points = list.list()?.iter().map(Expr::of).collect::<Result<Vec<_>, _>>()?;
        if points.len() < 2 || points.len() > QUANTILES_MAX {
            let message = format!("{} quantiles, 2 to {QUANTILES_MAX} are allowed", points.len());
            return Err(list.spot.error(message));
        }
        let one = Expr::number(1.0, list.spot.clone());
        let scale = table.get("scale").map_or(Ok(one), |node| Expr::of(&node))?;
        Ok(AmountExpr::Quantiles { points, scale, spot: list.spot })
    }

    /// All expressions in it.
    pub fn expressions(&self) -> Vec<&Expr> {
        match self {
            AmountExpr::Constant(expr) | AmountExpr::Exponential { mean: expr } => vec![expr],
            AmountExpr::Normal { mean, cv } | AmountExpr::LogNormal { mean, cv } => vec![mean, cv],
            AmountExpr::Uniform { low, high } => vec![low, high],
            AmountExpr::Quantiles { points, scale, .. } => points.iter().chain([scale]).collect(),
        }
    }

    /// Whether the amount is the number 0, whatever the parameters.
    pub fn is_zero(&self) -> bool {
        matches!(self, AmountExpr::Constant(expr) if expr.is_the_number(0.0))
    }

    /// The value, if the amount does not vary.
    pub fn constant(&self, scope: Scope<'_>) -> Option<f64> {
        match self {
            AmountExpr::Constant(expr) => expr.value(scope).ok().map(f64::round),
            _ => None,
        }
    }

    /// The amount in units that are `unit` times smaller (1000 turns microseconds into ns).
    ///
    /// Constants are rounded to the nearest whole number of the smaller unit.
    pub fn amount(&self, scope: Scope<'_>, unit: f64) -> Result<Amount, InputError> {
        let limited =
            |expr: &Expr| expr.within(scope, 0.0, AMOUNT_MAX / unit).map(|value| value * unit);
        let spread = |expr: &Expr| expr.within(scope, 0.0, CV_MAX);
        Ok(match self {
            AmountExpr::Constant(expr) => Amount::constant(limited(expr)?.round()),
            AmountExpr::Normal { mean, cv } => {
                with_spread(limited(mean)?, Dist::Normal { cv: spread(cv)? })
            }
            AmountExpr::LogNormal { mean, cv } => {
                with_spread(limited(mean)?, Dist::LogNormal { cv: spread(cv)? })
            }
            AmountExpr::Exponential { mean } => {
                Amount { mean: limited(mean)?, dist: Dist::Exponential }
            }
            AmountExpr::Uniform { low, high } => {
                uniform(limited(low)?, limited(high)?, unit, &high.spot)?
            }
            AmountExpr::Quantiles { points, scale, spot } => {
                let scale = scale.within(scope, 0.0, AMOUNT_MAX)?;
                let points = points
                    .iter()
                    .map(|point| point.within(scope, 0.0, AMOUNT_MAX))
                    .collect::<Result<_, _>>()?;
                quantiles(points, scale * unit, spot)?
            }
        })
    }
}

fn with_spread(mean: f64, dist: Dist) -> Amount {
    match dist {
        Dist::Normal { cv: 0.0 } | Dist::LogNormal { cv: 0.0 } => Amount::constant(mean.round()),
        dist => Amount { mean, dist },
    }
}

fn uniform(low: f64, high: f64, unit: f64, spot: &Spot) -> Result<Amount, InputError> {
    if low > high {
        return Err(spot.error(format!(
            "{} is less than \"low\" {}",
            plain(high / unit),
            plain(low / unit)
        )));
    }
    Ok(Amount { mean: (low + high) / 2.0, dist: Dist::Uniform { low, high } })
}

fn quantiles(points: Vec<f64>, scale: f64, spot: &Spot) -> Result<Amount, InputError> {
    if let Some(pair) = points.windows(2).find(|pair| pair[0] > pair[1]) {
        return Err(spot.error(format!(
            "{} after {}, quantiles must ascend",
            plain(pair[1]),
            plain(pair[0])
        )));
    }
    let points: Vec<f64> = points.iter().map(|point| point * scale).collect();
    if points.iter().any(|point| *point > AMOUNT_MAX) {
        return Err(spot.error(format!(
            "the largest quantile times \"scale\" is above {}",
            plain(AMOUNT_MAX)
        )));
    }
    let intervals = (points.len() - 1) as f64;
    let mean = points.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).sum::<f64>() / intervals;
    Ok(Amount { mean, dist: Dist::Quantiles(points) })
}
