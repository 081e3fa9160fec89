//! How long holds last, by looking.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fencelock::Client;

use crate::doctor::finding::{Finding, Severity};
use crate::doctor::trial::Trips;
use crate::span;

/// The pause between two looks.
const STEP: Duration = Duration::from_millis(50);
/// How many locks are looked at.
const LOCKS: usize = 200;

/// What was seen of holds.
#[derive(Debug, Default)]
pub struct Seen {
    holds: BTreeMap<String, Hold>,
    looks: u32,
}

#[derive(Debug)]
struct Hold {
    first: Instant,
    last: Instant,
    look: u32,
    /// It was there at the first look: it had begun before.
    old: bool,
}

impl Seen {
    /// Looks at the locks that begin with `prefix` for so long.
    pub async fn watch(
        client: &Client,
        prefix: &str,
        span: Duration,
    ) -> Result<Seen, fencelock::Error> {
        let mut seen = Seen::default();
        let end = Instant::now() + span;
        while Instant::now() < end {
            seen.looks += 1;
            for name in client.list(prefix, LOCKS).await? {
                let Some(info) = client.inspect(name.as_str()).await? else { continue };
                for hold in info.holds {
                    seen.note(hold.hold.to_string(), Instant::now());
                }
            }
            tokio::time::sleep(STEP).await;
        }
        Ok(seen)
    }

    fn note(&mut self, hold: String, now: Instant) {
        let (look, old) = (self.looks, self.looks == 1);
        let hold = self.holds.entry(hold).or_insert(Hold { first: now, last: now, look, old });
        hold.last = now;
        hold.look = look;
    }

    /// The longest hold seen, as far as it was seen, and whether it is known from end to end.
    fn longest(&self) -> Option<(Duration, bool)> {
        let spans = self
            .holds
            .values()
            .map(|hold| (hold.last - hold.first + STEP, !hold.old && hold.look < self.looks));
        spans.max_by_key(|(span, _)| *span)
    }

    /// A lease, and why.
    pub fn finding(&self, watched: Duration, trips: &Trips) -> Finding {
        let shortest = trips.shortest_lease();
        let Some((longest, whole)) = self.longest() else {
            return Finding::new(
                Severity::Note,
                "lease",
                format!("no hold seen in {}", span::show(watched)),
                format!("holds shorter than {} between two looks are missed", span::show(STEP)),
            )
            .advise(format!(
                "watch longer, while the locks are in use; with renewal, {} or more is safe here",
                span::show(shortest)
            ));
        };
        let at_least = if whole { "" } else { "at least " };
        let explicit = round_up((longest * 2).max(shortest));
        Finding::new(
            if whole { Severity::Good } else { Severity::Note },
            "lease",
            format!(
                "{} holds seen in {}, the longest {at_least}{}",
                self.holds.len(),
                span::show(watched),
                span::show(longest)
            ),
            format!(
                "with renewal (the default) a lease need not cover a hold: it is how long others \
                 wait after a crash, and {} or more is safe here; shorter holds than {} are missed",
                span::show(shortest),
                span::show(STEP)
            ),
        )
        .advise(if whole {
            format!("an explicit lease, which is not renewed: {}", span::show(explicit))
        } else {
            format!(
                "watch longer for an explicit lease; {} so far, and the longest hold had no end",
                span::show(explicit)
            )
        })
    }
}

/// The next of the lengths that people choose.
fn round_up(span: Duration) -> Duration {
    let steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];
    let found = steps.into_iter().map(Duration::from_secs).find(|&step| step >= span);
    found.unwrap_or(Duration::from_secs(span.as_secs().div_ceil(3600) * 3600))
}

#[cfg(test)]
mod tests;
