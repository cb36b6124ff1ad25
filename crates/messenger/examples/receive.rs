//! Prints what comes and where its time went: `cargo run --example receive URL [COUNT]`.

use hopline_messenger::{Error, Messenger};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "amqp://127.0.0.1/example".into());
    let count = std::env::args().nth(2).and_then(|n| n.parse().ok()).unwrap_or(u32::MAX);
    let messenger = Messenger::builder().name("receiver").build();
    messenger.subscribe(&url).await?;
    for _ in 0..count {
        let received = messenger.next().await?;
        println!("{:?}", received.message()?.body);
        for stamp in received.timeline().iter().flat_map(|timeline| &timeline.stamps) {
            println!("  stage {} at {:?}", stamp.stage, stamp.at);
        }
        messenger.accept(&received)?;
    }
    messenger.stop().await
}
