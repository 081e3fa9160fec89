//! How waits, holds and clients end.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use fencelock::{Abandoned, ErrorKind, LossReason};

use super::{LIMIT, Need, World, eventually, queued, soon, waiting};

pub async fn p11_a_dropped_wait_leaves_nothing_behind(world: &World) {
    let (holder, client) = (world.client().await, world.client().await);
    let guard = holder.lock("dropped").unwrap().acquire().await.unwrap();
    let lock = client.lock("dropped").unwrap();
    let waiter = tokio::spawn({
        let lock = lock.clone();
        async move { lock.acquire().await.map(drop) }
    });
    queued(&holder, "dropped", 1).await;
    waiter.abort();
    assert!(waiter.await.unwrap_err().is_cancelled());
    waiting(&client, 0).await;
    queued(&holder, "dropped", 0).await;
    guard.release().await.unwrap();
    let third = world.client().await.lock("dropped").unwrap();
    third.acquire_timeout(LIMIT).await.unwrap().release().await.unwrap();
}

pub async fn p11_a_client_may_be_drained_for_as_long_as_it_takes(world: &World) {
    let client = world.client().await;
    let guard = client.lock("drained").unwrap().acquire().await.unwrap();
    let draining = tokio::spawn({
        let client = client.clone();
        async move { client.drain(Duration::MAX).await }
    });
    guard.release().await.unwrap();
    assert!(soon("the end", draining).await.unwrap());
}

/// The future is dropped after any number of polls, before, while and after the grant arrives.
pub async fn p11_waits_dropped_at_any_point_leave_the_lock_free(world: &World) {
    let (client, other) = (world.client().await, world.client().await);
    let lock = client.lock("anywhere").unwrap().non_reentrant();
    let other = other.lock("anywhere").unwrap();
    for turns in 0..40 {
        let holder = (turns % 2 == 0).then_some(&other);
        let held = match holder {
            Some(other) => Some(other.acquire_timeout(LIMIT).await.unwrap()),
            None => None,
        };
        {
            let mut wait = pin!(lock.acquire());
            let mut held = held;
            for turn in 0..turns {
                if turn == turns / 2 {
                    drop(held.take());
                }
                // A ready future must not be polled again: its guard is dropped here.
                if wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                    break;
                }
                tokio::time::sleep(Duration::from_micros(100)).await;
            }
        }
        other.acquire_timeout(LIMIT).await.unwrap().release().await.unwrap();
    }
    waiting(&client, 0).await;
}

pub async fn p11_a_dropped_guard_is_released(world: &World) {
    let (client, other) = (world.client().await, world.client().await);
    drop(client.lock("guard").unwrap().acquire().await.unwrap());
    let other = other.lock("guard").unwrap();
    let next = other.acquire_timeout(LIMIT).await.unwrap();
    world.assert_released(next.previous_abandoned());
    assert_eq!(client.metrics().holds.count(), 1);
}

pub async fn p11_close_tells_holds_cancels_waits_and_frees_the_lock(world: &World) {
    let (client, other) = (world.client().await, world.client().await);
    let held = client.lock("held").unwrap().acquire().await.unwrap();
    let foreign = other.lock("foreign").unwrap().acquire().await.unwrap();
    let waiter = tokio::spawn({
        let lock = client.lock("foreign").unwrap();
        async move { lock.acquire().await.map(drop) }
    });
    queued(&other, "foreign", 1).await;
    soon("the close", client.close()).await;
    let kind = soon("the waiter", waiter).await.unwrap().unwrap_err().kind();
    assert!(matches!(kind, ErrorKind::Closed | ErrorKind::Cancelled), "{kind}");
    assert_eq!(soon("the loss", held.lost()).await, LossReason::Closed);
    assert!(!held.is_valid());
    other.lock("held").unwrap().try_acquire().await.unwrap().release().await.unwrap();
    queued(&other, "foreign", 0).await;
    assert_eq!(client.lock("x").unwrap().acquire().await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(client.ping().await.unwrap_err().kind(), ErrorKind::Closed);
    soon("closing again", client.close()).await;
    foreign.release().await.unwrap();
}

pub async fn p11_a_close_says_whether_all_was_released(world: &World) {
    let (idle, done) = (world.client().await, world.client().await);
    assert!(soon("an idle close", idle.close()).await);
    assert!(soon("closing again", idle.close()).await);
    done.lock("said").unwrap().acquire().await.unwrap().release().await.unwrap();
    assert!(soon("the close after a release", done.close()).await);

    let (holder, waiter) = (world.client().await, world.client().await);
    let guard = holder.lock("said").unwrap().acquire().await.unwrap();
    let waiting = tokio::spawn({
        let lock = waiter.lock("said").unwrap();
        async move { lock.acquire().await.map(drop) }
    });
    queued(&holder, "said", 1).await;
    assert!(!soon("the close of who waits", waiter.close()).await);
    soon("the wait", waiting).await.unwrap().unwrap_err();
    assert!(!soon("the close of who holds", holder.close()).await);
    assert_eq!(soon("the loss", guard.lost()).await, LossReason::Closed);
}

pub async fn p11_a_drain_that_takes_too_long_loses_what_is_left(world: &World) {
    let client = world.client().await;
    let guard = client.lock("left").unwrap().acquire().await.unwrap();
    assert!(!soon("the drain", client.drain(Duration::from_millis(20))).await);
    assert!(client.is_closed());
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    // And with no time at all.
    let client = world.client().await;
    let guard = client.lock("left").unwrap().acquire_timeout(Duration::MAX).await.unwrap();
    assert!(!soon("the drain", client.drain(Duration::ZERO)).await);
    assert!(client.is_closed() && !guard.is_valid());
}

pub async fn p11_dropping_every_handle_closes(world: &World) {
    let (client, other) = (world.client().await, world.client().await);
    let guard = client.lock("handles").unwrap().acquire().await.unwrap();
    drop(client);
    assert!(guard.is_valid(), "the guard is a handle too");
    drop(guard);
    let next = other.lock("handles").unwrap().acquire_timeout(LIMIT).await.unwrap();
    world.assert_released(next.previous_abandoned());
}

pub async fn p12_a_released_predecessor_is_not_abandoned(world: &World) {
    let (client, other) = (world.client().await, world.client().await);
    client.lock("kept").unwrap().acquire().await.unwrap().release().await.unwrap();
    let next = other.lock("kept").unwrap().acquire().await.unwrap();
    world.assert_released(next.previous_abandoned());
}

/// A client whose runtime is torn down is silent, as one that crashed.
pub async fn p12_a_crashed_predecessor_is_told(world: &World) {
    let other = world.quick_client().await;
    if world.lacks(&other, Need::Abandoned) {
        return;
    }
    let builder = world.quick();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let guard = runtime.block_on(async {
            let client = builder.connect().await.unwrap();
            client.lock("crashed").unwrap().acquire().await.unwrap()
        });
        std::mem::forget(guard);
        runtime.shutdown_background();
    })
    .join()
    .unwrap();
    let lock = other.lock("crashed").unwrap();
    let next = lock.acquire_timeout(LIMIT).await.unwrap();
    assert_eq!(next.previous_abandoned(), Abandoned::Yes);
    next.release().await.unwrap();
    let after = lock.acquire().await.unwrap();
    // Told once, to one that released.
    world.assert_released(after.previous_abandoned());
    eventually("the end", || async { (!after.is_reentry()).then_some(()) }).await;
}
