use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use super::*;
use crate::{Client, ConnectOptions};

const BOUND: Duration = Duration::from_secs(30);

fn lock() -> (Client, Lock) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let url = format!("memory:entries{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let client = Client::connect(&url, ConnectOptions::default()).unwrap();
    let lock = client.lock("x").unwrap();
    (client, lock)
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

#[test]
fn entering_is_counted_and_the_last_leave_releases() {
    let (_client, lock) = lock();
    let entries = Entries::new();
    let me = Owner::Thread;
    let token = entries.enter(&lock, &me, Patience::Try, None).unwrap();
    assert_eq!(entries.enter(&lock, &me, Patience::Try, None).unwrap(), token);
    assert_eq!(entries.depth(&me).unwrap(), 2);
    assert_eq!(entries.hold(&me).unwrap().token(), token);
    entries.leave(&me).unwrap();
    assert!(lock.is_locked().unwrap());
    entries.leave(&me).unwrap();
    assert!(!lock.is_locked().unwrap());
    assert_eq!(kind(entries.leave(&me)), ErrorKind::NotHeld);
    assert_eq!(kind(entries.hold(&me)), ErrorKind::NotHeld);
    assert!(entries.enter(&lock, &me, Patience::Try, None).unwrap() > token);
}

#[test]
fn owners_exclude_each_other() {
    let (_client, lock) = lock();
    let entries = Entries::new();
    let (one, two) = (Owner::Local(1), Owner::Local(2));
    let enter = |owner: &Owner| {
        entries.enter(&lock.clone().owner(owner.clone()), owner, Patience::Try, None)
    };
    enter(&one).unwrap();
    assert_eq!(kind(enter(&two)), ErrorKind::Contended);
    assert_eq!(kind(entries.leave(&two)), ErrorKind::NotHeld);
    assert_eq!(kind(entries.leave(&Owner::Thread)), ErrorKind::NotHeld);
    entries.leave(&one).unwrap();
    enter(&two).unwrap();
    assert_eq!(kind(enter(&Owner::Fresh)), ErrorKind::InvalidArgument);
}

#[test]
fn what_was_lost_is_acquired_anew_and_its_leaves_are_told() {
    let (client, lock) = lock();
    let entries = Entries::new();
    let me = Owner::Local(5);
    let mine = lock.owner(me.clone());
    let first = entries.enter(&mine, &me, Patience::Try, None).unwrap();
    entries.enter(&mine, &me, Patience::Try, None).unwrap();
    let (told, lost) = mpsc::channel();
    entries.hold(&me).unwrap().on_lost(move |reason| told.send(reason).unwrap());
    client.break_lock("x").unwrap();
    lost.recv_timeout(BOUND).unwrap();
    let second = entries.enter(&mine, &me, Patience::Forever, None).unwrap();
    assert!(second > first);
    assert_eq!(entries.depth(&me).unwrap(), 3);
    entries.leave(&me).unwrap();
    assert_eq!(kind(entries.leave(&me)), ErrorKind::Lost);
    assert_eq!(kind(entries.leave(&me)), ErrorKind::Lost);
    assert_eq!(kind(entries.leave(&me)), ErrorKind::NotHeld);
}

#[test]
fn waiting_to_enter_need_not_block() {
    let (_client, lock) = lock();
    let entries = Arc::new(Entries::new());
    let (one, two) = (Owner::Local(1), Owner::Local(2));
    let enter = |owner: &Owner| {
        let (told, ended) = mpsc::channel();
        let lock = lock.clone().owner(owner.clone());
        let done = move |token| told.send(token).unwrap();
        let operation = entries.enter_async(&lock, owner, Patience::Forever, done).unwrap();
        (operation, ended)
    };
    let first = enter(&one).1.recv_timeout(BOUND).unwrap().unwrap();
    assert_eq!(enter(&one).1.recv_timeout(BOUND).unwrap().unwrap(), first);
    let (waiting, second) = enter(&two);
    assert!(waiting.is_some());
    let leave = || {
        let (told, ended) = mpsc::channel();
        entries.leave_async(&one, move |left| told.send(left).unwrap()).unwrap();
        ended.recv_timeout(BOUND).unwrap()
    };
    leave().unwrap();
    assert!(second.try_recv().is_err());
    leave().unwrap();
    assert!(second.recv_timeout(BOUND).unwrap().unwrap() > first);
    assert_eq!(entries.depth(&two).unwrap(), 1);
    assert_eq!(kind(entries.leave_async(&one, drop)), ErrorKind::NotHeld);
}
