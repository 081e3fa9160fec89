//! Promise 11: after a fork the child holds nothing, and leaves the parent's holds alone.
#![cfg(unix)]
#![allow(unsafe_code)]

use fencelock::blocking::{Client, Guard};
use fencelock::{ErrorKind, LossReason};
use fencelock_testkit::{RedisServer, skip_servers};

/// Runs `child` in a forked child; gives whether it ended with true.
fn in_child(child: impl FnOnce() -> bool) -> bool {
    // SAFETY: plain system calls. The child runs on a copy of this thread alone; it only allocates
    // (which the C library allows after a fork) and calls what is under test, then exits at once.
    unsafe {
        match libc::fork() {
            0 => {
                // A child that hangs must not outlive the test.
                libc::alarm(60);
                let fine = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
                libc::_exit(i32::from(!fine.unwrap_or(false)))
            }
            child => {
                assert!(child > 0, "fork failed");
                let mut status = 0;
                assert_eq!(libc::waitpid(child, &mut status, 0), child);
                libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
            }
        }
    }
}

fn check(url: &str) {
    let client = Client::connect(url).unwrap();
    let lock = client.lock("forked").unwrap();
    let guard = lock.acquire().unwrap();
    let spare = client.lock("spare").unwrap().acquire().unwrap();
    let closed = |error: fencelock::Error| {
        assert!(error.message().contains("fork"), "{error}");
        error.kind() == ErrorKind::Closed
    };
    let mut parts: Option<(Client, Guard)> = Some((client.clone(), spare));
    let fine = in_child(|| {
        let (client, spare) = parts.take().unwrap();
        let mut fine = !guard.is_valid() && guard.remaining().is_zero();
        fine &= guard.check().unwrap_err().kind() == ErrorKind::Lost;
        fine &= lock.hold_count() == 0;
        fine &= closed(lock.try_acquire().unwrap_err());
        fine &= closed(client.lock("other").unwrap_err());
        fine &= closed(client.ping().unwrap_err());
        fine &= closed(spare.release().unwrap_err());
        client.close();
        drop(client);
        fine
    });
    assert!(fine, "in the child");
    // The parent's connection still works, and its holds are its own.
    assert!(guard.is_valid());
    assert!(lock.is_locked().unwrap());
    let (client, spare) = parts.unwrap();
    spare.release().unwrap();
    guard.release().unwrap();
    assert!(!lock.is_locked().unwrap());
    assert_eq!(client.metrics().losses_by(LossReason::Closed), 0);
    client.close();
}

/// One test, because a fork concerns every thread of the process.
#[test]
fn p11_a_forked_child_holds_nothing_and_the_parent_keeps_its_own() {
    check("memory:");
    let folder = tempfile::tempdir().unwrap();
    check(&format!("sqlite:{}", folder.path().join("locks.db").display()));
    if !skip_servers() {
        let server = RedisServer::start().unwrap();
        check(&server.url());
        check_again(&server.url());
    }
}

/// A child that connects afresh is a client like any other, with ids of its own.
fn check_again(url: &str) {
    let client = Client::connect(url).unwrap();
    let guard = client.lock("taken").unwrap().acquire().unwrap();
    let parent = client.id().to_owned();
    let fine = in_child(|| {
        let own = Client::connect(url).unwrap();
        let refused = own.lock("taken").unwrap().try_acquire().unwrap_err().kind();
        let free = own.lock("free").unwrap().acquire().unwrap().release();
        refused == ErrorKind::Contended && free.is_ok() && own.id() != parent
    });
    assert!(fine, "in the child");
    guard.release().unwrap();
}
