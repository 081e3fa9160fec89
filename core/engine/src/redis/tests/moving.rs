//! What is asked of a lock whose slot is moving.

use super::{bytes, codec};
use crate::id::{HoldId, OwnerId};
use crate::name::Name;
use crate::redis::{Codec, Command, Value};
use crate::reply::{Body, Failure, RefusalKind};
use crate::request::{Acquire, Beat, Op, Release};
use std::time::Duration;

const TRYAGAIN: &str = "TRYAGAIN Multiple keys request during rehashing of slot";

fn lock() -> Name {
    Name::new("job").unwrap()
}

fn acquire() -> Acquire {
    Acquire::new(lock(), HoldId(1), Duration::from_secs(1), 7)
}

fn apart() -> Op {
    let beat = Beat::new(lock(), HoldId(1), Duration::from_secs(1));
    Op::Beat(vec![Beat { apart: true, ..beat }])
}

/// The ends of the keys that are named, and the second argument.
fn named(codec: &Codec, op: &Op) -> (Vec<String>, u64) {
    let Command::Script { keys, args, .. } = codec.encode(op) else { panic!() };
    let end = |key: &[u8]| String::from_utf8(key.to_vec()).unwrap().replace("fl:{job}", "");
    let flags = std::str::from_utf8(args.get(1).unwrap()).unwrap().parse();
    (keys.iter().map(end).collect(), flags.unwrap_or(0))
}

fn refused(codec: &Codec, op: &Op, value: Value) -> RefusalKind {
    match codec.decode(op, value) {
        Err(Failure::Refused(refusal)) => refusal.kind,
        other => panic!("{other:?}"),
    }
}

fn error(text: &str) -> Value {
    Value::Error(text.to_owned())
}

#[test]
fn a_lock_is_taken_by_its_record_alone_or_waits_for_its_slot() {
    let codec = codec("fl:").in_cluster();
    let op = Op::Acquire(acquire());
    let keys = || named(&codec, &op).0.len();
    assert_eq!(keys(), 6);
    assert_eq!(refused(&codec, &op, error(TRYAGAIN)), RefusalKind::Again);
    assert_eq!(keys(), 1);
    // It is held: the slot is waited for, and the lock asked for as ever.
    assert_eq!(refused(&codec, &op, error("QUEUE")), RefusalKind::Retry);
    assert_eq!(keys(), 6);
    // Twice in a row it is not said to be asked again at once.
    assert_eq!(refused(&codec, &op, error(TRYAGAIN)), RefusalKind::Again);
    assert_eq!(refused(&codec, &op, error(TRYAGAIN)), RefusalKind::Retry);
    // What needs more than the record is not tried.
    let owner = Some(OwnerId::new("somebody").unwrap());
    let op = Op::Acquire(Acquire { owner, ..acquire() });
    assert_eq!(refused(&codec, &op, error(TRYAGAIN)), RefusalKind::Retry);
    assert_eq!(named(&codec, &op).0.len(), 6);
}

#[test]
fn a_hold_is_renewed_by_its_record_or_with_the_keys_of_the_holds() {
    let codec = codec("fl:").in_cluster();
    let op = apart();
    let of_one = |text: &str| Value::Array(vec![Value::Int(1), bytes(text)]);
    assert_eq!(named(&codec, &op), (vec![String::new()], 4));
    assert_eq!(refused_state(&codec, &op, of_one("QUEUE")), RefusalKind::Apart);
    let all = ["", ":h", ":d"].map(str::to_owned).to_vec();
    assert_eq!(named(&codec, &op), (all.clone(), 16));
    // They are on their way: the record alone may be enough again, later.
    assert_eq!(refused(&codec, &op, error(TRYAGAIN)), RefusalKind::Retry);
    assert_eq!(named(&codec, &op), (vec![String::new()], 4));
    // Neither is enough: no more is tried at once.
    assert_eq!(refused_state(&codec, &op, of_one("QUEUE")), RefusalKind::Apart);
    assert_eq!(refused_state(&codec, &op, of_one("QUEUE")), RefusalKind::Again);
}

#[test]
fn a_release_names_the_record_alone_until_it_is_to_hand_the_lock_over() {
    let codec = codec("fl:").in_cluster();
    let release = Op::Release(Release { alone: true, ..Release::new(lock(), HoldId(1), 7) });
    let keys = || named(&codec, &release).0.len();
    assert_eq!(keys(), 1);
    assert_eq!(refused(&codec, &release, error("QUEUE")), RefusalKind::Again);
    assert_eq!(keys(), 6);
    assert_eq!(refused(&codec, &release, error(TRYAGAIN)), RefusalKind::Retry);
    assert_eq!(keys(), 6);
    codec.decode(&release, Value::Array(vec![Value::Int(1), Value::Int(0)])).unwrap();
    assert_eq!(keys(), 1);
}

fn refused_state(codec: &Codec, op: &Op, value: Value) -> RefusalKind {
    match codec.decode(op, value).map(|reply| reply.body) {
        Ok(Body::Beat(states)) => states.into_iter().next().unwrap().unwrap_err().kind,
        other => panic!("{other:?}"),
    }
}
