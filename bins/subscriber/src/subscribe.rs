//! The run: messages from the messenger to the records.

use crate::args::{Args, Switch, TopUp, Verdict};
use crate::live::Live;
use crate::output::Output;
use crate::throttle::Throttle;
use hopline_messenger::driver::Clock;
use hopline_messenger::timeline::Instant;
use hopline_messenger::{DeliveryState, Messenger, Received, SocketOptions, Span};
use std::io;
use std::time::Duration;
use tokio::time::sleep;

/// How often records are given out and the live line is shown while nothing comes.
const IDLE: Duration = Duration::from_millis(200);

/// Messages that are taken at once, and settled at once.
const BATCH: usize = 64;

/// Subscribes; `true` if all that was asked for happened.
pub(crate) async fn run(args: &Args) -> Result<bool, String> {
    let messenger = messenger(args);
    // Whoever counts must not be sent more than it counts.
    if args.count.is_some() {
        messenger.recv(Some(0));
    }
    messenger.subscribe(&args.url).await.map_err(|error| error.to_string())?;
    let mut run = Run {
        output: Output::open(args, &messenger).map_err(|error| error.to_string())?,
        live: Live::new(args.quiet),
        throttle: Throttle::new(args.throttle.map(|rate| rate.get()), args.throttle_window),
        taken: Vec::with_capacity(BATCH),
        args,
        messenger,
        interrupted: false,
        granted: 0,
    };
    let taken = run.take().await;
    run.finish(taken).await
}

fn messenger(args: &Args) -> Messenger {
    let options = SocketOptions {
        nodelay: args.nodelay == Switch::On,
        kernel_timestamps: args.kernel_timestamps,
        ..SocketOptions::default()
    };
    let builder = Messenger::builder()
        .name(&args.name)
        .timeout(args.timeout)
        .credit(args.credit.get())
        .top_up(match args.top_up {
            TopUp::Half => hopline_messenger::TopUp::Half,
            TopUp::Each => hopline_messenger::TopUp::Each,
        })
        .settle_second(args.settle_second)
        // Trackers, which are of use within it, are not.
        .incoming_window(0)
        .socket(options);
    match &args.ca {
        Some(file) => builder.ca(file).build(),
        None => builder.build(),
    }
}

struct Run<'a> {
    args: &'a Args,
    messenger: Messenger,
    output: Output,
    live: Live,
    throttle: Throttle,
    taken: Vec<Received>,
    interrupted: bool,
    /// With a count: how many messages the broker may have sent by now.
    granted: u64,
}

impl Run<'_> {
    async fn take(&mut self) -> Result<(), String> {
        let end = self.args.duration.map(|duration| Clock.now().saturating_add(duration));
        let interrupt = interrupted();
        tokio::pin!(interrupt);
        self.grant();
        while self.args.count.is_none_or(|count| self.live.received < count) {
            let left = end.map(|end| end.saturating_duration_since(Clock.now()));
            let closed = self.throttle.closed_for(Clock.now());
            let idle = left.unwrap_or(IDLE).min(IDLE);
            let idle = if closed.is_zero() { idle } else { idle.min(closed) };
            let most = self.most();
            tokio::select! {
                biased;
                () = &mut interrupt => {
                    self.interrupted = true;
                    return Ok(());
                }
                came = self.messenger.next_many(&mut self.taken, most), if closed.is_zero() => {
                    came.map_err(|error| error.to_string())?;
                    if !self.batch()? {
                        return Ok(());
                    }
                }
                () = sleep(idle) => {
                    self.output.flush().map_err(|error| error.to_string())?;
                    self.live.show();
                }
            }
            if end.is_some_and(|end| Clock.now() >= end) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// How many messages may be taken at once, now.
    fn most(&mut self) -> usize {
        if !self.throttle.closed_for(Clock.now()).is_zero() {
            return 0;
        }
        let left = self.args.count.map(|count| count.saturating_sub(self.live.received));
        let most = left.unwrap_or(u64::MAX).min(self.throttle.room());
        usize::try_from(most).unwrap_or(BATCH).min(BATCH)
    }

    /// Handles what was taken and what else is there, then tells the broker in one write. `false`:
    /// nobody reads what we write any more.
    fn batch(&mut self) -> Result<bool, String> {
        let mut goes_on = true;
        let mut taken = std::mem::take(&mut self.taken);
        while goes_on && !taken.is_empty() {
            goes_on = self.handle(&taken)?;
            taken.clear();
            match self.most() {
                0 => break,
                most => self.messenger.get_many(&mut taken, most),
            };
        }
        self.taken = taken;
        self.grant();
        self.messenger.flush();
        self.live.show();
        Ok(goes_on)
    }

    /// Writes messages down, and settles those that were. `false`: nobody reads what we write any
    /// more.
    fn handle(&mut self, taken: &[Received]) -> Result<bool, String> {
        let now = Clock.now();
        let (mut written, mut last) = (Ok(()), None);
        for received in taken {
            written = self.write_down(received, now);
            if written.is_err() {
                break;
            }
            last = Some(received).filter(|received| !received.is_settled()).or(last);
        }
        if let Some(last) = last {
            // All came by one link, in this order.
            let settled = self.messenger.settle(last, self.outcome(), Span::UpTo);
            settled.map_err(|error| error.to_string())?;
        }
        match written {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }

    fn write_down(&mut self, received: &Received, now: Instant) -> io::Result<()> {
        let timeline = received.timeline();
        let malformed = timeline.is_none() && received.has_annotation();
        let seq = self.live.received;
        self.throttle.take(now);
        self.live.count(timeline.as_ref(), malformed, now);
        self.output.message(seq, received, timeline.as_ref())
    }

    fn outcome(&self) -> DeliveryState {
        match self.args.outcome {
            Verdict::Accept => DeliveryState::Accepted,
            Verdict::Release => DeliveryState::Released,
            Verdict::Reject => DeliveryState::Rejected(Default::default()),
        }
    }

    /// With a count: credit for what is left of it, at most the credit asked for; once half of what
    /// was granted has come.
    fn grant(&mut self) {
        let Some(count) = self.args.count else { return };
        let received = self.messenger.counts().received;
        let credit = count.saturating_sub(received).min(self.args.credit.get().into());
        let left = self.granted.saturating_sub(received);
        if left <= u64::from(self.args.credit.get()) / 2 && credit > left {
            self.granted = received + credit;
            self.messenger.recv(Some(u32::try_from(credit).unwrap_or(u32::MAX)));
        }
    }

    async fn finish(mut self, taken: Result<(), String>) -> Result<bool, String> {
        self.messenger.flush();
        let stopped = self.messenger.stop().await;
        let accounts = self.messenger.take_accounts();
        match self.output.flush().and_then(|()| self.output.finish(&accounts, &self.live)) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                return Err(error.to_string());
            }
            _ => {}
        }
        if !self.args.quiet {
            eprintln!("{}", self.live.summary());
            accounts.iter().for_each(|account| eprintln!("{account}"));
        }
        taken?;
        stopped.map_err(|error| error.to_string())?;
        let all = self.args.count.is_none_or(|count| self.live.received >= count);
        Ok(all && !(self.interrupted && self.args.count.is_some()))
    }
}

/// Ctrl-C or SIGTERM.
async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
        }
        Err(_) => drop(tokio::signal::ctrl_c().await),
    }
}
