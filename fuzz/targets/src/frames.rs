//! Octets from a peer with which the connection is open: what becomes of them does not depend on
//! how they are cut, whatever is answered is well-formed, and memory stays within the limits.

use crate::engine_support::{End, Script, config, open};
use crate::input::Input;
use crate::memory;
use hopline_engine::timeline::Instant;
use hopline_engine::wire::frame::{self, FrameHeader, FrameType, ProtocolHeader};
use hopline_engine::wire::performative::{Frame, Performative};
use hopline_engine::{ClientSasl, Config, Connection};

const NOW: Instant = Instant::from_nanos(1);

/// What the first octet says of a run.
struct Setup {
    is_client: bool,
    /// Small limits, which the octets can reach, in place of the usual ones.
    is_tight: bool,
    /// The octets are bodies of frames; their headers are added.
    is_mended: bool,
}

/// The bit of the first octet that says that headers are added.
pub(crate) const MENDED: u8 = 4;

impl Setup {
    const CLIENT: u8 = 1;
    const TIGHT: u8 = 2;

    const fn of(octet: u8) -> Self {
        Self {
            is_client: octet & Self::CLIENT != 0,
            is_tight: octet & Self::TIGHT != 0,
            is_mended: octet & MENDED != 0,
        }
    }

    fn config(&self) -> Config {
        if !self.is_tight {
            return config();
        }
        Config {
            max_frame_size: 512,
            channel_max: 3,
            handle_max: 7,
            incoming_window: 4,
            max_message_size: 2_000,
            max_partial_octets: 3_000,
            max_unsettled: 4,
            outbox_high_water: 600,
            outbox_max: 4_000,
            ..config()
        }
    }

    /// One end of an open connection, with a user who answers and grants credit.
    fn end(&self) -> End {
        let mut end = if self.is_client { client(self.config()) } else { server(self.config()) };
        assert!(end.connection.is_open());
        (end.credit, end.events) = (20, Vec::new());
        end
    }
}

fn server(config: Config) -> End {
    Script::opened(config).end
}

fn client(config: Config) -> End {
    let mut end = End::new(Connection::client(config, ClientSasl::None, NOW));
    end.write_all(NOW);
    let mut hello = ProtocolHeader::Amqp.octets().to_vec();
    open().put(&mut hello, 0);
    end.read(&hello, NOW);
    end
}

/// One octet of setup, one for the size of the pieces (0: all at once); the rest is the stream.
pub fn run(octets: &[u8]) {
    let mut input = Input::new(octets);
    let setup = Setup::of(input.octet());
    let piece = match input.octet() {
        0 => usize::MAX,
        size => size.into(),
    };
    let stream = if setup.is_mended { mend(&mut input) } else { input.take(usize::MAX).to_vec() };
    if setup.is_tight {
        memory::in_proportion(stream.len(), 512, 64 << 10, || feed(&setup, &stream, piece, |_| {}));
    } else {
        let told = |piece| {
            let mut events = Vec::new();
            feed(&setup, &stream, piece, |event| events.push(event));
            events
        };
        assert_eq!(told(usize::MAX), told(piece));
    }
}

/// Frames whose size and channel are an octet each, so that few changes make nonsense of the size.
fn mend(input: &mut Input<'_>) -> Vec<u8> {
    let mut stream = Vec::new();
    while !input.is_empty() {
        let (size, channel) = (input.octet(), input.octet());
        let at = frame::start(&mut stream, FrameType::Amqp, channel.into());
        stream.extend_from_slice(input.take(size.into()));
        frame::finish(&mut stream, at, 0);
    }
    stream
}

fn feed(setup: &Setup, stream: &[u8], piece: usize, mut told: impl FnMut(String)) {
    let mut end = setup.end();
    // One frame more is answered before reading stops.
    let limit = setup.config().outbox_max + 4_000;
    for piece in stream.chunks(piece) {
        if end.connection.is_over() {
            break;
        }
        end.read(piece, NOW);
        loop {
            let waiting = end.connection.outbox().len();
            assert!(waiting <= limit, "{waiting} octets wait to be written");
            let written = end.write_all(NOW);
            check_frames(&written);
            // Who stopped reading for the sake of a full outbox goes on now.
            end.poll(NOW);
            end.take_events().into_iter().for_each(|event| told(format!("{event:?}")));
            if written.is_empty() {
                break;
            }
        }
    }
}

fn check_frames(mut octets: &[u8]) {
    while let Some(header) = FrameHeader::parse(octets, u32::MAX).expect("a frame's header") {
        let (frame, rest) = octets.split_at(header.size);
        let body = &frame[header.body..];
        assert!(body.is_empty() || Performative::decode(body).is_ok(), "{body:02x?}");
        octets = rest;
    }
    assert!(octets.is_empty(), "half a frame was written");
}
