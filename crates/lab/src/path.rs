//! A path with delay, loss and rate, between two network namespaces that come and go with it.
//!
//! Two TUN devices, one in each namespace, and a forwarder between them: no module of the kernel is
//! needed but that of TUN.

use crate::Error;
use hopline_messenger::driver::{Clock, Timer, Tun};
use hopline_timeline::Instant;
use rustix::process::geteuid;
use serde::Serialize;
use std::collections::VecDeque;
use std::io;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Packets under way in one direction at most; more are lost, as at a router.
const UNDER_WAY_MAX: usize = 1_000;

/// Octets of the longest packet.
const PACKET_MAX: usize = 65_536;

/// The addresses of both ends.
const ADDRESSES: [&str; 2] = ["10.119.0.1", "10.119.0.2"];

/// What a path does to each packet, in each direction: `delay=20ms,loss=0.1%,rate=10` (Mbit/s).
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize)]
pub struct Shape {
    /// One way, in us.
    pub delay_us: u64,
    /// The share of packets that are lost, 0 to 1.
    pub loss: f64,
    /// In Mbit/s; 0: no limit.
    pub rate_mbit: f64,
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let usage = "write delay=20ms,loss=0.1%,rate=10 (Mbit/s), or some of them";
        let mut shape = Self::default();
        for part in text.split(',') {
            let (name, value) = part.split_once('=').ok_or(usage)?;
            let number = |text: &str| text.parse::<f64>().ok().filter(|it| it.is_finite());
            match name {
                "delay" => {
                    let ms = value.strip_suffix("ms").and_then(number).ok_or(usage)?;
                    let is_fit = (0.0..=10_000.0).contains(&ms);
                    is_fit.then_some(()).ok_or("delay: from 0ms to 10000ms")?;
                    shape.delay_us = (ms * 1e3).round() as u64;
                }
                "loss" => {
                    let percent = value.strip_suffix('%').and_then(number).ok_or(usage)?;
                    let is_fit = (0.0..=50.0).contains(&percent);
                    is_fit.then_some(()).ok_or("loss: from 0% to 50%")?;
                    shape.loss = percent / 100.0;
                }
                "rate" => {
                    let rate = number(value).ok_or(usage)?;
                    let is_fit = (0.01..=10_000.0).contains(&rate);
                    is_fit.then_some(()).ok_or("rate: from 0.01 to 10000 Mbit/s")?;
                    shape.rate_mbit = rate;
                }
                _ => return Err(usage.into()),
            }
        }
        Ok(shape)
    }
}

/// A path that is there until this is dropped.
#[derive(Debug)]
pub(crate) struct Path {
    namespaces: [String; 2],
    forwarders: Vec<JoinHandle<()>>,
}

impl Path {
    /// Makes one. The first end is for clients, the second for the broker.
    pub(crate) fn new(shape: Shape) -> Result<Self, Error> {
        if !geteuid().is_root() {
            let why = "network namespaces need root: run it with sudo, or without --path".into();
            return Err(Error::Setting { setting: "--path", why });
        }
        let id = std::process::id();
        let namespaces = ["a", "b"].map(|end| format!("hopline-lab-{id}-{end}"));
        let mut path = Self { namespaces, forwarders: Vec::new() };
        let mut devices = Vec::new();
        for (end, (namespace, address)) in path.namespaces.iter().zip(ADDRESSES).enumerate() {
            let device = format!("hl{id}{}", if end == 0 { "a" } else { "b" });
            ip(&["netns", "add", namespace])?;
            devices.push(Arc::new(Tun::open(&device).map_err(Error::file("/dev/net/tun"))?));
            ip(&["link", "set", &device, "netns", namespace])?;
            ip(&["-n", namespace, "addr", "add", &format!("{address}/30"), "dev", &device])?;
            ip(&["-n", namespace, "link", "set", &device, "up"])?;
            ip(&["-n", namespace, "link", "set", "lo", "up"])?;
        }
        if let [a, b] = devices.as_slice() {
            for (from, to) in [(a.clone(), b.clone()), (b.clone(), a.clone())] {
                let timer = Timer::new().map_err(Error::file("a timer"))?;
                path.forwarders.push(tokio::spawn(forward(from, to, timer, shape)));
            }
        }
        Ok(path)
    }

    /// Where the broker listens.
    pub(crate) fn address() -> &'static str {
        let [_, broker] = ADDRESSES;
        broker
    }

    /// The namespace of clients (0) or of the broker (1).
    pub(crate) fn namespace(&self, end: usize) -> Option<&str> {
        self.namespaces.get(end).map(String::as_str)
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.forwarders.iter().for_each(JoinHandle::abort);
        for namespace in &self.namespaces {
            // Of an attempt that failed there may be one or none.
            let _ = ip(&["netns", "del", namespace]);
        }
    }
}

fn ip(arguments: &[&str]) -> Result<(), Error> {
    let mut command = Command::new("ip");
    let output = command.args(arguments).stdin(Stdio::null()).output();
    let name = format!("ip {} (of the package iproute2)", arguments.join(" "));
    let output = output.map_err(|source| Error::Start { name: name.clone(), source })?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Error::Failed {
            name,
            status: output.status.to_string(),
            said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        }),
    }
}

/// Packets under way in one direction, and when the line is free again.
#[derive(Debug)]
struct Line {
    shape: Shape,
    under_way: VecDeque<(Instant, Vec<u8>)>,
    free: Instant,
    chance: fastrand::Rng,
}

impl Line {
    fn new(shape: Shape, now: Instant) -> Self {
        Self { shape, under_way: VecDeque::new(), free: now, chance: fastrand::Rng::new() }
    }

    /// A packet sets out, or is lost.
    fn take(&mut self, packet: &[u8], now: Instant) {
        if self.under_way.len() >= UNDER_WAY_MAX || self.chance.f64() < self.shape.loss {
            return;
        }
        let bits = packet.len() as f64 * 8.0;
        let sent = if self.shape.rate_mbit > 0.0 { bits / self.shape.rate_mbit / 1e6 } else { 0.0 };
        let sent = Duration::try_from_secs_f64(sent).unwrap_or_default();
        self.free = self.free.max(now).saturating_add(sent);
        let arrives = self.free.saturating_add(Duration::from_micros(self.shape.delay_us));
        self.under_way.push_back((arrives, packet.to_vec()));
    }

    /// When the next one arrives.
    fn next(&self) -> Option<Instant> {
        self.under_way.front().map(|(arrives, _)| *arrives)
    }

    /// The next one that has arrived.
    fn arrived(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.next().filter(|arrives| *arrives <= now)?;
        self.under_way.pop_front().map(|(_, packet)| packet)
    }
}

async fn forward(from: Arc<Tun>, to: Arc<Tun>, timer: Timer, shape: Shape) {
    let mut line = Line::new(shape, Clock.now());
    let mut buffer = vec![0; PACKET_MAX];
    loop {
        let next = line.next();
        let arrival = async {
            match next {
                Some(next) => timer.until(next).await,
                None => std::future::pending::<io::Result<()>>().await,
            }
        };
        tokio::select! {
            received = from.receive(&mut buffer) => match received {
                Ok(n) => line.take(buffer.get(..n).unwrap_or_default(), Clock.now()),
                Err(_) => return,
            },
            _ = arrival => {}
        }
        while let Some(packet) = line.arrived(Clock.now()) {
            // What the host can't take is lost, as on any path.
            let _ = to.send(&packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: i64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    #[test]
    fn packets_arrive_in_order_after_delay_and_rate() {
        let shape: Shape = "delay=20ms,rate=8".parse().unwrap();
        let mut line = Line::new(shape, at(0));
        line.take(&[1; 1_000], at(0));
        line.take(&[2; 1_000], at(100));
        // 1,000 octets take 1 ms at 8 Mbit/s; the second one waits for the first.
        assert_eq!(line.next(), Some(at(21_000)));
        assert_eq!(line.arrived(at(20_999)), None);
        assert_eq!(line.arrived(at(21_000)).map(|it| it[0]), Some(1));
        assert_eq!(line.next(), Some(at(22_000)));
    }

    #[test]
    fn loss_and_a_full_queue_drop_packets() {
        let mut line = Line::new("loss=50%".parse().unwrap(), at(0));
        (0..1_000).for_each(|_| line.take(&[0; 10], at(0)));
        assert!((350..650).contains(&line.under_way.len()), "{}", line.under_way.len());
        let mut line = Line::new("delay=1ms".parse().unwrap(), at(0));
        (0..UNDER_WAY_MAX + 7).for_each(|_| line.take(&[0; 10], at(0)));
        assert_eq!(line.under_way.len(), UNDER_WAY_MAX);
    }

    #[test]
    fn what_is_no_shape_is_refused() {
        for text in ["", "delay=20", "loss=5", "loss=60%", "rate=0", "rate=fast", "jitter=1ms"] {
            assert!(text.parse::<Shape>().is_err(), "{text}");
        }
    }
}
