//! The watchdog: holds are renewed, and waiters show that they live, in the same batches.

use std::time::Duration;

use crate::engine::Engine;
use crate::engine::call::Wish;
use crate::engine::flight::{Beaten, Flight, Purpose};
use crate::engine::seat::At;
use crate::engine::slab::Key;
use crate::error::{Error, ErrorKind};
use crate::event::{Effect, Note, Outcome};
use crate::hold::{How, LossReason};
use crate::options::MIN_LEASE;
use crate::reply::{Body, Failure, Refusal, RefusalKind, Reply, Standing, State};
use crate::request::{Beat, MAX_BEATS, Op};
use crate::time::Time;
use crate::validity::{DRIFT_FIXED, DRIFT_RATE, valid_until};

/// The least pause before a renewal is repeated, however little is left of its hold.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

impl<C: Clone> Engine<C> {
    /// The seat's next beat is due at `at`, or earlier if it was planned earlier.
    pub(super) fn beat_by(&mut self, key: Key, at: Time) {
        let Some(seat) = self.seats.get(key) else { return };
        if seat.beat_at.is_none_or(|planned| at < planned) {
            self.beat_at(key, Some(at));
        }
    }

    pub(super) fn no_beat(&mut self, key: Key) {
        self.beat_at(key, None);
    }

    fn beat_at(&mut self, key: Key, at: Option<Time>) {
        let Some(seat) = self.seats.get_mut(key) else { return };
        if let Some(planned) = seat.beat_at {
            self.beats.remove(&(planned, key));
        }
        seat.beat_at = at;
        if let Some(at) = at {
            self.beats.insert((at, key));
        }
    }

    /// Whether the seat must be renewed for its tenant, and if so plans it.
    pub(super) fn plan_renewal(&mut self, now: Time, key: Key) {
        let Some(seat) = self.seats.get(key) else { return };
        if seat.at != At::Held || seat.parting.is_some() {
            return;
        }
        if seat.tenant.is_some() && seat.group_end() <= seat.valid_until {
            // It ends on time, by itself. An answer that somebody waits for is still due.
            if seat.flight.is_none() && !seat.claim && self.companions(key).is_empty() {
                self.no_beat(key);
            }
        } else if seat.beat_at.is_none() {
            // Early enough that a failed renewal leaves time for more.
            let left = seat.valid_until.since(now);
            let third = self.options.lease.min(seat.valid_until.since(seat.contact)) / 3;
            self.beat_by(key, now + left.saturating_sub(third * 2));
        }
    }

    /// Sends what is due, with what will be due soon, up to a batch at a time.
    pub(super) fn send_beats(&mut self, now: Time) {
        let soon = now + self.options.heartbeat() / 4;
        loop {
            let mut beats = Vec::new();
            let mut beaten = Vec::new();
            while beats.len() < MAX_BEATS {
                let Some(&(at, key)) = self.beats.first() else { break };
                if at > soon {
                    break;
                }
                self.beats.pop_first();
                if let Some(seat) = self.seats.get_mut(key) {
                    seat.beat_at = None;
                }
                if let Some((beat, seat)) = self.beat_of(now, key) {
                    beats.push(beat);
                    beaten.push(seat);
                }
            }
            if beats.is_empty() {
                return;
            }
            let seats: Vec<Key> = beaten.iter().map(|beaten| beaten.seat).collect();
            let flight = Flight { sent: now, purpose: Purpose::Beat(beaten) };
            let id = self.send(flight, Op::Beat(beats));
            for key in seats {
                if let Some(seat) = self.seats.get_mut(key) {
                    seat.flight = Some(id);
                }
                self.arm(key);
            }
        }
    }

    fn beat_of(&mut self, now: Time, key: Key) -> Option<(Beat, Beaten)> {
        let seat = self.seats.get_mut(key)?;
        if seat.parting.is_some() {
            return None;
        }
        if seat.flight.is_some() {
            seat.beat_missed = true;
            return None;
        }
        let lease = match seat.at {
            At::Held => self.renewal(now, key)?,
            At::Queued => self.wanted_lease(key),
            At::Nowhere | At::Unclear => return None,
        };
        let seat = self.seats.get_mut(key)?;
        let called = std::mem::take(&mut seat.called);
        let beat = Beat { lock: seat.name.clone(), hold: seat.id, lease, used: seat.used };
        Some((beat, Beaten { seat: key, lease, called }))
    }

    /// The lease to ask for at a renewal: what the tenant needs, and what anybody waits for.
    fn renewal(&mut self, now: Time, key: Key) -> Option<Duration> {
        let mut lease = Duration::ZERO;
        let seat = self.seats.get(key)?;
        match &seat.tenant {
            None => lease = self.wanted_lease(key),
            Some(tenant) => {
                for hold in &tenant.holds {
                    let Some(hold) = self.holds.get(hold.key()) else { continue };
                    let need = lease_for(hold.end.since(now));
                    lease = lease.max(match hold.lease {
                        Some(_) => need,
                        None => need.min(self.options.lease),
                    });
                }
            }
        }
        for call in self.companions(key) {
            match self.calls.get(call.key()).map(|call| &call.wish) {
                Some(Wish::Extend { lease: asked, .. }) => lease = lease.max(*asked),
                Some(Wish::Join(ask)) => lease = lease.max(ask.lease.unwrap_or(self.options.lease)),
                _ => {}
            }
        }
        Some(lease.max(MIN_LEASE))
    }

    pub(super) fn beats_answered(
        &mut self,
        now: Time,
        sent: Time,
        beaten: Vec<Beaten>,
        result: Result<Reply, Failure>,
    ) {
        for part in &beaten {
            self.land(part.seat);
            if let Some(seat) = self.seats.get_mut(part.seat)
                && std::mem::take(&mut seat.beat_missed)
            {
                self.beat_by(part.seat, now);
            }
        }
        match result {
            Ok(Reply { body: Body::Beat(states), .. }) if states.len() == beaten.len() => {
                let renewed = states
                    .iter()
                    .filter(|state| {
                        state.as_ref().is_ok_and(|state| state.standing == Standing::Granted)
                    })
                    .count();
                if renewed > 0 {
                    self.effects.push_back(Effect::Note(Note::Renewed(renewed)));
                }
                for (part, state) in beaten.iter().zip(states) {
                    match state {
                        Ok(state) => self.beat_answered(now, sent, *part, state),
                        Err(refusal) => self.beat_refused(now, part.seat, refusal),
                    }
                }
            }
            Err(Failure::Refused(refusal)) => {
                for part in &beaten {
                    self.beat_refused(now, part.seat, refusal.clone());
                }
            }
            Ok(_) | Err(Failure::Unknown | Failure::NotSent) => {
                let reason = self.unavailable("the renewal was not answered");
                for part in &beaten {
                    self.note_failure(part.seat, &reason);
                    self.beat_again(now, part.seat);
                }
            }
        }
        for part in &beaten {
            self.arm(part.seat);
        }
    }

    fn beat_answered(&mut self, now: Time, sent: Time, part: Beaten, state: State) {
        let key = part.seat;
        self.note_publish(&state);
        let Some(seat) = self.seats.get_mut(key) else { return };
        if seat.parting.is_some() {
            return self.advance(now, key);
        }
        seat.tries = 0;
        seat.trouble = None;
        let overtook = std::mem::take(&mut seat.overtook);
        match (seat.at, state.standing) {
            (At::Held, Standing::Granted) if state.token == seat.token => {
                self.renewed(now, sent, part, state);
            }
            (At::Queued, Standing::Granted) => {
                let how = if part.called { How::Push } else { How::Poll };
                self.seat_granted(now, key, sent, part.lease, state, how);
            }
            (At::Queued, Standing::Queued) => self.still_queued(now, key, sent, state),
            (At::Held, Standing::Queued)
                if state.last < seat.token && (overtook || planted!(QueuedAskedAgain)) =>
            {
                // Answered before the grant that overtook it. Whatever was asked after the grant
                // is not answered so, unless the store has gone back to before it.
                seat.valid_until = seat.valid_until.max(valid_until(sent, seat.claim_lease));
                self.beat_by(key, now);
            }
            // The store has it under another token: this tenure is over, and goes back.
            (At::Held, Standing::Granted) => self.lose(now, key, LossReason::NotRenewed),
            (At::Held, _) => self.vanish(now, key, LossReason::Gone),
            (At::Queued, _) => {
                // The store forgot the waiter: back into the queue, at the same place. Under a new
                // id if the old one cannot be queued any more, so that a late push finds nothing.
                let fresh = (seat.exposed_until == 0).then(|| self.mint(key));
                let Some(seat) = self.seats.get_mut(key) else { return };
                seat.at = if fresh.is_some() { At::Nowhere } else { At::Unclear };
                seat.id = fresh.unwrap_or(seat.id);
                self.advance(now, key);
            }
            (At::Nowhere | At::Unclear, _) => self.advance(now, key),
        }
    }

    /// The store has the waiter in its queue, as of a request that left at `sent`.
    pub(super) fn still_queued(&mut self, now: Time, key: Key, sent: Time, state: State) {
        let heartbeat = self.options.heartbeat();
        let Some(seat) = self.seats.get_mut(key) else { return };
        seat.queued_at = sent;
        seat.queued_last = state.last;
        seat.ticket = state.ticket;
        seat.others = state.others_waiting;
        // Within the claim, or a lost push would waste the hand-off. Only the head looks when the
        // holder's lease ends; the others rely on their heartbeat.
        let within = heartbeat.min(seat.claim_lease / 3);
        let heartbeat = if planted!(ShortClaimNotPolled) { heartbeat } else { within };
        let look = match state.expires_in {
            Some(span) if state.head => heartbeat.min(span + Duration::from_millis(1)),
            _ => heartbeat,
        };
        if !planted!(SleeperNeverPolls) {
            self.beat_by(key, now + look);
        }
    }

    fn renewed(&mut self, now: Time, sent: Time, part: Beaten, state: State) {
        let key = part.seat;
        let Some(seat) = self.seats.get(key) else { return };
        if seat.tenant.is_some() && seat.ends_at() <= now && !planted!(RenewalRevives) {
            // Too late: its holder has been, or is now, told. A renewal revives nothing.
            return self.expire(now, key);
        }
        let Some(seat) = self.seats.get_mut(key) else { return };
        // A session gives what is left of it.
        let given = part.lease.min(state.lease);
        let until = valid_until(sent, given);
        if until > seat.valid_until {
            seat.valid_until = until;
            seat.asked = given;
        }
        seat.contact = seat.contact.max(sent);
        seat.end = seat.end.max(state.end);
        seat.claim = false;
        if !planted!(OthersIgnored) {
            seat.others = state.others_waiting;
        }
        if seat.others == 0 {
            seat.run = 0;
            seat.run_since = None;
        }
        if seat.tenant.is_none() {
            self.beat_by(key, sent + given / 3);
            self.deliver(now, key, How::Push);
        } else {
            self.serve_companions(now, key, sent, part.lease);
            self.plan_next(now, key, sent, given);
            if state.others_waiting > 0 && !planted!(OthersIgnored) {
                self.tell_wanted(now, key);
            }
        }
    }

    fn plan_next(&mut self, now: Time, key: Key, sent: Time, lease: Duration) {
        let Some(seat) = self.seats.get(key) else { return };
        if seat.group_end() > seat.valid_until {
            self.beat_by(key, sent + lease / 3);
        }
        if !self.companions(key).is_empty() {
            self.beat_by(key, now);
        }
    }

    /// Completes the extends and joins that this renewal was long enough for.
    fn serve_companions(&mut self, now: Time, key: Key, sent: Time, lease: Duration) {
        for call in self.companions(key) {
            let Some(entry) = self.calls.get(call.key()) else { continue };
            if entry.since > sent {
                continue;
            }
            match &entry.wish {
                Wish::Extend { hold, lease: asked } if *asked <= lease => {
                    let (hold, asked) = (*hold, *asked);
                    let Some(entry) = self.remove_call(call) else { continue };
                    let outcome = match self.holds.get_mut(hold.key()) {
                        Some(hold) if hold.lost.is_none() => {
                            // Of a hold that the watchdog keeps, the store's lease is what grew.
                            if hold.end != Time::MAX {
                                hold.end = hold.end.max(valid_until(sent, asked));
                            }
                            self.update_end(now, key);
                            Outcome::Extended
                        }
                        _ => Outcome::Failed(super::release::not_held()),
                    };
                    self.complete(entry.call, outcome);
                }
                Wish::Join(ask) if ask.lease.unwrap_or(self.options.lease) <= lease => {
                    let ask = ask.clone();
                    let Some(entry) = self.remove_call(call) else { continue };
                    let hold = self.add_hold(now, key, &ask, entry.call.clone());
                    let waited = now.since(entry.since);
                    let grant = self.grant_of(key, hold, How::Reentry, waited);
                    self.complete(entry.call, Outcome::Granted(grant));
                }
                _ => {}
            }
        }
    }

    fn beat_refused(&mut self, now: Time, key: Key, refusal: Refusal) {
        let Some(seat) = self.seats.get_mut(key) else { return };
        match refusal.kind {
            RefusalKind::Again if seat.tries < 3 => {
                seat.tries += 1;
                self.beat_by(key, now);
                if self.seats.get(key).is_some_and(|seat| seat.parting.is_some()) {
                    self.advance(now, key);
                }
            }
            RefusalKind::Misconfigured | RefusalKind::Unsupported if seat.at == At::Queued => {
                let error = Error::new(ErrorKind::Misconfigured, refusal.message);
                self.fail_waiters(now, key, &error, false);
                self.advance(now, key);
            }
            _ => {
                seat.trouble = Some(refusal.message.clone());
                self.note_failure(key, &refusal.message);
                self.beat_again(now, key);
            }
        }
    }

    fn note_failure(&mut self, key: Key, reason: &str) {
        let Some(seat) = self.seats.get(key) else { return };
        if seat.at == At::Held && seat.parting.is_none() {
            let note = Note::RenewalFailed { lock: seat.name.clone(), reason: reason.to_owned() };
            self.effects.push_back(Effect::Note(note));
        }
    }

    /// The beat was not answered: again soon, as long as the hold lasts.
    fn beat_again(&mut self, now: Time, key: Key) {
        let Some(seat) = self.seats.get_mut(key) else { return };
        if seat.parting.is_some() {
            return self.advance(now, key);
        }
        if planted!(WatchdogStopsAtFailure) && seat.at == At::Held {
            return;
        }
        seat.overtook = false;
        let tries = seat.tries;
        seat.tries += 1;
        // What is left of a hold is not slept through.
        let left = seat.valid_until.since(now) / 4;
        let bounded = seat.at == At::Held && !planted!(PauseOutlastsHold);
        let most = if bounded { left.max(SHORTEST_PAUSE) } else { Duration::MAX };
        let delay = self.backoff(tries).min(most);
        self.beat_by(key, now + delay);
    }
}

/// The lease whose validity, drift taken off, covers `span`.
fn lease_for(span: Duration) -> Duration {
    let rate = DRIFT_RATE;
    let grown = span.saturating_add(DRIFT_FIXED);
    grown.saturating_add(grown / (rate - 1)).saturating_add(Duration::from_micros(1))
}
