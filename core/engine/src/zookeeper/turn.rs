//! A writer reads on: its node is turned into a reader's of the same number, in one transaction.

use crate::id::HoldId;
use crate::reply::{Abandoned, Body, Failure, Refusal, RefusalKind, Standing, State};
use crate::request::{Convert, Mode, RequestId};
use crate::zookeeper::lasting::LASTING;
use crate::zookeeper::machine::{Aim, Due, Machine, TOKENS};
use crate::zookeeper::name::{Kind, read_path};
use crate::zookeeper::note::{Badge, Note};
use crate::zookeeper::place::{Ask, Node, Place, Step, Then, What};
use crate::zookeeper::refusal::{failure, is_missing};
use crate::zookeeper::wire::{NodeKind, ZkError, ZkOp, ZkReply, ZkWrite};

/// How far the turning of a writer's node into a reader's has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) enum Turn {
    /// Nothing of the kind is under way.
    #[default]
    Idle,
    /// It was sent.
    Sent,
    /// It was sent, and its answer was lost.
    Unclear,
}

impl Machine {
    pub(super) fn convert(&mut self, request: RequestId, ask: Convert) {
        if ask.to != Mode::Shared {
            return self.fail(request, unsupported(NO_UPGRADE));
        }
        if self.is_simple() {
            return self.fail(request, Failure::Refused(crate::store::mode_unsupported()));
        }
        let hold = ask.hold;
        let Some(keeper) = self.keeper_of(hold) else {
            return self.answer(request, Body::Convert(State::bare(Standing::Gone)));
        };
        let Some(Place { node: Some(node), .. }) = self.places.get(&keeper) else { return };
        if node.kind == Kind::Lock {
            return self.fail(request, unsupported(NO_READER));
        }
        let heard = ask.told && ask.used >= node.token;
        let at = self.now;
        let Some(place) = self.places.get_mut(&hold) else { return };
        let wrote = place.mode == Mode::Exclusive;
        place.mode = Mode::Shared;
        place.ask = Some(Ask { request, at, what: What::Convert });
        if let Some(Place { node: Some(node), mended, .. }) = self.places.get_mut(&keeper)
            && wrote
        {
            node.used = node.used.max(ask.used);
            *mended |= heard;
        }
        self.turn(keeper);
    }

    /// The hold that has the node by which this one stands.
    pub(super) fn keeper_of(&self, hold: HoldId) -> Option<HoldId> {
        let place = self.places.get(&hold).filter(|place| place.held)?;
        match (&place.node, place.shared) {
            (Some(_), _) => Some(hold),
            (None, Some(token)) => self.keeper(token, &place.parent),
            (None, None) => None,
        }
    }

    /// All holds that stand by the node of this one.
    fn standing_by(&self, keeper: HoldId) -> Vec<HoldId> {
        let Some(place) = self.places.get(&keeper) else { return Vec::new() };
        let mut holds = self.sharers(place);
        holds.push(keeper);
        holds
    }

    /// Whether any hold that stands by the node has the lock for itself.
    fn is_written(&self, keeper: HoldId) -> bool {
        let writes = |place: &Place| place.mode == Mode::Exclusive;
        self.standing_by(keeper).iter().any(|hold| self.places.get(hold).is_some_and(writes))
    }

    /// Turns the node once nobody who stands by it has the lock for itself, and answers whoever asked
    /// for that.
    pub(super) fn turn(&mut self, keeper: HoldId) {
        let writes = self.is_written(keeper);
        let Some(place) = self.places.get(&keeper) else { return };
        let Some(node) = &place.node else { return };
        let turns = match node.kind {
            Kind::Read | Kind::Lock => false,
            Kind::Write => !writes,
        };
        if !turns {
            return self.answer_turned(keeper);
        }
        if node.turn == Turn::Sent || place.parting || !self.connected {
            return;
        }
        let (path, parent) = (node.path.clone(), place.parent.clone());
        let timeout = self.session.as_ref().map(|session| session.timeout).unwrap_or_default();
        let create = ZkWrite::Create {
            path: read_path(&path),
            data: Badge::encode(&self.client, timeout),
            kind: NodeKind::Ephemeral,
        };
        let (released, sequence, abandoned) = (true, node.sequence, turned_word(place));
        let note = (!self.denied.contains(&parent)).then(|| ZkWrite::Set {
            path: parent,
            data: Note { released, sequence, abandoned }.encode(),
        });
        let noted = note.is_some();
        if planted!(ZkTurnInTwoSteps) {
            // As whoever knows no multi: the queue sees a moment without either.
            self.call(ZkOp::Delete { path: path.clone() }, Aim::Litter(path.clone()));
            let ZkWrite::Create { path: read, data, kind } = create else { return };
            self.call(ZkOp::Create { path: read, data, kind }, Aim::Turn { path, noted: false });
        } else {
            let parts = note.into_iter().chain([create, ZkWrite::Delete { path: path.clone() }]);
            let multi = ZkOp::Multi(parts.collect());
            self.call(multi, Aim::Turn { path, noted });
        }
        self.set_turn(keeper, Turn::Sent);
    }

    /// Whether the node is being turned, or ought to be.
    pub(super) fn is_to_turn(&self, keeper: HoldId) -> bool {
        let Some(place) = self.places.get(&keeper) else { return false };
        let writer = place.kind_held() == Some(Kind::Write);
        place.is_turning() || writer && !self.is_written(keeper)
    }

    fn set_turn(&mut self, keeper: HoldId, turn: Turn) {
        if let Some(Place { node: Some(node), .. }) = self.places.get_mut(&keeper) {
            node.turn = turn;
        }
    }

    pub(super) fn turn_heard(&mut self, path: &str, noted: bool, result: Result<ZkReply, ZkError>) {
        let is_it = |place: &Place| {
            place.node.as_ref().is_some_and(|it| it.path == path && it.turn == Turn::Sent)
        };
        let keeper = self.places.iter().find(|(_, place)| is_it(place)).map(|(hold, _)| *hold);
        // Otherwise it was released meanwhile, or its node was found to be gone.
        let Some(keeper) = keeper else { return };
        self.set_turn(keeper, Turn::Unclear);
        match result {
            Ok(_) => self.turned(keeper),
            // An earlier copy, whose answer was lost.
            Err(ZkError::At(at, error))
                if *error == ZkError::NodeExists && at == usize::from(noted) =>
            {
                self.turned(keeper);
            }
            Err(ZkError::At(0, error)) if noted && *error == ZkError::NoAuth => {
                if let Some(place) = self.places.get(&keeper) {
                    self.denied.insert(place.parent.clone());
                }
                self.turn(keeper);
                self.leave_turned(keeper);
            }
            Err(error) if is_missing(&error) => self.node_gone(keeper),
            Err(error) => {
                let unclear = matches!(
                    error,
                    ZkError::ConnectionLoss
                        | ZkError::NotSent
                        | ZkError::SessionExpired
                        | ZkError::SessionMoved
                );
                self.not_turned(keeper, &error, unclear);
            }
        }
    }

    /// The node is a reader's.
    fn turned(&mut self, keeper: HoldId) {
        let Some(place) = self.places.get_mut(&keeper) else { return };
        let Some(old) = place.read_on() else { return };
        let word = place.verdict;
        // What watched the old one has fired, or will.
        self.watched.remove(&old);
        for hold in self.standing_by(keeper) {
            if let Some(place) = self.places.get_mut(&hold) {
                place.verdict = word;
            }
        }
        let waits = self.places.get(&keeper).is_some_and(|place| place.others > 0);
        self.answer_turned(keeper);
        self.leave_turned(keeper);
        self.at(LASTING, Due::Lasting(keeper));
        if waits && let Some(place) = self.places.get_mut(&keeper) {
            // Who waited may read beside it now: the next look counts anew.
            place.others = 0;
        }
    }

    fn not_turned(&mut self, keeper: HoldId, error: &ZkError, unclear: bool) {
        if !unclear {
            self.set_turn(keeper, Turn::Idle);
            self.at(LASTING, Due::Lasting(keeper));
        }
        for hold in self.standing_by(keeper) {
            let Some(place) = self.places.get_mut(&hold) else { continue };
            let converts = matches!(place.ask, Some(Ask { what: What::Convert, .. }));
            let failure = match failure(error, &place.parent) {
                // The conversion may have been carried out before the session's end.
                Failure::NotSent if *error != ZkError::NotSent => Failure::Unknown,
                failure => failure,
            };
            if converts && let Some(ask) = place.ask.take() {
                self.fail(ask.request, failure);
            }
        }
        self.leave_turned(keeper);
    }

    /// Who asked for a conversion and stands by this node has the lock in the mode that it wanted.
    fn answer_turned(&mut self, keeper: HoldId) {
        for hold in self.standing_by(keeper) {
            let given = self.places.get(&keeper).and_then(|place| place.node.as_ref()?.given);
            let Some(place) = self.places.get_mut(&hold) else { continue };
            if !matches!(place.ask, Some(Ask { what: What::Convert, .. })) {
                continue;
            }
            let Some(ask) = place.ask.take() else { continue };
            place.given = place.given.or(given);
            let place = place.clone();
            let state = self.granted(&place, ask.at);
            self.answer(ask.request, Body::Convert(state));
        }
    }

    /// What was to leave while the node was being turned leaves.
    fn leave_turned(&mut self, keeper: HoldId) {
        let leaves = |place: &Place| place.is_leaving() && place.step == Step::Held;
        if self.places.get(&keeper).is_some_and(leaves) {
            self.leave(keeper, Then::Released);
        }
    }
}

impl Place {
    /// The node is a reader's from now on; gives the path of the old one.
    pub(super) fn read_on(&mut self) -> Option<String> {
        self.verdict = turned_word(self);
        (self.undone, self.mended) = (false, false);
        let node = self.node.as_mut()?;
        let path = read_path(&node.path);
        let old = std::mem::replace(&mut node.path, path);
        (node.kind, node.turn) = (Kind::Read, Turn::Idle);
        // Above whatever a writer was given, below whoever comes next.
        let token = node.used.max(node.token).saturating_add(1).min(node.token + TOKENS - 1);
        node.given = Some(if planted!(ZkTurnKeepsToken) { node.token } else { token });
        Some(old)
    }
}

impl Node {
    pub fn new(path: String, sequence: i32, kind: Kind, token: u64) -> Node {
        Node { path, sequence, kind, token, used: 0, given: None, turn: Turn::Idle }
    }

    /// Whether whoever stands by it only reads, or is about to.
    pub fn reads(&self) -> bool {
        self.kind.reads() || self.turn != Turn::Idle
    }

    /// Whether this is its path, or may be.
    pub fn is_at(&self, path: &str) -> bool {
        self.path == path || self.turn != Turn::Idle && read_path(&self.path) == path
    }
}

/// What is said of a writer that reads on.
fn turned_word(place: &Place) -> Abandoned {
    match (place.undone, place.mended) {
        (true, _) => Abandoned::Yes,
        (false, true) => Abandoned::No,
        (false, false) => place.verdict,
    }
}

const NO_UPGRADE: &str = "on ZooKeeper a reader does not become a writer: whoever queued meanwhile \
     would have an earlier token; release it, and acquire to write";

const NO_READER: &str = "this hold is a plain lock's, and whoever waits for it by Curator's \
     InterProcessMutex does not look at readers: it stays exclusive; to downgrade, acquire the write side \
     of the read-write lock of this name";

fn unsupported(message: &str) -> Failure {
    Failure::Refused(Refusal { kind: RefusalKind::Unsupported, message: message.to_owned() })
}
