//! A client's place at the store for one lock: in the queue, or holding.

use std::collections::VecDeque;
use std::time::Duration;

use crate::engine::tenants::Tenants;
use crate::hold::{CallKey, HoldKey, LossReason};
use crate::id::{HoldId, OwnerId};
use crate::lane::{LaneId, Place};
use crate::name::Name;
use crate::reply::Abandoned;
use crate::request::{Mode, Release, RequestId};
use crate::time::Time;

/// What the store is known to think of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum At {
    /// It knows nothing of it.
    Nowhere,
    /// An acquire was sent whose outcome is unknown.
    Unclear,
    /// It is in the queue.
    Queued,
    /// It holds the lock.
    Held,
}

/// A grant that arrived as a push before the reply that said 'queued'.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Early {
    pub token: u64,
    pub end: u64,
    pub abandoned: Abandoned,
    pub losses: u32,
    pub others: u32,
}

/// One of those who hold a granted entry in this client.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Holder {
    /// The local owner; `None` for an explicit one, and of permits.
    pub owner: Option<u64>,
    /// One for each level of re-entry; never empty.
    pub holds: Vec<HoldKey>,
    /// The fencing token of all of them.
    pub token: u64,
    /// What the first of them was told of its predecessor.
    pub abandoned: Abandoned,
    /// When it was granted.
    pub since: Time,
    /// When they end by themselves: the latest of their ends; `Time::MAX` when the watchdog keeps
    /// one of them.
    pub end: Time,
}

/// What the store is to be told of the mode in which an entry is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Conversion {
    pub to: Mode,
    /// The call that waits for it.
    pub call: Option<CallKey>,
    /// Its holder was told of what it converts.
    pub told: bool,
    pub sent: bool,
}

impl Conversion {
    pub fn new(to: Mode, call: Option<CallKey>) -> Conversion {
        Conversion { to, call, told: true, sent: false }
    }

    /// Back to what the holder knows of.
    pub fn undoing() -> Conversion {
        Conversion { told: false, ..Conversion::new(Mode::Shared, None) }
    }
}

/// Conversions that were not answered, and may yet take effect.
#[derive(Clone, Copy, Debug, Hash, Default)]
pub(crate) struct Copies {
    /// The mode that the last of them asked for; exclusive, if one that still counts did.
    pub to: Mode,
    /// The store's time past which none of them does anything.
    pub until: u64,
    /// When that was last moved on.
    at: Time,
}

impl Copies {
    /// How long they are waited out, if the store's clock goes back.
    const PATIENCE: Duration = Duration::from_secs(6);

    pub fn expose(&mut self, to: Mode, until: u64, now: Time) {
        if to == Mode::Exclusive || self.until == 0 {
            self.to = to;
        }
        (self.until, self.at) = (self.until.max(until), now);
    }

    /// Whether one may still take effect, at the store's time `store`.
    pub fn is_live(&self, store: u64, now: Time) -> bool {
        let past = self.until <= store || planted!(LateConversionForgotten);
        !past && now.since(self.at) < Copies::PATIENCE
    }
}

/// A release that goes out with the acquire that queues again.
#[derive(Clone, Debug, Hash)]
pub(crate) struct After<C> {
    pub release: Release,
    pub parting: Parting<C>,
}

/// The end of an entry's stay: what the release says, and who waits for it.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Parting<C> {
    pub call: Option<C>,
    pub deadline: Time,
    pub told: bool,
    pub lost: bool,
    /// How many releases were sent.
    pub tries: u32,
    /// The first one was sent while the hold was valid.
    pub in_time: bool,
}

/// A client's place at the store for one lock.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Entry<C> {
    pub id: HoldId,
    pub lock: u32,
    /// Its name's place, and which server it is at.
    pub place: Place,
    pub lane: LaneId,
    /// When it came there, and how often it went to another one shortly before.
    pub moved: Time,
    pub moves: u32,
    pub name: Name,
    pub owner: Option<OwnerId>,
    /// How its holder has it, or will.
    pub mode: Mode,
    /// How the store has it, as far as is known.
    pub stored: Mode,
    /// What is to be converted at the store.
    pub conversion: Option<Conversion>,
    pub copies: Copies,
    /// It was shared before it was exclusive: the local queue does not wait for it.
    pub lone: bool,
    pub at: At,
    /// Set when the entry is to be given up.
    pub parting: Option<Parting<C>>,
    /// At most one request for a hold id is in flight.
    pub flight: Option<RequestId>,
    pub ticket: u64,
    /// The calls that wait for this entry: one, or those of local readers who come in together; none of
    /// the entry for which the local queue waits, nor of a seat for permits.
    pub calls: VecDeque<CallKey>,
    /// A release to go out with the acquire.
    pub after: Option<After<C>>,
    /// A seat for permits that nobody wants now, and when it is given up.
    pub spare_until: Option<Time>,

    /// The lease of a grant by hand-off: the least that any acquire of this hold asked for.
    pub claim_lease: Duration,
    /// When the last request was sent that was answered 'queued'.
    pub queued_at: Time,
    /// How many were ahead of it then.
    pub ahead: u32,
    /// The highest token reserved as of that answer: an older push does not count.
    pub queued_last: u64,
    pub early: Option<Early>,

    /// The first token of the hold, the highest given out, and the last of the block.
    pub token: u64,
    pub used: u64,
    /// The highest of them that the store has heard of. It takes a renewal with a higher one as
    /// another holder's, and keeps the lock no longer than that one asks.
    pub heard: u64,
    /// The highest of them that was sent to it, whether or not it was heard.
    pub shown: u64,
    pub end: u64,
    pub abandoned: Abandoned,
    /// How many losses the grant told of.
    pub losses: u32,
    pub valid_until: Time,
    /// The lease of the request that `valid_until` counts from.
    pub asked: Duration,
    /// Until when the store may keep the lock, by all that was asked of it, counted as
    /// `valid_until` is.
    pub lent: Time,
    /// When the last request was sent that the store answered 'granted'.
    pub contact: Time,
    /// The grant came by push and the store has not heard from us since.
    pub claim: bool,
    /// The push overtook the answer to a request that was in flight.
    pub overtook: bool,
    pub others: u32,
    /// The store's word that somebody queued came while a request was in flight: its answer may be
    /// older.
    pub news: bool,
    /// Callers that came up to then came before whoever waits in another client.
    pub alone: Time,
    /// Who has it: one holder, or local readers.
    pub tenants: Tenants,
    /// Some caller was told of the grant.
    pub told: bool,
    /// Local hand-offs since another client was known to wait, and since when.
    pub run: u32,
    pub run_since: Option<Time>,

    /// Past this store time no copy of an acquire with an unknown outcome can take effect.
    pub exposed_until: u64,
    /// When that was last moved on.
    pub exposed_at: Time,
    /// How long that is waited out, if the store's clock goes back: twice what any acquire allowed.
    pub patience: Duration,
    pub tries: u32,
    /// Nothing is sent before this instant.
    pub retry_at: Time,
    /// When the next beat is due.
    pub beat_at: Option<Time>,
    /// A beat came due while a request was in flight.
    pub beat_missed: bool,
    /// Its place is moving from one server to another: its beats are about it alone.
    pub apart: bool,
    /// The store said that something has changed: the next beat looks what.
    pub called: bool,
    /// Extends and re-entries that wait for the next renewal; ended ones are passed over.
    pub companions: Vec<CallKey>,
    /// Where the entry stands in the engine's timers.
    pub timer: Option<Time>,
    pub trouble: Option<String>,
}

impl<C> Entry<C> {
    pub fn new(id: HoldId, lock: u32, name: Name, owner: Option<OwnerId>, mode: Mode) -> Entry<C> {
        Entry {
            id,
            lock,
            place: Place::default(),
            lane: LaneId::FIRST,
            moved: Time::ZERO,
            moves: 0,
            name,
            owner,
            mode,
            stored: mode,
            conversion: None,
            copies: Copies::default(),
            lone: false,
            at: At::Nowhere,
            parting: None,
            flight: None,
            ticket: 0,
            calls: VecDeque::new(),
            after: None,
            spare_until: None,
            claim_lease: Duration::MAX,
            queued_at: Time::ZERO,
            ahead: 0,
            queued_last: 0,
            early: None,
            token: 0,
            used: 0,
            heard: 0,
            shown: 0,
            end: 0,
            abandoned: Abandoned::No,
            losses: 0,
            valid_until: Time::ZERO,
            asked: Duration::ZERO,
            lent: Time::ZERO,
            contact: Time::ZERO,
            claim: false,
            overtook: false,
            others: 0,
            news: false,
            alone: Time::ZERO,
            tenants: Tenants::default(),
            told: false,
            run: 0,
            run_since: None,
            exposed_until: 0,
            exposed_at: Time::ZERO,
            patience: Duration::ZERO,
            tries: 0,
            retry_at: Time::ZERO,
            beat_at: None,
            beat_missed: false,
            apart: false,
            called: false,
            companions: Vec::new(),
            timer: None,
            trouble: None,
        }
    }

    /// Whether it has one holder: an explicit owner's, and one of permits.
    pub fn is_single(&self) -> bool {
        self.owner.is_some() || matches!(self.mode, Mode::Permits { .. })
    }

    /// Whether it is shared at the store, and nothing is under way that would have it otherwise.
    pub fn is_shared_for_sure(&self) -> bool {
        let shared = self.mode == Mode::Shared && self.stored == Mode::Shared;
        shared && self.conversion.is_none()
    }

    /// Whether its only holder is about to have it for itself, with another token.
    pub fn is_being_upgraded(&self) -> bool {
        self.conversion.is_some_and(|conversion| conversion.to == Mode::Exclusive)
    }

    /// How many holds there are under it.
    pub fn levels(&self) -> usize {
        self.tenants.iter().map(|holder| holder.holds.len()).sum()
    }

    /// Whether it is the one that local owners have for themselves, one after the other.
    pub fn is_handed_on(&self) -> bool {
        self.owner.is_none() && self.mode == Mode::Exclusive && !self.lone
    }

    /// When the holds of all who have it have ended by themselves.
    pub fn group_end(&self) -> Time {
        self.tenants.last_end()
    }

    /// Until when the holds of one of them may be trusted.
    pub fn ends_for(&self, owner: Option<u64>) -> Time {
        let end = self.tenants.get(owner).map_or(Time::MAX, |holder| holder.end);
        self.valid_until.min(end)
    }

    /// When the first of them is at its end.
    pub fn next_end(&self) -> Time {
        self.valid_until.min(self.tenants.first_end())
    }

    /// Until when a held entry may be trusted.
    pub fn ends_at(&self) -> Time {
        self.valid_until.min(self.group_end())
    }

    /// Why its time is over, if it is.
    pub fn ended(&self, now: Time) -> Option<LossReason> {
        if self.group_end() <= now {
            Some(LossReason::Ended)
        } else if self.valid_until <= now {
            Some(LossReason::NotRenewed)
        } else {
            None
        }
    }

    /// So many others waited, as of a request that left at `sent`.
    pub fn hear_others(&mut self, others: u32, sent: Time) {
        self.others = others;
        if others == 0 {
            // Whoever came since, came after that.
            self.alone = self.alone.max(sent);
        }
        self.keep_news();
    }

    /// Somebody queued, as the store says unasked.
    pub fn hear_wanted(&mut self, now: Time) {
        self.news |= self.flight.is_some();
        if self.others == 0 {
            self.alone = now;
        }
        self.others = self.others.max(1);
    }

    /// What was said unasked overtook the answer that is heard now: somebody may have come since.
    pub fn keep_news(&mut self) {
        if self.news {
            self.others = self.others.max(1);
        }
    }

    /// The release that ends this entry at the store.
    pub fn release(&self, told: bool, lost: bool, retention: Duration) -> Release {
        let (lock, hold) = (self.name.clone(), self.id);
        let alone = told && !lost && self.others == 0 && self.tries == 0;
        Release {
            lock,
            hold,
            used: self.used,
            told,
            lost,
            losses: self.losses,
            retention,
            alone,
            mode: self.stored,
        }
    }

    /// An acquire may have been executed, or may yet be, until the store's time `not_after`.
    pub fn expose(&mut self, not_after: u64, now: Time) {
        self.exposed_until = self.exposed_until.max(not_after);
        self.exposed_at = now;
    }

    /// Whether that is so still, at the store's time `store`. Its clock may have stepped back: that
    /// is waited out with patience, which ends at `until`.
    pub fn is_exposed(&self, store: u64, until: Time) -> bool {
        self.exposed_until > store && until.since(self.exposed_at) < self.patience
    }
}
