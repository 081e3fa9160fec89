//! What a session needs to know.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use fencelock_engine::zookeeper::{self, Recipe};
use fencelock_engine::{Error, ErrorKind};

/// A user and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user; no colon.
    pub user: String,
    /// The password.
    pub password: String,
}

impl fmt::Debug for Login {
    /// Says nothing of the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// How a login is shown to the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Auth {
    /// ZooKeeper's own `digest` scheme: the password is sent, and the servers know no users.
    #[default]
    Digest,
    /// SASL with DIGEST-MD5: the servers know the users, and the password is not sent. It needs the
    /// feature `sasl`.
    Sasl,
}

/// Who may do what with the nodes that this client makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Acl {
    /// Everybody everything, as Curator does unless told otherwise.
    #[default]
    Open,
    /// Only whoever has the same login. All clients of a lock need it then.
    Creator,
}

/// PEM files for TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The authorities that the servers' certificates are checked against.
    pub ca: PathBuf,
    /// The client's own certificate and key, where the servers ask for one.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// What a session needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The servers, as `host` or `host:port`; port 2181 unless said otherwise.
    pub servers: Vec<String>,
    /// The path under which all locks lie: empty, or `/a/b`. Made when it is missing.
    pub chroot: String,
    /// The login, if there is one.
    pub login: Option<Login>,
    /// How the login is shown.
    pub auth: Auth,
    /// The ACL of the nodes that are made.
    pub acl: Acl,
    /// How a lock is laid out.
    pub recipe: Recipe,
    /// TLS to the servers; needs the feature `tls`.
    pub tls: Option<Tls>,
    /// The session timeout to ask for; the server may grant another.
    pub session_timeout: Duration,
    /// How long one attempt to get a session may take.
    pub connect_timeout: Duration,
    /// The first pause between attempts.
    pub backoff_min: Duration,
    /// The longest pause between attempts.
    pub backoff_max: Duration,
}

impl Options {
    /// The defaults for these servers.
    pub fn new(servers: Vec<String>) -> Options {
        Options {
            servers,
            chroot: String::new(),
            login: None,
            auth: Auth::Digest,
            acl: Acl::Open,
            recipe: Recipe::Queue,
            tls: None,
            session_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            backoff_min: Duration::from_millis(50),
            backoff_max: Duration::from_secs(2),
        }
    }

    /// Checks the options against each other.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`], or [`ErrorKind::Unsupported`] for TLS or SASL without its
    /// feature.
    pub fn check(&self) -> Result<(), Error> {
        if self.servers.is_empty() {
            return Err(invalid("a ZooKeeper URL names at least one server: zk://host:2181"));
        }
        self.machine().check()?;
        if self.acl == Acl::Creator && self.login.is_none() {
            return Err(invalid("acl=creator needs a login: zk://user:password@host"));
        }
        if self.tls.is_some() && cfg!(not(feature = "tls")) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "this build has no TLS for ZooKeeper: turn the feature zookeeper-tls on",
            ));
        }
        if self.auth == Auth::Sasl {
            self.check_sasl()?;
        }
        Ok(())
    }

    fn check_sasl(&self) -> Result<(), Error> {
        let Some(login) = &self.login else {
            return Err(invalid("auth=sasl needs a login: zk://user:password@host"));
        };
        if cfg!(not(feature = "sasl")) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "this build has no SASL for ZooKeeper: turn the feature zookeeper-sasl on, or log in \
                 by auth=digest, where the servers allow it",
            ));
        }
        // The client crate does not escape them where DIGEST-MD5 quotes the name.
        if login.user.contains(['"', '\\']) {
            return Err(invalid("the user of auth=sasl must not contain a quote or a backslash"));
        }
        Ok(())
    }

    pub(crate) fn machine(&self) -> zookeeper::Options {
        zookeeper::Options { chroot: self.chroot.clone(), recipe: self.recipe }
    }

    /// The servers as the client crate reads them.
    pub(crate) fn connect_string(&self) -> String {
        self.servers.join(",")
    }
}

pub(crate) fn invalid(message: impl Into<std::sync::Arc<str>>) -> Error {
    Error::new(ErrorKind::InvalidArgument, message)
}
