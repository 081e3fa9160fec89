//! How long a lock's keys stay: a day after the last of what they say, or what the release asks for.

use std::collections::BTreeMap;

use fencelock_engine::reply::Abandoned;
use fencelock_engine::request::Op;
use fencelock_engine::store::{Record, StoredWaiter};

use crate::compare::{Server, is_wide};

/// In milliseconds.
const DAY: u64 = 86_400_000;
const HOUR: u64 = 3_600_000;

/// When keys expire, in milliseconds, as of the last step. Of servers that do not say so, nothing.
#[derive(Default)]
pub struct Expiry {
    of: BTreeMap<Vec<u8>, u64>,
}

impl Expiry {
    /// After a step: what was written is kept for as long as it should be, and nothing for ever.
    pub fn check(
        &mut self,
        server: &mut dyn Server,
        keys: &[Vec<u8>; 5],
        (before, after): (&Record, &Record),
        (now, op, torn): (u64, &Op, bool),
        trace: &str,
    ) {
        let deadline = after.holds.iter().map(|hold| hold.deadline).max();
        let kept = |until: u64| now / 1_000 + until.saturating_sub(now) / 1_000 + DAY;
        let whole = kept(after.last.max(deadline.unwrap_or(0)));
        // The frequent case of a waiter looks at its holder alone.
        let queue = kept(deadline.unwrap_or(0));
        let [main, ..] = keys;
        let wide = is_wide(&server.hash(main));
        // Of several beats of one lock only the last one's state is known, and of a queue that was
        // mended only the one after.
        let known = !torn && !matches!(op, Op::Beat(beats) if beats.len() > 1);
        for key in keys {
            let Some(found) = server.expiry(key) else {
                self.of.remove(key);
                continue;
            };
            let found = found.unwrap_or_else(|| panic!("{key:?} is kept for ever\n{trace}"));
            let earlier = self.of.insert(key.clone(), found);
            if !known {
                continue;
            }
            // Keys of a lock that is shared are renewed an hour at a time.
            if wide {
                assert!(found + HOUR >= whole, "{key:?}: {found}, not {whole}\n{trace}");
                continue;
            }
            // What is left of holds whose record was lost lies there until its end.
            if keys[3..].contains(key) {
                continue;
            }
            let changed = earlier.is_some_and(|earlier| earlier != found);
            if key != main {
                let new = |it: &&StoredWaiter| before.waiters.iter().all(|other| other != *it);
                let heard = after.waiters.iter().filter(new).any(|it| it.heard == now);
                if changed || heard {
                    let fits = found == whole || found == queue;
                    assert!(fits, "{key:?}: {found}, not {whole}\n{trace}");
                }
                continue;
            }
            let retention = match op {
                Op::Release(release) if says_nothing(after, now) => Some(release.retention),
                _ => None,
            };
            let wanted = retention.map_or(whole, |it| now / 1_000 + it.as_millis() as u64);
            let renewed = before.holds != after.holds || before.last != after.last;
            if changed || renewed {
                assert_eq!(
                    found, wanted,
                    "the expiry of {key:?} differs\n{before:?}\n{after:?}\n{trace}"
                );
            }
        }
    }
}

fn says_nothing(record: &Record, now: u64) -> bool {
    record.holds.is_empty()
        && record.waiters.is_empty()
        && record.abandoned == Abandoned::No
        && (1..now + 1_024).contains(&record.last)
}
