//! fe2o3-amqp works in transactions of `hopline-broker`.

use fe2o3_amqp::sasl_profile::SaslProfile;
use fe2o3_amqp::session::{Session, SessionHandle};
use fe2o3_amqp::transaction::{
    Controller, Transaction, TransactionAcquisition, TransactionDischarge, TransactionPosting,
    TransactionRetirement,
};
use fe2o3_amqp::types::messaging::Outcome;
use fe2o3_amqp::{Connection, Receiver, Sender};
use hopline_tests::{HoplineBroker, PATIENCE};

async fn posts(session: &mut SessionHandle<()>, controller: &Controller) {
    let mut sender = Sender::attach(session, "sender", "q").await.expect("a queue");
    for (text, commits) in [("dropped", false), ("kept", true)] {
        let transaction = Transaction::declare(controller, None).await.expect("declared");
        for _ in 0..3 {
            let outcome = transaction.post(&mut sender, text).await.expect("an outcome");
            assert!(matches!(outcome, Outcome::Accepted(_)), "{outcome:?}");
        }
        let discharged =
            if commits { transaction.commit().await } else { transaction.rollback().await };
        discharged.expect("discharged");
    }
    sender.close().await.expect("closed");
}

/// One is retired and comes back, then all are retired for good, the last one acquired within.
async fn retires(session: &mut SessionHandle<()>, controller: &Controller) {
    let mut receiver = Receiver::attach(session, "receiver", "q").await.expect("the queue");
    for commits in [false, true] {
        let transaction = Transaction::declare(controller, None).await.expect("declared");
        for _ in 0..3 {
            let delivery = receiver.recv::<String>().await.expect("a message");
            assert_eq!(delivery.body(), "kept");
            transaction.accept(&mut receiver, &delivery).await.expect("retired");
        }
        let discharged =
            if commits { transaction.commit().await } else { transaction.rollback().await };
        discharged.expect("discharged");
    }
    receiver.close().await.expect("closed");
}

async fn acquires(session: &mut SessionHandle<()>, controller: &Controller) {
    let mut sender = Sender::attach(session, "filler", "other").await.expect("a queue");
    sender.send("message").await.expect("accepted");
    let mut receiver = Receiver::builder()
        .name("acquirer")
        .source("other")
        .credit_mode(fe2o3_amqp::link::receiver::CreditMode::Manual)
        .attach(session)
        .await
        .expect("the queue");
    for commits in [false, true] {
        let transaction = Transaction::declare(controller, None).await.expect("declared");
        let mut acquisition = transaction.acquire(&mut receiver, 1).await.expect("acquiring");
        let delivery = acquisition.recv::<String>().await.expect("a message");
        assert_eq!(delivery.body(), "message");
        acquisition.accept(&delivery).await.expect("retired");
        let discharged =
            if commits { acquisition.commit().await } else { acquisition.rollback().await };
        discharged.expect("discharged");
    }
}

#[tokio::test]
async fn fe2o3_posts_retires_and_acquires() {
    let broker = HoplineBroker::start(&[]);
    let work = async {
        let mut connection = Connection::builder()
            .container_id("fe2o3")
            .sasl_profile(SaslProfile::Anonymous)
            .open(format!("amqp://{}", broker.host()).as_str())
            .await
            .expect("let in");
        let mut session = Session::begin(&mut connection).await.expect("a session");
        let controller = Controller::attach(&mut session, "controller").await.expect("offered");
        posts(&mut session, &controller).await;
        retires(&mut session, &controller).await;
        acquires(&mut session, &controller).await;
        let mut receiver = Receiver::attach(&mut session, "late", "q").await.expect("the queue");
        let left = tokio::time::timeout(PATIENCE / 100, receiver.recv::<String>()).await;
        assert!(left.is_err(), "a message is left: {left:?}");
        controller.close().await.expect("closed");
        session.end().await.expect("ended");
        connection.close().await.expect("closed");
    };
    tokio::time::timeout(PATIENCE, work).await.expect("in time");
}
