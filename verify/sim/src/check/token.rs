//! Promise 2: tokens grow with the grants.

use std::collections::BTreeMap;

use fencelock_engine::options::TOKEN_BLOCK;
use fencelock_engine::request::Mode;
use fencelock_engine::{HoldId, OwnerId};

use crate::check::{Slip, StoreGrant};
use crate::clock::Instant;
use crate::plan::Plan;

/// One grant of the store and the tokens under it.
#[derive(Clone, Debug)]
pub(crate) struct Tenure {
    pub first: u64,
    pub hold: HoldId,
    pub owner: Option<OwnerId>,
    pub incarnation: usize,
    pub granted_at: Instant,
}

impl Tenure {
    fn of(grant: &StoreGrant, at: Instant) -> Tenure {
        Tenure {
            first: grant.token,
            hold: grant.hold,
            owner: grant.owner.clone(),
            incarnation: grant.incarnation,
            granted_at: grant.asked.unwrap_or(at),
        }
    }
}

#[derive(Debug, Default)]
struct Lock {
    tenures: BTreeMap<u64, Tenure>,
    /// The highest token that reached a caller.
    highest: u64,
    /// The same of holds that one has for itself.
    written: u64,
    /// The counter was lost since the last grant.
    forgotten: bool,
    /// When the store went back to an earlier state since.
    rolled_back: Option<Instant>,
    /// When it was lost last, by the store's clock; and whether that was within two blocks.
    lost_at: u64,
    lost_twice: bool,
    /// Since then the store's clock was behind the tokens that were given out: a grant of that time
    /// may be heard of much later.
    behind: bool,
    /// The store has forgotten the lock since the last grant, as it may after the retention; and what
    /// its clock has read at the most since then.
    rested: Option<u64>,
    /// Since then the clock was set back by more than the retention, behind the tokens.
    set_back: bool,
    /// Tokens went back by the double fault that is stated.
    excused: bool,
}

impl Lock {
    /// The highest token that was given out, also when it is still on its way to a caller.
    fn known(&self) -> u64 {
        let last = self.tenures.last_key_value().map_or(0, |(first, _)| *first);
        self.highest.max(last)
    }

    /// When the hold was granted that is shared from now on under a token of its own block, if that lives
    /// again in what the store went back to: later ones were given out since. What is granted now has a
    /// token that the clock has not passed.
    fn converted(&self, clock: u64, grant: &StoreGrant) -> Option<Instant> {
        let back = self.rolled_back?;
        let (_, tenure) = self.tenures.range(..grant.token).next_back()?;
        let same =
            tenure.hold == grant.hold || tenure.owner.is_some() && tenure.owner == grant.owner;
        let again = grant.mode == Mode::Shared && grant.token < clock && tenure.granted_at <= back;
        (same && again).then_some(tenure.granted_at)
    }
}

/// The tokens of every lock.
#[derive(Debug)]
pub(crate) struct TokenOrder {
    locks: Vec<Lock>,
    /// For how long an idle record is kept, in microseconds.
    retention: u64,
    /// Some grants are seen only some time after they were made.
    unseen: bool,
    /// The store's clock went back in this run.
    pub went_back: bool,
    /// Grants are seen when they are made.
    exact: bool,
}

impl TokenOrder {
    pub fn new(plan: &Plan) -> TokenOrder {
        TokenOrder {
            locks: (0..plan.locks).map(|_| Lock::default()).collect(),
            retention: plan.options.retention.as_micros() as u64,
            unseen: plan.polling.contains(&true),
            went_back: false,
            exact: plan.shares(),
        }
    }

    /// The counter is lost, or went back.
    pub fn forgets(&mut self, clock: u64, lock: Option<usize>) {
        for (index, it) in self.locks.iter_mut().enumerate() {
            if lock.is_none_or(|lock| lock == index) {
                it.forgotten = true;
                it.lost_twice = clock < it.lost_at + 2 * TOKEN_BLOCK;
                it.lost_at = clock;
                it.behind |= clock <= it.known();
            }
        }
    }

    /// The store forgot a lock that had rested. It may do so only when the tokens lie behind its clock.
    pub fn rests(&mut self, clock: u64, lock: usize) -> Result<(), String> {
        let it = &mut self.locks[lock];
        let known = it.known();
        // What is made anew without a grant, as by a late release, has no tokens to forget.
        let again = it.rested.is_some();
        it.rested = it.rested.max(Some(clock));
        if !again && clock <= known && !it.forgotten && it.rolled_back.is_none() && !it.excused {
            it.rested = None;
            return Err(format!("lock {lock}: forgotten at {clock}, and {known} was given out"));
        }
        Ok(())
    }

    /// The store went back to an earlier state.
    pub fn rolled_back(&mut self, at: Instant) {
        for it in &mut self.locks {
            it.rolled_back = Some(at);
        }
    }

    /// The store's clock was set back, from one reading to another.
    pub fn goes_back(&mut self, before: u64, clock: u64) {
        self.went_back = true;
        for it in &mut self.locks {
            if let Some(most) = &mut it.rested {
                *most = before.max(*most);
                it.set_back |= clock + self.retention < *most && clock <= it.known();
            }
            it.behind |= it.forgotten && clock <= it.known();
        }
    }

    pub fn excused(&self, lock: usize) -> bool {
        self.locks[lock].excused
    }

    /// The store shows a grant; true when it is a new one.
    pub fn store_granted(
        &mut self,
        at: Instant,
        clock: u64,
        grant: &StoreGrant,
    ) -> Result<bool, String> {
        let lock = &mut self.locks[grant.lock];
        if lock.excused {
            return Ok(false);
        }
        // Both at once: the counter is lost, and the clock is behind the tokens.
        let back = self.went_back || lock.lost_twice;
        let known = lock.known();
        let behind = clock <= known || lock.behind;
        let lost = lock.forgotten && back && behind;
        if let Some(tenure) = lock.tenures.get(&grant.token) {
            let same = tenure.hold == grant.hold
                || (tenure.owner.is_some() && tenure.owner == grant.owner);
            if same {
                return Ok(false);
            }
        } else if let Some(back) = lock.rolled_back.filter(|_| grant.token < known && !self.exact) {
            // A hold that was over, and of which nobody had heard, lives again in what the store
            // went back to, and its owner joins it, or who polls finds it. No grant is made now with
            // a token that lies behind the clock.
            if grant.owner.is_some() || self.unseen && !lost && grant.token < clock {
                let since = if grant.owner.is_some() { at } else { back };
                lock.tenures.insert(grant.token, Tenure::of(grant, since));
                return Ok(false);
            }
        }
        if let Some(granted_at) = lock.converted(clock, grant) {
            lock.tenures.insert(grant.token, Tenure { granted_at, ..Tenure::of(grant, at) });
            return Ok(false);
        }
        let repeated = lock.tenures.contains_key(&grant.token) || grant.token <= lock.highest;
        let before = lock.tenures.last_key_value().map_or(0, |(first, _)| *first);
        if grant.token <= known && (lost || lock.set_back) {
            lock.excused = true;
            lock.tenures.clear();
            return Ok(true);
        }
        if repeated {
            return Err(format!(
                "lock {}: the store grants {} to {:?} after {} was given out",
                grant.lock, grant.token, grant.hold, lock.highest
            ));
        }
        // As long as tokens stay below one that was granted before the loss, they may meet it.
        lock.forgotten &= grant.token < before;
        lock.behind &= lock.forgotten;
        lock.rolled_back = lock.rolled_back.filter(|_| lock.forgotten);
        (lock.rested, lock.set_back) = (None, false);
        lock.tenures.insert(grant.token, Tenure::of(grant, at));
        Ok(true)
    }

    /// When the store made the grants up to a token.
    pub fn up_to(&self, lock: usize, token: u64) -> impl Iterator<Item = Instant> + '_ {
        self.locks[lock].tenures.range(..=token).map(|(_, tenure)| tenure.granted_at)
    }

    /// The tenure that the store ended for an operator who named a token: its newest grant, unless that
    /// came later. Where tokens went back it is the very one that was named.
    pub fn broken(&self, lock: usize, token: u64) -> Option<&Tenure> {
        let tenures = &self.locks[lock].tenures;
        let newest = tenures.last_key_value().map(|(_, tenure)| tenure);
        newest.filter(|it| it.first <= token).or_else(|| tenures.get(&token))
    }

    /// The grant of the store under which a client's token was given out.
    pub fn tenure(&self, lock: usize, incarnation: usize, token: u64) -> Option<&Tenure> {
        let below = self.locks[lock].tenures.range(..=token).rev();
        below.map(|(_, tenure)| tenure).find(|tenure| {
            tenure.incarnation == incarnation || (tenure.first == token && tenure.owner.is_some())
        })
    }

    /// Whether a token belongs to an explicit owner's holds.
    pub fn is_shared(&self, lock: usize, token: u64) -> bool {
        self.locks[lock].tenures.get(&token).is_some_and(|tenure| tenure.owner.is_some())
    }

    /// A token reached a caller. `joins`: the owner has the lock already. `broken`: the tenure was
    /// granted before the store broke an assumption. Those who hold together may hear of it in
    /// another order: a reader's lies above every earlier writer's.
    pub fn delivered(
        &mut self,
        lock: usize,
        token: u64,
        mode: Mode,
        joins: bool,
        broken: bool,
    ) -> Result<(), Slip> {
        let it = &mut self.locks[lock];
        let above = match mode {
            Mode::Exclusive => it.highest,
            Mode::Shared => it.written,
            Mode::Permits { .. } => 0,
        };
        let fine = token > above || joins;
        if !fine && !broken && !it.excused {
            let highest = above;
            return Err(Slip::Broken(format!(
                "lock {lock}: token {token} reaches a caller after {highest} (joins: {joins})"
            )));
        }
        it.highest = it.highest.max(token);
        if mode == Mode::Exclusive {
            it.written = it.written.max(token);
        }
        // One of a grant that was under way while the store forgot may come after its successor's.
        if fine || !it.excused { Ok(()) } else { Err(Slip::Excused) }
    }
}
