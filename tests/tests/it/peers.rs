//! The peers among themselves, without Hopline: what fails here is not Hopline's fault.

use hopline_tests::{Client, ForeignBroker, exchange};

#[test]
fn clients_understand_each_other_through_protons_broker() {
    let broker = ForeignBroker::proton();
    for sender in Client::ALL {
        for receiver in Client::ALL {
            exchange(sender, receiver, broker.host(), "q", (12, 10), &[]);
        }
        exchange(sender, Client::Proton, broker.host(), "q", (12, 10), &["--settled"]);
        exchange(sender, Client::Rhea, broker.host(), "q", (2, 200_000), &["--durable"]);
    }
}

#[test]
fn proton_and_rhea_understand_each_other_through_rabbitmq() {
    let broker = ForeignBroker::rabbitmq();
    for (sender, receiver) in [(Client::Proton, Client::Rhea), (Client::Rhea, Client::Proton)] {
        exchange(sender, receiver, broker.host(), "/queue/q", (12, 10), &[]);
        exchange(sender, receiver, broker.host(), "/queue/q", (12, 10), &["--settled"]);
        exchange(sender, receiver, broker.host(), "/queue/q", (2, 200_000), &["--durable"]);
    }
}
