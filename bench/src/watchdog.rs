//! What held locks cost while nobody does anything with them: their renewals.

use std::time::Duration;

use fencelock::{Client, Guard};
use rustix::time::{ClockId, clock_gettime};

use crate::gauge::Gauge;
use crate::local::Flavor;
use crate::{Result, bare};

/// How many acquires are under way at once while the locks are taken.
const ABREAST: u64 = 64;

/// Holds `held` locks with the default lease for `window`, and counts what the server is asked, its
/// time in scripts, and this process' time on a processor.
///
/// # Errors
/// When the server does not answer, or a lock was lost.
pub fn measure(url: &str, held: u64, window: Duration) -> Result<Vec<Gauge>> {
    let runtime = Flavor::Current.runtime()?;
    let mut wire = bare::client(url)?.get_connection()?;
    runtime.block_on(async {
        let client = Client::connect(url).await?;
        let guards = take(&client, held).await?;
        bare::count_anew(&mut wire)?;
        let before = processor();
        tokio::time::sleep(window).await;
        let spent = processor() - before;
        let (requests, micros) = bare::scripts_run(&mut wire)?;
        if let Some(lost) = guards.iter().find(|guard| !guard.is_valid()) {
            return Err(format!("the hold of {:?} was lost", lost.name()).into());
        }
        let seconds = window.as_secs_f64();
        let aim = (held == 100_000).then_some(1.0);
        let share = |seconds_of_it: f64| vec![100.0 * seconds_of_it / seconds];
        let what = format!("{held} held locks");
        let figures = vec![
            Gauge::of(what.clone(), "requests/s", vec![requests / seconds], None),
            Gauge::of(what.clone() + ", the server", "% of a processor", share(micros / 1e6), None),
            Gauge::of(what + ", the client", "% of a processor", share(spent.as_secs_f64()), aim),
        ];
        drop(guards);
        client.close().await;
        Ok(figures)
    })
}

async fn take(client: &Client, held: u64) -> Result<Vec<Guard>> {
    let takers: Vec<_> = (0..ABREAST)
        .map(|taker| {
            let client = client.clone();
            tokio::spawn(async move {
                let mut guards = Vec::new();
                for at in (taker..held).step_by(ABREAST as usize) {
                    guards.push(client.lock(format!("ours/held/{at}"))?.acquire().await?);
                }
                Ok::<_, fencelock::Error>(guards)
            })
        })
        .collect();
    let mut guards = Vec::new();
    for taker in takers {
        guards.extend(taker.await??);
    }
    Ok(guards)
}

/// For how long this process has run.
pub(crate) fn processor() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
