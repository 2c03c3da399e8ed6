//! The one error type for everything a user can get wrong in an input.

use std::fmt;

/// What is wrong with an input: where it stands, what it says, what is allowed, and what to do.
///
/// Printed as one line: `FILE:LINE: KEY: MESSAGE (HINT)`; parts that are unknown are left out, and control characters
/// that an input had are written as in Rust (`\n`). Of a part that is very long, beginning and end are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct InputError {
    /// The file, or a name such as `<text>` for input that is not a file.
    pub file: String,
    /// Line in the file, counted from 1.
    pub line: Option<usize>,
    /// The key's path, such as `threads[2].body[0].compute`.
    pub key: String,
    /// What is wrong, with the value and the limit.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl InputError {
    /// An error about `key` of `file`.
    pub fn new(
        file: impl Into<String>,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { file: file.into(), key: key.into(), message: message.into(), ..Self::default() }
    }

    /// The same error with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same error at a line (counted from 1).
    #[must_use]
    pub fn at_line(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.file))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", shown(&self.key))?;
        }
        write!(f, ": {}", shown(&self.message))?;
        if let Some(hint) = &self.hint {
            write!(f, " ({})", shown(hint))?;
        }
        Ok(())
    }
}

/// Most characters of each part of an error that are shown (ours): more than those of any name or hint of ours.
const SHOWN_MAX: usize = 1500;

/// A text in one line, without what is in its middle if it is long.
fn shown(text: &str) -> String {
    let mut line = String::new();
    for c in text.chars() {
        match c.is_control() {
            true => line.extend(c.escape_debug()),
            false => line.push(c),
        }
    }
    let length = line.chars().count();
    if length <= SHOWN_MAX {
        return line;
    }
    let begin = line.chars().take(SHOWN_MAX / 2);
    begin.chain(" ... ".chars()).chain(line.chars().skip(length - SHOWN_MAX / 2)).collect()
}

/// A hint that names the known word nearest to `word`, or lists all known words if none is near.
///
/// Near means a Jaro-Winkler similarity of at least 0.8.
pub fn suggest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(word, &known) {
        Some(candidate) => format!("did you mean \"{candidate}\"?"),
        None => format!("known: {}", known.join(", ")),
    }
}

/// The known word that is nearest, if it is near enough to have been meant.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let similar = known.iter().map(|&each| (strsim::jaro_winkler(word, each), each));
    let (similarity, found) = similar.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (similarity >= 0.8).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_is_one_line_with_every_part() {
        let error = InputError::new("m.toml", "clusters[0].cores", "0 cores, at least 1 is needed")
            .at_line(7)
            .with_hint("remove the cluster");
        assert_eq!(
            error.to_string(),
            "m.toml:7: clusters[0].cores: 0 cores, at least 1 is needed (remove the cluster)"
        );
    }

    #[test]
    fn low_an_error_about_a_text_of_several_lines_is_one_line() {
        let error = InputError::new("--policy", "a\nb", "\"0\r\n1\" \u{1b}[2J é");
        assert_eq!(error.to_string(), r#"--policy: a\nb: "0\r\n1" \u{1b}[2J é"#);
    }

    #[test]
    fn low_an_error_about_a_long_text_is_short() {
        let error = InputError::new("f", "", format!("<{}> is wrong", "\u{18}é".repeat(100_000)));
        let text = error.to_string();
        assert!(text.starts_with(r"f: <\u{18}é") && text.ends_with(r"\u{18}é> is wrong"), "{text}");
        assert!(text.len() < 3000, "{}", text.len());
    }

    #[test]
    fn suggestion_names_the_nearest_or_lists_all() {
        assert_eq!(suggest("colob", ["cfs", "colab"]), "did you mean \"colab\"?");
        assert_eq!(suggest("xyz", ["cfs", "colab"]), "known: cfs, colab");
    }
}
