//! Attach and detach (part 2, 2.6.1 to 2.6.6).

use crate::support::{
    Complaint, Pair, Script, agree, attach, begin, config, detach, end, grant, options, plain,
};
use hopline_engine::wire::performative::{Attach, Begin, Detach};
use hopline_engine::wire::terminus::Source;
use hopline_engine::wire::{AmqpError, Performative, Role, condition};
use hopline_engine::{CommandError, Config, Event, LinkId};

fn requests(events: &[Event]) -> Vec<LinkId> {
    let link = |event: &Event| match event {
        Event::AttachRequest { link, .. } => Some(*link),
        _ => None,
    };
    events.iter().filter_map(link).collect()
}

fn codes(script: &mut Script) -> Vec<u8> {
    crate::support::frames_of(&script.octets()).iter().map(|frame| frame.2).collect()
}

#[test]
fn a_link_is_attached_in_either_role_with_its_termini() {
    for role in [Role::Sender, Role::Receiver] {
        let mut script = plain();
        let asked = attach("l", 5, role);
        script.send(&asked);
        let [heard] = &script.heard()[..] else { panic!() };
        let Performative::Attach(answer) = &heard.performative else { panic!() };
        assert_eq!((&answer.name, answer.role, answer.handle), (&asked.name, role.peer(), 0));
        assert_eq!((&answer.source, &answer.target), (&asked.source, &asked.target));
        assert_eq!(answer.initial_delivery_count.is_some(), role == Role::Receiver);
        let link = requests(&script.end.events)[0];
        let info = script.end.connection.link_info(link).unwrap();
        assert_eq!((info.name.as_str(), info.role), ("l", role.peer()));
        script.send(&detach(5, true));
        let [heard] = &script.heard()[..] else { panic!() };
        let answer = Detach { handle: 0, closed: true, error: None };
        assert_eq!(heard.performative, Performative::Detach(answer));
        assert!(script.end.connection.link_info(link).is_none() && script.is_well());
    }
}

#[test]
fn both_sides_attach_and_detach_over_a_pipe() {
    for closed in [true, false] {
        let mut pair = Pair::open();
        let session = pair.begin();
        let (a, b) = pair.attach(session, options("l", Role::Sender));
        assert!(matches!(
            pair.client.take_events()[..],
            [Event::SessionBegun(_), Event::Attached { .. }]
        ));
        pair.client.connection.detach(a, closed, None);
        pair.run();
        let told = pair.server.take_events();
        assert!(matches!(told.last(), Some(Event::Detached { link, closed: c, by_peer: true, .. })
            if *link == b && *c == closed));
        let told = pair.client.take_events();
        assert!(matches!(told[..], [Event::Detached { by_peer: false, .. }]));
        assert!(pair.client.connection.link_info(a).is_none());
        assert!(pair.server.connection.link_info(b).is_none());
    }
}

#[test]
fn a_refused_attach_gets_an_attach_without_terminus_and_a_closing_detach() {
    for role in [Role::Sender, Role::Receiver] {
        let mut script = plain();
        script.end.answers = false;
        script.send(&attach("l", 0, role));
        let link = requests(&script.end.take_events())[0];
        script.end.connection.refuse(link, AmqpError::new(condition::NOT_FOUND, "no such queue"));
        let heard = script.heard();
        let [Performative::Attach(a), Performative::Detach(d)] =
            [&heard[0].performative, &heard[1].performative]
        else {
            panic!()
        };
        assert_eq!((&a.source, &a.target, d.closed), (&None, &None, true));
        assert_eq!(d.error.as_ref().unwrap().condition, condition::NOT_FOUND);
        script.send(&detach(0, true));
        assert!(script.end.events.is_empty() && script.is_well());
        assert!(script.end.connection.link_info(link).is_none());
    }
}

#[test]
fn who_is_gone_before_the_answer_leaves_nothing_behind() {
    type Finish<'a> = &'a dyn Fn(&mut Script, LinkId);
    let finish: [Finish<'_>; 4] = [
        &|s, l| s.end.connection.detach(l, true, None),
        &|s, l| s.end.connection.refuse(l, AmqpError::new(condition::NOT_FOUND, "gone")),
        &|s, l| {
            s.end.connection.accept(l, agree(&attach("l", 0, Role::Sender))).unwrap();
            s.end.connection.detach(l, true, None);
        },
        &|s, _| s.send(&end()),
    ];
    for finish in finish {
        let mut script = plain();
        script.end.answers = false;
        script.send(&attach("l", 0, Role::Sender));
        script.send(&detach(0, true));
        let link = requests(&script.end.events)[0];
        assert!(matches!(script.end.events[1], Event::Detached { by_peer: true, .. }));
        finish(&mut script, link);
        assert!(script.end.connection.link_info(link).is_none());
        let codes = codes(&mut script);
        assert!(codes == [0x12, 0x16] || codes == [0x17], "{codes:x?}");
        assert_eq!(
            script.end.connection.accept(link, agree(&attach("l", 0, Role::Sender))),
            Err(CommandError::NoLink)
        );
    }
}

#[test]
fn detaches_that_cross_cause_no_further_frame() {
    let mut pair = Pair::open();
    let session = pair.begin();
    let (a, b) = pair.attach(session, options("l", Role::Receiver));
    pair.client.take_events();
    pair.server.take_events();
    pair.client.connection.detach(a, true, None);
    pair.server.connection.detach(b, true, None);
    pair.run();
    for (end, link) in [(&pair.client, a), (&pair.server, b)] {
        assert!(matches!(end.events[..], [Event::Detached { by_peer: false, .. }]));
        assert!(end.connection.link_info(link).is_none());
    }
}

#[test]
fn an_attach_that_is_taken_back_before_its_answer_is_over_once_the_peer_has_answered_both() {
    let mut pair = Pair::open();
    let session = pair.begin();
    let first = pair.client.connection.attach(session, options("l", Role::Sender)).unwrap();
    pair.client.connection.detach(first, true, None);
    let second = pair.client.connection.attach(session, options("l", Role::Sender)).unwrap();
    pair.client.take_events();
    pair.run();
    let told = pair.client.take_events();
    assert!(
        matches!(told[..], [
        Event::Detached { link: gone, .. },
        Event::Attached { link, .. }
    ] if gone == first && link == second),
        "{told:?}"
    );
}

#[test]
fn the_handle_is_free_after_both_detaches_and_not_before() {
    let mut pair = Pair::open();
    let session = pair.begin();
    let client = &mut pair.client.connection;
    let a = client.attach(session, options("a", Role::Sender)).unwrap();
    pair.run();
    let mut script = plain();
    script.send(&attach("a", 0, Role::Sender));
    script.end.answers = false;
    script.send(&detach(0, false));
    script.send(&attach("b", 0, Role::Sender));
    assert!(script.end.connection.is_open(), "the peer's handle was free, for it had detached");
    let events = script.end.take_events();
    let (a_there, b_there) = (requests(&events)[0], requests(&events)[1]);
    script.heard();
    script.end.connection.accept(b_there, agree(&attach("b", 0, Role::Sender))).unwrap();
    script.end.connection.detach(a_there, false, None);
    let heard = script.heard();
    assert!(matches!(&heard[0].performative, Performative::Attach(Attach { handle: 1, .. })));
    pair.client.connection.detach(a, true, None);
    pair.run();
    let again = pair.client.connection.attach(session, options("a", Role::Sender));
    pair.run();
    assert!(pair.client.connection.link_info(again.unwrap()).is_some());
}

#[test]
fn one_name_in_two_directions_is_two_links() {
    let mut script = plain();
    script.send(&attach("l", 0, Role::Sender));
    script.send(&attach("l", 1, Role::Receiver));
    assert_eq!(codes(&mut script), [0x12, 0x12]);
    assert!(script.is_well());
    script.send(&detach(0, true));
    script.send(&grant(1, 0, 7));
    let link = requests(&script.end.events)[1];
    assert_eq!(script.end.connection.credit(link), 7);
}

#[test]
fn the_older_of_two_links_with_one_name_is_stolen() {
    for other_session in [false, true] {
        let mut script = plain();
        script.send_on(1, &begin());
        script.send(&attach("l", 0, Role::Sender));
        script.heard();
        script.send_on(u16::from(other_session), &attach("l", 1, Role::Sender));
        let heard = script.heard();
        let Performative::Detach(gone) = &heard[0].performative else { panic!("{heard:?}") };
        assert_eq!(gone.error.as_ref().unwrap().condition, condition::STOLEN);
        assert!(gone.closed && matches!(heard[1].performative, Performative::Attach(_)));
        script.send(&detach(0, true));
        let [old, new] = requests(&script.end.events)[..] else { panic!() };
        assert!(script.end.connection.link_info(old).is_none());
        assert!(script.end.connection.link_info(new).is_some());
        script.send_on(u16::from(other_session), &detach(1, true));
        assert!(script.end.connection.link_info(new).is_none());
        script.heard();
        script.send(&attach("l", 0, Role::Sender));
        assert_eq!(codes(&mut script), [0x12], "the name is free again");
    }
}

#[test]
fn a_link_that_is_stolen_before_the_answer_is_refused() {
    let mut script = plain();
    script.end.answers = false;
    script.send(&attach("l", 0, Role::Sender));
    script.send(&attach("l", 1, Role::Sender));
    let events = script.end.take_events();
    assert!(matches!(events[1], Event::Detached { by_peer: false, error: Some(_), .. }));
    let [old, new] = requests(&events)[..] else { panic!() };
    let answer = agree(&attach("l", 0, Role::Sender));
    assert_eq!(script.end.connection.accept(old, answer.clone()), Err(CommandError::NoLink));
    script.end.connection.accept(new, answer).unwrap();
    assert_eq!(codes(&mut script), [0x12, 0x16, 0x12]);
}

#[test]
fn handles_in_use_or_above_the_maximum_are_refused() {
    let mut script = plain();
    script.send(&attach("a", 0, Role::Sender));
    script.heard();
    script.send(&attach("b", 0, Role::Receiver));
    assert_eq!(script.complaint(), Some(Complaint::Session(condition::HANDLE_IN_USE)));
    for (handle, well) in [(3, true), (4, false), (u32::MAX, false)] {
        let mut script = Script::begun(Config { handle_max: 3, ..config() });
        script.send(&attach("a", handle, Role::Sender));
        let complaint = Some(Complaint::Connection(condition::FRAMING_ERROR)).filter(|_| !well);
        assert_eq!(script.complaint(), complaint);
    }
}

#[test]
fn no_handle_above_the_peers_maximum_is_used() {
    let mut script = Script::opened(config());
    script.send(&Begin { handle_max: 1, ..begin() });
    let begun = |event: &Event| match event {
        Event::SessionBegun(id) => Some(*id),
        _ => None,
    };
    let session = script.end.events.iter().find_map(begun).unwrap();
    for n in 0..2 {
        let options = options(&n.to_string(), Role::Sender);
        script.end.connection.attach(session, options).unwrap();
    }
    let full = script.end.connection.attach(session, options("full", Role::Sender));
    assert_eq!(full, Err(CommandError::Full));
    script.heard();
    script.send(&attach("theirs", 9, Role::Sender));
    let complaint = script.complaint();
    assert_eq!(complaint, Some(Complaint::Session(condition::RESOURCE_LIMIT_EXCEEDED)));
}

#[test]
fn channels_are_used_up_to_the_maximum_of_both() {
    let mut script = Script::opened(Config { channel_max: 2, ..config() });
    (0..=2).for_each(|channel| script.send_on(channel, &begin()));
    assert_eq!(codes(&mut script), [0x11, 0x11, 0x11]);
    assert_eq!(script.end.connection.begin(), Err(CommandError::Full));
    script.send_on(1, &end());
    script.heard();
    script.send_on(1, &begin());
    assert_eq!(codes(&mut script), [0x11], "the channel is free again");
    script.send_on(3, &begin());
    assert_eq!(script.complaint(), Some(Complaint::Connection(condition::FRAMING_ERROR)));

    let mut pair = Pair::open_with(config(), Config { channel_max: 0, ..config() });
    pair.client.connection.begin().unwrap();
    assert_eq!(pair.client.connection.begin(), Err(CommandError::Full));
}

#[test]
fn begins_and_frames_on_the_wrong_channel_end_the_connection() {
    let mut script = plain();
    script.send(&begin());
    assert_eq!(script.complaint(), Some(Complaint::Connection(condition::NOT_ALLOWED)));
    let mut script = plain();
    script.send_on(1, &Begin { remote_channel: Some(7), ..begin() });
    assert_eq!(script.complaint(), Some(Complaint::Connection(condition::INVALID_FIELD)));
    let frames: [&dyn Fn(&mut Script); 4] = [
        &|s| s.send_on(9, &attach("a", 0, Role::Sender)),
        &|s| s.send_on(9, &detach(0, true)),
        &|s| s.send_on(9, &crate::support::flow()),
        &|s| s.send_on(9, &end()),
    ];
    for frame in frames {
        let mut script = plain();
        frame(&mut script);
        assert_eq!(script.complaint(), Some(Complaint::Connection(condition::NOT_ALLOWED)));
    }
}

#[test]
fn a_session_may_have_another_channel_at_each_end() {
    let mut script = Script::opened(config());
    script.end.connection.begin().unwrap();
    let [heard] = &script.heard()[..] else { panic!() };
    assert_eq!(heard.channel, 0);
    script.send_on(200, &Begin { remote_channel: Some(0), ..begin() });
    script.send_on(200, &attach("a", 0, Role::Sender));
    let [heard] = &script.heard()[..] else { panic!() };
    assert_eq!(heard.channel, 0);
    assert!(matches!(heard.performative, Performative::Attach(_)));
}

#[test]
fn unknown_handles_end_the_session_only() {
    let frames: [&dyn Fn(&mut Script); 3] =
        [&|s| s.send(&detach(9, true)), &|s| s.send(&grant(9, 0, 1)), &|s| {
            s.transfer(&crate::support::transfer(9, 0), b"x")
        }];
    for frame in frames {
        let mut script = plain();
        frame(&mut script);
        assert_eq!(script.complaint(), Some(Complaint::Session(condition::UNATTACHED_HANDLE)));
        assert!(script.end.connection.is_open());
    }
}

#[test]
fn ten_thousand_links_that_come_and_go_leave_nothing() {
    let mut script = plain();
    for n in 0..10_000_u32 {
        let mut attach = attach(&n.to_string(), n % 7, Role::Receiver);
        attach.source = Some(Box::new(Source::at("x")));
        script.send(&attach);
        script.send(&detach(n % 7, true));
        script.octets();
        script.end.events.clear();
    }
    assert!(script.is_well());
    let links = format!("{:?}", script.end.connection);
    assert!(links.len() < 20_000, "{} octets of state", links.len());
}
