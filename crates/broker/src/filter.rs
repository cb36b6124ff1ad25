//! Filters of a source (3.5.8): the registered ones of Apache that JMS clients send.

use crate::ConnId;
use crate::message::Message;
use crate::selector::Selector;
use hopline_driver::engine::wire::terminus::Source;
use hopline_driver::engine::wire::{AmqpError, Symbol, Value, condition};

/// Filters of one link that are in force.
const MAX: usize = 8;

/// What a consumer wants of the messages there are: all that every filter lets through.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    selectors: Vec<Selector>,
    /// Messages that came over this connection are not for it.
    not_from: Option<ConnId>,
}

/// A kind of filter.
#[derive(Copy, Clone)]
enum Kind {
    /// `apache.org:selector-filter:string`.
    Selector,
    /// `apache.org:no-local-filter:list`.
    NoLocal,
}

impl Kind {
    /// A kind has a name and a number; clients use either.
    fn of(descriptor: &Value) -> Option<Self> {
        const SELECTOR: u64 = 0x0000_468c_0000_0004;
        const NO_LOCAL: u64 = 0x0000_468c_0000_0003;
        match descriptor {
            Value::Ulong(SELECTOR) => Some(Self::Selector),
            Value::Ulong(NO_LOCAL) => Some(Self::NoLocal),
            Value::Symbol(name) if *name == "apache.org:selector-filter:string" => {
                Some(Self::Selector)
            }
            Value::Symbol(name) if *name == "apache.org:no-local-filter:list" => {
                Some(Self::NoLocal)
            }
            _ => None,
        }
    }
}

impl Filter {
    /// Reads the filters of a source that is attached to over `conn`, and leaves those in it that
    /// are in force, as they were sent. Filters that are not known here are taken out.
    ///
    /// # Errors
    /// A filter that is not described, has a value of the wrong type, or holds no selector.
    pub(crate) fn read(source: &mut Source, conn: ConnId) -> Result<Option<Self>, AmqpError> {
        let Some(mut fields) = source.filter.take() else { return Ok(None) };
        let mut filter = Self::default();
        let mut in_force = Vec::new();
        for (name, value) in std::mem::take(&mut fields.0) {
            if filter.add(&name, &value, conn)? {
                in_force.push((name, value));
            }
        }
        if in_force.is_empty() {
            return Ok(None);
        }
        if in_force.len() > MAX {
            return Err(invalid(format!("more than {MAX} filters: combine selectors with AND")));
        }
        fields.0 = in_force;
        source.filter = Some(fields);
        Ok(Some(filter))
    }

    /// Whether the filter is known here.
    fn add(&mut self, name: &Symbol, value: &Value, conn: ConnId) -> Result<bool, AmqpError> {
        let (descriptor, value) = match value {
            Value::Null => return Ok(false),
            Value::Described(described) => (&described.0, &described.1),
            _ => return Err(invalid(format!("the filter {name} is not a described value"))),
        };
        match (Kind::of(descriptor), value) {
            (Some(Kind::Selector), Value::String(text)) => {
                let selector = Selector::parse(text);
                self.selectors.push(selector.map_err(|error| invalid(error.to_string()))?);
            }
            // Qpid JMS sends a text, though the filter's name promises a list.
            (Some(Kind::NoLocal), Value::List(_) | Value::String(_)) => self.not_from = Some(conn),
            (Some(Kind::Selector), _) => {
                return Err(invalid(format!("the selector {name} is not a string")));
            }
            (Some(Kind::NoLocal), _) => {
                return Err(invalid(format!("the no-local filter {name} is not a list")));
            }
            (None, _) => return Ok(false),
        }
        Ok(true)
    }

    /// Whether all let a message through, and what it took to find out, in octets.
    pub(crate) fn wants(&self, message: &Message) -> (bool, usize) {
        let mut cost = 0;
        if self.not_from.is_some() && message.publisher == self.not_from {
            return (false, cost);
        }
        let subject = message.subject();
        let is_wanted = self.selectors.iter().all(|selector| {
            let (is_match, octets) = selector.matches(&subject);
            cost += octets;
            is_match
        });
        (is_wanted, cost)
    }
}

fn invalid(text: impl Into<String>) -> AmqpError {
    AmqpError::new(condition::INVALID_FIELD, text)
}
