//! Moves, failovers, cuts and stale servers in any order.

use std::collections::{BTreeMap, BTreeSet};

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};

use super::{Host, MILLI, SECOND, node, redirected, topology};
use crate::event::Event;
use crate::lane::LaneId;
use crate::name::Name;
use crate::redis::cluster::{Input, Output, SLOTS, place};
use crate::redis::session::NoSession;

/// How many servers there may be, and into how many parts the slots fall here.
const SERVERS: u64 = 5;
const PARTS: u16 = 8;

/// What is true, and what the engine was told of it.
struct World {
    host: Host,
    random: ChaCha8Rng,
    /// Which server has which part.
    owners: Vec<u16>,
    /// What those say that have not heard of it.
    stale: Vec<u16>,
    /// Where the engine has each slot; and the locks that are elsewhere.
    places: BTreeMap<u16, LaneId>,
    detours: BTreeMap<Name, LaneId>,
    open: BTreeMap<LaneId, u16>,
    asking: BTreeSet<LaneId>,
}

impl World {
    fn draw(&mut self, most: u64) -> u64 {
        self.random.next_u64() % most
    }

    fn ranges(owners: &[u16]) -> Vec<(u16, u16, u16)> {
        let size = SLOTS / PARTS;
        let range = |(part, owner): (usize, &u16)| {
            let first = part as u16 * size;
            (first, first + size - 1, *owner)
        };
        owners.iter().enumerate().map(range).collect()
    }

    fn listen(&mut self, said: Vec<Output>) {
        for output in said {
            match output {
                Output::Open(lane, node) => {
                    let number = node.host.rsplit('.').next().unwrap().parse().unwrap();
                    assert_eq!(self.open.insert(lane, number), None, "it is open already");
                }
                Output::Close(lane, _) => {
                    assert!(self.open.remove(&lane).is_some(), "it is not open");
                    assert!(self.places.values().all(|at| *at != lane), "slots are left there");
                    assert!(self.detours.values().all(|at| *at != lane), "locks are left there");
                }
                Output::Asking(lane, _) => {
                    self.asking.insert(lane);
                }
                Output::Settled(lane) => assert!(self.asking.remove(&lane), "none were asked for"),
                Output::Event(Event::Map(changes)) => {
                    for (places, lane) in changes {
                        assert!(lane == LaneId::FIRST || self.open.contains_key(&lane));
                        self.detours.retain(|name, _| !places.contains(&place(name).0));
                        self.places.extend(places.map(|at| (at, lane)));
                    }
                }
                Output::Event(Event::Detour(name, lane)) => {
                    assert!(self.open.contains_key(&lane) && self.asking.contains(&lane));
                    self.detours.insert(name, lane);
                }
                Output::Event(_) => {}
                Output::Fetch(_) => unreachable!("the host takes it"),
            }
        }
    }

    /// The server that the engine asks for a lock.
    fn asks(&self, name: &Name) -> Option<u16> {
        let place = self.places.get(&place(name).0);
        self.open.get(self.detours.get(name).or(place)?).copied()
    }

    fn owner(&self, name: &Name) -> u16 {
        self.owners[usize::from(place(name).0 / (SLOTS / PARTS))]
    }

    fn answer(&mut self) {
        if self.host.asked.is_none() {
            return;
        }
        let mut told = topology(&World::ranges(&self.owners));
        let answer = match self.draw(4) {
            0 => Err(NoSession::Later("no".to_owned())),
            1 => Ok(topology(&World::ranges(&self.stale.clone()))),
            2 => {
                told.sound = false;
                Ok(told)
            }
            _ => Ok(told),
        };
        let said = self.host.fetched(answer);
        self.listen(said);
    }

    fn step(&mut self, names: &[Name]) {
        let name = names[self.draw(names.len() as u64) as usize].clone();
        let slot = place(&name).0;
        let part = self.draw(u64::from(PARTS)) as usize;
        let server = 1 + self.draw(SERVERS) as u16;
        let lane = self.detours.get(&name).or(self.places.get(&slot)).copied();
        match self.draw(8) {
            0 => self.owners[part] = server,
            1 => {
                let from = server;
                let to = 1 + self.draw(SERVERS) as u16;
                self.owners.iter_mut().filter(|it| **it == from).for_each(|it| *it = to);
            }
            2 => self.stale.clone_from(&self.owners),
            3 | 4 => {
                let ask = self.draw(4) == 0;
                let to = if ask { server } else { self.owner(&name) };
                if let Some(lane) = lane.filter(|lane| self.open.contains_key(lane)) {
                    let to = redirected(ask, slot, to, &[name.as_str()]);
                    let said = self.host.handle(Input::Redirected(lane, to));
                    self.listen(said);
                }
            }
            5 => {
                if let Some(lane) = lane {
                    let input = match self.draw(3) {
                        0 => Input::Up(lane, 5),
                        1 => Input::Down(lane, "gone".to_owned()),
                        _ => Input::Suspect(lane),
                    };
                    let said = self.host.handle(input);
                    self.listen(said);
                }
            }
            6 => self.answer(),
            _ => {
                let span = MILLI * self.draw(700) as u32;
                let said = self.host.pass(span);
                self.listen(said);
            }
        }
    }

    /// When all is quiet the engine has each lock where it is.
    fn settle(&mut self, names: &[Name]) {
        self.stale.clone_from(&self.owners);
        for _ in 0..80 {
            let said = self.host.pass(SECOND);
            self.listen(said);
            if self.host.asked.is_some() {
                let truth = topology(&World::ranges(&self.owners.clone()));
                let said = self.host.answers(truth);
                self.listen(said);
            }
        }
        for name in names {
            assert_eq!(self.asks(name), Some(self.owner(name)), "{name:?}");
        }
        assert!(self.detours.is_empty() && self.asking.is_empty());
        let serving: BTreeSet<u16> = self.owners.iter().copied().collect();
        assert_eq!(self.open.values().copied().collect::<BTreeSet<u16>>(), serving);
    }
}

#[test]
fn whatever_servers_say_the_map_is_right_when_they_agree() {
    let names: Vec<Name> = (0..40).map(|at| Name::new(format!("n{at}")).unwrap()).collect();
    for seed in 0..60 {
        let mut world = World {
            host: Host::new(&[1, 2]),
            random: ChaCha8Rng::seed_from_u64(seed),
            owners: (0..PARTS).map(|part| 1 + part % 3).collect(),
            stale: (0..PARTS).map(|part| 1 + part % 3).collect(),
            places: BTreeMap::new(),
            detours: BTreeMap::new(),
            open: BTreeMap::new(),
            asking: BTreeSet::new(),
        };
        let said = world.host.take();
        world.listen(said);
        for _ in 0..300 {
            world.step(&names);
        }
        world.settle(&names);
        assert!(world.host.machine.masters().contains(&node(world.owners[0])));
    }
}
