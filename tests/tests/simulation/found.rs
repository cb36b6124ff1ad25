//! What the seeds have found, each as a short play of its own.

use crate::client::{Kind, Link};
use crate::ledger::{Draft, Uid};
use crate::world::World;
use hopline_broker::simulation::peer::wire::outcome::Modified;
use hopline_broker::simulation::peer::wire::{DeliveryState, DeliveryTag};
use hopline_broker::simulation::peer::{LinkId, Outgoing};

const NODE: &str = "kept";

fn attach(world: &mut World, at: usize, name: &str, kind: Kind) -> LinkId {
    world.uids += 1;
    let uid = world.uids;
    let id = world.attach_plain(at, Link::new(uid, name.into(), kind, NODE.into()));
    world.come_to_rest();
    id
}

/// Sends messages of these sizes to the node.
fn send(world: &mut World, sizes: &[usize]) {
    let link = attach(world, 0, "publisher", Kind::Publisher);
    let publisher: Uid = world.link(0, link).unwrap().uid;
    for size in sizes {
        let draft = Draft {
            node: NODE.into(),
            publisher,
            relayed: false,
            priority: 4,
            ttl: None,
            size: *size,
        };
        let (number, octets) = world.ledger.write(draft, world.sim.now());
        let tag = DeliveryTag::from(number as u64);
        let token = number as u64;
        let sent = Outgoing { tag, settled: false, format: 0, token, bare: octets.into() };
        let engine = &mut world.clients[0].as_mut().unwrap().engine;
        engine.send(link, sent, |_| None).unwrap();
        world.come_to_rest();
    }
}

fn received(world: &mut World, link: LinkId) -> u64 {
    world.link(1, link).unwrap().received
}

fn drain(world: &mut World, link: LinkId) {
    world.clients[1].as_mut().unwrap().engine.drain(link).unwrap();
    world.link(1, link).unwrap().is_draining = true;
}

#[test]
fn who_waits_for_outcomes_goes_on_with_them() {
    let mut world = World::calm();
    send(&mut world, &[0; 25]);
    let link = attach(&mut world, 1, "consumer", Kind::Consumer);
    world.grant_to(1, link, 100);
    world.come_to_rest();
    assert_eq!(received(&mut world, link), 10, "as many as may be unsettled");
    for _ in 0..25 {
        world.settle_one(1, link, 0, DeliveryState::Accepted);
        world.come_to_rest();
    }
    assert_eq!(received(&mut world, link), 25);
}

#[test]
fn a_browser_that_has_seen_all_is_drained_while_its_socket_is_full() {
    let mut world = World::calm();
    send(&mut world, &[3000]);
    let link = attach(&mut world, 1, "browser", Kind::Browser);
    world.grant_to(1, link, 10);
    drain(&mut world, link);
    world.check_at_rest();
    assert_eq!(received(&mut world, link), 1);
}

#[test]
fn a_drain_is_answered_where_all_that_waits_is_not_for_this_link() {
    let mut world = World::calm();
    send(&mut world, &[0, 3000]);
    let link = attach(&mut world, 1, "consumer", Kind::Consumer);
    world.grant_to(1, link, 1);
    world.come_to_rest();
    let modified = Modified { undeliverable_here: Some(true), ..Modified::default() };
    world.settle_one(1, link, 0, DeliveryState::Modified(Box::new(modified)));
    world.grant_to(1, link, 10);
    drain(&mut world, link);
    world.check_at_rest();
    assert_eq!(received(&mut world, link), 2);
}

#[test]
fn what_a_stolen_link_held_does_not_count_against_the_one_that_follows() {
    let mut world = World::calm();
    send(&mut world, &[0; 12]);
    let first = attach(&mut world, 1, "consumer", Kind::Consumer);
    world.grant_to(1, first, 10);
    world.come_to_rest();
    let session = world.clients[1].as_ref().unwrap().engine.link_info(first).unwrap().session;
    world.uids += 1;
    let second = Link::new(world.uids, "consumer".into(), Kind::Consumer, NODE.into());
    let second = world.attach_on(1, session, second);
    // The user takes its time to answer the detach of the one that is stolen.
    for _ in 0..20 {
        world.pass(1);
    }
    world.grant_to(1, second, 10);
    for _ in 0..200 {
        world.pass(1);
    }
    assert_eq!(received(&mut world, second), 10);
    world.check_at_rest();
}
