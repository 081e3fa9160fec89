//! Since when a server of a quorum has remembered what it said.

use std::time::Duration;

use crate::redis::node::Node;
use crate::redis::value::Value;
use crate::time::micros_up;

/// What all clients of a quorum must agree on, and where its servers keep that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charter {
    marker: Vec<u8>,
    fingerprint: String,
    max_lease: u64,
}

impl Charter {
    /// Of the servers as all clients name them, in any order; of the longest lease that anybody asks for; and
    /// of the beginning of every key.
    pub fn new(nodes: &[Node], max_lease: Duration, prefix: &str) -> Charter {
        let mut names: Vec<String> = nodes.iter().map(Node::to_string).collect();
        names.sort();
        let max_lease = micros_up(max_lease);
        let text = format!("{} {max_lease}", names.join(","));
        let mut fingerprint = sha1_smol::Sha1::from(text).digest().to_string();
        fingerprint.truncate(16);
        Charter { marker: marker(prefix), fingerprint, max_lease }
    }

    /// The key of the marker.
    pub fn marker(&self) -> &[u8] {
        &self.marker
    }

    /// Of the list and the longest lease, 16 hexadecimal digits: servers give votes to one alone.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The longest lease, in microseconds.
    pub fn max_lease(&self) -> u64 {
        self.max_lease
    }

    /// What a server's script says of its birth: the time there, and the birth or whose it is.
    pub(super) fn read(&self, run: &str, reply: &Value) -> Option<Result<(u64, Birth), String>> {
        let [now, list, birth] = reply.array()? else { return None };
        let (now, list, at) = (now.number()?, list.text()?, birth.text()?.parse().ok()?);
        if list != self.fingerprint {
            return Some(Err(list.to_owned()));
        }
        Some(Ok((now, Birth::new(self, run, at))))
    }
}

/// The key of the marker, which has no TTL.
fn marker(prefix: &str) -> Vec<u8> {
    format!("{prefix}quorum").into_bytes()
}

/// What a server of a quorum said of itself when it was greeted. It tells no more of its votes to whoever says
/// another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Birth {
    marker: Vec<u8>,
    /// Which run of the server, as INFO has it.
    pub run: String,
    /// Since when it has remembered, in microseconds of its own time.
    pub at: u64,
    /// From when on it gives votes: whatever it said before and forgot is over by then.
    pub votes_from: u64,
}

impl Birth {
    fn new(charter: &Charter, run: &str, at: u64) -> Birth {
        let votes_from = at.saturating_add(charter.max_lease);
        Birth { marker: charter.marker.clone(), run: run.to_owned(), at, votes_from }
    }

    /// The key of the marker.
    pub(super) fn marker(&self) -> &[u8] {
        &self.marker
    }
}

/// Which run of a server this is, out of what INFO says.
pub fn run_of(info: &str) -> Option<&str> {
    let line = info.lines().find_map(|line| line.strip_prefix("run_id:"))?.trim();
    let plain = |c: char| c.is_ascii_alphanumeric();
    (!line.is_empty() && line.len() <= 64 && line.chars().all(plain)).then_some(line)
}
