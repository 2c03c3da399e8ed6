//! Frames that programs mark: slices in which Android draws or composes one.
//!
//! Names from the sources of Android: `Choreographer#doFrame` (core/java/android/view/Choreographer.java) in a
//! program's main thread, `DrawFrame`, since Android 12 `DrawFrames` (libs/hwui/renderthread), and those of
//! SurfaceFlinger's main thread: `handleMessage...` in Android 8, `onMessage...` up to 12, `commit` and `composite`
//! since. Since Android 12 the number of the vsync stands behind a blank.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::event::{Names, Raw, WHOEVER_RUNS, What};

/// Slices that are frames by their name alone.
const MARKERS: [&str; 7] = [
    "Choreographer#doFrame",
    "DrawFrame",
    "DrawFrames",
    "handleMessageInvalidate",
    "handleMessageRefresh",
    "onMessageInvalidate",
    "onMessageRefresh",
];
/// Slices that are frames if the number of a vsync stands behind, for their names are common.
const NUMBERED: [&str; 2] = ["commit", "composite"];

/// Frames that a thread has marked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frames {
    /// The thread's place in the recording.
    pub thread: u32,
    /// The first slice's name, without the vsync's number.
    pub marker: String,
    /// When each began and ended, in ns since the recording's begin, in ascending order.
    pub spans: Vec<(u64, u64)>,
}

/// The marker that a slice's name is, if it is one.
fn marker(name: &str) -> Option<&str> {
    let (word, rest) = name.split_once(' ').unwrap_or((name, ""));
    let is_number = !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    (MARKERS.contains(&word) || is_number && NUMBERED.contains(&word)).then_some(word)
}

/// A thread's slices that have not ended.
#[derive(Default)]
struct Open {
    /// Slices within the frame, itself included; 0 outside of frames.
    depth: u32,
    since_ns: u64,
}

/// Frames by the kernel's number of their thread, of events in the order of time. What did not begin and end in the
/// trace is none; of frames within each other the outermost counts.
pub fn marked(events: &[Raw], names: &Names) -> HashMap<u32, Frames> {
    let mut open: HashMap<u32, Open> = HashMap::new();
    let mut found: HashMap<u32, Frames> = HashMap::new();
    for raw in events.iter().filter(|raw| raw.tid != 0 && raw.tid != WHOEVER_RUNS) {
        match raw.what {
            What::SliceBegin { name } => {
                let of = open.entry(raw.tid).or_default();
                let marker = marker(names.text(name));
                if of.depth > 0 {
                    of.depth += 1;
                } else if let Some(marker) = marker {
                    *of = Open { depth: 1, since_ns: raw.at_ns };
                    let frames = found.entry(raw.tid).or_default();
                    if frames.marker.is_empty() {
                        marker.clone_into(&mut frames.marker);
                    }
                }
            }
            What::SliceEnd => {
                let Some(of) = open.get_mut(&raw.tid).filter(|of| of.depth > 0) else { continue };
                of.depth -= 1;
                if of.depth == 0 {
                    let frames = found.entry(raw.tid).or_default();
                    frames.spans.push((of.since_ns, raw.at_ns));
                }
            }
            _ => {}
        }
    }
    found
}

/// Those of a recording's threads, by their place, from its begin on.
pub fn placed(mut found: HashMap<u32, Frames>, tids: &[u32], origin_ns: u64) -> Vec<Frames> {
    let mut placed = Vec::new();
    // Of threads with one number, the last one has marked.
    for (thread, tid) in tids.iter().enumerate().rev() {
        let Some(mut frames) = found.remove(tid) else { continue };
        frames.thread = thread as u32;
        frames.spans.retain(|span| span.0 >= origin_ns);
        for (since_ns, until_ns) in &mut frames.spans {
            (*since_ns, *until_ns) = (*since_ns - origin_ns, *until_ns - origin_ns);
        }
        if !frames.spans.is_empty() {
            placed.push(frames);
        }
    }
    placed.reverse();
    placed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::event::Context;

    #[test]
    fn only_names_of_frames_are_markers() {
        for (name, is) in [
            ("Choreographer#doFrame", Some("Choreographer#doFrame")),
            ("Choreographer#doFrame 61532", Some("Choreographer#doFrame")),
            ("DrawFrames 61532", Some("DrawFrames")),
            ("commit 61532", Some("commit")),
            ("commit", None),
            ("composite layers", None),
            ("DrawFrameTask", None),
            ("", None),
        ] {
            assert_eq!(marker(name), is, "{name}");
        }
    }

    #[test]
    fn the_outermost_frame_counts_and_what_is_cut_is_none() {
        let mut names = Names::default();
        let mut raw = |at_ns, tid, name: &str| {
            let begin = What::SliceBegin { name: names.number(name) };
            let what = if name.is_empty() { What::SliceEnd } else { begin };
            Raw { at_ns, cpu: 0, tid, context: Context::Thread, what }
        };
        let events = [
            raw(1, 7, ""),
            raw(2, 7, "Choreographer#doFrame"),
            raw(3, 7, "DrawFrame"),
            raw(3, 8, "input"),
            raw(4, 7, ""),
            raw(5, 7, ""),
            raw(6, 8, ""),
            raw(7, 7, "Choreographer#doFrame"),
        ];
        let found = marked(&events, &names);
        assert_eq!(found[&7].spans, [(2, 5)]);
        assert_eq!(found.len(), 1);
        let placed = placed(found, &[9, 7, 7], 1);
        let frames =
            Frames { thread: 2, marker: "Choreographer#doFrame".to_owned(), spans: vec![(1, 4)] };
        assert_eq!(placed, [frames]);
    }
}
