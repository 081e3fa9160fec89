//! What a binding relies on.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use crate::errors::table;
use crate::*;

const BOUND: Duration = Duration::from_secs(30);

/// A client of a store that no other test uses.
fn client() -> Client {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let url = format!("memory:test{}", NEXT.fetch_add(1, Ordering::Relaxed));
    Client::connect(&url, ConnectOptions::default()).unwrap()
}

fn acquire(lock: &Lock, patience: Patience) -> (Operation, Receiver<Result<Hold>>) {
    let (told, ended) = mpsc::channel();
    let done = move |hold| {
        // The test may have ended.
        let _ = told.send(hold);
    };
    (lock.acquire_async(patience, done), ended)
}

#[test]
fn a_wait_ends_with_the_holders_release() {
    let client = client();
    let lock = client.lock("x").unwrap().owner(Owner::Fresh);
    let first = lock.acquire(Patience::Forever, None).unwrap();
    let (_, ended) = acquire(&lock, Patience::Forever);
    assert!(ended.try_recv().is_err());
    first.release().unwrap();
    let second = ended.recv_timeout(BOUND).unwrap().unwrap();
    assert!(second.token() > first.token());
    assert_eq!(first.release().unwrap_err().kind(), ErrorKind::NotHeld);
}

#[test]
fn a_cancelled_wait_leaves_nothing_queued_and_says_so_once() {
    let client = client();
    let lock = client.lock("x").unwrap().owner(Owner::Fresh);
    let hold = lock.acquire(Patience::Forever, None).unwrap();
    let (operation, ended) = acquire(&lock, Patience::Forever);
    operation.cancel();
    operation.cancel();
    assert_eq!(ended.recv_timeout(BOUND).unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(ended.recv().is_err());
    hold.release().unwrap();
    lock.acquire(Patience::Try, None).unwrap().release().unwrap();
}

#[test]
fn a_cancel_that_comes_too_late_changes_nothing() {
    let client = client();
    let lock = client.lock("x").unwrap().owner(Owner::Fresh);
    let (operation, ended) = acquire(&lock, Patience::Forever);
    operation.cancel();
    let hold = ended.recv_timeout(BOUND).unwrap().unwrap();
    assert!(hold.is_valid());
}

#[test]
fn a_hold_that_is_delivered_to_nobody_is_released() {
    let client = client();
    let lock = client.lock("x").unwrap().owner(Owner::Fresh);
    lock.acquire_async(Patience::Forever, drop);
    lock.acquire(Patience::For(BOUND), None).unwrap();
}

#[test]
fn cancels_and_grants_race_without_residue() {
    let client = client();
    let lock = client.lock("x").unwrap().owner(Owner::Fresh);
    for round in 0..500_u32 {
        let hold = lock.acquire(Patience::Forever, None).unwrap();
        let waits: Vec<_> = (0..4).map(|_| acquire(&lock, Patience::Forever)).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| hold.release().unwrap());
            for (index, (operation, _)) in waits.iter().enumerate() {
                if (round as usize >> index) & 1 == 0 {
                    scope.spawn(|| operation.cancel());
                }
            }
        });
        for (index, (_, ended)) in waits.iter().enumerate() {
            match ended.recv_timeout(BOUND).unwrap() {
                Ok(hold) => hold.release().unwrap(),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Cancelled, "wait {index}");
                }
            }
        }
    }
    assert!(!lock.is_locked().unwrap());
}

#[test]
fn a_panicking_completion_stays_where_it_is() {
    let client = client();
    let lock = client.lock("x").unwrap().owner(Owner::Fresh);
    lock.acquire_async(Patience::Forever, |_| panic!("a planted panic"));
    lock.acquire(Patience::For(BOUND), None).unwrap();
}

#[test]
fn numbered_owners_re_enter_by_their_number() {
    let client = client();
    let lock = client.lock("x").unwrap();
    let first = lock.clone().owner(Owner::Local(1)).acquire(Patience::Try, None).unwrap();
    let again = lock.clone().owner(Owner::Local(1)).acquire(Patience::Try, None).unwrap();
    assert!(again.is_reentry());
    assert_eq!(first.token(), again.token());
    let other = lock.clone().owner(Owner::Local(2)).acquire(Patience::Try, None);
    assert_eq!(other.unwrap_err().kind(), ErrorKind::Contended);
    assert_eq!(lock.owner(Owner::Local(1)).hold_count(), 2);
}

#[test]
fn a_draining_client_finishes_what_it_has_begun() {
    let client = client();
    let lock = client.lock("x").unwrap();
    let holder = lock.clone().owner(Owner::Local(1)).acquire(Patience::Try, None).unwrap();
    let waiter = acquire(&lock.clone().owner(Owner::Local(2)), Patience::Forever).1;
    let (told, drained) = mpsc::channel();
    client.drain_async(BOUND, move |all| told.send(all).unwrap()).unwrap();
    let turned_away = || {
        let error = lock.clone().owner(Owner::Local(3)).acquire(Patience::Try, None).unwrap_err();
        error.kind() == ErrorKind::Closed
    };
    while !turned_away() {
        std::thread::yield_now();
    }
    lock.clone().owner(Owner::Local(1)).acquire(Patience::Try, None).unwrap().release().unwrap();
    holder.release().unwrap();
    waiter.recv_timeout(BOUND).unwrap().unwrap().release().unwrap();
    assert!(drained.recv_timeout(BOUND).unwrap());
    assert!(client.is_closed());
}

#[test]
fn a_drain_that_takes_too_long_tells_the_holders() {
    let client = client();
    let hold = client.lock("x").unwrap().acquire(Patience::Try, None).unwrap();
    let (told, lost) = mpsc::channel();
    hold.on_lost(move |reason| told.send(reason).unwrap());
    assert!(!client.drain(Duration::from_millis(10)));
    lost.recv_timeout(BOUND).unwrap();
    assert!(!hold.is_valid());
}

#[test]
fn a_wait_gives_up_when_its_host_says_so() {
    let client = client();
    let lock = client.lock("x").unwrap().owner(Owner::Fresh);
    let hold = lock.acquire(Patience::Forever, None).unwrap();
    let mut looks = 0;
    let stop = || {
        looks += 1;
        looks == 3
    };
    let error = lock.acquire_unless(Patience::Forever, Duration::from_millis(1), stop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(looks, 3);
    let never = || panic!("a try does not wait");
    let error = lock.acquire_unless(Patience::Try, BOUND, never).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Contended);
    hold.release().unwrap();
    lock.acquire(Patience::Try, None).unwrap();
}

#[test]
fn a_try_heeds_a_token_that_is_cancelled() {
    let client = client();
    let lock = client.lock("x").unwrap().owner(Owner::Fresh);
    let cancel = CancelToken::new();
    lock.acquire(Patience::Try, Some(&cancel)).unwrap().release().unwrap();
    let hold = lock.acquire(Patience::Try, None).unwrap();
    let error = lock.acquire(Patience::Try, Some(&cancel)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Contended);
    hold.release().unwrap();
    cancel.cancel();
    let error = lock.acquire(Patience::Try, Some(&cancel)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(!lock.is_locked().unwrap());
}

#[test]
fn the_dispatcher_keeps_the_order_and_survives_a_panic() {
    let dispatcher = Dispatcher::current().unwrap();
    let (told, heard) = mpsc::channel();
    for number in 0..100 {
        let told = told.clone();
        dispatcher.post(move || {
            told.send((number, std::thread::current().name().map(str::to_owned))).unwrap();
            assert!(number != 50, "a planted panic");
        });
    }
    for number in 0..100 {
        let (heard, thread) = heard.recv_timeout(BOUND).unwrap();
        assert_eq!(heard, number);
        assert_eq!(thread.as_deref(), Some("fencelock-callbacks"));
    }
}

#[test]
fn options_have_names_and_types() {
    let mut options = ConnectOptions::default();
    for name in ConnectOptions::NAMES {
        let values = [
            OptionValue::Duration(Duration::from_secs(1)),
            OptionValue::Text("x".to_owned()),
            OptionValue::Number(3),
        ];
        let taken = values.into_iter().filter(|value| options.set(name, value.clone()).is_ok());
        assert_eq!(taken.count(), 1, "{name}");
    }
    let wrong = options.set("nope", OptionValue::Number(1)).unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::InvalidArgument);
    let narrow = options.set("local_run_grants", OptionValue::Number(u64::MAX)).unwrap_err();
    assert!(narrow.message().contains("too large"), "{narrow}");
}

#[test]
fn the_table_of_errors_is_complete() {
    let rows: Vec<_> = table().collect();
    assert_eq!(rows.len(), ErrorKind::ALL.len());
    for (index, row) in rows.iter().enumerate() {
        assert_eq!(usize::from(row.code), index + 1);
        assert!(!row.meaning.contains("does not know"), "{}", row.name);
    }
}

/// A panic of a call is the call's: neither who starts it nor who wakes it is taken along.
#[test]
fn a_call_that_panics_ends_and_takes_nobody_along() {
    let (told, heard) = mpsc::channel();
    let again = told.clone();
    crate::Operation::start(
        async { if true { panic!("a planted panic") } else { Ok(()) } },
        move |ended| told.send(ended).unwrap(),
    );
    let error = heard.recv_timeout(BOUND).unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("panicked"), "{error}");

    let waker = std::sync::Arc::new(parking_lot::Mutex::new(None::<std::task::Waker>));
    let mine = waker.clone();
    let mut turns = 0;
    let later = std::future::poll_fn(move |cx| {
        turns += 1;
        assert!(turns == 1, "a planted panic");
        *mine.lock() = Some(cx.waker().clone());
        std::task::Poll::Pending
    });
    crate::Operation::start(later, move |ended| again.send(ended).unwrap());
    let waker = waker.lock().take().unwrap();
    waker.wake();
    assert!(heard.recv_timeout(BOUND).unwrap().is_err());
}

#[test]
fn readers_share_what_a_writer_waits_for() {
    let client = client();
    let prices = client.rw_lock("prices").unwrap();
    assert_eq!(prices.name(), "prices");
    let reader = prices.reader().owner(Owner::Fresh);
    let (one, two) = (
        reader.acquire(Patience::Try, None).unwrap(),
        reader.acquire(Patience::Try, None).unwrap(),
    );
    let (_, writing) = acquire(&prices.writer().owner(Owner::Fresh), Patience::Forever);
    assert_eq!(
        reader.acquire(Patience::Try, None).unwrap_err().kind(),
        ErrorKind::Contended,
        "a reader passed a writer that waits"
    );
    one.release().unwrap();
    assert!(writing.try_recv().is_err());
    two.release().unwrap();
    let writer = writing.recv_timeout(BOUND).unwrap().unwrap();
    assert!(writer.token() > two.token());
}

#[test]
fn each_side_counts_its_own() {
    let client = client();
    let prices = client.rw_lock("prices").unwrap();
    for owner in [Owner::Thread, Owner::Local(3), Owner::Explicit(OwnerId::new("me").unwrap())] {
        let (reader, writer) = (prices.reader().owner(owner.clone()), prices.writer().owner(owner));
        let counts = || (reader.side_count(), writer.side_count(), writer.hold_count());
        let take = |lock: &Lock| lock.acquire(Patience::Try, None).unwrap();
        let (one, two) = (take(&reader), take(&reader));
        assert_eq!(counts(), (2, 0, 2));
        two.release().unwrap();
        one.release().unwrap();
        assert_eq!(counts(), (0, 0, 0));
        let writes = [take(&writer), take(&writer)];
        let reads = [take(&reader), take(&reader), take(&reader)];
        assert_eq!(counts(), (3, 2, 5));
        for write in writes {
            write.release().unwrap();
        }
        assert_eq!(counts(), (3, 0, 3));
        for read in reads {
            read.release().unwrap();
        }
        let hold = take(&writer);
        hold.downgrade().unwrap();
        assert_eq!(counts(), (1, 0, 1));
        hold.try_upgrade().unwrap();
        assert_eq!(counts(), (0, 1, 1));
        hold.release().unwrap();
    }
}

#[test]
fn permits_are_taken_and_given_back_together() {
    let client = client();
    let mailers = client.semaphore("mailers", 3).unwrap();
    assert_eq!((mailers.name(), mailers.permits()), ("mailers", 3));
    let two = mailers.taking(2).acquire(Patience::Try, None).unwrap();
    let (told, free) = mpsc::channel();
    mailers.available_permits_async(move |free| told.send(free).unwrap());
    assert_eq!(free.recv_timeout(BOUND).unwrap().unwrap(), 1);
    let (_, waits) = acquire(&mailers.taking(2), Patience::Forever);
    two.release().unwrap();
    waits.recv_timeout(BOUND).unwrap().unwrap().release().unwrap();
    assert_eq!(mailers.available_permits().unwrap(), 3);
    let four = mailers.taking(4).acquire(Patience::Try, None).unwrap_err();
    assert_eq!(four.kind(), ErrorKind::InvalidArgument);
    assert_eq!(client.semaphore("mailers", 0).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn who_entered_a_hold_twice_converts_it_when_it_has_left_once() {
    let client = client();
    let prices = client.rw_lock("prices").unwrap();
    let (reader, writer) = (prices.reader(), prices.writer());
    let (entries, me) = (Entries::<Hold>::new(), EntryKey::thread());
    entries.enter(&writer, me, Patience::Try, None).unwrap();
    let written = entries.enter(&writer, me, Patience::Try, None).unwrap();
    let hold = entries.hold(me).unwrap();
    assert_eq!(hold.mode(), Mode::Exclusive);
    assert_eq!(hold.downgrade().unwrap_err().kind(), ErrorKind::Contended);
    entries.leave(me).unwrap();
    hold.downgrade().unwrap();
    assert_eq!(hold.mode(), Mode::Shared);
    assert!(hold.token() > written);
    let beside = reader.clone().owner(Owner::Fresh).acquire(Patience::Try, None).unwrap();
    // It only reads: nobody enters as who writes.
    let refused = entries.enter(&writer, me, Patience::Try, None).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::WouldDeadlock);
    let (told, ended) = mpsc::channel();
    let tell = told.clone();
    hold.try_upgrade_async(move |result| tell.send(result).unwrap());
    let refused = ended.recv_timeout(BOUND).unwrap().unwrap_err();
    assert_eq!((refused.kind(), hold.mode()), (ErrorKind::Contended, Mode::Shared));
    beside.release().unwrap();
    hold.try_upgrade().unwrap();
    entries.enter(&writer, me, Patience::Try, None).unwrap();
    entries.leave(me).unwrap();
    hold.downgrade_async(move |result| told.send(result).unwrap());
    ended.recv_timeout(BOUND).unwrap().unwrap();
    entries.leave(me).unwrap();
    assert_eq!(hold.downgrade().unwrap_err().kind(), ErrorKind::NotHeld);
}
