//! Mutation of texts by their structure: words, numbers, lines and whatever stands between brackets.
//!
//! Every format that is read here is made of these. Bytes alone are changed by libFuzzer, in turns with this.

use crate::dice::Dice;

/// Numbers at the limits of what readers allow, and beyond.
const NUMBERS: [&str; 22] = [
    "0",
    "1",
    "-1",
    "2",
    "63",
    "64",
    "255",
    "256",
    "8191",
    "8192",
    "65535",
    "65536",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "1e18",
    "1e308",
    "1e999",
    "-0",
    "0.5",
    "nan",
    "inf",
];
/// Longest piece that is copied, in bytes.
const PIECE_MAX: usize = 400;

/// A changed text: at most `most` bytes. `words` are those that mean something in the format, `other` another text
/// of it.
pub fn mutate(text: &str, other: &str, words: &[String], dice: &mut Dice, most: usize) -> String {
    let mut text = text.to_owned();
    for _ in 0..dice.whole(1..=4) {
        text = once(&text, other, words, dice);
    }
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

fn once(text: &str, other: &str, words: &[String], dice: &mut Dice) -> String {
    let tokens = tokens(text);
    if tokens.is_empty() {
        return piece(other, dice).to_owned();
    }
    let at = tokens[dice.index(tokens.len())].clone();
    let with = |range: std::ops::Range<usize>, new: &str| {
        format!("{}{new}{}", &text[..range.start], &text[range.end..])
    };
    match dice.whole(0..=10) {
        0 => with(at, ""),
        1 => {
            let copy = text[at.clone()].to_owned();
            with(at.end..at.end, &copy)
        }
        2 | 3 => {
            let numbers: Vec<_> =
                tokens.iter().filter(|token| is_number(&text[(*token).clone()])).collect();
            if numbers.is_empty() {
                return with(at, dice.of::<&str>(&NUMBERS));
            }
            let number = (*dice.of(&numbers)).clone();
            let changed = change_number(&text[number.clone()], dice);
            with(number, &changed)
        }
        4 if !words.is_empty() => with(at, dice.of::<String>(words)),
        5 => {
            let range = group(text, at.start);
            with(range, "")
        }
        6 => {
            let range = group(text, at.start);
            let copy = text[range.clone()].to_owned();
            let separator = if copy.starts_with(['{', '[', '"']) { ", " } else { "" };
            with(range.end..range.end, &format!("{separator}{copy}"))
        }
        7 => swap_lines(text, dice),
        8 => {
            let copy = piece(other, dice).to_owned();
            with(at.start..at.start, &copy)
        }
        9 => {
            let (one, other) = (group(text, at.start), tokens[dice.index(tokens.len())].clone());
            let copy = text[one].to_owned();
            with(other, &copy)
        }
        _ => {
            let second = tokens[dice.index(tokens.len())].clone();
            let copy = text[second].to_owned();
            with(at, &copy)
        }
    }
}

/// Words, numbers, quoted texts, single signs and runs of white space.
fn tokens(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut tokens: Vec<std::ops::Range<usize>> = Vec::new();
    let kind = |c: char| match c {
        c if c.is_alphanumeric() || "_.-+@".contains(c) => 0,
        c if c.is_whitespace() => 1,
        _ => 2,
    };
    let mut last = 2;
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        match tokens.last_mut() {
            Some(token) if kind(c) == last && last != 2 => token.end = end,
            _ => tokens.push(at..end),
        }
        last = kind(c);
    }
    tokens
}

fn is_number(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
        && token.contains(|c: char| c.is_ascii_digit())
}

fn change_number(token: &str, dice: &mut Dice) -> String {
    match (dice.whole(0..=4), token.parse::<f64>()) {
        (0, Ok(value)) => format!("{}", value + 1.0),
        (1, Ok(value)) => format!("{}", value - 1.0),
        (2, Ok(value)) => format!("{}", value * dice.scale(0.01, 100.0)),
        (3, Ok(value)) => format!("{}", -value),
        _ => (*dice.of(&NUMBERS)).to_owned(),
    }
}

/// The smallest bracketed part that begins at or before a place and ends behind it; else the line there.
fn group(text: &str, at: usize) -> std::ops::Range<usize> {
    let open = text[..at].rfind(['{', '[', '(', '"']);
    let bracketed = open.and_then(|open| {
        let mut depth = 0;
        let quoted = text[open..].starts_with('"');
        for (offset, c) in text[open..].char_indices().take(PIECE_MAX) {
            match c {
                '"' if quoted && offset > 0 => return Some(open..open + offset + 1),
                '{' | '[' | '(' => depth += 1,
                '}' | ']' | ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 && !quoted {
                return Some(open..open + offset + 1);
            }
        }
        None
    });
    bracketed.filter(|range| range.end > at).unwrap_or_else(|| {
        let start = text[..at].rfind('\n').map_or(0, |place| place + 1);
        let end = text[at..].find('\n').map_or(text.len(), |place| at + place + 1);
        start..end
    })
}

fn swap_lines(text: &str, dice: &mut Dice) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (one, other) = (dice.index(lines.len()), dice.index(lines.len()));
    lines.swap(one, other);
    lines.concat()
}

/// Some lines, or some of a long line, out of another text.
fn piece<'t>(text: &'t str, dice: &mut Dice) -> &'t str {
    if text.is_empty() {
        return text;
    }
    let mut at = dice.index(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let range = group(text, at);
    let mut end = range.end.min(range.start + PIECE_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[range.start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_can_be_mutated_and_keeps_its_limit() {
        let words = ["threads".to_owned()];
        let mut changed = 0;
        for number in 0..2000 {
            let dice = &mut Dice::new(1, number);
            let text =
                ["", "a", "é€", "[a]\nb = { c = [1, 2] }\n", "\"", "{{{"][number as usize % 6];
            let mutated = mutate(text, "x = [\"é\", { y = 1 }]\n", &words, dice, 50);
            assert!(mutated.len() <= 50);
            changed += u32::from(mutated != text);
        }
        assert!(changed > 1500, "{changed}");
    }

    #[test]
    fn groups_are_bracketed_parts_or_lines() {
        let text = "a = { b = [1, 2], c = \"x y\" }\nd = 3\n";
        let at = |sign: &str| &text[group(text, text.find(sign).unwrap())];
        assert_eq!(at("1"), "[1, 2]");
        assert_eq!(at("y"), "\"x y\"");
        assert_eq!(at("d"), "d = 3\n");
        assert_eq!(at("b ="), "{ b = [1, 2], c = \"x y\" }");
    }
}
