//! Connections that do nothing, and what they hold and spend.

use super::target::Running;
use super::{Idle, Run};
use crate::Error;
use crate::cpu::{ProcessCpu, resident_kib};
use hopline_messenger::Messenger;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::time::Duration;

/// Files of a process beside its connections.
const FILES: u64 = 100;

/// Until what was done to connect has come to rest.
const REST: Duration = Duration::from_millis(500);

/// Lets this process, and those that it starts, have so many connections.
pub(super) fn raise_file_limit(connections: usize) -> Result<(), Error> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = connections as u64 + FILES;
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).map_err(|_| {
        let most = limit.maximum.unwrap_or(u64::MAX).saturating_sub(FILES);
        let why = format!("this system lets a process have {most} connections (ulimit -Hn)");
        Error::Setting { setting: "--growth", why }
    })
}

/// Opens so many connections with a link each to one queue, and lets them be.
pub(super) async fn run(
    running: &Running,
    connections: usize,
    length: Duration,
) -> Result<Run, Error> {
    let fault = |error: hopline_messenger::Error| Error::Load(error.to_string());
    let id = running.id().unwrap_or(0);
    let [_, url] = running.urls();
    let mut messengers = Vec::new();
    let mut before_kib = 0;
    for number in 0..=connections {
        let messenger = Messenger::builder().name(format!("idle-{number}")).build();
        messenger.subscribe(&format!("{url}/bench.idle")).await.map_err(fault)?;
        messengers.push(messenger);
        if number == 0 {
            // What the first one makes is the broker's, not the connection's.
            tokio::time::sleep(REST).await;
            before_kib = resident_kib(id)?;
        }
    }
    tokio::time::sleep(REST).await;
    let resident_kib = resident_kib(id)?.saturating_sub(before_kib);
    let from = ProcessCpu::of(id)?;
    tokio::time::sleep(length).await;
    let spent = ProcessCpu::of(id)? - from;
    Ok(Run::Idle(Idle { connections, resident_kib, spent, seconds: length.as_secs_f64() }))
}
