//! Callers that work at once until the time is over.

use std::time::{Duration, Instant};

use redis::AsyncTypedCommands;

use super::library::{Key, Library};
use crate::Result;

/// What is sold.
const STOCK: &str = "bench:stock";
/// Takes one away if there is one.
const TAKE: &str = "if tonumber(redis.call('GET', KEYS[1]) or '0') > 0 then \
                    redis.call('DECR', KEYS[1]) return 1 end return 0";

/// What the callers of a crowd did.
pub(super) struct Crowd {
    shares: Vec<Share>,
    took: Duration,
}

/// What one of them did.
struct Share {
    /// How long each of its pairs took.
    pairs: Vec<Duration>,
    /// Its longest wait.
    longest: Duration,
}

impl Crowd {
    pub fn total(&self) -> (u64, Duration) {
        (self.shares.iter().map(Share::count).sum(), self.took)
    }

    /// How long the pair in the middle took.
    pub fn median(&self) -> Duration {
        let mut pairs: Vec<_> = self.shares.iter().flat_map(|it| &it.pairs).copied().collect();
        pairs.sort_unstable();
        pairs.get(pairs.len() / 2).copied().unwrap_or_default()
    }

    /// The pairs of who had fewest and most, and the longest wait of all.
    pub fn fairness(&self) -> (u64, u64, Duration) {
        let pairs = || self.shares.iter().map(Share::count);
        let longest = self.shares.iter().map(|it| it.longest).max();
        (pairs().min().unwrap_or(0), pairs().max().unwrap_or(0), longest.unwrap_or_default())
    }
}

impl Share {
    fn count(&self) -> u64 {
        self.pairs.len() as u64
    }
}

/// A caller for each key acquires and releases it for `span`.
pub(super) async fn pairs(keys: Vec<Key>, span: Duration) -> Result<Crowd> {
    turns(keys.into_iter().map(|key| move |_| key.clone()), span).await
}

/// So many callers acquire a read-write lock for `span`, so many of a hundred times to read.
pub(super) async fn reads(
    sides: (Key, Key),
    callers: usize,
    percent: u64,
    span: Duration,
) -> Result<Crowd> {
    let callers = (0..callers as u64).map(|caller| {
        let (reader, writer) = sides.clone();
        // Not all of them write at once.
        move |turn| {
            let at = turn + 3 * caller;
            let reads = (at + 1) * percent / 100 > at * percent / 100;
            if reads { reader.clone() } else { writer.clone() }
        }
    });
    turns(callers, span).await
}

/// Callers each acquire and release, for `span`, the key of the turn.
async fn turns<K>(callers: impl Iterator<Item = K>, span: Duration) -> Result<Crowd>
where
    K: Fn(u64) -> Key + Send + 'static,
{
    let start = Instant::now();
    let callers: Vec<_> = callers
        .map(|key| {
            tokio::spawn(async move {
                let mut share = Share { pairs: Vec::new(), longest: Duration::ZERO };
                let mut asked = Instant::now();
                while asked - start < span {
                    let held = key(share.count()).acquire().await?;
                    share.longest = share.longest.max(asked.elapsed());
                    held.release().await?;
                    let next = Instant::now();
                    share.pairs.push(next - asked);
                    asked = next;
                }
                Ok::<_, crate::Failed>(share)
            })
        })
        .collect();
    let mut shares = Vec::with_capacity(callers.len());
    for caller in callers {
        shares.push(caller.await??);
    }
    Ok(Crowd { shares, took: start.elapsed() })
}

/// Sells what is left, by so many callers; gives how many they sold.
pub(super) async fn sell(library: &Library, callers: usize, key: &str) -> Result<(u64, Duration)> {
    let start = Instant::now();
    let bare = library.is_bare();
    let mut sellers = Vec::with_capacity(callers);
    for _ in 0..callers {
        let (key, mut wire) = (library.key(key)?, library.wire()?);
        sellers.push(tokio::spawn(async move {
            let mut sold = 0;
            loop {
                let one = if bare {
                    let mut take = redis::cmd("EVAL");
                    take.arg(TAKE).arg(1).arg(STOCK).query_async(&mut wire).await?
                } else {
                    let held = key.acquire().await?;
                    let left = wire.get_int(STOCK).await?.unwrap_or(0);
                    if left > 0 {
                        wire.set(STOCK, left - 1).await?;
                    }
                    held.release().await?;
                    left > 0
                };
                if !one {
                    return Ok::<_, crate::Failed>(sold);
                }
                sold += 1;
            }
        }));
    }
    let mut sold = 0;
    for seller in sellers {
        sold += seller.await??;
    }
    Ok((sold, start.elapsed()))
}
