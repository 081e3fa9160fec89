//! The connection, as far as the engine knows of it.

use core::hash::{Hash, Hasher};
use std::time::Duration;

use crate::engine::Engine;
use crate::engine::call::CallKind;
use crate::engine::clock::StoreClock;
use crate::engine::slab::Key;
use crate::error::Error;
use crate::event::{Effect, Outcome};
use crate::hold::CallKey;
use crate::lane::LaneId;
use crate::options::Options;
use crate::request::RequestId;
use crate::time::Time;
use crate::transport::Doubt;

/// However late a store answers, a claim is no longer than this.
const LONGEST_CLAIM: Duration = Duration::from_secs(60);
/// However late it answered, a connection is doubted when it is silent for so long, unless more was
/// asked for.
const LONGEST_PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub up: bool,
    /// When an answer came last on the present connection.
    heard: Time,
    /// To which request, if one came.
    pub answered: Option<RequestId>,
    /// It has been silent for so long that it may be dead. The transport looks whether another one
    /// is answered; until then, or until an answer comes after all, nothing new is asked.
    pub doubted: bool,
    /// How often it was.
    pub doubts: u64,
    /// How long answers take: the longest of late. One that comes sooner halves it.
    pub latency: Duration,
    pub clock: StoreClock,
    pub reason: Option<String>,
    pub misconfigured: Option<Error>,
}

impl Link {
    pub fn new() -> Link {
        Link {
            up: false,
            heard: Time::ZERO,
            answered: None,
            doubted: false,
            doubts: 0,
            latency: Duration::ZERO,
            clock: StoreClock::default(),
            reason: None,
            misconfigured: None,
        }
    }

    /// What of it bears on what comes: when an answer came last only while a request is out, and
    /// how long answers take only where that is longer than what is waited for anyway.
    pub fn fingerprint<H: Hasher>(&self, oldest: Option<Time>, options: &Options, state: &mut H) {
        let Link {
            up,
            heard,
            answered: _,
            doubted,
            doubts: _,
            latency,
            clock,
            reason,
            misconfigured,
        } = self;
        (up, doubted, clock, reason, misconfigured).hash(state);
        oldest.map(|oldest| oldest.max(*heard)).hash(state);
        let short = options.claim.min(options.request_timeout);
        Some(latency).filter(|it| **it * 4 > short).hash(state);
    }

    pub fn down(&mut self, reason: String) {
        self.up = false;
        self.doubted = false;
        self.reason = Some(reason);
    }

    /// Whether new work may be asked for on it.
    pub fn takes_work(&self) -> bool {
        self.up && !self.doubted
    }

    /// When it is to be doubted, if `oldest` is when the oldest request was sent that has no answer.
    /// One that answers others is slow, not dead; and one that was slow of late is given longer, for
    /// to look after it costs the store more than any request.
    pub fn doubt_at(&self, oldest: Time, timeout: Duration) -> Time {
        let slow = (self.latency * 4).min(LONGEST_PATIENCE);
        let patience = if planted!(DoubtedEachTime) { timeout } else { slow };
        oldest.max(self.heard) + timeout.max(patience)
    }
}

impl<C: Clone> Engine<C> {
    /// A connection is up. What is queued or held shows itself first, so that a waiter's place is
    /// safe before anything is acquired; then all else is repeated.
    pub(super) fn link_up(&mut self, now: Time, lane: LaneId, store: u64) {
        let link = &mut self.lanes[lane].link;
        link.clock.learn(store, now);
        link.up = true;
        link.heard = now;
        link.answered = None;
        link.doubted = false;
        link.reason = None;
        link.misconfigured = None;
        let keys = self.entries_on(lane);
        self.show(now, lane, &keys);
    }

    /// The entries that are at one server.
    fn entries_on(&self, lane: LaneId) -> Vec<Key> {
        let mut keys = self.entries.keys();
        keys.retain(|key| self.lane_of_entry(*key) == lane);
        keys
    }

    /// These entries show themselves to their server, and what they want is repeated there.
    pub(super) fn show(&mut self, now: Time, lane: LaneId, keys: &[Key]) {
        for &key in keys {
            let Some(entry) = self.entries.get_mut(key) else { continue };
            entry.retry_at = Time::ZERO;
            entry.tries = 0;
            // Of one that neither holds nor waits, or leaves, there is nothing to show.
            self.beat_by(key, now);
        }
        self.send_beats(now, lane);
        for &key in keys {
            self.advance(now, key);
            self.arm(key);
        }
        self.send_queries(now, lane);
    }

    /// An answer came, to a request that left at `sent`: the connection lives. A listing takes as
    /// long as the store has names, and says nothing of how fast it is.
    pub(super) fn heard(&mut self, now: Time, lane: LaneId, sent: Option<Time>) {
        let link = &mut self.lanes[lane].link;
        link.heard = now;
        if let Some(sent) = sent {
            link.latency = now.since(sent).max(link.latency / 2);
        }
        if !std::mem::take(&mut link.doubted) {
            return;
        }
        // What was held back meanwhile.
        for key in self.entries_on(lane) {
            self.advance(now, key);
        }
        self.send_queries(now, lane);
    }

    /// The connection is silent for too long. Whoever holds a lock may have to know.
    pub(super) fn doubt(&mut self, lane: LaneId) {
        let silent = &mut self.lanes[lane];
        let Some(owed) = silent.flights.owed() else { return };
        silent.link.doubted = true;
        silent.link.doubts += 1;
        let heard = silent.link.answered;
        let reason = "the store has not answered for as long as a request may take";
        for key in self.entries.keys() {
            let flight = self.entries.get(key).and_then(|entry| entry.flight);
            if flight.is_some_and(|flight| flight.lane() == lane) {
                self.note_failure(key, reason);
            }
        }
        self.effects.push_back(Effect::Reconnect(Doubt { owed, heard }));
    }

    /// How long a claim is that is asked for now. A store that answers late hands over late, and
    /// hears late of it.
    pub(super) fn claim(&self, lane: LaneId) -> Duration {
        let claim = self.options.claim;
        if planted!(LatenessIgnored) {
            return claim;
        }
        claim.max((self.lanes[lane].link.latency * 4).min(LONGEST_CLAIM))
    }

    /// The server needs an operator: whoever waits for it is told now. Holds keep trying until they end.
    pub(super) fn misconfigured(&mut self, now: Time, lane: LaneId, error: Error) {
        let link = &mut self.lanes[lane].link;
        link.up = false;
        link.doubted = false;
        link.reason = Some(error.message().to_owned());
        link.misconfigured = Some(error.clone());
        for key in self.calls.keys() {
            let waits = self.calls.get(key).is_some_and(|call| {
                matches!(call.kind, CallKind::Acquire(_)) && self.lane_of_lock(call.lock) == lane
            });
            if waits && let Some(call) = self.withdraw(now, CallKey::of(key)) {
                self.complete(call.call, Outcome::Failed(error.clone()));
            }
        }
        self.fail_queries(Some(lane), &error);
    }
}
