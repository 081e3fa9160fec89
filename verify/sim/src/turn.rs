//! What callers do when it is their turn.

use std::time::Duration;

use fencelock_engine::request::Mode;
use fencelock_engine::{Acquired, Ask, Ended, ErrorKind, Owner, OwnerId, Patience, Token};

use crate::check::Beside;
use crate::client::{Actor, Call, Held, Open, Tag, Terms, Waiting, Who};
use crate::clock::{MS, US};
use crate::cover::Cover;
use crate::event::Event;
use crate::ledger::Entry;
use crate::world::World;

impl World {
    /// Gives a caller its next turn after `after`; earlier plans are dropped.
    pub(crate) fn schedule_turn(&mut self, slot: usize, actor: usize, after: u64) {
        let client = &mut self.clients[slot];
        let incarnation = client.incarnation;
        client.actors[actor].generation += 1;
        let generation = client.actors[actor].generation;
        let event = Event::Turn { slot, incarnation, actor, generation };
        self.queue.push(self.now + after, event);
    }

    /// All callers look soon, for they behave otherwise in the quiet part.
    pub(crate) fn hurry_actors(&mut self) {
        for slot in 0..self.clients.len() {
            for actor in 0..self.clients[slot].actors.len() {
                let last = self.now + 60 * MS;
                let it = &mut self.clients[slot].actors[actor];
                it.until = it.until.min(last);
                it.cancel_at = None;
                let after = self.dice.below(MS);
                self.schedule_turn(slot, actor, after);
            }
        }
    }

    /// A caller's turn.
    pub(crate) fn turn(&mut self, slot: usize, incarnation: usize, actor: usize, generation: u32) {
        let client = &self.clients[slot];
        if !client.up || client.incarnation != incarnation {
            return;
        }
        let it = &client.actors[actor];
        if it.generation != generation || client.closing.is_some() {
            return;
        }
        // Where the store knows no owners, one that waits for itself elsewhere must let go first.
        let whole = self.zk.is_some() && matches!(it.who, Who::Explicit(_));
        if it.is_busy() && !whole && !self.quiet && self.dice.chance(self.plan.habits.branch) {
            self.branch(slot, actor);
        }
        let it = &self.clients[slot].actors[actor];
        if it.generation != generation {
            return;
        }
        if let Some((tag, waiting)) = it.waiting() {
            let key = waiting.key;
            match it.cancel_at {
                Some(at) if self.now >= at => self.cancel(slot, actor, tag, key),
                Some(at) => self.schedule_turn(slot, actor, at - self.now),
                None => {}
            }
            return;
        }
        if it.open.iter().any(|open| matches!(open.call, Call::Extend { .. })) {
            return;
        }
        if it.held.is_empty() {
            let asleep = it.open.iter().any(|open| matches!(open.call, Call::Release { .. }));
            if asleep || self.quiet {
                return;
            }
            self.acquire(slot, actor, None);
            return;
        }
        self.hold(slot, actor);
    }

    /// A turn of a caller that holds something.
    fn hold(&mut self, slot: usize, actor: usize) {
        self.told(slot, actor);
        let it = &mut self.clients[slot].actors[actor];
        let last = it.held.len() - 1;
        if std::mem::take(&mut it.regret) {
            // The cancel meets its own completion on the way.
            let held = &it.held[last];
            if let Some(call) = held.call {
                let tag = held.tag;
                if self.call(slot, |engine, now| engine.cancel(now, call)) {
                    self.checks.fail("cancel", self.now, || {
                        format!("c{slot} {tag:x} was cancelled after it was granted")
                    });
                }
                self.cover.add(Cover::CancelWhileGranted);
                self.drain(slot);
                self.release(slot, actor, last);
                return;
            }
        }
        // A process that stood still goes on where it was: perhaps into a nested call.
        let resumed = self.now < self.clients[slot].paused_until + MS && !self.quiet;
        if resumed && last < 4 && self.dice.chance(self.plan.habits.reenter) {
            let lock = self.clients[slot].actors[actor].held[last].lock;
            self.acquire(slot, actor, Some(lock));
            return;
        }
        let it = &mut self.clients[slot].actors[actor];
        if let Some(lost) = it.held.iter().position(|held| held.lost.is_some()) {
            self.write(slot, actor, lost);
            self.release(slot, actor, lost);
            return;
        }
        if self.now >= it.until {
            let index = self.dice.below(last as u64 + 1) as usize;
            self.release(slot, actor, index);
            return;
        }
        let (span, lock) = (it.until - self.now, it.held[last].lock);
        self.kept(slot, actor, lock);
        let habits = self.plan.habits.clone();
        let index = self.dice.below(last as u64 + 1) as usize;
        let mut rest = self.dice.between(10 * US, (span / 2).max(20 * US));
        if self.quiet {
            self.write(slot, actor, index);
        } else if self.dice.chance(habits.reenter) && last < 4 {
            let lock = self.clients[slot].actors[actor].held[index].lock;
            self.acquire(slot, actor, Some(lock));
            return;
        } else if self.dice.chance(habits.extend) {
            self.extend(slot, actor, index);
            return;
        } else if habits.convert > 0 && self.dice.chance(habits.convert) {
            self.convert(slot, actor, index);
            return;
        } else if self.dice.chance(habits.nap) {
            // The caller sleeps over its lease, then writes as if nothing had been.
            rest = self.plan.options.lease.as_nanos() as u64 * self.dice.between(1, 3) / 2;
            self.clients[slot].actors[actor].until = self.now + rest + MS;
        } else if self.dice.chance(habits.breaks) {
            self.look(slot, actor, index);
        } else if habits.resize > 0 && self.dice.chance(habits.resize) {
            self.resize(slot, actor, index);
        } else {
            self.write(slot, actor, index);
        }
        if self.clients[slot].actors[actor].held.len() == last + 1 {
            self.schedule_turn(slot, actor, rest);
        }
    }

    /// A caller that runs has been told of what it lost a moment ago.
    fn told(&mut self, slot: usize, actor: usize) {
        let now = self.local(slot);
        let client = &self.clients[slot];
        if self.now < client.paused_until + 5 * MS {
            return;
        }
        let held = &client.actors[actor].held;
        let untold = held.iter().find(|held| {
            held.lost.is_none()
                && held.end > fencelock_engine::Time::ZERO
                && held.end + Duration::from_millis(5) < now
        });
        if let Some(held) = untold {
            let (tag, end) = (held.tag, held.end);
            self.checks.fail("lost in time", self.now, || {
                format!("c{slot} {tag:x} ended at {end:?}; at {now:?} nobody has been told")
            });
        }
    }

    pub(crate) fn tag(&mut self, slot: usize, actor: usize) -> Tag {
        let client = &mut self.clients[slot];
        client.serial += 1;
        (actor as u64) << 32 | u64::from(client.serial)
    }

    fn draw_ask(&mut self, slot: usize, actor: usize, lock: usize) -> (Ask, Terms) {
        let habits = self.plan.habits.clone();
        let lease = self.plan.options.lease.as_nanos() as u64;
        let who = self.clients[slot].actors[actor].who;
        let owner = match who {
            Who::Local { actor, .. } => Owner::Local(actor as u64),
            Who::Explicit(number) => Owner::Explicit(owner_id(number)),
        };
        let now = self.local(slot);
        let (mode, adopt) = self.draw_mode(lock);
        // Who has permits and wants more of them waits for itself, like anybody else.
        let it = &self.clients[slot].actors[actor];
        let more = matches!(mode, Mode::Permits { .. }) && (it.is_busy() || !it.held.is_empty());
        let patience = if self.dice.chance(habits.attempt) {
            Patience::Try
        } else if self.dice.chance(habits.bounded) || more {
            Patience::Until(now + Duration::from_nanos(self.dice.below(2 * lease)))
        } else {
            Patience::Forever
        };
        let mut terms = Terms { lease: self.plan.options.lease, mode, adopt, ..Terms::default() };
        let mut ask =
            Ask { owner, mode, adopt, lease: None, max_hold: None, patience, attach: None };
        if self.dice.chance(habits.lease) {
            // Often one that is over before its claim would be.
            let claim = self.plan.options.claim.as_nanos() as u64;
            let most = if self.dice.chance(400) { claim } else { 2 * lease };
            let lease = self.dice.between(self.plan.shortest_lease(), most);
            ask.lease = Some(Duration::from_nanos(lease));
            (terms.ends, terms.lease) = (true, Duration::from_nanos(lease));
        }
        if self.dice.chance(habits.max_hold) {
            ask.max_hold = Some(Duration::from_nanos(self.dice.between(MS, 2 * lease)));
            terms.ends = true;
        }
        if let Who::Explicit(_) = who
            && self.dice.chance(habits.attach)
            && let Some(token) = self.checks.exclusion.token_of(lock, who)
        {
            ask.attach = Some(Token(token));
            terms.attach = true;
        }
        (ask, terms)
    }

    /// How an acquire shares the lock, and whether it follows the others' number of permits; nothing is drawn
    /// where that is never so.
    fn draw_mode(&mut self, lock: usize) -> (Mode, bool) {
        let Some(&of) = self.sizes.get(lock) else {
            let reads = self.dice.chance(self.plan.habits.read);
            return (if reads { Mode::Shared } else { Mode::Exclusive }, false);
        };
        let odd = !self.quiet && self.dice.chance(self.plan.habits.odd);
        let adopt = self.dice.chance(self.plan.habits.adopt);
        let of = match (adopt, odd) {
            (true, _) => self.dice.between(1, crate::operator::MOST) as u32,
            (false, true) => of + 1,
            (false, false) => of,
        };
        // Small requests beside large ones.
        let most = if self.dice.chance(500) { 1 } else { u64::from(of) };
        (Mode::Permits { count: self.dice.between(1, most) as u32, of }, adopt)
    }

    /// Another branch of a caller whose call is under way: it lets go of what the caller has, asks
    /// for a longer lease, or for the same lock once more.
    fn branch(&mut self, slot: usize, actor: usize) {
        const MOST: usize = 4;
        let it = &self.clients[slot].actors[actor];
        let waits = it.waiting().map(|(_, waiting)| waiting.lock);
        let Some(lock) = waits.or(it.held.last().map(|held| held.lock)) else { return };
        let calls = it.open.len();
        let held = it.held.iter().position(|held| held.lock == lock && held.lost.is_none());
        match (self.dice.below(3), held) {
            (0, Some(index)) => self.release(slot, actor, index),
            (1, Some(index)) if calls < MOST => self.extend(slot, actor, index),
            // Permits that one branch gets would keep another one waiting for ever.
            (2, _) | (_, None) if calls < MOST && self.plan.permits.is_empty() => {
                self.acquire(slot, actor, Some(lock));
            }
            _ => return,
        }
        self.cover.add(Cover::SeveralCalls);
        let soon = self.dice.below(2 * MS);
        self.schedule_turn(slot, actor, soon);
    }

    /// A client's handle of a lock is given back, and made anew when it is wanted next.
    fn forget(&mut self, slot: usize, lock: usize) {
        if !self.dice.chance(self.plan.habits.forget) {
            return;
        }
        let name = self.names[lock].clone();
        let client = &mut self.clients[slot];
        client.engine.forget(client.locks[lock]);
        client.locks[lock] = client.engine.lock(&name);
        self.pair_locks(slot);
        self.trace.line(self.now, || format!("c{slot} makes its handle of lock {lock} anew"));
    }

    /// The store keeps a lock for what its present holds ask, not for what one before them, or beside
    /// them, did.
    fn kept(&mut self, slot: usize, actor: usize, lock: usize) {
        let client = &self.clients[slot];
        let it = &client.actors[actor];
        let Who::Local { incarnation, .. } = it.who else { return };
        let grace = 8 * self.plan.latency.1 + 5 * MS;
        let since = it.held.iter().filter(|held| held.lock == lock).map(|held| held.since).min();
        let since = since.map(|since| since.max(it.fewer[lock]));
        if !self.checks.queue.strict || since.is_none_or(|since| since + grace > self.now) {
            return;
        }
        let asked = it.asks(lock);
        let most = asked + asked / 50 + Duration::from_millis(20);
        let (name, clock) = (self.names[lock].clone(), self.server.clock.read(self.now));
        let Some(info) = self.peek(&name, clock) else { return };
        let mine = |client: &str| crate::store::incarnation_of(client) == Some(incarnation);
        let long = info.holds.iter().find(|hold| mine(&hold.client) && hold.expires_in > most);
        if let Some(long) = long {
            let kept = long.expires_in;
            self.checks.fail("lease arithmetic", self.now, || {
                format!("lock {lock}: kept for {kept:?}, and its holder asked for {asked:?}")
            });
        }
    }

    /// Acquires a lock, or once more one that the caller has or waits for.
    fn acquire(&mut self, slot: usize, actor: usize, again: Option<usize>) {
        let lock = match again {
            Some(lock) => lock,
            None => self.dice.below(self.plan.locks as u64) as usize,
        };
        let (ask, terms) = self.draw_ask(slot, actor, lock);
        let asked = &mut self.clients[slot].actors[actor].asked[lock];
        *asked = terms.lease.max(*asked);
        let tag = self.tag(slot, actor);
        let key = self.clients[slot].locks[lock];
        // Who follows the others' number stands in no line of its client.
        let lines_up = ask.mode != Mode::Shared && !ask.adopt;
        let (patience, ask_mode) = (ask.patience, ask.mode);
        let asked = self.local(slot);
        self.trace.mix(tag);
        self.trace.line(self.now, || format!("c{slot} {tag:x} acquires lock {lock}: {ask:?}"));
        if self.tells() {
            let who = self.clients[slot].actors[actor].who;
            let (lock, caller) = (format!("lock-{lock}"), format!("caller-{actor}"));
            let owner = World::owner_name(who);
            let whose: (&str, &dyn std::fmt::Display) = match &owner {
                Some(owner) => ("owner", owner),
                None => ("caller", &caller),
            };
            self.tell(slot, "asked", tag, &[("client", &"client"), ("lock", &lock), whose]);
        }
        let habits = self.plan.habits.clone();
        match self.call(slot, |engine, now| engine.acquire(now, key, ask, tag)) {
            Ok(Acquired::Granted(grant)) => {
                self.granted(slot, tag, lock, grant, terms, None);
                let rest = self.dice.below(habits.hold / 2);
                self.schedule_turn(slot, actor, rest);
            }
            Ok(Acquired::Pending(key)) => {
                let waiting = Waiting { key, lock, patience, terms };
                let who = self.clients[slot].actors[actor].who;
                if lines_up {
                    self.checks.queue.waits(self.now, slot, tag, who, lock, ask_mode, patience);
                }
                let incarnation = self.clients[slot].incarnation;
                if self.zk.is_some()
                    && matches!(who, Who::Explicit(_))
                    && self.checks.exclusion.shared(lock, who, incarnation)
                {
                    // It waits for its own hold in another process.
                    self.checks.waive("owners");
                }
                let cancels = self.dice.chance(habits.cancel);
                let lease = self.plan.options.lease.as_nanos() as u64;
                let span = self.dice.pick(&[MS, 20 * MS, 2 * lease]);
                let after = self.dice.below(span);
                let it = &mut self.clients[slot].actors[actor];
                it.open.push(Open { tag, call: Call::Acquire(waiting), since: asked });
                it.cancel_at = (cancels && !self.quiet).then_some(self.now + after);
                let branches = self.plan.habits.branch > 0 && !self.quiet;
                let soon = if branches { self.dice.below(5 * MS) } else { u64::MAX };
                if cancels || branches {
                    self.schedule_turn(slot, actor, soon.min(if cancels { after } else { soon }));
                }
            }
            Err(error) => {
                self.trace.line(self.now, || format!("c{slot} {tag:x} fails: {error:?}"));
                self.tell(slot, "failed", tag, &[("kind", &error.kind())]);
                self.refused(slot, actor, &patience, terms, lock, error.kind());
                let rest = self.dice.below(habits.rest + 1);
                self.schedule_turn(slot, actor, rest);
            }
        }
        self.drain(slot);
    }

    fn cancel(&mut self, slot: usize, actor: usize, tag: Tag, key: fencelock_engine::CallKey) {
        self.trace.line(self.now, || format!("c{slot} {tag:x} cancels"));
        if self.call(slot, |engine, now| engine.cancel(now, key)) {
            self.cover.add(Cover::CancelWhileWaiting);
            self.tell(slot, "cancelled", tag, &[]);
            self.checks.queue.withdrawn(slot, tag);
            let now = self.now;
            let it = &mut self.clients[slot].actors[actor];
            let lock =
                it.open.iter().find(|open| open.tag == tag).and_then(|open| match &open.call {
                    Call::Acquire(waiting) => Some(waiting.lock),
                    _ => None,
                });
            it.open.retain(|open| open.tag != tag);
            if let Some(lock) = lock {
                it.has_fewer(lock, now);
            }
            it.cancel_at = None;
        } else {
            self.checks.fail("cancel", self.now, || {
                format!("c{slot} {tag:x} is pending and could not be cancelled")
            });
        }
        let rest = self.dice.below(self.plan.habits.rest + 1);
        self.schedule_turn(slot, actor, rest);
        self.drain(slot);
    }

    fn release(&mut self, slot: usize, actor: usize, index: usize) {
        let now = self.local(slot);
        let incarnation = self.clients[slot].incarnation;
        let held: Held = self.clients[slot].actors[actor].held.remove(index);
        // Levels of one owner end with the latest of them; this one may have been it.
        self.clients[slot].actors[actor].has_fewer(held.lock, self.now);
        let engine = &self.clients[slot].engine;
        let good = |at| engine.remaining(at, held.key).is_some_and(|left| !left.is_zero());
        // A reading that is a little old may see the last moments of a hold.
        let (valid, stale) = (good(now), good(now - Duration::from_millis(2)));
        let tag = self.tag(slot, actor);
        let dropped = self.dice.chance(self.plan.habits.dropped);
        let call = (!dropped).then_some(tag);
        let key = held.key;
        self.trace.mix(tag ^ 2);
        self.trace.line(self.now, || format!("c{slot} {:x} releases as {call:x?}", held.tag));
        if self.tells() {
            let event = if dropped { "drop-asked" } else { "release-asked" };
            let valid = valid || stale || held.end + Duration::from_millis(5) > now;
            self.tell(slot, event, held.tag, &[("until", &held.trusted), ("valid", &valid)]);
        }
        let result = self.call(slot, |engine, now| engine.release(now, key, call));
        match &result {
            Err(error) => self.tell(slot, "unreleased", held.tag, &[("kind", &error.kind())]),
            Ok(_) if dropped => self.tell(slot, "dropped", held.tag, &[]),
            Ok(Ended::Pending) => {}
            Ok(_) => self.tell(slot, "released", held.tag, &[]),
        }
        self.checks.released(self.now, held.lock, held.tag, incarnation, result.is_ok());
        self.trace.line(self.now, || format!("c{slot} {:x}: {result:?}", held.tag));
        if result.is_err() && held.lost.is_none() {
            self.clients[slot].ended.push(held.tag);
        }
        let fits = match &result {
            Ok(_) => held.lost.is_none() && valid,
            Err(error) => error.kind() == ErrorKind::Lost && !valid,
        };
        let stale = stale || held.end + Duration::from_millis(5) > now;
        if !(fits || stale && held.lost.is_none()) {
            self.checks.fail("only the holder releases", self.now, || {
                format!(
                    "c{slot} {:x}: told {:?}, valid {valid}, released: {result:?}",
                    held.tag, held.lost
                )
            });
        }
        if let (Ok(Ended::Pending), Some(_)) = (&result, call) {
            let (lock, hold, since) = (held.lock, held.tag, held.since);
            let call = Call::Release { lock, hold, since, sent: None };
            self.clients[slot].actors[actor].open.push(Open { tag, call, since: now });
        }
        self.sent_release = None;
        self.drain(slot);
        let of_it = |call: &Call| matches!(call, Call::Extend { hold } if *hold == held.tag);
        if self.clients[slot].actors[actor].open.iter().any(|open| of_it(&open.call)) {
            self.checks.fail("one completion", self.now, || {
                format!("c{slot} {:x} is released, and its extend goes on", held.tag)
            });
        }
        if self.sent_release.is_some()
            && let Some(open) = self.clients[slot].actors[actor].open.last_mut()
            && open.tag == tag
            && let Call::Release { sent, .. } = &mut open.call
        {
            *sent = self.sent_release;
        }
        if self.dice.chance(self.plan.habits.twice) {
            let again = self.call(slot, |engine, now| engine.release(now, key, None));
            let kind = again.as_ref().map_err(fencelock_engine::Error::kind);
            if !matches!(kind, Err(ErrorKind::NotHeld | ErrorKind::Lost)) {
                self.checks.fail("only the holder releases", self.now, || {
                    format!("c{slot} {:x}: released a second time: {again:?}", held.tag)
                });
            }
            self.drain(slot);
        }
        self.count(slot, actor, held.lock);
        self.forget(slot, held.lock);
        let rest = match self.clients[slot].actors[actor].held.is_empty() {
            true => self.dice.below(self.plan.habits.rest + 1),
            false => self.dice.below(200 * US),
        };
        self.schedule_turn(slot, actor, rest);
    }

    /// The engine counts as many levels of the lock as the caller has, for itself or shared.
    fn count(&mut self, slot: usize, actor: usize, lock: usize) {
        let now = self.local(slot);
        let client = &self.clients[slot];
        let Who::Local { actor: number, .. } = client.actors[actor].who else { return };
        let mine = client.actors[actor].held.iter().filter(|held| {
            held.lock == lock
                && !matches!(held.mode, Mode::Permits { .. })
                && client.engine.remaining(now, held.key).is_some_and(|left| !left.is_zero())
        });
        let mine = mine.count();
        let counted = client.engine.count(now, client.locks[lock], number as u64);
        if mine != counted {
            self.checks.fail("count", self.now, || {
                format!("c{slot} actor {actor} has {mine} holds, the engine counts {counted}")
            });
        }
    }

    fn extend(&mut self, slot: usize, actor: usize, index: usize) {
        let tag = self.tag(slot, actor);
        let held = &self.clients[slot].actors[actor].held[index];
        let (key, hold, lock) = (held.key, held.tag, held.lock);
        let longest = self.plan.longest_lease().as_nanos() as u64;
        let lease = Duration::from_nanos(self.dice.between(self.plan.shortest_lease(), longest));
        let since = self.local(slot);
        self.trace.line(self.now, || format!("c{slot} {hold:x} extends by {lease:?}"));
        match self.call(slot, |engine, now| engine.extend(now, key, lease, tag)) {
            Ok(()) => {
                let open = Open { tag, call: Call::Extend { hold }, since };
                let it = &mut self.clients[slot].actors[actor];
                it.open.push(open);
                it.asked[lock] = it.asked[lock].max(lease);
                if let Some(held) = it.held.iter_mut().find(|held| held.tag == hold) {
                    held.asked = held.asked.max(lease);
                }
                if self.plan.habits.branch > 0 && !self.quiet {
                    let soon = self.dice.below(MS);
                    self.schedule_turn(slot, actor, soon);
                }
            }
            Err(error) => {
                if error.kind() != ErrorKind::Lost {
                    self.checks.fail("errors", self.now, || {
                        format!("c{slot} {hold:x} could not be extended: {error:?}")
                    });
                }
                self.schedule_turn(slot, actor, MS);
            }
        }
        self.drain(slot);
    }

    /// To the other mode. Whoever asks to read writes no more, whatever comes of it.
    fn convert(&mut self, slot: usize, actor: usize, index: usize) {
        let tag = self.tag(slot, actor);
        let held = &self.clients[slot].actors[actor].held[index];
        let (key, hold, lock) = (held.key, held.tag, held.lock);
        let to = if held.mode == Mode::Shared { Mode::Exclusive } else { Mode::Shared };
        // What an explicit owner's other caller writes while an upgrade is undone refuses the reader that
        // gave it up: see docs/modes.md.
        let explicit = matches!(self.clients[slot].actors[actor].who, Who::Explicit(_));
        if explicit && to == Mode::Exclusive {
            self.write(slot, actor, index);
            return self.schedule_turn(slot, actor, MS);
        }
        let since = self.local(slot);
        self.trace.line(self.now, || format!("c{slot} {hold:x} converts to {to:?} as {tag:x}"));
        let asked = self.call(slot, |engine, now| match to {
            Mode::Shared => engine.downgrade(now, key, tag),
            _ => engine.try_upgrade(now, key, tag),
        });
        match asked {
            Ok(Some(call))
                if to == Mode::Exclusive && self.dice.chance(self.plan.habits.cancel) =>
            {
                self.trace.line(self.now, || format!("c{slot} {tag:x} gives up"));
                if !self.call(slot, |engine, now| engine.cancel(now, call)) {
                    self.checks.fail("cancel", self.now, || {
                        format!("c{slot} {tag:x}: a conversion that waits is not cancelled")
                    });
                }
                self.schedule_turn(slot, actor, MS);
            }
            Ok(Some(_)) => {
                let it = &mut self.clients[slot].actors[actor];
                it.open.push(Open { tag, call: Call::Convert { hold, to }, since });
                if to == Mode::Shared {
                    let incarnation = self.clients[slot].incarnation;
                    if let Who::Explicit(number) = self.clients[slot].actors[actor].who {
                        self.checks.sharing.shares(lock, owner_id(number));
                    }
                    self.set_mode(slot, actor, hold, to, None);
                    self.checks.abandoned.released(lock, incarnation, hold);
                }
            }
            Ok(None) => self.checks.fail("conversion", self.now, || {
                format!("c{slot} {hold:x} is {to:?} before it is made so")
            }),
            Err(error) => {
                let kinds = [ErrorKind::Lost, ErrorKind::Contended, ErrorKind::Unavailable];
                if !kinds.contains(&error.kind()) && error.kind() != ErrorKind::Misconfigured {
                    self.checks.fail("errors", self.now, || {
                        format!("c{slot} {hold:x} could not be made {to:?}: {error:?}")
                    });
                }
                self.schedule_turn(slot, actor, MS);
            }
        }
        self.drain(slot);
    }

    /// A caller's hold is in this mode from now on, and under this token.
    pub(crate) fn set_mode(
        &mut self,
        slot: usize,
        actor: usize,
        hold: Tag,
        mode: Mode,
        token: Option<u64>,
    ) {
        let client = &mut self.clients[slot];
        let held = client.actors[actor].held.iter_mut().find(|held| held.tag == hold);
        let Some(held) = held else { return };
        held.mode = mode;
        held.token = token.unwrap_or(held.token);
        let (lock, incarnation) = (held.lock, client.incarnation);
        self.checks.exclusion.converted(lock, incarnation, hold, mode, token);
    }

    /// Writes to the ledger with the hold's token, valid or not: only the ledger is to judge.
    fn write(&mut self, slot: usize, actor: usize, index: usize) {
        let now = self.local(slot);
        let held = &self.clients[slot].actors[actor].held[index];
        let (lock, token, tag, mode) = (held.lock, held.token, held.tag, held.mode);
        let valid =
            self.clients[slot].engine.remaining(now, held.key).is_some_and(|left| !left.is_zero());
        let Some(seen) = held.seen else { return };
        if mode != Mode::Exclusive {
            return self.read(slot, actor, index, valid, seen);
        }
        let entry = self.checks.fence.write(self.now, lock, token, seen);
        self.trace.line(self.now, || format!("c{slot} {tag:x} writes {token}: {entry:?}"));
        let accepted = if entry == Entry::Refused { "Ok(false)" } else { "Ok(true)" };
        self.tell(slot, "wrote", tag, &[("accepted", &accepted)]);
        match entry {
            Entry::Refused => self.cover.add(Cover::StaleWriteRefused),
            Entry::Accepted | Entry::Clobbered => {
                let version = self.checks.fence.version(lock);
                self.clients[slot].actors[actor].held[index].seen = Some(version);
            }
        }
        if valid {
            let who = self.clients[slot].actors[actor].who;
            self.checks.writes(self.now, &self.clients, slot, who, lock, token, entry);
        }
    }

    /// Looks at the ledger once more; who has permits shows no token, and only counts.
    fn read(&mut self, slot: usize, actor: usize, index: usize, valid: bool, seen: u64) {
        let Actor { who, held, .. } = &self.clients[slot].actors[actor];
        let (who, held) = (*who, &held[index]);
        let (lock, token, tag, mode) = (held.lock, held.token, held.tag, held.mode);
        if mode == Mode::Shared {
            let now_seen = self.checks.fence.look(lock, token);
            self.trace.line(self.now, || format!("c{slot} {tag:x} reads {token}: {now_seen:?}"));
            if now_seen.is_none() {
                self.cover.add(Cover::StaleReadRefused);
            }
            self.checks.reads(self.now, &self.clients, slot, lock, token, seen, now_seen, valid);
        }
        if valid {
            let it = Beside { slot, tag, who, mode, lock, token };
            self.checks.beside(self.now, &self.clients, it);
        }
    }
}

/// The id of a run's explicit owner.
pub(crate) fn owner_id(number: usize) -> OwnerId {
    // One is a prefix of the other.
    OwnerId::new(format!("owner-{}", "1".repeat(number + 1))).expect("a good owner id")
}
