//! Sends and browses values with fe2o3-amqp; `tests/values/README.md` has the command line.

mod text;

use std::error::Error;
use std::future::poll_fn;
use std::io::stdin;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use fe2o3_amqp::Connection;
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::link::{Receiver, RecvError, Sender};
use fe2o3_amqp::sasl_profile::SaslProfile;
use fe2o3_amqp::session::{Session, SessionHandle};
use fe2o3_amqp::types::messaging::message::__private::Serializable;
use fe2o3_amqp::types::messaging::{
    AmqpValue, Body, DistributionMode, Header, Message, Priority, Source,
};
use fe2o3_amqp::types::primitives::Value;
use serde_json::json;

type Failure = Box<dyn Error + Send + Sync>;
type AnyMessage = Message<Body<Value>>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [verb, host, address, count @ ..] = &arguments[..] else {
        return Err("usage: fe2o3_values send|browse HOST:PORT ADDRESS [COUNT]".into());
    };
    let mut connection = Connection::builder()
        .container_id(format!("fe2o3-values-{}", std::process::id()))
        .sasl_profile(SaslProfile::Anonymous)
        .open(format!("amqp://{host}").as_str())
        .await?;
    let mut session = Session::begin(&mut connection).await?;
    match (verb.as_str(), count) {
        ("send", []) => send(&mut session, address).await?,
        ("browse", [count]) => browse(&mut session, address, count.parse()?).await?,
        _ => return Err("send takes no count, browse takes one".into()),
    }
    session.end().await?;
    connection.close().await?;
    Ok(())
}

/// Sends the messages whose texts are the lines of standard input.
async fn send(session: &mut SessionHandle<()>, address: &str) -> Result<(), Failure> {
    let mut sender = Sender::attach(session, "fe2o3-values-sender", address).await?;
    for line in stdin().lines() {
        let prepared = serde_json::from_str(&line?).map_err(Failure::from).and_then(prepare);
        match prepared {
            Ok((message, octets)) => {
                println!("{}", json!({ "octets": octets }));
                sender.send(message).await?.accepted_or_else(|outcome| format!("{outcome:?}"))?;
            }
            Err(error) => println!("{}", json!({ "error": error.to_string() })),
        }
    }
    sender.close().await?;
    Ok(())
}

fn prepare(line: serde_json::Value) -> Result<(AnyMessage, String), Failure> {
    let message = built(&line)?;
    let octets = serde_amqp::to_vec(&Serializable(&message))?;
    Ok((message, text::hex(&octets)))
}

fn built(line: &serde_json::Value) -> Result<AnyMessage, Failure> {
    let section = |name: &str| line.get(name).map(text::built_pairs).transpose();
    let parts = line["body"][1].as_array().into_iter().flatten();
    let body = match line["body"][0].as_str() {
        Some("data") => text::data(parts)?,
        Some("sequence") => text::sequences(parts)?,
        _ => Body::Value(AmqpValue(text::built(&line["body"][1])?)),
    };
    let header = Header {
        durable: line["durable"] == true,
        priority: Priority(line["priority"].as_u64().unwrap_or(4).try_into()?),
        ..Header::default()
    };
    Ok(Message {
        header: Some(header),
        delivery_annotations: None,
        message_annotations: section("message-annotations")?.map(text::annotations).transpose()?,
        properties: line.get("properties").map(text::built_properties).transpose()?,
        application_properties: section("application-properties")?
            .map(text::application_properties)
            .transpose()?,
        body,
        footer: section("footer")?.map(text::footer).transpose()?,
    })
}

/// Prints what lies in a queue.
async fn browse(session: &mut SessionHandle<()>, address: &str, count: u32) -> Result<(), Failure> {
    let source =
        Source::builder().address(address).distribution_mode(DistributionMode::Copy).build();
    let mut receiver = Receiver::builder()
        .name("fe2o3-values-browser")
        .source(source)
        .credit_mode(CreditMode::Manual)
        .attach(session)
        .await?;
    receiver.set_credit(count).await?;
    for _ in 0..count {
        match caught(receiver.recv::<Body<Value>>()).await {
            Err(panic) => println!("{}", json!({ "error": panic })),
            Ok(Ok(delivery)) => {
                receiver.accept(&delivery).await?;
                println!("{}", json!({ "message": text::of_message(delivery.message()) }));
            }
            Ok(Err(RecvError::MessageDecode(error))) => {
                receiver.accept(error.info).await?;
                println!("{}", json!({ "error": error.source.to_string() }));
            }
            Ok(Err(error)) => return Err(error.into()),
        }
    }
    receiver.close().await?;
    Ok(())
}

/// The library's decoder panics on some arrays, where it counts more octets than there are; the
/// text of the panic then.
async fn caught<T>(future: impl Future<Output = T>) -> Result<T, &'static str> {
    let mut future = pin!(future);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        polled.map_or(Poll::Ready(Err("it panicked")), |poll| poll.map(Ok))
    })
    .await
}
