//! URLs that name Sentinels: several hosts, and a master's name.

use std::collections::BTreeMap;

use fencelock_engine::Error;
use fencelock_engine::redis::Node;
use fencelock_engine::redis::session::Login;
use percent_encoding::percent_decode_str;

use crate::options::{Address, Options, Sentinel, invalid};

const FORM: &str = "write redis+sentinel://h1,h2,h3/master, with a port where it is not 26379";

/// A Sentinel's usual port.
const PORT: u16 = 26379;

/// A URL that names Sentinels, taken apart.
pub(crate) struct Split {
    sentinel: Sentinel,
    /// A URL of one server, with all else that was written.
    pub(crate) rest: String,
}

/// Takes `scheme://[user:password@]h1[:port],h2/master[/db][?…]` apart. Messages never repeat the URL: it
/// may hold a password.
pub(crate) fn split(text: &str) -> Result<Split, Error> {
    let (scheme, rest) = text.split_once("://").ok_or_else(|| invalid(FORM))?;
    let tls = matches!(scheme, "rediss+sentinel" | "valkeys+sentinel");
    let authority = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(authority);
    let (user, hosts) = match authority.rsplit_once('@') {
        Some((user, hosts)) => (format!("{user}@"), hosts),
        None => (String::new(), authority),
    };
    let path = rest.find(['?', '#']).unwrap_or(rest.len());
    let (path, query) = rest.split_at(path);
    let (master, db) = match path.strip_prefix('/').unwrap_or_default().split_once('/') {
        Some((master, db)) => (master, db),
        None => (path.strip_prefix('/').unwrap_or_default(), ""),
    };
    let master = percent_decode_str(master).decode_utf8();
    let master = master.map_err(|_| invalid("the master's name in the URL is no UTF-8"))?;
    if master.is_empty() {
        return Err(invalid(format!("the URL names no master: {FORM}")));
    }
    let nodes = hosts.split(',').map(|host| {
        Node::parse(host, PORT).ok_or_else(|| {
            invalid(format!("a Sentinel's address in the URL cannot be read: {FORM}"))
        })
    });
    let mut sentinel = Sentinel::new(nodes.collect::<Result<_, _>>()?, master);
    (sentinel.tls, sentinel.sentinel_tls) = (tls, tls);
    // The reading of what is the same for one server is left to that URL's.
    let rest = format!("redis://{user}sentinel.invalid/{db}{query}");
    Ok(Split { sentinel, rest })
}

/// Puts the Sentinels where the address was.
pub(crate) fn join(options: &mut Options, split: Split) {
    options.address = Address::Sentinel(Box::new(split.sentinel));
}

/// Takes a parameter that only Sentinels have; false when it is none of these.
pub(crate) fn set(sentinel: &mut Sentinel, name: &str, value: &str) -> Result<bool, Error> {
    match name {
        "sentinel_user" => login(sentinel).user = Some(value.to_owned()),
        "sentinel_password" => login(sentinel).password = value.to_owned(),
        "sentinel_tls" => {
            sentinel.sentinel_tls = match value {
                "yes" => true,
                "no" => false,
                _ => return Err(invalid("sentinel_tls must be yes or no")),
            };
        }
        "map" => sentinel.map = map(value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn login(sentinel: &mut Sentinel) -> &mut Login {
    sentinel.login.get_or_insert(Login { user: None, password: String::new() })
}

/// Reads `seen=host:port,…`.
fn map(value: &str) -> Result<BTreeMap<Node, Node>, Error> {
    let wrong = || {
        invalid(
            "map must be seen=host:port,…, such as 10.0.0.5:6379=redis.example:7001: what Sentinels \
             say, and how to reach it from here",
        )
    };
    let mut map = BTreeMap::new();
    for pair in value.split(',') {
        let (seen, reached) = pair.split_once('=').ok_or_else(wrong)?;
        let seen = Node::parse(seen, 6379).ok_or_else(wrong)?;
        let reached = Node::parse(reached, 6379).ok_or_else(wrong)?;
        if map.insert(seen.clone(), reached).is_some() {
            return Err(invalid(format!("map has two addresses for {seen}")));
        }
    }
    Ok(map)
}
