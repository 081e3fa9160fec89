//! What the store answers, and what it pushes.

use std::time::Duration;

use crate::engine::Engine;
use crate::engine::call::Wish;
use crate::engine::flight::Purpose;
use crate::engine::release::Step;
use crate::engine::seat::{At, Early};
use crate::engine::slab::Key;
use crate::error::{Error, ErrorKind};
use crate::event::{Note, Outcome};
use crate::hold::{How, LossReason};
use crate::reply::{Body, Failure, Push, Refusal, RefusalKind, Released, Reply, Standing, State};
use crate::request::RequestId;
use crate::time::Time;
use crate::validity::valid_until;

impl<C: Clone> Engine<C> {
    pub(super) fn replied(
        &mut self,
        now: Time,
        request: RequestId,
        result: Result<Reply, Failure>,
    ) {
        #[allow(unused_mut)]
        let Some(mut flight) = self.flights.take(request) else { return };
        if planted!(ValidityFromReply) {
            flight.sent = now;
        }
        if let Ok(reply) = &result {
            self.link.clock.learn(reply.now, now);
        }
        match flight.purpose {
            Purpose::Acquire { seat, lease, not_after, wait } => {
                self.land(seat);
                match result {
                    Ok(Reply { body: Body::Acquire(state), .. }) => {
                        self.acquire_answered(now, seat, flight.sent, lease, wait, state);
                    }
                    Ok(_) => self.acquire_failed(now, seat, not_after, Failure::Unknown),
                    Err(failure) => self.acquire_failed(now, seat, not_after, failure),
                }
                self.arm(seat);
            }
            Purpose::Beat(beaten) => self.beats_answered(now, flight.sent, beaten, result),
            Purpose::Release { seat } => {
                self.land(seat);
                match result {
                    Ok(Reply { now: store, body: Body::Release(released) }) => {
                        self.release_answered(now, flight.sent, seat, store, released);
                    }
                    Ok(_) => self.release_failed(now, seat, Failure::Unknown),
                    Err(failure) => self.release_failed(now, seat, failure),
                }
                self.arm(seat);
            }
            Purpose::Query(query) => self.query_replied(now, query, result),
        }
    }

    /// The seat's request is no longer in flight.
    pub(super) fn land(&mut self, key: Key) {
        if let Some(seat) = self.seats.get_mut(key) {
            seat.flight = None;
        }
    }

    fn acquire_answered(
        &mut self,
        now: Time,
        key: Key,
        sent: Time,
        lease: Duration,
        wait: bool,
        state: State,
    ) {
        let Some(seat) = self.seats.get_mut(key) else { return };
        seat.tries = if state.standing == Standing::Late { seat.tries + 1 } else { 0 };
        seat.trouble = None;
        // The release that went along was executed first, whatever became of the acquire.
        if state.standing != Standing::Late
            && let Some(after) = seat.after.take()
            && let Some(call) = after.parting.call
        {
            self.complete(call, Outcome::Released);
        }
        self.note_publish(&state);
        match state.standing {
            Standing::Granted => self.seat_granted(now, key, sent, lease, state, How::Reply),
            Standing::Queued => self.seat_queued(now, key, sent, state),
            Standing::Contended => {
                let Some(seat) = self.seats.get_mut(key) else { return };
                seat.at = if seat.exposed_until > 0 { At::Unclear } else { At::Nowhere };
                // Callers that came meanwhile may be ready to wait: ask again, for them.
                self.fail_waiters(
                    now,
                    key,
                    &super::local::contended(),
                    !wait && !self.one_shot(key),
                );
                self.advance(now, key);
            }
            Standing::Late => {
                let tries = self.seats.get(key).map_or(0, |seat| seat.tries);
                if self.seats.get(key).is_some_and(|seat| seat.parting.is_some()) {
                    // Neither was executed: the release that went along goes alone.
                    self.split_after(now, key);
                } else if tries > 2 {
                    self.retry_later(now, key);
                }
                self.advance(now, key);
            }
            Standing::Released | Standing::Gone => {
                // Our own id is spent: an operator's break, or a repeat that overtook its release.
                let id = self.mint(key);
                if let Some(seat) = self.seats.get_mut(key) {
                    seat.id = id;
                    seat.at = At::Nowhere;
                }
                self.retry_later(now, key);
                self.advance(now, key);
            }
            Standing::NotHeld => {
                if let Some(seat) = self.seats.get_mut(key) {
                    seat.at = if seat.exposed_until > 0 { At::Unclear } else { At::Nowhere };
                }
                let text = "the ticket's owner does not hold the lock (any more) with this token";
                self.fail_waiters(now, key, &Error::new(ErrorKind::NotHeld, text), false);
                self.advance(now, key);
            }
        }
    }

    /// A seat of an explicit owner whose only call does not wait.
    fn one_shot(&self, key: Key) -> bool {
        self.seats.get(key).is_some_and(|seat| seat.owner.is_some())
    }

    /// The store has granted, as the answer to a request that left at `sent` asking `lease`.
    pub(super) fn seat_granted(
        &mut self,
        now: Time,
        key: Key,
        sent: Time,
        lease: Duration,
        state: State,
        how: How,
    ) {
        // A waiter is granted the lease that it queued with, which may be less.
        let mut longer = planted!(ClaimNotRenewed);
        longer |= planted!(LongerLeaseCounted);
        let lease = if longer { lease } else { lease.min(state.lease) };
        let Some(seat) = self.seats.get_mut(key) else { return };
        seat.at = At::Held;
        seat.token = state.token;
        seat.end = state.end.max(state.token);
        seat.abandoned = state.abandoned;
        seat.losses = state.losses;
        seat.valid_until = valid_until(sent, lease);
        seat.asked = lease;
        seat.contact = sent;
        seat.claim = false;
        seat.others = state.others_waiting;
        seat.early = None;
        if seat.parting.is_some() {
            return self.advance(now, key);
        }
        self.beat_by(key, sent + lease / 3);
        self.deliver(now, key, how);
    }

    /// Gives a seat that is held and that nobody has yet to whoever is next.
    pub(super) fn deliver(&mut self, now: Time, key: Key, how: How) {
        let Some(seat) = self.seats.get(key) else { return };
        if seat.at != At::Held || seat.tenant.is_some() || seat.parting.is_some() {
            return;
        }
        if seat.valid_until <= now && !planted!(LeaseNotLookedAtAgain) {
            return self.expire(now, key);
        }
        self.hand_on(now, key, how, None);
        self.arm(key);
    }

    fn seat_queued(&mut self, now: Time, key: Key, sent: Time, state: State) {
        let Some(seat) = self.seats.get_mut(key) else { return };
        seat.at = At::Queued;
        let early = seat.early.take();
        if seat.parting.is_some() {
            return self.advance(now, key);
        }
        self.still_queued(now, key, sent, state);
        if let Some(early) = early {
            self.push_granted(now, key, early);
        }
    }

    fn acquire_failed(&mut self, now: Time, key: Key, not_after: u64, failure: Failure) {
        let Some(seat) = self.seats.get_mut(key) else { return };
        match failure {
            Failure::Unknown => {
                seat.at = At::Unclear;
                seat.expose(not_after, now);
            }
            Failure::NotSent => {}
            Failure::Refused(refusal) => {
                return self.acquire_refused(now, key, refusal);
            }
        }
        self.after_failure(now, key);
    }

    /// What follows a failed acquire: a repeat, or, when nobody waits for it, its undoing.
    fn after_failure(&mut self, now: Time, key: Key) {
        if self.seats.get(key).is_some_and(|seat| seat.parting.is_some()) {
            self.split_after(now, key);
        } else {
            self.retry_later(now, key);
        }
        self.advance(now, key);
    }

    fn acquire_refused(&mut self, now: Time, key: Key, refusal: Refusal) {
        let Some(seat) = self.seats.get_mut(key) else { return };
        match refusal.kind {
            RefusalKind::Again if seat.tries < 3 => {
                seat.tries += 1;
                if seat.parting.is_some() {
                    self.split_after(now, key);
                }
                self.advance(now, key);
            }
            RefusalKind::Again | RefusalKind::Retry => {
                seat.trouble = Some(refusal.message);
                // A full memory refuses what takes the lock, but not what gives it up.
                self.split_after(now, key);
                self.after_failure(now, key);
            }
            kind => {
                let error = Error::new(super::kind_of(kind), refusal.message);
                self.split_after(now, key);
                self.fail_waiters(now, key, &error, false);
                self.advance(now, key);
            }
        }
    }

    pub(super) fn retry_later(&mut self, now: Time, key: Key) {
        let tries = self.seats.get(key).map_or(0, |seat| seat.tries);
        let delay = self.backoff(tries);
        if let Some(seat) = self.seats.get_mut(key) {
            seat.tries += 1;
            seat.retry_at = now + delay;
        }
    }

    fn release_answered(
        &mut self,
        now: Time,
        sent: Time,
        key: Key,
        store: u64,
        released: Released,
    ) {
        let patience = self.options.claim * 2;
        let Some(seat) = self.seats.get_mut(key) else { return };
        seat.tries = 0;
        // Counted to the release's sending: a reply that was long under way says nothing of later.
        let until = if planted!(PatienceFromReply) { now } else { sent };
        let exposed = seat.is_exposed(store, until, patience);
        let Some(parting) = &mut seat.parting else { return };
        let outcome = match released {
            Released::Done | Released::Left => Outcome::Released,
            // Released by an earlier try whose reply was lost, and forgotten since.
            Released::Unknown
                if parting.in_time && parting.tries > 1 && !planted!(RetriedReleaseIsLost) =>
            {
                Outcome::Released
            }
            Released::Unknown => Outcome::Failed(super::loss::lost(LossReason::Gone)),
        };
        // A copy of the acquire may still be under way: release again once it cannot lock any
        // more. A store's clock that stepped back is waited out for twice the claim at most.
        if !exposed {
            return self.finish(key, outcome);
        }
        let wait = Duration::from_micros(seat.exposed_until - store);
        seat.at = At::Unclear;
        seat.retry_at = now + wait.min(patience) + Duration::from_millis(1);
        if let Some(call) = parting.call.take() {
            self.complete(call, outcome);
        }
    }

    fn release_failed(&mut self, now: Time, key: Key, failure: Failure) {
        let (store, patience) = (self.link.clock.estimate(now), self.options.claim * 2);
        let Some(seat) = self.seats.get_mut(key) else { return };
        let exposed = seat.is_exposed(store, now, patience);
        let Some(parting) = &mut seat.parting else { return };
        match failure {
            Failure::Unknown => {}
            Failure::NotSent => parting.tries -= 1,
            Failure::Refused(refusal) => {
                parting.tries -= 1;
                match refusal.kind {
                    RefusalKind::Again if seat.tries < 3 => {
                        seat.tries += 1;
                        return self.advance(now, key);
                    }
                    RefusalKind::Again | RefusalKind::Retry => {}
                    kind => {
                        // The store will not let us: the lease ends it.
                        let error = Error::new(super::kind_of(kind), refusal.message);
                        let outcome = Outcome::Failed(error);
                        // But it may let a copy of the acquire in, later.
                        if !exposed || planted!(RefusedReleaseForgotten) {
                            return self.finish(key, outcome);
                        }
                        if let Some(call) = parting.call.take() {
                            self.complete(call, outcome);
                        }
                    }
                }
            }
        }
        self.retry_later(now, key);
        self.advance(now, key);
    }

    pub(super) fn pushed(&mut self, now: Time, push: Push) {
        match push {
            Push::Granted { hold, lock, token, end, abandoned, losses, others_waiting } => {
                let early = Early { token, end, abandoned, losses, others: others_waiting };
                match self.seat_of(hold) {
                    Some(key) => self.push_granted(now, key, early),
                    // An echo: a second release would know nothing of the tokens that were used.
                    None if self.is_leaving(hold) && !planted!(EchoReleases) => {}
                    None => {
                        // For a hold that is over: give it back.
                        self.effects.push_back(crate::event::Effect::Note(Note::StrayGrant(hold)));
                        self.give_back(now, &lock, hold);
                    }
                }
            }
            Push::Wanted { hold, .. } => {
                let Some(key) = self.seat_of(hold) else { return };
                if let Some(seat) = self.seats.get_mut(key) {
                    seat.others = seat.others.max(1);
                }
                self.tell_wanted(now, key);
            }
            Push::Broken { hold, .. } => {
                let Some(key) = self.seat_of(hold) else { return };
                if self.seats.get(key).is_some_and(|seat| seat.at == At::Held) {
                    self.vanish(now, key, LossReason::Broken);
                }
            }
            Push::Changed { hold, .. } => {
                let Some(key) = self.seat_of(hold) else { return };
                if let Some(seat) = self.seats.get_mut(key) {
                    seat.called = true;
                }
                self.beat_by(key, now);
            }
        }
    }

    /// A grant by hand-off. It counts from the last answer that said 'queued', and only if it was
    /// made after that answer; otherwise it is the echo of a claim that has ended.
    fn push_granted(&mut self, now: Time, key: Key, push: Early) {
        let Some(seat) = self.seats.get_mut(key) else { return };
        if seat.parting.is_some() || seat.at == At::Held {
            return;
        }
        if planted!(EarlyPushTrusted) && seat.at != At::Queued {
            seat.queued_at = now;
        } else if seat.at != At::Queued {
            // The push overtook the reply that says 'queued'.
            seat.early = Some(push);
            return;
        }
        if push.token <= seat.queued_last && !planted!(LatePushCounted) {
            return;
        }
        seat.at = At::Held;
        seat.token = push.token;
        seat.end = push.end.max(push.token);
        seat.abandoned = push.abandoned;
        seat.losses = push.losses;
        let since = if planted!(PushFromReceipt) { now } else { seat.queued_at };
        seat.valid_until = valid_until(since, seat.claim_lease);
        seat.asked = seat.claim_lease;
        seat.contact = seat.queued_at;
        seat.claim = true;
        seat.overtook = seat.flight.is_some();
        seat.others = push.others;
        // The claim is answered for at once, whether or not it is long enough to begin with.
        self.beat_by(key, now);
        let step = self.next_step(now, key);
        let Some(seat) = self.seats.get(key) else { return };
        if seat.valid_until > now {
            if step == Step::Renew {
                self.arm(key);
            } else {
                self.deliver(now, key, How::Push);
            }
        } else {
            // Too late to trust; the beat tells whether the store still keeps it for us.
            let Some(seat) = self.seats.get_mut(key) else { return };
            seat.at = At::Queued;
        }
    }

    /// Releases a hold that this client knows nothing of.
    fn give_back(&mut self, now: Time, name: &crate::name::Name, hold: crate::id::HoldId) {
        let lock = self.lock(name);
        let key = self.adopt(lock.0, hold);
        self.forget(lock);
        self.advance(now, key);
    }

    pub(super) fn note_publish(&mut self, state: &State) {
        if state.publish_failed {
            self.effects.push_back(crate::event::Effect::Note(Note::PublishFailed));
        }
    }

    /// The lease that the next holder of the seat wants.
    pub(super) fn wanted_lease(&mut self, key: Key) -> Duration {
        let Some(seat) = self.seats.get(key) else { return self.options.lease };
        let (lock, call) = (seat.lock, seat.call);
        let first = if seat.owner.is_some() { call } else { self.first_waiter(lock) };
        first
            .and_then(|call| self.calls.get(call.key()))
            .and_then(|call| match &call.wish {
                Wish::Acquire(ask) => ask.lease,
                _ => None,
            })
            .unwrap_or(self.options.lease)
    }
}
