//! A listener outlives the end of the process's file descriptors. Alone in its process, since the
//! limit is the process's.

use std::fs::File;
use std::time::Duration;

use hopline_driver::{SocketOptions, connect, listen};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[tokio::test]
async fn accepting_goes_on_when_descriptors_are_free_again() {
    let options = SocketOptions::default();
    let listener = listen("127.0.0.1:0", &options).await.unwrap();
    let port = listener.local_addr().port();
    let _waiting = connect("127.0.0.1", port, &options, Duration::from_secs(5)).await.unwrap();

    let limit = Rlimit { current: Some(64), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).unwrap();
    let all_others: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(!all_others.is_empty());

    let accepting = tokio::spawn(async move { listener.accept().await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!accepting.is_finished(), "there was no descriptor to accept with");

    drop(all_others);
    let accepted = tokio::time::timeout(Duration::from_secs(5), accepting).await;
    accepted.expect("accepted once descriptors were free").unwrap();
}
