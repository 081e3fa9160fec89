//! What the generated code relies on.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::error::ErrorKind;
use crate::*;

const BOUND: Duration = Duration::from_secs(30);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        assert_eq!(here(), CALLBACKS, "the host's code may run here, and take long");
        self.0.unpark();
    }
}

/// The thread on which the host is called.
const CALLBACKS: &str = "fencelock-callbacks";

fn here() -> String {
    thread::current().name().unwrap_or_default().to_owned()
}

/// As a host does: polls, and polls again when it was woken.
fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => {
                let began = Instant::now();
                thread::park_timeout(BOUND);
                assert!(began.elapsed() < BOUND, "nobody woke it");
            }
        }
    }
}

/// A client of a store that no other test uses.
fn client() -> Arc<Client> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    connect(format!("memory:uniffi{}", NEXT.fetch_add(1, Ordering::Relaxed)), None).unwrap()
}

fn lock(client: &Client) -> Arc<Lock> {
    client.lock("x".to_owned(), None).unwrap()
}

fn kind<T>(result: Result<T, FencelockError>) -> ErrorKind {
    result.map(|_| "it went well").unwrap_err().parts().0
}

#[test]
fn an_acquire_ends_and_gives_its_hold_once() {
    let client = client();
    let first = lock(&client).acquire(None, None).unwrap();
    let second = lock(&client).begin_acquire(None).unwrap();
    assert_eq!(kind(second.hold()), ErrorKind::InvalidArgument);
    first.release().unwrap();
    wait(second.ended()).unwrap();
    let hold = second.hold().unwrap();
    assert!(hold.token() > first.token());
    assert_eq!(kind(second.hold()), ErrorKind::InvalidArgument);
    second.cancel();
    drop(second);
    assert!(hold.is_valid());
    wait(hold.release_async()).unwrap();
    assert_eq!(kind(hold.release()), ErrorKind::NotHeld);
}

#[test]
fn a_cancelled_wait_ends_and_leaves_nothing() {
    let client = client();
    let hold = lock(&client).acquire(None, None).unwrap();
    let waiting = lock(&client).begin_acquire(None).unwrap();
    let cancelled = waiting.clone();
    let canceller = thread::spawn(move || cancelled.cancel());
    assert_eq!(kind(wait(waiting.ended())), ErrorKind::Cancelled);
    canceller.join().unwrap();
    assert_eq!(kind(waiting.hold()), ErrorKind::Cancelled);
    hold.release().unwrap();
    assert!(!wait(lock(&client).is_locked_async()).unwrap());
}

#[test]
fn a_hold_that_nobody_fetches_is_released() {
    let client = client();
    let cancelled = lock(&client).begin_acquire(None).unwrap();
    wait(cancelled.ended()).unwrap();
    cancelled.cancel();
    assert_eq!(kind(wait(cancelled.ended())), ErrorKind::Cancelled);
    let dropped = lock(&client).begin_acquire(Some(BOUND)).unwrap();
    wait(dropped.ended()).unwrap();
    drop(dropped);
    lock(&client).acquire(Some(BOUND), None).unwrap().release().unwrap();
}

#[test]
fn cancels_and_grants_race_without_residue() {
    let client = client();
    for round in 0..300 {
        let hold = lock(&client).acquire(None, None).unwrap();
        let waiting = lock(&client).begin_acquire(None).unwrap();
        let cancelled = waiting.clone();
        thread::scope(|scope| {
            scope.spawn(|| hold.release().unwrap());
            if round % 3 > 0 {
                scope.spawn(move || cancelled.cancel());
            }
            if wait(waiting.ended()).is_ok()
                && let Ok(hold) = waiting.hold()
            {
                hold.release().unwrap();
            }
        });
        drop(waiting);
        lock(&client).acquire(Some(BOUND), None).unwrap().release().unwrap();
    }
    let info = client.inspect("x".to_owned()).unwrap().unwrap();
    assert!(info.waiters.is_empty() && info.holds.is_empty());
}

#[test]
fn who_waits_within_a_client_is_counted() {
    let client = client();
    let hold = lock(&client).acquire(None, None).unwrap();
    let waits: Vec<_> = (0..2).map(|_| lock(&client).begin_acquire(Some(BOUND)).unwrap()).collect();
    let info = client.inspect("x".to_owned()).unwrap().unwrap();
    assert_eq!((info.holds[0].local_waiters, info.waiting, info.waiters.len()), (Some(2), 2, 0));
    drop(waits);
    hold.release().unwrap();
}

#[test]
fn a_blocking_wait_is_cancelled_by_its_token() {
    let client = client();
    let hold = lock(&client).acquire(None, None).unwrap();
    let token = CancelToken::new();
    let cancelling = token.clone();
    let canceller = thread::spawn(move || cancelling.cancel());
    assert_eq!(kind(lock(&client).acquire(None, Some(token))), ErrorKind::Cancelled);
    canceller.join().unwrap();
    assert_eq!(kind(lock(&client).acquire(Some(Duration::ZERO), None)), ErrorKind::Contended);
    hold.release().unwrap();
}

struct Tell(mpsc::Sender<(LossReason, String)>);

impl LossListener for Tell {
    fn lost(&self, reason: LossReason) {
        self.0.send((reason, here())).unwrap();
    }
}

struct Signal(mpsc::Sender<()>);

impl WantedListener for Signal {
    fn wanted(&self) {
        self.0.send(()).unwrap();
    }
}

#[test]
fn listeners_are_told_on_the_dispatchers_thread() {
    let client = client();
    let hold = lock(&client).acquire(None, None).unwrap();
    let (told, heard) = mpsc::channel();
    hold.on_lost(Box::new(Tell(told))).unwrap();
    let token = hold.token();
    let earlier = wait(client.break_lock_async("x".to_owned(), token - 2000)).unwrap();
    assert_eq!((earlier.ended, earlier.changed_hands), (0, Some(token)));
    let broken = wait(client.break_lock_async("x".to_owned(), token)).unwrap();
    assert_eq!((broken.ended, broken.changed_hands), (1, None));
    let (reason, thread) = heard.recv_timeout(BOUND).unwrap();
    assert_eq!((reason, thread.as_str()), (LossReason::Broken, CALLBACKS));
    assert!(heard.recv_timeout(BOUND).is_err(), "it was told once and then freed");
    assert_eq!(kind(hold.check()), ErrorKind::Lost);
    assert_eq!(kind(hold.release()), ErrorKind::Lost);
}

#[test]
fn a_listener_is_freed_when_its_hold_is_released() {
    let client = client();
    let hold = lock(&client).acquire(None, None).unwrap();
    let (told, heard) = mpsc::channel();
    hold.on_wanted(Box::new(Signal(told))).unwrap();
    hold.begin_release().unwrap();
    drop(hold);
    assert_eq!(heard.recv_timeout(BOUND), Err(mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn owners_re_enter_and_tickets_travel() {
    let one = client();
    let options = LockOptions {
        owner: Some(Owner::Explicit { id: "trace".to_owned() }),
        ..LockOptions::default()
    };
    let named = one.lock("x".to_owned(), Some(options)).unwrap();
    let hold = named.acquire(None, None).unwrap();
    let joined = one.begin_attach(hold.ticket().unwrap()).unwrap();
    wait(joined.ended()).unwrap();
    let joined = joined.hold().unwrap();
    assert_eq!(joined.token(), hold.token());
    assert!(joined.is_reentry() && !hold.is_reentry());
    assert_eq!(named.hold_count(), 2);
    joined.release().unwrap();
    hold.release().unwrap();
}

#[test]
fn a_client_that_is_not_fetched_is_closed() {
    let connecting = begin_connect("memory:unfetched".to_owned(), None).unwrap();
    wait(connecting.ended()).unwrap();
    let client = connecting.client().unwrap();
    connecting.cancel();
    assert!(!client.is_shut_down());
    let given_up = begin_connect("memory:unfetched".to_owned(), None).unwrap();
    given_up.cancel();
    assert_eq!(kind(wait(given_up.ended())), ErrorKind::Cancelled);
    assert_eq!(kind(given_up.client()), ErrorKind::Cancelled);
    assert!(wait(client.drain_async(BOUND)).unwrap());
    assert!(client.is_shut_down());
    let lock = client.lock("x".to_owned(), None).unwrap();
    assert_eq!(kind(lock.acquire(None, None)), ErrorKind::Closed);
}

#[test]
fn every_kind_has_its_facts() {
    for row in fencelock_support::errors::table() {
        let error = FencelockError::from(fencelock_support::Error::new(row.kind, "why"));
        let (kind, message) = error.parts();
        assert_eq!(message, "why");
        let findings = error_facts(kind);
        assert_eq!((findings.code, findings.retryable), (row.code, row.retryable));
        assert_eq!((findings.name.as_str(), findings.meaning.as_str()), (row.name, row.meaning));
    }
    assert_eq!(error_facts(ErrorKind::Internal).code, 100);
}

#[test]
fn readers_are_in_together_and_a_writer_alone() {
    let client = client();
    let owner =
        |number| LockOptions { owner: Some(Owner::Local { number }), ..LockOptions::default() };
    let lock = client.rw_lock("x".to_owned(), Some(owner(1))).unwrap();
    let reads = lock.reader().unwrap().acquire(None, None).unwrap();
    assert_eq!(
        kind(lock.writer().unwrap().begin_acquire(None).and_then(|it| wait(it.ended()))),
        ErrorKind::WouldDeadlock
    );
    let other = client.rw_lock("x".to_owned(), Some(owner(2))).unwrap();
    let beside = other.reader().unwrap().acquire(None, None).unwrap();
    assert_eq!(kind(other.writer().unwrap().acquire(None, None)), ErrorKind::WouldDeadlock);
    let seen = client.inspect("x".to_owned()).unwrap().unwrap();
    assert!(seen.holds.iter().all(|it| it.mode == HoldMode::Shared && it.permits == 0));
    let writing = self::lock(&client).begin_acquire(None).unwrap();
    reads.release().unwrap();
    beside.release().unwrap();
    wait(writing.ended()).unwrap();
    let writes = writing.hold().unwrap();
    assert!(writes.token() > beside.token());
    assert_eq!(
        kind(lock.reader().unwrap().acquire(Some(Duration::ZERO), None)),
        ErrorKind::Contended
    );
    let nobody = LockOptions {
        owner: Some(Owner::Explicit { id: String::new() }),
        ..LockOptions::default()
    };
    assert_eq!(kind(client.rw_lock("x".to_owned(), Some(nobody))), ErrorKind::InvalidArgument);
}

#[test]
fn permits_are_taken_together_and_given_back() {
    let client = client();
    let mailers = client.semaphore("mailers".to_owned(), 3, None, Some(BOUND)).unwrap();
    assert_eq!((mailers.name().as_str(), mailers.permits()), ("mailers", 3));
    let two = mailers.taking(2).unwrap().acquire(None, None).unwrap();
    assert_eq!(wait(mailers.available_permits_async()).unwrap(), 1);
    let seen = client.inspect("mailers".to_owned()).unwrap().unwrap().holds.remove(0);
    assert_eq!((seen.mode, seen.permits, seen.token), (HoldMode::Permits, 2, two.token()));
    assert_eq!(
        kind(mailers.taking(2).unwrap().acquire(Some(Duration::ZERO), None)),
        ErrorKind::Contended
    );
    assert_eq!(kind(mailers.taking(4).unwrap().acquire(None, None)), ErrorKind::InvalidArgument);
    let fewer = client.semaphore("mailers".to_owned(), 2, None, None).unwrap();
    assert_eq!(kind(fewer.taking(1).unwrap().acquire(None, None)), ErrorKind::Misconfigured);
    two.release().unwrap();
    assert_eq!(mailers.available_permits().unwrap(), 3);
    assert_eq!(
        kind(client.semaphore("mailers".to_owned(), 0, None, None)),
        ErrorKind::InvalidArgument
    );
}

#[test]
fn a_writer_reads_on_and_a_lone_reader_writes() {
    let client = client();
    let lock = client.rw_lock("x".to_owned(), None).unwrap();
    let hold = lock.writer().unwrap().acquire(None, None).unwrap();
    let written = hold.token();
    wait(hold.downgrade_async()).unwrap();
    assert!(hold.mode() == HoldMode::Shared && hold.token() > written);
    let beside = lock.reader().unwrap().acquire(None, None).unwrap();
    assert_eq!(kind(wait(hold.try_upgrade_async())), ErrorKind::Contended);
    beside.release().unwrap();
    wait(hold.try_upgrade_async()).unwrap();
    assert!(hold.mode() == HoldMode::Exclusive && hold.token() > beside.token());
    hold.downgrade().unwrap();
    hold.try_upgrade().unwrap();
    hold.release().unwrap();
    assert_eq!(kind(hold.downgrade()), ErrorKind::NotHeld);
}
