//! What goes wrong.

use fencelock_engine::event::Event as Said;
use fencelock_engine::quorum::Input;
use fencelock_engine::reply::Push;
use fencelock_engine::request::{Break, Op};

use crate::clock::{Instant, MS, SEC, US};
use crate::quorum::client::Client;
use crate::quorum::world::{Event, Kind, TROUBLE, World};

impl World {
    pub(super) fn fault(&mut self) -> Result<(), String> {
        if self.now > TROUBLE {
            return Ok(());
        }
        let pause = self.dice.between(50 * MS, 2 * SEC);
        self.plan(Event::Fault, pause);
        self.outcome.faults += 1;
        let server = match self.kind {
            Kind::One(server) => server,
            _ => self.dice.below(self.servers.len() as u64) as usize,
        };
        let client = self.dice.below(self.clients.len() as u64) as usize;
        let one = matches!(self.kind, Kind::One(_));
        if self.kind == Kind::Stranger && self.dice.chance(400) {
            self.corner();
            return Ok(());
        }
        self.touched[server] = self.now;
        match self.dice.below(if one { 8 } else { 11 }) {
            0 => {
                self.servers[server].mute_until = self.now + self.dice.between(MS, 3 * SEC);
                self.touched[server] = self.servers[server].mute_until;
            }
            1 => {
                let until = self.now + self.dice.between(MS, 3 * SEC);
                self.cut_off(client, server, until);
            }
            2 => {
                let until = self.now + self.dice.between(MS, 3 * SEC);
                for client in 0..self.clients.len() {
                    self.cut_off(client, server, until);
                }
            }
            3 => self.plan_gone(client, server),
            4 | 5 => self.forget(server, false),
            6 => self.forget(server, true),
            7 if one => self.jump(server),
            7 => self.step_back(server),
            8 => {
                let lock = self.dice.below(self.clients[0].locks.len() as u64) as usize;
                self.operator(lock);
            }
            _ => {
                let longest = self.max_lease * US * 3 / 2;
                let until = self.now + self.dice.between(MS, longest);
                self.clients[client].paused_until = until;
            }
        }
        Ok(())
    }

    /// A hold that has no vote to spare loses one to a server that forgets, while its client stands still.
    fn corner(&mut self) {
        let quorum = self.quorum;
        let tight = |client: &Client| {
            let mut votes = client.locks.iter().flat_map(|(name, _)| client.machine.votes(name));
            votes.any(|(given, held)| held && given == quorum)
        };
        let regular = (1..self.clients.len()).find(|at| tight(&self.clients[*at]));
        if let Some(client) = regular {
            self.touched[1] = self.now;
            self.forget(1, true);
            self.clients[client].paused_until = self.now + self.max_lease * US;
            return;
        }
        let client = self.dice.between(1, self.clients.len() as u64 - 1) as usize;
        let (server, until) = (self.dice.pick(&[0, 2]), self.now + 3 * SEC);
        self.cut_off(client, server, until);
    }

    fn cut_off(&mut self, client: usize, server: usize, until: Instant) {
        if let Some(link) = self.clients[client].links.get_mut(server) {
            link.cut_off_until = link.cut_off_until.max(until);
            self.touched[server] = self.touched[server].max(until);
        }
    }

    fn plan_gone(&mut self, client: usize, server: usize) {
        let latency = self.latency();
        let Some(link) = self.clients[client].links.get(server) else { return };
        let (number, up) = (link.number, link.told.is_some());
        if up {
            self.plan(Event::Gone(client, server, number), latency);
        }
    }

    /// A server forgets: all of it, or the last second.
    fn forget(&mut self, server: usize, flush: bool) {
        // A server that has forgotten goes by the list and the lease of whoever comes first.
        if self.kind == Kind::Stranger && server != 1 {
            return;
        }
        if flush {
            return self.servers[server].flush(self.now);
        }
        let (down, empty) = (self.dice.between(MS, 800 * MS), self.dice.chance(500));
        self.servers[server].restart(self.now, down, empty);
        self.touched[server] = self.now + down;
        for client in 0..self.clients.len() {
            self.plan_gone(client, server);
        }
    }

    /// A clock jumps ahead. Who has no vote to spare hangs on it.
    fn jump(&mut self, server: usize) {
        let by = self.dice.between(100_000, self.max_lease / 3);
        self.servers[server].jump(by);
        let (clients, quorum) = (&self.clients, self.quorum);
        let tight = |client: &Client| {
            client.locks.iter().any(|(name, _)| {
                client.machine.votes(name).iter().any(|(given, _)| (1..=quorum).contains(given))
            })
        };
        if clients.iter().any(tight) {
            self.excused_until = self.now + 2 * self.max_lease * US;
        }
        for lock in 0..self.clients[0].locks.len() {
            let name = self.clients[0].locks[lock].0.clone();
            self.truth.jumped(&self.clients, lock, &name, quorum);
        }
    }

    fn step_back(&mut self, server: usize) {
        let by = self.dice.between(1_000, 50_000) as i64;
        self.servers[server].clock.step(-by);
    }

    /// An operator ends whatever anybody has of a lock, at every server.
    fn operator(&mut self, lock: usize) {
        let span = self.max_lease * US;
        self.truth.broken(self.now, &self.clients, lock, span);
        let name = self.clients[0].locks[lock].0.clone();
        for server in 0..self.servers.len() {
            let what = Break { lock: name.clone(), token: u64::MAX, hold: None };
            let told = self.stale(server, self.clients[0].creed);
            let (_, said) = self.execute(0, server, told, &Op::Break(what));
            for (to, push) in said {
                // The word of it may be lost.
                if self.dice.chance(300) || matches!(push, Push::Granted { .. }) {
                    self.tell(to, server, Input::Event(Said::Push(push)));
                }
            }
        }
    }
}
