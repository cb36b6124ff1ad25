//! An AMQP 1.0 client on fe2o3-amqp, a peer of the interoperation tests;
//! `tests/peers/README.md` has its command line.

use std::error::Error;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use fe2o3_amqp::connection::ConnectionHandle;
use fe2o3_amqp::link::delivery::{DeliveryFut, Sendable};
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::link::{Receiver, SendError, Sender};
use fe2o3_amqp::sasl_profile::SaslProfile;
use fe2o3_amqp::session::{Session, SessionHandle};
use fe2o3_amqp::types::definitions::SenderSettleMode;
use fe2o3_amqp::types::messaging::{
    ApplicationProperties, Body, Data, Header, Message, MessageAnnotations, MessageId, Outcome,
    Properties, annotations::OwnedKey,
};
use fe2o3_amqp::types::primitives::{SimpleValue, Value};
use serde_json::json;

const NAME: &str = "fe2o3";

type Failure = Box<dyn Error + Send + Sync>;

#[derive(Clone, Copy, ValueEnum)]
enum Verb {
    Send,
    Receive,
}

#[derive(Parser)]
struct Arguments {
    verb: Verb,
    /// HOST:PORT
    host: String,
    address: String,
    #[arg(long, default_value_t = 1)]
    count: u32,
    /// Octets of a body
    #[arg(long, default_value_t = 100)]
    size: u32,
    #[arg(long)]
    durable: bool,
    #[arg(long)]
    settled: bool,
    /// Seconds
    #[arg(long, default_value_t = 30.0)]
    timeout: f64,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    let limit = Duration::from_secs_f64(arguments.timeout);
    tokio::time::timeout(limit, run(&arguments))
        .await
        .map_err(|_| format!("not done within {limit:?}"))?
}

async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut connection = fe2o3_amqp::Connection::builder()
        .container_id(format!("{NAME}-{}", std::process::id()))
        .sasl_profile(SaslProfile::Anonymous)
        .open(format!("amqp://{}", arguments.host).as_str())
        .await?;
    let mut session = Session::begin(&mut connection).await?;
    match arguments.verb {
        Verb::Send => send(&mut session, arguments).await?,
        Verb::Receive => receive(&mut session, arguments).await?,
    }
    leave(session, connection).await
}

async fn leave(
    mut session: SessionHandle<()>,
    mut connection: ConnectionHandle<()>,
) -> Result<(), Failure> {
    session.end().await?;
    connection.close().await?;
    Ok(())
}

async fn send(session: &mut SessionHandle<()>, arguments: &Arguments) -> Result<(), Failure> {
    let mode =
        if arguments.settled { SenderSettleMode::Settled } else { SenderSettleMode::Unsettled };
    let mut sender = Sender::builder()
        .name(format!("{NAME}-sender"))
        .target(arguments.address.as_str())
        .sender_settle_mode(mode)
        .attach(session)
        .await?;
    let mut outcomes: Vec<DeliveryFut<Result<Outcome, SendError>>> = Vec::new();
    for n in 0..arguments.count {
        let sendable =
            Sendable::builder().message(message(n, arguments)).settled(arguments.settled).build();
        outcomes.push(sender.send_batchable(sendable).await?);
    }
    let [mut accepted, mut rejected, mut released, mut modified] = [0_u32; 4];
    for outcome in outcomes {
        match outcome.await? {
            Outcome::Accepted(_) => accepted += 1,
            Outcome::Rejected(_) => rejected += 1,
            Outcome::Released(_) => released += 1,
            Outcome::Modified(_) => modified += 1,
            Outcome::Declared(_) => return Err("declared is no outcome of a message".into()),
        }
    }
    sender.close().await?;
    // The library calls a message that was sent settled accepted.
    let (accepted, settled) = if arguments.settled { (0, accepted) } else { (accepted, 0) };
    let summary = json!({
        "sent": arguments.count, "accepted": accepted, "rejected": rejected,
        "released": released, "modified": modified, "settled": settled,
    });
    println!("{summary}");
    if accepted + settled == arguments.count { Ok(()) } else { Err("not all accepted".into()) }
}

fn message(n: u32, arguments: &Arguments) -> Message<Data> {
    let body: Vec<u8> = (0..arguments.size).map(|i| ((n + i) % 251) as u8).collect();
    Message::builder()
        .header(Header::builder().durable(arguments.durable).build())
        .message_annotations(MessageAnnotations::builder().insert("x-opt-sender", NAME).build())
        .properties(Properties::builder().message_id(format!("{NAME}-{n}")).build())
        .application_properties(ApplicationProperties::builder().insert("n", n).build())
        .data(body)
        .build()
}

async fn receive(session: &mut SessionHandle<()>, arguments: &Arguments) -> Result<(), Failure> {
    let mut receiver = Receiver::builder()
        .name(format!("{NAME}-receiver"))
        .source(arguments.address.as_str())
        .credit_mode(CreditMode::Manual)
        .attach(session)
        .await?;
    receiver.set_credit(arguments.count).await?;
    for _ in 0..arguments.count {
        let delivery = receiver.recv::<Body<Value>>().await?;
        receiver.accept(&delivery).await?;
        println!("{}", described(delivery.message()));
    }
    receiver.close().await?;
    Ok(())
}

fn described(message: &Message<Body<Value>>) -> serde_json::Value {
    let header = message.header.clone().unwrap_or_default();
    let annotations: serde_json::Map<_, _> = message
        .message_annotations
        .iter()
        .flat_map(|annotations| annotations.0.iter())
        .map(|(key, value)| (key_text(key), plain(value)))
        .collect();
    json!({
        "message_id": message.properties.as_ref().and_then(|p| p.message_id.as_ref()).map(id_text),
        "n": message.application_properties.as_ref().and_then(|p| p.0.get("n")).and_then(number),
        "body": body_hex(&message.body),
        "annotations": annotations,
        "durable": header.durable,
        "priority": header.priority.0,
        "ttl_ms": header.ttl,
        "first_acquirer": header.first_acquirer,
        "delivery_count": header.delivery_count,
        // The library does not tell.
        "settled": null,
    })
}

fn key_text(key: &OwnedKey) -> String {
    match key {
        OwnedKey::Symbol(symbol) => symbol.0.clone(),
        OwnedKey::Ulong(number) => number.to_string(),
    }
}

fn id_text(id: &MessageId) -> String {
    match id {
        MessageId::String(text) => text.clone(),
        other => format!("{other:?}"),
    }
}

fn number(value: &SimpleValue) -> Option<i64> {
    match *value {
        SimpleValue::Int(n) => Some(n.into()),
        SimpleValue::Uint(n) => Some(n.into()),
        SimpleValue::Long(n) => Some(n),
        SimpleValue::Ubyte(n) => Some(n.into()),
        _ => None,
    }
}

fn plain(value: &Value) -> serde_json::Value {
    match value {
        Value::Binary(octets) => hex(octets).into(),
        Value::String(text) => text.clone().into(),
        Value::Symbol(symbol) => symbol.0.clone().into(),
        other => format!("{other:?}").into(),
    }
}

fn body_hex(body: &Body<Value>) -> Option<String> {
    match body {
        Body::Data(sections) => Some(sections.iter().map(|data| hex(&data.0)).collect()),
        Body::Value(value) => match &value.0 {
            Value::Binary(octets) => Some(hex(octets)),
            _ => None,
        },
        Body::Sequence(_) | Body::Empty => None,
    }
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
