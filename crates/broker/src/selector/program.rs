//! A selector in postfix order, and how it is run: a stack, no recursion, each step once.

use super::fields::Names;
use super::like::Pattern;
use super::number::{Arithmetic, Number};
use super::{Fuel, Subject};
use std::borrow::Cow;
use std::cmp::Ordering;

/// A value that stands in the selector.
#[derive(Debug)]
pub(super) enum Literal {
    Boolean(bool),
    Number(Number),
    Text(String),
}

/// How two values are compared.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A step. It takes its operands from the stack and leaves its result there.
#[derive(Debug)]
pub(super) enum Op {
    Push(Literal),
    /// What the message has under a name.
    Load(usize),
    Not,
    And,
    Or,
    Negate,
    Compare(Relation),
    Calculate(Arithmetic),
    Between,
    /// With so many values.
    In(usize),
    Like(Box<Pattern>),
    IsNull,
}

/// A value while a selector runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand<'a> {
    /// Not there, or unknown.
    Null,
    Boolean(bool),
    Number(Number),
    Text(Cow<'a, str>),
    Uuid(uuid::Uuid),
    Binary(&'a [u8]),
    /// Of a type that a selector can do nothing with.
    Other,
}

type Truth = Option<bool>;

impl<'a> Operand<'a> {
    const fn of(truth: Truth) -> Self {
        match truth {
            Some(truth) => Self::Boolean(truth),
            None => Self::Null,
        }
    }

    /// As a condition; what is none is unknown.
    const fn truth(&self) -> Truth {
        match self {
            Self::Boolean(truth) => Some(*truth),
            _ => None,
        }
    }

    const fn number(&self) -> Option<Number> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The same without a copy of its text.
    fn borrowed(&self) -> Operand<'_> {
        match self {
            Self::Text(text) => Operand::Text(Cow::Borrowed(text)),
            other => other.clone(),
        }
    }

    /// A uuid as its usual text, a binary as the text that its octets are, if they are one.
    pub(super) fn plain(self) -> Self {
        match self {
            Self::Uuid(uuid) => Self::Text(uuid.hyphenated().to_string().into()),
            Self::Binary(octets) => match std::str::from_utf8(octets) {
                Ok(text) => Self::Text(text.into()),
                Err(_) => Self::Other,
            },
            other => other,
        }
    }

    fn literal(literal: &'a Literal) -> Self {
        match literal {
            Literal::Boolean(truth) => Self::Boolean(*truth),
            Literal::Number(number) => Self::Number(*number),
            Literal::Text(text) => Self::Text(Cow::Borrowed(text)),
        }
    }
}

/// Runs a program. `None`: the message does not decode, or the fuel is spent.
pub(super) fn run(
    ops: &[Op],
    names: &Names,
    subject: &Subject<'_>,
    fuel: &mut Fuel,
) -> Option<Truth> {
    let slots = names.load(subject, fuel)?;
    let mut stack: Vec<Operand<'_>> = Vec::new();
    for op in ops {
        fuel.burn(1)?;
        let result = match op {
            Op::Push(literal) => Operand::literal(literal),
            Op::Load(slot) => slots.get(*slot)?.borrowed(),
            Op::Not => Operand::of(stack.pop()?.truth().map(|truth| !truth)),
            Op::And => {
                let (b, a) = (stack.pop()?.truth(), stack.pop()?.truth());
                Operand::of(and(a, b))
            }
            Op::Or => {
                let (b, a) = (stack.pop()?.truth(), stack.pop()?.truth());
                let negated = and(a.map(|truth| !truth), b.map(|truth| !truth));
                Operand::of(negated.map(|truth| !truth))
            }
            Op::Negate => number(stack.pop()?.number().and_then(Number::negate)),
            Op::Compare(relation) => {
                let (b, a) = (stack.pop()?, stack.pop()?);
                Operand::of(compare(&a, *relation, &b, fuel)?)
            }
            Op::Calculate(operation) => {
                let (b, a) = (stack.pop()?.number(), stack.pop()?.number());
                number(a.zip(b).and_then(|(a, b)| a.calculate(*operation, b)))
            }
            Op::Between => {
                let (high, low, value) = (stack.pop()?, stack.pop()?, stack.pop()?);
                let above = compare(&value, Relation::GreaterOrEqual, &low, fuel)?;
                let below = compare(&value, Relation::LessOrEqual, &high, fuel)?;
                Operand::of(and(above, below))
            }
            Op::In(count) => {
                let list = stack.split_off(stack.len().checked_sub(*count)?);
                Operand::of(is_among(&stack.pop()?, &list, fuel)?)
            }
            Op::Like(pattern) => match stack.pop()? {
                Operand::Text(text) => Operand::Boolean(pattern.matches(&text, fuel)?),
                Operand::Null => Operand::Null,
                _ => Operand::Boolean(false),
            },
            Op::IsNull => Operand::Boolean(stack.pop()? == Operand::Null),
        };
        stack.push(result);
    }
    Some(stack.pop()?.truth())
}

fn number<'a>(number: Option<Number>) -> Operand<'a> {
    number.map_or(Operand::Null, Operand::Number)
}

/// Three-valued: unknown unless one decides.
fn and(a: Truth, b: Truth) -> Truth {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// Values of unlike types compare as false, whatever the relation; with null as unknown (JMS 2.0,
/// 3.8.1.2).
fn compare(a: &Operand<'_>, relation: Relation, b: &Operand<'_>, fuel: &mut Fuel) -> Option<Truth> {
    let equality = |equal: bool| match relation {
        Relation::Equal => equal,
        Relation::Unequal => !equal,
        _ => false,
    };
    Some(match (a, b) {
        (Operand::Null, _) | (_, Operand::Null) => None,
        (Operand::Number(a), Operand::Number(b)) => Some(ordered(a.compare(*b), relation)),
        (Operand::Text(a), Operand::Text(b)) => {
            fuel.burn(a.len().min(b.len()))?;
            Some(equality(a == b))
        }
        (Operand::Boolean(a), Operand::Boolean(b)) => Some(equality(a == b)),
        _ => Some(false),
    })
}

/// What is not a number is unequal to all, itself included.
fn ordered(ordering: Option<Ordering>, relation: Relation) -> bool {
    match relation {
        Relation::Equal => ordering == Some(Ordering::Equal),
        Relation::Unequal => ordering != Some(Ordering::Equal),
        Relation::Less => ordering == Some(Ordering::Less),
        Relation::LessOrEqual => ordering.is_some_and(Ordering::is_le),
        Relation::Greater => ordering == Some(Ordering::Greater),
        Relation::GreaterOrEqual => ordering.is_some_and(Ordering::is_ge),
    }
}

fn is_among(value: &Operand<'_>, list: &[Operand<'_>], fuel: &mut Fuel) -> Option<Truth> {
    for item in list {
        match compare(value, Relation::Equal, item, fuel)? {
            Some(false) => {}
            known => return Some(known),
        }
    }
    Some(Some(false))
}
