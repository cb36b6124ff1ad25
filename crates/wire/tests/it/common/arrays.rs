//! Arrays of every constructor, and arrays of those.

use proptest::collection::vec;
use proptest::prelude::*;

/// An array's octets without its constructor and size, as those of an array that holds it: count,
/// the elements' constructor, the elements; and how many there are.
#[derive(Clone, Debug)]
pub struct Raw {
    pub count: u32,
    pub octets: Vec<u8>,
}

impl Raw {
    fn of(constructor: &[u8], elements: &[Vec<u8>]) -> Self {
        let octets = [constructor, &elements.concat()].concat();
        Self { count: elements.len() as u32, octets }
    }

    /// Size, count and what follows, each in four octets.
    fn body(&self) -> Vec<u8> {
        let size = (self.octets.len() as u32 + 4).to_be_bytes();
        [&size[..], &self.count.to_be_bytes(), &self.octets].concat()
    }

    /// As a value.
    pub fn encoded(&self) -> Vec<u8> {
        [&[0xf0], &self.body()[..]].concat()
    }
}

/// Elements with one constructor of that many octets.
fn fixed(code: u8, width: usize) -> BoxedStrategy<Raw> {
    vec(vec(any::<u8>(), width..=width), 0..6).prop_map(move |all| Raw::of(&[code], &all)).boxed()
}

/// Elements that begin with a size; ASCII suits all of these types.
fn variable(code: u8) -> BoxedStrategy<Raw> {
    let element = move |text: String| {
        let size = (text.len() as u32).to_be_bytes();
        let size = if code >> 4 == 0xa { &size[3..] } else { &size[..] };
        [size, text.as_bytes()].concat()
    };
    let texts = vec("[ -~]{0,20}", 0..6);
    let raw =
        move |all: Vec<String>| Raw::of(&[code], &all.into_iter().map(element).collect::<Vec<_>>());
    texts.prop_map(raw).boxed()
}

fn plain() -> BoxedStrategy<Raw> {
    let widths = [
        (&[0x40, 0x41, 0x42, 0x43, 0x44, 0x45][..], 0),
        (&[0x50, 0x51, 0x52, 0x53, 0x54, 0x55], 1),
        (&[0x60, 0x61], 2),
        (&[0x70, 0x71, 0x72, 0x74], 4),
        (&[0x80, 0x81, 0x82, 0x83, 0x84], 8),
        (&[0x94, 0x98], 16),
    ];
    let fixed_ones =
        widths.iter().flat_map(|(codes, width)| codes.iter().map(|code| fixed(*code, *width)));
    let variable_ones = [0xa0, 0xa1, 0xa3, 0xb0, 0xb1, 0xb3].into_iter().map(variable);
    let chars = vec(any::<char>(), 0..6).prop_map(|all| {
        let octets = |c: char| u32::from(c).to_be_bytes().to_vec();
        Raw::of(&[0x73], &all.into_iter().map(octets).collect::<Vec<_>>())
    });
    let truths = vec(0..2_u8, 0..6)
        .prop_map(|all| Raw::of(&[0x56], &all.into_iter().map(|o| vec![o]).collect::<Vec<_>>()));
    let all: Vec<_> =
        fixed_ones.chain(variable_ones).chain([chars.boxed(), truths.boxed()]).collect();
    proptest::strategy::Union::new(all).boxed()
}

/// Any array; its elements may share a descriptor, or be arrays themselves.
pub fn array() -> BoxedStrategy<Raw> {
    plain()
        .prop_recursive(3, 12, 3, |inner| {
            let described = (any::<u8>(), inner.clone()).prop_map(|(code, raw)| {
                let octets = [&[0x00, 0x53, code], &raw.octets[..]].concat();
                Raw { octets, ..raw }
            });
            let of_arrays = vec(inner, 0..3)
                .prop_map(|all| Raw::of(&[0xf0], &all.iter().map(Raw::body).collect::<Vec<_>>()));
            prop_oneof![described, of_arrays]
        })
        .boxed()
}
