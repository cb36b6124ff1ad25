//! Hopline's broker against a raw TCP relay, and against any AMQP 1.0 broker whose address is
//! given.

mod goals;
mod idle;
mod scenario;
mod show;
mod target;

pub use scenario::{Growth, Of, Scenario};
pub use target::Peer;

use crate::cpu::ProcessCpu;
use crate::load::Loaded;
use crate::{Error, Lab, Outcome};
use serde::Serialize;
use std::ops::RangeInclusive;
use std::time::Duration;
use target::{Running, Target};

/// Rounds at most.
pub const ROUNDS_MAX: u32 = 1_000;

/// Queues, links or idle connections at least and at most: less is not many, and a broker has
/// no more nodes.
pub const GROWTH: RangeInclusive<usize> = 10..=90_000;

/// Peers at most.
pub const PEERS_MAX: usize = 16;

/// What to measure, and how often.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Settings {
    /// Rounds, each with a run of every scenario over every target.
    pub rounds: u32,
    /// The loads.
    pub scenarios: Vec<Scenario>,
    /// How long a run is measured, in ms.
    pub length_ms: u64,
    /// Queues, links or idle connections where there are to be many, and a hundredth of a backlog.
    pub growth: usize,
    /// Brokers of others.
    pub peers: Vec<Peer>,
}

impl Settings {
    fn check(&self) -> Result<(), Error> {
        let within =
            |setting, value: u64, least: u64, max: u64| match (least..=max).contains(&value) {
                true => Ok(()),
                false => Err(Error::Setting { setting, why: format!("from {least} to {max}") }),
            };
        within("--rounds", self.rounds.into(), 1, ROUNDS_MAX.into())?;
        within("--growth", self.growth as u64, *GROWTH.start() as u64, *GROWTH.end() as u64)?;
        within("--peer", self.peers.len() as u64, 0, PEERS_MAX as u64)?;
        within("--length in ms", self.length_ms, 100, 600_000)
    }

    fn measured(&self) -> Duration {
        Duration::from_millis(self.length_ms)
    }

    /// How long a run takes.
    fn length(&self) -> Duration {
        self.measured() * 5 / 4 + Duration::from_millis(300)
    }
}

/// One run.
#[derive(Clone, Debug)]
enum Run {
    Load(Box<UnderLoad>),
    Idle(Idle),
}

/// A target under a load.
#[derive(Clone, Debug)]
struct UnderLoad {
    loaded: Loaded,
    /// Of the target's process, where it is known.
    cpu: Option<ProcessCpu>,
    /// From the start of a broker until it listened.
    started_in: Option<Duration>,
}

/// Connections that did nothing.
#[derive(Copy, Clone, Debug)]
struct Idle {
    connections: usize,
    /// What the broker held for all of them.
    resident_kib: u64,
    spent: ProcessCpu,
    seconds: f64,
}

/// The runs of one scenario over one target, one for each round.
#[derive(Clone, Debug)]
struct Cell {
    scenario: Scenario,
    target: Target,
    runs: Vec<Run>,
}

/// Makes the comparison.
///
/// # Errors
/// A setting that can't be, or a run that failed. Being interrupted is none.
pub async fn run(settings: &Settings, lab: &Lab) -> Result<Outcome, Error> {
    settings.check()?;
    let targets = Target::all(&settings.peers);
    let cell = |scenario, target: &Target| Cell { scenario, target: target.clone(), runs: vec![] };
    let mut cells = Vec::new();
    for scenario in &settings.scenarios {
        let targets = targets.iter().filter(|target| scenario.is_measured_of(target));
        cells.extend(targets.map(|target| cell(*scenario, target)));
    }
    if settings.scenarios.iter().any(|scenario| scenario.growth == Some(Growth::Idle)) {
        idle::raise_file_limit(settings.growth)?;
    }
    let made = make(settings, lab, &mut cells).await;
    lab.done();
    match made {
        Ok(()) => Ok(show::outcome(settings, &cells, true)),
        Err(Error::Interrupted) => Ok(show::outcome(settings, &cells, false)),
        Err(error) => Err(error),
    }
}

async fn make(settings: &Settings, lab: &Lab, cells: &mut [Cell]) -> Result<(), Error> {
    lab.expect(cells.len() * settings.rounds as usize, settings.length());
    for number in 0..settings.rounds {
        for cell in &mut *cells {
            let (scenario, target) = (cell.scenario, &cell.target);
            let (round, rounds) = (number + 1, settings.rounds);
            let what = format!("round {round} of {rounds}, {}, {target}", scenario.name);
            let one = one(settings, lab, scenario, target);
            cell.runs.push(lab.run(what, settings.length(), one).await?);
        }
    }
    Ok(())
}

async fn one(
    settings: &Settings,
    lab: &Lab,
    scenario: Scenario,
    target: &Target,
) -> Result<Run, Error> {
    let file = scenario.broker_settings(settings.growth);
    let running = Running::start(target, &lab.programs, file).await?;
    let run = match scenario.growth {
        Some(Growth::Idle) => idle::run(&running, settings.growth, settings.measured()).await?,
        _ => under_load(settings, scenario, target, &running).await?,
    };
    running.end().await?;
    Ok(run)
}

async fn under_load(
    settings: &Settings,
    scenario: Scenario,
    target: &Target,
    running: &Running,
) -> Result<Run, Error> {
    let (urls, over) = (running.urls(), target.over());
    let load = scenario.load(urls, over, settings.growth, settings.measured());
    let mut spent = Vec::new();
    let loaded = load.run(|| {
        // Of a process of another user, say, it is not known.
        spent.push(running.id().and_then(|id| ProcessCpu::of(id).ok()));
        Ok(())
    });
    let loaded = loaded.await?;
    let cpu = match spent.as_slice() {
        [Some(from), Some(to)] => Some(*to - *from),
        _ => None,
    };
    Ok(Run::Load(Box::new(UnderLoad { loaded, cpu, started_in: running.started_in() })))
}
