//! Side records: what is known of a message only when it has left, on its way out of the process.

use crate::clock_domain;
use hopline_timeline::record::{
    ConnectionRecord, Held, KernelRecord, KernelStamp, Record, Schema, SideRecord,
    SideSummaryRecord,
};
use hopline_timeline::{Instant, TimelineId, clean_name};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Records that may wait to be taken (some 2 MiB); what comes beyond is dropped and counted.
const RING: usize = 16_384;

/// How often a file is given what waits. Nobody is woken for a record: that would cost the
/// connections more than the record.
const EVERY: Duration = Duration::from_millis(10);

/// What the kernel told of one message.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) node: Arc<str>,
    pub(crate) id: TimelineId,
    pub(crate) sent: Instant,
    pub(crate) held: Option<Held>,
    pub(crate) stamps: [Option<KernelStamp>; 3],
}

#[derive(Debug)]
enum Side {
    Message(Told),
    Connection(Box<ConnectionRecord>),
}

/// Where connections put their side records; never waits. Clones share one ring.
#[derive(Clone, Debug)]
pub struct SideRecords {
    ring: SyncSender<Side>,
    node: Arc<str>,
    dropped: Arc<AtomicU64>,
}

/// Where they come out again.
#[derive(Debug)]
pub struct SideReader {
    ring: Receiver<Side>,
    node: Arc<str>,
    dropped: Arc<AtomicU64>,
    taken: u64,
}

/// A ring of side records of the node `node`: at most 16,384 wait in it, what comes beyond is
/// dropped and counted.
pub fn side_records(node: &str) -> (SideRecords, SideReader) {
    let (sender, ring) = sync_channel(RING);
    let (node, dropped) = (Arc::<str>::from(clean_name(node)), Arc::new(AtomicU64::new(0)));
    let records = SideRecords { ring: sender, node: node.clone(), dropped: dropped.clone() };
    (records, SideReader { ring, node, dropped, taken: 0 })
}

impl SideRecords {
    /// The same ring, for another node of this process.
    #[must_use]
    pub fn of_node(&self, node: &str) -> Self {
        Self { node: clean_name(node).into(), ..self.clone() }
    }

    pub(crate) const fn node(&self) -> &Arc<str> {
        &self.node
    }

    pub(crate) fn message(&self, told: Told) {
        self.put(Side::Message(told));
    }

    pub(crate) fn connection(&self, account: ConnectionRecord) {
        self.put(Side::Connection(Box::new(account)));
    }

    /// So many messages could not be followed.
    pub(crate) fn dropped(&self, messages: u64) {
        if messages > 0 {
            self.dropped.fetch_add(messages, Ordering::Relaxed);
        }
    }

    fn put(&self, record: Side) {
        // Who has left takes nothing more.
        if let Err(TrySendError::Full(_)) = self.ring.try_send(record) {
            self.dropped(1);
        }
    }
}

impl SideReader {
    /// The next record, if one waits.
    pub fn take(&mut self) -> Option<Record> {
        let side = self.ring.try_recv().ok()?;
        self.taken += 1;
        Some(match side {
            Side::Connection(account) => Record::Connection(*account),
            Side::Message(Told { node, id, sent, held, stamps }) => Record::Kernel(KernelRecord {
                schema: Schema,
                node: node.to_string(),
                id: id.0,
                send: Some(sent),
                held,
                stamps: stamps.into_iter().flatten().collect(),
            }),
        })
    }

    /// Who tells: the record that comes before the others.
    pub fn header(&self) -> Record {
        let (node, clock) = (self.node.to_string(), clock_domain().into());
        Record::Side(SideRecord { schema: Schema, node, clock })
    }

    /// How many were taken and how many dropped so far: the record that comes after the others.
    pub fn summary(&self) -> SideSummaryRecord {
        let dropped = self.dropped.load(Ordering::Relaxed);
        let node = self.node.to_string();
        SideSummaryRecord { schema: Schema, node, records: self.taken, dropped }
    }
}

/// A file of side records, lines of JSON, that a thread of its own writes.
#[derive(Debug)]
pub struct SideFile {
    records: SideRecords,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<SideSummaryRecord>>>,
}

impl SideFile {
    /// Makes the file, or empties it.
    ///
    /// # Errors
    /// The file can't be made or written, or no thread can be had.
    pub fn create(path: &Path, node: &str) -> io::Result<Self> {
        let (records, reader) = side_records(node);
        let mut file = BufWriter::new(File::create(path)?);
        write(&mut file, &reader.header())?;
        file.flush()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let thread = thread::Builder::new().name("side-records".into());
        let thread = thread.spawn(move || write_all(file, reader, &over))?;
        Ok(Self { records, is_over, thread: Some(thread) })
    }

    /// Where to put records.
    pub const fn records(&self) -> &SideRecords {
        &self.records
    }

    /// Writes what waits, and the summary. To be called when the connections are closed.
    ///
    /// # Errors
    /// What has gone wrong with the file, at any time.
    pub fn finish(mut self) -> io::Result<SideSummaryRecord> {
        self.is_over.store(true, Ordering::Release);
        let written = self.thread.take().map(JoinHandle::join);
        let lost = || io::Error::other("the thread that writes side records has failed");
        written.and_then(Result::ok).unwrap_or_else(|| Err(lost()))
    }
}

impl Drop for SideFile {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write_all(
    mut file: impl Write,
    mut reader: SideReader,
    is_over: &AtomicBool,
) -> io::Result<SideSummaryRecord> {
    loop {
        let is_last = is_over.load(Ordering::Acquire);
        while let Some(record) = reader.take() {
            write(&mut file, &record)?;
        }
        if is_last {
            break;
        }
        file.flush()?;
        thread::sleep(EVERY);
    }
    let summary = reader.summary();
    write(&mut file, &Record::SideSummary(summary.clone()))?;
    file.flush()?;
    Ok(summary)
}

fn write(file: &mut impl Write, record: &Record) -> io::Result<()> {
    let mut line = Vec::new();
    record.write_line(&mut line).map_err(io::Error::other)?;
    file.write_all(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(n: u8) -> Told {
        let (id, sent) = (TimelineId([n; 16]), Instant::from_nanos(1));
        Told { node: "m".into(), id, sent, held: Some(Held::Nagle), stamps: [None; 3] }
    }

    #[test]
    fn a_full_ring_drops_and_counts() {
        let (records, mut reader) = side_records("n");
        for _ in 0..RING + 3 {
            records.message(told(1));
        }
        records.dropped(4);
        assert_eq!(std::iter::from_fn(|| reader.take()).count(), RING);
        let summary = reader.summary();
        assert_eq!((summary.records, summary.dropped), (RING as u64, 7));
    }

    #[test]
    fn a_file_begins_with_who_tells_and_ends_with_how_many() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("side");
        let file = SideFile::create(&path, "n").unwrap();
        file.records().message(told(1));
        file.records().connection(ConnectionRecord::default());
        let summary = file.finish().unwrap();
        assert_eq!((summary.records, summary.dropped), (2, 0));
        let text = std::fs::read(&path).unwrap();
        let records: Vec<_> = text
            .split_inclusive(|octet| *octet == b'\n')
            .map(|line| Record::parse_line(line).unwrap())
            .collect();
        let [Record::Side(side), Record::Kernel(kernel), Record::Connection(_), last] =
            &records[..]
        else {
            panic!("{records:?}")
        };
        assert_eq!((side.node.as_str(), kernel.node.as_str()), ("n", "m"));
        assert_eq!((kernel.id, kernel.held), ([1; 16], Some(Held::Nagle)));
        assert_eq!(*last, Record::SideSummary(summary));
    }

    #[test]
    fn a_file_that_cannot_be_made_or_written_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(SideFile::create(folder.path(), "n").is_err(), "a folder");
        #[cfg(target_os = "linux")]
        assert!(SideFile::create(Path::new("/dev/full"), "n").is_err(), "no space");
    }
}
