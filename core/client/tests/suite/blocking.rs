//! The blocking API.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use fencelock::blocking::{Begun, Guard, Lock};
use fencelock::{Abandoned, CancelToken, ErrorKind, LossReason, OwnerId};
use fencelock_testkit::eventually;

use super::{LIMIT, World, soon};

pub fn p01_threads_exclude_each_other(world: &World) {
    let inside = AtomicU32::new(0);
    let done = AtomicU32::new(0);
    let clients = [world.blocking(), world.blocking()];
    thread::scope(|scope| {
        for client in &clients {
            for _ in 0..4 {
                scope.spawn(|| {
                    let lock = client.lock("one").unwrap();
                    for _ in 0..10 {
                        let guard = lock.acquire_timeout(LIMIT).unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two holders");
                        thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        done.fetch_add(1, Ordering::SeqCst);
                        guard.release().unwrap();
                    }
                });
            }
        }
    });
    assert_eq!(done.load(Ordering::SeqCst), 80);
}

pub fn p02_tokens_rise_over_threads(world: &World) {
    let client = world.blocking();
    let tokens = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let lock = client.lock("tokens").unwrap();
                for _ in 0..20 {
                    let guard = lock.acquire().unwrap();
                    tokens.lock().unwrap().push(guard.token());
                    drop(guard);
                }
            });
        }
    });
    let tokens = tokens.into_inner().unwrap();
    assert_eq!(tokens.len(), 320);
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

pub fn p05_a_thread_re_enters(world: &World) {
    let client = world.blocking();
    let lock = client.lock("nested").unwrap();
    let outer = lock.acquire().unwrap();
    let inner = lock.try_acquire().unwrap();
    assert!(inner.is_reentry());
    assert_eq!((inner.token(), lock.hold_count()), (outer.token(), 2));
    let other = lock.clone();
    let refused = thread::spawn(move || other.try_acquire().map(drop).unwrap_err().kind());
    assert_eq!(refused.join().unwrap(), ErrorKind::Contended);
    outer.release().unwrap();
    inner.release().unwrap();
    assert_eq!(lock.hold_count(), 0);
}

/// One asks how many holds there are while the other one's first re-entry asks whether its hold is good.
pub fn p05_two_threads_of_one_owner_do_not_block_each_other(world: &World) {
    let client = world.blocking();
    let lock = client.lock("owner of two threads").unwrap().local_owner(7);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                assert!(lock.hold_count() <= 2);
            }
        });
        for _ in 0..200 {
            let outer = lock.acquire().unwrap();
            let inner = lock.acquire().unwrap();
            assert!(inner.is_reentry());
            drop((outer, inner));
        }
        done.store(true, Ordering::SeqCst);
    });
}

pub fn p06_a_guard_may_be_released_by_another_thread(world: &World) {
    let client = world.blocking();
    let lock = client.lock("sent").unwrap();
    let guard = lock.acquire().unwrap();
    thread::spawn(move || guard.release().unwrap()).join().unwrap();
    let other = lock.clone();
    thread::spawn(move || other.try_acquire().unwrap().release().unwrap()).join().unwrap();
}

/// Neither of the two lets go before both have the lock.
pub fn p05_threads_of_one_owner_get_the_lock_together(world: &World) {
    let client = world.blocking();
    let stranger = client.lock("owner of both").unwrap();
    let lock = stranger.clone().local_owner(7);
    let held = stranger.acquire().unwrap();
    let both = Barrier::new(2);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let guard = lock.acquire_timeout(LIMIT).unwrap();
                both.wait();
                guard.release().unwrap();
            });
        }
        thread::yield_now();
        held.release().unwrap();
    });
    assert_eq!(lock.hold_count(), 0);
}

pub fn p06_blocking_and_async_share_an_explicit_owner(world: &World) {
    let client = world.blocking();
    if !client.capabilities().owners {
        eprintln!("left out: {} has no owners", client.capabilities().store);
        return;
    }
    let owner = OwnerId::new("both").unwrap();
    let guard = client.lock("both").unwrap().owner(owner.clone()).acquire().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let other = world.client().await;
        let joined = other.attach(guard.ticket().unwrap()).await.unwrap();
        assert_eq!(joined.token(), guard.token());
        joined.release().await.unwrap();
        other.close().await;
    });
    let joined = world.blocking().attach(guard.ticket().unwrap()).unwrap();
    guard.release().unwrap();
    joined.release().unwrap();
}

pub fn p07_a_hold_is_renewed_while_its_thread_is_away(world: &World) {
    let client = world.quick().connect_blocking().unwrap();
    let guard = client.lock("kept").unwrap().acquire().unwrap();
    eventually("renewals", || (client.metrics().renewals >= 5).then_some(()));
    assert!(guard.is_valid());
    guard.release().unwrap();
}

pub fn p08_lost_is_told_to_a_callback(world: &World) {
    let client = world.blocking();
    let lock = client.lock("lost").unwrap().lease(Duration::from_millis(200));
    let guard = lock.acquire().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    guard.on_lost(move |reason| tell.send(reason).unwrap());
    assert_eq!(told.recv_timeout(LIMIT).unwrap(), LossReason::Ended);
    assert_eq!(guard.check().unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(guard.release().unwrap_err().kind(), ErrorKind::Lost);
}

pub fn p14_a_drain_ends_when_another_thread_closes(world: &World) {
    let client = world.blocking();
    let guard = client.lock("draining").unwrap().acquire().unwrap();
    let draining = client.clone();
    let drain = thread::spawn(move || draining.drain(Duration::MAX));
    let other = client.lock("other").unwrap();
    eventually("nobody new is served", || {
        other.try_acquire().is_err_and(|error| error.kind() == ErrorKind::Closed).then_some(())
    });
    assert!(!client.is_idle());
    client.close();
    assert!(!drain.join().unwrap(), "a hold was lost, not released");
    assert!(client.is_idle(), "what was lost is nobody's concern any more");
    assert_eq!(guard.release().unwrap_err().kind(), ErrorKind::Lost);
}

pub fn p09_try_and_bounded_waits(world: &World) {
    let (holder, client) = (world.blocking(), world.blocking());
    let guard = holder.lock("bounded").unwrap().acquire().unwrap();
    let lock = client.lock("bounded").unwrap();
    assert_eq!(lock.try_acquire().unwrap_err().kind(), ErrorKind::Contended);
    let error = lock.acquire_timeout(Duration::from_millis(100)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    guard.release().unwrap();
    lock.try_acquire().unwrap().release().unwrap();
    assert!(!lock.is_locked().unwrap());
}

pub fn p09_a_wait_that_gives_itself_back_keeps_its_place(world: &World) {
    let short = Duration::from_millis(20);
    let (holder, client) = (world.blocking(), world.blocking());
    let wait = |lock: &Lock| match lock.begin(None).unwrap() {
        Begun::Waiting(waiting) => waiting.wait_for(short).unwrap(),
        granted => granted,
    };
    let guard = holder.lock("patient").unwrap().acquire().unwrap();
    let token = guard.token();
    let lock = client.lock("patient").unwrap().non_reentrant();
    let Begun::Waiting(waiting) = wait(&lock) else { panic!("two holders") };
    // It stands in the queue, before whoever comes now.
    assert_eq!(client.metrics().waiting, 1);
    assert_eq!(lock.try_acquire().unwrap_err().kind(), ErrorKind::Contended);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| runtime.block_on(waiting.asynchronous()).unwrap());
        guard.release().unwrap();
        let next = waiter.join().unwrap();
        assert!(next.token() > token);
        // Given up while it waits as a future: nothing is left behind.
        let Begun::Waiting(waiting) = wait(&lock) else { panic!("two holders") };
        drop(waiting.asynchronous());
        assert_eq!(client.metrics().waiting, 0);
        next.release().unwrap();
    });
    let limit = Some(LIMIT);
    let last = match lock.begin(limit).unwrap() {
        Begun::Waiting(waiting) => waiting.wait_for(LIMIT).unwrap(),
        granted => granted,
    };
    let Begun::Granted(last) = last else { panic!("the lock is free") };
    last.release().unwrap();
}

pub fn p09_a_parked_waiter_is_served_by_another_client(world: &World) {
    let (holder, client) = (world.blocking(), world.blocking());
    let guard = holder.lock("parked").unwrap().acquire().unwrap();
    let token = guard.token();
    thread::scope(|scope| {
        let waiters: Vec<_> = (0..6)
            .map(|_| {
                let lock = client.lock("parked").unwrap();
                scope.spawn(move || lock.acquire().unwrap().token())
            })
            .collect();
        eventually("waiters", || (client.metrics().waiting == 6).then_some(()));
        guard.release().unwrap();
        for waiter in waiters {
            assert!(waiter.join().unwrap() > token);
        }
    });
}

/// Drivers change all the time: short calls, long waits and idle moments in many threads.
pub fn p09_callers_come_and_go_and_nobody_is_forgotten(world: &World) {
    let clients = [world.blocking(), world.blocking()];
    thread::scope(|scope| {
        for (number, client) in clients.iter().enumerate() {
            for index in 0..6_u32 {
                scope.spawn(move || {
                    let lock = client.lock(format!("key{}", index % 3)).unwrap();
                    for round in 0..15 {
                        let guard = lock.acquire_timeout(LIMIT).unwrap();
                        if (round + index).is_multiple_of(4) {
                            thread::sleep(Duration::from_millis(3));
                        }
                        if (round + index).is_multiple_of(2) {
                            guard.release().unwrap();
                        } else {
                            drop(guard);
                        }
                        if (round + number as u32).is_multiple_of(5) {
                            thread::sleep(Duration::from_millis(4));
                        }
                    }
                });
            }
        }
    });
    for client in &clients {
        assert_eq!((client.metrics().grants(), client.metrics().losses()), (90, 0));
    }
}

pub fn p11_a_wait_is_cancelled_from_another_thread(world: &World) {
    let (holder, client) = (world.blocking(), world.blocking());
    let guard = holder.lock("cancelled").unwrap().acquire().unwrap();
    let lock = client.lock("cancelled").unwrap();
    let cancel = CancelToken::new();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| lock.acquire_cancellable(&cancel).map(drop));
        eventually("the waiter", || (client.metrics().waiting == 1).then_some(()));
        cancel.cancel();
        assert_eq!(waiter.join().unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
    });
    assert!(cancel.is_cancelled());
    let error = lock.acquire_timeout_cancellable(LIMIT, &cancel).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    guard.release().unwrap();
    // The store may still be clearing the cancelled wait away.
    lock.acquire_timeout(LIMIT).unwrap().release().unwrap();
    assert_eq!(client.metrics().waiting, 0);
}

/// As a signal's handler does, in the thread that waits.
pub fn p11_who_is_asked_whether_to_give_up_may_call_the_client(world: &World) {
    let (holder, client) = (world.blocking(), world.blocking());
    let held = holder.lock("busy").unwrap().acquire().unwrap();
    let other = client.lock("another").unwrap();
    let mut asked = 0;
    let ended = client.lock("busy").unwrap().acquire_unless(None, Duration::from_millis(5), || {
        other.acquire().unwrap().release().unwrap();
        asked += 1;
        asked == 3
    });
    assert_eq!((ended.unwrap_err().kind(), asked), (ErrorKind::Cancelled, 3));
    // What closes the client ends the wait as well.
    let ended = client.lock("busy").unwrap().acquire_unless(None, Duration::from_millis(5), || {
        client.close();
        false
    });
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Closed);
    held.release().unwrap();
}

pub fn p11_a_dropped_guard_frees_the_lock_without_another_call(world: &World) {
    let (client, other) = (world.blocking(), world.blocking());
    drop(client.lock("dropped").unwrap().acquire().unwrap());
    let next = other.lock("dropped").unwrap().acquire_timeout(LIMIT).unwrap();
    world.assert_released(next.previous_abandoned());
}

/// In a destructor of a thread's own data, which may run after those of everybody else's.
pub fn p11_a_thread_that_ends_may_release_and_acquire(world: &World) {
    struct AtEnd(RefCell<Vec<Box<dyn FnOnce()>>>);
    impl Drop for AtEnd {
        fn drop(&mut self) {
            self.0.take().into_iter().for_each(|work| work());
        }
    }
    thread_local!(static AT_END: AtEnd = const { AtEnd(RefCell::new(Vec::new())) });

    let (client, other) = (world.blocking(), world.blocking());
    let (told, heard) = mpsc::channel();
    let (holding, goes_on) = mpsc::channel();
    let held = other.lock("others").unwrap().acquire().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            // First, so that it is the last to go.
            AT_END.with(|_| ());
            let [released, dropped, waited] =
                ["released", "dropped", "others"].map(|name| client.lock(name).unwrap());
            let guards = (released.acquire().unwrap(), dropped.acquire().unwrap());
            holding.send(()).unwrap();
            AT_END.with(|end| {
                end.0.borrow_mut().push(Box::new(move || {
                    let (released, dropped) = guards;
                    drop(dropped);
                    let released = released.release();
                    let waited = waited.acquire_timeout(LIMIT).and_then(Guard::release);
                    told.send((released, waited)).unwrap();
                }));
            });
        });
        goes_on.recv_timeout(LIMIT).unwrap();
        eventually("the waiter", || (client.metrics().waiting == 1).then_some(()));
        held.release().unwrap();
        let (released, waited) = heard.recv_timeout(LIMIT).unwrap();
        released.unwrap();
        waited.unwrap();
    });
    for name in ["released", "dropped", "others"] {
        other.lock(name).unwrap().acquire_timeout(LIMIT).unwrap().release().unwrap();
    }
}

pub fn p11_close_ends_waits(world: &World) {
    let (holder, client) = (world.blocking(), Arc::new(world.blocking()));
    let guard = holder.lock("closed").unwrap().acquire().unwrap();
    let waiter = thread::spawn({
        let lock = client.lock("closed").unwrap();
        move || lock.acquire().map(drop)
    });
    eventually("the waiter", || (client.metrics().waiting == 1).then_some(()));
    assert!(!client.close(), "somebody waited");
    let kind = waiter.join().unwrap().unwrap_err().kind();
    assert!(matches!(kind, ErrorKind::Closed | ErrorKind::Cancelled), "{kind}");
    assert_eq!(client.lock("x").unwrap().acquire().unwrap_err().kind(), ErrorKind::Closed);
    client.close();
    guard.release().unwrap();
    assert!(holder.close());
}

pub fn p13_the_end_of_its_runtime_closes_a_client(world: &World) {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().unwrap()
    };
    let (first, second) = (runtime(), runtime());
    let (client, guard) = first.block_on(async {
        let client = world.client().await;
        let guard = client.lock("held").unwrap().acquire().await.unwrap();
        (client, guard)
    });
    let (told, heard) = mpsc::channel();
    guard.on_lost(move |reason| told.send(reason).unwrap());
    let waiter = second.spawn({
        let lock = client.lock("held").unwrap().non_reentrant();
        async move { lock.acquire().await.map(drop) }
    });
    eventually("the waiter", || (client.metrics().waiting == 1).then_some(()));
    drop(first);
    assert_eq!(heard.recv_timeout(LIMIT).unwrap(), LossReason::Closed);
    second.block_on(async {
        let waited = soon("the waiter", waiter).await.unwrap();
        assert_eq!(waited.unwrap_err().kind(), ErrorKind::Closed);
        assert!(!guard.is_valid());
        let lock = client.lock("free").unwrap();
        let late = soon("an acquire", lock.acquire()).await;
        assert_eq!(late.unwrap_err().kind(), ErrorKind::Closed);
        let late = soon("a ping", client.ping()).await;
        assert_eq!(late.unwrap_err().kind(), ErrorKind::Closed);
        let late = soon("a release", guard.release()).await;
        assert_eq!(late.unwrap_err().kind(), ErrorKind::Lost);
        soon("the close", client.close()).await;
    });
}

pub fn p11_a_guard_is_dropped_outside_its_runtime(world: &World) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (_client, guard) = runtime.block_on(async {
        let client = world.client().await;
        let guard = client.lock("dropped").unwrap().acquire().await.unwrap();
        (client, guard)
    });
    drop(guard);
    let other = world.blocking();
    other.lock("dropped").unwrap().acquire_timeout(LIMIT).unwrap().release().unwrap();
}

/// Not advised, but it must neither panic nor hang.
pub fn works_inside_a_runtime(world: &World) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = world.blocking();
        let lock = client.lock("inside").unwrap();
        for _ in 0..3 {
            lock.acquire().unwrap().release().unwrap();
            drop(lock.acquire().unwrap());
        }
        client.close();
        drop((lock, client));
        // Nor may a connection that fails.
        let nobody = fencelock::Client::builder("redis://127.0.0.1:1?connect_timeout=100ms");
        assert_eq!(nobody.connect_blocking().unwrap_err().kind(), ErrorKind::Unavailable);
    });
}
