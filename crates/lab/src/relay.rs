//! A relay of raw TCP: what forwarding costs at the least.

use crate::Error;
use hopline_messenger::SocketOptions;
use hopline_messenger::driver::{Socket, listen};
use std::convert::Infallible;
use tokio::io::{AsyncWriteExt, BufReader};

/// Octets of one read, and of the write that follows it.
const BUFFER: usize = 64 << 10;

/// Listens on two free ports of loopback, tells both (those who send come to the first, those who
/// receive to the second), and copies from the n-th sender to the n-th receiver. Never returns but
/// for an error.
///
/// # Errors
/// A port can't be had.
pub async fn relay(tell: impl Fn(String)) -> Result<Infallible, Error> {
    let options = SocketOptions::default();
    let fault = |error: hopline_messenger::driver::Error| Error::Load(error.to_string());
    let senders = listen("127.0.0.1:0", &options).await.map_err(fault)?;
    let receivers = listen("127.0.0.1:0", &options).await.map_err(fault)?;
    tell(senders.local_addr().to_string());
    tell(receivers.local_addr().to_string());
    loop {
        let ((sender, _), (receiver, _)) = tokio::join!(senders.accept(), receivers.accept());
        tokio::spawn(copy(sender, receiver));
    }
}

async fn copy(sender: Socket, mut receiver: Socket) {
    let mut sender = BufReader::with_capacity(BUFFER, sender);
    // Either end may go at any time: that ends the pair.
    let _ = tokio::io::copy_buf(&mut sender, &mut receiver).await;
    let _ = receiver.shutdown().await;
}
