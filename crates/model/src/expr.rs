//! Expressions over parameters: `total / n`, `max(1, n - 2) * 5e3`.
//!
//! An expression is kept in postfix order, so evaluating, copying and dropping it need no recursion
//! however long it is; only parentheses nest in the parser, up to [`DEPTH_MAX`].

use crate::InputError;
use crate::limits::{DEPTH_MAX, EXPRESSION_BYTES_MAX};
use crate::reader::{Node, Spot, out_of_range, plain, quoted};

/// Largest value of an amount.
pub(crate) const AMOUNT_MAX: f64 = 1e18;
/// Functions with their number of arguments.
const FUNCTIONS: [(&str, usize, Item); 5] = [
    ("min", 2, Item::Min),
    ("max", 2, Item::Max),
    ("floor", 1, Item::Floor),
    ("ceil", 1, Item::Ceil),
    ("round", 1, Item::Round),
];

/// One element of an expression in postfix order.
#[derive(Clone, Debug, PartialEq)]
enum Item {
    Number(f64),
    Name(String),
    Add,
    Subtract,
    Multiply,
    Divide,
    Negate,
    Min,
    Max,
    Floor,
    Ceil,
    Round,
}

/// A number, or an expression that gives a number once the names in it have values.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    items: Vec<Item>,
    /// Where it stands.
    pub spot: Spot,
}

/// Values of the names in an expression.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// Parameters.
    pub params: &'a [(String, f64)],
    /// Values of `index` and `count`, where they are known.
    pub instance: Option<(u32, u32)>,
}

/// Whether a word can be used as the name of a parameter.
pub(crate) fn is_param_name(word: &str) -> bool {
    let mut chars = word.chars();
    let starts = chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    let reserved = ["index", "count", "forever"];
    let function = FUNCTIONS.iter().any(|(name, ..)| *name == word);
    starts && chars.all(is_name_char) && !reserved.contains(&word) && !function
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl Expr {
    /// A value that is a number or the text of an expression.
    pub fn of(node: &Node<'_>) -> Result<Expr, InputError> {
        if node.is_text() {
            return Self::parse(node.text()?, node.spot.clone());
        }
        let number = node.any_number().map_err(|error| {
            match error.message.strip_suffix(" is not a number") {
                Some(value) => InputError {
                    message: format!("{value} is not a number or an expression"),
                    ..error
                },
                None => error,
            }
        })?;
        Ok(Expr::number(number, node.spot.clone()))
    }

    /// An expression that is only a number.
    pub fn number(number: f64, spot: Spot) -> Expr {
        Expr { items: vec![Item::Number(number)], spot }
    }

    /// Parses the text of an expression.
    pub fn parse(text: &str, spot: Spot) -> Result<Expr, InputError> {
        if text.len() > EXPRESSION_BYTES_MAX {
            return Err(spot.error(format!(
                "expression of {} bytes, at most {EXPRESSION_BYTES_MAX} are allowed",
                text.len()
            )));
        }
        let mut parser = Parser { text, rest: text, spot: &spot, items: Vec::new(), depth: 0 };
        parser.sum()?;
        parser.skip_space();
        if let Some(found) = parser.rest.chars().next() {
            return Err(parser.error(&format!("{found:?} is not expected there")));
        }
        Ok(Expr { items: parser.items, spot })
    }

    /// Whether the expression is just a number.
    pub fn is_number(&self) -> bool {
        matches!(self.items[..], [Item::Number(_)])
    }

    /// Whether the expression is just this number.
    pub fn is_the_number(&self, number: f64) -> bool {
        self.items == [Item::Number(number)]
    }

    /// Whether the expression uses a name.
    pub fn mentions(&self, word: &str) -> bool {
        self.items.iter().any(|item| matches!(item, Item::Name(name) if name == word))
    }

    /// Checks that every name is a parameter, or `index` or `count` where those have a meaning.
    pub fn check_names(&self, params: &[&str], in_thread: bool) -> Result<(), InputError> {
        for item in &self.items {
            if let Item::Name(name) = item {
                self.check_name(name, params, in_thread)?;
            }
        }
        Ok(())
    }

    fn check_name(&self, name: &str, params: &[&str], in_thread: bool) -> Result<(), InputError> {
        let instance = ["index", "count"];
        if params.contains(&name) || (in_thread && instance.contains(&name)) {
            return Ok(());
        }
        if instance.contains(&name) {
            return Err(self
                .spot
                .error(format!("{} has a meaning only inside a thread", quoted(name))));
        }
        let known =
            params.iter().copied().chain(in_thread.then_some(instance).into_iter().flatten());
        Err(self.spot.unknown("parameter", name, known))
    }

    /// The value, which must be finite.
    pub fn value(&self, scope: Scope<'_>) -> Result<f64, InputError> {
        let mut stack: Vec<f64> = Vec::with_capacity(4);
        for item in &self.items {
            let value = match item {
                Item::Number(number) => *number,
                Item::Name(name) => self.look_up(name, scope)?,
                Item::Negate | Item::Floor | Item::Ceil | Item::Round => {
                    unary(item, pop(&mut stack))
                }
                _ => {
                    let right = pop(&mut stack);
                    self.binary(item, pop(&mut stack), right)?
                }
            };
            if !value.is_finite() {
                return Err(self.spot.error("is not a finite number"));
            }
            stack.push(value);
        }
        Ok(pop(&mut stack))
    }

    /// The value, within limits.
    pub fn within(&self, scope: Scope<'_>, lowest: f64, highest: f64) -> Result<f64, InputError> {
        let value = self.value(scope)?;
        if (lowest..=highest).contains(&value) {
            Ok(value)
        } else {
            Err(out_of_range(&self.spot, value, lowest, highest))
        }
    }

    /// The value as a whole number within limits (below 2^53).
    pub fn whole(&self, scope: Scope<'_>, lowest: i64, highest: i64) -> Result<i64, InputError> {
        let value = self.within(scope, lowest as f64, highest as f64)?;
        if value.fract() != 0.0 {
            let error = self.spot.error(format!("{} is not a whole number", plain(value)));
            return Err(error.with_hint("floor(x), ceil(x) or round(x) makes it one"));
        }
        Ok(value as i64)
    }

    fn look_up(&self, name: &str, scope: Scope<'_>) -> Result<f64, InputError> {
        let value = match (name, scope.instance) {
            ("index", Some((index, _))) => Some(f64::from(index)),
            ("count", Some((_, count))) => Some(f64::from(count)),
            _ => scope.params.iter().find(|(param, _)| param == name).map(|(_, value)| *value),
        };
        value.ok_or_else(|| {
            self.spot.unknown(
                "parameter",
                name,
                scope.params.iter().map(|(param, _)| param.as_str()),
            )
        })
    }

    fn binary(&self, item: &Item, left: f64, right: f64) -> Result<f64, InputError> {
        Ok(match item {
            Item::Add => left + right,
            Item::Subtract => left - right,
            Item::Multiply => left * right,
            Item::Divide if right == 0.0 => {
                return Err(self.spot.error(format!("{} is divided by 0", plain(left))));
            }
            Item::Divide => left / right,
            Item::Min => left.min(right),
            _ => left.max(right),
        })
    }
}

fn unary(item: &Item, value: f64) -> f64 {
    match item {
        Item::Floor => value.floor(),
        Item::Ceil => value.ceil(),
        Item::Round => value.round(),
        _ => -value,
    }
}

/// The parser emits operands before their operator, so the stack is never empty here.
fn pop(stack: &mut Vec<f64>) -> f64 {
    stack.pop().unwrap_or(f64::NAN)
}

/// Recursive descent: sum = product {+- product}, product = factor {*/ factor}.
struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
    spot: &'a Spot,
    items: Vec<Item>,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn sum(&mut self) -> Result<(), InputError> {
        self.product()?;
        while let Some(sign) = self.take_any(&['+', '-']) {
            self.product()?;
            self.items.push(if sign == '+' { Item::Add } else { Item::Subtract });
        }
        Ok(())
    }

    fn product(&mut self) -> Result<(), InputError> {
        self.factor()?;
        while let Some(sign) = self.take_any(&['*', '/']) {
            self.factor()?;
            self.items.push(if sign == '*' { Item::Multiply } else { Item::Divide });
        }
        Ok(())
    }

    fn factor(&mut self) -> Result<(), InputError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error(&format!("nested deeper than {DEPTH_MAX}")));
        }
        self.skip_space();
        match self.rest.chars().next() {
            Some('-') => {
                self.take_any(&['-']);
                self.factor()?;
                self.items.push(Item::Negate);
            }
            Some('(') => {
                self.take_any(&['(']);
                self.sum()?;
                self.expect(')')?;
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number()?,
            Some(c) if is_name_char(c) => self.name()?,
            Some(c) => {
                return Err(self.error(&format!("a number or a name is expected instead of {c:?}")));
            }
            None => return Err(self.error("a number or a name is expected at the end")),
        }
        self.depth -= 1;
        Ok(())
    }

    fn number(&mut self) -> Result<(), InputError> {
        let mut end = 0;
        let mut previous = ' ';
        for c in self.rest.chars() {
            let sign_of_exponent = matches!(c, '+' | '-') && matches!(previous, 'e' | 'E');
            if !(c.is_ascii_alphanumeric() || c == '.' || c == '_' || sign_of_exponent) {
                break;
            }
            previous = c;
            end += c.len_utf8();
        }
        let digits = self.take(end);
        match digits.replace('_', "").parse::<f64>() {
            Ok(number) if number.is_finite() => self.items.push(Item::Number(number)),
            _ => return Err(self.error(&format!("{} is not a number", quoted(digits)))),
        }
        Ok(())
    }

    fn name(&mut self) -> Result<(), InputError> {
        let end = self.rest.find(|c| !is_name_char(c)).unwrap_or(self.rest.len());
        let name = self.take(end);
        self.skip_space();
        if !self.rest.starts_with('(') {
            self.items.push(Item::Name(name.to_owned()));
            return Ok(());
        }
        let Some((_, arguments, item)) = FUNCTIONS.iter().find(|(known, ..)| *known == name) else {
            return Err(self.spot.unknown(
                "function",
                name,
                FUNCTIONS.iter().map(|(known, ..)| *known),
            ));
        };
        self.expect('(')?;
        for argument in 0..*arguments {
            if argument > 0 {
                self.expect(',')?;
            }
            self.sum()?;
        }
        self.expect(')')?;
        self.items.push(item.clone());
        Ok(())
    }

    fn expect(&mut self, wanted: char) -> Result<(), InputError> {
        match self.take_any(&[wanted]) {
            Some(_) => Ok(()),
            None => match self.rest.chars().next() {
                Some(found) => {
                    Err(self.error(&format!("{wanted:?} is expected instead of {found:?}")))
                }
                None => Err(self.error(&format!("{wanted:?} is expected at the end"))),
            },
        }
    }

    fn take_any(&mut self, wanted: &[char]) -> Option<char> {
        self.skip_space();
        let next = self.rest.chars().next().filter(|c| wanted.contains(c))?;
        self.take(next.len_utf8());
        Some(next)
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn error(&self, what: &str) -> InputError {
        self.spot.error(format!("expression {}: {what}", quoted(self.text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot() -> Spot {
        Spot { file: "p.toml".into(), line: 3, key: "k".into() }
    }

    fn value(text: &str) -> Result<f64, String> {
        let params = [("n".to_owned(), 4.0), ("total".to_owned(), 10.0)];
        let scope = Scope { params: &params, instance: Some((2, 8)) };
        Expr::parse(text, spot())
            .and_then(|expr| expr.value(scope))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn arithmetic_follows_the_usual_rules() {
        let cases = [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("total / n / 5", 0.5),
            ("10 - 3 - 2", 5.0),
            ("-n + 6", 2.0),
            ("2 * -n + 9", 1.0),
            ("min(n, 2) + max(1, total)", 12.0),
            ("1.5e3 - 1e-1 * 10", 1499.0),
            ("1_000", 1000.0),
            ("index * count", 16.0),
            ("floor(2.5) + ceil(2.5) + round(2.5)", 8.0),
            (" ( ( n ) ) ", 4.0),
        ];
        for (text, expected) in cases {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let cases = [
            ("", "p.toml:3: k: expression \"\": a number or a name is expected at the end"),
            ("1 +", "p.toml:3: k: expression \"1 +\": a number or a name is expected at the end"),
            ("1 2", "p.toml:3: k: expression \"1 2\": '2' is not expected there"),
            ("(1", "p.toml:3: k: expression \"(1\": ')' is expected at the end"),
            ("min(1)", "p.toml:3: k: expression \"min(1)\": ',' is expected instead of ')'"),
            ("3x", "p.toml:3: k: expression \"3x\": \"3x\" is not a number"),
            ("n ^ 2", "p.toml:3: k: expression \"n ^ 2\": '^' is not expected there"),
            ("1e999", "p.toml:3: k: expression \"1e999\": \"1e999\" is not a number"),
            ("totl", "p.toml:3: k: unknown parameter \"totl\" (did you mean \"total\"?)"),
            ("mix(1, 2)", "p.toml:3: k: unknown function \"mix\" (did you mean \"min\"?)"),
            ("1 / (n - 4)", "p.toml:3: k: 1 is divided by 0"),
            ("1e300 * 1e300", "p.toml:3: k: is not a finite number"),
        ];
        for (text, expected) in cases {
            assert_eq!(value(text), Err(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn low_deep_and_long_expressions_are_refused() {
        let deep = |depth: usize| value(&format!("{}1{}", "(".repeat(depth), ")".repeat(depth)));
        // What is not in parentheses is the first level.
        assert_eq!(deep(31), Ok(1.0));
        assert!(deep(32).unwrap_err().contains("nested deeper than 32"));
        let long = value(&"1+".repeat(1001)).unwrap_err();
        assert!(long.contains("expression of 2002 bytes, at most 2000 are allowed"), "{long}");
    }

    #[test]
    fn whole_numbers_are_not_rounded_in_silence() {
        let scope = Scope { params: &[], instance: None };
        let whole = |text: &str| {
            Expr::parse(text, spot()).unwrap().whole(scope, 1, 9).map_err(|error| error.to_string())
        };
        assert_eq!(whole("8/2"), Ok(4));
        let hint =
            "p.toml:3: k: 2.5 is not a whole number (floor(x), ceil(x) or round(x) makes it one)";
        assert_eq!(whole("5/2"), Err(hint.to_owned()));
        assert_eq!(
            whole("10"),
            Err("p.toml:3: k: 10 is out of range, 1 to 9 is allowed".to_owned())
        );
    }

    #[test]
    fn parameter_names_cannot_be_words_of_the_language() {
        assert!(is_param_name("n") && is_param_name("_x1"));
        for word in ["", "1n", "a-b", "index", "count", "min", "floor", "forever", "ä"] {
            assert!(!is_param_name(word), "{word}");
        }
    }
}
