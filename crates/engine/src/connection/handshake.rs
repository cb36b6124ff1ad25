use super::clock;
use super::fit::too_small;
use super::{Connection, Reading, advertised_ms};
use crate::config::{Config, Side};
use crate::event::Event;
use crate::fault::Fault;
use crate::link::Half;
use crate::sasl::ClientSasl;
use hopline_timeline::Instant;
use hopline_wire::frame::ProtocolHeader;
use hopline_wire::performative::{Open, SaslMechanisms};
use hopline_wire::{AmqpError, Fields, condition, limits};

impl Connection {
    pub(super) fn start_client(&mut self) {
        match self.side {
            Side::Client(ClientSasl::None) => {
                self.put_header(ProtocolHeader::Amqp);
                if !self.put_open() {
                    self.give_up_open();
                }
            }
            _ => self.put_header(ProtocolHeader::Sasl),
        }
    }

    pub(super) fn put_header(&mut self, header: ProtocolHeader) {
        self.outbox.tail().extend_from_slice(&header.octets());
    }

    /// `false`: it does not fit in a frame of the peer, even without what is optional.
    pub(super) fn put_open(&mut self) -> bool {
        let config = &self.config;
        let mut open = Open {
            container_id: config.container_id.clone(),
            hostname: config.hostname.clone(),
            max_frame_size: config.max_frame_size.max(limits::MIN_MAX_FRAME_SIZE),
            channel_max: config.channel_max,
            idle_time_out: advertised_ms(config.idle_timeout),
            outgoing_locales: Vec::new(),
            incoming_locales: Vec::new(),
            offered_capabilities: config.offered_capabilities.clone(),
            desired_capabilities: Vec::new(),
            properties: Some(properties(config)).filter(|fields| !fields.is_empty()),
        };
        if !self.put_if_fits(&open, 0) {
            open.properties = None;
            open.offered_capabilities.clear();
            if !self.put_if_fits(&open, 0) {
                return false;
            }
        }
        self.local = Half::Active;
        true
    }

    pub(super) fn give_up_open(&mut self) {
        self.reading = Reading::Over;
        self.tell_closed(
            false,
            Some(too_small("our open: use a shorter container-id and hostname")),
        );
    }

    /// Takes a protocol header from the input. `false`: more octets are needed.
    pub(super) fn read_header(&mut self) -> Result<bool, Fault> {
        let found = match ProtocolHeader::parse(self.input.get(..8).unwrap_or(&self.input)) {
            Ok(Some(header)) => header,
            Ok(None) => return Ok(false),
            Err(error) => {
                self.refuse_header();
                return Err(error.into());
            }
        };
        let _ = self.input.split_to(8);
        match (self.reading, found) {
            (Reading::AmqpHeader, ProtocolHeader::Amqp) => self.amqp_header_after_sasl(),
            (Reading::Header, _) => self.first_header(found)?,
            _ => return Err(out_of_place("a second SASL header")),
        }
        Ok(true)
    }

    /// A header that we don't speak is answered by one that we do (2.2).
    fn refuse_header(&mut self) {
        if matches!(self.side, Side::Server(_)) {
            self.put_header(ProtocolHeader::Sasl);
        }
    }

    fn amqp_header_after_sasl(&mut self) {
        if matches!(self.side, Side::Server(_)) {
            self.put_header(ProtocolHeader::Amqp);
        }
        self.reading = Reading::Frames;
    }

    fn first_header(&mut self, found: ProtocolHeader) -> Result<(), Fault> {
        match (&self.side, found) {
            (Side::Server(authenticator), ProtocolHeader::Sasl) => {
                let mechanisms = authenticator.mechanisms();
                self.put_header(ProtocolHeader::Sasl);
                self.put(&SaslMechanisms { sasl_server_mechanisms: mechanisms }, 0);
                self.reading = Reading::Sasl;
            }
            (Side::Server(authenticator), ProtocolHeader::Amqp) => {
                if !authenticator.allows_no_sasl() {
                    self.put_header(ProtocolHeader::Sasl);
                    let text = "this server asks for SASL before AMQP";
                    return Err(Fault::connection(condition::UNAUTHORIZED_ACCESS, text));
                }
                self.put_header(ProtocolHeader::Amqp);
                self.reading = Reading::Frames;
            }
            (Side::Client(ClientSasl::None), ProtocolHeader::Amqp) => {
                self.reading = Reading::Frames
            }
            (Side::Client(ClientSasl::None), ProtocolHeader::Sasl) => {
                let text = "the server asks for SASL: connect with ANONYMOUS or a user";
                return Err(Fault::connection(condition::UNAUTHORIZED_ACCESS, text));
            }
            (Side::Client(_), ProtocolHeader::Sasl) => self.reading = Reading::Sasl,
            (Side::Client(_), ProtocolHeader::Amqp) => {
                let text = "the server does not speak SASL: connect without it";
                return Err(Fault::connection(condition::NOT_IMPLEMENTED, text));
            }
        }
        Ok(())
    }

    pub(super) fn open(&mut self, channel: u16, open: Open, _now: Instant) -> Result<(), Fault> {
        if self.remote != Half::Idle {
            return Err(out_of_place("a second open"));
        }
        if channel != 0 {
            let text = "open belongs on channel 0";
            return Err(Fault::connection(condition::FRAMING_ERROR, text));
        }
        self.remote = Half::Active;
        // Larger frames than we read ourselves would only let one message hold up the others.
        let frame_size = open.max_frame_size.min(self.config.max_frame_size);
        self.peer.frame_size = frame_size.max(limits::MIN_MAX_FRAME_SIZE) as usize;
        if self.local == Half::Idle && !self.put_open() {
            self.give_up_open();
            return Ok(());
        }
        if open.max_frame_size < limits::MIN_MAX_FRAME_SIZE {
            let text = "max-frame-size is below 512";
            return Err(Fault::connection(condition::INVALID_FIELD, text));
        }
        self.peer.channel_max = open.channel_max;
        self.timers.opened(open.idle_time_out).map_err(Fault::Connection)?;
        self.begin_exchange(&open);
        self.events.push_back(Event::Opened(Box::new(open)));
        Ok(())
    }
}

fn properties(config: &Config) -> Fields {
    let mut fields = config.properties.clone();
    fields.0.extend(config.clock.as_ref().map(clock::property));
    fields
}

pub(super) fn out_of_place(what: &str) -> Fault {
    let error = AmqpError::new(condition::ILLEGAL_STATE, format!("{what} does not belong here"));
    Fault::Connection(error)
}
