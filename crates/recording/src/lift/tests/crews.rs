//! Recordings of threads that start others, and wait for them, in unusual ways.

use super::synthetic::{Script, pipeline_with};
use crate::{Kind, Recording, Wake};

/// A thread that takes items starts another one while it works on one.
pub fn starts_while_it_takes() -> Recording {
    pipeline_with(2, 40, |script, taker, item| {
        if item == 20 {
            let late = script.start(taker);
            script.add(late, Kind::Yield, 0, 3_000_000);
        }
    })
}

/// A thread that works while another one waits for signals, and that polls.
pub fn waits_for_signals() -> Recording {
    let mut script = Script::new(2);
    for _ in 0..12 {
        script.add(0, Kind::Yield, 0, 5_000_000);
        let until_ns = script.clock(0) + 200_000;
        script.wait(0, Kind::Io, 5, until_ns);
        script.last(0).aux = 2;
    }
    let end_ns = script.clock(0);
    script.wait(1, Kind::Io, 6, end_ns);
    script.last(1).aux = 3;
    script.end()
}

/// A wait for one of two threads names the one that goes on, and wakes the first thread later.
pub fn names_another_one() -> Recording {
    let mut script = Script::new(3);
    script.add(2, Kind::Yield, 0, 1_000_000);
    let end_ns = script.clock(2);
    script.wait(0, Kind::Join, 1, end_ns);
    for (waker, woken) in [(0, 1), (1, 0)] {
        script.add(waker, Kind::Wake, woken as u32, 2_000_000);
        let wake_ns = script.clock(waker);
        script.wait(woken, Kind::Block, 0, wake_ns + 10);
        script.last(woken).aux = Wake::Thread(waker as u32).to_aux();
    }
    script.end()
}
