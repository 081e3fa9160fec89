//! Who leads: elections, following, and what ends them.

use std::collections::BTreeMap;

use crate::clock::{MS, US};
use crate::zookeeper::ensemble::{Ensemble, Env, Event, Message};
use crate::zookeeper::server::{Lead, Member, Role};
use crate::zookeeper::tracker::Tracker;

impl Ensemble {
    pub(super) fn majority(&self) -> usize {
        self.servers.len() / 2 + 1
    }

    pub(super) fn follows(&self, server: usize, leader: usize) -> bool {
        matches!(&self.servers[server].role, Role::Following { leader: it, .. } if *it == leader)
    }

    pub(super) fn has_quorum(&self, leader: usize) -> bool {
        if !self.servers[leader].up || !matches!(self.servers[leader].role, Role::Leading(_)) {
            return false;
        }
        let followers = (0..self.servers.len()).filter(|&it| self.follows(it, leader)).count();
        followers + 1 >= self.majority()
    }

    /// Every half tick: pings, and a look whether the other side is still there.
    pub(super) fn beat(&mut self, me: usize, env: &mut Env<'_>) {
        let patience = self.config.tick * self.config.sync_limit;
        let majority = self.majority();
        let server = &mut self.servers[me];
        let gone = match &mut server.role {
            Role::Looking => return,
            Role::Following { heard, .. } => env.now > *heard + patience,
            Role::Leading(lead) => {
                lead.members.retain(|_, it| env.now <= it.heard + patience);
                lead.members.len() + 1 < majority
            }
        };
        if gone {
            return self.look(me, env);
        }
        if let Role::Leading(lead) = &server.role {
            let followers: Vec<usize> = lead.members.keys().copied().collect();
            for follower in followers {
                self.tell_follower(me, follower, Message::Ping, env);
            }
        }
        let life = self.servers[me].life;
        env.later.push((env.now + self.config.tick / 2, Event::Beat { server: me, life }));
    }

    /// Leaves whatever it was in, and looks for a leader. Clients are sent away.
    pub(super) fn look(&mut self, me: usize, env: &mut Env<'_>) {
        let server = &mut self.servers[me];
        server.drop_clients(&mut env.mail);
        server.role = Role::Looking;
        server.life += 1;
        let life = server.life;
        let after = env.dice.between(self.config.tick / 8, self.config.tick / 2);
        env.later.push((env.now + after, Event::Look { server: me, life }));
    }

    /// Joins a leader, or makes one.
    pub(super) fn seek(&mut self, me: usize, env: &mut Env<'_>) {
        let there = |it: usize| {
            self.servers[it].up
                && env.now >= self.servers[it].paused_until
                && self.reachable(me, it)
        };
        let leads = |it: &usize| {
            *it != me
                && there(*it)
                && self.has_quorum(*it)
                && match &self.servers[*it].role {
                    Role::Leading(lead) => lead.epoch >= self.servers[me].epoch,
                    _ => false,
                }
        };
        if let Some(leader) = (0..self.servers.len()).find(leads) {
            self.join(leader, me, env);
            let life = self.servers[me].life;
            env.later.push((env.now + self.config.tick / 2, Event::Beat { server: me, life }));
            return;
        }
        let looking = |it: &usize| there(*it) && matches!(self.servers[*it].role, Role::Looking);
        let voters: Vec<usize> = (0..self.servers.len()).filter(looking).collect();
        let whole = voters.iter().all(|&a| voters.iter().all(|&b| self.reachable(a, b)));
        if voters.len() < self.majority() || !whole {
            let life = self.servers[me].life;
            let after = env.dice.between(self.config.tick / 8, self.config.tick / 2);
            env.later.push((env.now + after, Event::Look { server: me, life }));
            return;
        }
        self.elect(&voters, env);
    }

    pub(super) fn elect(&mut self, voters: &[usize], env: &mut Env<'_>) {
        let last = |it: usize| self.servers[it].log.last().map_or(0, |entry| entry.zxid);
        let leader = voters.iter().copied().max_by_key(|&it| (last(it), it)).unwrap_or(0);
        let epoch = voters.iter().map(|&it| self.servers[it].epoch).max().unwrap_or(0) + 1;
        self.elections += 1;
        for &voter in voters {
            self.servers[voter].epoch = epoch;
            self.servers[voter].life += 1;
        }
        let upto = self.servers[leader].log.len();
        // What the new leader has is committed: a majority takes it over before anybody is served.
        self.settle(leader, upto, env);
        let (tick, phase) = (self.config.tick, self.phases[leader]);
        let server = &mut self.servers[leader];
        let tracker = Tracker::new(env.now, tick, phase, &server.tree.sessions);
        let next = tracker.next_tick(env.now);
        server.role = Role::Leading(Box::new(Lead {
            epoch,
            counter: 0,
            ahead: server.tree.clone(),
            tracker,
            members: BTreeMap::new(),
            syncs: Vec::new(),
        }));
        for &voter in voters {
            if voter != leader {
                self.join(leader, voter, env);
            }
            let life = self.servers[voter].life;
            let at = env.now + self.config.tick / 2;
            env.later.push((at, Event::Beat { server: voter, life }));
        }
        let life = self.servers[leader].life;
        env.later.push((next, Event::Tick { server: leader, life }));
        let at = env.now + self.config.reap;
        env.later.push((at, Event::Reap { server: leader, life }));
    }

    /// A server follows from now on, with the leader's log.
    pub(super) fn join(&mut self, leader: usize, me: usize, env: &mut Env<'_>) {
        self.terms += 1;
        let term = self.terms;
        let server = &self.servers[leader];
        let Role::Leading(lead) = &server.role else { return };
        let (epoch, log, upto) = (lead.epoch, server.log.clone(), server.applied);
        let has = log.len();
        let server = &mut self.servers[me];
        server.epoch = epoch;
        server.life += 1;
        server.log = log;
        server.role = Role::Following { leader, term, heard: env.now };
        server.commit(me, upto, &mut env.mail);
        if let Role::Leading(lead) = &mut self.servers[leader].role {
            lead.members.insert(me, Member { term, has, heard: env.now });
        }
        self.advance(leader, env);
    }

    /// Kills a server; it starts again after `span`.
    pub fn crash(&mut self, server: usize, span: u64, env: &mut Env<'_>) {
        let it = &mut self.servers[server];
        it.drop_clients(&mut env.mail);
        it.up = false;
        it.role = Role::Looking;
        it.life += 1;
        let life = it.life;
        env.later.push((env.now + span, Event::Start { server, life }));
        // Its peers notice soon: their connections to it are gone.
        for other in 0..self.servers.len() {
            if let Role::Leading(lead) = &mut self.servers[other].role {
                lead.members.remove(&server);
            }
            if self.follows(other, server) && self.reachable(other, server) {
                let life = self.servers[other].life;
                let at = env.now + env.dice.between(10 * US, 5 * MS);
                env.later.push((at, Event::Leave { server: other, life }));
            }
        }
    }
}
