//! Values of every AMQP type and messages of every shape, sent by each library and received by
//! each other through `hopline-broker`.

use std::collections::BTreeMap;

use hopline_messenger::Message;
use hopline_tests::HoplineBroker;
use hopline_tests::values::{
    Case, Deviations, Direction, ValueClient, bare, cases, hex, receive_all, send_messages,
    send_octets, text_of_message,
};

/// A message in the queue: who sent it, which case it is, and the octets that left the sender.
struct Sent<'a> {
    sender: &'static str,
    case: &'a Case,
    octets: Vec<u8>,
}

#[test]
fn our_decoder_reads_every_case() {
    for case in cases() {
        let text = text_of_message(&case.octets);
        assert_eq!(text.as_ref(), Ok(&case.text), "{}", case.name);
    }
}

#[test]
fn values_come_through_as_they_were_sent() {
    let (cases, broker) = (cases(), HoplineBroker::start(&[]));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut sent = runtime.block_on(sent_by_ours(&broker, &cases));
    for client in ValueClient::ALL {
        sent.extend(sent_by(client, &broker, &cases));
    }
    for client in ValueClient::ALL {
        browsed_by(client, &broker, &sent);
    }
    let received = runtime.block_on(receive_all(&broker.url("values"), sent.len()));
    for (sent, octets) in sent.iter().zip(received) {
        let route = format!("{} from {}", sent.case.name, sent.sender);
        assert_eq!(hex(bare(&octets)), hex(bare(&sent.octets)), "{route}: octets changed");
        assert_eq!(text_of_message(&octets), text_of_message(&sent.octets), "{route}");
        let message = Message::decode(&octets.into()).expect("a message");
        assert!(message.delivery_annotations.is_empty(), "{route}: they end at the broker");
    }
}

/// The cases octet by octet, then decoded and encoded by the messenger.
async fn sent_by_ours<'a>(broker: &HoplineBroker, cases: &'a [Case]) -> Vec<Sent<'a>> {
    let octets: Vec<_> = cases.iter().map(|case| case.octets.clone()).collect();
    send_octets(broker.host(), "values", octets.clone()).await;
    let raw =
        cases.iter().zip(octets).map(|(case, octets)| Sent { sender: "octets", case, octets });
    let decoded = |case: &Case| Message::decode(&case.octets.clone().into()).expect("a message");
    let messages: Vec<_> = cases.iter().map(decoded).collect();
    let mut own = Vec::new();
    let mut failed = BTreeMap::new();
    for (case, message) in cases.iter().zip(&messages) {
        let mut octets = Vec::new();
        hopline_messenger::driver::engine::wire::codec::Encode::encode(message, &mut octets);
        note_sent(case, &octets, &mut failed);
        own.push(Sent { sender: "hopline", case, octets });
    }
    let names: Vec<_> = cases.iter().map(|case| case.name.as_str()).collect();
    Deviations::read().assert_exact("hopline", Direction::Sends, &names, &failed);
    send_messages(&broker.url("values"), messages).await;
    raw.chain(own).collect()
}

/// What a library encodes must mean what it was asked to say.
fn note_sent<'a>(case: &'a Case, octets: &[u8], failed: &mut BTreeMap<&'a str, String>) {
    match text_of_message(octets) {
        Ok(text) if text == case.text => {}
        Ok(text) => drop(failed.insert(&case.name, format!("{} means {text}", hex(octets)))),
        Err(error) => drop(failed.insert(&case.name, format!("{}: {error}", hex(octets)))),
    }
}

fn sent_by<'a>(client: ValueClient, broker: &HoplineBroker, cases: &'a [Case]) -> Vec<Sent<'a>> {
    let lines = client.send(broker.host(), "values", cases.iter().map(|case| &case.text));
    let (mut sent, mut failed) = (Vec::new(), BTreeMap::new());
    for (case, line) in cases.iter().zip(lines) {
        match line.octets {
            Some(octets) => {
                note_sent(case, &octets, &mut failed);
                sent.push(Sent { sender: client.name(), case, octets });
            }
            None => {
                failed.insert(&case.name, line.error.unwrap_or_default());
            }
        }
    }
    let names: Vec<_> = cases.iter().map(|case| case.name.as_str()).collect();
    Deviations::read().assert_exact(client.name(), Direction::Sends, &names, &failed);
    sent
}

/// The table is exact for what was sent octet by octet; other senders choose other forms of the
/// same values, and then less may fail, not more. What they did not say right is left out.
fn browsed_by(client: ValueClient, broker: &HoplineBroker, sent: &[Sent<'_>]) {
    let deviations = Deviations::read();
    let lines = client.browse(broker.host(), "values", sent.len());
    let (mut tried, mut failed) = (Vec::new(), BTreeMap::new());
    for (sent, line) in sent.iter().zip(lines) {
        let name = sent.case.name.as_str();
        let route = format!("{name} from {} at {}", sent.sender, client.name());
        if let Some(octets) = line.octets {
            assert_eq!(hex(bare(&octets)), hex(bare(&sent.octets)), "{route}: octets changed");
        }
        if deviations.lists(sent.sender, Direction::Sends, name) {
            continue;
        }
        let meant = text_of_message(&sent.octets).expect("else it is a deviation");
        let text = line.text.map(without_timeline);
        let is_right = text == Some(meant);
        let said = || line.error.unwrap_or_else(|| format!("{text:?}"));
        if sent.sender == "octets" {
            tried.push(name);
            if !is_right {
                failed.insert(name, said());
            }
        } else if !is_right && !deviations.lists(client.name(), Direction::Receives, name) {
            panic!("{route}: {}", said());
        }
    }
    deviations.assert_exact(client.name(), Direction::Receives, &tried, &failed);
}

fn without_timeline(mut text: serde_json::Value) -> serde_json::Value {
    let Some(fields) = text.as_object_mut() else { return text };
    if let Some(pairs) = fields.get_mut("message-annotations").and_then(|it| it.as_array_mut()) {
        pairs.retain(|pair| pair[0][1] != hopline_timeline::ANNOTATION);
        if pairs.is_empty() {
            fields.remove("message-annotations");
        }
    }
    text
}
