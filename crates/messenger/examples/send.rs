//! Sends one message and says what became of it: `cargo run --example send URL TEXT`.

use hopline_messenger::{Error, Message, Messenger};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "amqp://127.0.0.1/example".into());
    let text = std::env::args().nth(2).unwrap_or_else(|| "hello".into());
    let messenger = Messenger::builder().name("sender").build();
    let tracker = messenger.put(&url, Message::data(text))?;
    messenger.send().await?;
    println!("{:?}", messenger.status(tracker));
    messenger.stop().await
}
