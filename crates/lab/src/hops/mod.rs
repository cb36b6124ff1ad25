//! Chains of brokers, each of which forwards to the next: what one more of them costs.

mod show;

use crate::broker::Broker;
use crate::load::{Load, Loaded, Over, Pace, SIZE_MIN};
use crate::{Error, Lab, Outcome, Sample, Variant};
use serde::Serialize;
use std::time::Duration;

/// Rounds at most.
pub const ROUNDS_MAX: u32 = 1_000;

/// Brokers of a chain at most: a message that has passed more is not forwarded.
pub const BROKERS_MAX: usize = 16;

/// What to try, and how often.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Settings {
    /// Rounds, each with a run of every chain.
    pub rounds: u32,
    /// How many brokers the chains have.
    pub brokers: Vec<usize>,
    /// Messages a second.
    pub rate: f64,
    /// How long a run is measured, in ms.
    pub length_ms: u64,
    /// How long it runs before that, in ms.
    pub warm_up_ms: u64,
    /// Octets of a body.
    pub size: usize,
    /// Whether messages are sent settled to the first broker.
    pub settled: bool,
    /// Settings of all brokers and clients.
    pub variant: Variant,
}

impl Settings {
    fn check(&self) -> Result<(), Error> {
        let within =
            |setting, value: u64, least: u64, max: u64| match (least..=max).contains(&value) {
                true => Ok(()),
                false => Err(Error::Setting { setting, why: format!("from {least} to {max}") }),
            };
        within("--rounds", self.rounds.into(), 1, ROUNDS_MAX.into())?;
        within("the chains of --brokers", self.brokers.len() as u64, 1, 100)?;
        for brokers in &self.brokers {
            within("--brokers", *brokers as u64, 1, BROKERS_MAX as u64)?;
        }
        within("--size", self.size as u64, SIZE_MIN, 1 << 20)?;
        within("--length in ms", self.length_ms, 100, 600_000)?;
        within("--warm-up in ms", self.warm_up_ms, 0, 60_000)?;
        if !(0.1..=1_000_000.0).contains(&self.rate) {
            let why = "from 0.1 to 1000000 messages a second".into();
            return Err(Error::Setting { setting: "--rate", why });
        }
        Ok(())
    }

    fn length(&self) -> Duration {
        Duration::from_millis(self.length_ms + self.warm_up_ms + 600)
    }

    fn load(&self) -> Load {
        Load {
            urls: Default::default(),
            node: "hops".into(),
            pairs: 1,
            pace: Pace::Rate(self.rate),
            warm_up: Duration::from_millis(self.warm_up_ms),
            length: Duration::from_millis(self.length_ms),
            size: self.size,
            window: 1_000,
            credit: 100,
            settled: self.settled,
            timelines: self.variant.timelines,
            sockets: [self.variant.socket.clone(), self.variant.socket.clone()],
            over: Over::Broker,
            nodes: 1,
            backlog: 0,
        }
    }
}

/// A chain of so many brokers and its runs, one for each round.
#[derive(Clone, Debug)]
struct Runs {
    brokers: usize,
    runs: Vec<Loaded>,
}

impl Runs {
    fn sample(&self, of: impl Fn(&Loaded) -> f64) -> Sample {
        self.runs.iter().map(of).collect()
    }
}

/// Makes the experiment.
///
/// # Errors
/// A setting that can't be, or a run that failed. Being interrupted is none.
pub async fn run(settings: &Settings, lab: &Lab) -> Result<Outcome, Error> {
    settings.check()?;
    let brokers = settings.brokers.iter();
    let mut all: Vec<_> = brokers.map(|&brokers| Runs { brokers, runs: Vec::new() }).collect();
    let made = make(settings, lab, &mut all).await;
    lab.done();
    match made {
        Ok(()) => Ok(show::outcome(settings, &all, true)),
        Err(Error::Interrupted) => Ok(show::outcome(settings, &all, false)),
        Err(error) => Err(error),
    }
}

async fn make(settings: &Settings, lab: &Lab, all: &mut [Runs]) -> Result<(), Error> {
    lab.expect(all.len() * settings.rounds as usize, settings.length());
    let chains = all.len();
    for number in 0..settings.rounds {
        for step in 0..chains {
            let Some(runs) = all.get_mut((step + number as usize) % chains) else { continue };
            let (round, rounds, brokers) = (number + 1, settings.rounds, runs.brokers);
            let what = format!("round {round} of {rounds}, {brokers} brokers");
            let run = lab.run(what, settings.length(), one(settings, lab, brokers)).await?;
            runs.runs.push(run);
        }
    }
    Ok(())
}

async fn one(settings: &Settings, lab: &Lab, brokers: usize) -> Result<Loaded, Error> {
    let mut load = settings.load();
    let queue = load.address(0, 0);
    // The last one first, since each has to know where the next one listens.
    let mut chain: Vec<Broker> = Vec::new();
    for number in (1..=brokers).rev() {
        let mut file = settings.variant.broker_file(&format!("broker-{number}"));
        if let Some(next) = chain.last() {
            let url = next.url(0);
            file += &format!("\n[[forward]]\nfrom = \"{queue}\"\nto = \"{url}/{queue}\"\n");
        }
        chain.push(Broker::start(&lab.programs, &file).await?);
    }
    let (Some(first), Some(last)) = (chain.last(), chain.first()) else {
        return Err(Error::Load("a chain has a broker at least".into()));
    };
    load.urls = [first.url(0), last.url(0)];
    let loaded = load.run(|| Ok(())).await?;
    for broker in chain.into_iter().rev() {
        broker.end().await?;
    }
    Ok(loaded)
}
