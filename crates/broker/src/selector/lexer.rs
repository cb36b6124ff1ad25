//! A selector's text as tokens.

use super::SelectorError;

/// A word of the selector.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name or a keyword.
    Word(String),
    /// A name in double quotes, which may hold any character.
    Quoted(String),
    Text(String),
    Exact(i128),
    Approximate(f64),
    /// An operator, a parenthesis or a comma.
    Sign(&'static str),
}

const SIGNS: [&str; 13] = ["<>", "<=", ">=", "=", "<", ">", "+", "-", "*", "/", "(", ")", ","];

/// Cuts one token after the other.
pub(super) struct Lexer<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Lexer<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, rest: text }
    }

    /// How many octets are behind.
    pub(super) const fn position(&self) -> usize {
        self.text.len() - self.rest.len()
    }

    pub(super) fn error(&self, detail: impl Into<String>) -> SelectorError {
        SelectorError { at: self.position(), detail: detail.into() }
    }

    /// The next token; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<Token>, SelectorError> {
        self.rest = self.rest.trim_start();
        let mut chars = self.rest.chars();
        let Some(c) = chars.next() else { return Ok(None) };
        match c {
            '\'' => self.quoted('\'').map(|text| Some(Token::Text(text))),
            '"' => self.quoted('"').map(|name| Some(Token::Quoted(name))),
            '0'..='9' => self.number().map(Some),
            '.' if chars.next().is_some_and(|c| c.is_ascii_digit()) => self.number().map(Some),
            c if begins_name(c) => Ok(Some(Token::Word(self.take_while(continues_name).into()))),
            _ => self.sign().map(Some),
        }
    }

    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn take(&mut self, sign: &str) -> bool {
        let stripped = self.rest.strip_prefix(sign);
        self.rest = stripped.unwrap_or(self.rest);
        stripped.is_some()
    }

    /// What stands in quotes; two of them stand for one.
    fn quoted(&mut self, quote: char) -> Result<String, SelectorError> {
        let mut text = String::new();
        let mut chars = self.rest.chars();
        chars.next();
        loop {
            match chars.next() {
                Some(c) if c == quote => {
                    self.rest = chars.as_str();
                    if chars.next() != Some(quote) {
                        return Ok(text);
                    }
                    text.push(quote);
                }
                Some(c) => text.push(c),
                None => return Err(self.error(format!("what begins here lacks its last {quote}"))),
            }
        }
    }

    /// `12`, `12L`, `1.5`, `.5`, `7E3`, `1.5f`.
    fn number(&mut self) -> Result<Token, SelectorError> {
        let all = self.rest;
        self.take_while(|c| c.is_ascii_digit());
        let mut is_exact = !self.take(".");
        self.take_while(|c| c.is_ascii_digit());
        if self.take("e") || self.take("E") {
            is_exact = false;
            let _ = self.take("-") || self.take("+");
            self.take_while(|c| c.is_ascii_digit());
        }
        let digits = all.get(..all.len() - self.rest.len()).unwrap_or_default();
        let suffix = self.take_while(continues_name);
        let token = match suffix {
            "" | "l" | "L" if is_exact => {
                let whole = digits.parse::<u64>().ok();
                whole.map(|whole| Token::Exact(whole.into()))
            }
            "" | "f" | "F" | "d" | "D" => digits.parse().ok().map(Token::Approximate),
            _ => None,
        };
        token.ok_or_else(|| {
            self.error("no number ends here: write 12, 1.5 or 7E3, a whole one below 2^64")
        })
    }

    fn sign(&mut self) -> Result<Token, SelectorError> {
        let found = SIGNS.into_iter().find(|sign| self.take(sign));
        found.map(Token::Sign).ok_or_else(|| {
            let c = self.rest.chars().next().unwrap_or_default();
            self.error(format!("{c:?} means nothing here"))
        })
    }
}

fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_' || c == '$'
}

fn continues_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '.')
}
