//! Limits on what is read from a peer, on the ground floor so that every floor can name them.

/// How deep lists, maps, arrays and described values may nest in a value that is decoded.
pub const NESTING: usize = 32;

/// How many elements an array of a type without octets (null, true, list0, ...) may announce;
/// all other counts are bounded by the octets that the elements take.
pub const ZERO_WIDTH_ITEMS: usize = 1024;

/// Octets of the descriptor that the elements of an array share: each element that is decoded holds
/// a copy of it.
pub const ARRAY_DESCRIPTOR: usize = 256;

/// How many descriptors the elements of an array may share, likewise.
pub const ARRAY_DESCRIPTORS: usize = 4;

/// Octets of a delivery-tag (part 2, 2.8.7).
pub const DELIVERY_TAG: usize = 32;

/// The smallest max-frame-size that a peer may have (part 2, 2.3.1), and the largest frame before
/// `open` has been exchanged.
pub const MIN_MAX_FRAME_SIZE: u32 = 512;
