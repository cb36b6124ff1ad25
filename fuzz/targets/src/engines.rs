//! Two engines whose users do what the octets say over a pipe that splits as they say; what must
//! hold is the model's affair, which the engine's own simulation uses too.

use crate::engine_support::World;
use crate::input::Input;

/// The octets are choices: first the settings of both ends, then one step after the other.
pub fn run(octets: &[u8]) {
    let mut world = World::new(Input::new(octets));
    while !world.is_exhausted() {
        world.step();
    }
    world.finish();
}
