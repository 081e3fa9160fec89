//! Failovers, cuts and stale Sentinels in any order.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};

use super::{Host, MILLI, Said, Sentinel, server};

/// What is true, and what each Sentinel was told of it.
struct World {
    host: Host,
    random: ChaCha8Rng,
    epoch: u64,
    master: u64,
    /// What the client goes by: the server that it was told, until it is told to leave it.
    follows: Option<u64>,
}

impl World {
    fn draw(&mut self, most: u64) -> u64 {
        self.random.next_u64() % most
    }

    fn listen(&mut self) {
        for said in self.host.said() {
            match said {
                Said::Found(node) => {
                    let number = node.host.rsplit('.').next().unwrap().parse().unwrap();
                    self.follows = Some(number);
                }
                Said::Moved => {
                    assert!(self.follows.take().is_some(), "nobody had been found");
                    self.host.machine.handle(self.host.now, super::Input::Seek);
                    self.host.run();
                    return self.listen();
                }
                Said::Nobody(_) | Said::Misconfigured(_) => {
                    self.follows = None;
                }
            }
        }
    }

    fn step(&mut self) {
        let at = self.draw(3) as usize;
        match self.draw(8) {
            0 => {
                self.epoch += 1 + self.draw(2);
                self.master = 1 + self.draw(3);
                self.tell(at);
            }
            1 | 2 => self.tell(at),
            3 => {
                self.host.sentinels[at] = Sentinel::Away;
                self.host.cut(at);
            }
            4 => self.host.sentinels[at] = Sentinel::Silent,
            5 => {
                self.host.sentinels[at] =
                    Sentinel::Says { epoch: self.epoch.saturating_sub(1), master: 3 };
            }
            _ => {
                let span = self.draw(3_000) as u32;
                self.host.pass(MILLI * span);
            }
        }
        self.listen();
        if self.follows.is_none() {
            self.host.seek();
            self.listen();
        }
    }

    /// A Sentinel learns how things are, and perhaps says so.
    fn tell(&mut self, at: usize) {
        self.host.sentinels[at] = Sentinel::Says { epoch: self.epoch, master: self.master };
        if self.draw(2) == 0 {
            self.host.switch(at, &format!("shop 10.0.0.9 6379 {} 6379", server(self.master).host));
        }
    }
}

#[test]
fn whatever_happens_the_client_follows_the_highest_epoch_when_it_is_over() {
    for seed in 0..400 {
        let random = ChaCha8Rng::seed_from_u64(seed);
        let host = Host::new(&[Sentinel::Says { epoch: 1, master: 1 }; 3]);
        let mut world = World { host, random, epoch: 1, master: 1, follows: None };
        for _ in 0..60 {
            world.step();
        }
        // Its faults end, and the failover's news reaches all.
        world.epoch += 1;
        for at in 0..3 {
            world.tell(at);
        }
        // Those that stood still are given up and come back.
        world.host.pass(MILLI * 20_000);
        world.listen();
        if world.follows.is_none() {
            world.host.seek();
            world.host.pass(MILLI * 300);
            world.listen();
        }
        assert_eq!(world.follows, Some(world.master), "seed {seed}");
        let at_most = world.host.dials;
        assert!(at_most < 3_000, "seed {seed}: {at_most} connections");
    }
}
