//! How long each case takes: `cargo bench --bench speed`. For a look; what counts for a change are
//! the instructions, which are the same whatever else the machine does.

mod cases;

use cases::{CASES, Case};
use divan::Bencher;
use divan::counter::ItemsCount;

fn main() {
    divan::main();
}

#[divan::bench(args = CASES.iter().map(|case| case.name))]
fn case(bencher: Bencher<'_, '_>, name: &str) {
    let case = CASES.iter().find(|case: &&Case| case.name == name).expect("a case");
    let run = (case.prepare)();
    bencher.counter(ItemsCount::new(case.messages)).bench_local(run);
}
