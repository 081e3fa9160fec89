//! Taking permits, first in the queue for them.

use crate::id::HoldId;
use crate::reply::{Failure, Push, Refusal, RefusalKind, Standing, State};
use crate::request::Mode;
use crate::store::other_kind;
use crate::zookeeper::machine::{Aim, Machine, TOKENS};
use crate::zookeeper::name::{Kind, lease_of, lease_stem, split};
use crate::zookeeper::note::{Badge, encode_permits, parse_permits};
use crate::zookeeper::permits::{Seen, leases_path, look_at_permits};
use crate::zookeeper::place::{Ask, Before, Node, Part, Place, Step, Then, What};
use crate::zookeeper::stray::Stray;
use crate::zookeeper::wire::{NodeKind, Stat, ZkError, ZkOp, ZkReply, ZkWrite};

/// So often a try looks again whether who comes before has taken what it wants.
const LOOKS: u8 = 16;

impl Machine {
    /// Whether a try for permits is worth making a node for.
    pub(super) fn permits_peeked(&mut self, hold: HoldId) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        let missing = matches!(
            place.heard.iter().find(|(part, _)| *part == Part::List),
            Some((_, Err(ZkError::NoNode)))
        );
        let seen = match Seen::take(place) {
            Ok(seen) => seen,
            Err(error) => return self.acquire_failed(hold, &error),
        };
        let mode = place.mode;
        let Some(permits) = &mut place.permits else { return };
        if seen.is_lock {
            return self.end_acquire(hold, Err(Failure::Refused(other_kind(0, mode))));
        }
        match seen.of {
            Some(of) if of != permits.of && !seen.out.is_empty() && !permits.joined => {
                self.end_acquire(hold, Err(Failure::Refused(other_kind(of, mode))));
            }
            _ if !permits.fit(seen.out.len()) => {
                self.end_acquire(hold, Ok(State::bare(Standing::Contended)));
            }
            _ if missing => self.survey(hold),
            _ => self.make(hold, None),
        }
    }

    /// The node in the queue is there, and so is what is out.
    pub(super) fn permits_listed(&mut self, hold: HoldId) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        let seen = match Seen::take(place) {
            Ok(seen) => seen,
            Err(error) => return self.acquire_failed(hold, &error),
        };
        let Some(node) = place.node.clone() else { return self.seek(hold, None) };
        let parent = place.parent.clone();
        let leases = leases_path(&parent);
        let own: Vec<String> = seen
            .out
            .iter()
            .filter(|name| lease_of(name) == Some(Some(hold)))
            .map(|name| format!("{leases}/{name}"))
            .collect();
        self.clear_strays(&parent, &seen.queue);
        self.clear_leases(&leases, &seen.out);
        let name = split(&node.path).1;
        let Some(at) = seen.queue.iter().position(|one| one.name == name) else {
            // Taking them goes with the end of the node in the queue.
            return match own.is_empty() {
                true => self.node_gone(hold),
                false if planted!(ZkLeasesForgotten) => self.node_gone(hold),
                false => self.claim(hold, own),
            };
        };
        // Of an earlier session, and about to vanish.
        own.into_iter().for_each(|path| self.discard(path));
        let Some(place) = self.places.get_mut(&hold) else { return };
        place.others = u32::try_from(seen.queue.len() - 1).unwrap_or(u32::MAX);
        if place.is_leaving() {
            return self.leave(hold, Then::Released);
        }
        if seen.queue[at].is_worn() {
            return self.renew(hold, seen.queue.len() == 1);
        }
        let Some(news) = self.agrees(hold, &seen, at) else { return };
        let may_try = || self.places.get(&hold).is_some_and(|place| !place.may_wait());
        if at > 0 && !(planted!(ZkTryPasses) && may_try()) {
            return self.queue_for_permits(hold, &seen, at);
        }
        let Some(place) = self.places.get_mut(&hold) else { return };
        let Some(permits) = &place.permits else { return };
        if permits.fit(seen.out.len()) {
            self.take_permits(hold, &seen, news);
        } else if news {
            let mut parts = vec![ZkWrite::Check { path: node.path }];
            parts.extend(seen.unchanged(&parent));
            parts.push(self.count_of(hold));
            self.batch(hold, Step::Count, vec![(Part::Grant, ZkOp::Multi(parts))]);
        } else if !place.may_wait() {
            self.leave(hold, Then::Contended);
        } else {
            self.tell_queued(hold);
            self.await_permits(hold);
        }
    }

    /// Whether the hold may queue for the permits of this semaphore: `None` when it is refused, otherwise
    /// whether the number of permits is for it to set.
    fn agrees(&mut self, hold: HoldId, seen: &Seen, at: usize) -> Option<bool> {
        let place = self.places.get_mut(&hold)?;
        let (mode, free) = (place.mode, seen.out.is_empty());
        let permits = place.permits.as_mut()?;
        if seen.is_lock {
            self.end_permits(hold, Err(other_kind(0, mode)));
            return None;
        }
        let mut news = false;
        match seen.of {
            Some(of) if of == permits.of || permits.joined => {
                permits.of = of;
                permits.joined |= at == 0 || !free;
            }
            // While permits are out the number counts; whoever is first sets it when none is.
            Some(of) if !free => {
                self.end_permits(hold, Err(other_kind(of, mode)));
                return None;
            }
            _ if at == 0 => {
                permits.joined = true;
                news = true;
            }
            _ => {}
        }
        if permits.joined && permits.count > permits.of {
            let of = permits.of;
            self.end_permits(hold, Ok(Standing::Doomed { of }));
            return None;
        }
        Some(news)
    }

    /// Somebody comes before.
    fn queue_for_permits(&mut self, hold: HoldId, seen: &Seen, at: usize) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        let before = &seen.queue[at - 1];
        let path = format!("{}/{}", place.parent, before.name);
        place.waited = true;
        place.before = Some(Before { path, sequence: before.sequence });
        if place.may_wait() {
            self.tell_queued(hold);
            return self.watch_before(hold);
        }
        let Some(permits) = &mut place.permits else { return };
        // They may be about to take what they want, and leave enough.
        if permits.fit(seen.out.len() + at) && permits.looks < LOOKS {
            permits.looks += 1;
            let path = place.parent.clone();
            return self.list_after(hold, Some((Part::Sync, ZkOp::Sync { path })));
        }
        self.leave(hold, Then::Contended);
    }

    /// How many there are, as the semaphore's node is to say.
    fn count_of(&self, hold: HoldId) -> ZkWrite {
        let place = self.places.get(&hold);
        let of = place.and_then(|place| Some(place.permits.as_ref()?.of)).unwrap_or(0);
        let path = place.map(|place| split(&place.parent).0.to_owned()).unwrap_or_default();
        ZkWrite::Set { path, data: encode_permits(of) }
    }

    pub(super) fn counted(&mut self, hold: HoldId) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        match place.take(&Part::Grant) {
            Some(Ok(_) | Err(ZkError::At(0, _))) => self.list_place(hold),
            Some(Err(error)) if is_outdated(&error) => self.list_place(hold),
            Some(Err(error)) => self.acquire_failed(hold, &error),
            None => self.acquire_failed(hold, &ZkError::ConnectionLoss),
        }
    }

    /// First, and there is no room: the next that comes back, and another number, are heard of.
    fn await_permits(&mut self, hold: HoldId) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        place.waited = true;
        let (leases, base) = (leases_path(&place.parent), split(&place.parent).0.to_owned());
        self.watch(leases.clone(), hold);
        self.watch(base.clone(), hold);
        let parts = vec![
            (Part::Leases, ZkOp::Children { path: leases, watch: true }),
            (Part::Note, ZkOp::GetData { path: base, watch: true }),
        ];
        self.batch(hold, Step::Await, parts);
    }

    pub(super) fn awaiting(&mut self, hold: HoldId) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        let mut again = std::mem::take(&mut place.again);
        let (leases, note) = (place.take(&Part::Leases), place.take(&Part::Note));
        let Some(permits) = &place.permits else { return };
        again |= match leases {
            Some(Ok(ZkReply::Children { names, .. })) => permits.fit(names.len()),
            Some(Err(ZkError::NoNode)) => true,
            _ => false,
        };
        again |= match note {
            Some(Ok(ZkReply::Data { data, .. })) => parse_permits(&data) != Some(permits.of),
            _ => false,
        };
        place.step = Step::Queued;
        if again {
            self.list_place(hold);
        }
    }

    /// Takes all that the hold wants, and leaves the queue, in one step, if there are as many as was seen.
    fn take_permits(&mut self, hold: HoldId, seen: &Seen, news: bool) {
        let timeout = self.session.as_ref().map(|session| session.timeout).unwrap_or_default();
        let count_of = self.count_of(hold);
        let Some(place) = self.places.get(&hold) else { return };
        let Some(permits) = &place.permits else { return };
        let stem = lease_stem(&leases_path(&place.parent), hold);
        let node = place.node.as_ref().map(|node| node.path.clone());
        let mut parts: Vec<ZkWrite> =
            node.iter().map(|path| ZkWrite::Check { path: path.clone() }).collect();
        parts.extend(seen.unchanged(&place.parent));
        if news {
            parts.push(count_of);
        }
        for nth in 0..permits.count {
            // The first of them says whose they are.
            let data = match nth {
                0 => Badge::encode(&self.client, timeout),
                _ => Vec::new(),
            };
            let kind = NodeKind::EphemeralSequential;
            parts.push(ZkWrite::Create { path: stem.clone(), data, kind });
        }
        parts.extend(node.map(|path| ZkWrite::Delete { path }));
        self.batch(hold, Step::Grant, vec![(Part::Grant, ZkOp::Multi(parts))]);
    }

    pub(super) fn took_permits(&mut self, hold: HoldId) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        match place.take(&Part::Grant) {
            Some(Ok(ZkReply::Made(made))) => {
                let stat = made.first().map(|(_, stat)| *stat).unwrap_or_default();
                let leases = made.into_iter().map(|(path, _)| path).collect();
                match stat.czxid > 0 {
                    true => self.has_permits(hold, leases, stat),
                    false => self.claim(hold, leases),
                }
            }
            Some(Err(ZkError::At(0, error))) if *error == ZkError::NoNode => self.list_place(hold),
            Some(Err(error)) if is_outdated(&error) => self.list_place(hold),
            Some(Err(ZkError::At(_, error))) if *error == ZkError::NoNode => {
                // Nothing was out for so long that the server took the node above away.
                let path = leases_path(&place.parent);
                let kind = NodeKind::Container;
                let made = ZkOp::Create { path, data: Vec::new(), kind };
                let mut parts = vec![(Part::Container, made)];
                parts.extend(look_at_permits(&place.parent));
                self.batch(hold, Step::List, parts);
            }
            Some(Err(error)) => self.acquire_failed(hold, &error),
            _ => self.acquire_failed(hold, &ZkError::ConnectionLoss),
        }
    }

    /// The hold's leases were found, or made by a server that does not say when.
    fn claim(&mut self, hold: HoldId, leases: Vec<String>) {
        let Some(path) = leases.first().cloned() else { return };
        let look = ZkOp::Exists { path, watch: false };
        self.batch(hold, Step::Claim(leases), vec![(Part::Stat, look)]);
    }

    pub(super) fn claimed(&mut self, hold: HoldId, leases: Vec<String>) {
        let session = self.session.as_ref().map_or(0, |session| session.id);
        let Some(place) = self.places.get_mut(&hold) else { return };
        let count = place.permits.as_ref().map_or(0, |permits| permits.count as usize);
        match place.take(&Part::Stat) {
            Some(Ok(ZkReply::Exists(Some(stat))))
                if stat.ephemeral_owner == session && leases.len() == count =>
            {
                self.has_permits(hold, leases, stat);
            }
            // Of an earlier session, or somebody deleted some of them.
            Some(Ok(ZkReply::Exists(_))) => {
                leases.into_iter().for_each(|path| self.discard(path));
                self.node_gone(hold);
            }
            Some(Err(error)) => self.acquire_failed(hold, &error),
            _ => self.acquire_failed(hold, &ZkError::ConnectionLoss),
        }
    }

    fn has_permits(&mut self, hold: HoldId, leases: Vec<String>, stat: Stat) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        let Some(path) = leases.first().cloned() else { return };
        let token = u64::try_from(stat.czxid).unwrap_or(0).saturating_mul(TOKENS);
        place.node = Some(Node::new(path, 0, Kind::Lock, token));
        place.before = None;
        if let Some(permits) = &mut place.permits {
            permits.leases = leases;
        }
        let (base, leases) = (split(&place.parent).0.to_owned(), leases_path(&place.parent));
        self.unwatch(&base, hold);
        self.unwatch(&leases, hold);
        self.first(hold);
    }

    /// The hold waits for permits no more; its next contact is told why.
    fn end_permits(&mut self, hold: HoldId, ended: Result<Standing, Refusal>) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        let (node, before) = (place.node.take(), place.before.take());
        place.serial = place.serial.wrapping_add(1);
        place.pending = 0;
        place.step = Step::Unclear;
        let asked = matches!(place.ask, Some(Ask { what: What::Acquire { .. }, .. }));
        let lock = place.lock.clone();
        if let Some(permits) = &mut place.permits {
            permits.ended = Some(ended);
        }
        if let Some(before) = before {
            self.unwatch(&before.path, hold);
        }
        if let Some(node) = node {
            self.discard(node.path);
        }
        match asked {
            true => self.tell_ended(hold),
            false => self.push(Push::Changed { lock, hold }),
        }
    }

    /// Answers an acquire of a hold that waits no more.
    pub(super) fn tell_ended(&mut self, hold: HoldId) {
        let Some(place) = self.places.get(&hold) else { return };
        let Some(ended) = place.permits.as_ref().and_then(|permits| permits.ended.clone()) else {
            return;
        };
        self.end_acquire(hold, ended.map(State::bare).map_err(Failure::Refused));
    }

    /// A beat of a hold that waits for permits.
    pub(super) fn beat_waiter(&mut self, job: u64, index: usize, hold: HoldId) {
        let Some(place) = self.places.get(&hold) else { return };
        let (Some(node), false) = (&place.node, place.has_ended()) else { return };
        let Some(before) = place.before.clone().filter(|_| place.step == Step::Queued) else {
            if place.pending == 0 && matches!(place.step, Step::Queued | Step::List) {
                self.list_place(hold);
            }
            return;
        };
        let base = split(&place.parent).0.to_owned();
        let calls = [
            (ZkOp::Exists { path: node.path.clone(), watch: false }, true),
            (ZkOp::Exists { path: before.path, watch: false }, false),
            (ZkOp::GetData { path: base, watch: false }, false),
        ];
        for (op, own) in calls {
            if let Some(job) = self.jobs.get_mut(&job) {
                job.pending += 1;
            }
            self.call(op, Aim::Beat { job, index, own });
        }
    }

    /// How many permits there are now: more may be wanted than that.
    pub(super) fn beat_saw_count(&mut self, hold: HoldId, data: &[u8]) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        let (held, Some(permits)) = (place.held, &mut place.permits) else { return };
        let Some(of) = parse_permits(data).filter(|_| permits.joined && !held) else { return };
        permits.of = of;
        if permits.count > of && permits.ended.is_none() {
            self.end_permits(hold, Ok(Standing::Doomed { of }));
        }
    }

    pub(super) fn waits_for_permits(&self, hold: HoldId) -> bool {
        self.places.get(&hold).is_some_and(|place| place.permits.is_some() && !place.held)
    }

    pub(super) fn unwatch_permits(&mut self, place: &Place, hold: HoldId) {
        let Some(permits) = &place.permits else { return };
        self.unwatch(split(&place.parent).0, hold);
        self.unwatch(&leases_path(&place.parent), hold);
        for lease in &permits.leases {
            self.unwatch(lease, hold);
        }
    }

    /// What a hold took goes back, however it ended.
    pub(super) fn drop_leases(&mut self, place: &Place) {
        let leases = place.permits.as_ref().map(|permits| permits.leases.clone());
        leases.unwrap_or_default().into_iter().for_each(|path| self.discard(path));
    }

    /// The release that went out with another acquire found the nodes gone.
    pub(super) fn give_up_failed(&mut self, hold: HoldId) {
        let Some(place) = self.places.get(&hold).cloned() else { return };
        if place.permits.is_none() {
            return;
        }
        self.drop_leases(&place);
        if place.held {
            return;
        }
        // What was on its way may have been taken just before.
        let timeout = self.session.as_ref().map(|session| session.timeout).unwrap_or_default();
        let (parent, until) = (leases_path(&place.parent), self.now + timeout * 3);
        self.strays.insert(hold, Stray { parent: parent.clone(), until });
        self.call(ZkOp::Children { path: parent, watch: false }, Aim::Stray(hold));
    }

    /// Gives back what carries one of our ids and is no hold's.
    pub(super) fn clear_leases(&mut self, leases: &str, names: &[String]) {
        for name in names {
            let Some(Some(hold)) = lease_of(name) else { continue };
            let path = format!("{leases}/{name}");
            if self.strays.contains_key(&hold)
                && !self.places.contains_key(&hold)
                && !self.litter.contains(&path)
            {
                self.discard(path);
            }
        }
    }

    /// A semaphore was here: what is left of it goes, unless somebody uses it.
    pub(super) fn clear_semaphore(&mut self, hold: HoldId) {
        let Some(place) = self.places.get(&hold) else { return };
        let path = &place.parent;
        let parts = vec![
            (Part::Note, ZkOp::GetData { path: path.clone(), watch: false }),
            (Part::Leases, ZkOp::Delete { path: format!("{path}/{}", super::name::LEASES) }),
            (Part::List, ZkOp::Delete { path: format!("{path}/{}", super::name::LOCKS) }),
        ];
        self.batch(hold, Step::Clear, parts);
    }

    pub(super) fn cleared(&mut self, hold: HoldId) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        let of = match place.take(&Part::Note) {
            Some(Ok(ZkReply::Data { data, .. })) => parse_permits(&data),
            _ => None,
        };
        for part in [Part::Leases, Part::List] {
            match place.take(&part) {
                Some(Ok(_) | Err(ZkError::NoNode)) => {}
                Some(Err(ZkError::NotEmpty)) => {
                    let refusal = match of {
                        Some(of) => other_kind(of, Mode::Exclusive),
                        None => is_curators(&place.parent),
                    };
                    return self.leave_refused(hold, &Failure::Refused(refusal));
                }
                Some(Err(error)) => return self.acquire_failed(hold, &error),
                None => return self.acquire_failed(hold, &ZkError::ConnectionLoss),
            }
        }
        self.list_place(hold);
    }
}

/// Somebody set another number of permits meanwhile.
fn is_outdated(error: &ZkError) -> bool {
    matches!(error, ZkError::At(_, inner) if **inner == ZkError::BadVersion)
}

/// Whoever uses the semaphore does not say how many permits it has.
fn is_curators(path: &str) -> Refusal {
    let message = format!(
        "Curator's InterProcessSemaphoreV2 is in use at {path}: choose another name for the lock"
    );
    Refusal { kind: RefusalKind::Misconfigured, message }
}
