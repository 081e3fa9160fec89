//! Readers, writers and permits in any order: writers are alone, and nothing is left.

mod world;

use std::time::Duration;

use fencelock_engine::request::Mode;
use fencelock_engine::{Acquired, Ask, CallKey, Grant, Outcome, Owner, OwnerId, Patience};
use world::World;

const SECOND: Duration = Duration::from_secs(1);

/// Chance, the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// What a caller was given and has not released.
struct Held {
    client: usize,
    call: u32,
    grant: Grant,
    owner: Owner,
    mode: Mode,
}

/// Callers of three clients who do anything, in any order.
struct Chaos {
    world: World,
    dice: Dice,
    held: Vec<Held>,
    waiting: Vec<(usize, u32, CallKey, Ask)>,
}

impl Chaos {
    fn ask(&mut self, semaphore: bool) -> Ask {
        let mode = match self.dice.below(2) {
            _ if semaphore => Mode::Permits { count: 1 + self.dice.below(3) as u32, of: 3 },
            0 => Mode::Shared,
            _ => Mode::Exclusive,
        };
        let owner = match self.dice.below(4) {
            0 if !semaphore => Owner::Explicit(OwnerId::new("a").unwrap()),
            owner => Owner::Local(owner),
        };
        let lease = (self.dice.below(3) == 0).then(|| SECOND * (1 + self.dice.below(20) as u32));
        let patience = match self.dice.below(3) {
            0 => Patience::Try,
            1 => Patience::Until(self.world.time() + SECOND * self.dice.below(8) as u32),
            _ => Patience::Forever,
        };
        Ask { owner, mode, lease, patience, ..Ask::local(0) }
    }

    fn step(&mut self, semaphore: bool) {
        let client = self.dice.below(3) as usize;
        match self.dice.below(12) {
            0..=4 => {
                let ask = self.ask(semaphore);
                let (call, acquired) = self.world.acquire(client, ask.clone());
                match acquired {
                    Ok(Acquired::Pending(key)) => self.waiting.push((client, call, key, ask)),
                    Ok(Acquired::Granted(grant)) => {
                        let Ask { owner, mode, .. } = ask;
                        self.held.push(Held { client, call, grant, owner, mode });
                    }
                    Err(_) => {}
                }
            }
            5..=7 if !self.held.is_empty() => {
                let at = self.dice.below(self.held.len() as u64) as usize;
                let held = self.held.swap_remove(at);
                let _ = self.world.begin_release(held.client, held.grant.hold);
            }
            8 if !self.waiting.is_empty() => {
                let at = self.dice.below(self.waiting.len() as u64) as usize;
                let (client, call, key, _) = self.waiting[at];
                if self.world.cancel(client, key) {
                    assert!(self.world.is_pending(client, call));
                    self.waiting.swap_remove(at);
                }
            }
            9 => {
                let c = &mut self.world.clients[client];
                c.swallow_replies = !c.swallow_replies && self.dice.below(2) == 0;
                c.deaf = self.dice.below(4) == 0;
            }
            10 if !self.held.is_empty() => {
                let at = self.dice.below(self.held.len() as u64) as usize;
                let lease = SECOND * (1 + self.dice.below(30) as u32);
                let (client, hold) = (self.held[at].client, self.held[at].grant.hold);
                self.world.extend(client, hold, lease);
            }
            _ => {
                let span = Duration::from_millis(1 + self.dice.below(4_000));
                self.world.pass(span);
            }
        }
        self.settle();
    }

    /// Moves what was granted to what is held, and looks at who is valid together.
    fn settle(&mut self) {
        for (client, call, key, ask) in std::mem::take(&mut self.waiting) {
            match self.world.clients[client].outcomes.get(&call) {
                None => self.waiting.push((client, call, key, ask)),
                Some(Outcome::Granted(grant)) => {
                    let (grant, Ask { owner, mode, .. }) = (grant.clone(), ask);
                    self.held.push(Held { client, call, grant, owner, mode });
                }
                Some(_) => {}
            }
        }
        let valid = |held: &&Held| {
            !self.world.clients[held.client].lost.contains_key(&held.call)
                && self.world.remaining(held.client, held.grant.hold).is_some()
        };
        let valid: Vec<&Held> = self.held.iter().filter(valid).collect();
        let counts = valid.iter().map(|held| match held.mode {
            Mode::Permits { count, .. } => count,
            _ => 0,
        });
        assert!(counts.sum::<u32>() <= 3, "too many permits");
        for writer in valid.iter().filter(|held| held.mode == Mode::Exclusive) {
            for other in &valid {
                let local = matches!(writer.owner, Owner::Local(_));
                let same = writer.owner == other.owner && (!local || writer.client == other.client);
                assert!(same, "{:?} beside {:?}", other.owner, writer.owner);
                assert_eq!(writer.grant.token, other.grant.token, "of one tenure");
            }
        }
    }

    /// Nobody holds or waits, at the store and in the clients.
    fn is_clean(&mut self) {
        self.world.pass(SECOND * 10);
        let record = self.world.record();
        assert!(record.holds.is_empty() && record.waiters.is_empty(), "{record:?}");
        for client in &self.world.clients {
            assert!(client.engine.is_idle() && client.engine.has_left_nothing());
            assert_eq!(client.engine.next_wake(), None);
        }
    }

    fn end(mut self) {
        for client in &mut self.world.clients {
            (client.swallow_replies, client.deaf) = (false, false);
        }
        // Nobody waits for ever: a caller that is let in leaves.
        for _ in 0..10_000 {
            self.settle();
            if let Some(held) = self.held.pop() {
                let _ = self.world.begin_release(held.client, held.grant.hold);
            } else if self.waiting.is_empty() {
                return self.is_clean();
            }
            self.world.pass(SECOND / 4);
        }
        panic!("waited in vain: {:?}", self.waiting);
    }
}

#[test]
fn whatever_is_done_writers_are_alone_and_nothing_is_left() {
    for seed in 0..400 {
        let (world, dice) = (World::new(3), Dice(seed * 7_919 + 1));
        let mut chaos = Chaos { world, dice, held: Vec::new(), waiting: Vec::new() };
        for _ in 0..80 {
            chaos.step(seed % 4 == 3);
        }
        chaos.end();
    }
}
