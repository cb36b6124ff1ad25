//! What reaches the consumer of a message, and what becomes of one that is none.

use crate::support::{
    Broker, Client, Raw, attach, body, condition_of, config, decoded, encoded, text, transfer,
    with_ttl,
};
use hopline_broker::{Config, DurableMessages, NodeConfig};
use hopline_driver::engine::wire::message::{Header, Properties, Timestamp};
use hopline_driver::engine::wire::{DeliveryState, Performative, Role};
use std::time::Duration;

/// A value of every constructor that there is, and compounds of compounds.
const VALUES: [&[u8]; 41] = [
    b"\x40",
    b"\x41",
    b"\x42",
    b"\x56\x00",
    b"\x50\xff",
    b"\x51\x80",
    b"\x60\xff\xff",
    b"\x61\x80\x00",
    b"\x43",
    b"\x52\x07",
    b"\x70\xff\xff\xff\xff",
    b"\x44",
    b"\x53\x07",
    b"\x80\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x54\x80",
    b"\x71\x80\x00\x00\x00",
    b"\x55\x80",
    b"\x81\x80\x00\x00\x00\x00\x00\x00\x00",
    b"\x72\x7f\xc0\x00\x01",
    b"\x82\xff\xf0\x00\x00\x00\x00\x00\x00",
    b"\x74\x01\x02\x03\x04",
    b"\x84\x01\x02\x03\x04\x05\x06\x07\x08",
    b"\x94\x01\x02\x03\x04\x05\x06\x07\x08\x01\x02\x03\x04\x05\x06\x07\x08",
    b"\x73\x00\x01\xf6\x00",
    b"\x83\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x98\x01\x02\x03\x04\x05\x06\x07\x08\x01\x02\x03\x04\x05\x06\x07\x08",
    b"\xa0\x00",
    b"\xb0\x00\x00\x00\x01\x00",
    b"\xa1\x02\xc3\xa4",
    b"\xb1\x00\x00\x00\x01a",
    b"\xa3\x01s",
    b"\xb3\x00\x00\x00\x01s",
    b"\x45",
    b"\xc0\x04\x01\xc0\x01\x00",
    b"\xd0\x00\x00\x00\x05\x00\x00\x00\x01\x40",
    b"\xc1\x04\x02\x40\xa1\x00",
    b"\xd1\x00\x00\x00\x04\x00\x00\x00\x00",
    b"\xe0\x0a\x02\xe0\x03\x01\x50\x01\x03\x01\x50\x02",
    b"\xf0\x00\x00\x00\x05\xff\xff\xff\xff\x40",
    b"\xe0\x07\x02\x00\x53\x09\x50\x01\x02",
    b"\x00\xa3\x03x:y\x00\x80\x00\x00\x01\x00\x00\x00\x00\x00\x40",
];

fn value_section(value: &[u8]) -> Vec<u8> {
    [b"\x00\x53\x77", value].concat()
}

/// A section whose map has one pair.
fn map_section(code: u8, key: &[u8], value: &[u8]) -> Vec<u8> {
    let pair = [key, value].concat();
    let size = u8::try_from(pair.len() + 1).expect("short");
    [&[0x00, 0x53, code, 0xc1, size, 2], &pair[..]].concat()
}

/// Messages without a header, annotations or anything else that is not passed on as it is.
fn bare_messages() -> Vec<Vec<u8>> {
    let bodies: [&[u8]; 9] = [
        // None at all, as some send a body of null.
        b"\x00\x53\x73\x45",
        b"\x00\x53\x75\xa0\x00",
        b"\x00\x53\x75\xb0\x00\x00\x00\x01x",
        b"\x00\x53\x75\xa0\x01a\x00\x53\x75\xa0\x00\x00\x53\x75\xa0\x01b",
        b"\x00\x53\x76\x45",
        b"\x00\x53\x76\xc0\x02\x01\x43\x00\x53\x76\xd0\x00\x00\x00\x04\x00\x00\x00\x00",
        // By name, by a number in its long form.
        b"\x00\xa3\x10amqp:data:binary\xa0\x01x",
        b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x75\xa0\x01x",
        // With a footer.
        b"\x00\x53\x75\xa0\x01x\x00\x53\x78\xc1\x06\x02\xa3\x01k\x52\x07",
    ];
    let mut messages: Vec<_> = bodies.map(<[u8]>::to_vec).into();
    messages.extend(VALUES.map(value_section));
    // Nested values among application-properties are passed on like simple ones.
    let property =
        |value| [map_section(0x74, b"\xa1\x01k", value), value_section(b"\x40")].concat();
    messages.extend(VALUES.map(property));
    let ids: [&[u8]; 6] = [
        b"\x44",
        b"\x80\xff\xff\xff\xff\xff\xff\xff\xff",
        VALUES[25],
        b"\xa0\x01\x00",
        b"\xa1\x00",
        b"\x40",
    ];
    for id in ids {
        // message-id, a user-id that is not the user's, four nulls, correlation-id.
        let fields = [id, b"\xa0\x04root\x40\x40\x40", id].concat();
        let size = u8::try_from(fields.len() + 1).expect("short");
        let properties = [&[0x00, 0x53, 0x73, 0xc0, size, 6], &fields[..]].concat();
        messages.push([properties, value_section(b"\x40")].concat());
    }
    messages
}

#[tokio::test]
async fn bare_messages_of_every_shape_pass_octet_for_octet() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let (sender, receiver) = (client.sender("q").await, client.receiver("q", 1000).await);
    for octets in bare_messages() {
        let token = client.post_octets(sender, octets.clone().into(), false).await;
        assert_eq!(client.outcome(token).await, DeliveryState::Accepted, "{octets:02x?}");
        let delivery = client.receive(receiver).await;
        assert_eq!(delivery.payload, octets);
        client.settle(&delivery, DeliveryState::Accepted).await;
    }
}

#[tokio::test]
async fn what_is_no_message_costs_no_more_than_its_link() {
    let data = b"\x00\x53\x75\xa0\x01x";
    let annotated = |code, key: &[u8]| [map_section(code, key, b"\x40"), data.to_vec()].concat();
    let wrong: Vec<Vec<u8>> = vec![
        // No sections at all.
        b"\xa1\x01x".to_vec(),
        b"\x45".to_vec(),
        Vec::new(),
        // Out of order; repeated; of two kinds.
        [&data[..], b"\x00\x53\x70\x45"].concat(),
        [b"\x00\x53\x70\x45", b"\x00\x53\x70\x45", &data[..]].concat(),
        [value_section(b"\x40"), value_section(b"\x40")].concat(),
        [&data[..], b"\x00\x53\x76\x45"].concat(),
        // An unknown section, a name that is nearly one, a nested descriptor.
        b"\x00\x53\x79\x45".to_vec(),
        b"\x00\xa3\x11amqp:data:binaryX\xa0\x01x".to_vec(),
        b"\x00\xa3\x0famqp:data:binar\xa0\x01x".to_vec(),
        b"\x00\x00\x53\x75\x40\xa0\x01x".to_vec(),
        // A section of the wrong type.
        b"\x00\x53\x75\xa1\x01x".to_vec(),
        b"\x00\x53\x70\xc1\x01\x00\x00\x53\x75\xa0\x01x".to_vec(),
        // Keys of annotations that are neither symbols nor ulongs.
        annotated(0x71, b"\xa1\x01k"),
        annotated(0x72, b"\xa1\x01k"),
        annotated(0x72, b"\x52\x01"),
        // Sizes beyond the end, levels beyond measure.
        b"\x00\x53\x75\xb0\xff\xff\xff\xff".to_vec(),
        [b"\x00\x53\x77".to_vec(), b"\x00\x44".repeat(20_000), b"\x40".to_vec()].concat(),
        [b"\x00\x53\x77".to_vec(), b"\x00".repeat(60_000)].concat(),
        // An expiry that is none.
        b"\x00\x53\x73\xc0\x0b\x09\x40\x40\x40\x40\x40\x40\x40\x40\xa1\x00\x00\x53\x75\xa0\x01x"
            .to_vec(),
    ];
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    for octets in &wrong {
        let token = client.post_octets(sender, octets.clone().into(), false).await;
        let condition = condition_of(&client.outcome(token).await);
        let limit = "amqp:resource-limit-exceeded";
        assert!(condition == "amqp:decode-error" || condition == limit, "{octets:02x?}");
    }
    for octets in &wrong {
        let link = client.sender("q").await;
        client.post_octets(link, octets.clone().into(), true).await;
        assert!(client.detached(link).await.is_some(), "a settled one can't be rejected");
    }
    client.send_all(sender, ["good"]).await;
    let receiver = client.receiver("q", 10).await;
    assert_eq!(client.take(receiver, 1).await, ["good"]);
    client.assert_nothing(receiver).await;
}

#[tokio::test]
async fn the_header_is_the_brokers_own_where_it_is_the_brokers_to_say() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let (sender, receiver) = (client.sender("q").await, client.receiver("q", 100).await);
    client.send(sender, &text("no header")).await;
    let first = client.receive(receiver).await;
    assert_eq!(first.payload, encoded(&text("no header")), "the defaults are not written");
    let claimed =
        Header { durable: true, priority: 9, ttl: None, first_acquirer: false, delivery_count: 7 };
    client
        .send(
            sender,
            &hopline_driver::engine::wire::message::Message {
                header: claimed.clone(),
                ..text("m")
            },
        )
        .await;
    let got = decoded(&client.receive(receiver).await).header;
    assert_eq!(got, Header { first_acquirer: true, delivery_count: 0, ..claimed });
}

#[tokio::test]
async fn looking_does_not_count_and_the_first_failure_is_one() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    client.send_all(sender, ["m"]).await;
    let copy = hopline_driver::engine::wire::terminus::Source {
        distribution_mode: Some("copy".into()),
        ..hopline_driver::engine::wire::terminus::Source::at("q")
    };
    for _ in 0..3 {
        let browser = client.receiver_from(copy.clone()).await.expect("attached");
        client.grant(browser, 1).await;
        let seen = client.receive(browser).await;
        client.settle(&seen, DeliveryState::modified(true, false)).await;
        client.detach(browser).await;
    }
    let receiver = client.receiver("q", 10).await;
    for count in 0..3 {
        let delivery = client.receive(receiver).await;
        assert_eq!(decoded(&delivery).header.delivery_count, count);
        client.settle(&delivery, DeliveryState::modified(true, false)).await;
    }
}

#[tokio::test]
async fn durable_messages_are_taken_or_refused_as_configured() {
    let durable = hopline_driver::engine::wire::message::Message {
        header: Header { durable: true, ..Header::default() },
        ..text("m")
    };
    for durable_messages in [DurableMessages::Accept, DurableMessages::Reject] {
        let nodes = NodeConfig { durable_messages, ..NodeConfig::default() };
        let broker = Broker::start(Config { nodes, ..config() });
        let mut client = Client::open(&broker).await;
        let sender = client.sender("q").await;
        let state = client.send(sender, &durable).await;
        client.send_all(sender, ["not durable"]).await;
        let receiver = client.receiver("q", 10).await;
        if durable_messages == DurableMessages::Accept {
            assert_eq!(state, DeliveryState::Accepted);
            assert!(decoded(&client.receive(receiver).await).header.durable, "it is passed on");
            continue;
        }
        assert_eq!(condition_of(&state), "amqp:precondition-failed");
        assert_eq!(client.take(receiver, 1).await, ["not durable"]);
        client.post(sender, &durable, true).await;
        let error = client.detached(sender).await.expect("a settled one can't be rejected");
        assert_eq!(error.condition.as_str(), "amqp:precondition-failed");
        client.assert_nothing(receiver).await;
    }
}

#[tokio::test]
async fn a_ttl_wins_over_an_absolute_expiry() {
    let nodes = NodeConfig { dead_letter: Some("dead".into()), ..NodeConfig::default() };
    let broker = Broker::start(Config { nodes, ..config() });
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    let both = |name: &str, ttl, at| {
        let absolute_expiry_time = Some(Timestamp(at));
        let properties = Properties { absolute_expiry_time, ..Properties::default() };
        hopline_driver::engine::wire::message::Message { properties, ..with_ttl(name, ttl) }
    };
    client.send(sender, &both("lives", 60_000, 0)).await;
    client.send(sender, &both("dies", 0, i64::MAX)).await;
    let dead = client.receiver("dead", 10).await;
    assert_eq!(client.take(dead, 1).await, ["dies"]);
    let receiver = client.receiver("q", 10).await;
    assert_eq!(client.take(receiver, 1).await, ["lives"]);
}

#[tokio::test]
async fn a_deadline_is_set_once_and_the_ttl_shrinks_from_broker_to_broker() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let mut message = encoded(&with_ttl("m", 5000));
    let mut left = vec![5000];
    for hop in ["a", "b", "c"] {
        let sender = client.sender(hop).await;
        client.post_octets(sender, message, true).await;
        client.idle(60).await;
        let receiver = client.receiver(hop, 1).await;
        let delivery = client.receive(receiver).await;
        left.push(decoded(&delivery).header.ttl.expect("a ttl"));
        message = delivery.payload.clone();
        // It is given back, and has no more time for that.
        client.settle(&delivery, DeliveryState::Released).await;
    }
    assert!(left.windows(2).all(|pair| pair[1] + 30 <= pair[0]), "{left:?}");
    tokio::time::sleep(Duration::from_millis(5000)).await;
    for hop in ["a", "b", "c"] {
        let receiver = client.receiver(hop, 1).await;
        client.assert_nothing(receiver).await;
    }
}

#[tokio::test]
async fn one_full_destination_does_not_stop_the_anonymous_relay() {
    let nodes = NodeConfig { max_messages: 5, ..NodeConfig::default() };
    let broker = Broker::start(Config { nodes, ..config() });
    let mut client = Client::open(&broker).await;
    let relay = client.sender_to(Default::default()).await.expect("attached");
    let to = |address: &str| {
        let mut message = text(address);
        message.properties.to = Some(address.into());
        message
    };
    let mut refused = 0;
    for n in 0..100 {
        let state = client.send(relay, &to("full")).await;
        refused += u32::from(state != DeliveryState::Accepted);
        let state = client.send(relay, &to(&format!("q{n}"))).await;
        assert_eq!(state, DeliveryState::Accepted, "{n}");
    }
    assert_eq!(refused, 90, "twice the limit is taken");
}

#[tokio::test]
async fn without_anybody_there_a_queue_keeps_and_a_topic_does_not() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    for (address, kept) in [("q", true), ("topic/t", false)] {
        let receiver = client.receiver(address, 1).await;
        let sender = client.sender(address).await;
        client.detach(receiver).await;
        client.send_all(sender, ["m"]).await;
        let receiver = client.receiver(address, 1).await;
        match kept {
            true => assert_eq!(client.take(receiver, 1).await, ["m"]),
            false => client.assert_nothing(receiver).await,
        }
    }
}

#[tokio::test]
async fn a_burst_right_behind_the_attach_is_taken_and_forwarded() {
    let broker = Broker::start(config());
    let mut raw = Raw::open(&broker);
    raw.put(&attach("receiver", 0, Role::Receiver, "q"));
    raw.put(&crate::support::flow(50));
    while !matches!(raw.frame(), Some(Performative::Attach(_))) {}
    let mut publisher = Raw::open(&broker);
    publisher.attach_sender("q");
    let octets: Vec<u8> =
        (0..50).flat_map(|id| transfer(id, false, &encoded(&text("m")))).collect();
    publisher.write(&octets);
    let mut got = 0;
    while got < 50 {
        got += u32::from(matches!(raw.frame(), Some(Performative::Transfer(_))));
    }
}

#[tokio::test]
async fn a_settled_message_that_is_half_sent_comes_whole_though_its_queue_overflows() {
    const OCTETS: usize = 2 << 20;
    let nodes = NodeConfig { max_messages: 10, ..NodeConfig::default() };
    let broker = Broker::start(Config { nodes, ..config() });
    let mut slow = Client::open(&broker).await;
    let mut options = slow.options(
        Role::Receiver,
        hopline_driver::engine::wire::terminus::Source::at("q"),
        Default::default(),
    );
    options.snd_settle_mode = hopline_driver::engine::wire::definitions::SenderSettleMode::Settled;
    let (link, _) = slow.attach(options).await.expect("attached");
    slow.grant(link, 1000).await;
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    let mut taken = Vec::new();
    for n in 0..40_u8 {
        let message = hopline_driver::engine::wire::message::Message::data(vec![n; OCTETS]);
        if client.engine().credit(sender) == 0 {
            client.idle(20).await;
        }
        if client.engine().credit(sender) == 0 {
            break;
        }
        if client.send(sender, &message).await == DeliveryState::Accepted {
            taken.push(n);
        }
    }
    assert!(taken.len() >= 10, "{taken:?}");
    for n in taken {
        let delivery = slow.receive(link).await;
        let octets = decoded(&delivery).octets().expect("data");
        assert!(octets.len() == OCTETS && octets.iter().all(|octet| *octet == n), "{n}");
    }
    assert_eq!(
        body(&{
            client.post(sender, &text("after"), true).await;
            slow.receive(link).await
        }),
        "after"
    );
}
