use fe2o3_amqp_types::{performatives, sasl};
use hopline_wire::codec::Reader;
use hopline_wire::composite::Descriptor;
use hopline_wire::performative as ours;
use serde::Serialize;
use serde::de::DeserializeOwned;

macro_rules! rewrite {
    ($(#[$meta:meta])* $name:ident, $module:ident { $($type:ident),+ $(,)? }) => {
        $(#[$meta])*
        pub(crate) fn $name(octets: &[u8]) -> Option<Vec<u8>> {
            let descriptor = Descriptor::read(&mut Reader::new(octets), "a performative").ok()?;
            $(if descriptor.is(ours::$type::CODE.into(), ours::$type::SYMBOL) {
                return rewrite_as::<$module::$type>(octets);
            })+
            None
        }
    };
}

rewrite! {
    /// Reads a performative by an independent implementation and writes it again; `None` if that
    /// refuses it.
    rewrite, performatives { Open, Begin, Attach, Flow, Transfer, Disposition, Detach, End, Close }
}

rewrite! {
    /// [`rewrite`] for the performatives of SASL.
    rewrite_sasl, sasl { SaslMechanisms, SaslInit, SaslChallenge, SaslResponse, SaslOutcome }
}

/// Reads a value of one type by an independent implementation and writes it again.
pub(crate) fn rewrite_as<T: Serialize + DeserializeOwned>(octets: &[u8]) -> Option<Vec<u8>> {
    let theirs: T = serde_amqp::from_slice(octets).ok()?;
    serde_amqp::to_vec(&theirs).ok()
}
