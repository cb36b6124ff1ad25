//! What waits in the nodes before it begins.

use super::Job;
use super::draft::Draft;
use super::outlet::Outlet;
use crate::Error;
use hopline_timeline::Instant;
use std::sync::atomic::Ordering::Relaxed;

/// What is put then was due before anything is measured.
const LONG_AGO: Instant = Instant::from_nanos(0);

/// Puts the backlog of each pair, and waits until all of it is settled.
pub(super) async fn run(job: &Job) -> Result<(), Error> {
    if job.load.backlog == 0 {
        return Ok(());
    }
    let mut draft = Draft::new(job.load.size);
    let message = draft.due(LONG_AGO);
    for (number, pair) in job.pairs.iter().enumerate() {
        let mut outlet = Outlet::connect(job, number).await?;
        let mut put = 0;
        while put < job.load.backlog {
            if outlet.put(message, put, false)? {
                put += 1;
            } else {
                outlet.room(job.load.window / 2).await?;
            }
        }
        outlet.room(0).await?;
        pair.put.store(put, Relaxed);
        outlet.stop().await;
    }
    Ok(())
}
