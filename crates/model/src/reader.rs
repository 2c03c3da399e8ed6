//! Reads TOML tables with errors that name file, line, key, value and limit.
//!
//! Every parser of this crate reads through [`Document`], [`Table`] and [`Node`]. A table is opened
//! with the list of keys that it may have, so an unknown key is found before a missing one.

use std::ops::RangeInclusive;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::{InputError, suggest};

/// Longest text that is repeated in an error message.
const SHOWN_CHARS: usize = 40;

/// Where a value stands; all that an error needs once the file's text is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The file.
    pub file: Arc<str>,
    /// Line, counted from 1.
    pub line: usize,
    /// Path of keys, such as `threads[2].body[0].compute`; empty for the whole file.
    pub key: String,
}

impl Spot {
    /// An error about what stands here.
    pub fn error(&self, message: impl Into<String>) -> InputError {
        InputError::new(&*self.file, self.key.clone(), message).at_line(self.line)
    }

    /// An error about a word that names nothing, with the nearest known word as hint.
    pub fn unknown<'a>(
        &self,
        what: &str,
        word: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> InputError {
        let known: Vec<&str> = known.into_iter().collect();
        let error = self.error(format!("unknown {what} {}", quoted(word)));
        if known.is_empty() {
            error.with_hint("none is known")
        } else {
            error.with_hint(suggest(word, known))
        }
    }

    /// Where it stands, as messages begin: `FILE:LINE: KEY`.
    pub fn place(&self) -> String {
        format!("{}:{}: {}", self.file, self.line, self.key)
    }

    /// The path that a name of a file means here: relative to the folder of the file that says it.
    pub fn beside(&self, name: &str) -> String {
        let is_absolute = name.starts_with(['/', '\\']) || name.chars().nth(1) == Some(':');
        match self.file.rfind(['/', '\\']) {
            Some(end) if !is_absolute => format!("{}{name}", &self.file[..=end]),
            _ => name.to_owned(),
        }
    }

    fn member(&self, key: &str, line: usize) -> Spot {
        let bare = !key.is_empty()
            && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let key = if bare { key.to_owned() } else { quoted(key) };
        let key = if self.key.is_empty() { key } else { format!("{}.{key}", self.key) };
        Spot { file: self.file.clone(), line, key }
    }

    fn element(&self, index: usize, line: usize) -> Spot {
        Spot { file: self.file.clone(), line, key: format!("{}[{index}]", self.key) }
    }
}

/// A word as it is shown in messages: quoted, on one line, not longer than a line.
pub(crate) fn quoted(word: &str) -> String {
    if word.chars().count() <= SHOWN_CHARS {
        format!("{word:?}")
    } else {
        format!("{:?}...", word.chars().take(SHOWN_CHARS).collect::<String>())
    }
}

/// The stem of a file name: `dedup` for `programs/dedup.toml`.
pub(crate) fn stem(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Where lines start, to turn a byte offset into a line number.
struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    fn of(text: &str) -> Self {
        let breaks = text
            .bytes()
            .enumerate()
            .filter(|(_, byte)| *byte == b'\n')
            .map(|(offset, _)| offset + 1);
        Self { starts: std::iter::once(0).chain(breaks).collect() }
    }

    fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset)
    }
}

/// A parsed TOML file.
pub(crate) struct Document<'t> {
    spot: Spot,
    lines: Lines,
    root: Spanned<DeTable<'t>>,
}

impl<'t> Document<'t> {
    /// Checks the syntax of a file's text.
    pub fn parse(file: &str, text: &'t str) -> Result<Self, InputError> {
        let lines = Lines::of(text);
        let spot = Spot { file: file.into(), line: 1, key: String::new() };
        match DeTable::parse(text) {
            Ok(root) => Ok(Self { spot, lines, root }),
            Err(error) => {
                let line = error.span().map_or(1, |span| lines.line(span.start));
                let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
                Err(InputError::new(file, "", format!("not valid TOML: {message}")).at_line(line))
            }
        }
    }

    /// The top-level table, which may have no other than the `known` keys.
    pub fn root(&self, known: &[&str]) -> Result<Table<'_>, InputError> {
        let table = self.root_of_any_keys();
        table.refuse_unknown(known)?;
        Ok(table)
    }

    /// The top-level table, whatever its keys.
    pub fn root_of_any_keys(&self) -> Table<'_> {
        Table { lines: &self.lines, entries: self.root.get_ref(), spot: self.spot.clone() }
    }
}

/// A table and where it stands.
#[derive(Clone)]
pub(crate) struct Table<'a> {
    lines: &'a Lines,
    entries: &'a DeTable<'a>,
    /// Where the table stands.
    pub spot: Spot,
}

impl<'a> Table<'a> {
    /// The value of a key, if it is there.
    pub fn get(&self, key: &str) -> Option<Node<'a>> {
        let (found, value) = self.entries.get_key_value(key)?;
        Some(self.node(found, value))
    }

    /// The value of a key that must be there.
    pub fn require(&self, key: &str) -> Result<Node<'a>, InputError> {
        self.get(key).ok_or_else(|| self.spot.error(format!("key {} is missing", quoted(key))))
    }

    /// Whether the table has a key.
    pub fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// All keys and values in the order of the file.
    pub fn members(&self) -> Vec<(&'a str, Node<'a>)> {
        let mut members: Vec<_> = self.entries.iter().collect();
        members.sort_by_key(|(key, _)| key.span().start);
        members
            .into_iter()
            .map(|(key, value)| (key.get_ref().as_ref(), self.node(key, value)))
            .collect()
    }

    /// Keys and values of an optional table of named things, such as `[mutexes.NAME]`.
    pub fn named(&self, key: &str) -> Result<Vec<(&'a str, Node<'a>)>, InputError> {
        self.get(key).map_or(Ok(Vec::new()), |node| Ok(node.any_table()?.members()))
    }

    /// A text that must be there.
    pub fn text(&self, key: &str) -> Result<&'a str, InputError> {
        self.require(key)?.text()
    }

    /// A text, or a default.
    pub fn text_or(&self, key: &str, default: &str) -> Result<String, InputError> {
        self.get(key).map_or(Ok(default.to_owned()), |node| node.text().map(str::to_owned))
    }

    /// A number that must be there, within limits.
    pub fn number(&self, key: &str, limits: RangeInclusive<f64>) -> Result<f64, InputError> {
        self.require(key)?.number(limits)
    }

    /// A number within limits, or a default.
    pub fn number_or(
        &self,
        key: &str,
        default: f64,
        limits: RangeInclusive<f64>,
    ) -> Result<f64, InputError> {
        self.get(key).map_or(Ok(default), |node| node.number(limits))
    }

    /// A whole number that must be there, within limits.
    pub fn whole(&self, key: &str, limits: RangeInclusive<i64>) -> Result<i64, InputError> {
        self.require(key)?.whole(limits)
    }

    /// Refuses keys that are not in `known`.
    fn refuse_unknown(&self, known: &[&str]) -> Result<(), InputError> {
        match self.members().into_iter().find(|(key, _)| !known.contains(key)) {
            None => Ok(()),
            Some((key, node)) => Err(Spot { key: self.spot.key.clone(), ..node.spot }.unknown(
                "key",
                key,
                known.iter().copied(),
            )),
        }
    }

    fn node(
        &self,
        key: &'a Spanned<toml::de::DeString<'a>>,
        value: &'a Spanned<DeValue<'a>>,
    ) -> Node<'a> {
        let spot = self.spot.member(key.get_ref(), self.lines.line(key.span().start));
        Node { lines: self.lines, value: value.get_ref(), spot }
    }
}

/// A value and where it stands.
#[derive(Clone)]
pub(crate) struct Node<'a> {
    lines: &'a Lines,
    value: &'a DeValue<'a>,
    /// Where the value stands.
    pub spot: Spot,
}

impl<'a> Node<'a> {
    /// The value as a text.
    pub fn text(&self) -> Result<&'a str, InputError> {
        self.value.as_str().ok_or_else(|| self.wrong("a text"))
    }

    /// The value as a text that is not empty.
    pub fn name(&self) -> Result<&'a str, InputError> {
        match self.text()? {
            "" => Err(self.spot.error("is empty, a name is needed")),
            name => Ok(name),
        }
    }

    /// The value as one of a few words.
    pub fn word(&self, what: &str, known: &[&'static str]) -> Result<&'static str, InputError> {
        let word = self.text()?;
        let found = known.iter().find(|candidate| **candidate == word);
        found.copied().ok_or_else(|| self.spot.unknown(what, word, known.iter().copied()))
    }

    /// The value as true or false.
    pub fn boolean(&self) -> Result<bool, InputError> {
        self.value.as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    /// The value as a finite number, whole or not.
    pub fn any_number(&self) -> Result<f64, InputError> {
        let number = match self.value {
            DeValue::Integer(digits) => {
                i128::from_str_radix(digits.as_str(), digits.radix()).ok().map(|whole| whole as f64)
            }
            DeValue::Float(digits) => digits.as_str().parse().ok(),
            _ => return Err(self.wrong("a number")),
        };
        number
            .filter(|number: &f64| number.is_finite())
            .ok_or_else(|| self.spot.error(format!("{} is not a finite number", self.shown())))
    }

    /// The value as a number within limits.
    pub fn number(&self, limits: RangeInclusive<f64>) -> Result<f64, InputError> {
        let number = self.any_number()?;
        if limits.contains(&number) {
            Ok(number)
        } else {
            Err(out_of_range(&self.spot, number, *limits.start(), *limits.end()))
        }
    }

    /// The value as a whole number within limits (which stay below 2^53, where f64 is exact).
    pub fn whole(&self, limits: RangeInclusive<i64>) -> Result<i64, InputError> {
        let number = self.any_number()?;
        if number.fract() != 0.0 {
            return Err(self.spot.error(format!("{number} is not a whole number")));
        }
        self.number(*limits.start() as f64..=*limits.end() as f64).map(|number| number as i64)
    }

    /// Whether the value is a text.
    pub fn is_text(&self) -> bool {
        self.value.is_str()
    }

    /// Whether the value is a list.
    pub fn is_list(&self) -> bool {
        self.value.is_array()
    }

    /// Whether the value is a table.
    pub fn is_table(&self) -> bool {
        self.value.is_table()
    }

    /// The value as a list.
    pub fn list(&self) -> Result<Vec<Node<'a>>, InputError> {
        let list = self.value.as_array().ok_or_else(|| self.wrong("a list"))?;
        let element = |(index, value): (usize, &'a Spanned<DeValue<'a>>)| Node {
            lines: self.lines,
            value: value.get_ref(),
            spot: self.spot.element(index, self.lines.line(value.span().start)),
        };
        Ok(list.iter().enumerate().map(element).collect())
    }

    /// The value as a table, which may have no other than the `known` keys.
    pub fn table(&self, known: &[&str]) -> Result<Table<'a>, InputError> {
        let table = self.any_table()?;
        table.refuse_unknown(known)?;
        Ok(table)
    }

    /// The value as a table, whatever its keys.
    pub fn any_table(&self) -> Result<Table<'a>, InputError> {
        let entries = self.value.as_table().ok_or_else(|| self.wrong("a table"))?;
        Ok(Table { lines: self.lines, entries, spot: self.spot.clone() })
    }

    /// An error that says what was expected instead of this value.
    pub fn wrong(&self, expected: &str) -> InputError {
        self.spot.error(format!("{} is not {expected}", self.shown()))
    }

    /// The value as it is shown in messages.
    fn shown(&self) -> String {
        match self.value {
            DeValue::String(text) => quoted(text),
            DeValue::Integer(digits) => digits.to_string(),
            DeValue::Float(digits) => digits.to_string(),
            DeValue::Boolean(value) => value.to_string(),
            DeValue::Datetime(_) => "a date".to_owned(),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        }
    }
}

/// The error about a number outside its limits.
pub(crate) fn out_of_range(spot: &Spot, number: f64, lowest: f64, highest: f64) -> InputError {
    let (number, lowest, highest) = (plain(number), plain(lowest), plain(highest));
    spot.error(format!("{number} is out of range, {lowest} to {highest} is allowed"))
}

/// A number as people write it: no endless zeros.
pub(crate) fn plain(number: f64) -> String {
    if number != 0.0 && (number.abs() >= 1e7 || number.abs() < 1e-3) {
        format!("{number:e}")
    } else {
        format!("{number}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of<T>(result: Result<T, InputError>) -> String {
        result.err().expect("an error").to_string()
    }

    fn with_root<T>(text: &str, read: impl FnOnce(Table<'_>) -> T) -> T {
        read(Document::parse("f.toml", text).unwrap().root_of_any_keys())
    }

    #[test]
    fn values_of_every_kind_are_read() {
        let text = "t = \"x\"\nw = 0x10\nn = 1_000.5\nb = true\nl = [1, 2]\n[s.inner]\nk = 1\n";
        with_root(text, |root| {
            assert_eq!(root.text("t").unwrap(), "x");
            assert_eq!(root.whole("w", 0..=16).unwrap(), 16);
            assert_eq!(root.number("n", 0.0..=1e4).unwrap(), 1000.5);
            assert!(root.require("b").unwrap().boolean().unwrap());
            assert_eq!(root.require("l").unwrap().list().unwrap().len(), 2);
            let inner =
                root.require("s").unwrap().table(&["inner"]).unwrap().require("inner").unwrap();
            assert_eq!((inner.spot.line, inner.spot.key.as_str()), (6, "s.inner"));
            assert_eq!(
                root.members().iter().map(|(key, _)| *key).collect::<Vec<_>>(),
                ["t", "w", "n", "b", "l", "s"]
            );
        });
    }

    #[test]
    fn errors_name_line_key_value_and_limit() {
        let text =
            "a = -1\nb = nan\nc = \"x\"\n\"d e\" = 2.5\n\n[[l]]\nk = 5000\n[[l]]\nk = 1e300\n";
        with_root(text, |root| {
            let number = |key: &str| error_of(root.number(key, 0.0..=1.0));
            assert_eq!(number("a"), "f.toml:1: a: -1 is out of range, 0 to 1 is allowed");
            assert_eq!(number("b"), "f.toml:2: b: nan is not a finite number");
            assert_eq!(number("c"), "f.toml:3: c: \"x\" is not a number");
            assert_eq!(
                error_of(root.whole("d e", 0..=9)),
                "f.toml:4: \"d e\": 2.5 is not a whole number"
            );
            assert_eq!(error_of(root.number("z", 0.0..=1.0)), "f.toml:1: key \"z\" is missing");
            let list = root.require("l").unwrap().list().unwrap();
            let k = |index: usize| error_of(list[index].any_table().unwrap().whole("k", 1..=4096));
            assert_eq!(k(0), "f.toml:7: l[0].k: 5000 is out of range, 1 to 4096 is allowed");
            assert_eq!(k(1), "f.toml:9: l[1].k: 1e300 is out of range, 1 to 4096 is allowed");
            assert_eq!(list[1].spot.line, 8);
        });
    }

    #[test]
    fn unknown_keys_get_the_nearest_name() {
        let document = Document::parse("f.toml", "name = 1\n\nclustres = 2\n").unwrap();
        assert_eq!(
            error_of(document.root(&["name", "clusters"])),
            "f.toml:3: unknown key \"clustres\" (did you mean \"clusters\"?)"
        );
    }

    #[test]
    fn syntax_errors_name_the_line() {
        let error = error_of(Document::parse("f.toml", "a = 1\nb = [1,\n"));
        assert!(
            error.starts_with("f.toml:")
                && error.contains("not valid TOML")
                && !error.contains('\n'),
            "{error}"
        );
        assert!(
            error_of(Document::parse("f.toml", "a = 1\na = 2\n"))
                .starts_with("f.toml:2: not valid TOML: duplicate key")
        );
    }

    #[test]
    fn stem_drops_folder_and_ending() {
        assert_eq!(stem("programs/dedup.toml"), "dedup");
        assert_eq!(stem("a\\b"), "b");
    }
}
