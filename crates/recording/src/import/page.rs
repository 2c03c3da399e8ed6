//! Pages that show a trace: systrace's, `trace2html`'s of Catapult, and the oldest ones of Android, which hold it in a
//! string of JavaScript.
//!
//! Only `<script` blocks matter, and HTML ends such a block at the next `</script` whatever stands in it. So no parser
//! of HTML is needed, and 3 MB of an embedded viewer are passed over as fast as bytes can be read.

use std::ops::Range;

use super::container::is_at;

/// Begins a string of JavaScript with the whole trace (systrace of Android 4.1 to 4.3).
const STRING: &[u8] = b"linuxPerfData";

/// Whether bytes begin as a page does.
pub fn is_form(bytes: &[u8]) -> bool {
    let begin = bytes.trim_ascii_start();
    [b"<!doctype html".as_slice(), b"<html"].iter().any(|word| is_at(begin, 0, word))
}

/// What a block of a page is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// Data as they stand there.
    Data(Range<usize>),
    /// What a string of a program means.
    Text(Vec<u8>),
}

/// The blocks that may hold a trace, in their order, and whether the last one has an end.
pub fn blocks(bytes: &[u8]) -> (Vec<Block>, bool) {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(open) = find_from(bytes, at, b"<") {
        at = open + 1;
        if bytes[open..].starts_with(b"<!--") {
            at = find_from(bytes, at, b"-->").unwrap_or(at);
            continue;
        }
        if !is_at(bytes, open, b"<script") {
            continue;
        }
        let Some(start) = find_from(bytes, open, b">").map(|end| end + 1) else { break };
        let is_data = is_data(&bytes[open..start]);
        let (end, next) = match end_of(bytes, start, is_data) {
            Some(found) => found,
            None => (bytes.len(), bytes.len()),
        };
        at = next;
        match is_data {
            true => found.push(Block::Data(start..end)),
            false => found.extend(strings(&bytes[start..end]).into_iter().map(Block::Text)),
        }
        if end == next {
            return (found, false);
        }
    }
    (found, true)
}

/// Whether a block is data, by its opening tag: a class or a name of Catapult's, or a type that is no program.
fn is_data(tag: &[u8]) -> bool {
    let tag = String::from_utf8_lossy(tag).to_ascii_lowercase();
    let is_of_catapult = tag.contains("trace-data") || tag.contains("viewer-data");
    let kind = tag.split_once("type=").map(|(_, kind)| kind.trim_start_matches(['"', '\'']));
    is_of_catapult || kind.is_some_and(|kind| kind.starts_with("text/plain"))
}

/// Where a block ends, and where what follows its end begins. The end of data is followed by another tag: so a thread
/// that is named `</script>` ends none.
fn end_of(bytes: &[u8], start: usize, is_data: bool) -> Option<(usize, usize)> {
    let mut at = start;
    loop {
        let end = find_from(bytes, at, b"</")?;
        at = end + 2;
        if !is_at(bytes, end, b"</script") {
            continue;
        }
        let next = find_from(bytes, end, b">").map_or(bytes.len(), |close| close + 1);
        let rest = bytes[next..].trim_ascii_start();
        if !is_data || rest.first().is_none_or(|&byte| byte == b'<') {
            return Some((end, next));
        }
    }
}

/// Strings of JavaScript that are assigned to [`STRING`], as what they mean.
fn strings(script: &[u8]) -> Vec<Vec<u8>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(name) = find_from(script, at, STRING) {
        at = name + STRING.len();
        let rest = script[at..].trim_ascii_start();
        let Some(value) = rest.strip_prefix(b"=").map(<[u8]>::trim_ascii_start) else { continue };
        if let [quote @ (b'"' | b'\''), text @ ..] = value {
            found.push(meant(text, *quote));
        }
    }
    found
}

/// What a string of JavaScript means up to its closing quote, or to the end if it has none.
fn meant(text: &[u8], quote: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        rest = after;
        if *byte == quote {
            break;
        }
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        let [escape, after @ ..] = rest else { break };
        rest = after;
        let digits = match escape {
            b'x' => 2,
            b'u' => 4,
            _ => 0,
        };
        match escape {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            // A line that goes on.
            b'\r' => rest = rest.strip_prefix(b"\n").unwrap_or(rest),
            b'\n' | b'r' | b'b' | b'f' | b'v' => {}
            b'x' | b'u' if rest.len() >= digits => {
                let code = std::str::from_utf8(&rest[..digits])
                    .ok()
                    .and_then(|digits| u32::from_str_radix(digits, 16).ok())
                    .and_then(char::from_u32);
                rest = &rest[digits..];
                let mut room = [0; 4];
                let letter = code.unwrap_or(char::REPLACEMENT_CHARACTER);
                out.extend_from_slice(letter.encode_utf8(&mut room).as_bytes());
            }
            other => out.push(*other),
        }
    }
    out
}

/// Where some bytes stand next.
fn find_from(bytes: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
    let (&first, mut at) = (wanted.first()?, from);
    loop {
        at += bytes.get(at..)?.iter().position(|&byte| byte == first)?;
        if bytes[at..].starts_with(wanted) {
            return Some(at);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(page: &str) -> Vec<String> {
        let (blocks, _) = blocks(page.as_bytes());
        let text = |block: &Block| match block {
            Block::Data(place) => page[place.clone()].to_owned(),
            Block::Text(text) => String::from_utf8_lossy(text).into_owned(),
        };
        blocks.iter().map(text).collect()
    }

    #[test]
    fn blocks_of_data_are_found_behind_programs_and_comments() {
        let viewer =
            "<script>if (a<b) x('<script class=\"trace-data\">'); r = /linuxPerfData = /</script>";
        let page = format!(
            "<!-- <script> -->{viewer}\n<SCRIPT class=\"trace-data\" type=\"application/text\">\none\n</SCRIPT>\n\
             <script id='viewer-data' type='text/plain'>two</script></body>"
        );
        assert_eq!(texts(&page), ["\none\n", "two"]);
        assert!(!blocks(b"<script type=text/plain>cut").1);
        let named = "<script class=trace-data>\n</script>-7 [000]\nlast\n </script>\n<p>";
        assert_eq!(texts(named), ["\n</script>-7 [000]\nlast\n "]);
    }

    #[test]
    fn strings_of_programs_mean_what_they_mean_in_javascript() {
        let page = r#"<script>
  var linuxPerfData = "\
# tracer\n\
a \"b\" \\ \x41\u00e9\/\n";
</script>"#;
        assert_eq!(texts(page), ["# tracer\na \"b\" \\ Aé/\n"]);
        assert_eq!(texts(r#"<script>var linuxPerfData = "cut \"#), ["cut "]);
    }
}
