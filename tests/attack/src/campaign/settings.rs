//! Random policies with legal parameters, and how simulations of them are run.

use std::sync::Arc;

use ampsched_policy::{GOVERNORS, ParamInfo, ParamKind, REGISTRY, check_governor};
use ampsched_sim::{FactorSource, GovernorSpec, Options, Overhead, Predicted};

use super::machines::MachineText;
use crate::dice::Dice;

/// A policy by name, with those of its parameters that are not at their defaults.
pub type PolicySpec = (&'static str, Vec<(String, f64)>);

/// Nothing here takes longer, all of it one after the other at the slowest clock: who has not ended by then never will.
const LIMIT_NS: u64 = 60_000_000_000;

/// Any policy of the registry.
pub fn policy(dice: &mut Dice) -> PolicySpec {
    let info = *dice.of(REGISTRY);
    (info.name, params(dice, info.params))
}

/// Values within the limits that each parameter declares; half of them stay as they are.
pub fn params(dice: &mut Dice, rows: &[ParamInfo]) -> Vec<(String, f64)> {
    let mut given = Vec::new();
    for row in rows {
        if dice.once_in(3) {
            given.push((row.name.to_owned(), value(dice, row)));
        }
        if matches!(row.kind, ParamKind::PerMhz { .. }) && dice.once_in(3) {
            given.push((format!("{}@{}", row.name, dice.whole(1..=3000)), value(dice, row)));
        }
    }
    given
}

fn value(dice: &mut Dice, row: &ParamInfo) -> f64 {
    match row.kind {
        ParamKind::Flag => dice.whole(0..=1) as f64,
        ParamKind::Choice(choices) => dice.index(choices.len()) as f64,
        ParamKind::OneOf(values) => values[dice.index(values.len())].0,
        ParamKind::Number { min, max } | ParamKind::PerMhz { min, max } => {
            match dice.whole(0..=7) {
                0 => min,
                1 => max,
                2 | 3 => dice.between(min, max),
                // Near the default, where programs as small as these notice it.
                _ if min < row.default && row.default > 0.0 => {
                    dice.scale(row.default / 10.0, row.default * 10.0).clamp(min, max)
                }
                _ => dice.between(min, max),
            }
        }
    }
}

/// How a machine's simulations are run.
pub fn options(
    dice: &mut Dice,
    machine: &MachineText,
    models: &Arc<ampsched_predict::Models>,
) -> Options {
    let until_ns = dice.once_in(2).then(|| dice.scale(1e6, 4e7) as u64);
    let overhead = match dice.once_in(4) {
        true => Overhead { decision_ns: dice.whole(0..=3000), epoch_ns: dice.whole(0..=20_000) },
        false => Overhead::default(),
    };
    Options {
        seed: dice.bits() >> 1,
        factors: factors(dice, models),
        until_ns,
        repetitions: if dice.once_in(5) {
            std::num::NonZeroU32::new(dice.whole(1..=3) as u32)
        } else {
            None
        },
        overhead,
        governors: governors(dice, machine),
        energy: machine.power && !dice.once_in(3),
        limit_ns: LIMIT_NS,
        check: true,
        ..Options::default()
    }
}

fn factors(dice: &mut Dice, models: &Arc<ampsched_predict::Models>) -> FactorSource {
    let interval_ns = dice.scale(1e4, 1e8) as u64;
    match dice.whole(0..=7) {
        0 => FactorSource::Missing,
        1 => FactorSource::Constant(dice.scale(0.1, 10.0)),
        2 => FactorSource::Noisy { cv: dice.between(0.0, 1.5), stale_ns: interval_ns },
        3 => FactorSource::Sampled { interval_ns },
        4 => FactorSource::Predicted(Predicted {
            models: Arc::clone(models),
            counter_cv: dice.between(0.0, 0.5),
            stale_ns: interval_ns,
        }),
        _ => FactorSource::Oracle,
    }
}

/// One governor for all clusters, or another one for one of them besides.
fn governors(dice: &mut Dice, machine: &MachineText) -> Vec<GovernorSpec> {
    if machine.clocks.is_empty() || dice.once_in(2) {
        return Vec::new();
    }
    let mut specs = vec![governor(dice, None)];
    if dice.once_in(3) {
        let cluster = dice.of::<String>(&machine.clocks).clone();
        specs.push(governor(dice, Some(cluster)));
    }
    specs
}

fn governor(dice: &mut Dice, cluster: Option<String>) -> GovernorSpec {
    let info = *dice.of(GOVERNORS);
    let params = params(dice, info.params);
    // Some values do not go with others; which, only the governor knows.
    let params = if check_governor(info.name, &params).is_ok() { params } else { Vec::new() };
    GovernorSpec { cluster, name: info.name.to_owned(), params }
}
