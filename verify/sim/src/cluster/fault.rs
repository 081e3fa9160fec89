//! What happens to the servers: failovers, cuts, pauses, and slots that move.

use fencelock_engine::ClientId;
use fencelock_engine::redis::Codec;

use crate::clock::{Instant, MS, SEC, US};
use crate::cluster::scene::Scene;
use crate::cluster::shape::Claim;
use crate::cluster::world::{Event, MASTERS, TROUBLE, World};
use crate::redis::Keyspace;

/// What follows from a fault, later.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// A master that stood still for it hands over to its replica, which has everything.
    HandOver { old: usize, new: usize },
    /// A replica takes over.
    Promote { old: usize, new: usize },
    /// A server is told who has a part.
    Learn { node: usize, part: usize, claim: Claim },
    /// A server thinks that the cluster does not serve, or does again.
    Fails { node: usize, fails: bool },
    /// A server that was away, or cut off, hears what became of its slots.
    Back { node: usize },
    /// One more of a moving slot's keys goes, or what is left of the work is done.
    Move { part: usize, from: usize, to: usize, keys: usize },
    /// The work is called off.
    CallOff { part: usize, from: usize, to: usize },
    /// A server dies whose replica lacks the last writes.
    Kill { node: usize },
    /// Nobody wants some locks more than others any more.
    Cool,
}

impl World {
    fn then(&mut self, after: Instant, next: Next) {
        self.queue.push(self.now + after, Event::Next(next));
    }

    /// The locks whose slots a server has.
    fn locks_of(&self, node: usize) -> Vec<usize> {
        let is = |lock: &usize| self.truth[self.shape.part_of(*lock)].owner == node;
        (0..self.shape.names.len()).filter(is).collect()
    }

    /// These locks are served as usual no more, until then; or not at all.
    fn disturb(&mut self, locks: &[usize], span: Instant, unserved: bool) {
        for &lock in locks {
            let book = &mut self.judge.books[lock];
            book.disturbed = book.disturbed.max(self.now + span);
            if unserved {
                book.unserved = book.unserved.max(self.now + span);
            }
        }
    }

    /// A server with slots, and the one that would take over.
    fn pair(&mut self) -> Option<(usize, usize)> {
        let serving = |node: &usize| {
            let it = &self.nodes[*node];
            it.follows.is_none() && !self.locks_of(*node).is_empty() && it.down_until <= self.now
        };
        let masters: Vec<usize> = (0..self.nodes.len()).filter(serving).collect();
        let old = masters[self.dice.below(masters.len() as u64) as usize];
        let follows = |node: &usize| {
            self.nodes[*node].follows == Some(old) && self.nodes[*node].down_until <= self.now
        };
        let new = (0..self.nodes.len()).find(follows)?;
        Some((old, new))
    }

    /// Something happens, and after it for a while nothing more.
    pub(super) fn fault(&mut self) {
        let scene = self.scene.next(&mut self.dice);
        let pause = match scene {
            Scene::Moves | Scene::BrokenOff | Scene::MovedAndLost => 15 * SEC,
            Scene::Scripts => 4 * SEC,
            _ => 18 * SEC,
        };
        let after = self.dice.between(pause, pause + 6 * SEC);
        if self.now + after + 4 * SEC < TROUBLE {
            self.queue.push(self.now + after, Event::Fault);
        }
        self.outcome.faults += u32::from(scene != Scene::Calm);
        match scene {
            Scene::Calm | Scene::Any => {}
            Scene::Planned => self.plan_failover(),
            Scene::Lags => self.doomed = self.pair().map(|(old, _)| old),
            Scene::Killed | Scene::ClockAhead => {
                if let Some((old, new)) = self.pair() {
                    self.die(old, new, scene);
                }
            }
            Scene::TwoMasters => self.cut_off(),
            Scene::Moves | Scene::BrokenOff | Scene::MovedAndLost => self.begin_move(scene),
            Scene::Empty => self.restart_empty(),
            Scene::Silent | Scene::SilentReplaced => self.silence(scene),
            Scene::Scripts => {
                for node in &mut self.nodes {
                    node.scripts.clear();
                }
            }
        }
    }

    pub(super) fn next(&mut self, next: Next) {
        match next {
            Next::HandOver { old, new } => {
                self.nodes[new].keys = self.nodes[old].keys.clone();
                self.nodes[new].offset = self.nodes[old].offset;
                self.nodes[old].follows = Some(new);
                self.promote(old, new);
                let claims = self.nodes[new].view.clone();
                self.nodes[old].view = claims;
            }
            Next::Promote { old, new } => self.promote(old, new),
            Next::Learn { node, part, claim } => {
                if !self.nodes[node].alone && self.nodes[node].down_until <= self.now {
                    self.learn(node, part, claim);
                }
            }
            Next::Fails { node, fails } => self.nodes[node].fails = fails,
            Next::Back { node } => self.back(node),
            Next::Move { part, from, to, keys } => self.go_on(part, from, to, keys),
            Next::CallOff { part, from, to } => {
                self.nodes[from].leaving.remove(&part);
                self.nodes[to].coming.remove(&part);
                self.shake_moved(part, from, to);
            }
            Next::Cool => self.hot.clear(),
            Next::Kill { node } => {
                let follows = |it: &usize| self.nodes[*it].follows == Some(node);
                if let Some(new) = (0..self.nodes.len()).find(follows) {
                    self.die(node, new, Scene::Lags);
                }
            }
        }
    }

    // ----- who takes over -----

    fn plan_failover(&mut self) {
        let Some((old, new)) = self.pair() else { return };
        // Requests wait meanwhile.
        let span = self.dice.between(MS, 300 * MS);
        self.nodes[old].mute_until = self.now + span;
        let locks = self.locks_of(old);
        self.disturb(&locks, span + SEC, false);
        self.then(span - 100 * US, Next::HandOver { old, new });
    }

    /// A replica has the slots from now on, and tells the others.
    fn promote(&mut self, old: usize, new: usize) {
        self.outcome.promoted += 1;
        self.epoch += 1;
        let claim = Claim { owner: new, epoch: self.epoch };
        let locks = self.locks_of(old);
        let ahead = |node: usize| self.nodes[node].clock.read(self.now);
        let jumped = ahead(new) > ahead(old) + 100_000;
        for &lock in &locks {
            if jumped || self.differ(lock, old, new) {
                self.shake(lock);
            }
        }
        let parts: Vec<usize> =
            (0..self.truth.len()).filter(|part| self.truth[*part].owner == old).collect();
        self.nodes[new].follows = None;
        (self.nodes[new].fails, self.nodes[new].alone) = (false, false);
        for part in parts {
            self.truth[part] = claim;
            self.learn(new, part, claim);
            self.tell_all(part, claim);
        }
        for node in 0..self.nodes.len() {
            if !self.nodes[node].alone && node != old {
                let after = self.dice.between(MS, 400 * MS);
                self.then(after, Next::Fails { node, fails: false });
            }
        }
        self.disturb(&locks, 2 * SEC, false);
        if self.scene == Scene::TwoMasters {
            self.hot = locks;
            self.then(SEC, Next::Cool);
        }
    }

    /// All servers hear of a claim, sooner or later.
    fn tell_all(&mut self, part: usize, claim: Claim) {
        for node in 0..self.nodes.len() {
            let after = self.dice.between(MS, 400 * MS);
            self.then(after, Next::Learn { node, part, claim });
        }
    }

    /// Whether two servers have not the same of a lock.
    fn differ(&self, lock: usize, one: usize, other: usize) -> bool {
        let of = |node: usize| -> &Keyspace { &self.nodes[node].keys };
        self.keys(lock).iter().any(|key| {
            of(one).get(key) != of(other).get(key) || of(one).expiry(key) != of(other).expiry(key)
        })
    }

    fn keys(&self, lock: usize) -> [Vec<u8>; 5] {
        let client = ClientId::new(1, "sim").expect("a short label");
        Codec::new(client, "fl:").expect("the default prefix").keys(&self.shape.names[lock])
    }

    /// A master dies, all at once or so that its connections just fall silent.
    fn die(&mut self, old: usize, new: usize, scene: Scene) {
        if scene != Scene::Lags {
            self.nodes[new].keys = self.nodes[old].keys.clone();
            self.nodes[new].offset = self.nodes[old].offset;
        }
        let away = self.dice.between(7 * SEC, 14 * SEC);
        self.nodes[old].down_until = self.now + away;
        self.nodes[old].scripts.clear();
        // What was on its way from it to its replica is lost with it.
        self.nodes[new].alone = true;
        let heard = self.dice.chance(700);
        self.break_all(old, heard);
        self.replaced(old, new);
        self.then(away, Next::Back { node: old });
    }

    /// It takes the others some seconds to agree that a server is gone, and to put another in its place.
    fn replaced(&mut self, old: usize, new: usize) {
        let promoted = self.dice.between(2_500 * MS, 4_500 * MS);
        if self.all_or_none {
            for node in (0..self.nodes.len()).filter(|node| *node != old) {
                let after = self.dice.between(700 * MS, 2_200 * MS);
                self.then(after, Next::Fails { node, fails: true });
            }
            let all: Vec<usize> = (0..self.shape.names.len()).collect();
            self.disturb(&all, promoted + 2 * SEC, false);
        }
        let locks = self.locks_of(old);
        self.disturb(&locks, promoted + 2 * SEC, false);
        self.then(promoted, Next::Promote { old, new });
    }

    /// A server that was away is told who has its slots now, and follows that.
    fn back(&mut self, node: usize) {
        self.nodes[node].alone = false;
        self.nodes[node].fails = false;
        let was: Vec<usize> = (0..self.truth.len())
            .filter(|part| self.nodes[node].view[*part].owner == node)
            .collect();
        self.nodes[node].view.clone_from(&self.truth);
        let now = was.first().map(|part| self.truth[*part].owner).filter(|owner| *owner != node);
        if let Some(master) = now {
            self.nodes[node].follows = Some(master);
            self.nodes[node].keys = self.nodes[master].keys.clone();
            self.nodes[node].offset = self.nodes[master].offset;
        }
    }

    /// A master loses the others, and they it; some clients go with it, and reach nobody else.
    fn cut_off(&mut self) {
        let Some((old, new)) = self.pair() else { return };
        let healed = self.dice.between(6 * SEC, 12 * SEC);
        self.nodes[old].alone = true;
        for slot in 0..self.clients.len() {
            let side = self.dice.below(3);
            for node in 0..self.nodes.len() {
                if side == 0 && node != old || side == 1 && node == old {
                    self.cut[slot][node] = self.now + healed;
                }
            }
        }
        // It serves for as long as a node timeout, and no longer.
        let after = self.dice.between(2_500 * MS, 5 * SEC);
        self.then(after, Next::Fails { node: old, fails: true });
        self.replaced(old, new);
        let all: Vec<usize> = (0..self.shape.names.len()).collect();
        self.disturb(&all, healed + 2 * SEC, true);
        self.then(healed, Next::Back { node: old });
    }

    // ----- others -----

    fn restart_empty(&mut self) {
        let Some((old, new)) = self.pair() else { return };
        let away = self.dice.between(100 * MS, SEC);
        let locks = self.locks_of(old);
        for &lock in &locks {
            self.shake(lock);
        }
        for node in [old, new] {
            self.nodes[node].keys = Keyspace::default();
        }
        self.nodes[old].down_until = self.now + away;
        self.nodes[old].scripts.clear();
        self.break_all(old, true);
        self.disturb(&locks, away + SEC, false);
    }

    fn silence(&mut self, scene: Scene) {
        let Some((old, new)) = self.pair() else { return };
        let locks = self.locks_of(old);
        if scene == Scene::Silent {
            let span = self.dice.between(200 * MS, 4 * SEC);
            self.nodes[old].mute_until = self.now + span;
            return self.disturb(&locks, span + SEC, false);
        }
        let span = self.dice.between(6 * SEC, 14 * SEC);
        self.nodes[old].mute_until = self.now + span;
        self.nodes[new].keys = self.nodes[old].keys.clone();
        self.nodes[new].offset = self.nodes[old].offset;
        self.replaced(old, new);
        // It finds out before or after it has answered what had come meanwhile.
        let after = match self.dice.chance(500) {
            true => span - MS,
            false => span + self.dice.between(MS, 200 * MS),
        };
        self.then(after, Next::Back { node: old });
    }

    // ----- slots that move -----

    fn begin_move(&mut self, scene: Scene) {
        let lock = self.dice.below(self.shape.names.len() as u64) as usize;
        let part = self.shape.part_of(lock);
        let from = self.truth[part].owner;
        let mut others: Vec<usize> = (0..self.nodes.len())
            .filter(|node| *node != from && self.nodes[*node].follows.is_none())
            .filter(|node| self.nodes[*node].down_until <= self.now && !self.nodes[*node].fails)
            .collect();
        if scene == Scene::MovedAndLost {
            others.retain(|node| *node < 2 * MASTERS);
        }
        if others.is_empty() {
            return;
        }
        let to = others[self.dice.below(others.len() as u64) as usize];
        self.nodes[from].leaving.insert(part, to);
        self.nodes[to].coming.insert(part, from);
        self.disturb(&[lock], 20 * SEC, false);
        let after = self.dice.between(US, 300 * MS);
        // How many of its keys go in all, if it is broken off.
        let keys = match scene {
            Scene::BrokenOff => self.dice.below(3) as usize,
            _ => usize::MAX,
        };
        if scene == Scene::BrokenOff {
            let after = self.dice.between(3 * SEC, 12 * SEC);
            self.then(after, Next::CallOff { part, from, to });
        }
        self.then(after, Next::Move { part, from, to, keys });
    }

    /// The keys of a moving part, as its server has them.
    fn keys_of(&self, part: usize, node: usize) -> Vec<Vec<u8>> {
        let keys = self.nodes[node].keys.keys().map(<[u8]>::to_vec);
        let theirs = |key: &Vec<u8>| {
            self.shape.lock_of(key).is_some_and(|lock| self.shape.part_of(lock) == part)
        };
        keys.filter(theirs).collect()
    }

    fn go_on(&mut self, part: usize, from: usize, to: usize, left: usize) {
        if self.nodes[from].leaving.get(&part) != Some(&to) || left == 0 {
            return;
        }
        let keys = self.keys_of(part, from);
        if keys.is_empty() && left == usize::MAX {
            return self.arrive(part, from, to);
        }
        if !keys.is_empty() {
            let key = &keys[self.dice.below(keys.len() as u64) as usize];
            let mut arriving = std::mem::take(&mut self.nodes[to].keys);
            self.nodes[from].keys.hand_over(key, &mut arriving);
            self.nodes[to].keys = arriving;
            for node in [from, to] {
                self.nodes[node].offset += 1;
                self.replicate(node);
            }
        }
        let slow = if self.dice.chance(200) { 7 * SEC } else { 400 * MS };
        let after = self.dice.between(US, slow);
        let keys = if left == usize::MAX { left } else { left - 1 };
        self.then(after, Next::Move { part, from, to, keys });
    }

    fn arrive(&mut self, part: usize, from: usize, to: usize) {
        self.outcome.moved += 1;
        self.epoch += 1;
        let claim = Claim { owner: to, epoch: self.epoch };
        self.truth[part] = claim;
        self.nodes[from].leaving.remove(&part);
        self.nodes[to].coming.remove(&part);
        for node in [from, to] {
            self.learn(node, part, claim);
        }
        self.tell_all(part, claim);
        for lock in 0..self.shape.names.len() {
            if self.shape.part_of(lock) == part {
                self.judge.books[lock].disturbed = self.now + SEC;
            }
        }
        if self.scene == Scene::MovedAndLost {
            let after = self.dice.between(MS, 300 * MS);
            self.then(after, Next::Kill { node: to });
        }
    }

    /// What was moved stays where nobody asks for it.
    fn shake_moved(&mut self, part: usize, from: usize, to: usize) {
        let moved = self.keys_of(part, to);
        for key in moved {
            self.nodes[to].keys.remove(&key);
            if let Some(lock) = self.shape.lock_of(&key) {
                self.shake(lock);
                self.judge.books[lock].unserved = self.now;
            }
        }
        self.replicate(from);
        self.replicate(to);
    }
}
