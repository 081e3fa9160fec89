//! What is due when.

use std::collections::BTreeSet;

use crate::engine::Engine;
use crate::engine::entry::At;
use crate::engine::lanes::Lane;
use crate::engine::slab::Key;
use crate::time::Time;

/// Who wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Due {
    Entry(Key),
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
        for lane in self.lanes.iter().filter(|lane| lane.link.up) {
            sooner(lane.beats.first().map(|&(at, _)| at));
            sooner(self.doubt_at(lane));
        }
        next
    }

    /// When a connection is to be doubted, if all goes on as it does.
    fn doubt_at(&self, lane: &Lane) -> Option<Time> {
        let oldest = lane.flights.oldest().filter(|_| !lane.link.doubted)?;
        Some(lane.link.doubt_at(oldest, self.options.request_timeout))
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
                Due::Entry(key) => self.entry_due(now, key),
                Due::Call(key) => self.call_expired(now, key),
                Due::Query(key) => self.query_due(now, key),
                Due::Close => self.close_expired(),
            }
        }
        for id in self.lanes.ids() {
            let lane = &self.lanes[id];
            if lane.link.up && self.doubt_at(lane).is_some_and(|at| at <= now) {
                self.doubt(id);
            }
        }
        self.send_due_beats(now);
    }

    /// Puts the entry's next instant into the timers: the end of its hold, a repeat of what was
    /// refused, or the bound of the call that waits for its release.
    pub(super) fn arm(&mut self, key: Key) {
        let Some(entry) = self.entries.get(key) else { return };
        let mut next: Option<Time> = None;
        let mut sooner = |at: Time| next = Some(next.map_or(at, |next| next.min(at)));
        if entry.at == At::Held && entry.parting.is_none() && !planted!(LossNotTold) {
            sooner(entry.next_end());
        }
        if entry.flight.is_none() && self.lanes[entry.lane].link.up && entry.retry_at > self.now {
            sooner(entry.retry_at);
        }
        if let Some(until) = entry.spare_until.filter(|_| entry.parting.is_none()) {
            sooner(until);
        }
        let partings = [entry.parting.as_ref(), entry.after.as_ref().map(|after| &after.parting)];
        for parting in partings.into_iter().flatten() {
            if parting.call.is_some() {
                sooner(parting.deadline);
            }
        }
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.timer == next {
            return;
        }
        if let Some(at) = entry.timer {
            self.timers.remove(&(at, Due::Entry(key)));
        }
        if let Some(at) = next {
            self.timers.insert((at, Due::Entry(key)));
        }
        entry.timer = next;
    }

    fn entry_due(&mut self, now: Time, key: Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.timer = None;
        self.bound_parting(now, key);
        self.end_spare(now, key);
        let Some(entry) = self.entries.get(key) else { return };
        if entry.at == At::Held && entry.parting.is_none() && entry.next_end() <= now {
            self.expire(now, key);
        } else {
            self.advance(now, key);
        }
        self.arm(key);
    }
}
