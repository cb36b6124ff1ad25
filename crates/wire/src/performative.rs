//! The performatives of part 2 (2.7) and of SASL (part 5, 5.3.3).

use crate::codec::{Encode, Reader};
use crate::composite::Descriptor;
use crate::definitions::{ReceiverSettleMode, SaslCode, SenderSettleMode};
use crate::frame::{self, FrameType};
use crate::terminus::{Source, TargetKind};
use crate::{
    AmqpError, DeliveryState, DeliveryTag, Fields, Role, Symbol, Value, WireError, composite,
};
use bytes::Bytes;

composite! {
    /// Negotiates a connection (2.7.1).
    Open = 0x10 "amqp:open:list" {
        /// The id of the source container.
        container_id: String => required,
        /// The name of the target host.
        hostname: Option<String> => optional,
        /// Octets of the largest frame that the sender of this reads.
        max_frame_size: u32 => or(u32::MAX),
        /// The highest channel that may be used.
        channel_max: u16 => or(u16::MAX),
        /// Milliseconds; half of when the sender of this gives up on its peer.
        idle_time_out: Option<u32> => optional,
        /// Locales for text.
        outgoing_locales: Vec<Symbol> => multiple,
        /// Locales that are read.
        incoming_locales: Vec<Symbol> => multiple,
        /// Extensions offered.
        offered_capabilities: Vec<Symbol> => multiple,
        /// Extensions wanted.
        desired_capabilities: Vec<Symbol> => multiple,
        /// About the container.
        properties: Option<Fields> => optional,
    }
}

composite! {
    /// Begins a session (2.7.2).
    Begin = 0x11 "amqp:begin:list" {
        /// In an answer: the channel that the peer chose.
        remote_channel: Option<u16> => optional,
        /// The transfer-id of the next transfer.
        next_outgoing_id: u32 => required,
        /// Transfers that can be taken.
        incoming_window: u32 => required,
        /// Transfers that may be sent.
        outgoing_window: u32 => required,
        /// The highest handle that may be used.
        handle_max: u32 => or(u32::MAX),
        /// Extensions offered.
        offered_capabilities: Vec<Symbol> => multiple,
        /// Extensions wanted.
        desired_capabilities: Vec<Symbol> => multiple,
        /// About the session.
        properties: Option<Fields> => optional,
    }
}

composite! {
    /// Attaches a link (2.7.3).
    Attach = 0x12 "amqp:attach:list" {
        /// The name of the link.
        name: String => required,
        /// Its number until the detach.
        handle: u32 => required,
        /// The role of the sender of this.
        role: Role => required,
        /// When the sender settles.
        snd_settle_mode: SenderSettleMode => or(SenderSettleMode::Mixed),
        /// When the receiver settles.
        rcv_settle_mode: ReceiverSettleMode => or(ReceiverSettleMode::First),
        /// Where messages come from.
        source: Option<Box<Source>> => optional,
        /// Where messages go.
        target: Option<Box<TargetKind>> => optional,
        /// Deliveries of an earlier attachment.
        unsettled: Option<Value> => map,
        /// Whether `unsettled` is not all.
        incomplete_unsettled: bool => or(false),
        /// The sender's delivery-count; mandatory from a sender.
        initial_delivery_count: Option<u32> => optional,
        /// Octets of the largest message; 0 for no limit.
        max_message_size: u64 => or(0),
        /// Extensions offered.
        offered_capabilities: Vec<Symbol> => multiple,
        /// Extensions wanted.
        desired_capabilities: Vec<Symbol> => multiple,
        /// About the link.
        properties: Option<Fields> => optional,
    }
}

composite! {
    /// Updates windows and credit (2.7.4).
    #[derive(Default)]
    Flow = 0x13 "amqp:flow:list" {
        /// The transfer-id that is awaited; absent before the peer's begin was seen.
        next_incoming_id: Option<u32> => optional,
        /// Transfers that can be taken from there.
        incoming_window: u32 => required,
        /// The transfer-id of the next transfer.
        next_outgoing_id: u32 => required,
        /// Transfers that may be sent.
        outgoing_window: u32 => required,
        /// The link, if it is about one.
        handle: Option<u32> => optional,
        /// The link's count of deliveries.
        delivery_count: Option<u32> => optional,
        /// Deliveries that may be sent from there.
        link_credit: Option<u32> => optional,
        /// Messages that wait at the sender.
        available: Option<u32> => optional,
        /// Use up the credit now.
        drain: bool => or(false),
        /// Answer with a flow.
        echo: bool => or(false),
        /// Extensions.
        properties: Option<Fields> => optional,
    }
}

composite! {
    /// Carries a delivery, or a part of one (2.7.5).
    Transfer = 0x14 "amqp:transfer:list" {
        /// The link.
        handle: u32 => required,
        /// The delivery; may be left out after the first transfer.
        delivery_id: Option<u32> => optional,
        /// Its tag; may be left out after the first transfer.
        delivery_tag: Option<DeliveryTag> => optional,
        /// The message format.
        message_format: Option<u32> => optional,
        /// Whether the sender has settled it.
        settled: Option<bool> => optional,
        /// More transfers follow.
        more: bool => or(false),
        /// Overrides the link's mode.
        rcv_settle_mode: Option<ReceiverSettleMode> => optional,
        /// The state at the sender.
        state: Option<DeliveryState> => optional,
        /// The delivery goes on from an earlier attachment.
        resume: bool => or(false),
        /// The delivery is given up.
        aborted: bool => or(false),
        /// The disposition may wait.
        batchable: bool => or(false),
    }
}

composite! {
    /// Tells the state of deliveries (2.7.6).
    Disposition = 0x15 "amqp:disposition:list" {
        /// The role of the sender of this.
        role: Role => required,
        /// The first delivery-id.
        first: u32 => required,
        /// The last; absent means the first.
        last: Option<u32> => optional,
        /// Whether they are settled.
        settled: bool => or(false),
        /// Their state.
        state: Option<DeliveryState> => optional,
        /// The answer may wait.
        batchable: bool => or(false),
    }
}

composite! {
    /// Detaches a link (2.7.7).
    Detach = 0x16 "amqp:detach:list" {
        /// The link.
        handle: u32 => required,
        /// Whether the terminus is given up too.
        closed: bool => or(false),
        /// Why.
        error: Option<Box<AmqpError>> => optional,
    }
}

composite! {
    /// Ends a session (2.7.8).
    End = 0x17 "amqp:end:list" {
        /// Why.
        error: Option<Box<AmqpError>> => optional,
    }
}

composite! {
    /// Closes a connection (2.7.9).
    Close = 0x18 "amqp:close:list" {
        /// Why.
        error: Option<Box<AmqpError>> => optional,
    }
}

composite! {
    /// The mechanisms that the server offers (5.3.3.1).
    SaslMechanisms = 0x40 "amqp:sasl-mechanisms:list" {
        /// In the order of the server's preference.
        sasl_server_mechanisms: Vec<Symbol> => multiple_required,
    }
}

composite! {
    /// The client's choice (5.3.3.2).
    SaslInit = 0x41 "amqp:sasl-init:list" {
        /// The mechanism.
        mechanism: Symbol => required,
        /// Its first octets.
        initial_response: Option<Bytes> => optional,
        /// The host that the client wants.
        hostname: Option<String> => optional,
    }
}

composite! {
    /// A question of the server (5.3.3.3).
    SaslChallenge = 0x42 "amqp:sasl-challenge:list" {
        /// The mechanism's octets.
        challenge: Bytes => required,
    }
}

composite! {
    /// The client's answer (5.3.3.4).
    SaslResponse = 0x43 "amqp:sasl-response:list" {
        /// The mechanism's octets.
        response: Bytes => required,
    }
}

composite! {
    /// What came of it (5.3.3.5).
    SaslOutcome = 0x44 "amqp:sasl-outcome:list" {
        /// The verdict.
        code: SaslCode => required,
        /// The mechanism's last octets.
        additional_data: Option<Bytes> => optional,
    }
}

macro_rules! performatives {
    ($(#[$meta:meta])* $enum:ident, $expected:literal, $frame:expr, { $($name:ident),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, clippy::large_enum_variant)]
        pub enum $enum { $($name($name)),+ }

        impl $enum {
            /// Reads the performative at the start of a frame's body, and how many octets it takes.
            ///
            /// # Errors
            /// Octets that are no performative of this frame type, or not as the standard has it.
            pub fn decode(body: &[u8]) -> Result<(Self, usize), WireError> {
                let mut r = Reader::new(body);
                let descriptor = Descriptor::read(&mut r, $expected)?;
                if let Descriptor::Code(code) = descriptor {
                    match u8::try_from(code) {
                        $(Ok($name::CODE) => {
                            let fields = $name::decode_fields(&mut r)?;
                            return Ok((Self::$name(fields), r.position()));
                        })+
                        _ => {}
                    }
                }
                $(if descriptor.is($name::CODE.into(), $name::SYMBOL) {
                    return Ok((Self::$name($name::decode_fields(&mut r)?), r.position()));
                })+
                Err(descriptor.unexpected($expected))
            }
        }

        impl Encode for $enum {
            fn encode(&self, out: &mut Vec<u8>) {
                match self { $(Self::$name(performative) => performative.encode(out)),+ }
            }
        }

        $(impl Frame for $name {
            const KIND: FrameType = $frame;
        })+
    };
}

/// A performative that makes a frame of its own.
pub trait Frame: Encode {
    /// The type of the frame.
    const KIND: FrameType;

    /// Appends a whole frame without payload.
    fn put(&self, out: &mut Vec<u8>, channel: u16) {
        let at = frame::start(out, Self::KIND, channel);
        self.encode(out);
        frame::finish(out, at, 0);
    }
}

performatives! {
    /// A performative of an AMQP frame.
    Performative, "a performative", FrameType::Amqp,
    { Transfer, Flow, Disposition, Open, Begin, Attach, Detach, End, Close }
}

performatives! {
    /// A performative of a SASL frame.
    SaslPerformative, "a SASL performative", FrameType::Sasl,
    { SaslMechanisms, SaslInit, SaslChallenge, SaslResponse, SaslOutcome }
}
