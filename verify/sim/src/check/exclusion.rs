//! Promise 1: while a hold is valid by its holder's own clock, nobody else's is.

use fencelock_engine::HoldKey;
use fencelock_engine::request::Mode;

use crate::check::{Beside, Slip};
use crate::client::{Client, Tag, Who};
use crate::clock::Instant;
use crate::plan::Plan;

/// A hold that its caller has not released and was not told to be lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder {
    pub slot: usize,
    pub incarnation: usize,
    pub key: HoldKey,
    pub tag: Tag,
    pub who: Who,
    pub token: u64,
    /// How it shares the lock.
    pub mode: Mode,
    /// It was made exclusive, beside the client's own queue.
    pub lone: bool,
    /// When the store granted the tenure it belongs to, where that is known.
    pub since: Option<Instant>,
}

/// Who holds what, and from when on earlier grants are not protected any more.
#[derive(Debug)]
pub(crate) struct Exclusion {
    locks: Vec<Vec<Holder>>,
    /// The last time at which each lock's earlier grants lost their protection.
    broken: Vec<Option<Instant>>,
    /// When the tenures were granted that an operator ended.
    ended: Vec<Vec<Instant>>,
    /// How many permits each name had, and since when.
    sizes: Vec<Vec<(Instant, u32)>>,
    /// That number is changed while some are out, or followed by who says another.
    resizes: bool,
}

impl Exclusion {
    pub fn new(plan: &Plan) -> Exclusion {
        let locks = plan.locks;
        Exclusion {
            locks: vec![Vec::new(); locks],
            broken: vec![None; locks],
            ended: vec![Vec::new(); locks],
            sizes: vec![Vec::new(); locks],
            resizes: plan.habits.resize + plan.habits.adopt > 0 || plan.zk.is_some(),
        }
    }

    /// A name has so many permits now.
    pub fn sized(&mut self, at: Instant, lock: usize, of: u32) {
        if self.sizes[lock].last().is_none_or(|(_, last)| *last != of) {
            self.sizes[lock].push((at, of));
        }
    }

    /// The most permits that a name had since then, by what its callers say and the store showed.
    fn most(&self, lock: usize, said: u32, since: Instant) -> u64 {
        let sizes = &self.sizes[lock];
        let first = sizes.partition_point(|(at, _)| *at < since).saturating_sub(1);
        let most = sizes[first..].iter().map(|(_, of)| *of).max().filter(|_| self.resizes);
        u64::from(most.unwrap_or(said))
    }

    pub fn breaks(&mut self, at: Instant, lock: Option<usize>) {
        match lock {
            Some(lock) => self.broken[lock] = Some(at),
            None => self.broken.fill(Some(at)),
        }
    }

    /// An operator ended the tenure that was granted at `since`, and no other.
    pub fn ends(&mut self, lock: usize, since: Instant) {
        self.ended[lock].push(since);
    }

    /// Whether what was granted at `since` has lost its protection.
    pub fn broken_since(&self, lock: usize, since: Instant) -> bool {
        self.broken[lock].is_some_and(|broken| since <= broken) || self.ended[lock].contains(&since)
    }

    pub fn add(&mut self, holder: Holder, lock: usize) {
        self.locks[lock].push(holder);
    }

    /// A hold has another mode, and another token where that is known.
    pub fn converted(
        &mut self,
        lock: usize,
        incarnation: usize,
        tag: Tag,
        mode: Mode,
        token: Option<u64>,
    ) {
        let mine = |it: &&mut Holder| it.incarnation == incarnation && it.tag == tag;
        if let Some(it) = self.locks[lock].iter_mut().find(mine) {
            it.mode = mode;
            it.lone = mode == Mode::Exclusive;
            it.token = token.unwrap_or(it.token);
        }
    }

    pub fn remove(&mut self, lock: usize, incarnation: usize, tag: Tag) {
        self.locks[lock].retain(|it| it.incarnation != incarnation || it.tag != tag);
    }

    /// Whether nothing has broken the protection of this hold.
    pub fn is_protected(&self, lock: usize, incarnation: usize, tag: Tag) -> bool {
        let holder =
            self.locks[lock].iter().find(|it| it.incarnation == incarnation && it.tag == tag);
        holder.is_some_and(|it| !self.broken_since(lock, it.since.unwrap_or(0)))
    }

    pub fn drop_client(&mut self, incarnation: usize) -> Vec<(usize, Tag)> {
        let mut dropped = Vec::new();
        for (lock, holders) in self.locks.iter_mut().enumerate() {
            holders.retain(|it| {
                let dead = it.incarnation == incarnation;
                if dead {
                    dropped.push((lock, it.tag));
                }
                !dead
            });
        }
        dropped
    }

    pub fn any_held(&self) -> bool {
        self.locks.iter().any(|holders| !holders.is_empty())
    }

    /// Whether an owner holds the lock in another client too.
    pub fn shared(&self, lock: usize, who: Who, incarnation: usize) -> bool {
        self.locks[lock].iter().any(|it| it.who == who && it.incarnation != incarnation)
    }

    /// The token of an owner's holds, wherever they are.
    pub fn token_of(&self, lock: usize, who: Who) -> Option<u64> {
        self.locks[lock].iter().find(|it| it.who == who).map(|it| it.token)
    }

    /// The holds that have ended by their holders' clocks although these do not know it yet: the
    /// tags and clients of holders that stand still.
    pub fn expired(&self, at: Instant, clients: &[Client], lock: usize) -> Vec<(usize, Tag)> {
        let ended = |it: &&Holder| !valid(at, clients, it);
        self.locks[lock].iter().filter(ended).map(|it| (it.incarnation, it.tag)).collect()
    }

    /// Whether a hold is valid now that must not be while this one is; permits are counted.
    pub fn overlap(
        &self,
        at: Instant,
        clients: &[Client],
        new: &Beside,
        since: Option<Instant>,
    ) -> Result<(), Slip> {
        let Beside { slot, tag, who, mode, lock, .. } = *new;
        let mut slipped = Ok(());
        // Permits that are out: all of them, and those whose protection nothing has broken.
        let (mut all, mut protected) = (0, 0);
        let mut first = since.unwrap_or(0);
        let me = |it: &Holder| it.who == who && it.slot == slot && it.lone;
        let lone = self.locks[lock].iter().any(me);
        for it in self.locks[lock].iter().filter(|it| it.tag != tag || it.slot != slot) {
            let apart = it.who != who;
            let (counted, apart) = match (it.mode, mode) {
                (Mode::Shared, Mode::Shared) => (0, false),
                (Mode::Permits { count, of }, Mode::Permits { of: mine, .. }) => {
                    (u64::from(count), of != mine && !self.resizes)
                }
                _ => (0, apart),
            };
            if counted == 0 && !apart || !valid(at, clients, it) {
                continue;
            }
            let alone = it.mode == Mode::Exclusive && mode == Mode::Exclusive;
            let local = matches!((it.who, who), (Who::Local { .. }, Who::Local { .. }))
                && it.incarnation == clients[slot].incarnation
                && alone
                && !lone
                && !it.lone;
            let excused =
                [it.since, since].iter().any(|since| self.broken_since(lock, since.unwrap_or(0)));
            all += counted;
            protected += if excused { 0 } else { counted };
            if counted > 0 {
                first = first.min(it.since.unwrap_or(0));
            }
            if apart && (local || !excused) {
                return Err(Slip::Broken(format!(
                    "lock {lock}: {who:?} at c{slot} and {:?} at c{} (token {}) at once",
                    it.who, it.slot, it.token
                )));
            }
            if apart {
                slipped = Err(Slip::Excused);
            }
        }
        let Mode::Permits { count, of } = mode else { return slipped };
        let (mine, of) = (u64::from(count), self.most(lock, of, first));
        if protected > 0 && protected + mine > of {
            return Err(Slip::Broken(format!(
                "lock {lock}: {who:?} at c{slot} takes {mine} permits, {protected} of {of} are out"
            )));
        }
        if all + mine > of { Err(Slip::Excused) } else { slipped }
    }
}

fn valid(at: Instant, clients: &[Client], holder: &Holder) -> bool {
    let client = &clients[holder.slot];
    client.incarnation == holder.incarnation
        && client.up
        && client
            .engine
            .remaining(client.clock.read(at), holder.key)
            .is_some_and(|left| !left.is_zero())
}
