//! Promise 9: first come, first served, among clients and within one.

use std::collections::BTreeMap;

use fencelock_engine::reply::{Standing, State};
use fencelock_engine::{HoldId, OwnerId, Patience};

use crate::check::StoreGrant;
use crate::client::{Tag, Who};
use crate::clock::{Instant, MS};
use crate::plan::{Plan, Profile};

/// A waiter of the store.
#[derive(Debug)]
struct Queued {
    hold: HoldId,
    incarnation: usize,
    owner: Option<OwnerId>,
    ticket: u64,
    since: Instant,
    heard: Instant,
}

/// A waiter within its client.
#[derive(Debug)]
struct Local {
    slot: usize,
    tag: Tag,
    lock: usize,
    attempt: bool,
}

/// Who waits, and since when.
#[derive(Debug)]
pub(crate) struct QueueOrder {
    /// No fault of the run may disturb the order among clients.
    strict: bool,
    silence: u64,
    /// How late a local hand-off may be after another client has queued.
    run: u64,
    hand_off: bool,
    locks: Vec<Vec<Queued>>,
    local: Vec<Local>,
    owners: BTreeMap<HoldId, OwnerId>,
}

impl QueueOrder {
    pub fn new(plan: &Plan) -> QueueOrder {
        let options = &plan.options;
        let calm = plan.profile == Profile::Calm
            || (plan.profile == Profile::Pushes && plan.hazards.spike == 0);
        let run = options.heartbeat() + options.local_run_time;
        QueueOrder {
            strict: calm && plan.polling.iter().all(|polling| !polling),
            silence: options.claim.as_nanos() as u64,
            run: run.as_nanos() as u64 + 4 * plan.latency.1 + 5 * MS,
            hand_off: options.local_run_grants > 0,
            locks: (0..plan.locks).map(|_| Vec::new()).collect(),
            local: Vec::new(),
            owners: BTreeMap::new(),
        }
    }

    /// A waiter was heard by the store.
    pub fn heard(
        &mut self,
        at: Instant,
        incarnation: usize,
        lock: usize,
        hold: HoldId,
        owner: Option<OwnerId>,
        state: &State,
    ) {
        if state.standing != Standing::Queued {
            // A grant must still find whose it is; `granted_at_store` removes the entry.
            if state.standing == Standing::Granted {
                return;
            }
            self.left(lock, hold);
            return;
        }
        let ticket = state.ticket;
        match self.locks[lock].iter_mut().find(|it| it.hold == hold) {
            Some(it) => {
                it.heard = at;
                it.ticket = ticket;
            }
            None => self.locks[lock].push(Queued {
                hold,
                incarnation,
                owner,
                ticket,
                since: at,
                heard: at,
            }),
        }
    }

    /// A waiter left the queue.
    pub fn left(&mut self, lock: usize, hold: HoldId) {
        self.locks[lock].retain(|it| it.hold != hold);
    }

    /// A waiter was granted.
    pub fn granted_at_store(&mut self, lock: usize, hold: HoldId) {
        self.left(lock, hold);
    }

    /// The queue is lost.
    pub fn disturbed(&mut self, lock: Option<usize>) {
        match lock {
            Some(lock) => self.locks[lock].clear(),
            None => self.locks.iter_mut().for_each(Vec::clear),
        }
    }

    /// A client died.
    pub fn died(&mut self, slot: usize, incarnation: usize) {
        for queue in &mut self.locks {
            queue.retain(|it| it.incarnation != incarnation);
        }
        self.local.retain(|it| it.slot != slot);
    }

    /// An acquire shows whose hold it wants.
    pub fn asked(&mut self, hold: HoldId, owner: &Option<OwnerId>) {
        if let Some(owner) = owner {
            self.owners.entry(hold).or_insert_with(|| owner.clone());
        }
    }

    /// The explicit owner of a hold.
    pub fn owner_of(&self, hold: HoldId) -> Option<OwnerId> {
        self.owners.get(&hold).cloned()
    }

    /// When a waiter was last heard.
    pub fn heard_at(&self, lock: usize, hold: HoldId) -> Option<Instant> {
        self.locks[lock].iter().find(|it| it.hold == hold).map(|it| it.heard)
    }

    /// The store made a grant: no live waiter came before.
    pub fn store_granted(&mut self, at: Instant, grant: &StoreGrant) -> Result<(), String> {
        if !self.strict {
            return Ok(());
        }
        let queue = &self.locks[grant.lock];
        let mine = queue.iter().find(|it| it.hold == grant.hold).map_or(u64::MAX, |it| it.ticket);
        let passed = queue.iter().find(|it| {
            it.hold != grant.hold
                && it.ticket < mine
                && at - it.heard < self.silence * 6 / 10
                && (it.owner.is_none() || it.owner != grant.owner)
        });
        match passed {
            Some(it) => Err(format!(
                "lock {}: {:?} (ticket {mine}) is granted before {:?} (ticket {}) of client {}",
                grant.lock, grant.hold, it.hold, it.ticket, it.incarnation
            )),
            None => Ok(()),
        }
    }

    /// A client handed the lock over to another of its callers.
    pub fn handed_locally(
        &self,
        at: Instant,
        lock: usize,
        incarnation: usize,
    ) -> Result<(), String> {
        if !self.hand_off {
            return Err(format!("lock {lock}: handed over locally, which is turned off"));
        }
        if !self.strict {
            return Ok(());
        }
        let starved = self.locks[lock].iter().find(|it| {
            it.incarnation != incarnation
                && at - it.heard < self.silence * 6 / 10
                && it.since + self.run < at
        });
        match starved {
            Some(it) => Err(format!(
                "lock {lock}: client {incarnation} hands over locally while {:?} of client {} \
                 waits since {}",
                it.hold, it.incarnation, it.since
            )),
            None => Ok(()),
        }
    }

    /// A caller begins to wait within its client.
    pub fn waits(&mut self, slot: usize, tag: Tag, who: Who, lock: usize, patience: Patience) {
        if matches!(who, Who::Local { .. }) {
            let attempt = patience == Patience::Try;
            self.local.push(Local { slot, tag, lock, attempt });
        }
    }

    /// A caller waits no longer.
    pub fn withdrawn(&mut self, slot: usize, tag: Tag) {
        self.local.retain(|it| it.slot != slot || it.tag != tag);
    }

    /// A caller was granted: nobody of its client came before.
    pub fn served(
        &mut self,
        slot: usize,
        tag: Tag,
        who: Who,
        lock: usize,
        reentry: bool,
    ) -> Result<(), String> {
        let Who::Local { .. } = who else { return Ok(()) };
        let first = self
            .local
            .iter()
            .take_while(|it| it.slot != slot || it.tag != tag)
            .find(|it| it.slot == slot && it.lock == lock && !it.attempt)
            .map(|it| it.tag);
        self.withdrawn(slot, tag);
        match first {
            Some(first) if !reentry => Err(format!(
                "c{slot} lock {lock}: {tag:x} is granted before {first:x}, which waited first"
            )),
            _ => Ok(()),
        }
    }
}
