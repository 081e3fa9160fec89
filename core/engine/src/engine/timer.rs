//! What is due when.

use std::collections::BTreeSet;

use crate::engine::Engine;
use crate::engine::seat::At;
use crate::engine::slab::Key;
use crate::event::Effect;
use crate::time::Time;

/// Who wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Due {
    Seat(Key),
    Call(Key),
    Query(Key),
    Close,
}

pub(crate) type Timers = BTreeSet<(Time, Due)>;

impl<C: Clone> Engine<C> {
    /// When the engine next wants [`Engine::wake`].
    pub fn next_wake(&self) -> Option<Time> {
        let mut next = self.timers.first().map(|&(at, _)| at);
        let mut sooner = |at: Option<Time>| {
            if let Some(at) = at {
                next = Some(next.map_or(at, |next| next.min(at)));
            }
        };
        if self.link.up {
            sooner(self.beats.first().map(|&(at, _)| at));
            if !self.link.abandoned {
                sooner(self.flights.oldest().map(|sent| sent + self.options.request_timeout));
            }
        }
        next
    }

    /// Does what is due. Call it when [`Engine::next_wake`] has come, or more often.
    pub fn wake(&mut self, now: Time) {
        let now = self.at(now);
        while let Some(&(at, due)) = self.timers.first() {
            if at > now {
                break;
            }
            self.timers.pop_first();
            match due {
                Due::Seat(key) => self.seat_due(now, key),
                Due::Call(key) => self.call_expired(now, key),
                Due::Query(key) => self.query_due(now, key),
                Due::Close => self.close_expired(),
            }
        }
        let late = self.flights.oldest().is_some_and(|at| at + self.options.request_timeout <= now);
        if late && self.link.up && !self.link.abandoned {
            self.link.abandoned = true;
            self.effects.push_back(Effect::Reconnect);
        }
        self.settle(now);
    }

    /// Puts the seat's next instant into the timers: the end of its hold, a repeat of what was
    /// refused, or the bound of the call that waits for its release.
    pub(super) fn arm(&mut self, key: Key) {
        let Some(seat) = self.seats.get(key) else { return };
        let mut next: Option<Time> = None;
        let mut sooner = |at: Time| next = Some(next.map_or(at, |next| next.min(at)));
        if seat.at == At::Held && seat.parting.is_none() && !planted!(LossNotTold) {
            sooner(seat.ends_at());
        }
        if seat.flight.is_none() && self.link.up && seat.retry_at > self.now {
            sooner(seat.retry_at);
        }
        let partings = [seat.parting.as_ref(), seat.after.as_ref().map(|after| &after.parting)];
        for parting in partings.into_iter().flatten() {
            if parting.call.is_some() {
                sooner(parting.deadline);
            }
        }
        let Some(seat) = self.seats.get_mut(key) else { return };
        if seat.timer == next {
            return;
        }
        if let Some(at) = seat.timer {
            self.timers.remove(&(at, Due::Seat(key)));
        }
        if let Some(at) = next {
            self.timers.insert((at, Due::Seat(key)));
        }
        seat.timer = next;
    }

    fn seat_due(&mut self, now: Time, key: Key) {
        let Some(seat) = self.seats.get_mut(key) else { return };
        seat.timer = None;
        self.bound_parting(now, key);
        let Some(seat) = self.seats.get(key) else { return };
        if seat.at == At::Held && seat.parting.is_none() && seat.ends_at() <= now {
            self.expire(now, key);
        } else {
            self.advance(now, key);
        }
        self.arm(key);
    }
}
