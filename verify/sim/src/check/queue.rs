//! Promise 9: first come, first served, among clients and within one.

use std::time::Duration;

use fencelock_engine::reply::{Body, Failure, Reply, Standing, State};
use fencelock_engine::request::{Mode, Op};
use fencelock_engine::{HoldId, OwnerId, Patience};

use crate::check::{Slip, StoreGrant};
use crate::client::{Tag, Who};
use crate::clock::{Instant, MS};
use crate::ids::{HoldMap, HoldSet};
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
    /// For how long it may be silent, as it said when it was heard.
    silence: u64,
}

/// What a lock's holder knows from the store.
#[derive(Clone, Debug, Default)]
struct Contact {
    hold: Option<HoldId>,
    last: Instant,
    /// When it was first told that others wait.
    told: Option<Instant>,
    /// When it heard first, unasked, that somebody queued.
    wanted: Option<Instant>,
}

/// The tenure of a client's latest holder.
#[derive(Clone, Copy, Debug, Default)]
struct Tenure {
    incarnation: usize,
    /// When the client was granted the lock by the store.
    first: Instant,
    since: Instant,
    lasted: Instant,
}

/// A waiter within its client.
#[derive(Debug)]
struct Local {
    slot: usize,
    tag: Tag,
    lock: usize,
    mode: Mode,
    attempt: bool,
    came: Instant,
}

/// Who waits, and since when.
#[derive(Debug)]
pub(crate) struct QueueOrder {
    /// No fault of the run may disturb the order among clients.
    pub strict: bool,
    /// Some grants are seen only some time after they were made.
    unseen: bool,
    /// How long a grant by push lasts until it is answered.
    claim: u64,
    /// How old a contact with the store may be at a local hand-off.
    fresh: u64,
    /// How late a local hand-off may be after the store has said that others wait.
    run: u64,
    /// How long a local run may last, and how wrongly a client may read its clock.
    run_time: u64,
    tenures: Vec<Tenure>,
    hand_off: bool,
    locks: Vec<Vec<Queued>>,
    contacts: Vec<Contact>,
    /// Grants by push that their clients have not answered yet.
    claims: Vec<Option<(HoldId, Instant)>>,
    granted: HoldSet,
    local: Vec<Local>,
    owners: HoldMap<OwnerId>,
}

impl QueueOrder {
    pub fn new(plan: &Plan) -> QueueOrder {
        let options = &plan.options;
        let calm = plan.profile == Profile::Calm
            || (plan.profile == Profile::Pushes && plan.hazards.spike == 0);
        let slack = 4 * plan.latency.1 + 5 * MS;
        QueueOrder {
            // What a ZooKeeper client may do locally is looked at elsewhere.
            strict: calm
                && plan.polling.iter().all(|polling| !polling)
                && plan.zk.is_none()
                // Those are looked at in the store itself.
                && !plan.shares(),
            unseen: plan.polling.contains(&true),
            claim: options.claim.as_nanos() as u64,
            fresh: options.heartbeat().as_nanos() as u64 + slack,
            run: options.local_run_time.as_nanos() as u64 + slack,
            run_time: options.local_run_time.as_nanos() as u64 + 3 * MS,
            tenures: vec![Tenure::default(); plan.locks],
            hand_off: options.local_run_grants > 0,
            locks: (0..plan.locks).map(|_| Vec::new()).collect(),
            contacts: vec![Contact::default(); plan.locks],
            claims: vec![None; plan.locks],
            granted: HoldSet::default(),
            local: Vec::new(),
            owners: HoldMap::default(),
        }
    }

    /// A waiter was heard by the store, and announced for how long it may be silent. Nothing keeps it
    /// from keeping its word in a strict run.
    #[allow(clippy::too_many_arguments)]
    pub fn heard(
        &mut self,
        at: Instant,
        incarnation: usize,
        lock: usize,
        hold: HoldId,
        owner: Option<OwnerId>,
        state: &State,
        silence: Duration,
    ) -> Result<(), String> {
        if state.standing != Standing::Queued {
            // A grant must still find whose it is; `granted_at_store` removes the entry.
            if state.standing != Standing::Granted {
                self.left(lock, hold);
            }
            return Ok(());
        }
        let (ticket, silence) = (state.ticket, silence.as_nanos() as u64);
        let Some(it) = self.locks[lock].iter_mut().find(|it| it.hold == hold) else {
            let (since, heard) = (at, at);
            self.locks[lock].push(Queued {
                hold,
                incarnation,
                owner,
                ticket,
                since,
                heard,
                silence,
            });
            return Ok(());
        };
        let (span, announced) = (at - it.heard, it.silence);
        it.heard = at;
        it.ticket = ticket;
        it.silence = silence;
        if self.strict && span >= announced {
            return Err(format!(
                "lock {lock}: {hold:?} was silent for {span}, and had announced {announced}"
            ));
        }
        Ok(())
    }

    /// Whether the store has not seen this hold before.
    pub fn is_new(&mut self, lock: usize, hold: HoldId) -> bool {
        let known = self.locks[lock].iter().any(|it| it.hold == hold);
        !known && self.contacts[lock].hold != Some(hold) && !self.granted.contains(&hold)
    }

    /// Whether a grant to `hold` passes over the waiter who calls, and who came before: a caller
    /// counts as heard before anything is handed on.
    pub fn passes_caller(
        &self,
        lock: usize,
        hold: HoldId,
        op: &Op,
        result: &Result<Reply, Failure>,
    ) -> Result<(), String> {
        let (Op::Beat(beats), Ok(Reply { body: Body::Beat(states), .. })) = (op, result) else {
            return Ok(());
        };
        let queue = &self.locks[lock];
        let Some(mine) = queue.iter().find(|it| it.hold == hold) else { return Ok(()) };
        for (beat, state) in beats.iter().zip(states) {
            let waits = state.as_ref().is_ok_and(|state| state.standing == Standing::Queued);
            let caller = queue.iter().find(|it| it.hold == beat.hold);
            let alone = beats.iter().filter(|it| it.lock == beat.lock).count() == 1;
            if let Some(caller) = caller.filter(|it| waits && it.ticket < mine.ticket)
                && alone
                && caller.owner.is_none()
                && mine.owner.is_none()
            {
                return Err(format!(
                    "lock {lock}: {hold:?} is granted before {:?}, which calls and came first",
                    caller.hold
                ));
            }
        }
        Ok(())
    }

    /// Whether a waiter announced that it may rest for longer than a claim lasts: then a push that is
    /// lost costs it its turn.
    pub fn may_rest(&self, lock: usize, hold: HoldId) -> bool {
        let waiter = self.locks[lock].iter().find(|it| it.hold == hold);
        waiter.is_some_and(|it| it.silence > self.claim)
    }

    /// A grant was announced by a push, and lasts for its claim, within which who does not rest for so
    /// long shows itself.
    pub fn claimed_by_push(&mut self, at: Instant, lock: usize, hold: HoldId) {
        self.claims[lock] = Some((hold, at));
    }

    /// The store answered a holder.
    pub fn contact(&mut self, at: Instant, lock: usize, hold: HoldId, state: &State) {
        let it = &mut self.contacts[lock];
        if it.hold != Some(hold) {
            *it = Contact { hold: Some(hold), ..Contact::default() };
        }
        if self.claims[lock].is_some_and(|(claim, _)| claim == hold) {
            self.claims[lock] = None;
        }
        it.last = at;
        it.told = (state.others_waiting > 0).then_some(it.told.unwrap_or(at));
        it.wanted = it.wanted.filter(|_| state.others_waiting > 0);
    }

    /// A waiter left the queue.
    pub fn left(&mut self, lock: usize, hold: HoldId) {
        self.locks[lock].retain(|it| it.hold != hold);
        if self.claims[lock].is_some_and(|(claim, _)| claim == hold) {
            self.claims[lock] = None;
        }
    }

    /// A waiter was granted.
    pub fn granted_at_store(&mut self, lock: usize, hold: HoldId) {
        self.locks[lock].retain(|it| it.hold != hold);
        self.granted.insert(hold);
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
        self.claims.fill(None);
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
    pub fn store_granted(&mut self, at: Instant, grant: &StoreGrant) -> Result<(), Slip> {
        if self.contacts[grant.lock].hold != Some(grant.hold) {
            self.contacts[grant.lock] =
                Contact { hold: Some(grant.hold), last: at, ..Contact::default() };
        }
        let wasted = self.claims[grant.lock].take().filter(|(hold, _)| *hold != grant.hold);
        if let Some((hold, since)) = wasted
            && self.strict
        {
            return Err(Slip::Broken(format!(
                "lock {}: it was handed to {hold:?} at {since} and goes to {:?}, unclaimed",
                grant.lock, grant.hold
            )));
        }
        let queue = &self.locks[grant.lock];
        let place = |hold| queue.iter().find(|it| it.hold == hold).map(|it| it.ticket);
        // Whoever joins the caller's own grant has come no later than the caller.
        let mine = [Some(grant.hold), grant.joins].into_iter().flatten().filter_map(place).min();
        let mine = mine.unwrap_or(u64::MAX);
        let passed = queue.iter().find(|it| {
            it.hold != grant.hold
                && it.ticket < mine
                && at - it.heard < it.silence * 6 / 10
                && (it.owner.is_none() || it.owner != grant.owner)
                // It may have been granted with its owner's others, and have rested until its claim
                // was over: a poller's grant is seen when it polls.
                && !(self.unseen && it.owner.is_some() && it.silence > self.claim)
        });
        match passed {
            Some(it) if self.strict => Err(Slip::Broken(format!(
                "lock {}: {:?} (ticket {mine}) is granted before {:?} (ticket {}) of client {}",
                grant.lock, grant.hold, it.hold, it.ticket, it.incarnation
            ))),
            // A poller's grant is seen when it polls: its owner's other holds may be seen before.
            Some(_) if self.unseen && grant.owner.is_some() => Ok(()),
            Some(_) => Err(Slip::Excused),
            None => Ok(()),
        }
    }

    /// A holder's client hears that somebody queued.
    pub fn wanted(&mut self, at: Instant, lock: usize, hold: HoldId) {
        let it = &mut self.contacts[lock];
        if it.hold == Some(hold) {
            it.wanted.get_or_insert(at);
        }
    }

    /// A local holder's tenure begins.
    pub fn began(&mut self, at: Instant, lock: usize, incarnation: usize, local: bool) {
        let first = if local { self.tenures[lock].first } else { at };
        self.tenures[lock] = Tenure { incarnation, first, since: at, lasted: 0 };
    }

    /// One of the holds of a client's holder ended.
    pub fn ended(&mut self, at: Instant, lock: usize, incarnation: usize) {
        let it = &mut self.tenures[lock];
        if it.incarnation == incarnation {
            it.lasted = at - it.since;
        }
    }

    /// When a caller came, if it waits within its client.
    pub fn came(&self, slot: usize, tag: Tag) -> Option<Instant> {
        self.local.iter().find(|it| it.slot == slot && it.tag == tag).map(|it| it.came)
    }

    /// A client passed over somebody else who came before its caller, although the hold before had
    /// lasted too long for a local run.
    fn passed_over(&self, at: Instant, lock: usize, incarnation: usize, came: Instant) -> bool {
        let Some(known) = self.contacts[lock].wanted.filter(|known| *known < came) else {
            return false;
        };
        let other = |it: &&Queued| it.incarnation != incarnation && it.since < came;
        let tenure = &self.tenures[lock];
        self.locks[lock].iter().any(|it| other(&it))
            && tenure.incarnation == incarnation
            && (at - known.max(tenure.first)) + tenure.lasted > self.run_time + tenure.lasted / 50
    }

    /// A client handed the lock over to another of its callers, who came at `came`.
    pub fn handed_locally(
        &self,
        at: Instant,
        lock: usize,
        incarnation: usize,
        came: Option<Instant>,
    ) -> Result<(), Slip> {
        if !self.hand_off {
            let what = format!("lock {lock}: handed over locally, which is turned off");
            return Err(what.into());
        }
        let it = &self.contacts[lock];
        let (stale, late) =
            (it.last + self.fresh < at, it.told.is_some_and(|told| told + self.run < at));
        if !self.strict {
            return Ok(());
        }
        if let Some(came) = came
            && self.passed_over(at, lock, incarnation, came)
        {
            let what = format!(
                "lock {lock}: client {incarnation} hands over to a caller that came at {came}, after \
                 another client's, and its holds are long: {:?}",
                self.tenures[lock]
            );
            return Err(what.into());
        }
        if stale {
            let what = format!(
                "lock {lock}: client {incarnation} hands over locally and has not heard from the \
                 store since {}",
                it.last
            );
            return Err(what.into());
        }
        if late {
            let what = format!(
                "lock {lock}: client {incarnation} hands over locally, and knows since {:?} that \
                 others wait",
                it.told
            );
            return Err(what.into());
        }
        Ok(())
    }

    /// A caller begins to wait within its client.
    #[allow(clippy::too_many_arguments)]
    pub fn waits(
        &mut self,
        at: Instant,
        slot: usize,
        tag: Tag,
        who: Who,
        lock: usize,
        mode: Mode,
        patience: Patience,
    ) {
        if matches!(who, Who::Local { .. }) {
            let attempt = patience == Patience::Try;
            self.local.push(Local { slot, tag, lock, mode, attempt, came: at });
        }
    }

    /// A reader joined others of its client: nobody waits there to write.
    pub fn joined(&self, slot: usize, lock: usize) -> Result<(), String> {
        let writer = |it: &&Local| it.slot == slot && it.lock == lock && !it.attempt;
        match self.local.iter().find(writer) {
            Some(it) => Err(format!("c{slot} lock {lock}: a reader joins past {:x}", it.tag)),
            None => Ok(()),
        }
    }

    /// A caller waits no longer.
    pub fn withdrawn(&mut self, slot: usize, tag: Tag) {
        self.local.retain(|it| it.slot != slot || it.tag != tag);
    }

    /// A caller has permits. What its client handed on goes to who came first; what the store grants, to
    /// the first of those who want as many.
    pub fn permitted(
        &mut self,
        slot: usize,
        tag: Tag,
        lock: usize,
        handed_on: bool,
    ) -> Result<(), String> {
        let mine = |it: &Local| it.slot == slot && it.tag == tag;
        let Some(at) = self.local.iter().position(mine) else { return Ok(()) };
        let it = self.local.remove(at);
        let passed = self.local[..at].iter().find(|other| {
            let waits = other.slot == slot && other.lock == lock && !other.attempt;
            waits && (handed_on || other.mode == it.mode)
        });
        match passed.filter(|_| !it.attempt) {
            Some(first) => Err(format!(
                "c{slot} lock {lock}: {tag:x} has {:?} before {:x}, which waited first for {:?}",
                it.mode, first.tag, first.mode
            )),
            None => Ok(()),
        }
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
