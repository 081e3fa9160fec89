//! Permits, in the layout of Curator's `InterProcessSemaphoreV2`: below the semaphore's node `locks` is
//! a mutex, which gives the order, and each child of `leases` is a permit that is out. Whoever has the
//! mutex waits until there is room for all that it wants, and takes that in one step with letting go of
//! the mutex: nobody holds some while it waits for more.

use crate::id::HoldId;
use crate::reply::{Refusal, RefusalKind, Standing};
use crate::request::Mode;
use crate::zookeeper::name::{LEASES, LOCKS, Participant, queue, split};
use crate::zookeeper::note::parse_permits;
use crate::zookeeper::place::{Part, Place};
use crate::zookeeper::wire::{ZkError, ZkOp, ZkReply, ZkWrite};

/// What a hold may take at once: its nodes are made in one request, which has a size.
const MOST_AT_ONCE: u32 = 1_000;
/// What a semaphore may have: the server always lists all that are out.
const MOST: u32 = 10_000;

/// What a hold takes of a semaphore.
#[derive(Clone, Debug)]
pub(crate) struct Permits {
    pub count: u32,
    /// How many there are, as it said or as the semaphore's node says.
    pub of: u32,
    /// It was seen to agree with the others, and follows the node from then on.
    pub joined: bool,
    /// The paths of what it took.
    pub leases: Vec<String>,
    /// How often a try looked again whether who comes before is done.
    pub looks: u8,
    /// It waits no more, which its next contact tells.
    pub ended: Option<Result<Standing, Refusal>>,
}

impl Permits {
    pub fn of(mode: Mode) -> Option<Permits> {
        let Mode::Permits { count, of } = mode else { return None };
        Some(Permits { count, of, joined: false, leases: Vec::new(), looks: 0, ended: None })
    }

    /// Whether it may take what it wants beside so many that are out.
    pub fn fit(&self, out: usize) -> bool {
        let count = if planted!(ZkPermitsOverdrawn) { 1 } else { self.count };
        out + count as usize <= self.of as usize
    }
}

impl Place {
    /// Whether it waits for permits no more, and its next contact is told why.
    pub fn has_ended(&self) -> bool {
        self.permits.as_ref().is_some_and(|permits| permits.ended.is_some())
    }

    /// Gives all permits back in one step, or leaves the queue for them.
    pub fn give_back(&self) -> ZkOp {
        let leases = self.permits.as_ref().map(|permits| permits.leases.as_slice());
        let node = self.node.as_ref().map(|node| node.path.clone()).unwrap_or_default();
        match leases.unwrap_or_default() {
            [] | [_] => ZkOp::Delete { path: node },
            _ if planted!(ZkFirstLeaseReturned) => ZkOp::Delete { path: node },
            leases => ZkOp::Multi(
                leases.iter().map(|path| ZkWrite::Delete { path: path.clone() }).collect(),
            ),
        }
    }
}

/// What is seen of a semaphore.
pub(super) struct Seen {
    pub queue: Vec<Participant>,
    /// The names of what is out.
    pub out: Vec<String>,
    /// How many there are.
    pub of: Option<u32>,
    /// The version of what says so; nothing where that may not be read.
    pub version: Option<i32>,
    /// Somebody has or wants the name as a lock.
    pub is_lock: bool,
}

impl Seen {
    /// Of what the batch of a hold has shown. What is missing is empty.
    pub fn take(place: &mut Place) -> Result<Seen, ZkError> {
        let names = children(place.take(&Part::List))?;
        let out = children(place.take(&Part::Leases))?;
        let above = children(place.take(&Part::Above))?;
        let (of, version) = match place.take(&Part::Note) {
            Some(Ok(ZkReply::Data { data, stat })) => (parse_permits(&data), Some(stat.version)),
            Some(Err(error @ (ZkError::ConnectionLoss | ZkError::NotSent))) => return Err(error),
            _ => (None, None),
        };
        let is_lock = !queue(&above).0.is_empty();
        Ok(Seen { queue: queue(&names).0, out, of, version, is_lock })
    }

    /// That nobody has set how many there are since, in what is done on the strength of it.
    pub fn unchanged(&self, locks: &str) -> Option<ZkWrite> {
        let path = split(locks).0.to_owned();
        self.version.map(|version| ZkWrite::CheckVersion { path, version })
    }
}

fn children(heard: Option<Result<ZkReply, ZkError>>) -> Result<Vec<String>, ZkError> {
    match heard {
        Some(Ok(ZkReply::Children { names, .. })) => Ok(names),
        Some(Err(ZkError::NoNode)) => Ok(Vec::new()),
        Some(Err(error)) => Err(error),
        _ => Err(ZkError::ConnectionLoss),
    }
}

/// Who queues, what is out, and how many there are.
pub(super) fn look_at_permits(locks: &str) -> Vec<(Part, ZkOp)> {
    let (base, leases) = (split(locks).0.to_owned(), leases_path(locks));
    vec![
        (Part::List, ZkOp::Children { path: locks.to_owned(), watch: false }),
        (Part::Leases, ZkOp::Children { path: leases, watch: false }),
        (Part::Above, ZkOp::Children { path: base.clone(), watch: false }),
        (Part::Note, ZkOp::GetData { path: base, watch: false }),
    ]
}

/// Where those who want the lock queue.
pub(super) fn queue_path(path: String, mode: Mode) -> String {
    match mode {
        Mode::Permits { .. } => format!("{path}/{LOCKS}"),
        Mode::Exclusive | Mode::Shared => path,
    }
}

/// Where the permits of the semaphore with this queue stand.
pub(super) fn leases_path(locks: &str) -> String {
    format!("{}/{LEASES}", split(locks).0)
}

/// Whether the child of a lock's node is one that a semaphore of this name has made.
pub(super) fn is_semaphores(name: &str) -> bool {
    name == LOCKS || name == LEASES
}

/// Refuses more than a request or a list can carry.
pub(super) fn check_permits(mode: Mode) -> Result<(), Refusal> {
    let Mode::Permits { count, of } = mode else { return Ok(()) };
    let message = if of > MOST {
        format!("on ZooKeeper a semaphore has {MOST} permits at the most, not {of}")
    } else if count > MOST_AT_ONCE {
        format!("on ZooKeeper {MOST_AT_ONCE} permits are taken at once at the most, not {count}")
    } else {
        return Ok(());
    };
    Err(Refusal { kind: RefusalKind::Unsupported, message })
}

/// The holds' leases among the children, in the order in which they were taken.
pub(super) fn lent(names: &[String]) -> Vec<(Option<HoldId>, Vec<String>)> {
    let number = |name: &String| name.rsplit_once('-').and_then(|(_, it)| it.parse::<u32>().ok());
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_by_key(|name| (number(name), (*name).clone()));
    let mut lent: Vec<(Option<HoldId>, Vec<String>)> = Vec::new();
    for name in sorted {
        let hold = super::name::lease_of(name).flatten();
        // Those of one hold were made together.
        match lent.last_mut() {
            Some((last, names)) if hold.is_some() && *last == hold => names.push(name.clone()),
            _ => lent.push((hold, vec![name.clone()])),
        }
    }
    lent
}
