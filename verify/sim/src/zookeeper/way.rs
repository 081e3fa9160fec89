//! The way between libraries and servers: connections, each in order, that may break.

use crate::clock::Instant;
use crate::event::Event;
use crate::world::World;
use crate::zookeeper::server::ConnId;
use crate::zookeeper::site::{Happening, Site, User};

/// A connection between a library and a server.
#[derive(Debug)]
pub struct Pipe {
    /// The library.
    pub library: usize,
    /// The server.
    pub server: usize,
    /// Requests go nowhere.
    pub lost_up: bool,
    /// What the server says goes nowhere.
    pub lost_down: bool,
    /// When the last message in each direction arrives.
    pub up_at: Instant,
    /// See `up_at`.
    pub down_at: Instant,
}

impl World {
    /// A connection that lost something breaks some time later.
    pub(super) fn end_later(&mut self, zk: &Site, conn: ConnId) {
        let timeout = self.zk_timeout();
        let after = self.dice.between(0, timeout);
        self.trouble(after + timeout);
        let library = zk.pipes[conn].library;
        let event = Happening::ClientEnd { library, conn: Some(conn) };
        self.queue.push(self.now + after, Event::Zk(event));
        self.queue.push(self.now + after, Event::Zk(Happening::ServerEnd { conn }));
    }

    /// A library tries to connect.
    pub(super) fn attempt(&mut self, zk: &mut Site, library: usize, server: usize) {
        let blocked = self.blocked(zk, library);
        if blocked == (true, true) || blocked.0 {
            return;
        }
        let up = zk.ensemble.servers()[server].up;
        let at = self.now + self.delay();
        if !up {
            let event = Happening::ClientEnd { library, conn: None };
            self.queue.push(at, Event::Zk(event));
            return;
        }
        let conn = zk.pipes.len();
        let (lost_up, lost_down) = blocked;
        let pipe = Pipe { library, server, lost_up, lost_down, up_at: 0, down_at: at };
        zk.pipes.push(pipe);
        if !lost_down {
            self.queue.push(at, Event::Zk(Happening::Made { library, conn }));
        }
    }

    fn blocked(&self, zk: &Site, library: usize) -> (bool, bool) {
        match zk.users[library].user {
            User::Client { slot, .. } => {
                zk.blocked.get(&slot).map_or((false, false), |(_, up, down)| (*up, *down))
            }
            _ => (false, false),
        }
    }

    /// Breaks the connection of a client.
    pub(crate) fn cut_zk(&mut self, slot: usize, spread: u64) {
        let Some(mut zk) = self.zk.take() else { return };
        self.trouble(self.plan.zk_patience() / 2);
        if let Some(station) = zk.stations.get(&slot)
            && let Some(conn) = zk.users[station.library].library.conn()
        {
            let library = station.library;
            let notice = self.dice.between(0, spread) + self.delay();
            let event = Happening::ClientEnd { library, conn: Some(conn) };
            self.queue.push(self.now + notice, Event::Zk(event));
            let notice = self.dice.between(0, spread) + self.delay();
            self.queue.push(self.now + notice, Event::Zk(Happening::ServerEnd { conn }));
            zk.pipes[conn].lost_up = true;
            zk.pipes[conn].lost_down |= self.dice.chance(500);
        }
        self.zk = Some(zk);
    }

    /// Lets nothing pass for a while between a client and all servers.
    pub(crate) fn black_hole_zk(&mut self, slot: usize, up: bool, down: bool, span: u64) {
        let Some(mut zk) = self.zk.take() else { return };
        self.trouble(span + self.plan.zk_patience() / 2);
        zk.blocks += 1;
        zk.blocked.insert(slot, (zk.blocks, up, down));
        let generation = zk.blocks as u32;
        if let Some(station) = zk.stations.get(&slot)
            && let Some(conn) = zk.users[station.library].library.conn()
        {
            zk.pipes[conn].lost_up |= up;
            zk.pipes[conn].lost_down |= down;
        }
        self.queue.push(self.now + span, Event::Unblock { slot, generation });
        self.zk = Some(zk);
    }

    /// The way is mended; 0 mends whatever blocks it.
    pub(crate) fn unblock_zk(&mut self, slot: usize, generation: u64) {
        let Some(mut zk) = self.zk.take() else { return };
        if zk.blocked.get(&slot).is_some_and(|it| generation == 0 || it.0 == generation) {
            zk.blocked.remove(&slot);
        }
        let broken = zk.stations.get(&slot).and_then(|station| {
            let conn = zk.users[station.library].library.conn()?;
            (zk.pipes[conn].lost_up || zk.pipes[conn].lost_down).then_some(())
        });
        self.zk = Some(zk);
        if broken.is_some() {
            self.cut_zk(slot, 0);
        }
    }
}
