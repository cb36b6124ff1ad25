//! When a node goes; and what a peer may say of that of a node that is made for it (part 3,
//! 3.5.9 to 3.5.13).

use hopline_driver::engine::wire::value::Array;
use hopline_driver::engine::wire::{AmqpError, Fields, Symbol, Value, condition};

const LIFETIME_POLICY: &str = "lifetime-policy";
const DIST_MODES: &str = "supported-dist-modes";
const MODES: [&str; 2] = ["move", "copy"];

/// Why a node is there, so when it goes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// It is configured: it stays.
    Permanent,
    /// It was made on demand: it goes when nothing is in it and nobody is attached.
    OnDemand,
    /// It goes with the terminus that it was made for: a subscription, or `delete-on-close`.
    Terminus,
    /// `delete-on-no-links`.
    NoLinks,
    /// `delete-on-no-messages`: also not before its terminus.
    NoMessages,
    /// `delete-on-no-links-or-messages`.
    NoLinksOrMessages,
}

/// The policies, with their descriptors.
const POLICIES: [(Lifetime, u64, &str); 4] = [
    (Lifetime::Terminus, 0x2b, "amqp:delete-on-close:list"),
    (Lifetime::NoLinks, 0x2c, "amqp:delete-on-no-links:list"),
    (Lifetime::NoMessages, 0x2d, "amqp:delete-on-no-messages:list"),
    (Lifetime::NoLinksOrMessages, 0x2e, "amqp:delete-on-no-links-or-messages:list"),
];

impl Lifetime {
    /// Whether a node is to go. It `is_owned` while the terminus that it was made for is there.
    pub(crate) const fn is_over(self, is_owned: bool, has_links: bool, has_messages: bool) -> bool {
        !is_owned
            && match self {
                Self::Permanent => false,
                Self::Terminus => true,
                Self::NoLinks => !has_links,
                Self::NoMessages => !has_messages,
                Self::OnDemand | Self::NoLinksOrMessages => !has_links && !has_messages,
            }
    }

    /// What a peer's dynamic-node-properties ask for; `properties` becomes what is in force.
    ///
    /// # Errors
    /// A policy or distribution mode that there is not. Properties that nobody defined are left
    /// out of the answer.
    pub(crate) fn of_dynamic(properties: &mut Option<Fields>) -> Result<Self, AmqpError> {
        let asked = properties.take().unwrap_or_default();
        let lifetime = asked.get(LIFETIME_POLICY).map_or(Ok(Self::Terminus), Self::from_value)?;
        let mut fields = vec![(Symbol::from_static(LIFETIME_POLICY), lifetime.value())];
        if let Some(modes) = asked.get(DIST_MODES) {
            check_modes(modes)?;
            let modes = Array::symbols(&MODES.map(Symbol::from_static));
            fields.push((Symbol::from_static(DIST_MODES), Value::Array(modes)));
        }
        *properties = Some(Fields(fields));
        Ok(lifetime)
    }

    fn from_value(value: &Value) -> Result<Self, AmqpError> {
        let wrong = || invalid("lifetime-policy must be a delete-on-... list without fields");
        let Value::Described(described) = value else { return Err(wrong()) };
        let (descriptor, Value::List(fields)) = &**described else { return Err(wrong()) };
        let is_meant = |(_, code, symbol): &&(Self, u64, &str)| match descriptor {
            Value::Ulong(found) => found == code,
            Value::Symbol(found) => found == symbol,
            _ => false,
        };
        let policy = POLICIES.iter().find(is_meant).filter(|_| fields.is_empty());
        policy.map(|(lifetime, ..)| *lifetime).ok_or_else(wrong)
    }

    fn value(self) -> Value {
        let code = POLICIES.iter().find(|(policy, ..)| *policy == self).map(|(_, code, _)| *code);
        Value::Described(Box::new((Value::Ulong(code.unwrap_or(0x2b)), Value::List(Vec::new()))))
    }
}

fn check_modes(modes: &Value) -> Result<(), AmqpError> {
    let is_known =
        |mode: &Value| matches!(mode, Value::Symbol(mode) if MODES.contains(&mode.as_str()));
    let all_known = match modes {
        Value::Array(modes) => modes.values().is_ok_and(|modes| modes.iter().all(is_known)),
        mode => is_known(mode),
    };
    if all_known {
        return Ok(());
    }
    Err(invalid("supported-dist-modes must be move, copy, or an array of these"))
}

fn invalid(text: &str) -> AmqpError {
    AmqpError::new(condition::INVALID_FIELD, text)
}
