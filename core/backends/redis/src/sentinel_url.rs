//! URLs that name Sentinels: several hosts, and a master's name.

use fencelock_engine::Error;
use fencelock_engine::redis::session::Login;
use percent_encoding::percent_decode_str;

use crate::options::{Sentinel, invalid};
use crate::servers_url::{self, Parts};

const FORM: &str = "write redis+sentinel://h1,h2,h3/master, with a port where it is not 26379";

/// A Sentinel's usual port.
const PORT: u16 = 26379;

/// Takes `scheme://[user:password@]h1[:port],h2/master[/db][?…]` apart: the Sentinels, and the URL of one
/// server with all else that was written. Messages never repeat the URL: it may hold a password.
pub(crate) fn split(text: &str) -> Result<(Sentinel, String), Error> {
    let parts = Parts::of(text, FORM)?;
    let (master, db) = parts.path.split_once('/').unwrap_or((parts.path, ""));
    let master = percent_decode_str(master).decode_utf8();
    let master = master.map_err(|_| invalid("the master's name in the URL is no UTF-8"))?;
    if master.is_empty() {
        return Err(invalid(format!("the URL names no master: {FORM}")));
    }
    let mut sentinel = Sentinel::new(parts.nodes(PORT, FORM)?, master);
    (sentinel.tls, sentinel.sentinel_tls) = (parts.tls, parts.tls);
    Ok((sentinel, parts.of_one(db)))
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
        "map" => sentinel.map = servers_url::map(value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn login(sentinel: &mut Sentinel) -> &mut Login {
    sentinel.login.get_or_insert(Login { user: None, password: String::new() })
}
