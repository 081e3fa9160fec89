//! What callers do: they take locks, hold them, and give them back.

use std::time::Duration;

use fencelock_engine::event::Outcome;
use fencelock_engine::reply::Abandoned;
use fencelock_engine::{
    Acquired, Ask, CallKey, Ended, Error, ErrorKind, Grant, HoldKey, How, LossReason, Patience,
};

use crate::clock::{Instant, MS, SEC, US};
use crate::cluster::client::Tag;
use crate::cluster::judge::{Held, Last};
use crate::cluster::world::{Event, World};

/// A hold that ends by itself lasts so long.
const SHORT: Duration = Duration::from_millis(1_500);

/// What a caller is about.
#[derive(Clone, Debug)]
pub(super) enum Doing {
    Nothing,
    Waits { call: Option<CallKey>, lock: usize, since: Instant, patience: Patience, short: bool },
    Holds { hold: HoldKey, lock: usize, short: bool, lost: bool },
    Releases { lock: usize },
}

/// One caller of a client.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub doing: Doing,
    /// The handle of what it is about.
    pub tag: Tag,
    serial: u64,
    /// Turns that were planned for what it was about before are none.
    pub generation: u64,
}

impl Caller {
    pub fn new() -> Caller {
        Caller { doing: Doing::Nothing, tag: 0, serial: 0, generation: 0 }
    }
}

impl World {
    pub(super) fn turn_in(&mut self, slot: usize, caller: usize, after: Instant) {
        let it = &mut self.callers[slot][caller];
        it.generation += 1;
        let generation = it.generation;
        self.queue.push(self.now + after, Event::Turn { slot, caller, generation });
    }

    pub(super) fn turn(&mut self, slot: usize, caller: usize, generation: u64) {
        if self.callers[slot][caller].generation != generation {
            return;
        }
        match self.callers[slot][caller].doing.clone() {
            Doing::Nothing if self.quiet => {}
            Doing::Nothing => self.acquire(slot, caller),
            Doing::Waits { call: Some(call), .. } => {
                let now = self.clients[slot].now(self.now);
                if self.clients[slot].engine.cancel(now, call) {
                    self.leave(slot, caller);
                }
            }
            Doing::Holds { hold, lock, lost, .. } => self.release(slot, caller, hold, lock, lost),
            Doing::Waits { .. } | Doing::Releases { .. } => {}
        }
    }

    /// Waits, or holds, no more: its client stands in the queue anew for the others, or not at all.
    fn leave(&mut self, slot: usize, caller: usize) {
        let (lock, held) = match self.callers[slot][caller].doing {
            Doing::Waits { lock, .. } => (lock, false),
            Doing::Holds { lock, .. } | Doing::Releases { lock } => (lock, true),
            Doing::Nothing => return,
        };
        self.callers[slot][caller].doing = Doing::Nothing;
        let waits = |it: &Caller| matches!(it.doing, Doing::Waits { lock: at, .. } if at == lock);
        let others = self.callers[slot].iter().any(waits);
        let places = &mut self.judge.books[lock].places;
        if !others {
            places.remove(&slot);
        } else if held {
            places.insert(slot, self.now);
        }
        self.rest(slot, caller);
    }

    fn rest(&mut self, slot: usize, caller: usize) {
        self.callers[slot][caller].doing = Doing::Nothing;
        let most = if self.hot.is_empty() { 600 * MS } else { MS };
        let after = self.dice.between(US, most);
        self.turn_in(slot, caller, after);
    }

    fn acquire(&mut self, slot: usize, caller: usize) {
        let lock = match self.hot.is_empty() {
            true => self.dice.below(self.shape.names.len() as u64) as usize,
            false => self.dice.pick(&self.hot.clone()),
        };
        let now = self.clients[slot].now(self.now);
        let patience = match self.dice.below(10) {
            0..=2 => Patience::Try,
            3..=5 => Patience::Until(now + Duration::from_millis(self.dice.between(20, 9_000))),
            _ => Patience::Forever,
        };
        let short = self.dice.chance(100);
        let ask = Ask { patience, lease: short.then_some(SHORT), ..Ask::local(caller as u64) };
        let it = &mut self.callers[slot][caller];
        it.serial += 1;
        it.tag = (caller as u64) << 32 | it.serial;
        let (tag, since) = (it.tag, self.now);
        it.doing = Doing::Waits { call: None, lock, since, patience, short };
        self.judge.books[lock].places.entry(slot).or_insert(since);
        let client = &mut self.clients[slot];
        let key = client.engine.lock(&self.shape.names[lock]);
        let acquired = client.engine.acquire(now, key, ask, tag);
        client.engine.forget(key);
        match acquired {
            Ok(Acquired::Granted(grant)) => self.granted(slot, caller, &grant),
            Ok(Acquired::Pending(pending)) => {
                if let Doing::Waits { call, .. } = &mut self.callers[slot][caller].doing {
                    *call = Some(pending);
                }
                if self.dice.chance(80) {
                    let after = self.dice.between(MS, 3 * SEC);
                    self.turn_in(slot, caller, after);
                }
            }
            Err(error) => self.refused(slot, caller, &error),
        }
    }

    fn release(&mut self, slot: usize, caller: usize, hold: HoldKey, lock: usize, lost: bool) {
        let now = self.clients[slot].now(self.now);
        let tag = self.callers[slot][caller].tag;
        if !lost {
            self.judge.look("watchdog", true, false, String::new);
        }
        self.judge.books[lock].holds.retain(|it| (it.slot, it.caller) != (slot, caller));
        self.callers[slot][caller].doing = Doing::Releases { lock };
        let left = self.clients[slot].engine.remaining(now, hold);
        match self.clients[slot].engine.release(now, hold, Some(tag)) {
            Ok(Ended::Pending) => {}
            Ok(Ended::Done) => self.released(slot, caller, lock),
            Err(error) => {
                let told = (lost || left.is_none()) && matches!(error.kind(), ErrorKind::Lost);
                self.judge
                    .look("errors", told, false, || format!("c{slot}: a release failed: {error}"));
                self.leave(slot, caller);
            }
        }
    }

    fn released(&mut self, slot: usize, caller: usize, lock: usize) {
        let book = &mut self.judge.books[lock];
        if book.last == Last::Nobody && book.holds.is_empty() {
            book.last = Last::Released(self.now);
        }
        self.leave(slot, caller);
    }

    /// A call has ended.
    pub(super) fn ended(&mut self, slot: usize, tag: Tag, outcome: Outcome) {
        let caller = (tag >> 32) as usize;
        let it = &self.callers[slot][caller];
        let current = it.tag == tag;
        match (it.doing.clone(), outcome) {
            (Doing::Waits { .. }, Outcome::Granted(grant)) if current => {
                self.granted(slot, caller, &grant);
            }
            (Doing::Waits { .. }, Outcome::Failed(error)) if current => {
                self.refused(slot, caller, &error);
            }
            (Doing::Releases { lock }, Outcome::Released) if current => {
                self.released(slot, caller, lock);
            }
            // Nobody knows whether the store heard of it, or it was lost before.
            (Doing::Releases { lock }, Outcome::Failed(error)) if current => {
                let fits = matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Lost);
                self.judge
                    .look("errors", fits, false, || format!("c{slot}: a release failed: {error}"));
                self.judge.books[lock].last = Last::Nobody;
                self.leave(slot, caller);
            }
            (doing, outcome) => self.judge.look("one completion", false, false, || {
                format!("c{slot}: {outcome:?} for {tag:x}, which is about {doing:?}")
            }),
        }
    }

    /// A call for a lock has failed.
    fn refused(&mut self, slot: usize, caller: usize, error: &Error) {
        let Doing::Waits { lock, since, patience, .. } = self.callers[slot][caller].doing else {
            return;
        };
        let kind = error.kind();
        let fits = match patience {
            Patience::Try => matches!(kind, ErrorKind::Contended | ErrorKind::Unavailable),
            Patience::Until(_) => matches!(kind, ErrorKind::TimedOut | ErrorKind::Unavailable),
            Patience::Forever => false,
        };
        self.judge.look("errors", fits, false, || format!("c{slot}: {patience:?} failed: {error}"));
        self.prompt(slot, lock, since, patience, kind != ErrorKind::Unavailable);
        self.leave(slot, caller);
    }

    /// Whoever asks a server that is well is answered at once, however the others are.
    fn prompt(
        &mut self,
        slot: usize,
        lock: usize,
        since: Instant,
        patience: Patience,
        heard: bool,
    ) {
        let book = &self.judge.books[lock];
        // Whose connection fell silent while it asked for nothing finds that out now.
        let knows = !book.stale.contains_key(&slot);
        let well = knows && book.disturbed + 3 * SEC < since && self.reaches(slot, lock);
        if patience == Patience::Try && well {
            let took = self.now - since;
            self.judge.look("lanes", heard && took < SEC / 2, false, || {
                format!("c{slot}: a try for lock {lock} took {} ms, heard: {heard}", took / MS)
            });
        }
    }

    /// A caller has a lock from now on.
    fn granted(&mut self, slot: usize, caller: usize, grant: &Grant) {
        let Doing::Waits { lock, since, patience, short, .. } = self.callers[slot][caller].doing
        else {
            return;
        };
        let (now, token) = (self.now, grant.token.get());
        if grant.how != How::Local {
            self.outcome.grants += 1;
        }
        match grant.how {
            How::Push => self.outcome.pushed += 1,
            How::Poll => self.outcome.polled += 1,
            _ => {}
        }
        self.judge_exclusion(slot, caller, lock, token);
        let book = &self.judge.books[lock];
        let (shaken, doubled) = (now <= book.shaken, now <= book.doubled);
        let (highest, last, calm) = (book.token, book.last, book.disturbed + 3 * SEC < since);
        let other = book.tokens.get(&token).copied();
        self.judge.look("fencing", token > highest, doubled, || {
            format!("lock {lock}: c{slot} is granted token {token} after {highest}")
        });
        if doubled {
            // One that another client was granted, which then is not told apart from it.
            let same = other.is_some_and(|other| other != slot);
            self.judge.look("one token", !same, doubled, || {
                format!("lock {lock}: c{slot} is granted token {token}, as another was")
            });
        }
        if last == Last::Lost {
            self.judge.look("abandoned", grant.abandoned != Abandoned::No, shaken, || {
                format!("lock {lock}: c{slot} is not told that the holder before was lost")
            });
        }
        self.prompt(slot, lock, since, patience, true);
        if let Last::Released(at) = last
            && calm
            && at > since
            && grant.how == How::Poll
        {
            self.judge.look("wake-up", now - at < 400 * MS, false, || {
                format!("lock {lock}: c{slot} had to ask, {} ms after the release", (now - at) / MS)
            });
        }
        self.judge_order(slot, lock, grant.how);
        let held = Held { slot, caller, key: grant.hold, since: now };
        let book = &mut self.judge.books[lock];
        book.token = book.token.max(token);
        book.tokens.insert(token, slot);
        (book.latest, book.last) = (now, Last::Nobody);
        book.holds.push(held);
        self.callers[slot][caller].doing =
            Doing::Holds { hold: grant.hold, lock, short, lost: false };
        let hold_for = match self.dice.below(10) {
            _ if self.quiet => self.dice.between(0, 50 * MS),
            _ if self.hot.contains(&lock) => self.dice.between(US, MS),
            _ if short => self.dice.between(MS, 2 * SEC),
            0 => self.dice.between(SEC, 20 * SEC),
            1..=3 => self.dice.between(MS, SEC),
            _ => self.dice.between(US, 100 * MS),
        };
        self.turn_in(slot, caller, hold_for);
    }

    /// Nobody else has a lock that is valid by its holder's clock.
    fn judge_exclusion(&mut self, slot: usize, caller: usize, lock: usize, token: u64) {
        let book = &self.judge.books[lock];
        let valid = |it: &&Held| {
            let client = &self.clients[it.slot];
            let left = client.engine.remaining(client.now(self.now), it.key);
            (it.slot, it.caller) != (slot, caller) && left.is_some_and(|left| !left.is_zero())
        };
        let other = book.holds.iter().find(valid).cloned();
        let excused = other.as_ref().is_some_and(|it| {
            it.slot != slot && (self.now <= book.shaken || it.since <= book.shaken)
        });
        self.judge.look("exclusion", other.is_none(), excused, || {
            format!("lock {lock}: c{slot} is granted token {token}, and {other:?} is valid")
        });
    }

    /// No client that came a second earlier waits still.
    fn judge_order(&mut self, slot: usize, lock: usize, how: How) {
        if matches!(how, How::Local | How::Reentry) {
            return;
        }
        let book = &self.judge.books[lock];
        let mine = book.places.get(&slot).copied().unwrap_or(self.now);
        let waits = |other: usize| {
            let queued = |it: &Caller| match it.doing {
                Doing::Waits { lock: at, patience, .. } => at == lock && patience != Patience::Try,
                _ => false,
            };
            let has = |it: &Caller| match it.doing {
                Doing::Holds { lock: at, .. } | Doing::Releases { lock: at } => at == lock,
                _ => false,
            };
            let callers = &self.callers[other];
            callers.iter().any(queued) && !callers.iter().any(has)
        };
        let before = |(other, place): &(&usize, &Instant)| {
            **other != slot && **place + SEC < mine && waits(**other)
        };
        let passed = book.places.iter().find(before).map(|(other, place)| (*other, *place));
        let excused = passed.is_some_and(|(_, before)| before <= book.disturbed + 3 * SEC);
        self.judge.look("order", passed.is_none(), excused, || {
            let since = passed.map(|(other, place)| (other, place / MS));
            format!("lock {lock}: c{slot} came at {} ms, {since:?} waits", mine / MS)
        });
    }

    /// A hold has ended before its release.
    pub(super) fn lost(&mut self, slot: usize, tag: Tag, reason: LossReason) {
        let caller = (tag >> 32) as usize;
        let Doing::Holds { hold, lock, short, .. } = self.callers[slot][caller].doing else {
            return self.judge.look("one completion", false, false, || {
                format!("c{slot}: a loss is told of {tag:x}, which is not held")
            });
        };
        self.callers[slot][caller].doing = Doing::Holds { hold, lock, short, lost: true };
        self.outcome.lost += 1;
        let since = self.judge.books[lock].holds.iter();
        let since = since.filter(|it| (it.slot, it.caller) == (slot, caller)).map(|it| it.since);
        let since = since.max().unwrap_or(0);
        self.judge.books[lock].holds.retain(|it| (it.slot, it.caller) != (slot, caller));
        let book = &mut self.judge.books[lock];
        if since == book.latest {
            book.last = Last::Lost;
        }
        if !short {
            let (book, lease) = (&self.judge.books[lock], self.lease());
            // One that was handed over lasts as long as a claim until it is renewed.
            let young = self.now <= since + 4 * SEC && self.now <= book.disturbed + SEC;
            let excused = young || self.now <= book.unserved + lease || self.now <= book.shaken;
            let (now, unserved) = (self.now, book.unserved);
            self.judge.look("watchdog", false, excused, || {
                format!(
                    "lock {lock}: c{slot} lost what it held since {} ms ({reason:?}) at {} ms, and \
                     nothing was in its way since {} ms",
                    since / MS,
                    now / MS,
                    unserved / MS
                )
            });
        }
        self.turn_in(slot, caller, MS);
    }
}
