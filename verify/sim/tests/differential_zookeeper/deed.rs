//! What the sessions do, drawn from a seed.

use fencelock_sim::zookeeper::{Mode, Op};

/// A small generator: the same deeds in every run.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) * bound) >> 31
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// An operation on both servers.
#[derive(Clone, Debug)]
pub enum Deed {
    Op(Op),
    /// The session ends and another one begins.
    Renew,
}

const PATHS: [&str; 9] =
    ["/a", "/b", "/c", "/a/x", "/a/y", "/b/lock-", "/c/lock-", "/a/x/z", "/bad//path"];
const MODES: [Mode; 7] = [
    Mode::Persistent,
    Mode::PersistentSequential,
    Mode::Ephemeral,
    Mode::EphemeralSequential,
    Mode::EphemeralSequential,
    Mode::Container,
    Mode::Persistent,
];

impl Deed {
    pub fn draw(dice: &mut Dice) -> Deed {
        match dice.below(100) {
            0 => Deed::Renew,
            1..=3 => Deed::Op(Op::Sync),
            4..=30 => Deed::Op(read(dice)),
            31..=45 => {
                let parts = dice.below(4) + 1;
                Deed::Op(Op::Multi((0..parts).map(|_| write(dice, true)).collect()))
            }
            _ => Deed::Op(write(dice, false)),
        }
    }
}

fn path(dice: &mut Dice) -> String {
    let path = dice.pick(&PATHS);
    // Nodes with a number, now and then: the first few are likely to be there.
    match path.ends_with('-') && dice.below(3) > 0 {
        true => format!("{path}{:010}", dice.below(40)),
        false => path.to_owned(),
    }
}

fn read(dice: &mut Dice) -> Op {
    let (path, watch) = (path(dice), dice.below(2) == 0);
    match dice.below(3) {
        0 => Op::Data { path, watch },
        1 => Op::Exists { path, watch },
        _ => Op::Children { path, watch },
    }
}

fn write(dice: &mut Dice, part: bool) -> Op {
    let version = dice.pick(&[-1, -1, -1, 0, 1]);
    let data = vec![b'd'; dice.below(5) as usize];
    match dice.below(if part { 4 } else { 3 }) {
        0 => {
            let mut mode = dice.pick(&MODES);
            if part && mode == Mode::Container {
                // A multi has no operation for it that all servers know.
                mode = Mode::Persistent;
            }
            let path = match mode.is_sequential() {
                true => dice.pick(&["/a/s-", "/b/lock-", "/c/lock-", "/b/"]).to_owned(),
                false => path(dice),
            };
            Op::Create { path, data, mode }
        }
        1 => Op::Delete { path: path(dice), version },
        2 => Op::Set { path: path(dice), data, version },
        _ => Op::Check { path: path(dice), version },
    }
}
