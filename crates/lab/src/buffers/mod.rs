//! Socket buffers, and messages that share a write: a sweep of each, from the defaults.

mod show;

use crate::broker::Broker;
use crate::load::{Load, Loaded, Over, Pace, SIZE_MIN};
use crate::{Error, Lab, Outcome, Sample, Variant};
use hopline_messenger::SocketOptions;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Rounds at most.
pub const ROUNDS_MAX: u32 = 1_000;

/// Points of a sweep at most.
pub const POINTS_MAX: usize = 100;

/// Messages that share a write where nothing else is said: as `hopline-publish` does it.
const COALESCE: u32 = 64;

/// What to try, and how often.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Settings {
    /// Rounds, each with a run of every point.
    pub rounds: u32,
    /// SO_RCVBUF of all ends, in octets, one after the other.
    pub receive_buffers: Vec<usize>,
    /// SO_SNDBUF likewise.
    pub send_buffers: Vec<usize>,
    /// How many messages a publisher puts between two writes, likewise.
    pub coalesce: Vec<u32>,
    /// How long either half of a run is measured, in ms: flat out, then at a rate.
    pub length_ms: u64,
    /// Messages a second of the half that shows delays.
    pub rate: f64,
    /// Octets of a body.
    pub size: usize,
    /// Messages that the publisher may have unsettled.
    pub window: usize,
    /// Messages that the broker may send ahead to the subscriber.
    pub credit: u32,
    /// Whether messages are sent settled.
    pub settled: bool,
}

/// One value of one setting, all others at their defaults.
#[derive(Copy, Clone, Debug, PartialEq)]
enum Point {
    Defaults,
    ReceiveBuffer(usize),
    SendBuffer(usize),
    Coalesce(u32),
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Point::Defaults => f.write_str("defaults"),
            Point::ReceiveBuffer(octets) => write!(f, "receive_buffer={octets}"),
            Point::SendBuffer(octets) => write!(f, "send_buffer={octets}"),
            Point::Coalesce(messages) => write!(f, "coalesce={messages}"),
        }
    }
}

impl Point {
    fn variant(self) -> Result<Variant, Error> {
        let text = match self {
            Point::ReceiveBuffer(octets) => {
                format!("listener.receive_buffer={octets},client.receive_buffer={octets}")
            }
            Point::SendBuffer(octets) => {
                format!("listener.send_buffer={octets},client.send_buffer={octets}")
            }
            Point::Defaults | Point::Coalesce(_) => String::new(),
        };
        text.parse().map_err(|why| Error::Setting { setting: "a buffer", why })
    }

    fn coalesce(self) -> u32 {
        match self {
            Point::Coalesce(messages) => messages,
            _ => COALESCE,
        }
    }
}

impl Settings {
    fn points(&self) -> Vec<Point> {
        let receive = self.receive_buffers.iter().copied().map(Point::ReceiveBuffer);
        let send = self.send_buffers.iter().copied().map(Point::SendBuffer);
        let coalesce = self.coalesce.iter().copied().map(Point::Coalesce);
        std::iter::once(Point::Defaults).chain(receive).chain(send).chain(coalesce).collect()
    }

    fn check(&self) -> Result<(), Error> {
        let within =
            |setting, value: u64, least: u64, max: u64| match (least..=max).contains(&value) {
                true => Ok(()),
                false => Err(Error::Setting { setting, why: format!("from {least} to {max}") }),
            };
        within("--rounds", self.rounds.into(), 1, ROUNDS_MAX.into())?;
        within("the points of the sweep", self.points().len() as u64, 2, POINTS_MAX as u64)?;
        for octets in self.receive_buffers.iter().chain(&self.send_buffers) {
            within("a buffer", *octets as u64, 1_024, 1 << 30)?;
        }
        for messages in &self.coalesce {
            within("--coalesce", (*messages).into(), 1, 10_000)?;
        }
        within("--size", self.size as u64, SIZE_MIN, 1 << 20)?;
        within("--window", self.window as u64, 1, 100_000)?;
        within("--credit", self.credit.into(), 1, 100_000)?;
        within("--length in ms", self.length_ms, 100, 600_000)?;
        if !(0.1..=1_000_000.0).contains(&self.rate) {
            let why = "from 0.1 to 1000000 messages a second".into();
            return Err(Error::Setting { setting: "--rate", why });
        }
        Ok(())
    }

    /// How long a run of one point takes.
    fn length(&self) -> Duration {
        let around = Duration::from_millis(400);
        Duration::from_millis(self.length_ms).saturating_add(self.warm_up() + around / 2) * 2
    }

    fn warm_up(&self) -> Duration {
        Duration::from_millis(self.length_ms / 5)
    }

    fn load(&self, pace: Pace, url: String, socket: &SocketOptions) -> Load {
        Load {
            urls: [url.clone(), url],
            node: "buffers".into(),
            pairs: 1,
            pace,
            warm_up: self.warm_up(),
            length: Duration::from_millis(self.length_ms),
            size: self.size,
            window: self.window,
            credit: self.credit,
            settled: self.settled,
            timelines: false,
            sockets: [socket.clone(), socket.clone()],
            over: Over::Broker,
            nodes: 1,
            backlog: 0,
        }
    }
}

/// A run of one point.
#[derive(Clone, Debug)]
struct Run {
    flat_out: Loaded,
    at_rate: Loaded,
}

/// A point and its runs, one for each round.
#[derive(Clone, Debug)]
struct Runs {
    point: Point,
    runs: Vec<Run>,
}

impl Runs {
    fn sample(&self, of: impl Fn(&Run) -> f64) -> Sample {
        self.runs.iter().map(of).collect()
    }
}

/// Makes the experiment.
///
/// # Errors
/// A setting that can't be, or a run that failed. Being interrupted is none.
pub async fn run(settings: &Settings, lab: &Lab) -> Result<Outcome, Error> {
    settings.check()?;
    let points = settings.points().into_iter();
    let mut all: Vec<_> = points.map(|point| Runs { point, runs: Vec::new() }).collect();
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
    let points = all.len();
    for number in 0..settings.rounds {
        // Who is first changes, so that nobody always runs after the same one.
        for step in 0..points {
            let Some(runs) = all.get_mut((step + number as usize) % points) else { continue };
            let what = format!("round {} of {}, {}", number + 1, settings.rounds, runs.point);
            let run = lab.run(what, settings.length(), one(settings, lab, runs.point)).await?;
            runs.runs.push(run);
        }
    }
    Ok(())
}

async fn one(settings: &Settings, lab: &Lab, point: Point) -> Result<Run, Error> {
    let variant = point.variant()?;
    let mut loaded = Vec::new();
    for pace in [Pace::FlatOut(point.coalesce()), Pace::Rate(settings.rate)] {
        let broker = Broker::start(&lab.programs, &variant.broker_file("broker")).await?;
        let load = settings.load(pace, broker.url(0), &variant.socket);
        loaded.push(load.run(|| Ok(())).await?);
        broker.end().await?;
    }
    match <[Loaded; 2]>::try_from(loaded) {
        Ok([flat_out, at_rate]) => Ok(Run { flat_out, at_rate }),
        Err(_) => Err(Error::Load("it has two halves".into())),
    }
}
