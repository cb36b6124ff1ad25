//! A load of publisher and subscriber pairs, from threads of this process: one for all
//! publishers, one for all subscribers, each pair with two connections of its own.

mod draft;
mod fill;
mod outlet;
mod publish;
mod raw;
mod subscribe;

use crate::Error;
use hdrhistogram::Histogram;
use hopline_messenger::driver::{Clock, Socket, Url, connect};
use hopline_messenger::timeline::record::ConnectionRecord;
use hopline_messenger::{Messenger, Sampling, SocketOptions};
use hopline_timeline::Instant;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::oneshot;

/// Pairs of one load at most.
pub(crate) const PAIRS_MAX: u64 = 1_000;

/// Octets of a body that hold the instant when its message was due.
pub(crate) const SIZE_MIN: u64 = 8;

/// How long what is under way at the end may take to arrive, without a backlog.
const REST: Duration = Duration::from_secs(5);

/// How much longer for a message of the backlog.
const BACKLOG_US: u64 = 20;

/// Where a subscriber listens if nothing is between.
const ANY_PORT: &str = "amqp://~127.0.0.1:0";

/// The longest delay that is told apart, a minute in nanoseconds.
const LONGEST_NS: u64 = 60_000_000_000;

/// When messages are made.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Pace {
    /// So many a second for each pair, whatever becomes of them.
    Rate(f64),
    /// As fast as the window lets, so many between two writes.
    FlatOut(u32),
}

/// Publisher and subscriber pairs, and what they do.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// `amqp://HOST:PORT` for publishers and for subscribers.
    pub(crate) urls: [String; 2],
    /// What the nodes of the pairs are called, without the numbers of [`Load::address`].
    pub(crate) node: String,
    pub(crate) pairs: usize,
    pub(crate) pace: Pace,
    pub(crate) warm_up: Duration,
    /// How long it is measured.
    pub(crate) length: Duration,
    pub(crate) size: usize,
    /// Messages that a publisher may have unsettled, or not yet handed over.
    pub(crate) window: usize,
    pub(crate) credit: u32,
    pub(crate) settled: bool,
    pub(crate) timelines: bool,
    pub(crate) sockets: [SocketOptions; 2],
    pub(crate) over: Over,
    /// Nodes of a pair; its messages go to each in turn.
    pub(crate) nodes: usize,
    /// Messages of a pair that wait in its nodes all the while, put before it begins.
    pub(crate) backlog: u64,
}

impl Load {
    /// The address of a node of a pair; both are counted from 0, and named from 1.
    pub(crate) fn address(&self, pair: usize, node: usize) -> String {
        format!("{}.{}.{}", self.node, pair + 1, node + 1)
    }
}

/// What is between publishers and subscribers.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Over {
    /// A broker.
    Broker,
    /// Nothing: each subscriber listens, and its publisher connects to it.
    Nothing,
    /// A relay of raw TCP: bodies only.
    RawTcp,
}

/// What came of a load.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    /// Messages that were due while it was measured; none of a load that is flat out.
    pub(crate) offered: u64,
    /// Messages that were put while it was measured.
    pub(crate) sent: u64,
    /// Messages that arrived while it was measured.
    pub(crate) arrived: u64,
    /// The same of each pair.
    pub(crate) arrived_of: Vec<u64>,
    pub(crate) seconds: f64,
    /// In ns, of all messages that were due while it was measured, from then on; of a load that is
    /// flat out from the put.
    pub(crate) delays: Histogram<u64>,
    /// Accounts of publishers' and of subscribers' connections, warm-up and rest included.
    pub(crate) accounts: [Vec<ConnectionRecord>; 2],
    /// Messages that were put and never arrived.
    pub(crate) lost: u64,
}

/// What both threads share.
#[derive(Debug)]
struct Job {
    load: Load,
    /// No more is put.
    is_over: AtomicBool,
    /// The publishers have seen it.
    is_all_put: AtomicBool,
    /// Nobody waits for the result any more.
    is_dropped: AtomicBool,
    /// The first message is due; 0: not known yet.
    start_ns: AtomicI64,
    pairs: Vec<Pair>,
    delays: Mutex<Histogram<u64>>,
}

/// How far a pair is.
#[derive(Debug, Default)]
struct Pair {
    put: AtomicU64,
    received: AtomicU64,
    /// Where its subscriber listens, if it does.
    at: OnceLock<String>,
}

impl Pair {
    fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }
}

impl Job {
    fn start(&self) -> Instant {
        Instant::from_nanos(self.start_ns.load(Relaxed))
    }

    /// From when until when it is measured.
    fn window(&self) -> (Instant, Instant) {
        let begin = self.start().saturating_add(self.load.warm_up);
        (begin, begin.saturating_add(self.load.length))
    }

    /// A message arrived that was due then.
    fn note(&self, delays: &mut Histogram<u64>, due: Instant) {
        let (begin, end) = self.window();
        if (begin..end).contains(&due) {
            let delay_ns = Clock.now().saturating_duration_since(due).as_nanos();
            let delay_ns = u64::try_from(delay_ns).unwrap_or(u64::MAX);
            delays.saturating_record(delay_ns.clamp(1, LONGEST_NS));
        }
    }

    fn sum(&self, of: impl Fn(&Pair) -> &AtomicU64) -> u64 {
        self.pairs.iter().map(|pair| of(pair).load(Relaxed)).sum()
    }
}

/// Ends the threads where the experiment is interrupted.
struct Guard(Arc<Job>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.is_dropped.store(true, Relaxed);
        self.0.is_over.store(true, Relaxed);
    }
}

impl Load {
    /// Makes it; `edge` is called when the measurement begins and when it ends.
    pub(crate) async fn run(
        self,
        mut edge: impl FnMut() -> Result<(), Error>,
    ) -> Result<Loaded, Error> {
        let delays = Histogram::new_with_bounds(1, LONGEST_NS, 3)
            .map_err(|error| Error::Load(error.to_string()))?;
        let guard = Guard(Arc::new(Job {
            is_over: false.into(),
            is_all_put: false.into(),
            is_dropped: false.into(),
            start_ns: 0.into(),
            pairs: std::iter::repeat_with(Pair::default).take(self.pairs).collect(),
            delays: Mutex::new(delays),
            load: self,
        }));
        let job = &guard.0;
        fill::run(job).await?;
        let (ready, subscribers) = thread(job.clone(), subscribe::run);
        let mut subscribers = wait(subscribers, ready).await?;
        let (ready, publishers) = thread(job.clone(), publish::run);
        let mut publishers = wait(publishers, ready).await?;
        let (begin, end) = job.window();
        let mut counts = Vec::new();
        for at in [begin, end] {
            let left = at.saturating_duration_since(Clock.now());
            tokio::select! {
                () = tokio::time::sleep(left) => {}
                // Threads end early only if something is wrong.
                ended = &mut subscribers => return Err(fault(ended)),
                ended = &mut publishers => return Err(fault(ended)),
            }
            edge()?;
            counts.push(Count::of(job));
        }
        job.is_over.store(true, Relaxed);
        let accounts = [result(publishers.await)?, result(subscribers.await)?];
        let [from, to] = counts.as_slice() else { return Err(Error::Load("no counts".into())) };
        Ok(loaded(job, from, to, accounts))
    }

    /// How long what is under way at the end may take to arrive.
    fn rest(&self) -> Duration {
        let backlog = self.backlog.saturating_mul(self.pairs as u64);
        REST + Duration::from_micros(backlog.saturating_mul(BACKLOG_US))
    }
}

/// How far all pairs are, and when.
struct Count {
    put: u64,
    received: Vec<u64>,
    at: Instant,
}

impl Count {
    fn of(job: &Job) -> Self {
        let received = job.pairs.iter().map(Pair::received).collect();
        Self { put: job.sum(|pair| &pair.put), received, at: Clock.now() }
    }
}

fn loaded(job: &Job, from: &Count, to: &Count, accounts: [Vec<ConnectionRecord>; 2]) -> Loaded {
    let seconds = job.load.length.as_secs_f64();
    let offered = match job.load.pace {
        Pace::Rate(rate) => (rate * job.load.pairs as f64 * seconds).round() as u64,
        Pace::FlatOut(_) => 0,
    };
    let delays = match job.delays.lock() {
        Ok(delays) => delays.clone(),
        Err(poisoned) => poisoned.into_inner().clone(),
    };
    let put = job.sum(|pair| &pair.put);
    let arrived = to.received.iter().zip(&from.received).map(|(to, from)| to.saturating_sub(*from));
    let arrived_of: Vec<u64> = arrived.collect();
    Loaded {
        offered,
        sent: to.put.saturating_sub(from.put),
        arrived: arrived_of.iter().sum(),
        arrived_of,
        seconds: to.at.saturating_duration_since(from.at).as_secs_f64(),
        delays,
        accounts,
        lost: put.saturating_sub(job.sum(|pair| &pair.received)),
    }
}

type Accounts = Result<Vec<ConnectionRecord>, Error>;

/// Runs `work` on a thread with a runtime of its own: when it is ready, and what came of it.
fn thread<F>(
    job: Arc<Job>,
    work: impl FnOnce(Arc<Job>, oneshot::Sender<()>) -> F + Send + 'static,
) -> (oneshot::Receiver<()>, oneshot::Receiver<Accounts>)
where
    F: Future<Output = Accounts>,
{
    let ((ready, is_ready), (tell, told)) = (oneshot::channel(), oneshot::channel());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let accounts = match runtime {
            Ok(runtime) => runtime.block_on(work(job, ready)),
            Err(source) => Err(Error::Start { name: "a runtime".into(), source }),
        };
        let _ = tell.send(accounts);
    });
    (is_ready, told)
}

/// Waits until a thread is ready.
async fn wait(
    told: oneshot::Receiver<Accounts>,
    ready: oneshot::Receiver<()>,
) -> Result<oneshot::Receiver<Accounts>, Error> {
    match ready.await {
        Ok(()) => Ok(told),
        Err(_) => Err(fault(told.await)),
    }
}

fn result(told: Result<Accounts, oneshot::error::RecvError>) -> Accounts {
    told.unwrap_or_else(|_| Err(Error::Load("a thread ended without a word".into())))
}

fn fault(told: Result<Accounts, oneshot::error::RecvError>) -> Error {
    let early = || Error::Load("it ended before its time".into());
    result(told).err().unwrap_or_else(early)
}

fn load_error(error: hopline_messenger::Error) -> Error {
    Error::Load(error.to_string())
}

/// The messenger of one end of a pair.
fn messenger(load: &Load, end: usize, number: usize) -> Messenger {
    let name = ["publisher", "subscriber"].get(end).copied().unwrap_or_default();
    Messenger::builder()
        .name(format!("{name}-{}", number + 1))
        .timeout(REST)
        .socket(load.sockets.get(end).cloned().unwrap_or_default())
        .store(load.window, usize::MAX)
        .outgoing_window(1)
        .incoming_window(1)
        .credit(load.credit)
        .timelines(if load.timelines { Sampling::All } else { Sampling::Off })
        .build()
}

/// The addresses of a pair, for publishers (0) or subscribers (1).
fn addresses(job: &Job, end: usize, number: usize) -> Vec<String> {
    let load = &job.load;
    if load.over == Over::Nothing {
        let at = job.pairs.get(number).and_then(|pair| pair.at.get());
        return vec![at.map_or_else(|| ANY_PORT.into(), |at| format!("{at}/{}", load.node))];
    }
    let url = load.urls.get(end).map_or("", String::as_str);
    (0..load.nodes).map(|node| format!("{url}/{}", load.address(number, node))).collect()
}

/// A connection for bodies only.
async fn raw_socket(load: &Load, end: usize) -> Result<Socket, Error> {
    let fault = |error: hopline_messenger::driver::Error| Error::Load(error.to_string());
    let url: Url = load.urls.get(end).map_or("", String::as_str).parse().map_err(fault)?;
    let options = load.sockets.get(end).cloned().unwrap_or_default();
    connect(&url.host, url.port, &options, REST).await.map_err(fault)
}

/// Closes the connections in order; what passed over them.
async fn stop(messengers: &[Messenger]) -> Vec<ConnectionRecord> {
    let mut accounts = Vec::new();
    for messenger in messengers {
        // What is lost then is counted as such.
        let _ = messenger.stop().await;
        accounts.extend(messenger.take_accounts());
    }
    accounts
}
