//! Permits, in the layout of Curator's semaphore.

use super::*;
use crate::reply::Standing;
use crate::request::{Mode, Resize};
use crate::zookeeper::{NodeKind, ZkWrite};

const LOCKS: &str = "/shop/cart/locks";
const LEASES: &str = "/shop/cart/leases";

fn lease(number: u128, sequence: i32) -> String {
    node(number, sequence).replace("-lock-", "-lease-")
}

fn list(names: &[String]) -> Result {
    children(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

fn queued(number: u128, sequence: i32) -> Result {
    let stat = Stat { czxid: 90, ephemeral_owner: SESSION, ..Stat::default() };
    Ok(ZkReply::Created { path: format!("{LOCKS}/{}", node(number, sequence)), stat })
}

fn above() -> Result {
    children(&["locks", "leases"])
}

fn of(of: u32) -> Result {
    data(&format!("fencelock 1 permits {of}"))
}

fn made(names: &[String], czxid: i64) -> Result {
    let stat = Stat { czxid, ephemeral_owner: SESSION, ..Stat::default() };
    Ok(ZkReply::Made(names.iter().map(|name| (format!("{LEASES}/{name}"), stat)).collect()))
}

impl Talk {
    fn take(&mut self, number: u128, (count, of): (u32, u32), waits: bool) -> RequestId {
        let wait = waits.then_some(Wait { ticket: 0, claim: TIMEOUT, silence: TIMEOUT });
        let ask = Acquire::new(name(), hold(number), TIMEOUT, u64::MAX);
        self.ask(Op::Acquire(Acquire { wait, mode: Mode::Permits { count, of }, ..ask }))
    }

    fn parts(&self) -> Vec<ZkWrite> {
        match &self.ops()[..] {
            [ZkOp::Multi(parts)] => parts.clone(),
            other => panic!("{other:?}"),
        }
    }
}

/// What the first in the queue takes, it takes in one step with leaving it.
#[test]
fn all_is_taken_in_one_step_with_the_end_of_the_place_in_the_queue() {
    let mut talk = Talk::new();
    let request = talk.take(1, (2, 3), true);
    talk.answer([queued(1, 0), list(&[node(1, 0)]), children(&[]), above(), data("")]);
    let own = format!("{LOCKS}/{}", node(1, 0));
    let parts = talk.parts();
    assert_eq!(parts[0], ZkWrite::Check { path: own.clone() });
    assert_eq!(parts[1], ZkWrite::CheckVersion { path: LOCK.to_owned(), version: 0 });
    let data = b"fencelock 1 permits 3".to_vec();
    assert_eq!(parts[2], ZkWrite::Set { path: LOCK.to_owned(), data });
    let stem = |part: &ZkWrite| match part {
        ZkWrite::Create { path, kind: NodeKind::EphemeralSequential, .. } => path.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(stem(&parts[3]), stem(&parts[4]));
    assert_eq!(parts[5..], [ZkWrite::Delete { path: own }]);
    talk.answer([made(&[lease(1, 0), lease(1, 1)], 100)]);
    let state = talk.state(request);
    assert_eq!((state.standing, state.token, state.end), (Standing::Granted, 102_400, 103_423));
    let release = Release::new(name(), hold(1), USED);
    talk.ask(Op::Release(Release { mode: Mode::Permits { count: 2, of: 3 }, ..release }));
    assert_eq!(talk.parts().len(), 2, "both go back together");
}

/// M109, M103: who is first and finds too few takes none of them, and waits.
#[test]
fn m109_whoever_wants_more_than_there_is_takes_nothing() {
    let mut talk = Talk::new();
    let request = talk.take(2, (3, 4), true);
    let out = [lease(1, 0), lease(1, 1)];
    talk.answer([queued(2, 1), list(&[node(2, 1)]), list(&out), above(), of(4)]);
    assert_eq!(talk.state(request).standing, Standing::Queued);
    let leases = || ZkOp::Children { path: LEASES.to_owned(), watch: true };
    assert_eq!(talk.ops()[0], &leases());
    talk.answer([list(&out), of(4)]);
    assert!(talk.ops().is_empty());
    // One comes back, and it is not enough.
    talk.fired(LEASES.to_owned(), Change::Children);
    talk.answer([list(&[node(2, 1)]), list(&out[..1]), above(), of(5)]);
    assert_eq!(talk.parts().len(), 6, "of five, three of which are free: they are taken");
}

/// M110: a try that finds room takes its place in the queue like everybody else.
#[test]
fn m110_a_try_takes_nothing_past_the_queue() {
    let mut talk = Talk::new();
    let request = talk.take(2, (1, 4), false);
    talk.answer([done(), list(&[]), list(&[lease(1, 0)]), above(), of(4)]);
    match talk.ops()[0] {
        ZkOp::Create { path, .. } => assert!(path.starts_with(LOCKS), "{path}"),
        other => panic!("{other:?}"),
    }
    let ahead = [node(3, 6), node(2, 7)];
    let out: Vec<String> = (0..4).map(|at| lease(1, at)).collect();
    talk.answer([queued(2, 7), list(&ahead), list(&out), above(), of(4)]);
    talk.answer([done()]);
    assert_eq!(talk.state(request).standing, Standing::Contended);
}

/// M111: the request that takes them was not answered: they are found with the place in the queue gone.
#[test]
fn m111_what_an_unanswered_request_took_is_found() {
    let mut talk = Talk::new();
    let request = talk.take(1, (2, 3), true);
    talk.answer([queued(1, 0), list(&[node(1, 0)]), children(&[]), above(), of(3)]);
    talk.answer([lost()]);
    assert_eq!(talk.reply(request), Err(Failure::Unknown));
    talk.hear(Input::Disconnected { reason: String::new() });
    talk.hear(Input::Reattached);
    talk.answer_sync(done());
    let own = [lease(1, 0), lease(1, 1)];
    talk.answer([children(&[]), list(&own), above(), of(3)]);
    talk.answer([exists(Stat { czxid: 100, ephemeral_owner: SESSION, ..Stat::default() })]);
    assert_eq!(talk.pushes(), [Push::Changed { lock: name(), hold: hold(1) }]);
    // Whoever gave up meanwhile gives both back.
    let release = Release::new(name(), hold(1), 0);
    talk.ask(Op::Release(Release { mode: Mode::Permits { count: 2, of: 3 }, ..release }));
    assert_eq!(talk.parts().len(), 2);
}

/// While what takes them is on its way, the release looks what became of it.
#[test]
fn m111_a_release_gives_back_what_was_being_taken() {
    let mut talk = Talk::new();
    talk.take(1, (1, 3), true);
    talk.answer([queued(1, 0), list(&[node(1, 0)]), children(&[]), above(), of(3)]);
    let release = Release { told: false, ..Release::new(name(), hold(1), 0) };
    let mode = Mode::Permits { count: 1, of: 3 };
    let request = talk.ask(Op::Release(Release { mode, ..release }));
    talk.answer([made(&[lease(1, 0)], 100), children(&[]), list(&[lease(1, 0)]), above(), of(3)]);
    talk.answer([exists(Stat { czxid: 100, ephemeral_owner: SESSION, ..Stat::default() })]);
    assert_eq!(talk.ops(), [&ZkOp::Delete { path: format!("{LEASES}/{}", lease(1, 0)) }]);
    talk.answer([done()]);
    assert_eq!(talk.released(request), Released::Left);
}

/// A number is set only while somebody is there of whom it is said.
#[test]
fn a_resize_holds_on_to_somebody() {
    let mut talk = Talk::new();
    let request = talk.ask(Op::Resize(Resize { lock: name(), of: 5 }));
    talk.answer([done(), above()]);
    talk.answer([list(&[lease(1, 0)]), children(&[])]);
    let check = ZkWrite::Check { path: format!("{LEASES}/{}", lease(1, 0)) };
    let set = ZkWrite::Set { path: LOCK.to_owned(), data: b"fencelock 1 permits 5".to_vec() };
    assert_eq!(talk.parts(), [check, set]);
    // That one has gone, and so has everybody else.
    talk.answer([Err(ZkError::At(0, Box::new(ZkError::NoNode)))]);
    talk.answer([above()]);
    talk.answer([children(&[]), children(&[])]);
    assert_eq!(talk.reply(request), Ok(Body::Resize(false)));
}

/// M142: what was seen of a number that somebody sets meanwhile lets nobody in, nor undoes it.
#[test]
fn m142_what_is_taken_is_taken_of_the_number_that_counts() {
    let mut talk = Talk::new();
    let request = talk.take(2, (1, 3), true);
    let out = [lease(1, 0), lease(1, 1)];
    let (queue, first) = (list(&[node(2, 1)]), queued(2, 1));
    talk.answer([first, queue.clone(), list(&out), above(), of(3)]);
    assert_eq!(talk.parts()[1], ZkWrite::CheckVersion { path: LOCK.to_owned(), version: 0 });
    talk.answer([Err(ZkError::At(1, Box::new(ZkError::BadVersion)))]);
    talk.answer([queue, list(&out), above(), of(2)]);
    assert_eq!(talk.state(request).standing, Standing::Queued, "there are two, and both are out");
    talk.answer([list(&out), of(2)]);
    // The same for who says how many there are, as the first of all.
    let mut talk = Talk::new();
    let request = talk.take(1, (1, 3), true);
    talk.answer([queued(1, 0), list(&[node(1, 0)]), children(&[]), above(), data("")]);
    talk.answer([Err(ZkError::At(1, Box::new(ZkError::BadVersion)))]);
    talk.answer([list(&[node(1, 0)]), children(&[]), above(), of(5)]);
    let sets = |part: &ZkWrite| matches!(part, ZkWrite::Set { .. });
    assert!(!talk.parts().iter().any(sets), "it is five, as was said since");
    talk.answer([made(&[lease(1, 0)], 100)]);
    assert_eq!(talk.state(request).standing, Standing::Granted);
}

/// M151: the engine's handle of a name that was a read-write lock before is marked so.
#[test]
fn m151_who_wants_permits_stands_in_curators_mutex_whatever_the_name_was_before() {
    let mut talk = Talk::new();
    let wait = Some(Wait { ticket: 0, claim: TIMEOUT, silence: TIMEOUT });
    let mode = Mode::Permits { count: 1, of: 3 };
    let ask = Acquire::new(name(), hold(1), TIMEOUT, u64::MAX);
    talk.ask(Op::Acquire(Acquire { wait, mode, read_write: true, ..ask }));
    let made = talk.ops().into_iter().find_map(|op| match op {
        ZkOp::Create { path, .. } => Some(path),
        _ => None,
    });
    let path = made.expect("a place in the line");
    assert!(path.starts_with(LOCKS) && path.ends_with("-lock-"), "{path}");
}
