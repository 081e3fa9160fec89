//! The driver: it passes events and the time to an engine, and does what the engine wants done.

use fencelock_engine::plant::{self, Bug};
use fencelock_engine::reply::{Failure, Push};
use fencelock_engine::request::{Mode, RequestId};
use fencelock_engine::{
    Converted, Effect, Engine, ErrorKind, Grant, How, LossReason, Note, Outcome, Time,
};

use crate::check::Beside;
use crate::client::{Call, Held, Open, Tag, Terms, Who, actor_of};
use crate::clock::{MS, US};
use crate::cover::Cover;
use crate::event::Event;
use crate::network::{ConnId, Releasing};
use crate::turn::owner_id;
use crate::world::World;

/// How long ago, at the most, a call's clock was read.
const STALE: u64 = 2_000 * US;
/// By how much the ends of two leases that ask for the same instant may differ.
const ROUNDING: std::time::Duration = std::time::Duration::from_micros(5);

impl World {
    /// What a client's clock reads now.
    pub(crate) fn local(&self, slot: usize) -> Time {
        self.clients[slot].clock.read(self.now)
    }

    /// Calls an engine. The clock may have been read a little earlier: another thread went first.
    pub(crate) fn call<R>(
        &mut self,
        slot: usize,
        call: impl FnOnce(&mut Engine<Tag>, Time) -> R,
    ) -> R {
        let mut now = self.local(slot);
        let stale = self.dice.chance(self.plan.hazards.stale_read);
        let mut before = None;
        if stale {
            before = self.engine_time(slot);
            now = now - std::time::Duration::from_nanos(self.dice.below(STALE));
        }
        self.steps += 1;
        let result = call(&mut self.clients[slot].engine, now);
        if stale {
            let after = self.engine_time(slot);
            if before > after && after.is_some() {
                self.checks.fail("lease arithmetic", self.now, || {
                    format!("c{slot}: the engine's time went from {before:?} back to {after:?}")
                });
            }
        }
        result
    }

    /// What the engine takes for the present, as far as what is left of a hold shows it.
    fn engine_time(&self, slot: usize) -> Option<Time> {
        let (now, client) = (self.local(slot), &self.clients[slot]);
        client.actors.iter().flat_map(|actor| &actor.held).find_map(|held| {
            let left = client.engine.remaining(now, held.key).filter(|left| !left.is_zero())?;
            let most = client.engine.remaining(Time::ZERO, held.key)?;
            Some(now + left - most)
        })
    }

    /// The engine's timer.
    pub(crate) fn wake(&mut self, slot: usize, generation: u32) {
        let client = &mut self.clients[slot];
        if !client.up || client.wake_generation != generation {
            return;
        }
        if client.asleep > 0 {
            let at = self.now + std::mem::take(&mut client.asleep);
            self.queue.push(at, Event::Wake { slot, generation });
            return;
        }
        client.wake_at = None;
        let now = self.local(slot);
        self.trace.mix(now.as_nanos());
        self.trace.line(self.now, || format!("c{slot} wakes at {now:?}"));
        self.steps += 1;
        self.clients[slot].engine.wake(now);
        self.drain(slot);
        let client = &self.clients[slot];
        if client.engine.next_wake().is_some_and(|at| at <= now) {
            self.checks.fail("lost in time", self.now, || {
                format!("c{slot} was woken at {now:?} and wants to be woken at once again")
            });
        }
        self.punctual(slot, now);
    }

    /// Passes an event from the store to an engine. It stays in its box until then: it is large.
    #[allow(clippy::boxed_local)]
    pub(crate) fn heard(&mut self, conn: ConnId, event: Box<fencelock_engine::Event>) {
        let slot = self.conns[conn].slot;
        let client = &mut self.clients[slot];
        if !client.up || client.link.conn != Some(conn) {
            return;
        }
        let mut released = None;
        match &*event {
            fencelock_engine::Event::Up { .. } => {
                client.link.up = true;
                if plant::on(Bug::TransportRetries) {
                    self.resend(slot);
                }
            }
            fencelock_engine::Event::Reply { request, result } => {
                self.checks.seats.answered(client.incarnation, *request, result);
                let Some(at) = client.link.pending.iter().position(|id| id == request) else {
                    return;
                };
                client.link.pending.remove(at);
                let releases = &mut client.link.releases;
                if let Some(at) = releases.iter().position(|it| it.request == *request) {
                    released = Some(releases.swap_remove(at));
                }
            }
            fencelock_engine::Event::Push(push @ Push::Wanted { lock, hold }) => {
                self.checks.seats.pushed(push);
                if let Some(at) = self.names.iter().position(|name| name == lock) {
                    self.checks.queue.wanted(self.now, at, *hold);
                }
            }
            fencelock_engine::Event::Push(Push::Granted { .. })
                if client.actors.iter().any(|actor| actor.waiting().is_some())
                    && !client.link.pending.is_empty() =>
            {
                self.cover.add(Cover::PushBeforeReply);
            }
            _ => {}
        }
        if let fencelock_engine::Event::Push(push @ Push::Granted { .. }) = &*event {
            self.checks.seats.pushed(push);
        }
        if matches!(&*event, fencelock_engine::Event::Reply { .. }) {
            self.believe(slot);
        }
        self.pass(slot, *event);
        let claim = self.plan.options.claim.as_nanos() as u64;
        if let Some(release) = released.filter(|it| self.now - it.sent >= 2 * claim) {
            self.cover.add(Cover::RepliedLate);
            self.left_behind(slot, release);
        }
    }

    /// A release's reply was long under way. What its client has done with is not at the store:
    /// nothing has put it there meanwhile.
    fn left_behind(&mut self, slot: usize, release: Releasing) {
        let Releasing { hold, lock, sent, .. } = release;
        if self.clients[slot].engine.knows(hold)
            || self.checks.token.went_back
            || self.clients[slot].jumped
            || self.checks.exclusion.broken_since(lock, sent)
        {
            return;
        }
        let (name, clock) = (self.names[lock].clone(), self.server.clock.read(self.now));
        let Some(info) = self.peek(&name, clock) else { return };
        let holds = info.holds.iter().filter(|it| !it.expires_in.is_zero());
        let mut left = holds.map(|it| it.hold).chain(info.waiters.iter().map(|it| it.hold));
        if left.any(|it| it == hold) {
            self.checks.fail("no residue", self.now, || {
                format!("{name}: {hold:?} of c{slot} is at the store, and nobody wants it any more")
            });
        }
    }

    /// What the transport says by itself.
    pub(crate) fn read_inbox(&mut self, slot: usize, incarnation: usize) {
        if self.clients[slot].incarnation != incarnation || !self.clients[slot].up {
            return;
        }
        // What these lead to is said a moment later: two who answer each other at once do not stop
        // the time.
        for _ in 0..self.clients[slot].inbox.len() {
            let Some(event) = self.clients[slot].inbox.pop_front() else { break };
            self.pass(slot, event);
        }
    }

    /// A request found no connection.
    pub(crate) fn unsent(&mut self, slot: usize, incarnation: usize, request: u64) {
        if self.clients[slot].incarnation != incarnation || !self.clients[slot].up {
            return;
        }
        let request = RequestId(request);
        let event = fencelock_engine::Event::Reply { request, result: Err(Failure::NotSent) };
        self.pass(slot, event);
    }

    fn pass(&mut self, slot: usize, event: fencelock_engine::Event) {
        self.trace.mix(self.now);
        self.trace.line(self.now, || format!("c{slot} hears {event:?}"));
        self.call(slot, |engine, now| engine.handle(now, event));
        self.drain(slot);
    }

    /// Does all that an engine wants done.
    pub(crate) fn drain(&mut self, slot: usize) {
        while let Some(effect) = self.clients[slot].engine.poll_effect() {
            match effect {
                Effect::Send(request) => {
                    self.trace.mix(request.id.0);
                    self.trace.line(self.now, || format!("c{slot} sends {request:?}"));
                    let incarnation = self.clients[slot].incarnation;
                    self.checks.seats.asks(self.now, incarnation, &request);
                    if let fencelock_engine::request::Op::Release(release) = &request.op {
                        self.sent_release = Some(release.hold);
                    }
                    if let fencelock_engine::request::Op::Beat(beats) = &request.op
                        && beats.len() > 1
                    {
                        self.cover.add(Cover::BatchedRenewal);
                    }
                    if matches!(request.op, fencelock_engine::request::Op::Beat(_)) {
                        self.renews(slot);
                    }
                    self.send(slot, request);
                }
                Effect::Reconnect(_) => self.reconnect(slot),
                Effect::Complete(tag, outcome) => self.completed(slot, tag, outcome),
                Effect::Lost(tag, reason) => self.lost(slot, tag, reason),
                Effect::Wanted(tag) => {
                    self.trace.line(self.now, || format!("c{slot} {tag:x} is wanted"));
                    let held = &mut self.clients[slot].actors[actor_of(tag)].held;
                    if let Some(held) = held.iter_mut().find(|held| held.tag == tag) {
                        held.wanted = true;
                    }
                }
                Effect::Note(note) => self.noted(slot, note),
            }
        }
        self.after_step(slot);
    }

    /// A client renews: never so often that it does nothing else.
    fn renews(&mut self, slot: usize) {
        const SPAN: u64 = 2 * MS;
        const MOST: u32 = 80;
        let renewals = &mut self.clients[slot].renewals;
        if self.now > renewals.0 + SPAN {
            *renewals = (self.now, 0);
        }
        renewals.1 += 1;
        if renewals.1 > MOST {
            self.checks.fail("watchdog", self.now, || {
                format!("c{slot} renewed {MOST} times within {} ms", SPAN / MS)
            });
        }
    }

    fn noted(&mut self, slot: usize, note: Note) {
        self.trace.line(self.now, || format!("c{slot} notes {note:?}"));
        match note {
            Note::StrayGrant(_) => self.cover.add(Cover::StrayGrant),
            Note::Renewed(_) => self.cover.add(Cover::Renewed),
            _ => {}
        }
    }

    fn completed(&mut self, slot: usize, tag: Tag, outcome: Outcome) {
        self.trace.mix(tag);
        self.trace.line(self.now, || format!("c{slot} {tag:x} completes: {outcome:?}"));
        let number = actor_of(tag);
        let actor = &mut self.clients[slot].actors[number];
        let Some(at) = actor.open.iter().position(|open| open.tag == tag) else {
            self.checks.fail("one completion", self.now, || {
                format!("c{slot} {tag:x} completes although it is over: {outcome:?}")
            });
            return;
        };
        let open = actor.open.remove(at);
        let mut vain = false;
        match (open.call, outcome) {
            (Call::Acquire(waiting), Outcome::Granted(grant)) => {
                let key = Some(waiting.key);
                self.granted(slot, tag, waiting.lock, grant, waiting.terms, key);
            }
            (Call::Acquire(waiting), Outcome::Failed(error)) => {
                self.clients[slot].actors[number].has_fewer(waiting.lock, self.now);
                self.checks.queue.withdrawn(slot, tag);
                self.tell(slot, "failed", tag, &[("kind", &error.kind())]);
                let (patience, terms, lock) = (waiting.patience, waiting.terms, waiting.lock);
                self.refused(slot, number, &patience, terms, lock, error.kind());
                vain = error.kind() == ErrorKind::Misconfigured;
            }
            (Call::Release { hold, .. }, Outcome::Released) => {
                self.tell(slot, "released", hold, &[])
            }
            (Call::Release { lock, hold, since, sent }, Outcome::Failed(error)) => {
                self.tell(slot, "unreleased", hold, &[("kind", &error.kind())]);
                let lost = error.kind() == ErrorKind::Lost
                    && (!sent.is_some_and(|hold| self.checks.abandoned.was_released(hold))
                        || self.checks.exclusion.broken_since(lock, since));
                let foreign = error.kind() == ErrorKind::Misconfigured && self.was_foreign(lock);
                if !lost && !foreign && error.kind() != ErrorKind::Unavailable {
                    self.checks.fail("only the holder releases", self.now, || {
                        format!("c{slot} {tag:x}: a release ended as {error:?}")
                    });
                }
            }
            (Call::Extend { hold }, Outcome::Extended) => {
                self.cover.add(Cover::Extended);
                self.trace.line(self.now, || format!("c{slot} {hold:x} is extended"));
            }
            (Call::Extend { hold }, Outcome::Failed(error)) => {
                let held = self.clients[slot].actors[number].held.iter();
                let there = held.into_iter().any(|it| it.tag == hold && it.lost.is_none());
                let fits = match error.kind() {
                    ErrorKind::Unavailable => there,
                    ErrorKind::NotHeld | ErrorKind::Lost => !there,
                    kind => kind == ErrorKind::Closed,
                };
                if !fits {
                    self.checks.fail("errors", self.now, || {
                        format!("c{slot} {hold:x}: an extend failed as {error:?}, held: {there}")
                    });
                }
            }
            (Call::Convert { hold, .. }, Outcome::Converted(to)) => {
                self.converted(slot, number, hold, to);
            }
            (Call::Convert { hold, to }, Outcome::Failed(error)) => {
                let held = self.clients[slot].actors[number].held.iter();
                let held = held.into_iter().find(|it| it.tag == hold);
                let there = held.is_some_and(|it| it.lost.is_none());
                let foreign = held.is_some_and(|it| self.was_foreign(it.lock));
                let fits = match error.kind() {
                    ErrorKind::Contended => there && to == Mode::Exclusive,
                    ErrorKind::Unavailable => there,
                    ErrorKind::NotHeld | ErrorKind::Lost => !there,
                    ErrorKind::Misconfigured => foreign,
                    // Nobody is upgraded there, and a plain lock's node is no reader's.
                    ErrorKind::Unsupported => there && self.plan.zk.is_some(),
                    kind => kind == ErrorKind::Closed,
                };
                if !fits {
                    self.checks.fail("errors", self.now, || {
                        format!("c{slot} {hold:x}: a conversion failed as {error:?}, held: {there}")
                    });
                }
            }
            (Call::Break, Outcome::Broken(_)) => self.cover.add(Cover::Broken),
            (Call::Break, Outcome::Failed(_)) => {}
            (Call::Resize { .. }, Outcome::Resized(true)) => self.cover.add(Cover::Resized),
            (Call::Resize { .. }, Outcome::Resized(false)) => {}
            (Call::Resize { lock }, Outcome::Failed(error)) => {
                let kinds = [ErrorKind::Unavailable, ErrorKind::Closed];
                let foreign = error.kind() == ErrorKind::Misconfigured && self.was_foreign(lock);
                if !kinds.contains(&error.kind()) && !foreign {
                    self.checks.fail("errors", self.now, || {
                        format!("c{slot} {tag:x}: a resize failed as {error:?}")
                    });
                }
            }
            (Call::Look { lock }, Outcome::Inspected(info)) => {
                if let Some(info) = info.filter(|info| !info.holds.is_empty()) {
                    self.break_lock(slot, number, lock, info.token);
                }
            }
            (Call::Look { .. }, Outcome::Failed(_)) => {}
            (Call::Close, Outcome::Closed) => self.checks.closed += 1,
            (call, outcome) => self.checks.fail("one completion", self.now, || {
                format!("c{slot} {tag:x}: {call:?} ended as {outcome:?}")
            }),
        }
        // Who was told that it needs an operator tries again, but not without end.
        let soon = self.dice.below(if vain { 20 * MS } else { 500 * US });
        self.schedule_turn(slot, number, soon);
    }

    /// A hold has another mode: with what others have now, and under a token above what it must lie above.
    fn converted(&mut self, slot: usize, number: usize, hold: Tag, to: Converted) {
        let token = to.token.get();
        self.trace.line(self.now, || format!("c{slot} {hold:x} is {:?} as {token}", to.mode));
        self.trace.mix(token);
        let actor = &self.clients[slot].actors[number];
        let (who, held) = (actor.who, actor.held.iter().find(|held| held.tag == hold));
        let Some(lock) = held.map(|held| held.lock) else { return };
        self.set_mode(slot, number, hold, to.mode, Some(token));
        let it = Beside { slot, tag: hold, who, mode: to.mode, lock, token };
        self.checks.beside(self.now, &self.clients, it);
        let level = matches!(who, crate::client::Who::Explicit(_));
        self.checks.converted(self.now, &self.clients[slot], lock, hold, token, to.mode, level);
        let seen = match to.mode {
            Mode::Exclusive => self.checks.fence.read(lock, token),
            _ => self.checks.fence.look(lock, token),
        };
        let actor = &mut self.clients[slot].actors[number];
        actor.has_fewer(lock, self.now);
        if let Some(held) = actor.held.iter_mut().find(|held| held.tag == hold) {
            held.seen = seen;
        }
    }

    /// An acquire failed; each way to ask has its own ways to fail.
    pub(crate) fn refused(
        &mut self,
        slot: usize,
        actor: usize,
        patience: &fencelock_engine::Patience,
        terms: Terms,
        lock: usize,
        kind: ErrorKind,
    ) {
        use fencelock_engine::Patience;
        let fits = match (patience, kind) {
            (_, ErrorKind::Closed | ErrorKind::Cancelled) => self.clients[slot].closing.is_some(),
            (_, ErrorKind::NotHeld) => terms.attach,
            (_, ErrorKind::Unsupported) => {
                // An owner's ticket does not travel there.
                self.checks.waive("owners");
                self.zk_refuses()
            }
            (_, ErrorKind::Misconfigured) => {
                let habits = &self.plan.habits;
                let differ = habits.odd + habits.resize + habits.adopt > 0;
                self.was_foreign(lock) || self.zk_refuses() || differ && !terms.adopt
            }
            // There are fewer now than it asked for when it began to wait.
            (_, ErrorKind::InvalidArgument) => {
                self.cover.add(Cover::Doomed);
                let habits = &self.plan.habits;
                // There whoever is first while none is out says how many, also to those behind it.
                let says = self.zk.is_some() && habits.odd + habits.adopt > 0;
                (habits.resize > 0 || terms.adopt || says) && terms.mode.permits() > Some(1)
            }
            (_, ErrorKind::WouldDeadlock) => self.would_deadlock(slot, actor, lock, terms.mode),
            (Patience::Try, ErrorKind::Contended | ErrorKind::Unavailable) => true,
            (Patience::Until(_), ErrorKind::TimedOut | ErrorKind::Unavailable) => true,
            _ => false,
        };
        match kind {
            ErrorKind::Contended => self.cover.add(Cover::Contended),
            ErrorKind::TimedOut => self.cover.add(Cover::TimedOut),
            _ => {}
        }
        if !fits {
            self.checks.fail("errors", self.now, || {
                format!("c{slot}: an acquire with {patience:?} failed as {kind}")
            });
        }
    }

    /// Whether an owner that asks for a lock for itself has it together with others.
    fn would_deadlock(&mut self, slot: usize, actor: usize, lock: usize, mode: Mode) -> bool {
        self.cover.add(Cover::WouldDeadlock);
        let it = &self.clients[slot].actors[actor];
        mode == Mode::Exclusive
            && match it.who {
                Who::Local { .. } => it.reads(lock),
                Who::Explicit(number) => self.checks.sharing.has_shared(lock, &owner_id(number)),
            }
    }

    /// A caller has a hold from now on.
    pub(crate) fn granted(
        &mut self,
        slot: usize,
        tag: Tag,
        lock: usize,
        grant: Grant,
        terms: Terms,
        call: Option<fencelock_engine::CallKey>,
    ) {
        let token = grant.token.get();
        self.trace.mix(token);
        self.trace.line(self.now, || format!("c{slot} {tag:x} has lock {lock}: {grant:?}"));
        self.count_abandoned(grant.abandoned);
        self.cover.add(match grant.how {
            How::Reentry => Cover::Reentry,
            How::Local if terms.mode == Mode::Shared => Cover::ReaderJoined,
            How::Local => Cover::LocalHandOff,
            How::Reply => Cover::GrantByReply,
            How::Push => Cover::GrantByPush,
            How::Poll => Cover::GrantByPoll,
        });
        let number = actor_of(tag);
        let who = self.clients[slot].actors[number].who;
        let present = self.present(who, lock, &grant);
        let present = present.as_deref();
        self.checks.granted(
            self.now,
            &self.clients,
            crate::check::Delivery {
                slot,
                tag,
                who,
                lock,
                mode: terms.mode,
                grant: &grant,
                present,
            },
        );
        if self.zk.is_some() {
            self.zk_granted(lock, terms.mode, token, &grant);
        }
        let seen = match terms.mode {
            Mode::Exclusive => self.checks.fence.read(lock, token),
            Mode::Shared => {
                let seen = self.checks.fence.look(lock, token);
                let first = seen.unwrap_or_default();
                self.checks.reads(self.now, &self.clients, slot, lock, token, first, seen, true);
                seen
            }
            Mode::Permits { .. } => Some(0),
        };
        self.count_shared(slot, number, lock, terms.mode);
        let local = self.local(slot);
        let incarnation = self.clients[slot].incarnation;
        if matches!(who, crate::client::Who::Explicit(_))
            && self.checks.exclusion.shared(lock, who, incarnation)
        {
            self.cover.add(Cover::SharedOwner);
        }
        if terms.attach {
            self.cover.add(Cover::Attached);
        }
        let hold_for = if self.quiet {
            self.dice.below(self.plan.habits.hold.min(20_000 * US))
        } else {
            self.dice.below(self.plan.habits.hold)
        };
        let regret = call.is_some() && self.dice.chance(self.plan.habits.cancel / 8);
        let actor = &mut self.clients[slot].actors[number];
        let inside = |it: &Held| it.lock == lock && it.level && it.token == token;
        let level = terms.mode == Mode::Exclusive
            || terms.mode == Mode::Shared && actor.held.iter().any(inside);
        actor.held.push(Held {
            tag,
            key: grant.hold,
            call,
            lock,
            token,
            mode: terms.mode,
            level,
            asked: terms.lease,
            lost: None,
            seen,
            end: local,
            since: self.now,
            ends: terms.ends,
            wanted: false,
            trusted: 0,
        });
        if !grant.reentry {
            let asking = actor.asking(lock).max().unwrap_or_default();
            actor.asked[lock] = terms.lease.max(asking);
        }
        actor.cancel_at = None;
        actor.regret = regret;
        actor.until = actor.until.max(self.now + hold_for);
        if self.tells() {
            let until = self.trust(slot, tag);
            let abandoned = format!("{:?}", grant.abandoned);
            let fields: [(&str, &dyn std::fmt::Display); 5] = [
                ("lock", &format!("lock-{lock}")),
                ("token", &token),
                ("abandoned", &abandoned),
                ("reentry", &grant.reentry),
                ("until", &until),
            ];
            self.tell(slot, "granted", tag, &fields);
            if let Some(held) = self.clients[slot].actors[number].held.last_mut() {
                held.trusted = until;
            }
        }
    }

    /// Counts what is held beside a new hold.
    fn count_shared(&mut self, slot: usize, actor: usize, lock: usize, mode: Mode) {
        if mode == Mode::Exclusive {
            return;
        }
        let own = &self.clients[slot].actors[actor].held;
        let writes = own.iter().any(|it| it.lock == lock && it.mode == Mode::Exclusive);
        let mut held = self.clients.iter().flat_map(|it| &it.actors).flat_map(|it| &it.held);
        let others = held.any(|it| it.lock == lock && it.mode != Mode::Exclusive);
        match mode {
            Mode::Shared if writes => self.cover.add(Cover::ReadInsideWrite),
            Mode::Shared if others => self.cover.add(Cover::ReadTogether),
            Mode::Permits { .. } if others => self.cover.add(Cover::PermitsTogether),
            _ => {}
        }
    }

    fn lost(&mut self, slot: usize, tag: Tag, reason: LossReason) {
        self.trace.mix(tag ^ 1);
        self.trace.line(self.now, || format!("c{slot} {tag:x} is lost: {reason:?}"));
        let number = actor_of(tag);
        let surely = self.local(slot) - std::time::Duration::from_nanos(STALE);
        let actor = &mut self.clients[slot].actors[number];
        let held = actor.held.iter_mut().find(|held| held.tag == tag);
        let Some(held) = held.filter(|held| held.lost.is_none()) else {
            let ended = &mut self.clients[slot].ended;
            if let Some(at) = ended.iter().position(|it| *it == tag) {
                ended.swap_remove(at);
                return;
            }
            self.checks.fail("lost in time", self.now, || {
                format!("c{slot} {tag:x}: a loss is told twice, or after the release")
            });
            return;
        };
        held.lost = Some(reason);
        // One whose end is not known, since its owner asks for less from now on, is not judged.
        let over = held.end > Time::ZERO && held.end <= surely;
        if over && matches!(reason, LossReason::Broken | LossReason::Gone) {
            self.checks.fail("lost in time", self.now, || {
                format!("c{slot} {tag:x} is told {reason:?}, and its time was over by itself")
            });
            return;
        }
        let kept = !held.ends && matches!(reason, LossReason::NotRenewed | LossReason::Gone);
        let (lock, since, incarnation) = (held.lock, held.since, self.clients[slot].incarnation);
        self.cover.add(Cover::LostTold);
        self.tell(slot, "lost", tag, &[("reason", &format!("{reason:?}"))]);
        if self.now < self.clients[slot].paused_until + 2_000 * US {
            self.cover.add(Cover::ExpiredWhilePaused);
        }
        // When answers come again, a session is proven anew by two of which one left a third of the timeout
        // after the other had come.
        let quarter = self.plan.options.lease.as_nanos() as u64 / 4;
        let settles = quarter.max(self.zk_timeout() / 2);
        // A session may end for many reasons; the machine's own checks look at them.
        let forgotten = reason == LossReason::Gone
            && (!self.checks.exclusion.is_protected(lock, incarnation, tag) || self.zk.is_some());
        // It pauses before it tries again to connect.
        let away = self.zk.is_none() && self.clients[slot].link.attempts > 1;
        let recent = self.now <= self.trouble_until + settles;
        // Far away, a claim that was asked for when answers came sooner may end before the first.
        let unheard = self.now < since + 2 * self.plan.latency.1;
        let excused = forgotten || self.was_foreign(lock) || away || recent || unheard;
        if kept && excused {
            self.checks.waive("watchdog");
        } else if kept {
            self.checks.fail("watchdog", self.now, || {
                format!("c{slot} {tag:x} was not renewed, and nothing was in the way")
            });
        }
        self.checks.lost(lock, tag, self.clients[slot].incarnation, reason);
        let soon = self.dice.below(5_000 * US);
        self.schedule_turn(slot, number, soon);
    }

    /// After each call: the next wake is scheduled, and what must hold at all times is looked at.
    pub(crate) fn after_step(&mut self, slot: usize) {
        let wanted = self.clients[slot].engine.next_wake();
        if wanted != self.clients[slot].wake_at {
            self.rearm(slot, wanted);
        }
        self.validities(slot, wanted);
        self.tell_trust(slot);
    }

    /// Schedules the engine's next wake.
    pub(crate) fn rearm(&mut self, slot: usize, wanted: Option<Time>) {
        let client = &mut self.clients[slot];
        client.wake_at = wanted;
        client.wake_generation += 1;
        let generation = client.wake_generation;
        if let Some(wanted) = wanted {
            let at = client.clock.when(wanted).max(self.now);
            // A timer is never early and seldom punctual.
            let at = at + self.dice.between(1, 200) * US;
            self.queue.push(at, Event::Wake { slot, generation });
        }
    }

    /// A hold's end never comes nearer, never lies beyond what was asked, and the engine means to
    /// be awake by then.
    fn validities(&mut self, slot: usize, wake: Option<Time>) {
        let now = self.local(slot);
        let longest = self.plan.longest_lease();
        let client = &mut self.clients[slot];
        for held in client.actors.iter_mut().flat_map(|actor| actor.held.iter_mut()) {
            let Some(left) = client.engine.remaining(now, held.key) else { continue };
            if left.is_zero() || held.lost.is_some() {
                continue;
            }
            let end = now + left;
            // A call that read its clock before the end, and reached the engine after it, still
            // renews: to the engine the hold has not ended, and nobody was told so.
            let most = client.engine.remaining(Time::ZERO, held.key).unwrap_or_default();
            let present = end - most;
            if held.end < present && held.end > Time::ZERO {
                let before = held.end;
                self.checks.fail("lost in time", self.now, || {
                    format!("c{slot} {:x} ended at {before:?} and is valid again", held.tag)
                });
                return;
            }
            // Leases are rounded up to microseconds, each one by itself.
            if end + ROUNDING < held.end {
                let before = held.end;
                self.checks.fail("lease arithmetic", self.now, || {
                    format!("c{slot} {:x}: valid until {end:?}, before until {before:?}", held.tag)
                });
                return;
            }
            held.end = end;
            if left > longest {
                self.checks.fail("lease arithmetic", self.now, || {
                    format!("c{slot} {:x} has {left:?} left of {longest:?}", held.tag)
                });
                return;
            }
            if wake.is_none_or(|wake| wake > end) {
                self.checks.fail("lost in time", self.now, || {
                    format!(
                        "c{slot} {:x} ends at {end:?}, the engine sleeps until {wake:?}",
                        held.tag
                    )
                });
                return;
            }
        }
    }

    /// After a wake nothing that was due is left undone.
    fn punctual(&mut self, slot: usize, now: Time) {
        let bound = self.plan.options.request_timeout + std::time::Duration::from_millis(1);
        let client = &self.clients[slot];
        for actor in &client.actors {
            for held in &actor.held {
                let ended = client.engine.remaining(now, held.key).is_none_or(|d| d.is_zero());
                if ended && held.lost.is_none() {
                    self.checks.fail("lost in time", self.now, || {
                        format!("c{slot} {:x} has ended, and its holder was not told", held.tag)
                    });
                    return;
                }
            }
            for Open { tag, call, since } in &actor.open {
                let late = match call {
                    Call::Acquire(waiting) => match waiting.patience {
                        fencelock_engine::Patience::Until(bound) => now > bound,
                        fencelock_engine::Patience::Try => now.since(*since) > bound,
                        fencelock_engine::Patience::Forever => false,
                    },
                    Call::Release { .. } | Call::Convert { .. } | Call::Close => {
                        now.since(*since) > bound
                    }
                    Call::Extend { .. } | Call::Look { .. } | Call::Break | Call::Resize { .. } => {
                        false
                    }
                };
                if late {
                    self.checks.fail("one completion", self.now, || {
                        format!("c{slot} {tag:x}: its bound has passed: {call:?}, since {since:?}")
                    });
                    return;
                }
            }
        }
    }
}
