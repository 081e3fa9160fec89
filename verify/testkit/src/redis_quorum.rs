//! Real Redis servers that know nothing of each other, most of which must agree.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use fencelock_engine::redis::{Charter, Node, run_of};

use crate::proxy::Proxy;
use crate::redis_builder::RedisBuilder;
use crate::redis_server::RedisServer;

/// How they are to be started; made by `RedisQuorum::builder`.
#[derive(Clone, Debug)]
pub struct QuorumBuilder {
    servers: usize,
    each: RedisBuilder,
    fresh: bool,
    max_lease: Duration,
}

impl QuorumBuilder {
    /// How many servers there are: three unless said otherwise.
    #[must_use]
    pub fn servers(mut self, count: usize) -> QuorumBuilder {
        self.servers = count;
        self
    }

    /// How each of them is to be started.
    #[must_use]
    pub fn each(mut self, builder: RedisBuilder) -> QuorumBuilder {
        self.each = builder;
        self
    }

    /// The longest lease, which the URL names: 60 s unless said otherwise.
    #[must_use]
    pub fn max_lease(mut self, span: Duration) -> QuorumBuilder {
        self.max_lease = span;
        self
    }

    /// Without a word of an operator: they give no votes before they have remembered for the longest lease.
    #[must_use]
    pub fn fresh(mut self) -> QuorumBuilder {
        self.fresh = true;
        self
    }

    /// Starts them, and a proxy before each.
    ///
    /// # Errors
    /// When one of them does not come up.
    pub fn start(self) -> io::Result<RedisQuorum> {
        let servers = (0..self.servers).map(|_| self.each.clone().start());
        let servers = servers.collect::<io::Result<Vec<_>>>()?;
        let proxies = servers.iter().map(|server| Proxy::start(&server.address()));
        let proxies = proxies.collect::<io::Result<Vec<_>>>()?;
        let quorum = RedisQuorum { servers, proxies, max_lease: self.max_lease };
        if !self.fresh {
            (0..self.servers).try_for_each(|at| quorum.init(at))?;
        }
        Ok(quorum)
    }
}

/// Independent servers, which are real processes, each behind a proxy. In the URL they are `q1`, `q2` and so on,
/// in this order.
#[derive(Debug)]
pub struct RedisQuorum {
    /// The servers.
    pub servers: Vec<RedisServer>,
    /// What stands before each of them.
    pub proxies: Vec<Proxy>,
    max_lease: Duration,
}

impl RedisQuorum {
    /// How they are to be started.
    pub fn builder() -> QuorumBuilder {
        QuorumBuilder {
            servers: 3,
            each: RedisServer::builder(),
            fresh: false,
            max_lease: Duration::from_secs(60),
        }
    }

    /// Starts three, which give votes at once.
    ///
    /// # Errors
    /// When one of them does not come up.
    pub fn start() -> io::Result<RedisQuorum> {
        RedisQuorum::builder().start()
    }

    /// `redis+quorum://q1,q2,q3?map=q1=127.0.0.1:…,…&max_lease=60000ms`: by the proxies, without passwords.
    pub fn url(&self) -> String {
        let addresses: Vec<_> = self.proxies.iter().map(|it| it.address().to_string()).collect();
        self.url_by(&addresses)
    }

    /// The same past the proxies.
    pub fn direct_url(&self) -> String {
        let addresses: Vec<_> = self.servers.iter().map(RedisServer::address).collect();
        self.url_by(&addresses)
    }

    fn url_by(&self, addresses: &[String]) -> String {
        let mut url = format!("redis+quorum://{}?map=", self.names().join(","));
        for (at, (name, address)) in self.names().iter().zip(addresses).enumerate() {
            let comma = if at == 0 { "" } else { "," };
            // Writing to a string cannot fail.
            let _ = write!(url, "{comma}{name}={address}");
        }
        let _ = write!(url, "&max_lease={}ms", self.max_lease.as_millis());
        url
    }

    /// The servers' names in the URL.
    pub fn names(&self) -> Vec<String> {
        (1..=self.servers.len()).map(|number| format!("q{number}")).collect()
    }

    /// The longest lease.
    pub fn max_lease(&self) -> Duration {
        self.max_lease
    }

    /// Says that a server has remembered for long, with the default prefix of keys, as an operator does.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn init(&self, at: usize) -> io::Result<()> {
        self.init_of(at, "fl:")
    }

    /// The same with another prefix.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn init_of(&self, at: usize, prefix: &str) -> io::Result<()> {
        let names = self.names();
        let nodes: Vec<Node> = names.iter().filter_map(|name| Node::parse(name, 6379)).collect();
        let charter = Charter::new(&nodes, self.max_lease, prefix);
        let server = &self.servers[at];
        let info = server.cli(&["INFO", "server"]).map_err(io::Error::other)?;
        let info: String = redis::from_redis_value(info).map_err(io::Error::other)?;
        let run = run_of(&info).ok_or_else(|| io::Error::other("INFO has no run_id"))?;
        let key = String::from_utf8_lossy(charter.marker()).into_owned();
        let list = charter.fingerprint();
        server
            .cli(&["HSET", &key, "run", run, "birth", "1", "list", list])
            .map(drop)
            .map_err(io::Error::other)
    }
}
