//! What many waiters in one process weigh.

use std::fs;
use std::path::Path;
use std::time::Duration;

use fencelock::Client;

use crate::Result;
use crate::gauge::Gauge;
use crate::local::Flavor;
use crate::peer::{Kind, LOCK, Peer};

/// How many tasks wait.
pub const WAITERS: u64 = 10_000;
/// How long they get to queue, and to come to rest.
pub const REST: Duration = Duration::from_secs(3);

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

/// Bytes of a process that are in memory, and its threads.
///
/// # Errors
/// When the system does not say.
pub fn weight(pid: u32) -> Result<(u64, u64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let number = |key: &str| -> Result<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        let word = line.and_then(|line| line.split_whitespace().next());
        Ok(word.ok_or_else(|| format!("no {key} in /proc"))?.parse()?)
    };
    Ok((number("VmRSS:")? * 1024, number("Threads:")?))
}
