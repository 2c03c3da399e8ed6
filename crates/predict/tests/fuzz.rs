//! No text makes a reader panic: cut, corrupted and random files give readings or an error of one line.

use ampsched_predict::{parse_gem5, parse_perf};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;

const GEM5: [&str; 3] = [
    include_str!("gem5/spec2000-vortex-alpha-2010--InOrderCPU.txt"),
    include_str!("gem5/merge-gem5v22--X86MinorCPU.txt"),
    include_str!("gem5/saxpy-3dumps--X86MinorCPU.txt"),
];
const PERF: [&str; 2] = [
    "1.5,S0-D0-C1,2,1000,,cycles,5,100.00,,\n1.5,CPU0,<not counted>,,cpu_core/cycles/,0,0.00,,\n,,,,,1.5,GHz\n",
    "{\"interval\" : 1.0, \"counter-value\" : \"10.0\", \"unit\" : \"\", \"event\" : \"cycles\", \"pcnt-running\" : 99.9}\n",
];

/// 256 cases, or as many as `PROPTEST_CASES` says; the seed is fixed unless `FUZZ_SEED` is set, and printed on failure.
fn config() -> ProptestConfig {
    let seed = std::env::var("FUZZ_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    ProptestConfig { rng_seed: RngSeed::Fixed(seed), ..ProptestConfig::default() }
}

/// Reads a text in both formats; every value is usable and every error is one line.
fn exercise(text: &str) {
    for result in [parse_gem5("input", text), parse_perf("input", text)] {
        match result {
            Ok(readings) => {
                for reading in readings {
                    assert!(reading.value.is_none_or(f64::is_finite), "{reading:?}");
                    assert!((0.0..=1.0).contains(&reading.running_share), "{reading:?}");
                }
            }
            Err(error) => {
                let message = error.to_string();
                assert!(message.starts_with("input") && !message.contains('\n'), "{message:?}");
            }
        }
    }
}

fn seed_text() -> impl Strategy<Value = &'static str> {
    prop::sample::select(GEM5.into_iter().chain(PERF).collect::<Vec<_>>())
}

fn at(text: &str, place: Index) -> usize {
    let mut at = place.index(text.len() + 1);
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn truncated_files(text in seed_text(), place: Index) {
        exercise(&text[..at(text, place)]);
    }

    #[test]
    fn corrupted_files(
        text in seed_text(),
        changes in prop::collection::vec((any::<Index>(), any::<Index>(), ".{0,8}"), 1..5),
    ) {
        let mut text = text.to_owned();
        for (from, length, put) in changes {
            let from = at(&text, from);
            let to = at(&text, length).clamp(from, (from + 20).min(text.len()));
            let to = (from..=to).rev().find(|place| text.is_char_boundary(*place)).unwrap();
            text.replace_range(from..to, &put);
        }
        exercise(&text);
    }

    #[test]
    fn random_texts(text in "(?s).{0,200}") {
        exercise(&text);
    }
}
