//! What can be learnt of any store by using it.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fencelock::Client;

use crate::doctor::finding::{Finding, Severity};
use crate::span;

/// How often the store is asked for its time.
const PINGS: usize = 20;
/// A clock that is further off makes tokens and deadlines hard to read for people.
const CLOCK_NOTE: Duration = Duration::from_secs(1);

/// Round trips to the store.
#[derive(Clone, Copy, Debug)]
pub struct Trips {
    /// The fastest.
    pub best: Duration,
    /// The one in the middle.
    pub median: Duration,
    /// The slowest.
    pub worst: Duration,
    /// How far the store's clock is ahead of ours, in microseconds, by the fastest.
    pub ahead: i128,
}

impl Trips {
    /// Asks the store for its time a few times.
    pub async fn measure(client: &Client) -> Result<Trips, fencelock::Error> {
        let mut trips = Vec::new();
        for _ in 0..PINGS {
            let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let start = Instant::now();
            let store = client.ping().await?;
            let trip = start.elapsed();
            let middle = (wall + trip / 2).as_micros() as i128;
            trips.push((trip, store.as_micros() as i128 - middle));
        }
        trips.sort_unstable();
        Ok(Trips {
            best: trips[0].0,
            median: trips[PINGS / 2].0,
            worst: trips[PINGS - 1].0,
            ahead: trips[0].1,
        })
    }

    /// The shortest lease that leaves room for two renewals that fail: a renewal is sent at a
    /// third of the lease, and must not be late because one round trip was slow.
    pub fn shortest_lease(&self) -> Duration {
        (self.worst * 30).max(Duration::from_secs(1))
    }

    /// How fast it is.
    pub fn finding(&self) -> Finding {
        let value = format!(
            "{} typical, {} at worst of {PINGS}",
            span::show(self.median),
            span::show(self.worst)
        );
        Finding::new(
            Severity::Good,
            "round_trip",
            value,
            format!("leases down to {} are safe", span::show(self.shortest_lease())),
        )
    }

    /// Whether the clocks agree.
    pub fn clock(&self) -> Finding {
        let off = Duration::from_micros(u64::try_from(self.ahead.abs()).unwrap_or(u64::MAX));
        let side = if self.ahead < 0 { "behind" } else { "ahead of" };
        if off <= CLOCK_NOTE {
            let value = format!("within {}", span::show(off.max(self.best / 2)));
            return Finding::new(
                Severity::Good,
                "clock",
                value,
                "the store's clock and ours agree",
            );
        }
        Finding::new(
            Severity::Note,
            "clock",
            format!("{} {side} ours", span::show(off)),
            "locks compare no clocks, but tokens are made from the store's",
        )
        .advise("let both machines follow NTP")
    }
}

/// Takes and releases a lock of its own.
pub async fn lock(client: &Client) -> Finding {
    let name = format!("fencelock/doctor/{}", client.id());
    let done = async {
        let start = Instant::now();
        let guard = client.lock(&name)?.try_acquire().await?;
        let token = guard.token();
        guard.release().await?;
        Ok::<_, fencelock::Error>((start.elapsed(), token))
    };
    match done.await {
        Ok((took, token)) => Finding::new(
            Severity::Good,
            "lock",
            format!("taken and released in {}, token {token}", span::show(took)),
            "this user may lock",
        ),
        Err(error) => Finding::new(
            Severity::Problem,
            "lock",
            error.message(),
            "a lock of doctor's own could not be taken and released",
        ),
    }
}
