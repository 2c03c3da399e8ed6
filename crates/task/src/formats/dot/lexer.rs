//! The words and signs of DOT.

use std::fmt;

use ampsched_model::InputError;

/// A word or a sign.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// A name, a number or a keyword.
    Word(String),
    /// A text in quotes or angle brackets, which is never a keyword.
    Quoted(String),
    /// `{`
    Open,
    /// `}`
    Close,
    /// `[`
    OpenList,
    /// `]`
    CloseList,
    /// `;`
    Semicolon,
    /// `,`
    Comma,
    /// `=`
    Equals,
    /// `:`
    Colon,
    /// `->`
    Arrow,
    /// End of the file.
    End,
}

impl Token {
    /// The text of a word, in quotes or not.
    pub fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) | Self::Quoted(word) => Some(word),
            _ => None,
        }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self {
            Self::Word(word) | Self::Quoted(word) => {
                let shown: String = word.chars().take(40).collect();
                return write!(f, "{shown:?}");
            }
            Self::Open => "\"{\"",
            Self::Close => "\"}\"",
            Self::OpenList => "\"[\"",
            Self::CloseList => "\"]\"",
            Self::Semicolon => "\";\"",
            Self::Comma => "\",\"",
            Self::Equals => "\"=\"",
            Self::Colon => "\":\"",
            Self::Arrow => "\"->\"",
            Self::End => "the end of the file",
        };
        f.write_str(sign)
    }
}

/// Splits a text into tokens.
pub struct Lexer<'t> {
    file: &'t str,
    rest: &'t str,
    line: usize,
}

impl<'t> Lexer<'t> {
    /// Starts at the beginning of a file's text.
    pub fn new(file: &'t str, text: &'t str) -> Self {
        Self { file, rest: text, line: 1 }
    }

    /// The file's path for messages.
    pub fn file(&self) -> &'t str {
        self.file
    }

    /// An error at a line.
    pub fn error(&self, line: usize, message: &str) -> InputError {
        InputError::new(self.file, "", format!("not valid DOT: {message}")).at_line(line)
    }

    /// The next token and its line.
    pub fn next(&mut self) -> Result<(Token, usize), InputError> {
        self.skip_blanks()?;
        let line = self.line;
        let Some(first) = self.rest.chars().next() else { return Ok((Token::End, line)) };
        let sign = match first {
            '{' => Token::Open,
            '}' => Token::Close,
            '[' => Token::OpenList,
            ']' => Token::CloseList,
            ';' => Token::Semicolon,
            ',' => Token::Comma,
            '=' => Token::Equals,
            ':' => Token::Colon,
            '"' => return Ok((Token::Quoted(self.texts()?), line)),
            '<' => return Ok((Token::Quoted(self.markup()?), line)),
            '-' if self.rest.starts_with("->") => {
                self.take(2);
                return Ok((Token::Arrow, line));
            }
            '-' if self.rest.starts_with("--") => {
                return Err(self.error(line, "\"--\" belongs to undirected graphs"));
            }
            _ => return Ok((Token::Word(self.plain_word(first)?), line)),
        };
        self.take(1);
        Ok((sign, line))
    }

    /// Takes so many bytes, whole characters.
    fn take(&mut self, length: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(length);
        self.line += taken.bytes().filter(|&byte| byte == b'\n').count();
        self.rest = rest;
        taken
    }

    /// Skips blanks and comments; a line that begins with `#` is one, too.
    fn skip_blanks(&mut self) -> Result<(), InputError> {
        loop {
            let blanks = self.rest.len() - self.rest.trim_start().len();
            self.take(blanks);
            if self.rest.starts_with("//") || self.rest.starts_with('#') {
                self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if let Some(comment) = self.rest.strip_prefix("/*") {
                let length = comment.find("*/").ok_or_else(|| {
                    self.error(self.line, "the comment that begins here has no end")
                })?;
                self.take(length + 4);
            } else {
                return Ok(());
            }
        }
    }

    /// Texts in quotes, joined by `+`.
    fn texts(&mut self) -> Result<String, InputError> {
        let mut joined = self.text()?;
        loop {
            self.skip_blanks()?;
            if !self.rest.starts_with('+') {
                return Ok(joined);
            }
            self.take(1);
            self.skip_blanks()?;
            if !self.rest.starts_with('"') {
                return Err(self.error(self.line, "expected a text in quotes behind \"+\""));
            }
            joined += &self.text()?;
        }
    }

    /// HTML in angle brackets, which are balanced.
    fn markup(&mut self) -> Result<String, InputError> {
        let mut depth = 0_usize;
        for (position, c) in self.rest.char_indices() {
            match c {
                '<' => depth += 1,
                '>' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let markup = self.take(position + 1);
                return Ok(markup[1..position].to_owned());
            }
        }
        Err(self.error(self.line, "the HTML that begins here has no end"))
    }

    /// A text in quotes; `\"` stands for a quote, `\\` for a backslash.
    fn text(&mut self) -> Result<String, InputError> {
        let start = self.line;
        let mut word = String::new();
        let mut escaped = false;
        let body = &self.rest[1..];
        for (position, c) in body.char_indices() {
            if escaped {
                if !matches!(c, '"' | '\\') {
                    word.push('\\');
                }
                word.push(c);
                escaped = false;
            } else if c == '\\' {
                escaped = true;
            } else if c == '"' {
                self.take(position + 2);
                return Ok(word);
            } else {
                word.push(c);
            }
        }
        Err(self.error(start, "the text that begins here has no end"))
    }

    /// A word without quotes: letters, digits, `_`, and `.` or a leading `-` for numbers.
    fn plain_word(&mut self, first: char) -> Result<String, InputError> {
        let fits = |c: char| c.is_alphanumeric() || c == '_' || c == '.' || c as u32 >= 128;
        let sign = usize::from(first == '-');
        let body = &self.rest[sign..];
        let length = body.find(|c| !fits(c)).unwrap_or(body.len());
        if length == 0 {
            return Err(self.error(self.line, &format!("unexpected {first:?}")));
        }
        Ok(self.take(sign + length).to_owned())
    }
}
