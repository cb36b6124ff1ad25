//! Inputs that a fuzzer begins with, made by the generators and from the data of the tests.

mod conversation;
mod messages;
mod peers;
mod records;
mod sasl;
mod selectors;
mod timelines;

use crate::engine_support::{Choices, Random};
use crate::frames::MENDED;
use crate::wire_values::{encode, performatives};
use hopline_wire::frame::{self, FrameType};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

/// The seeds of the target with that name, always the same ones.
///
/// # Panics
/// There is no such target.
pub fn of(target: &str) -> Vec<Vec<u8>> {
    match target {
        "frames" => frames(),
        "performatives" => {
            let amqp = samples(performatives::performative(), 150).into_iter().map(|p| encode(&p));
            amqp.chain(samples(performatives::sasl(), 30).iter().map(encode)).collect()
        }
        "sections" => samples(messages::message(), 120).iter().map(encode).collect(),
        "sasl" => sasl::seeds(),
        "timeline" => timelines::seeds(),
        "broker" => peers::seeds(),
        "selector" => selectors::seeds(),
        "report_input" => records::seeds(),
        "engines" | "mangled" => {
            (0..24).map(|seed| random_octets(seed, 100 << (seed % 6))).collect()
        }
        _ => panic!("{target} has no seeds: make some here"),
    }
}

/// So many values of a strategy, always the same ones.
fn samples<S: Strategy>(strategy: S, n: usize) -> Vec<S::Value> {
    let mut runner = TestRunner::deterministic();
    let mut sample = || strategy.new_tree(&mut runner).expect("nothing is filtered out").current();
    (0..n).map(|_| sample()).collect()
}

/// Octets of no meaning.
fn random_octets(seed: u64, n: usize) -> Vec<u8> {
    let mut random = Random(seed);
    (0..n).map(|_| random.below(256) as u8).collect()
}

/// Conversations about everything, with each end as the peer, in each way of reading the octets.
fn frames() -> Vec<Vec<u8>> {
    let all = conversation::all();
    let ways = (0..8).flat_map(|setup| [0, 50].map(|piece| [setup, piece]));
    let ways = ways.flat_map(|way| all.iter().map(move |bodies| (way, bodies)));
    let seed = |(way, bodies): ([u8; 2], &Vec<_>)| {
        let frames = bodies.iter().flat_map(|body| framed(way[0] & MENDED != 0, body));
        way.into_iter().chain(frames).collect()
    };
    ways.map(seed).collect()
}

fn framed(is_mended: bool, (channel, body): &conversation::Body) -> Vec<u8> {
    let mut out = Vec::new();
    if is_mended {
        let size = u8::try_from(body.len()).expect("a body of the conversations is short");
        out.extend_from_slice(&[size, *channel]);
    } else {
        frame::start(&mut out, FrameType::Amqp, (*channel).into());
    }
    out.extend_from_slice(body);
    if !is_mended {
        frame::finish(&mut out, 0, 0);
    }
    out
}
