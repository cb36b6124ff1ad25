//! Selectors: which messages a consumer wants, as in JMS (the conditional expressions of SQL-92).
//!
//! A text is compiled once into a program of at most [`OPS`] steps. To run it costs one pass over
//! the message's properties, what is compared with them, and nothing of its body; [`FUEL`] bounds
//! it for good.

mod fields;
mod lexer;
mod like;
mod number;
mod parser;
mod program;

use fields::Names;
use hopline_driver::engine::wire::message::Header;
use program::Op;

/// Octets of the longest selector.
const TEXT: usize = 16 << 10;

/// Steps of the longest program: names, values and operators.
const OPS: usize = 1000;

/// How deep expressions may nest; a parenthesis or an operator's right side is a level.
const NESTING: usize = 64;

/// Octets that one evaluation may look at, those of the properties included. A message that needs
/// more does not match.
const FUEL: usize = 1 << 20;

/// A compiled selector.
#[derive(Debug)]
pub(crate) struct Selector {
    ops: Vec<Op>,
    names: Names,
}

/// What a selector looks at.
#[derive(Clone, Debug)]
pub(crate) struct Subject<'a> {
    /// As the consumer would get it, but for the ttl, which is as it came.
    pub(crate) header: Header,
    /// The bare message, as it came.
    pub(crate) bare: &'a [u8],
}

/// Why a text is no selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the selector is wrong at octet {at}: {detail}")]
pub(crate) struct SelectorError {
    at: usize,
    detail: String,
}

impl Selector {
    /// Compiles a text.
    pub(crate) fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.len() > TEXT {
            let detail = format!("it is longer than {TEXT} octets");
            return Err(SelectorError { at: TEXT, detail });
        }
        let (ops, names) = parser::Parser::parse(text)?;
        Ok(Self { ops, names })
    }

    /// Whether it is true of a message, and what it took to find out, in octets. It is not true of
    /// one whose properties do not decode.
    pub(crate) fn matches(&self, subject: &Subject<'_>) -> (bool, usize) {
        let mut fuel = Fuel(FUEL);
        let truth = program::run(&self.ops, &self.names, subject, &mut fuel);
        (truth == Some(Some(true)), FUEL - fuel.0)
    }
}

/// Octets that an evaluation may still look at.
#[derive(Debug)]
struct Fuel(usize);

impl Fuel {
    /// `None`: there is not as much left.
    fn burn(&mut self, octets: usize) -> Option<()> {
        self.0 = self.0.saturating_sub(octets);
        (self.0 > 0).then_some(())
    }
}

#[cfg(test)]
mod tests;
