//! What a guard does without asking the engine.

use std::time::Duration;

use crate::{Client, clock};

#[tokio::test]
async fn bug_200_what_an_inner_lease_asked_for_is_not_certain_for_the_outer_hold() {
    let client = Client::connect("memory:").await.unwrap();
    let lock = client.lock("certain").unwrap();
    let outer = lock.acquire().await.unwrap();
    let hour = Duration::from_secs(3_600);
    let inner = lock.lease(hour).acquire().await.unwrap();
    // As the next renewal would.
    inner.extend(hour).await.unwrap();
    assert!(outer.is_valid() && outer.remaining() > Duration::from_secs(1_800));
    inner.release().await.unwrap();
    // From now on the store keeps the lock for the client's own lease. A process that stands still for
    // longer must not say that it holds it.
    let later = clock::now() + Duration::from_secs(60);
    assert!(!outer.listener.is_certain(later));
}

#[cfg(unix)]
#[tokio::test]
async fn bug_201_a_forked_child_waits_for_no_thread_that_it_does_not_have() {
    use fencelock_engine::request::Mode;
    use fencelock_testkit::in_child;

    use crate::ErrorKind;

    let client = Client::connect("memory:").await.unwrap();
    let guard = client.rw_lock("forked").unwrap().write().await.unwrap();
    let busy = guard.lock.reentrant.busy();
    let fine = in_child(|| match guard.start_conversion(Mode::Shared) {
        Err(error) => error.kind() == ErrorKind::Closed,
        Ok(_) => false,
    });
    drop(busy);
    assert!(fine, "in the child");
}
