//! A peer that takes frames of 512 octets gets none that is longer, whatever there is to say
//! (part 2, 2.7.1).

use crate::support::{
    Complaint, Heard, Script, agree, attach, begin, config, detach, end, open, options, transfer,
};
use hopline_engine::wire::outcome::{Modified, Rejected};
use hopline_engine::wire::performative::{Attach, Open};
use hopline_engine::wire::terminus::Source;
use hopline_engine::wire::{
    AmqpError, DeliveryState, Fields, Performative, Role, Serial, Symbol, Value, condition,
};
use hopline_engine::{
    Anonymous, AttachOptions, ClientSasl, CommandError, Config, Event, LinkId, SessionId,
};

/// What makes the engine give its reason.
type Say<'a> = &'a dyn Fn(&mut Script, LinkId);

const AMQP: &[u8] = b"AMQP\x00\x01\x00\x00";

fn long(octets: usize) -> String {
    "ä".repeat(octets / 2)
}

fn properties(octets: usize) -> Fields {
    Fields(vec![(Symbol::from_static("about"), Value::from(long(octets).as_str()))])
}

fn errors() -> Vec<AmqpError> {
    let error = |text: usize, info: usize| AmqpError {
        condition: condition::NOT_FOUND,
        description: Some(long(text)),
        info: Some(properties(info)),
    };
    let odd = AmqpError { condition: Symbol::from(long(1200).replace('ä', "x")), ..error(0, 0) };
    vec![error(20, 20), error(20, 5000), error(5000, 20), error(400, 400), odd]
}

/// A session with a peer that takes 512 octets, and a link of this role at the peer.
fn narrow(role: Role) -> (Script, LinkId) {
    let mut script = Script::server(config(), Anonymous);
    script.raw(AMQP);
    script.send(&Open { max_frame_size: 512, ..open() });
    script.octets();
    script.send(&begin());
    script.end.credit = 100;
    let link = script.attach(&attach("l", 0, role));
    (script, link)
}

fn session_of(script: &Script, link: LinkId) -> SessionId {
    script.end.connection.link_info(link).unwrap().session
}

/// What was said; none of it too long.
fn said(script: &mut Script) -> Vec<Heard> {
    let heard = script.heard();
    assert!(heard.iter().all(|heard| heard.size <= 512), "{heard:?}");
    heard
}

fn error_of(heard: &Heard) -> Option<&AmqpError> {
    match &heard.performative {
        Performative::Detach(detach) => detach.error.as_deref(),
        Performative::End(end) => end.error.as_deref(),
        Performative::Close(close) => close.error.as_deref(),
        Performative::Disposition(disposition) => match &disposition.state {
            Some(DeliveryState::Rejected(rejected)) => rejected.error.as_deref(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn reasons_are_told_in_as_many_words_as_fit() {
    for error in errors() {
        let given = Some(error.clone());
        let say: [Say<'_>; 4] = [
            &|script, link| script.end.connection.detach(link, true, given.clone()),
            &|script, link| {
                let session = session_of(script, link);
                script.end.connection.end(session, given.clone());
            },
            &|script, _| script.end.connection.close(given.clone(), script.now),
            &|script, link| {
                script.transfer(&transfer(0, 0), b"x");
                let error = given.clone().map(Box::new);
                let state = DeliveryState::Rejected(Rejected { error });
                script.end.connection.settle(link, Serial(0), state).unwrap();
            },
        ];
        for say in say {
            let (mut script, link) = narrow(Role::Sender);
            say(&mut script, link);
            let heard = said(&mut script);
            let told = error_of(heard.last().unwrap()).unwrap();
            let short = error.condition.as_str().len() < 100;
            assert_eq!(told.condition == error.condition, short);
            let is_whole = told.description == error.description;
            let begins = |text: &String| error.description.as_ref().unwrap().starts_with(text);
            assert!(is_whole || told.description.as_ref().is_none_or(begins));
            assert!(is_whole || !short || error.description.as_ref().unwrap().len() > 200);
        }
    }
}

#[test]
fn a_refusal_says_why_in_as_many_words_as_fit() {
    for error in errors() {
        let (mut script, _) = narrow(Role::Sender);
        script.end.answers = false;
        let link = script.attach(&attach("m", 1, Role::Receiver));
        script.end.connection.refuse(link, error);
        let heard = said(&mut script);
        assert!(matches!(&heard[0].performative, Performative::Attach(a) if a.source.is_none()));
        assert!(error_of(&heard[1]).is_some());
    }
}

#[test]
fn an_attach_is_answered_without_what_is_optional_or_refused() {
    for (about, address, accepted) in
        [(10, 10, true), (5000, 10, true), (10, 5000, false), (5000, 600, false)]
    {
        let (mut script, _) = narrow(Role::Sender);
        script.end.answers = false;
        let source = Some(Box::new(Source::at(long(address).as_str())));
        let wanted = Attach { source, ..attach("m", 1, Role::Receiver) };
        let link = script.attach(&wanted);
        let mut answer = agree(&wanted);
        answer.properties = properties(about);
        let result = script.end.connection.accept(link, answer);
        assert_eq!(result, if accepted { Ok(()) } else { Err(CommandError::FrameSize) });
        let heard = said(&mut script);
        let Performative::Attach(told) = &heard[0].performative else { panic!() };
        assert_eq!(told.properties.is_some(), about < 100 && accepted);
        assert_eq!((told.source.is_some(), heard.len()), (accepted, 2 - usize::from(accepted)));
        script.end.poll(script.now);
        if !accepted {
            assert_eq!(error_of(&heard[1]).unwrap().condition, condition::FRAME_SIZE_TOO_SMALL);
            assert!(matches!(script.end.events[..], [Event::Detached { by_peer: false, .. }]));
            script.send(&detach(1, true));
            assert_eq!(script.end.events.len(), 1, "told once");
        }
        script.end.answers = true;
        assert!(script.is_well());
    }
}

#[test]
fn a_name_that_cannot_even_be_refused_ends_the_session() {
    let (mut script, _) = narrow(Role::Sender);
    script.send(&attach(&long(600), 1, Role::Receiver));
    let complaint = script.complaint();
    assert_eq!(complaint, Some(Complaint::Session(condition::FRAME_SIZE_TOO_SMALL)));
    script.send(&end());
    script.send(&begin());
    assert!(script.end.connection.is_open() && script.is_well());
}

#[test]
fn what_we_ask_for_ourselves_is_an_error_of_the_caller() {
    let (mut script, link) = narrow(Role::Sender);
    let session = session_of(&script, link);
    let long = AttachOptions { properties: properties(600), ..options("long", Role::Sender) };
    let connection = &mut script.end.connection;
    assert_eq!(connection.attach(session, long), Err(CommandError::FrameSize));
    connection.attach(session, options("short", Role::Sender)).unwrap();
    let heard = said(&mut script);
    assert!(matches!(&heard[..], [Heard { performative: Performative::Attach(a), .. }]
        if a.handle == 1));
    script.transfer(&transfer(0, 0), b"x");
    let message_annotations = Some(properties(600));
    let state = Modified { message_annotations, ..Modified::default() };
    let state = DeliveryState::Modified(Box::new(state));
    let told = script.end.connection.settle(link, Serial(0), state);
    assert_eq!(told, Err(CommandError::FrameSize));
    script.end.connection.settle(link, Serial(0), DeliveryState::Released).unwrap();
    assert_eq!(said(&mut script).len(), 1, "it may still be settled otherwise");
}

#[test]
fn open_leaves_out_what_is_optional() {
    for (max, whole) in [(512, false), (65_536, true)] {
        let full = Config {
            properties: properties(600),
            offered_capabilities: vec![Symbol::from_static("ANONYMOUS-RELAY"); 10],
            ..config()
        };
        let mut script = Script::server(full, Anonymous);
        script.raw(AMQP);
        script.octets();
        script.send(&Open { max_frame_size: max, ..open() });
        let heard = script.heard();
        assert!(heard[0].size <= max as usize);
        let Performative::Open(told) = &heard[0].performative else { panic!() };
        assert_eq!(
            (told.properties.is_some(), told.offered_capabilities.len() == 10),
            (whole, whole)
        );
    }
    let full = Config { properties: properties(600), ..config() };
    let mut script = Script::client(full, ClientSasl::None);
    let octets = script.octets();
    assert!(octets.len() - 8 <= 512, "nothing is known of the server yet");
}

#[test]
fn an_open_that_does_not_fit_is_not_sent() {
    let named = Config { container_id: long(600), ..config() };
    let mut server = Script::server(named.clone(), Anonymous);
    server.raw(AMQP);
    server.octets();
    server.send(&Open { max_frame_size: 512, ..open() });
    let mut client = Script::client(named, ClientSasl::None);
    client.end.poll(client.now);
    for script in [&mut server, &mut client] {
        assert!(script.octets().len() <= 8);
        let [Event::Closed { error: Some(error), .. }] = &script.end.events[..] else { panic!() };
        assert_eq!(error.condition, condition::FRAME_SIZE_TOO_SMALL);
        assert!(script.end.connection.is_over());
    }
}
