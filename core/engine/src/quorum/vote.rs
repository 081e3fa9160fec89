//! A hold's part at one server.

use crate::id::HoldId;
use crate::reply::{Abandoned, Refusal, State};
use crate::time::Time;
use crate::validity::Drift;

/// What the server is known to think of a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// It knows nothing of it.
    Nowhere,
    /// It was asked for.
    Asked,
    /// It was asked for, and nobody knows what came of it.
    Unclear,
    /// It waits in the server's queue.
    Queued,
    /// The server has given it.
    Given,
}

/// A hold's part at one server: a hold there, under an id of its own.
#[derive(Clone, Debug)]
pub(crate) struct Vote {
    pub id: HoldId,
    pub at: At,
    /// A request for it is out; there is one at the most.
    pub busy: bool,
    /// The server's time past which no acquire of it, whose outcome is unknown, takes effect; 0 when there
    /// is none.
    pub exposed: u64,
    /// The server's time past which the acquire that is out takes no effect.
    pub not_after: u64,
    /// When it was asked for last.
    pub asked_at: Time,
    /// Others had the server's vote, or waited for it.
    pub contended: bool,
    /// Why the server did not do what it was asked.
    pub refused: Option<Refusal>,
    pub token: u64,
    /// The last token that the server has reserved.
    pub end: u64,
    pub losses: u32,
    pub abandoned: Abandoned,
    /// The highest token of the hold that the server was shown.
    pub shown: u64,
    /// When the request left that its validity counts from.
    pub sent: Time,
    /// Until when it may be trusted.
    pub until: Time,
    /// The server said something of it while a request was out: look again.
    pub called: bool,
    /// How often in a row it was asked for anew at once.
    pub tries: u32,
}

impl Vote {
    pub fn new(id: HoldId) -> Vote {
        Vote {
            id,
            at: At::Nowhere,
            busy: false,
            exposed: 0,
            not_after: 0,
            asked_at: Time::ZERO,
            contended: false,
            refused: None,
            token: 0,
            end: 0,
            losses: 0,
            abandoned: Abandoned::No,
            shown: 0,
            sent: Time::ZERO,
            until: Time::ZERO,
            called: false,
            tries: 0,
        }
    }

    /// It was not given: nothing is there, unless an earlier acquire may still take effect.
    pub fn not_given(&mut self) {
        self.at = if self.exposed > 0 { At::Unclear } else { At::Nowhere };
    }

    /// Whether the server may have, or come to have, anything of it.
    pub fn is_there(&self) -> bool {
        self.busy || self.exposed > 0 || self.at != At::Nowhere
    }

    /// The server gave it, or renewed it, as the answer to a request that left at `sent`.
    pub fn given(&mut self, drift: Drift, sent: Time, lease: core::time::Duration, state: &State) {
        let until = drift.until(sent, lease.min(state.lease));
        if self.at != At::Given {
            (self.at, self.until, self.sent) = (At::Given, until, sent);
        }
        self.token = state.token;
        self.end = state.end;
        (self.losses, self.abandoned) = (state.losses, state.abandoned);
        if until >= self.until {
            self.until = until;
        }
        self.sent = self.sent.max(sent);
        self.tries = 0;
    }
}
