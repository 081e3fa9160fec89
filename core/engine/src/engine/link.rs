//! The connection, as far as the engine knows of it.

use crate::engine::Engine;
use crate::engine::call::Wish;
use crate::engine::clock::StoreClock;
use crate::engine::seat::At;
use crate::error::Error;
use crate::event::Outcome;
use crate::hold::CallKey;
use crate::time::Time;

#[derive(Clone, Debug, Hash)]
pub(crate) struct Link {
    pub up: bool,
    /// The present connection was given up; nothing more is decided about it until it is down.
    pub abandoned: bool,
    pub clock: StoreClock,
    pub reason: Option<String>,
    pub misconfigured: Option<Error>,
}

impl Link {
    pub fn new() -> Link {
        Link {
            up: false,
            abandoned: false,
            clock: StoreClock::default(),
            reason: None,
            misconfigured: None,
        }
    }

    pub fn down(&mut self, reason: String) {
        self.up = false;
        self.abandoned = false;
        self.reason = Some(reason);
    }
}

impl<C: Clone> Engine<C> {
    /// A connection is up. What is queued or held shows itself first, so that a waiter's place is
    /// safe before anything is acquired; then all else is repeated.
    pub(super) fn link_up(&mut self, now: Time, store: u64) {
        self.link.clock.learn(store, now);
        self.link.up = true;
        self.link.abandoned = false;
        self.link.reason = None;
        self.link.misconfigured = None;
        let keys = self.seats.keys();
        for &key in &keys {
            let Some(seat) = self.seats.get_mut(key) else { continue };
            seat.retry_at = Time::ZERO;
            seat.tries = 0;
            if seat.parting.is_none() && matches!(seat.at, At::Queued | At::Held) {
                self.beat_by(key, now);
            }
        }
        self.send_beats(now);
        for key in keys {
            self.advance(now, key);
            self.arm(key);
        }
        self.send_queries(now);
    }

    /// The store needs an operator: whoever waits is told now. Holds keep trying until they end.
    pub(super) fn misconfigured(&mut self, now: Time, error: Error) {
        self.link.up = false;
        self.link.abandoned = false;
        self.link.reason = Some(error.message().to_owned());
        self.link.misconfigured = Some(error.clone());
        for key in self.calls.keys() {
            let waits = self.calls.get(key).is_some_and(|c| matches!(c.wish, Wish::Acquire(_)));
            if waits && let Some(call) = self.withdraw(now, CallKey::of(key)) {
                self.complete(call.call, Outcome::Failed(error.clone()));
            }
        }
        self.fail_queries(&error);
    }
}
