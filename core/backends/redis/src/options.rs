//! Where the server is, and how to reach it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fencelock_engine::options::{self, MIN_LEASE, Options as ClientOptions};
use fencelock_engine::redis::session::{Login, Protocol};
use fencelock_engine::redis::sync::{self, Naming, Replicas};
use fencelock_engine::redis::{Codec, Node};
use fencelock_engine::{Error, ErrorKind};

use crate::credentials::Credentials;

/// The default beginning of every key and channel.
pub const DEFAULT_PREFIX: &str = "fl:";

/// The longest lease with a quorum, unless said otherwise.
const MAX_LEASE: Duration = Duration::from_secs(60);

/// More servers cost more than they forgive.
const MOST_SERVERS: usize = 15;

/// How long is waited for replicas unless asked otherwise.
const SYNC_TIMEOUT: Duration = Duration::from_secs(1);

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host and a port, in the clear.
    Tcp {
        /// A name or an IP address.
        host: String,
        /// Usually 6379.
        port: u16,
    },
    /// A host and a port, by TLS.
    Tls {
        /// The name that the server's certificate must carry.
        host: String,
        /// Usually 6379 or 6380.
        port: u16,
    },
    /// A unix socket.
    Unix(PathBuf),
    /// Whichever server the Sentinels say is the master.
    Sentinel(Box<Sentinel>),
    /// All masters of a cluster.
    Cluster(Box<Cluster>),
    /// A majority of independent servers.
    Quorum(Box<Quorum>),
}

impl Address {
    /// Whether connections to the server are by TLS.
    pub(crate) fn is_tls(&self) -> bool {
        match self {
            Address::Tls { .. } => true,
            Address::Sentinel(sentinel) => sentinel.tls,
            Address::Cluster(cluster) => cluster.tls,
            Address::Quorum(quorum) => quorum.tls,
            Address::Tcp { .. } | Address::Unix(_) => false,
        }
    }
}

/// The Sentinels that know which server is the master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentinel {
    /// Where they listen, usually on port 26379. All of them are asked, so name them all.
    pub nodes: Vec<Node>,
    /// The master's name: the one in `sentinel monitor`.
    pub master: String,
    /// Whether the master is reached by TLS.
    pub tls: bool,
    /// Whether the Sentinels are.
    pub sentinel_tls: bool,
    /// The user and password for the Sentinels: those of the master are not used.
    pub login: Option<Login>,
    /// By which address a server is reached that the Sentinels see by another, behind NAT.
    pub map: BTreeMap<Node, Node>,
}

impl Sentinel {
    /// Sentinels without a login of their own, as far from each other and from here as the servers.
    pub fn new(nodes: Vec<Node>, master: impl Into<String>) -> Sentinel {
        let (master, map) = (master.into(), BTreeMap::new());
        Sentinel { nodes, master, tls: false, sentinel_tls: false, login: None, map }
    }
}

/// A cluster, by some of its servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Where they listen. One that can be reached tells of the others.
    pub nodes: Vec<Node>,
    /// Whether the servers are reached by TLS.
    pub tls: bool,
    /// By which address a server is reached that the others see by another, behind NAT.
    pub map: BTreeMap<Node, Node>,
}

impl Cluster {
    /// A cluster without TLS, whose servers are reached as they see each other.
    pub fn new(nodes: Vec<Node>) -> Cluster {
        Cluster { nodes, tls: false, map: BTreeMap::new() }
    }
}

/// Independent servers, most of which must agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quorum {
    /// The servers, by the names that all clients use, in any order: three at least, and an odd number, since
    /// one more to an odd number must be asked and forgives no more failures.
    pub nodes: Vec<Node>,
    /// Whether they are reached by TLS.
    pub tls: bool,
    /// By which address a server is reached from here, where that is not its name.
    pub map: BTreeMap<Node, Node>,
    /// The longest lease that anybody asks for, and for how long a server that has forgotten gives no votes.
    /// All clients must say the same. Default 60 s.
    pub max_lease: Duration,
}

impl Quorum {
    /// Servers without TLS, which are reached by their names.
    pub fn new(nodes: Vec<Node>) -> Quorum {
        Quorum { nodes, tls: false, map: BTreeMap::new(), max_lease: MAX_LEASE }
    }

    /// Which of them are needed: more than half.
    pub fn majority(&self) -> usize {
        self.nodes.len() / 2 + 1
    }

    /// The servers in the order in which all clients have them.
    pub(crate) fn sorted(&self) -> Vec<Node> {
        let mut names = self.nodes.clone();
        names.sort_by_key(Node::to_string);
        names
    }

    /// How a server is reached from here.
    pub(crate) fn reached(&self, name: &Node) -> Node {
        self.map.get(name).unwrap_or(name).clone()
    }

    fn check(&self) -> Result<(), Error> {
        let mut names = self.sorted();
        names.dedup();
        if names.len() < self.nodes.len() {
            return Err(invalid("a server of the quorum is named twice: it would vote twice"));
        }
        if names.len() < 3 {
            return Err(invalid(
                "a quorum has three servers or more: redis+quorum://h1,h2,h3; of two, both are needed, \
                 and one alone is redis://",
            ));
        }
        if names.len() > MOST_SERVERS {
            return Err(invalid(format!(
                "a quorum has {MOST_SERVERS} servers at the most: each is asked for every lock"
            )));
        }
        if let Some(node) = self.map.keys().find(|node| !self.nodes.contains(node)) {
            return Err(invalid(format!(
                "map says how to reach {node}, which the URL does not name: name the server as every \
                 client does, and write name=address in map"
            )));
        }
        if self.max_lease < MIN_LEASE || self.max_lease > options::MAX_LEASE {
            return Err(invalid("max_lease must lie between 100 ms and 7 days"));
        }
        Ok(())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { host, port } | Address::Tls { host, port } if host.contains(':') => {
                write!(f, "[{host}]:{port}")
            }
            Address::Tcp { host, port } | Address::Tls { host, port } => write!(f, "{host}:{port}"),
            Address::Unix(path) => path.display().fmt(f),
            Address::Sentinel(sentinel) => {
                write!(f, "{}/{}", all(&sentinel.nodes), sentinel.master)
            }
            Address::Cluster(cluster) => f.write_str(&all(&cluster.nodes)),
            Address::Quorum(quorum) => f.write_str(&all(&quorum.nodes)),
        }
    }
}

fn all(nodes: &[Node]) -> String {
    let nodes: Vec<String> = nodes.iter().map(Node::to_string).collect();
    nodes.join(",")
}

/// Certificates. The files are read afresh at every connect, so that they may be replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// PEM file of the authorities to trust, instead of the system's.
    pub ca: Option<PathBuf>,
    /// PEM file of the client's certificate, and of those between it and its authority.
    pub cert: Option<PathBuf>,
    /// PEM file of the client's private key.
    pub key: Option<PathBuf>,
}

/// Where the server is, and how to reach it. Make it with [`Options::from_url`] or
/// [`Options::new`], then set fields.
///
/// ```
/// use fencelock_redis::Options;
///
/// let mut options = Options::from_url("rediss://app:secret@cache.example:6380/2")?;
/// options.prefix = "shop:".to_owned();
/// assert!(!format!("{options:?}").contains("secret"));
/// # Ok::<(), fencelock_engine::Error>(())
/// ```
#[derive(Clone)]
pub struct Options {
    /// Where the server listens.
    pub address: Address,
    /// The user and password, unless `credentials` is given.
    pub login: Option<Login>,
    /// Asked for a login at every connect.
    pub credentials: Option<Arc<dyn Credentials>>,
    /// The database's number. Default 0.
    pub db: u32,
    /// The beginning of every key and channel. Default `fl:`.
    pub prefix: String,
    /// How long making a connection may take, name lookup, TLS and login included. Default 5 s.
    pub connect_timeout: Duration,
    /// The first pause between two attempts to connect. Default 10 ms.
    pub backoff_min: Duration,
    /// The longest pause between two attempts to connect. Default 1 s.
    pub backoff_max: Duration,
    /// Certificates, for [`Address::Tls`].
    pub tls: Tls,
    /// Which protocol to speak. Default: RESP3 when the server has it.
    pub protocol: Protocol,
    /// What the client counts with: the votes of a quorum are counted by it. A client sets its own.
    pub client: ClientOptions,
    /// How many replicas are to have a grant before it counts. Default: nobody waits for any.
    pub sync_replicas: Option<Replicas>,
    /// How long is waited for them at the most, and never longer than a third of the lease. Default 1 s.
    pub sync_timeout: Duration,
    /// They are to have it on their disks (`WAITAOF`, from Redis 7.2 on). Default false.
    pub sync_disk: bool,
}

impl Options {
    /// Defaults for a server at `address`.
    pub fn new(address: Address) -> Options {
        Options {
            address,
            login: None,
            credentials: None,
            db: 0,
            prefix: DEFAULT_PREFIX.to_owned(),
            connect_timeout: Duration::from_secs(5),
            backoff_min: Duration::from_millis(10),
            backoff_max: Duration::from_secs(1),
            tls: Tls::default(),
            protocol: Protocol::Auto,
            client: ClientOptions::default(),
            sync_replicas: None,
            sync_timeout: SYNC_TIMEOUT,
            sync_disk: false,
        }
    }

    /// These, for one of several servers.
    pub(crate) fn of_server(&self, node: Node, tls: bool) -> Options {
        let Node { host, port } = node;
        let address = if tls { Address::Tls { host, port } } else { Address::Tcp { host, port } };
        Options { address, ..self.clone() }
    }

    /// Takes over address, user, password, database and protocol of a client of the `redis` crate.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] when it does without checking certificates, or carries
    /// certificates of its own (set [`Options::tls`] instead: they cannot be read back).
    pub fn from_client(client: &redis::Client) -> Result<Options, Error> {
        Options::from_info(client.get_connection_info())
    }

    pub(crate) fn from_info(info: &redis::ConnectionInfo) -> Result<Options, Error> {
        let address = match info.addr() {
            redis::ConnectionAddr::Tcp(host, port) => {
                Address::Tcp { host: host.clone(), port: *port }
            }
            redis::ConnectionAddr::TcpTls { insecure: true, .. } => {
                return Err(invalid(
                    "certificates are always checked here: give the authority's file as tls_ca \
                     instead of the insecure mode",
                ));
            }
            redis::ConnectionAddr::TcpTls { tls_params: Some(_), .. } => {
                return Err(invalid(
                    "the certificates of this redis client cannot be read back: make the options \
                     from its URL and set tls.ca, tls.cert and tls.key",
                ));
            }
            redis::ConnectionAddr::TcpTls { host, port, .. } => {
                Address::Tls { host: host.clone(), port: *port }
            }
            redis::ConnectionAddr::Unix(path) => Address::Unix(path.clone()),
            _ => return Err(invalid("this kind of address is not known here")),
        };
        let settings = info.redis_settings();
        let mut options = Options::new(address);
        options.db = u32::try_from(settings.db())
            .map_err(|_| invalid("the database's number must not be negative"))?;
        options.login = match (settings.username(), settings.password()) {
            (user, Some(password)) => {
                Some(Login { user: user.map(str::to_owned), password: password.to_owned() })
            }
            (None, None) => None,
            (Some(_), None) => {
                return Err(invalid(
                    "a user is given without a password: write user:password@host",
                ));
            }
        };
        Ok(options)
    }

    /// What replicas are to confirm, if anything.
    pub(crate) fn sync(&self) -> Option<sync::Terms> {
        let naming = match &self.address {
            Address::Sentinel(_) => Naming::Told,
            Address::Cluster(_) => Naming::Nodes,
            _ => Naming::Role,
        };
        let (timeout, disk) = (self.sync_timeout, self.sync_disk);
        self.sync_replicas.map(|replicas| sync::Terms { replicas, naming, timeout, disk })
    }

    /// Checks what can be checked without a server.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] names the first option that is wrong.
    pub fn check(&self) -> Result<(), Error> {
        if self.connect_timeout.is_zero() {
            return Err(invalid("connect_timeout must be above zero"));
        }
        if self.backoff_min.is_zero() || self.backoff_max < self.backoff_min {
            return Err(invalid("backoff_min must be above zero and at most backoff_max"));
        }
        Codec::check_prefix(&self.prefix)?;
        if self.sync_replicas == Some(Replicas::AtLeast(0)) {
            return Err(invalid(
                "sync_replicas must be a number of replicas from 1 on, or all: leave it out to wait for \
                 none",
            ));
        }
        if self.sync_timeout.is_zero() {
            return Err(invalid("sync_timeout must be above zero, such as 1s"));
        }
        let waits = self.sync_replicas.is_some();
        if !waits && (self.sync_disk || self.sync_timeout != SYNC_TIMEOUT) {
            return Err(invalid(
                "sync_timeout and sync_disk say how to wait for replicas: say for how many by \
                 sync_replicas=1, or all",
            ));
        }
        if self.tls.cert.is_some() != self.tls.key.is_some() {
            return Err(invalid("tls_cert and tls_key belong together: give both or neither"));
        }
        let sentinels = match &self.address {
            Address::Sentinel(sentinel) => Some(sentinel),
            _ => None,
        };
        let tls = self.address.is_tls() || sentinels.is_some_and(|it| it.sentinel_tls);
        if self.tls != Tls::default() && !tls {
            return Err(invalid("tls_ca, tls_cert and tls_key need a rediss:// address"));
        }
        if let Some(sentinel) = sentinels {
            if sentinel.nodes.is_empty() {
                return Err(invalid("name the Sentinels: redis+sentinel://h1,h2,h3/master"));
            }
            if sentinel.master.is_empty() || sentinel.master.contains([' ', '\r', '\n']) {
                return Err(invalid(
                    "name the master as 'sentinel monitor' does: redis+sentinel://h1,h2,h3/master",
                ));
            }
        }
        if let Address::Cluster(cluster) = &self.address {
            if cluster.nodes.is_empty() {
                return Err(invalid("name servers of the cluster: redis+cluster://h1,h2,h3"));
            }
            if self.db != 0 {
                return Err(invalid("a cluster has database 0 only: leave the number out"));
            }
        }
        if let Address::Quorum(quorum) = &self.address {
            quorum.check()?;
        }
        #[cfg(not(unix))]
        if matches!(self.address, Address::Unix(_)) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "unix sockets are not supported on this system: use redis://host:port",
            ));
        }
        Ok(())
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("address", &self.address)
            .field("login", &self.login)
            .field("credentials", &self.credentials.as_ref().map(|_| "callback"))
            .field("db", &self.db)
            .field("prefix", &self.prefix)
            .field("connect_timeout", &self.connect_timeout)
            .field("backoff_min", &self.backoff_min)
            .field("backoff_max", &self.backoff_max)
            .field("tls", &self.tls)
            .field("protocol", &self.protocol)
            .field("sync_replicas", &self.sync_replicas)
            .field("sync_timeout", &self.sync_timeout)
            .field("sync_disk", &self.sync_disk)
            .finish()
    }
}

pub(crate) fn invalid(message: impl Into<Arc<str>>) -> Error {
    Error::new(ErrorKind::InvalidArgument, message)
}
