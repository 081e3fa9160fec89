//! Real Redis servers, one of which is the master, and the Sentinels that say which.

use std::io;
use std::path::Path;

use crate::redis_builder::RedisBuilder;
use crate::redis_server::RedisServer;
use crate::wait::eventually;
use crate::zookeeper_builder::Place;

/// The master's name with the Sentinels.
const NAME: &str = "shop";

/// How they are to be started; made by `RedisSentinels::builder`.
#[derive(Clone, Debug)]
pub struct SentinelsBuilder {
    password: Option<String>,
    sentinel_password: Option<String>,
    tls: bool,
    lines: Vec<String>,
    down_after: u32,
    places: Vec<Place>,
}

impl SentinelsBuilder {
    /// Sets the servers' password; the Sentinels know it.
    #[must_use]
    pub fn password(mut self, password: &str) -> SentinelsBuilder {
        self.password = Some(password.to_owned());
        self
    }

    /// Sets the Sentinels' own password.
    #[must_use]
    pub fn sentinel_password(mut self, password: &str) -> SentinelsBuilder {
        self.sentinel_password = Some(password.to_owned());
        self
    }

    /// Sentinels and servers listen by TLS as well, with certificates for `127.0.0.1`.
    #[must_use]
    pub fn tls(mut self) -> SentinelsBuilder {
        self.tls = true;
        self
    }

    /// Adds a line of the servers' configuration.
    #[must_use]
    pub fn config(mut self, line: &str) -> SentinelsBuilder {
        self.lines.push(line.to_owned());
        self
    }

    /// For how long a server must be silent until a Sentinel takes it for down, in milliseconds: 500
    /// unless said otherwise.
    #[must_use]
    pub fn down_after(mut self, millis: u32) -> SentinelsBuilder {
        self.down_after = millis;
        self
    }

    /// Runs a server and a Sentinel at each of three places.
    #[must_use]
    pub fn places(mut self, places: Vec<Place>) -> SentinelsBuilder {
        self.places = places;
        self
    }

    /// Starts a master, two replicas and three Sentinels, and waits until these know each other.
    ///
    /// # Errors
    /// When one of them does not come up.
    pub fn start(self) -> io::Result<RedisSentinels> {
        let place = |at: usize| self.places.get(at).cloned();
        let master = self.server().place(place(0)).start()?;
        let primary = format!("replicaof {} {}", master.host(), master.port());
        let mut servers = vec![master];
        for at in 1..3 {
            servers.push(self.server().place(place(at)).config(&primary).start()?);
        }
        for server in &servers[1..] {
            eventually("the replica follows", || follows(server).then_some(()));
        }
        let sentinels = (0..3).map(|at| self.sentinel(&servers[0]).place(place(at)).start());
        let sentinels = sentinels.collect::<io::Result<Vec<_>>>()?;
        let all = RedisSentinels { servers, sentinels };
        for sentinel in 0..all.sentinels.len() {
            eventually("the Sentinels know all", || all.knows_all(sentinel).then_some(()));
        }
        Ok(all)
    }

    fn server(&self) -> RedisBuilder {
        let mut builder = RedisServer::builder().keeps_file().config("repl-diskless-sync-delay 0");
        if let Some(password) = &self.password {
            builder = builder.password(password).config(&format!("masterauth {password}"));
        }
        self.lines.iter().fold(self.encrypted(builder), |builder, line| builder.config(line))
    }

    fn sentinel(&self, master: &RedisServer) -> RedisBuilder {
        let mut builder = RedisServer::builder().sentinel();
        if let Some(password) = &self.sentinel_password {
            builder =
                builder.password(password).config(&format!("sentinel sentinel-pass {password}"));
        }
        builder = builder
            .config(&format!("sentinel monitor {NAME} {} {} 2", master.host(), master.port()))
            .config(&format!("sentinel down-after-milliseconds {NAME} {}", self.down_after))
            .config(&format!("sentinel failover-timeout {NAME} 3000"));
        if let Some(password) = &self.password {
            builder = builder.config(&format!("sentinel auth-pass {NAME} {password}"));
        }
        self.encrypted(builder)
    }

    fn encrypted(&self, builder: RedisBuilder) -> RedisBuilder {
        if self.tls { builder.tls(false) } else { builder }
    }
}

/// A master, two replicas and three Sentinels, which are real processes.
#[derive(Debug)]
pub struct RedisSentinels {
    /// The servers; which of them is the master changes.
    pub servers: Vec<RedisServer>,
    /// The Sentinels.
    pub sentinels: Vec<RedisServer>,
}

impl RedisSentinels {
    /// How they are to be started.
    pub fn builder() -> SentinelsBuilder {
        SentinelsBuilder {
            password: None,
            sentinel_password: None,
            tls: false,
            lines: Vec::new(),
            down_after: 500,
            places: Vec::new(),
        }
    }

    /// Starts them as they come.
    ///
    /// # Errors
    /// When one of them does not come up.
    pub fn start() -> io::Result<RedisSentinels> {
        RedisSentinels::builder().start()
    }

    /// `redis+sentinel://127.0.0.1:…,…/shop`, without passwords.
    pub fn url(&self) -> String {
        let nodes: Vec<String> = self.sentinels.iter().map(RedisServer::address).collect();
        format!("redis+sentinel://{}/{NAME}", nodes.join(","))
    }

    /// The master's name with the Sentinels.
    pub fn name(&self) -> &'static str {
        NAME
    }

    /// The authority of the certificates that a Sentinel or a server shows, where they have TLS.
    pub fn authority<'a>(&self, server: &'a RedisServer) -> Option<&'a Path> {
        server.certificates().map(|files| files.ca.as_path())
    }

    /// Which server this Sentinel says is the master.
    pub fn says(&self, sentinel: usize) -> Option<usize> {
        let reply = self.sentinels[sentinel].cli(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]);
        let (_, port): (String, u16) = redis::from_redis_value(reply.ok()?).ok()?;
        self.servers.iter().position(|server| server.port() == port)
    }

    /// Waits until all Sentinels agree on a master other than `old`; gives it.
    pub fn await_master_after(&self, old: usize) -> usize {
        eventually("another master is known to all Sentinels", || {
            let said: Vec<_> = (0..self.sentinels.len()).map(|at| self.says(at)).collect();
            said[0].filter(|new| *new != old && said.iter().all(|other| *other == said[0]))
        })
    }

    /// Asks a Sentinel for a planned failover, and waits until all know the new master; gives it.
    pub fn failover(&self) -> usize {
        let old = self.says(0);
        eventually("a failover begins", || {
            self.sentinels[0].cli(&["SENTINEL", "FAILOVER", NAME]).ok()
        });
        self.await_master_after(old.unwrap_or(usize::MAX))
    }

    fn knows_all(&self, sentinel: usize) -> bool {
        let count = |what: &str| {
            let reply = self.sentinels[sentinel].cli(&["SENTINEL", what, NAME]);
            let list =
                reply.and_then(|reply| Ok(redis::from_redis_value::<Vec<redis::Value>>(reply)?));
            list.map_or(0, |list| list.len())
        };
        count("SENTINELS") == 2 && count("REPLICAS") == 2
    }
}

/// Whether a replica has what its master has.
fn follows(server: &RedisServer) -> bool {
    let reply = server.cli(&["INFO", "replication"]);
    reply
        .and_then(|reply| Ok(redis::from_redis_value::<String>(reply)?))
        .is_ok_and(|text| text.contains("role:slave") && text.contains("master_link_status:up"))
}
