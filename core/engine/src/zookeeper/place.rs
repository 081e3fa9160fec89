//! A hold's node, from before it is made until it is certainly gone.

use crate::id::{HoldId, OwnerId};
use crate::name::Name;
use crate::reply::Abandoned;
use crate::request::{Mode, Release, RequestId};
use crate::time::Time;
use crate::zookeeper::name::{Kind, holders, queue};
use crate::zookeeper::next::Last;
use crate::zookeeper::permits::Permits;
use crate::zookeeper::turn::Turn;
use crate::zookeeper::verdict::View;
use crate::zookeeper::wire::{ZkError, ZkReply};

/// How often the path above is made anew before something stands below it.
const FOUND: u8 = 4;

/// The node of a hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub path: String,
    pub sequence: i32,
    pub kind: Kind,
    /// The first token of the hold.
    pub token: u64,
    /// The highest token that a writer was given by it, as far as its conversions say.
    pub used: u64,
    /// The token of who reads by it, since it was a writer's.
    pub given: Option<u64>,
    /// Whether it is being made a reader's.
    pub turn: Turn,
}

/// The node that comes next before one's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Before {
    pub path: String,
    pub sequence: i32,
}

/// The engine's request that awaits its answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ask {
    pub request: RequestId,
    pub at: Time,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum What {
    /// Take the lock; queue for it or not.
    Acquire { wait: bool },
    /// Give it up.
    Release { told: bool, lost: bool, used: u64 },
    /// Read from now on.
    Convert,
}

impl What {
    pub fn release(release: &Release) -> What {
        What::Release { told: release.told, lost: release.lost, used: release.used }
    }
}

/// What the batch under way is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// Nothing is under way; whether there is a node is not known.
    Unclear,
    /// Whether a try is worth making a node for.
    Peek,
    /// Whether a lock lies above this one.
    Survey,
    /// The node is being made.
    Make,
    /// The node that an unanswered create may have made is looked for.
    Seek,
    /// It was found: is it this session's?
    Adopt(Vec<String>),
    /// Who comes before?
    List,
    /// Whether Curator takes part by a recipe that does not look at ours.
    Vet,
    /// The watch on the one before is being set.
    Watch,
    /// It is set. Nothing is under way.
    Queued,
    /// Nobody before keeps it from holding. Nothing is under way.
    Held,
    /// The node is being deleted.
    Leave(Then),
    /// The container is deleted with the node, to be made anew.
    Renew,
    /// What a semaphore left below the lock's node is deleted.
    Clear,
    /// First at a semaphore: the number of permits is being set.
    Count,
    /// First at a semaphore, which has no room: the watches are being set.
    Await,
    /// The permits are being taken.
    Grant,
    /// These leases were found: are they this session's?
    Claim(Vec<String>),
}

/// What is answered when the node is gone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Then {
    /// That it was released.
    Released,
    /// That the lock is taken.
    Contended,
}

/// A part of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    /// Another hold is released first.
    GiveUp(HoldId),
    Container,
    Create,
    Sync,
    List,
    Note,
    Stat,
    Before,
    /// A participant of another kind.
    Stranger,
    /// A semaphore's own node: its children.
    Above,
    /// The permits that are out.
    Leases,
    Grant,
    Delete,
}

/// A hold's place in ZooKeeper.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub lock: Name,
    pub owner: Option<OwnerId>,
    /// The first token of the owner's hold whose node this one shares.
    pub shared: Option<u64>,
    /// The token that it was told of, where that is not the node's first.
    pub given: Option<u64>,
    /// One of the owner's other holds on the node was lost: the next holder must be told.
    pub undone: bool,
    /// A hold on the node that had the lock for itself was told of its grant, and released.
    pub mended: bool,
    /// The lock's own node.
    pub parent: String,
    /// How the hold shares the lock, and what its node is called.
    pub mode: Mode,
    pub kind: Kind,
    pub step: Step,
    pub ask: Option<Ask>,
    pub node: Option<Node>,
    pub before: Option<Before>,
    pub view: Option<View>,
    /// Nobody before it keeps it from holding.
    pub held: bool,
    /// When it was granted it was the first in the queue.
    pub leads: bool,
    /// The participants of other kinds were looked at.
    pub vetted: bool,
    /// Its explicit owner reads, and this hold would wait for that.
    pub doomed: bool,
    /// The node's deletion was sent, and may have been carried out: nobody shares it any more.
    pub parting: bool,
    /// Granted, and the engine has not asked yet.
    pub unasked: bool,
    pub verdict: Abandoned,
    pub others: u32,
    /// Something happened while a batch was under way: look again.
    pub again: bool,
    /// Somebody came before it in the queue.
    pub waited: bool,
    /// How often the path above was made since something stood below it.
    pub founded: u8,
    /// The node is made without a list: it may be the next after this.
    pub last: Option<Last>,

    /// Of a semaphore: what it takes.
    pub permits: Option<Permits>,

    /// Which batch is under way; results of earlier ones do not count.
    pub serial: u32,
    pub pending: u32,
    pub heard: Vec<(Part, Result<ZkReply, ZkError>)>,
}

impl Place {
    pub fn new(lock: Name, parent: String, mode: Mode, read_write: bool) -> Place {
        Place {
            lock,
            owner: None,
            shared: None,
            given: None,
            undone: false,
            mended: false,
            parent,
            mode,
            kind: Kind::of(mode, read_write),
            step: Step::Unclear,
            ask: None,
            node: None,
            before: None,
            view: None,
            held: false,
            leads: false,
            vetted: false,
            doomed: false,
            parting: false,
            unasked: false,
            verdict: match mode {
                Mode::Permits { .. } => Abandoned::No,
                Mode::Exclusive | Mode::Shared => Abandoned::Unknown,
            },
            others: 0,
            again: false,
            waited: false,
            founded: 0,
            last: None,
            permits: Permits::of(mode),
            serial: 0,
            pending: 0,
            heard: Vec::new(),
        }
    }

    /// How many of a list's participants wait while this hold lasts.
    pub fn count_others(&self, names: &[String]) -> u32 {
        let reads = self.kind_held() == Some(Kind::Read);
        let holders = if reads { holders(&queue(names).0) } else { 1 };
        u32::try_from(names.len().saturating_sub(holders)).unwrap_or(u32::MAX)
    }

    /// What the hold's own node is.
    pub fn kind_held(&self) -> Option<Kind> {
        self.node.as_ref().map(|node| node.kind)
    }

    /// Whether the node is the hold's own, or one of them.
    pub fn owns(&self, path: &str) -> bool {
        self.node.as_ref().is_some_and(|node| node.is_at(path))
            || self.permits.as_ref().is_some_and(|it| it.leases.iter().any(|one| one == path))
    }

    /// Whether its node is a reader's, or is being made one.
    pub fn reads(&self) -> Option<bool> {
        self.node.as_ref().map(Node::reads)
    }

    /// Whether its node is just being made a reader's: it may have either name.
    pub fn is_turning(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.turn != Turn::Idle)
    }

    /// Whether the engine waits for the node's end.
    pub fn is_leaving(&self) -> bool {
        matches!(self.ask, Some(Ask { what: What::Release { .. }, .. }))
    }

    /// Whether the acquire that waits for its answer is ready to queue.
    pub fn may_wait(&self) -> bool {
        !matches!(self.ask, Some(Ask { what: What::Acquire { wait: false }, .. }))
    }

    /// The batch's result for `part`, if it had that part.
    pub fn take(&mut self, part: &Part) -> Option<Result<ZkReply, ZkError>> {
        let at = self.heard.iter().position(|(other, _)| other == part)?;
        Some(self.heard.swap_remove(at).1)
    }

    /// What became of the node that was to be made. One that had a place to be made in shows that
    /// the path above it is there: if it goes once more, it is made once more.
    pub fn created(&mut self) -> Option<Result<ZkReply, ZkError>> {
        let result = self.take(&Part::Create);
        if !matches!(result, Some(Err(ZkError::NoNode))) && !planted!(ZkFoundOnce) {
            self.founded = 0;
        }
        result
    }

    /// Whether the path above may be made: it may be taken away again as often.
    pub fn may_found(&self) -> bool {
        self.founded < if planted!(ZkFoundOnce) { 1 } else { FOUND }
    }
}
