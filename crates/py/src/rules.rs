//! Single rules that a policy written in Python replaces in those of its base.

use ampsched_model::{Ns, suggest};
use ampsched_policy::{
    Allocator, Charge, Order, QueueScope, Rules, Slice, Steal, StealFrom, WakePreempt,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::InputError;

const QUEUES: [(&str, QueueScope); 3] = [
    ("per_core", QueueScope::PerCore),
    ("per_cluster", QueueScope::PerCluster),
    ("global", QueueScope::Global),
];
const ORDERS: [(&str, Order); 5] = [
    ("fifo", Order::Fifo),
    ("vruntime", Order::Vruntime),
    ("deadline", Order::Deadline),
    ("highest_rank", Order::HighestRank { fair_window_ns: Ns::MAX }),
    // As long as those of a-dwrr.
    ("rounds", Order::Rounds { length_ns: 30_000_000 }),
];
const ALLOCATORS: [(&str, Allocator); 4] = [
    ("wake_affine", Allocator::WakeAffine),
    ("round_robin_in_class", Allocator::RoundRobinInClass),
    ("least_loaded_in_class", Allocator::LeastLoadedInClass),
    ("least_loaded_with", Allocator::LeastLoadedWith),
];
const STEALS: [(&str, StealFrom); 3] = [
    ("own_cluster", StealFrom::OwnCluster),
    ("other_clusters", StealFrom::OtherClusters),
    ("running_on_slower", StealFrom::RunningOnSlower),
];
const CHARGES: [(&str, Charge); 3] =
    [("time", Charge::Time), ("progress", Charge::Progress), ("rated", Charge::Rated)];
/// Longest duration that a rule may state, in ms.
const DURATION_MS_MAX: f64 = 1e6;
const KEYS: [&str; 12] = [
    "allocator",
    "balance",
    "charge",
    "fork_debit",
    "kick_idle",
    "order",
    "queues",
    "sleeper_credit_ms",
    "slice_by_speed",
    "slice_ms",
    "steal",
    "wake_preemption",
];

type Override = Box<dyn Fn(&mut Rules) + Send>;

/// Rules to replace.
#[derive(Default)]
pub struct Overrides {
    overrides: Vec<Override>,
}

impl Overrides {
    /// Reads a dictionary such as `{"order": "fifo", "slice_ms": 2.0}`.
    pub fn from_python(dict: &Bound<'_, PyDict>) -> PyResult<Self> {
        let overrides: PyResult<_> =
            dict.iter().map(|(key, value)| one(&key.extract::<String>()?, &value)).collect();
        Ok(Self { overrides: overrides? })
    }

    /// The rules with the replacements made.
    pub fn apply(&self, mut rules: Rules) -> Rules {
        for change in &self.overrides {
            change(&mut rules);
        }
        rules
    }
}

fn one(key: &str, value: &Bound<'_, PyAny>) -> PyResult<Override> {
    Ok(match key {
        "queues" => {
            let scope = choice(key, value, &QUEUES)?;
            Box::new(move |rules| rules.queues = scope)
        }
        "order" => {
            let order = choice(key, value, &ORDERS)?;
            Box::new(move |rules| rules.order = order)
        }
        "allocator" => {
            let allocator = choice(key, value, &ALLOCATORS)?;
            Box::new(move |rules| rules.allocator = allocator)
        }
        "charge" => {
            let charge = choice(key, value, &CHARGES)?;
            Box::new(move |rules| rules.charge = charge)
        }
        "steal" => {
            let words: Vec<Bound<'_, PyAny>> =
                value.extract().map_err(|_| wrong(key, value, "a list of words"))?;
            let from: PyResult<Vec<StealFrom>> =
                words.iter().map(|word| choice(key, word, &STEALS)).collect();
            let steps: Vec<Steal> = from?.into_iter().map(Steal::any).collect();
            Box::new(move |rules| rules.steal.clone_from(&steps))
        }
        "slice_ms" => {
            let slice_ns = duration_ns(key, value, 0.001)?;
            Box::new(move |rules| rules.slice = Slice::Fixed(slice_ns))
        }
        "sleeper_credit_ms" => {
            let credit_ns = duration_ns(key, value, 0.0)?;
            Box::new(move |rules| rules.sleeper_credit_ns = credit_ns)
        }
        "balance" => {
            only_off(key, value)?;
            Box::new(|rules| rules.balance = None)
        }
        "kick_idle" => {
            let on = flag(key, value)?;
            Box::new(move |rules| rules.kick_idle = on)
        }
        "slice_by_speed" => {
            let on = flag(key, value)?;
            Box::new(move |rules| rules.slice_by_speed = on)
        }
        "fork_debit" => {
            let on = flag(key, value)?;
            Box::new(move |rules| rules.fork_debit = on)
        }
        "wake_preemption" => {
            only_off(key, value)?;
            Box::new(|rules| rules.preempt = WakePreempt::Never)
        }
        _ => {
            return Err(InputError::new_err(format!(
                "unknown rule \"{key}\" ({})",
                suggest(key, KEYS)
            )));
        }
    })
}

fn wrong(key: &str, value: &Bound<'_, PyAny>, wanted: &str) -> PyErr {
    let got = value.repr().map_or_else(|_| "the given value".to_owned(), |repr| repr.to_string());
    InputError::new_err(format!("rule {key} = {got} is not {wanted}"))
}

fn choice<T: Copy>(key: &str, value: &Bound<'_, PyAny>, words: &[(&str, T)]) -> PyResult<T> {
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let wanted = format!("one of {}", known.join(", "));
    let word: String = value.extract().map_err(|_| wrong(key, value, &wanted))?;
    let found = words.iter().find(|(known, _)| *known == word);
    found.map(|(_, choice)| *choice).ok_or_else(|| wrong(key, value, &wanted))
}

fn flag(key: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.extract().map_err(|_| wrong(key, value, "True or False"))
}

/// What the base does can be switched off; what it does not do cannot be switched on.
fn only_off(key: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    match flag(key, value)? {
        false => Ok(()),
        true => Err(wrong(key, value, "False; leave it out to do as the base does")),
    }
}

fn duration_ns(key: &str, value: &Bound<'_, PyAny>, min_ms: f64) -> PyResult<Ns> {
    let wanted = format!("a number of ms within {min_ms} to {DURATION_MS_MAX}");
    let ms: f64 = value.extract().map_err(|_| wrong(key, value, &wanted))?;
    if (min_ms..=DURATION_MS_MAX).contains(&ms) {
        return Ok((ms * 1e6).round() as Ns);
    }
    Err(wrong(key, value, &wanted))
}
