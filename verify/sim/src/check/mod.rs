//! The checkers, one for each promise, and the first promise found broken.

mod abandoned;
mod backoff;
mod exclusion;
mod fence;
mod holder;
mod queue;
mod seats;
mod sharing;
mod token;
mod told;

use std::collections::BTreeMap;

use fencelock_engine::plant::{self, Bug};
use fencelock_engine::reply::{Abandoned, Body, Broken, Failure, Push, Reply, Standing, State};
use fencelock_engine::request::{Beat, Mode, Op};
use fencelock_engine::{Grant, HoldId, How, LossReason, Name, OwnerId};

use crate::client::{Client, Tag, Who};
use crate::clock::Instant;
use crate::ledger::Entry;
use crate::plan::Plan;

use abandoned::AbandonedTruth;
use backoff::Backoff;
use exclusion::Exclusion;
use fence::Fence;

pub(crate) use holder::{copies, only_holder};
pub(crate) use sharing::{Contact, permits_of};
pub(crate) use told::queued;

use queue::QueueOrder;
use seats::Seats;
use sharing::Sharing;
use token::TokenOrder;
use told::Told;

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which promise.
    pub promise: &'static str,
    /// When, in true time.
    pub at: Instant,
    /// What happened.
    pub what: String,
}

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Slip {
    /// It should have been.
    Broken(String),
    /// A fault was there under which it need not be.
    Excused,
}

impl From<String> for Slip {
    fn from(what: String) -> Slip {
        Slip::Broken(what)
    }
}

/// A grant that reached its caller.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Delivery<'a> {
    pub slot: usize,
    pub tag: Tag,
    pub who: Who,
    pub lock: usize,
    pub mode: Mode,
    pub grant: &'a Grant,
    /// Whose holds the store has, where that was looked at.
    pub present: Option<&'a [usize]>,
}

/// A caller that has a lock, beside whoever may have it too.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Beside {
    pub slot: usize,
    pub tag: Tag,
    pub who: Who,
    pub mode: Mode,
    pub lock: usize,
    pub token: u64,
}

/// A grant that the store made, as its reply or its push shows.
#[derive(Clone, Debug)]
pub(crate) struct StoreGrant {
    pub incarnation: usize,
    pub lock: usize,
    pub hold: HoldId,
    pub owner: Option<OwnerId>,
    pub token: u64,
    pub mode: Mode,
    /// What it says of the holder before, if that is seen.
    pub abandoned: Option<Abandoned>,
    /// The latest time at which it was not granted yet, if that is known.
    pub asked: Option<Instant>,
    /// The hold that was granted to the caller in the same step, when this one joins it.
    pub joins: Option<HoldId>,
}

/// The hold that a request's own answer grants under a token.
fn granted_to_caller(
    op: &Op,
    result: &Result<Reply, Failure>,
    lock: &Name,
    token: u64,
) -> Option<HoldId> {
    let granted = |state: &State| state.standing == Standing::Granted && state.token == token;
    match (op, &result.as_ref().ok()?.body) {
        (Op::Acquire(ask), Body::Acquire(state)) => {
            (ask.lock == *lock && granted(state)).then_some(ask.hold)
        }
        (Op::Beat(beats), Body::Beat(states)) => beats
            .iter()
            .zip(states)
            .find(|(beat, state)| beat.lock == *lock && state.as_ref().is_ok_and(granted))
            .map(|(beat, _)| beat.hold),
        _ => None,
    }
}

/// All checkers of a run.
/// What a foreign contender believes that it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Foreign {
    pub lock: usize,
    pub index: usize,
    pub mode: Mode,
    pub token: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Checks {
    pub found: Option<Violation>,
    /// Nothing is said: others are to judge the run.
    pub silent: bool,
    /// How often a promise did not hold, and a fault was there that it may not hold under.
    pub waived: BTreeMap<&'static str, u64>,
    pub exclusion: Exclusion,
    pub token: TokenOrder,
    pub abandoned: AbandonedTruth,
    pub queue: QueueOrder,
    pub told: Told,
    pub fence: Fence,
    pub sharing: Sharing,
    pub seats: Seats,
    backoff: Backoff,
    pub closed: usize,
    /// Of each lock, the hold that was renewed last, and the highest token it showed as given out.
    pub shown: Vec<(HoldId, u64)>,
    /// Whose token it is, of those that explicit owners were given.
    shared: std::collections::BTreeMap<(usize, u64), Who>,
}

impl Checks {
    pub fn new(plan: &Plan) -> Checks {
        Checks {
            found: None,
            silent: false,
            waived: BTreeMap::new(),
            exclusion: Exclusion::new(plan),
            token: TokenOrder::new(plan),
            abandoned: AbandonedTruth::new(plan),
            queue: QueueOrder::new(plan),
            told: Told::default(),
            fence: Fence::new(plan.locks),
            sharing: Sharing::new(plan),
            seats: Seats::new(plan),
            backoff: Backoff::default(),
            closed: 0,
            shown: vec![(HoldId(0), 0); plan.locks],
            shared: Default::default(),
        }
    }

    /// Notes a broken promise; the first one counts.
    #[cold]
    #[inline(never)]
    pub fn fail(&mut self, promise: &'static str, at: Instant, what: impl FnOnce() -> String) {
        if self.found.is_none() && !self.silent {
            self.found = Some(Violation { promise, at, what: what() });
        }
    }

    /// Counts a promise that was not kept, as it need not be under the run's faults.
    pub fn waive(&mut self, promise: &'static str) {
        *self.waived.entry(promise).or_default() += 1;
    }

    fn keep(&mut self, promise: &'static str, at: Instant, result: Result<(), Slip>) {
        match result {
            Ok(()) => {}
            Err(Slip::Broken(what)) => self.fail(promise, at, || what),
            Err(Slip::Excused) => self.waive(promise),
        }
    }

    /// A client died.
    pub fn crashed(&mut self, slot: usize, incarnation: usize) {
        for (lock, tag) in self.exclusion.drop_client(incarnation) {
            self.abandoned.unclean(lock, incarnation, tag);
        }
        self.queue.died(slot, incarnation);
    }

    /// From now on, exclusion against what was granted before is off by assumption.
    pub fn breaks(&mut self, at: Instant, lock: Option<usize>) {
        self.exclusion.breaks(at, lock);
    }

    /// The store forgot a lock, or all of them.
    pub fn forgets(&mut self, at: Instant, clock: u64, lock: Option<usize>) {
        self.breaks(at, lock);
        self.forgets_of(clock, lock);
    }

    /// The store forgot what its replicas had not confirmed. That was granted to nobody: whoever holds a lock
    /// keeps others out.
    pub fn forgets_unconfirmed(&mut self, clock: u64) {
        self.forgets_of(clock, None);
    }

    fn forgets_of(&mut self, clock: u64, lock: Option<usize>) {
        self.shown.fill((HoldId(0), 0));
        self.token.forgets(clock, lock);
        self.queue.disturbed(lock);
        self.told.unclear();
        self.sharing.forgets(lock, self.token.went_back);
        self.abandoned.forgets(lock);
    }

    /// The store forgot a lock that had rested.
    pub fn rests(&mut self, at: Instant, clock: u64, lock: usize) {
        if !plant::on(Bug::RestNotExcused) {
            let behind = self.token.rests(clock, lock);
            self.keep("token order", at, behind.map_err(Slip::Broken));
        }
        let told = self.abandoned.rests(lock);
        self.keep("abandoned", at, told.map_err(Slip::Broken));
    }

    /// The store went back to an earlier state.
    pub fn rolled_back(&mut self, at: Instant) {
        self.shown.fill((HoldId(0), 0));
        self.token.rolled_back(at);
        self.told.unclear();
        self.sharing.forgets(None, self.token.went_back);
        self.abandoned.spoiled(at, None);
    }

    /// The highest token that renewals of a hold showed as given out, as far as that is known.
    pub fn shown(&self, lock: usize, hold: HoldId) -> u64 {
        let (last, used) = self.shown[lock];
        if last == hold { used } else { 0 }
    }

    /// A request was executed.
    #[allow(clippy::too_many_arguments)]
    pub fn executed(
        &mut self,
        at: Instant,
        clock: u64,
        incarnation: usize,
        op: &Op,
        result: &Result<Reply, Failure>,
        sent: &[(usize, Push)],
        names: &[Name],
        muted: bool,
        seen: Vec<StoreGrant>,
    ) {
        if muted {
            // Grants are made and not told to anybody.
            self.abandoned.forgets(None);
            self.told.unclear();
        }
        self.told.executed(op, result, sent);
        let index = |name: &Name| names.iter().position(|it| it == name).unwrap_or(0);
        if let Op::Release(release) = op {
            let lock = index(&release.lock);
            self.queue.left(lock, release.hold);
            if let Ok(Reply { body: Body::Release(released), .. }) = result {
                let ended = self.abandoned.ended(lock, release, *released);
                self.keep("abandoned", at, ended.map_err(Slip::Broken));
            }
        }
        if let Op::Acquire(ask) = op {
            self.queue.asked(ask.hold, &ask.owner);
            if let Some(release) = &ask.after {
                let lock = index(&release.lock);
                self.queue.left(lock, release.hold);
                self.abandoned.replaced(lock);
            }
        }
        for grant in seen {
            self.store_granted(at, clock, grant);
        }
        if let (Op::Acquire(ask), Ok(Reply { body: Body::Acquire(state), .. })) = (op, result) {
            let lock = index(&ask.lock);
            let took_effect = matches!(state.standing, Standing::Granted | Standing::Queued);
            let new = self.queue.is_new(lock, ask.hold);
            if took_effect && new && clock > ask.not_after {
                let late = clock - ask.not_after;
                self.fail("no residue", at, || {
                    format!("lock {lock}: {:?} takes effect {late} µs too late", ask.hold)
                });
            }
        }
        if let (Op::Break(what), Ok(Reply { body: Body::Break(Broken::Ended(_)), .. })) =
            (op, result)
        {
            let lock = index(&what.lock);
            // Who had the lock before or after what the operator saw keeps its protection.
            if self.sharing.on {
                for granted_at in self.token.up_to(lock, what.token) {
                    self.exclusion.ends(lock, granted_at);
                }
            } else if let Some(tenure) = self.token.broken(lock, what.token) {
                self.exclusion.ends(lock, tenure.granted_at);
            }
            self.abandoned.spoiled(at, Some(lock));
            self.queue.disturbed(Some(lock));
        }
        for (to, push) in sent {
            if let Push::Granted { lock, hold, token, abandoned, .. } = push {
                let joins = granted_to_caller(op, result, lock, *token);
                let lock = index(lock);
                let passed = self.queue.passes_caller(lock, *hold, op, result);
                self.keep("queue order", at, passed.map_err(Slip::Broken));
                let grant = StoreGrant {
                    incarnation: *to,
                    lock,
                    hold: *hold,
                    owner: self.queue.owner_of(*hold),
                    token: *token,
                    mode: Mode::Exclusive,
                    abandoned: Some(*abandoned),
                    asked: None,
                    joins,
                };
                let rests = self.queue.may_rest(lock, *hold);
                self.store_granted(at, clock, grant);
                if !rests {
                    self.queue.claimed_by_push(at, lock, *hold);
                }
            }
        }
        let patient = self.backoff.answered(at, op, result);
        self.keep("overload", at, patient.map_err(Slip::Broken));
        let Ok(reply) = result else { return };
        match (op, &reply.body) {
            (Op::Acquire(ask), Body::Acquire(state)) => {
                let lock = index(&ask.lock);
                if let Some(wait) = &ask.wait {
                    let (owner, silence) = (ask.owner.clone(), wait.silence);
                    let heard =
                        self.queue.heard(at, incarnation, lock, ask.hold, owner, state, silence);
                    self.keep("queue order", at, heard.map_err(Slip::Broken));
                }
                if state.standing == Standing::Granted {
                    self.queue.contact(at, lock, ask.hold, state);
                    let grant = StoreGrant {
                        incarnation,
                        lock,
                        hold: ask.hold,
                        owner: ask.owner.clone(),
                        token: state.token,
                        mode: ask.mode,
                        abandoned: Some(state.abandoned),
                        asked: self.queue.heard_at(lock, ask.hold),
                        joins: None,
                    };
                    self.store_granted(at, clock, grant);
                }
            }
            (Op::Beat(beats), Body::Beat(states)) => {
                for (beat, state) in beats.iter().zip(states) {
                    let Ok(state) = state else { continue };
                    let lock = index(&beat.lock);
                    if state.standing == Standing::Granted {
                        let (hold, used) = &mut self.shown[lock];
                        *used = if *hold == beat.hold { beat.used.max(*used) } else { beat.used };
                        *hold = beat.hold;
                    }
                    self.beaten(at, clock, incarnation, lock, beat, state);
                }
            }
            _ => {}
        }
    }

    fn beaten(
        &mut self,
        at: Instant,
        clock: u64,
        incarnation: usize,
        lock: usize,
        beat: &Beat,
        state: &State,
    ) {
        let hold = beat.hold;
        let owner = self.queue.owner_of(hold);
        match state.standing {
            Standing::Granted => {
                self.queue.contact(at, lock, hold, state);
                let grant = StoreGrant {
                    incarnation,
                    lock,
                    hold,
                    owner,
                    token: state.token,
                    mode: beat.mode,
                    abandoned: Some(state.abandoned),
                    asked: self.queue.heard_at(lock, hold),
                    joins: None,
                };
                self.store_granted(at, clock, grant);
            }
            Standing::Queued => {
                let heard =
                    self.queue.heard(at, incarnation, lock, hold, owner, state, beat.silence);
                self.keep("queue order", at, heard.map_err(Slip::Broken));
            }
            _ => self.queue.left(lock, hold),
        }
    }

    fn store_granted(&mut self, at: Instant, clock: u64, grant: StoreGrant) {
        let fresh = self.token.store_granted(at, clock, &grant);
        match fresh {
            Ok(true) => {
                if self.token.excused(grant.lock) {
                    self.fence.excuse(grant.lock);
                    self.waive("token order");
                }
                let told = self.abandoned.store_granted(at, &grant);
                self.keep("abandoned", at, told.map_err(Slip::Broken));
                if !self.sharing.on {
                    let order = self.queue.store_granted(at, &grant);
                    self.keep("queue order", at, order);
                }
            }
            Ok(false) => {}
            Err(what) => self.fail("token order", at, || what),
        }
        self.queue.granted_at_store(grant.lock, grant.hold);
    }

    /// A contender's node became the first of a lock: from now on it may be granted.
    pub fn tenure(&mut self, at: Instant, grant: StoreGrant) {
        if let Err(what) = self.token.store_granted(at, 0, &grant) {
            self.fail("token order", at, || what);
        }
    }

    /// A foreign contender believes that it holds, by a node with this token, if that is there.
    pub fn foreign_granted(&mut self, at: Instant, clients: &[Client], it: Foreign) {
        let Foreign { lock, index, mode, token } = it;
        let foreign = Who::Explicit(usize::MAX - index);
        // What it believes with a node that is gone already is not ours to answer for.
        let Some(token) = token else { return };
        let since = self.token.tenure(lock, usize::MAX, token).map(|it| it.granted_at);
        let tag = Tag::MAX;
        let it = Beside { slot: 0, tag, who: foreign, mode, lock, token };
        let result = self.exclusion.overlap(at, clients, &it, since);
        self.keep("exclusion", at, result);
        let broken = self.exclusion.broken_since(lock, since.unwrap_or(0));
        let result = self.token.delivered(lock, token, mode, false, broken);
        self.keep("token order", at, result);
    }

    /// A grant reached its caller.
    pub fn granted(&mut self, at: Instant, clients: &[Client], delivery: Delivery<'_>) {
        let Delivery { slot, tag, who, lock, mode, grant, present } = delivery;
        let client = &clients[slot];
        let token = grant.token.get();
        let came = self.queue.came(slot, tag);
        if mode == Mode::Exclusive {
            let served = self.queue.served(slot, tag, who, lock, grant.reentry);
            self.keep("queue order", at, served.map_err(Slip::Broken));
        } else if mode.permits().is_some() {
            let handed_on = grant.how == How::Local;
            let served = self.queue.permitted(slot, tag, lock, handed_on);
            self.keep("queue order", at, served.map_err(Slip::Broken));
        }
        let since = self.token.tenure(lock, client.incarnation, token).map(|it| it.granted_at);
        let broken = self.exclusion.broken_since(lock, since.unwrap_or(0));
        let beside = Beside { slot, tag, who, mode, lock, token };
        let result = self.exclusion.overlap(at, clients, &beside, since);
        self.keep("exclusion", at, result);
        // By the reading that the engine had, which may be a little old.
        let now = fencelock_engine::Time::ZERO;
        if client.engine.remaining(now, grant.hold).is_none_or(|left| left.is_zero()) {
            self.fail("exclusion", at, || {
                format!("c{slot} {tag:x} is granted lock {lock} when its time is over")
            });
        }
        let mut shared = false;
        if let Who::Explicit(_) = who {
            // Where the store does not know owners, the first of them had the token before.
            let before = self.shared.insert((lock, token), who);
            shared = self.token.is_shared(lock, token) || before == Some(who);
        }
        let result = self.token.delivered(lock, token, mode, grant.reentry || shared, broken);
        self.keep("token order", at, result);
        if let Some(present) = present {
            self.abandoned.joined(lock, token, present);
        }
        let expired = self.exclusion.expired(at, clients, lock);
        let incarnation = client.incarnation;
        let granted_at = since.unwrap_or(0);
        let result = if mode == Mode::Exclusive {
            self.abandoned.delivered(lock, incarnation, tag, grant, &expired, granted_at)
        } else {
            self.abandoned.delivered_shared(lock, grant, mode, granted_at)
        };
        self.keep("abandoned", at, result);
        if grant.how == How::Local && mode == Mode::Shared {
            let tenure = self.token.tenure(lock, client.incarnation, token);
            let hold = tenure.filter(|it| it.first == token).map(|it| it.hold);
            let mut result = self.queue.joined(slot, lock);
            if let Some(hold) = hold.filter(|_| result.is_ok() && !client.jumped) {
                result = self.seats.joined(at, hold, grant.waited);
            }
            self.keep("queue order", at, result.map_err(Slip::Broken));
        } else if grant.how == How::Local {
            let result = self.queue.handed_locally(at, lock, client.incarnation, came);
            self.keep("local hand-off", at, result);
        }
        if !grant.reentry {
            let local = grant.how == How::Local;
            self.queue.began(at, lock, client.incarnation, local);
        }
        self.exclusion.add(
            exclusion::Holder {
                slot,
                incarnation: client.incarnation,
                key: grant.hold,
                tag,
                who,
                token,
                mode,
                lone: false,
                since,
            },
            lock,
        );
    }

    #[allow(clippy::too_many_arguments)]
    /// A hold has a token of another mode: above all that it must lie above. An explicit owner's may have
    /// that of its other holds.
    pub fn converted(
        &mut self,
        at: Instant,
        client: &Client,
        lock: usize,
        hold: Tag,
        token: u64,
        mode: Mode,
        joins: bool,
    ) {
        let since = self.token.tenure(lock, client.incarnation, token).map(|it| it.granted_at);
        let broken = self.exclusion.broken_since(lock, since.unwrap_or(0));
        let result = self.token.delivered(lock, token, mode, joins, broken);
        self.keep("token order", at, result);
        if mode == Mode::Exclusive {
            self.abandoned.upgraded(lock, client.incarnation, hold, token, since.unwrap_or(0));
        }
    }

    /// A caller was told that its hold is lost.
    pub fn lost(&mut self, lock: usize, tag: Tag, incarnation: usize, reason: LossReason) {
        let known = self.exclusion.is_protected(lock, incarnation, tag);
        self.exclusion.remove(lock, incarnation, tag);
        match reason {
            // The store may have known of the end before, and told it.
            _ if !known => self.abandoned.unsure(lock, incarnation, tag),
            LossReason::Closed | LossReason::Broken => {
                self.abandoned.unsure(lock, incarnation, tag);
            }
            _ => self.abandoned.unclean(lock, incarnation, tag),
        }
    }

    /// A caller released; in time, or its hold was lost.
    pub fn released(
        &mut self,
        at: Instant,
        lock: usize,
        tag: Tag,
        incarnation: usize,
        in_time: bool,
    ) {
        self.queue.ended(at, lock, incarnation);
        let known = self.exclusion.is_protected(lock, incarnation, tag);
        self.exclusion.remove(lock, incarnation, tag);
        if in_time || !known {
            self.abandoned.released(lock, incarnation, tag);
        } else {
            self.abandoned.unclean(lock, incarnation, tag);
        }
    }

    /// A caller wrote while its hold was valid.
    #[allow(clippy::too_many_arguments)]
    pub fn writes(
        &mut self,
        at: Instant,
        clients: &[Client],
        slot: usize,
        who: Who,
        lock: usize,
        token: u64,
        entry: Entry,
    ) {
        let incarnation = clients[slot].incarnation;
        let since = self.token.tenure(lock, incarnation, token).map(|it| it.granted_at);
        let (mode, tag) = (Mode::Exclusive, Tag::MAX);
        let beside = Beside { slot, tag, who, mode, lock, token };
        let result = self.exclusion.overlap(at, clients, &beside, since);
        self.keep("exclusion", at, result);
        let broken = self.exclusion.broken_since(lock, since.unwrap_or(0));
        if entry == Entry::Refused && !broken && !self.fence.is_excused(lock) {
            self.fail("fencing", at, || {
                format!("c{slot} holds lock {lock} with {token}, and its write was refused")
            });
        }
        if let Some(what) = self.fence.clobbered.take() {
            self.fail("fencing", at, || what);
        }
        if std::mem::take(&mut self.fence.forgiven) {
            self.waive("fencing");
        }
    }

    /// A caller has what others may have too, and it is valid.
    pub fn beside(&mut self, at: Instant, clients: &[Client], it: Beside) {
        let incarnation = clients[it.slot].incarnation;
        let since = self.token.tenure(it.lock, incarnation, it.token).map(|it| it.granted_at);
        let result = self.exclusion.overlap(at, clients, &it, since);
        self.keep("exclusion", at, result);
    }

    /// A reader looked again: `now_seen` is what the resource showed it, unless it was refused.
    #[allow(clippy::too_many_arguments)]
    pub fn reads(
        &mut self,
        at: Instant,
        clients: &[Client],
        slot: usize,
        lock: usize,
        token: u64,
        seen: u64,
        now_seen: Option<u64>,
        valid: bool,
    ) {
        if self.fence.is_excused(lock) {
            return;
        }
        // An owner's levels share a token, and do not exclude each other.
        if now_seen.is_some_and(|now_seen| now_seen != seen) && self.fence.is_anothers(lock, token)
        {
            self.fail("fencing", at, || {
                format!("c{slot} reads lock {lock} with {token}: {now_seen:?} after {seen}")
            });
        }
        let incarnation = clients[slot].incarnation;
        let since = self.token.tenure(lock, incarnation, token).map(|it| it.granted_at);
        if valid && now_seen.is_none() && !self.exclusion.broken_since(lock, since.unwrap_or(0)) {
            self.fail("fencing", at, || {
                format!("c{slot} holds lock {lock} with {token}, and its read was refused")
            });
        }
    }
}
