//! Reading a ZooKeeper URL.

use std::path::PathBuf;

use fencelock_engine::Error;
use fencelock_engine::options::CLIENT_PARAMETERS;
use fencelock_engine::zookeeper::Recipe;

use crate::options::{Acl, Auth, Login, Options, Tls, invalid};

impl Options {
    /// Reads `zk://[user:password@]host[:port],…[/chroot][?option=value&…]`; `zks://` for TLS. The
    /// options are `recipe` (`queue`, `simple`), `acl` (`open`, `creator`), `auth` (`digest`, `sasl`),
    /// and for TLS `tls_ca`, `tls_cert`, `tls_key`: paths of PEM files.
    ///
    /// # Errors
    /// [`fencelock_engine::ErrorKind::InvalidArgument`] says what cannot be read.
    pub fn from_url(url: &str) -> Result<Options, Error> {
        parse(url)
    }
}

fn parse(url: &str) -> Result<Options, Error> {
    let (secure, rest) = match (url.strip_prefix("zk://"), url.strip_prefix("zks://")) {
        (Some(rest), _) => (false, rest),
        (None, Some(rest)) => (true, rest),
        (None, None) => return Err(invalid("a ZooKeeper URL begins with zk:// or zks://")),
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (login, rest) = match rest.rsplit_once('@') {
        Some((login, rest)) => (Some(read_login(login)?), rest),
        None => (None, rest),
    };
    let (hosts, chroot) = match rest.find('/') {
        Some(at) => (&rest[..at], decode(rest[at..].trim_end_matches('/'))?),
        None => (rest, String::new()),
    };
    let mut servers = Vec::new();
    for host in hosts.split(',') {
        servers.push(server(host)?);
    }
    let mut options = Options { login, chroot, ..Options::new(servers) };
    let (mut ca, mut cert, mut key) = (None, None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decode(value)?;
        match (name, value.as_str()) {
            ("recipe", "queue") => options.recipe = Recipe::Queue,
            ("recipe", "simple") => options.recipe = Recipe::Simple,
            ("recipe", _) => return Err(invalid("recipe is queue or simple")),
            ("acl", "open") => options.acl = Acl::Open,
            ("acl", "creator") => options.acl = Acl::Creator,
            ("acl", _) => return Err(invalid("acl is open or creator")),
            ("auth", "digest") => options.auth = Auth::Digest,
            ("auth", "sasl") => options.auth = Auth::Sasl,
            ("auth", _) => return Err(invalid("auth is digest or sasl")),
            ("tls_ca", _) => ca = Some(PathBuf::from(value)),
            ("tls_cert", _) => cert = Some(PathBuf::from(value)),
            ("tls_key", _) => key = Some(PathBuf::from(value)),
            // A '?' in a password makes an option of what follows it.
            _ if query.contains('@') => {
                return Err(invalid(
                    "the ZooKeeper URL cannot be read: a '?' in a password is written %3F",
                ));
            }
            _ => {
                return Err(invalid(format!(
                    "unknown option {name:?} in the ZooKeeper URL; there are recipe, acl, \
                     auth, tls_ca, tls_cert, tls_key, and the client's {CLIENT_PARAMETERS}"
                )));
            }
        }
    }
    options.tls = match (secure, ca, cert, key) {
        (true, Some(ca), None, None) => Some(Tls { ca, identity: None }),
        (true, Some(ca), Some(cert), Some(key)) => Some(Tls { ca, identity: Some((cert, key)) }),
        (true, None, ..) => {
            return Err(invalid("zks:// needs tls_ca=FILE, the authorities to trust, in PEM"));
        }
        (true, ..) => return Err(invalid("tls_cert=FILE and tls_key=FILE belong together")),
        (false, None, None, None) => None,
        (false, ..) => return Err(invalid("tls_ca, tls_cert and tls_key are for TLS: use zks://")),
    };
    options.check()?;
    Ok(options)
}

fn read_login(text: &str) -> Result<Login, Error> {
    let Some((user, password)) = text.split_once(':') else {
        return Err(invalid("a login in the URL is user:password@"));
    };
    let (user, password) = (decode(user)?, decode(password)?);
    if user.is_empty() || user.contains(':') {
        return Err(invalid("the user in the URL must not be empty, nor contain a colon"));
    }
    Ok(Login { user, password })
}

fn server(host: &str) -> Result<String, Error> {
    let wrong = || invalid("the servers in the URL are host or host:port, divided by commas");
    let (name, port) = match host.rsplit_once(':') {
        // An IPv6 address without a port ends with its bracket.
        Some((name, port)) if !port.ends_with(']') => (name, port),
        _ => (host, "2181"),
    };
    let port: u16 = port.parse().map_err(|_| wrong())?;
    let bracketed = name.starts_with('[') && name.ends_with(']');
    if name.is_empty()
        || port == 0
        || name.contains(char::is_whitespace)
        || name.contains(':') && !bracketed
    {
        return Err(wrong());
    }
    Ok(format!("{name}:{port}"))
}

/// Undoes percent-encoding.
fn decode(text: &str) -> Result<String, Error> {
    let wrong = || invalid("a % in the URL must be followed by two hexadecimal digits (UTF-8)");
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
