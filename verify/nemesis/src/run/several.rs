//! Redis servers of which one takes over from another.

use std::io;

use fencelock_testkit::{Proxy, RedisCluster, RedisSentinels, RedisServer};

/// Servers behind Sentinels, or in a cluster.
pub(crate) enum Several {
    Sentinels(RedisSentinels),
    Cluster(RedisCluster),
}

/// What a server says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Master,
    /// Of the master at this port, and whether it has what that has.
    Replica {
        of: u16,
        follows: bool,
    },
}

impl Several {
    /// Three servers behind Sentinels.
    pub fn behind_sentinels() -> io::Result<Several> {
        RedisSentinels::start().map(Several::Sentinels)
    }

    /// A cluster of six.
    pub fn in_a_cluster() -> io::Result<Several> {
        RedisCluster::start().map(Several::Cluster)
    }

    pub fn servers(&self) -> &[RedisServer] {
        match self {
            Several::Sentinels(all) => &all.servers,
            Several::Cluster(all) => &all.servers,
        }
    }

    pub fn server(&mut self, at: usize) -> &mut RedisServer {
        match self {
            Several::Sentinels(all) => &mut all.servers[at],
            Several::Cluster(all) => &mut all.servers[at],
        }
    }

    pub fn sentinels(&self) -> &[RedisServer] {
        match self {
            Several::Sentinels(all) => &all.sentinels,
            Several::Cluster(_) => &[],
        }
    }

    pub fn url(&self) -> String {
        match self {
            Several::Sentinels(all) => all.url(),
            Several::Cluster(all) => all.url(),
        }
    }

    /// A proxy before each server, and the URL by which it is reached through them.
    pub fn way(&self) -> io::Result<(Vec<Proxy>, String)> {
        let proxies = self.servers().iter().map(|it| Proxy::start(&it.address()));
        let proxies: Vec<Proxy> = proxies.collect::<io::Result<_>>()?;
        let seen = self.servers().iter().map(RedisServer::address);
        let ways: Vec<String> = proxies.iter().map(|it| it.address().to_string()).collect();
        let map: Vec<String> = seen.zip(&ways).map(|(seen, way)| format!("{seen}={way}")).collect();
        let url = match self {
            Several::Sentinels(all) => all.url(),
            Several::Cluster(_) => format!("redis+cluster://{}", ways.join(",")),
        };
        // All clocks are this machine's; leases may be as short as elsewhere.
        Ok((proxies, format!("{url}?clock_slack=10ms&map={}", map.join(","))))
    }

    /// The master that serves a lock, as those say that answer.
    pub fn master_of(&self, lock: &str) -> Option<usize> {
        match self {
            Several::Sentinels(all) => all.says(all.sentinels.iter().position(|it| it.answers())?),
            Several::Cluster(all) => all.master_of(all.slot(lock)),
        }
    }

    /// Whether this server says that it is a master.
    pub fn is_master(&self, at: usize) -> bool {
        self.role(at) == Some(Role::Master)
    }

    /// Those that follow a master.
    pub fn replicas_of(&self, master: usize) -> Vec<usize> {
        let port = self.servers()[master].port();
        let follows =
            |it: &usize| matches!(self.role(*it), Some(Role::Replica { of, .. }) if of == port);
        (0..self.servers().len()).filter(follows).collect()
    }

    /// Whether a failover that is planned loses nothing.
    pub fn hands_over(&self) -> bool {
        matches!(self, Several::Cluster(_))
    }

    /// Has another take over from a master that lives, as an operator does; whether that was begun.
    pub fn fail_over(&self, master: usize) -> bool {
        match self {
            Several::Sentinels(all) => {
                all.sentinels[0].cli(&["SENTINEL", "FAILOVER", all.name()]).is_ok()
            }
            Several::Cluster(all) => {
                let replica = self.replicas_of(master).first().copied();
                replica.is_some_and(|it| all.servers[it].cli(&["CLUSTER", "FAILOVER"]).is_ok())
            }
        }
    }

    /// Another master than that of a lock, to which its slot may move; where there are slots.
    pub fn elsewhere(&self, lock: &str) -> Option<(u16, usize, usize)> {
        let Several::Cluster(all) = self else { return None };
        let (slot, from) = (all.slot(lock), self.master_of(lock)?);
        let masters = (0..all.servers.len()).filter(|it| self.is_master(*it));
        Some((
            slot,
            from,
            masters.filter(|it| *it != from).max_by_key(|it| (it + slot as usize) % 3)?,
        ))
    }

    /// Begins to move a slot.
    pub fn begin_move(&self, slot: u16, from: usize, to: usize) {
        if let Several::Cluster(all) = self {
            all.begin_move(slot, from, to);
        }
    }

    /// Moves its keys, and says where it is from now on.
    pub fn end_move(&self, slot: u16, from: usize, to: usize) {
        if let Several::Cluster(all) = self {
            all.move_keys(slot, from, to);
            all.end_move(slot, from, to);
        }
    }

    /// Whether every server has its place: each master has its replica, which has what it has, and all who
    /// are asked agree.
    pub fn is_whole(&self) -> bool {
        if !self.servers().iter().chain(self.sentinels()).all(RedisServer::answers) {
            return false;
        }
        let roles: Vec<Option<Role>> = (0..self.servers().len()).map(|it| self.role(it)).collect();
        let is_master = |port: u16| {
            let at = self.servers().iter().position(|it| it.port() == port);
            at.is_some_and(|at| roles[at] == Some(Role::Master))
        };
        let masters = roles.iter().filter(|it| **it == Some(Role::Master)).count();
        let sound = |role: &Option<Role>| match role {
            None => false,
            Some(Role::Master) => true,
            Some(Role::Replica { of, follows }) => *follows && is_master(*of),
        };
        roles.iter().all(sound)
            && match self {
                Several::Sentinels(all) => {
                    let said: Vec<_> = (0..all.sentinels.len()).map(|at| all.says(at)).collect();
                    let one = said[0].filter(|at| roles[*at] == Some(Role::Master));
                    masters == 1 && one.is_some() && said.iter().all(|it| *it == one)
                }
                Several::Cluster(all) => masters == 3 && all.serves(),
            }
    }

    fn role(&self, at: usize) -> Option<Role> {
        let server = &self.servers()[at];
        if !server.answers() {
            return None;
        }
        let reply = server.cli(&["ROLE"]).ok()?;
        let words: Vec<redis::Value> = redis::from_redis_value(reply).ok()?;
        let text = |at: usize| redis::from_redis_value::<String>(words.get(at)?.clone()).ok();
        match text(0)?.as_str() {
            "master" => Some(Role::Master),
            _ => Some(Role::Replica {
                of: redis::from_redis_value(words.get(2)?.clone()).ok()?,
                follows: text(3)? == "connected",
            }),
        }
    }
}
