//! What clients leave in the data of nodes, for each other and for people.

use std::time::Duration;

use crate::id::ClientId;
use crate::reply::Abandoned;

/// What stands first; a later layout has another number.
const STAMP: &str = "fencelock 1 ";
/// What Curator writes into the node of a holder from whom somebody wants the lock.
pub(crate) const REVOKE: &[u8] = b"__REVOKE__";

/// In a lock's node: how its last tenure stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Note {
    /// It was released; otherwise it had begun.
    pub released: bool,
    /// The holder's sequence number.
    pub sequence: i32,
    /// What the next holder is to be told.
    pub abandoned: Abandoned,
}

impl Note {
    pub fn encode(self) -> Vec<u8> {
        let word = if self.released { "released" } else { "held" };
        let flag = match self.abandoned {
            Abandoned::No => 0,
            Abandoned::Yes => 1,
            Abandoned::Unknown => 2,
        };
        format!("{STAMP}{word} {} {flag}", self.sequence).into_bytes()
    }

    /// `None` for what is not ours.
    pub fn parse(data: &[u8]) -> Option<Note> {
        let mut words = std::str::from_utf8(data).ok()?.strip_prefix(STAMP)?.split(' ');
        let released = match words.next()? {
            "released" => true,
            "held" => false,
            _ => return None,
        };
        let sequence = words.next()?.parse().ok()?;
        let abandoned = match words.next()? {
            "0" => Abandoned::No,
            "1" => Abandoned::Yes,
            _ => Abandoned::Unknown,
        };
        Some(Note { released, sequence, abandoned })
    }
}

/// In a semaphore's node: how many permits there are.
pub(crate) fn encode_permits(of: u32) -> Vec<u8> {
    format!("{STAMP}permits {of}").into_bytes()
}

/// `None` for what is not ours.
pub(crate) fn parse_permits(data: &[u8]) -> Option<u32> {
    std::str::from_utf8(data).ok()?.strip_prefix(STAMP)?.strip_prefix("permits ")?.parse().ok()
}

/// In the node of a holder or waiter: who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Badge {
    /// Its session's timeout.
    pub timeout: Duration,
    /// How many permits it waits for.
    pub permits: u32,
    /// The client's id.
    pub client: String,
    /// The client's label.
    pub label: String,
}

impl Badge {
    pub fn encode(client: &ClientId, timeout: Duration) -> Vec<u8> {
        Badge::encode_for(client, timeout, None)
    }

    /// Who waits for permits says for how many.
    pub fn encode_for(client: &ClientId, timeout: Duration, permits: Option<u32>) -> Vec<u8> {
        let permits = permits.map(|count| format!("/{count}")).unwrap_or_default();
        let timeout = timeout.as_millis();
        format!("{STAMP}{timeout}{permits} {} {}", client.id(), client.label()).into_bytes()
    }

    /// `None` for a node that is not ours.
    pub fn parse(data: &[u8]) -> Option<Badge> {
        let mut words = std::str::from_utf8(data).ok()?.strip_prefix(STAMP)?.splitn(3, ' ');
        let first = words.next()?;
        let (timeout, permits) = first.split_once('/').unwrap_or((first, "1"));
        let timeout = Duration::from_millis(timeout.parse().ok()?);
        let permits = permits.parse().ok()?;
        let client = words.next()?.to_owned();
        Some(Badge { timeout, permits, client, label: words.next().unwrap_or_default().to_owned() })
    }

    /// The badge of a stranger, from whatever its node says; Curator writes its host's address.
    pub fn stranger(data: &[u8]) -> Badge {
        let text = String::from_utf8_lossy(data);
        let label = text.chars().filter(|c| !c.is_control()).take(crate::id::MAX_LABEL).collect();
        Badge { timeout: Duration::ZERO, permits: 1, client: "curator".to_owned(), label }
    }
}
