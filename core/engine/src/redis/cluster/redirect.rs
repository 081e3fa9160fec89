//! A server's word that another one has a slot.

use crate::name::Name;
use crate::redis::cluster::slot::SLOTS;
use crate::redis::node::Node;
use crate::request::{Op, RequestId};

/// A server's word that another one has a slot, or has what is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// The slot is moving, and only this time the other one is to be asked.
    pub ask: bool,
    /// Which slot.
    pub slot: u16,
    /// The other one's host; `None` for that of the server which says it.
    pub host: Option<String>,
    /// Its port.
    pub port: u16,
}

impl Redirect {
    /// Reads an error reply; `None` for one that is no redirect, or does not say where to.
    pub fn parse(line: &str) -> Option<Redirect> {
        let mut words = line.split(' ');
        let ask = match words.next()? {
            "MOVED" => false,
            "ASK" => true,
            _ => return None,
        };
        let slot = words.next()?.parse().ok().filter(|slot| *slot < SLOTS)?;
        let (host, port) = words.next()?.trim_end().rsplit_once(':')?;
        let port = port.parse().ok().filter(|port| *port != 0)?;
        let host = match host {
            "" => None,
            // It has a name that nobody told it.
            "?" => return None,
            host => Some(host.trim_matches(['[', ']']).to_owned()),
        };
        Some(Redirect { ask, slot, host, port })
    }

    /// Whom it names, when this server says it.
    pub(super) fn node(&self, said: &Node) -> Node {
        let host = self.host.clone().unwrap_or_else(|| said.host.clone());
        Node { host, port: self.port }
    }
}

/// A request that a server sent elsewhere. It is not executed; who takes this answers for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirected {
    /// Which request.
    pub request: RequestId,
    /// Whose locks it was about.
    pub locks: Vec<Name>,
    /// Where it was sent.
    pub to: Redirect,
}

impl Redirected {
    pub(in crate::redis) fn new(request: RequestId, op: &Op, to: Redirect) -> Redirected {
        Redirected { request, locks: op.locks(), to }
    }
}

/// Whether an error reply says that the map of slots may have changed. A slot that is moving is where it
/// was, as long as that takes.
pub fn is_suspect(line: &str) -> bool {
    let code = line.split(' ').next().unwrap_or_default();
    matches!(code, "MOVED" | "CLUSTERDOWN" | "READONLY" | "MASTERDOWN")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_read_whatever_its_address() {
        let read = |line: &str| {
            let said = Node { host: "10.0.0.1".to_owned(), port: 1 };
            Redirect::parse(line).map(|it| (it.ask, it.slot, it.node(&said).to_string()))
        };
        for (line, meant) in [
            ("MOVED 3999 127.0.0.1:6381", (false, 3999, "127.0.0.1:6381")),
            ("ASK 16383 redis.example:7", (true, 16_383, "redis.example:7")),
            ("MOVED 1 :6381", (false, 1, "10.0.0.1:6381")),
            ("MOVED 1 ::1:6381", (false, 1, "[::1]:6381")),
            ("ASK 1 [fd00::2]:6381", (true, 1, "[fd00::2]:6381")),
        ] {
            let (ask, slot, node) = meant;
            assert_eq!(read(line), Some((ask, slot, node.to_owned())), "{line}");
        }
        for line in [
            "MOVED 16384 h:1",
            "MOVED 1",
            "MOVED 1 h",
            "MOVED 1 h:0",
            "MOVED 1 ?:7",
            "CLUSTERDOWN Hash slot not served",
            "ERR MOVED 1 h:1",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn a_slot_that_is_moving_does_not_speak_against_the_map() {
        for line in ["MOVED 1 h:1", "CLUSTERDOWN The cluster is down", "READONLY You can't write"] {
            assert!(is_suspect(line), "{line}");
        }
        for line in ["ASK 1 h:1", "TRYAGAIN Multiple keys request during rehashing of slot"] {
            assert!(!is_suspect(line), "{line}");
        }
    }
}
