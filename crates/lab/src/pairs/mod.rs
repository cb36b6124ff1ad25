//! What forwarding costs the machine: many pairs at a fixed rate, two variants of the settings in
//! turn.

mod show;

use crate::broker::Broker;
use crate::cpu::{MachineCpu, ProcessCpu};
use crate::load::{Load, Loaded, Over, PAIRS_MAX, Pace, SIZE_MIN};
use crate::{Error, Lab, Outcome, Variant};
use serde::Serialize;
use std::time::Duration;

/// Rounds at most.
pub const ROUNDS_MAX: u32 = 1_000;

/// What to try, and how often.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Settings {
    /// Rounds, each a run of either variant.
    pub rounds: u32,
    /// Publisher and subscriber pairs.
    pub pairs: usize,
    /// Messages a second of each pair.
    pub rate: f64,
    /// How long a run is measured, in ms.
    pub length_ms: u64,
    /// How long it runs before that, in ms.
    pub warm_up_ms: u64,
    /// Octets of a body.
    pub size: usize,
    /// Messages that a publisher may have unsettled.
    pub window: usize,
    /// Messages that the broker may send ahead to each subscriber.
    pub credit: u32,
    /// Whether messages are sent settled.
    pub settled: bool,
    /// The variants that are compared.
    pub variants: [Variant; 2],
}

impl Settings {
    fn check(&self) -> Result<(), Error> {
        let within =
            |setting, value: u64, least: u64, max: u64| match (least..=max).contains(&value) {
                true => Ok(()),
                false => Err(Error::Setting { setting, why: format!("from {least} to {max}") }),
            };
        within("--rounds", self.rounds.into(), 1, ROUNDS_MAX.into())?;
        within("--pairs", self.pairs as u64, 1, PAIRS_MAX)?;
        within("--size", self.size as u64, SIZE_MIN, 1 << 20)?;
        within("--window", self.window as u64, 1, 100_000)?;
        within("--credit", self.credit.into(), 1, 100_000)?;
        within("--length in ms", self.length_ms, 100, 600_000)?;
        within("--warm-up in ms", self.warm_up_ms, 0, 60_000)?;
        if !(0.1..=1_000_000.0).contains(&self.rate) {
            let why = "from 0.1 to 1000000 messages a second".into();
            return Err(Error::Setting { setting: "--rate", why });
        }
        Ok(())
    }

    fn load(&self, variant: &Variant, url: String) -> Load {
        Load {
            urls: [url.clone(), url],
            node: "pair".into(),
            pairs: self.pairs,
            pace: Pace::Rate(self.rate),
            warm_up: Duration::from_millis(self.warm_up_ms),
            length: Duration::from_millis(self.length_ms),
            size: self.size,
            window: self.window,
            credit: self.credit,
            settled: self.settled,
            timelines: variant.timelines,
            sockets: [variant.socket.clone(), variant.socket.clone()],
            over: Over::Broker,
            nodes: 1,
            backlog: 0,
        }
    }
}

/// One run.
#[derive(Clone, Debug)]
struct Run {
    loaded: Loaded,
    broker: ProcessCpu,
    machine: MachineCpu,
}

/// A run of each variant, as far as they were made.
type Round = [Option<Run>; 2];

/// Makes the experiment.
///
/// # Errors
/// A setting that can't be, or a run that failed. Being interrupted is none.
pub async fn run(settings: &Settings, lab: &Lab) -> Result<Outcome, Error> {
    settings.check()?;
    let mut rounds = Vec::new();
    let made = make(settings, lab, &mut rounds).await;
    lab.done();
    match made {
        Ok(()) => Ok(show::outcome(settings, &rounds, true)),
        Err(Error::Interrupted) => Ok(show::outcome(settings, &rounds, false)),
        Err(error) => Err(error),
    }
}

async fn make(settings: &Settings, lab: &Lab, rounds: &mut Vec<Round>) -> Result<(), Error> {
    let around = Duration::from_millis(500);
    let length = Duration::from_millis(settings.length_ms + settings.warm_up_ms) + around;
    lab.expect(settings.rounds as usize * 2, length);
    for number in 0..settings.rounds {
        rounds.push([None, None]);
        let order = if number.is_multiple_of(2) { [0, 1] } else { [1, 0] };
        for at in order {
            let Some(variant) = settings.variants.get(at) else { continue };
            let what = format!("round {} of {}, {variant}", number + 1, settings.rounds);
            let run = lab.run(what, length, one(settings, lab, variant)).await?;
            if let Some(half) = rounds.last_mut().and_then(|round| round.get_mut(at)) {
                *half = Some(run);
            }
        }
    }
    Ok(())
}

async fn one(settings: &Settings, lab: &Lab, variant: &Variant) -> Result<Run, Error> {
    let broker = Broker::start(&lab.programs, &variant.broker_file("broker")).await?;
    let mut spent = Vec::new();
    let load = settings.load(variant, broker.url(0));
    let loaded = load.run(|| {
        spent.push((ProcessCpu::of(broker.id())?, MachineCpu::now()?));
        Ok(())
    });
    let loaded = loaded.await?;
    broker.end().await?;
    match spent.as_slice() {
        [from, to] => Ok(Run { loaded, broker: to.0 - from.0, machine: to.1 - from.1 }),
        _ => Err(Error::Load("its CPU time was not read twice".into())),
    }
}
