//! Recordings of threads that start others, and wait for them, in unusual ways.

use super::synthetic::pipeline_with;
use crate::{Kind, Recording};

/// A thread that takes items starts another one while it works on one.
pub fn starts_while_it_takes() -> Recording {
    pipeline_with(2, 40, |script, taker, item| {
        if item == 20 {
            let late = script.start(taker);
            script.add(late, Kind::Yield, 0, 3_000_000);
        }
    })
}
