//! URLs that name several servers, which the url crate does not read.

use std::collections::BTreeMap;
use std::time::Duration;

use fencelock_engine::Error;
use fencelock_engine::redis::Node;

use crate::options::{Address, Cluster, Options, Quorum, invalid};

const FORM: &str = "write redis+cluster://h1,h2,h3, with a port where it is not 6379";

const QUORUM_FORM: &str = "write redis+quorum://h1,h2,h3, with a port where it is not 6379";

/// A server's usual port.
const PORT: u16 = 6379;

/// `scheme://[user:password@]h1[:port],h2[/path][?…]`, taken apart. Messages never repeat the URL: it may hold
/// a password.
pub(crate) struct Parts<'a> {
    pub(crate) tls: bool,
    /// With the @ behind it, or empty.
    pub(crate) user: &'a str,
    hosts: &'a str,
    /// Without the slash before it.
    pub(crate) path: &'a str,
    /// With the ? before it, or empty.
    pub(crate) query: &'a str,
}

impl<'a> Parts<'a> {
    pub(crate) fn of(text: &'a str, form: &str) -> Result<Parts<'a>, Error> {
        let (scheme, rest) = text.split_once("://").ok_or_else(|| invalid(form))?;
        let tls = scheme.starts_with("rediss+") || scheme.starts_with("valkeys+");
        let authority = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(authority);
        let (user, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        let path = rest.find(['?', '#']).unwrap_or(rest.len());
        let (path, query) = rest.split_at(path);
        let path = path.strip_prefix('/').unwrap_or_default();
        Ok(Parts { tls, user, hosts, path, query })
    }

    /// The servers; `port` where none is written.
    pub(crate) fn nodes(&self, port: u16, form: &str) -> Result<Vec<Node>, Error> {
        let read = |host| {
            let wrong = || invalid(format!("a server's address in the URL cannot be read: {form}"));
            Node::parse(host, port).ok_or_else(wrong)
        };
        self.hosts.split(',').map(read).collect()
    }

    /// The URL of one server, with all else that was written: its reading is left to that URL's.
    pub(crate) fn of_one(&self, path: &str) -> String {
        format!("redis://{}several.invalid/{path}{}", self.user, self.query)
    }
}

/// Reads `seen=host:port,…`.
pub(crate) fn map(value: &str) -> Result<BTreeMap<Node, Node>, Error> {
    let wrong = || {
        invalid(
            "map must be seen=host:port,…, such as 10.0.0.5:6379=redis.example:7001: what the servers \
             say, and how to reach it from here",
        )
    };
    let mut map = BTreeMap::new();
    for pair in value.split(',') {
        let (seen, reached) = pair.split_once('=').ok_or_else(wrong)?;
        let seen = Node::parse(seen, PORT).ok_or_else(wrong)?;
        let reached = Node::parse(reached, PORT).ok_or_else(wrong)?;
        if map.insert(seen.clone(), reached).is_some() {
            return Err(invalid(format!("map has two addresses for {seen}")));
        }
    }
    Ok(map)
}

/// A URL of a cluster, as the address and the URL of one server.
pub(crate) fn cluster(text: &str) -> Result<(Cluster, String), Error> {
    let parts = Parts::of(text, FORM)?;
    let cluster = Cluster { nodes: parts.nodes(PORT, FORM)?, tls: parts.tls, map: BTreeMap::new() };
    Ok((cluster, parts.of_one(parts.path)))
}

/// A URL of a quorum, as the address and the URL of one server. Names of hosts have no upper case: all clients must
/// write the same.
pub(crate) fn quorum(text: &str) -> Result<(Quorum, String), Error> {
    let parts = Parts::of(text, QUORUM_FORM)?;
    let nodes = parts.nodes(PORT, QUORUM_FORM)?.into_iter().map(lower).collect();
    let mut quorum = Quorum::new(nodes);
    quorum.tls = parts.tls;
    Ok((quorum, parts.of_one(parts.path)))
}

fn lower(node: Node) -> Node {
    Node { host: node.host.to_ascii_lowercase(), port: node.port }
}

/// Takes a parameter that only a cluster or a quorum has; false when it is none of these. `duration` reads
/// a time.
pub(crate) fn set(
    options: &mut Options,
    name: &str,
    value: &str,
    duration: impl Fn(&str, &str) -> Result<Duration, Error>,
) -> Result<bool, Error> {
    match (&mut options.address, name) {
        (Address::Cluster(cluster), "map") => cluster.map = map(value)?,
        (Address::Quorum(quorum), "map") => {
            let pairs = map(value)?.into_iter();
            quorum.map = pairs.map(|(name, reached)| (lower(name), reached)).collect();
        }
        (Address::Quorum(quorum), "max_lease") => quorum.max_lease = duration(name, value)?,
        _ => return Ok(false),
    }
    Ok(true)
}
