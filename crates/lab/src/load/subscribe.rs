//! The subscribers' thread.

use super::{Accounts, Job, Over, addresses, load_error, messenger, raw, raw_socket, stop};
use crate::Error;
use hopline_messenger::driver::Clock;
use hopline_messenger::{DeliveryState, Error as Fault, Messenger, Received, Span};
use hopline_timeline::Instant;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// How often the thread looks whether it is done.
const LOOK: Duration = Duration::from_millis(5);

/// Messages that are taken at once, at most.
const TAKEN_MAX: usize = 1_024;

pub(super) async fn run(job: Arc<Job>, ready: oneshot::Sender<()>) -> Accounts {
    let load = &job.load;
    let mut tasks = JoinSet::new();
    let mut messengers = Vec::new();
    for (number, pair) in job.pairs.iter().enumerate() {
        if load.over == Over::RawTcp {
            tasks.spawn(raw::take(job.clone(), raw_socket(load, 1).await?, number));
            continue;
        }
        let messenger = messenger(load, 1, number);
        for address in addresses(&job, 1, number) {
            let at = messenger.subscribe(&address).await.map_err(load_error)?;
            if load.over == Over::Nothing {
                // Set once: there is one address then.
                let _ = pair.at.set(at);
            }
        }
        tasks.spawn(take(job.clone(), messenger.clone(), number));
        messengers.push(messenger);
    }
    let _ = ready.send(());
    let mut end = None;
    while !is_done(&job, &mut end) {
        tokio::select! {
            Some(ended) = tasks.join_next() => {
                ended.unwrap_or_else(|error| Err(Error::Load(error.to_string())))?;
            }
            () = tokio::time::sleep(LOOK) => {}
        }
    }
    tasks.abort_all();
    Ok(stop(&messengers).await)
}

/// Once no more is put: until all has arrived, or for a while.
fn is_done(job: &Job, end: &mut Option<Instant>) -> bool {
    if !job.is_over.load(Relaxed) {
        return false;
    }
    let end = *end.get_or_insert_with(|| Clock.now().saturating_add(job.load.rest()));
    let has_all =
        job.is_all_put.load(Relaxed) && job.sum(|pair| &pair.received) >= job.sum(|pair| &pair.put);
    job.is_dropped.load(Relaxed) || Clock.now() >= end || has_all
}

async fn take(job: Arc<Job>, messenger: Messenger, number: usize) -> Result<(), Error> {
    let Some(pair) = job.pairs.get(number) else { return Ok(()) };
    let mut taken = Vec::new();
    loop {
        let count = messenger.next_many(&mut taken, TAKEN_MAX).await.map_err(load_error)?;
        let mut delays = job.delays.lock().unwrap_or_else(PoisonError::into_inner);
        for due in taken.iter().filter_map(|message| due(message, job.load.size)) {
            job.note(&mut delays, due);
        }
        drop(delays);
        accept(&messenger, &taken, job.load.nodes == 1).map_err(load_error)?;
        taken.clear();
        pair.received.fetch_add(count as u64, Relaxed);
        messenger.flush();
    }
}

/// Accepts all; over one link in one go.
fn accept(messenger: &Messenger, taken: &[Received], is_one_link: bool) -> Result<(), Fault> {
    if let (true, Some(last)) = (is_one_link, taken.last()) {
        return messenger.settle(last, DeliveryState::Accepted, Span::UpTo);
    }
    taken.iter().try_for_each(|message| messenger.accept(message))
}

/// The body is the last section: its octets are the message's last.
fn due(received: &Received, size: usize) -> Option<Instant> {
    let encoded = received.encoded();
    let body = encoded.get(encoded.len().checked_sub(size)?..)?;
    body.first_chunk().map(|head| Instant::from_nanos(i64::from_be_bytes(*head)))
}
