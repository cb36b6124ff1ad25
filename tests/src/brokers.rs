use crate::programs::peer_command;
use crate::{PATIENCE, Process};

/// A broker that is not ours, on a loopback port of its own; it stops when this is dropped.
#[derive(Debug)]
pub struct ForeignBroker {
    process: Process,
    host: String,
}

impl ForeignBroker {
    /// The example broker that comes with Qpid Proton's C library: queues in memory, on demand.
    ///
    /// # Panics
    /// If it is not installed or does not start.
    pub fn proton() -> ForeignBroker {
        Self::start("proton")
    }

    /// RabbitMQ with its AMQP 1.0 plugin; addresses are `/queue/NAME`, made on demand. It takes
    /// ANONYMOUS, and PLAIN for `guest` with the password `guest`.
    ///
    /// # Panics
    /// If it is not installed or does not start.
    pub fn rabbitmq() -> ForeignBroker {
        Self::start("rabbitmq")
    }

    /// `HOST:PORT`
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The URL of an address there, for Hopline's programs.
    pub fn url(&self, address: &str) -> String {
        format!("amqp://{}/{address}", self.host)
    }

    fn start(name: &str) -> ForeignBroker {
        let mut process = Process::start(peer_command("brokers").arg(name));
        let host = process.wait_for_text_after("listening on ", PATIENCE);
        ForeignBroker { process, host }
    }
}

impl Drop for ForeignBroker {
    fn drop(&mut self) {
        // Killed, it would leave behind the broker and its files; it stops by itself when its
        // input closes.
        self.process.ends_within(PATIENCE);
    }
}
