//! The publishers' thread.

use super::draft::Draft;
use super::outlet::Outlet;
use super::{Accounts, Job, Pace, Pair};
use crate::Error;
use hopline_messenger::driver::{Clock, Timer};
use hopline_timeline::Instant;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Messages that a publisher may be ahead of its subscriber, beside the backlog, so that what is
/// measured is what gets through.
const AHEAD_MAX: u64 = 10_000;

/// Until the first message is due, all connected.
const LEAD: Duration = Duration::from_millis(50);

/// How soon a full window is tried again.
const RETRY: Duration = Duration::from_micros(200);

pub(super) async fn run(job: Arc<Job>, ready: oneshot::Sender<()>) -> Accounts {
    let load = &job.load;
    let mut publishers = Vec::new();
    for number in 0..load.pairs {
        let outlet = Outlet::connect(&job, number).await?;
        publishers.push(Publisher { number, outlet, draft: Draft::new(load.size) });
    }
    job.start_ns.store(Clock.now().saturating_add(LEAD).as_nanos(), Relaxed);
    let _ = ready.send(());
    match load.pace {
        Pace::Rate(rate) => on_schedule(&job, &mut publishers, rate).await?,
        Pace::FlatOut(batch) => publishers = flat_out(&job, publishers, batch).await?,
    }
    job.is_all_put.store(true, Relaxed);
    let mut accounts = Vec::new();
    for publisher in publishers {
        accounts.extend(publisher.outlet.stop().await);
    }
    Ok(accounts)
}

struct Publisher {
    number: usize,
    outlet: Outlet,
    draft: Draft,
}

impl Publisher {
    /// Puts one message; `false`: there is no room.
    fn put(&mut self, pair: &Pair, due: Instant, settled: bool) -> Result<bool, Error> {
        let number = pair.put.load(Relaxed);
        let is_put = self.outlet.put(self.draft.due(due), number, settled)?;
        pair.put.fetch_add(u64::from(is_put), Relaxed);
        Ok(is_put)
    }
}

/// Each pair on a schedule of its own, all evenly apart.
async fn on_schedule(job: &Job, publishers: &mut [Publisher], rate: f64) -> Result<(), Error> {
    let timer = Timer::new().map_err(Error::file("a timer"))?;
    let start = job.start();
    let apart = 1.0 / publishers.len() as f64;
    let due = |number: usize, made: u64| {
        let since = (made as f64 + number as f64 * apart) / rate;
        start.saturating_add(Duration::try_from_secs_f64(since).unwrap_or(Duration::MAX))
    };
    while !job.is_over.load(Relaxed) {
        let mut next = Clock.now().saturating_add(Duration::from_millis(10));
        for (publisher, pair) in publishers.iter_mut().zip(&job.pairs) {
            let before = pair.put.load(Relaxed).saturating_sub(job.load.backlog);
            let (mut made, mut is_full) = (before, false);
            while !is_full && due(publisher.number, made) <= Clock.now() {
                is_full = !publisher.put(pair, due(publisher.number, made), job.load.settled)?;
                made += u64::from(!is_full);
            }
            if made > before {
                publisher.outlet.flush()?;
            }
            // What has become due since is no reason to sleep.
            next = next.min(match is_full {
                true => Clock.now().saturating_add(RETRY),
                false => due(publisher.number, made),
            });
        }
        timer.until(next).await.map_err(Error::file("a timer"))?;
    }
    Ok(())
}

/// Until the run is over; gives the publishers back.
async fn flat_out(
    job: &Arc<Job>,
    publishers: Vec<Publisher>,
    batch: u32,
) -> Result<Vec<Publisher>, Error> {
    let mut tasks = JoinSet::new();
    for publisher in publishers {
        tasks.spawn(push(job.clone(), publisher, batch));
    }
    let mut publishers = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        let ended = ended.unwrap_or_else(|error| Err(Error::Load(error.to_string())));
        publishers.push(ended?);
    }
    Ok(publishers)
}

async fn push(job: Arc<Job>, mut publisher: Publisher, batch: u32) -> Result<Publisher, Error> {
    let Some(pair) = job.pairs.get(publisher.number) else { return Ok(publisher) };
    let room = job.load.window / 2;
    let ahead = job.load.backlog + AHEAD_MAX;
    while !job.is_over.load(Relaxed) {
        if pair.put.load(Relaxed).saturating_sub(pair.received()) > ahead {
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        }
        let mut is_full = false;
        for _ in 0..batch {
            is_full = !publisher.put(pair, Clock.now(), job.load.settled)?;
            if is_full {
                break;
            }
        }
        publisher.outlet.flush()?;
        match is_full {
            true => publisher.outlet.room(room).await?,
            false => tokio::task::yield_now().await,
        }
    }
    Ok(publisher)
}
