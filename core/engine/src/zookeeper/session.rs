//! The session, and how long it is certain to live.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Time;
use crate::validity::DRIFT_RATE;

/// A session, as its own client can know it.
///
/// That the server answers pings proves nothing: one that is cut off from its leader answers them
/// while the leader lets the session expire. Nor does a round trip through the leader count by
/// itself: what a server has heard from us reaches the leader with the server's next answer to the
/// leader's own ping, each half of a tick. A session has two ticks at the least, so that is each
/// quarter of its timeout at the most. On the way between two servers nothing overtakes; so once a
/// round trip is answered, one that was answered a third of the timeout before it left has certainly
/// counted. It counts from when it left; but that may be long before its server heard it.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub id: i64,
    pub timeout: Duration,
    /// The leader has heard of the session no earlier than this.
    pub(super) base: Time,
    /// The round trips that have been answered and do not count yet.
    answered: VecDeque<Trip>,
    /// A round trip is under way.
    pub asking: bool,
    /// When the next one is due.
    pub due: Time,
}

/// A round trip through the leader.
#[derive(Clone, Copy, Debug)]
struct Trip {
    sent: Time,
    answered: Time,
}

impl Session {
    pub fn new(id: i64, timeout: Duration, since: Time, now: Time) -> Session {
        Session {
            id,
            timeout,
            base: since.min(now),
            answered: VecDeque::new(),
            asking: false,
            due: now,
        }
    }

    /// The time between two round trips through the leader. Four of them, less a round trip, are more
    /// than the third of the timeout that lies between one and the next that proves it.
    pub fn pace(&self) -> Duration {
        self.timeout / 11
    }

    /// A round trip through the leader that left at `sent` was answered.
    pub fn answer(&mut self, sent: Time, now: Time) {
        self.answered.push_back(Trip { sent, answered: now });
        while let Some(&before) = self.answered.front() {
            let heard = if planted!(ZkSentIsHeard) { before.sent } else { before.answered };
            let counts = sent.since(heard) >= self.timeout / 3
                || (before.sent < sent && planted!(ZkLastButOneProves));
            if !counts {
                break;
            }
            self.base = self.base.max(before.sent);
            self.answered.pop_front();
        }
    }

    /// Whether enough is left of the session that it is worth telling.
    pub fn is_fresh(&self, now: Time) -> bool {
        now.since(self.base) <= self.timeout * 2 / 3 || planted!(ZkTrustsConnection)
    }

    /// The lease of a hold, counted from `from`. The drift that the engine takes off comes to the
    /// same as if it had been taken off the whole timeout, counted from where it began.
    pub fn lease(&self, from: Time) -> Duration {
        let age = from.since(self.base);
        let age =
            age.saturating_add(age / (DRIFT_RATE - 1)).saturating_add(Duration::from_nanos(1));
        if from <= self.base || planted!(ZkTrustsConnection) {
            self.timeout
        } else {
            self.timeout.saturating_sub(age)
        }
    }
}
