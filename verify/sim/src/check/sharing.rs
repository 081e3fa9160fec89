//! Locks that several hold together, and semaphores: what the store has, looked at before and after
//! each request.

use std::collections::{BTreeMap, BTreeSet};

use fencelock_engine::options::TOKEN_BLOCK;
use fencelock_engine::reply::{
    Abandoned, Body, Failure, HoldInfo, LockInfo, Push, RefusalKind, Reply, Standing, State,
    WaiterInfo,
};
use fencelock_engine::request::{Mode, Op};
use fencelock_engine::{HoldId, Name, OwnerId};

use crate::check::StoreGrant;
use crate::plan::Plan;
use crate::store::incarnation_of;

/// How many a contact lets in beside its caller.
const BATCH: usize = 64;
/// How far tokens may lie ahead of the highest reading of the store's clock: a block, one or two more
/// where the counter was lost, and what is granted within one instant. What was left of the blocks of
/// those who were lost, or ended by an operator, comes on top while the clock is behind.
const AHEAD: u64 = 8 * TOKEN_BLOCK;

/// A promise that is not kept, and how.
pub(crate) type Wrong = (&'static str, String);

/// One request, as the store saw it.
pub(crate) struct Contact<'a> {
    pub clock: u64,
    pub op: &'a Op,
    pub result: &'a Result<Reply, Failure>,
    pub sent: &'a [(usize, Push)],
    /// Another program's key stands in the lock's place.
    pub foreign: bool,
}

#[derive(Debug, Default)]
struct Lock {
    /// When each hold ends, as the store said last; by its clock.
    ends: BTreeMap<HoldId, u64>,
    /// Nothing has happened to the lock but requests since then.
    known: bool,
    /// The tickets that were given were lost, and the clock was set back: the next ones lie below.
    unordered: bool,
    /// They were lost in this run.
    lost: bool,
    /// The explicit owners that have shared it.
    shared: BTreeSet<OwnerId>,
    /// The first token of the tenure that was seen last, if it was one's who had the lock for itself.
    alone: Option<u64>,
    /// How many tokens were left out, with the blocks of such tenures that nobody released, since
    /// tokens lie ahead of the clock.
    left_out: u64,
}

/// What the store has.
#[derive(Debug)]
pub(crate) struct Sharing {
    /// Several may hold a name together in this run.
    pub on: bool,
    locks: Vec<Lock>,
    /// The store's clock has read so much at the most.
    most: u64,
}

impl Sharing {
    pub fn new(plan: &Plan) -> Sharing {
        let locks = (0..plan.locks).map(|_| Lock::default()).collect();
        Sharing { on: plan.shares(), locks, most: 0 }
    }

    /// The store has lost something, or went back to what it had before.
    pub fn forgets(&mut self, lock: Option<usize>, went_back: bool) {
        for (index, it) in self.locks.iter_mut().enumerate() {
            if lock.is_none_or(|lock| lock == index) {
                (it.known, it.lost, it.alone) = (false, true, None);
                it.unordered |= went_back;
            }
        }
    }

    /// An explicit owner asks to share the lock with others.
    pub fn shares(&mut self, lock: usize, owner: OwnerId) {
        self.locks[lock].shared.insert(owner);
    }

    /// The store's clock was set back.
    pub fn goes_back(&mut self) {
        for it in &mut self.locks {
            it.unordered |= it.lost;
        }
    }

    /// Whether an explicit owner has shared the lock with others.
    pub fn has_shared(&self, lock: usize, owner: &OwnerId) -> bool {
        self.locks[lock].shared.contains(owner)
    }

    /// Looks at a lock before and after a request; gives the grants that it led to, in their order.
    pub fn contact(
        &mut self,
        lock: usize,
        name: &Name,
        contact: &Contact<'_>,
        before: Option<&LockInfo>,
        after: Option<&LockInfo>,
    ) -> Result<Vec<StoreGrant>, Wrong> {
        let named = Named::of(contact, name);
        self.most = self.most.max(contact.clock);
        self.lasts(lock, contact.clock, before)?;
        refused(contact, &named, before)?;
        let Some(after) = after else {
            self.note(lock, contact.clock, None);
            return Ok(Vec::new());
        };
        together(after)?;
        resized(contact, name, after)?;
        untouched(contact, &named, before, after)?;
        self.counts(lock, before, after)?;
        let new = granted(before, after);
        if !self.locks[lock].unordered {
            in_order(contact, &named, before, after, &new)?;
        }
        if let Some(of) = permits_of(after)
            && !new.is_empty()
            && in_use(after) > u64::from(of)
        {
            let what = format!("{name}: {} of {of} permits are out, with {new:?}", in_use(after));
            return Err(("exclusion", what));
        }
        if named.settled {
            doomed(contact, &named, before)?;
            alone(&named, before, after)?;
            served(after, &new)?;
        }
        for it in after.holds.iter().filter(|it| it.mode == Mode::Shared) {
            let owner = it.owner.as_deref().and_then(|owner| OwnerId::new(owner).ok());
            self.locks[lock].shared.extend(owner);
        }
        // Who only looks sees ends that a clock that went back draws in, and draws in none.
        if named.settled || !new.is_empty() {
            self.note(lock, contact.clock, Some(after));
        }
        Ok(new.into_iter().filter_map(|it| grant(lock, it, contact)).collect())
    }

    /// Tokens outrun the clock only by what nobody can have used.
    fn counts(
        &mut self,
        lock: usize,
        before: Option<&LockInfo>,
        after: &LockInfo,
    ) -> Result<(), Wrong> {
        let (it, most) = (&mut self.locks[lock], self.most);
        if after.last_token <= most {
            it.left_out = 0;
        }
        // A release gives back what was not used of its block: who comes next begins within it.
        if let (Some(first), Some(before)) = (it.alone, before)
            && after.token > before.last_token
        {
            it.left_out += before.last_token.saturating_sub(first);
        }
        if let Some(first) = after.holds.first() {
            it.alone = (first.mode == Mode::Exclusive).then_some(after.token);
        }
        if after.last_token > most + AHEAD + it.left_out {
            let ahead = after.last_token - most;
            let what =
                format!("{}: {} is reserved, {ahead} µs ahead", after.name, after.last_token);
            return Err(("token order", what));
        }
        Ok(())
    }

    /// What a store has ends when it said it would, whatever becomes of the rest, unless its holder is
    /// heard of.
    fn lasts(&self, lock: usize, clock: u64, before: Option<&LockInfo>) -> Result<(), Wrong> {
        let it = &self.locks[lock];
        let Some(before) = before.filter(|_| it.known) else { return Ok(()) };
        for hold in &before.holds {
            let end = clock + hold.expires_in.as_micros() as u64;
            if it.ends.get(&hold.hold).is_none_or(|known| end > *known) {
                let known = it.ends.get(&hold.hold);
                let what =
                    format!("{}: {:?} lasts to {end}, not {known:?}", before.name, hold.hold);
                return Err(("lease arithmetic", what));
            }
        }
        Ok(())
    }

    fn note(&mut self, lock: usize, clock: u64, after: Option<&LockInfo>) {
        let it = &mut self.locks[lock];
        it.known = true;
        it.ends.clear();
        for hold in after.into_iter().flat_map(|info| &info.holds) {
            it.ends.insert(hold.hold, clock + hold.expires_in.as_micros() as u64);
        }
    }
}

/// What a request names of a lock.
struct Named {
    holds: Vec<HoldId>,
    /// Tokens up to this one are broken.
    broken: Option<u64>,
    /// The hold that it converts: within the lock, past whoever waits.
    converts: Option<HoldId>,
    /// It asks for a hold at an earlier place in the queue.
    returns: bool,
    /// It was carried out, so that the lock was handed on.
    settled: bool,
}

impl Named {
    fn of(contact: &Contact<'_>, name: &Name) -> Named {
        let mut named = Named {
            holds: Vec::new(),
            broken: None,
            converts: None,
            returns: false,
            settled: false,
        };
        let body = contact.result.as_ref().ok().map(|reply| &reply.body);
        match contact.op {
            Op::Acquire(ask) if ask.lock == *name => {
                named.holds.push(ask.hold);
                named.holds.extend(ask.after.as_ref().map(|release| release.hold));
                named.returns = ask.wait.is_some_and(|wait| wait.ticket > 0);
                named.settled = matches!(body, Some(Body::Acquire(state))
                    if !matches!(state.standing, Standing::Late | Standing::Released));
            }
            Op::Beat(beats) => {
                for (at, beat) in beats.iter().enumerate().filter(|(_, it)| it.lock == *name) {
                    named.holds.push(beat.hold);
                    named.settled |= matches!(body, Some(Body::Beat(states)) if states[at].is_ok());
                }
            }
            Op::Release(release) if release.lock == *name => {
                named.holds.push(release.hold);
                named.settled = body.is_some();
            }
            Op::Convert(ask) if ask.lock == *name => {
                named.holds.push(ask.hold);
                named.converts = Some(ask.hold);
                named.settled = matches!(body, Some(Body::Convert(state))
                    if !matches!(state.standing, Standing::Late | Standing::Released));
            }
            Op::Resize(ask) if ask.lock == *name => {
                named.settled = matches!(body, Some(Body::Resize(true)));
            }
            Op::Break(what) if what.lock == *name => {
                named.broken = Some(what.token);
                named.settled = body.is_some();
            }
            _ => {}
        }
        named
    }
}

/// Who holds a lock together may do so.
fn together(info: &LockInfo) -> Result<(), Wrong> {
    let wrong = |what: &str| {
        let modes: Vec<_> = info.holds.iter().map(|it| (it.mode, it.token, &it.owner)).collect();
        Err(("exclusion", format!("{}: {what}: {modes:?}", info.name)))
    };
    for (at, one) in info.holds.iter().enumerate() {
        if one.expires_in > one.lease {
            let (hold, left) = (one.hold, one.expires_in);
            let what = format!("{}: {hold:?} has {left:?} left of {:?}", info.name, one.lease);
            return Err(("lease arithmetic", what));
        }
        for other in &info.holds[..at] {
            let own = one.owner.is_some() && one.owner == other.owner;
            match (one.mode, other.mode) {
                (Mode::Shared, Mode::Shared) => {}
                (Mode::Permits { of, .. }, Mode::Permits { of: other, .. }) if of == other => {}
                (Mode::Permits { .. }, _) | (_, Mode::Permits { .. }) => {
                    return wrong("two kinds, or two numbers of permits");
                }
                _ if own => {}
                _ => return wrong("somebody beside an exclusive hold"),
            }
        }
    }
    let kind = info.holds.first().map(|it| it.mode);
    let live = info.waiters.iter().filter(|it| !it.silent).map(|it| it.mode);
    let mut all = kind.into_iter().chain(live);
    let Some(first) = all.next() else { return Ok(()) };
    match all.find(|other| !is_of_kind(first, *other)) {
        Some(other) => wrong(&format!("{first:?} and {other:?} hold or wait")),
        None => Ok(()),
    }
}

/// How many permits a name has, where those who hold it have some.
pub(crate) fn permits_of(info: &LockInfo) -> Option<u32> {
    match info.holds.first()?.mode {
        Mode::Permits { of, .. } => Some(of),
        Mode::Exclusive | Mode::Shared => None,
    }
}

/// How many permits are out.
fn in_use(info: &LockInfo) -> u64 {
    info.holds.iter().filter_map(|it| it.mode.permits()).map(u64::from).sum()
}

/// From a resize on there are as many permits as it says.
fn resized(contact: &Contact<'_>, name: &Name, after: &LockInfo) -> Result<(), Wrong> {
    let (Op::Resize(ask), Ok(Reply { body: Body::Resize(true), .. })) =
        (contact.op, contact.result)
    else {
        return Ok(());
    };
    match permits_of(after).filter(|of| ask.lock == *name && *of != ask.of) {
        Some(of) => Err(("exclusion", format!("{name}: resized to {}, and has {of}", ask.of))),
        None => Ok(()),
    }
}

/// Whoever waits for more permits than there are is told so as soon as it is heard, and nobody else.
fn doomed(contact: &Contact<'_>, named: &Named, before: Option<&LockInfo>) -> Result<(), Wrong> {
    let states: Vec<Option<&State>> = match contact.result.as_ref().map(|reply| &reply.body) {
        Ok(Body::Acquire(state)) => vec![Some(state)],
        Ok(Body::Beat(states)) => states.iter().map(|state| state.as_ref().ok()).collect(),
        _ => return Ok(()),
    };
    let asked: Vec<HoldId> = match contact.op {
        Op::Acquire(ask) => vec![ask.hold],
        Op::Beat(beats) => beats.iter().map(|beat| beat.hold).collect(),
        _ => return Ok(()),
    };
    for (at, (hold, state)) in asked.into_iter().zip(states).enumerate() {
        // A repeat that came too late changes nothing.
        let heard = |it: &&State| !matches!(it.standing, Standing::Late | Standing::Released);
        let state = state.filter(|_| named.holds.contains(&hold)).filter(heard);
        let Some(state) = state else { continue };
        let waited = before.iter().flat_map(|info| &info.waiters).find(|it| it.hold == hold);
        // Another hold, heard before it in the same request, swept away who was long silent.
        let silent = waited.is_some_and(|it| it.silent);
        if at > 0 && silent && state.standing == Standing::Gone {
            continue;
        }
        let least = waited.and_then(|it| match it.mode {
            Mode::Permits { count, of } if count > of => Some(of),
            _ => None,
        });
        let told = match state.standing {
            Standing::Doomed { of } => Some(of),
            _ => None,
        };
        if told != least {
            let what = format!("{hold:?} ({waited:?}) is told {:?}", state.standing);
            return Err(("errors", what));
        }
    }
    Ok(())
}

/// Whether two may ask for the same name.
fn is_of_kind(one: Mode, other: Mode) -> bool {
    match (one, other) {
        (Mode::Permits { of, .. }, Mode::Permits { of: other, .. }) => of == other,
        (Mode::Permits { .. }, _) | (_, Mode::Permits { .. }) => false,
        _ => true,
    }
}

/// Whoever is told that an operator must look asked for another kind than those who are there.
fn refused(contact: &Contact<'_>, named: &Named, before: Option<&LockInfo>) -> Result<(), Wrong> {
    let (Op::Acquire(ask), Err(Failure::Refused(refusal))) = (contact.op, contact.result) else {
        return Ok(());
    };
    let kinds =
        matches!(refusal.kind, RefusalKind::Misconfigured | RefusalKind::OtherPermits { .. });
    if !kinds || contact.foreign || named.holds.is_empty() {
        return Ok(());
    }
    let holds = before.iter().flat_map(|info| &info.holds).map(|it| it.mode);
    let waiters = before.iter().flat_map(|info| &info.waiters).map(|it| it.mode);
    // Of another number it is told which: whoever follows that asks again with it.
    let told = |other: Mode| match (refusal.kind, other) {
        (RefusalKind::OtherPermits { of: told }, Mode::Permits { of, .. }) => told == of,
        (RefusalKind::OtherPermits { .. }, _) => false,
        _ => true,
    };
    match holds.chain(waiters).find(|other| !is_of_kind(ask.mode, *other) && told(*other)) {
        Some(_) => Ok(()),
        None => Err(("errors", format!("{}: {:?} is refused: {refusal:?}", ask.lock, ask.hold))),
    }
}

/// A request touches the holds that it names, and no other.
fn untouched(
    contact: &Contact<'_>,
    named: &Named,
    before: Option<&LockInfo>,
    after: &LockInfo,
) -> Result<(), Wrong> {
    for hold in before.iter().flat_map(|info| &info.holds) {
        let broken = named.broken.is_some_and(|token| hold.token <= token);
        if named.holds.contains(&hold.hold) || broken {
            continue;
        }
        let what = match after.holds.iter().find(|it| it.hold == hold.hold) {
            None => "ended",
            Some(it) if it.expires_in != hold.expires_in => "was renewed, or cut short",
            Some(_) => continue,
        };
        let what = format!("{}: {:?} {what} by {:?}", after.name, hold.hold, contact.op);
        return Err(("only the holder releases", what));
    }
    Ok(())
}

/// The holds that are new, or have a new token, in the order of their tokens.
fn granted<'a>(before: Option<&LockInfo>, after: &'a LockInfo) -> Vec<&'a HoldInfo> {
    let same = |one: &HoldInfo, it: &HoldInfo| one.hold == it.hold && one.token == it.token;
    let held = |it: &HoldInfo| before.iter().flat_map(|info| &info.holds).any(|one| same(one, it));
    let mut new: Vec<_> = after.holds.iter().filter(|it| !held(it)).collect();
    new.sort_by_key(|it| it.token);
    new
}

/// Nobody passes a live waiter who came before, but an owner whose other holds are there.
fn in_order(
    contact: &Contact<'_>,
    named: &Named,
    before: Option<&LockInfo>,
    after: &LockInfo,
    new: &[&HoldInfo],
) -> Result<(), Wrong> {
    let none = Vec::new();
    let queue = before.map_or(&none, |info| &info.waiters);
    let live: Vec<&WaiterInfo> = queue.iter().filter(|it| !it.silent).collect();
    let still = |hold: HoldId| after.waiters.iter().any(|it| it.hold == hold && !it.silent);
    for hold in new {
        let mine = named.holds.contains(&hold.hold);
        let own = |it: &HoldInfo| it.hold != hold.hold && it.owner == hold.owner;
        let parked = queue.iter().any(|it| it.hold == hold.hold && it.silent);
        let joins = hold.owner.is_some() && after.holds.iter().any(own);
        if joins || parked || mine && (named.returns || named.converts.is_some()) {
            continue;
        }
        let place = live.iter().position(|it| it.hold == hold.hold).unwrap_or(live.len());
        let passed = live[..place].iter().find(|it| still(it.hold));
        if let Some(passed) = passed {
            let what = format!(
                "{}: {:?} ({:?}) is granted before {:?} ({:?}), which came first: {:?}",
                after.name, hold.hold, hold.mode, passed.hold, passed.mode, contact.op
            );
            return Err(("queue order", what));
        }
    }
    Ok(())
}

/// An owner that has the lock already is not left in the queue by its own request: it joins its other
/// holds, or is told that it would wait for them.
fn alone(named: &Named, before: Option<&LockInfo>, after: &LockInfo) -> Result<(), Wrong> {
    let waits = |it: &&WaiterInfo| named.holds.contains(&it.hold) && it.owner.is_some();
    for waiter in after.waiters.iter().filter(waits) {
        let own = |it: &&HoldInfo| it.owner == waiter.owner;
        let had = before.iter().flat_map(|info| &info.holds).filter(own);
        let has = had.clone().find(|it| after.holds.iter().any(|has| has.hold == it.hold));
        if let Some(has) = has {
            let (hold, mode, has) = (waiter.hold, waiter.mode, has.mode);
            let what = format!("{}: {hold:?} ({mode:?}) waits, its owner has {has:?}", after.name);
            return Err(("owners", what));
        }
    }
    Ok(())
}

/// Nobody is left waiting who could hold: the first of the queue, or one whose owner has the lock.
fn served(after: &LockInfo, new: &[&HoldInfo]) -> Result<(), Wrong> {
    if new.len() >= BATCH {
        return Ok(());
    }
    let mut live = after.waiters.iter().filter(|it| !it.silent);
    let own = |it: &&WaiterInfo| it.owner.is_some() && it.owner == after.owner;
    if let Some(own) = live.clone().find(own) {
        let what = format!("{}: {:?} waits, and its owner has the lock", after.name, own.hold);
        return Err(("owners", what));
    }
    let Some(first) = live.next() else { return Ok(()) };
    let exclusive = after.holds.iter().any(|it| it.mode == Mode::Exclusive);
    if let Mode::Permits { count, of } = first.mode
        && count > of
    {
        let what = format!("{}: {:?} waits for {count} of {of} permits", after.name, first.hold);
        return Err(("queue order", what));
    }
    let fits = match first.mode {
        Mode::Exclusive => after.holds.is_empty(),
        Mode::Shared => !exclusive,
        Mode::Permits { count, of } => in_use(after) + u64::from(count) <= u64::from(of),
    };
    if fits {
        let (hold, mode) = (first.hold, first.mode);
        let what = format!("{}: {hold:?} ({mode:?}) is first, fits, and waits", after.name);
        return Err(("queue order", what));
    }
    Ok(())
}

/// A new hold as a grant, with what its client is told.
fn grant(lock: usize, hold: &HoldInfo, contact: &Contact<'_>) -> Option<StoreGrant> {
    let pushed = contact.sent.iter().find_map(|(_, push)| match push {
        Push::Granted { hold: to, abandoned, .. } if *to == hold.hold => Some(*abandoned),
        _ => None,
    });
    let replied = || -> Option<Abandoned> {
        match (contact.op, &contact.result.as_ref().ok()?.body) {
            (Op::Acquire(ask), Body::Acquire(state)) if ask.hold == hold.hold => {
                Some(state.abandoned)
            }
            (Op::Beat(beats), Body::Beat(states)) => {
                let at = beats.iter().position(|beat| beat.hold == hold.hold)?;
                states[at].as_ref().ok().map(|state| state.abandoned)
            }
            (Op::Convert(ask), Body::Convert(state)) if ask.hold == hold.hold => {
                Some(state.abandoned)
            }
            _ => None,
        }
    };
    Some(StoreGrant {
        incarnation: incarnation_of(&hold.client)?,
        lock,
        hold: hold.hold,
        owner: hold.owner.as_deref().and_then(|owner| OwnerId::new(owner).ok()),
        token: hold.token,
        mode: hold.mode,
        abandoned: pushed.or_else(replied),
        asked: None,
        joins: None,
    })
}
