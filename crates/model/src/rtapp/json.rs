//! Reads JSON as rt-app's parser and its front end `workgen` take it.
//!
//! Beyond the standard: C and C++ comments, a comma behind the last element, texts in single quotes,
//! `True`, keys that repeat, and keys without a value (`"suspend",`). Objects keep every member in the
//! order of the file, and every value knows its line. It nests as deep as in rt-app's own library.

use crate::InputError;
use crate::limits::DEPTH_MAX;
use crate::reader::quoted;

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    /// Line, counted from 1.
    pub line: usize,
    /// The value.
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it is written.
    Number(String),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// An object: its members in the order of the file, repeated keys included.
    Object(Vec<Member>),
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    /// The key.
    pub key: String,
    /// Line of the key, counted from 1.
    pub line: usize,
    /// The value; `None` for a key without colon and value.
    pub value: Option<Node>,
}

/// Reads a file's text, which must be one object.
pub(super) fn parse(file: &str, text: &str) -> Result<Node, InputError> {
    let mut parser = Parser { file, text, position: 0, line: 1 };
    parser.skip_space()?;
    if parser.peek() != Some('{') {
        return Err(parser.expected("{ at the start"));
    }
    let root = parser.value(0)?;
    parser.skip_space()?;
    match parser.peek() {
        None => Ok(root),
        Some(_) => Err(parser.expected("the end of the file behind the last }")),
    }
}

struct Parser<'t> {
    file: &'t str,
    text: &'t str,
    /// Byte offset of the next character.
    position: usize,
    line: usize,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.position..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.position += next.len_utf8();
        self.line += usize::from(next == '\n');
        Some(next)
    }

    /// Takes characters while they fit.
    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        self.take(rest.find(|c| !fits(c)).unwrap_or(rest.len()))
    }

    /// Takes a number of bytes, whole characters.
    fn take(&mut self, length: usize) -> &'t str {
        let taken = &self.rest()[..length];
        self.position += length;
        self.line += taken.bytes().filter(|byte| *byte == b'\n').count();
        taken
    }

    fn error_at(&self, line: usize, message: impl AsRef<str>) -> InputError {
        InputError::new(self.file, "", format!("not valid JSON: {}", message.as_ref()))
            .at_line(line)
    }

    fn error(&self, message: impl AsRef<str>) -> InputError {
        self.error_at(self.line, message)
    }

    fn expected(&self, what: &str) -> InputError {
        match self.peek() {
            None => self.error(format!("expected {what}, found the end of the file")),
            Some(found) => self.error(format!("expected {what}, found {found:?}")),
        }
    }

    /// Skips blanks and comments.
    fn skip_space(&mut self) -> Result<(), InputError> {
        loop {
            self.take_while(char::is_whitespace);
            if self.rest().starts_with("//") {
                self.take_while(|c| c != '\n');
            } else if self.rest().starts_with("/*") {
                self.skip_comment()?;
            } else {
                return Ok(());
            }
        }
    }

    fn skip_comment(&mut self) -> Result<(), InputError> {
        let length = self.rest()[2..]
            .find("*/")
            .ok_or_else(|| self.error("the comment that begins here has no end"))?;
        self.take(2 + length + 2);
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Node, InputError> {
        let line = self.line;
        let value = match self.peek() {
            Some('{' | '[') if depth >= DEPTH_MAX => {
                return Err(self.error(format!("nested deeper than {DEPTH_MAX} levels")));
            }
            Some('{') => Value::Object(self.object(depth)?),
            Some('[') => Value::List(self.list(depth)?),
            Some('"' | '\'') => Value::Text(self.text()?),
            Some(c) if c == '-' || c.is_ascii_digit() => self.number()?,
            Some(c) if c.is_ascii_alphabetic() || c == '_' => self.word()?,
            _ => return Err(self.expected("a value")),
        };
        Ok(Node { line, value })
    }

    fn object(&mut self, depth: usize) -> Result<Vec<Member>, InputError> {
        let mut members = Vec::new();
        self.next();
        loop {
            self.skip_space()?;
            match self.peek() {
                Some('}') => break,
                Some('"' | '\'') => members.push(self.member(depth)?),
                _ => return Err(self.expected("a key in quotes or }")),
            }
            self.skip_space()?;
            match self.peek() {
                Some(',') => self.next(),
                Some('}') => break,
                _ => return Err(self.expected(", or } behind the value")),
            };
        }
        self.next();
        Ok(members)
    }

    fn member(&mut self, depth: usize) -> Result<Member, InputError> {
        let line = self.line;
        let key = self.text()?;
        self.skip_space()?;
        let value = match self.peek() {
            Some(':') => {
                self.next();
                self.skip_space()?;
                Some(self.value(depth + 1)?)
            }
            Some(',' | '}') => None,
            _ => return Err(self.expected(&format!(": behind the key {}", quoted(&key)))),
        };
        Ok(Member { key, line, value })
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, InputError> {
        let mut elements = Vec::new();
        self.next();
        loop {
            self.skip_space()?;
            if self.peek() == Some(']') {
                break;
            }
            elements.push(self.value(depth + 1)?);
            self.skip_space()?;
            match self.peek() {
                Some(',') => self.next(),
                Some(']') => break,
                _ => return Err(self.expected(", or ] behind the value")),
            };
        }
        self.next();
        Ok(elements)
    }

    /// A text in double or single quotes.
    fn text(&mut self) -> Result<String, InputError> {
        let line = self.line;
        let quote = self.next();
        let mut text = String::new();
        loop {
            text += self.take_while(|c| !matches!(c, '"' | '\'' | '\\' | '\n'));
            match self.next() {
                None | Some('\n') => {
                    return Err(
                        self.error_at(line, "a text that begins in this line has no closing quote")
                    );
                }
                end if end == quote => return Ok(text),
                Some('\\') => text.push(self.escaped()?),
                Some(other) => text.push(other),
            }
        }
    }

    fn escaped(&mut self) -> Result<char, InputError> {
        match self.next() {
            Some(plain @ ('"' | '\'' | '\\' | '/')) => Ok(plain),
            Some('b') => Ok('\u{8}'),
            Some('f') => Ok('\u{c}'),
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some('u') => self.unicode(),
            _ => {
                Err(self.error("unknown escape in a text, \\\" \\\\ \\/ \\n \\t \\u0041 are known"))
            }
        }
    }

    /// `\u0041`, or a pair such as `\ud83d\ude00`.
    fn unicode(&mut self) -> Result<char, InputError> {
        let mut units = vec![self.unit()?];
        if (0xd800..0xdc00).contains(&units[0]) && self.rest().starts_with("\\u") {
            self.position += 2;
            units.push(self.unit()?);
        }
        char::decode_utf16(units)
            .next()
            .and_then(Result::ok)
            .ok_or_else(|| self.error("a \\u escape that is no character"))
    }

    fn unit(&mut self) -> Result<u16, InputError> {
        let digits =
            self.rest().get(..4).filter(|four| four.bytes().all(|b| b.is_ascii_hexdigit()));
        let digits = digits.ok_or_else(|| self.error("\\u needs four hexadecimal digits"))?;
        self.position += 4;
        u16::from_str_radix(digits, 16).map_err(|_| self.error("\\u needs four hexadecimal digits"))
    }

    fn number(&mut self) -> Result<Value, InputError> {
        let line = self.line;
        let number = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
        let digits = number.strip_prefix('-').unwrap_or(number);
        let padded = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
        let finite = number.parse::<f64>().is_ok_and(f64::is_finite);
        let decimal = digits.starts_with(|c: char| c.is_ascii_digit()) && !digits.ends_with('.');
        if padded || !finite || !decimal {
            return Err(self.error_at(line, format!("{} is not a decimal number", quoted(number))));
        }
        Ok(Value::Number(number.to_owned()))
    }

    fn word(&mut self) -> Result<Value, InputError> {
        let line = self.line;
        let word = self.take_while(|c| c.is_alphanumeric() || c == '_');
        match word.to_ascii_lowercase().as_str() {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            "null" => Ok(Value::Null),
            _ if is_placeholder(word) => Err(self
                .error_at(line, format!("{word} is a placeholder of a template"))
                .with_hint("replace it by a value, as LISA and other front ends do")),
            _ => Err(self
                .error_at(line, format!("unknown word {}", quoted(word)))
                .with_hint("a text stands in quotes")),
        }
    }
}

/// Whether a word is of the form `__CPU__`, which templates (of Arm's LISA) have where a value goes.
pub(super) fn is_placeholder(word: &str) -> bool {
    let name = word.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"));
    name.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> Vec<Member> {
        match parse("f.json", text).map(|node| node.value) {
            Ok(Value::Object(members)) => members,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn error(text: &str) -> String {
        parse("f.json", text).expect_err(text).to_string()
    }

    #[test]
    fn repeated_keys_and_keys_without_value_are_kept_in_order() {
        let members =
            object("{ \"run\" : 1,\n \"sleep\": 2,\n\"suspend\",\n \"run\": 3, \"end\" }");
        let shown: Vec<_> = members
            .iter()
            .map(|m| (m.key.as_str(), m.line, m.value.as_ref().map(|node| &node.value)))
            .collect();
        let number = |digits: &str| Value::Number(digits.to_owned());
        assert_eq!(
            shown,
            [
                ("run", 1, Some(&number("1"))),
                ("sleep", 2, Some(&number("2"))),
                ("suspend", 3, None),
                ("run", 4, Some(&number("3"))),
                ("end", 4, None),
            ]
        );
    }

    #[test]
    fn comments_trailing_commas_and_single_quotes_are_read() {
        let lenient = object(
            "// one\n{ /* two\n * { \"x\" } */ 'a' : [1, 2, ], // three\n \"b//\": { \"c\": 'd\"', }, } // end",
        );
        let strict = object("\n{\n\"a\":[1,2],\n\"b//\":{\"c\":\"d\\\"\"}}");
        assert_eq!(lenient, strict);
    }

    #[test]
    fn errors_name_the_line() {
        assert_eq!(
            error("{\n\"a\": [1,\n2}"),
            "f.json:3: not valid JSON: expected , or ] behind the value, found '}'"
        );
    }

    #[test]
    fn low_deep_texts_are_refused() {
        let deep = |levels: usize| format!("{{\"a\": {}", "[".repeat(levels));
        assert!(error(&deep(31)).ends_with("expected a value, found the end of the file"));
        assert!(error(&deep(100_000)).ends_with("nested deeper than 32 levels"));
    }

    #[test]
    fn values_of_every_kind_are_read() {
        let members = object(
            "{\"t\": \"a\\\"\\\\\\/\\n\\t\\b\\f\\r\\u0041\\ud83d\\ude00\", \"n\": -1.5e3, \"b\": False, \"z\": Null, \"l\": [[], {}]}",
        );
        let values: Vec<&Value> =
            members.iter().map(|m| &m.value.as_ref().unwrap().value).collect();
        assert_eq!(values[0], &Value::Text("a\"\\/\n\t\u{8}\u{c}\rA\u{1f600}".to_owned()));
        assert_eq!(values[1], &Value::Number("-1.5e3".to_owned()));
        assert_eq!((values[2], values[3]), (&Value::Bool(false), &Value::Null));
        assert!(matches!(values[4], Value::List(elements) if elements.len() == 2));
    }
}
