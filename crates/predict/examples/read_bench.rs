//! How fast the readers are: repeats a file until it has the wanted size, reads it, prints MB/s.
//!
//! ```text
//! read_bench gem5|perf FILE MEGABYTES
//! ```

use std::error::Error;
use std::time::Instant;

use ampsched_predict::{parse_gem5, parse_perf};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [format, file, megabytes] = arguments.as_slice() else {
        return Err("usage: read_bench gem5|perf FILE MEGABYTES".into());
    };
    let text = std::fs::read_to_string(file)?;
    let copies = megabytes.parse::<usize>()? * 1_000_000 / text.len().max(1);
    let text = text.repeat(copies.max(1));
    let begin = Instant::now();
    let readings = match format.as_str() {
        "gem5" => parse_gem5(file, &text)?.len(),
        "perf" => parse_perf(file, &text)?.len(),
        _ => return Err(format!("unknown format \"{format}\"").into()),
    };
    let rate = text.len() as f64 / 1e6 / begin.elapsed().as_secs_f64();
    println!("{{\"format\": \"{format}\", \"readings\": {readings}, \"mb_per_s\": {rate:.0}}}");
    Ok(())
}
