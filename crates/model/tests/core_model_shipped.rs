//! The core model on everything that is shipped, and the committed comparison with published ratios.

#[path = "../examples/published_ratios/data.rs"]
mod data;
#[path = "../examples/published_ratios/report.rs"]
mod report;
#[path = "../examples/published_ratios/statistics.rs"]
mod statistics;

use std::path::Path;

use ampsched_model::{CoreParams, FileKind, Pipeline, counters, cpi_stack};
use data::Published;

/// Every shipped core type.
fn cores(published: &Published) -> Vec<(String, CoreParams)> {
    let names = published.catalog.list(FileKind::CoreType);
    names.into_iter().map(|(name, _)| (name.clone(), published.core(&name))).collect()
}

#[test]
fn every_profile_runs_on_every_core_within_its_width() {
    let published = Published::read();
    assert!(published.catalog.profiles().profiles.len() >= 51);
    for (name, core) in cores(&published) {
        for profile in &published.catalog.profiles().profiles {
            let stack = cpi_stack(profile, &core, 1500.0);
            let slots = profile.uops_per_instruction / core.width;
            assert!(stack.core >= slots * (1.0 - 1e-12), "{} on {name}: {stack:?}", profile.name);
            assert!(stack.total() < 60.0, "{} on {name}: {stack:?}", profile.name);
            let rates = counters(profile, &core, 1500.0);
            assert!(rates.ipc > 0.0 && rates.ipc <= core.width, "{} on {name}", profile.name);
            assert!(rates.l2_mpki <= rates.l2_access_pki + 1e-9, "{} on {name}", profile.name);
        }
    }
}

#[test]
fn every_profile_is_faster_on_the_big_core_of_colab() {
    let published = Published::read();
    let (big, little) = (published.core("cortex-a57"), published.core("cortex-a53"));
    assert_eq!((big.pipeline, little.pipeline), (Pipeline::OutOfOrder, Pipeline::InOrder));
    for profile in &published.catalog.profiles().profiles {
        let cpi = |core, mhz| cpi_stack(profile, core, mhz).total() / mhz;
        let ratio = cpi(&little, 1200.0) / cpi(&big, 2000.0);
        assert!((1.0..8.0).contains(&ratio), "{}: {ratio}", profile.name);
    }
}

#[test]
fn the_committed_comparison_is_current() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reports/models/core-model.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let current = report::replace(&text, &report::markdown(&Published::read())).unwrap();
    assert!(
        text == current,
        "docs/reports/models/core-model.md is out of date; run\n  cargo run -p ampsched-model --example \
         published_ratios -- --write docs/reports/models/core-model.md"
    );
}

#[test]
fn marks_are_needed_to_replace_the_tables() {
    assert!(report::replace("no marks", "tables").is_err());
    let text = "a\n<!-- tables: begin -->\nold\n<!-- tables: end -->\nb\n";
    let replaced = report::replace(text, "new\n").unwrap();
    assert_eq!(replaced, "a\n<!-- tables: begin -->\n\nnew\n\n<!-- tables: end -->\nb\n");
}

#[test]
fn statistics_by_hand() {
    use statistics::{geometric_mean, mean, median, rank_correlation};
    assert_eq!(mean(&[1.0, 2.0, 6.0]), 3.0);
    assert_eq!((median(&[9.0, 1.0, 2.0]), median(&[4.0, 1.0, 2.0, 9.0])), (2.0, 3.0));
    assert!((geometric_mean(&[1.0, 4.0]) - 2.0).abs() < 1e-12);
    assert_eq!(rank_correlation(&[1.0, 2.0, 3.0], &[10.0, 20.0, 90.0]), 1.0);
    assert_eq!(rank_correlation(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), -1.0);
    // Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4.
    let tied = rank_correlation(&[1.0, 2.0, 2.0, 3.0], &[1.0, 2.0, 3.0, 4.0]);
    assert!((tied - 4.5 / (4.5_f64 * 5.0).sqrt()).abs() < 1e-12);
}
