//! Re-entry.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fencelock::{ErrorKind, LossReason, OwnerId};

use super::{LIMIT, World, eventually, soon};

pub async fn p05_the_same_task_re_enters_and_each_hold_counts(world: &World) {
    let (client, stranger) = (world.client().await, world.client().await);
    let lock = client.lock("nested").unwrap();
    let stranger = stranger.lock("nested").unwrap();
    let outer = lock.acquire().await.unwrap();
    let inner = lock.try_acquire().await.unwrap();
    assert!(!outer.is_reentry() && inner.is_reentry());
    assert_eq!(outer.token(), inner.token());
    assert_eq!(lock.hold_count(), 2);
    // In any order.
    outer.release().await.unwrap();
    assert_eq!(lock.hold_count(), 1);
    assert!(inner.is_valid());
    assert_eq!(stranger.try_acquire().await.unwrap_err().kind(), ErrorKind::Contended);
    inner.release().await.unwrap();
    assert_eq!(lock.hold_count(), 0);
    stranger.try_acquire().await.unwrap().release().await.unwrap();
}

pub async fn p08_the_callbacks_of_a_level_that_was_left_are_freed(world: &World) {
    let client = world.client().await;
    let lock = client.lock("levels").unwrap();
    let outer = lock.acquire().await.unwrap();
    let kept = Arc::new(());
    outer.on_lost({
        let kept = kept.clone();
        move |_| drop(kept)
    });
    for _ in 0..3 {
        let inner = lock.acquire().await.unwrap();
        let (lost, wanted) = (kept.clone(), kept.clone());
        inner.on_lost(move |_| drop(lost));
        inner.on_wanted(move || drop(wanted));
        assert_eq!(Arc::strong_count(&kept), 4);
        inner.release().await.unwrap();
        assert_eq!(Arc::strong_count(&kept), 2, "the outer level's alone is left");
    }
    outer.release().await.unwrap();
}

pub async fn p05_another_task_does_not_re_enter(world: &World) {
    let client = world.client().await;
    let lock = client.lock("tasks").unwrap();
    let guard = lock.acquire().await.unwrap();
    let (other, stranger) = (lock.clone(), world.client().await);
    assert!(!stranger.lock("tasks").unwrap().is_held(), "only this client is asked");
    let refused = tokio::spawn(async move {
        assert_eq!(other.hold_count(), 0);
        assert!(other.is_held());
        other.try_acquire().await.map(drop).unwrap_err().kind()
    });
    assert_eq!(refused.await.unwrap(), ErrorKind::Contended);
    guard.release().await.unwrap();
    assert!(!lock.is_held());
    let explicit = lock.clone().owner(OwnerId::new("anybody").unwrap()).acquire().await;
    if client.capabilities().store == "redis quorum" {
        assert_eq!(explicit.unwrap_err().kind(), ErrorKind::Unsupported);
        return;
    }
    let explicit = explicit.unwrap();
    assert!(lock.is_held());
    explicit.release().await.unwrap();
    assert!(!lock.is_held());
}

pub async fn p05_re_entry_on_an_ended_hold_is_a_new_grant(world: &World) {
    let client = world.client().await;
    let lock = client.lock("ended").unwrap();
    let short = lock.clone().lease(Duration::from_millis(200)).acquire().await.unwrap();
    assert_eq!(soon("the loss", short.lost()).await, LossReason::Ended);
    let next = lock.acquire().await.unwrap();
    assert!(!next.is_reentry());
    assert!(next.token() > short.token());
    assert_eq!(lock.hold_count(), 1);
}

pub async fn p05_non_reentrant_excludes_its_own_task(world: &World) {
    let client = world.client().await;
    let lock = client.lock("fresh").unwrap().non_reentrant();
    let guard = lock.acquire().await.unwrap();
    assert_eq!(lock.try_acquire().await.unwrap_err().kind(), ErrorKind::Contended);
    assert_eq!(lock.hold_count(), 0);
    guard.release().await.unwrap();
    lock.acquire().await.unwrap().release().await.unwrap();
}

pub async fn p05_a_shorter_inner_lease_does_not_cut_the_outer_one(world: &World) {
    let (client, stranger) = (world.client().await, world.client().await);
    let lock = client.lock("inner").unwrap();
    let outer = lock.acquire().await.unwrap();
    let inner = lock.clone().lease(Duration::from_millis(200)).acquire().await.unwrap();
    // The end of nested levels is the latest of their ends.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(outer.is_valid() && inner.is_valid());
    let stranger = stranger.lock("inner").unwrap();
    assert_eq!(stranger.try_acquire().await.unwrap_err().kind(), ErrorKind::Contended);
    inner.release().await.unwrap();
    outer.release().await.unwrap();
    stranger.acquire_timeout(super::LIMIT).await.unwrap().release().await.unwrap();
}

pub async fn p05_levels_end_in_any_order(world: &World) {
    let client = world.client().await;
    let lock = client.lock("levels").unwrap();
    let outer = lock.acquire().await.unwrap();
    let middle = lock.acquire().await.unwrap();
    let bounded = lock.clone().lease(LIMIT).acquire().await.unwrap();
    let inner = client.lock("levels").unwrap().acquire().await.unwrap();
    assert_eq!(lock.hold_count(), 4);
    outer.release().await.unwrap();
    bounded.release().await.unwrap();
    assert_eq!(lock.hold_count(), 2);
    assert!(middle.is_valid() && inner.is_valid());
    let stranger = lock.clone().non_reentrant();
    assert_eq!(stranger.try_acquire().await.unwrap_err().kind(), ErrorKind::Contended);
    drop(inner);
    assert_eq!(stranger.try_acquire().await.unwrap_err().kind(), ErrorKind::Contended);
    middle.release().await.unwrap();
    assert_eq!(lock.hold_count(), 0);
    stranger.acquire_timeout(LIMIT).await.unwrap().release().await.unwrap();
}

/// Branches of one task do not wait for each other, whoever had the lock before.
pub async fn p05_branches_of_one_task_get_the_lock_together(world: &World) {
    let (client, other) = (world.client().await, world.client().await);
    let (lock, stranger) = (client.lock("branches").unwrap(), other.lock("branches").unwrap());
    let both = async || {
        let both = async { tokio::join!(lock.acquire(), lock.acquire()) };
        let (one, two) = soon("both branches", both).await;
        (one.unwrap(), two.unwrap())
    };
    let (one, two) = both().await;
    assert_eq!(one.token(), two.token());
    assert!(!one.is_reentry() && two.is_reentry());
    assert_eq!(lock.hold_count(), 2);
    one.release().await.unwrap();
    assert_eq!(stranger.try_acquire().await.unwrap_err().kind(), ErrorKind::Contended);
    two.release().await.unwrap();
    // Behind another task, and behind another client.
    for before in [lock.clone().non_reentrant(), stranger] {
        let held = before.acquire().await.unwrap();
        let (one, two) = tokio::join!(both(), async {
            tokio::task::yield_now().await;
            held.release().await.unwrap();
        })
        .0;
        assert_eq!(one.token(), two.token());
        two.release().await.unwrap();
        one.release().await.unwrap();
    }
}

/// A re-entry that waits for a longer lease belongs to its task, not to the hold that it was to join.
pub async fn p05_a_re_entry_goes_on_when_its_outer_hold_is_dropped(world: &World) {
    let client = world.client().await;
    let lock = client.lock("moved").unwrap();
    let stranger = lock.clone().non_reentrant();
    for _ in 0..20 {
        let outer = lock.clone().lease(Duration::from_secs(5)).acquire().await.unwrap();
        let token = outer.token();
        let both = async { tokio::join!(lock.acquire(), async { drop(outer) }) };
        let (inner, ()) = soon("the re-entry", both).await;
        let inner = inner.unwrap();
        assert!(inner.token() >= token);
        assert_eq!(stranger.try_acquire().await.unwrap_err().kind(), ErrorKind::Contended);
        inner.release().await.unwrap();
    }
    assert_eq!(lock.hold_count(), 0);
}

pub async fn p08_every_level_is_told_of_the_loss_and_none_that_was_left(world: &World) {
    let client = world.client().await;
    let lock = client.lock("lost levels").unwrap();
    let outer = lock.acquire().await.unwrap();
    let inner = lock.acquire().await.unwrap();
    let left = lock.acquire().await.unwrap();
    let told = Arc::new(AtomicU32::new(0));
    for (guard, weight) in [(&outer, 1), (&inner, 10), (&left, 100)] {
        let told = told.clone();
        guard.on_lost(move |_| {
            told.fetch_add(weight, Ordering::SeqCst);
        });
    }
    let never = left.lost();
    left.release().await.unwrap();
    client.break_lock("lost levels", outer.token().get()).await.unwrap();
    inner.lost().await;
    eventually("both are told", || async { (told.load(Ordering::SeqCst) == 11).then_some(()) })
        .await;
    assert!(tokio::time::timeout(Duration::ZERO, never).await.is_err());
    assert!(!inner.is_valid());
    // A new grant, although the old levels are still there.
    let again = lock.acquire().await.unwrap();
    assert!(!again.is_reentry() && again.token() > outer.token());
    assert!(lock.acquire().await.unwrap().is_reentry());
    assert_eq!(outer.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(inner.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert!(again.is_valid());
    again.release().await.unwrap();
    assert_eq!(lock.hold_count(), 0);
}
