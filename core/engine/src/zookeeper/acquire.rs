//! Taking a lock: a node is made, and whoever comes before it is waited for.

use crate::id::HoldId;
use crate::reply::{Body, Failure, Push, Standing, State};
use crate::request::{Acquire, Mode, RequestId};
use crate::zookeeper::lasting::LASTING;
use crate::zookeeper::machine::{Aim, Due, Machine, TOKENS};
use crate::zookeeper::name::{Participant, blocker, holders, node_stem, queue, split};
use crate::zookeeper::note::{Badge, Note};
use crate::zookeeper::owner::{Tie, cannot_travel};
use crate::zookeeper::permits::{check_permits, is_semaphores, look_at_permits, queue_path};
use crate::zookeeper::place::{Ask, Before, Node, Part, Place, Step, Then, What};
use crate::zookeeper::refusal::{failure, misplaced};
use crate::zookeeper::verdict::{View, verdict};
use crate::zookeeper::wire::{NodeKind, Stat, ZkError, ZkOp, ZkReply};

impl Machine {
    pub(super) fn acquire(&mut self, request: RequestId, acquire: Acquire) {
        if acquire.mode != Mode::Exclusive && self.is_simple() {
            return self.fail(request, Failure::Refused(crate::store::mode_unsupported()));
        }
        if let Err(refusal) = check_permits(acquire.mode) {
            return self.fail(request, Failure::Refused(refusal));
        }
        let Some(path) = self.path(request, &acquire.lock) else { return };
        let path = queue_path(path, acquire.mode);
        let (hold, at) = (acquire.hold, self.now);
        let ask = Ask { request, at, what: What::Acquire { wait: acquire.wait.is_some() } };
        let (mode, read_write) = (acquire.mode, acquire.read_write);
        let place = self
            .places
            .entry(hold)
            .or_insert_with(|| Place::new(acquire.lock.clone(), path, mode, read_write));
        let known = place.serial > 0;
        place.ask = Some(ask);
        place.founded = 0;
        place.doomed = false;
        place.owner.clone_from(&acquire.owner);
        if place.permits.as_ref().is_some_and(|permits| permits.ended.is_some()) {
            return self.tell_ended(hold);
        }
        if place.owner.is_some() && !place.held && place.node.is_none() {
            match self.tie(hold) {
                Tie::Joins if self.join(hold, acquire.attach) => return,
                Tie::Deadlock => {
                    return self.end_acquire(hold, Ok(State::bare(Standing::Deadlock)));
                }
                _ => {}
            }
            if acquire.attach.is_some() {
                return self.end_acquire(hold, Err(cannot_travel()));
            }
        }
        if self.is_simple() {
            return self.acquire_simple(hold, acquire.after);
        }
        let first = acquire.after.and_then(|release| self.give_up(&release));
        let Some(place) = self.places.get(&hold) else { return };
        if place.held {
            return self.tell_granted(hold);
        }
        match (known, place.node.is_some(), place.step.clone()) {
            (false, ..) if acquire.wait.is_none() => self.peek(hold, first),
            (false, ..) => self.make(hold, first),
            // An earlier create was never answered.
            (true, false, _) => self.seek(hold, first),
            (true, true, Step::Queued | Step::Watch) if first.is_none() => self.tell_queued(hold),
            (true, true, _) => self.list_after(hold, first),
        }
    }

    /// Whether the lock is free; a try that finds it taken has made no node.
    fn peek(&mut self, hold: HoldId, first: Option<(Part, ZkOp)>) {
        let Some(place) = self.places.get(&hold) else { return };
        let path = place.parent.clone();
        let mut parts: Vec<_> = first.into_iter().collect();
        parts.push((Part::Sync, ZkOp::Sync { path: path.clone() }));
        if place.permits.is_some() {
            parts.extend(look_at_permits(&path));
        } else {
            parts.push((Part::List, ZkOp::Children { path, watch: false }));
        }
        self.batch(hold, Step::Peek, parts);
    }

    fn peeked(&mut self, hold: HoldId) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        if place.permits.is_some() {
            return self.permits_peeked(hold);
        }
        match place.take(&Part::List) {
            Some(Ok(ZkReply::Children { names, .. })) => {
                let parent = place.parent.clone();
                let (all, reads) = (queue(&names).0, place.kind.reads());
                if names.iter().all(|name| is_semaphores(name))
                    || !all.is_empty() && reads && holders(&all) == all.len() && all[0].kind.reads()
                {
                    self.make(hold, None);
                } else if all.is_empty() {
                    self.end_acquire(hold, Err(nested(&parent, &names[0])));
                } else {
                    self.end_acquire(hold, Ok(State::bare(Standing::Contended)));
                }
            }
            Some(Err(ZkError::NoNode)) => self.survey(hold),
            Some(Err(error)) => self.acquire_failed(hold, &error),
            _ => self.acquire_failed(hold, &ZkError::NotSent),
        }
    }

    /// Makes the node and looks where it stands, in one round trip; only makes it where its number
    /// may be enough to know.
    pub(super) fn make(&mut self, hold: HoldId, first: Option<(Part, ZkOp)>) {
        let parts = first.into_iter().collect();
        self.make_with(hold, parts);
    }

    pub(super) fn make_with(&mut self, hold: HoldId, mut parts: Vec<(Part, ZkOp)>) {
        let timeout = self.session.as_ref().map(|session| session.timeout).unwrap_or_default();
        let Some(place) = self.places.get(&hold) else { return };
        let parent = place.parent.clone();
        let create = ZkOp::Create {
            path: node_stem(&parent, hold, place.kind),
            data: Badge::encode_for(&self.client, timeout, place.mode.permits()),
            kind: NodeKind::EphemeralSequential,
        };
        if place.permits.is_some() {
            parts.push((Part::Create, create));
            parts.extend(look_at_permits(&parent));
            return self.batch(hold, Step::Make, parts);
        }
        let last = self.lasts.remove(&parent);
        let watch = planted!(ZkWatchesParent);
        let alone = parts.is_empty() && last.is_some() && !watch;
        parts.push((Part::Create, create));
        if let Some(place) = self.places.get_mut(&hold) {
            place.last = last.filter(|_| alone);
        }
        if alone {
            return self.batch(hold, Step::Make, parts);
        }
        parts.push((Part::List, ZkOp::Children { path: parent.clone(), watch }));
        parts.push((Part::Note, ZkOp::GetData { path: parent, watch: false }));
        self.batch(hold, Step::Make, parts);
    }

    fn made(&mut self, hold: HoldId) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        match place.created() {
            Some(Ok(ZkReply::Created { path, stat })) => {
                let unlisted = place.last.is_some();
                if !self.adopt(hold, path, stat) {
                    return;
                }
                match unlisted {
                    true if self.follows_last(hold) => self.first(hold),
                    true => self.list_place(hold),
                    false => self.listed(hold),
                }
            }
            Some(Err(ZkError::NoNode)) if place.may_found() => {
                if place.founded == 0 {
                    self.survey(hold);
                } else {
                    self.found(hold);
                }
            }
            Some(Err(ZkError::ConnectionLoss)) => {
                self.note_stray(hold);
                self.acquire_failed(hold, &ZkError::ConnectionLoss);
            }
            Some(Err(error)) => self.acquire_failed(hold, &error),
            _ => self.acquire_failed(hold, &ZkError::ConnectionLoss),
        }
    }

    /// The node is this hold's from now on; false when its number cannot be read.
    pub(super) fn adopt(&mut self, hold: HoldId, path: String, stat: Stat) -> bool {
        let Some(participant) = Participant::parse(split(&path).1) else {
            self.discard(path);
            self.acquire_failed(hold, &ZkError::Other("it gave a node without number".to_owned()));
            return false;
        };
        let Some(place) = self.places.get_mut(&hold) else { return false };
        let token = if planted!(ZkTokensCollide) {
            u64::try_from(stat.czxid).unwrap_or(0)
        } else {
            u64::try_from(stat.czxid).unwrap_or(0).saturating_mul(TOKENS)
        };
        let (sequence, kind) = (participant.sequence, participant.kind);
        place.node = Some(Node::new(path, sequence, kind, token));
        true
    }

    /// Who comes before?
    pub(super) fn list_place(&mut self, hold: HoldId) {
        self.list_after(hold, None);
    }

    pub(super) fn list_after(&mut self, hold: HoldId, first: Option<(Part, ZkOp)>) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        let path = place.parent.clone();
        let (before, permits) = (place.before.take(), place.permits.is_some());
        if let Some(before) = before {
            self.unwatch(&before.path, hold);
        }
        let mut parts: Vec<_> = first.into_iter().collect();
        if permits {
            parts.extend(look_at_permits(&path));
            return self.batch(hold, Step::List, parts);
        }
        let watch = planted!(ZkWatchesParent);
        parts.push((Part::List, ZkOp::Children { path: path.clone(), watch }));
        parts.push((Part::Note, ZkOp::GetData { path, watch: false }));
        self.batch(hold, Step::List, parts);
    }

    /// The node is there, and so is the list: first, or behind somebody.
    pub(super) fn listed(&mut self, hold: HoldId) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        if place.permits.is_some() {
            return self.permits_listed(hold);
        }
        let names = match place.take(&Part::List) {
            Some(Ok(ZkReply::Children { names, .. })) => names,
            // The lock's own node is gone, so whatever was below it is.
            Some(Err(ZkError::NoNode)) if !planted!(ZkFailedListKept) => {
                return self.node_gone(hold);
            }
            Some(Err(error)) => return self.acquire_failed(hold, &error),
            _ => return self.acquire_failed(hold, &ZkError::ConnectionLoss),
        };
        let note = match place.take(&Part::Note) {
            Some(Ok(ZkReply::Data { data, .. })) => Note::parse(&data),
            Some(Err(error @ (ZkError::ConnectionLoss | ZkError::NotSent))) => {
                return self.acquire_failed(hold, &error);
            }
            // A node that may not be read tells nothing.
            _ => None,
        };
        let Some(node) = place.node.clone() else { return self.seek(hold, None) };
        let parent = place.parent.clone();
        let (mut queue, stranger) = queue(&names);
        if planted!(ZkSequenceAsText) {
            queue.sort_by(|a, b| a.name.cmp(&b.name));
        }
        self.clear_strays(&parent, &queue);
        let own = split(&node.path).1;
        let Some(at) = queue.iter().position(|one| one.name == own) else {
            return self.node_gone(hold);
        };
        let Some(place) = self.places.get_mut(&hold) else { return };
        let blocker =
            blocker(&queue, at).filter(|_| !(planted!(ZkOwnerReenters) && place.owner.is_some()));
        let holders = if blocker.is_none() { holders(&queue) } else { 1 };
        place.others = u32::try_from(queue.len() - holders).unwrap_or(u32::MAX);
        if let Some(stranger) = stranger
            && matches!(place.ask, Some(Ask { what: What::Acquire { .. }, .. }))
        {
            if is_semaphores(&stranger)
                && names.iter().all(|it| is_semaphores(it) || Participant::parse(it).is_some())
            {
                return self.clear_semaphore(hold);
            }
            let refused = nested(&parent, &stranger);
            return self.leave_refused(hold, &refused);
        }
        if queue[at].is_worn() && !place.is_leaving() {
            return self.renew(hold, queue.len() == 1);
        }
        if self.vet(hold, &queue) || self.joins_late(hold) {
            return;
        }
        let Some(place) = self.places.get_mut(&hold) else { return };
        let Some(blocker) = blocker else {
            place.leads = at == 0;
            if at > 0 && node.kind.reads() {
                place.view = Some(View::beside(&queue, at, place.view.take()));
            }
            place.verdict = verdict(note, node.sequence, node.kind.reads(), place.view.as_ref());
            return self.first(hold);
        };
        let before = &queue[blocker];
        place.waited = true;
        place.view = Some(View::of(&queue, at, place.view.take()));
        let path = format!("{parent}/{}", before.name);
        place.before = Some(Before { path: path.clone(), sequence: before.sequence });
        if place.is_leaving() {
            return self.leave(hold, Then::Released);
        }
        if !place.may_wait() {
            return self.leave(hold, Then::Contended);
        }
        if planted!(ZkWatchesParent) {
            place.step = Step::Queued;
            self.watch(parent, hold);
            return self.tell_queued(hold);
        }
        self.tell_queued(hold);
        self.watch_before(hold);
    }

    pub(super) fn watch_before(&mut self, hold: HoldId) {
        let Some(before) = self.places.get(&hold).and_then(|place| place.before.clone()) else {
            return;
        };
        // Known before the call leaves, since it may fire before its result is heard.
        self.watch(before.path.clone(), hold);
        let watch = ZkOp::GetData { path: before.path, watch: true };
        self.batch(hold, Step::Watch, vec![(Part::Before, watch)]);
    }

    fn watching(&mut self, hold: HoldId) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        let again = std::mem::take(&mut place.again);
        match place.take(&Part::Before) {
            Some(Ok(ZkReply::Data { data, .. })) => {
                if let (Some(view), Some(before)) = (&mut place.view, &place.before)
                    && view.first == before.sequence
                {
                    view.first_is_ours = Some(Badge::parse(&data).is_some());
                }
                place.step = Step::Queued;
                if again {
                    self.list_place(hold);
                }
            }
            // It went before the watch was set.
            Some(Err(ZkError::NoNode)) if planted!(ZkWatchSetLate) => place.step = Step::Queued,
            Some(Err(ZkError::NoNode)) => self.list_place(hold),
            Some(Err(ZkError::NoAuth)) => {
                // It may not be read: then whether it is there.
                let Some(before) = place.before.clone() else { return };
                let watch = ZkOp::Exists { path: before.path, watch: true };
                self.batch(hold, Step::Watch, vec![(Part::Before, watch)]);
            }
            Some(Ok(ZkReply::Exists(None))) => self.list_place(hold),
            Some(Ok(ZkReply::Exists(Some(_)))) if again => self.list_place(hold),
            // After a lost connection it looks again; otherwise the next heartbeat does.
            _ => place.step = Step::Queued,
        }
    }

    /// Nobody before it keeps it from holding.
    pub(super) fn first(&mut self, hold: HoldId) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        place.held = true;
        place.step = Step::Held;
        place.view = None;
        if place.is_leaving() {
            return self.leave(hold, Then::Released);
        }
        self.at(LASTING, Due::Lasting(hold));
        let Some(place) = self.places.get_mut(&hold) else { return };
        if place.ask.is_some() {
            self.tell_granted(hold);
        } else {
            place.unasked = true;
            let lock = place.lock.clone();
            self.push(Push::Changed { lock, hold });
        }
        self.join_others(hold);
    }

    /// Answers an acquire with the grant, unless the session's end is too near to say how long it
    /// is good for.
    pub(super) fn tell_granted(&mut self, hold: HoldId) {
        let fresh = self.session.as_ref().is_some_and(|session| session.is_fresh(self.now));
        let Some(place) = self.places.get_mut(&hold) else { return };
        if !fresh {
            if !self.stale.contains(&hold) {
                self.stale.push(hold);
            }
            return;
        }
        let Some(ask) = place.ask.take() else { return };
        let place = place.clone();
        let state = self.granted(&place, ask.at);
        self.answer(ask.request, Body::Acquire(state));
    }

    pub(super) fn tell_queued(&mut self, hold: HoldId) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        let Some(ask) = place.ask.take() else { return };
        let place = place.clone();
        let state = self.queued(&place);
        self.answer(ask.request, Body::Acquire(state));
    }

    /// Ends an acquire that leaves no node behind.
    pub(super) fn end_acquire(&mut self, hold: HoldId, result: Result<State, Failure>) {
        let Some(Place { ask: Some(ask), .. }) = self.forget(hold) else { return };
        match result {
            Ok(state) => self.answer(ask.request, Body::Acquire(state)),
            Err(failure) => self.fail(ask.request, failure),
        }
    }

    /// A call for an acquire failed. What may have been made is kept in mind.
    pub(super) fn acquire_failed(&mut self, hold: HoldId, error: &ZkError) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        if !planted!(ZkFoundOnce) {
            place.founded = 0;
        }
        let failure = failure(error, &place.parent);
        // What is looked for may be there, whatever becomes of this look.
        let sought = matches!(place.step, Step::Seek | Step::Adopt(_));
        let keep = place.node.is_some() || sought || failure == Failure::Unknown;
        place.step = if place.node.is_some() { Step::List } else { Step::Unclear };
        if place.ask.is_none() {
            // It looks again when there is a connection, or at the next heartbeat.
            return;
        }
        match failure {
            Failure::Refused(_) if place.node.is_some() && !place.is_leaving() => {
                self.leave_refused(hold, &failure);
            }
            failure => {
                let ask = place.ask.take();
                if !keep {
                    self.forget(hold);
                }
                if let Some(ask) = ask {
                    self.fail(ask.request, failure);
                }
            }
        }
    }

    /// The hold's own node is not there: somebody deleted it.
    pub(super) fn node_gone(&mut self, hold: HoldId) {
        let Some(place) = self.forget(hold) else { return };
        self.drop_leases(&place);
        for sharer in self.sharers(&place) {
            self.node_gone(sharer);
        }
        match place.ask {
            Some(Ask { request, what: What::Acquire { .. }, .. }) => {
                self.answer(request, Body::Acquire(State::bare(Standing::Gone)));
            }
            Some(Ask { request, what: What::Release { .. }, .. }) => {
                self.answer(request, Body::Release(crate::reply::Released::Unknown));
            }
            Some(Ask { request, what: What::Convert, .. }) => {
                self.answer(request, Body::Convert(State::bare(Standing::Gone)));
            }
            None if place.held => self.push(Push::Broken { lock: place.lock, hold }),
            None => self.push(Push::Changed { lock: place.lock, hold }),
        }
    }

    /// All calls of a batch are answered.
    pub(super) fn concluded(&mut self, hold: HoldId) {
        self.gave_up(hold);
        let simple = self.is_simple();
        let Some(place) = self.places.get_mut(&hold) else { return };
        match place.step.clone() {
            Step::Peek => self.peeked(hold),
            Step::Survey => self.surveyed(hold),
            Step::Make if simple => self.simple_made(hold),
            Step::Make => self.made(hold),
            Step::Seek => self.sought(hold),
            Step::Adopt(names) => self.adopted(hold, names),
            Step::List if simple => self.simple_seen(hold),
            Step::List => {
                let again = std::mem::take(&mut place.again);
                self.listed(hold);
                // What changed meanwhile may have come after the list was made.
                if let Some(place) = self.places.get_mut(&hold) {
                    place.again |= again && !place.held && place.node.is_some();
                }
            }
            Step::Watch => self.watching(hold),
            Step::Vet => self.vetted(hold),
            Step::Leave(then) => self.left(hold, then),
            Step::Renew => self.renewed(hold),
            Step::Clear => self.cleared(hold),
            Step::Count => self.counted(hold),
            Step::Await => self.awaiting(hold),
            Step::Grant => self.took_permits(hold),
            Step::Claim(leases) => self.claimed(hold, leases),
            Step::Unclear | Step::Queued | Step::Held => {}
        }
    }

    /// A node that is to be gone, whatever becomes of the connection.
    pub(super) fn discard(&mut self, path: String) {
        if planted!(ZkReleaseForgotten) {
            return;
        }
        self.litter.insert(path.clone());
        self.call(ZkOp::Delete { path: path.clone() }, Aim::Litter(path));
    }
}

fn nested(parent: &str, child: &str) -> Failure {
    misplaced(format!(
        "{parent} holds {child:?}, which takes no part in a lock: other locks lie below it, or \
         another recipe uses it; choose a name that is no other's beginning"
    ))
}
