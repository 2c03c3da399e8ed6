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

/// The event of what was written into the trace: a clock, a group or a slice. None: it is none of these, `Err`: it is
/// damaged.
pub fn printed(story: &mut Story, text: &str) -> Result<Option<What>, ()> {
    match text_state::marked(&mut story.names, text) {
        Some(told) => Ok(Some(told)),
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

    /// A protobuf field with a length.
    fn field(tag: u8, bytes: &[u8]) -> Vec<u8> {
        [&[tag << 3 | 2, bytes.len() as u8], bytes].concat()
    }

    fn events_of(story: &Story) -> Vec<(u64, u32, What)> {
        story.events.iter().map(|raw| (raw.at_ns, raw.tid, raw.what)).collect()
    }

    #[test]
    fn perfetto_tells_marks() {
        let event = |at: u8, text: &str| {
            let print = field(3, &field(2, text.as_bytes()));
            field(2, &[&[1 << 3, at, 2 << 3, 7][..], &print].concat())
        };
        let texts = ["B|7|DrawFrame\n", "C|7|n|1\n", "E|7\n", "B|7"];
        let events: Vec<u8> = (1..).zip(texts).flat_map(|(at, text)| event(at, text)).collect();
        let mut story = super::super::perfetto::read("x", &field(1, &field(1, &events))).unwrap();
        let name = story.names.number("DrawFrame");
        assert_eq!(events_of(&story), [(1, 7, What::SliceBegin { name }), (3, 7, What::SliceEnd)]);
        assert_eq!(story.unreadable, 1);
    }

    #[test]
    fn binary_events_tell_marks() {
        let mut decoder = super::super::format::Decoder::default();
        decoder.learn(
            "name: print\nID: 5\nformat:\n\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n\
             \tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;\n",
        );
        let mut story = Story::of(1 << 10);
        for (at_ns, text) in (1..).zip(["B|7|DrawFrame\n\0\0", "E\n\0", "a note"]) {
            let head = [5, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            decoder.tell(&mut story, at_ns, 0, &[&head, text.as_bytes()].concat());
        }
        let name = story.names.number("DrawFrame");
        assert_eq!(events_of(&story), [(1, 7, What::SliceBegin { name }), (2, 7, What::SliceEnd)]);
        assert_eq!(story.unreadable, 0);
    }
}
