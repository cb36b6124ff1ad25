//! Listens for peers without a broker between: `cargo run --example listen [amqp://~HOST:PORT]`.
//! Prints what they send, and hands each message on to those who receive from `copies`.

use hopline_messenger::{Error, Messenger};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "amqp://~127.0.0.1:5680".into());
    let messenger = Messenger::builder().name("listener").build();
    println!("listening on {}", messenger.subscribe(&url).await?);
    loop {
        let received = messenger.next().await?;
        let message = received.message()?;
        println!("{}: {:?}", received.address(), message.body);
        messenger.accept(&received)?;
        // Copies wait in the store, within its limits, until somebody receives from the address.
        if let Err(error) = messenger.put("copies", message) {
            eprintln!("{error}");
        }
    }
}
