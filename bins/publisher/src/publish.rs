//! The run: messages from their source to the messengers, on time.

use crate::args::{Args, Switch, Timelines};
use crate::body::Bodies;
use crate::schedule::Schedule;
use crate::summary::Summary;
use bytes::Bytes;
use hopline_messenger::driver::{Clock, SideFile, SideRecords};
use hopline_messenger::{Body, Header, Message, Messenger, PutOptions, Sampling, SocketOptions};
use hopline_messenger::{Symbol, Value};
use hopline_timeline::Instant;
use std::path::Path;
use std::time::Duration;
use tokio::time::sleep;

/// How often a long run says how far it is.
const PROGRESS: Duration = Duration::from_secs(2);

/// Before a message is due by less than this, the thread yields rather than sleeps: timers of the
/// runtime have a resolution of a millisecond.
const TIMER_SLACK: Duration = Duration::from_micros(1500);

/// Messages put between two writes of a run that is flat out.
const BATCH: u64 = 256;

/// Publishes what the arguments ask for.
pub(crate) async fn run(args: &Args) -> Result<Summary, String> {
    let mut run = Run::start(args).await?;
    let outcome = tokio::select! {
        outcome = run.publish() => outcome,
        _ = tokio::signal::ctrl_c() => Err("interrupted".to_owned()),
    };
    run.finish(outcome).await
}

struct Run<'a> {
    args: &'a Args,
    messengers: Vec<Messenger>,
    /// For each messenger: how many messages it may be given before it is asked again.
    room: Vec<usize>,
    /// The next message: all have everything but the body in common.
    message: Message,
    bodies: Bodies,
    summary: Summary,
    side: Option<SideFile>,
    start: Instant,
    put: u64,
    said: Instant,
}

impl<'a> Run<'a> {
    async fn start(args: &'a Args) -> Result<Self, String> {
        if args.rate.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
            return Err("--rate must be above 0".into());
        }
        let side = args.side_records.as_deref().map(|path| side_file(path, args)).transpose()?;
        if side.is_none() && args.kernel_timestamps.is_of_sent() {
            return Err("the kernel's stamps of what is sent need --side-records FILE".into());
        }
        let records = side.as_ref().map(SideFile::records);
        let messengers = (0..args.connections.max(1)).map(|n| messenger(args, n, records));
        let messengers: Vec<_> = messengers.collect();
        for messenger in &messengers {
            messenger.connect(&args.url).await.map_err(|error| error.to_string())?;
        }
        let bodies = match &args.body_file {
            Some(file) => {
                Bodies::lines(file).map_err(|error| format!("{}: {error}", file.display()))?
            }
            None => Bodies::of_size(args.size),
        };
        let start = Clock.now();
        Ok(Self {
            args,
            room: vec![0; messengers.len()],
            messengers,
            message: template(args),
            bodies,
            summary: Summary::new(args.rate, args.settled),
            side,
            start,
            put: 0,
            said: start,
        })
    }

    /// How many messages the arguments ask for at the most.
    fn target(&self) -> Option<u64> {
        let open_ended = self.args.duration.is_some() || self.args.body_file.is_some();
        self.args.count.or((!open_ended).then_some(1))
    }

    async fn publish(&mut self) -> Result<(), String> {
        let target = self.target().unwrap_or(u64::MAX);
        let end = self.args.duration.map(|duration| self.start.saturating_add(duration));
        let schedule = self.args.rate.map(|rate| Schedule::new(self.start, rate));
        while self.put < target {
            let due = schedule.map(|schedule| schedule.due(self.put));
            // Of a run that is flat out, reading the clock for each message would be a tenth.
            let is_flat_out = due.is_none() && self.args.body_file.is_none();
            let looks = !is_flat_out || self.put.is_multiple_of(BATCH);
            if looks && end.is_some_and(|end| due.unwrap_or_else(|| Clock.now()) >= end) {
                break;
            }
            if let Some(due) = due {
                self.wait_until(due).await;
            }
            let Some(body) = self.bodies.next().map_err(|error| error.to_string())? else { break };
            self.put(body, due).await?;
        }
        Ok(())
    }

    async fn wait_until(&mut self, due: Instant) {
        loop {
            let left = due.saturating_duration_since(Clock.now());
            if left.is_zero() {
                return;
            }
            self.collect();
            if left > TIMER_SLACK {
                sleep(left - TIMER_SLACK).await;
            } else {
                tokio::task::yield_now().await;
            }
        }
    }

    async fn put(&mut self, body: Bytes, due: Option<Instant>) -> Result<(), String> {
        let at = (self.put % self.messengers.len() as u64) as usize;
        self.make_room(at).await?;
        let Some(messenger) = self.messengers.get(at) else { return Ok(()) };
        set_body(&mut self.message, body);
        let how = PutOptions { due, created: None, settled: self.args.settled };
        let put = messenger.put_with(&self.args.url, &self.message, how);
        put.map_err(|error| error.to_string())?;
        self.put += 1;
        if due.is_some() {
            messenger.flush();
        } else if self.put.is_multiple_of(BATCH) {
            messenger.flush();
            self.collect();
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Waits until the window of a messenger lets it have another message.
    async fn make_room(&mut self, at: usize) -> Result<(), String> {
        let (Some(messenger), Some(room)) = (self.messengers.get(at), self.room.get_mut(at)) else {
            return Ok(());
        };
        let window = self.args.window.max(1);
        if *room == 0 {
            if messenger.outgoing() >= window {
                messenger.flush();
                messenger.settled(window - 1).await.map_err(|error| error.to_string())?;
            }
            *room = window.saturating_sub(messenger.outgoing());
        }
        *room = room.saturating_sub(1);
        Ok(())
    }

    /// Takes in outcomes; says now and then how far it is.
    fn collect(&mut self) {
        for messenger in &self.messengers {
            messenger.take_outcomes(|outcome| self.summary.outcome(outcome.delay_ns));
        }
        let now = Clock.now();
        if !self.args.quiet && now.saturating_duration_since(self.said) >= PROGRESS {
            self.said = now;
            let seconds = now.saturating_duration_since(self.start).as_secs_f64();
            eprintln!(
                "{} messages in {seconds:.1} s, {:.0}/s",
                self.put,
                self.put as f64 / seconds
            );
        }
    }

    async fn finish(mut self, outcome: Result<(), String>) -> Result<Summary, String> {
        let published = Clock.now();
        let mut failure = outcome.err();
        for messenger in &self.messengers {
            messenger.flush();
            if let Err(error) = messenger.stop().await
                && failure.is_none()
            {
                failure = Some(error.to_string());
            }
        }
        self.collect();
        let wanted = self.target().filter(|_| self.args.body_file.is_none());
        let took = published.saturating_duration_since(self.start);
        let counts = self.messengers.iter().map(Messenger::counts);
        self.summary.end(counts, (self.put, wanted), took, failure);
        self.summary.connections(self.messengers.iter().flat_map(Messenger::take_accounts));
        if let Some(file) = self.side {
            self.summary.side_records(file.finish());
        }
        Ok(self.summary)
    }
}

fn side_file(path: &Path, args: &Args) -> Result<SideFile, String> {
    SideFile::create(path, &args.name).map_err(|error| format!("{}: {error}", path.display()))
}

fn messenger(args: &Args, n: usize, records: Option<&SideRecords>) -> Messenger {
    let name = if n == 0 { args.name.clone() } else { format!("{}-{}", args.name, n + 1) };
    let window = args.window.max(1);
    let options = SocketOptions {
        nodelay: args.nodelay == Switch::On,
        kernel_timestamps: args.kernel_timestamps,
        ..SocketOptions::default()
    };
    let builder = Messenger::builder()
        .name(name)
        .timeout(args.timeout)
        .socket(options)
        .settle_second(args.settle_second)
        .split_writes(args.split_writes)
        .store(window, usize::MAX)
        .outgoing_window(1)
        .timelines(match args.timelines {
            Timelines::All => Sampling::All,
            Timelines::OneIn(n) => Sampling::OneIn(n),
            Timelines::Off => Sampling::Off,
        });
    let builder = match records {
        Some(records) => builder.side_records(records.clone()),
        None => builder,
    };
    match &args.ca {
        Some(file) => builder.ca(file).build(),
        None => builder.build(),
    }
}

/// Gives the message a body of one section, in the place of the one before.
fn set_body(message: &mut Message, body: Bytes) {
    match &mut message.body {
        Body::Data(sections) if sections.len() == 1 => sections.fill(body),
        other => *other = Body::Data(vec![body]),
    }
}

/// What all messages have in common.
fn template(args: &Args) -> Message {
    let header = Header {
        durable: args.durable,
        priority: args.priority.unwrap_or(4),
        ttl: args.ttl.map(|ttl| u32::try_from(ttl.as_millis()).unwrap_or(u32::MAX)),
        ..Header::default()
    };
    let mut message = Message { header, ..Message::default() };
    message.properties.content_type = args.content_type.clone().map(Symbol::from);
    let property = |(key, value): &(String, String)| (key.clone(), Value::from(value.as_str()));
    message.application_properties = args.property.iter().map(property).collect();
    message
}
