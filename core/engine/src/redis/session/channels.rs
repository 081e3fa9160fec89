//! Which locks' channels are subscribed to at one server of a cluster.
//!
//! A lock that is used once, for a moment, is not worth a subscription: until its second use in about a
//! minute, or until somebody waits for it, or has held it for a while, its entry polls.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::id::HoldId;
use crate::name::Name;
use crate::time::Time;

/// What was not used for so long goes, at the next look.
const IDLE: Duration = Duration::from_secs(60);

/// How often it is looked. A first use counts until the next look but one.
const LOOK: Duration = Duration::from_secs(30);

/// Who holds a lock for so long is to hear of others.
const WHILE: Duration = Duration::from_millis(100);

/// How many there may be.
const MOST: usize = 10_000;

/// What a use of a lock leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Its channel is subscribed to.
    Open,
    /// It is to be, before anything is asked.
    Subscribe,
    /// It is not.
    Poll,
}

/// Which locks' channels are subscribed to on one connection, without I/O.
#[derive(Debug, Default)]
pub(super) struct Channels {
    /// Whether there may be any.
    on: bool,
    /// Until when each is kept.
    open: BTreeMap<Name, Time>,
    /// Used once: since the last look, and before it.
    once: [BTreeSet<Name>; 2],
    /// Who polls, since not long ago: when to look whether it is there still.
    polls: VecDeque<(Time, Name, HoldId)>,
    looked: Time,
}

impl Channels {
    /// A new connection is there: nothing is subscribed to on it.
    pub fn begin(&mut self, on: bool) {
        *self = Channels { on, ..Channels::default() };
    }

    /// Whether there may be any.
    pub fn are_on(&self) -> bool {
        self.on
    }

    /// A lock is used. `wanted`: it is worth a channel. `silence`: as long its waiter may go unheard, and
    /// no longer.
    pub fn used(&mut self, now: Time, lock: &Name, wanted: bool, silence: Duration) -> Use {
        let until = now + silence.max(IDLE);
        if let Some(kept) = self.open.get_mut(lock) {
            *kept = until.max(*kept);
            return Use::Open;
        }
        if !wanted && !self.once.iter().any(|used| used.contains(lock)) {
            if self.once[0].len() < MOST {
                self.once[0].insert(lock.clone());
            }
            return Use::Poll;
        }
        if !self.has_room() {
            return Use::Poll;
        }
        for used in &mut self.once {
            used.remove(lock);
        }
        self.open.insert(lock.clone(), until);
        Use::Subscribe
    }

    /// A lock is acquired by one who polls.
    pub fn polls(&mut self, now: Time, lock: &Name, hold: HoldId) {
        if self.has_room() {
            self.polls.push_back((now + WHILE, lock.clone(), hold));
        }
    }

    /// When [`Channels::call`] has somebody next.
    pub fn next_call(&self) -> Option<Time> {
        self.polls.front().map(|(at, ..)| *at)
    }

    /// One who has polled for a while: if it is there still, its next word is to subscribe, or to tell the
    /// server that another use of its lock has done so.
    pub fn call(&mut self, now: Time) -> Option<(Name, HoldId)> {
        while self.polls.front().is_some_and(|(at, ..)| *at <= now) {
            let (_, lock, hold) = self.polls.pop_front()?;
            if self.open.contains_key(&lock) || self.has_room() {
                return Some((lock, hold));
            }
        }
        None
    }

    /// Whether a lock that somebody waits for polls, and need not.
    pub fn lacks(&self, lock: &Name) -> bool {
        self.has_room() && !self.open.contains_key(lock)
    }

    fn has_room(&self) -> bool {
        self.on && self.open.len() < MOST
    }

    /// Looks, if it is time, and forgets what was not used: gives whose channels are to be given up.
    pub fn idle(&mut self, now: Time) -> Vec<Name> {
        if !self.on || now < self.looked + LOOK {
            return Vec::new();
        }
        self.looked = now;
        self.once.swap(0, 1);
        self.once[0].clear();
        let mut idle = Vec::new();
        self.open.retain(|lock, until| {
            let keep = now < *until;
            if !keep {
                idle.push(lock.clone());
            }
            keep
        });
        idle
    }

    /// The server closed one, or did not open it. Whether it was thought to be open.
    pub fn closed(&mut self, lock: &Name) -> bool {
        self.open.remove(lock).is_some()
    }

    /// This user may have none.
    pub fn refuse(&mut self) {
        self.begin(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_nanos(0);

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn channels() -> Channels {
        let mut channels = Channels::default();
        channels.begin(true);
        channels
    }

    fn at(seconds: u64) -> Time {
        NOW + Duration::from_secs(seconds)
    }

    #[test]
    fn a_second_use_in_a_minute_or_a_wait_opens_a_channel() {
        let mut channels = channels();
        let mut used = |seconds, lock, wanted| {
            channels.idle(at(seconds));
            channels.used(at(seconds), &name(lock), wanted, Duration::ZERO)
        };
        assert_eq!(used(0, "a", false), Use::Poll);
        assert_eq!(used(40, "a", false), Use::Subscribe);
        assert_eq!(used(41, "a", false), Use::Open);
        assert_eq!(used(41, "waited for", true), Use::Subscribe);
        assert_eq!(used(42, "b", false), Use::Poll);
        assert_eq!(used(80, "c", false), Use::Poll);
        assert_eq!(used(120, "b", false), Use::Poll, "the first use is long ago");
    }

    #[test]
    fn what_is_idle_is_given_up_and_what_waits_in_long_silence_is_not() {
        let mut channels = channels();
        for (lock, silence) in [("idle", 3), ("patient", 600), ("busy", 3)] {
            let silence = Duration::from_secs(silence);
            assert_eq!(channels.used(NOW, &name(lock), true, silence), Use::Subscribe);
        }
        assert!(channels.idle(at(59)).is_empty());
        channels.used(at(59), &name("busy"), false, Duration::ZERO);
        assert!(channels.idle(at(61)).is_empty(), "it is looked each half minute");
        assert_eq!(channels.idle(at(90)), [name("idle")]);
        assert_eq!(channels.idle(at(601)), [name("busy"), name("patient")]);
    }

    #[test]
    fn who_polls_for_a_while_is_called_once_also_when_its_lock_is_subscribed_to_meanwhile() {
        let mut channels = channels();
        let [one, other] = ["one", "other"].map(name);
        channels.polls(NOW, &one, HoldId(1));
        channels.polls(at(1), &other, HoldId(2));
        assert_eq!(channels.call(NOW), None);
        assert_eq!(channels.next_call(), Some(NOW + WHILE));
        assert_eq!(channels.call(NOW + WHILE), Some((one, HoldId(1))));
        assert_eq!(channels.call(NOW + WHILE), None);
        // By another use: the server still thinks that this one polls.
        channels.used(at(1), &other, true, Duration::ZERO);
        assert_eq!(channels.call(at(9)), Some((other, HoldId(2))));
        assert_eq!(channels.next_call(), None);
    }

    #[test]
    fn there_is_a_bound_and_what_was_closed_is_opened_anew() {
        let mut channels = channels();
        for number in 0..MOST {
            let lock = name(&format!("{number}"));
            assert_eq!(channels.used(NOW, &lock, true, Duration::ZERO), Use::Subscribe);
        }
        let more = name("more");
        assert_eq!(channels.used(NOW, &more, true, Duration::ZERO), Use::Poll);
        assert!(!channels.lacks(&more), "to ask again would change nothing");
        assert!(channels.closed(&name("7")));
        assert!(channels.lacks(&more));
        assert_eq!(channels.used(NOW, &name("7"), true, Duration::ZERO), Use::Subscribe);
        channels.refuse();
        assert_eq!(channels.used(NOW, &name("8"), true, Duration::ZERO), Use::Poll);
        assert!(!channels.lacks(&name("8")));
    }
}
