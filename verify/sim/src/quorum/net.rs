//! Connections, and what travels by them.

use std::time::Duration;

use fencelock_engine::ErrorKind;
use fencelock_engine::event::Event as Said;
use fencelock_engine::plant::{self, Bug};
use fencelock_engine::quorum::Input;
use fencelock_engine::reply::{Failure, Push, Reply};
use fencelock_engine::request::{Op, Request, RequestId};

use crate::clock::{Instant, MS, SEC};
use crate::quorum::server::{Creed, Marker, Reach, gives};
use crate::quorum::world::{Event, World};

impl World {
    pub(super) fn dial(&mut self, client: usize, server: usize, after: Instant) {
        self.numbers += 1;
        let number = self.numbers;
        let link = &mut self.clients[client].links[server];
        (link.number, link.told) = (number, None);
        link.owed.clear();
        self.plan(Event::Dialled(client, server, number), after);
    }

    fn is_reachable(&self, client: usize, server: usize) -> bool {
        let link = &self.clients[client].links[server];
        let server = &self.servers[server];
        link.cut_off_until.max(server.down_until).max(server.mute_until) <= self.now
    }

    pub(super) fn dialled(
        &mut self,
        client: usize,
        server: usize,
        number: u32,
    ) -> Result<(), String> {
        if self.clients[client].links[server].number != number {
            return Ok(());
        }
        if !self.is_reachable(client, server) {
            let after = self.dice.between(50 * MS, 500 * MS);
            self.dial(client, server, after);
            return Ok(());
        }
        let creed = self.clients[client].creed;
        let input = match self.servers[server].greet(self.now, creed) {
            Some((marker, wait)) => {
                self.clients[client].links[server].run = self.servers[server].run();
                self.clients[client].links[server].told = Some(marker);
                let now = self.servers[server].clock.read(self.now);
                Input::Up { now, wait: Duration::from_micros(wait) }
            }
            None => {
                self.dial(client, server, SEC);
                let text = "the servers' marker tells of another list, or another max_lease";
                let error = fencelock_engine::Error::new(ErrorKind::Misconfigured, text);
                self.clients[client].hear(
                    self.now,
                    server,
                    Input::Event(Said::Misconfigured(error)),
                );
                return self.settle(client);
            }
        };
        self.tell(client, server, input);
        Ok(())
    }

    /// A server's word is on its way to a client.
    pub(super) fn tell(&mut self, client: usize, server: usize, input: Input) {
        let latency = self.latency();
        let link = &mut self.clients[client].links[server];
        let at = (self.now.max(link.cut_off_until) + latency).max(link.last[1] + 1);
        link.last[1] = at;
        let number = link.number;
        self.plan(Event::Hear(client, server, number, Box::new(input)), at - self.now);
    }

    pub(super) fn send(
        &mut self,
        client: usize,
        server: usize,
        request: Box<Request>,
    ) -> Result<(), String> {
        if let Op::Acquire(ask) = &request.op {
            let half = (ask.hold.0 >> 64) as u64;
            let vote = (client, server, ask.hold.0);
            let known = *self.votes.entry(half).or_insert(vote);
            if known != vote && !plant::on(Bug::VoteIdReused) {
                return Err(format!("two votes begin with {half:016x}"));
            }
        }
        let latency = self.latency();
        let link = &mut self.clients[client].links[server];
        link.owed.insert(request.id);
        let number = link.number;
        if link.told.is_none() {
            let request = request.id;
            let result = Err(Failure::NotSent);
            let input = Box::new(Input::Event(Said::Reply { request, result }));
            self.plan(Event::Hear(client, server, number, input), 0);
            return Ok(());
        }
        let at = (self.now.max(link.cut_off_until) + latency).max(link.last[0] + 1);
        link.last[0] = at;
        self.plan(Event::Request(client, server, number, request), at - self.now);
        Ok(())
    }

    pub(super) fn arrive(
        &mut self,
        client: usize,
        server: usize,
        number: u32,
        request: Box<Request>,
    ) -> Result<(), String> {
        let mute = self.servers[server].mute_until;
        if mute > self.now {
            self.plan(Event::Request(client, server, number, request), mute - self.now);
            return Ok(());
        }
        let link = &self.clients[client].links[server];
        let alive = link.number == number && link.run == self.servers[server].run();
        // What was under way on a connection that is gone may still arrive, or not.
        let down = self.servers[server].down_until > self.now;
        if down || !alive && self.dice.chance(500) {
            return Ok(());
        }
        let creed = self.clients[client].creed;
        let told = if alive { link.told } else { None };
        let told = told.unwrap_or(self.stale(server, creed));
        let (result, said) = self.execute(client, server, told, &request.op);
        if gives(&result) && self.servers[server].is_newborn(self.now, creed.max_lease) {
            return Err(format!("server {server} gives a vote although its memory is new"));
        }
        let refused = matches!(&result, Err(Failure::Refused(_)));
        for (to, push) in said {
            self.tell(to, server, Input::Event(Said::Push(push)));
        }
        if alive {
            let reply = Said::Reply { request: request.id, result };
            self.tell(client, server, Input::Event(reply));
            if refused && let Some((marker, wait)) = self.servers[server].greet(self.now, creed) {
                // The host reads the marker anew.
                self.clients[client].links[server].told = Some(marker);
                self.tell(client, server, Input::Wait(Duration::from_micros(wait)));
            }
        }
        Ok(())
    }

    /// What a connection that is gone was told: the present marker at the most.
    pub(super) fn stale(&mut self, server: usize, creed: Creed) -> Marker {
        let greeted = self.servers[server].clone().greet(self.now, creed);
        greeted.map_or(Marker::unknown(creed), |(marker, _)| marker)
    }

    pub(super) fn execute(
        &mut self,
        client: usize,
        server: usize,
        told: Marker,
        op: &Op,
    ) -> (Result<Reply, Failure>, Vec<(usize, Push)>) {
        let (clients, now) = (&self.clients, self.now);
        let listens = |id: &str| {
            clients.iter().position(|client| {
                client.caller.client.id() == id
                    && client.links.get(server).is_some_and(|link| link.told.is_some())
            })
        };
        let mut reach = Reach { listens: &listens, said: Vec::new() };
        let at = &clients[client];
        let result =
            self.servers[server].execute(now, &at.caller, (told, at.creed), op, &mut reach);
        (result, reach.said)
    }

    /// A connection is gone: what was owed is unknown.
    pub(super) fn lose_link(
        &mut self,
        client: usize,
        server: usize,
        why: &str,
    ) -> Result<(), String> {
        let link = &mut self.clients[client].links[server];
        let was_up = link.told.is_some();
        let owed: Vec<RequestId> = std::mem::take(&mut link.owed).into_iter().collect();
        let after = self.dice.between(MS, 100 * MS);
        self.dial(client, server, after);
        for request in owed {
            let result = Err(Failure::Unknown);
            let reply = Said::Reply { request, result };
            self.clients[client].hear(self.now, server, Input::Event(reply));
        }
        if was_up {
            let reason = why.to_owned();
            self.clients[client].hear(self.now, server, Input::Event(Said::Down { reason }));
        }
        self.settle(client)
    }

    /// The transport has made another connection, if it could: the first is given up if it is silent still.
    pub(super) fn looked(
        &mut self,
        client: usize,
        server: usize,
        number: u32,
    ) -> Result<(), String> {
        let link = &self.clients[client].links[server];
        if link.number != number || link.owed.is_empty() {
            return Ok(());
        }
        if self.is_reachable(client, server) && self.dice.chance(300) {
            let after = self.dice.between(10 * MS, 300 * MS);
            self.plan(Event::Looked(client, server, number), after);
            return Ok(());
        }
        self.lose_link(client, server, "it was silent for long")
    }
}
