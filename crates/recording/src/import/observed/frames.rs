//! Frames of a trace: those that advice counts in the trace's recording, by the same rules.

use std::collections::HashMap;

use serde::Serialize;

use super::{Asked, ThreadSeen};
use crate::import::event::Story;
use crate::import::{Options, select};
use crate::{FrameCount, interactive};

/// Frames that one thread ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FramesSeen {
    /// How many there are.
    pub count: usize,
    /// How many were late.
    pub late: usize,
    /// The longest, in ns.
    pub longest_ns: u64,
    /// When that one ended, in ns since the first event.
    pub longest_until_ns: u64,
}

/// Finds them, and adds to threads what each has ended. None if there are none. Errors: why nobody knows, in words.
pub fn find(
    file: &str,
    story: Story,
    asked: &Asked,
    threads: &mut [ThreadSeen],
) -> Result<Option<FrameCount>, String> {
    let begin_ns = story.events.first().map_or(0, |raw| raw.at_ns);
    let options = Options {
        commands: asked.commands.clone(),
        pids: asked.pids.clone(),
        ..Options::default()
    };
    let clocked = select::clocked(file, story, &options).map_err(|error| error.message)?;
    let frames = interactive(&clocked.recording).and_then(|found| found.frames);
    let since_begin_ns = |ns: u64| (clocked.origin_ns + ns).saturating_sub(begin_ns);
    let mut places: HashMap<u32, &mut ThreadSeen> = HashMap::new();
    // Of threads of one number, the one with most CPU time stands first.
    for thread in threads.iter_mut().rev() {
        places.insert(thread.tid, thread);
    }
    for own in frames.iter().flat_map(|frames| &frames.by_thread) {
        let tid = clocked.tids.get(own.thread as usize).copied().unwrap_or_default();
        if let Some(thread) = places.get_mut(&tid) {
            thread.frames.count += own.frames;
            thread.frames.late += own.late;
            if own.longest_ns >= thread.frames.longest_ns {
                thread.frames.longest_ns = own.longest_ns;
                thread.frames.longest_until_ns = since_begin_ns(own.longest_until_ns);
            }
        }
    }
    Ok(frames)
}
