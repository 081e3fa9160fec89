//! Waiting, its order, and local hand-off.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fencelock::ErrorKind;

use super::{LIMIT, World, eventually, queued, soon, waiting};

pub async fn p09_try_does_not_wait(world: &World) {
    let (holder, client) = (world.client().await, world.client().await);
    let guard = holder.lock("try").unwrap().acquire().await.unwrap();
    let lock = client.lock("try").unwrap();
    assert_eq!(lock.try_acquire().await.unwrap_err().kind(), ErrorKind::Contended);
    let info = holder.inspect("try").await.unwrap().unwrap();
    assert!(info.waiters.is_empty(), "a try does not queue: {info:?}");
    guard.release().await.unwrap();
    lock.try_acquire().await.unwrap().release().await.unwrap();
}

pub async fn p09_a_bounded_wait_times_out_or_succeeds(world: &World) {
    let (holder, client) = (world.client().await, world.client().await);
    let guard = holder.lock("bounded").unwrap().acquire().await.unwrap();
    let lock = client.lock("bounded").unwrap();
    let begin = Instant::now();
    let error = lock.acquire_timeout(Duration::from_millis(150)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(begin.elapsed() >= Duration::from_millis(150));
    queued(&holder, "bounded", 0).await;
    let waiter = tokio::spawn(async move { lock.acquire_timeout(LIMIT).await });
    queued(&holder, "bounded", 1).await;
    guard.release().await.unwrap();
    soon("the waiter", waiter).await.unwrap().unwrap().release().await.unwrap();
}

pub async fn p09_an_unbounded_wait_is_served_on_release(world: &World) {
    let (holder, client) = (world.client().await, world.client().await);
    let guard = holder.lock("unbounded").unwrap().acquire().await.unwrap();
    let lock = client.lock("unbounded").unwrap();
    let waiter = tokio::spawn(async move { lock.acquire().await });
    queued(&holder, "unbounded", 1).await;
    let token = guard.token();
    guard.release().await.unwrap();
    let granted = soon("the waiter", waiter).await.unwrap().unwrap();
    assert!(granted.token() > token);
    assert!(granted.is_valid());
    granted.release().await.unwrap();
}

pub async fn p09_two_hundred_waiters_of_one_client_are_served_in_order(world: &World) {
    let (holder, client) = (world.client().await, world.client().await);
    let guard = holder.lock("order").unwrap().acquire().await.unwrap();
    let lock = client.lock("order").unwrap().non_reentrant();
    let served = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for index in 0..200 {
        let (lock, served) = (lock.clone(), served.clone());
        tasks.push(tokio::spawn(async move {
            let guard = lock.acquire().await.unwrap();
            served.lock().unwrap().push((index, guard.token()));
            guard.release().await.unwrap();
        }));
        waiting(&client, index + 1).await;
    }
    let info = holder.inspect("order").await.unwrap().unwrap();
    assert!(info.waiters.len() <= 1, "one entry for a whole client: {info:?}");
    guard.release().await.unwrap();
    for task in tasks {
        soon("a waiter", task).await.unwrap();
    }
    let served = served.lock().unwrap();
    assert!(served.iter().map(|(index, _)| *index).eq(0..200), "{served:?}");
    assert!(served.is_sorted_by(|a, b| a.1 < b.1), "{served:?}");
}

pub async fn p09_clients_are_served_in_order(world: &World) {
    let holder = world.client().await;
    let guard = holder.lock("fair").unwrap().acquire().await.unwrap();
    let served = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for index in 0..8 {
        let client = world.client().await;
        let (lock, served) = (client.lock("fair").unwrap(), served.clone());
        tasks.push(tokio::spawn(async move {
            let guard = lock.acquire().await.unwrap();
            served.lock().unwrap().push(index);
            guard.release().await.unwrap();
        }));
        queued(&holder, "fair", index + 1).await;
    }
    guard.release().await.unwrap();
    for task in tasks {
        soon("a waiter", task).await.unwrap();
    }
    assert_eq!(*served.lock().unwrap(), (0..8).collect::<Vec<_>>());
}

pub async fn p09_contended_tries_of_many_threads_never_hang(world: &World) {
    let mut tasks = Vec::new();
    for _ in 0..2 {
        let client = world.client().await;
        for _ in 0..4 {
            let lock = client.lock("tries").unwrap().non_reentrant();
            tasks.push(tokio::spawn(async move {
                let mut granted = 0;
                for _ in 0..25 {
                    match lock.try_acquire().await {
                        Ok(guard) => {
                            granted += 1;
                            guard.release().await.unwrap();
                        }
                        Err(error) => assert_eq!(error.kind(), ErrorKind::Contended),
                    }
                }
                granted
            }));
        }
    }
    let mut granted = 0;
    for task in tasks {
        granted += soon("a worker", task).await.unwrap();
    }
    assert!(granted > 0);
    let lock = world.client().await.lock("tries").unwrap();
    lock.acquire_timeout(LIMIT).await.unwrap().release().await.unwrap();
}

pub async fn p10_the_holder_is_told_that_it_is_wanted(world: &World) {
    let (holder, client) = (world.client().await, world.client().await);
    let guard = holder.lock("wanted").unwrap().acquire().await.unwrap();
    assert!(!guard.is_wanted());
    let lock = client.lock("wanted").unwrap();
    let waiter = tokio::spawn(async move { lock.acquire().await });
    soon("the word", guard.wanted()).await;
    assert!(guard.is_wanted());
    guard.release().await.unwrap();
    soon("the waiter", waiter).await.unwrap().unwrap().release().await.unwrap();
}

pub async fn p10_local_waiters_do_not_starve_another_client(world: &World) {
    let (busy, other) = (world.client().await, world.client().await);
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut tasks = Vec::new();
    for _ in 0..4 {
        let lock = busy.lock("busy").unwrap();
        let stop = stop.clone();
        tasks.push(tokio::spawn(async move {
            while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                let guard = lock.acquire().await.unwrap();
                tokio::task::yield_now().await;
                guard.release().await.unwrap();
            }
        }));
    }
    eventually("local hand-offs", || async { (busy.metrics().grants_local() > 9).then_some(()) })
        .await;
    let lock = other.lock("busy").unwrap();
    for _ in 0..5 {
        let guard = lock.acquire_timeout(LIMIT).await.unwrap();
        guard.release().await.unwrap();
    }
    stop.store(true, std::sync::atomic::Ordering::SeqCst);
    for task in tasks {
        soon("a worker", task).await.unwrap();
    }
}
