//! The watchdog: holds are renewed, and waiters show that they live, in the same batches.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::engine::Engine;
use crate::engine::call::CallKind;
use crate::engine::entry::At;
use crate::engine::flight::{Beaten, Flight, Purpose};
use crate::engine::lent::Awaited;
use crate::engine::slab::Key;
use crate::engine::words::unconfirmed;
use crate::error::{Error, ErrorKind};
use crate::event::{Effect, Note, Outcome};
use crate::hold::{How, LossReason};
use crate::lane::{LaneId, Place};
use crate::options::MIN_LEASE;
use crate::reply::{Body, Failure, Refusal, RefusalKind, Reply, Standing, State};
use crate::request::{Beat, MAX_BEATS, Mode, Op};
use crate::time::Time;

/// What one request asks, and whose each part is.
type Batch = (Vec<Beat>, Vec<Beaten>);

/// The least pause before a renewal is repeated, however little is left of its hold.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

impl<C: Clone> Engine<C> {
    /// The entry's next beat is due at `at`, or earlier if it was planned earlier.
    pub(super) fn beat_by(&mut self, key: Key, at: Time) {
        let Some(entry) = self.entries.get(key) else { return };
        if entry.beat_at.is_none_or(|planned| at < planned) {
            self.beat_at(key, Some(at));
        }
    }

    pub(super) fn no_beat(&mut self, key: Key) {
        self.beat_at(key, None);
    }

    fn beat_at(&mut self, key: Key, at: Option<Time>) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let beats = &mut self.lanes[entry.lane].beats;
        if let Some(planned) = entry.beat_at {
            beats.remove(&(planned, key));
        }
        entry.beat_at = at;
        if let Some(at) = at {
            beats.insert((at, key));
        }
    }

    /// Whether the entry must be renewed for its holder, and if so plans it.
    pub(super) fn plan_renewal(&mut self, now: Time, key: Key) {
        let Some(entry) = self.entries.get(key) else { return };
        if entry.at != At::Held || entry.parting.is_some() {
            return;
        }
        if !entry.tenants.is_empty() && entry.group_end() <= entry.valid_until {
            // It ends on time, by itself. An answer that somebody waits for is still due, and so is
            // what the store must be told of a holder that asks for less.
            let told =
                self.lent_beyond(now, key, Awaited::All).is_none() || planted!(ShorteningCancelled);
            let idle = entry.flight.is_none() && !entry.claim && told;
            if idle && !self.has_companions(key) {
                self.no_beat(key);
            }
        } else if entry.beat_at.is_none() {
            // Early enough that a failed renewal leaves time for more.
            let left = entry.valid_until.since(now);
            let third = self.options.lease.min(entry.valid_until.since(entry.contact)) / 3;
            self.beat_by(key, now + left.saturating_sub(third * 2));
        }
    }

    /// Sends what is due at a server, with what will be due there soon, up to a batch at a time.
    pub(super) fn send_beats(&mut self, now: Time, lane: LaneId) {
        let soon = now + self.options.heartbeat() / 4;
        loop {
            let mut beats = Vec::new();
            let mut beaten = Vec::new();
            while beats.len() < MAX_BEATS {
                let Some(&(at, key)) = self.lanes[lane].beats.first() else { break };
                if at > soon {
                    break;
                }
                self.lanes[lane].beats.pop_first();
                if let Some(entry) = self.entries.get_mut(key) {
                    entry.beat_at = None;
                }
                if let Some((beat, entry)) = self.beat_of(now, key) {
                    beats.push(beat);
                    beaten.push(entry);
                }
            }
            if beats.is_empty() {
                return;
            }
            if !self.lanes.has_places() {
                self.send_batch(now, lane, beats, beaten);
                continue;
            }
            // One request is about one place alone, where there are several, and about one lock where
            // that is moving.
            let mut groups: BTreeMap<(Place, Option<Key>), Batch> = BTreeMap::new();
            for (beat, entry) in beats.into_iter().zip(beaten) {
                let place = self.lanes.place_of(&beat.lock);
                let group = groups.entry((place, beat.apart.then_some(entry.entry))).or_default();
                group.0.push(beat);
                group.1.push(entry);
            }
            for (beats, beaten) in groups.into_values() {
                self.send_batch(now, lane, beats, beaten);
            }
        }
    }

    fn send_batch(&mut self, now: Time, lane: LaneId, beats: Vec<Beat>, beaten: Vec<Beaten>) {
        let entries: Vec<Key> = beaten.iter().map(|beaten| beaten.entry).collect();
        let flight = Flight { sent: now, purpose: Purpose::Beat(beaten) };
        let id = self.send(lane, flight, Op::Beat(beats));
        for key in entries {
            if let Some(entry) = self.entries.get_mut(key) {
                entry.flight = Some(id);
            }
            self.arm(key);
        }
    }

    fn beat_of(&mut self, now: Time, key: Key) -> Option<(Beat, Beaten)> {
        let entry = self.entries.get_mut(key)?;
        if entry.parting.is_some() {
            return None;
        }
        if entry.flight.is_some() {
            entry.beat_missed = true;
            return None;
        }
        if entry.at == At::Held && entry.conversion.is_some() {
            // It renews as well.
            self.send_conversion(now, key);
            return None;
        }
        let lease = match entry.at {
            At::Held => self.renewal(now, key)?,
            At::Queued => self.wanted_lease(key),
            At::Nowhere | At::Unclear => return None,
        };
        let (claim, local_waiters) = (self.claim(self.lane_of_entry(key)), self.local_waiters(key));
        let drift = self.options.drift();
        let entry = self.entries.get_mut(key)?;
        let called = std::mem::take(&mut entry.called);
        let used = entry.used;
        let mut lease = lease;
        if used > entry.heard && !planted!(ShortenedLeaseTrusted) {
            // The store takes it as another holder's first word: it may keep the lock for so long
            // and no longer, which must not be less than the holder was told.
            if entry.tenants.is_empty() {
                entry.valid_until = entry.valid_until.min(drift.until(now, lease));
            } else {
                lease = lease.max(drift.lease_for(entry.valid_until.since(now)));
            }
        }
        let first = used > entry.shown;
        entry.news = false;
        entry.shown = used;
        // It may be answered as a hold's although it was a waiter's.
        entry.lent = entry.lent.max(drift.until(now, lease));
        // Nobody is ahead of one that holds, should the store have it in the queue again.
        let ahead = if entry.at == At::Queued { entry.ahead } else { 0 };
        let (lock, hold) = (entry.name.clone(), entry.id);
        let silence = self.options.stretched(claim, ahead);
        let mode = entry.stored;
        let apart = entry.apart;
        let beat = Beat { lock, hold, lease, used, silence, local_waiters, mode, apart };
        Some((beat, Beaten { entry: key, lease, used, first, called, ahead }))
    }

    /// The lease to ask for at a renewal: what the holder needs, and what anybody waits for.
    pub(super) fn renewal(&mut self, now: Time, key: Key) -> Option<Duration> {
        let mut lease = Duration::ZERO;
        if self.entries.get(key)?.tenants.is_empty() {
            lease = self.wanted_lease(key);
        }
        let entry = self.entries.get(key)?;
        for hold in entry.tenants.iter().flat_map(|holder| &holder.holds) {
            let Some(hold) = self.holds.get(hold.key()) else { continue };
            let need = self.options.drift().lease_for(hold.end.since(now));
            lease = lease.max(match hold.lease {
                Some(_) => need,
                None => need.min(self.options.lease),
            });
        }
        for call in self.companions(key) {
            match self.calls.get(call.key()).map(|call| &call.kind) {
                Some(CallKind::Extend { lease: asked, .. }) => lease = lease.max(*asked),
                Some(CallKind::Join(ask)) => {
                    lease = lease.max(ask.lease.unwrap_or(self.options.lease))
                }
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
            self.land(part.entry);
            let Some(entry) = self.entries.get_mut(part.entry) else { continue };
            // Asked for anew each time: nobody says when what was moving has come to rest.
            entry.apart = false;
            if std::mem::take(&mut entry.beat_missed) {
                self.beat_by(part.entry, now);
            }
        }
        match result {
            Ok(Reply { body: Body::Beat(states), .. }) if states.len() == beaten.len() => {
                // A holder that was called to show itself renews nothing by that.
                let looked = |part: &Beaten| {
                    let entry = self.entries.get(part.entry);
                    part.called && entry.is_some_and(|entry| entry.at == At::Held)
                };
                let granted = |state: &State| state.standing == Standing::Granted;
                let renewed = beaten
                    .iter()
                    .zip(&states)
                    .filter(|(part, state)| state.as_ref().is_ok_and(granted) && !looked(part))
                    .count();
                if renewed > 0 {
                    self.effects.push_back(Effect::Note(Note::Renewed(renewed)));
                }
                for (part, state) in beaten.iter().zip(states) {
                    match state {
                        Ok(state) => self.beat_answered(now, sent, *part, state),
                        Err(refusal) => self.beat_refused(now, part.entry, refusal),
                    }
                }
            }
            Err(Failure::Refused(refusal)) => {
                for part in &beaten {
                    self.beat_refused(now, part.entry, refusal.clone());
                }
            }
            Ok(_) | Err(Failure::Unknown | Failure::NotSent) => {
                for part in &beaten {
                    let lane = self.lane_of_entry(part.entry);
                    let reason = self.unavailable(lane, "the renewal was not answered");
                    self.note_failure(part.entry, &reason);
                    self.beat_again(now, part.entry);
                }
            }
        }
        for part in &beaten {
            self.send_conversion(now, part.entry);
            self.arm(part.entry);
        }
    }

    fn beat_answered(&mut self, now: Time, sent: Time, part: Beaten, state: State) {
        let key = part.entry;
        self.note_publish(&state);
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.parting.is_some() {
            return self.advance(now, key);
        }
        if let Standing::Unconfirmed { by, of } = state.standing {
            let reason = unconfirmed(by, of);
            entry.trouble = Some(reason.clone());
            self.note_failure(key, &reason);
            return self.beat_again(now, key);
        }
        entry.tries = 0;
        entry.trouble = None;
        let overtook = std::mem::take(&mut entry.overtook);
        match (entry.at, state.standing) {
            (At::Held, Standing::Granted) if state.token == entry.token => {
                self.renewed(now, sent, part, state);
            }
            (At::Queued, Standing::Granted) => {
                let how = if part.called { How::Push } else { How::Poll };
                self.entry_granted(now, key, sent, part.lease, state, how);
            }
            (At::Queued, Standing::Queued) => self.still_queued(now, key, sent, part.ahead, state),
            (At::Held, Standing::Queued)
                if state.last < entry.token && (overtook || planted!(QueuedAskedAgain)) =>
            {
                // Answered before the grant that overtook it. Whatever was asked after the grant
                // is not answered so, unless the store has gone back to before it.
                if !entry.tenants.is_empty() && entry.ends_at() <= now {
                    // Too late, as with a renewal.
                    return self.expire(now, key);
                }
                let kept = self.options.drift().until(sent, entry.claim_lease);
                let asked = self.asked_until(now, key, Awaited::No);
                let Some(entry) = self.entries.get_mut(key) else { return };
                entry.valid_until = entry.valid_until.max(asked.map_or(kept, |it| it.min(kept)));
                entry.lent = entry.lent.max(kept);
                self.beat_by(key, now);
            }
            // The store has it under another token: it forgot this tenure, and a late copy of the
            // acquire has made another one, which goes back.
            (At::Held, Standing::Granted) => {
                let reason = entry.ended(now).unwrap_or(LossReason::Gone);
                self.lose(now, key, reason);
            }
            (At::Held, _) => self.vanish(now, key, LossReason::Gone),
            (At::Queued, Standing::Deadlock) => self.deadlocked(now, key),
            (At::Queued, Standing::Doomed { of }) => self.doomed(now, key, of),
            (At::Queued, _) => {
                // The store forgot the waiter: back into the queue, at the same place. Under a new
                // id if the old one cannot be queued any more, so that a late push finds nothing.
                let fresh = (entry.exposed_until == 0).then(|| self.mint(key));
                let Some(entry) = self.entries.get_mut(key) else { return };
                entry.at = if fresh.is_some() { At::Nowhere } else { At::Unclear };
                entry.id = fresh.unwrap_or(entry.id);
                self.advance(now, key);
            }
            (At::Nowhere | At::Unclear, _) => self.advance(now, key),
        }
    }

    /// The store has the waiter in its queue, as of a request that left at `sent` and announced a
    /// silence by the number `announced` ahead of it.
    pub(super) fn still_queued(
        &mut self,
        now: Time,
        key: Key,
        sent: Time,
        announced: u32,
        state: State,
    ) {
        let heartbeat = self.options.heartbeat();
        let Some(entry) = self.entries.get_mut(key) else { return };
        // Within the claim, or a lost push would waste the hand-off.
        let within = heartbeat.min(entry.claim_lease / 3);
        let within = if planted!(ShortClaimNotPolled) { heartbeat } else { within };
        // The first request announces nothing, so the second is soon: it shows how fast the queue
        // moves.
        let moved = entry.ahead.saturating_sub(state.ahead);
        let took = sent.since(entry.queued_at);
        entry.queued_at = sent;
        entry.queued_last = state.last;
        entry.ticket = state.ticket;
        entry.ahead = state.ahead;
        let ahead = if planted!(UnannouncedSilence) { state.ahead } else { announced };
        let ahead = ahead.min(state.ahead);
        let mut look = self.options.stretched(within, ahead);
        if moved > 0 {
            // Shown again half-way to its turn, so that a grant counts from a late answer.
            let turn = took.saturating_mul(state.ahead) / moved;
            look = look.min(within.max(turn / 2));
        }
        // Only the first is told when the holder's lease ends; the others rely on their heartbeat.
        if let Some(span) = state.expires_in {
            look = look.min(span + Duration::from_millis(1));
        }
        if !planted!(SleeperNeverPolls) {
            self.beat_by(key, now + look);
        }
    }

    fn renewed(&mut self, now: Time, sent: Time, part: Beaten, state: State) {
        let key = part.entry;
        let Some(entry) = self.entries.get(key) else { return };
        let used = entry.used;
        if !entry.tenants.is_empty() && entry.next_end() <= now && !planted!(RenewalRevives) {
            // Too late: its holder has been, or is now, told. A renewal revives nothing.
            self.expire(now, key);
            if self.entries.get(key).is_none_or(|entry| entry.parting.is_some()) {
                return;
            }
        }
        // A session gives what is left of it.
        let given = part.lease.min(state.lease);
        let drift = self.options.drift();
        let answered = drift.until(sent, given);
        let asked = self.asked_until(now, key, Awaited::Answered(sent, part.lease));
        let asked = asked.filter(|_| part.used < used);
        let until = asked.map_or(answered, |asked| asked.min(answered));
        if until < answered {
            self.beat_by(key, now);
        }
        let Some(entry) = self.entries.get_mut(key) else { return };
        if until > entry.valid_until {
            entry.valid_until = until;
            entry.asked = given;
        }
        // A claim counts at the store from the grant, of which a push only says that it was made.
        let kept = drift.until(sent, state.lease);
        entry.lent = match (part.first, &entry.owner) {
            (true, None) if entry.stored == Mode::Exclusive => answered,
            // Another hold of the owner may have shown that token: then the answer tells.
            (true, Some(_)) => kept,
            _ => entry.lent.max(kept),
        };
        entry.contact = entry.contact.max(sent);
        entry.heard = entry.heard.max(part.used);
        entry.end = entry.end.max(state.end);
        entry.claim = false;
        if !planted!(OthersIgnored) {
            entry.hear_others(state.others_waiting, sent);
        }
        if entry.others == 0 {
            entry.run = 0;
            entry.run_since = None;
        }
        if entry.tenants.is_empty() {
            self.beat_by(key, sent + given / 3);
            self.deliver(now, key, How::Push);
        } else {
            self.serve_companions(now, key, sent, part.lease);
            self.plan_next(now, key, sent, given);
            if state.others_waiting > 0 && !planted!(OthersIgnored) {
                self.tell_wanted(now, key);
            }
            self.shorten(now, key);
        }
    }

    fn plan_next(&mut self, now: Time, key: Key, sent: Time, lease: Duration) {
        let Some(entry) = self.entries.get(key) else { return };
        if entry.group_end() > entry.valid_until {
            self.beat_by(key, sent + lease / 3);
        }
        if self.has_companions(key) {
            self.beat_by(key, now);
        }
    }

    /// Completes the extends and joins that this renewal was long enough for.
    fn serve_companions(&mut self, now: Time, key: Key, sent: Time, lease: Duration) {
        let drift = self.options.drift();
        let mut turned_away = Vec::new();
        for call in self.companions(key) {
            let Some(item) = self.calls.get(call.key()) else { continue };
            if item.since > sent {
                continue;
            }
            match &item.kind {
                CallKind::Extend { hold, lease: asked } if *asked <= lease => {
                    let (hold, asked) = (*hold, *asked);
                    let Some(item) = self.remove_call(call) else { continue };
                    let outcome = match self.holds.get_mut(hold.key()) {
                        Some(hold) => {
                            // Of a hold that the watchdog keeps, the store's lease is what grew.
                            let until = drift.until(sent, asked);
                            hold.extended = hold.extended.max(until);
                            if hold.end != Time::MAX {
                                hold.end = hold.end.max(until);
                            }
                            let owner = hold.owner;
                            self.update_end(now, key, owner);
                            Outcome::Extended
                        }
                        None => Outcome::Failed(super::release::not_held()),
                    };
                    self.complete(item.call, outcome);
                }
                CallKind::Join(ask) if ask.lease.unwrap_or(self.options.lease) <= lease => {
                    let owner = ask.tenant();
                    let entry = self.entries.get(key);
                    if entry.is_some_and(|entry| entry.tenants.get(owner).is_some()) {
                        self.join(now, key, call, Some(lease));
                    } else if self.is_closed_to_readers(key) || self.reads_already(now, call) {
                        turned_away.push(call);
                    } else {
                        self.let_in(now, key, call, How::Local);
                    }
                }
                _ => {}
            }
        }
        self.turn_away(now, key, turned_away);
    }

    fn beat_refused(&mut self, now: Time, key: Key, refusal: Refusal) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        match refusal.kind {
            RefusalKind::Again | RefusalKind::Apart if entry.tries < 3 => {
                entry.apart = refusal.kind == RefusalKind::Apart;
                entry.tries += 1;
                self.beat_by(key, now);
                if self.entries.get(key).is_some_and(|entry| entry.parting.is_some()) {
                    self.advance(now, key);
                }
            }
            RefusalKind::Misconfigured | RefusalKind::Unsupported if entry.at == At::Queued => {
                let error = Error::new(ErrorKind::Misconfigured, refusal.message);
                self.fail_waiters(now, key, &error, false);
                self.advance(now, key);
            }
            _ => {
                entry.trouble = Some(refusal.message.clone());
                self.note_failure(key, &refusal.message);
                self.beat_again(now, key);
            }
        }
    }

    pub(super) fn note_failure(&mut self, key: Key, reason: &str) {
        let Some(entry) = self.entries.get(key) else { return };
        if entry.at == At::Held && entry.parting.is_none() {
            let note = Note::RenewalFailed { lock: entry.name.clone(), reason: reason.to_owned() };
            self.effects.push_back(Effect::Note(note));
        }
    }

    /// The beat was not answered: again soon, as long as the hold lasts.
    fn beat_again(&mut self, now: Time, key: Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.parting.is_some() {
            return self.advance(now, key);
        }
        if planted!(WatchdogStopsAtFailure) && entry.at == At::Held {
            return;
        }
        entry.overtook = false;
        let tries = entry.tries;
        entry.tries += 1;
        // What is left of a hold is not slept through.
        let left = entry.valid_until.since(now) / 4;
        let bounded = entry.at == At::Held && !planted!(PauseOutlastsHold);
        let most = if bounded { left.max(SHORTEST_PAUSE) } else { Duration::MAX };
        let delay = self.backoff(tries).min(most);
        self.beat_by(key, now + delay);
    }
}
