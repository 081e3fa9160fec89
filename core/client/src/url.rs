//! Reading a store's URL.

use std::fmt;
use std::time::Duration;

use crate::{Error, ErrorKind, Result};

/// Which store a URL names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Memory,
    Sqlite,
    Redis,
    ZooKeeper,
}

/// A store's URL. Shown without what may be secret.
///
/// ```
/// use fencelock::{ErrorKind, StoreUrl};
///
/// let url = StoreUrl::parse("redis://app:secret@cache.example:6380/2")?;
/// assert_eq!(url.scheme(), "redis");
/// assert_eq!(url.to_string(), "redis://***@cache.example:6380/2");
/// assert_eq!(StoreUrl::parse("mysql://h").unwrap_err().kind(), ErrorKind::Unsupported);
/// # Ok::<(), fencelock::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl {
    pub(crate) kind: Kind,
    /// The URL without the client's own options.
    pub(crate) text: String,
}

/// Schemes that are meant to come.
const PLANNED: [&str; 4] = ["redis+quorum", "postgres", "postgresql", "mysql"];

impl StoreUrl {
    /// Reads a URL.
    ///
    /// # Errors
    /// `InvalidArgument` for a scheme that nobody knows or options that cannot be read,
    /// `Unsupported` for a store that this version or this build does not have.
    pub fn parse(text: &str) -> Result<StoreUrl> {
        StoreUrl::split(text).map(|(url, _)| url)
    }

    /// The scheme: `memory`, `sqlite`, `redis`, `rediss`, `redis+unix`, `redis+sentinel`,
    /// `rediss+sentinel`, `redis+cluster`, `rediss+cluster` (or `valkey…`, which mean the same), `zk` or
    /// `zks`.
    pub fn scheme(&self) -> &str {
        self.text.split_once(':').map_or("", |(scheme, _)| scheme)
    }

    /// Whether one server keeps a lock after another there, as behind Sentinels and in a cluster: then
    /// [`Builder::clock_slack`](crate::Builder::clock_slack) is taken off every validity.
    pub fn takes_over(&self) -> bool {
        self.scheme().ends_with("+sentinel") || self.scheme().ends_with("+cluster")
    }

    /// Reads a URL, and takes the client's own options out of its query.
    pub(crate) fn split(text: &str) -> Result<(StoreUrl, ClientOptions)> {
        let Some((scheme, _)) = text.split_once(':') else {
            return Err(invalid(
                "a store's URL begins with its scheme, such as memory:, sqlite:locks.db or \
                 redis://127.0.0.1",
            ));
        };
        let kind = match scheme {
            "memory" => Kind::Memory,
            "sqlite" => Kind::Sqlite,
            "redis" | "rediss" | "redis+unix" | "valkey" | "valkeys" | "valkey+unix"
            | "redis+sentinel" | "rediss+sentinel" | "valkey+sentinel" | "valkeys+sentinel"
            | "redis+cluster" | "rediss+cluster" | "valkey+cluster" | "valkeys+cluster" => {
                Kind::Redis
            }
            "zk" | "zks" => Kind::ZooKeeper,
            planned if PLANNED.contains(&planned) => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    format!("{planned}: is planned, but this version does not have it yet"),
                ));
            }
            other => {
                // Only what looks like a scheme: without one, this may be a password.
                let like =
                    |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+.-".contains(c);
                let named = match other.chars().all(like) && text.contains("://") {
                    true => format!(" {:?}", other.chars().take(20).collect::<String>()),
                    false => String::new(),
                };
                return Err(invalid(format!(
                    "unknown store{named}; there are memory:, sqlite:, redis://, rediss://, \
                     redis+unix://, redis+sentinel://, redis+cluster://, zk:// and zks://"
                )));
            }
        };
        let (base, query) = match text.split_once('?') {
            Some((base, query)) => (base, query),
            None => {
                return Ok((StoreUrl { kind, text: text.to_owned() }, ClientOptions::default()));
            }
        };
        let mut options = ClientOptions::default();
        let mut kept = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let slot = match key {
                "lease" => &mut options.lease,
                "claim" => &mut options.claim,
                "request_timeout" => &mut options.request_timeout,
                "connect_timeout" => &mut options.connect_timeout,
                "retention" => &mut options.retention,
                "clock_slack" => &mut options.clock_slack,
                "label" => {
                    options.label = Some(decode(value)?);
                    continue;
                }
                _ => {
                    kept.push(pair);
                    continue;
                }
            };
            *slot = Some(duration(key, value)?);
        }
        let text = match kept.is_empty() {
            true => base.to_owned(),
            false => format!("{base}?{}", kept.join("&")),
        };
        Ok((StoreUrl { kind, text }, options))
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shown, query) = match self.text.find(['?', '#']) {
            Some(at) => self.text.split_at(at),
            None => (&*self.text, ""),
        };
        let logs_in = matches!(self.kind, Kind::Redis | Kind::ZooKeeper);
        match shown.split_once("://") {
            _ if !logs_in => f.write_str(shown),
            // A '?' or '#' that stands in a password: where the host begins is anybody's guess.
            _ if query.contains('@') => write!(f, "{}://***", self.scheme()),
            None => write!(f, "{}:***", self.scheme()),
            Some((scheme, rest)) => match rest.rsplit_once('@') {
                Some((_, host)) => write!(f, "{scheme}://***@{host}"),
                None => f.write_str(shown),
            },
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

impl std::str::FromStr for StoreUrl {
    type Err = Error;
    fn from_str(text: &str) -> Result<StoreUrl> {
        StoreUrl::parse(text)
    }
}

/// The client's options that may stand in a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientOptions {
    pub(crate) lease: Option<Duration>,
    pub(crate) claim: Option<Duration>,
    pub(crate) request_timeout: Option<Duration>,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) retention: Option<Duration>,
    pub(crate) clock_slack: Option<Duration>,
    pub(crate) label: Option<String>,
}

impl ClientOptions {
    /// These, and where one is not set, the other's.
    pub(crate) fn or(self, other: ClientOptions) -> ClientOptions {
        ClientOptions {
            lease: self.lease.or(other.lease),
            claim: self.claim.or(other.claim),
            request_timeout: self.request_timeout.or(other.request_timeout),
            connect_timeout: self.connect_timeout.or(other.connect_timeout),
            retention: self.retention.or(other.retention),
            clock_slack: self.clock_slack.or(other.clock_slack),
            label: self.label.or(other.label),
        }
    }
}

fn duration(key: &str, value: &str) -> Result<Duration> {
    humantime::parse_duration(value).map_err(|_| {
        invalid(format!("{key} in the URL needs a time with a unit, such as 500ms or 10s"))
    })
}

/// Undoes percent-encoding.
fn decode(text: &str) -> Result<String> {
    let wrong =
        || invalid("a % in the URL's label must be followed by two hexadecimal digits (UTF-8)");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|d| char::from(d).to_digit(16)).ok_or_else(wrong);
        bytes.push((digit()? * 16 + digit()?) as u8);
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

fn invalid(message: impl Into<std::sync::Arc<str>>) -> Error {
    Error::new(ErrorKind::InvalidArgument, message)
}

#[cfg(test)]
mod tests;
