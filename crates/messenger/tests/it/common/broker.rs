//! A broker that can be stopped and started again at its port.

use hopline_broker::{Config, ListenerConfig, Server};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// A broker on a thread of its own.
pub(crate) struct Broker {
    pub(crate) port: u16,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Broker {
    /// On that port of 127.0.0.1; 0: a free one.
    pub(crate) fn start(port: u16) -> Self {
        let listener = ListenerConfig::default();
        Self::start_with(port, Config { listeners: vec![listener], ..Config::default() })
    }

    /// With the address of its one listener replaced.
    pub(crate) fn start_with(port: u16, mut config: Config) -> Self {
        config.listeners[0].address = format!("127.0.0.1:{port}");
        let (stop, stopped) = oneshot::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async move {
                let server = Server::bind(config).await.unwrap();
                tell.send(server.addresses()[0].port()).unwrap();
                server.run(async { drop(stopped.await) }).await.unwrap();
            });
        });
        Self { port: told.recv().unwrap(), stop, thread }
    }

    pub(crate) fn url(&self, node: &str) -> String {
        format!("amqp://127.0.0.1:{}/{node}", self.port)
    }

    /// Closes all connections in order, with `amqp:connection:forced`, and ends.
    pub(crate) async fn stop(self) {
        drop(self.stop);
        tokio::task::spawn_blocking(|| self.thread.join().unwrap()).await.unwrap();
    }
}
