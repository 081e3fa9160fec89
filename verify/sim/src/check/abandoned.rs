//! Promise 12: who comes after a holder that was lost is told so.

use fencelock_engine::reply::{Abandoned, Released};
use fencelock_engine::request::{Mode, Release};
use fencelock_engine::{Grant, HoldId};

use crate::check::{Slip, StoreGrant};
use crate::client::Tag;
use crate::clock::Instant;
use crate::ids::HoldSet;
use crate::plan::Plan;

/// The holder that callers saw last.
#[derive(Debug, Default)]
struct Last {
    token: u64,
    /// When the store granted it.
    since: Instant,
    holds: Vec<(usize, Tag)>,
    unclean: bool,
}

/// The ordinary hold that the store granted last.
#[derive(Debug)]
struct Stored {
    hold: HoldId,
    token: u64,
    incarnation: usize,
    at: Instant,
    /// A caller has had it.
    delivered: bool,
}

#[derive(Debug, Default)]
struct Lock {
    last: Option<Last>,
    stored: Option<Stored>,
    /// That hold was told, and its holder released it: the next one hears 'no'.
    clean: bool,
    /// What was granted up to then may be unknown to the store, or its end known too early.
    spoiled: Option<Instant>,
    /// The holder that callers saw last before that.
    forgotten: Option<Last>,
}

impl Lock {
    /// After a clean release the next holder hears 'no', as far as is known what it hears.
    fn told(clean: bool, grant: &StoreGrant) -> Result<(), String> {
        match grant.abandoned {
            Some(abandoned) if clean && abandoned != Abandoned::No => Err(format!(
                "lock {}: {:?} is told {abandoned:?} after a clean release",
                grant.lock, grant.hold
            )),
            _ => Ok(()),
        }
    }
}

/// What every lock's next holder must hear.
#[derive(Debug)]
pub(crate) struct AbandonedTruth {
    locks: Vec<Lock>,
    /// Every grant is seen: those of clients without an inbox may expire unseen.
    exact: bool,
    /// The holds that the store released.
    released: HoldSet,
}

impl AbandonedTruth {
    pub fn new(plan: &Plan) -> AbandonedTruth {
        AbandonedTruth {
            locks: (0..plan.locks).map(|_| Lock::default()).collect(),
            exact: plan.polling.iter().all(|polling| !polling),
            released: HoldSet::default(),
        }
    }

    /// A hold ended and its holder had not released it.
    pub fn unclean(&mut self, lock: usize, incarnation: usize, tag: Tag) {
        let Lock { last, forgotten, .. } = &mut self.locks[lock];
        for last in [last, forgotten].into_iter().flatten() {
            if let Some(at) = last.holds.iter().position(|it| *it == (incarnation, tag)) {
                last.holds.swap_remove(at);
                last.unclean = true;
            }
        }
    }

    /// A hold ended in a way of which nothing is promised.
    pub fn unsure(&mut self, lock: usize, incarnation: usize, tag: Tag) {
        self.released(lock, incarnation, tag);
    }

    /// A holder released.
    pub fn released(&mut self, lock: usize, incarnation: usize, tag: Tag) {
        let Lock { last, forgotten, .. } = &mut self.locks[lock];
        for last in [last, forgotten].into_iter().flatten() {
            last.holds.retain(|it| *it != (incarnation, tag));
        }
    }

    /// The store executed a release.
    pub fn ended(
        &mut self,
        lock: usize,
        release: &Release,
        released: Released,
    ) -> Result<(), String> {
        if released == Released::Done {
            self.released.insert(release.hold);
        }
        let it = &mut self.locks[lock];
        let Some(stored) = it.stored.as_ref().filter(|it| it.hold == release.hold) else {
            return Ok(());
        };
        if released == Released::Left && stored.delivered {
            let hold = release.hold;
            return Err(format!("lock {lock}: {hold:?} is released as if nobody had had it"));
        }
        if released == Released::Done {
            // Who was told of an earlier token was not told of this one.
            let told = release.told && release.used >= stored.token;
            it.clean = told && !release.lost && self.exact;
        }
        Ok(())
    }

    /// Whether the store released this hold when it was asked to.
    pub fn was_released(&self, hold: HoldId) -> bool {
        self.released.contains(&hold)
    }

    /// A release and an acquire in one step: who comes next is not this check's affair.
    pub fn replaced(&mut self, lock: usize) {
        self.locks[lock].stored = None;
        self.locks[lock].clean = false;
    }

    /// The store forgot.
    pub fn forgets(&mut self, lock: Option<usize>) {
        for (index, it) in self.locks.iter_mut().enumerate() {
            if lock.is_none_or(|lock| lock == index) {
                it.stored = None;
                it.clean = false;
            }
        }
    }

    /// The store forgot a lock that had rested: whoever comes next hears 'unknown'. Not where the last
    /// holder is known to be lost.
    pub fn rests(&mut self, lock: usize) -> Result<(), String> {
        let lost = self.locks[lock].last.as_ref().filter(|last| last.unclean && self.exact);
        let lost = lost.map(|last| last.token);
        self.forgets(Some(lock));
        match lost {
            None => Ok(()),
            Some(token) => {
                Err(format!("lock {lock}: forgotten, and the holder of {token} was lost"))
            }
        }
    }

    /// The store went back to a state in which the last holder may be unknown, or an operator
    /// ended a hold whose holder did not know yet.
    pub fn spoiled(&mut self, at: Instant, lock: Option<usize>) {
        for (index, it) in self.locks.iter_mut().enumerate() {
            if lock.is_none_or(|lock| lock == index) {
                let forgotten = it.last.take().or(it.forgotten.take());
                *it = Lock { spoiled: Some(at), forgotten, ..Lock::default() };
            }
        }
    }

    /// The store made a grant, and may say how the holder before ended.
    pub fn store_granted(&mut self, at: Instant, grant: &StoreGrant) -> Result<(), String> {
        let it = &mut self.locks[grant.lock];
        match grant.mode {
            Mode::Exclusive => {}
            // A reader is told, and mends nothing; whoever comes next hears the same.
            Mode::Shared => {
                // Of the releases before its own the store remembers none: a late copy of what was
                // released may queue again.
                if let Some(stored) = &mut it.stored {
                    stored.delivered = false;
                }
                return Lock::told(it.clean, grant);
            }
            Mode::Permits { .. } => return Lock::told(true, grant),
        }
        let clean = std::mem::take(&mut it.clean);
        it.stored = grant.owner.is_none().then_some(Stored {
            hold: grant.hold,
            token: grant.token,
            incarnation: grant.incarnation,
            at,
            delivered: false,
        });
        Lock::told(clean, grant)
    }

    /// A joiner heard that holds of its owner were lost. Those of clients that have none at the store
    /// any more are among them, also where the client has yet to notice: the store's clock may have
    /// ended them early.
    pub fn joined(&mut self, lock: usize, token: u64, present: &[usize]) {
        if let Some(last) = self.locks[lock].last.as_mut().filter(|last| last.token == token) {
            last.holds.retain(|(incarnation, _)| present.contains(incarnation));
        }
    }

    /// A grant to one of several reached its caller: it is told of a holder that was lost, and leaves
    /// that to whoever holds the lock for itself next. One inside an exclusive hold goes on as a reader's when
    /// that is released, so that its loss says nothing.
    pub fn delivered_shared(
        &mut self,
        lock: usize,
        grant: &Grant,
        mode: Mode,
        since: Instant,
    ) -> Result<(), Slip> {
        let Some(last) = self.locks[lock].last.as_ref().filter(|_| mode == Mode::Shared) else {
            return Ok(());
        };
        let (token, known) = (grant.token.get(), since > last.since);
        let later = last.token < token && !grant.reentry;
        if later && last.unclean && known && grant.abandoned == Abandoned::No {
            return Err(Slip::Broken(format!(
                "lock {lock}: the holder of {} was lost, the reader {token} hears 'no'",
                last.token
            )));
        }
        Ok(())
    }

    /// A reader writes from now on, and was told of a holder that was lost.
    pub fn upgraded(
        &mut self,
        lock: usize,
        incarnation: usize,
        tag: Tag,
        token: u64,
        since: Instant,
    ) {
        let it = &mut self.locks[lock];
        if it.last.as_ref().is_none_or(|last| last.token < token) {
            it.forgotten = None;
            it.last = Some(Last { token, since, holds: vec![(incarnation, tag)], unclean: false });
        }
    }

    /// A grant reached its caller. `expired` holds have ended while their holders stood still.
    pub fn delivered(
        &mut self,
        lock: usize,
        incarnation: usize,
        tag: Tag,
        grant: &Grant,
        expired: &[(usize, Tag)],
        since: Instant,
    ) -> Result<(), Slip> {
        let token = grant.token.get();
        let it = &mut self.locks[lock];
        if let Some(stored) = &mut it.stored {
            stored.delivered |= stored.incarnation == incarnation && stored.at == since;
        }
        if let Some(last) = &mut it.last
            && last.token == token
        {
            if grant.abandoned != Abandoned::No {
                // The owner is told of its own lost holds when it joins.
                last.unclean = false;
                last.holds.retain(|hold| !expired.contains(hold));
            }
            last.holds.push((incarnation, tag));
            return Ok(());
        }
        if it.last.as_ref().is_some_and(|last| last.token > token) {
            // Heard late: who came after it has been told of it.
            return Ok(());
        }
        if grant.reentry || it.spoiled.is_some_and(|spoiled| since <= spoiled) {
            if it.spoiled == Some(since) {
                // It follows the hold that an operator ended, in the same step: what comes after
                // it is told of this one.
                it.forgotten = None;
            }
            if !grant.reentry && it.last.as_ref().is_some_and(|last| last.token < token) {
                // Somebody came in between, of whom nothing is promised.
                it.forgotten = it.last.take();
            }
            return Ok(());
        }
        let forgotten = it.forgotten.take();
        let before =
            it.last.replace(Last { token, since, holds: vec![(incarnation, tag)], unclean: false });
        let unclean = |it: &Last| it.unclean || it.holds.iter().any(|hold| expired.contains(hold));
        let Some(before) = before else {
            let excused = forgotten.is_some_and(|it| unclean(&it));
            let no = grant.abandoned == Abandoned::No;
            return if excused && no { Err(Slip::Excused) } else { Ok(()) };
        };
        let unclean = unclean(&before);
        let known = since > before.since;
        if unclean && known && grant.abandoned == Abandoned::No {
            return Err(Slip::Broken(format!(
                "lock {lock}: the holder of {} was lost, the holder of {token} hears 'no'",
                before.token
            )));
        }
        Ok(())
    }
}
