//! Slices that programs mark by writing to the tracer's file `trace_marker`, as Android's `atrace` does
//! (system/core/libcutils/trace-dev.inc): `B|PROCESS|NAME` begins one, `E` or `E|PROCESS` ends the innermost.

use super::event::{Story, What};
use super::text_state;

/// What a mark's text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark<'a> {
    /// A slice begins in a process.
    Begin { process: Option<u32>, name: &'a str },
    /// The innermost slice ends.
    End,
    /// Counters, slices of no thread, whatever else was written.
    Other,
    /// A slice without a name.
    Broken,
}

/// Reads a mark; before it may stand who has written it (`tracing_mark_write: `, an address).
pub fn mark(text: &str) -> Mark<'_> {
    let text = text.trim_end_matches(['\n', '\0']).trim_start();
    let is_ours = |text: &str| text == "E" || text.starts_with("E|") || text.starts_with("B|");
    let text = match text.split_once(": ") {
        Some((writer, rest)) if !is_ours(text) && !writer.contains(' ') => rest.trim_start(),
        _ => text,
    };
    match text.strip_prefix("B|") {
        Some(rest) => rest.split_once('|').map_or(Mark::Broken, |(process, name)| {
            let process = process.trim().parse().ok().filter(|&process| process != 0);
            Mark::Begin { process, name: name.trim_end() }
        }),
        None if is_ours(text.trim_end()) => Mark::End,
        None => Mark::Other,
    }
}

/// The event of what was written into the trace: a clock or a slice. None: it is neither, `Err`: it is damaged.
pub fn printed(story: &mut Story, text: &str) -> Result<Option<What>, ()> {
    match text_state::marked(text) {
        Some(clock) => Ok(Some(clock)),
        None => what(story, text),
    }
}

/// The event of a mark: none if it is no slice's, `Err` if it is damaged.
fn what(story: &mut Story, text: &str) -> Result<Option<What>, ()> {
    match mark(text) {
        Mark::Begin { name, .. } => Ok(Some(What::SliceBegin { name: story.names.number(name) })),
        Mark::End => Ok(Some(What::SliceEnd)),
        Mark::Other => Ok(None),
        Mark::Broken => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_told_from_other_texts() {
        let begin = |process, name| Mark::Begin { process, name };
        assert_eq!(
            mark("B|7459|Choreographer#doFrame"),
            begin(Some(7459), "Choreographer#doFrame")
        );
        assert_eq!(mark("tracing_mark_write: B|7|a|b: c\n"), begin(Some(7), "a|b: c"));
        assert_eq!(mark("0xffffffff: E|7"), Mark::End);
        assert_eq!(mark("E"), Mark::End);
        assert_eq!(mark("B|0|x"), begin(None, "x"));
        for other in ["C|594|VSYNC-app|1", "S|1|launch|5", "Ends", "EB|", "", "a line: of text"] {
            assert_eq!(mark(other), Mark::Other, "{other}");
        }
        assert_eq!(mark("B|7"), Mark::Broken);
    }
}
