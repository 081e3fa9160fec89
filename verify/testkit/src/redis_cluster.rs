//! Real Redis servers that make a cluster.

use std::io;
use std::ops::RangeInclusive;

use crate::redis_builder::RedisBuilder;
use crate::redis_server::RedisServer;
use crate::wait::eventually;
use crate::zookeeper_builder::Place;

/// How many masters there are; each has a replica.
const MASTERS: u16 = 3;

/// How many slots a cluster has.
const SLOTS: u16 = 16_384;

/// How it is to be started; made by `RedisCluster::builder`.
#[derive(Clone, Debug)]
pub struct ClusterBuilder {
    password: Option<String>,
    lines: Vec<String>,
    replicas: bool,
    places: Vec<Place>,
}

impl ClusterBuilder {
    /// Without replicas: nobody takes over.
    #[must_use]
    pub fn masters_alone(mut self) -> ClusterBuilder {
        self.replicas = false;
        self
    }

    /// Runs a server at each of these places, which are as many as there are servers.
    #[must_use]
    pub fn places(mut self, places: Vec<Place>) -> ClusterBuilder {
        self.places = places;
        self
    }

    /// Sets the servers' password.
    #[must_use]
    pub fn password(mut self, password: &str) -> ClusterBuilder {
        self.password = Some(password.to_owned());
        self
    }

    /// Adds a line of the servers' configuration.
    #[must_use]
    pub fn config(mut self, line: &str) -> ClusterBuilder {
        self.lines.push(line.to_owned());
        self
    }

    /// Starts three masters, each with a third of the slots, and a replica of each, and waits until all
    /// know each other.
    ///
    /// # Errors
    /// When one of them does not come up.
    pub fn start(self) -> io::Result<RedisCluster> {
        let count = if self.replicas { 2 * MASTERS } else { MASTERS };
        let place = |at: u16| self.places.get(usize::from(at)).cloned();
        let servers = (0..count).map(|at| self.server().place(place(at)).start());
        let cluster = RedisCluster { servers: servers.collect::<io::Result<_>>()? };
        cluster.meet();
        for master in 0..MASTERS {
            let slots = slots_of(master);
            let (first, last) = (slots.start().to_string(), slots.end().to_string());
            cluster.ask(usize::from(master), &["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
        }
        for master in 0..usize::from(count - MASTERS) {
            let (replica, id) = (master + usize::from(MASTERS), cluster.id(master));
            eventually("the replica knows its master", || {
                cluster.servers[replica].cli(&["CLUSTER", "REPLICATE", &id]).ok()
            });
        }
        for server in 0..cluster.servers.len() {
            eventually("the cluster serves", || cluster.is_ready(server).then_some(()));
        }
        Ok(cluster)
    }

    fn server(&self) -> RedisBuilder {
        let mut builder = RedisServer::builder().in_cluster();
        for line in [
            "cluster-node-timeout 2000",
            "cluster-replica-validity-factor 0",
            "repl-diskless-sync-delay 0",
            "repl-ping-replica-period 1",
        ] {
            builder = builder.config(line);
        }
        if let Some(password) = &self.password {
            builder = builder.password(password).config(&format!("masterauth {password}"));
        }
        self.lines.iter().fold(builder, |builder, line| builder.config(line))
    }
}

/// Which slots a master has at the beginning.
fn slots_of(master: u16) -> RangeInclusive<u16> {
    let of = |master: u16| (u32::from(master) * u32::from(SLOTS) / u32::from(MASTERS)) as u16;
    of(master)..=of(master + 1) - 1
}

/// Three masters and a replica of each, which are real processes.
#[derive(Debug)]
pub struct RedisCluster {
    /// First those that were masters at the beginning, then their replicas in the same order.
    pub servers: Vec<RedisServer>,
}

impl RedisCluster {
    /// How it is to be started.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder { password: None, lines: Vec::new(), replicas: true, places: Vec::new() }
    }

    /// Starts it as it comes.
    ///
    /// # Errors
    /// When a server does not come up.
    pub fn start() -> io::Result<RedisCluster> {
        RedisCluster::builder().start()
    }

    /// `redis+cluster://127.0.0.1:…,…`, without a password, with all that were masters at the beginning.
    pub fn url(&self) -> String {
        let masters = &self.servers[..usize::from(MASTERS)];
        let nodes: Vec<String> = masters.iter().map(RedisServer::address).collect();
        format!("redis+cluster://{}", nodes.join(","))
    }

    /// A name, beginning with `prefix`, whose slot this server had at the beginning.
    pub fn name_at(&self, master: usize, prefix: &str) -> String {
        let slots = slots_of(master as u16);
        let mut names = (0..).map(|number| format!("{prefix}{number}"));
        let found = names.find(|name| slots.contains(&self.slot(name)));
        found.unwrap_or_default()
    }

    /// The slot of a lock.
    pub fn slot(&self, name: &str) -> u16 {
        let name = fencelock_engine::Name::new(name);
        name.map_or(0, |name| fencelock_engine::redis::cluster::place(&name).0)
    }

    /// Which server is the master of a slot, as most of those say that answer.
    pub fn master_of(&self, slot: u16) -> Option<usize> {
        let mut votes = vec![0; self.servers.len()];
        for server in self.servers.iter().filter(|server| server.answers()) {
            let Ok(reply) = server.cli(&["CLUSTER", "SLOTS"]) else { continue };
            let Ok(ranges) = redis::from_redis_value::<Vec<Vec<redis::Value>>>(reply) else {
                continue;
            };
            for range in ranges {
                let number = |at: usize| redis::from_redis_value::<u16>(range[at].clone()).ok();
                let (Some(first), Some(last)) = (number(0), number(1)) else { continue };
                if !(first..=last).contains(&slot) {
                    continue;
                }
                let master: Vec<redis::Value> =
                    redis::from_redis_value(range[2].clone()).unwrap_or_default();
                let port = master.get(1).and_then(|it| redis::from_redis_value(it.clone()).ok());
                if let Some(at) = self.servers.iter().position(|it| Some(it.port()) == port) {
                    votes[at] += 1;
                }
            }
        }
        (0..votes.len()).max_by_key(|at| votes[*at]).filter(|at| votes[*at] > 0)
    }

    /// Waits until the slots that this server had are another's; gives which.
    pub fn await_heir(&self, master: usize) -> usize {
        let slot = *slots_of(master as u16).start();
        eventually("another server has the slots", || {
            self.master_of(slot).filter(|heir| *heir != master)
        })
    }

    /// Has the replica take over from the master, as an operator does, and waits until it has; both live.
    pub fn failover(&self, master: usize) -> usize {
        let replica = master + usize::from(MASTERS);
        eventually("a failover begins", || {
            self.servers[replica].cli(&["CLUSTER", "FAILOVER"]).ok()
        });
        self.await_heir(master)
    }

    /// Begins to move a slot.
    pub fn begin_move(&self, slot: u16, from: usize, to: usize) {
        let (slot, source, target) = (slot.to_string(), self.id(from), self.id(to));
        self.ask(to, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source]);
        self.ask(from, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target]);
    }

    /// Moves the keys of a slot, as many as there are.
    pub fn move_keys(&self, slot: u16, from: usize, to: usize) {
        let (slot, port) = (slot.to_string(), self.servers[to].port().to_string());
        let host = self.servers[to].host();
        loop {
            let keys = self.ask(from, &["CLUSTER", "GETKEYSINSLOT", &slot, "1000"]);
            let keys: Vec<String> = redis::from_redis_value(keys).unwrap_or_default();
            if keys.is_empty() {
                return;
            }
            for key in keys {
                // A key that went in between is none of an error.
                self.ask(from, &["MIGRATE", &host, &port, &key, "0", "5000"]);
            }
        }
    }

    /// Says where a slot is now.
    pub fn end_move(&self, slot: u16, from: usize, to: usize) {
        let (slot, target) = (slot.to_string(), self.id(to));
        for server in [to, from] {
            self.ask(server, &["CLUSTER", "SETSLOT", &slot, "NODE", &target]);
        }
    }

    /// Moves a slot with its keys.
    pub fn move_slot(&self, slot: u16, from: usize, to: usize) {
        self.begin_move(slot, from, to);
        self.move_keys(slot, from, to);
        self.end_move(slot, from, to);
    }

    /// What a server answers.
    ///
    /// # Panics
    /// When it refuses.
    pub fn ask(&self, server: usize, words: &[&str]) -> redis::Value {
        let reply = self.servers[server].cli(words);
        reply.unwrap_or_else(|error| panic!("{words:?} at server {server}: {error}"))
    }

    fn id(&self, server: usize) -> String {
        redis::from_redis_value(self.ask(server, &["CLUSTER", "MYID"])).unwrap_or_default()
    }

    /// How many keys a server has.
    pub fn keys(&self, server: usize) -> usize {
        redis::from_redis_value(self.ask(server, &["DBSIZE"])).unwrap_or(0)
    }

    fn meet(&self) {
        for (epoch, server) in self.servers.iter().enumerate() {
            let first = &self.servers[0];
            let (port, bus) = (first.port().to_string(), first.bus_port().to_string());
            let own = (epoch + 1).to_string();
            let _ = server.cli(&["CLUSTER", "SET-CONFIG-EPOCH", &own]);
            if epoch > 0 {
                let _ = server.cli(&["CLUSTER", "MEET", &first.host(), &port, &bus]);
            }
        }
        for server in 0..self.servers.len() {
            eventually("the servers know each other", || {
                let known = format!("cluster_known_nodes:{}\r", self.servers.len());
                self.info(server).contains(&known).then_some(())
            });
        }
    }

    /// Whether each server thinks that all slots are served.
    pub fn serves(&self) -> bool {
        (0..self.servers.len()).all(|at| self.info(at).contains("cluster_state:ok"))
    }

    fn info(&self, server: usize) -> String {
        let reply = self.servers[server].cli(&["CLUSTER", "INFO"]);
        reply.ok().and_then(|it| redis::from_redis_value(it).ok()).unwrap_or_default()
    }

    /// Whether a server sees all slots served and all replicas of the others, and, if it is a replica, has
    /// what its master has.
    fn is_ready(&self, server: usize) -> bool {
        let ask = |words: &[&str]| {
            let reply = self.servers[server].cli(words).ok();
            reply.and_then(|it| redis::from_redis_value::<String>(it).ok()).unwrap_or_default()
        };
        let nodes = ask(&["CLUSTER", "NODES"]);
        let replicas = nodes.lines().filter(|line| line.contains("slave")).count();
        let replication = ask(&["INFO", "replication"]);
        let follows =
            server < usize::from(MASTERS) || replication.contains("master_link_status:up");
        self.info(server).contains("cluster_state:ok")
            && replicas + usize::from(MASTERS) == self.servers.len()
            && follows
    }
}
