//! Requests for a flow: each is answered, many by one answer, and no more of them in a second than
//! the limit has it (part 2, 2.7.4).

use crate::support::{
    Flow, Pair, Script, attach, begin, config, detach, end, flow, grant, options,
};
use hopline_engine::Config;
use hopline_engine::wire::performative::Frame;
use hopline_engine::wire::{Fields, Performative, Role, Symbol, Value};
use std::time::Duration;

fn echo() -> Flow {
    Flow { echo: true, ..flow() }
}

/// The flows that the engine wrote since. None of them asks for an answer itself.
fn answers(script: &mut Script) -> Vec<Flow> {
    let flow = |heard: crate::support::Heard| match heard.performative {
        Performative::Flow(flow) => {
            assert!(!flow.echo);
            flow
        }
        other => panic!("{other:?}"),
    };
    script.heard().into_iter().map(flow).collect()
}

fn limited(per_second: u32) -> Script {
    let config = Config { echo_replies_per_second: per_second, ..config() };
    let (mut script, _) = Script::attached(config, Role::Receiver, 0);
    script.attach(&attach("l1", 1, Role::Sender));
    script
}

#[test]
fn ten_thousand_in_one_read_are_answered_by_one_flow_for_each_that_was_asked() {
    let mut script = limited(1000);
    let mut octets = Vec::new();
    for n in 0..10_000 {
        match n % 3 {
            0 => echo().put(&mut octets, 0),
            1 => Flow { echo: true, ..grant(0, 0, n) }.put(&mut octets, 0),
            _ => Flow { echo: true, handle: Some(1), ..flow() }.put(&mut octets, 0),
        }
    }
    script.raw(&octets);
    let answers = answers(&mut script);
    assert!(answers.len() <= 3, "{}", answers.len());
    let of = |handle| answers.iter().find(|flow| flow.handle == Some(handle)).unwrap();
    assert_eq!(of(0).link_credit, Some(9997), "the last state");
    assert_eq!(of(1).link_credit, Some(0));
}

#[test]
fn a_storm_gets_as_many_answers_in_a_second_as_the_limit_has_it() {
    let mut script = limited(100);
    for _ in 0..5 {
        let mut heard = 0;
        for _ in 0..10_000 {
            script.pass(Duration::from_micros(100));
            script.send(&echo());
            heard += answers(&mut script).len();
        }
        assert!((95..=200).contains(&heard), "{heard} in a second");
    }
}

#[test]
fn honest_requests_just_below_the_limit_are_all_answered_at_once() {
    let mut script = limited(100);
    for n in 0..1000 {
        script.pass(Duration::from_micros(10_100));
        let asked = if n % 2 == 0 { echo() } else { Flow { echo: true, ..grant(0, 0, n) } };
        script.send(&asked);
        let answers = answers(&mut script);
        assert_eq!(answers.len(), 1, "request {n}");
        assert_eq!(answers[0].handle, asked.handle);
    }
}

#[test]
fn a_second_s_worth_may_come_at_once_and_the_last_request_is_always_answered() {
    let mut script = limited(10);
    for n in 0..10 {
        script.send(&echo());
        assert_eq!(answers(&mut script).len(), 1, "request {n}");
    }
    for n in 1..=50 {
        script.send(&echo());
        script.send(&Flow { echo: true, ..grant(0, 0, n) });
        assert!(answers(&mut script).is_empty());
    }
    let mut heard = Vec::new();
    while let Some(due) = script.end.connection.poll_timeout() {
        assert!(due > script.now, "a timer that is due for ever");
        script.pass(due.saturating_duration_since(script.now));
        heard.extend(answers(&mut script));
    }
    let told: Vec<_> = heard.iter().map(|flow| (flow.handle, flow.link_credit)).collect();
    assert_eq!(told, [(None, None), (Some(0), Some(50))], "one for each, with the last state");
    script.pass(Duration::from_secs(1));
    script.send(&echo());
    assert_eq!(answers(&mut script).len(), 1);
}

#[test]
fn answers_that_are_late_for_what_is_gone_are_forgotten() {
    let mut script = limited(1);
    script.send(&echo());
    assert_eq!(answers(&mut script).len(), 1);
    script.send_on(1, &begin());
    script.send(&Flow { echo: true, ..grant(0, 0, 1) });
    script.send_on(1, &echo());
    script.send(&detach(0, true));
    script.send_on(1, &end());
    script.heard();
    for _ in 0..5 {
        script.pass(Duration::from_secs(1));
        assert!(answers(&mut script).is_empty());
    }
    assert_eq!(script.end.connection.poll_timeout(), None);
}

#[test]
fn what_is_gone_takes_no_answer_from_what_is_there() {
    let mut script = limited(1);
    script.send(&echo());
    for n in 0..1000 {
        script.attach(&attach(&format!("gone{n}"), 2, Role::Receiver));
        script.send(&Flow { echo: true, handle: Some(2), ..flow() });
        script.send(&detach(2, true));
    }
    script.send_on(1, &begin());
    script.send_on(1, &echo());
    script.heard();
    script.pass(Duration::from_secs(2));
    assert_eq!(answers(&mut script).len(), 1);
    assert_eq!(script.end.connection.poll_timeout(), None);
}

#[test]
fn two_ends_do_not_talk_each_other_into_a_storm() {
    let mut pair = Pair::open();
    let session = pair.begin();
    let (receiver, sender) = pair.attach(session, options("l", Role::Receiver));
    pair.client.connection.set_credit(receiver, 10).unwrap();
    pair.run();
    pair.server.connection.set_available(sender, 3);
    pair.client.connection.drain(receiver).unwrap();
    // Comes back only when neither end has anything to say any more.
    pair.run();
    assert_eq!(pair.client.connection.credit(receiver), 0);
}

#[test]
fn an_answer_tells_the_final_count_and_what_waits() {
    let (mut script, link) = Script::attached(config(), Role::Receiver, 0);
    script.send(&grant(0, 0, 10));
    for n in 0..3 {
        script.end.send(link, &[n]).unwrap();
    }
    script.heard();
    script.end.connection.set_available(link, 7);
    let properties = Some(Fields(vec![(Symbol::from_static("txn-id"), Value::from("unknown"))]));
    script.send(&Flow { echo: true, properties, ..grant(0, 0, 0) });
    let [answer] = &answers(&mut script)[..] else { panic!() };
    assert_eq!((answer.delivery_count, answer.link_credit), (Some(3), Some(0)));
    assert_eq!(answer.available, Some(7));
}
