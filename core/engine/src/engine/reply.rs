//! What the store answers, and what it pushes.

use std::time::Duration;

use crate::engine::Engine;
use crate::engine::call::CallKind;
use crate::engine::entry::{At, Early, Entry};
use crate::engine::flight::{Asked, Purpose};
use crate::engine::release::Step;
use crate::engine::slab::Key;
use crate::engine::words::unconfirmed;
use crate::error::{Error, ErrorKind};
use crate::event::{Note, Outcome};
use crate::hold::{How, LossReason};
use crate::reply::{Body, Failure, Push, Refusal, RefusalKind, Released, Reply, Standing, State};
use crate::request::RequestId;
use crate::time::Time;

impl<C: Clone> Engine<C> {
    pub(super) fn replied(
        &mut self,
        now: Time,
        request: RequestId,
        result: Result<Reply, Failure>,
    ) {
        let lane = request.lane();
        let Some(answering) = self.lanes.get_mut(lane) else { return };
        if matches!(result, Ok(_) | Err(Failure::Refused(_))) {
            answering.link.answered = Some(request);
        }
        #[allow(unused_mut)]
        let Some(mut flight) = answering.flights.take(request) else { return };
        if planted!(ValidityFromReply) {
            flight.sent = now;
        }
        if let Ok(reply) = &result {
            answering.link.clock.learn(reply.now, now);
            if planted!(OtherLanesClock) {
                for lane in self.lanes.ids() {
                    self.lanes[lane].link.clock.learn(reply.now, now);
                }
            }
        }
        if matches!(result, Ok(_) | Err(Failure::Refused(_))) {
            let listing = matches!(flight.purpose, Purpose::Query(Asked::Listing(_)));
            self.heard(now, lane, Some(flight.sent).filter(|_| !listing));
        }
        match flight.purpose {
            Purpose::Acquire { entry, lease, not_after, wait } => {
                self.land(entry);
                match result {
                    Ok(Reply { body: Body::Acquire(state), .. }) => {
                        self.acquire_answered(now, entry, flight.sent, lease, wait, state);
                    }
                    Ok(_) => self.acquire_failed(now, entry, not_after, Failure::Unknown),
                    Err(failure) => self.acquire_failed(now, entry, not_after, failure),
                }
                self.arm(entry);
            }
            Purpose::Beat(beaten) => self.beats_answered(now, flight.sent, beaten, result),
            Purpose::Release { entry } => {
                self.land(entry);
                match result {
                    Ok(Reply { now: store, body: Body::Release(released) }) => {
                        self.release_answered(now, flight.sent, entry, store, released);
                    }
                    Ok(_) => self.release_failed(now, entry, Failure::Unknown),
                    Err(failure) => self.release_failed(now, entry, failure),
                }
                self.arm(entry);
            }
            Purpose::Convert(sent) => {
                let entry = sent.entry;
                match result {
                    Ok(Reply { now: store, body: Body::Convert(state) }) => {
                        self.conversion_answered(now, flight.sent, sent, store, state);
                    }
                    Ok(_) => self.conversion_failed(now, sent, Failure::Unknown),
                    Err(failure) => self.conversion_failed(now, sent, failure),
                }
                self.arm(entry);
            }
            Purpose::Query(query) => self.query_replied(now, lane, query, result),
        }
    }

    /// The entry's request is no longer in flight.
    pub(super) fn land(&mut self, key: Key) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.flight = None;
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
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.tries = match state.standing {
            Standing::Late => entry.tries + 1,
            Standing::Unconfirmed { .. } => entry.tries,
            _ => 0,
        };
        entry.trouble = None;
        // The release that went along was executed first, whatever became of the acquire.
        if state.standing != Standing::Late
            && let Some(after) = entry.after.take()
            && let Some(call) = after.parting.call
        {
            self.complete(call, Outcome::Released);
        }
        self.note_publish(&state);
        match state.standing {
            Standing::Granted => self.entry_granted(now, key, sent, lease, state, How::Reply),
            Standing::Queued => self.entry_queued(now, key, sent, state),
            Standing::Contended => {
                let Some(entry) = self.entries.get_mut(key) else { return };
                entry.at = if entry.exposed_until > 0 { At::Unclear } else { At::Nowhere };
                // Callers that came meanwhile may be ready to wait: ask again, for them.
                self.refuse_waiters(now, key, !wait && !self.one_shot(key));
                self.advance(now, key);
            }
            Standing::Late => {
                let tries = self.entries.get(key).map_or(0, |entry| entry.tries);
                if self.entries.get(key).is_some_and(|entry| entry.parting.is_some()) {
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
                if let Some(entry) = self.entries.get_mut(key) {
                    entry.id = id;
                    entry.at = At::Nowhere;
                }
                self.retry_later(now, key);
                self.advance(now, key);
            }
            Standing::Deadlock => self.deadlocked(now, key),
            Standing::Doomed { of } => self.doomed(now, key, of),
            Standing::Unconfirmed { by, of } => {
                // The store has it: it is asked for again, or given back.
                if let Some(entry) = self.entries.get_mut(key) {
                    entry.at = At::Unclear;
                    entry.trouble = Some(unconfirmed(by, of));
                }
                self.after_failure(now, key);
            }
            Standing::NotHeld => {
                if let Some(entry) = self.entries.get_mut(key) {
                    entry.at = if entry.exposed_until > 0 { At::Unclear } else { At::Nowhere };
                }
                let text = "the ticket's owner does not hold the lock (any more) with this token";
                self.fail_waiters(now, key, &Error::new(ErrorKind::NotHeld, text), false);
                self.advance(now, key);
            }
        }
    }

    /// The store ended the wait of an explicit owner for its own shared hold.
    pub(super) fn deadlocked(&mut self, now: Time, key: Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.at = if entry.exposed_until > 0 { At::Unclear } else { At::Nowhere };
        self.fail_waiters(now, key, &would_deadlock(), false);
        self.advance(now, key);
    }

    /// The store ended a wait for more permits than there are.
    pub(super) fn doomed(&mut self, now: Time, key: Key, of: u32) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.at = if entry.exposed_until > 0 { At::Unclear } else { At::Nowhere };
        let count = entry.mode.permits().unwrap_or(0);
        let text = format!(
            "{count} permits were asked for, and the semaphore has {of} for those who hold or wait \
             now: ask for no more than these"
        );
        self.fail_waiters(now, key, &Error::new(ErrorKind::InvalidArgument, text), false);
        self.advance(now, key);
    }

    /// An entry whose only call does not wait.
    fn one_shot(&self, key: Key) -> bool {
        self.entries.get(key).is_some_and(Entry::is_single)
    }

    /// The store has granted, as the answer to a request that left at `sent` asking `lease`.
    pub(super) fn entry_granted(
        &mut self,
        now: Time,
        key: Key,
        sent: Time,
        lease: Duration,
        state: State,
        how: How,
    ) {
        // A waiter is granted the lease that it queued with, which may be less.
        let longer = planted!(ClaimNotRenewed) || planted!(LongerLeaseCounted);
        let lease = if longer { lease } else { lease.min(state.lease) };
        let drift = self.options.drift();
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.at = At::Held;
        entry.token = state.token;
        entry.end = state.end.max(state.token);
        entry.abandoned = state.abandoned;
        entry.losses = state.losses;
        entry.valid_until = drift.until(sent, lease);
        entry.asked = lease;
        entry.lent = entry.lent.max(drift.until(sent, lease.max(state.lease)));
        entry.contact = sent;
        entry.claim = false;
        entry.hear_others(state.others_waiting, sent);
        entry.early = None;
        if entry.parting.is_some() {
            return self.advance(now, key);
        }
        self.beat_by(key, sent + lease / 3);
        self.deliver(now, key, how);
    }

    /// Gives an entry that is held and that nobody has yet to whoever is next.
    pub(super) fn deliver(&mut self, now: Time, key: Key, how: How) {
        let Some(entry) = self.entries.get(key) else { return };
        debug_assert!(entry.at == At::Held && entry.tenants.is_empty() && entry.parting.is_none());
        if entry.valid_until <= now && !planted!(LeaseNotLookedAtAgain) {
            return self.expire(now, key);
        }
        self.end_forgotten(now, key);
        self.hand_on(now, key, how, None);
        self.arm(key);
    }

    fn entry_queued(&mut self, now: Time, key: Key, sent: Time, state: State) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.at = At::Queued;
        let early = entry.early.take();
        if entry.parting.is_some() {
            return self.advance(now, key);
        }
        // A re-entry that did not want to wait, and whose holds were lost, waits here with others.
        self.refuse_waiters(now, key, true);
        if self.entries.get(key).is_none_or(|entry| entry.parting.is_some()) {
            return;
        }
        self.still_queued(now, key, sent, 0, state);
        if let Some(early) = early {
            self.push_granted(now, key, early);
        }
    }

    fn acquire_failed(&mut self, now: Time, key: Key, not_after: u64, failure: Failure) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        match failure {
            Failure::Unknown => {
                entry.at = At::Unclear;
                entry.expose(not_after, now);
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
        if self.entries.get(key).is_some_and(|entry| entry.parting.is_some()) {
            self.split_after(now, key);
        } else {
            self.retry_later(now, key);
        }
        self.advance(now, key);
    }

    fn acquire_refused(&mut self, now: Time, key: Key, refusal: Refusal) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        match refusal.kind {
            RefusalKind::Again if entry.tries < 3 => {
                entry.tries += 1;
                if entry.parting.is_some() {
                    self.split_after(now, key);
                }
                self.advance(now, key);
            }
            RefusalKind::Again | RefusalKind::Apart | RefusalKind::Retry => {
                entry.trouble = Some(refusal.message);
                // A full memory refuses what takes the lock, but not what gives it up.
                self.split_after(now, key);
                self.after_failure(now, key);
            }
            RefusalKind::OtherPermits { of } if self.adopts(key) => {
                self.split_after(now, key);
                self.adopt_permits(now, key, of);
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
        let tries = self.entries.get(key).map_or(0, |entry| entry.tries);
        let delay = self.backoff(tries);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.tries += 1;
            entry.retry_at = now + delay;
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
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.tries = 0;
        // Counted to the release's sending: a reply that was long under way says nothing of later.
        let until = if planted!(PatienceFromReply) { now } else { sent };
        let exposed = entry.is_exposed(store, until);
        let Some(parting) = &mut entry.parting else { return };
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
        let wait = Duration::from_micros(entry.exposed_until - store);
        entry.at = At::Unclear;
        entry.retry_at = now + wait.min(entry.patience) + Duration::from_millis(1);
        if let Some(call) = parting.call.take() {
            self.complete(call, outcome);
        }
    }

    fn release_failed(&mut self, now: Time, key: Key, failure: Failure) {
        let store = self.lanes[self.lane_of_entry(key)].link.clock.estimate(now);
        let Some(entry) = self.entries.get_mut(key) else { return };
        let exposed = entry.is_exposed(store, now);
        let Some(parting) = &mut entry.parting else { return };
        match failure {
            Failure::Unknown => {}
            Failure::NotSent => parting.tries -= 1,
            Failure::Refused(refusal) => {
                parting.tries -= 1;
                match refusal.kind {
                    RefusalKind::Again if entry.tries < 3 => {
                        entry.tries += 1;
                        return self.advance(now, key);
                    }
                    RefusalKind::Again | RefusalKind::Apart | RefusalKind::Retry => {}
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
                match self.entry_of(hold) {
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
                let Some(key) = self.entry_of(hold) else { return };
                if let Some(entry) = self.entries.get_mut(key) {
                    entry.hear_wanted(now);
                }
                self.tell_wanted(now, key);
            }
            Push::Broken { hold, .. } => {
                let Some(key) = self.entry_of(hold) else { return };
                if self.entries.get(key).is_some_and(|entry| entry.at == At::Held) {
                    self.vanish(now, key, LossReason::Broken);
                }
            }
            Push::Changed { hold, .. } => {
                let Some(key) = self.entry_of(hold) else { return };
                self.look_again(now, key);
            }
        }
    }

    /// The store's word makes the next beat leave at once, whose answer tells.
    fn look_again(&mut self, now: Time, key: Key) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.called = true;
        }
        self.beat_by(key, now);
    }

    /// A grant by hand-off. It counts from the last answer that said 'queued', and only if it was
    /// made after that answer; otherwise it is the echo of a claim that has ended.
    fn push_granted(&mut self, now: Time, key: Key, push: Early) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if planted!(GivenUpSeatHandedOn) && entry.mode.permits().is_some() && !entry.told {
            (entry.parting, entry.at) = (None, At::Queued);
        }
        if entry.parting.is_some() || entry.at == At::Held {
            return;
        }
        if planted!(EarlyPushTrusted) && entry.at != At::Queued {
            entry.queued_at = now;
        } else if entry.at != At::Queued {
            // The push overtook the reply that says 'queued'.
            entry.early = Some(push);
            return;
        }
        if push.token <= entry.queued_last && !planted!(LatePushCounted) {
            return;
        }
        if self.options.confirm_grants && !planted!(PushedGrantUnconfirmed) {
            return self.look_again(now, key);
        }
        entry.at = At::Held;
        entry.token = push.token;
        entry.end = push.end.max(push.token);
        entry.abandoned = push.abandoned;
        entry.losses = push.losses;
        let since = if planted!(PushFromReceipt) { now } else { entry.queued_at };
        entry.valid_until = self.options.drift().until(since, entry.claim_lease);
        entry.asked = entry.claim_lease;
        entry.contact = entry.queued_at;
        entry.claim = true;
        entry.overtook = entry.flight.is_some();
        entry.lent = entry.lent.max(entry.valid_until);
        entry.others = push.others;
        entry.keep_news();
        // The claim is answered for at once, whether or not it is long enough to begin with.
        self.beat_by(key, now);
        let step = self.next_step(now, key);
        let Some(entry) = self.entries.get(key) else { return };
        if entry.valid_until > now {
            if step == Step::Renew {
                self.arm(key);
            } else {
                self.deliver(now, key, How::Push);
            }
        } else {
            // Too late to trust; the beat tells whether the store still keeps it for us.
            let Some(entry) = self.entries.get_mut(key) else { return };
            entry.at = At::Queued;
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

    /// The lease that whoever is next to hold the entry wants.
    pub(super) fn wanted_lease(&mut self, key: Key) -> Duration {
        let Some(entry) = self.entries.get(key) else { return self.options.lease };
        let calls: Vec<_> = if entry.is_handed_on() {
            self.first_waiter(entry.lock).into_iter().collect()
        } else if entry.calls.is_empty() {
            self.seated_at(key).into_iter().collect()
        } else {
            entry.calls.iter().copied().collect()
        };
        let asks = calls.iter().filter_map(|call| match &self.calls.get(call.key())?.kind {
            CallKind::Acquire(ask) => Some(ask.lease.unwrap_or(self.options.lease)),
            _ => None,
        });
        // Of readers that come in together, the longest.
        asks.max().unwrap_or(self.options.lease)
    }
}

/// The error of an owner that would wait for its own hold.
pub(super) fn would_deadlock() -> Error {
    let text = "the owner has the lock shared already, and would wait for itself: release that first, \
                or take the lock for writing from the start";
    Error::new(ErrorKind::WouldDeadlock, text)
}
