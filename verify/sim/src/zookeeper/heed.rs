//! A holder that somebody asks to let go is told so, and one whose permits somebody took away.

use fencelock_engine::Time;

use crate::clock::{Instant, MS};
use crate::cover::Cover;
use crate::event::Event;
use crate::world::World;
use crate::zookeeper::op::Zxid;
use crate::zookeeper::server::ConnId;
use crate::zookeeper::site::{Happening, Site, User};

/// What a holder of ours is to hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// Somebody asks it to let go.
    LetGo,
    /// What it had is gone.
    Gone,
}

/// A holder of ours was asked to let go, or lost what it had.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    word: Word,
    slot: usize,
    incarnation: usize,
    lock: usize,
    /// The transaction that made its node.
    czxid: Zxid,
    at: Instant,
    /// The connection by which it is to hear of it.
    conn: ConnId,
}

impl World {
    /// Plans a look at each holder that was asked, or lost what it had, for when it must have heard.
    pub(super) fn asked(&mut self, zk: &mut Site) {
        let asked = std::mem::take(&mut zk.truth.asked).into_iter().map(|it| (Word::LetGo, it));
        let ended = std::mem::take(&mut zk.truth.ended).into_iter().map(|it| (Word::Gone, it));
        for (word, (lock, czxid, user)) in asked.chain(ended).collect::<Vec<_>>() {
            let User::Client { slot, incarnation } = user else { continue };
            let Some(conn) = zk.conn_of(slot) else { continue };
            let asked = Asked { word, slot, incarnation, lock, czxid, at: self.now, conn };
            let (_, link) = zk.ensemble.config().latency;
            // It looks at its node when it has held for 20 ms, and is told by a watch from then
            // on; each look goes there and back, behind what was sent before.
            let bound = 30 * MS + 8 * (self.plan.latency.1 + link);
            self.queue.push(self.now + bound, Event::Zk(Happening::Heed(asked)));
        }
    }

    /// By now a holder has heard that it was asked, if messages got through.
    pub(super) fn heed(&mut self, zk: &mut Site, asked: Asked) {
        let Asked { word, slot, incarnation, lock, czxid, at, conn } = asked;
        let client = &self.clients[slot];
        let pipe = &zk.pipes[conn];
        let through = client.up
            && client.incarnation == incarnation
            && client.paused_until < at
            && zk.conn_of(slot) == Some(conn)
            && !(pipe.lost_up || pipe.lost_down)
            && zk.rough_until < at
            && self.plan.hazards.spike == 0;
        if !through {
            return;
        }
        let now = self.local(slot);
        let held = client.actors.iter().flat_map(|actor| &actor.held).filter(|held| {
            held.lock == lock
                && held.token / 1024 == czxid
                && held.since <= at
                && held.lost.is_none()
                && client.engine.remaining(now, held.key).is_some_and(|left| !left.is_zero())
        });
        let (mut told, mut untold) = (0, None);
        for held in held {
            match held.wanted && word == Word::LetGo {
                true => told += 1,
                false => untold = Some(held.tag),
            }
        }
        for _ in 0..told {
            self.cover.add(Cover::ZkHeeded);
        }
        let asked: Time = client.clock.read(at);
        if let Some(tag) = untold.filter(|_| word == Word::Gone) {
            self.checks.fail("lost in time", self.now, || {
                format!("c{slot} {tag:x}: somebody took it away at {asked:?}, and it is not told")
            });
        } else if let Some(tag) = untold {
            self.checks.fail("wanted", self.now, || {
                format!("c{slot} {tag:x} was asked to let go at {asked:?}, and is not told")
            });
        }
    }
}
