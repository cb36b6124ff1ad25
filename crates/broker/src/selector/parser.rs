//! From tokens to a program: operator precedence parsing that writes postfix order.

use super::fields::Names;
use super::lexer::{Lexer, Token};
use super::like::Pattern;
use super::number::{Arithmetic, Number};
use super::program::{Literal, Op, Relation};
use super::{NESTING, OPS, SelectorError};

/// How tightly operators bind: the larger, the tighter.
mod power {
    pub(super) const OR: u8 = 1;
    pub(super) const AND: u8 = 2;
    pub(super) const NOT: u8 = 3;
    pub(super) const COMPARISON: u8 = 4;
    pub(super) const SUM: u8 = 5;
    pub(super) const PRODUCT: u8 = 6;
    pub(super) const SIGN: u8 = 7;
}

/// Words that are no names.
const KEYWORDS: [&str; 11] =
    ["and", "between", "escape", "false", "in", "is", "like", "not", "null", "or", "true"];

/// What a part of the selector is, as far as its text tells.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Kind {
    Condition,
    Number,
    Text,
    /// A name: whatever the message has there.
    Any,
}

pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    next: Option<Token>,
    depth: usize,
    ops: Vec<Op>,
    names: Names,
}

type Result<T> = std::result::Result<T, SelectorError>;

impl<'a> Parser<'a> {
    /// The program of a whole text, and the names that it loads.
    pub(super) fn parse(text: &'a str) -> Result<(Vec<Op>, Names)> {
        let mut lexer = Lexer::new(text);
        let next = lexer.next()?;
        let mut parser = Self { lexer, next, depth: 0, ops: Vec::new(), names: Names::default() };
        let kind = parser.expression(0)?;
        if parser.next.is_some() {
            return Err(parser.error("the condition is over before this"));
        }
        parser.check(kind, Kind::Condition)?;
        Ok((parser.ops, parser.names))
    }

    fn error(&self, detail: &str) -> SelectorError {
        self.lexer.error(detail)
    }

    fn advance(&mut self) -> Result<Option<Token>> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.next, next))
    }

    fn emit(&mut self, op: Op) -> Result<()> {
        if self.ops.len() == OPS {
            return Err(self.error("the selector has more parts than are evaluated"));
        }
        self.ops.push(op);
        Ok(())
    }

    fn check(&self, found: Kind, wanted: Kind) -> Result<()> {
        if found == wanted || found == Kind::Any {
            return Ok(());
        }
        Err(self.error(match wanted {
            Kind::Condition => "a condition belongs here, such as colour = 'red'",
            Kind::Number => "a number belongs here",
            _ => "a text belongs here",
        }))
    }

    /// Takes the keyword if it is next.
    fn take_word(&mut self, keyword: &str) -> Result<bool> {
        let found = is_word(self.next.as_ref(), keyword);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, sign: &'static str) -> Result<()> {
        if self.next == Some(Token::Sign(sign)) {
            return self.advance().map(|_| ());
        }
        Err(self.error(&format!("{sign} is missing before this")))
    }

    /// An expression of operators that bind at least as tightly as `power`.
    fn expression(&mut self, power: u8) -> Result<Kind> {
        if self.depth == NESTING {
            return Err(self.error("the selector nests deeper than is evaluated"));
        }
        self.depth += 1;
        let mut kind = self.prefix(power)?;
        while let Some(next) = self.infix_power().filter(|next| *next >= power) {
            kind = self.infix(kind, next)?;
        }
        self.depth -= 1;
        Ok(kind)
    }

    fn prefix(&mut self, power: u8) -> Result<Kind> {
        let Some(token) = self.advance()? else {
            return Err(self.error("the selector ends where something is missing"));
        };
        match token {
            Token::Text(text) => self.push(Literal::Text(text)),
            Token::Exact(n) => self.push(Literal::Number(Number::Exact(n))),
            Token::Approximate(n) => self.push(Literal::Number(Number::Approximate(n))),
            Token::Quoted(name) => self.load(name),
            Token::Sign("(") => {
                let kind = self.expression(0)?;
                self.expect(")")?;
                Ok(kind)
            }
            Token::Sign(sign @ ("-" | "+")) => {
                let kind = self.expression(power::SIGN)?;
                self.check(kind, Kind::Number)?;
                if sign == "-" {
                    self.emit(Op::Negate)?;
                }
                Ok(Kind::Number)
            }
            Token::Sign(_) => Err(self.error("a name or a value belongs before this")),
            Token::Word(word) => self.word(word, power),
        }
    }

    fn word(&mut self, word: String, power: u8) -> Result<Kind> {
        match KEYWORDS.into_iter().find(|keyword| keyword.eq_ignore_ascii_case(&word)) {
            None => self.load(word),
            Some("true") => self.push(Literal::Boolean(true)),
            Some("false") => self.push(Literal::Boolean(false)),
            Some("not") if power <= power::NOT => {
                let kind = self.expression(power::NOT)?;
                self.check(kind, Kind::Condition)?;
                self.emit(Op::Not)?;
                Ok(Kind::Condition)
            }
            Some(_) => Err(self.error("a name or a value belongs before this")),
        }
    }

    fn push(&mut self, literal: Literal) -> Result<Kind> {
        let kind = match literal {
            Literal::Text(_) => Kind::Text,
            Literal::Number(_) => Kind::Number,
            Literal::Boolean(_) => Kind::Condition,
        };
        self.emit(Op::Push(literal))?;
        Ok(kind)
    }

    fn load(&mut self, name: String) -> Result<Kind> {
        let slot = self.names.slot(name).map_err(|detail| self.error(&detail))?;
        self.emit(Op::Load(slot))?;
        Ok(Kind::Any)
    }

    /// How tightly the operator binds that is next, if one is.
    fn infix_power(&self) -> Option<u8> {
        let next = self.next.as_ref()?;
        let is = |keyword| is_word(Some(next), keyword);
        match next {
            Token::Sign("+" | "-") => Some(power::SUM),
            Token::Sign("*" | "/") => Some(power::PRODUCT),
            Token::Sign(sign) => relation(sign).map(|_| power::COMPARISON),
            Token::Word(_) if is("or") => Some(power::OR),
            Token::Word(_) if is("and") => Some(power::AND),
            Token::Word(_) if ["is", "in", "like", "between", "not"].into_iter().any(is) => {
                Some(power::COMPARISON)
            }
            _ => None,
        }
    }

    /// The operator that is next and what stands behind it; `left` stands before it.
    fn infix(&mut self, left: Kind, power: u8) -> Result<Kind> {
        match self.advance()? {
            Some(Token::Sign(sign)) => self.binary(sign, left, power),
            Some(Token::Word(word)) => match word.to_ascii_lowercase().as_str() {
                "or" => self.junction(left, power, Op::Or),
                "and" => self.junction(left, power, Op::And),
                "is" => self.is_null(),
                "not" => {
                    let Some(Token::Word(word)) = self.advance()? else {
                        return Err(self.error("IN, LIKE or BETWEEN belongs behind NOT"));
                    };
                    self.test(&word, left)?;
                    self.emit(Op::Not)?;
                    Ok(Kind::Condition)
                }
                word => self.test(word, left),
            },
            _ => Err(self.error("an operator belongs before this")),
        }
    }

    fn junction(&mut self, left: Kind, power: u8, op: Op) -> Result<Kind> {
        self.check(left, Kind::Condition)?;
        let right = self.expression(power + 1)?;
        self.check(right, Kind::Condition)?;
        self.emit(op)?;
        Ok(Kind::Condition)
    }

    fn binary(&mut self, sign: &'static str, left: Kind, power: u8) -> Result<Kind> {
        let right = self.expression(power + 1)?;
        if let Some(relation) = relation(sign) {
            // Texts and truth values have no order (JMS 2.0, 3.8.1.2).
            if !matches!(relation, Relation::Equal | Relation::Unequal) {
                self.check(left, Kind::Number)?;
                self.check(right, Kind::Number)?;
            }
            self.emit(Op::Compare(relation))?;
            return Ok(Kind::Condition);
        }
        self.check(left, Kind::Number)?;
        self.check(right, Kind::Number)?;
        self.emit(Op::Calculate(match sign {
            "+" => Arithmetic::Add,
            "-" => Arithmetic::Subtract,
            "*" => Arithmetic::Multiply,
            _ => Arithmetic::Divide,
        }))?;
        Ok(Kind::Number)
    }

    fn is_null(&mut self) -> Result<Kind> {
        let negated = self.take_word("not")?;
        if !self.take_word("null")? {
            return Err(self.error("NULL or NOT NULL belongs behind IS"));
        }
        self.emit(Op::IsNull)?;
        if negated {
            self.emit(Op::Not)?;
        }
        Ok(Kind::Condition)
    }

    fn test(&mut self, word: &str, left: Kind) -> Result<Kind> {
        match word.to_ascii_lowercase().as_str() {
            "between" => self.between(left)?,
            "in" => self.list()?,
            "like" => self.like(left)?,
            _ => return Err(self.error("IN, LIKE or BETWEEN belongs behind NOT")),
        }
        Ok(Kind::Condition)
    }

    fn between(&mut self, left: Kind) -> Result<()> {
        self.check(left, Kind::Number)?;
        for is_low in [true, false] {
            let bound = self.expression(power::SUM)?;
            self.check(bound, Kind::Number)?;
            if is_low && !self.take_word("and")? {
                return Err(self.error("AND belongs between the bounds of BETWEEN"));
            }
        }
        self.emit(Op::Between)
    }

    fn list(&mut self) -> Result<()> {
        self.expect("(")?;
        let mut count = 0;
        loop {
            let kind = self.expression(power::SUM)?;
            if !matches!(self.ops.last(), Some(Op::Push(_) | Op::Negate)) || kind == Kind::Condition
            {
                return Err(self.error("only texts and numbers belong into the list of IN"));
            }
            count += 1;
            if self.next != Some(Token::Sign(",")) {
                break;
            }
            self.advance()?;
        }
        self.expect(")")?;
        self.emit(Op::In(count))
    }

    fn like(&mut self, left: Kind) -> Result<()> {
        self.check(left, Kind::Text)?;
        let Some(Token::Text(pattern)) = self.advance()? else {
            return Err(self.error("a text in quotes belongs behind LIKE"));
        };
        let mut escape = None;
        if self.take_word("escape")? {
            let Some(Token::Text(text)) = self.advance()? else {
                return Err(self.error("a character in quotes belongs behind ESCAPE"));
            };
            let mut chars = text.chars();
            escape = chars.next().filter(|_| chars.next().is_none());
            if escape.is_none() {
                return Err(self.error("one character in quotes belongs behind ESCAPE"));
            }
        }
        let pattern = Pattern::new(&pattern, escape);
        let pattern = pattern.ok_or_else(|| self.error("the pattern ends where it escapes"))?;
        self.emit(Op::Like(Box::new(pattern)))
    }
}

fn is_word(token: Option<&Token>, keyword: &str) -> bool {
    matches!(token, Some(Token::Word(word)) if word.eq_ignore_ascii_case(keyword))
}

fn relation(sign: &str) -> Option<Relation> {
    Some(match sign {
        "=" => Relation::Equal,
        "<>" => Relation::Unequal,
        "<" => Relation::Less,
        "<=" => Relation::LessOrEqual,
        ">" => Relation::Greater,
        ">=" => Relation::GreaterOrEqual,
        _ => return None,
    })
}
