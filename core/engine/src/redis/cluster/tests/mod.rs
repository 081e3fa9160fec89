//! What servers of a cluster say, and what follows.

mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::event::Event;
use crate::lane::LaneId;
use crate::name::Name;
use crate::redis::Node;
use crate::redis::cluster::{
    Input, Machine, Output, Range, Redirect, Redirected, SLOTS, Terms, Topology,
};
use crate::redis::session::NoSession;
use crate::request::RequestId;
use crate::time::Time;

const MILLI: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(2);

fn node(number: u16) -> Node {
    Node { host: format!("10.0.0.{number}"), port: 7_000 }
}

/// Slots, and the number of the server that has them.
fn topology(ranges: &[(u16, u16, u16)]) -> Topology {
    let range =
        |&(first, last, number): &(u16, u16, u16)| Range { first, last, node: node(number) };
    Topology { ranges: ranges.iter().map(range).collect(), sound: true }
}

fn thirds() -> Topology {
    topology(&[(0, 5_000, 1), (5_001, 10_000, 2), (10_001, SLOTS - 1, 3)])
}

fn redirected(ask: bool, slot: u16, to: u16, locks: &[&str]) -> Redirected {
    let Node { host, port } = node(to);
    Redirected {
        request: RequestId(1),
        locks: locks.iter().map(|lock| Name::new(lock).unwrap()).collect(),
        to: Redirect { ask, slot, host: Some(host), port },
    }
}

/// A machine, the time, and what it said last.
struct Host {
    machine: Machine,
    now: Time,
    /// Who is being asked, and since when.
    asked: Option<Node>,
    since: Time,
}

impl Host {
    fn new(seeds: &[u16]) -> Host {
        let seeds = seeds.iter().map(|number| node(*number)).collect();
        let now = Time::ZERO + SECOND;
        let machine =
            Machine::new(now, Terms { seeds, map: BTreeMap::new(), limit: LIMIT }, [1; 32]);
        Host { machine, now, asked: None, since: now }
    }

    /// One that has its map, with all lanes up.
    fn up() -> Host {
        let mut host = Host::new(&[1]);
        host.take();
        host.answers(thirds());
        for lane in 1..=3 {
            host.machine.handle(host.now, Input::Up(LaneId(lane), 5));
        }
        host.take();
        // What is not settled is asked again soon.
        host.pass(SECOND * 2);
        host.answers(thirds());
        assert_eq!(host.asked, None);
        host
    }

    fn take(&mut self) -> Vec<Output> {
        let mut said = Vec::new();
        while let Some(output) = self.machine.poll_output() {
            match output {
                Output::Fetch(node) => {
                    let over = self.now >= self.since + LIMIT;
                    assert!(self.asked.replace(node).is_none() || over, "one at a time");
                    self.since = self.now;
                }
                output => said.push(output),
            }
        }
        said
    }

    fn fetched(&mut self, answer: Result<Topology, NoSession>) -> Vec<Output> {
        let node = self.asked.take().expect("somebody is asked");
        let silent = BTreeSet::new();
        self.machine.handle(self.now, Input::Fetched { node, answer, silent });
        self.take()
    }

    fn answers(&mut self, topology: Topology) -> Vec<Output> {
        self.fetched(Ok(topology))
    }

    fn handle(&mut self, input: Input) -> Vec<Output> {
        self.machine.handle(self.now, input);
        self.take()
    }

    fn pass(&mut self, span: Duration) -> Vec<Output> {
        let until = self.now + span;
        let mut said = Vec::new();
        while self.machine.next_wake() <= until && self.asked.is_none() {
            self.now = self.now.max(self.machine.next_wake());
            self.machine.wake(self.now);
            said.extend(self.take());
        }
        self.now = until;
        self.machine.wake(self.now);
        said.extend(self.take());
        said
    }
}

fn moved(slots: core::ops::RangeInclusive<u16>, lane: u16) -> Output {
    Output::Event(Event::Map(vec![(slots, LaneId(lane))]))
}

#[test]
fn a_map_opens_its_masters_and_the_cluster_is_there_with_the_first() {
    let mut host = Host::new(&[9]);
    assert_eq!(host.take(), []);
    assert_eq!(host.asked, Some(node(9)));
    let lanes = [LaneId(1), LaneId(2), LaneId(3)];
    let places =
        vec![(0..=5_000, lanes[0]), (5_001..=10_000, lanes[1]), (10_001..=SLOTS - 1, lanes[2])];
    assert_eq!(
        host.answers(thirds()),
        [
            Output::Open(lanes[0], node(1)),
            Output::Open(lanes[1], node(2)),
            Output::Open(lanes[2], node(3)),
            Output::Event(Event::Map(places)),
        ]
    );
    assert_eq!(host.handle(Input::Up(lanes[1], 7)), [Output::Event(Event::Up { now: 7 })]);
    assert_eq!(host.handle(Input::Up(lanes[0], 8)), []);
    let gone = || "gone".to_owned();
    assert_eq!(host.handle(Input::Down(lanes[0], gone())), []);
    let down = Output::Event(Event::Down { reason: gone() });
    assert_eq!(host.handle(Input::Down(lanes[1], gone())), [down]);
}

#[test]
fn moved_patches_its_slot_at_once_and_no_older_map_undoes_it() {
    let mut host = Host::up();
    host.now = host.now + SECOND;
    let move_it = || Input::Redirected(LaneId(1), redirected(false, 77, 2, &["a"]));
    assert_eq!(host.handle(move_it()), [moved(77..=77, 2)]);
    assert!(host.asked.is_some(), "and a map is fetched");
    assert_eq!(host.handle(move_it()), [], "it is known by now");
    assert_eq!(host.answers(thirds()), [], "a map that is older");
    host.now = host.now + SECOND;
    host.handle(Input::Suspect(LaneId(1)));
    assert_eq!(host.answers(thirds()), [moved(77..=77, 1)], "it stands by itself now");
}

#[test]
fn a_server_that_is_new_is_connected_to() {
    let mut host = Host::up();
    let said = host.handle(Input::Redirected(LaneId(1), redirected(false, 77, 8, &["a"])));
    assert_eq!(said, [Output::Open(LaneId(4), node(8)), moved(77..=77, 4)]);
}

#[test]
fn ask_is_remembered_for_its_locks_until_the_slot_is_said_to_be_somewhere() {
    let mut host = Host::up();
    let (a, b) = (Name::new("a").unwrap(), Name::new("b").unwrap());
    let ask = || Input::Redirected(LaneId(1), redirected(true, 77, 8, &["a", "b"]));
    let there = LaneId(4);
    assert_eq!(
        host.handle(ask()),
        [
            Output::Open(there, node(8)),
            Output::Asking(there, vec![a.clone(), b.clone()]),
            Output::Event(Event::Detour(a.clone(), there)),
            Output::Event(Event::Detour(b.clone(), there)),
        ]
    );
    assert_eq!(host.asked, None, "the map is not in doubt");
    // The move was broken off: it is back at its owner.
    let back = Input::Redirected(there, redirected(false, 77, 1, &["a"]));
    assert_eq!(host.handle(back), [Output::Settled(there), moved(77..=77, 1)]);
    host.handle(ask());
    // A map ends it, too; and a server that has no slot is left with the next, if nobody was sent there again.
    assert_eq!(host.answers(thirds()), [Output::Settled(there), moved(77..=77, 1)]);
    host.handle(Input::Suspect(LaneId(1)));
    host.pass(SECOND);
    let said = host.answers(thirds());
    assert!(matches!(&said[..], [Output::Close(lane, _)] if *lane == there), "{said:?}");
}

#[test]
fn a_master_that_was_replaced_is_left_although_it_is_silent() {
    let mut host = Host::up();
    host.handle(Input::Suspect(LaneId(1)));
    assert_ne!(host.asked, Some(node(1)), "another one is asked");
    let said = host.answers(topology(&[(0, 5_000, 4), (5_001, 10_000, 2), (10_001, SLOTS - 1, 3)]));
    assert_eq!(said[..2], [Output::Open(LaneId(4), node(4)), moved(0..=5_000, 4)]);
    assert!(matches!(&said[2..], [Output::Close(LaneId(1), _)]), "{said:?}");
}

#[test]
fn a_server_that_is_cut_off_from_the_others_is_not_believed() {
    let mut host = Host::up();
    host.handle(Input::Down(LaneId(1), "gone".to_owned()));
    let mut stale = topology(&[(0, SLOTS - 1, 1)]);
    stale.sound = false;
    let first = host.asked.clone();
    assert_eq!(host.answers(stale.clone()), []);
    host.pass(MILLI * 300);
    assert_ne!(host.asked, first, "the next one is asked");
    assert_eq!(host.answers(stale), []);
}

#[test]
fn of_a_cluster_that_is_down_the_map_is_taken_if_there_is_no_better() {
    let mut host = Host::new(&[1]);
    host.take();
    let down = Topology { sound: false, ..thirds() };
    let said = host.answers(down);
    assert!(said.contains(&Output::Open(LaneId(1), node(1))), "{said:?}");
}

#[test]
fn maps_are_fetched_each_half_minute_and_sooner_by_suspicion_but_not_for_each() {
    let mut host = Host::up();
    host.pass(SECOND * 20);
    assert_eq!(host.asked, None);
    host.pass(SECOND * 20);
    host.answers(thirds());
    host.now = host.now + SECOND;
    for _ in 0..100 {
        host.handle(Input::Redirected(LaneId(1), redirected(false, 77, 2, &["a"])));
        host.handle(Input::Redirected(LaneId(1), redirected(false, 77, 3, &["a"])));
    }
    let begun = host.now;
    host.answers(thirds());
    for _ in 0..100 {
        host.handle(Input::Suspect(LaneId(1)));
    }
    assert_eq!(host.asked, None, "not within 100 ms of the last one");
    host.pass(MILLI * 201);
    assert!(host.asked.is_some() && host.now.since(begun) < SECOND);
}

/// A host numbers its connections as they come.
#[test]
fn a_server_whose_slots_a_newer_word_gave_to_another_takes_no_number() {
    let mut host = Host::up();
    host.handle(Input::Redirected(LaneId(1), redirected(false, 77, 2, &["a"])));
    let mut older = thirds();
    older.ranges.push(Range { first: 77, last: 77, node: node(9) });
    assert_eq!(host.answers(older), []);
    let said = host.handle(Input::Redirected(LaneId(1), redirected(false, 78, 8, &["a"])));
    assert_eq!(said[0], Output::Open(LaneId(4), node(8)));
}

#[test]
fn a_map_that_comes_late_is_taken_when_there_is_no_newer_one() {
    let mut host = Host::new(&[1, 2]);
    host.take();
    let late = host.asked.take().unwrap();
    host.now = host.now + LIMIT;
    host.machine.wake(host.now);
    host.take();
    host.pass(MILLI * 300);
    assert!(host.asked.as_ref().is_some_and(|other| *other != late), "the other one is asked");
    let answer = Ok(thirds());
    let said = host.handle(Input::Fetched { node: late.clone(), answer, silent: BTreeSet::new() });
    assert!(said.contains(&Output::Open(LaneId(3), node(3))), "{said:?}");
    let answer = Ok(topology(&[(0, SLOTS - 1, 9)]));
    let said = host.handle(Input::Fetched { node: late, answer, silent: BTreeSet::new() });
    assert_eq!(said, [], "nobody waits for that one");
}

#[test]
fn nobody_who_answers_is_said_so_and_asked_again() {
    let mut host = Host::new(&[1, 2]);
    host.take();
    let why = |text: &str| Err(NoSession::Later(text.to_owned()));
    assert_eq!(host.fetched(why("one")), []);
    host.pass(MILLI * 300);
    let said = host.fetched(why("two"));
    let [Output::Event(Event::Down { reason })] = &said[..] else { panic!("{said:?}") };
    assert!(reason.contains("one; two"), "{reason}");
    host.pass(SECOND);
    host.answers(thirds());
    // A silent one is given up after its time.
    let mut host = Host::new(&[1]);
    host.take();
    host.now = host.now + LIMIT;
    host.machine.wake(host.now);
    host.asked = None;
    let said = host.take();
    assert!(matches!(&said[..], [Output::Event(Event::Down { .. })]), "{said:?}");
}

#[test]
fn what_only_an_operator_can_mend_is_said_before_anything_is_up() {
    let mut host = Host::new(&[1]);
    host.take();
    let said = host.fetched(Err(NoSession::misconfigured("wrong password")));
    assert!(matches!(&said[..], [Output::Event(Event::Misconfigured(_))]), "{said:?}");
    let mut host = Host::new(&[1]);
    host.take();
    host.answers(thirds());
    let NoSession::Misconfigured(error) = NoSession::misconfigured("no scripts") else { return };
    let said = host.handle(Input::Misconfigured(LaneId(1), error.clone()));
    assert_eq!(said, [Output::Event(Event::Misconfigured(error))]);
}
