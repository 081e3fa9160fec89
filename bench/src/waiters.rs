//! What many waiters in one process weigh.

use std::path::Path;

use fencelock::Client;

use crate::Result;
use crate::gauge::Gauge;
use crate::local::Flavor;
use crate::peer::{Kind, LOCK, Peer, WAITERS};

/// Lets tasks of a second process wait for one lock that is held here; then all of them get it.
///
/// # Errors
/// When the server or the other process does not answer.
pub fn measure(program: &Path, url: &str) -> Result<Vec<Gauge>> {
    let runtime = Flavor::Current.runtime()?;
    runtime.block_on(async {
        let client = Client::connect(url).await?;
        let guard = client.lock(LOCK)?.acquire().await?;
        let mut peer = Peer::start(program, Kind::Waiters, url)?;
        peer.ask(None)?;
        let (before, threads_before) = (peer.answer()?, peer.answer()?);
        let (after, threads_after) = (peer.answer()?, peer.answer()?);
        guard.release().await?;
        let granted = peer.answer()?;
        if granted != WAITERS {
            return Err(format!("{granted} of {WAITERS} waiters got the lock").into());
        }
        let megabytes = after.saturating_sub(before) as f64 / 1e6;
        let threads = threads_after.saturating_sub(threads_before) as f64;
        let what = format!("{WAITERS} waiters in one process");
        Ok(vec![
            Gauge::of(what.clone(), "MB", vec![megabytes], Some(10.0)),
            Gauge::of(what + ", threads for them", "threads", vec![threads], Some(0.0)),
        ])
    })
}
