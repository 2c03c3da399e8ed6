//! The limit of counts, held before there is no memory left.

use std::fmt::Write;

use ampsched_model::limits::READINGS_MAX;
use ampsched_predict::{parse_gem5, parse_perf};

fn error_of<T>(read: Result<Vec<T>, ampsched_model::InputError>) -> String {
    read.map(|readings| readings.len()).expect_err("refused").to_string()
}

#[test]
fn low_more_counts_of_perf_than_the_limit_are_refused() {
    let text = "7,,cycles,1,100.00,,\n".repeat(READINGS_MAX + 10);
    let said = format!("p.csv:{}: more than 2000000 counts, which is the limit", READINGS_MAX + 1);
    assert_eq!(error_of(parse_perf("p.csv", &text)), said);
}

#[test]
fn low_more_counts_of_gem5_than_the_limit_are_refused() {
    // A dump of as many counts as are allowed, and one of one more.
    let mut text = String::from("---------- Begin Simulation Statistics ----------\n");
    for core in 0..READINGS_MAX / 2 {
        writeln!(text, "c{core}.numCycles 1\nc{core}.committedInsts 1").unwrap();
    }
    text += "---------- End Simulation Statistics   ----------\n";
    let line = text.lines().count() + 1;
    text += "---------- Begin Simulation Statistics ----------\nc.numCycles 1\n";
    text += "---------- End Simulation Statistics   ----------\n";
    let said = format!(
        "s.txt:{line}: with the dump that begins here more than 2000000 counts, which is the limit"
    );
    assert_eq!(error_of(parse_gem5("s.txt", &text)), said);
}
