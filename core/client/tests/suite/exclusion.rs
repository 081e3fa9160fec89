//! Exclusion, fencing, and who may release.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::ErrorKind;

use super::{LIMIT, World, soon};

pub async fn p01_one_holder_at_a_time(world: &World) {
    let inside = Arc::new(AtomicU32::new(0));
    let done = Arc::new(AtomicU32::new(0));
    let mut tasks = Vec::new();
    for _ in 0..3 {
        let client = world.client().await;
        for _ in 0..4 {
            let (inside, done) = (inside.clone(), done.clone());
            let lock = client.lock("one").unwrap();
            tasks.push(tokio::spawn(async move {
                for _ in 0..8 {
                    let guard = lock.acquire_timeout(LIMIT).await.unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two holders");
                    tokio::task::yield_now().await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    done.fetch_add(1, Ordering::SeqCst);
                    guard.release().await.unwrap();
                }
            }));
        }
    }
    for task in tasks {
        soon("a worker", task).await.unwrap();
    }
    assert_eq!(done.load(Ordering::SeqCst), 3 * 4 * 8);
}

pub async fn p02_tokens_rise_over_local_hand_offs_and_clients(world: &World) {
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for _ in 0..2 {
        let client = world.client().await;
        for _ in 0..5 {
            let tokens = tokens.clone();
            let lock = client.lock("tokens").unwrap();
            tasks.push(tokio::spawn(async move {
                for _ in 0..20 {
                    let guard = lock.acquire_timeout(LIMIT).await.unwrap();
                    tokens.lock().unwrap().push(guard.token());
                    drop(guard);
                }
            }));
        }
    }
    for task in tasks {
        soon("a worker", task).await.unwrap();
    }
    let tokens = tokens.lock().unwrap();
    assert_eq!(tokens.len(), 200);
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

pub async fn p02_tokens_rise_over_expiry(world: &World) {
    let (first, second) = (world.client().await, world.client().await);
    let lost = first.lock("expiry").unwrap().lease(Duration::from_millis(200));
    let lost = lost.acquire().await.unwrap();
    let next = second.lock("expiry").unwrap().acquire_timeout(LIMIT).await.unwrap();
    assert!(next.token() > lost.token());
    assert!(!lost.is_valid());
    assert_eq!(lost.check().unwrap_err().kind(), ErrorKind::Lost);
}

pub async fn p03_the_end_of_a_lost_guard_does_not_touch_its_successor(world: &World) {
    let (first, second) = (world.client().await, world.client().await);
    let lost = first.lock("late").unwrap().lease(Duration::from_millis(200));
    let lost = lost.acquire().await.unwrap();
    let next = second.lock("late").unwrap().acquire_timeout(LIMIT).await.unwrap();
    assert_eq!(lost.release().await.unwrap_err().kind(), ErrorKind::Lost);
    let third = world.client().await;
    let refused = third.lock("late").unwrap().try_acquire().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Contended);
    assert!(next.is_valid());
    next.release().await.unwrap();
    third.lock("late").unwrap().try_acquire().await.unwrap().release().await.unwrap();
}
