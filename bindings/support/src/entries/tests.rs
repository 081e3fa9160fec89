use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use fencelock_testkit::eventually;

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
    let me = EntryKey::thread();
    let token = entries.enter(&lock, me, Patience::Try, None).unwrap();
    assert_eq!(entries.enter(&lock, me, Patience::Try, None).unwrap(), token);
    assert_eq!(entries.depth(me), 2);
    assert_eq!(entries.hold(me).unwrap().token(), token);
    entries.leave(me).unwrap();
    assert!(lock.is_locked().unwrap());
    entries.leave(me).unwrap();
    assert!(!lock.is_locked().unwrap());
    assert_eq!(kind(entries.leave(me)), ErrorKind::NotHeld);
    assert_eq!(kind(entries.hold(me)), ErrorKind::NotHeld);
    assert!(entries.enter(&lock, me, Patience::Try, None).unwrap() > token);
}

#[test]
fn owners_exclude_each_other() {
    let (_client, lock) = lock();
    let entries = Entries::new();
    let (one, two) = (Owner::Local(1), Owner::Local(2));
    let enter = |owner: &Owner| {
        let key = EntryKey::try_from(owner)?;
        entries.enter(&lock.clone().owner(owner.clone()), key, Patience::Try, None)
    };
    let leave = |owner: &Owner| entries.leave(EntryKey::try_from(owner)?);
    enter(&one).unwrap();
    assert_eq!(kind(enter(&two)), ErrorKind::Contended);
    assert_eq!(kind(leave(&two)), ErrorKind::NotHeld);
    assert_eq!(kind(leave(&Owner::Thread)), ErrorKind::NotHeld);
    leave(&one).unwrap();
    enter(&two).unwrap();
    assert_eq!(kind(enter(&Owner::Fresh)), ErrorKind::InvalidArgument);
}

#[test]
fn what_was_lost_is_acquired_anew_and_its_leaves_are_told() {
    let (client, lock) = lock();
    let entries = Entries::new();
    let owner = Owner::Local(5);
    let me = EntryKey::try_from(&owner).unwrap();
    let mine = lock.owner(owner);
    let first = entries.enter(&mine, me, Patience::Try, None).unwrap();
    entries.enter(&mine, me, Patience::Try, None).unwrap();
    let (told, lost) = mpsc::channel();
    entries.hold(me).unwrap().on_lost(move |reason| told.send(reason).unwrap());
    client.break_lock("x", u64::MAX).unwrap();
    lost.recv_timeout(BOUND).unwrap();
    let second = entries.enter(&mine, me, Patience::Forever, None).unwrap();
    assert!(second > first);
    assert_eq!(entries.depth(me), 3);
    entries.leave(me).unwrap();
    assert_eq!(kind(entries.leave(me)), ErrorKind::Lost);
    assert_eq!(kind(entries.leave(me)), ErrorKind::Lost);
    assert_eq!(kind(entries.leave(me)), ErrorKind::NotHeld);
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
        let key = EntryKey::try_from(owner).unwrap();
        let operation = entries.enter_async(&lock, key, Patience::Forever, done);
        (operation, ended)
    };
    let first = enter(&one).1.recv_timeout(BOUND).unwrap().unwrap();
    assert_eq!(enter(&one).1.recv_timeout(BOUND).unwrap().unwrap(), first);
    let (waiting, second) = enter(&two);
    assert!(waiting.is_some());
    let key = EntryKey::try_from(&one).unwrap();
    let leave = || {
        let (told, ended) = mpsc::channel();
        entries.leave_async(key, move |left| told.send(left).unwrap()).unwrap();
        ended.recv_timeout(BOUND).unwrap()
    };
    leave().unwrap();
    assert!(second.try_recv().is_err());
    leave().unwrap();
    assert!(second.recv_timeout(BOUND).unwrap().unwrap() > first);
    assert_eq!(entries.depth(EntryKey::try_from(&two).unwrap()), 1);
    assert_eq!(kind(entries.leave_async(key, drop)), ErrorKind::NotHeld);
}

#[test]
fn who_waits_to_enter_does_not_keep_what_was_entered_when_the_lock_is_let_go() {
    let (client, lock) = lock();
    let entries = Arc::new(Entries::new());
    let (told, ended) = mpsc::channel();
    let enter = |number: u64, limit: Patience| {
        let (owner, told) = (Owner::Local(number), told.clone());
        let key = EntryKey::try_from(&owner).unwrap();
        let done = move |token: Result<u64>| told.send((number, token)).unwrap();
        entries.enter_async(&lock.clone().owner(owner), key, limit, done)
    };
    enter(1, Patience::Try);
    assert!(ended.recv_timeout(BOUND).unwrap().1.is_ok());
    enter(2, Patience::Forever);
    enter(3, Patience::Forever);
    assert!(ended.try_recv().is_err());
    entries.end();
    let mut told = [(); 2].map(|()| ended.recv_timeout(BOUND).unwrap());
    told.sort_by_key(|(who, _)| *who);
    let told = told.map(|(who, token)| (who, kind(token)));
    assert_eq!(told, [(2, ErrorKind::Cancelled), (3, ErrorKind::Cancelled)]);
    // Nobody is left in, and nobody gets in.
    assert!(client.drain(BOUND));
    assert_eq!(entries.total(), 0);
    assert_eq!(
        kind(entries.leave(EntryKey::try_from(&Owner::Local(1)).unwrap())),
        ErrorKind::NotHeld
    );
}

#[test]
fn who_waits_for_another_holder_need_not_when_the_lock_is_let_go() {
    let (client, lock) = lock();
    let holder = lock.clone().owner(Owner::Fresh).acquire(Patience::Try, None).unwrap();
    let entries = Arc::new(Entries::new());
    let (told, ended) = mpsc::channel();
    let own = Arc::new(CancelToken::new());
    for number in 1..=3 {
        let (told, entries, own) = (told.clone(), entries.clone(), own.clone());
        let mine = lock.clone().owner(Owner::Local(number));
        let key = EntryKey::try_from(&Owner::Local(number)).unwrap();
        let done = move |token: Result<u64>| told.send(token).unwrap();
        if number == 1 {
            entries.enter_async(&mine, key, Patience::Forever, done).unwrap();
            continue;
        }
        std::thread::spawn(move || {
            let cancel = (number == 3).then_some(&*own);
            done(entries.enter(&mine, key, Patience::Forever, cancel));
        });
    }
    eventually("three wait", || (client.metrics().waiting == 3).then_some(()));
    entries.end();
    for _ in 0..3 {
        let error = ended.recv_timeout(BOUND).unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert!(error.message().contains("freed"), "{error}");
    }
    assert!(holder.is_valid() && !own.is_cancelled());
    assert_eq!(client.metrics().waiting, 0);
}

#[test]
fn who_waits_to_enter_is_cancelled_by_a_token_too() {
    let (client, lock) = lock();
    let holder = lock.clone().owner(Owner::Fresh).acquire(Patience::Try, None).unwrap();
    let entries = Entries::new();
    let (cancel, me) = (CancelToken::new(), EntryKey::ANYBODY);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| entries.enter(&lock, me, Patience::Forever, Some(&cancel)));
        eventually("one waits", || (client.metrics().waiting == 1).then_some(()));
        cancel.cancel();
        let error = waiter.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert!(!error.message().contains("freed"), "{error}");
    });
    holder.release().unwrap();
    let again = entries.enter(&lock, me, Patience::Forever, Some(&cancel));
    assert_eq!(kind(again), ErrorKind::Cancelled);
    entries.enter(&lock, me, Patience::Try, Some(&CancelToken::new())).unwrap();
    entries.leave(me).unwrap();
}

#[test]
fn a_leave_that_was_counted_tells_of_the_loss_through_its_completion() {
    let (client, lock) = lock();
    let entries = Entries::new();
    let me = EntryKey::thread();
    entries.enter(&lock, me, Patience::Try, None).unwrap();
    entries.enter(&lock, me, Patience::Try, None).unwrap();
    let (told, lost) = mpsc::channel();
    entries.hold(me).unwrap().on_lost(move |reason| told.send(reason).unwrap());
    client.break_lock("x", u64::MAX).unwrap();
    lost.recv_timeout(BOUND).unwrap();
    for left in [1, 0] {
        let (told, ended) = mpsc::channel();
        entries.leave_async(me, move |left| told.send(left).unwrap()).unwrap();
        assert_eq!(kind(ended.recv_timeout(BOUND).unwrap()), ErrorKind::Lost);
        assert_eq!(entries.depth(me), left);
    }
    assert_eq!(kind(entries.leave_async(me, drop)), ErrorKind::NotHeld);
}

#[test]
fn a_hold_that_is_apart_is_not_counted_on() {
    let (_client, lock) = lock();
    let entries = Entries::new();
    let me = EntryKey::thread();
    let apart = lock.acquire(Patience::Try, None).unwrap();
    entries.apart(me, apart.clone()).unwrap();
    assert_eq!(entries.again(me), None);
    entries.enter(&lock, me, Patience::Try, None).unwrap();
    assert!(entries.again(me).is_some());
    assert_eq!((entries.depth(me), entries.total()), (3, 3));
    apart.release().unwrap();
    entries.leave(me).unwrap();
    assert!(lock.is_locked().unwrap());
    entries.leave(me).unwrap();
    assert!(!lock.is_locked().unwrap());
    assert_eq!(kind(entries.leave(me)), ErrorKind::NotHeld);
}

#[test]
fn an_owner_is_taken_out_and_comes_back_as_deeply() {
    let (_client, lock) = lock();
    let entries = Entries::new();
    let (me, other) = (EntryKey::thread(), EntryKey::ANYBODY);
    let hold = || lock.clone().owner(Owner::Local(7)).acquire(Patience::Try, None).unwrap();
    entries.first(me, hold()).unwrap();
    assert!(entries.again(me).is_some());
    entries.apart(me, hold()).unwrap();
    entries.apart(other, hold()).unwrap();
    let taken = entries.take(me);
    assert_eq!((entries.depth(me), entries.depth(other)), (0, 1));
    let depths: Vec<_> = taken.iter().map(|(_, depth)| (depth.count, depth.shared)).collect();
    assert_eq!(depths, [(2, true), (1, false)]);
    for (_, depth) in taken {
        entries.restore(me, hold(), depth).unwrap();
    }
    assert_eq!(entries.depth(me), 3);
    assert!(entries.again(me).is_none(), "the innermost is the host's own to end");
    entries.leave(me).unwrap();
    assert!(entries.again(me).is_some());
    assert!(entries.take(EntryKey::try_from(&Owner::Local(99)).unwrap()).is_empty());
}

#[test]
fn a_hold_that_the_host_ended_is_not_there_to_be_left() {
    let (_client, lock) = lock();
    let entries = Entries::new();
    let me = EntryKey::thread();
    let [first, second] = [(), ()].map(|()| lock.acquire(Patience::Try, None).unwrap());
    entries.apart(me, first.clone()).unwrap();
    entries.apart(me, second.clone()).unwrap();
    second.release().unwrap();
    entries.retain(|hold| hold.token() == first.token() && hold.is_valid());
    assert_eq!(entries.depth(me), 1);
    entries.leave(me).unwrap();
    assert!(!lock.is_locked().unwrap());
    assert_eq!(kind(entries.leave(me)), ErrorKind::NotHeld);
}

#[test]
fn the_latest_is_the_owners_or_else_anybodys() {
    let (client, _lock) = lock();
    let permit = client.semaphore("s", 3).unwrap().taking(1);
    let take = || permit.acquire(Patience::Try, None).unwrap();
    let entries = Entries::new();
    let (one, two) = (Owner::Local(1), Owner::Local(2));
    let [one, two] = [&one, &two].map(|owner| EntryKey::try_from(owner).unwrap());
    let mut tokens = Vec::new();
    for key in [one, one, two] {
        let hold = take();
        tokens.push(hold.token());
        entries.apart(key, hold).unwrap();
    }
    let latest = |key| entries.latest(key).map(|hold: Hold| hold.token());
    assert_eq!(latest(one), Some(tokens[1]));
    assert_eq!(latest(one), Some(tokens[0]));
    assert_eq!(latest(one), Some(tokens[2]), "another's");
    assert_eq!(latest(one), None);
}
