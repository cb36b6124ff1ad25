//! TCP_NODELAY on against off (Nagle's algorithm): the whole chain, in turn, round by round.
//!
//! A run is three processes, publisher, broker and subscriber, on loopback or on a path with delay,
//! loss and rate between the clients and the broker. Runs with and without
//! are interleaved, the first of a round in turn, so that what else happens on the machine falls
//! on both. The report's own code reads the timelines and names the causes of late messages.

mod settings;
mod show;

pub use settings::{End, MESSAGES_MAX, Pace, ROUNDS_MAX, Settings, Settle, Throttle, TopUp, Write};

use crate::chain::{Chain, Measured};
use crate::path::Path;
use crate::{Error, Lab, Outcome};
use hopline_messenger::driver::KernelTimestamps;
use std::path::PathBuf;

/// A run's time beside its messages, roughly: starting and ending processes.
const AROUND: std::time::Duration = std::time::Duration::from_millis(300);

/// One run with TCP_NODELAY off at the ends in question, one with it on at all.
#[derive(Clone, Debug, Default)]
struct Round {
    off: Option<Measured>,
    on: Option<Measured>,
}

/// Makes the experiment.
///
/// # Errors
/// A setting that can't be, or a run that failed. Being interrupted is none.
pub async fn run(settings: &Settings, lab: &Lab) -> Result<Outcome, Error> {
    settings.check()?;
    settings
        .kernel_timestamps
        .parse::<KernelTimestamps>()
        .map_err(|why| Error::Setting { setting: "--kernel-timestamps", why: why.to_owned() })?;
    let length = settings.length() + AROUND;
    lab.expect(settings.rounds as usize * 2, length);
    let path = settings.path.map(Path::new).transpose()?;
    let mut rounds = Vec::new();
    let made = make(settings, lab, path.as_ref(), &mut rounds).await;
    lab.done();
    match made {
        Ok(()) => Ok(show::outcome(settings, &rounds, true)),
        Err(Error::Interrupted) => Ok(show::outcome(settings, &rounds, false)),
        Err(error) => Err(error),
    }
}

async fn make(
    settings: &Settings,
    lab: &Lab,
    path: Option<&Path>,
    rounds: &mut Vec<Round>,
) -> Result<(), Error> {
    let length = settings.length() + AROUND;
    for number in 0..settings.rounds {
        rounds.push(Round::default());
        for second in [false, true] {
            let nodelay = number.is_multiple_of(2) == second;
            let word = if nodelay { "on" } else { "off" };
            let what = format!("round {} of {}, no-delay {word}", number + 1, settings.rounds);
            let mut chain = chain(settings, lab, path, nodelay);
            let folder = |keep: &PathBuf| keep.join(format!("round-{}-{word}", number + 1));
            chain.keep = settings.keep.as_ref().map(folder);
            let measured = lab.run(what, length, chain.run()).await?;
            if let Some(round) = rounds.last_mut() {
                let half = if nodelay { &mut round.on } else { &mut round.off };
                *half = Some(measured);
            }
        }
    }
    Ok(())
}

fn chain<'a>(
    settings: &Settings,
    lab: &'a Lab,
    path: Option<&'a Path>,
    nodelay: bool,
) -> Chain<'a> {
    let host = path.map_or("127.0.0.1", |_| Path::address());
    let at = |end: End| nodelay || !settings.ends.contains(&end);
    let stamps = &settings.kernel_timestamps;
    let listener = |end| {
        format!(
            "[[listener]]\naddress = \"{host}:0\"\nnodelay = {}\n\
             kernel_timestamps = \"{stamps}\"\n",
            at(end)
        )
    };
    let (broker_in, broker_out) = (listener(End::BrokerIn), listener(End::BrokerOut));
    Chain {
        programs: &lab.programs,
        broker: format!("name = \"broker\"\nstop_timeout = \"1s\"\n{broker_in}{broker_out}"),
        publisher: publisher(settings, at(End::Publisher)),
        subscriber: subscriber(settings, at(End::Subscriber)),
        length: settings.length(),
        path,
        late: std::time::Duration::from_micros(settings.late_us),
        side_records: settings.is_stamped_when_sent(),
        keep: None,
    }
}

fn switch(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}

fn publisher(settings: &Settings, nodelay: bool) -> Vec<String> {
    let mut options = vec![
        ("--count", settings.messages.to_string()),
        ("--size", settings.size.to_string()),
        ("--window", settings.window.to_string()),
        ("--nodelay", switch(nodelay)),
        ("--kernel-timestamps", settings.kernel_timestamps.clone()),
    ];
    if let Pace::Rate(rate) = settings.pace {
        options.push(("--rate", rate.to_string()));
    }
    if settings.write == Write::Split {
        options.push(("--split-writes", "8".to_owned()));
    }
    let mut arguments = flat(options);
    match settings.settle {
        Settle::Presettled => arguments.push("--settled".into()),
        Settle::Accepted => {}
        Settle::Second => arguments.push("--settle-second".into()),
    }
    arguments
}

fn subscriber(settings: &Settings, nodelay: bool) -> Vec<String> {
    let top_up = match settings.top_up {
        TopUp::Half => "half",
        TopUp::Each => "each",
    };
    let mut options = vec![
        ("--count", settings.messages.to_string()),
        ("--credit", settings.credit.to_string()),
        ("--top-up", top_up.to_owned()),
        ("--nodelay", switch(nodelay)),
        ("--kernel-timestamps", settings.kernel_timestamps.clone()),
    ];
    if let Some(Throttle { rate, window_ms }) = settings.throttle {
        options.push(("--throttle", rate.to_string()));
        options.push(("--throttle-window", format!("{window_ms}ms")));
    }
    let mut arguments = flat(options);
    if settings.settle == Settle::Second {
        arguments.push("--settle-second".into());
    }
    arguments
}

fn flat(options: Vec<(&str, String)>) -> Vec<String> {
    options.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
}
