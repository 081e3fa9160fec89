//! One hold of the engine's, and its votes.

use crate::id::HoldId;
use crate::quorum::vote::{At, Vote};
use crate::reply::{Abandoned, Standing, State};
use crate::request::{Acquire, RequestId};
use crate::time::Time;
use crate::validity::Drift;

/// Names a hold and all its votes: what their ids have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u64);

impl Key {
    /// Of a hold: the upper half of its id, which alone is drawn afresh for each.
    pub fn of(hold: HoldId) -> Key {
        Key((hold.0 >> 64) as u64)
    }

    /// Of a vote: the lower half of its id.
    pub fn of_vote(vote: HoldId) -> Key {
        Key(vote.0 as u64)
    }

    /// The id of a vote. No two are alike, so that a late release of one ends no other; and not in the
    /// upper half either, which is all that a server remembers of the last one that was released.
    pub fn vote(self, random: u64) -> HoldId {
        HoldId(u128::from(random) << 64 | u128::from(self.0))
    }

    /// An id of which it is the key, for a hold whose own is not known.
    pub fn hold(self) -> HoldId {
        HoldId(u128::from(self.0) << 64)
    }
}

/// How far a hold has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// All servers were asked at once, the arbiter with a place in its queue.
    Asking,
    /// It waits in the arbiter's queue, and has no other vote.
    Queued,
    /// The arbiter's turn has come to it; the others are asked.
    Gathering,
    /// It has the arbiter's vote alone, and asks the others again in a moment.
    Pausing,
    /// It has nothing, and begins again in a moment.
    Away,
    /// It has enough votes, and shows them its token.
    Confirming,
    /// It is held.
    Held,
}

/// One hold of the engine's.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    pub hold: HoldId,
    pub ask: Acquire,
    pub votes: Vec<Vote>,
    pub phase: Phase,
    /// Others are known to wait: the arbiter alone is asked at first.
    pub modest: bool,
    /// The engine's acquire, until it is answered, and when it must be.
    pub pending: Option<(RequestId, Time)>,
    /// In whose queue it is.
    pub arbiter: usize,
    /// How often it did not find enough votes, in a row.
    pub tries: u32,
    /// What the engine is told of the place in the queue, as the arbiter last said.
    pub queued: State,
    /// The hold's token, from when it has enough votes.
    pub token: u64,
    pub abandoned: Abandoned,
    pub others: u32,
    /// It was without enough votes for a moment: it is over, whatever comes.
    pub lost: bool,
    /// The engine's beat that it is a part of.
    pub batch: Option<u64>,
    /// When it wants to be looked at.
    pub due: Option<Time>,
    /// The highest token that was given out under it.
    pub used: u64,
}

impl Seat {
    pub fn new(ask: Acquire, votes: Vec<Vote>, pending: Option<(RequestId, Time)>) -> Seat {
        let ticket = ask.wait.map_or(0, |wait| wait.ticket);
        Seat {
            hold: ask.hold,
            ask,
            votes,
            phase: Phase::Away,
            modest: false,
            pending,
            arbiter: 0,
            tries: 0,
            queued: State { ticket, ..State::bare(Standing::Queued) },
            token: 0,
            abandoned: Abandoned::No,
            others: 0,
            lost: false,
            batch: None,
            due: None,
            used: 0,
        }
    }

    /// The arbiter has it in its queue.
    pub fn hear_queued(&mut self, state: State) {
        let State { ticket, ahead, expires_in, .. } = state;
        self.queued = State { ticket, ahead, expires_in, ..State::bare(Standing::Queued) };
    }

    /// The votes that were given.
    pub fn given(&self) -> impl Iterator<Item = &Vote> {
        self.votes.iter().filter(|vote| vote.at == At::Given)
    }

    /// Until when it may be trusted: until the `quorum`-th latest of its votes ends.
    pub fn until(&self, quorum: usize) -> Option<Time> {
        let mut ends: Vec<Time> = self.given().map(|vote| vote.until).collect();
        ends.sort_unstable();
        ends.iter().rev().nth(quorum - 1).copied()
    }

    pub fn is_valid(&self, now: Time, quorum: usize) -> bool {
        !self.lost && self.until(quorum).is_some_and(|until| now < until)
    }

    /// The last token that enough servers have reserved: whoever comes next has the vote of one of them,
    /// and a token above.
    pub fn end(&self, quorum: usize) -> u64 {
        let mut ends: Vec<u64> = self.given().map(|vote| vote.end).collect();
        ends.sort_unstable();
        let nth = if planted!(MaximumAlone) { 1 } else { quorum };
        ends.iter().rev().nth(nth - 1).copied().unwrap_or(0)
    }

    /// What enough votes say of the holder before; unknown where they differ.
    pub fn verdict(&self) -> Abandoned {
        let mut said = self.given().map(|vote| vote.abandoned);
        let first = said.next().unwrap_or(Abandoned::Unknown);
        if said.all(|other| other == first) { first } else { Abandoned::Unknown }
    }

    /// What the engine is told of a hold that it has, counted from `sent`.
    pub fn state(&self, drift: Drift, quorum: usize, sent: Time) -> State {
        let until = self.until(quorum).unwrap_or_default();
        let whole = until >= drift.until(sent, self.ask.lease);
        State {
            token: self.token,
            end: self.end(quorum).max(self.token),
            lease: if whole { self.ask.lease } else { drift.lease_within(until.since(sent)) },
            abandoned: self.abandoned,
            others_waiting: self.others,
            ..State::bare(Standing::Granted)
        }
    }
}
