use crate::engine_support::{attach, detach, disposition, end, flow, grant, transfer};
use hopline_engine::wire::codec::Encode;
use hopline_engine::wire::message::{Header, Message, Properties};
use hopline_engine::wire::outcome::TransactionalState;
use hopline_engine::wire::performative::{Attach, Flow, Transfer};
use hopline_engine::wire::terminus::{Coordinator, Source, Target, TargetKind};
use hopline_engine::wire::{DeliveryState, Fields, Role, Symbol, Value};

/// Steps of the target `broker`, one after the other.
#[derive(Default)]
struct Steps(Vec<u8>);

impl Steps {
    /// A step that is told by its number, and what that wants to know.
    fn other(mut self, peer: u8, op: u8, more: &[u8]) -> Self {
        self.0.extend_from_slice(&[peer, op]);
        self.0.extend_from_slice(more);
        self
    }

    fn connect(self, peer: u8) -> Self {
        self.other(peer, 0, &[])
    }

    fn say(self, peer: u8, performative: &impl Encode) -> Self {
        self.send(peer, performative, &[])
    }

    fn send(self, peer: u8, performative: &impl Encode, payload: &[u8]) -> Self {
        let mut body = Vec::new();
        performative.encode(&mut body);
        body.extend_from_slice(payload);
        let size = u8::try_from(body.len()).expect("a body of the seeds is short");
        self.other(peer, 0, &[&[size, 0][..], &body].concat())
    }

    fn take_all(self, peer: u8) -> Self {
        self.other(peer, 11, &[2])
    }

    /// A second goes by, and what has expired is swept away.
    fn wait(self, peer: u8) -> Self {
        self.other(peer, 12, &[1]).other(peer, 13, &[])
    }

    fn cut(self, peer: u8) -> Self {
        self.other(peer, 15, &[])
    }
}

fn producer(name: &str, address: &str) -> Attach {
    let target = TargetKind::Target(Target::at(address));
    Attach { target: Some(Box::new(target)), ..attach(name, 0, Role::Sender) }
}

fn consumer(name: &str, source: Source) -> Attach {
    Attach { source: Some(Box::new(source)), ..attach(name, 1, Role::Receiver) }
}

fn encoded(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    message.encode(&mut out);
    out
}

fn text(to: Option<&str>, ttl: Option<u32>) -> Vec<u8> {
    let properties = Properties { to: to.map(Into::into), ..Properties::default() };
    let header = Header { ttl, priority: 7, ..Header::default() };
    let application_properties = vec![("n".to_owned(), Value::Int(1))];
    encoded(&Message { header, properties, application_properties, ..Message::data("text") })
}

/// What some peers may do at a broker.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let all = [queue(), topic(), expiry(), dynamic(), relay(), transaction()];
    all.map(|steps| steps.0).into()
}

/// A message from one peer to the other, accepted; another one, rejected; then one leaves.
fn queue() -> Steps {
    let accepted = disposition(Role::Receiver, 0, 0, Some(DeliveryState::Accepted));
    let rejected = DeliveryState::rejected(Symbol::from_static("amqp:decode-error"), "no");
    Steps::default()
        .connect(0)
        .connect(1)
        .say(0, &producer("in", "urgent"))
        .send(0, &transfer(0, 0), &text(None, None))
        .send(0, &transfer(0, 1), &text(None, None))
        .say(1, &consumer("out", Source::at("urgent")))
        .say(1, &grant(1, 0, 10))
        .take_all(1)
        .say(1, &accepted)
        .say(1, &disposition(Role::Receiver, 1, 1, Some(rejected)))
        .say(0, &detach(0, true))
        .cut(1)
}

/// A durable subscription with a selector, left and come back to.
fn topic() -> Steps {
    let selector = (Value::Ulong(0x0000_468c_0000_0004), Value::from("n > 0 AND colour IS NULL"));
    let selector = Value::Described(Box::new(selector));
    let filter = Fields(vec![(Symbol::from_static("s"), selector)]);
    let source = Source { durable: 2, filter: Some(filter), ..Source::at("topic/t") };
    let source = Source { expiry_policy: Symbol::from_static("never"), ..source };
    Steps::default()
        .connect(0)
        .connect(1)
        .say(1, &consumer("sub", source.clone()))
        .say(1, &detach(1, false))
        .say(0, &producer("in", "topic/t"))
        .send(0, &transfer(0, 0), &text(None, None))
        .say(1, &consumer("sub", source))
        .say(1, &grant(1, 0, 1))
        .say(1, &disposition(Role::Receiver, 0, 0, Some(DeliveryState::modified(true, true))))
        .say(1, &detach(1, true))
}

fn expiry() -> Steps {
    Steps::default()
        .connect(0)
        .say(0, &producer("in", "q"))
        .send(0, &transfer(0, 0), &text(None, Some(10)))
        .wait(0)
        .say(0, &consumer("dead", Source::at("dead")))
        .say(0, &Flow { drain: true, next_outgoing_id: 1, ..grant(1, 0, 10) })
        .say(0, &end())
}

fn dynamic() -> Steps {
    let source = Source { address: None, dynamic: true, ..Source::at("") };
    Steps::default()
        .connect(0)
        .say(0, &consumer("mine", source))
        .say(0, &Flow { echo: true, ..flow() })
        .take_all(0)
        .say(0, &detach(1, true))
}

/// Messages that say themselves where to go.
fn relay() -> Steps {
    let target = TargetKind::Target(Target { address: None, ..Target::at("") });
    let relay = Attach { target: Some(Box::new(target)), ..attach("any", 0, Role::Sender) };
    Steps::default()
        .connect(0)
        .say(0, &relay)
        .send(0, &transfer(0, 0), &text(Some("q"), None))
        .send(0, &transfer(0, 1), &text(Some("topic/t"), None))
        .send(0, &transfer(0, 2), &text(None, None))
}

/// A transaction: declared, posted to, discharged.
fn transaction() -> Steps {
    let coordinator = TargetKind::Coordinator(Coordinator { capabilities: Vec::new() });
    let control = Attach { target: Some(Box::new(coordinator)), ..attach("tx", 2, Role::Sender) };
    let ask = |code, fields| {
        let ask = Value::Described(Box::new((Value::Ulong(code), Value::List(fields))));
        encoded(&Message::value(ask))
    };
    // Ids of transactions are short numbers; where they are not, the broker says so.
    let id = bytes::Bytes::from_static(&[0]);
    let state = TransactionalState { txn_id: id.clone(), outcome: None };
    let post = Transfer { state: Some(DeliveryState::Transactional(state)), ..transfer(0, 1) };
    let discharge = vec![Value::Binary(id), Value::Boolean(false)];
    Steps::default()
        .connect(0)
        .say(0, &control)
        .say(0, &producer("in", "q"))
        .send(0, &transfer(2, 0), &ask(0x31, vec![Value::Null]))
        .send(0, &post, &text(None, None))
        .send(0, &transfer(2, 2), &ask(0x32, discharge))
}
