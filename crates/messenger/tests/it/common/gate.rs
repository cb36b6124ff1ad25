//! A way to a port of this host that can be cut.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

pub(crate) struct Gate {
    port: u16,
    cut: Arc<Notify>,
}

impl Gate {
    pub(crate) async fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let cut = Arc::new(Notify::new());
        let ours = cut.clone();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let cut = ours.clone();
                tokio::spawn(async move {
                    let Ok(mut far) = TcpStream::connect(("127.0.0.1", to)).await else { return };
                    tokio::select! {
                        _ = copy_bidirectional(&mut near, &mut far) => {}
                        () = cut.notified() => {}
                    }
                });
            }
        });
        Self { port, cut }
    }

    pub(crate) fn url(&self, node: &str) -> String {
        format!("amqp://127.0.0.1:{}/{node}", self.port)
    }

    /// Ends the connections there are, without a word.
    pub(crate) fn cut(&self) {
        self.cut.notify_waiters();
    }
}
