//! What one Sentinel says of a master.

use crate::redis::Value;
use crate::redis::node::Node;
use crate::redis::session::NoSession;
use crate::redis::session::refuse;
use crate::secret::Secrets;

/// Who is the master, and since which epoch: each failover has a higher one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Report {
    pub epoch: u64,
    pub node: Node,
}

/// What a Sentinel answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Master(Report),
    /// It watches no master of that name.
    Unknown,
}

/// The command that tells the epoch. The leader of a failover gives the old address with it, already
/// under the new epoch, for some seconds.
pub(super) const EPOCH: [&str; 2] = ["SENTINEL", "MASTER"];

/// The command that tells the address, in a failover the new one.
pub(super) const ADDRESS: [&str; 2] = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME"];

/// The command that tells the replicas, those that are down included.
pub(super) const REPLICAS: [&str; 2] = ["SENTINEL", "REPLICAS"];

/// How many there are, out of the answer to [`REPLICAS`]; `None` where there is no such master.
pub(super) fn replicas(reply: Value, secrets: &Secrets) -> Result<Option<u32>, NoSession> {
    if let Value::Error(line) = &reply
        && line.contains("No such master")
    {
        return Ok(None);
    }
    let reply = refuse("SENTINEL REPLICAS", reply, secrets)?;
    let replicas = reply.array().and_then(|all| u32::try_from(all.len()).ok());
    replicas.map(Some).ok_or_else(|| strange("SENTINEL REPLICAS"))
}

/// The epoch out of the answer to [`EPOCH`]; `None` where there is no such master.
pub(super) fn epoch(reply: Value, secrets: &Secrets) -> Result<Option<u64>, NoSession> {
    if let Value::Error(line) = &reply
        && line.contains("No such master")
    {
        return Ok(None);
    }
    if let Value::Error(line) = &reply
        && line.contains("unknown command")
    {
        return Err(strange("SENTINEL MASTER"));
    }
    let reply = refuse("SENTINEL MASTER", reply, secrets)?;
    let fields = reply.array().unwrap_or_default();
    let epoch = fields.chunks_exact(2).find_map(|pair| match pair {
        [name, value] if name.text() == Some("config-epoch") => value.number(),
        _ => None,
    });
    epoch.map(Some).ok_or_else(|| strange("SENTINEL MASTER"))
}

/// The address out of the answer to [`ADDRESS`]; `None` where there is no such master.
pub(super) fn address(reply: Value, secrets: &Secrets) -> Result<Option<Node>, NoSession> {
    let reply = refuse("SENTINEL GET-MASTER-ADDR-BY-NAME", reply, secrets)?;
    match &reply {
        Value::Nil => Ok(None),
        Value::Array(parts) => match parts.as_slice() {
            [host, port] => {
                let port = port.number().and_then(|port| u16::try_from(port).ok());
                let host = host.text().filter(|host| !host.is_empty());
                let node = host.zip(port).map(|(host, port)| Node { host: host.to_owned(), port });
                node.map(Some).ok_or_else(|| strange("SENTINEL GET-MASTER-ADDR-BY-NAME"))
            }
            _ => Err(strange("SENTINEL GET-MASTER-ADDR-BY-NAME")),
        },
        _ => Err(strange("SENTINEL GET-MASTER-ADDR-BY-NAME")),
    }
}

fn strange(command: &str) -> NoSession {
    NoSession::misconfigured(format!(
        "{command} was not answered as a Sentinel does: is this one? Its port is usually 26379"
    ))
}
