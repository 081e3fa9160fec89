//! URLs into options.

use std::path::PathBuf;
use std::time::Duration;

use fencelock_engine::Error;
use fencelock_engine::options::CLIENT_PARAMETERS;
use fencelock_engine::redis::session::Protocol;
use fencelock_engine::redis::sync::Replicas;
use redis::IntoConnectionInfo;

use crate::options::{Address, Options, invalid};
use crate::{sentinel_url, servers_url};

impl Options {
    /// Reads `redis://user:password@host:port/db`, `rediss://…` (TLS) or
    /// `redis+unix:///path?db=0&user=…&pass=…`, with the query parameters `prefix`,
    /// `connect_timeout`, `backoff_min`, `backoff_max`, `protocol` (2 or 3), `tls_ca`, `tls_cert`,
    /// `tls_key`, `sync_replicas` (a number, or all), `sync_timeout` and `sync_disk` (yes or no); or `redis+sentinel://user:password@h1,h2:26379,h3/master/db`, also
    /// `rediss+sentinel://…`, with `sentinel_user`, `sentinel_password`, `sentinel_tls` (yes or no) and
    /// `map` (`seen=host:port,…`) besides; or `redis+cluster://user:password@h1,h2:7000`, also
    /// `rediss+cluster://…`, with `map` besides; or `redis+quorum://user:password@h1,h2,h3/db`, also
    /// `rediss+quorum://…`, with `map` (`name=host:port,…`) and `max_lease` besides.
    ///
    /// # Errors
    /// [`fencelock_engine::ErrorKind::InvalidArgument`] names the part that is unknown or wrong; it never shows a
    /// password.
    pub fn from_url(url: &str) -> Result<Options, Error> {
        parse(url)
    }
}

/// Reads a URL. Messages never repeat the URL: it may hold a password.
fn parse(text: &str) -> Result<Options, Error> {
    let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
    if scheme.ends_with("+sentinel") {
        let (sentinel, rest) = sentinel_url::split(text)?;
        return one_server(&rest, Some(Address::Sentinel(Box::new(sentinel))));
    }
    if scheme.ends_with("+cluster") {
        let (cluster, rest) = servers_url::cluster(text)?;
        return one_server(&rest, Some(Address::Cluster(Box::new(cluster))));
    }
    if scheme.ends_with("+quorum") {
        let (quorum, rest) = servers_url::quorum(text)?;
        return one_server(&rest, Some(Address::Quorum(Box::new(quorum))));
    }
    one_server(text, None)
}

/// Reads the URL of one server; `several` stand where its address would.
fn one_server(text: &str, several: Option<Address>) -> Result<Options, Error> {
    let mut url = ::url::Url::parse(text).map_err(|error| {
        invalid(format!(
            "the Redis URL cannot be read ({error}): write redis://host:port/db; several servers \
             are named as redis+sentinel://h1,h2,h3/master or redis+cluster://h1,h2,h3"
        ))
    })?;
    let tls = match url.scheme() {
        "rediss" | "valkeys" => true,
        "redis" | "valkey" | "redis+unix" | "valkey+unix" | "unix" => false,
        other => {
            return Err(invalid(format!(
                "'{other}://' is not a Redis URL: use redis://, rediss://, redis+unix://, \
                 redis+sentinel://, redis+cluster:// or redis+quorum://"
            )));
        }
    };
    if url.fragment().is_some() {
        return Err(invalid(
            "a Redis URL takes no '#…' part: certificates are always checked (tls_ca names your \
             own authority), and a '#' in a password is written %23",
        ));
    }
    let unix = url.scheme().ends_with("unix");
    let ours = take_parameters(&mut url, unix, several.as_ref())?;
    if tls {
        // The crate reads this scheme only when built with a TLS stack of its own.
        url.set_scheme("redis").map_err(|()| invalid("the Redis URL cannot be read"))?;
    }
    let info = url
        .into_connection_info()
        .map_err(|error| invalid(format!("the Redis URL is wrong: {error}")))?;
    let mut options = Options::from_info(&info)?;
    if tls && let Address::Tcp { host, port } = options.address {
        options.address = Address::Tls { host, port };
    }
    if let Some(several) = several {
        options.address = several;
    }
    for (name, value) in ours {
        set(&mut options, &name, &value)?;
    }
    options.check()?;
    Ok(options)
}

/// Takes our own parameters out of the URL and leaves those that the `redis` crate reads.
fn take_parameters(
    url: &mut ::url::Url,
    unix: bool,
    several: Option<&Address>,
) -> Result<Vec<(String, String)>, Error> {
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    let sentinels = matches!(several, Some(Address::Sentinel(_)));
    let quorum = matches!(several, Some(Address::Quorum(_)));
    let secret = url.query().is_some_and(|query| query.contains('@'));
    for (name, value) in url.query_pairs() {
        match name.as_ref() {
            "db" | "user" | "pass" if unix => theirs.push((name.into_owned(), value.into_owned())),
            "prefix" | "connect_timeout" | "backoff_min" | "backoff_max" | "protocol"
            | "tls_ca" | "tls_cert" | "tls_key" | "sync_replicas" | "sync_timeout"
            | "sync_disk" => ours.push((name.into_owned(), value.into_owned())),
            "sentinel_user" | "sentinel_password" | "sentinel_tls" if sentinels => {
                ours.push((name.into_owned(), value.into_owned()))
            }
            "max_lease" if quorum => ours.push((name.into_owned(), value.into_owned())),
            "map" if several.is_some() => ours.push((name.into_owned(), value.into_owned())),
            // A '?' in a password makes a parameter of what follows it.
            _ if secret => {
                return Err(invalid(
                    "the Redis URL cannot be read: a '?' in a password is written %3F, a '/' %2F",
                ));
            }
            _ => {
                return Err(invalid(format!(
                    "the Redis URL has an unknown parameter '{name}': known are prefix, \
                     backoff_min, backoff_max, protocol, tls_ca, tls_cert, tls_key, \
                     sync_replicas, sync_timeout, sync_disk{}, and the client's \
                      {CLIENT_PARAMETERS}",
                    match several {
                        None if unix => ", db, user, pass",
                        None => "",
                        Some(_) if sentinels =>
                            ", sentinel_user, sentinel_password, sentinel_tls, map",
                        Some(_) if quorum => ", map, max_lease",
                        Some(_) => ", map",
                    }
                )));
            }
        }
    }
    url.set_query(None);
    if !theirs.is_empty() {
        url.query_pairs_mut().extend_pairs(theirs);
    }
    Ok(ours)
}

fn set(options: &mut Options, name: &str, value: &str) -> Result<(), Error> {
    if let Address::Sentinel(sentinel) = &mut options.address
        && sentinel_url::set(sentinel, name, value)?
    {
        return Ok(());
    }
    if servers_url::set(options, name, value, duration)? {
        return Ok(());
    }
    match name {
        "prefix" => options.prefix = value.to_owned(),
        "connect_timeout" => options.connect_timeout = duration(name, value)?,
        "backoff_min" => options.backoff_min = duration(name, value)?,
        "backoff_max" => options.backoff_max = duration(name, value)?,
        "protocol" => {
            options.protocol = match value {
                "2" => Protocol::Resp2,
                "3" => Protocol::Auto,
                _ => return Err(invalid("protocol must be 2 or 3")),
            };
        }
        "sync_replicas" => options.sync_replicas = replicas(value)?,
        "sync_timeout" => options.sync_timeout = duration(name, value)?,
        "sync_disk" => {
            options.sync_disk = match value {
                "yes" => true,
                "no" => false,
                _ => return Err(invalid("sync_disk must be yes or no")),
            };
        }
        "tls_ca" => options.tls.ca = Some(PathBuf::from(value)),
        "tls_cert" => options.tls.cert = Some(PathBuf::from(value)),
        _ => options.tls.key = Some(PathBuf::from(value)),
    }
    Ok(())
}

fn replicas(value: &str) -> Result<Option<Replicas>, Error> {
    match value {
        "all" => Ok(Some(Replicas::All)),
        "0" => Ok(None),
        _ => match value.parse() {
            Ok(count) => Ok(Some(Replicas::AtLeast(count))),
            Err(_) => Err(invalid(
                "sync_replicas must be how many replicas are to confirm a grant, such as 1, or all",
            )),
        },
    }
}

fn duration(name: &str, value: &str) -> Result<Duration, Error> {
    let wrong = || invalid(format!("{name} must be a time such as 500ms, 5s or 1m, above zero"));
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = value[..digits].parse().map_err(|_| wrong())?;
    let span = match &value[digits..] {
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        "m" => Duration::from_secs(number.checked_mul(60).ok_or_else(wrong)?),
        _ => return Err(wrong()),
    };
    if span.is_zero() { Err(wrong()) } else { Ok(span) }
}
