//! How many replicas a master has.

use crate::redis::Value;

/// What is asked beside the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// How many replicas have confirmed what was asked before.
    Wait,
    /// Which are connected.
    Role,
    /// Which the cluster knows of.
    Nodes,
}

impl Question {
    /// The words of one that has no numbers.
    pub(in crate::redis) fn words(self) -> &'static [&'static str] {
        match self {
            Question::Wait => &["WAIT", "0", "1"],
            Question::Role => &["ROLE"],
            Question::Nodes => &["CLUSTER", "NODES"],
        }
    }
}

/// How many replicas have confirmed, out of the answer to WAIT, or to WAITAOF.
pub(super) fn confirmed(reply: &Value) -> u32 {
    let count = match reply {
        Value::Array(parts) => parts.get(1).and_then(Value::number),
        reply => reply.number(),
    };
    count.and_then(|count| u32::try_from(count).ok()).unwrap_or(0)
}

/// How many replicas are connected, out of a master's answer to ROLE.
pub fn named_in_role(reply: &Value) -> Option<u32> {
    let [role, _, replicas, ..] = reply.array()? else { return None };
    let replicas = replicas.array().filter(|_| role.text() == Some("master"))?;
    u32::try_from(replicas.len()).ok()
}

/// How many replicas the server that was asked has, those that are down included, out of its answer to
/// CLUSTER NODES. CLUSTER SLOTS leaves out those that have failed.
pub fn named_in_cluster(reply: &Value) -> Option<u32> {
    let text = reply.text()?;
    let nodes = || text.lines().filter_map(Node::parse);
    let id = nodes().find(|node| node.myself)?.id;
    u32::try_from(nodes().filter(|node| node.master == id).count()).ok()
}

struct Node<'a> {
    id: &'a str,
    myself: bool,
    /// Whose replica it is.
    master: &'a str,
}

impl<'a> Node<'a> {
    /// `id address flags master …`
    fn parse(line: &'a str) -> Option<Node<'a>> {
        let mut words = line.split(' ');
        let (id, _, flags, master) = (words.next()?, words.next()?, words.next()?, words.next()?);
        Some(Node { id, myself: flags.split(',').any(|flag| flag == "myself"), master })
    }
}
