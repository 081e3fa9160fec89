//! Names of locks as paths, and names of nodes.

use std::cmp::Ordering;
use std::fmt::Write as _;

use crate::id::HoldId;
use crate::name::Name;
use crate::reply::{Refusal, RefusalKind};
use crate::request::Mode;

/// Sequence numbers from here on are not used: Curator compares them as text, and past 2^31 they
/// are negative.
const WORN: i32 = i32::MAX - 1_000_000;

/// Whether ZooKeeper refuses the character in a path. It counts in UTF-16, so that everything
/// beyond the first 65,536 is refused too.
pub(crate) fn is_refused(c: char) -> bool {
    matches!(c as u32, 0..=0x1f | 0x7f..=0x9f | 0xd800..=0xf8ff | 0xfff0..)
}

/// The path of the lock's node under the chroot. Slashes separate; what ZooKeeper refuses is
/// percent-encoded, and so is a percent sign that would otherwise read as such.
///
/// # Errors
/// When the name is no path, or would be taken for a participant of another lock.
pub(crate) fn path_of(chroot: &str, name: &Name) -> Result<String, Refusal> {
    let mut path = String::with_capacity(chroot.len() + name.as_str().len() + 8);
    path.push_str(chroot);
    for part in name.as_str().split('/') {
        let why = if part.is_empty() {
            "has an empty part: in ZooKeeper a slash separates nodes, so a name neither begins nor \
             ends with one, and has no two in a row"
        } else if part == "." || part == ".." {
            "has a part '.' or '..', which ZooKeeper does not accept as a node"
        } else if Participant::parse(part).is_some() {
            "has a part that looks like a participant in a lock (…lock-0000000001, …__READ__0000000001)"
        } else if path.is_empty() && part == "zookeeper" {
            "lies under /zookeeper, which is ZooKeeper's own: use another name or a chroot"
        } else {
            path.push('/');
            encode(part, &mut path);
            continue;
        };
        let message = format!("the lock's name {name:?} {why}");
        return Err(Refusal { kind: RefusalKind::Misconfigured, message });
    }
    Ok(path)
}

fn encode(part: &str, out: &mut String) {
    for (at, c) in part.char_indices() {
        let escape = is_refused(c) || c == '%' && hex_pair(&part.as_bytes()[at + 1..]).is_some();
        if !escape {
            out.push(c);
            continue;
        }
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

/// Two upper-case hexadecimal digits.
fn hex_pair(bytes: &[u8]) -> Option<u8> {
    let digit = |byte: &u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    };
    Some(digit(bytes.first()?)? * 16 + digit(bytes.get(1)?)?)
}

/// The lock's name from its path below the chroot, without the first slash.
pub(crate) fn name_of(path: &str) -> Option<Name> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, more @ ..] = rest {
        match (*first == b'%').then(|| hex_pair(more)).flatten() {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[2..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    Name::new(String::from_utf8(bytes).ok()?).ok()
}

/// What a hold's node is called up to the digits that the server adds.
pub(crate) fn node_stem(parent: &str, hold: HoldId, kind: Kind) -> String {
    let id = hold.to_string();
    let (a, b, c, d, e) = (&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]);
    format!("{parent}/_c_{a}-{b}-{c}-{d}-{e}-{}", kind.mark())
}

/// Below a semaphore's node: a mutex, which gives the order, and the permits that are out.
pub(crate) const LOCKS: &str = "locks";
pub(crate) const LEASES: &str = "leases";
const LEASE: &str = "lease-";

/// What a hold's leases are called up to the digits that the server adds.
pub(crate) fn lease_stem(leases: &str, hold: HoldId) -> String {
    let lock = node_stem(leases, hold, Kind::Lock);
    lock.strip_suffix(Kind::Lock.mark()).unwrap_or(&lock).to_owned() + LEASE
}

/// The hold whose lease it is; `Some(None)` for one without an id.
pub(crate) fn lease_of(name: &str) -> Option<Option<HoldId>> {
    let (id, digits) = name.rsplit_once(LEASE)?;
    digits.parse::<i32>().ok()?;
    let id = id.strip_prefix("_c_").and_then(|id| id.strip_suffix('-'));
    Some(id.and_then(parse_id))
}

/// An id as Curator writes it.
fn parse_id(id: &str) -> Option<HoldId> {
    let lengths: Vec<usize> = id.split('-').map(str::len).collect();
    if lengths != [8, 4, 4, 4, 12] {
        return None;
    }
    HoldId::parse(&id.replace('-', "").to_ascii_lowercase())
}

/// What a writer's node is called once it reads.
pub(crate) fn read_path(path: &str) -> String {
    let kind = if path.contains(Kind::Write.mark()) { Kind::Write } else { Kind::Lock };
    match path.rsplit_once(kind.mark()) {
        Some((stem, number)) => format!("{stem}{}{number}", Kind::Read.mark()),
        None => path.to_owned(),
    }
}

/// By which of Curator's recipes a participant takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A mutex.
    Lock,
    /// A read-write lock, to write.
    Write,
    /// A read-write lock, to read.
    Read,
}

impl Kind {
    pub fn of(mode: Mode, read_write: bool) -> Kind {
        match mode {
            Mode::Shared => Kind::Read,
            Mode::Exclusive if read_write => Kind::Write,
            // The line for permits is Curator's mutex, whatever the name was before.
            Mode::Permits { .. } if read_write && planted!(ZkPermitsAsWriter) => Kind::Write,
            Mode::Exclusive | Mode::Permits { .. } => Kind::Lock,
        }
    }

    /// What stands before the sequence number; Curator takes what follows the last of it.
    fn mark(self) -> &'static str {
        match self {
            Kind::Lock => "lock-",
            Kind::Write => "__WRIT__",
            Kind::Read => "__READ__",
        }
    }

    /// How it shares the lock.
    pub fn mode(self) -> Mode {
        if self == Kind::Read { Mode::Shared } else { Mode::Exclusive }
    }

    pub fn reads(self) -> bool {
        self == Kind::Read
    }

    /// Whether Curator's participants of these two kinds do not look at each other.
    pub fn is_blind_to(self, other: Kind) -> bool {
        (self == Kind::Lock) != (other == Kind::Lock)
    }
}

/// The parent of a path, and what stands after the last slash.
pub(crate) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// A child of a lock's node: somebody who holds or waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Participant {
    /// The name, without the path.
    pub name: String,
    /// The hold, if the name has an id as Curator writes it. Ours always has one.
    pub hold: Option<HoldId>,
    /// The number that the server gave. Past 2^31 it goes on at −2^31.
    pub sequence: i32,
    pub kind: Kind,
}

impl Participant {
    pub fn parse(name: &str) -> Option<Participant> {
        [Kind::Lock, Kind::Write, Kind::Read].into_iter().find_map(|kind| Self::of(name, kind))
    }

    fn of(name: &str, kind: Kind) -> Option<Participant> {
        let at = name.rfind(kind.mark())?;
        let digits = &name[at + kind.mark().len()..];
        if digits.len() < 10 || digits.starts_with('+') {
            return None;
        }
        let sequence = digits.parse().ok()?;
        let hold = name[..at].strip_prefix("_c_").and_then(|id| parse_id(id.strip_suffix('-')?));
        Some(Participant { name: name.to_owned(), hold, sequence, kind })
    }

    /// See [`is_worn`].
    pub fn is_worn(&self) -> bool {
        is_worn(self.sequence)
    }
}

/// Curator's lock would sort this number wrongly soon, or does already.
pub(crate) fn is_worn(sequence: i32) -> bool {
    !(0..WORN).contains(&sequence)
}

/// The order of two sequence numbers that lie less than 2^31 apart: the wrap keeps it.
pub(crate) fn order(a: i32, b: i32) -> Ordering {
    a.wrapping_sub(b).cmp(&0)
}

/// A lock's children in the order in which they are served; and whether there are others.
pub(crate) fn queue(names: &[String]) -> (Vec<Participant>, Option<String>) {
    let mut stranger = None;
    let mut queue: Vec<Participant> = Vec::with_capacity(names.len());
    for name in names {
        match Participant::parse(name) {
            Some(participant) => queue.push(participant),
            None => stranger = Some(name.clone()),
        }
    }
    // Around any one of them, which makes the order a total one.
    if let Some(pivot) = queue.first().map(|first| first.sequence) {
        // Curator's writer that goes on as a reader has two nodes of one number.
        queue.sort_by_key(|one| {
            (one.sequence.wrapping_sub(pivot), one.kind.reads(), one.name.clone())
        });
    }
    (queue, stranger)
}

/// Who holds: the first, and with a reader all readers up to the first who wants the lock for itself.
pub(crate) fn holders(queue: &[Participant]) -> usize {
    match queue.iter().position(|one| !one.kind.reads()) {
        Some(0) => 1,
        Some(writer) => writer,
        None => queue.len(),
    }
}

/// Whom the participant at this place waits for: the nearest before it beside whom it cannot hold.
pub(crate) fn blocker(queue: &[Participant], at: usize) -> Option<usize> {
    if queue[at].kind.reads() {
        return queue[..at].iter().rposition(|one| !one.kind.reads());
    }
    at.checked_sub(1)
}
