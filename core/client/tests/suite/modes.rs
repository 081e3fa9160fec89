//! Readers, writers and permits.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use fencelock::{ErrorKind, LossReason, Mode, OwnerId, RwLock};

use super::{LIMIT, Need, World, eventually, queued, soon};

const MOMENT: Duration = Duration::from_millis(50);

async fn refused_to_write(lock: &RwLock) -> ErrorKind {
    lock.try_write().await.unwrap_err().kind()
}

pub async fn readers_hold_together_and_a_writer_alone(world: &World) {
    let (a, b) = (world.client().await, world.client().await);
    if world.lacks(&a, Need::Shared) {
        return;
    }
    let (here, there) = (a.rw_lock("x").unwrap(), b.rw_lock("x").unwrap());
    let one = here.read().await.unwrap();
    let two = here.clone().non_reentrant().try_read().await.unwrap();
    let three = there.read_timeout(LIMIT).await.unwrap();
    assert!(one.token() == two.token() && two.token() < three.token());
    assert!(here.writer().is_held() && here.reader().is_locked().await.unwrap());
    let stranger = here.clone().non_reentrant();
    assert_eq!(refused_to_write(&stranger).await, ErrorKind::Contended);
    let late = stranger.write_timeout(MOMENT).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::TimedOut);
    // The lock of that name is the write side.
    let plain = b.lock("x").unwrap().non_reentrant();
    let writer = tokio::spawn(async move { plain.acquire().await });
    queued(&b, "x", 1).await;
    // Those who read here hear of it, and then nobody joins them.
    let refused = eventually("a reader that is refused", || async {
        match stranger.try_read().await {
            Ok(reader) => {
                reader.release().await.unwrap();
                None
            }
            Err(error) => Some(error.kind()),
        }
    })
    .await;
    assert_eq!(refused, ErrorKind::Contended);
    let late = stranger.read_timeout(MOMENT).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::TimedOut, "no reader passes a writer that waits");
    for reader in [one, two] {
        reader.release().await.unwrap();
    }
    assert!(!writer.is_finished());
    let last = three.token();
    three.release().await.unwrap();
    let writer = soon("the writer", writer).await.unwrap().unwrap();
    assert!(writer.token() > last);
    assert_eq!(stranger.try_read().await.unwrap_err().kind(), ErrorKind::Contended);
    writer.release().await.unwrap();
    let reader = stranger.try_read().await.unwrap();
    reader.release().await.unwrap();
}

/// Those who are let in together hold on: readers under one token for each client, permits each
/// under its own.
pub async fn readers_and_permits_are_handed_on_together(world: &World) {
    let (a, b) = (world.client().await, world.client().await);
    if world.lacks(&a, Need::Shared) || world.lacks(&a, Need::Permits) {
        return;
    }
    let (here, there) = (a.rw_lock("x").unwrap(), b.rw_lock("x").unwrap());
    let writer = here.write().await.unwrap();
    let reads = [&here, &there, &there].map(|lock| {
        let lock = lock.clone().non_reentrant();
        tokio::spawn(async move { lock.read().await })
    });
    // Those of one client stand behind one entry.
    queued(&b, "x", 2).await;
    let before = writer.token();
    writer.release().await.unwrap();
    let mut readers = Vec::new();
    for read in reads {
        readers.push(soon("a reader", read).await.unwrap().unwrap());
    }
    let (five, same) = (a.semaphore("s", 3).unwrap(), b.semaphore("s", 3).unwrap());
    let all = five.acquire_many(3).await.unwrap();
    let takes = [&five, &same, &same].map(|semaphore| {
        let semaphore = semaphore.clone();
        tokio::spawn(async move { semaphore.acquire().await })
    });
    queued(&b, "s", 3).await;
    all.release().await.unwrap();
    let mut permits = Vec::new();
    for take in takes {
        permits.push(soon("a permit", take).await.unwrap().unwrap());
    }
    assert!(readers.iter().all(|guard| guard.token() > before), "above the writer's");
    for (name, guards, numbers) in [("x", readers, 2), ("s", permits, 3)] {
        let mut tokens: Vec<_> = guards.iter().map(|guard| guard.token()).collect();
        tokens.sort();
        tokens.dedup();
        assert_eq!(tokens.len(), numbers, "{name}");
        // A claim is answered for at once: that renewal must find the hold that was told.
        eventually("the renewals", || async {
            let holds = b.inspect(name).await.unwrap().unwrap().holds;
            holds.iter().all(|hold| !hold.claim).then_some(())
        })
        .await;
        for guard in guards {
            soon("a release", guard.release()).await.unwrap();
        }
    }
}

pub async fn an_owner_re_enters_but_not_from_reading_to_writing(world: &World) {
    let client = world.client().await;
    if world.lacks(&client, Need::Shared) {
        return;
    }
    let lock = client.rw_lock("x").unwrap();
    let stranger = lock.clone().non_reentrant();
    // By one handle and by another, which the engine is asked about.
    for other in [lock.clone(), client.rw_lock("x").unwrap()] {
        let writer = lock.write().await.unwrap();
        let reader = other.read().await.unwrap();
        let inner = other.write().await.unwrap();
        assert!(reader.is_reentry() && inner.is_reentry());
        assert_eq!([reader.token(), inner.token()], [writer.token(); 2]);
        writer.release().await.unwrap();
        let kind = stranger.try_read().await.unwrap_err().kind();
        assert_eq!(kind, ErrorKind::Contended, "it writes still");
        reader.release().await.unwrap();
        inner.release().await.unwrap();

        let reader = lock.read().await.unwrap();
        let again = other.try_read().await.unwrap();
        assert!(again.is_reentry() && again.token() == reader.token());
        assert_eq!(refused_to_write(&other).await, ErrorKind::WouldDeadlock);
        let beside = stranger.try_read().await.unwrap();
        reader.release().await.unwrap();
        assert_eq!(refused_to_write(&lock).await, ErrorKind::WouldDeadlock, "a level is left");
        again.release().await.unwrap();
        assert_eq!(refused_to_write(&lock).await, ErrorKind::Contended);
        beside.release().await.unwrap();
    }
    lock.write().await.unwrap().release().await.unwrap();
}

/// Whether the store converts holds.
async fn converts(lock: &RwLock) -> bool {
    let guard = lock.write().await.unwrap();
    match guard.downgrade().await {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::Unsupported => false,
        Err(error) => panic!("{error}"),
    }
}

pub async fn a_writer_reads_on_and_a_lone_reader_writes(world: &World) {
    let (a, b) = (world.client().await, world.client().await);
    if world.lacks(&a, Need::Shared) {
        return;
    }
    let (here, there) = (a.rw_lock("x").unwrap(), b.rw_lock("x").unwrap());
    if !converts(&here).await {
        return;
    }
    let guard = here.write().await.unwrap();
    let written = guard.token();
    let reading = tokio::spawn(async move { there.read().await });
    queued(&b, "x", 1).await;
    guard.downgrade().await.unwrap();
    assert_eq!(guard.mode(), Mode::Shared);
    let beside = soon("the reader", reading).await.unwrap().unwrap();
    assert!(written < guard.token() && guard.token() < beside.token());
    assert_eq!(guard.check().unwrap(), guard.token());
    guard.downgrade().await.unwrap();
    let refused = guard.try_upgrade().await.unwrap_err();
    if refused.kind() == ErrorKind::Unsupported {
        // On ZooKeeper nobody is upgraded: it reads on as before.
        assert!(world.url.starts_with("zk:") && guard.mode() == Mode::Shared);
        guard.check().unwrap();
        return;
    }
    assert_eq!((refused.kind(), guard.mode()), (ErrorKind::Contended, Mode::Shared));
    let before = beside.token();
    beside.release().await.unwrap();
    let again = here.read().await.unwrap();
    assert!(again.is_reentry() && again.token() == guard.token());
    assert_eq!(guard.try_upgrade().await.unwrap_err().kind(), ErrorKind::Contended, "two guards");
    again.release().await.unwrap();
    guard.try_upgrade().await.unwrap();
    guard.try_upgrade().await.unwrap();
    assert!(guard.token() > before && guard.mode() == Mode::Exclusive);
    let inner = here.write().await.unwrap();
    assert!(inner.is_reentry() && inner.token() == guard.token());
    assert_eq!(guard.downgrade().await.unwrap_err().kind(), ErrorKind::Contended, "two guards");
    assert_eq!(guard.mode(), Mode::Exclusive);
    inner.release().await.unwrap();
    assert_eq!(refused_to_write(&b.rw_lock("x").unwrap()).await, ErrorKind::Contended);
    guard.release_ref().await.unwrap();
    assert_eq!(guard.downgrade().await.unwrap_err().kind(), ErrorKind::NotHeld);
    b.rw_lock("x").unwrap().try_write().await.unwrap().release().await.unwrap();
}

pub async fn who_reads_inside_a_write_lets_others_read_when_it_releases_the_write(world: &World) {
    let (a, b) = (world.client().await, world.client().await);
    if world.lacks(&a, Need::Shared) {
        return;
    }
    let (here, there) = (a.rw_lock("x").unwrap(), b.rw_lock("x").unwrap());
    if !converts(&here).await {
        return;
    }
    let writer = here.write().await.unwrap();
    let reader = here.read().await.unwrap();
    assert_eq!((reader.mode(), reader.token()), (Mode::Shared, writer.token()));
    let kind = there.try_read().await.unwrap_err().kind();
    assert_eq!(kind, ErrorKind::Contended);
    writer.release().await.unwrap();
    let beside = soon("the reader", there.read()).await.unwrap();
    assert!(beside.token() > reader.token() && reader.is_valid());
    beside.release().await.unwrap();
    reader.release().await.unwrap();
}

pub async fn an_upgrade_that_is_dropped_is_undone(world: &World) {
    let (a, b) = (world.client().await, world.client().await);
    if world.lacks(&a, Need::Shared) {
        return;
    }
    let (here, there) = (a.rw_lock("x").unwrap(), b.rw_lock("x").unwrap());
    if !converts(&here).await {
        return;
    }
    let guard = here.read().await.unwrap();
    {
        let mut upgrade = pin!(guard.try_upgrade());
        let mut context = Context::from_waker(Waker::noop());
        if upgrade.as_mut().poll(&mut context).is_ready() {
            guard.downgrade().await.unwrap();
        }
    }
    assert_eq!(guard.mode(), Mode::Shared);
    let beside = soon("the reader", there.read()).await.unwrap();
    let again = here.read().await.unwrap();
    assert!(again.is_reentry());
    for guard in [beside, again, guard] {
        guard.release().await.unwrap();
    }
}

pub async fn each_reader_counts_its_own_levels(world: &World) {
    let client = world.client().await;
    if world.lacks(&client, Need::Shared) {
        return;
    }
    let lock = client.rw_lock("x").unwrap();
    let of = |number| lock.clone().local_owner(number);
    let mut guards = Vec::new();
    for number in [1, 2, 1, 3, 2, 1] {
        guards.push(of(number).read().await.unwrap());
    }
    let reentries: Vec<bool> = guards.iter().map(|guard| guard.is_reentry()).collect();
    assert_eq!(reentries, [false, false, true, false, true, true]);
    for (number, levels) in [(1, 3), (2, 2), (3, 1), (4, 0)] {
        assert_eq!(of(number).reader().hold_count(), levels, "owner {number}");
        assert_eq!(of(number).writer().hold_count(), levels, "owner {number}");
    }
    let info = client.inspect("x").await.unwrap().unwrap();
    assert_eq!(info.holds.len(), 1, "they share one at the store");
    assert!(info.holds.iter().all(|hold| hold.mode == Mode::Shared));
    for guard in guards {
        guard.release().await.unwrap();
    }
    assert!(!lock.reader().is_held() && client.is_idle());
}

pub async fn reads_of_one_owner_pass_the_writers_that_wait_for_it(world: &World) {
    let (a, b) = (world.client().await, world.client().await);
    if world.lacks(&a, Need::Shared) {
        return;
    }
    let lock = a.rw_lock("x").unwrap();
    let reader = lock.read().await.unwrap();
    let other = b.rw_lock("x").unwrap();
    let writer = tokio::spawn(async move { other.write().await });
    queued(&a, "x", 1).await;
    let again = soon("the second read", a.rw_lock("x").unwrap().read()).await.unwrap();
    assert_eq!(again.token(), reader.token());
    reader.release().await.unwrap();
    again.release().await.unwrap();
    soon("the writer", writer).await.unwrap().unwrap().release().await.unwrap();
}

pub async fn a_write_that_waits_ends_when_its_owner_is_let_in_to_read(world: &World) {
    let (a, b) = (world.client().await, world.client().await);
    if world.lacks(&a, Need::Shared) {
        return;
    }
    let held = b.rw_lock("x").unwrap().write().await.unwrap();
    let lock = a.rw_lock("x").unwrap();
    // Branches of one task are one owner.
    let (reader, writer, ()) = soon("both", async {
        tokio::join!(lock.read(), lock.write(), async {
            queued(&a, "x", 2).await;
            held.release().await.unwrap();
        })
    })
    .await;
    match (reader, writer) {
        (Ok(reader), Err(error)) => {
            assert_eq!(error.kind(), ErrorKind::WouldDeadlock);
            reader.release().await.unwrap();
        }
        // The write came first at the store, and the read is within it.
        (Ok(reader), Ok(writer)) => assert_eq!(reader.token(), writer.token()),
        other => panic!("{other:?}"),
    }
}

pub async fn each_reader_is_lost_by_itself(world: &World) {
    let client = world.client().await;
    if world.lacks(&client, Need::Shared) || world.lacks(&client, Need::Leases) {
        return;
    }
    let lock = client.rw_lock("x").unwrap();
    let short = lock.clone().non_reentrant().lease(Duration::from_millis(200));
    let bounded = lock.clone().non_reentrant().max_hold(Duration::from_millis(200));
    let kept = lock.read().await.unwrap();
    let (short, bounded) = (short.read().await.unwrap(), bounded.read().await.unwrap());
    assert_eq!(soon("the end of the lease", short.lost()).await, LossReason::Ended);
    assert_eq!(soon("the ceiling", bounded.lost()).await, LossReason::Ended);
    assert!(kept.is_valid() && !short.is_valid());
    assert_eq!(short.release().await.unwrap_err().kind(), ErrorKind::Lost);
    drop(bounded);
    kept.release().await.unwrap();
    soon("the writer", lock.write()).await.unwrap().release().await.unwrap();
}

pub async fn a_dropped_wait_leaves_nothing_behind(world: &World) {
    let (a, b) = (world.client().await, world.client().await);
    if world.lacks(&a, Need::Shared) {
        return;
    }
    let held = b.rw_lock("x").unwrap().write().await.unwrap();
    let lock = a.rw_lock("x").unwrap();
    assert!(tokio::time::timeout(MOMENT, lock.read()).await.is_err());
    queued(&b, "x", 0).await;
    held.release().await.unwrap();
    let reader = b.rw_lock("x").unwrap().read().await.unwrap();
    assert!(tokio::time::timeout(MOMENT, lock.write()).await.is_err());
    queued(&b, "x", 0).await;
    // Nobody waits any more, so that others may read.
    lock.try_read().await.unwrap().release().await.unwrap();
    reader.release().await.unwrap();
    eventually("an idle client", || async { a.is_idle().then_some(()) }).await;
}

pub async fn explicit_owners_read_from_two_clients(world: &World) {
    let (a, b) = (world.client().await, world.client().await);
    if world.lacks(&a, Need::Shared) || world.lacks(&a, Need::Owners) {
        return;
    }
    let owner = OwnerId::new("trace-1").unwrap();
    let here = a.rw_lock("x").unwrap().owner(owner.clone());
    let there = b.rw_lock("x").unwrap().owner(owner);
    let one = here.read().await.unwrap();
    let two = there.read().await.unwrap();
    assert_eq!(one.token(), two.token());
    assert_eq!(refused_to_write(&there).await, ErrorKind::WouldDeadlock);
    assert_eq!(one.ticket().unwrap_err().kind(), ErrorKind::InvalidArgument);
    one.release().await.unwrap();
    two.release().await.unwrap();
    let writer = here.write().await.unwrap();
    let reader = there.read().await.unwrap();
    assert_eq!(reader.token(), writer.token());
    assert_eq!(b.attach(writer.ticket().unwrap()).await.unwrap().token(), writer.token());
    writer.release().await.unwrap();
    reader.release().await.unwrap();
}

pub async fn permits_are_counted_in_order(world: &World) {
    let (a, b) = (world.client().await, world.client().await);
    if world.lacks(&a, Need::Permits) {
        return;
    }
    let (here, there) = (a.semaphore("x", 3).unwrap(), b.semaphore("x", 3).unwrap());
    assert_eq!((here.permits(), here.available_permits().await.unwrap()), (3, 3));
    let two = here.acquire_many(2).await.unwrap();
    let one = there.try_acquire().await.unwrap();
    assert!(!one.is_reentry() && one.token() > two.token());
    assert_eq!(there.available_permits().await.unwrap(), 0);
    assert_eq!(here.try_acquire().await.unwrap_err().kind(), ErrorKind::Contended);
    assert_eq!(here.acquire_timeout(MOMENT).await.unwrap_err().kind(), ErrorKind::TimedOut);
    let large = there.clone();
    let large = tokio::spawn(async move { large.acquire_many_timeout(3, LIMIT).await });
    queued(&a, "x", 1).await;
    one.release().await.unwrap();
    let kind = here.try_acquire().await.unwrap_err().kind();
    assert_eq!(kind, ErrorKind::Contended, "the larger one came first");
    assert_eq!(here.available_permits().await.unwrap(), 1);
    two.release().await.unwrap();
    let large = soon("the large one", large).await.unwrap().unwrap();
    assert_eq!(here.available_permits().await.unwrap(), 0);
    large.release().await.unwrap();
    let pair = here.taking(2);
    let both = pair.acquire().await.unwrap();
    assert_eq!((pair.hold_count(), pair.is_held()), (0, true));
    both.release().await.unwrap();
    assert!(!pair.is_held());
}

/// The words are the kind's own, with its numbers.
pub async fn who_was_refused_is_told_of_what(world: &World) {
    let (a, b) = (world.client().await, world.client().await);
    let says = |error: fencelock::Error, kind, words: &[&str]| {
        assert_eq!(error.kind(), kind, "{error}");
        for word in words {
            assert!(error.message().contains(word), "{word}: {error}");
        }
    };
    if !world.lacks(&a, Need::Permits) {
        let (here, there) = (a.semaphore("x", 5).unwrap(), b.semaphore("x", 5).unwrap());
        let most = here.acquire_many(4).await.unwrap();
        says(most.ticket().unwrap_err(), ErrorKind::InvalidArgument, &["permits have no owner"]);
        for semaphore in [&here, &there] {
            let error = semaphore.try_acquire_many(2).await.unwrap_err();
            says(error, ErrorKind::Contended, &["2 of the semaphore's 5 permits"]);
            let error = semaphore.acquire_many_timeout(2, MOMENT).await.unwrap_err();
            says(error, ErrorKind::TimedOut, &["2 of the semaphore's 5 permits"]);
        }
        let adopting = b.semaphore("x", 3).unwrap().adopting();
        let error = adopting.try_acquire_many(3).await.unwrap_err();
        says(error, ErrorKind::Contended, &["3 of the semaphore's 5 permits"]);
        let error = adopting.acquire_many_timeout(3, MOMENT).await.unwrap_err();
        says(error, ErrorKind::TimedOut, &["3 of the semaphore's 5 permits"]);
        let last = there.acquire().await.unwrap();
        let error = here.try_acquire().await.unwrap_err();
        says(error, ErrorKind::Contended, &["none of the semaphore's 5 permits"]);
        last.release().await.unwrap();
        let error = last_words(&a, "x", most).await;
        says(error, ErrorKind::Lost, &["4 permits of the semaphore \"x\"", "an operator broke it"]);
    }
    if !world.lacks(&a, Need::Shared) {
        let (here, there) = (a.rw_lock("y").unwrap(), b.rw_lock("y").unwrap());
        let writer = here.write().await.unwrap();
        says(there.try_read().await.unwrap_err(), ErrorKind::Contended, &["writes", "read"]);
        let error = there.read_timeout(MOMENT).await.unwrap_err();
        says(error, ErrorKind::TimedOut, &["read", "wrote"]);
        writer.release().await.unwrap();
        let reader = here.read().await.unwrap();
        says(there.try_write().await.unwrap_err(), ErrorKind::Contended, &["held by another"]);
        reader.release().await.unwrap();
    }
}

/// Breaks what a guard has, and gives what its check says then.
async fn last_words(
    client: &fencelock::Client,
    name: &str,
    guard: fencelock::Guard,
) -> fencelock::Error {
    client.break_lock(name, guard.token().get()).await.unwrap();
    soon("the loss", guard.lost()).await;
    guard.check().unwrap_err()
}

pub async fn permits_that_cannot_be_are_refused(world: &World) {
    let (a, b) = (world.client().await, world.client().await);
    if world.lacks(&a, Need::Permits) {
        return;
    }
    for of in [0, 1_000_001] {
        let error = a.semaphore("x", of).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{of}");
    }
    let semaphore = a.semaphore("x", 3).unwrap();
    for count in [0, 4] {
        let error = semaphore.acquire_many(count).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{count}");
    }
    let owned = semaphore.taking(1).owner(OwnerId::new("trace-1").unwrap());
    assert_eq!(owned.acquire().await.unwrap_err().kind(), ErrorKind::InvalidArgument);
    let held = semaphore.acquire().await.unwrap();
    let error = b.semaphore("x", 4).unwrap().acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.message().contains('3') && error.message().contains('4'), "{error}");
    assert_eq!(b.lock("x").unwrap().acquire().await.unwrap_err().kind(), ErrorKind::Misconfigured);
    held.release().await.unwrap();
    let lock = b.lock("x").unwrap().acquire().await.unwrap();
    assert_eq!(semaphore.acquire().await.unwrap_err().kind(), ErrorKind::Misconfigured);
    lock.release().await.unwrap();
}

pub async fn who_adopts_follows_the_number_of_others(world: &World) {
    let (a, b) = (world.client().await, world.client().await);
    if world.lacks(&a, Need::Permits) {
        return;
    }
    let first = a.semaphore("x", 2).unwrap().acquire().await.unwrap();
    let seats = b.semaphore("x", 5).unwrap();
    assert_eq!(seats.acquire().await.unwrap_err().kind(), ErrorKind::Misconfigured);
    let seats = seats.adopting();
    let second = seats.try_acquire().await.unwrap();
    assert_eq!((seats.permits(), seats.available_permits().await.unwrap()), (5, 0));
    assert_eq!(seats.try_acquire().await.unwrap_err().kind(), ErrorKind::Contended);
    let error = seats.acquire_many(3).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains('3') && error.message().contains('2'), "{error}");
    let waiting = seats.clone();
    let waiting = tokio::spawn(async move { waiting.acquire_many(2).await });
    assert!(a.semaphore("x", 1).unwrap().resize(4).await.unwrap());
    let two = soon("two of four", waiting).await.unwrap().unwrap();
    assert_eq!(seats.available_permits().await.unwrap(), 0);
    for guard in [first, second, two] {
        guard.release().await.unwrap();
    }
    // Nobody has any: its own number counts again.
    let five = seats.acquire_many(5).await.unwrap();
    five.release().await.unwrap();
}

pub async fn a_drain_lets_readers_go_on_and_nobody_begin(world: &World) {
    let client = world.client().await;
    if world.lacks(&client, Need::Shared) || world.lacks(&client, Need::Permits) {
        return;
    }
    let (lock, semaphore) = (client.rw_lock("x").unwrap(), client.semaphore("y", 2).unwrap());
    let (reader, permit) = (lock.read().await.unwrap(), semaphore.acquire().await.unwrap());
    let closing = client.clone();
    let drained = tokio::spawn(async move { closing.drain(LIMIT).await });
    eventually("turned away", || async {
        let refused = semaphore.try_acquire().await.err();
        refused.filter(|error| error.kind() == ErrorKind::Closed)
    })
    .await;
    // By another handle, so that the engine is asked.
    client.rw_lock("x").unwrap().read().await.unwrap().release().await.unwrap();
    let stranger = lock.clone().non_reentrant();
    assert_eq!(stranger.read().await.unwrap_err().kind(), ErrorKind::Closed);
    reader.release().await.unwrap();
    permit.release().await.unwrap();
    assert!(soon("the drain", drained).await.unwrap());
}

pub async fn a_close_ends_readers_and_permits(world: &World) {
    let (a, b) = (world.client().await, world.client().await);
    if world.lacks(&a, Need::Shared) || world.lacks(&a, Need::Permits) {
        return;
    }
    let reader = a.rw_lock("x").unwrap().read().await.unwrap();
    let permit = a.semaphore("y", 1).unwrap().acquire().await.unwrap();
    assert!(!a.close().await);
    assert_eq!(reader.lost().await, LossReason::Closed);
    assert_eq!(permit.lost().await, LossReason::Closed);
    soon("the writer", b.rw_lock("x").unwrap().write()).await.unwrap().release().await.unwrap();
    let permit = soon("the permit", b.semaphore("y", 1).unwrap().acquire()).await.unwrap();
    permit.release().await.unwrap();
}

pub async fn threads_share_too(world: &World) {
    let client = world.blocking();
    if !client.capabilities().shared || !client.capabilities().permits {
        return;
    }
    let case = move || {
        let lock = client.rw_lock("x").unwrap();
        let reader = lock.read().unwrap();
        assert_eq!(lock.try_write().unwrap_err().kind(), ErrorKind::WouldDeadlock);
        let other = lock.clone();
        std::thread::spawn(move || {
            other.try_read().unwrap().release().unwrap();
            other.read_timeout(LIMIT).unwrap().release().unwrap();
            assert_eq!(other.try_write().unwrap_err().kind(), ErrorKind::Contended);
            assert_eq!(other.write_timeout(MOMENT).unwrap_err().kind(), ErrorKind::TimedOut);
            assert_eq!(other.writer().try_acquire().unwrap_err().kind(), ErrorKind::Contended);
            other.reader().acquire().unwrap().release().unwrap();
        })
        .join()
        .unwrap();
        reader.release().unwrap();
        let writer = lock.write().unwrap();
        assert!(lock.read().unwrap().is_reentry());
        writer.release().unwrap();

        let semaphore = client.semaphore("y", 3).unwrap();
        let held = semaphore.acquire_many(2).unwrap();
        assert_eq!(semaphore.available_permits().unwrap(), 1);
        let one = semaphore.acquire().unwrap();
        assert_eq!(semaphore.try_acquire().unwrap_err().kind(), ErrorKind::Contended);
        assert_eq!(semaphore.acquire_timeout(MOMENT).unwrap_err().kind(), ErrorKind::TimedOut);
        one.release().unwrap();
        held.release().unwrap();
        semaphore.acquire_many_timeout(3, LIMIT).unwrap().release().unwrap();
        assert!(client.close());
    };
    soon("the threads", tokio::task::spawn_blocking(case)).await.unwrap();
}

pub async fn a_store_that_cannot_says_so(world: &World) {
    let client = world.client().await;
    let can = client.capabilities();
    let shared = client.rw_lock("x").err();
    let permits = client.semaphore("x", 2).err();
    assert_eq!([shared.is_none(), permits.is_none()], [can.shared, can.permits]);
    for error in [shared, permits].into_iter().flatten() {
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.message().contains(can.store), "{error}");
    }
}
