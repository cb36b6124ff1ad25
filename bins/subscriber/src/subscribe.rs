//! The run: messages from the messenger to the records.

use crate::args::{Args, Switch, TopUp, Verdict};
use crate::live::Live;
use crate::output::Output;
use crate::throttle::Throttle;
use hopline_messenger::driver::Clock;
use hopline_messenger::{DeliveryState, Messenger, Received, SocketOptions, Span};
use std::io;
use std::time::Duration;
use tokio::time::sleep;

/// How often records are given out and the live line is shown while nothing comes.
const IDLE: Duration = Duration::from_millis(200);

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
            tokio::select! {
                biased;
                () = &mut interrupt => {
                    self.interrupted = true;
                    return Ok(());
                }
                received = self.messenger.next(), if closed.is_zero() => {
                    let received = received.map_err(|error| error.to_string())?;
                    if !self.handle(&received)? {
                        return Ok(());
                    }
                    self.batch()?;
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

    /// Takes what else is there, then tells the broker in one write.
    fn batch(&mut self) -> Result<(), String> {
        while self.args.count.is_none_or(|count| self.live.received < count)
            && self.throttle.closed_for(Clock.now()).is_zero()
            && let Some(received) = self.messenger.get()
        {
            if !self.handle(&received)? {
                break;
            }
        }
        self.grant();
        self.messenger.flush();
        self.live.show();
        Ok(())
    }

    /// One message. `false`: nobody reads what we write any more.
    fn handle(&mut self, received: &Received) -> Result<bool, String> {
        let timeline = received.timeline();
        let malformed = timeline.is_none() && received.has_annotation();
        let seq = self.live.received;
        self.throttle.take(Clock.now());
        self.live.count(timeline.as_ref(), malformed);
        let written = self.output.message(seq, received, timeline.as_ref());
        let outcome = match self.args.outcome {
            Verdict::Accept => DeliveryState::Accepted,
            Verdict::Release => DeliveryState::Released,
            Verdict::Reject => DeliveryState::Rejected(Default::default()),
        };
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(false),
            Err(error) => return Err(error.to_string()),
        }
        let settled = self.messenger.settle(received, outcome, Span::One);
        settled.map(|()| true).map_err(|error| error.to_string())
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
