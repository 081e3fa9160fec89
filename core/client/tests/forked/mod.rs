//! What holds for a forked child on every store.

use fencelock::blocking::{Client, Guard};
use fencelock::{ErrorKind, LossReason};
use fencelock_testkit::in_child;

/// The child has none of its parent's holds, and whatever it does to them leaves the parent's alone.
pub fn check(url: &str) {
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
