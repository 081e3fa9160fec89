//! The connection, as far as the engine knows of it.

use core::hash::{Hash, Hasher};
use std::time::Duration;

use crate::engine::Engine;
use crate::engine::call::CallKind;
use crate::engine::clock::StoreClock;
use crate::error::Error;
use crate::event::{Effect, Outcome};
use crate::hold::CallKey;
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
            latency: Duration::ZERO,
            clock: StoreClock::default(),
            reason: None,
            misconfigured: None,
        }
    }

    /// What of it bears on what comes: when an answer came last only while a request is out, and
    /// how long answers take only where that is longer than what is waited for anyway.
    pub fn fingerprint<H: Hasher>(&self, oldest: Option<Time>, options: &Options, state: &mut H) {
        let Link { up, heard, answered: _, doubted, latency, clock, reason, misconfigured } = self;
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
    pub(super) fn link_up(&mut self, now: Time, store: u64) {
        self.link.clock.learn(store, now);
        self.link.up = true;
        self.link.heard = now;
        self.link.answered = None;
        self.link.doubted = false;
        self.link.reason = None;
        self.link.misconfigured = None;
        let keys = self.entries.keys();
        for &key in &keys {
            let Some(entry) = self.entries.get_mut(key) else { continue };
            entry.retry_at = Time::ZERO;
            entry.tries = 0;
            // Of one that neither holds nor waits, or leaves, there is nothing to show.
            self.beat_by(key, now);
        }
        self.send_beats(now);
        for key in keys {
            self.advance(now, key);
            self.arm(key);
        }
        self.send_queries(now);
    }

    /// An answer came, to a request that left at `sent`: the connection lives. A listing takes as
    /// long as the store has names, and says nothing of how fast it is.
    pub(super) fn heard(&mut self, now: Time, sent: Option<Time>) {
        self.link.heard = now;
        if let Some(sent) = sent {
            self.link.latency = now.since(sent).max(self.link.latency / 2);
        }
        if !std::mem::take(&mut self.link.doubted) {
            return;
        }
        // What was held back meanwhile.
        for key in self.entries.keys() {
            self.advance(now, key);
        }
        self.send_queries(now);
    }

    /// The connection is silent for too long. Whoever holds a lock may have to know.
    pub(super) fn doubt(&mut self) {
        let Some(owed) = self.flights.owed() else { return };
        self.link.doubted = true;
        let reason = "the store has not answered for as long as a request may take";
        for key in self.entries.keys() {
            if self.entries.get(key).is_some_and(|entry| entry.flight.is_some()) {
                self.note_failure(key, reason);
            }
        }
        self.effects.push_back(Effect::Reconnect(Doubt { owed, heard: self.link.answered }));
    }

    /// How long a claim is that is asked for now. A store that answers late hands over late, and
    /// hears late of it.
    pub(super) fn claim(&self) -> Duration {
        let claim = self.options.claim;
        if planted!(LatenessIgnored) {
            return claim;
        }
        claim.max((self.link.latency * 4).min(LONGEST_CLAIM))
    }

    /// The store needs an operator: whoever waits is told now. Holds keep trying until they end.
    pub(super) fn misconfigured(&mut self, now: Time, error: Error) {
        self.link.up = false;
        self.link.doubted = false;
        self.link.reason = Some(error.message().to_owned());
        self.link.misconfigured = Some(error.clone());
        for key in self.calls.keys() {
            let waits = self.calls.get(key).is_some_and(|c| matches!(c.kind, CallKind::Acquire(_)));
            if waits && let Some(call) = self.withdraw(now, CallKey::of(key)) {
                self.complete(call.call, Outcome::Failed(error.clone()));
            }
        }
        self.fail_queries(&error);
    }
}
