//! Two engines whose users do what they like over a pipe that splits and delays: many seeds of
//! [`support::World`], which says what must hold.

use crate::support::{Random, World};

const SEEDS: u64 = 300;
const STEPS: usize = 400;

#[test]
fn whatever_two_users_do_nothing_is_lost_doubled_or_stuck() {
    let only = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let mut received = 0;
    for seed in only.map_or(0..SEEDS, |seed: u64| seed..seed + 1) {
        let run = || {
            let mut world = World::new(Random(seed));
            (0..STEPS).for_each(|_| world.step());
            world.finish();
            world.received()
        };
        received += std::panic::catch_unwind(run).unwrap_or_else(|cause| {
            eprintln!("SEED={seed} fails");
            std::panic::resume_unwind(cause);
        });
    }
    assert!(only.is_some() || received > 10_000, "only {received} deliveries in all");
}
