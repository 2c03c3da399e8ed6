//! Counter tables: what gem5 and perf wrote, as columns.

use ampsched_model::{InputError, counters as counter_rates, machine_speed_ips};
use ampsched_predict::{
    COUNTERS, Reading, SIMULATED_COUNTERS, counts_per_instruction, parse_gem5, parse_perf,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::catalog::{Catalog, Machine};
use crate::error::{InputError as PyInputError, input};
use crate::interrupt::interruptible;

/// The vocabulary of counters: name, unit, what it counts.
#[pyfunction]
pub fn counters() -> Vec<(&'static str, &'static str, &'static str)> {
    COUNTERS.iter().map(|counter| (counter.name, counter.unit.name(), counter.help)).collect()
}

/// The columns of the counter table that a text holds; `format` is `gem5` or `perf`, `file` is its path for messages.
#[pyfunction]
pub fn read_counters<'py>(
    py: Python<'py>,
    format: &str,
    file: String,
    text: String,
) -> PyResult<Bound<'py, PyDict>> {
    let parse: for<'a> fn(&str, &'a str) -> Result<Vec<Reading<'a>>, InputError> = match format {
        "gem5" => parse_gem5,
        "perf" => parse_perf,
        _ => return Err(PyInputError::new_err(format!("unknown format \"{format}\""))),
    };
    let read = interruptible(py, move |_| parse(&file, &text).map(|readings| columns(&readings)))?;
    let table = PyDict::new(py);
    for (name, column) in read.map_err(|error| input(&error))? {
        table.set_item(name, column)?;
        py.check_signals()?;
    }
    Ok(table)
}

/// What every profile of a catalogue counts per instruction on every cluster of a machine at its highest frequency:
/// rows (profile, number of the cluster, instructions per second, counts per instruction in the order of
/// `simulated_counter_names`).
#[pyfunction]
pub fn simulated_counters(
    catalog: &Catalog,
    machine: &Machine,
) -> Vec<(String, usize, f64, Vec<f64>)> {
    let mut rows = Vec::new();
    for profile in &catalog.inner().profiles().profiles {
        for (number, cluster) in machine.inner.clusters.iter().enumerate() {
            let mhz = f64::from(cluster.max_mhz());
            let ips = machine_speed_ips(profile, &machine.inner, cluster, mhz);
            let rates = counter_rates(profile, &cluster.params, mhz);
            let counts = counts_per_instruction(&rates, mhz * 1e6 / ips);
            rows.push((profile.name.clone(), number, ips, counts.to_vec()));
        }
    }
    rows
}

/// Names of the counts that `simulated_counters` gives.
#[pyfunction]
pub fn simulated_counter_names() -> Vec<&'static str> {
    SIMULATED_COUNTERS.to_vec()
}

/// A column of a counter table.
#[derive(IntoPyObject)]
enum Column {
    Whole(Vec<u32>),
    Numbers(Vec<Option<f64>>),
    Texts(Vec<String>),
}

/// The columns by name.
fn columns(readings: &[Reading<'_>]) -> [(&'static str, Column); 11] {
    let texts =
        |column: fn(&Reading<'_>) -> String| Column::Texts(readings.iter().map(column).collect());
    let numbers = |column: fn(&Reading<'_>) -> Option<f64>| {
        Column::Numbers(readings.iter().map(column).collect())
    };
    [
        ("window", Column::Whole(readings.iter().map(|row| row.window).collect())),
        ("end_s", numbers(|row| row.end_s)),
        ("duration_s", numbers(|row| row.duration_s)),
        ("core", texts(|row| row.core.to_string())),
        ("core_type", texts(|row| row.core_type.to_string())),
        ("thread", texts(|row| row.thread.to_string())),
        ("counter", texts(|row| row.counter.to_string())),
        ("native", texts(|row| row.native.to_string())),
        ("unit", texts(|row| row.unit.to_string())),
        ("value", numbers(|row| row.value)),
        ("running_share", numbers(|row| Some(row.running_share))),
    ]
}
