//! gem5's `stats.txt`, of all versions since 2010: one or several dumps per file.
//!
//! A dump is a list of lines `NAME VALUE [MORE] [# DESCRIPTION]` between two rulers. gem5 has renamed
//! statistics several times; `names.rs` says what means the same. Statistics that are 0 may be missing
//! from a file, so a counter that is not there is unknown, not 0.

mod caches;
mod dump;
mod names;

use ampsched_model::InputError;

use crate::Reading;
use dump::Dump;
use names::Names;

const BEGIN: &str = "---------- Begin Simulation Statistics";
const END: &str = "---------- End Simulation Statistics";

/// The counters of every core in every dump of a `stats.txt`, in the order of dumps, cores and the
/// vocabulary.
///
/// Only statistics of the vocabulary are returned, and of SMT cores those of hardware thread 0. What
/// several cores share (an L2, memory) is returned with an empty core, unless there is only one core.
///
/// Errors: no dump, a dump without an end (a truncated file) or without a core, a line that is not
/// `NAME VALUE`, more counts than [`READINGS_MAX`](ampsched_model::limits::READINGS_MAX). Each names the line.
pub fn parse_gem5<'a>(file: &str, text: &'a str) -> Result<Vec<Reading<'a>>, InputError> {
    let names = Names::shared();
    let mut readings = Vec::new();
    let mut open: Option<Dump<'a>> = None;
    let mut dumps = 0;
    for (index, line) in text.lines().enumerate() {
        let fail = |message: &str| InputError::new(file, "", message).at_line(index + 1);
        if line.starts_with("-----") {
            if line.starts_with(BEGIN) {
                if open.is_some() {
                    return Err(fail("a dump begins before the last one has ended")
                        .with_hint("the file was cut or written by two runs"));
                }
                open = Some(Dump::new(dumps, index + 1));
                dumps += 1;
            } else if line.starts_with(END) {
                let dump = open.take().ok_or_else(|| fail("a dump ends that has not begun"))?;
                dump.finish(file, &mut readings)?;
            } else {
                return Err(fail("a ruler that neither begins nor ends a dump"));
            }
        } else if let Some(dump) = &mut open {
            dump.read_line(line, names).map_err(|message| fail(&message))?;
        } else if !line.trim().is_empty() {
            return Err(fail("text outside of a dump").with_hint(format!(
                "gem5's statistics stand below a line \"{BEGIN} ----------\""
            )));
        }
    }
    match open {
        Some(dump) => Err(InputError::new(file, "", "the dump that begins here has no end")
            .at_line(dump.line)
            .with_hint("the file is truncated, or gem5 is still running")),
        None if dumps == 0 => Err(InputError::new(file, "", "has no statistics")
            .with_hint("gem5 writes them at its end or when the program asks for a dump")),
        None => Ok(readings),
    }
}
